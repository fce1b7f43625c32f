/* SPDX-License-Identifier: MIT */
/* UC and UD: what is sent is sent once and answered by nobody, and a message to a UD QP says where it came from. */
#include "verdict_internal.h"

#include <stdio.h>

#include "grh.h"
#include "json.h"

#define CHECK "packets"

static bool is_unanswered(const struct judge *j, size_t qp)
{
	const char *type = qp == M_NONE ? "" : j->m->qps.v[qp].type;

	return !strcmp(type, "UC") || !strcmp(type, "UD");
}

static void sent_again(struct judge *j, const struct m_packet *p)
{
	struct finding *f = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, p->qp));

	if (!f)
		return;
	finding_set(f, f->expected, "each packet of a %s QP once", j->m->qps.v[p->qp].type);
	finding_set(f, f->seen, "%s, PSN %lld, sent %lld times", p->opcode, (long long)p->psn, (long long)p->transmission);
	finding_set(f, f->text, "%s: a %s QP sends nothing again: %s (packet %lld of the capture)", judge_qp(j, p->qp),
		    j->m->qps.v[p->qp].type, f->seen, (long long)p->n);
}

static void answered(struct judge *j, const struct m_packet *p)
{
	struct finding *f = judge_find(j, SEVERITY_FAIL, CHECK, p->inst, p->rec, judge_qp(j, p->qp));

	if (!f)
		return;
	finding_set(f, f->expected, "no answers of a %s QP", j->m->qps.v[p->qp].type);
	finding_set(f, f->seen, "%s, PSN %lld", p->opcode, (long long)p->psn);
	finding_set(f, f->text, "%s: a %s QP acknowledges nothing, but it sent %s (packet %lld of the capture)", judge_qp(j, p->qp),
		    j->m->qps.v[p->qp].type, f->seen, (long long)p->n);
}

void verdict_check_unanswered(struct judge *j)
{
	bool again = false, answer = false;

	for (size_t i = 0; i < j->m->packets.n; i++) {
		const struct m_packet *p = &j->m->packets.v[i];

		if (p->late || !p->known || !is_unanswered(j, p->qp) || !strcmp(p->class_, "cnp"))
			continue;
		if (strcmp(p->class_, "request") && !answer) {
			answered(j, p);
			answer = true;
		} else if (!strcmp(p->class_, "request") && p->transmission > 1 && !again) {
			sent_again(j, p);
			again = true;
		}
	}
}

/* A rule of the wire may change whatever a receiver is told. */
static bool wire_was_at_work(const struct judge *j)
{
	for (size_t i = 0; i < j->m->faults.n; i++)
		if (!strcmp(j->m->faults.v[i].name, "wire"))
			return true;
	return false;
}

static void wrong_source(struct judge *j, const struct m_comp *c, int64_t src, int64_t want)
{
	struct finding *f = judge_find(j, SEVERITY_FAIL, "unexpected", c->inst, c->rec, judge_qp(j, c->qp));

	if (!f)
		return;
	finding_set(f, f->expected, "src_qp %lld, its peer's number", (long long)want);
	finding_set(f, f->seen, "src_qp %lld", (long long)src);
	finding_set(f, f->text, "%s: a message says that it came from QP %lld, its peer is QP %lld", judge_qp(j, c->qp),
		    (long long)src, (long long)want);
}

static void no_header(struct judge *j, const struct m_comp *c, const json_t *grh)
{
	struct finding *f = judge_find(j, SEVERITY_FAIL, "unexpected", c->inst, c->rec, judge_qp(j, c->qp));

	if (!f)
		return;
	finding_set(f, f->expected, "an IP header in the %u bytes in front of the message, and IBV_WC_GRH", GRH_BYTES);
	finding_set(f, f->seen, "%s", json_is_null(grh) ? "a completion without IBV_WC_GRH" : "no IP header");
	finding_set(f, f->text, "%s: a message over RoCE came with %s: expected %s", judge_qp(j, c->qp), f->seen, f->expected);
}

/* The number that a QP had when this was recorded. */
static int64_t number_of(const struct judge *j, size_t qp, size_t rec)
{
	return json_int(m_attr_at(j->m, qp, rec), "qpn", 0);
}

/* A message to a group may come from any QP of the case. */
static bool came_by_a_group(const struct judge *j, int64_t src, size_t rec)
{
	const json_t *ah;
	bool any = false;
	size_t i;

	json_array_foreach(json_object_get(j->plan, "ahs"), i, ah)
		any |= json_object_get(ah, "group") != NULL;
	for (size_t q = 0; any && q < j->m->qps.n; q++)
		if (number_of(j, q, rec) == src)
			return true;
	return false;
}

static bool looks_right(struct judge *j, const struct m_comp *c, bool changed)
{
	const json_t *grh = json_object_get(c->datagram, "grh");
	const char *peer_name = j->m->qps.v[c->qp].peer;
	size_t peer = m_qp_find(j->m, peer_name, strlen(peer_name));
	int64_t src = json_int(c->datagram, "src_qp", -1), want = peer == M_NONE ? 0 : number_of(j, peer, c->rec);

	if (!json_int(grh, "version", 0)) {
		no_header(j, c, grh);
		return false;
	}
	if (changed || !want || src == want || came_by_a_group(j, src, c->rec))
		return true;
	wrong_source(j, c, src, want);
	return false;
}

void verdict_check_datagrams(struct judge *j)
{
	bool changed = wire_was_at_work(j);

	for (size_t i = 0; i < j->m->comps.n; i++) {
		const struct m_comp *c = &j->m->comps.v[i];

		/* One finding is enough: the rest is alike. */
		if (c->datagram && c->qp != M_NONE && !looks_right(j, c, changed))
			return;
	}
}
