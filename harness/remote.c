/* SPDX-License-Identifier: MIT */
#include "remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

void remote_place(const struct object *qp, const json_t *step, char *mr, size_t size)
{
	const char *to = json_str(json_object_get(step, "to"), "mr");

	if (to)
		snprintf(mr, size, "%s", to);
	else
		snprintf(mr, size, "%s.mem", qp->peer);
}

const char *remote_region(struct case_run *r, const char *mr, uint64_t *off)
{
	const struct object *o = ctl_object_find(r, mr);
	const char *over = o && o->type == OBJECT_MW ? json_str(o->plan, "over") : NULL;

	if (!over)
		return mr;
	*off += json_u64(o->plan, "offset", 0);
	return over;
}

/* Tells the verdict that what was to be wrong was not after all. */
static void is_not_wrong(struct case_run *r, const json_t *step, const struct object *qp, const char *mr, const char *what,
			 const char *why)
{
	const char *as = json_str(step, "as");

	case_record(r, "controller",
		    json_pack("{s:s,s:s,s:s,s:[s],s:s,s:s,s:{s:s},s:s}", "kind", "fault", "as", as ? as : "", "name", what, "at",
			      qp->name, "phase", "not_fired", "detection", "nak", "evidence", "mr", mr, "text", why));
}

/* ---- addr: ---- */

struct place {
	const struct object *qp, *mr; /* whose memory it should be */
	uint64_t base, bytes, size;
};

static int beyond(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e)
{
	(void)r;
	(void)e;
	*ret = p->base + p->bytes + 1 - p->size;
	return 0;
}

static int before(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e)
{
	(void)r;
	(void)e;
	*ret = p->base - 1;
	return 0;
}

static int zero(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e)
{
	(void)r;
	(void)p;
	(void)e;
	*ret = 0;
	return 0;
}

static const struct object *region_of_object(struct case_run *r, const struct object *o)
{
	uint64_t ignored = 0;

	return ctl_object_find(r, remote_region(r, o->name, &ignored));
}

/* Where a region of that agent lies, other than one. */
static int region_at(struct case_run *r, const char *agent, const struct object *but, uint64_t *ret, struct error *e)
{
	for (const struct object *o = r->objects; o; o = o->hh.next) {
		if (o->type != OBJECT_MR || !o->exists || strcmp(o->agent, agent) != 0 || (but && strcmp(o->name, but->name) == 0))
			continue;
		*ret = json_u64(o->ret, "addr", 0);
		return 0;
	}
	return error_set(e, -ENOENT, "agent %s has no region%s%s whose address could be given", agent, but ? " but " : "",
			 but ? but->name : "");
}

static int other(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e)
{
	return region_at(r, p->mr->agent, region_of_object(r, p->mr), ret, e);
}

static int own(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e)
{
	return region_at(r, p->qp->agent, NULL, ret, e);
}

static const struct {
	const char *word;
	int (*find)(struct case_run *r, const struct place *p, uint64_t *ret, struct error *e); /* NULL: in place, but shifted */
} words[] = {
	{ "beyond", beyond }, { "before", before }, { "zero", zero }, { "other", other }, { "own", own }, { "misaligned", NULL },
};

uint64_t remote_shift(const json_t *step)
{
	const char *addr = json_str(step, "addr");

	return addr && strcmp(addr, "misaligned") == 0;
}

bool remote_is_elsewhere(const json_t *step)
{
	return json_object_get(step, "addr") && !remote_shift(step);
}

static int wrong_address(struct case_run *r, const struct object *qp, const json_t *step, const char *mr, json_t *req,
			 struct error *e)
{
	const char *addr = json_str(step, "addr");
	struct place p = { .qp = qp, .mr = ctl_object_find(r, mr), .base = json_u64(req, "raddr", 0) };
	uint64_t at = 0;
	int64_t size = 0;
	int rc = value_resolve(r, json_object_get(step, "size"), 64, &size, e);

	if (rc)
		return rc;
	p.size = (uint64_t)size;
	p.bytes = p.mr ? json_u64(p.mr->plan, "bytes", 0) : 0;
	for (size_t i = 0; p.mr && i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i].word, addr) == 0 && words[i].find)
			rc = words[i].find(r, &p, &at, e);
	if (rc || !p.mr)
		return rc;
	if (at >= p.base && at + p.size <= p.base + p.bytes)
		is_not_wrong(r, step, qp, mr, "addr", "that address lies in the region as well");
	json_object_set_new(req, "raddr", json_hex(at));
	json_object_set_new(req, "roff", json_integer(0));
	return 0;
}

/* A post that is to be refused is so before anybody looks at a key. */
static bool is_to_be_refused(const json_t *step)
{
	const json_t *returns = json_object_get(step, "returns");

	return json_array_size(returns) && !json_array_has(returns, "0");
}

int remote_key(struct case_run *r, const struct object *qp, const json_t *step, const char *mr, json_t *req, struct error *e)
{
	const json_t *key = json_object_get(json_object_get(qp->told, "keys"), mr);
	const char *which = json_str(step, "rkey");
	const struct object *o = ctl_object_find(r, mr);
	uint64_t rkey = json_u64(key, "rkey", 0);

	if (!key && is_to_be_refused(step)) {
		json_object_set_new(req, "rkey", json_integer(0));
		json_object_set_new(req, "raddr", json_hex(0));
		return 0;
	}
	if (!key)
		return error_set(e, -ENOKEY, "%s was never told the key of %s", qp->name, mr);
	if (which && strcmp(which, "wrong") == 0)
		rkey ^= 0xffffffffu;
	if (which && strcmp(which, "old") == 0) {
		if (!o || !o->had_old)
			return error_set(e, -ENOKEY, "rkey: old: %s has had only one life", mr);
		rkey = o->old_rkey;
		if (o->old_rkey == o->rkey)
			is_not_wrong(r, step, qp, mr, "rkey",
				     "the device gave out the same rkey again: the old one is the current one");
	}
	json_object_set_new(req, "rkey", json_integer((json_int_t)rkey));
	json_object_set(req, "raddr", json_object_get(key, "addr"));
	if (remote_is_elsewhere(step))
		return wrong_address(r, qp, step, mr, req, e);
	json_object_set_new(req, "roff", json_integer((json_int_t)json_u64(req, "roff", 0) + (json_int_t)remote_shift(step)));
	return 0;
}
