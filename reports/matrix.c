/* SPDX-License-Identifier: MIT */
/* Several runs side by side as Markdown: what the same scenarios showed on different kernels. Where there is something to compare,
 * only what differs has a row, and the rest is a number. */
#include "report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "report_util.h"

#define WORDS 6
#define TEXT_BYTES 4096

static const char *const verdicts[WORDS] = { "pass", "deviation", "fail", "inconclusive", "error", "skip" };

/* Names and reasons come from files and devices: no cell, span or element of their own begins or ends with them. */
static void put_safe(FILE *out, const char *text, const char *special, const char *const *instead)
{
	char safe[TEXT_BYTES];

	log_escape(text, safe, sizeof(safe));
	for (const char *s = safe; *s; s++) {
		const char *at = strchr(special, *s);

		if (at)
			fputs(instead[at - special], out);
		else
			fputc(*s, out);
	}
}

static void put_words(FILE *out, const char *text)
{
	static const char *const instead[] = { "\\|", "&lt;", "\\`" };

	put_safe(out, text, "|<`", instead);
}

static void put_code(FILE *out, const char *text)
{
	static const char *const instead[] = { "'" };

	put_safe(out, text, "`", instead);
}

/* Runs on one kernel that have no case in common are parts of one, and share a column. */
struct column {
	const char *kernel;
	json_t *verdicts; /* by case, in the runs' order */
};

struct table {
	struct column *v;
	size_t n;
};

static json_t *member(json_t *of, const char *key)
{
	json_t *o = json_object_get(of, key);

	if (o)
		return o;
	json_object_set_new(of, key, json_object());
	return json_object_get(of, key);
}

static void bump(json_t *of, const char *key)
{
	json_object_set_new(of, key, json_integer(json_int(of, key, 0) + 1));
}

static bool shares_a_case(const struct column *c, const struct report_run *run)
{
	const json_t *entry;
	size_t k;

	json_array_foreach(run->cases, k, entry)
		if (json_object_get(c->verdicts, report_str(entry, "case")))
			return true;
	return false;
}

static struct column *column_for(struct table *t, const struct report_run *run)
{
	const char *kernel = report_str(run->run, "kernel");

	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->v[i].kernel, kernel) && !shares_a_case(&t->v[i], run))
			return &t->v[i];
	t->v[t->n] = (struct column){ .kernel = kernel, .verdicts = json_object() };
	return &t->v[t->n++];
}

static struct table table_of(const struct report_run *runs, size_t n)
{
	struct table t = { .v = calloc(n ? n : 1, sizeof(*t.v)) };

	for (size_t i = 0; t.v && i < n; i++) {
		struct column *c = column_for(&t, &runs[i]);
		const json_t *entry;
		size_t k;

		json_array_foreach(runs[i].cases, k, entry)
			json_object_set(c->verdicts, report_str(entry, "case"), json_object_get(entry, "verdict"));
	}
	return t;
}

static void table_release(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		json_decref(t->v[i].verdicts);
	free(t->v);
}

/* What comes before the parameters of a sweep. New reference. */
static json_t *scenario_name(const char *id)
{
	return json_pack("s%", id, strcspn(id, "~"));
}

/* The scenarios of all columns, in the order of the first that has it, each with its cases. */
static json_t *scenarios_of(const struct table *t)
{
	json_t *all = json_object(), *verdict;
	const char *id;

	for (size_t i = 0; i < t->n; i++)
		json_object_foreach(t->v[i].verdicts, id, verdict) {
			json_t *name = scenario_name(id);

			json_object_set_new(member(all, json_string_value(name)), id, json_true());
			json_decref(name);
		}
	return all;
}

/* The profile's entries that a case met, by id. New reference. */
static json_t *met_by(const json_t *verdict)
{
	const json_t *deviation;
	json_t *met = json_object();
	size_t i;

	json_array_foreach(json_object_get(verdict, "deviations"), i, deviation)
		json_object_set_new(met, report_str(deviation, "id"), json_true());
	return met;
}

/* What a column lacks is no difference: that it is missing is told by itself. */
static bool same_end(const json_t *a, const json_t *b)
{
	json_t *x, *y;
	bool same;

	if (!a || !b)
		return true;
	x = met_by(a);
	y = met_by(b);
	same = !strcmp(report_str(a, "verdict"), report_str(b, "verdict")) && json_equal(x, y);
	json_decref(x);
	json_decref(y);
	return same;
}

/* Every case of the scenario ended the same way in every column, by the same entries of the profile. */
static bool all_agree(const struct table *t, const json_t *cases)
{
	const char *id;
	json_t *v;

	json_object_foreach((json_t *)cases, id, v) {
		const json_t *first = NULL;

		for (size_t i = 0; i < t->n; i++) {
			const json_t *verdict = json_object_get(t->v[i].verdicts, id);

			if (!same_end(first, verdict))
				return false;
			first = first ? first : verdict;
		}
	}
	return true;
}

/* How the cases ended: {"pass":3,"deviation":1}. NULL: all of the column. New reference. */
static json_t *ends_of(const struct column *c, const json_t *cases)
{
	json_t *ends = json_object(), *verdict;
	const char *id;

	json_object_foreach(c->verdicts, id, verdict)
		if (!cases || json_object_get(cases, id))
			bump(ends, report_str(verdict, "verdict"));
	return ends;
}

/* "pass", "pass 3, deviation 1", "-" for what did not run; and which entries of the profile were met, where that is wanted. */
static void print_cell(const struct column *c, const json_t *cases, bool ids, FILE *out)
{
	json_t *ends = ends_of(c, cases), *met = json_object(), *verdict;
	const char *between = " ", *id;

	for (size_t i = 0; i < WORDS; i++) {
		int64_t count = json_int(ends, verdicts[i], 0);

		if (!count)
			continue;
		fprintf(out, "%s%s", between, verdicts[i]);
		if (json_object_size(ends) > 1 || count > 1)
			fprintf(out, " %lld", (long long)count);
		between = ", ";
	}
	json_object_foreach(c->verdicts, id, verdict)
		if (ids && json_object_get(cases, id)) {
			json_t *more = met_by(verdict);

			json_object_update(met, more);
			json_decref(more);
		}
	between = ": ";
	json_object_foreach(met, id, verdict) {
		fputs(between, out);
		put_words(out, id);
		between = ", ";
	}
	fputs(json_object_size(ends) ? " |" : " - |", out);
	json_decref(ends);
	json_decref(met);
}

static void print_head(const struct table *t, const char *what, FILE *out)
{
	fprintf(out, "| %s |", what);
	for (size_t i = 0; i < t->n; i++) {
		fputc(' ', out);
		put_words(out, t->v[i].kernel);
		fputs(" |", out);
	}
	fputs("\n|---|", out);
	for (size_t i = 0; i < t->n; i++)
		fputs("---|", out);
	fputc('\n', out);
}

static void print_row(const struct table *t, const json_t *cases, bool ids, FILE *out)
{
	for (size_t i = 0; i < t->n; i++)
		print_cell(&t->v[i], cases, ids, out);
	fputc('\n', out);
}

static void put_row_name(FILE *out, const char *name)
{
	fputs("| ", out);
	put_words(out, name);
	fputs(" |", out);
}

static void print_scenarios(const struct table *t, FILE *out)
{
	json_t *all = scenarios_of(t), *alike = json_object(), *cases;
	size_t n_alike = 0;
	const char *name;

	print_head(t, "scenario", out);
	json_object_foreach(all, name, cases) {
		if (t->n > 1 && all_agree(t, cases)) {
			json_object_update(alike, cases);
			n_alike++;
			continue;
		}
		put_row_name(out, name);
		print_row(t, cases, t->n > 1, out);
	}
	if (n_alike) {
		fprintf(out, "| %zu more, alike |", n_alike);
		print_row(t, alike, false, out);
	}
	fputs("| **all cases** |", out);
	print_row(t, NULL, false, out);
	json_decref(all);
	json_decref(alike);
}

/* In how many cases each column met an entry: {"bad-lkey":[2,0]}. New reference. */
static json_t *counts_of(const struct table *t)
{
	json_t *counts = json_object(), *verdict, *met, *v;
	const char *id, *name;

	for (size_t i = 0; i < t->n; i++)
		json_object_foreach(t->v[i].verdicts, name, verdict) {
			met = met_by(verdict);
			json_object_foreach(met, id, v) {
				json_t *row = json_object_get(counts, id);

				if (!row) {
					row = json_array();
					for (size_t k = 0; k < t->n; k++)
						json_array_append_new(row, json_integer(0));
					json_object_set_new(counts, id, row);
				}
				json_array_set_new(row, i, json_integer(json_integer_value(json_array_get(row, i)) + 1));
			}
			json_decref(met);
		}
	return counts;
}

static bool is_even(const json_t *row)
{
	const json_t *count;
	size_t i;

	json_array_foreach(row, i, count)
		if (!json_equal(count, json_array_get(row, 0)))
			return false;
	return true;
}

static void print_deviations(const struct table *t, FILE *out)
{
	json_t *counts = counts_of(t), *row, *count;
	unsigned even = 0;
	const char *id;
	size_t i;

	if (json_object_size(counts)) {
		fputc('\n', out);
		print_head(t, "deviation, cases", out);
	}
	json_object_foreach(counts, id, row) {
		if (t->n > 1 && is_even(row)) {
			even++;
			continue;
		}
		put_row_name(out, id);
		json_array_foreach(row, i, count)
			if (json_integer_value(count))
				fprintf(out, " %lld |", (long long)json_integer_value(count));
			else
				fputs(" - |", out);
		fputc('\n', out);
	}
	if (even) {
		fprintf(out, "| %u more, in as many cases everywhere |", even);
		for (i = 0; i < t->n; i++)
			fputs(" |", out);
		fputc('\n', out);
	}
	json_decref(counts);
}

#define NAMED 3 /* scenarios that a line of skips names */

/* What ended so for one reason: scenarios, once each, and the number of cases. */
static void print_reason(const char *kernel, const char *end, const char *reason, const json_t *ids, FILE *out)
{
	json_t *names = json_object(), *id, *none;
	const char *name;
	size_t i, n = 0;

	json_array_foreach(ids, i, id) {
		json_t *scenario = scenario_name(json_string_value(id));

		json_object_set_new(names, json_string_value(scenario), json_null());
		json_decref(scenario);
	}
	fputs("* ", out);
	put_words(out, kernel);
	fputs(", ", out);
	put_words(out, end);
	if (json_array_size(ids) > 1)
		fprintf(out, " of %zu cases", json_array_size(ids));
	json_object_foreach(names, name, none) {
		if (n++ == NAMED)
			break;
		fputs(n > 1 ? ", `" : " `", out);
		put_code(out, json_array_size(ids) > 1 ? name : json_string_value(json_array_get(ids, 0)));
		fputs("`", out);
	}
	if (json_object_size(names) > NAMED)
		fprintf(out, " and %zu more", json_object_size(names) - NAMED);
	fputs(": `` ", out);
	put_code(out, reason);
	fputs(" ``\n", out);
	json_decref(names);
}

/* What did not pass, and what did not run, with the reason. */
static void print_rest(const struct table *t, FILE *out)
{
	bool first = true;

	for (size_t i = 0; i < t->n; i++) {
		json_t *reasons = json_object(), *verdict, *ids;
		const char *id, *reason;

		json_object_foreach(t->v[i].verdicts, id, verdict) {
			const char *end = report_str(verdict, "verdict");

			if (!strcmp(end, "pass") || !strcmp(end, "deviation"))
				continue;
			json_t *key = json_sprintf("%s\n%s", end, report_str(verdict, "headline"));

			ids = json_object_get(reasons, json_string_value(key));
			if (!ids) {
				ids = json_array();
				json_object_set_new(reasons, json_string_value(key), ids);
			}
			json_array_append_new(ids, json_string(id));
			json_decref(key);
		}
		json_object_foreach(reasons, reason, ids) {
			char end[32];
			size_t len = strcspn(reason, "\n");

			snprintf(end, sizeof(end), "%.*s", (int)len, reason);
			if (first)
				fputc('\n', out);
			first = false;
			print_reason(t->v[i].kernel, end, reason + len + 1, ids, out);
		}
		json_decref(reasons);
	}
}

/* Cases that some column has and another lacks. */
static void print_missing(const struct table *t, FILE *out)
{
	json_t *all = json_object();
	const char *before = "\n";

	for (size_t i = 0; i < t->n; i++)
		json_object_update(all, t->v[i].verdicts);
	for (size_t i = 0; i < t->n; i++) {
		size_t n = json_object_size(all) - json_object_size(t->v[i].verdicts);

		if (!n)
			continue;
		fprintf(out, "%s* ", before);
		put_words(out, t->v[i].kernel);
		fprintf(out, ": %zu case%s not run\n", n, n == 1 ? "" : "s");
		before = "";
	}
	json_decref(all);
}

void report_matrix(const struct report_run *runs, size_t n, FILE *out)
{
	struct table t = table_of(runs, n);

	print_scenarios(&t, out);
	print_deviations(&t, out);
	print_missing(&t, out);
	print_rest(&t, out);
	table_release(&t);
}
