/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "html.h"
#include "report_util.h"

void html_case_link(struct xml *x, const char *id)
{
	char *anchor = html_anchor(id);

	xml_start(x, "a");
	xml_attrf(x, "href", "#%s", anchor ? anchor : "");
	xml_text(x, id);
	xml_end(x);
	free(anchor);
}

void html_verdict_cell(struct xml *x, const char *verdict)
{
	xml_start(x, "td");
	xml_attrf(x, "class", "v %s", verdict);
	xml_text(x, verdict);
	xml_end(x);
}

void html_case_head(struct xml *x, const char *id)
{
	xml_start(x, "th");
	xml_attr(x, "scope", "row");
	xml_attr(x, "class", "m");
	html_case_link(x, id);
	xml_end(x);
}

void html_section(struct xml *x, const char *id, const char *text)
{
	xml_start(x, "h2");
	xml_attr(x, "id", id);
	xml_text(x, text);
	xml_end(x);
}

void html_head_row(struct xml *x, const char *const *heads, size_t n)
{
	xml_start(x, "thead");
	xml_start(x, "tr");
	for (size_t i = 0; i < n; i++) {
		xml_start(x, "th");
		xml_attr(x, "scope", "col");
		xml_text(x, heads[i]);
		xml_end(x);
	}
	xml_end(x);
	xml_end(x);
}

/* A path as a link has it. */
static void put_folder_link(struct xml *x, const char *dir)
{
	char *link = malloc(3 * strlen(dir) + 2), *o = link;

	if (!link)
		return;
	for (const unsigned char *s = (const unsigned char *)dir; *s; s++) {
		if (isalnum(*s) || strchr("/~_.-", *s))
			*o++ = (char)*s;
		else
			o += snprintf(o, 4, "%%%02X", *s);
	}
	*o++ = '/';
	*o = 0;
	xml_start(x, "a");
	xml_attr(x, "href", link);
	xml_text(x, "its folder");
	xml_end(x);
	free(link);
}

static void put_summary(struct xml *x, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *name = report_str(verdict, "verdict");

	xml_start(x, "summary");
	xml_start(x, "span");
	xml_attrf(x, "class", "v %s", name);
	xml_text(x, name);
	xml_end(x);
	xml_text(x, " ");
	xml_element(x, "code", NULL, report_str(entry, "case"));
	xml_end(x);
}

/* The records of a case; an empty array, and a word about it, where they cannot be read. */
static json_t *load_records(struct xml *x, const struct report_run *run, const json_t *entry)
{
	struct error e = { "" };
	json_t *records;
	bool torn;

	if (!report_records(run, entry, &records, &torn, &e)) {
		if (torn)
			xml_element(x, "p", "note", "The last record is torn: whoever wrote it did not come to its end.");
		return records;
	}
	xml_element(x, "p", "note", e.text);
	return json_array();
}

static void put_faults(struct xml *x, const json_t *verdict)
{
	const json_t *fault;
	size_t i;

	json_array_foreach(json_object_get(verdict, "faults"), i, fault) {
		bool fired = json_bool(fault, "fired", false);

		xml_start(x, "p");
		xml_element(x, "span", fired ? NULL : "v inconclusive", fired ? "Fault " : "Not proven: ");
		xml_element(x, "code", NULL, report_str(fault, "as"));
		xml_textf(x, " (%s)%s%s", report_str(fault, "name"), *report_str(fault, "evidence") ? ": " : "",
			  report_str(fault, "evidence"));
		xml_end(x);
	}
}

static void put_notes(struct xml *x, const json_t *verdict)
{
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(verdict, "deviations"), i, item) {
		xml_start(x, "p");
		xml_element(x, "span", "v deviation", "deviation ");
		xml_element(x, "code", NULL, report_str(item, "id"));
		xml_textf(x, ", step %lld", (long long)json_int(item, "step", 0));
		xml_end(x);
	}
	json_array_foreach(json_object_get(verdict, "findings"), i, item) {
		const char *severity = report_str(item, "severity");

		if (strcmp(severity, "note") && strcmp(severity, "warning") && strcmp(severity, "deviation"))
			continue;
		xml_start_class(x, "p", "note");
		xml_textf(x, "%s: %s%s%s%s%s", severity, report_str(item, "text"),
			  *report_str(item, "expected") ? ": expected " : "", report_str(item, "expected"),
			  *report_str(item, "seen") ? ", seen " : "", report_str(item, "seen"));
		xml_end(x);
	}
}

static void put_phases(struct xml *x, const json_t *verdict)
{
	const json_t *phases;
	char text[1024];
	size_t i;

	json_array_foreach(json_object_get(verdict, "phases"), i, phases) {
		xml_start_class(x, "p", "note");
		xml_textf(x, "Recovery: %s", report_phases(phases, text, sizeof(text)));
		xml_end(x);
	}
}

static void put_failure(struct xml *x, const struct report_run *run, const json_t *entry)
{
	char *text = report_failure(run->run, entry);

	xml_element(x, "pre", "problem", text ? text : "");
	free(text);
}

void html_case(struct xml *x, const struct report_run *run, const json_t *entry, size_t n)
{
	const json_t *verdict = json_object_get(entry, "verdict"), *plan = json_object_get(entry, "plan");
	bool problem = html_is_problem(verdict);
	const char *id = report_str(entry, "case");
	char *anchor = html_anchor(id), repeat[4096];
	json_t *records;

	xml_start_class(x, "details", "case");
	if (problem)
		xml_attr(x, "open", "open");
	put_summary(x, entry);
	/* Inside: whoever follows a link to it has it opened. */
	xml_start(x, "div");
	xml_attr(x, "id", anchor ? anchor : "");
	xml_element(x, "h3", NULL, report_str(plan, "title"));
	if (!strcmp(report_str(verdict, "verdict"), "skip")) {
		xml_element(x, "p", NULL, report_str(verdict, "headline"));
	} else {
		records = load_records(x, run, entry);
		if (problem)
			put_failure(x, run, entry);
		put_notes(x, verdict);
		put_faults(x, verdict);
		html_windows(x, verdict);
		put_phases(x, verdict);
		html_expectations(x, run, entry, records);
		html_ladder(x, plan, records, id, problem, n);
		html_states(x, records, problem);
		html_numbers(x, verdict);
		json_decref(records);
		xml_start_class(x, "p", "note");
		if (!problem) {
			xml_text(x, "Again: ");
			xml_element(x, "code", NULL, report_repeat(run->run, id, repeat, sizeof(repeat)));
			xml_text(x, " \xc2\xb7 ");
		}
		put_folder_link(x, report_str(entry, "dir"));
		xml_end(x);
	}
	xml_end(x);
	xml_end(x);
	free(anchor);
}
