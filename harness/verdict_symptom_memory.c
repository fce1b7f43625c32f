/* SPDX-License-Identifier: MIT */
/* Symptoms of memory, keys and rights. */
#include "verdict_symptom.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static bool is_read(const char *op)
{
	return !strcmp(op, "READ");
}

static bool is_atomic(const char *op)
{
	return !strcmp(op, "CMP_AND_SWP") || !strcmp(op, "FETCH_AND_ADD");
}

bool symptom_region_is_gone(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *mr = scene_target(s, buf, sizeof(buf));
	const json_t *made = scene_verb(s, "ibv_reg_mr", mr), *gone = scene_verb(s, "ibv_dereg_mr", mr);

	if (!scene_right(scene_op(s)) || !made || !gone || json_int(gone, "life", 0) < json_int(made, "life", 0))
		return false;
	snprintf(why, size, "%s was deregistered before it", mr);
	return true;
}

bool symptom_region_lacks_right(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *mr = scene_target(s, buf, sizeof(buf)), *right = scene_right(scene_op(s));
	const json_t *made = scene_verb(s, "ibv_reg_mr", mr);

	if (!right || !made || json_array_has(json_object_get(json_object_get(made, "args"), "access"), right))
		return false;
	snprintf(why, size, "%s is registered without %s", mr, right);
	return true;
}

bool symptom_beyond_region(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *mr = scene_target(s, buf, sizeof(buf));
	const json_t *made = scene_verb(s, "ibv_reg_mr", mr);
	int64_t bytes = json_int(json_object_get(made, "args"), "bytes", 0), off = json_int(s->step, "mem_off", 0);

	if (!scene_right(scene_op(s)) || !made || !s->post || off + (int64_t)s->post->size <= bytes)
		return false;
	snprintf(why, size, "bytes %" PRId64 " to %" PRId64 " of %s, which has %" PRId64, off, off + (int64_t)s->post->size, mr,
		 bytes);
	return true;
}

/* A registration of the region that had this key, and is over. */
static bool was_its_key(const struct scene *s, const char *mr, uint64_t rkey, int64_t *ret_life)
{
	const struct model *m = s->j->m;

	for (size_t i = 0; i < m->verbs.n; i++) {
		const struct m_verb *v = &m->verbs.v[i];
		const json_t *record = json_array_get(s->j->records, v->rec);

		if (v->err || strcmp(v->verb, "ibv_reg_mr") || strcmp(v->obj, mr) ||
		    json_u64(json_object_get(record, "ret"), "rkey", 0) != rkey)
			continue;
		*ret_life = json_int(record, "life", 0);
		return true;
	}
	return false;
}

/* All that the region's registration says is right: what is left is the key. */
bool symptom_key_is_wrong(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *mr = scene_target(s, buf, sizeof(buf)), *right = scene_right(scene_op(s));
	const json_t *made = scene_verb(s, "ibv_reg_mr", mr);
	uint64_t own = json_u64(json_object_get(made, "ret"), "rkey", 0), used = (uint64_t)scene_sent(s, "rkey", 0);
	int64_t life;

	if (!right || !made || used == own || symptom_region_is_gone(s, why, size) || symptom_region_lacks_right(s, why, size) ||
	    symptom_beyond_region(s, why, size))
		return false;
	if (!used)
		snprintf(why, size,
			 "%s is there, long enough, and has %s: only its key 0x%08" PRIx64 " can be another than the one used", mr,
			 right, own);
	else if (was_its_key(s, mr, used, &life))
		snprintf(why, size, "the request has 0x%08" PRIx64 ", which %s had in life %" PRId64 ": it has 0x%08" PRIx64 " now",
			 used, mr, life, own);
	else
		snprintf(why, size, "the request has 0x%08" PRIx64 ", %s has 0x%08" PRIx64, used, mr, own);
	return true;
}

bool symptom_qp_lacks_right(const struct scene *s, char *why, size_t size)
{
	const char *right = scene_right(scene_op(s));
	const json_t *access = NULL;
	const struct model *m = s->j->m;

	for (size_t i = 0; s->peer != M_NONE && i < m->states.n; i++) {
		const struct m_state *st = &m->states.v[i];

		if (st->qp == s->peer && json_is_array(json_object_get(st->queried, "access")) && st->t < s->t &&
		    strcmp(st->new_, "RESET"))
			access = json_object_get(st->queried, "access");
	}
	if (!right || !access || json_array_has(access, right))
		return false;
	snprintf(why, size, "%s does not allow %s", scene_name(s, s->peer), right);
	return true;
}

/* The receive that the peer's error is about, or that was next. */
static const struct m_post *receive_of(const struct scene *s)
{
	const struct model *m = s->j->m;

	if (s->peer_c && s->peer_c->recv)
		return m_comp_post(m, s->peer_c);
	return NULL;
}

bool symptom_receive_is_short(const struct scene *s, char *why, size_t size)
{
	const struct m_post *r = receive_of(s);

	if (!r || !s->post || !scene_takes_receive(scene_op(s)) || !strcmp(scene_op(s), "WRITE_WITH_IMM") ||
	    s->post->size <= r->size)
		return false;
	snprintf(why, size, "the message has %" PRIu64 " bytes, the receive at %s has %" PRIu64 " (%s)", s->post->size,
		 scene_name(s, s->peer), r->size, s->peer_c->status);
	return true;
}

bool symptom_receive_is_refused(const struct scene *s, char *why, size_t size)
{
	if (!receive_of(s))
		return false;
	snprintf(why, size, "the receive at %s ended in %s", scene_name(s, s->peer), s->peer_c->status);
	return true;
}

bool symptom_fewer_reads_served(const struct scene *s, char *why, size_t size)
{
	int64_t own = scene_asked(s, s->qp, "max_rd_atomic", -1), other = scene_asked(s, s->peer, "max_dest_rd_atomic", -1);

	if (s->peer == M_NONE || own < 0 || other < 0 || own <= other || !(is_read(scene_op(s)) || is_atomic(scene_op(s))))
		return false;
	snprintf(why, size, "%s sends up to %" PRId64 " READs and atomics at once, %s serves %" PRId64, scene_name(s, s->qp), own,
		 scene_name(s, s->peer), other);
	return true;
}
