/* SPDX-License-Identifier: MIT */
#include "coverage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/fault.h"
#include "json.h"
#include "names.h"
#include "plan.h"

#define NOTHING "-"
#define RECEIVE "receive"
#define KEY_MAX 256

static const struct {
	const char *op, *transports;
} operations[] = {
	{ "SEND", "RC UC UD XRC" },  { "SEND_WITH_IMM", "RC UC UD XRC" }, { "SEND_WITH_INV", "RC XRC" },
	{ "WRITE", "RC UC XRC" },    { "WRITE_WITH_IMM", "RC UC XRC" },   { "READ", "RC XRC" },
	{ "CMP_AND_SWP", "RC XRC" }, { "FETCH_AND_ADD", "RC XRC" },       { "LOCAL_INV", "RC UC XRC" },
	{ "BIND_MW", "RC UC XRC" },
};

static const char *const transports[] = { "RC", "UC", "UD", "XRC", NULL };
static const char *const paths[] = { "reset", "recreate", "cm", "sq", "sqd", "reopen", "restart", NULL };

bool coverage_possible(const char *transport, const char *op)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		const char *p = strcmp(operations[i].op, op) ? NULL : strstr(operations[i].transports, transport);

		if (p && (p == operations[i].transports || p[-1] == ' '))
			return true;
	}
	return false;
}

/* One case while its steps are gone through. */
struct walk {
	const json_t *plan;
	json_t *rows;   /* of all cases: {"RC SEND dry RNR_RETRY_EXC_ERR reset": row} */
	json_t *events; /* {"RC QP_FATAL": row} */
	json_t *faults; /* {"netem": true}: injected somewhere */
	json_t *posts;  /* {"w": {"type","ops":[],"fault"}} */
	json_t *active; /* {"dry": "missing_receive"} */
	json_t *open;   /* rows' keys without their path: no recovery has followed yet */
	json_t *seen;   /* keys that this case has counted already */
	const char *verdict;
};

static void bump(json_t *row, const char *key)
{
	json_object_set_new(row, key, json_integer(json_int(row, key, 0) + 1));
}

static void count(struct walk *w, json_t *table, const char *key, json_t *fresh)
{
	json_t *row = json_object_get(table, key);

	if (!row) {
		json_object_set(table, key, fresh);
		row = fresh;
	}
	if (!json_object_get(w->seen, key)) {
		json_object_set_new(w->seen, key, json_true());
		bump(row, "cases");
		if (w->verdict)
			bump(row, w->verdict);
	}
	json_decref(fresh);
}

/* What is wrong in the call itself stands where a fault's name would. */
static const char *own_fault(const json_t *post)
{
	static const struct {
		const char *key, *value, *name;
	} wrong[] = {
		{ "rkey", "wrong", "(wrong rkey)" },      { "srqn", "wrong", "(wrong SRQ number)" },
		{ "rkey", "old", "(old rkey)" },          { "lkey", "wrong", "(wrong lkey)" },
		{ "lkey", "old", "(old lkey)" },          { "addr", "beyond", "(beyond the MR)" },
		{ "addr", "misaligned", "(misaligned)" }, { "addr", "before", "(before the MR)" },
		{ "addr", "zero", "(address 0)" },        { "addr", "other", "(address of another MR)" },
		{ "addr", "own", "(own address)" },
	};
	const json_t *member;
	size_t k;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (json_str(post, wrong[i].key) && !strcmp(json_str(post, wrong[i].key), wrong[i].value))
			return wrong[i].name;
	json_array_foreach(json_object_get(post, "members"), k, member)
		if (own_fault(member))
			return own_fault(member);
	return NULL;
}

/* The wire's faults differ by their action: "wire drop". */
static json_t *fault_name(const json_t *step)
{
	const char *name = json_str(step, "fault"), *action = json_str(json_object_get(step, "args"), "action");

	return action ? json_sprintf("%s %s", name, action) : json_string(name);
}

static const char *any_fault(const struct walk *w)
{
	const char *key, *name = NULL;
	json_t *value;

	json_object_foreach(w->active, key, value)
		if (!name)
			name = json_string_value(value);
	return name;
}

static const char *type_of(const struct walk *w, const char *qp)
{
	const char *type = json_str(plan_qp(w->plan, qp), "type") ?: "RC";

	return strncmp(type, "XRC", 3) ? type : "XRC"; /* both kinds of its ends */
}

static void add_row(struct walk *w, const char *type, const char *op, const char *fault, const char *status)
{
	json_array_append_new(w->open, json_pack("[s,s,s,s]", type, op, fault ?: NOTHING, status));
}

/* Ends what is open: this is how it was recovered from. */
static void close_rows(struct walk *w, const char *path)
{
	const json_t *four;
	size_t i;

	json_array_foreach(w->open, i, four) {
		const char *text[5] = { NULL, NULL, NULL, NULL, path };
		char key[KEY_MAX];

		for (size_t k = 0; k < 4; k++)
			text[k] = json_string_value(json_array_get(four, k));
		snprintf(key, sizeof(key), "%s|%s|%s|%s|%s", text[0], text[1], text[2], text[3], text[4]);
		count(w, w->rows, key,
		      json_pack("{s:s,s:s,s:s,s:s,s:s}", "transport", text[0], "op", text[1], "fault", text[2], "status", text[3],
				"recovery", text[4]));
	}
	json_array_clear(w->open);
}

/* Every status that the pattern names. */
static json_t *statuses(const json_t *pattern)
{
	json_t *out = json_array(), *list;
	const json_t *item, *name;
	size_t i, k;

	if (json_is_true(json_object_get(pattern, "none")))
		json_array_append_new(out, json_string("none"));
	json_array_foreach(json_object_get(pattern, "all"), i, name)
		json_array_append(out, (json_t *)name);
	json_array_foreach(json_object_get(pattern, "seq"), i, item) {
		list = json_object_get(item, "any");
		json_array_foreach(list, k, name)
			if (!json_array_has(out, json_string_value(name)))
				json_array_append(out, (json_t *)name);
	}
	return out;
}

static void add_pattern(struct walk *w, const char *type, const json_t *ops, const char *fault, const json_t *pattern)
{
	json_t *all = statuses(pattern);
	const json_t *op, *status;
	size_t i, k;

	json_array_foreach(ops, i, op)
		json_array_foreach(all, k, status)
			add_row(w, type, json_string_value(op), fault, json_string_value(status));
	json_decref(all);
}

static void add_ops(json_t *ops, const json_t *post)
{
	const char *op = json_str(post, "op");
	const json_t *member;
	size_t i;

	if (op && !json_array_has(ops, op))
		json_array_append_new(ops, json_string(op));
	json_array_foreach(json_object_get(post, "members"), i, member)
		add_ops(ops, member);
}

static void take_post(struct walk *w, const json_t *step)
{
	const json_t *at = json_object_get(step, "at"), *value;
	const char *type = type_of(w, json_string_value(json_array_get(at, 0)) ?: "");
	const char *fault = own_fault(step) ?: any_fault(w);
	json_t *ops = json_array();
	char status[64];
	size_t i, k;

	add_ops(ops, step);
	json_array_foreach(json_object_get(step, "returns"), i, value) {
		const json_t *op;

		snprintf(status, sizeof(status), "returns %s", json_string_value(value));
		json_array_foreach(ops, k, op)
			if (strcmp(json_string_value(value), "0") != 0)
				add_row(w, type, json_string_value(op), fault, status);
	}
	if (json_str(step, "as"))
		json_object_set_new(w->posts, json_str(step, "as"),
				    json_pack("{s:s,s:O,s:s*}", "type", type, "ops", ops, "fault", fault));
	json_decref(ops);
}

static void take_traffic(struct walk *w, const json_t *step)
{
	const json_t *pair, *pattern = json_object_get(step, "ops"), *qp;
	json_t *success = json_pack("{s:[s]}", "all", "SUCCESS");
	size_t i, k;

	json_array_foreach(json_object_get(step, "pairs"), i, pair)
		json_array_foreach(json_object_get(w->plan, "qps"), k, qp)
			if (json_str(qp, "pair") && !strcmp(json_str(qp, "pair"), json_string_value(pair)) &&
			    !json_has(qp, "type", "XRC_RECV")) /* which sends nothing */
				add_pattern(w, type_of(w, json_str(qp, "name")), pattern, any_fault(w), success);
	json_decref(success);
}

static void take_events(struct walk *w, const char *type, const json_t *events)
{
	const json_t *name;
	char key[KEY_MAX];
	size_t i;

	json_array_foreach(json_object_get(events, "all"), i, name) {
		snprintf(key, sizeof(key), "event|%s|%s", type, json_string_value(name));
		count(w, w->events, key, json_pack("{s:s,s:O}", "transport", type, "event", name));
	}
}

static void take_expect(struct walk *w, const json_t *step)
{
	const json_t *at = json_object_get(step, "at"), *one, *post = json_object_get(w->posts, json_str(step, "of") ?: "");
	const char *type = post ? json_str(post, "type") : type_of(w, json_string_value(json_array_get(at, 0)) ?: "");
	const char *fault = post && json_str(post, "fault") ? json_str(post, "fault") : any_fault(w);
	json_t *receive = json_pack("[s]", RECEIVE), *unnamed = json_pack("[s]", NOTHING);
	size_t i;

	json_array_foreach(json_object_get(step, "any"), i, one)
		take_expect(w, one);
	if (json_object_get(step, "wc"))
		add_pattern(w, type, post ? json_object_get(post, "ops") : unnamed, fault, json_object_get(step, "wc"));
	if (json_object_get(step, "recv_wc"))
		add_pattern(w, type, receive, fault, json_object_get(step, "recv_wc"));
	if (json_object_get(step, "event"))
		take_events(w, type, json_object_get(step, "event"));
	json_decref(receive);
	json_decref(unnamed);
}

static void take_steps(struct walk *w, const json_t *steps)
{
	const json_t *step, *name;
	size_t i, k;

	json_array_foreach(steps, i, step) {
		const char *what = json_str(step, "do") ?: "";
		char made_up[32];

		snprintf(made_up, sizeof(made_up), "step %zu", i);
		if (!strcmp(what, "fault"))
			json_object_set_new(w->faults, json_str(step, "fault"), json_true());
		if (!strcmp(what, "fault"))
			json_object_set_new(w->active, json_str(step, "as") ?: made_up, fault_name(step));
		else if (!strcmp(what, "clear"))
			json_array_foreach(json_object_get(step, "arg"), k, name)
				json_object_del(w->active, json_string_value(name));
		else if (!strcmp(what, "post"))
			take_post(w, step);
		else if (!strcmp(what, "traffic"))
			take_traffic(w, step);
		else if (!strcmp(what, "expect"))
			take_expect(w, step);
		else if (!strcmp(what, "recover") && !strcmp(json_str(step, "result") ?: "", "verified"))
			close_rows(w, json_str(step, "path"));
		take_steps(w, json_object_get(step, "steps"));
	}
}

/* Sorted by key, so that the same scenarios give the same bytes. */
static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *sorted(json_t *table)
{
	const char **keys = calloc(json_object_size(table) + 1, sizeof(*keys)), *key;
	json_t *out = json_array(), *value;
	size_t n = 0;

	json_object_foreach(table, key, value)
		if (keys)
			keys[n++] = key;
	if (keys)
		qsort(keys, n, sizeof(*keys), by_text);
	for (size_t i = 0; i < n; i++)
		json_array_append(out, json_object_get(table, keys[i]));
	free(keys);
	return out;
}

/* The table with, for each row, the files that name it. */
static json_t *named(const json_t *plans, const json_t *verdicts, const struct refs *refs, enum ref_table t)
{
	json_t *out = json_array(), *mine = json_object();
	const json_t *row, *plan, *ref, *found;
	size_t i, k;

	json_array_foreach(refs->rows[t], i, row) {
		json_t *copy = json_copy((json_t *)row);

		json_object_set_new(copy, "scenarios", json_array());
		json_object_set_new(copy, "cases", json_integer(0));
		json_object_set(mine, json_str(row, "id"), copy);
		json_array_append_new(out, copy);
	}
	json_array_foreach(plans, i, plan) {
		const char *id = json_str(plan, "case") ?: "?", *verdict = json_str(verdicts, id);
		json_t *scenario = json_pack("s%", id, strcspn(id, "~"));

		json_array_foreach(json_object_get(plan, "refs"), k, ref) {
			json_t *to, *list;

			if (refs_find(refs, json_string_value(ref), &found) != REF_ROW)
				continue;
			to = json_object_get(mine, json_str(found, "id"));
			list = json_object_get(to, "scenarios");
			if (!to)
				continue;
			bump(to, "cases");
			if (verdict)
				bump(to, verdict);
			if (!json_array_has(list, json_string_value(scenario)))
				json_array_append(list, scenario);
		}
		json_decref(scenario);
	}
	json_decref(mine);
	return out;
}

static bool has_row(const json_t *rows, const char *key, const char *value, const char *key2, const char *value2)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) {
		const char *a = json_str(row, key), *b = key2 ? json_str(row, key2) : NULL;

		if (a && !strcmp(a, value) && (!key2 || (b && !strcmp(b, value2))))
			return true;
	}
	return false;
}

/* A hole, and why it is one where no scenario could fill it. */
static void add_missing(json_t *list, const struct refs *refs, const char *kind, const char *name)
{
	char key[KEY_MAX];

	snprintf(key, sizeof(key), "unreached %s %s", kind, name);
	json_array_append_new(list,
			      json_pack("{s:s,s:s*}", "name", name, "never", json_str(json_object_get(refs->index, key), "never")));
}

static void add_absent(json_t *list, const struct refs *refs, const json_t *rows, const char *kind, const struct name_table *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (!has_row(rows, kind, names->rows[i].text, NULL, NULL))
			add_missing(list, refs, kind, names->rows[i].text);
}

/* What there is in the language and no scenario asserts. */
static json_t *holes_of(const json_t *rows, const json_t *events, const json_t *injected, const struct refs *refs)
{
	json_t *ops = json_array(), *absent_statuses = json_array(), *absent_events = json_array(), *faults = json_array(),
	       *recoveries = json_array();
	char both[64];

	for (const char *const *t = transports; *t; t++)
		for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
			snprintf(both, sizeof(both), "%s %s", *t, operations[i].op);
			if (coverage_possible(*t, operations[i].op) && !has_row(rows, "transport", *t, "op", operations[i].op))
				add_missing(ops, refs, "op", both);
		}
	add_absent(absent_statuses, refs, rows, "status", &names_status);
	add_absent(absent_events, refs, events, "event", &names_event);
	for (const struct fault_ops *const *f = fault_table; *f; f++)
		if (!json_object_get(injected, (*f)->name))
			add_missing(faults, refs, "fault", (*f)->name);
	for (const char *const *p = paths; *p; p++)
		if (!has_row(rows, "recovery", *p, NULL, NULL))
			add_missing(recoveries, refs, "recovery", *p);
	return json_pack("{s:o,s:o,s:o,s:o,s:o}", "ops", ops, "statuses", absent_statuses, "events", absent_events, "faults",
			 faults, "recoveries", recoveries);
}

int coverage_make(const json_t *plans, const json_t *verdicts, const struct refs *refs, json_t **ret, struct error *e)
{
	json_t *rows = json_object(), *events = json_object(), *injected = json_object(), *out, *row_list, *event_list;
	const json_t *plan;
	size_t i;

	json_array_foreach(plans, i, plan) {
		struct walk w = { .plan = plan,
				  .rows = rows,
				  .events = events,
				  .faults = injected,
				  .posts = json_object(),
				  .active = json_object(),
				  .open = json_array(),
				  .seen = json_object(),
				  .verdict = json_str(verdicts, json_str(plan, "case") ?: "") };

		take_steps(&w, json_object_get(plan, "steps"));
		close_rows(&w, NOTHING);
		json_decref(w.posts);
		json_decref(w.active);
		json_decref(w.open);
		json_decref(w.seen);
	}
	row_list = sorted(rows);
	event_list = sorted(events);
	out = json_pack("{s:i,s:I,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "schema", 1, "cases", (json_int_t)json_array_size(plans), "run",
			verdicts != NULL, "rows", row_list, "events", event_list, "holes",
			holes_of(row_list, event_list, injected, refs), "demands", named(plans, verdicts, refs, REF_DEMANDS),
			"seeds", named(plans, verdicts, refs, REF_SEEDS), "field", named(plans, verdicts, refs, REF_FIELD));
	json_decref(rows);
	json_decref(events);
	json_decref(injected);
	if (!out)
		return error_set(e, -ENOMEM, "out of memory");
	*ret = out;
	return 0;
}
