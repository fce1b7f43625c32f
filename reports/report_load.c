/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/many.h"

/* A run that was killed leaves cases without a verdict; a report has to name them all the same. */
static json_t *missing_verdict(const char *id, const char *why)
{
	json_t *headline = json_sprintf("no verdict: %s", why);

	/* A path need not be UTF-8. */
	if (!headline)
		headline = json_string("no verdict: verdict.json cannot be read");
	return json_pack("{s:i,s:s,s:s,s:o,s:s,s:i,s:[],s:[],s:[],s:[],s:[],s:{},s:{}}", "schema", 1, "case", id, "verdict",
			 "error", "headline", headline, "seen", "", "duration_ns", 0, "findings", "windows", "faults", "deviations",
			 "stale", "ledger", "counters");
}

/* NULL where there is none. One damaged file is told, and is no reason to lose what all others say. */
static json_t *load_optional(const char *path, struct error *e)
{
	json_t *loaded = NULL;

	if (access(path, F_OK) < 0)
		return NULL;
	if (!json_load(path, &loaded, e) && json_is_object(loaded))
		return loaded;
	if (loaded)
		error_set(e, -EINVAL, "%s: is no JSON object", path);
	json_decref(loaded);
	log_warn("%s", e->text);
	return NULL;
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
	struct error why = { "the run ended before it" }, ignored = { "" };
	json_t *plan, *verdict, *result;
	char path[4096];

	if (!id || !dir || leads_out(dir))
		return error_set(e, -EINVAL, "%s/run.json: a case without a name or folder", run_dir);
	snprintf(path, sizeof(path), "%s/%s/plan.json", run_dir, dir);
	plan = load_optional(path, &ignored);
	snprintf(path, sizeof(path), "%s/%s/verdict.json", run_dir, dir);
	verdict = load_optional(path, &why);
	result = json_object_get(results, id);
	json_array_append_new(cases, json_pack("{s:s,s:s,s:o,s:o,s:o}", "case", id, "dir", dir, "plan", plan ? plan : json_object(),
					       "verdict", verdict ? verdict : missing_verdict(id, why.text), "result",
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
