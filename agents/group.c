/* SPDX-License-Identifier: MIT */
/* Multicast groups that a QP is attached to. */
#include "group.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../harness/json.h"
#include "object.h"
#include "verbs_thread.h"

struct group {
	union ibv_gid gid;
	struct group *next;
};

struct group_call {
	struct verbs_call call;
	struct qp *qp;
	union ibv_gid gid;
	bool attach;
};

static int positive(int rc)
{
	return rc == -1 ? (errno ? errno : EIO) : rc < 0 ? -rc : rc;
}

static void run_group(struct verbs_call *call)
{
	struct group_call *c = (struct group_call *)call;

	call->err = positive(c->attach ? ibv_attach_mcast(c->qp->qp, &c->gid, 0) : ibv_detach_mcast(c->qp->qp, &c->gid, 0));
}

static struct group *find(const struct qp *qp, const union ibv_gid *gid)
{
	struct group *g;

	for (g = qp->groups; g; g = g->next)
		if (memcmp(&g->gid, gid, sizeof(*gid)) == 0)
			return g;
	return NULL;
}

static void note(struct qp *qp, const union ibv_gid *gid, bool attached)
{
	struct group *g = find(qp, gid);

	if (g && !attached) {
		LL_DELETE(qp->groups, g);
		free(g);
	} else if (!g && attached) {
		g = calloc(1, sizeof(*g));
		if (!g)
			abort();
		g->gid = *gid;
		LL_PREPEND(qp->groups, g);
	}
}

static void finish_group(struct agent *a, struct verbs_call *call)
{
	struct group_call *c = (struct group_call *)call;

	c->qp->o.busy = false;
	if (!call->err && !call->cancelled)
		note(c->qp, &c->gid, c->attach);
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	verbs_end(call, json_object());
}

static void start(struct agent *a, struct request *r, bool attach)
{
	struct object *o = object_need(a, r, OBJECT_QP, "qp");
	const char *text = json_str(r->body, "group");
	union ibv_gid gid;
	struct group_call *c;

	if (!o)
		return;
	if (!text || inet_pton(AF_INET6, text, gid.raw) != 1) {
		request_fail(r, -EINVAL, "%s: group: \"%s\" is no GID", json_str(r->body, "op"), text ? text : "");
		return;
	}
	c = verbs_call_new(sizeof(*c));
	*c = (struct group_call){ .call = { .verb = attach ? "ibv_attach_mcast" : "ibv_detach_mcast",
					    .obj = o,
					    .req = r,
					    .run = run_group,
					    .finish = finish_group,
					    .args = json_pack("{s:s}", "group", text) },
				  .qp = (struct qp *)o,
				  .gid = gid,
				  .attach = attach };
	o->busy = true;
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}

void op_group_attach(struct agent *a, struct request *r)
{
	start(a, r, true);
}

void op_group_detach(struct agent *a, struct request *r)
{
	start(a, r, false);
}

void groups_leave(struct qp *qp)
{
	for (const struct group *g = qp->groups; g; g = g->next)
		ibv_detach_mcast(qp->qp, &g->gid, 0);
}

void groups_forget(struct qp *qp)
{
	struct group *g, *next;

	LL_FOREACH_SAFE(qp->groups, g, next)
	free(g);
	qp->groups = NULL;
}
