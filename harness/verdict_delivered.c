/* SPDX-License-Identifier: MIT */
/* What became of each request that did not succeed: whether its bytes landed; and that nothing came twice, or by a key of nothing.
 */
#include "verdict_internal.h"

#include "json.h"
#include "names.h"

static bool is_send(const char *op)
{
	return !strncmp(op, "SEND", 4);
}

static bool is_atomic(const char *op)
{
	return !strcmp(op, "CMP_AND_SWP") || !strcmp(op, "FETCH_AND_ADD");
}

static bool moves_data(const char *op)
{
	return is_send(op) || is_atomic(op) || !strncmp(op, "WRITE", 5) || !strcmp(op, "READ");
}

/* A tag is of one step, and of one of its turns. index: of a member of a list, -1: of all of it. */
static const struct m_payload *newest_look(const struct judge *j, const char *qp, int64_t tag, const char *as, int64_t index)
{
	for (size_t i = j->m->payloads.n; i-- > 0;) {
		const struct m_payload *r = &j->m->payloads.v[i];

		if (r->tag == tag && r->index == index && !strcmp(r->obj, qp) && !strcmp(r->as, as))
			return r;
	}
	return NULL;
}

static const char *qp_of(const struct judge *j, const struct m_post *p)
{
	return p->queue == M_NONE ? "" : judge_qp(j, j->m->queues.v[p->queue].qp);
}

/* More than any queue holds is no account of one. */
static bool is_accepted(const struct m_post *p)
{
	return p->accepted && p->accepted <= M_RUN_MAX;
}

static bool any_succeeded(const struct judge *j, const struct m_post *p)
{
	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];

		if (c->success && c->queue == p->queue && c->life == p->life && p->first <= c->seq && c->seq <= p->last)
			return true;
	}
	return false;
}

/* How each request of each post ended, by one walk over all completions: of[post][request]. */
enum fate { FATE_NONE, FATE_SUCCEEDED, FATE_FAILED };
struct fates {
	uint8_t **of;
	size_t n;
};

static void fates_free(struct fates *f)
{
	for (size_t i = 0; f->of && i < f->n; i++)
		free(f->of[i]);
	free(f->of);
}

static int fates_make(const struct judge *j, struct fates *f)
{
	const struct model *m = j->m;

	*f = (struct fates){ .of = calloc(m->posts.n + 1, sizeof(*f->of)), .n = m->posts.n };
	for (size_t i = 0; f->of && i < m->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[i];
		const struct m_post *p =
			c->queue == M_NONE || !m->queues.v[c->queue].send || *c->traffic ? NULL : m_comp_post(m, c);
		size_t at = p ? (size_t)(p - m->posts.v) : 0;

		if (!p || !is_accepted(p) || c->seq - p->first >= p->accepted)
			continue;
		if (!f->of[at])
			f->of[at] = calloc(p->accepted, 1);
		if (!f->of[at])
			return -ENOMEM;
		f->of[at][c->seq - p->first] = c->success ? FATE_SUCCEEDED : FATE_FAILED;
	}
	return f->of ? 0 : -ENOMEM;
}

/* What was not signaled and passed over by a later completion has succeeded in silence. */
static const char *fate_of(const struct judge *j, const struct fates *f, size_t post, uint32_t index)
{
	const struct m_post *p = &j->m->posts.v[post];
	const struct m_life *l = m_life_of(j->m, p->queue, p->life);
	enum fate fate = f->of[post] ? f->of[post][index] : FATE_NONE;

	if (fate != FATE_NONE)
		return fate == FATE_SUCCEEDED ? "succeeded" : "failed";
	return l && l->any_ended && p->first + index < l->last_ended && !m_post_signaled(j->m, p) ? "succeeded" : "unended";
}

static const char *landed(const struct m_payload *r, unsigned index)
{
	static const char *const names[] = { ['i'] = "all", ['a'] = "none", ['p'] = "part", ['s'] = "other" };
	const struct {
		unsigned n;
		char letter;
	} kinds[] = { { r ? r->intact : 0, 'i' },
		      { r ? r->absent : 0, 'a' },
		      { r ? r->partial + r->torn : 0, 'p' },
		      { r ? r->stale : 0, 's' } };

	if (r && index < strlen(r->indices) && (size_t)r->indices[index] < sizeof(names) / sizeof(names[0]) &&
	    names[(size_t)r->indices[index]])
		return names[(size_t)r->indices[index]];
	/* More messages than letters: known where they are all alike. */
	for (size_t i = 0; r && r->total && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].n == r->total)
			return names[(size_t)kinds[i].letter];
	return "unknown";
}

static void count(json_t *entry, const char *fate, const char *how)
{
	json_t *kinds = json_object_get(entry, fate);

	if (!kinds) {
		kinds = json_object();
		json_object_set_new(entry, fate, kinds);
	}
	json_object_set_new(kinds, how, json_integer(json_int(kinds, how, 0) + 1));
}

/* The requests of one step at one end: a refused member, or a batch, makes several records of it. */
static bool is_same(const struct m_post *a, const struct m_post *b)
{
	return a->queue == b->queue && a->inst == b->inst && a->tag == b->tag && !strcmp(a->as, b->as);
}

static bool is_first(const struct judge *j, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (j->m->posts.v[i].accepted && is_same(&j->m->posts.v[i], &j->m->posts.v[at]))
			return false;
	return true;
}

static json_t *one(const struct judge *j, const struct fates *f, size_t at)
{
	const struct m_post *first = &j->m->posts.v[at];
	const struct m_inst *in = &j->m->insts.v[first->inst];
	const struct m_payload *r = newest_look(j, qp_of(j, first), first->tag, first->as, -1);
	json_t *entry = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "step", in->step, "iter", in->iter, "as", first->as, "op",
				  first->op, "at", qp_of(j, first), "to", r ? r->at : "");
	unsigned index = 0, twice = r ? r->twice : 0;

	for (size_t i = at; i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];

		for (uint32_t k = 0; is_accepted(p) && is_same(first, p) && k < p->accepted; k++, index++) {
			const struct m_payload *own = r ? NULL : newest_look(j, qp_of(j, first), first->tag, first->as, index);

			count(entry, fate_of(j, f, i, k), landed(own ? own : r, own ? 0 : index));
			twice += own ? own->twice : 0;
			if (own && !*json_str(entry, "to"))
				json_object_set_new(entry, "to", json_string(own->at));
		}
	}
	if (twice)
		json_object_set_new(entry, "twice", json_integer(twice));
	return entry;
}

json_t *verdict_delivered(const struct judge *j)
{
	json_t *all = json_array();
	struct fates f;

	if (fates_make(j, &f))
		j->m->err = -ENOMEM;
	for (size_t i = 0; !j->m->err && i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];
		json_t *entry;

		if (!is_accepted(p) || p->queue == M_NONE || !j->m->queues.v[p->queue].send || *p->traffic || !p->tag || !p->size ||
		    !moves_data(p->op) || !is_first(j, i))
			continue;
		entry = one(j, &f, i);
		if (json_object_get(entry, "failed") || json_object_get(entry, "unended"))
			json_array_append(all, entry);
		json_decref(entry);
	}
	fates_free(&f);
	return all;
}

/* Where nothing is acknowledged a message may come twice, and SUCCESS tells of the sender's own end alone. */
static bool is_reliable(const struct judge *j, const char *obj)
{
	size_t qp = m_qp_find(j->m, obj, strlen(obj));

	return qp != M_NONE && qp_type_is_reliable(j->m->qps.v[qp].type);
}

static void at_most_once(struct judge *j, const struct m_payload *r)
{
	struct finding *f;

	if (!r->twice || !is_reliable(j, r->obj) || newest_look(j, r->obj, r->tag, r->as, r->index) != r)
		return;
	f = judge_find(j, SEVERITY_FAIL, "delivered", r->inst, r->rec, r->obj);
	if (!f)
		return;
	finding_set(f, f->expected, is_atomic(r->op) ? "each atomic applied at most once" : "each message delivered at most once");
	finding_set(f, f->seen, "%u of the %u of `%s` twice at %s", r->twice, r->total, r->as, r->at);
	finding_set(f, f->text, "%s: expected %s, seen %s", r->obj, f->expected, f->seen);
}

static void accepted_by_nothing(struct judge *j, const struct m_kept *k, const char *seen)
{
	const char *qp = json_str(k->r, "obj"), *as = json_str(k->r, "as"), *mr = json_str(k->r, "mr"),
		   *key = json_str(k->r, "rkey");
	struct finding *f = judge_find(j, SEVERITY_FAIL, "delivered", k->inst, k->rec, qp);

	if (!f)
		return;
	finding_set(f, f->expected, "nothing accepted by %s, no key of anything there when `%s` was posted", key ? key : "?",
		    as ? as : "?");
	finding_set(f, f->seen, "%s", seen);
	finding_set(f, f->text, "%s: expected %s, seen %s at %s", qp ? qp : "?", f->expected, f->seen, mr ? mr : "?");
}

/* Another post with the same message: what lies there may be that one's. */
static bool is_posted_again(const struct judge *j, const struct m_post *p)
{
	for (size_t i = 0; i < j->m->posts.n; i++)
		if (j->m->posts.v[i].accepted && j->m->posts.v[i].queue == p->queue && j->m->posts.v[i].tag == p->tag &&
		    j->m->posts.v[i].inst != p->inst)
			return true;
	return false;
}

static void one_key(struct judge *j, const struct m_kept *k)
{
	const char *qp = json_str(k->r, "obj");

	for (size_t i = 0; qp && i < j->m->posts.n; i++) {
		const struct m_post *p = &j->m->posts.v[i];
		const struct m_payload *r;

		if (!p->accepted || p->inst != k->inst || p->rec < k->rec || p->tag != json_int(k->r, "tag", 0) ||
		    strcmp(qp_of(j, p), qp))
			continue;
		if (is_reliable(j, qp) && any_succeeded(j, p)) {
			accepted_by_nothing(j, k, "SUCCESS");
			return;
		}
		r = is_posted_again(j, p) ? NULL : newest_look(j, qp, p->tag, p->as, -1);
		if (r && (r->intact || r->partial))
			accepted_by_nothing(j, k, r->intact ? "its bytes" : "a part of its bytes");
		return;
	}
}

void verdict_check_delivered(struct judge *j)
{
	for (size_t i = 0; i < j->m->payloads.n; i++)
		at_most_once(j, &j->m->payloads.v[i]);
	for (size_t i = 0; i < j->m->kept.n; i++)
		if (!strcmp(j->m->kept.v[i].kind, "key"))
			one_key(j, &j->m->kept.v[i]);
}
