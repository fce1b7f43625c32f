/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "diag.h"
#include "json.h"
#include "log.h"
#include "profile.h"
#include "many.h"

static int load_profile(const char *case_dir, const char *kernel, struct profile *ret, struct error *e)
{
	char path[4096];
	struct diag d = { 0 };
	int rc;

	snprintf(path, sizeof(path), "%s/profile.yaml", case_dir);
	if (access(path, F_OK) < 0)
		return -ENOENT;
	rc = profile_load(path, kernel ? kernel : "", ret, &d, e);
	if (rc && d.text)
		fputs(d.text, stderr);
	diag_release(&d);
	return rc;
}

/* A case that crashed the kernel at once may have left no file: nothing was observed, and the verdict says so. */
static int load_records(const char *case_dir, json_t **ret, bool *ret_torn, struct error *e)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/observations.jsonl", case_dir);
	if (access(path, F_OK) < 0) {
		*ret = json_array();
		*ret_torn = false;
		return 0;
	}
	return many_load_records(path, ret, ret_torn, e);
}

int run_judge(const char *case_dir, const char *kernel, bool strict, json_t **ret_verdict, struct error *e)
{
	struct verdict_options o = { .strict = strict };
	json_t *plan = NULL, *records = NULL, *verdict = NULL;
	struct profile profile = { 0 };
	bool torn = false, has_profile;
	char path[4096];
	int rc;

	snprintf(path, sizeof(path), "%s/plan.json", case_dir);
	rc = json_load(path, &plan, e);
	if (rc)
		return rc;
	rc = load_records(case_dir, &records, &torn, e);
	if (rc)
		goto out_plan;
	rc = load_profile(case_dir, kernel, &profile, e);
	has_profile = rc == 0;
	if (rc && rc != -ENOENT)
		goto out_records;
	rc = verdict_judge(plan, records, torn, has_profile ? &profile : NULL, &o, &verdict, e);
	if (rc)
		goto out_profile;
	snprintf(path, sizeof(path), "%s/verdict.json", case_dir);
	rc = json_save(path, verdict, e);
	if (rc)
		json_decref(verdict);
	else
		*ret_verdict = verdict;
out_profile:
	if (has_profile)
		profile_release(&profile);
out_records:
	json_decref(records);
out_plan:
	json_decref(plan);
	return rc;
}

uint64_t run_lateness(const char *case_dir)
{
	json_t *records = NULL, *rec;
	uint64_t late_ns = 0;
	struct error e;
	bool torn, witnessed = false;
	size_t i;

	if (load_records(case_dir, &records, &torn, &e))
		return UINT64_MAX;
	json_array_foreach(records, i, rec) {
		witnessed |= json_bool(rec, "witness", false);
		if (json_bool(rec, "witness", false) && json_u64(rec, "late_max_ns", 0) > late_ns)
			late_ns = json_u64(rec, "late_max_ns", 0);
	}
	json_decref(records);
	return witnessed ? late_ns : UINT64_MAX;
}

json_t *run_verdict_unrun(const json_t *plan, enum verdict verdict, const char *why)
{
	json_t *findings = json_array();

	if (verdict == VERDICT_ERROR)
		json_array_append_new(
			findings, json_pack("{s:s,s:s,s:i,s:s}", "severity", "error", "check", "harness", "step", 0, "text", why));
	return json_pack("{s:i,s:O,s:s,s:s,s:s,s:i,s:o,s:[],s:[],s:[],s:[],s:{},s:{}}", "schema", 1, "case",
			 json_object_get(plan, "case"), "verdict", verdict_names[verdict], "headline", why, "seen", "",
			 "duration_ns", 0, "findings", findings, "windows", "faults", "deviations", "stale", "ledger", "counters");
}

static char *profile_at(const char *dir, size_t dir_len, const char *provider)
{
	char *path = NULL;

	if (asprintf(&path, "%.*sprofiles/%s.yaml", (int)dir_len, dir, provider) < 0)
		return NULL;
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

char *run_profile_find(const char *scenario_path, const char *provider)
{
	size_t len = strlen(scenario_path);
	char rel[256], *path = NULL;
	struct error e;

	/* Every folder above the scenario, the nearest first. */
	while (len > 0 && !path) {
		while (len > 0 && scenario_path[len - 1] != '/')
			len--;
		path = profile_at(scenario_path, len, provider);
		if (len > 0)
			len--;
		else
			break;
	}
	if (path)
		return path;
	snprintf(rel, sizeof(rel), "scenarios/profiles/%s.yaml", provider);
	return data_path(rel, &path, &e) ? NULL : path;
}

int run_profiles_find(const struct run_cases *cases, const char *provider, struct error *e)
{
	for (size_t i = 0; i < cases->n && strcmp(provider, "none"); i++) {
		char *path = run_profile_find(cases->cases[i].scenario->path, provider);

		if (!path)
			return error_set(e, -ENOENT, "--provider: there is no profile '%s' (`qpdrill list profiles` names them)",
					 provider);
		free(path);
	}
	return 0;
}
