/* SPDX-License-Identifier: MIT */
/* report.html: all of a run on one page that needs nothing but itself, no network and no script. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/units.h"
#include "html.h"
#include "report_util.h"

bool html_is_problem(const json_t *verdict)
{
	const char *name = report_str(verdict, "verdict");

	return strcmp(name, "pass") && strcmp(name, "deviation") && strcmp(name, "skip");
}

char *html_anchor(const char *id)
{
	char *anchor = malloc(3 * strlen(id) + sizeof("case-")), *o = anchor;

	if (!anchor)
		return NULL;
	o = stpcpy(o, "case-");
	for (const unsigned char *s = (const unsigned char *)id; *s; s++) {
		if (isalnum(*s) || strchr("/~=_.,+-", *s))
			*o++ = (char)*s;
		else
			o += snprintf(o, 4, ":%02X", *s);
	}
	*o = 0;
	return anchor;
}

static void put_head(struct xml *x, const struct report_run *run)
{
	xml_start(x, "head");
	xml_start(x, "meta");
	xml_attr(x, "charset", "utf-8");
	xml_end_void(x);
	xml_start(x, "meta");
	xml_attr(x, "name", "viewport");
	xml_attr(x, "content", "width=device-width, initial-scale=1");
	xml_end_void(x);
	xml_start(x, "title");
	xml_textf(x, "qpdrill run %s", report_str(run->run, "id"));
	xml_end(x);
	/* Without it a browser asks for one over the network. */
	xml_start(x, "link");
	xml_attr(x, "rel", "icon");
	xml_attr(x, "href", "data:,");
	xml_end_void(x);
	xml_element(x, "style", NULL, html_style);
	xml_end(x);
}

static void put_counts(struct xml *x, const struct report_run *run)
{
	struct report_counts c = report_count(run);
	const struct {
		const char *name;
		unsigned n;
	} counts[] = { { "fail", c.fail },           { "error", c.error }, { "inconclusive", c.inconclusive },
		       { "deviation", c.deviation }, { "pass", c.pass },   { "skip", c.skip } };

	xml_start_class(x, "ul", "counts");
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		xml_start(x, "li");
		xml_start(x, "span");
		/* None of them is nothing to look at. */
		if (counts[i].n)
			xml_attrf(x, "class", "v %s", counts[i].name);
		else
			xml_attr(x, "class", "dim");
		xml_textf(x, "%u %s", counts[i].n, counts[i].name);
		xml_end(x);
		xml_end(x);
	}
	xml_end(x);
}

/* What it ran on, in a line; all of it is further down. */
static void put_summary(struct xml *x, const struct report_run *run)
{
	static const struct {
		const char *key, *label;
	} items[] = { { "kernel", "kernel " },
		      { "provider", "provider " },
		      { "rdma_core", "rdma-core " },
		      { "lab", "lab " },
		      { "started", "" } };
	const char *sep = "";

	xml_start(x, "p");
	for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++) {
		const char *value = report_str(run->run, items[i].key);

		if (!*value)
			continue;
		xml_textf(x, "%s%s%s", sep, items[i].label, value);
		sep = " \xc2\xb7 ";
	}
	xml_end(x);
	if (!*report_str(run->run, "repeat"))
		return;
	xml_start(x, "p");
	xml_text(x, "The same again: ");
	xml_start(x, "code");
	xml_textf(x, "%s%s", report_str(run->run, "repeat"), report_str(run->run, "narrowed"));
	xml_end(x);
	xml_end(x);
}

static void put_nav(struct xml *x, bool problems)
{
	static const struct {
		const char *href, *text;
	} links[] = { { "#problems", "What did not pass" }, { "#cases", "All cases" },
		      { "#environment", "Environment" },    { "#not-injected", "What was not injected" },
		      { "#deviations", "Deviations" },      { "#each", "What happened in each" } };

	xml_start_class(x, "nav", "counts");
	xml_attr(x, "aria-label", "parts of this page");
	for (size_t i = !problems; i < sizeof(links) / sizeof(*links); i++) {
		xml_start(x, "a");
		xml_attr(x, "href", links[i].href);
		xml_text(x, links[i].text);
		xml_end(x);
	}
	xml_end(x);
}

#define PROBLEMS_MAX 60

static void put_problem(struct xml *x, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict"), *cause = json_array_get(json_object_get(verdict, "causes"), 0);

	xml_start(x, "tr");
	html_verdict_cell(x, report_str(verdict, "verdict"));
	html_case_head(x, report_str(entry, "case"));
	xml_start(x, "td");
	xml_text(x, report_str(verdict, "headline"));
	if (cause) {
		xml_start_class(x, "div", "dim");
		xml_textf(x, "likely: %s%s%s", report_str(cause, "cause"), *report_str(cause, "why") ? ": " : "",
			  report_str(cause, "why"));
		xml_end(x);
	}
	xml_end(x);
	xml_end(x);
}

/* Whoever comes for what failed need not look for it. */
static void put_problems(struct xml *x, const struct report_run *run)
{
	static const char *const heads[] = { "verdict", "case", "what, and the likeliest cause" };
	size_t i, shown = 0, n = 0;
	json_t *entry;

	json_array_foreach(run->cases, i, entry)
		n += html_is_problem(json_object_get(entry, "verdict"));
	if (!n)
		return;
	html_section(x, "problems", "What did not pass");
	xml_start_class(x, "table", "cases");
	html_head_row(x, heads, sizeof(heads) / sizeof(*heads));
	xml_start(x, "tbody");
	json_array_foreach(run->cases, i, entry)
		if (html_is_problem(json_object_get(entry, "verdict")) && shown++ < PROBLEMS_MAX)
			put_problem(x, entry);
	xml_end(x);
	xml_end(x);
	if (n > PROBLEMS_MAX) {
		xml_start(x, "p");
		xml_textf(x, "and %zu more, in the table of all cases", n - PROBLEMS_MAX);
		xml_end(x);
	}
}

static void put_table_row(struct xml *x, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *seen = report_str(verdict, "seen");
	char time[32];
	uint64_t ns = report_duration(entry);

	xml_start(x, "tr");
	html_verdict_cell(x, report_str(verdict, "verdict"));
	html_case_head(x, report_str(entry, "case"));
	xml_element(x, "td", NULL, !html_is_problem(verdict) && *seen ? seen : report_str(verdict, "headline"));
	xml_element(x, "td", "n", ns ? units_format_ns(ns, time, sizeof(time)) : "");
	xml_end(x);
}

static void put_table(struct xml *x, const struct report_run *run)
{
	static const char *const heads[] = { "verdict", "case", "what was seen", "time" };
	size_t i;
	json_t *entry;

	html_section(x, "cases", "All cases");
	xml_start_class(x, "table", "cases");
	html_head_row(x, heads, sizeof(heads) / sizeof(*heads));
	xml_start(x, "tbody");
	json_array_foreach(run->cases, i, entry)
		put_table_row(x, entry);
	xml_end(x);
	xml_end(x);
}

static void put_cases(struct xml *x, const struct report_run *run)
{
	size_t i;
	json_t *entry;

	html_section(x, "each", "What happened in each");
	xml_start_class(x, "p", "note");
	xml_text(x, "Time runs down, in milliseconds from the first record of the case. Arrows are packets, with the PSN counted "
		    "from the "
		    "first of the requester; a cross is a lost one, a dot at the wire one that a rule touched, a broken line one "
		    "that the "
		    "wire sent by itself (a copy, a forged, changed or released packet). Shaded: the time of a fault, and of a "
		    "recovery.");
	xml_end(x);
	json_array_foreach(run->cases, i, entry)
		html_case(x, run, entry, i);
}

static void put_body(struct xml *x, const struct report_run *run)
{
	struct report_counts c = report_count(run);

	xml_start(x, "body");
	xml_start_class(x, "a", "skip-link");
	xml_attr(x, "href", "#cases");
	xml_text(x, "to the cases");
	xml_end(x);
	xml_start(x, "main");
	xml_start(x, "h1");
	xml_textf(x, "qpdrill run %s", report_str(run->run, "id"));
	xml_end(x);
	put_counts(x, run);
	put_summary(x, run);
	put_nav(x, report_failed(&c) > 0);
	put_problems(x, run);
	put_table(x, run);
	html_environment(x, run);
	html_not_injected(x, run);
	html_deviations(x, run);
	html_troubles(x, run);
	put_cases(x, run);
	xml_end(x);
	xml_end(x);
}

static int html_write(const struct report_run *run, FILE *out, bool colour, struct error *e)
{
	struct xml *x = xml_open(out, XML_HTML);

	(void)colour;
	if (x) {
		xml_start(x, "html");
		xml_attr(x, "lang", "en");
		xml_attr(x, "xmlns", "http://www.w3.org/1999/xhtml");
		put_head(x, run);
		put_body(x, run);
		xml_end(x);
	}
	return xml_close(x, "report.html", e);
}

extern const struct report_ops report_html;
const struct report_ops report_html = {
	.name = "html",
	.file = "report.html",
	.help = "one page that explains: what was tested on what, and for each case what happened between the two ends",
	.write = html_write,
};
