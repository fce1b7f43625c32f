/* SPDX-License-Identifier: MIT */
/* What the wire saw, against what was configured: where packets go, where their PSNs begin, how often and how soon they are sent
 * again. */
#include "verdict_internal.h"

#include <errno.h>
#include <stdio.h>

#include "attr.h"
#include "json.h"
#include "names.h"
#include "units.h"

#define CHECK "packets"
#define NAK_SEQUENCE 0x60
#define RNR_NAK_BITS 0x20
#define AETH_KIND_MASK 0xe0
#define AETH_VALUE_MASK 0x1f
#define RETRIES_WITHOUT_END 7
#define FINDINGS_MAX 3

struct seen {
	const struct m_packet *p;
};

/* Records of runs come when a run ends: in this order they are as they came by. */
static int by_time(const void *a, const void *b)
{
	const struct m_packet *x = ((const struct seen *)a)->p, *y = ((const struct seen *)b)->p;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	/* What a rule makes of a packet may be told before the packet itself, with one time for both: the capture has them in
	 * order. */
	if (x->n != y->n && x->n > 0 && y->n > 0)
		return x->n < y->n ? -1 : 1;
	return (x->rec > y->rec) - (x->rec < y->rec);
}

/* One direction of requests in one life of a connection, and what came back. */
struct flow {
	size_t qp;
	unsigned life, qp_life;
	const json_t *attr;
	const struct seen *p; /* all of the connection, both ways, by time */
	size_t n;
};

static bool is_request(const struct flow *f, const struct m_packet *p)
{
	return p->qp == f->qp && !p->late && !strcmp(p->class_, "request");
}

/* It got to the requester, and like this: an answer of the peer, or one that was made up for it. */
static bool is_answer(const struct flow *f, const struct m_packet *p)
{
	if (!strcmp(p->fate, "eaten") || !strcmp(p->fate, "kept") || (!strcmp(p->fate, "changed") && !p->late))
		return false;
	return p->qp != f->qp && strcmp(p->class_, "request") != 0;
}

/* These make an end send to where its peer is not, or from a PSN that is not its own. */
static bool identity_was_changed(const struct judge *j)
{
	static const char *const names[] = { "psn_mismatch", "stale_peer", "wrong_gid", "address_moved", "address_removed" };

	for (size_t i = 0; i < j->m->faults.n; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (!strcmp(j->m->faults.v[i].name, names[k]))
				return true;
	return false;
}

/* The CM's own messages, and whatever else goes to the general services: nobody's QP of the file. */
static bool to_services(const struct m_packet *p)
{
	return p->dest_qpn == 1 && !strncmp(p->opcode, "UD_", 3);
}

static bool asks_for_nobody(const json_t *step)
{
	const json_t *members = json_object_get(step, "members"), *m;
	size_t i;

	json_array_foreach(members, i, m)
		if (json_object_get(m, "qpn"))
			return true;
	return json_object_get(step, "qpn");
}

/* A post to a QP number that is nobody's, or to a multicast group: its packets are of no connection. */
static bool nobody_was_asked_for(const struct judge *j)
{
	const json_t *ah;
	size_t k;

	json_array_foreach(json_object_get(j->plan, "ahs"), k, ah)
		if (json_object_get(ah, "group"))
			return true;
	for (size_t i = 0; i < j->m->posts.n; i++)
		if (asks_for_nobody(j->m->insts.v[j->m->posts.v[i].inst].plan))
			return true;
	return false;
}

static void strangers(struct judge *j, bool to_nobody)
{
	unsigned n = 0;

	for (size_t i = 0; i < j->m->packets.n && n < FINDINGS_MAX; i++) {
		const struct m_packet *p = &j->m->packets.v[i];
		struct finding *f;

		if (p->known || p->late || to_services(p) || !strcmp(p->class_, "malformed") ||
		    (to_nobody && !strncmp(p->opcode, "UD_", 3)))
			continue;
		f = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, p->from);
		if (!f)
			return;
		n++;
		finding_set(f, f->expected, "packets of the connections that were made");
		finding_set(f, f->seen, "%s from %s for QP %lld", p->opcode, p->from, (long long)p->dest_qpn);
		finding_set(f, f->text, "a packet of no connection came by the wire: %s (packet %lld of the capture)", f->seen,
			    (long long)p->n);
	}
}

static void first_psn(struct judge *j, const struct flow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct m_packet *p = f->p[i].p;
		struct finding *out;

		if (!is_request(f, p))
			continue;
		if (p->psn == 0)
			return;
		out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));
		if (!out)
			return;
		finding_set(out, out->expected, "the first request to have the PSN that was configured");
		finding_set(out, out->seen, "%+lld from it", (long long)p->psn);
		finding_set(out, out->text,
			    "%s: life %u begins with a PSN that is not the configured one: %s (%s, packet %lld of the capture)",
			    judge_qp(j, f->qp), f->life, out->seen, p->opcode, (long long)p->n);
		return;
	}
}

/* Another wire counts transmissions from 1 again. */
static bool wire_began_between(const struct judge *j, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < j->m->faults.n; i++) {
		const struct m_fault *f = &j->m->faults.v[i];

		if (!strcmp(f->name, "wire_killed") && f->injected && f->inject_t < to && (!f->cleared || f->clear_t > from))
			return true;
	}
	return false;
}

/* A READ whose answer broke off is asked for again from where it did: the request that began before this PSN is a READ, too, and
 * reaches up to here. */
static bool is_rest_of_a_read(const struct flow *f, size_t at)
{
	const struct m_packet *p = f->p[at].p, *below = NULL;

	if (!strstr(p->opcode, "READ_REQUEST"))
		return false;
	for (size_t i = 0; i < at; i++) {
		const struct m_packet *o = f->p[i].p;

		if (is_request(f, o) && o->psn < p->psn && (!below || o->psn + o->count > below->psn + below->count))
			below = o;
	}
	return below && strstr(below->opcode, "READ_REQUEST");
}

static void order(struct judge *j, const struct flow *f)
{
	const struct m_packet *before = NULL;

	for (size_t i = 0; i < f->n; i++) {
		const struct m_packet *p = f->p[i].p;
		struct finding *out;

		if (!is_request(f, p) || p->transmission != 1)
			continue;
		/* Two packets of one moment are in the capture as they came. */
		if (!before || p->psn > before->psn || (p->n && p->n < before->n) || wire_began_between(j, before->t, p->t)) {
			before = p;
			continue;
		}
		if (is_rest_of_a_read(f, i))
			continue;
		out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));
		if (!out)
			return;
		finding_set(out, out->expected, "new requests in the order of their PSNs");
		finding_set(out, out->seen, "PSN %lld for the first time after PSN %lld", (long long)p->psn,
			    (long long)before->psn);
		finding_set(out, out->text, "%s: %s", judge_qp(j, f->qp), out->seen);
		return;
	}
}

static void too_often(struct judge *j, const struct flow *f, const struct m_packet *p, int64_t times, int64_t retries)
{
	struct finding *out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));

	if (!out)
		return;
	finding_set(out, out->expected, "at most %lld transmissions without an answer (retry_cnt %lld)", (long long)retries + 1,
		    (long long)retries);
	finding_set(out, out->seen, "%lld", (long long)times);
	finding_set(out, out->text, "%s: PSN %lld was sent %lld times with no answer between: retry_cnt %lld allows %lld",
		    judge_qp(j, f->qp), (long long)p->psn, (long long)times, (long long)retries, (long long)retries + 1);
}

static void too_soon(struct judge *j, const struct flow *f, const struct m_packet *p, uint64_t gap, uint64_t low, const char *timer)
{
	struct finding *out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));
	char want[64], got[64];

	if (!out)
		return;
	finding_set(out, out->expected, "at least %s before PSN %lld is sent again (%s)", units_format_ns(low, want, sizeof(want)),
		    (long long)p->psn, timer);
	finding_set(out, out->seen, "%s", units_format_ns(gap, got, sizeof(got)));
	finding_set(out, out->text, "%s: PSN %lld was sent again after %s: the least is %s (%s)", judge_qp(j, f->qp),
		    (long long)p->psn, got, want, timer);
}

static uint64_t grid_of(const struct judge *j)
{
	return json_u64(j->profile ? j->profile->timing : NULL, "granularity", 0);
}

/* A timer on a tick may go off as much too early; and on a busy machine a packet comes by later than it was sent, and the next one
 * may not. */
static uint64_t slack_of(const struct judge *j)
{
	return grid_of(j) + j->m->late_max_ns;
}

/* Transmissions of the oldest request with silence between them: how many, and how far apart. */
static void silences(struct judge *j, const struct flow *f)
{
	const struct m_packet *last = NULL;
	int64_t times = 0, retries = json_int(f->attr, "retry_cnt", RETRIES_WITHOUT_END);
	uint64_t t_ns = timer_ack_ns((unsigned)json_int(f->attr, "timeout", 0)), slack = slack_of(j);
	uint64_t low = t_ns > slack ? t_ns - slack : 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct m_packet *p = f->p[i].p;

		if (is_answer(f, p)) {
			last = NULL;
			times = 0;
			continue;
		}
		/* The one that is sent first again is the one that the timer is for. */
		if (!is_request(f, p) || (last && p->psn > last->psn))
			continue;
		if (!last || p->psn < last->psn) {
			last = p;
			times = 1;
			continue;
		}
		times++;
		/* Before its first repetition the timer may have been running for what was sent earlier. */
		if (times > 2 && p->t - last->t < low) {
			too_soon(j, f, p, p->t - last->t, low, "timeout");
			return;
		}
		last = p;
		if (retries < RETRIES_WITHOUT_END && times > retries + 1) {
			too_often(j, f, p, times, retries);
			return;
		}
	}
}

/* An answer to what was not sent yet is none. */
static bool was_sent(const struct flow *f, size_t before, int64_t psn)
{
	for (size_t i = 0; i < before; i++)
		if (is_request(f, f->p[i].p) && f->p[i].p->psn <= psn && f->p[i].p->psn + f->p[i].p->count > psn)
			return true;
	return false;
}

static const struct m_packet *sent_again(const struct flow *f, size_t after, int64_t psn)
{
	for (size_t i = after + 1; i < f->n; i++)
		if (is_request(f, f->p[i].p) && f->p[i].p->psn <= psn && f->p[i].p->psn + f->p[i].p->count > psn)
			return f->p[i].p;
	return NULL;
}

static void rnr_waits(struct judge *j, const struct flow *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct m_packet *nak = f->p[i].p, *p;
		uint64_t wait;

		if (!is_answer(f, nak) || nak->syndrome < 0 || (nak->syndrome & AETH_KIND_MASK) != RNR_NAK_BITS)
			continue;
		p = was_sent(f, i, nak->psn) ? sent_again(f, i, nak->psn) : NULL;
		wait = timer_rnr_ns((unsigned)nak->syndrome & AETH_VALUE_MASK);
		wait = wait > slack_of(j) ? wait - slack_of(j) : 0;
		if (p && p->t - nak->t < wait) {
			too_soon(j, f, p, p->t - nak->t, wait, "the RNR NAK's timer");
			return;
		}
	}
}

static void rnr_too_often(struct judge *j, const struct flow *f, const struct m_packet *p, int64_t times, int64_t allowed)
{
	struct finding *out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));

	if (!out)
		return;
	finding_set(out, out->expected, "at most %lld RNR retries", (long long)allowed);
	finding_set(out, out->seen, "%lld", (long long)times);
	finding_set(out, out->text, "%s: PSN %lld was sent again after %lld RNR NAKs: rnr_retry allows %lld", judge_qp(j, f->qp),
		    (long long)p->psn, (long long)times, (long long)allowed);
}

/* How often one request is sent again because of RNR NAKs. */
static void rnr_count(struct judge *j, const struct flow *f)
{
	int64_t allowed = json_int(f->attr, "rnr_retry", RETRIES_WITHOUT_END), psn = INT64_MIN, times = 0;

	for (size_t i = 0; i < f->n && allowed < RETRIES_WITHOUT_END; i++) {
		const struct m_packet *a = f->p[i].p, *p;

		if (!is_answer(f, a))
			continue;
		if (a->syndrome < 0 || (a->syndrome & AETH_KIND_MASK) != RNR_NAK_BITS || a->psn != psn)
			times = 0;
		if (a->syndrome < 0 || (a->syndrome & AETH_KIND_MASK) != RNR_NAK_BITS)
			continue;
		psn = a->psn;
		p = sent_again(f, i, psn);
		times += p != NULL;
		if (p && times > allowed) {
			rnr_too_often(j, f, p, times, allowed);
			return;
		}
	}
}

static int64_t transmissions_before(const struct flow *f, size_t at, int64_t psn)
{
	int64_t n = 0;

	for (size_t i = 0; i < at; i++) {
		const struct m_packet *p = f->p[i].p;

		n += is_request(f, p) && p->psn <= psn && p->psn + p->count > psn;
	}
	return n;
}

/* An answer that was made up may have acknowledged anything. */
static bool was_told_lies(const struct flow *f, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_answer(f, f->p[i].p) && !strcmp(f->p[i].p->fate, "invented"))
			return true;
	return false;
}

/* What is sent again after a NAK begins with the PSN that the NAK names, or earlier. */
static void go_back(struct judge *j, const struct flow *f, size_t at)
{
	const struct m_packet *nak = f->p[at].p, *first = NULL;
	struct finding *out;

	/* One that was sent again before the NAK came by may be on its way: so may those behind it. */
	if (nak->late || nak->touched || transmissions_before(f, at, nak->psn) != 1 || was_told_lies(f, at))
		return;
	for (size_t i = at + 1; i < f->n && !is_answer(f, f->p[i].p); i++) {
		const struct m_packet *p = f->p[i].p;

		if (!is_request(f, p) || p->transmission < 2)
			continue;
		if (p->psn <= nak->psn)
			return;
		first = first ? first : p;
	}
	if (!first || !(out = judge_find(j, SEVERITY_FAIL, CHECK, first->inst, first->rec, judge_qp(j, f->qp))))
		return;
	finding_set(out, out->expected, "requests again from PSN %lld, which the NAK names", (long long)nak->psn);
	finding_set(out, out->seen, "from PSN %lld", (long long)first->psn);
	finding_set(out, out->text, "%s: after a NAK of PSN %lld (packet %lld of the capture) it sends again %s",
		    judge_qp(j, f->qp), (long long)nak->psn, (long long)nak->n, out->seen);
}

static void naks(struct judge *j, const struct flow *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_answer(f, f->p[i].p) && f->p[i].p->syndrome == NAK_SEQUENCE)
			go_back(j, f, i);
}

static bool has_fault(const struct judge *j, const char *name)
{
	for (size_t i = 0; i < j->m->faults.n; i++)
		if (!strcmp(j->m->faults.v[i].name, name))
			return true;
	return false;
}

/* When the first sign came that this life of the QP is in the Error state; UINT64_MAX: never. */
static uint64_t when_in_error(const struct judge *j, const struct flow *f)
{
	uint64_t t = UINT64_MAX;

	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];

		if (c->qp == f->qp && c->qp_life == f->qp_life && !c->success && !c->late && c->t < t)
			t = c->t;
	}
	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (s->qp == f->qp && s->life == f->qp_life && !s->err && !strcmp(s->new_, "ERR") && s->t < t)
			t = s->t;
	}
	return t;
}

/* When the QP's next life began: from then on its answers to stale packets bear PSNs of this one. UINT64_MAX: never. */
static uint64_t when_over(const struct judge *j, const struct flow *f, uint64_t after)
{
	uint64_t t = UINT64_MAX;

	for (size_t i = 0; i < j->m->states.n; i++) {
		const struct m_state *s = &j->m->states.v[i];

		if (s->qp == f->qp && s->life != f->qp_life && !s->err && s->t > after && s->t < t)
			t = s->t;
	}
	return t;
}

/* A QP in the Error state sends nothing, and answers nothing. */
static void after_error(struct judge *j, const struct flow *f)
{
	uint64_t t = when_in_error(j, f), slack = slack_of(j), over;

	/* What waits in a queue of the link comes by later than it was sent. */
	if (t == UINT64_MAX || has_fault(j, "netem"))
		return;
	over = when_over(j, f, t);
	for (size_t i = 0; i < f->n; i++) {
		const struct m_packet *p = f->p[i].p;
		struct finding *out;
		char got[64];

		if (p->qp != f->qp || p->late || p->t <= t + slack || p->t >= over)
			continue;
		out = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, f->qp));
		if (!out)
			return;
		finding_set(out, out->expected, "no packets of a QP in ERR");
		finding_set(out, out->seen, "%s, PSN %lld, %s after it", p->opcode, (long long)p->psn,
			    units_format_ns(p->t - t, got, sizeof(got)));
		finding_set(out, out->text, "%s: it is in ERR and sends on: %s (packet %lld of the capture)", judge_qp(j, f->qp),
			    out->seen, (long long)p->n);
		return;
	}
}

/* What left a device malformed, or with a wrong ICRC. */
static void broken(struct judge *j)
{
	bool by_netem = has_fault(j, "netem");
	unsigned n = 0;

	for (size_t i = 0; i < j->m->packets.n && n < FINDINGS_MAX; i++) {
		const struct m_packet *p = &j->m->packets.v[i];
		bool malformed = !strcmp(p->class_, "malformed");
		struct finding *f;

		if (p->late || (!malformed && !p->icrc_bad))
			continue;
		f = judge_find(j, by_netem ? SEVERITY_WARNING : SEVERITY_FAIL, CHECK, p->inst, p->rec, p->from);
		if (!f)
			return;
		n++;
		finding_set(f, f->expected, "well-formed packets with the right ICRC");
		finding_set(f, f->seen, malformed ? "a malformed packet: %s" : "a wrong ICRC: %s", malformed ? p->why : p->opcode);
		finding_set(f, f->text, "%s sent %s (packet %lld of the capture)%s", p->from, f->seen, (long long)p->n,
			    by_netem ? "; netem was at work" : "");
	}
}

static void flow(struct judge *j, struct flow *f, bool identity)
{
	bool reliable = qp_type_is_reliable(j->m->qps.v[f->qp].type);

	if (!identity) {
		first_psn(j, f);
		order(j, f);
	}
	if (!reliable) { /* what must not come is a check of its own */
		after_error(j, f);
		return;
	}
	silences(j, f);
	rnr_waits(j, f);
	rnr_count(j, f);
	naks(j, f);
	after_error(j, f);
}

static void connection(struct judge *j, const struct m_connection *c, bool identity)
{
	struct seen *list = calloc(j->m->packets.n + 1, sizeof(*list));
	size_t n = 0;

	if (!list) {
		j->m->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < j->m->packets.n; i++)
		if (j->m->packets.v[i].life == c->life && !strcmp(j->m->packets.v[i].pair, c->pair))
			list[n++].p = &j->m->packets.v[i];
	qsort(list, n, sizeof(*list), by_time);
	for (size_t k = 0; n && k < 2; k++) {
		struct flow f = { .qp = c->end[k].qp, .life = c->life, .qp_life = c->end[k].life, .p = list, .n = n };

		if (f.qp == M_NONE)
			continue;
		f.attr = judge_attr_at(j, f.qp, list[n - 1].p->rec);
		flow(j, &f, identity);
	}
	free(list);
}

void verdict_check_packets(struct judge *j)
{
	bool identity = identity_was_changed(j), to_nobody = nobody_was_asked_for(j);

	if (!identity)
		strangers(j, to_nobody);
	broken(j);
	for (size_t i = 0; i < j->m->connections.n; i++)
		connection(j, &j->m->connections.v[i], identity || to_nobody);
}
