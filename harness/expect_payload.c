/* SPDX-License-Identifier: MIT */
#include "expect_internal.h"

#include <errno.h>

#include "json.h"
#include "names.h"

static bool is_so(const struct m_payload *r, const char *want)
{
	if (!r->total)
		return false;
	if (!strcmp(want, "intact"))
		return r->intact == r->total;
	if (!strcmp(want, "absent"))
		return r->absent == r->total;
	if (!strcmp(want, "stale"))
		return r->stale == r->total;
	if (!strcmp(want, "torn"))
		return r->torn || r->partial;
	if (!strcmp(want, "partial"))
		return r->partial || (r->intact && r->intact < r->total);
	return false;
}

static bool is_wanted(const struct m_payload *r, const json_t *want)
{
	const json_t *all = json_is_array(want) ? want : json_object_get(want, "all"), *s;
	size_t i;

	if (json_is_string(want))
		return is_so(r, json_string_value(want));
	json_array_foreach(all, i, s)
		if (json_is_string(s) && is_so(r, json_string_value(s)))
			return true;
	return false;
}

static bool names_have(const json_t *want, const char *name)
{
	if (json_is_string(want))
		return !strcmp(json_string_value(want), name);
	return json_array_has(json_is_array(want) ? want : json_object_get(want, "all"), name);
}

/* The memory of a frozen process can be looked at later, that of one that has ended never. */
static bool is_gone(const struct m_payload *r)
{
	return *r->unreachable && strcmp(r->unreachable, "frozen");
}

static void payload_text(const struct m_payload *r, struct text *t)
{
	const struct {
		const char *name;
		unsigned n;
	} kinds[] = { { "intact", r->intact },
		      { "absent", r->absent },
		      { "partial", r->partial },
		      { "stale", r->stale },
		      { "torn", r->torn } };
	bool any = false;

	if (*r->unreachable) {
		text_add(t, "nobody can look at %s: %s", r->at, r->unreachable);
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].n) {
			text_add(t, "%s%u %s", any ? ", " : "", kinds[i].n, kinds[i].name);
			any = true;
		}
	text_add(t, "%s of %u at %s", any ? "" : "nothing", r->total, r->at);
}

/* How many ends have something of this post to look at, whether anything is still under way, whether all succeeded. */
struct posted {
	unsigned accepted_ends;
	bool under_way, reliable, all_good, empty; /* empty: messages of no bytes */
};

static struct posted posted_as(const struct model *m, const char *as, size_t inst)
{
	struct posted d = { .reliable = true, .all_good = true, .empty = true };

	for (size_t i = 0; i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];
		struct m_account a;
		bool known = false;

		if (p->inst != inst || strcmp(p->as, as) || !p->accepted || p->queue == M_NONE)
			continue;
		for (size_t k = 0; k < i; k++)
			known |= m->posts.v[k].inst == inst && m->posts.v[k].queue == p->queue && !strcmp(m->posts.v[k].as, as) &&
				 m->posts.v[k].accepted;
		a = m_account_post(m, p);
		d.accepted_ends += !known;
		d.empty &= !p->size;
		d.under_way |= a.in_flight > 0;
		if (m->queues.v[p->queue].qp != M_NONE)
			d.reliable &= qp_type_is_reliable(m->qps.v[m->queues.v[p->queue].qp].type);
		for (size_t k = 0; k < m->comps.n; k++) {
			const struct m_comp *c = &m->comps.v[k];

			if (c->queue == p->queue && c->life == p->life && p->first <= c->seq && c->seq <= p->last)
				d.all_good &= c->success;
		}
	}
	return d;
}

/* No post is named: whatever was looked at in this step at these ends, the newest look at each post. */
static void payload_at_ends(struct eval *v, const json_t *x, const json_t *want, struct part *p)
{
	const struct model *m = v->m;
	struct ends ends;

	if (expect_ends(v, x, &ends)) {
		v->m->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < m->payloads.n; i++) {
		const struct m_payload *r = &m->payloads.v[i];
		bool here = false, newest = true;

		for (size_t k = 0; k < ends.e.n; k++)
			here |= ends.e.v[k].qp != M_NONE && !strcmp(m->qps.v[ends.e.v[k].qp].name, r->at);
		for (size_t k = i + 1; k < m->payloads.n; k++)
			newest &= strcmp(m->payloads.v[k].as, r->as) || strcmp(m->payloads.v[k].at, r->at) ||
				  m->payloads.v[k].index != r->index;
		if (!here || !newest || !expect_fresh(v, r->rec))
			continue;
		text_add(&p->seen, "%s%s: ", p->seen.len ? "; " : "", r->as);
		payload_text(r, &p->seen);
		if (is_wanted(r, want))
			continue;
		p->at = r->at;
		p->state = EXPECT_PENDING;
	}
	if (!p->seen.len) {
		p->state = ends.e.n ? EXPECT_PENDING : EXPECT_BROKEN;
		text_add(&p->seen, ends.e.n ? "not looked at in this step" : "no post is named");
	}
	free(ends.e.v);
}

static bool newest_of_its_end(const struct model *m, size_t at)
{
	const json_t *r = m->kept.v[at].r;
	const char *as = json_str(r, "as"), *from = json_str(r, "from");
	size_t qp = m_qp_find(m, from, strlen(from));

	for (size_t i = qp == M_NONE ? 0 : m->qps.v[qp].traffics.n; i-- > 0 && m->qps.v[qp].traffics.v[i] > at;) {
		const char *name = json_str(m->kept.v[m->qps.v[qp].traffics.v[i]].r, "as");

		if (name && !strcmp(name, as))
			return false;
	}
	return true;
}

/* A traffic checks every message itself. False: there is none of that name. */
static bool payload_of_traffic(const struct model *m, const char *of, const json_t *want, struct part *p)
{
	bool any = false;

	for (size_t i = 0; i < m->kept.n; i++) {
		const json_t *r = m->kept.v[i].r;
		const char *as = json_str(r, "as"), *phase = json_str(r, "phase"), *from = json_str(r, "from");
		int64_t done = json_int(r, "done", 0) + json_int(r, "received", 0);
		int64_t bad = json_int(r, "bad_payload", 0), errors = json_int(r, "errors", 0);
		bool good;

		if (strcmp(m->kept.v[i].kind, "traffic") || !as || !from || strcmp(as, of) || !newest_of_its_end(m, i))
			continue;
		any = true;
		text_add(&p->seen, "%s%s: %lld messages, %lld bad, %lld failed", p->seen.len ? "; " : "", from, (long long)done,
			 (long long)bad, (long long)errors);
		good = (names_have(want, "intact") && done && !bad && !errors) || (names_have(want, "absent") && !done && !bad) ||
		       (names_have(want, "partial") && bad);
		if (good)
			continue;
		p->at = from;
		p->state = expect_worse(p->state, phase && (!strcmp(phase, "end") || !strcmp(phase, "stop")) ? EXPECT_BROKEN
													     : EXPECT_PENDING);
	}
	return any;
}

static const char *seen_name(const struct m_payload *r)
{
	static const char *const names[] = { "intact", "absent", "partial", "stale" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_so(r, names[i]))
			return names[i];
	return "";
}

/* The profile knows that the device does this instead. */
static bool is_excused(struct eval *v, const struct m_payload *r, const json_t *want)
{
	struct m_match what = { .qp = M_NONE, .rec = r->rec, .payload = json_string_value(want) };

	for (size_t i = 0; i < v->m->posts.n; i++) {
		const struct m_post *p = &v->m->posts.v[i];

		if (strcmp(p->as, r->as) || p->rec > r->rec || p->queue == M_NONE)
			continue;
		what.post = p;
		what.qp = v->m->queues.v[p->queue].qp;
	}
	return what.payload && what.qp != M_NONE && expect_excused(v, &what, seen_name(r));
}

/* The same post's memory was looked at again. */
static bool looked_at_again(const struct model *m, size_t at)
{
	const struct m_payload *r = &m->payloads.v[at];

	for (size_t i = at + 1; i < m->payloads.n; i++) {
		const struct m_payload *later = &m->payloads.v[i];

		if (*r->obj && !strcmp(later->obj, r->obj) && !strcmp(later->as, r->as) && later->tag == r->tag &&
		    later->index == r->index)
			return true;
	}
	return false;
}

/* Another member of the same list was counted for its end. */
static bool member_looked_at_later(const struct eval *v, size_t at)
{
	const struct m_payload *r = &v->m->payloads.v[at];

	for (size_t i = at + 1; r->index >= 0 && i < v->m->payloads.n; i++) {
		const struct m_payload *later = &v->m->payloads.v[i];

		if (expect_fresh(v, later->rec) && !strcmp(later->obj, r->obj) && !strcmp(later->as, r->as) && later->tag == r->tag)
			return true;
	}
	return false;
}

void expect_payload(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *want = json_object_get(x, "payload");
	const char *of = json_str(x, "of");
	const struct model *m = v->m;
	struct posted d;
	unsigned fresh = 0;

	names_text(want, &p->expected);
	if (!of) {
		payload_at_ends(v, x, want, p);
		return;
	}
	if (payload_of_traffic(m, of, want, p))
		return;
	d = posted_as(m, of, expect_post_inst(m, of));
	if (d.accepted_ends && d.empty) {
		/* Of nothing all is there, and nothing is. */
		text_add(&p->seen, "messages of 0 bytes");
		if (!names_have(want, "intact") && !names_have(want, "absent"))
			p->state = EXPECT_BROKEN;
		return;
	}
	for (size_t i = m->payloads.n; i-- > 0;) {
		const struct m_payload *r = &m->payloads.v[i];
		bool good = is_wanted(r, want);

		if (fresh >= (d.accepted_ends ? d.accepted_ends : 1) && r->index < 0)
			break;
		if (strcmp(r->as, of) || !expect_fresh(v, r->rec) || looked_at_again(m, i))
			continue;
		if (p->seen.len)
			text_add(&p->seen, "; ");
		payload_text(r, &p->seen);
		fresh += !member_looked_at_later(v, i);
		if (good || is_excused(v, r, want))
			continue;
		p->at = r->at;
		/* Behind a successful completion of a reliable connection nothing follows any more. */
		p->state = expect_worse(p->state, !d.under_way && (is_gone(r) || (d.reliable && d.all_good)) ? EXPECT_BROKEN
													     : EXPECT_PENDING);
	}
	if (fresh < (d.accepted_ends ? d.accepted_ends : 1)) {
		p->state = expect_worse(p->state, EXPECT_PENDING);
		if (!fresh)
			text_add(&p->seen, "not looked at in this step");
	}
}
