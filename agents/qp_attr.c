/* SPDX-License-Identifier: MIT */
#include "qp_attr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/attr.h"
#include "../harness/json.h"
#include "../harness/names.h"

#define TEXT(v) (json_string_value(v) ? json_string_value(v) : "")

static int set_gid(struct ibv_qp_attr *attr, const json_t *v, struct error *e)
{
	if (!json_is_string(v) || inet_pton(AF_INET6, json_string_value(v), attr->ah_attr.grh.dgid.raw) != 1)
		return error_set(e, -EINVAL, "dest_gid: \"%s\" is no GID", TEXT(v));
	return 0;
}

static int set_access(struct ibv_qp_attr *attr, const json_t *v, struct error *e)
{
	const json_t *one;
	size_t i;

	attr->qp_access_flags = 0;
	json_array_foreach(v, i, one) {
		const struct name *row = name_find(&names_access, TEXT(one));

		if (!row)
			return error_set(e, -EINVAL, "access: unknown flag \"%s\"", TEXT(one));
		attr->qp_access_flags |= (unsigned)row->value;
	}
	return 0;
}

static int set_state(struct ibv_qp_attr *attr, const json_t *v, struct error *e)
{
	const struct name *row = name_find(&names_state, TEXT(v));

	if (!row)
		return error_set(e, -EINVAL, "cur_state: unknown state \"%s\"", TEXT(v));
	attr->cur_qp_state = (enum ibv_qp_state)row->value;
	return 0;
}

#define NO_MTU 255
static int set_mtu(struct ibv_qp_attr *attr, const json_t *v, struct error *e)
{
	int mtu = mtu_to_enum((int64_t)json_integer_value(v));

	if (!json_is_integer(v))
		return error_set(e, -EINVAL, "path_mtu: not an integer");
	/* A length that has no IBV_MTU_ is for the device to refuse: it is given as one that is none either. */
	attr->path_mtu = (enum ibv_mtu)(mtu ? mtu : NO_MTU);
	return 0;
}

#define INTEGER(name, field)                                                                                                       \
	static void set_##name(struct ibv_qp_attr *attr, json_int_t v)                                                             \
	{                                                                                                                          \
		attr->field = (__typeof__(attr->field))v;                                                                          \
	}

INTEGER(timeout, timeout)
INTEGER(retry_cnt, retry_cnt)
INTEGER(rnr_retry, rnr_retry)
INTEGER(min_rnr_timer, min_rnr_timer)
INTEGER(sq_psn, sq_psn)
INTEGER(rq_psn, rq_psn)
INTEGER(max_rd_atomic, max_rd_atomic)
INTEGER(max_dest_rd_atomic, max_dest_rd_atomic)
INTEGER(pkey_index, pkey_index)
INTEGER(qkey, qkey)
INTEGER(grh, ah_attr.is_global)
INTEGER(gid_index, ah_attr.grh.sgid_index)
INTEGER(hop_limit, ah_attr.grh.hop_limit)
INTEGER(traffic_class, ah_attr.grh.traffic_class)
INTEGER(flow_label, ah_attr.grh.flow_label)
INTEGER(sl, ah_attr.sl)
INTEGER(dest_qpn, dest_qp_num)
INTEGER(en_sqd_async_notify, en_sqd_async_notify)

static void set_port(struct ibv_qp_attr *attr, json_int_t v)
{
	attr->port_num = (uint8_t)v;
	attr->ah_attr.port_num = (uint8_t)v;
	attr->alt_port_num = (uint8_t)v;
}

static const struct qp_attr_setter {
	const char *name;
	void (*integer)(struct ibv_qp_attr *attr, json_int_t v);
	int (*other)(struct ibv_qp_attr *attr, const json_t *v, struct error *e);
} setters[] = {
	{ "timeout", set_timeout, NULL },
	{ "retry_cnt", set_retry_cnt, NULL },
	{ "rnr_retry", set_rnr_retry, NULL },
	{ "min_rnr_timer", set_min_rnr_timer, NULL },
	{ "path_mtu", NULL, set_mtu },
	{ "sq_psn", set_sq_psn, NULL },
	{ "rq_psn", set_rq_psn, NULL },
	{ "max_rd_atomic", set_max_rd_atomic, NULL },
	{ "max_dest_rd_atomic", set_max_dest_rd_atomic, NULL },
	{ "access", NULL, set_access },
	{ "pkey_index", set_pkey_index, NULL },
	{ "port", set_port, NULL },
	{ "qkey", set_qkey, NULL },
	{ "gid_index", set_gid_index, NULL },
	{ "dest_gid", NULL, set_gid },
	{ "grh", set_grh, NULL },
	{ "hop_limit", set_hop_limit, NULL },
	{ "traffic_class", set_traffic_class, NULL },
	{ "sl", set_sl, NULL },
	{ "flow_label", set_flow_label, NULL },
	{ "dest_qpn", set_dest_qpn, NULL },
	{ "cur_state", NULL, set_state },
	{ "en_sqd_async_notify", set_en_sqd_async_notify, NULL },
};

const struct qp_attr_setter *qp_attr_setter(const char *name)
{
	for (size_t i = 0; i < sizeof(setters) / sizeof(*setters); i++) {
		if (strcmp(setters[i].name, name) == 0 && attr_find(name))
			return &setters[i];
	}
	return NULL;
}

int qp_attr_put(const struct qp_attr_setter *s, const json_t *v, struct ibv_qp_attr *attr, struct error *e)
{
	if (!s->integer)
		return s->other(attr, v, e);
	if (!json_is_integer(v))
		return error_set(e, -EINVAL, "%s: not an integer", s->name);
	s->integer(attr, json_integer_value(v));
	return 0;
}

int qp_attr_parse(const json_t *set, const struct qp_defaults *d, struct ibv_qp_attr *attr, int *ret_given, struct error *e)
{
	const char *key;
	json_t *v;
	int given = 0, rc;

	memset(attr, 0, sizeof(*attr));
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.hop_limit = 64;
	attr->ah_attr.grh.sgid_index = (uint8_t)d->gid_index;
	set_port(attr, d->port);
	json_object_foreach((json_t *)set, key, v) {
		const struct qp_attr_setter *s = qp_attr_setter(key);

		if (json_is_null(v)) /* the device's own */
			continue;
		if (!s)
			return error_set(e, -EINVAL, "unknown attribute \"%s\"", key);
		rc = qp_attr_put(s, v, attr, e);
		if (rc < 0)
			return rc;
		given |= attr_find(key)->mask;
	}
	*ret_given = given;
	return 0;
}

int qp_mask_parse(const json_t *names, int *ret_mask, struct error *e)
{
	const json_t *v;
	int mask = 0;
	size_t i;

	json_array_foreach(names, i, v) {
		const struct name *row = name_find(&names_attr_mask, TEXT(v));

		if (!row)
			return error_set(e, -EINVAL, "unknown mask bit \"%s\"", TEXT(v));
		mask |= row->value;
	}
	*ret_mask = mask;
	return 0;
}

int qp_mask_choose(int type, int from, int to, int given, int leave_out, int add)
{
	const struct transition *t = transition_find(type, from, to);
	int mask = IBV_QP_STATE;

	if (!t || from == to)
		mask |= given;
	if (t)
		mask |= t->required | (t->optional & given);
	return (mask & ~leave_out) | add;
}

json_t *qp_mask_json(int mask)
{
	json_t *names = json_array();

	for (size_t i = 0; i < names_attr_mask.n; i++) {
		if (mask & names_attr_mask.rows[i].value)
			json_array_append_new(names, json_string(names_attr_mask.rows[i].text));
	}
	return names;
}

json_t *qp_cap_json(const struct ibv_qp_cap *cap)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "max_send_wr", (json_int_t)cap->max_send_wr, "max_recv_wr",
			 (json_int_t)cap->max_recv_wr, "max_send_sge", (json_int_t)cap->max_send_sge, "max_recv_sge",
			 (json_int_t)cap->max_recv_sge, "max_inline_data", (json_int_t)cap->max_inline_data);
}

static json_t *access_json(unsigned access)
{
	json_t *names = json_array();

	for (size_t i = 0; i < names_access.n; i++) {
		if (access & (unsigned)names_access.rows[i].value)
			json_array_append_new(names, json_string(names_access.rows[i].text));
	}
	return names;
}

/* What a device tells of a QP that is one integer. */
static const struct column columns[] = {
	COLUMN(struct ibv_qp_attr, timeout, "timeout"),
	COLUMN(struct ibv_qp_attr, retry_cnt, "retry_cnt"),
	COLUMN(struct ibv_qp_attr, rnr_retry, "rnr_retry"),
	COLUMN(struct ibv_qp_attr, min_rnr_timer, "min_rnr_timer"),
	{ "path_mtu", offsetof(struct ibv_qp_attr, path_mtu), sizeof(enum ibv_mtu), mtu_from_enum, false },
	COLUMN(struct ibv_qp_attr, sq_psn, "sq_psn"),
	COLUMN(struct ibv_qp_attr, rq_psn, "rq_psn"),
	COLUMN(struct ibv_qp_attr, dest_qp_num, "dest_qpn"),
	COLUMN(struct ibv_qp_attr, max_rd_atomic, "max_rd_atomic"),
	COLUMN(struct ibv_qp_attr, max_dest_rd_atomic, "max_dest_rd_atomic"),
	COLUMN(struct ibv_qp_attr, pkey_index, "pkey_index"),
	COLUMN(struct ibv_qp_attr, ah_attr.grh.sgid_index, "gid_index"),
	COLUMN(struct ibv_qp_attr, ah_attr.grh.hop_limit, "hop_limit"),
	COLUMN(struct ibv_qp_attr, ah_attr.grh.traffic_class, "traffic_class"),
	COLUMN(struct ibv_qp_attr, ah_attr.sl, "sl"),
	COLUMN(struct ibv_qp_attr, port_num, "port"),
	COLUMN(struct ibv_qp_attr, qkey, "qkey"),
};

json_t *qp_attr_json(const struct ibv_qp_attr *at, const struct ibv_qp_cap *cap, uint32_t qpn)
{
	char dgid[INET6_ADDRSTRLEN];
	json_t *f = json_pack("{s:s}", "state", name_of(&names_state, (int)at->qp_state));

	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++)
		json_object_set_new_nocheck(f, columns[i].name, column_value(&columns[i], at));
	inet_ntop(AF_INET6, at->ah_attr.grh.dgid.raw, dgid, sizeof(dgid));
	json_object_update_new(f, json_pack("{s:I, s:o, s:s, s:b, s:o}", "qpn", (json_int_t)qpn, "access",
					    access_json(at->qp_access_flags), "dest_gid", dgid, "sq_draining", at->sq_draining,
					    "cap", qp_cap_json(cap)));
	return f;
}

bool qp_attr_alike(const struct ibv_qp_attr *a, const struct ibv_qp_cap *cap_a, const struct ibv_qp_attr *b,
		   const struct ibv_qp_cap *cap_b)
{
	return a->qp_state == b->qp_state && a->qp_access_flags == b->qp_access_flags && a->sq_draining == b->sq_draining &&
	       memcmp(&a->ah_attr.grh.dgid, &b->ah_attr.grh.dgid, sizeof(a->ah_attr.grh.dgid)) == 0 &&
	       memcmp(cap_a, cap_b, sizeof(*cap_a)) == 0;
}

void qp_attr_columns(struct rows attrs, json_t *queried, struct each *each)
{
	for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
		char path[64];

		if (column_is_alike(&columns[i], attrs))
			continue;
		json_object_del(queried, columns[i].name);
		snprintf(path, sizeof(path), "queried.%s", columns[i].name);
		each_column(each, path, &columns[i], attrs);
	}
}
