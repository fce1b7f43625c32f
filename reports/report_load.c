/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/many.h"

/* A run that was killed leaves cases without a verdict; a report has to name them all the same. */
static json_t *missing_verdict(const char *id)
{
	return json_pack("{s:i,s:s,s:s,s:s,s:s,s:i,s:[],s:[],s:[],s:[],s:[],s:{},s:{}}", "schema", 1, "case", id, "verdict",
			 "error", "headline", "no verdict: the run ended before it", "seen", "", "duration_ns", 0, "findings",
			 "windows", "faults", "deviations", "stale", "ledger", "counters");
}

static int load_optional(const char *path, json_t **ret, struct error *e)
{
	*ret = NULL;
	return access(path, F_OK) < 0 ? 0 : json_load(path, ret, e);
}

/* The lines of results.jsonl by case. */
static int load_results(const char *run_dir, json_t **ret, struct error *e)
{
	json_t *lines, *line, *by_case;
	char path[4096];
	bool torn;
	size_t i;
	int rc;

	snprintf(path, sizeof(path), "%s/results.jsonl", run_dir);
	by_case = json_object();
	if (access(path, F_OK) == 0) {
		rc = json_load_lines(path, &lines, &torn, e);
		if (rc) {
			json_decref(by_case);
			return rc;
		}
		json_array_foreach(lines, i, line)
			if (json_str(line, "case"))
				json_object_set(by_case, json_str(line, "case"), line);
		json_decref(lines);
	}
	*ret = by_case;
	return 0;
}

/* Names may have two dots in them (a swept `1..3`); a folder above has nothing else. */
static bool leads_out(const char *dir)
{
	for (const char *at = strstr(dir, ".."); at; at = strstr(at + 1, ".."))
		if ((at == dir || at[-1] == '/') && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

static int load_case(const char *run_dir, const json_t *listed, const json_t *results, json_t *cases, struct error *e)
{
	const char *id = json_str(listed, "case"), *dir = json_str(listed, "dir");
	json_t *plan, *verdict = NULL, *result;
	char path[4096];
	int rc;

	if (!id || !dir || leads_out(dir))
		return error_set(e, -EINVAL, "%s/run.json: a case without a name or folder", run_dir);
	snprintf(path, sizeof(path), "%s/%s/plan.json", run_dir, dir);
	rc = load_optional(path, &plan, e);
	snprintf(path, sizeof(path), "%s/%s/verdict.json", run_dir, dir);
	if (!rc)
		rc = load_optional(path, &verdict, e);
	if (rc) {
		json_decref(plan);
		return rc;
	}
	result = json_object_get(results, id);
	json_array_append_new(cases, json_pack("{s:s,s:s,s:o,s:o,s:o}", "case", id, "dir", dir, "plan", plan ? plan : json_object(),
					       "verdict", verdict ? verdict : missing_verdict(id), "result",
					       result ? json_incref(result) : json_object()));
	return 0;
}

int report_load(const char *run_dir, struct report_run *ret, struct error *e)
{
	json_t *run = NULL, *results = NULL, *cases = json_array(), *listed;
	char path[4096];
	size_t i;
	int rc;

	snprintf(path, sizeof(path), "%s/run.json", run_dir);
	rc = json_load(path, &run, e);
	if (!rc)
		rc = load_results(run_dir, &results, e);
	json_array_foreach(json_object_get(run, "cases"), i, listed)
		if (!rc)
			rc = load_case(run_dir, listed, results, cases, e);
	json_decref(results);
	if (rc) {
		json_decref(run);
		json_decref(cases);
		return rc;
	}
	*ret = (struct report_run){ .dir = run_dir, .run = run, .cases = cases };
	return 0;
}

static void case_path(const struct report_run *run, const json_t *entry, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/%s/%s", run->dir, json_str(entry, "dir") ? json_str(entry, "dir") : "", name);
}

int report_records(const struct report_run *run, const json_t *entry, json_t **ret, bool *ret_torn, struct error *e)
{
	char path[4096];

	case_path(run, entry, "observations.jsonl", path, sizeof(path));
	*ret_torn = false;
	if (access(path, F_OK) < 0) {
		*ret = json_array();
		return 0;
	}
	return many_load_records(path, ret, ret_torn, e);
}

char *report_case_file(const struct report_run *run, const json_t *entry, const char *name)
{
	char path[4096], *text = NULL;
	size_t size = 0;
	FILE *in;

	case_path(run, entry, name, path, sizeof(path));
	in = fopen(path, "re");
	if (!in)
		return NULL;
	if (getdelim(&text, &size, 0, in) < 0) {
		free(text);
		text = NULL;
	}
	fclose(in);
	return text;
}

void report_release(struct report_run *r)
{
	json_decref(r->run);
	json_decref(r->cases);
	*r = (struct report_run){ 0 };
}
