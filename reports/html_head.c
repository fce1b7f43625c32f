/* SPDX-License-Identifier: MIT */
/* What stands above the cases: what was tested on what, what was not tested, what deviates. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/sha256.h"
#include "html.h"
#include "report_util.h"

/* What a report is signed for comes first; what else run.json says follows under its own name. */
static const struct {
	const char *key, *label;
} facts[] = {
	{ "provider", "provider" }, { "firmware", "firmware" }, { "kernel", "kernel" },         { "rdma_core", "rdma-core" },
	{ "lab", "lab" },           { "seed", "seed" },         { "build", "qpdrill" },         { "started", "started" },
	{ "ended", "ended" },       { "command", "command" },   { "repeat", "the same again" }, { "set", "attributes set" },
};
static const char *const elsewhere[] = { "schema", "id", "cases", "hashes", "troubles", "exit", "devices", "narrowed", "left_out" };

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

/* It is on record that there is none. */
static bool is_none(const json_t *value)
{
	return (json_is_string(value) && !*json_string_value(value)) || (json_is_array(value) && !json_array_size(value));
}

static bool is_missing(const json_t *value)
{
	return !value || json_is_null(value) || json_is_object(value);
}

static void begin_fact(struct xml *x, const char *label)
{
	xml_start(x, "tr");
	xml_start(x, "th");
	xml_attr(x, "scope", "row");
	xml_text(x, label);
	xml_end(x);
	xml_start(x, "td");
}

static void end_fact(struct xml *x)
{
	xml_end(x);
	xml_end(x);
}

static void put_fact(struct xml *x, const char *label, const json_t *value)
{
	begin_fact(x, label);
	if (is_missing(value) || is_none(value)) {
		xml_element(x, "span", "dim", is_missing(value) ? "not on record" : "none");
	} else {
		xml_start(x, "code");
		put_value(x, value);
		xml_end(x);
	}
	end_fact(x);
}

__attribute__((format(printf, 3, 4))) static void put_words(struct xml *x, const char *label, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	begin_fact(x, label);
	xml_element(x, "code", NULL, text);
	end_fact(x);
}

/* The PCI function, by address and by vendor and device; that of a device made in software is none. */
static void put_pci(struct xml *x, const json_t *device)
{
	if (*report_str(device, "pci"))
		put_words(x, "PCI", "%s, %s", report_str(device, "pci"), report_str(device, "pci_id"));
	else
		put_words(x, "PCI", "none: the device sits on no PCI bus (vendor 0x%" PRIx64 ", part %" PRId64 ")",
			  json_u64(device, "vendor_id", 0), json_int(device, "part_id", 0));
}

static void put_port(struct xml *x, const json_t *device)
{
	double gbps = (double)json_int(device, "lane_mbps", 0) * (double)json_int(device, "width", 0) / 1000;
	char speed[96] = "speed not known";

	if (gbps > 0)
		snprintf(speed, sizeof(speed), "%g Gb/s (%" PRId64 " x %g)", gbps, json_int(device, "width", 0),
			 (double)json_int(device, "lane_mbps", 0) / 1000);
	put_words(x, "port", "%s, %s, %s, MTU %" PRId64, report_str(device, "state"), report_str(device, "layer"), speed,
		  json_int(device, "mtu", 0));
}

static void put_attributes(struct xml *x, const json_t *attr)
{
	const char *key, *sep = "";
	json_t *value;

	begin_fact(x, "attributes");
	xml_start(x, "code");
	json_object_foreach((json_t *)attr, key, value) {
		xml_textf(x, "%s%s ", sep, key);
		put_value(x, value);
		sep = ", ";
	}
	xml_end(x);
	end_fact(x);
}

/* What the two ends' devices said of themselves when they were opened. */
static void put_devices(struct xml *x, const json_t *devices)
{
	const char *end;
	json_t *d;

	json_object_foreach((json_t *)devices, end, d) {
		char label[80];

		snprintf(label, sizeof(label), "device of %.60s", end);
		put_words(x, label, "%s%s%s, node GUID %s, GID %s (index %" PRId64 ")", report_str(d, "device"),
			  *report_str(d, "netdev") ? " on " : "", report_str(d, "netdev"), report_str(d, "guid"),
			  report_str(d, "gid"), json_int(d, "gid_index", 0));
		put_pci(x, d);
		put_fact(x, "firmware", json_object_get(d, "fw"));
		put_port(x, d);
		put_attributes(x, json_object_get(d, "attr"));
	}
	if (!json_object_size(devices))
		put_fact(x, "devices", NULL);
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

/* "sha256:...  FILE" lines. Caller frees. */
static char *hash_lines(const json_t *hashes)
{
	const char *file;
	json_t *hash;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	json_object_foreach((json_t *)hashes, file, hash)
		fprintf(out, "%s  %s\n", json_is_string(hash) ? json_string_value(hash) : "?", file);
	return fclose(out) == 0 ? text : (free(text), NULL);
}

/* Each profile by its own hash, and one over all that is listed below: what is printed has the list folded. */
static void put_hash_facts(struct xml *x, const json_t *hashes, const char *lines)
{
	const char *file;
	json_t *hash;
	char hex[SHA256_HEX];

	json_object_foreach((json_t *)hashes, file, hash)
		if (strstr(file, "profiles/"))
			put_words(x, "profile", "%s %s", file, json_is_string(hash) ? json_string_value(hash) : "?");
	if (json_object_size(hashes))
		put_words(x, "files", "%zu, scenarios and profile; sha256 of the list of their hashes: %s",
			  json_object_size(hashes), sha256_hex(lines, strlen(lines), hex));
	else
		put_fact(x, "files", NULL);
}

static void put_hashes(struct xml *x, const json_t *hashes, const char *lines)
{
	if (!json_object_size(hashes))
		return;
	xml_start(x, "details");
	xml_start(x, "summary");
	xml_textf(x, "hashes of the %zu files that it was made from: scenarios and profile", json_object_size(hashes));
	xml_end(x);
	xml_element(x, "pre", NULL, lines);
	xml_end(x);
}

static bool is_told(const char *key, const json_t *value)
{
	return is_known(key) || is_missing(value) || is_none(value);
}

void html_environment(struct xml *x, const struct report_run *run)
{
	const json_t *hashes = json_object_get(run->run, "hashes");
	char *lines = hash_lines(hashes);
	const char *key;
	json_t *value;

	html_section(x, "environment", "Environment");
	xml_start_class(x, "table", "facts");
	xml_start(x, "tbody");
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		put_fact(x, facts[i].label, json_object_get(run->run, facts[i].key));
	json_object_foreach(run->run, key, value)
		if (!is_told(key, value))
			put_fact(x, key, value);
	json_object_foreach(json_object_get(run->run, "left_out"), key, value)
		put_words(x, "left out", "%" JSON_INTEGER_FORMAT " cases tagged %s, which run when they are asked for",
			  json_integer_value(value), key);
	put_fact(x, "exit status", json_object_get(run->run, "exit"));
	put_devices(x, json_object_get(run->run, "devices"));
	put_hash_facts(x, hashes, lines ? lines : "");
	xml_end(x);
	xml_end(x);
	put_hashes(x, hashes, lines ? lines : "");
	free(lines);
}

static void put_case_link(struct xml *x, const json_t *entry)
{
	html_case_link(x, report_str(entry, "case"));
	xml_text(x, ": ");
}

static void add_case(json_t *by_text, const char *text, const json_t *entry)
{
	json_t *cases = json_object_get(by_text, text);

	if (!cases) {
		cases = json_array();
		json_object_set_new(by_text, text, cases);
	}
	json_array_append(cases, json_object_get(entry, "case"));
}

/* Cases that were not run, and faults of which nothing shows that they fired: by reason. */
static json_t *collect_not_injected(const struct report_run *run)
{
	json_t *by_reason = json_object(), *entry, *fault;
	size_t i, k;

	json_array_foreach(run->cases, i, entry) {
		const json_t *verdict = json_object_get(entry, "verdict");
		const char *headline = report_str(verdict, "headline");

		if (!strcmp(report_str(verdict, "verdict"), "skip") || !strncmp(headline, "not run", 7))
			add_case(by_reason, headline, entry);
		json_array_foreach(json_object_get(verdict, "faults"), k, fault) {
			const char *evidence = report_str(fault, "evidence");
			char text[1024];

			if (json_bool(fault, "fired", false))
				continue;
			snprintf(text, sizeof(text), "nothing shows that %s (%s) fired%s%s", report_str(fault, "as"),
				 report_str(fault, "name"), *evidence ? ": " : "", evidence);
			add_case(by_reason, text, entry);
		}
	}
	return by_reason;
}

#define LINKS_OPEN 4 /* more cases than these are folded */

static void put_links(struct xml *x, const json_t *cases)
{
	const json_t *name;
	size_t i;

	json_array_foreach(cases, i, name) {
		xml_text(x, i ? ", " : "");
		html_case_link(x, json_string_value(name));
	}
}

static void put_reason(struct xml *x, const char *reason, const json_t *cases)
{
	bool folded = json_array_size(cases) > LINKS_OPEN;

	xml_start(x, "li");
	if (folded) {
		xml_start(x, "details");
		xml_start(x, "summary");
		xml_textf(x, "%s: %zu cases", reason, json_array_size(cases));
		xml_end(x);
	} else {
		xml_textf(x, "%s: ", reason);
	}
	put_links(x, cases);
	if (folded)
		xml_end(x);
	xml_end(x);
}

void html_not_injected(struct xml *x, const struct report_run *run)
{
	json_t *by_reason = collect_not_injected(run), *cases;
	const char *reason;

	html_section(x, "not-injected", "What was not injected, and why");
	if (json_object_size(by_reason)) {
		xml_start(x, "ul");
		json_object_foreach(by_reason, reason, cases)
			put_reason(x, reason, cases);
		xml_end(x);
	} else {
		xml_element(x, "p", NULL, "Nothing: every case ran, and each of its faults has its proof.");
	}
	json_decref(by_reason);
}

/* By entry of the profile: in how many cases, and in which. */
static json_t *collect_deviations(const struct report_run *run)
{
	json_t *by_id = json_object(), *entry, *item;
	size_t i, k;

	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), k, item)
			add_case(by_id, report_str(item, "id"), entry);
	return by_id;
}

static void put_deviation(struct xml *x, const char *id, const json_t *cases)
{
	xml_start(x, "li");
	xml_start(x, "details");
	xml_start(x, "summary");
	xml_element(x, "code", NULL, id);
	xml_textf(x, " in %zu case%s", json_array_size(cases), json_array_size(cases) == 1 ? "" : "s");
	xml_end(x);
	put_links(x, cases);
	xml_end(x);
	xml_end(x);
}

static void put_stale(struct xml *x, const struct report_run *run)
{
	json_t *by_id = json_object(), *entry, *item, *cases;
	const char *id;
	size_t i, k;

	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "stale"), k, item)
			add_case(by_id, json_is_string(item) ? json_string_value(item) : report_str(item, "id"), entry);
	if (json_object_size(by_id)) {
		xml_element(x, "p", NULL, "Entries of the profile that did not show where they were looked for:");
		xml_start(x, "ul");
		json_object_foreach(by_id, id, cases)
			put_reason(x, id, cases);
		xml_end(x);
	}
	json_decref(by_id);
}

void html_deviations(struct xml *x, const struct report_run *run)
{
	json_t *by_id = collect_deviations(run), *cases;
	const char *id;

	html_section(x, "deviations", "Deviations from the specification");
	if (json_object_size(by_id)) {
		xml_start(x, "details");
		xml_start(x, "summary");
		xml_textf(x, "%zu entries of the provider's profile, which says what the device does in place of the specification",
			  json_object_size(by_id));
		xml_end(x);
		xml_start(x, "ul");
		json_object_foreach(by_id, id, cases)
			put_deviation(x, id, cases);
		xml_end(x);
		xml_end(x);
	} else {
		xml_element(x, "p", NULL, "None.");
	}
	json_decref(by_id);
	put_stale(x, run);
}

static void put_again(struct xml *x, const json_t *entry)
{
	xml_start(x, "li");
	put_case_link(x, entry);
	xml_textf(x, "ran again: %s", report_str(json_object_get(entry, "result"), "again"));
	xml_end(x);
}

static void put_troubles(struct xml *x, const json_t *troubles)
{
	const char *boot;
	json_t *trouble;

	json_object_foreach((json_t *)troubles, boot, trouble) {
		if (json_bool(trouble, "found", false))
			continue;
		xml_start(x, "li");
		xml_textf(x, "boot %s: %s, and none of the %zu cases that ran then does it alone", boot, report_str(trouble, "why"),
			  json_array_size(json_object_get(trouble, "cases")));
		xml_end(x);
	}
}

/* What happened beside the verdicts. */
void html_troubles(struct xml *x, const struct report_run *run)
{
	const json_t *troubles = json_object_get(run->run, "troubles");
	size_t i, n = 0;
	json_t *entry, *trouble;
	const char *boot;

	json_array_foreach(run->cases, i, entry)
		n += *report_str(json_object_get(entry, "result"), "again") != 0;
	json_object_foreach((json_t *)troubles, boot, trouble)
		n += !json_bool(trouble, "found", false);
	if (!n)
		return;
	html_section(x, "beside", "Beside the verdicts");
	xml_start(x, "details");
	xml_start(x, "summary");
	xml_textf(x, "%zu cases that ran a second time, or boots in which something happened that is no case's", n);
	xml_end(x);
	xml_start(x, "ul");
	json_array_foreach(run->cases, i, entry)
		if (*report_str(json_object_get(entry, "result"), "again"))
			put_again(x, entry);
	put_troubles(x, troubles);
	xml_end(x);
	xml_end(x);
}
