/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/pattern.h"
#include "object.h"
#include "verbs_thread.h"
#include "window.h"

#define MR_MAX_BYTES (4ULL << 30)

struct mr_call {
	struct verbs_call call;
	struct mr *mr;
	struct ibv_pd *pd;
	struct ibv_mr *made;
};

static void background(struct agent *a, void *addr, size_t bytes)
{
	pattern_fill((struct pattern){ .seed = a->seed }, addr, bytes);
}

/* A later life lies at the same address if it fits: only its keys tell it from the former one. A mapping never shrinks, so that
 * what still refers to a former life (receive slots, traffic) reads memory that is there. */
static int make_memory(struct agent *a, struct mr *mr, size_t bytes)
{
	if (mr->mapped < bytes) {
		void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (addr == MAP_FAILED)
			return errno;
		if (mr->addr)
			munmap(mr->addr, mr->mapped);
		mr->addr = addr;
		mr->mapped = bytes;
	}
	mr->bytes = bytes;
	background(a, mr->addr, mr->mapped);
	return 0;
}

static void run_reg(struct verbs_call *call)
{
	struct mr_call *c = (struct mr_call *)call;

	errno = 0;
	c->made = ibv_reg_mr(c->pd, c->mr->addr, c->mr->bytes, c->mr->access);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void finish_reg(struct agent *a, struct verbs_call *call)
{
	struct mr_call *c = (struct mr_call *)call;
	struct mr *mr = c->mr;
	json_t *ret = NULL;

	mr->mr = c->made;
	if (c->made)
		ret = json_pack("{s:i, s:I, s:I, s:o}", "life", (int)mr->o.life, "lkey", (json_int_t)c->made->lkey, "rkey",
				(json_int_t)c->made->rkey, "addr", json_hex((uintptr_t)mr->addr));
	if (!call->cancelled)
		verbs_record(a, call, json_incref(ret));
	object_settle(&mr->o, c->made != NULL);
	if (!c->made)
		mr->pd->o.users--;
	verbs_end(call, ret);
}

void op_mr_create(struct agent *a, struct request *r)
{
	uint64_t bytes = json_u64(r->body, "bytes", 0);
	struct object *pd = object_need(a, r, OBJECT_PD, "pd"), *o;
	struct mr_call *c;
	struct mr *mr;
	struct error e = { "" };
	unsigned access;
	int err;

	if (!pd)
		return;
	if (access_parse(json_object_get(r->body, "access"), &access, &e) < 0) {
		request_fail(r, -EINVAL, "mr_create: %s", e.text);
		return;
	}
	if (bytes == 0 || bytes > MR_MAX_BYTES) {
		request_fail(r, -EINVAL, "mr_create: bytes is %llu, must be 1 to %llu", (unsigned long long)bytes, MR_MAX_BYTES);
		return;
	}
	o = object_claim(a, r, OBJECT_MR);
	if (!o)
		return;
	mr = (struct mr *)o;
	err = make_memory(a, mr, bytes);
	if (err) {
		object_settle(o, false);
		request_fail(r, -err, "mr_create: %s: %llu bytes of memory: %s", json_str(r->body, "name"),
			     (unsigned long long)bytes, strerror(err));
		return;
	}
	mr->pd = (struct pd *)pd;
	mr->access = access;
	pd->users++;
	c = verbs_call_new(sizeof(*c));
	*c = (struct mr_call){ .call = { .verb = "ibv_reg_mr",
					 .obj = o,
					 .req = r,
					 .run = run_reg,
					 .finish = finish_reg,
					 .args = json_pack("{s:s, s:I, s:O*}", "pd", pd->name, "bytes", (json_int_t)bytes, "access",
							   json_object_get(r->body, "access")) },
			       .mr = mr,
			       .pd = ((struct pd *)pd)->pd };
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void op_mem_replace(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_MR, "mr");
	struct mr *mr = (struct mr *)o;

	if (!o)
		return;
	if (mmap(mr->addr, mr->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
		request_fail(r, -errno, "mem_replace: %s: %s", o->name, strerror(errno));
		return;
	}
	background(a, mr->addr, mr->bytes);
	request_reply(r, NULL);
}
