/* SPDX-License-Identifier: MIT */
/* A first pass is not judged: it finds the packets that a sweep goes over. */
#include "verdict_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "scenario.h"

#define CHECK "packets"

bool verdict_is_first_pass(const json_t *plan)
{
	return json_is_object(json_object_get(plan, "first_pass"));
}

struct found {
	size_t qp;
	int class_;
	int64_t psn;
};

static int by_place(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->qp != y->qp)
		return x->qp < y->qp ? -1 : 1;
	if (x->class_ != y->class_)
		return x->class_ < y->class_ ? -1 : 1;
	return (x->psn > y->psn) - (x->psn < y->psn);
}

/* An agent's name is enough where it has one QP. */
static const char *end_name(const struct judge *j, size_t qp)
{
	const char *agent = j->m->qps.v[qp].agent;
	unsigned n = 0;

	for (size_t i = 0; i < j->m->qps.n; i++)
		n += !strcmp(j->m->qps.v[i].agent, agent);
	return n == 1 ? agent : j->m->qps.v[qp].name;
}

static unsigned first_life(const struct judge *j, const char *pair)
{
	for (size_t i = 0; i < j->m->connections.n; i++)
		if (!strcmp(j->m->connections.v[i].pair, pair))
			return j->m->connections.v[i].life;
	return 0;
}

json_t *verdict_found_packets(struct judge *j)
{
	const json_t *match = json_object_get(json_object_get(j->plan, "first_pass"), "match");
	VEC(struct found) found = { 0 };
	json_t *list = json_array();

	for (size_t i = 0; i < j->m->packets.n; i++) {
		const struct m_packet *p = &j->m->packets.v[i];
		int class_ = scenario_packet_class(p->class_);
		int64_t first, n;

		if (!p->known || p->late || p->qp == M_NONE || class_ < 0 || p->transmission != 1 ||
		    p->life != first_life(j, p->pair))
			continue;
		n = expect_packet_fits(j->m, p, match, &first);
		for (int64_t k = 0; k < n; k++) {
			struct found *f = first + k >= 0 ? VEC_PUSH(&found) : NULL;

			if (f)
				*f = (struct found){ .qp = p->qp, .class_ = class_, .psn = first + k };
		}
	}
	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_place);
	for (size_t i = 0; i < found.n; i++)
		if (!i || by_place(&found.v[i - 1], &found.v[i]))
			json_array_append_new(list, json_pack("{s:s,s:s,s:I}", "from", end_name(j, found.v[i].qp), "class",
							      scenario_packet_class_name(found.v[i].class_), "psn",
							      (json_int_t)found.v[i].psn));
	free(found.v);
	return list;
}

/* Without packets there is nothing to sweep over; where a step broke it is not known what there would have been. */
void verdict_check_first_pass(struct judge *j, const json_t *packets)
{
	const json_t *match = json_object_get(json_object_get(j->plan, "first_pass"), "match");
	char *shown;
	int64_t all = 0;

	for (size_t i = 0; i < j->m->insts.n; i++) {
		const struct m_inst *in = &j->m->insts.v[i];

		if (in->step > 0 && !strcmp(in->outcome, "error"))
			judge_say(j, SEVERITY_ERROR, "harness", i, in->end_rec, "", "%s broke%s%s", judge_do(j, i),
				  *in->text ? ": " : "", in->text);
	}
	if (json_array_size(packets) || j->crashed || j->cut || j->wire_gone)
		return;
	for (size_t i = 0; i < j->m->packets.n; i++)
		all += j->m->packets.v[i].late ? 0 : j->m->packets.v[i].count;
	shown = json_dumps(match, JSON_COMPACT | JSON_SORT_KEYS);
	judge_say(j, SEVERITY_INCONCLUSIVE, CHECK, 0, j->m->n_recs ? j->m->n_recs - 1 : 0, "",
		  "the first pass found no packet that ${%s} could be: of %lld packets of the transfer none matches %s",
		  json_str(json_object_get(j->plan, "first_pass"), "name"), (long long)all, shown ? shown : "");
	free(shown);
}
