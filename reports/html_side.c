/* SPDX-License-Identifier: MIT */
/* What stands beside a ladder: the file's steps with what was seen, the windows, the states, ledger and counters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/plan.h"
#include "../harness/units.h"
#include "../harness/verdict.h"
#include "html.h"
#include "report_util.h"

/* How the steps of one line of the file went, over all rounds of a `repeat`. */
struct line_seen {
	unsigned ended, bad;
	uint64_t ns;
	char outcome[32];
	bool mixed;
};

static void look_at_line(const json_t *records, int64_t line, struct line_seen *ret)
{
	const json_t *r;
	uint64_t begin = 0;
	size_t i;

	*ret = (struct line_seen){ 0 };
	json_array_foreach(records, i, r) {
		const char *outcome = report_str(r, "outcome");

		if (strcmp(report_str(r, "kind"), "step") || json_int(r, "line", 0) != line)
			continue;
		if (!strcmp(report_str(r, "phase"), "begin")) {
			begin = json_u64(r, "t", 0);
			continue;
		}
		ret->mixed = ret->mixed || (ret->ended && strcmp(ret->outcome, outcome));
		snprintf(ret->outcome, sizeof(ret->outcome), "%s", outcome);
		ret->ended++;
		ret->ns += json_u64(r, "t", begin) - begin;
	}
}

/* What the verdict found at this line; true when it is a problem. */
static bool put_found(struct xml *x, const json_t *plan, const json_t *verdict, int64_t line)
{
	const json_t *f;
	bool bad = false;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, f) {
		int64_t own = json_int(f, "line", 0);
		const char *severity = report_str(f, "severity");

		if (!own)
			own = json_int(plan_step(plan, (int)json_int(f, "step", 0)), "line", 0);
		if (own != line || !strcmp(severity, "note") || !strcmp(severity, "warning"))
			continue;
		bad = bad || strcmp(severity, "deviation");
		xml_start(x, "br");
		xml_end_void(x);
		if (*report_str(f, "seen"))
			xml_textf(x, "%s: seen %s", severity, report_str(f, "seen"));
		else
			xml_textf(x, "%s: %s", severity, report_str(f, "text"));
	}
	return bad;
}

static bool has_problem(const json_t *plan, const json_t *verdict, int64_t line)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(verdict, "findings"), i, f) {
		const char *severity = report_str(f, "severity");
		int64_t own = json_int(f, "line", 0);

		if (!own)
			own = json_int(plan_step(plan, (int)json_int(f, "step", 0)), "line", 0);
		if (own == line && strcmp(severity, "note") && strcmp(severity, "warning") && strcmp(severity, "deviation"))
			return true;
	}
	return false;
}

static void put_source_line(struct xml *x, const json_t *entry, const json_t *records, int64_t n, const char *text)
{
	const json_t *plan = json_object_get(entry, "plan"), *verdict = json_object_get(entry, "verdict");
	struct line_seen seen;
	char took[32];

	look_at_line(records, n, &seen);
	xml_start_class(x, "tr", has_problem(plan, verdict, n) ? "broken" : NULL);
	xml_start_class(x, "td", "n dim");
	xml_textf(x, "%" PRId64, n);
	xml_end(x);
	xml_element(x, "td", "m", text);
	xml_start(x, "td");
	if (seen.ended) {
		xml_text(x, seen.mixed ? "mixed" : seen.outcome);
		if (seen.ended > 1)
			xml_textf(x, " \xc3\x97 %u", seen.ended);
		xml_textf(x, ", %s", units_format_ns(seen.ns, took, sizeof(took)));
	}
	put_found(x, plan, verdict, n);
	xml_end(x);
	xml_end(x);
}

static int64_t first_line(const json_t *plan)
{
	const json_t *step;
	int64_t first = INT64_MAX;
	size_t i;

	json_array_foreach(json_object_get(plan, "steps"), i, step)
		if (json_int(step, "line", first) < first)
			first = json_int(step, "line", first);
	return first;
}

void html_expectations(struct xml *x, const struct report_run *run, const json_t *entry, const json_t *records)
{
	char *text = report_case_file(run, entry, "scenario.yaml"), *rest = text, *line;
	int64_t n = 0, first = first_line(json_object_get(entry, "plan"));

	if (!text || first == INT64_MAX) {
		free(text);
		return;
	}
	xml_start_class(x, "table", "src");
	xml_start(x, "caption");
	xml_textf(x, "The steps, and what came of them (%s)", report_str(json_object_get(entry, "plan"), "file"));
	xml_end(x);
	xml_start(x, "tbody");
	while ((line = strsep(&rest, "\n"))) {
		n++;
		if (n >= first && *line && (rest || *line))
			put_source_line(x, entry, records, n, line);
	}
	xml_end(x);
	xml_end(x);
	free(text);
}

#define BAR_WIDTH 260

static void put_bar(struct xml *x, double low, double high, double measured, bool ok, const char *words)
{
	double end = (measured > high ? measured : high) * 1.05, scale = end > 0 ? BAR_WIDTH / end : 0;

	xml_start_class(x, "svg", "bar");
	xml_attr(x, "xmlns", "http://www.w3.org/2000/svg");
	xml_attrf(x, "viewBox", "0 0 %d 20", BAR_WIDTH);
	xml_attr(x, "role", "img");
	xml_attr(x, "aria-label", words);
	xml_start(x, "path");
	xml_attrf(x, "d", "M0 15H%d", BAR_WIDTH);
	xml_end(x);
	xml_start_class(x, "rect", "w");
	xml_attrf(x, "x", "%.1f", low * scale);
	xml_attr(x, "y", "4");
	xml_attrf(x, "width", "%.1f", (high - low) * scale > 1 ? (high - low) * scale : 1);
	xml_attr(x, "height", "11");
	xml_end(x);
	xml_start_class(x, "path", ok ? "m" : "m bad");
	xml_attrf(x, "d", "M%.1f 0V20", measured * scale);
	xml_end(x);
	xml_end(x);
}

void html_windows(struct xml *x, const json_t *verdict)
{
	const json_t *w;
	size_t i;

	json_array_foreach(json_object_get(verdict, "windows"), i, w) {
		char low[32], high[32] = "no bound", seen[32], words[256], late[32];
		int64_t high_ns = json_int(w, "high_ns", -1), low_ns = json_int(w, "low_ns", 0), ns = json_int(w, "measured_ns", 0);
		int64_t widened = json_int(w, "widened_ns", 0);
		bool ok = json_bool(w, "ok", true);

		if (high_ns >= 0)
			units_format_ns((uint64_t)high_ns, high, sizeof(high));
		snprintf(words, sizeof(words), "Detection of %s by %s: predicted %s to %s, measured %s", report_str(w, "of"),
			 report_str(w, "detection"), units_format_ns((uint64_t)low_ns, low, sizeof(low)), high,
			 units_format_ns((uint64_t)ns, seen, sizeof(seen)));
		xml_start(x, "p");
		put_bar(x, (double)low_ns, (double)(high_ns >= 0 ? high_ns : 2 * (ns > low_ns ? ns : low_ns)), (double)ns, ok,
			words);
		xml_textf(x, " %s", words);
		if (widened > 0)
			xml_textf(x, " (widened by %s: this machine was late)",
				  units_format_ns((uint64_t)widened, late, sizeof(late)));
		if (!ok)
			xml_element(x, "strong", "fail", ": outside");
		xml_end(x);
	}
}

static void put_row_head(struct xml *x, const char *text)
{
	xml_start(x, "th");
	xml_attr(x, "scope", "row");
	xml_attr(x, "class", "m");
	xml_text(x, text);
	xml_end(x);
}

static void put_ledger(struct xml *x, const json_t *ledger)
{
	static const char *const heads[] = { "queue", "posted", "completed", "retired", "discarded", "in_srq", "in_flight" };
	const char *queue;
	json_t *account;

	if (!json_object_size(ledger))
		return;
	xml_start(x, "table");
	xml_element(x, "caption", NULL, "Ledger: every work request has one end");
	html_head_row(x, heads, sizeof(heads) / sizeof(*heads));
	xml_start(x, "tbody");
	json_object_foreach((json_t *)ledger, queue, account) {
		xml_start(x, "tr");
		put_row_head(x, queue);
		for (size_t i = 1; i < sizeof(heads) / sizeof(*heads); i++) {
			xml_start_class(x, "td", "n");
			xml_textf(x, "%" PRId64, json_int(account, heads[i], 0));
			xml_end(x);
		}
		xml_end(x);
	}
	xml_end(x);
	xml_end(x);
}

/* A column for each device, a row for each counter that moved at one. */
static void put_counters(struct xml *x, const json_t *counters)
{
	const char *device, *name;
	json_t *values, *value, *names = json_object();

	json_object_foreach((json_t *)counters, device, values)
		json_object_foreach(values, name, value)
			if (json_integer_value(value))
				json_object_set_new(names, name, json_true());
	if (json_object_size(names)) {
		xml_start(x, "table");
		xml_element(x, "caption", NULL, "Counters that moved");
		xml_start(x, "thead");
		xml_start(x, "tr");
		xml_start(x, "th");
		xml_attr(x, "scope", "col");
		xml_text(x, "counter");
		xml_end(x);
		json_object_foreach((json_t *)counters, device, values) {
			xml_start(x, "th");
			xml_attr(x, "scope", "col");
			xml_text(x, device);
			xml_end(x);
		}
		xml_end(x);
		xml_end(x);
		xml_start(x, "tbody");
		json_object_foreach(names, name, value) {
			xml_start(x, "tr");
			put_row_head(x, name);
			json_object_foreach((json_t *)counters, device, values) {
				xml_start_class(x, "td", "n");
				if (json_int(values, name, 0))
					xml_textf(x, "%+" PRId64, json_int(values, name, 0));
				xml_end(x);
			}
			xml_end(x);
		}
		xml_end(x);
		xml_end(x);
	}
	json_decref(names);
}

static void put_bystander(struct xml *x, const json_t *b)
{
	char gap[32], bound[32];

	if (!b)
		return;
	xml_start_class(x, "p", "note");
	xml_textf(x,
		  "Bystander: %" PRId64 " of %" PRId64 " messages came, %" PRId64 " errors, %" PRId64
		  " damaged, longest gap %s (at most %s outside of a blast)",
		  json_int(b, "received", 0), json_int(b, "sent", 0), json_int(b, "errors", 0), json_int(b, "bad_payload", 0),
		  units_format_ns(json_u64(b, "gap_max_ns", 0), gap, sizeof(gap)),
		  units_format_ns(json_u64(b, "gap_bound_ns", 0), bound, sizeof(bound)));
	xml_end(x);
}

void html_numbers(struct xml *x, const json_t *verdict)
{
	xml_start_class(x, "div", "beside");
	put_ledger(x, json_object_get(verdict, "ledger"));
	put_counters(x, json_object_get(verdict, "counters"));
	xml_end(x);
	put_bystander(x, json_object_get(verdict, "bystander"));
}

/* Transitions that were asked for, failed ones too, and states that were found to have changed. */
static bool is_told(const json_t *r, const json_t *known)
{
	if (strcmp(report_str(r, "kind"), "state") || plan_is_bystander(json_str(r, "obj")))
		return false;
	return json_str(r, "asked") || json_int(r, "errno", 0) ||
	       strcmp(report_str(known, report_str(r, "obj")), report_str(r, "new"));
}

static void put_values(struct xml *x, const json_t *values)
{
	const char *key, *sep = "";
	json_t *value;

	json_object_foreach((json_t *)values, key, value) {
		const json_t *item;
		size_t i;

		xml_textf(x, "%s%s ", sep, key);
		sep = ", ";
		if (json_is_string(value))
			xml_text(x, json_string_value(value));
		else if (json_is_integer(value))
			xml_textf(x, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		json_array_foreach(value, i, item)
			xml_textf(x, "%s%s", i ? "|" : "", json_is_string(item) ? json_string_value(item) : "?");
	}
}

static void put_state(struct xml *x, const json_t *r, uint64_t first_t)
{
	const json_t *queried = json_object_get(r, "queried");
	char words[256];

	xml_start(x, "tr");
	xml_start_class(x, "td", "n");
	xml_textf(x, "%.3f", (double)(json_u64(r, "t", first_t) - first_t) / 1e6);
	xml_end(x);
	put_row_head(x, report_str(r, "obj"));
	xml_element(x, "td", "m", verdict_words(r, words, sizeof(words)));
	xml_start_class(x, "td", "m");
	put_values(x, json_object_get(r, "attrs"));
	if (json_is_object(queried))
		xml_textf(x, "%sQPN 0x%06" PRIx64 " to 0x%06" PRIx64, json_object_size(json_object_get(r, "attrs")) ? "; " : "",
			  json_u64(queried, "qpn", 0), json_u64(queried, "dest_qpn", 0));
	xml_end(x);
	xml_element(x, "td", NULL, report_str(r, "by"));
	xml_end(x);
}

static json_t *told_states(const json_t *records)
{
	json_t *known = json_object(), *told = json_array(), *r;
	size_t i;

	json_array_foreach(records, i, r) {
		if (is_told(r, known))
			json_array_append(told, r);
		if (!strcmp(report_str(r, "kind"), "state"))
			json_object_set_new(known, report_str(r, "obj"), json_string(report_str(r, "new")));
	}
	json_decref(known);
	return told;
}

static void put_states_at_length(struct xml *x, const json_t *records)
{
	static const char *const heads[] = { "ms", "QP", "transition", "with", "by" };
	json_t *told = told_states(records), *r;
	uint64_t first_t = json_u64(json_array_get(records, 0), "t", 0);
	size_t i;

	if (json_array_size(told)) {
		xml_start(x, "details");
		xml_element(x, "summary", NULL, "State log");
		xml_start(x, "table");
		html_head_row(x, heads, sizeof(heads) / sizeof(*heads));
		xml_start(x, "tbody");
		json_array_foreach(told, i, r)
			put_state(x, r, first_t);
		xml_end(x);
		xml_end(x);
		xml_end(x);
	}
	json_decref(told);
}

/* QP -> "RESET INIT RTR RTS ERR" */
static json_t *walks(const json_t *records)
{
	json_t *all = json_object();
	const json_t *r;
	size_t i;

	json_array_foreach(records, i, r) {
		const char *obj = report_str(r, "obj"), *now = report_str(r, "new"), *walk = json_str(all, obj), *last;

		if (strcmp(report_str(r, "kind"), "state") || plan_is_bystander(obj) || !*now)
			continue;
		last = walk && strrchr(walk, ' ') ? strrchr(walk, ' ') + 1 : walk;
		if (!walk)
			json_object_set_new(all, obj,
					    json_sprintf("%s%s%s", report_str(r, "old"), *report_str(r, "old") ? " " : "", now));
		else if (strcmp(last, now))
			json_object_set_new(all, obj, json_sprintf("%s %s", walk, now));
	}
	return all;
}

void html_states(struct xml *x, const json_t *records, bool at_length)
{
	const char *qp;
	json_t *all, *walk;
	unsigned shown = 0;

	if (at_length) {
		put_states_at_length(x, records);
		return;
	}
	all = walks(records);
	xml_start_class(x, "p", "note");
	xml_text(x, "States: ");
	json_object_foreach(all, qp, walk) {
		if (shown++ == 8) {
			xml_textf(x, "; and %zu more QPs", json_object_size(all) - 8);
			break;
		}
		xml_textf(x, "%s%s %s", shown > 1 ? "; " : "", qp, json_is_string(walk) ? json_string_value(walk) : "?");
	}
	xml_end(x);
	json_decref(all);
}
