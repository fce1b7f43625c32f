/* SPDX-License-Identifier: MIT */
/* Packets on the wire and the connections they belong to. */
#include "observe_model.h"

#include "json.h"
#include "packet.h"

void m_on_connection(struct model *m, const struct m_record *r)
{
	const json_t *ends = json_object_get(r->r, "ends"), *end;
	struct m_connection *c = M_PUSH(m, &m->connections);
	size_t i;

	if (!c)
		return;
	*c = (struct m_connection){ .pair = m_intern(m, json_str(r->r, "pair")), .life = r->life, .rec = r->rec, .t = r->t };
	json_array_foreach(ends, i, end) {
		const char *qp = json_str(end, "qp");

		if (i > 1)
			break;
		c->end[i] = (struct m_connection_end){ .qp = qp ? m_qp_find(m, qp, strlen(qp)) : M_NONE,
						       .qpn = json_int(end, "qpn", -1),
						       .life = (unsigned)json_int(end, "life", 0) };
	}
}

static void note_rules(struct model *m, const json_t *rules)
{
	const json_t *rule;
	size_t i;

	json_array_foreach(rules, i, rule)
		if (json_is_string(rule))
			json_object_set_new(m->touching, json_string_value(rule), json_true());
}

void m_on_packet(struct model *m, const struct m_record *r)
{
	struct m_packet *p = M_PUSH(m, &m->packets);
	const char *pair = json_str(r->r, "pair");

	if (!p)
		return;
	note_rules(m, json_object_get(r->r, "rules"));
	*p = (struct m_packet){
		.qp = pair ? m_qp_find(m, r->obj, strlen(r->obj)) : M_NONE,
		.known = pair != NULL,
		.pair = m_intern(m, pair),
		.from = m_intern(m, json_str(r->r, "from")),
		.class_ = m_intern(m, json_str(r->r, "class")),
		.opcode = m_intern(m, json_str(r->r, "opcode")),
		.fate = m_intern(m, json_str(r->r, "fate")),
		.life = r->life,
		.size = json_int(r->r, "size", 0),
		.psn = json_int(r->r, "psn", 0),
		.transmission = json_int(r->r, "transmission", 1),
		.count = json_int(r->r, "count", 1),
		.syndrome = (int)json_int(r->r, "syndrome", -1),
		.n = json_int(r->r, "packet", 0),
		.late = json_bool(r->r, "late", false),
		.touched = json_array_size(json_object_get(r->r, "rules")) > 0,
		.icrc_bad = json_str(r->r, "icrc") && !strcmp(json_str(r->r, "icrc"), "bad"),
		.why = m_intern(m, json_str(r->r, "why")),
		.dest_qpn = json_int(r->r, "dest_qpn", -1),
		.t = r->t,
		.t_last = json_u64(r->r, "t_last", r->t),
		.inst = r->inst,
		.rec = r->rec,
	};
	for (int i = 0; i < NUM_PACKET_OUTER; i++)
		p->outer.v[i] = (int32_t)json_int(r->r, packet_outer_rows[i].name, packet_outer_rows[i].usual);
}

bool m_has_wire(const struct model *m)
{
	return m->connections.n > 0 || m->packets.n > 0;
}

unsigned m_connection_life(const struct model *m, const char *pair)
{
	for (size_t i = m->connections.n; i-- > 0;)
		if (!strcmp(m->connections.v[i].pair, pair))
			return m->connections.v[i].life;
	return 0;
}

unsigned m_connection_of(const struct model *m, size_t qp, unsigned qp_life)
{
	for (size_t i = m->connections.n; i-- > 0;)
		for (size_t k = 0; k < 2; k++)
			if (m->connections.v[i].end[k].qp == qp && m->connections.v[i].end[k].life == qp_life)
				return m->connections.v[i].life;
	return 0;
}
