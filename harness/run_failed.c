/* SPDX-License-Identifier: MIT */
/* Which cases of an earlier run are to run again (--rerun-failed): those that have no good result. */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../reports/report.h"
#include "json.h"

/* The length of an id without the ~rN of a repetition. */
static size_t plain_length(const char *id)
{
	const char *tail = strrchr(id, '~');

	if (tail && tail[1] == 'r' && tail[2] && strspn(tail + 2, "0123456789") == strlen(tail + 2))
		return (size_t)(tail - id);
	return strlen(id);
}

/* A glob that matches this id alone, without the ~rN of a repetition; `hole` (NULL: none), a part of it that any other may stand
 * for. */
static char *glob_of(const char *id, const char *hole, size_t hole_len)
{
	const char *end = id + plain_length(id);
	char *glob = calloc(2, strlen(id) + 1), *to = glob;

	for (const char *p = id; glob && p < end; p++) {
		if (p == hole) {
			*to++ = '*';
			p += hole_len - 1;
			continue;
		}
		if (strchr("*?[\\", *p))
			*to++ = '\\';
		*to++ = *p;
	}
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

/* Whether some other case of the run has the same before that place and after it. */
static bool has_followers(const json_t *cases, const char *pass, const char *place, const char *tail)
{
	const size_t head = (size_t)(place - pass);
	const json_t *other;
	size_t i;

	json_array_foreach(cases, i, other) {
		const char *id = json_str(other, "case");
		size_t len = strlen(id);

		if (strcmp(id, pass) && len >= head + strlen(tail) && !strncmp(id, pass, head) &&
		    !strcmp(id + len - strlen(tail), tail))
			return true;
	}
	return false;
}

/* Of a first pass from which nothing came also what would have come. */
static char *glob_for(const json_t *cases, const json_t *entry)
{
	const size_t len = strlen(SCENARIO_FIRST_PASS);
	const char *id = json_str(entry, "case"), *tail = NULL,
		   *place = run_packet_place(id, json_object_get(entry, "plan"), &tail);

	return glob_of(id, place && !has_followers(cases, id, place, tail) ? place : NULL, len);
}

/* seen: the globs that there are, for repetitions of a case have the same. */
static int add(struct run_failed *f, const json_t *cases, const json_t *entry, json_t *seen)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	char *glob;

	f->all++;
	if (is_good(verdict)) {
		f->skipped += is_skip(verdict);
		return 0;
	}
	glob = glob_for(cases, entry);
	if (!glob)
		return -ENOMEM;
	if (json_object_get(seen, glob)) {
		free(glob);
		return 0;
	}
	json_object_set_new(seen, glob, json_true());
	f->globs[f->n++] = glob;
	return 0;
}

int run_failed_load(const char *run_dir, struct run_failed *ret, struct error *e)
{
	struct run_failed f = { 0 };
	struct report_run report;
	const json_t *entry;
	json_t *seen = json_object();
	size_t i;
	int rc = report_load(run_dir, &report, e);

	if (rc) {
		json_decref(seen);
		return rc;
	}
	f.run = json_incref(report.run);
	f.globs = calloc(json_array_size(report.cases) + 1, sizeof(*f.globs));
	if (!f.globs)
		rc = -ENOMEM;
	json_array_foreach(report.cases, i, entry)
		if (!rc)
			rc = add(&f, report.cases, entry, seen);
	if (rc)
		error_set(e, rc, "out of memory");
	else if (!f.all)
		rc = error_set(e, -EINVAL, "%s/run.json lists no cases", run_dir);
	json_decref(seen);
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
