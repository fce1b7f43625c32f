/* SPDX-License-Identifier: MIT */
#include "fault_common.h"

#include <stdio.h>
#include <string.h>

#include "../harness/json.h"

const char *fault_arg(const struct fault *f, const char *key)
{
	return json_str(f->args, key);
}

bool fault_names(const struct fault *f, const char *key, const char *name)
{
	return name && json_has(f->args, key, name);
}

size_t fault_names_n(const struct fault *f, const char *key)
{
	const json_t *v = json_object_get(f->args, key);

	return json_is_string(v) ? 1 : json_array_size(v);
}

const char *fault_name_at(const struct fault *f, const char *key, size_t i)
{
	const json_t *v = json_object_get(f->args, key);

	return json_is_string(v) ? json_string_value(v) : json_string_value(json_array_get(v, i));
}

const char *fault_agent(const struct fault *f, const char *qp)
{
	const char *agent = json_str(plan_qp(f->env->plan(f->env->ctl), qp), "agent");

	return agent ? agent : "?";
}

const char *fault_mr(const struct fault *f, const char *role, char *buf, size_t size)
{
	const char *mr = fault_arg(f, "mr");

	if (mr)
		snprintf(buf, size, "%s", mr);
	else
		snprintf(buf, size, "%s.%s", fault_arg(f, "at"), role);
	return buf;
}

const char *fault_pair(const struct fault *f, const char *qp)
{
	const char *pair = json_str(plan_qp(f->env->plan(f->env->ctl), qp), "pair");

	return pair ? pair : "?";
}

json_t *fault_query(const struct fault *f, const char *qp)
{
	json_t *reply = NULL, *queried = NULL;
	int rc = f->env->request(f->env->ctl, fault_agent(f, qp),
				 json_pack("{s:s,s:s,s:s}", "op", "qp_query", "name", qp, "by", "fault"), &reply, NULL);

	if (rc == 0)
		queried = json_incref(json_object_get(reply, "queried"));
	json_decref(reply);
	return queried;
}

static json_t *place(struct fault *f, const char *key)
{
	json_t *o = json_object_get(f->state, key);

	if (o)
		return o;
	o = json_object();
	json_object_set_new(f->state, key, o);
	return o;
}

void fault_counters_keep(struct fault *f, const char *agent)
{
	json_t *values = f->env->counters(f->env->ctl, agent);

	if (values)
		json_object_set_new(place(f, "counters"), agent, values);
}

int64_t fault_counters_rise(const struct fault *f, const char *agent, const char *const *names)
{
	const json_t *before = json_object_get(json_object_get(f->state, "counters"), agent);
	json_t *now = f->env->counters(f->env->ctl, agent);
	int64_t rise = 0;

	for (size_t i = 0; now && before && names[i]; i++)
		rise += json_int(now, names[i], 0) - json_int(before, names[i], 0);
	json_decref(now);
	return rise;
}

static void wc_key(char *buf, size_t size, const char *queue, const char *status)
{
	snprintf(buf, size, "%s %s", queue, status);
}

void fault_wc_keep(struct fault *f, const char *queue, const char *status)
{
	char key[192];

	wc_key(key, sizeof key, queue, status);
	json_object_set_new(place(f, "wc"), key, json_integer(f->env->wc_count(f->env->ctl, queue, status)));
}

unsigned fault_wc_rise(const struct fault *f, const char *queue, const char *status)
{
	char key[192];

	wc_key(key, sizeof key, queue, status);
	return f->env->wc_count(f->env->ctl, queue, status) - (unsigned)json_int(json_object_get(f->state, "wc"), key, 0);
}

unsigned fault_sent_unanswered(const struct fault *f, const char *qp)
{
	const char *type = json_str(plan_qp(f->env->plan(f->env->ctl), qp), "type");
	char queue[128];

	if (!type || (strcmp(type, "UC") != 0 && strcmp(type, "UD") != 0))
		return 0;
	snprintf(queue, sizeof queue, "%s.send", qp);
	return fault_wc_rise(f, queue, "SUCCESS");
}

unsigned fault_pair_posted(const struct fault *f, const char *qp)
{
	const char *peer = qp ? f->env->peer(f->env->ctl, qp) : NULL;

	return (qp ? f->env->posts_since(f->env->ctl, f, qp) : 0) + (peer ? f->env->posts_since(f->env->ctl, f, peer) : 0);
}

enum detection fault_detect_local(const json_t *args)
{
	(void)args;
	return DETECTION_LOCAL;
}

enum detection fault_detect_nak(const json_t *args)
{
	(void)args;
	return DETECTION_NAK;
}

enum detection fault_detect_rnr(const json_t *args)
{
	(void)args;
	return DETECTION_RNR;
}

enum detection fault_detect_silent(const json_t *args)
{
	(void)args;
	return DETECTION_SILENT;
}

enum detection fault_detect_none(const json_t *args)
{
	(void)args;
	return DETECTION_NONE;
}

int fault_modify(struct fault *f, const char *qp, const char *to, json_t *set, struct error *e)
{
	json_t *reply = NULL, *req = json_pack("{s:s,s:s,s:s,s:s}", "op", "qp_modify", "name", qp, "to", to, "by", "fault");
	const char *seen;
	int rc;

	if (set)
		json_object_set_new(req, "set", set);
	rc = f->env->request(f->env->ctl, fault_agent(f, qp), req, &reply, e);
	if (rc == 0) {
		seen = json_str(json_object_get(reply, "queried"), "state");
		if (!seen)
			seen = json_str(reply, "new");
		json_object_set_new(f->state, "seen", json_string(seen ? seen : "?"));
	}
	json_decref(reply);
	return rc;
}

int fault_modify_prove(const struct fault *f, const char *to, json_t **ret)
{
	const char *seen = json_str(f->state, "seen");

	*ret = json_pack("{s:s}", "queried", seen ? seen : "?");
	return seen && strcmp(seen, to) == 0;
}

int fault_clear_restart(struct fault *f, struct error *e)
{
	return f->env->restart(f->env->ctl, fault_arg(f, "agent"), e);
}

int fault_clear_nothing(struct fault *f, struct error *e)
{
	(void)f;
	(void)e;
	return 0;
}
