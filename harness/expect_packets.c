/* SPDX-License-Identifier: MIT */
/* How many packets of a kind came by the wire. */
#include "expect_internal.h"

#include <stdio.h>

#include "json.h"
#include "packet.h"

/* A number, or a range as the case document has it: both ends included. False when it names what is not known yet. */
static bool range_of(const struct model *m, const json_t *value, int64_t *ret_min, int64_t *ret_max)
{
	const char *op = json_str(value, "op");
	int64_t n = 0;

	*ret_min = INT64_MIN;
	*ret_max = INT64_MAX;
	if (!value)
		return true;
	if (!op || !strcmp(op, "==")) {
		if (m_number(m, op ? json_object_get(value, "value") : value, &n))
			return false;
		*ret_min = *ret_max = n;
	} else if (!strcmp(op, "range")) {
		*ret_min = json_int(value, "min", INT64_MIN);
		*ret_max = json_int(value, "max", INT64_MAX);
	} else {
		if (m_number(m, json_object_get(value, "value"), &n))
			return false;
		if (*op == '>')
			*ret_min = op[1] ? n : n + 1;
		else
			*ret_max = op[1] ? n : n - 1;
	}
	return true;
}

static bool has_name(const json_t *names, const char *name)
{
	return !names || (json_is_string(names) ? !strcmp(json_string_value(names), name) : json_array_has(names, name));
}

/* A name, a number, or a list of them. */
static bool has_syndrome(const json_t *meant, int syndrome)
{
	const struct packet_syndrome *known = json_is_string(meant) ? packet_syndrome_by_name(json_string_value(meant)) : NULL;
	const json_t *item;
	bool has = !meant || (known && syndrome >= known->first && syndrome <= known->last) ||
		   (json_is_integer(meant) && json_integer_value(meant) == syndrome);
	size_t i;

	json_array_foreach((json_t *)meant, i, item)
		has = has || has_syndrome(item, syndrome);
	return has;
}

/* "p.a", "p.a@1", or an agent alone: any pair's. An end without a life means that of now. */
static bool from_fits(const struct model *m, const struct m_packet *p, const char *text)
{
	const char *at = strchr(text, '@'), *qp = p->qp == M_NONE ? "" : m->qps.v[p->qp].name;
	size_t len = at ? (size_t)(at - text) : strlen(text);
	unsigned life;

	if (!strchr(text, '.'))
		return strlen(p->from) == len && !memcmp(p->from, text, len) && (!at || p->life == strtoul(at + 1, NULL, 10));
	if (strlen(qp) != len || memcmp(qp, text, len))
		return false;
	if (!at)
		return true;
	life = m_connection_of(m, p->qp, (unsigned)strtoul(at + 1, NULL, 10));
	return life && p->life == life;
}

/* life: of the connection; 0: its present one. */
static bool ends_fit(const struct model *m, const struct m_packet *p, const json_t *match, unsigned life)
{
	const json_t *from = json_object_get(match, "from"), *item;
	bool fits = !from, old = false;
	size_t i;

	if (json_is_string(from))
		fits = from_fits(m, p, json_string_value(from));
	json_array_foreach(from, i, item) {
		fits = fits || from_fits(m, p, json_string_value(item));
		old = old || strchr(json_string_value(item), '@');
	}
	old = old || (json_is_string(from) && strchr(json_string_value(from), '@'));
	if (!fits || !has_name(json_object_get(match, "pair"), p->pair))
		return false;
	/* Relative PSNs begin anew with each life: former ones are spoken of by name only. */
	return old || !p->known || p->life == (life ? life : m_connection_life(m, p->pair));
}

struct ranges {
	int64_t psn[2], size[2], transmission[2], nth[2], outer[NUM_PACKET_OUTER][2];
	unsigned life;
};

static bool within(int64_t value, const int64_t range[2])
{
	return value >= range[0] && value <= range[1];
}

static bool outer_fits(const struct m_packet *p, const struct ranges *g)
{
	for (int i = 0; i < NUM_PACKET_OUTER; i++)
		if (!within(p->outer.v[i], g->outer[i]))
			return false;
	return true;
}

/* How many packets of a run fit all but nth and every; *ret_first: the PSN of the first of them. */
static int64_t fitting(const struct model *m, const struct m_packet *p, const json_t *match, const struct ranges *g,
		       int64_t *ret_first)
{
	int64_t first = p->psn, last = p->psn + p->count - 1;

	*ret_first = first;
	if (p->late || !has_name(json_object_get(match, "class"), p->class_) ||
	    !has_name(json_object_get(match, "opcode"), p->opcode) ||
	    !has_syndrome(json_object_get(match, "syndrome"), p->syndrome) || !ends_fit(m, p, match, g->life) ||
	    !within(p->size, g->size) || !within(p->transmission, g->transmission) || !outer_fits(p, g))
		return 0;
	if (!json_object_get(match, "psn"))
		return p->count;
	if (!p->known)
		return 0;
	first = first > g->psn[0] ? first : g->psn[0];
	last = last < g->psn[1] ? last : g->psn[1];
	*ret_first = first;
	return last >= first ? last - first + 1 : 0;
}

static bool ranges_of(const struct model *m, const json_t *match, struct ranges *ret)
{
	const struct {
		const char *key;
		int64_t *range;
	} keys[] = {
		{ "psn", ret->psn },
		{ "size", ret->size },
		{ "transmission", ret->transmission },
		{ "nth", ret->nth },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!range_of(m, json_object_get(match, keys[i].key), &keys[i].range[0], &keys[i].range[1]))
			return false;
	for (int i = 0; i < NUM_PACKET_OUTER; i++)
		if (!range_of(m, json_object_get(match, packet_outer_rows[i].name), &ret->outer[i][0], &ret->outer[i][1]))
			return false;
	return true;
}

int64_t expect_packet_fits(const struct model *m, const struct m_packet *p, const json_t *match, int64_t *ret_first)
{
	struct ranges g = { .life = p->life };

	return ranges_of(m, match, &g) ? fitting(m, p, match, &g, ret_first) : 0;
}

/* How many values of one field the packets that fit have between them. */
static int64_t count_different(const struct model *m, const json_t *match, const struct ranges *g, int field, uint64_t *ret_t)
{
	json_t *values = json_object();
	char key[16];
	int64_t n;

	for (size_t i = 0; i < m->packets.n; i++) {
		const struct m_packet *p = &m->packets.v[i];
		int64_t first;

		snprintf(key, sizeof(key), "%d", (int)p->outer.v[field]);
		if (!fitting(m, p, match, g, &first) || json_object_get(values, key))
			continue;
		json_object_set_new(values, key, json_true());
		*ret_t = p->t_last;
	}
	n = (int64_t)json_object_size(values);
	json_decref(values);
	return n;
}

static int64_t count_packets(const struct model *m, const json_t *match, const struct ranges *g, uint64_t *ret_t)
{
	int64_t seen = 0, counted = 0, every = json_int(match, "every", 1);

	for (size_t i = 0; i < m->packets.n; i++) {
		const struct m_packet *p = &m->packets.v[i];
		int64_t first, n = fitting(m, p, match, g, &first), before = counted;

		if (!json_object_get(match, "nth") && every <= 1) {
			counted += n;
		} else {
			for (int64_t k = 0; k < n; k++) {
				seen++;
				counted += seen >= g->nth[0] && seen <= g->nth[1] && seen % (every > 0 ? every : 1) == 0;
			}
		}
		if (counted > before)
			*ret_t = p->t_last;
	}
	return counted;
}

/* ` with class nak, from b, psn 2..` */
static void match_text(const struct model *m, const json_t *match, struct text *t)
{
	const char *key, *sep = " with ";
	json_t *value;

	json_object_foreach((json_t *)match, key, value) {
		text_add(t, "%s%s ", sep, key);
		cmp_text(m, value, t);
		sep = ", ";
	}
}

/* The QP that was to send them, where the match names one: `p.a`, or an agent that has one. */
static size_t sender_of(const struct model *m, const json_t *match)
{
	const json_t *from = json_object_get(match, "from");
	const char *name = json_string_value(json_is_array(from) ? json_array_get(from, 0) : from), *dot;
	size_t found = M_NONE;

	if (!name || json_array_size(from) > 1)
		return M_NONE;
	if (strchr(name, '.'))
		return m_end_of(m, name).qp;
	for (size_t i = 0; i < m->qps.n; i++) {
		dot = strrchr(m->qps.v[i].name, '.');
		if (!dot || strcmp(dot + 1, name))
			continue;
		if (found != M_NONE)
			return M_NONE;
		found = i;
	}
	return found;
}

/* None came: does the profile say that none ever will? */
static void none_came(struct eval *v, const json_t *match, struct part *p)
{
	struct m_match what = { .qp = sender_of(v->m, match), .match = match, .rec = v->m->n_recs };
	const json_t *entry;
	bool seen;

	entry = what.qp == M_NONE ? NULL : m_profile_excuse(v->m, &what, "none", &seen);
	if (entry && seen) {
		p->absent[p->n_absent++] = entry;
		p->late = false;
	} else if (entry) {
		expect_deviates(v, entry, false);
	}
}

void expect_packets(struct eval *v, const json_t *x, struct part *p)
{
	const json_t *match = json_object_get(x, "packets"), *cmp = json_object_get(x, "count");
	const char *different = json_str(x, "different");
	int field = different ? packet_outer_find(different) : -1;
	struct ranges g = { .life = 0 };
	uint64_t t = 0;
	int64_t n;
	int holds;

	cmp_text(v->m, cmp, &p->expected);
	if (different)
		text_add(&p->expected, " values of %s", different);
	match_text(v->m, match, &p->expected);
	if (!m_has_wire(v->m)) {
		p->state = EXPECT_BROKEN;
		text_add(&p->seen, "no wire process ran: packets cannot be counted");
		return;
	}
	if (!ranges_of(v->m, match, &g)) {
		p->state = EXPECT_PENDING;
		p->late = true;
		text_add(&p->seen, "a value that no device has returned yet");
		return;
	}
	n = field < 0 ? count_packets(v->m, match, &g, &t) : count_different(v->m, match, &g, field, &t);
	text_add(&p->seen, "%lld %s%s", (long long)n, different ? "values of " : "packets", different ?: "");
	holds = cmp_holds(v->m, cmp, n, NULL);
	if (holds == 1) {
		struct m_match what = { .qp = sender_of(v->m, match), .match = match, .rec = v->m->n_recs };

		expect_held(v, t);
		if (v->take && n > 0)
			m_profile_specified(v->m, &what, v->step);
		return;
	}
	p->state = holds == 0 && cmp_exceeded(v->m, cmp, n) ? EXPECT_BROKEN : EXPECT_PENDING;
	p->late = true;
	if (!n && p->state == EXPECT_PENDING)
		none_came(v, match, p);
}
