/* SPDX-License-Identifier: MIT */
/* Golden folders for the tests of the verdict: testdata/verdict/NAME/{plan.json,observations.jsonl,profile.yaml?,verdict.json}. */
#ifndef QD_VERDICT_RIG_H
#define QD_VERDICT_RIG_H

#include "verdict.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "json.h"
#include "test.h"

#define DATA "harness/testdata/verdict/"
#define KERNEL "6.1.0-57-amd64"

struct input {
	json_t *plan, *records;
	bool torn, has_profile;
	struct profile profile;
};

static void input_load(const char *name, struct input *in)
{
	struct error e = { "" };
	struct diag d = { .text = NULL };
	char path[512];

	memset(in, 0, sizeof(*in));
	snprintf(path, sizeof(path), DATA "%s/plan.json", name);
	CU_ASSERT_FATAL(json_load(path, &in->plan, &e) == 0);
	snprintf(path, sizeof(path), DATA "%s/observations.jsonl", name);
	CU_ASSERT_FATAL(json_load_lines(path, &in->records, &in->torn, &e) == 0);
	snprintf(path, sizeof(path), DATA "%s/profile.yaml", name);
	if (!access(path, F_OK)) {
		in->has_profile = !profile_load(path, KERNEL, &in->profile, &d, &e);
		ROW_ASSERT(in->has_profile, "%s: %s", path, d.text ? d.text : e.text);
	}
	diag_release(&d);
}

static void input_release(struct input *in)
{
	json_decref(in->plan);
	json_decref(in->records);
	if (in->has_profile)
		profile_release(&in->profile);
}

static json_t *judge(const struct input *in, bool strict)
{
	struct verdict_options o = { .strict = strict };
	struct error e = { "" };
	json_t *verdict = NULL;
	int rc = verdict_judge(in->plan, in->records, in->torn, in->has_profile ? &in->profile : NULL, &o, &verdict, &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	return verdict;
}

static bool is_verdict(const json_t *v, const char *want)
{
	const char *have = json_str(v, "verdict");

	return have && !strcmp(have, want);
}

/* As if the records had been written so: it is not their numbers that give them away. */
static inline void renumber(json_t *records)
{
	json_t *r;
	size_t i;

	json_array_foreach(records, i, r)
		json_object_set_new(r, "n", json_integer((json_int_t)i + 1));
}

#endif
