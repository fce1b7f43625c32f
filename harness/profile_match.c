/* SPDX-License-Identifier: MIT */
#include "observe_model.h"

#include <stdio.h>
#include <stdlib.h>

#include "attr.h"
#include "json.h"
#include "plan.h"

static bool is(const json_t *when, const char *key, const char *have)
{
	const char *want = json_str(when, key);

	return !want || (have && !strcmp(want, have));
}

/* Both say the same, or neither says anything. */
static bool same(const json_t *when, const char *key, const char *have)
{
	const char *want = json_str(when, key);

	return want && have ? !strcmp(want, have) : !want && !have;
}

/* An end is the requester where its own send queue has an error that is no flush; its peer is the responder. */
static const char *role_of(const struct model *m, size_t qp, unsigned life)
{
	const struct m_qp *q = &m->qps.v[qp];

	for (size_t i = m_comps_of_life(q, life); i < q->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[q->comps.v[i]];

		if (!c->recv && c->qp_life == life && !c->success && strcmp(c->status, "WR_FLUSH_ERR"))
			return "requester";
	}
	return "responder";
}

/* `+100`, `drop`: this text or number. `0x64..0x7f`: a number of this range. */
static bool value_is(const json_t *value, const char *want)
{
	const char *dots = strstr(want, "..");
	char *end = NULL;
	long long first, last;

	if (json_is_string(value) && !dots)
		return !strcmp(json_string_value(value), want);
	if (!json_is_integer(value))
		return false;
	first = last = strtoll(want, &end, 0);
	if (dots && end == dots)
		last = strtoll(dots + 2, &end, 0);
	return !*end && json_integer_value(value) >= first && json_integer_value(value) <= last;
}

/* `behind`: the argument was given. `action=forge`: with this value. `forge.psn=+100`: in that map this key has this value. */
static bool has_argument(const json_t *args, const char *with)
{
	size_t len = strcspn(with, "=");
	const char *dot = memchr(with, '.', len), *key = dot ? dot + 1 : with;
	size_t key_len = (size_t)(with + len - key);
	const json_t *map = args;
	const char *name;
	json_t *value;

	if (dot) {
		map = NULL;
		json_object_foreach((json_t *)args, name, value)
			if (strlen(name) == (size_t)(dot - with) && !memcmp(name, with, strlen(name)))
				map = value;
	}
	json_object_foreach((json_t *)map, name, value)
		if (strlen(name) == key_len && !memcmp(name, key, key_len))
			return !with[len] || value_is(value, with + len + 1);
	return false;
}

bool m_profile_has_arguments(const json_t *args, const json_t *with)
{
	const json_t *one;
	size_t i;

	json_array_foreach(with, i, one)
		if (!has_argument(args, json_string_value(one)))
			return false;
	return true;
}

static size_t peer_of(const struct model *m, size_t qp)
{
	return m_qp_find(m, m->qps.v[qp].peer, strlen(m->qps.v[qp].peer));
}

/* A request of this QP ended with one of these, or would have if an entry had not excused it. */
static bool saw(const struct model *m, const struct m_match *what, size_t of, const json_t *statuses)
{
	const struct m_qp *q = of == M_NONE ? NULL : &m->qps.v[of];
	bool present = !what->life || what->life == m->qps.v[what->qp].life;

	for (size_t i = q && present ? m_comps_of_life(q, q->life) : 0; statuses && q && i < q->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[q->comps.v[i]];
		const char *spec = json_str(json_object_get(c->deviation, "when"), "spec");

		/* Of one QP's two queues either may have been polled first. */
		if (c->recv || (of != what->qp && c->rec > what->rec) || (present && c->qp_life != q->life))
			continue;
		if (json_array_has(statuses, c->status) || (spec && json_array_has(statuses, spec)))
			return true;
	}
	return !statuses;
}

static bool is_post_of(const struct model *m, const struct m_post *p, size_t qp, bool send)
{
	return p->queue != M_NONE && m->queues.v[p->queue].qp == qp && m->queues.v[p->queue].send == send && p->accepted;
}

/* Some message of the peer is longer than the shortest receive that was posted for it. */
static bool receive_is_short(const struct model *m, const struct m_match *what, const json_t *when)
{
	uint64_t shortest = UINT64_MAX, longest = 0, head = (uint64_t)json_int(m->qps.v[what->qp].plan, "head_bytes", 0);
	size_t peer = peer_of(m, what->qp);

	if (!json_str(when, "receive"))
		return true;
	for (size_t i = 0; i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];

		if (is_post_of(m, p, what->qp, false) && !*p->traffic && p->size < shortest)
			shortest = p->size;
		if (is_post_of(m, p, peer, true) && !strncmp(p->op, "SEND", 4) && p->size > longest)
			longest = p->size;
	}
	return is(when, "receive", longest + head > shortest ? "short" : "long");
}

/* The step that posted the peer's newest request until then; NULL: none did. */
static const json_t *newest_of_peer(const struct model *m, const struct m_match *what)
{
	size_t peer = peer_of(m, what->qp);
	const json_t *step = NULL;

	for (size_t i = 0; i < m->posts.n; i++)
		if (is_post_of(m, &m->posts.v[i], peer, true) && m->posts.v[i].rec <= what->rec)
			step = m->insts.v[m->posts.v[i].inst].plan;
	return step;
}

/* Which multicast group a request goes to; NULL: none. */
static const char *group_of(const struct model *m, const json_t *step)
{
	const char *group = json_str(plan_find(m->plan, "ahs", json_str(step, "ah")), "group");

	return !group ? NULL : !strcmp(group, "ff02::1") ? "all_nodes" : "other";
}

/* That of the newest message to any: it comes to whoever has joined, not to its sender's peer alone. */
static const char *newest_group(const struct model *m, const struct m_match *what)
{
	const char *group = NULL;

	for (size_t i = 0; i < m->posts.n; i++)
		if (m->posts.v[i].accepted && m->posts.v[i].rec <= what->rec && group_of(m, m->insts.v[m->posts.v[i].inst].plan))
			group = group_of(m, m->insts.v[m->posts.v[i].inst].plan);
	return group;
}

static bool request_of_peer_is(const struct model *m, const struct m_match *what, const json_t *when)
{
	const json_t *step;

	if (!is(when, "group", json_str(when, "group") ? newest_group(m, what) : NULL))
		return false;
	step = json_str(when, "peer_qkey") ? newest_of_peer(m, what) : NULL;
	return is(when, "peer_qkey", json_str(step, "qkey"));
}

static bool any_fault_reaches(const struct model *m, const struct m_match *what)
{
	for (size_t i = 0; i < m->faults.n; i++)
		if (m->faults.v[i].injected && m->faults.v[i].rec <= what->rec && m_fault_reaches(m, &m->faults.v[i], what->qp))
			return true;
	return false;
}

/* `own`: the fault was given this end, `peer`: the other one. */
static bool fault_is_at(const struct model *m, const struct m_fault *f, size_t qp, const json_t *when)
{
	const char *want = json_str(when, "fault_at");

	return !want || json_array_has(f->at, !strcmp(want, "own") ? m->qps.v[qp].name : m->qps.v[qp].peer);
}

/* One fault that reaches the QP has all that is asked of it; `none`: there is no such fault. */
static bool fault_is(const struct model *m, const struct m_match *what, const json_t *when)
{
	const json_t *with = json_object_get(when, "with");

	if (!json_str(when, "fault") && !json_str(when, "detection") && !with)
		return true;
	if (json_str(when, "fault") && !strcmp(json_str(when, "fault"), "none"))
		return !any_fault_reaches(m, what);
	for (size_t i = 0; i < m->faults.n; i++) {
		const struct m_fault *f = &m->faults.v[i];
		const json_t *args = json_object_get(m->insts.v[f->inst].plan, "args");

		if (f->injected && f->rec <= what->rec && is(when, "fault", f->name) && is(when, "detection", f->detection) &&
		    fault_is_at(m, f, what->qp, when) && m_fault_reaches(m, f, what->qp) && m_profile_has_arguments(args, with))
			return true;
	}
	return false;
}

static bool psn_is(const struct m_qp *q, const json_t *when)
{
	const json_t *planned = json_object_get(q->plan, "attr");
	int64_t psn = json_int(json_object_get(q->queried, "sq_psn") ? q->queried : planned, "sq_psn", 0);

	return is(when, "psn", psn & 0x800000 ? "upper" : "lower");
}

static bool attr_is(const struct model *m, size_t qp, const json_t *when, const char *key)
{
	const json_t *want = json_object_get(when, key);
	const struct m_qp *q = &m->qps.v[qp];
	const json_t *planned = json_object_get(q->plan, "attr");

	const json_t *have = json_object_get(q->queried, key);

	if (!want)
		return true;
	have = have ? have : json_object_get(planned, key);
	return json_is_string(want) ? value_is(have, json_string_value(want))
				    : json_integer_value(want) == json_integer_value(have);
}

static bool path_mtu_is(const struct model *m, const struct m_match *what, const json_t *when)
{
	const char *peer_name = m->qps.v[what->qp].peer;
	size_t peer = m_qp_find(m, peer_name, strlen(peer_name));
	int64_t own = json_int(m_attr_at(m, what->qp, what->rec), "path_mtu", 0);

	return peer == M_NONE ||
	       is(when, "path_mtu", own == json_int(m_attr_at(m, peer, what->rec), "path_mtu", 0) ? "same" : "differs");
}

/* The state in which the QP was last known to be; NULL: never. */
static const char *state_before(const struct model *m, size_t qp, size_t rec)
{
	for (size_t i = qp == M_NONE ? 0 : m->qps.v[qp].states.n; i-- > 0;) {
		const struct m_state *s = &m->states.v[m->qps.v[qp].states.v[i]];

		if (s->rec < rec && *s->new_)
			return s->new_;
	}
	return NULL;
}

/* A device may be in ERR before anybody is told: by the receives with which a traffic fills its queue up again nothing has come,
 * and of those before them some were flushed. */
static bool posted_on_the_way_to_error(const struct model *m, const struct m_post *p)
{
	bool failed = false;

	if (!*p->traffic || m->queues.v[p->queue].send)
		return false;
	for (size_t i = 0; i < m->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[i];

		if (c->queue != p->queue || c->life != p->life)
			continue;
		if (c->success ? c->t > p->t : c->seq >= p->first)
			return false;
		failed |= !c->success;
	}
	return failed;
}

static bool posted_in(const struct model *m, const struct m_post *p, const json_t *when)
{
	const char *want = json_str(when, "posted_in");

	if (!want || !p)
		return !want;
	return is(when, "posted_in", state_before(m, m->queues.v[p->queue].qp, p->rec)) ||
	       (!strcmp(want, "ERR") && posted_on_the_way_to_error(m, p));
}

/* Does the access leave the window that it goes through? */
static bool beyond_window(const struct model *m, const json_t *step)
{
	const char *addr = json_str(step, "addr");
	const json_t *mw = plan_find(m->plan, "mws", json_str(json_object_get(step, "to"), "mr"));
	uint64_t last = json_u64(step, "mem_off", 0) + (json_u64(step, "count", 1) - 1) * json_u64(step, "stride", 0);

	return mw && ((addr && (!strcmp(addr, "beyond") || !strcmp(addr, "before"))) ||
		      last + json_u64(step, "size", 0) > json_u64(mw, "bytes", 0));
}

static const char *target_of(const struct model *m, const json_t *step)
{
	const char *addr = json_str(step, "addr");

	return beyond_window(m, step) ? "beyond_window" : addr && !strcmp(addr, "misaligned") ? addr : NULL;
}

static bool size_is(const struct m_post *p, const json_t *when)
{
	const char *want = json_str(when, "size");
	json_t *have = json_integer((json_int_t)p->size);
	bool is_so = !want || value_is(have, want);

	json_decref(have);
	return is_so;
}

/* step: the post's, or a member of its list. */
static bool message_is(const struct model *m, const struct m_post *p, const json_t *step, const char *op, const json_t *when)
{
	const json_t *ops = json_object_get(when, "op");

	if (json_array_size(ops) && !json_array_has(ops, op))
		return false;
	if (json_str(when, "data") && !(json_bool(step, "inline", false) && json_int(step, "sge", 1) > 1))
		return false;
	if (!is(when, "lkey", json_str(step, "lkey")) || !is(when, "rkey", json_str(step, "rkey")) || !posted_in(m, p, when))
		return false;
	return is(when, "to", target_of(m, step)) && size_is(p, when);
}

/* Of a list one member will do. */
static bool request_is(const struct model *m, const struct m_post *p, const json_t *when)
{
	const json_t *step = m->insts.v[p->inst].plan, *member;
	size_t i;

	json_array_foreach(json_object_get(step, "members"), i, member)
		if (message_is(m, p, member, json_str(member, "op") ? json_str(member, "op") : p->op, when))
			return true;
	return message_is(m, p, step, p->op, when);
}

/* What is judged is a request's, or else follows from one that an end of the pair has posted in this life. */
/* One like that was posted in the present life of either queue, by then. */
static bool posted_at(const struct model *m, size_t qp, size_t rec, const json_t *when)
{
	const struct m_qp *q = qp == M_NONE ? NULL : &m->qps.v[qp];

	for (int recv = 0; q && recv < 2; recv++) {
		size_t queue = recv ? q->recv : q->send;

		for (size_t i = queue != M_NONE ? m->queues.v[queue].tried.n : 0; i-- > 0;) {
			const struct m_post *p = &m->posts.v[m->queues.v[queue].tried.v[i]];

			if (p->life && p->life < q->life)
				break;
			if (p->rec <= rec && p->life == q->life && request_is(m, p, when))
				return true;
		}
	}
	return false;
}

static bool request_fits(const struct model *m, const struct m_match *what, const json_t *when)
{
	static const char *const keys[] = { "op", "lkey", "rkey", "to", "posted_in", "data", "size" };
	const char *peer = m->qps.v[what->qp].peer;
	bool asked = false;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		asked |= json_object_get(when, keys[i]) != NULL;
	if (!asked || what->post)
		return !asked || request_is(m, what->post, when);
	return posted_at(m, what->qp, what->rec, when) || posted_at(m, m_qp_find(m, peer, strlen(peer)), what->rec, when);
}

/* Of a message of either end the first packet passed, and another one not as it was. */
static bool has_hole(const struct model *m, const struct m_match *what, const json_t *when)
{
	if (!json_str(when, "hole"))
		return true;
	for (size_t i = 0; i < m->packets.n; i++) {
		const struct m_packet *p = &m->packets.v[i];

		if (p->rec <= what->rec && p->known && (p->qp == what->qp || p->qp == peer_of(m, what->qp)) &&
		    (strstr(p->opcode, "_MIDDLE") || strstr(p->opcode, "_LAST")) && strcmp(p->fate, "passed"))
			return true;
	}
	return false;
}

/* The newest move into SQD found signaled sends without an end. */
static bool drains_work(const struct model *m, const struct m_match *what, const json_t *when)
{
	const struct m_qp *q = &m->qps.v[what->qp];
	size_t into = M_NONE;
	unsigned life = 0;
	uint64_t begun = 0, ended = 0;

	if (!json_str(when, "drain"))
		return true;
	for (size_t i = 0; i < q->states.n; i++) {
		const struct m_state *s = &m->states.v[q->states.v[i]];

		if (s->rec <= what->rec && !strcmp(s->asked, "SQD") && strcmp(s->old, "SQD")) {
			into = s->rec;
			life = s->life;
		}
	}
	for (size_t i = 0; into != M_NONE && i < m->posts.n; i++) {
		const struct m_post *p = &m->posts.v[i];

		if (is_post_of(m, p, what->qp, true) && p->life == life && p->signaled && p->rec < into)
			begun += p->accepted;
	}
	for (size_t i = 0; into != M_NONE && i < q->comps.n; i++) {
		const struct m_comp *c = &m->comps.v[q->comps.v[i]];

		ended += !c->recv && c->qp_life == life && c->rec < into ? c->count : 0;
	}
	return begun > ended;
}

static bool packets_are(const json_t *when, const json_t *match)
{
	const char *want = json_str(when, "packets");

	return want && match ? has_argument(match, want) : !want && !match;
}

static bool move_is(const struct m_match *what, const json_t *moves)
{
	char text[32];

	if (!json_array_size(moves))
		return true;
	if (!what->move)
		return false;
	snprintf(text, sizeof(text), "%s->%s", what->move->old, what->move->asked);
	return json_array_has(moves, text);
}

/* What the CQ was asked for at last before rec; *ret_rec is when. NULL: nothing. */
static const char *armed_for(const struct model *m, const char *cq, size_t rec, size_t *ret_rec)
{
	for (size_t i = m->insts.n; i-- > 0;) {
		const struct m_inst *in = &m->insts.v[i];
		const char *arm = json_str(in->plan, "arm"), *of = json_str(in->plan, "cq");

		if (!arm || !of || strcmp(of, cq) || in->end_rec == M_NONE || in->end_rec > rec)
			continue;
		*ret_rec = in->end_rec;
		return arm;
	}
	return NULL;
}

/* What was asked for, and what the CQ held that should, or should not, have answered it: both are there when the case is over. */
static bool completion_event_is(const struct model *m, const struct m_match *what, const json_t *when)
{
	const char *arm = NULL, *first = NULL;
	size_t since = 0;

	if (!same(when, "completion_event", what->completion_event))
		return false;
	if (!what->completion_event)
		return true;
	arm = armed_for(m, what->cq, what->rec, &since);
	for (size_t i = 0; arm && !first && i < m->comps.n; i++)
		if (m->comps.v[i].rec > since && !strcmp(m->comps.v[i].cq, what->cq))
			first = m->comps.v[i].status;
	return is(when, "arm", arm) && is(when, "completion", first);
}

bool m_profile_applies(const struct model *m, const json_t *entry, const struct m_match *what)
{
	const json_t *when = json_object_get(entry, "when");
	const struct m_qp *q = what->qp != M_NONE ? &m->qps.v[what->qp] : NULL;

	if (!q || !profile_entry_of_library(entry, m->rdma_core) || !same(when, "spec", what->spec) ||
	    !same(when, "event", what->event) || !same(when, "state", what->state) || !same(when, "returns", what->returns) ||
	    !same(when, "refused", what->refused) || !same(when, "recovery", what->recovery) ||
	    !same(when, "payload", what->payload) || !same(when, "attr", what->attr) || !same(when, "says", what->says) ||
	    !packets_are(when, what->match) || !completion_event_is(m, what, when) ||
	    !is(when, "link", json_bool(m->plan, "wire", false) ? "wire" : "direct"))
		return false;
	if (!is(when, "api", json_str(q->plan, "api") ? json_str(q->plan, "api") : "classic"))
		return false;
	if (!is(when, "queue", what->recv ? "recv" : "send") || !is(when, "type", q->type) ||
	    (json_str(when, "at") && !is(when, "at", role_of(m, what->qp, what->life ? what->life : q->life))))
		return false;
	if (!is(when, "path", what->path) || !move_is(what, json_object_get(when, "move")))
		return false;
	if ((json_str(when, "in") && !is(when, "in", state_before(m, what->qp, what->rec))) ||
	    (json_str(when, "notify") && !(what->came && m_event_notify_is(m, what->came, json_str(when, "notify")))))
		return false;
	if (!path_mtu_is(m, what, when) ||
	    !m_profile_has_arguments(json_object_get(what->step, "set"), json_object_get(when, "set")))
		return false;
	if (!saw(m, what, peer_of(m, what->qp), json_object_get(when, "peer")) ||
	    !saw(m, what, what->qp, json_object_get(when, "own")) || !receive_is_short(m, what, when) ||
	    !request_of_peer_is(m, what, when) || !has_hole(m, what, when) || !drains_work(m, what, when))
		return false;
	return request_fits(m, what, when) && fault_is(m, what, when) && psn_is(q, when) && attr_is(m, what->qp, when, "timeout") &&
	       attr_is(m, what->qp, when, "retry_cnt") && attr_is(m, what->qp, when, "rnr_retry");
}

const json_t *m_profile_excuse(const struct model *m, const struct m_match *what, const char *device, bool *ret_seen)
{
	const json_t *entry, *likely = NULL;
	size_t i;

	*ret_seen = false;
	if (!m->profile)
		return NULL;
	json_array_foreach(m->profile->entries, i, entry) {
		const char *value = json_str(entry, "device");

		if (!value || strcmp(value, device) || !m_profile_applies(m, entry, what))
			continue;
		if (profile_entry_seen(m->profile, entry)) {
			*ret_seen = true;
			return entry;
		}
		if (!likely || profile_entry_in_range(m->profile, entry))
			likely = entry;
	}
	return likely;
}

const json_t *m_event_excuse(const struct model *m, const struct m_event *ev, bool *ret_seen)
{
	struct m_match what = { .event = "none", .came = ev, .life = ev->life, .rec = ev->rec };

	*ret_seen = false;
	what.qp = m_qp_find(m, ev->obj, strlen(ev->obj));
	return ev->cm ? NULL : m_profile_excuse(m, &what, ev->event, ret_seen);
}

static json_t *use_of(struct model *m, const json_t *entry, int step)
{
	const char *id = json_str(entry, "id");
	json_t *use;

	if (!id)
		return NULL;
	use = json_object_get(m->used, id);
	if (!use) {
		use = json_pack("{s:i, s:i, s:i}", "deviated", 0, "specified", 0, "step", step);
		json_object_set_new(m->used, id, use);
	}
	return use;
}

static void count(json_t *use, const char *key)
{
	json_object_set_new(use, key, json_integer(json_int(use, key, 0) + 1));
}

void m_profile_used(struct model *m, const json_t *entry, int step)
{
	json_t *use = use_of(m, entry, step);

	if (!use)
		return;
	if (!json_int(use, "deviated", 0))
		json_object_set_new(use, "step", json_integer(step));
	count(use, "deviated");
}

void m_profile_specified(struct model *m, const struct m_match *what, int step)
{
	for (size_t i = 0; i < m->entries_seen.n; i++)
		if (m_profile_applies(m, m->entries_seen.v[i], what))
			count(use_of(m, m->entries_seen.v[i], step), "specified");
}

bool m_profile_waives(const json_t *entry, const char *check)
{
	return json_array_has(json_object_get(entry, "waives"), check);
}
