/* SPDX-License-Identifier: MIT */
/* What is on record of the two ends of a failure, asked one question at a time. */
#include "verdict_symptom.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "packet.h"

/* One thing under the names that providers give it. */
static const char *const duplicates[] = { "duplicate_request", NULL };
static const char *const out_of_sequence[] = { "out_of_seq_request", "out_of_sequence", "packet_seq_err", NULL };
static const char *const rnr_sent[] = { "send_rnr_err", "out_of_buffer", NULL };
static const char *const rnr_seen[] = { "rcvd_rnr_err", "rnr_nak_retry_err", NULL };
static const char *const sent_again[] = { "completer_retry_err", "local_ack_timeout_err", NULL };
static const char *const pkey_bad[] = { "bad_pkey_cntr", NULL };

/* Packets of one end, of a class, that went into this life's connection; eaten alone where asked for. */
static unsigned packets(const struct scene *s, size_t qp, const char *class_, bool eaten)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->j->m->packets.n; i++) {
		const struct m_packet *p = &s->j->m->packets.v[i];

		if (p->qp == qp && !p->late && (!class_ || !strcmp(p->class_, class_)) && (!eaten || !strcmp(p->fate, "eaten")) &&
		    p->t <= s->t)
			n += (unsigned)p->count;
	}
	return n;
}

/* Whoever asked for its state next found nobody to ask: later on it may be back. */
static bool is_dead(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	const struct m_state *next = NULL;
	const char *note;

	for (size_t i = 0; s->peer != M_NONE && i < m->states.n && (!next || next->t < s->t); i++)
		if (m->states.v[i].qp == s->peer)
			next = &m->states.v[i];
	note = next && next->err == EHOSTDOWN ? json_str(json_array_get(s->j->records, next->rec), "note") : NULL;
	if (!note || !strstr(note, " is dead"))
		return false;
	snprintf(why, size, "%s", note);
	return true;
}

bool symptom_peer_is_gone(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;

	for (size_t i = 0; s->peer != M_NONE && i < m->kept.n; i++) {
		const char *what = json_str(m->kept.v[i].r, "what");

		if (strcmp(m->kept.v[i].kind, "lost") || !what || strncmp(what, "agent/", 6) ||
		    strcmp(what + 6, m->qps.v[s->peer].agent))
			continue;
		snprintf(why, size, "agent %s is gone", what + 6);
		return true;
	}
	return is_dead(s, why, size);
}

bool symptom_port_is_down(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;

	for (size_t i = 0; i < m->events.n; i++) {
		const struct m_event *ev = &m->events.v[i];

		if ((strcmp(ev->event, "PORT_ERR") && strcmp(ev->event, "DEVICE_FATAL")) || ev->t > s->t)
			continue;
		snprintf(why, size, "%s told %s before it", ev->obj, ev->event);
		return true;
	}
	return false;
}

/* Its own device told so, in a step and not while it came up. */
bool symptom_own_address_is_gone(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	char device[160];

	snprintf(device, sizeof(device), "dev.%s", s->qp == M_NONE ? "" : m->qps.v[s->qp].agent);
	for (size_t i = 0; i < m->events.n; i++)
		if (!strcmp(m->events.v[i].event, "GID_CHANGE") && !strcmp(m->events.v[i].obj, device) &&
		    m->insts.v[m->events.v[i].inst].step > 0 && m->events.v[i].t <= s->t) {
			snprintf(why, size, "%s told GID_CHANGE before it", device);
			return true;
		}
	return false;
}

bool symptom_gid_has_moved(const struct scene *s, char *why, size_t size)
{
	const char *dest = scene_asked_text(s, s->qp, "dest_gid"), *gid = scene_gid(s, s->peer);
	const struct model *m = s->j->m;

	if (dest && gid && strcmp(dest, gid)) {
		snprintf(why, size, "%s sends to %s, %s is at %s", scene_name(s, s->qp), dest, scene_name(s, s->peer), gid);
		return true;
	}
	for (size_t i = 0; i < m->events.n; i++)
		if (!strcmp(m->events.v[i].event, "GID_CHANGE") && m->insts.v[m->events.v[i].inst].step > 0 &&
		    m->events.v[i].t <= s->t) {
			snprintf(why, size, "%s told GID_CHANGE before it", m->events.v[i].obj);
			return true;
		}
	return false;
}

bool symptom_is_another_qpn(const struct scene *s, char *why, size_t size)
{
	int64_t dest = scene_sent(s, "remote_qpn", scene_is_datagram(s) ? -1 : scene_asked(s, s->qp, "dest_qpn", -1)),
		own = scene_asked(s, s->peer, "qpn", -1);

	if (s->peer == M_NONE || dest < 0 || own < 0 || dest == own)
		return false;
	snprintf(why, size, "%s sends to QPN 0x%06" PRIx64 ", that of %s is 0x%06" PRIx64, scene_name(s, s->qp), (uint64_t)dest,
		 scene_name(s, s->peer), (uint64_t)own);
	return true;
}

static int32_t psn_gap(const struct scene *s)
{
	int64_t sq = scene_asked(s, s->qp, "sq_psn", -1), rq = scene_asked(s, s->peer, "rq_psn", -1);

	return s->peer == M_NONE || sq < 0 || rq < 0 || scene_is_datagram(s) ? 0 : packet_psn_diff((uint32_t)sq, (uint32_t)rq);
}

static void tell_psn(const struct scene *s, char *why, size_t size)
{
	int32_t gap = psn_gap(s);

	snprintf(why, size, "%s starts at PSN 0x%06" PRIx64 ", %s expects 0x%06" PRIx64 ": %d %s", scene_name(s, s->qp),
		 (uint64_t)scene_asked(s, s->qp, "sq_psn", 0), scene_name(s, s->peer),
		 (uint64_t)scene_asked(s, s->peer, "rq_psn", 0), gap > 0 ? gap : -gap, gap > 0 ? "ahead" : "behind");
}

bool symptom_psn_is_ahead(const struct scene *s, char *why, size_t size)
{
	const char *counter;
	int64_t n = scene_moved(s, s->peer, out_of_sequence, &counter);
	size_t len;

	if (psn_gap(s) <= 0)
		return false;
	tell_psn(s, why, size);
	len = strlen(why);
	if (n)
		snprintf(why + len, size - len, "; %s +%" PRId64 " there", counter, n);
	return true;
}

bool symptom_psn_is_behind(const struct scene *s, char *why, size_t size)
{
	if (psn_gap(s) >= 0)
		return false;
	tell_psn(s, why, size);
	return true;
}

bool symptom_peer_is_destroyed(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	const json_t *gone = s->peer == M_NONE ? NULL : scene_verb(s, "ibv_destroy_qp", scene_name(s, s->peer));

	for (size_t i = 0; gone && i < m->states.n; i++)
		if (m->states.v[i].qp == s->peer && !m->states.v[i].err && m->states.v[i].t > json_u64(gone, "t", 0) &&
		    m->states.v[i].t <= s->t)
			return false;
	if (!gone)
		return false;
	snprintf(why, size, "%s was destroyed before it", scene_name(s, s->peer));
	return true;
}

/* Before the first error of its own it was in no state in which it would answer. */
bool symptom_peer_is_not_ready(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	const char *state = NULL;

	for (size_t i = 0; s->peer != M_NONE && i < m->states.n; i++) {
		const struct m_state *st = &m->states.v[i];

		if (st->qp == s->peer && *st->new_ && st->t < s->t)
			state = st->new_;
	}
	if (!state || !strcmp(state, "RTR") || !strcmp(state, "RTS") || !strcmp(state, "SQD") || !strcmp(state, "SQE"))
		return false;
	snprintf(why, size, "%s was in %s: it answers nothing", scene_name(s, s->peer), state);
	return true;
}

static int64_t packet_bytes(const struct scene *s)
{
	int64_t mtu = scene_asked(s, s->qp, "path_mtu", 0), size = s->post ? (int64_t)s->post->size : 0;

	return mtu && size > mtu ? mtu : size;
}

bool symptom_path_mtus_differ(const struct scene *s, char *why, size_t size)
{
	int64_t own = scene_asked(s, s->qp, "path_mtu", 0), other = s->peer == M_NONE ? 0 : scene_asked(s, s->peer, "path_mtu", 0);
	int64_t low = own < other ? own : other;

	if (!own || !other || own == other || !s->post || (int64_t)s->post->size <= low)
		return false;
	snprintf(why, size, "path_mtu is %" PRId64 " at %s and %" PRId64 " at %s, the message has %" PRIu64 " bytes", own,
		 scene_name(s, s->qp), other, scene_name(s, s->peer), s->post->size);
	return true;
}

/* Shorter ones of this pair came through. */
bool symptom_longer_is_lost(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	int64_t longest = 0;

	for (size_t i = 0; s->post && i < m->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[i];
		const struct m_post *p = c->qp == s->qp && c->success && !c->recv ? m_comp_post(m, c) : NULL;

		if (p && !*p->traffic && c->t < s->t && (int64_t)p->size > longest)
			longest = (int64_t)p->size;
	}
	if (!longest || packet_bytes(s) <= longest)
		return false;
	snprintf(why, size,
		 "messages up to %" PRId64 " bytes arrived, packets of %" PRId64 " did not: look at the MTU of every hop", longest,
		 packet_bytes(s));
	return true;
}

/* The request was executed, or seen again and again, at the peer. */
bool symptom_answers_are_lost(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	const char *counter;
	int64_t n = s->peer == M_NONE ? 0 : scene_moved(s, s->peer, duplicates, &counter);
	unsigned eaten = packets(s, s->peer, "ack", true) + packets(s, s->peer, "read_response", true) +
			 packets(s, s->peer, "atomic_ack", true);

	if (s->peer == M_NONE)
		return false;
	if (eaten) {
		snprintf(why, size, "%u answers of %s were lost on the way back", eaten, scene_name(s, s->peer));
		return true;
	}
	if (n) {
		snprintf(why, size, "%s had seen the request before: %s +%" PRId64, scene_name(s, s->peer), counter, n);
		return true;
	}
	for (size_t i = 0; s->post && i < m->payloads.n; i++)
		if (m->payloads.v[i].tag == s->post->tag && m->payloads.v[i].intact) {
			snprintf(why, size, "what was sent is there at %s", m->payloads.v[i].at);
			return true;
		}
	return false;
}

bool symptom_no_retries(const struct scene *s, char *why, size_t size)
{
	unsigned eaten = packets(s, s->qp, "request", true) + (s->peer == M_NONE ? 0 : packets(s, s->peer, NULL, true));

	if (scene_asked(s, s->qp, "retry_cnt", -1) != 0)
		return false;
	snprintf(why, size, "%s has retry_cnt 0, and %u packets were lost", scene_name(s, s->qp), eaten);
	return eaten > 0;
}

bool symptom_wrong_pkey(const struct scene *s, char *why, size_t size)
{
	const char *counter;
	int64_t n = s->peer == M_NONE ? 0 : scene_moved(s, s->peer, pkey_bad, &counter);

	if (!n)
		return false;
	snprintf(why, size, "%s +%" PRId64 " at %s", counter, n, scene_name(s, s->peer));
	return true;
}

bool symptom_rnr_at_once(const struct scene *s, char *why, size_t size)
{
	if (scene_asked(s, s->qp, "rnr_retry", -1) != 0)
		return false;
	snprintf(why, size, "%s has rnr_retry 0", scene_name(s, s->qp));
	return true;
}

bool symptom_requests_are_lost(const struct scene *s, char *why, size_t size)
{
	unsigned sent = packets(s, s->qp, "request", false), eaten = packets(s, s->qp, "request", true);

	if (!eaten)
		return false;
	snprintf(why, size, "%u of %u requests of %s were lost", eaten, sent, scene_name(s, s->qp));
	return true;
}

/* Nothing shows that the peer has seen anything of it. */
bool symptom_nobody_answers(const struct scene *s, char *why, size_t size)
{
	static const char *const *const seen[] = { duplicates, out_of_sequence, rnr_sent };
	unsigned sent = packets(s, s->qp, "request", false);
	const char *counter;
	int64_t n = scene_moved(s, s->qp, sent_again, &counter);

	if (s->peer == M_NONE || packets(s, s->peer, NULL, false))
		return false;
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		const char *ignored;

		if (scene_moved(s, s->peer, seen[i], &ignored))
			return false;
	}
	if (sent)
		snprintf(why, size, "%u requests went out, and %s sent nothing", sent, scene_name(s, s->peer));
	else if (n)
		snprintf(why, size, "%s +%" PRId64 " at %s, and no counter of its peer moved with it", counter, n,
			 scene_name(s, s->qp));
	return sent || n;
}

/* Receives that the peer has posted in its present life, and how many of them have no end. */
bool symptom_receive_is_missing(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;
	const char *counter = "";
	int64_t n = s->peer == M_NONE ? 0 : scene_moved(s, s->peer, rnr_sent, &counter);
	const struct m_qp *peer = s->peer == M_NONE ? NULL : &m->qps.v[s->peer];
	size_t queue = !peer ? M_NONE : peer->srq != M_NONE ? peer->srq : peer->recv;
	const struct m_life *l = queue == M_NONE ? NULL : m_queue_life(m, queue);
	struct m_account a = { 0 };
	size_t len;

	if (!peer || (s->post && !scene_takes_receive(scene_op(s)) && strcmp(scene_op(s), "MIXED")))
		return false;
	if (l)
		a = m_account_life(m, queue, l, true);
	if (!n && !packets(s, s->peer, "rnr_nak", false) && a.accepted)
		return false;
	snprintf(why, size, "%s has posted %u receives, %u were left", queue == M_NONE ? peer->name : m->queues.v[queue].name,
		 a.accepted, a.in_flight);
	len = strlen(why);
	if (n)
		snprintf(why + len, size - len, "; %s +%" PRId64 " there", counter, n);
	return true;
}

bool symptom_rnr_for_ever(const struct scene *s, char *why, size_t size)
{
	size_t len;

	if (scene_asked(s, s->qp, "rnr_retry", 0) != 7 || !symptom_receive_is_missing(s, why, size))
		return false;
	len = strlen(why);
	snprintf(why + len, size - len, "; rnr_retry 7 never gives up");
	return true;
}

bool symptom_timer_is_off(const struct scene *s, char *why, size_t size)
{
	if (!scene_is_answered(s) || scene_asked(s, s->qp, "timeout", 1) != 0 || !s->post)
		return false;
	snprintf(why, size, "%s has timeout 0: what is lost is never sent again, and never given up", scene_name(s, s->qp));
	return true;
}

bool symptom_retries_without_end(const struct scene *s, char *why, size_t size)
{
	const char *counter;
	int64_t n = scene_moved(s, s->qp, sent_again, &counter);

	if (scene_asked(s, s->qp, "retry_cnt", 0) != 7 || !n)
		return false;
	snprintf(why, size, "retry_cnt 7, and %s +%" PRId64 " at %s: some devices take 7 for infinite", counter, n,
		 scene_name(s, s->qp));
	return true;
}

bool symptom_was_moved_to_error(const struct scene *s, char *why, size_t size)
{
	const struct m_qp *q = &s->j->m->qps.v[s->qp];
	const char *reason = m_why_error(s->j->m, s->qp, q->life, M_NONE, s->t);

	if (!reason)
		return false;
	snprintf(why, size, "%s: %s", q->name, reason);
	return true;
}

bool symptom_cq_has_overflowed(const struct scene *s, char *why, size_t size)
{
	const struct model *m = s->j->m;

	for (size_t i = 0; i < m->events.n; i++)
		if (!strcmp(m->events.v[i].event, "CQ_ERR")) {
			snprintf(why, size, "%s told CQ_ERR", m->events.v[i].obj);
			return true;
		}
	return false;
}

bool symptom_sender_waits_for_receives(const struct scene *s, char *why, size_t size)
{
	const char *counter;
	int64_t n = scene_moved(s, s->qp, rnr_seen, &counter);

	if (!n)
		return false;
	snprintf(why, size, "%s +%" PRId64 " at %s: each costs the peer's min_rnr_timer", counter, n, scene_name(s, s->qp));
	return true;
}

/* Every connected queue pair can do it: it is not the operation that the device objects to. */
bool symptom_is_plain_operation(const struct scene *s, char *why, size_t size)
{
	if (strcmp(scene_provider(s), "rxe") || (!scene_takes_receive(scene_op(s)) && !scene_right(scene_op(s))))
		return false;
	snprintf(why, size, "%s is an operation that the queue pair can do, and this device says LOC_QP_OP_ERR of a key too",
		 scene_op(s));
	return true;
}
