/* SPDX-License-Identifier: MIT */
#include "window.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/names.h"
#include "post.h"
#include "verbs_thread.h"

struct mw_call {
	struct verbs_call call;
	struct mw *mw;
	struct ibv_pd *pd;
	struct ibv_mw *made;
};

int access_parse(const json_t *names, unsigned *ret, struct error *e)
{
	unsigned access = 0;
	const json_t *v;
	size_t i;

	json_array_foreach(names, i, v) {
		const char *text = json_string_value(v) ? json_string_value(v) : "";
		const struct name *row = name_find(&names_access, text);

		if (!row)
			return error_set(e, -EINVAL, "unknown access \"%s\"", text);
		access |= (unsigned)row->value;
	}
	*ret = access;
	return 0;
}

static void run_alloc(struct verbs_call *call)
{
	struct mw_call *c = (struct mw_call *)call;

	errno = 0;
	c->made = ibv_alloc_mw(c->pd, c->mw->type);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void finish_alloc(struct agent *a, struct verbs_call *call)
{
	struct mw_call *c = (struct mw_call *)call;
	struct mw *mw = c->mw;
	json_t *ret = NULL;

	mw->mw = c->made;
	if (c->made)
		ret = json_pack("{s:i, s:I}", "life", (int)mw->o.life, "rkey", (json_int_t)c->made->rkey);
	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	object_settle(&mw->o, c->made != NULL);
	if (!c->made)
		mw->pd->o.users--;
	verbs_end(call, ret);
}

void op_mw_create(struct agent *a, struct request *r)
{
	struct object *pd = object_need(a, r, OBJECT_PD, "pd"), *o;
	int64_t type = json_int(r->body, "type", 0);
	struct mw_call *c;

	if (!pd)
		return;
	if (type != 1 && type != 2) {
		request_fail(r, -EINVAL, "mw_create: type is %lld, must be 1 or 2", (long long)type);
		return;
	}
	o = object_claim(a, r, OBJECT_MW);
	if (!o)
		return;
	pd->users++;
	c = verbs_call_new(sizeof(*c));
	*c = (struct mw_call){ .call = { .verb = "ibv_alloc_mw",
					 .obj = o,
					 .req = r,
					 .run = run_alloc,
					 .finish = finish_alloc,
					 .args = json_pack("{s:s, s:I}", "pd", pd->name, "type", (json_int_t)type) },
			       .mw = (struct mw *)o,
			       .pd = ((struct pd *)pd)->pd };
	c->mw->pd = (struct pd *)pd;
	c->mw->type = type == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2;
	c->mw->bound_by = 0;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

int bind_parse(struct agent *a, const json_t *body, struct bind *ret, struct error *e)
{
	const char *name = json_str(body, "mw");
	struct object *o = name ? object_find(a, OBJECT_MW, name) : NULL;
	struct bind b = { .mw = (struct mw *)o, .bytes = json_u64(body, "size", 0) };
	int rc;

	if (!o || !o->alive || o->busy)
		return error_set(e, -ENOENT, "there is no mw %s", name ? name : "(none named)");
	b.over = post_mr(a, json_str(body, "mr"), e);
	if (!b.over)
		return -ENOENT;
	if (!b.over->mr)
		return error_set(e, -ENOENT, "%s is not registered: nothing can be bound over it", b.over->o.name);
	rc = access_parse(json_object_get(body, "access"), &b.access, e);
	if (rc < 0)
		return rc;
	b.addr = (uintptr_t)b.over->addr + json_u64(body, "off", 0);
	*ret = b;
	return 0;
}

void bind_build(const struct bind *b, struct ibv_send_wr *wr)
{
	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->bind_mw.mw = b->mw->mw;
	wr->bind_mw.rkey = ibv_inc_rkey(b->mw->mw->rkey);
	wr->bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = b->over->mr, .addr = b->addr, .length = b->bytes, .mw_access_flags = b->access };
}

int bind_by_verb(const struct bind *b, struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_mw_bind bind = { .wr_id = wr->wr_id, .send_flags = wr->send_flags, .bind_info = wr->bind_mw.bind_info };

	b->mw->former_rkey = b->mw->mw->rkey;
	return ibv_bind_mw(qp, b->mw->mw, &bind);
}

void bind_accepted(const struct bind *b, const struct ibv_send_wr *wr, json_t *rkeys)
{
	struct mw *mw = b->mw;

	/* ibv_bind_mw() has put the new key there itself. */
	if (mw->type == IBV_MW_TYPE_2) {
		mw->former_rkey = mw->mw->rkey;
		mw->mw->rkey = wr->bind_mw.rkey;
	}
	mw->bound_by = wr->wr_id;
	json_object_set_new(rkeys, mw->o.name, json_integer((json_int_t)mw->mw->rkey));
}

void bind_failed(struct agent *a, uint64_t wr_id)
{
	for (struct object *o = a->objects; o; o = o->hh.next) {
		struct mw *mw = (struct mw *)o;

		if (o->type != OBJECT_MW || !o->alive || mw->bound_by != wr_id)
			continue;
		mw->mw->rkey = mw->former_rkey;
		mw->bound_by = 0;
	}
}
