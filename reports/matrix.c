/* SPDX-License-Identifier: MIT */
/* Several runs side by side, one column each, as a Markdown table: what the same scenarios showed on different kernels. */
#include "report.h"

#include <stdbool.h>
#include <string.h>

#include "../harness/json.h"
#include "report_util.h"

#define WORDS 6

static const char *const verdicts[WORDS] = { "pass", "deviation", "fail", "inconclusive", "error", "skip" };

static const char *verdict_of(const json_t *entry)
{
	return report_str(json_object_get(entry, "verdict"), "verdict");
}

static json_t *member(json_t *of, const char *key)
{
	json_t *o = json_object_get(of, key);

	if (o)
		return o;
	json_object_set_new(of, key, json_object());
	return json_object_get(of, key);
}

static const char *column_name(size_t i, char buf[24])
{
	snprintf(buf, 24, "%zu", i);
	return buf;
}

static json_t *get_cell(const json_t *row, size_t i)
{
	char column[24];

	return json_object_get(row, column_name(i, column));
}

static void bump(json_t *of, const char *key)
{
	json_object_set_new(of, key, json_integer(json_int(of, key, 0) + 1));
}

/* A line for each scenario of any run, in the order of the first that has it: {"access/x":{"0":{"pass":3},"1":{}}}. */
static json_t *rows_of(const struct report_run *runs, size_t n)
{
	json_t *rows = json_object(), *entry;
	char column[24];
	size_t k;

	for (size_t i = 0; i < n; i++)
		json_array_foreach(runs[i].cases, k, entry) {
			const char *id = report_str(entry, "case");
			json_t *name = json_pack("s%", id, strcspn(id, "~"));

			bump(member(member(rows, json_string_value(name)), column_name(i, column)), verdict_of(entry));
			json_decref(name);
		}
	return rows;
}

/* "pass", "pass 3, deviation 1". */
static void print_cell(const json_t *cell, FILE *out)
{
	bool alone = json_object_size(cell) == 1;
	const char *between = " ";

	for (size_t i = 0; i < WORDS; i++) {
		int64_t count = json_int(cell, verdicts[i], 0);

		if (!count)
			continue;
		fprintf(out, "%s%s", between, verdicts[i]);
		if (!alone || count > 1)
			fprintf(out, " %lld", (long long)count);
		between = ", ";
	}
	fputs(json_object_size(cell) ? " |" : " - |", out);
}

static void print_head(const struct report_run *runs, size_t n, const char *what, FILE *out)
{
	fprintf(out, "| %s |", what);
	for (size_t i = 0; i < n; i++)
		fprintf(out, " %s |", report_str(runs[i].run, "kernel"));
	fputs("\n|---|", out);
	for (size_t i = 0; i < n; i++)
		fputs("---|", out);
	fputc('\n', out);
}

static void print_totals(const struct report_run *runs, size_t n, FILE *out)
{
	fputs("| **all cases** |", out);
	for (size_t i = 0; i < n; i++) {
		struct report_counts c = report_count(&runs[i]);
		json_t *cell = json_object();
		const unsigned counts[WORDS] = { c.pass, c.deviation, c.fail, c.inconclusive, c.error, c.skip };

		for (size_t k = 0; k < WORDS; k++)
			if (counts[k])
				json_object_set_new(cell, verdicts[k], json_integer(counts[k]));
		print_cell(cell, out);
		json_decref(cell);
	}
	fputc('\n', out);
}

/* Which entries of the profile each run met, and in how many cases. */
static json_t *deviations_of(const struct report_run *runs, size_t n)
{
	json_t *ids = json_object(), *entry, *deviation;
	char column[24];
	const char *id;
	size_t k, m;

	for (size_t i = 0; i < n; i++)
		json_array_foreach(runs[i].cases, k, entry) {
			json_t *met = json_object();

			json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), m, deviation)
				json_object_set_new(met, report_str(deviation, "id"), json_true());
			json_object_foreach(met, id, deviation)
				bump(member(ids, id), column_name(i, column));
			json_decref(met);
		}
	return ids;
}

static void print_deviations(const struct report_run *runs, size_t n, FILE *out)
{
	json_t *ids = deviations_of(runs, n), *row;
	const char *id;

	if (json_object_size(ids)) {
		fputc('\n', out);
		print_head(runs, n, "deviation, cases", out);
	}
	json_object_foreach(ids, id, row) {
		fprintf(out, "| %s |", id);
		for (size_t i = 0; i < n; i++)
			if (get_cell(row, i))
				fprintf(out, " %lld |", (long long)json_integer_value(get_cell(row, i)));
			else
				fputs(" - |", out);
		fputc('\n', out);
	}
	json_decref(ids);
}

/* What did not pass, and what did not run, with the reason. */
static void print_rest(const struct report_run *runs, size_t n, FILE *out)
{
	json_t *entry;
	size_t k;
	bool any = false;

	for (size_t i = 0; i < n; i++)
		json_array_foreach(runs[i].cases, k, entry) {
			const char *verdict = verdict_of(entry);

			if (!strcmp(verdict, "pass") || !strcmp(verdict, "deviation"))
				continue;
			fprintf(out, "%s* %s, %s `%s`: `` %s ``\n", any ? "" : "\n", report_str(runs[i].run, "kernel"), verdict,
				report_str(entry, "case"), report_str(json_object_get(entry, "verdict"), "headline"));
			any = true;
		}
}

void report_matrix(const struct report_run *runs, size_t n, FILE *out)
{
	json_t *rows = rows_of(runs, n), *row;
	const char *name;

	print_head(runs, n, "scenario", out);
	json_object_foreach(rows, name, row) {
		fprintf(out, "| %s |", name);
		for (size_t i = 0; i < n; i++)
			print_cell(get_cell(row, i), out);
		fputc('\n', out);
	}
	print_totals(runs, n, out);
	print_deviations(runs, n, out);
	print_rest(runs, n, out);
	json_decref(rows);
}
