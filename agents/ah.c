/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "object.h"
#include "verbs_thread.h"

#define HOP_LIMIT 64

struct ah_call {
	struct verbs_call call;
	struct ah *ah;
	struct ibv_pd *pd;
	struct ibv_ah_attr attr;
	struct ibv_ah *made;
};

static void run_create(struct verbs_call *call)
{
	struct ah_call *c = (struct ah_call *)call;

	errno = 0;
	c->made = ibv_create_ah(c->pd, &c->attr);
	if (!c->made)
		call->err = errno ? errno : EIO;
}

static void finish_create(struct agent *a, struct verbs_call *call)
{
	struct ah_call *c = (struct ah_call *)call;
	struct ah *ah = c->ah;

	ah->ah = c->made;
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	object_settle(&ah->o, c->made != NULL);
	if (!c->made)
		ah->pd->o.users--;
	verbs_end(call, json_pack("{s:i}", "life", (int)ah->o.life));
}

static bool parse_attr(struct request *r, const struct dev *dev, struct ibv_ah_attr *attr)
{
	const char *gid = json_str(r->body, "dest_gid");

	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = (uint8_t)json_int(r->body, "port", dev->port),
		.sl = (uint8_t)json_int(r->body, "sl", 0),
		.grh = { .sgid_index = (uint8_t)json_int(r->body, "gid_index", dev->gid_index),
			 .hop_limit = (uint8_t)json_int(r->body, "hop_limit", HOP_LIMIT),
			 .traffic_class = (uint8_t)json_int(r->body, "traffic_class", 0),
			 .flow_label = (uint32_t)json_int(r->body, "flow_label", 0) },
	};
	/* Without a GRH there is no way on RoCE; a file may ask for one all the same. */
	if (!json_bool(r->body, "grh", true)) {
		attr->is_global = 0;
		return true;
	}
	if (gid && inet_pton(AF_INET6, gid, attr->grh.dgid.raw) == 1)
		return true;
	request_fail(r, -EINVAL, "ah_create: dest_gid: \"%s\" is no GID", gid ? gid : "");
	return false;
}

void op_ah_create(struct agent *a, struct request *r)
{
	struct object *pd = object_need(a, r, OBJECT_PD, "pd"), *o;
	struct ibv_ah_attr attr;
	struct ah_call *c;

	if (!pd || !parse_attr(r, ((struct pd *)pd)->dev, &attr))
		return;
	o = object_claim(a, r, OBJECT_AH);
	if (!o)
		return;
	((struct ah *)o)->pd = (struct pd *)pd;
	pd->users++;
	c = verbs_call_new(sizeof(*c));
	*c = (struct ah_call){ .call = { .verb = "ibv_create_ah",
					 .obj = o,
					 .req = r,
					 .run = run_create,
					 .finish = finish_create,
					 .args = json_pack("{s:s, s:O*, s:i, s:i, s:i}", "pd", pd->name, "dest_gid",
							   json_object_get(r->body, "dest_gid"), "gid_index",
							   (int)attr.grh.sgid_index, "hop_limit", (int)attr.grh.hop_limit,
							   "traffic_class", (int)attr.grh.traffic_class) },
			       .ah = (struct ah *)o,
			       .pd = ((struct pd *)pd)->pd,
			       .attr = attr };
	verbs_submit(a, &c->call, json_u64(r->body, "deadline_ns", 0));
}
