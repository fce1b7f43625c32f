/* SPDX-License-Identifier: MIT */
/*
 * report.json, schema 1: {"schema":1,"run":{run.json without `cases`},"counts":{pass deviation fail inconclusive skip error passed
 * failed total},"cases":[{"case","title","file","refs","verdict","headline","seen","duration_ns","skip","repeat", and findings
 * windows faults deviations stale ledger counters phases of verdict.json}],"repeats":[what report_repeats() gives, where cases were
 * repeated]}. Keys are only ever added within a schema.
 */
#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "report.h"
#include "report_util.h"

static json_t *case_json(const struct report_run *run, const json_t *entry)
{
	static const char *const of_verdict[] = { "verdict",    "headline", "seen",   "findings", "windows", "faults",
						  "deviations", "stale",    "ledger", "counters", "phases" };
	static const char *const of_plan[] = { "title", "file", "refs", "tags", "sweep", "skip" };
	const json_t *plan = json_object_get(entry, "plan"), *verdict = json_object_get(entry, "verdict");
	const char *id = report_str(entry, "case");
	json_t *out = json_object();
	char repeat[4096];

	json_object_set_new(out, "case", json_string(id));
	for (size_t i = 0; i < sizeof(of_plan) / sizeof(*of_plan); i++)
		if (json_object_get(plan, of_plan[i]))
			json_object_set(out, of_plan[i], json_object_get(plan, of_plan[i]));
	for (size_t i = 0; i < sizeof(of_verdict) / sizeof(*of_verdict); i++)
		if (json_object_get(verdict, of_verdict[i]))
			json_object_set(out, of_verdict[i], json_object_get(verdict, of_verdict[i]));
	if (*report_str(json_object_get(entry, "result"), "again"))
		json_object_set(out, "again", json_object_get(json_object_get(entry, "result"), "again"));
	json_object_set_new(out, "duration_ns", json_integer((json_int_t)report_duration(entry)));
	json_object_set_new(out, "repeat", json_string(report_repeat(run->run, id, repeat, sizeof(repeat))));
	return out;
}

static int json_write(const struct report_run *run, FILE *out, bool colour, struct error *e)
{
	struct report_counts c = report_count(run);
	json_t *cases = json_array(), *head = json_deep_copy(run->run), *all, *entry;
	json_t *repeats = report_repeats(run);
	size_t i;
	int rc = 0;

	(void)colour;
	json_object_del(head, "cases");
	json_array_foreach(run->cases, i, entry)
		json_array_append_new(cases, case_json(run, entry));
	all = json_pack("{s:i,s:o,s:o,s:{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}}", "schema", 1, "run", head, "cases", cases, "counts",
			"pass", (int)c.pass, "deviation", (int)c.deviation, "fail", (int)c.fail, "inconclusive",
			(int)c.inconclusive, "skip", (int)c.skip, "error", (int)c.error, "passed", (int)report_passed(&c), "failed",
			(int)report_failed(&c), "total", (int)json_array_size(run->cases));
	if (all && json_array_size(repeats))
		json_object_set(all, "repeats", repeats);
	json_decref(repeats);
	if (!all || json_dumpf(all, out, JSON_INDENT(2) | JSON_SORT_KEYS) || fputc('\n', out) == EOF)
		rc = error_set(e, -EIO, "report.json: cannot write");
	json_decref(all);
	return rc;
}

extern const struct report_ops report_json;
const struct report_ops report_json = {
	.name = "json",
	.file = "report.json",
	.help = "everything, for programs",
	.write = json_write,
};
