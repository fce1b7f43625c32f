/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>
#include <stdio.h>

#include "json.h"

/* The newest message of this end's present life, or NULL. */
static const struct m_comp *newest(const struct model *m, const struct m_end *end)
{
	for (size_t i = m->comps.n; i-- > 0;) {
		const struct m_comp *c = &m->comps.v[i];

		if (c->qp == end->qp && c->datagram && c->success && (!end->life || end->life == c->qp_life))
			return c;
	}
	return NULL;
}

/* As it was asked for, or as the profile says of that attribute of the sender's path. */
static bool field_holds(struct eval *v, const struct m_comp *c, const char *key, const json_t *want, const json_t *have)
{
	struct m_match what = { .qp = c->qp, .attr = key, .rec = v->m->n_recs };
	char device[32];

	if (!json_is_integer(have))
		return false;
	snprintf(device, sizeof(device), "%lld", (long long)json_integer_value(have));
	return cmp_holds(v->m, want, json_integer_value(have), NULL) == 1 || expect_excused(v, &what, device);
}

static enum expect_state compare(struct eval *v, const json_t *want, const struct m_comp *c, struct text *seen)
{
	const json_t *grh = c ? json_object_get(c->datagram, "grh") : NULL, *value;
	enum expect_state state = EXPECT_MET;
	const char *key;

	if (!c) {
		text_add(seen, "no message");
		return EXPECT_PENDING;
	}
	if (!json_object_get(grh, "version")) {
		text_add(seen, "a completion without IBV_WC_GRH");
		return EXPECT_PENDING;
	}
	json_object_foreach((json_t *)want, key, value) {
		const json_t *have = json_object_get(grh, key);

		text_add(seen, "%s%s ", seen->len ? ", " : "", key);
		if (json_is_integer(have))
			text_add(seen, "%lld", (long long)json_integer_value(have));
		else
			text_add(seen, "nothing");
		if (!field_holds(v, c, key, value, have))
			state = EXPECT_PENDING;
	}
	return state;
}

void expect_grh(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *want = json_object_get(x, "grh"), *value;
	const char *key;
	struct ends ends;

	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	json_object_foreach((json_t *)want, key, value) {
		text_add(&p->expected, "%s%s ", p->expected.len ? ", " : "", key);
		cmp_text(v->m, value, &p->expected);
	}
	for (size_t i = 0; i < ends.e.n; i++) {
		const struct m_end *end = &ends.e.v[i];
		struct text seen = { .len = 0 };
		enum expect_state state = end->qp == M_NONE ? EXPECT_BROKEN : compare(v, want, newest(v->m, end), &seen);

		text_add(&p->seen, "%s%s", p->seen.len ? "; " : "", seen.b);
		if (state != EXPECT_MET && !p->at)
			p->at = end->qp != M_NONE ? v->m->qps.v[end->qp].name : end->obj;
		p->state = expect_worse(p->state, state);
	}
	if (!ends.e.n)
		p->state = EXPECT_BROKEN;
	free(ends.e.v);
}
