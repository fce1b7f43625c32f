/* SPDX-License-Identifier: MIT */
/* What agents and devices hold after a round of a repeat: RDMA objects, open files, memory. */
#include "controller_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "lab_nldev.h"
#include "resources.h"
#include "units.h"

#define ASK_NS (3 * NSEC_PER_SEC)
/* The kernel takes away what a killed process or a closed device had a moment later. */
#define SETTLE_NS (3 * NSEC_PER_SEC)
#define LOOK_NS (20 * NSEC_PER_MSEC)

struct look {
	struct case_run *r;
	json_t *held; /* "a", "dev.a", "controller" -> { "qp": 1, "files": 9, ... } */
};

static json_t *held_by(json_t *held, const char *of)
{
	json_t *o = json_object_get(held, of);

	if (!o) {
		o = json_object();
		json_object_set_new(held, of, o);
	}
	return o;
}

static void ask_agents(struct look *l)
{
	static const char *const keys[] = { "files", "anon_bytes", "heap_bytes" };
	struct ops ops = { .head = NULL };

	for (const struct ctl_agent *a = l->r->c->agents; a; a = a->next)
		if (a->name[0] && !plan_is_bystander(a->name) && !agent_unreachable(a))
			ops_add(&ops, a->name, json_pack("{s:s}", "op", "usage"));
	ops_run(l->r, &ops, ASK_NS, NULL);
	for (const struct op *op = ops.head; op; op = op->next)
		for (size_t i = 0; op->rc == 0 && i < sizeof keys / sizeof keys[0]; i++)
			json_object_set(held_by(l->held, op->agent), keys[i], json_object_get(op->reply, keys[i]));
	ops_free(&ops);
}

/* The kernel names the thread that made an object. */
static bool is_thread_of(const struct ctl_agent *a, int64_t thread)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%lld/task/%lld", (long long)json_int(a->hello, "pid", -1), (long long)thread);
	return clock_is_shared(a) && access(path, F_OK) == 0;
}

static const struct ctl_agent *agent_of_thread(const struct case_run *r, int64_t thread)
{
	for (const struct ctl_agent *a = r->c->agents; a; a = a->next)
		if (a->name[0] && !plan_is_bystander(a->name) && is_thread_of(a, thread))
			return a;
	return NULL;
}

static void count_objects(struct look *l)
{
	static const char *const types[] = { "qp", "cq", "mr", "pd", "srq" };
	json_t *picture = residue_snapshot(l->r);
	const json_t *object;
	size_t i;

	for (const struct ctl_agent *a = l->r->c->agents; a && picture; a = a->next)
		for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
			if (json_object_get(l->held, a->name))
				json_object_set_new(held_by(l->held, a->name), types[k], json_integer(0));
	json_array_foreach(json_object_get(picture, "rdma"), i, object) {
		const char *type = json_str(object, "object");
		const struct ctl_agent *a = agent_of_thread(l->r, json_int(object, "pid", -1));

		if (a && type)
			json_object_set_new(held_by(l->held, a->name), type,
					    json_integer(json_int(json_object_get(l->held, a->name), type, 0) + 1));
	}
	json_decref(picture);
}

static void note_total(void *user, const char *rdma, const char *type, uint64_t count)
{
	struct look *l = user;
	char of[CTL_NAME_MAX];

	for (size_t i = 0; i < 2; i++) {
		const struct lab_device *d = &l->r->lane->device[i];

		if (strcmp(d->rdma, rdma) != 0)
			continue;
		snprintf(of, sizeof of, "dev.%s", d->name);
		json_object_set_new(held_by(l->held, of), type, json_integer((json_int_t)count));
	}
}

/* The kernel breaks its list off where a device goes meanwhile, that of another lane too. */
static void count_totals(struct look *l)
{
	uint64_t end = now_ns() + SETTLE_NS;
	struct error e = { "" };

	while (lab_nldev_counts(note_total, l, &e)) {
		if (now_ns() >= end) {
			case_lost(l->r, 1, "resources: %s", e.text);
			return;
		}
		case_wait(l->r, NULL, NULL, now_ns() + LOOK_NS);
	}
}

static json_t *look_now(struct case_run *r)
{
	struct look l = { .r = r, .held = json_object() };
	int files;

	ask_agents(&l);
	if (r->c->lab) {
		count_objects(&l);
		count_totals(&l);
	}
	files = proc_files();
	if (files >= 0)
		json_object_set_new(held_by(l.held, "controller"), "files", json_integer(files));
	return l.held;
}

/* Some count is above that of before. */
static bool counts_more(const json_t *now, const json_t *before)
{
	const char *of, *what;
	const json_t *held, *value;

	json_object_foreach((json_t *)now, of, held)
		json_object_foreach((json_t *)held, what, value)
			if (!resources_is_memory(what) &&
			    json_integer_value(value) > json_int(json_object_get(before, of), what, INT64_MAX))
				return true;
	return false;
}

/* The first look is settled when two of them are alike, the last when nothing is above the first. */
static json_t *look_settled(struct resources_watch *w, bool first)
{
	uint64_t end = now_ns() + SETTLE_NS, pause = LOOK_NS;
	json_t *held = look_now(w->r), *again;

	while (now_ns() < end && (first || counts_more(held, w->base))) {
		case_wait(w->r, NULL, NULL, now_ns() + pause);
		pause *= 2;
		again = look_now(w->r);
		bool same = !counts_more(held, again) && !counts_more(again, held);

		json_decref(held);
		held = again;
		if (first && same)
			break;
	}
	return held;
}

void resources_round(struct resources_watch *w, int64_t round)
{
	json_t *held;

	if (!resources_is_due(w->rounds, round))
		return;
	held = !w->base || round == w->rounds ? look_settled(w, !w->base) : look_now(w->r);
	if (!w->base)
		w->base = json_incref(held);
	case_record(w->r, "controller",
		    json_pack("{s:s,s:I,s:I,s:o}", "kind", "resources", "round", (json_int_t)round, "rounds", (json_int_t)w->rounds,
			      "held", held));
}

void resources_free(struct resources_watch *w)
{
	json_decref(w->base);
	w->base = NULL;
}
