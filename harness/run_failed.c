/* SPDX-License-Identifier: MIT */
/* Which cases of an earlier run are to run again (--rerun-failed): those that have no good result. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../reports/report.h"
#include "json.h"

/* A glob that matches this id alone, without the ~rN of a repetition. */
static char *glob_of(const char *id)
{
	char *glob = calloc(2, strlen(id) + 1), *to = glob, *tail;

	for (const char *p = id; glob && *p; p++) {
		if (strchr("*?[\\", *p))
			*to++ = '\\';
		*to++ = *p;
	}
	tail = glob ? strrchr(glob, '~') : NULL;
	if (tail && tail[1] == 'r' && tail[2] && strspn(tail + 2, "0123456789") == strlen(tail + 2))
		*tail = '\0';
	return glob;
}

static bool is_skip(const json_t *verdict)
{
	return json_has(verdict, "verdict", verdict_names[VERDICT_SKIP]);
}

static bool is_good(const json_t *verdict)
{
	return !json_bool(verdict, "unrun", false) &&
	       (is_skip(verdict) || json_has(verdict, "verdict", verdict_names[VERDICT_PASS]) ||
		json_has(verdict, "verdict", verdict_names[VERDICT_DEVIATION]));
}

static int add(struct run_failed *f, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *id = json_str(entry, "case");

	f->all++;
	if (is_good(verdict)) {
		f->skipped += is_skip(verdict);
		return 0;
	}
	f->globs[f->n] = glob_of(id);
	return f->globs[f->n++] ? 0 : -ENOMEM;
}

int run_failed_load(const char *run_dir, struct run_failed *ret, struct error *e)
{
	struct run_failed f = { 0 };
	struct report_run report;
	const json_t *entry;
	size_t i;
	int rc = report_load(run_dir, &report, e);

	if (rc)
		return rc;
	f.run = json_incref(report.run);
	f.globs = calloc(json_array_size(report.cases) + 1, sizeof(*f.globs));
	if (!f.globs)
		rc = -ENOMEM;
	json_array_foreach(report.cases, i, entry)
		if (!rc)
			rc = add(&f, entry);
	if (rc)
		error_set(e, rc, "out of memory");
	else if (!f.all)
		rc = error_set(e, -EINVAL, "%s/run.json lists no cases", run_dir);
	report_release(&report);
	if (rc)
		run_failed_release(&f);
	else
		*ret = f;
	return rc;
}

void run_failed_release(struct run_failed *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->globs[i]);
	free(f->globs);
	json_decref(f->run);
	*f = (struct run_failed){ 0 };
}
