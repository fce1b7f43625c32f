/* SPDX-License-Identifier: MIT */
/* Address handles, and where a datagram is sent to. */
#include "controller_step.h"

#include <errno.h>
#include <string.h>

#include "json.h"

#define QKEY_OWN 0x80000000u /* in a request: the Q_Key of its QP */
#define QPN_MASK 0xffffffu
#define QPN_OF_GROUPS 0xffffffu

bool is_datagram(const struct object *qp)
{
	const char *type = json_str(qp->plan, "type");

	return type && strcmp(type, "UD") == 0;
}

/* The peer's GID as its QP was told of it; before that, and of one that the file names, the device's own. */
static const char *leads_to(struct case_run *r, const struct object *ah)
{
	const char *group = json_str(ah->plan, "group"), *of = json_str(ah->plan, "qp"), *told;
	const struct object *qp = of ? ctl_object_find(r, of) : NULL, *peer = qp ? ctl_object_find(r, qp->peer) : NULL;
	const struct ctl_agent *a;

	if (group)
		return group;
	told = qp ? json_str(qp->told, "gid") : NULL;
	a = agent_find(r, peer ? peer->agent : json_str(ah->plan, "to"));
	return told ? told : json_str(a ? a->device : NULL, "gid");
}

json_t *datagram_create_ah(struct case_run *r, struct ops *ops, const struct object *ah)
{
	static const char *const way[] = { "gid_index", "hop_limit", "traffic_class", "sl", "flow_label" };
	struct ctl_agent *a = agent_find(r, ah->agent);
	json_t *req = json_pack("{s:s,s:s,s:s}", "op", "ah_create", "name", ah->name, "pd", json_str(ah->plan, "pd"));
	const char *gid = leads_to(r, ah);

	link_create(r, ops, ctl_object_find(r, json_str(ah->plan, "pd")));
	if (gid)
		json_object_set_new(req, "dest_gid", json_string(gid));
	if (a)
		gid_refresh(a);
	if (a && json_object_get(a->device, "gid_index"))
		json_object_set(req, "gid_index", json_object_get(a->device, "gid_index"));
	for (size_t i = 0; i < sizeof way / sizeof way[0]; i++)
		if (json_object_get(ah->plan, way[i]))
			json_object_set(req, way[i], json_object_get(ah->plan, way[i]));
	return req;
}

void datagram_handles(struct case_run *r, struct ops *ops, const struct object *qp)
{
	struct object *o;

	for (o = r->objects; o; o = o->hh.next) {
		const char *of = o->type == OBJECT_AH ? json_str(o->plan, "qp") : "";

		if (o->type == OBJECT_AH && strcmp(o->agent, qp->agent) == 0 && (!of || strcmp(of, qp->name) == 0))
			link_create(r, ops, o);
	}
}

int datagram_readdress(struct case_run *r, const struct ends *ends, struct error *e)
{
	struct ops ops = { .head = NULL };
	int rc = 0;

	for (size_t i = 0; !rc && i < ends->n; i++) {
		struct object *ah = ctl_object_find(r, json_str(ends->qp[i]->plan, "ah"));
		const char *gid = ah ? leads_to(r, ah) : NULL, *now = ah ? json_string_value(ah->told) : NULL;

		if (!ah || !ends->qp[i]->exists || (ah->exists && gid && now && strcmp(gid, now) == 0))
			continue;
		if (ah->exists)
			rc = ask(r, ah->agent, json_pack("{s:s,s:s,s:s}", "op", "destroy", "type", "ah", "name", ah->name), 0, NULL,
				 e);
		if (rc >= 0)
			link_create(r, &ops, ah);
		rc = rc < 0 ? rc : 0;
	}
	if (!rc)
		rc = ops_run(r, &ops, 0, e);
	ops_free(&ops);
	return rc;
}

void datagram_address(struct case_run *r, const struct object *qp, const json_t *spec, json_t *req)
{
	const struct object *peer = ctl_object_find(r, qp->peer);
	const char *ah = json_str(spec, "ah") ? json_str(spec, "ah") : json_str(qp->plan, "ah");
	const struct object *handle = ctl_object_find(r, ah);
	const char *qkey = json_str(spec, "qkey"), *qpn = json_str(spec, "qpn");
	uint32_t to, key;

	if (!is_datagram(qp))
		return;
	/* Before anybody was told: what there would be to tell. */
	to = (uint32_t)json_int(qp->told, "qpn", peer ? peer->qpn : 0);
	key = (uint32_t)json_int(qp->told, "qkey", json_int(json_object_get(peer ? peer->plan : NULL, "attr"), "qkey", 0));
	if (handle && json_str(handle->plan, "group"))
		to = QPN_OF_GROUPS;
	if (qpn && strcmp(qpn, "wrong") == 0)
		to = ~to & QPN_MASK;
	if (qkey && strcmp(qkey, "wrong") == 0)
		key = ~key & ~QKEY_OWN;
	if (qkey && strcmp(qkey, "own") == 0)
		key = (~key & ~QKEY_OWN) | QKEY_OWN;
	json_object_set_new(req, "ah", json_string(ah));
	json_object_set_new(req, "remote_qpn", json_integer(to));
	json_object_set_new(req, "remote_qkey", json_integer(key));
}

int step_attach_queue(struct case_run *r, const json_t *step, struct ops *ops, struct error *e)
{
	const char *op = strcmp(json_str(step, "do"), "attach") == 0 ? "group_attach" : "group_detach";
	struct ends ends = { NULL, 0 };
	int rc = ends_of_names(r, json_object_get(step, "at"), &ends, e);

	for (size_t i = 0; !rc && i < ends.n; i++)
		ops_add(ops, ends.qp[i]->agent,
			json_pack("{s:s,s:s,s:s}", "op", op, "qp", ends.qp[i]->name, "group", json_str(step, "group")));
	ends_free(&ends);
	return rc;
}
