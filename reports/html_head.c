/* SPDX-License-Identifier: MIT */
/* What stands above the cases: what was tested on what, what was not tested, what deviates. */
#include <inttypes.h>
#include <string.h>

#include "../harness/json.h"
#include "html.h"
#include "report_util.h"

/* What a report is signed for comes first; what else run.json says follows under its own name. */
static const struct {
	const char *key, *label;
	bool wanted; /* its absence is said */
} facts[] = {
	{ "provider", "provider", true },   { "device", "device", false },      { "firmware", "firmware", true },
	{ "kernel", "kernel", true },       { "rdma_core", "rdma-core", true }, { "lab", "lab", true },
	{ "seed", "seed", true },           { "build", "qpdrill", true },       { "started", "started", true },
	{ "ended", "ended", false },        { "command", "command", true },     { "repeat", "the same again", true },
	{ "set", "attributes set", false },
};
static const char *const elsewhere[] = { "schema", "id", "cases", "hashes", "troubles", "exit" };

static void put_value(struct xml *x, const json_t *value)
{
	const json_t *item;
	size_t i;

	if (json_is_string(value))
		xml_text(x, json_string_value(value));
	else if (json_is_integer(value))
		xml_textf(x, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		xml_text(x, json_is_true(value) ? "yes" : "no");
	json_array_foreach(value, i, item) {
		xml_text(x, i ? " " : "");
		put_value(x, item);
	}
}

static bool is_empty(const json_t *value)
{
	return !value || json_is_null(value) || (json_is_string(value) && !*json_string_value(value)) ||
	       (json_is_array(value) && !json_array_size(value)) || json_is_object(value);
}

static void put_fact(struct xml *x, const char *label, const json_t *value)
{
	xml_start(x, "tr");
	xml_start(x, "th");
	xml_attr(x, "scope", "row");
	xml_text(x, label);
	xml_end(x);
	xml_start(x, "td");
	if (is_empty(value)) {
		xml_element(x, "span", "dim", "not on record");
	} else {
		xml_start(x, "code");
		put_value(x, value);
		xml_end(x);
	}
	xml_end(x);
	xml_end(x);
}

static bool is_known(const char *key)
{
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (!strcmp(facts[i].key, key))
			return true;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (!strcmp(elsewhere[i], key))
			return true;
	return false;
}

static void put_hashes(struct xml *x, const json_t *hashes)
{
	const char *file;
	json_t *hash;

	if (!json_object_size(hashes))
		return;
	xml_start(x, "details");
	xml_start(x, "summary");
	xml_textf(x, "hashes of the %zu files that it was made from: scenarios and profile", json_object_size(hashes));
	xml_end(x);
	xml_start(x, "pre");
	json_object_foreach((json_t *)hashes, file, hash)
		xml_textf(x, "%s  %s\n", json_is_string(hash) ? json_string_value(hash) : "?", file);
	xml_end(x);
	xml_end(x);
}

void html_environment(struct xml *x, const struct report_run *run)
{
	const char *key;
	json_t *value;

	xml_element(x, "h2", NULL, "Environment");
	xml_start(x, "table");
	xml_start(x, "tbody");
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		const json_t *fact = json_object_get(run->run, facts[i].key);

		if (facts[i].wanted || !is_empty(fact))
			put_fact(x, facts[i].label, fact);
	}
	json_object_foreach(run->run, key, value)
		if (!is_known(key) && !is_empty(value))
			put_fact(x, key, value);
	put_fact(x, "exit status", json_object_get(run->run, "exit"));
	xml_end(x);
	xml_end(x);
	put_hashes(x, json_object_get(run->run, "hashes"));
}

static void put_case_link(struct xml *x, const json_t *entry)
{
	html_case_link(x, report_str(entry, "case"));
	xml_text(x, ": ");
}

static bool begin_item(struct xml *x, bool begun, const char *head, const char *why)
{
	if (!begun) {
		xml_element(x, "h2", NULL, head);
		if (why)
			xml_element(x, "p", "note", why);
		xml_start(x, "ul");
	}
	xml_start(x, "li");
	return true;
}

/* Cases that were not run, and faults of which nothing shows that they fired. */
void html_not_injected(struct xml *x, const struct report_run *run)
{
	static const char head[] = "What was not injected, and why";
	bool begun = false;
	size_t i, k;
	json_t *entry, *fault;

	json_array_foreach(run->cases, i, entry) {
		const json_t *verdict = json_object_get(entry, "verdict");

		if (!strcmp(report_str(verdict, "verdict"), "skip") || !strncmp(report_str(verdict, "headline"), "not run", 7)) {
			begun = begin_item(x, begun, head, NULL);
			put_case_link(x, entry);
			xml_text(x, report_str(verdict, "headline"));
			xml_end(x);
		}
		json_array_foreach(json_object_get(verdict, "faults"), k, fault) {
			if (json_bool(fault, "fired", false))
				continue;
			begun = begin_item(x, begun, head, NULL);
			put_case_link(x, entry);
			xml_textf(x, "nothing shows that %s (%s) fired%s%s", report_str(fault, "as"), report_str(fault, "name"),
				  *report_str(fault, "evidence") ? ": " : "", report_str(fault, "evidence"));
			xml_end(x);
		}
	}
	if (begun) {
		xml_end(x);
		return;
	}
	xml_element(x, "h2", NULL, head);
	xml_element(x, "p", NULL, "Nothing: every case ran, and each of its faults has its proof.");
}

/* By entry of the profile: in how many cases, and in which. */
static json_t *collect_deviations(const struct report_run *run)
{
	json_t *by_id = json_object(), *entry, *item, *cases;
	size_t i, k;

	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), k, item) {
			const char *id = report_str(item, "id");

			cases = json_object_get(by_id, id);
			if (!cases) {
				cases = json_array();
				json_object_set_new(by_id, id, cases);
			}
			json_array_append(cases, json_object_get(entry, "case"));
		}
	return by_id;
}

static void put_deviation(struct xml *x, const char *id, const json_t *cases)
{
	const json_t *name;
	size_t i;

	xml_start(x, "li");
	xml_start(x, "details");
	xml_start(x, "summary");
	xml_element(x, "code", NULL, id);
	xml_textf(x, " in %zu case%s", json_array_size(cases), json_array_size(cases) == 1 ? "" : "s");
	xml_end(x);
	json_array_foreach(cases, i, name) {
		xml_text(x, i ? ", " : "");
		html_case_link(x, json_string_value(name));
	}
	xml_end(x);
	xml_end(x);
}

void html_deviations(struct xml *x, const struct report_run *run)
{
	json_t *by_id = collect_deviations(run), *cases, *entry, *item;
	const char *id;
	bool begun = false;
	size_t i, k;

	json_object_foreach(by_id, id, cases) {
		if (!begun) {
			xml_element(x, "h2", NULL, "Deviations from the specification");
			xml_element(x, "p", "note",
				    "By entry of the provider's profile, which says what the device does in place of it.");
			xml_start(x, "ul");
		}
		begun = true;
		put_deviation(x, id, cases);
	}
	if (begun)
		xml_end(x);
	json_decref(by_id);
	begun = false;
	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "stale"), k, item) {
			begun = begin_item(x, begun, "Deviations that did not show", NULL);
			put_case_link(x, entry);
			xml_text(x, json_is_string(item) ? json_string_value(item) : report_str(item, "id"));
			xml_end(x);
		}
	if (begun)
		xml_end(x);
}

void html_troubles(struct xml *x, const struct report_run *run)
{
	static const char head[] = "Beside the verdicts";
	bool begun = false;
	size_t i;
	json_t *entry, *trouble;
	const char *boot;

	json_array_foreach(run->cases, i, entry) {
		const char *why = report_str(json_object_get(entry, "result"), "again");

		if (!*why)
			continue;
		begun = begin_item(x, begun, head, NULL);
		put_case_link(x, entry);
		xml_textf(x, "ran again: %s", why);
		xml_end(x);
	}
	json_object_foreach(json_object_get(run->run, "troubles"), boot, trouble) {
		if (json_bool(trouble, "found", false))
			continue;
		begun = begin_item(x, begun, head, NULL);
		xml_textf(x, "boot %s: %s, and none of the %zu cases that ran then does it alone", boot, report_str(trouble, "why"),
			  json_array_size(json_object_get(trouble, "cases")));
		xml_end(x);
	}
	if (begun)
		xml_end(x);
}
