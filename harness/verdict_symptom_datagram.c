/* SPDX-License-Identifier: MIT */
/* Symptoms of what no answer tells of: UC and UD, where a SUCCESS says that a message was sent. */
#include "verdict_symptom.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static const char *const qkey_bad[] = { "qkey_viol_cntr", NULL };

bool symptom_wrong_qkey(const struct scene *s, char *why, size_t size)
{
	const char *counter;
	int64_t sent = scene_sent(s, "remote_qkey", -1), own = s->peer == M_NONE ? -1 : scene_asked(s, s->peer, "qkey", -1);
	int64_t n = s->peer == M_NONE ? 0 : scene_moved(s, s->peer, qkey_bad, &counter);

	if (sent >= 0 && own >= 0 && sent != own)
		snprintf(why, size, "the message has 0x%08" PRIx64 ", %s has 0x%08" PRIx64, (uint64_t)sent, scene_name(s, s->peer),
			 (uint64_t)own);
	else if (n)
		snprintf(why, size, "%s +%" PRId64 " at %s", counter, n, scene_name(s, s->peer));
	else
		return false;
	return true;
}

/* The handle that the message went by. */
static const char *handle_of(const struct scene *s, char *buf, size_t size)
{
	const char *given = json_str(s->step, "ah");

	snprintf(buf, size, "%s.ah", scene_name(s, s->qp));
	return given ? given : buf;
}

bool symptom_handle_is_gone(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *ah = handle_of(s, buf, sizeof(buf));
	const json_t *made = scene_verb(s, "ibv_create_ah", ah), *gone = scene_verb(s, "ibv_destroy_ah", ah);

	if (!scene_is_datagram(s) || !made || !gone || json_int(gone, "life", 0) < json_int(made, "life", 0))
		return false;
	snprintf(why, size, "%s was destroyed before it", ah);
	return true;
}

bool symptom_handle_leads_astray(const struct scene *s, char *why, size_t size)
{
	char buf[128];
	const char *ah = handle_of(s, buf, sizeof(buf)), *dest, *gid = scene_gid(s, s->peer);

	if (!scene_is_datagram(s) || s->peer == M_NONE)
		return false;
	dest = json_str(json_object_get(scene_verb(s, "ibv_create_ah", ah), "args"), "dest_gid");
	/* A group's is nobody's own. */
	if (!dest || !gid || !strcmp(dest, gid) || !strncmp(dest, "ff", 2))
		return false;
	snprintf(why, size, "%s leads to %s, %s is at %s", ah, dest, scene_name(s, s->peer), gid);
	return true;
}

bool symptom_datagram_too_long(const struct scene *s, char *why, size_t size)
{
	int64_t mtu = scene_mtu(s, s->qp);

	if (!scene_is_datagram(s) || !mtu || !s->post || (int64_t)s->post->size <= mtu)
		return false;
	snprintf(why, size, "the message has %" PRIu64 " bytes, a packet of %s at most %" PRId64, s->post->size,
		 scene_name(s, s->qp), mtu);
	return true;
}

bool symptom_dropped_without_receive(const struct scene *s, char *why, size_t size)
{
	return !scene_is_answered(s) && scene_takes_receive(scene_op(s)) && symptom_receive_is_missing(s, why, size);
}

/* Whoever looked last did not find all of it. */
static bool is_missing(const struct scene *s)
{
	const struct model *m = s->j->m;

	for (size_t i = m->payloads.n; s->post && i-- > 0;)
		if (m->payloads.v[i].tag == s->post->tag)
			return m->payloads.v[i].absent > 0;
	return false;
}

bool symptom_nobody_would_tell(const struct scene *s, char *why, size_t size)
{
	if (scene_is_answered(s) || !is_missing(s))
		return false;
	snprintf(why, size, "%s is a %s QP: its SUCCESS says that a message was sent", scene_name(s, s->qp),
		 s->j->m->qps.v[s->qp].type);
	return true;
}
