/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/plan.h"
#include "../harness/units.h"
#include "report.h"
#include "report_util.h"
#include "text_repeat.h"
#include "text_warning.h"

#define CASE_WIDTH 40
#define CASE_WIDTH_MAX 80
#define SEEN_WIDTH 44
#define SEEN_WIDTH_MAX 72
#define FINDINGS_MAX 12
#define TEXT_MAX 2048
#define PHASES_SHOWN 4 /* of one case */
#define PHASED_MAX 8   /* cases of which all of them are shown */

static const struct {
	const char *verdict, *colour;
} colours[] = {
	{ "pass", "\033[32m" },         { "deviation", "\033[36m" }, { "fail", "\033[31m" },
	{ "inconclusive", "\033[33m" }, { "skip", "\033[2m" },       { "error", "\033[31m" },
};

static const char *colour_of(const char *verdict)
{
	for (size_t i = 0; i < sizeof(colours) / sizeof(*colours); i++)
		if (!strcmp(colours[i].verdict, verdict))
			return colours[i].colour;
	return "";
}

/* Characters, not bytes. */
static int width_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void put_padded(FILE *out, const char *text, int width)
{
	fprintf(out, "%s%*s", text, width > width_of(text) ? width - width_of(text) : 0, "");
}

/* What the third column says: what came, or why nothing did. A headline's file and line are said further down. */
static const char *seen_of(const json_t *result)
{
	const char *verdict = report_str(result, "verdict"), *seen = report_str(result, "seen"),
		   *text = report_str(result, "headline"), *colon;

	if (*seen && (!strcmp(verdict, "pass") || !strcmp(verdict, "deviation")))
		return seen;
	colon = strstr(text, ".yaml:");
	if (colon && strstr(colon, ": "))
		text = strstr(colon, ": ") + 2;
	return *text ? text : seen;
}

/* At most width characters, the last one a mark that there was more. */
static void cut(char *text, int width)
{
	int n = 0;

	if (width_of(text) <= width)
		return;
	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80 && ++n == width)
			break;
	memcpy(text, "~", 2);
}

static void put_row(FILE *out, const json_t *result, int case_width, int seen_width, bool colour)
{
	const char *verdict = report_str(result, "verdict");
	char id[TEXT_MAX], seen[TEXT_MAX], word[64], time[32];
	uint64_t ns = json_u64(result, "duration_ns", 0);

	log_escape(report_str(result, "case"), id, sizeof(id));
	log_escape(seen_of(result), seen, sizeof(seen));
	fprintf(out, "%s%-13s%s ", colour ? colour_of(verdict) : "", log_escape(verdict, word, sizeof(word)),
		colour ? "\033[0m" : "");
	put_padded(out, id, case_width);
	fputs("  ", out);
	if (ns) {
		cut(seen, SEEN_WIDTH_MAX);
		put_padded(out, seen, seen_width);
		fprintf(out, "  %8s\n", units_format_ns(ns, time, sizeof(time)));
	} else {
		fprintf(out, "%s\n", seen);
	}
}

void report_text_case(FILE *out, const json_t *result, bool colour)
{
	put_row(out, result, CASE_WIDTH, SEEN_WIDTH, colour);
}

/* The text repeats what the headline, or the two lines before it, have said. */
static bool is_said(const json_t *finding, const char *headline)
{
	const char *text = report_str(finding, "text"), *expected = report_str(finding, "expected"),
		   *seen = report_str(finding, "seen");

	return strstr(headline, text) || (*expected && *seen && strstr(text, expected) && strstr(text, seen));
}

static void put_finding(FILE *out, const json_t *plan, const json_t *finding, const char *headline)
{
	char where[1024], safe[2048];
	size_t i;
	json_t *last;

	fprintf(out, "  %s\n", log_escape(report_where(plan, finding, where, sizeof(where)), safe, sizeof(safe)));
	report_line(out, "expected", "%s", report_str(finding, "expected"));
	report_line(out, "seen", "%s", report_str(finding, "seen"));
	if (!is_said(finding, headline))
		report_line(out, "", "%s", report_str(finding, "text"));
	/* A finding that an entry without `seen` would explain says so in its text; any other that names one is --strict's. */
	if (*report_str(finding, "deviation") && strstr(report_str(finding, "text"), "likely the profile's"))
		report_line(out, "likely", "deviation %s, which no run on this kernel has shown before",
			    report_str(finding, "deviation"));
	else if (*report_str(finding, "deviation"))
		report_line(out, "profile", "documents it as %s, which --strict does not excuse", report_str(finding, "deviation"));
	json_array_foreach(json_object_get(finding, "last"), i, last)
		if (json_is_string(last))
			report_line(out, i ? "" : "before it", "%s", json_string_value(last));
}

static bool is_problem(const json_t *finding)
{
	const char *severity = report_str(finding, "severity");

	return strcmp(severity, "note") && strcmp(severity, "warning") && strcmp(severity, "deviation");
}

static void put_findings(FILE *out, const json_t *plan, const json_t *verdict)
{
	unsigned shown = 0, more = 0;
	size_t i;
	json_t *finding;

	json_array_foreach(json_object_get(verdict, "findings"), i, finding) {
		if (!is_problem(finding))
			continue;
		if (shown == FINDINGS_MAX) {
			more++;
			continue;
		}
		put_finding(out, plan, finding, report_str(verdict, "headline"));
		shown++;
	}
	if (more)
		fprintf(out, "  and %u more, in verdict.json\n", more);
	json_array_foreach(json_object_get(verdict, "findings"), i, finding)
		if (!strcmp(report_str(finding, "severity"), "warning"))
			report_line(out, "warning", "%s", report_str(finding, "text"));
}

static void put_windows(FILE *out, const json_t *verdict)
{
	size_t i;
	json_t *w;

	json_array_foreach(json_object_get(verdict, "windows"), i, w) {
		char low[32], high[32] = "no bound", seen[32], widened[64] = "", late[32];
		int64_t high_ns = json_int(w, "high_ns", -1), late_ns = json_int(w, "widened_ns", 0);

		if (high_ns >= 0)
			units_format_ns((uint64_t)high_ns, high, sizeof(high));
		if (late_ns > 0)
			snprintf(widened, sizeof(widened), " (widened by %s: this machine was late)",
				 units_format_ns((uint64_t)late_ns, late, sizeof(late)));
		report_line(out, "time", "step %" PRId64 "%s%s, %s: predicted %s to %s%s, measured %s", json_int(w, "step", 0),
			    *report_str(w, "of") ? ", of " : "", report_str(w, "of"), report_str(w, "detection"),
			    units_format_ns(json_u64(w, "low_ns", 0), low, sizeof(low)), high, widened,
			    units_format_ns(json_u64(w, "measured_ns", 0), seen, sizeof(seen)));
	}
}

static void put_phases(FILE *out, const json_t *verdict, const char *label)
{
	const json_t *phases = json_object_get(verdict, "phases"), *p;
	char text[TEXT_MAX];
	size_t i;

	json_array_foreach(phases, i, p) {
		if (i == PHASES_SHOWN) {
			report_line(out, "", "and %zu more, in verdict.json", json_array_size(phases) - i);
			return;
		}
		report_line(out, i ? "" : label, "%s", report_phases(p, text, sizeof(text)));
	}
}

static void put_number(FILE *out, const json_t *from, const char *key, const char *label)
{
	if (json_object_get(from, key))
		fprintf(out, ", %s %" PRId64, label, json_int(from, key, 0));
}

static void put_hex(FILE *out, const json_t *from, const char *key, const char *label)
{
	if (json_object_get(from, key))
		fprintf(out, ", %s 0x%06" PRIx64, label, (uint64_t)json_int(from, key, 0));
}

/* One end in one line: who it is, whom it sends to, what it was set to, how it ended. from: an entry of the verdict's `ends`, or
 * what the plan says of a QP. */
static void put_end(FILE *out, const char *name, const json_t *from, const char *type)
{
	uint64_t t_ns = timer_ack_ns((unsigned)json_int(from, "timeout", 0));
	unsigned code = (unsigned)json_int(from, "min_rnr_timer", 0);
	char ack[32] = "off", rnr[32], *text = NULL;
	size_t size;
	FILE *line = open_memstream(&text, &size);

	if (!line)
		return;
	if (t_ns)
		units_format_ns(t_ns, ack, sizeof(ack));
	fprintf(line, "%s", type);
	if (*report_str(from, "state"))
		fprintf(line, " in %s", report_str(from, "state"));
	if (*report_str(from, "status"))
		fprintf(line, ", %s vendor_err 0x%" PRIx64, report_str(from, "status"), (uint64_t)json_int(from, "vendor_err", 0));
	put_hex(line, from, "qpn", "QPN");
	put_hex(line, from, "dest_qpn", "to QPN");
	if (*report_str(from, "gid"))
		fprintf(line, ", GID %s", report_str(from, "gid"));
	if (*report_str(from, "dest_gid"))
		fprintf(line, " to %s", report_str(from, "dest_gid"));
	if (json_object_get(from, "rkey"))
		fprintf(line, ", rkey 0x%08" PRIx64, json_u64(from, "rkey", 0));
	if (json_object_get(from, "mr_rkey"))
		fprintf(line, " (%s has 0x%08" PRIx64 ")", report_str(from, "mr"), json_u64(from, "mr_rkey", 0));
	if (json_object_get(from, "timeout"))
		fprintf(line, ", timeout %" PRId64 " (%s)", json_int(from, "timeout", 0), ack);
	put_number(line, from, "retry_cnt", "retry_cnt");
	put_number(line, from, "rnr_retry", "rnr_retry");
	if (json_object_get(from, "min_rnr_timer"))
		fprintf(line, ", min_rnr_timer %u (%s)", code, units_format_ns(timer_rnr_ns(code), rnr, sizeof(rnr)));
	put_number(line, from, "path_mtu", "path_mtu");
	put_hex(line, from, "sq_psn", "sq_psn");
	put_hex(line, from, "rq_psn", "rq_psn");
	if (fclose(line) == 0)
		report_line(out, name, "%s", text);
	free(text);
}

/* Both ends of the pair that the first problem speaks of; of the first pair, when it speaks of none. */
static void put_ends(FILE *out, const json_t *plan, const json_t *verdict)
{
	const json_t *qps = json_object_get(plan, "qps"), *qp = json_array_get(qps, 0), *end;
	size_t i;

	json_array_foreach(json_object_get(verdict, "ends"), i, end)
		put_end(out, report_str(end, "qp"), end, report_str(end, "type"));
	if (json_array_size(json_object_get(verdict, "ends")) || !qp)
		return;
	put_end(out, report_str(qp, "name"), json_object_get(qp, "attr"), report_str(qp, "type"));
	qp = plan_qp(plan, report_str(qp, "peer"));
	if (qp)
		put_end(out, report_str(qp, "name"), json_object_get(qp, "attr"), report_str(qp, "type"));
}

/* The likely causes, the likeliest first, each with what shows it. */
static void put_causes(FILE *out, const json_t *verdict)
{
	const json_t *cause;
	size_t i;

	json_array_foreach(json_object_get(verdict, "causes"), i, cause)
		report_line(out, i ? "or" : "likely", "%s%s%s", report_str(cause, "cause"), *report_str(cause, "why") ? ": " : "",
			    report_str(cause, "why"));
}

static void put_counters(FILE *out, const json_t *verdict)
{
	const char *device, *name;
	json_t *values, *value;

	json_object_foreach(json_object_get(verdict, "counters"), device, values) {
		char text[TEXT_MAX] = "";

		json_object_foreach(values, name, value)
			if (json_integer_value(value))
				snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %+lld", *text ? ", " : "", name,
					 (long long)json_integer_value(value));
		report_line(out, device, "%s", text);
	}
}

static void put_faults(FILE *out, const json_t *verdict)
{
	size_t i;
	json_t *fault;

	json_array_foreach(json_object_get(verdict, "faults"), i, fault)
		report_line(out, i ? "" : "fault", "%s%s%s%s: %s%s%s", report_str(fault, "name"),
			    *report_str(fault, "as") ? " (" : "", report_str(fault, "as"), *report_str(fault, "as") ? ")" : "",
			    json_bool(fault, "fired", false) ? "fired" : "did not fire", *report_str(fault, "evidence") ? ", " : "",
			    report_str(fault, "evidence"));
}

/* The pair that looks on: who fails beside it knows what was there all the time. */
static void put_bystander(FILE *out, const json_t *verdict)
{
	const json_t *b = json_object_get(verdict, "bystander"), *in;
	char gap[32], bound[32];
	size_t i;

	if (!b)
		return;
	report_line(out, "bystander",
		    "%" PRId64 " of %" PRId64 " messages came, %" PRId64 " errors, %" PRId64
		    " damaged, longest gap %s (at most %s outside of a blast)",
		    json_int(b, "received", 0), json_int(b, "sent", 0), json_int(b, "errors", 0), json_int(b, "bad_payload", 0),
		    units_format_ns(json_u64(b, "gap_max_ns", 0), gap, sizeof(gap)),
		    units_format_ns(json_u64(b, "gap_bound_ns", 0), bound, sizeof(bound)));
	json_array_foreach(json_object_get(b, "inside"), i, in)
		report_line(out, "", "in the blast of %s (%s): %" PRId64 " came, %" PRId64 " errors, longest gap %s",
			    report_str(in, "fault"), report_str(in, "blast"), json_int(in, "received", 0),
			    json_int(in, "errors", 0), units_format_ns(json_u64(in, "gap_max_ns", 0), gap, sizeof(gap)));
}

void report_text_failure(FILE *out, const json_t *plan, const json_t *verdict, const json_t *run, bool colour)
{
	const char *name = report_str(verdict, "verdict"), *id = report_str(verdict, "case");
	char safe[TEXT_MAX], repeat[4096];

	fprintf(out, "%s%s%s ", colour ? colour_of(name) : "", log_escape(name, safe, sizeof(safe)), colour ? "\033[0m" : "");
	fprintf(out, "%s", log_escape(id, safe, sizeof(safe)));
	fprintf(out, ": %s\n", log_escape(report_str(plan, "title"), safe, sizeof(safe)));
	fprintf(out, "  %s\n", log_escape(report_str(verdict, "headline"), safe, sizeof(safe)));
	put_findings(out, plan, verdict);
	put_causes(out, verdict);
	put_faults(out, verdict);
	put_windows(out, verdict);
	put_phases(out, verdict, "recovery");
	put_ends(out, plan, verdict);
	put_counters(out, verdict);
	put_bystander(out, verdict);
	if (*report_str(run, "repeat"))
		report_line(out, "repeat", "%s", report_repeat(run, id, repeat, sizeof(repeat)));
}

static json_t *row_of(const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");

	return json_pack("{s:s,s:s,s:s,s:s,s:I}", "case", report_str(entry, "case"), "verdict", report_str(verdict, "verdict"),
			 "headline", report_str(verdict, "headline"), "seen", report_str(verdict, "seen"), "duration_ns",
			 (json_int_t)report_duration(entry));
}

static int column(int width, const char *text, int max)
{
	int own = width_of(text);

	return own > width ? (own > max ? max : own) : width;
}

static void put_table(FILE *out, const struct report_run *run, bool colour)
{
	int case_width = 8, seen_width = 13;
	json_t *rows = json_array(), *folded = json_object(), *row, *entry;
	size_t i;

	json_array_foreach(run->cases, i, entry) {
		row = row_of(entry);
		if (!text_repeat_fold(folded, entry, row))
			json_array_append(rows, row);
		json_decref(row);
	}
	json_decref(folded);
	json_array_foreach(rows, i, row) {
		text_repeat_name(row);
		case_width = column(case_width, report_str(row, "case"), CASE_WIDTH_MAX);
		if (json_int(row, "duration_ns", 0))
			seen_width = column(seen_width, seen_of(row), SEEN_WIDTH_MAX);
	}
	fprintf(out, "%-13s %-*s  %-*s  %8s\n", "verdict", case_width, "scenario", seen_width, "what was seen", "time");
	json_array_foreach(rows, i, row)
		put_row(out, row, case_width, seen_width, colour);
	json_decref(rows);
}

/* In a small run, of what passed as well; what did not has them with the rest that is said of it. */
static void put_recoveries(FILE *out, const struct report_run *run)
{
	bool first = true;
	json_t *entry;
	size_t i;

	if (json_array_size(run->cases) > PHASED_MAX)
		return;
	json_array_foreach(run->cases, i, entry) {
		const json_t *verdict = json_object_get(entry, "verdict");
		const char *name = report_str(verdict, "verdict");
		char safe[TEXT_MAX];

		if ((strcmp(name, "pass") && strcmp(name, "deviation")) || !json_array_size(json_object_get(verdict, "phases")))
			continue;
		fprintf(out, "%srecovery of %s\n", first ? "\n" : "", log_escape(report_str(entry, "case"), safe, sizeof(safe)));
		put_phases(out, verdict, "");
		first = false;
	}
}

static void put_problems(FILE *out, const struct report_run *run, bool colour)
{
	size_t i;
	json_t *entry;

	json_array_foreach(run->cases, i, entry) {
		const json_t *verdict = json_object_get(entry, "verdict");
		const char *name = report_str(verdict, "verdict");

		if (!strcmp(name, "pass") || !strcmp(name, "skip") || !strcmp(name, "deviation"))
			continue;
		/* The table has said all there is to say. */
		if (!strncmp(report_str(verdict, "headline"), "not run: ", 9))
			continue;
		fputc('\n', out);
		report_text_failure(out, json_object_get(entry, "plan"), verdict, run->run, colour);
	}
}

/* The profile's entries that some case met. New reference. */
static json_t *entries_met(const struct report_run *run)
{
	json_t *met = json_object(), *entry, *item;
	size_t i, k;

	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), k, item)
			json_object_set_new(met, report_str(item, "id"), json_true());
	return met;
}

/* An entry that one case met and another did not is not stale, but wider than the device. */
static void put_deviations(FILE *out, const struct report_run *run)
{
	json_t *met = entries_met(run);
	bool first = true;
	size_t i, k;
	json_t *entry, *item;
	char safe[TEXT_MAX];

	json_array_foreach(run->cases, i, entry) {
		const json_t *verdict = json_object_get(entry, "verdict");

		json_array_foreach(json_object_get(verdict, "deviations"), k, item) {
			fprintf(out, "%sdeviation %s", first ? "\n" : "", log_escape(report_str(item, "id"), safe, sizeof(safe)));
			fprintf(out, " in %s, step %" PRId64 "\n", log_escape(report_str(entry, "case"), safe, sizeof(safe)),
				json_int(item, "step", 0));
			first = false;
		}
		json_array_foreach(json_object_get(verdict, "stale"), k, item) {
			const char *id = json_is_string(item) ? json_string_value(item) : report_str(item, "id");

			fprintf(out, "%s%s deviation %s", first ? "\n" : "", json_object_get(met, id) ? "too wide a" : "stale",
				log_escape(id, safe, sizeof(safe)));
			fprintf(out, ": %s did not show it\n", log_escape(report_str(entry, "case"), safe, sizeof(safe)));
			first = false;
		}
	}
	json_decref(met);
}

/* What happened beside the verdicts: cases that ran a second time, and what no case did alone. */
static void put_again(FILE *out, const struct report_run *run)
{
	bool first = true;
	size_t i;
	json_t *entry, *trouble;
	const char *boot;
	char safe[TEXT_MAX];

	json_array_foreach(run->cases, i, entry) {
		const char *why = report_str(json_object_get(entry, "result"), "again");

		if (!*why)
			continue;
		fprintf(out, "%sran again %s", first ? "\n" : "", log_escape(report_str(entry, "case"), safe, sizeof(safe)));
		fprintf(out, ": %s\n", log_escape(why, safe, sizeof(safe)));
		first = false;
	}
	json_object_foreach(json_object_get(run->run, "troubles"), boot, trouble) {
		if (json_bool(trouble, "found", false))
			continue;
		fprintf(out, "%strouble in boot %s", first ? "\n" : "", log_escape(boot, safe, sizeof(safe)));
		fprintf(out, ": %s, and none of the %zu cases that ran then does it alone: exit status 3 where nothing failed\n",
			log_escape(report_str(trouble, "why"), safe, sizeof(safe)),
			json_array_size(json_object_get(trouble, "cases")));
		first = false;
	}
}

static void put_head(FILE *out, const struct report_run *run)
{
	static const struct {
		const char *key, *label;
	} items[] = { { "lab", "lab" },
		      { "kernel", "kernel" },
		      { "provider", "provider" },
		      { "rdma_core", "rdma-core" },
		      { "seed", "seed" } };
	char safe[512];

	fprintf(out, "run %s", log_escape(report_str(run->run, "id"), safe, sizeof(safe)));
	for (size_t i = 0; i < sizeof(items) / sizeof(*items); i++)
		if (*report_str(run->run, items[i].key))
			fprintf(out, ", %s %s", items[i].label, log_escape(report_str(run->run, items[i].key), safe, sizeof(safe)));
	fputs("\n\n", out);
}

static void put_left_out(FILE *out, const struct report_run *run)
{
	const char *tag;
	json_t *n;
	char safe[256];

	json_object_foreach(json_object_get(run->run, "left_out"), tag, n)
		fprintf(out, "left out %lld (%s): --all runs them too, --select %s alone\n", (long long)json_integer_value(n),
			log_escape(tag, safe, sizeof(safe)), safe);
}

static int text_write(const struct report_run *run, FILE *out, bool colour, struct error *e)
{
	struct report_counts c = report_count(run);
	char safe[4096], narrowed[4096];

	put_head(out, run);
	put_table(out, run, colour);
	put_recoveries(out, run);
	text_repeats(out, run);
	put_problems(out, run, colour);
	put_deviations(out, run);
	text_warnings(out, run);
	put_again(out, run);
	fprintf(out, "\neverything about it: %s\n", log_escape(run->dir, safe, sizeof(safe)));
	if (*report_str(run->run, "repeat"))
		fprintf(out, "the same again: %s%s\n", log_escape(report_str(run->run, "repeat"), safe, sizeof(safe)),
			log_escape(report_str(run->run, "narrowed"), narrowed, sizeof(narrowed)));
	put_left_out(out, run);
	fprintf(out, "%u with deviations, %u inconclusive, %u harness errors\n", c.deviation, c.inconclusive, c.error);
	fprintf(out, "%u passed, %u failed, %u skipped\n", report_passed(&c), report_failed(&c), c.skip);
	return ferror(out) ? error_set(e, -EIO, "report: cannot write: %s", strerror(errno)) : 0;
}

extern const struct report_ops report_text;
const struct report_ops report_text = {
	.name = "text",
	.file = NULL,
	.help = "for people: a table, then what failed at length",
	.write = text_write,
};
