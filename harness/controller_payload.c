/* SPDX-License-Identifier: MIT */
/* What was posted, what of it succeeded, and whether the bytes are there: looked at before anything overwrites them. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "json.h"
#include "units.h"
#include "wrid.h"

void posts_add(struct case_run *r, struct post *p)
{
	DL_APPEND(r->posts, p);
	p->older = p->qp->posts;
	p->qp->posts = p;
}

void posts_free(struct case_run *r)
{
	struct post *p;

	while (r->posts) {
		p = r->posts;
		DL_DELETE(r->posts, p);
		free(p);
	}
}

/* How many ids of [first, last] lie in [lo, hi]; both runs are of one queue and life. */
static unsigned overlap(uint64_t first, uint64_t last, uint64_t lo, uint64_t hi)
{
	struct wrid a = wrid_decode(first), z = wrid_decode(last), l = wrid_decode(lo), h = wrid_decode(hi);
	uint32_t from, to;

	if (a.life != l.life || a.queue != l.queue)
		return 0;
	from = a.seq > l.seq ? a.seq : l.seq;
	to = z.seq < h.seq ? z.seq : h.seq;
	return from <= to ? to - from + 1 : 0;
}

static bool is_send_side(const struct post *p, const char *obj)
{
	size_t len = strlen(p->qp->name);

	return obj && strncmp(obj, p->qp->name, len) == 0 && strcmp(obj + len, ".send") == 0;
}

/* They are numbered in order. */
static void members_accepted(struct case_run *r, const struct post *list)
{
	for (struct post *p = r->posts; p; p = p->next) {
		if (p->list != list || p->index >= list->accepted)
			continue;
		p->accepted = 1;
		p->t_ns = list->t_ns;
		p->first = p->last = list->first + p->index;
		p->has_ids = true;
	}
}

static void note_post(struct case_run *r, const json_t *rec)
{
	struct post *p;
	uint32_t tag = (uint32_t)json_int(rec, "tag", 0);

	if (json_str(rec, "traffic") && json_str(rec, "obj") && json_int(rec, "accepted", 0) > 0)
		json_object_set_new(r->traffic_posts, json_str(rec, "obj"), json_integer((json_int_t)now_ns()));
	if (!tag || json_str(rec, "traffic"))
		return;
	/* The newest entry with this tag at this queue that has no ids yet. */
	for (p = r->posts ? r->posts->prev : NULL; p; p = p == r->posts ? NULL : p->prev) {
		if (p->tag != tag || p->list || p->has_ids || !is_send_side(p, json_str(rec, "obj")))
			continue;
		p->accepted = (unsigned)json_int(rec, "accepted", 0);
		p->t_ns = now_ns();
		p->first = json_u64(rec, "first", 0);
		p->last = json_u64(rec, "last", 0);
		p->has_ids = p->accepted > 0;
		members_accepted(r, p);
		return;
	}
}

/* The newest post at the QP whose send queue that is. */
static struct post *newest_at(struct case_run *r, const char *queue)
{
	size_t len = queue ? strlen(queue) : 0;
	struct object *qp = NULL;

	if (len > 5 && strcmp(queue + len - 5, ".send") == 0)
		HASH_FIND(hh, r->objects, queue, len - 5, qp);
	return qp ? qp->posts : NULL;
}

/* A completion of a request that came after all of this post, and so after all before it. */
static bool is_of_later(uint64_t wr_id, const struct post *p)
{
	struct wrid of = wrid_decode(wr_id), end = wrid_decode(p->last);

	return of.life == end.life ? of.queue == end.queue && of.seq > end.seq : ((of.life - end.life) & 0xfff) < 0x800;
}

static void note_wc(struct case_run *r, const json_t *rec)
{
	const char *status = json_str(rec, "status"), *obj = json_str(rec, "obj");
	uint64_t first = json_u64(rec, "first", 0), last = json_u64(rec, "last", first);
	char key[2 * CTL_NAME_MAX];
	struct post *p;

	snprintf(key, sizeof key, "%s %s", obj ? obj : "?", status ? status : "?");
	json_object_set_new(r->wc_counts, key, json_integer(json_int(r->wc_counts, key, 0) + json_int(rec, "count", 1)));
	for (p = newest_at(r, obj); p; p = p->older) {
		unsigned n;

		if (!p->has_ids)
			continue;
		if (is_of_later(first, p))
			return;
		n = overlap(first, last, p->first, p->last);
		if (status && strcmp(status, "SUCCESS") == 0)
			p->succeeded += n;
		else
			p->failed += n;
	}
}

void posts_note(struct case_run *r, const json_t *rec)
{
	const char *kind = json_str(rec, "kind");

	if (kind && strcmp(kind, "post") == 0)
		note_post(r, rec);
	else if (kind && strcmp(kind, "wc") == 0)
		note_wc(r, rec);
}

#define LOOKS_MAX 4
#define PAYLOAD_LETTERS_MAX 256 /* as the agent's */

static json_t *verify_request(const struct post *p)
{
	unsigned count = p->accepted ? p->accepted : p->count;
	json_t *req;

	if (p->find)
		return json_pack("{s:s,s:s,s:I,s:i,s:I,s:I,s:s*}", "op", "find", "qp", p->qp->peer, "size", (json_int_t)p->size,
				 "count", (int)count, "tag", (json_int_t)p->tag, "index", (json_int_t)p->index, "srq", p->srq);
	req = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:i,s:I,s:I}", "op", "verify", "mr", p->mr, "off", (json_int_t)p->off, "size",
			(json_int_t)p->size, "stride", (json_int_t)p->stride, "slots", (json_int_t)p->slots, "count", (int)count,
			"tag", (json_int_t)p->tag, "index", (json_int_t)p->index);
	if (p->atomic) {
		json_object_set_new(req, "word", json_hex(p->after));
		json_object_set_new(req, "was", json_hex(p->before));
		if (strcmp(p->op, "FETCH_AND_ADD") == 0 && p->after != p->before)
			json_object_set_new(req, "again", json_hex(p->after + (p->after - p->before)));
	}
	return req;
}

/* An atomic that succeeded has brought back what was there before it. */
static int check_answers(struct case_run *r, const struct post *p, json_t *reply, struct error *e)
{
	unsigned count = p->succeeded < p->count ? p->succeeded : p->count, wrong = 0;
	json_t *req, *landed = NULL;
	const char *there = json_str(reply, "indices"), *back;
	char letters[PAYLOAD_LETTERS_MAX + 1];
	int rc;

	if (!count || !there)
		return 0;
	req = json_pack("{s:s,s:o,s:I,s:I,s:I,s:I,s:i,s:o}", "op", "verify", "mr", json_sprintf("%s.tx", p->qp->name), "off",
			(json_int_t)p->land_off, "size", (json_int_t)p->size, "stride", (json_int_t)p->stride, "slots",
			(json_int_t)p->slots, "count", (int)count, "word", json_hex(p->before));
	rc = ask(r, p->qp->agent, req, 0, &landed, e);
	back = rc < 0 ? NULL : json_str(landed, "indices");
	snprintf(letters, sizeof letters, "%s", there);
	for (size_t i = 0; back && back[i] && letters[i]; i++)
		if (letters[i] == 'i' && back[i] != 'i') {
			letters[i] = 's';
			wrong++;
		}
	if (wrong) {
		json_object_set_new(reply, "indices", json_string(letters));
		json_object_set_new(reply, "intact", json_integer(json_int(reply, "intact", 0) - wrong));
		json_object_set_new(reply, "stale", json_integer(json_int(reply, "stale", 0) + wrong));
	}
	json_decref(landed);
	return rc < 0 ? rc : 0;
}

static const struct post *whole(const struct post *p)
{
	return p->list ? p->list : p;
}

/* Their receives lie in the memory of one SRQ. */
static bool peers_share_receives(struct case_run *r, const struct object *one, const struct object *other)
{
	const struct object *a = ctl_object_find(r, one->peer), *b = ctl_object_find(r, other->peer);
	const char *srq = a ? json_str(a->plan, "srq") : NULL, *its = b ? json_str(b->plan, "srq") : NULL;

	return srq && its && !strcmp(srq, its);
}

/* The same message was posted again, on purpose, or by another end to the same receives: it may be there as often. */
static bool is_posted_again(struct case_run *r, const struct post *p)
{
	for (const struct post *q = r->posts; q; q = q->next)
		if (whole(q) != whole(p) && q->tag == p->tag && (q->qp == p->qp || peers_share_receives(r, q->qp, p->qp)))
			return true;
	return false;
}

static void payload_record(struct case_run *r, const struct post *p, const char *at, const json_t *reply, const char *why)
{
	static const char *const counts[] = { "intact", "absent", "partial", "stale" };
	unsigned total = p->accepted ? p->accepted : p->count;
	json_t *rec = json_pack("{s:s,s:s,s:I,s:s,s:s,s:i,s:i,s:s,s:i}", "kind", "payload", "as", p->as, "tag", (json_int_t)p->tag,
				"op", p->op, "at", at, "total", (int)total, "of_step", p->step, "obj", p->qp->name, "succeeded",
				(int)p->asked_succeeded);

	for (size_t i = 0; reply && i < 4; i++)
		json_object_set_new(rec, counts[i], json_integer(json_int(reply, counts[i], 0)));
	if (reply && json_object_get(reply, "indices"))
		json_object_set(rec, "indices", json_object_get(reply, "indices"));
	if (reply && json_int(reply, "twice", 0) && !is_posted_again(r, p))
		json_object_set(rec, "twice", json_object_get(reply, "twice"));
	if (p->list)
		json_object_set_new(rec, "index", json_integer(p->index));
	if (why)
		json_object_set_new(rec, "unreachable", json_string(why));
	case_record(r, "controller", rec);
}

static unsigned ended(const struct post *p)
{
	return p->succeeded + p->failed;
}

static void look_begins(struct post *p)
{
	p->asked_at = ended(p);
	p->asked_succeeded = p->succeeded;
}

static const struct ctl_agent *looked_at_by(struct case_run *r, const struct post *p)
{
	const struct object *peer = p->find ? ctl_object_find(r, p->qp->peer) : NULL;

	return agent_find(r, p->find ? (peer ? peer->agent : "") : p->mr_agent);
}

int64_t payload_process(struct case_run *r, const struct post *p)
{
	const struct ctl_agent *a = looked_at_by(r, p);

	return a ? json_int(a->hello, "pid", 0) : 0;
}

/* Memory of the same name in a process that was started later is another one. */
static const char *why_not(struct case_run *r, const struct post *p)
{
	const struct ctl_agent *a = looked_at_by(r, p);
	const char *why = agent_unreachable(a);

	return why || payload_process(r, p) == p->process ? why : "gone with its process or device";
}

void payload_lost(struct case_run *r, const char *agent)
{
	for (struct post *p = r->posts; p; p = p->next) {
		const struct ctl_agent *a = looked_at_by(r, p);

		if (a && strcmp(a->name, agent) == 0)
			p->process = -1;
	}
}

static void conclude(struct case_run *r, struct post *p, const json_t *reply, const char *why)
{
	payload_record(r, p, p->find ? p->qp->peer : p->mr, why ? NULL : reply, why);
	p->out_of_reach = why != NULL;
	if (why)
		return;
	p->verified = true;
	p->verified_at = p->asked_at;
}

void payload_verify(struct case_run *r, struct post *p)
{
	const struct ctl_agent *a = looked_at_by(r, p);
	const char *agent = a ? a->name : "", *why = why_not(r, p);
	unsigned looks = 0;
	json_t *reply = NULL;
	struct error e = { "" };

	if (!p->data)
		return;
	/* What completed while the agent looked may have landed after it looked. */
	do {
		json_decref(reply);
		reply = NULL;
		look_begins(p);
		if (!why &&
		    (ask(r, agent, verify_request(p), 0, &reply, &e) < 0 || (p->atomic && check_answers(r, p, reply, &e) < 0)))
			why = e.text;
	} while (!why && ended(p) != p->asked_at && ++looks < LOOKS_MAX);
	conclude(r, p, reply, why);
	json_decref(reply);
}

static bool was_looked_at(const struct post *p)
{
	return p->verified && p->verified_at == ended(p);
}

/* That its agent is out of reach is said once; it is looked at when the agent is back. */
static bool can_be_looked_at(struct case_run *r, const struct post *p)
{
	return p->data && !(p->out_of_reach && why_not(r, p));
}

static bool owes_a_look(struct case_run *r, const struct post *p)
{
	return ended(p) && !was_looked_at(p) && can_be_looked_at(r, p);
}

void payload_unended(struct case_run *r, const struct ends *ends)
{
	case_drain(r);
	for (struct post *p = r->posts; p; p = p->next)
		if ((!ends || ends_have(ends, p->qp)) && p->accepted > ended(p) && !was_looked_at(p) && can_be_looked_at(r, p))
			payload_verify(r, p);
}

void payload_add(struct case_run *r, struct ops *ops, uint32_t tag)
{
	struct post *p;

	case_drain(r);
	for (p = r->posts; p; p = p->next) {
		struct op *op;

		if ((tag && p->tag != tag) || p->atomic || !owes_a_look(r, p) || why_not(r, p))
			continue;
		op = ops_add(ops, looked_at_by(r, p)->name, verify_request(p));
		if (op)
			op->user = p;
		look_begins(p);
	}
}

void payload_take(struct case_run *r, const struct ops *ops)
{
	case_drain(r);
	for (const struct op *op = ops->head; op; op = op->next) {
		struct post *p = op->user;

		/* What completed while the agent looked may have landed after it looked: it owes another look. */
		if (p && p->asked_at == ended(p))
			conclude(r, p, op->reply, op->rc < 0 ? op->text : NULL);
	}
}

void payload_settle(struct case_run *r, uint32_t tag)
{
	struct ops ops = { .head = NULL };
	struct post *p;

	payload_add(r, &ops, tag);
	ops_run(r, &ops, 0, NULL);
	payload_take(r, &ops);
	ops_free(&ops);
	for (p = r->posts; p; p = p->next) {
		if ((!tag || p->tag == tag) && owes_a_look(r, p))
			payload_verify(r, p);
	}
}

/* In a repeat a name stands for the newest post of that name, at each of its ends. */
static bool is_newest(const struct post *p, const char *as, int step)
{
	if (strcmp(p->as, as) != 0 || p->step != step)
		return false;
	for (const struct post *q = p->next; q; q = q->next)
		if (whole(q) != whole(p) && strcmp(q->as, as) == 0 && q->qp == p->qp && q->step == step)
			return false;
	return true;
}

void payload_of(struct case_run *r, const char *as)
{
	struct post *p;
	bool again = true;
	int step = -1;

	for (p = r->posts; p; p = p->next)
		if (strcmp(p->as, as) == 0)
			step = p->step;
	for (p = r->posts; p; p = p->next)
		if (is_newest(p, as, step))
			payload_verify(r, p);
	/* What completed at one end while another was looked at may have landed after the look. */
	for (unsigned round = 0; again && round < LOOKS_MAX; round++) {
		again = false;
		for (p = r->posts; p; p = p->next)
			if (is_newest(p, as, step) && p->verified && p->verified_at != ended(p)) {
				payload_verify(r, p);
				again = true;
			}
	}
}

void payload_at(struct case_run *r, const struct object *qp)
{
	struct post *p;

	for (p = r->posts; p; p = p->next)
		if (!qp || p->qp == qp)
			payload_verify(r, p);
}
