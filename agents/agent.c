/* SPDX-License-Identifier: MIT */
#include "agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/file_line.h"
#include "../harness/json.h"
#include "../harness/log.h"
#include "../harness/many.h"
#include "../harness/rdma_core.h"
#include "../harness/record.h"
#include "../harness/units.h"
#include "cm.h"
#include "columns.h"
#include "counters.h"
#include "cq_set.h"
#include "object.h"
#include "release.h"
#include "verbs_thread.h"
#include "witness.h"

#ifndef QD_BUILD
#define QD_BUILD "unversioned"
#endif
#define LAST_RELEASE_NS (3 * NSEC_PER_SEC)

static int send_hello(struct agent *a)
{
	char boot_id[64], clk[160], core[64];
	Dl_info library;
	json_t *hello;
	int rc;

	file_line(BOOT_ID_PATH, boot_id, sizeof(boot_id));
	recorder_clock_domain(clk, sizeof(clk));
	hello = json_pack("{s:{s:i, s:s, s:I, s:s, s:s, s:[s,s,s,s,s,s,s,s,s,s,s]}}", "hello", "protocol", AGENT_PROTOCOL, "build",
			  QD_BUILD, "pid", (json_int_t)getpid(), "boot_id", boot_id, "clk", clk, "caps", "RC", "UC", "UD",
			  "multicast", "srq", "atomics", "inline", "chain", "sqd", "mw", "extended");
	if (!hello)
		return -ENOMEM;
	if (cm_is_there())
		json_array_append_new(json_object_get(json_object_get(hello, "hello"), "caps"), json_string("cm"));
	if (dladdr((void *)ibv_get_device_list, &library) && rdma_core_version(library.dli_fname, core, sizeof(core)))
		json_object_set_new(json_object_get(hello, "hello"), "rdma_core", json_string(core));
	rc = line_send(a->line, hello);
	json_decref(hello);
	return rc;
}

/* What became of one that was to be sent. */
static void sent(struct agent *a, int rc)
{
	if (rc < 0 && rc != -EPIPE) {
		log_error("a record cannot be sent: %s (%zu bytes are waiting)", strerror(-rc), line_pending(a->line));
		sd_event_exit(a->loop, 1);
	}
}

/* record is stolen. */
static void send_record(struct agent *a, json_t *record)
{
	json_t *outer = json_pack("{s:o}", "rec", record);

	a->turn = true;
	sent(a, a->leaving ? 0 : line_send(a->line, outer));
	json_decref(outer);
}

static void send_each(struct agent *a, const json_t *records)
{
	json_t *record;
	size_t i;

	json_array_foreach((json_t *)records, i, record)
		send_record(a, json_incref(record));
}

/* What they are about comes first, so that it is found without reading all of it. */
static json_t *record_of_many(json_t *fold, const json_t *first)
{
	json_t *record = json_pack("{s:s, s:O, s:O}", "kind", "many", "of", json_object_get(first, "kind"), "t",
				   json_object_get(first, "t"));

	json_object_del(json_object_get(fold, "all"), "kind");
	json_object_update(record, fold);
	json_decref(fold);
	return record;
}

static void send_folded(struct agent *a)
{
	json_t *records = a->folded, *fold = json_array_size(records) >= MANY_MIN ? many_fold(records) : NULL;

	a->folded = NULL;
	if (fold)
		send_record(a, record_of_many(fold, json_array_get(records, 0)));
	else
		send_each(a, records);
	json_decref(records);
}

static bool is_of_kind(const json_t *records, const char *kind)
{
	const char *other = json_str(json_array_get(records, 0), "kind");

	return other && strcmp(other, kind) == 0;
}

void agent_fold(struct agent *a, bool on)
{
	a->folding += on ? 1 : -1u;
	if (!a->folding)
		send_folded(a);
}

void agent_record_many(struct agent *a, const char *kind, uint64_t t_ns, size_t n, json_t *all, struct each *each)
{
	char *common = json_dumps(all, JSON_COMPACT), head[128];
	struct iovec parts[5];

	if (!common)
		abort();
	if (a->folded)
		send_folded(a);
	a->turn = true;
	snprintf(head, sizeof(head), "{\"rec\":{\"kind\":\"many\",\"of\":\"%s\",\"t\":%llu,\"count\":%zu,\"all\":", kind,
		 (unsigned long long)t_ns, n);
	parts[0] = (struct iovec){ head, strlen(head) };
	parts[1] = (struct iovec){ common, strlen(common) };
	parts[2] = (struct iovec){ (void *)",\"each\":{", strlen(",\"each\":{") };
	parts[3] = (struct iovec){ each->text ? each->text : (void *)"", each->len };
	parts[4] = (struct iovec){ (void *)"}}}", strlen("}}}") };
	sent(a, a->leaving ? 0 : line_send_text(a->line, parts, 5));
	free(common);
	json_decref(all);
	each_release(each);
}

void agent_record(struct agent *a, uint64_t t_ns, const char *kind, const char *obj, unsigned life, json_t *fields)
{
	json_t *record = json_object();

	json_object_set_new(record, "t", json_integer((json_int_t)t_ns));
	json_object_set_new(record, "kind", json_string(kind));
	if (obj)
		json_object_set_new(record, "obj", json_string(obj));
	if (life)
		json_object_set_new(record, "life", json_integer(life));
	if (fields) {
		json_object_update(record, fields);
		json_decref(fields);
	}
	if (!a->folding) {
		send_record(a, record);
		return;
	}
	if (a->folded && !is_of_kind(a->folded, kind))
		send_folded(a);
	if (!a->folded)
		a->folded = json_array();
	json_array_append_new(a->folded, record);
}

static void on_json(void *user, json_t *value)
{
	request_take(user, value);
}

static void on_text(void *user, const char *text)
{
	struct agent *a = user;
	char shown[200];
	json_t *reply;

	log_escape(text, shown, sizeof(shown));
	reply = json_pack("{s:n, s:i, s:o}", "id", "rc", -EBADMSG, "error", json_sprintf("no JSON object: %s", shown));
	line_send(a->line, reply);
	json_decref(reply);
}

static void on_end(void *user, int err)
{
	struct agent *a = user;

	if (err)
		log_warn("the controller is gone: %s", strerror(-err));
	a->leaving = true;
	release_and_exit(a, LAST_RELEASE_NS);
}

static const struct line_ops line_ops = { .on_json = on_json, .on_text = on_text, .on_end = on_end };

int agent_new(sd_event *loop, int rfd, int wfd, struct agent **ret, struct error *e)
{
	struct agent *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return error_set(e, -ENOMEM, "no memory for the agent");
	a->loop = sd_event_ref(loop);
	a->events = json_array();
	rc = line_new(loop, rfd, wfd, &line_ops, a, &a->line);
	if (rc < 0) {
		error_set(e, rc, "stdin and stdout cannot be watched: %s", strerror(-rc));
		goto free_agent;
	}
	rc = cq_set_new(a, &a->cq_set);
	if (rc < 0) {
		error_set(e, rc, "completion events cannot be watched: %s", strerror(-rc));
		goto free_agent;
	}
	rc = verbs_thread_new(a, &a->verbs);
	if (rc < 0) {
		error_set(e, rc, "the verbs thread cannot be started: %s", strerror(-rc));
		goto free_agent;
	}
	rc = send_hello(a);
	if (rc < 0) {
		error_set(e, rc, "the hello cannot be sent: %s", strerror(-rc));
		goto free_agent;
	}
	*ret = a;
	return 0;
free_agent:
	agent_free(a);
	return rc;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	witness_free(a->witness);
	counters_forget(a);
	agent_forget(a);
	verbs_thread_free(a->verbs);
	cq_set_free(a->cq_set);
	line_free(a->line);
	json_decref(a->events);
	sd_event_unref(a->loop);
	free(a);
}
