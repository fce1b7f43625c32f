/* SPDX-License-Identifier: MIT */
/* post, post_recv, poll: the request of the file with what the ends were told of each other. */
#include "controller_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "controller_xrc.h"
#include "json.h"
#include "remote.h"

#define ATOMIC_START 0x5eed000000000000ULL
#define TAG_ITERATIONS 4096 /* the plan leaves the low bits of a tag to iterations */

static bool is_atomic(const char *op)
{
	return strcmp(op, "CMP_AND_SWP") == 0 || strcmp(op, "FETCH_AND_ADD") == 0;
}

static bool is_send(const char *op)
{
	return strncmp(op, "SEND", 4) == 0;
}

static bool is_remote(const char *op)
{
	return strncmp(op, "WRITE", 5) == 0 || strcmp(op, "READ") == 0 || is_atomic(op);
}

static int64_t number(struct case_run *r, const json_t *step, const char *key, int64_t def, struct error *e, int *rc)
{
	int64_t v = def;

	if (!*rc)
		*rc = value_resolve(r, json_object_get(step, key), def, &v, e);
	return v;
}

static struct post *post_named(struct case_run *r, const char *as, const struct object *qp)
{
	struct post *p, *found = NULL;

	for (p = r->posts; p; p = p->next)
		if (strcmp(p->as, as) == 0 && p->qp == qp)
			found = p;
	return found;
}

/* The key that a request invalidates: its own window's, or the one that it was told of its peer's. */
static int invalidated_key(struct case_run *r, const struct object *qp, const json_t *message, json_t *req, struct error *e)
{
	const char *name = json_str(message, "mw"), *which = json_str(message, "rkey");
	const struct object *mw = ctl_object_find(r, name);
	const json_t *told = json_object_get(json_object_get(qp->told, "keys"), name ? name : "");
	uint64_t rkey;

	if (!mw || !mw->life)
		return error_set(e, -ENOENT, "there is no window %s", name ? name : "(none named)");
	if (strcmp(mw->agent, qp->agent) != 0 && !told)
		return error_set(e, -ENOKEY, "%s was never told the key of %s", qp->name, name);
	rkey = strcmp(mw->agent, qp->agent) == 0 ? mw->rkey : json_u64(told, "rkey", 0);
	if (which && strcmp(which, "wrong") == 0)
		rkey ^= 0xffffffffu;
	if (which && strcmp(which, "old") == 0)
		rkey = mw->old_rkey;
	json_object_set_new(req, "inv_rkey", json_integer((json_int_t)rkey));
	return 0;
}

/* What a window's request says of it. */
static int window_request(struct case_run *r, const struct object *qp, const json_t *message, json_t *req, struct error *e)
{
	const char *op = json_str(message, "op");
	const struct object *mw = ctl_object_find(r, json_str(message, "mw"));

	if (!op) /* a list: its members say */
		return 0;
	if (strcmp(op, "LOCAL_INV") == 0 || strcmp(op, "SEND_WITH_INV") == 0)
		return invalidated_key(r, qp, message, req, e);
	if (strcmp(op, "BIND_MW") != 0)
		return 0;
	if (!mw)
		return error_set(e, -ENOENT, "BIND_MW names no window");
	json_object_set_new(req, "mw", json_string(mw->name));
	json_object_set(req, "mr", json_object_get(mw->plan, "over"));
	json_object_set(req, "off", json_object_get(mw->plan, "offset"));
	json_object_set(req, "access", json_object_get(mw->plan, "access"));
	return 0;
}

/* A key of nothing that is there by now opens nothing, whatever it was, and whoever was told it. */
static void note_key(struct case_run *r, const struct post *p, const char *mr, uint64_t rkey)
{
	const struct object *peer = ctl_object_find(r, p->qp->peer), *o;

	for (o = r->objects; peer && o; o = o->hh.next)
		if ((o->type == OBJECT_MR || o->type == OBJECT_MW) && o->exists && o->rkey == rkey &&
		    strcmp(o->agent, peer->agent) == 0)
			return;
	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:s,s:I,s:s,s:o}", "kind", "key", "obj", p->qp->name, "as", p->as, "tag",
			      (json_int_t)p->tag, "mr", mr, "rkey", json_hex(rkey)));
}

/* What a member says of numbers and keys is resolved as for a post of its own. */
static int resolve_member(struct case_run *r, const struct object *qp, const char *mem, const json_t *place, json_t *m,
			  struct error *e)
{
	const char *op = json_str(m, "op"), *key;
	json_t *value, *remote;
	void *next;
	int rc = 0;

	json_object_foreach_safe(m, next, key, value)
	{
		int64_t n = 0;

		if (!json_object_get(value, "ref"))
			continue;
		rc = value_resolve(r, value, 0, &n, e);
		if (rc)
			return rc;
		json_object_set_new(m, key, json_integer((json_int_t)n));
	}
	if (json_object_get(m, "ah") || json_object_get(m, "qkey") || json_object_get(m, "qpn"))
		datagram_address(r, qp, m, m);
	if (json_object_get(m, "srq") || json_object_get(m, "srqn"))
		xrc_address(r, qp, m, m);
	if (op)
		rc = window_request(r, qp, m, m, e);
	if (rc || !op || !is_remote(op) || !place)
		return rc;
	remote = json_pack("{s:O,s:O}", "roff", json_object_get(place, "roff"), "rstride", json_object_get(place, "rstride"));
	rc = remote_key(r, qp, m, mem, remote, e);
	if (!rc)
		json_object_update(m, remote);
	json_decref(remote);
	return rc;
}

static int copy_members(struct case_run *r, const struct object *qp, const char *mem, const json_t *step, const json_t *remote,
			json_t *req, struct error *e)
{
	json_t *members = json_deep_copy(json_object_get(step, "members")), *m;
	size_t i;
	int rc = 0;

	json_array_foreach(members, i, m) {
		rc = rc ? rc : resolve_member(r, qp, mem, remote, m, e);
		/* Where its answer lands is not to hold it already. */
		if (json_has(m, "op", "READ") || is_atomic(json_str(m, "op") ? json_str(m, "op") : ""))
			json_object_set_new(m, "fill", json_false());
	}
	json_object_set_new(req, "members", members);
	return rc;
}

static bool wants_remote(const json_t *step, const char *op)
{
	const json_t *m;
	size_t i;

	json_array_foreach(json_object_get(step, "members"), i, m)
		if (json_str(m, "op") && is_remote(json_str(m, "op")))
			return true;
	return is_remote(op);
}

/* Places of an atomic: a word in each, or background. */
static json_t *atomic_fill(const struct post *p, const char *mr, uint64_t off, unsigned n, json_t *word)
{
	json_t *fill = json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:i,s:i}", "op", "fill", "mr", mr, "off", (json_int_t)off, "size",
				 (json_int_t)p->size, "stride", (json_int_t)p->stride, "slots", (json_int_t)p->slots, "count",
				 (int)n, "tag", 0);

	if (word)
		json_object_set_new(fill, "word", word);
	return fill;
}

static const char *land_mr(const struct post *p, char *buf, size_t size)
{
	snprintf(buf, size, "%.56s.tx", p->qp->name);
	return buf;
}

/* Does it reach over the end of the region? Nobody can prepare or look at that. */
static bool is_beyond(const struct post *p, const struct object *mem, uint64_t mem_off)
{
	uint64_t n = p->count < p->slots ? p->count : p->slots;

	return mem_off + (n ? n - 1 : 0) * p->stride + p->size > json_u64(mem->plan, "bytes", 0);
}

/* Background where the bytes will end up, so that nothing from before passes for them; a READ's source gets the message. */
static void prepare_memory(struct case_run *r, struct ops *ops, const struct post *p, const json_t *step, const char *mem_mr,
			   uint64_t mem_off)
{
	const struct object *mem = ctl_object_find(r, mem_mr);
	unsigned n = p->count < p->slots ? p->count : (unsigned)p->slots;
	struct post at_mem = *p;
	char name[2 * CTL_NAME_MAX];

	if (!p->data || p->find || n == 0)
		return;
	if (strcmp(p->op, "READ") == 0) {
		if (mem && mem->life && !is_beyond(p, mem, mem_off) && !agent_unreachable(agent_find(r, mem->agent)))
			ops_add(ops, mem->agent,
				json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:i,s:I,s:I}", "op", "fill", "mr", mem->name, "off",
					  (json_int_t)mem_off, "size", (json_int_t)p->size, "stride", (json_int_t)p->stride,
					  "slots", (json_int_t)p->slots, "count", (int)n, "tag", (json_int_t)p->tag, "index",
					  (json_int_t)p->index));
	} else if (!mem || !mem->life || agent_unreachable(agent_find(r, mem->agent)))
		return;
	if (p->atomic) {
		ops_add(ops, p->mr_agent, atomic_fill(p, p->mr, p->off, n, json_hex(p->before)));
		ops_add(ops, p->qp->agent, atomic_fill(p, land_mr(p, name, sizeof name), p->land_off, n, NULL));
		return;
	}
	(void)step;
	ops_add(ops, at_mem.mr_agent,
		json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:i,s:i}", "op", "fill", "mr", at_mem.mr, "off", (json_int_t)at_mem.off, "size",
			  (json_int_t)p->size, "stride", (json_int_t)p->stride, "slots", (json_int_t)p->slots, "count", (int)n,
			  "tag", 0));
}

/* The value to begin with is one that a swap is for, and from which an add is seen. */
static void atomic_values(struct post *p, const json_t *step)
{
	p->land_off = json_u64(step, "tx_off", 0);
	if (strcmp(p->op, "CMP_AND_SWP") == 0) {
		p->before = json_u64(step, "compare", 0);
		p->after = json_u64(step, "swap", 0);
	} else {
		p->before = ATOMIC_START ^ p->tag;
		p->after = p->before + json_u64(step, "add", 0);
	}
}

static struct post *post_new(struct case_run *r, struct object *qp, const json_t *step, struct error *e, int *rc)
{
	struct post *p = calloc(1, sizeof *p), *original;
	const char *as = json_str(step, "as"), *op = json_str(step, "op"), *replay = json_str(step, "replay");
	int64_t tag;

	if (!p) {
		*rc = error_set(e, -ENOMEM, "out of memory");
		return NULL;
	}
	snprintf(p->as, sizeof p->as, "%s", as ? as : "");
	snprintf(p->op, sizeof p->op, "%s", op ? op : "SEND");
	p->qp = qp;
	p->step = (int)json_int(step, "n", 0);
	p->size = (uint64_t)number(r, step, "size", 64, e, rc);
	p->count = (unsigned)number(r, step, "count", 1, e, rc);
	p->stride = json_u64(step, "stride", 64);
	p->slots = json_u64(step, "slots", 1);
	tag = json_int(step, "tag", 0);
	original = replay ? post_named(r, replay, qp) : NULL;
	p->tag = original ? original->tag : (uint32_t)(tag + r->iterations % TAG_ITERATIONS);
	p->find = is_send(p->op);
	p->srq = json_str(step, "srq");
	p->passes_on = original && strcmp(original->op, "READ") == 0 && strcmp(p->op, "READ") != 0;
	p->data = p->size > 0 && (p->find || is_remote(p->op)) && !json_object_get(step, "members");
	p->atomic = is_atomic(p->op);
	/* Two atomics in one place, or one that is posted again: what is there afterwards is the sum of several. */
	if (p->atomic)
		p->data = p->data && p->size == sizeof p->before && p->slots >= p->count && !replay;
	if (p->atomic)
		atomic_values(p, step);
	return p;
}

/* Whose memory its bytes end up in, and where. mem_off: where the file places it in the peer's region. */
static void place_bytes(struct case_run *r, struct post *p, const char *mem, uint64_t tx_off, uint64_t mem_off)
{
	const struct object *o;

	if (strcmp(p->op, "READ") == 0) {
		snprintf(p->mr, sizeof p->mr, "%.56s.tx", p->qp->name);
		snprintf(p->mr_agent, sizeof p->mr_agent, "%s", p->qp->agent);
		p->off = tx_off;
	} else {
		p->off = mem_off;
		o = ctl_object_find(r, remote_region(r, mem, &p->off));
		snprintf(p->mr, sizeof p->mr, "%.63s", o ? o->name : mem);
		snprintf(p->mr_agent, sizeof p->mr_agent, "%s", o ? o->agent : "");
		p->data = p->data && (p->find || (o && !is_beyond(p, o, p->off)));
	}
}

/* A list of different members is not one row of equal messages: each has an account of its own. */
static void members_add(struct case_run *r, struct ops *ops, struct post *list, const json_t *step, const json_t *members,
			const char *mem, uint64_t mem_off)
{
	const json_t *m;
	size_t i;

	json_array_foreach((json_t *)members, i, m) {
		const char *op = json_str(m, "op") ? json_str(m, "op") : list->op, *region;
		uint64_t shift = i % list->slots * list->stride, off = mem_off + shift;
		struct post *p = malloc(sizeof *p);

		if (!p)
			return;
		*p = *list;
		p->list = list;
		p->index = (unsigned)i;
		p->count = p->slots = 1;
		p->size = json_u64(m, "size", list->size);
		snprintf(p->op, sizeof p->op, "%s", op);
		p->find = is_send(op);
		p->srq = json_str(m, "srq") ? json_str(m, "srq") : list->srq;
		p->atomic = is_atomic(op);
		p->data = p->size > 0 && (p->find || is_remote(op)) && !remote_is_elsewhere(m) && !remote_is_elsewhere(step);
		if (p->atomic) {
			p->data = p->data && p->size == sizeof p->before && json_object_get(m, op[0] == 'C' ? "swap" : "add");
			atomic_values(p, m);
			p->land_off = json_u64(step, "tx_off", 0) + shift;
		}
		place_bytes(r, p, mem, json_u64(step, "tx_off", 0) + shift, off);
		p->process = payload_process(r, p);
		region = remote_region(r, mem, &off);
		prepare_memory(r, ops, p, step, region, off);
		posts_add(r, p);
	}
}

static json_t *post_request(struct case_run *r, const struct post *p, const json_t *step, struct error *e, int *rc)
{
	static const char *const copied[] = { "signaled", "inline",  "fence", "solicited", "chain",
					      "imm",      "compare", "swap",  "lkey",      "add" };
	json_t *req = json_pack("{s:s,s:s,s:s,s:I,s:s,s:I,s:i,s:I,s:I,s:I,s:o}", "op", "post", "qp", p->qp->name, "as", p->as,
				"tag", (json_int_t)p->tag, "wr", p->op, "size", (json_int_t)p->size, "count", (int)p->count, "off",
				(json_int_t)json_int(step, "tx_off", 0), "stride", (json_int_t)p->stride, "slots",
				(json_int_t)p->slots, "mr", json_sprintf("%s.tx", p->qp->name));

	for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
		if (json_object_get(step, copied[i]))
			json_object_set(req, copied[i], json_object_get(step, copied[i]));
	if (json_object_get(step, "sge"))
		json_object_set_new(req, "sge", json_integer(number(r, step, "sge", 1, e, rc)));
	if (strcmp(p->op, "READ") == 0 || is_atomic(p->op) || p->passes_on)
		json_object_set_new(req, "fill", json_false());
	if (!*rc)
		*rc = window_request(r, p->qp, step, req, e);
	return req;
}

static int queue_one(struct case_run *r, struct object *qp, const json_t *step, size_t index, struct ops *ops, struct error *e)
{
	uint64_t mem_off = json_u64(step, "mem_off", 0) + index * json_u64(step, "mem_step", 0);
	struct post *p;
	char mem[2 * CTL_NAME_MAX];
	const char *region;
	json_t *req = NULL, *remote = NULL;
	struct op *op;
	int rc = 0;

	p = post_new(r, qp, step, e, &rc);
	if (!p)
		return rc;
	req = post_request(r, p, step, e, &rc);
	remote_place(qp, step, mem, sizeof mem);
	if (!rc && wants_remote(step, p->op)) {
		remote = json_pack("{s:I,s:I}", "roff", (json_int_t)mem_off, "rstride", (json_int_t)p->stride);
		rc = remote_key(r, qp, step, mem, remote, e);
	}
	if (rc)
		goto fail;
	if (remote)
		json_object_update(req, remote);
	mem_off += remote_shift(step);
	datagram_address(r, qp, step, req);
	xrc_address(r, qp, step, req);
	if (json_object_get(step, "members"))
		rc = copy_members(r, qp, mem, step, remote, req, e);
	json_decref(remote);
	remote = NULL;
	if (rc)
		goto fail;
	place_bytes(r, p, mem, json_u64(step, "tx_off", 0), mem_off);
	p->data = p->data && !remote_is_elsewhere(step);
	p->process = payload_process(r, p);
	if (p->data && json_object_get(req, "rkey"))
		note_key(r, p, mem, json_u64(req, "rkey", 0));
	payload_settle(r, p->tag);
	members_add(r, ops, p, step, json_object_get(req, "members"), mem, mem_off);
	region = remote_region(r, mem, &mem_off);
	prepare_memory(r, ops, p, step, region, mem_off);
	posts_add(r, p);
	op = ops_add(ops, qp->agent, req);
	if (op)
		op->user = p;
	return op ? 0 : error_set(e, -ENOMEM, "out of memory");
fail:
	json_decref(req);
	json_decref(remote);
	free(p);
	return rc;
}

/* Memory must be ready at the peer before the post goes out: the fills run first, the posts stay in the list. */
static int run_fills(struct case_run *r, struct ops *ops, struct error *e)
{
	struct ops fills = { .head = NULL };
	struct op *op, *tmp;
	int rc;

	for (op = ops->head; op; op = tmp) {
		tmp = op->next;
		if (op->user)
			continue;
		DL_DELETE(ops->head, op);
		DL_APPEND(fills.head, op);
	}
	rc = ops_run(r, &fills, 0, e);
	ops_free(&fills);
	/* A peer that is gone has no memory to prepare, and one whose region is shorter now has less; the post goes out all the
	 * same. */
	return rc == -EHOSTDOWN || rc == -EPIPE || rc == -ENOENT || rc == -ERANGE ? 0 : rc;
}

int step_post_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	struct ends ends = { NULL, 0 };
	struct ops mine = { .head = NULL };
	int rc = ends_of_names(r, json_object_get(step, "at"), &ends, e);

	for (size_t i = 0; !rc && i < ends.n; i++)
		rc = queue_one(r, ends.qp[i], step, i, &mine, e);
	ends_free(&ends);
	if (!rc)
		rc = run_fills(r, &mine, e);
	if (rc)
		ops_free(&mine);
	else
		DL_CONCAT(ops->head, mine.head);
	return rc;
}

void step_post_finish(struct case_run *r, const json_t *step, struct ops *ops)
{
	(void)step;
	for (struct op *op = ops->head; op; op = op->next) {
		struct post *p = op->user;
		unsigned accepted = op->reply ? (unsigned)json_int(op->reply, "accepted", 0) : 0;

		if (p && accepted)
			faults_on_post(r, p->qp->name);
		/* The verb's own refusal comes in the reply, not as its rc. */
		if (op->rc == 0 && op->reply && json_int(op->reply, "errno", 0) > 0) {
			op->rc = -(int)json_int(op->reply, "errno", 0);
			snprintf(op->text, sizeof op->text, "ibv_post_send at %s: %s after %u accepted", p ? p->qp->name : "?",
				 strerror(-op->rc), accepted);
		}
	}
}

int step_post_recv_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	const json_t *at;
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(step, "at"), i, at) {
		const char *name = json_string_value(at);
		struct ends ends = { NULL, 0 };
		struct object *o = ctl_object_find(r, name);
		json_t *req;

		if (o && o->type == OBJECT_SRQ)
			req = json_pack("{s:s,s:s,s:s*}", "op", "post_recv", "srq", o->name, "mr", json_str(o->plan, "mr"));
		else {
			json_t *one = json_pack("[s]", name);

			rc = ends_of_names(r, one, &ends, e);
			json_decref(one);
			if (rc)
				return rc;
			o = ends.qp[0];
			ends_free(&ends);
			req = json_pack("{s:s,s:s,s:o}", "op", "post_recv", "qp", o->name, "mr", json_sprintf("%s.rx", o->name));
		}
		json_object_set_new(req, "count", json_integer(number(r, step, "count", 1, e, &rc)));
		json_object_set_new(req, "size", json_integer(number(r, step, "size", json_int(r->plan, "msg_bytes", 64), e, &rc)));
		json_object_set_new(req, "by", json_string("step"));
		if (json_object_get(step, "sge"))
			json_object_set_new(req, "sge", json_integer(number(r, step, "sge", 1, e, &rc)));
		if (json_object_get(step, "lkey"))
			json_object_set(req, "lkey", json_object_get(step, "lkey"));
		if (json_object_get(step, "as"))
			json_object_set(req, "as", json_object_get(step, "as"));
		ops_add(ops, o->agent, req);
		if (rc)
			return rc;
	}
	return 0;
}

int step_poll_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	const char *name = json_str(step, "cq");
	const struct object *cq = ctl_object_find(r, name);
	int64_t max = 0;
	int rc = value_resolve(r, json_object_get(step, "max"), 0, &max, e);
	json_t *req;

	if (rc)
		return rc;
	if (!cq)
		return error_set(e, -ENOENT, "there is no CQ %s", name ? name : "?");
	if (json_str(step, "arm"))
		req = json_pack("{s:s,s:s,s:b}", "op", "cq_arm", "cq", name, "solicited",
				strcmp(json_str(step, "arm"), "solicited") == 0);
	else if (json_object_get(step, "wait"))
		req = json_pack("{s:s,s:s,s:O,s:O,s:b}", "op", "cq_wait", "cq", name, "wait_ns", json_object_get(step, "wait"),
				"events", json_object_get(step, "events"), "ack", json_bool(step, "ack", true));
	else
		req = json_pack("{s:s,s:s}", "op", json_bool(step, "ack", false) ? "cq_ack" : "poll", "cq", name);
	if (max)
		json_object_set_new(req, "max", json_integer(max));
	ops_add(ops, cq->agent, req);
	return 0;
}
