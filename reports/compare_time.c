/* SPDX-License-Identifier: MIT */
/* The phases of recoveries in two runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/phases.h"
#include "compare_internal.h"
#include "report_util.h"

#define RATIO_MIN 1.5
/* What fewer phases have in common need not be the machine. */
#define COMMON_MIN 5
/* Below this a ratio says nothing. */
#define COMMON_FROM_NS 1000000

struct samples {
	uint64_t *v;
	size_t n;
};

struct phase_pair {
	char *id, path[64];
	int step;
	enum phase phase;
	struct samples side[2];
	uint64_t late_ns, bound_ns;
};

struct compare_times {
	struct phase_pair *v;
	size_t n;
	size_t blind; /* cases in which nothing tells how late the machine was */
};

struct compare_times *compare_times_new(void)
{
	return calloc(1, sizeof(struct compare_times));
}

void compare_times_free(struct compare_times *t)
{
	for (size_t i = 0; t && i < t->n; i++) {
		free(t->v[i].id);
		free(t->v[i].side[0].v);
		free(t->v[i].side[1].v);
	}
	free(t ? t->v : NULL);
	free(t);
}

static struct phase_pair *pair_for(struct compare_times *t, size_t from, const char *id, const json_t *p, enum phase phase)
{
	const char *path = report_str(p, "path");
	int step = (int)json_int(p, "step", 0);
	struct phase_pair *grown;

	for (size_t i = from; i < t->n; i++)
		if (t->v[i].step == step && t->v[i].phase == phase && !strcmp(t->v[i].path, path))
			return &t->v[i];
	grown = reallocarray(t->v, t->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	t->v = grown;
	grown += t->n;
	*grown = (struct phase_pair){ .id = strdup(id), .step = step, .phase = phase };
	snprintf(grown->path, sizeof(grown->path), "%s", path);
	if (grown->id)
		t->n++;
	return grown->id ? grown : NULL;
}

static void add_sample(struct samples *s, uint64_t ns)
{
	uint64_t *grown = reallocarray(s->v, s->n + 1, sizeof(*grown));

	if (!grown)
		return;
	s->v = grown;
	s->v[s->n++] = ns;
}

/* from: where this case's begin. */
static void add_side(struct compare_times *t, size_t from, const char *id, const struct compare_case *c, int side)
{
	json_t *entry, *p;
	size_t i, k;

	json_array_foreach(c->entries, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "phases"), k, p)
			for (int phase = 0; phase < NUM_PHASES; phase++) {
				uint64_t bound_ns = json_u64(p, "bound_ns", 0);
				struct phase_pair *pair;
				char key[32];

				snprintf(key, sizeof(key), "%s_ns", phase_names[phase]);
				pair = json_object_get(p, key) ? pair_for(t, from, id, p, (enum phase)phase) : NULL;
				if (!pair)
					continue;
				add_sample(&pair->side[side], json_u64(p, key, 0));
				pair->bound_ns = bound_ns > pair->bound_ns ? bound_ns : pair->bound_ns;
			}
}

void compare_times_add(struct compare_times *t, const char *id, const struct compare_case *older, const struct compare_case *newer)
{
	uint64_t late_ns = older->late_ns > newer->late_ns ? older->late_ns : newer->late_ns;
	size_t from = t->n;

	add_side(t, from, id, older, 0);
	add_side(t, from, id, newer, 1);
	if (t->n > from && late_ns == UINT64_MAX) {
		for (; t->n > from; t->n--) {
			free(t->v[t->n - 1].id);
			free(t->v[t->n - 1].side[0].v);
			free(t->v[t->n - 1].side[1].v);
		}
		t->blind++;
	}
	for (size_t i = from; i < t->n; i++)
		t->v[i].late_ns = late_ns;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ratio_of(const json_t *older, const json_t *newer)
{
	return (double)json_u64(newer, "median_ns", 0) / ((double)json_u64(older, "median_ns", 0) + 1);
}

/* The ratio that half of all phases exceed; 1 where they are too few. spreads: [[older, newer]] of each pair, or null. */
static double common_ratio(const json_t *spreads)
{
	double *v = calloc(json_array_size(spreads) + 1, sizeof(*v)), common = 1;
	json_t *both;
	size_t i, n = 0;

	json_array_foreach(spreads, i, both) {
		const json_t *older = json_array_get(both, 0), *newer = json_array_get(both, 1);

		if (v && json_u64(older, "median_ns", 0) >= COMMON_FROM_NS && json_u64(newer, "median_ns", 0) >= COMMON_FROM_NS)
			v[n++] = ratio_of(older, newer);
	}
	if (v && n >= COMMON_MIN) {
		qsort(v, n, sizeof(*v), by_size);
		common = v[n / 2];
	}
	free(v);
	return common;
}

/* Every time of b lies beyond all of a, whatever the machine did. */
static bool lies_beyond(const json_t *a, const json_t *b, double machine, uint64_t slack_ns)
{
	double scale = machine > 1 ? machine : 1;
	double edge = scale * (double)json_u64(a, "max_ns", 0) + (double)slack_ns;

	return (double)json_u64(b, "min_ns", 0) > edge &&
	       (double)json_u64(b, "median_ns", 0) > RATIO_MIN * scale * (double)json_u64(a, "median_ns", 0);
}

static bool is_often(const struct phase_pair *p)
{
	return p->side[0].n >= COMPARE_OFTEN && p->side[1].n >= COMPARE_OFTEN;
}

static json_t *change_json(const struct phase_pair *p, const json_t *both, double common, uint64_t granularity_ns, bool same)
{
	uint64_t slack_ns = granularity_ns + p->bound_ns + (is_often(p) ? 1 : COMPARE_WAITS) * p->late_ns;
	const json_t *older = json_array_get(both, 0), *newer = json_array_get(both, 1);
	bool slower = lies_beyond(older, newer, common, slack_ns), faster = lies_beyond(newer, older, 1 / common, slack_ns);

	if (!slower && !faster)
		return NULL;
	return json_pack("{s:s,s:i,s:s,s:s,s:s,s:b,s:O,s:O,s:I}", "case", p->id, "step", p->step, "path", p->path, "phase",
			 phase_names[p->phase], "change", slower ? "slower" : "faster", "regression", slower && same && is_often(p),
			 "old", older, "new", newer, "slack_ns", (json_int_t)slack_ns);
}

json_t *compare_times_judge(struct compare_times *t, uint64_t granularity_ns, bool same, const char *why)
{
	json_t *spreads = json_array(), *changes = json_array(), *change;
	size_t often = 0, held = 0;
	double common;

	for (size_t i = 0; i < t->n; i++) {
		struct samples *s = t->v[i].side;

		json_array_append_new(
			spreads, s[0].n && s[1].n ? json_pack("[o,o]", phases_spread(s[0].v, s[0].n), phases_spread(s[1].v, s[1].n))
						  : json_null());
		held += s[0].n && s[1].n;
		often += is_often(&t->v[i]);
	}
	common = common_ratio(spreads);
	for (size_t i = 0; i < t->n && !why; i++) {
		change = json_is_null(json_array_get(spreads, i))
				 ? NULL
				 : change_json(&t->v[i], json_array_get(spreads, i), common, granularity_ns, same);
		if (change)
			json_array_append_new(changes, change);
	}
	json_decref(spreads);
	return json_pack("{s:i,s:i,s:i,s:f,s:I,s:b,s:s,s:o}", "held", (int)held, "often", (int)often, "unknown_lateness",
			 (int)t->blind, "common", common, "granularity_ns", (json_int_t)granularity_ns, "same_machine", same,
			 "why_not", why ? why : "", "changes", changes);
}
