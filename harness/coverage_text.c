/* SPDX-License-Identifier: MIT */
#include "coverage.h"

#include <stdarg.h>
#include <string.h>

#include "json.h"

static int64_t shown(const json_t *row)
{
	return json_int(row, "pass", 0);
}

static void print_rows(const json_t *coverage, bool run, FILE *out)
{
	const json_t *row;
	size_t i;

	fprintf(out, "%-5s %-15s %-22s %-20s %-9s %5s%s\n", "", "operation", "fault", "status", "recovery", "cases",
		run ? "  pass deviation" : "");
	json_array_foreach(json_object_get(coverage, "rows"), i, row) {
		fprintf(out, "%-5s %-15s %-22s %-20s %-9s %5lld", json_str(row, "transport"), json_str(row, "op"),
			json_str(row, "fault"), json_str(row, "status"), json_str(row, "recovery"),
			(long long)json_int(row, "cases", 0));
		if (run)
			fprintf(out, " %5lld %9lld", (long long)shown(row), (long long)json_int(row, "deviation", 0));
		fputc('\n', out);
	}
}

static void print_events(const json_t *coverage, FILE *out)
{
	const json_t *row;
	size_t i;

	fputs("\nasync events\n", out);
	json_array_foreach(json_object_get(coverage, "events"), i, row)
		fprintf(out, "%-5s %-24s %5lld\n", json_str(row, "transport"), json_str(row, "event"),
			(long long)json_int(row, "cases", 0));
}

static void print_holes(const json_t *coverage, FILE *out)
{
	static const struct {
		const char *key, *title;
	} kinds[] = {
		{ "ops", "operations" }, { "statuses", "statuses" },         { "events", "events" },
		{ "faults", "faults" },  { "recoveries", "recovery paths" },
	};
	const json_t *holes = json_object_get(coverage, "holes"), *hole;
	size_t k;

	fputs("\nasserted by no scenario\n", out);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t open = 0;

		fprintf(out, "  %-15s", kinds[i].title);
		json_array_foreach(json_object_get(holes, kinds[i].key), k, hole)
			if (!json_str(hole, "never"))
				fprintf(out, "%s%s", open++ ? ", " : " ", json_str(hole, "name"));
		fputs(open ? "\n" : " none\n", out);
	}
	json_array_foreach(json_object_get(holes, "statuses"), k, hole)
		if (json_str(hole, "never"))
			fprintf(out, "  never %-20s %s\n", json_str(hole, "name"), json_str(hole, "never"));
	json_array_foreach(json_object_get(holes, "events"), k, hole)
		if (json_str(hole, "never"))
			fprintf(out, "  never %-20s %s\n", json_str(hole, "name"), json_str(hole, "never"));
}

struct tally {
	size_t all, named, shown, half, half_named, never;
};

static struct tally add_up(const json_t *rows)
{
	struct tally t = { 0 };
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		bool is_named = json_int(row, "cases", 0) > 0;

		if (json_str(row, "never")) {
			t.never++;
		} else if (json_str(row, "part")) {
			t.half++;
			t.half_named += is_named;
		} else {
			t.all++;
			t.named += is_named;
			t.shown += shown(row) > 0;
		}
	}
	return t;
}

static void print_refs(const json_t *coverage, const char *key, const char *title, bool run, FILE *out)
{
	const json_t *rows = json_object_get(coverage, key), *row;
	struct tally t = add_up(rows);
	size_t i;

	fprintf(out, "\n%s: %zu of %zu named", title, t.named, t.all);
	if (run)
		fprintf(out, ", %zu shown by a case that passed", t.shown);
	if (t.half)
		fprintf(out, "; of %zu that can be shown in part, %zu", t.half, t.half_named);
	fprintf(out, "; %zu that cannot be shown here\n", t.never);
	json_array_foreach(rows, i, row) {
		const char *why = json_str(row, "never") ?: json_str(row, "part");

		if (json_int(row, "cases", 0) > 0 && (!run || shown(row) > 0))
			continue;
		fprintf(out, "  %-9s %-28s %s%s%s%s\n",
			json_str(row, "never")          ? "never"
			: json_int(row, "cases", 0) > 0 ? "not shown"
			: json_str(row, "part")         ? "in part"
							: "not named",
			json_str(row, "id"), json_str(row, "says"), why ? " (" : "", why ?: "", why ? ")" : "");
	}
}

void coverage_text(const json_t *coverage, FILE *out)
{
	bool run = json_bool(coverage, "run", false);

	print_rows(coverage, run, out);
	print_events(coverage, out);
	print_holes(coverage, out);
	print_refs(coverage, "demands", "demands of the specification", run, out);
	print_refs(coverage, "seeds", "rows of the articles", run, out);
	print_refs(coverage, "field", "reports from the field", run, out);
	fprintf(out, "\n%lld cases\n", (long long)json_int(coverage, "cases", 0));
}
