/* SPDX-License-Identifier: MIT */
#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/profile.h"
#include "compare_internal.h"
#include "report_util.h"

struct comparison {
	const struct report_run *run[2]; /* older, newer */
	json_t *groups[2];
	bool profile_differs, set_differs;
	json_t *cases, *changed, *gone, *appeared, *statuses, *met[2];
	struct compare_times *times;
	unsigned counts[NUM_CHANGES];
};

/* What belongs to one run alone, what is told in another place, and how a lab calls its devices and links. */
static bool is_own(const char *key)
{
	static const char *const own[] = { "device",  "netdev", "gid",    "guid",   "gid_index", "lid",      "cases",
					   "command", "ended",  "exit",   "hashes", "id",        "left_out", "narrowed",
					   "paths",   "repeat", "schema", "seed",   "set",       "started",  "troubles" };

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (!strcmp(own[i], key))
			return true;
	return false;
}

static json_t *text_of(const json_t *value)
{
	char *dump;
	json_t *text;

	if (json_is_string(value))
		return json_string(json_string_value(value));
	dump = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	text = json_string(dump ? dump : "");
	free(dump);
	return text;
}

static void differ(json_t *list, const char *what, const json_t *older, const json_t *newer);

/* Each part by itself: "devices.a.fw". What only one of them tells is no difference. */
static void differ_inside(json_t *list, const char *what, const json_t *older, const json_t *newer)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)older, key, value) {
		char name[256];

		snprintf(name, sizeof(name), "%.180s.%.60s", what, key);
		if (!is_own(key) && json_object_get(newer, key))
			differ(list, name, value, json_object_get(newer, key));
	}
}

static void differ(json_t *list, const char *what, const json_t *older, const json_t *newer)
{
	json_t *a, *b;

	if (json_is_object(older) && json_is_object(newer)) {
		differ_inside(list, what, older, newer);
		return;
	}
	a = text_of(older);
	b = text_of(newer);
	if (json_equal(a, b) || (!older && !*json_string_value(b)) || (!newer && !*json_string_value(a))) {
		json_decref(a);
		json_decref(b);
		return;
	}
	json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "what", what, "old", a, "new", b));
}

/* Whatever run.json says of where and how it ran. What one of them does not say is no difference. */
static json_t *differences(const struct comparison *c)
{
	static const char *const first[] = { "kernel", "provider", "firmware", "device", "rdma_core", "lab", "accel" };
	json_t *list = json_array(), *told = json_object(), *value;
	const json_t *a = c->run[0]->run, *b = c->run[1]->run;
	const char *key;

	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++) {
		json_object_set_new(told, first[i], json_true());
		differ(list, first[i], json_object_get(a, first[i]), json_object_get(b, first[i]));
	}
	json_object_foreach((json_t *)a, key, value)
		if (!is_own(key) && !json_object_get(told, key) && json_object_get(b, key))
			differ(list, key, value, json_object_get(b, key));
	differ(list, "set", json_object_get(a, "set"), json_object_get(b, "set"));
	json_decref(told);
	return list;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* {"rxe.yaml":"sha256:..."}. New reference. */
static json_t *profiles_of(const struct report_run *run)
{
	json_t *all = json_object(), *hash;
	const char *path;

	json_object_foreach(json_object_get(run->run, "hashes"), path, hash)
		if (strstr(path, "profiles/"))
			json_object_set(all, base_name(path), hash);
	return all;
}

static bool profiles_differ(const struct comparison *c)
{
	json_t *a = profiles_of(c->run[0]), *b = profiles_of(c->run[1]);
	bool differs = !json_equal(a, b);

	json_decref(a);
	json_decref(b);
	return differs;
}

/* NULL: not known. */
static const char *scenario_hash(const struct report_run *run, const struct compare_case *c)
{
	const char *file = json_str(json_object_get(json_array_get(c->entries, 0), "plan"), "file");

	return file ? json_str(json_object_get(run->run, "hashes"), file) : NULL;
}

static bool is_same_test(struct comparison *c, const struct compare_case sides[2])
{
	const char *a = scenario_hash(c->run[0], &sides[0]), *b = scenario_hash(c->run[1], &sides[1]), *file;

	if (a && b && strcmp(a, b) != 0) {
		file = report_str(json_object_get(json_array_get(sides[1].entries, 0), "plan"), "file");
		json_object_set_new(c->changed, file, json_integer(json_int(c->changed, file, 0) + 1));
		return false;
	}
	return !c->set_differs;
}

static json_t *side_json(const struct compare_case *c)
{
	const json_t *verdict = json_object_get(c->shown, "verdict");
	char ends[128];

	return json_pack("{s:s,s:i,s:s,s:s,s:O,s:O}", "ended", compare_ends(c, ends, sizeof(ends)), "n", (int)c->n, "headline",
			 report_str(verdict, "headline"), "seen", report_str(verdict, "seen"), "deviations", c->met, "statuses",
			 c->statuses);
}

/* The finding in short, and where it is. */
static json_t *finding_json(const struct compare_case *c, const json_t *known)
{
	const json_t *finding = compare_finding(c, known);
	char where[1024];

	if (!finding)
		return json_null();
	return json_pack("{s:s,s:s,s:s,s:s}", "where",
			 report_where(json_object_get(c->shown, "plan"), finding, where, sizeof(where)), "expected",
			 report_str(finding, "expected"), "seen", report_str(finding, "seen"), "text", report_str(finding, "text"));
}

static void add_change(struct comparison *c, const char *id, const struct compare_case sides[2], const struct change_why *why)
{
	char repeat[4096];

	c->counts[why->change]++;
	if (why->change == CHANGE_ALIKE)
		return;
	json_array_append_new(c->cases, json_pack("{s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:s}", "case", id, "title",
						  report_str(json_object_get(sides[1].shown, "plan"), "title"), "change",
						  change_names[why->change], "why", why->text, "old", side_json(&sides[0]), "new",
						  side_json(&sides[1]), "finding", finding_json(&sides[1], sides[0].met), "repeat",
						  report_repeat(c->run[1]->run, id, repeat, sizeof(repeat))));
}

static void count_keys(json_t *of, const json_t *set)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)set, key, v)
		json_object_set_new(of, key, json_integer(json_int(of, key, 0) + 1));
}

/* In how many cases each status came, whoever saw it: {"RETRY_EXC_ERR":{"old":3,"new":4}}. */
static void count_statuses(struct comparison *c, const struct compare_case sides[2])
{
	static const char *const names[] = { "old", "new" };

	for (int i = 0; i < 2; i++) {
		json_t *once = json_object(), *v, *row;
		const char *key;

		json_object_foreach(sides[i].statuses, key, v)
			json_object_set_new(once, strchr(key, ' ') ? strchr(key, ' ') + 1 : key, json_true());
		json_object_foreach(once, key, v) {
			row = json_object_get(c->statuses, key);
			if (!row) {
				row = json_pack("{s:i,s:i}", "old", 0, "new", 0);
				json_object_set_new(c->statuses, key, row);
			}
			json_object_set_new(row, names[i], json_integer(json_int(row, names[i], 0) + 1));
		}
		json_decref(once);
	}
}

static void compare_one(struct comparison *c, const char *id, const json_t *older, const json_t *newer)
{
	struct compare_case sides[2];
	struct change_why why;
	bool both;

	compare_case_init(&sides[0], c->run[0], older);
	compare_case_init(&sides[1], c->run[1], newer);
	both = compare_told(&sides[0]) && compare_told(&sides[1]);
	why = compare_change(&sides[0], &sides[1], c->profile_differs);
	if (!is_same_test(c, sides)) {
		why.change = why.change == CHANGE_ALIKE ? CHANGE_ALIKE : CHANGE_INCOMPARABLE;
	} else if (both) {
		compare_times_add(c->times, id, &sides[0], &sides[1]);
		count_statuses(c, sides);
		count_keys(c->met[0], sides[0].met);
		count_keys(c->met[1], sides[1].met);
	}
	add_change(c, id, sides, &why);
	compare_case_release(&sides[0]);
	compare_case_release(&sides[1]);
}

/* A case that only one of them has. A failure is told as such, though nothing says that it is new. */
static void only_one(struct comparison *c, int side, const char *id, const json_t *entries)
{
	struct compare_case sides[2] = { { .n = 0 } }, *here = &sides[side];
	json_t *list = side ? c->appeared : c->gone;
	char ends[128];

	compare_case_init(here, c->run[side], entries);
	json_array_append_new(list, json_pack("{s:s,s:s}", "case", id, "ended", compare_ends(here, ends, sizeof(ends))));
	if (side && here->fails) {
		struct change_why why = { CHANGE_UNHELD, "fails, and the older run does not have it" };

		compare_case_init(&sides[0], c->run[0], NULL);
		add_change(c, id, sides, &why);
		compare_case_release(&sides[0]);
	}
	compare_case_release(here);
}

static void compare_all(struct comparison *c)
{
	const char *id;
	json_t *entries;

	json_object_foreach(c->groups[1], id, entries) {
		const json_t *older = json_object_get(c->groups[0], id);

		if (older)
			compare_one(c, id, older, entries);
		else
			only_one(c, 1, id, entries);
	}
	json_object_foreach(c->groups[0], id, entries)
		if (!json_object_get(c->groups[1], id))
			only_one(c, 0, id, entries);
}

/* A grid that the provider's timers lie on. */
static uint64_t granularity_of(const struct report_run *run)
{
	struct profile profile;
	struct diag d = { 0 };
	struct error ignored;
	uint64_t ns = 0;
	char path[4096];
	json_t *entry;
	size_t i;

	json_array_foreach(run->cases, i, entry) {
		snprintf(path, sizeof(path), "%s/%s/profile.yaml", run->dir, report_str(entry, "dir"));
		if (access(path, R_OK) < 0)
			continue;
		if (!profile_load(path, "", &profile, &d, &ignored)) {
			ns = json_u64(profile.timing, "granularity", 0);
			profile_release(&profile);
		}
		break;
	}
	diag_release(&d);
	return ns;
}

static bool is_equal(const struct comparison *c, const char *key)
{
	const json_t *a = json_object_get(c->run[0]->run, key), *b = json_object_get(c->run[1]->run, key);

	return a && b ? json_equal(a, b) : a == b;
}

static json_t *times_json(struct comparison *c)
{
	uint64_t a = granularity_of(c->run[0]), b = granularity_of(c->run[1]);
	const char *why = NULL;

	if (!is_equal(c, "lab") || !is_equal(c, "accel"))
		why = "the runs had different labs or accelerators";
	return compare_times_judge(c->times, a > b ? a : b, is_equal(c, "host") && is_equal(c, "lanes"), why);
}

static json_t *run_json(const struct report_run *run)
{
	static const char *const keys[] = { "id",        "lab",   "kernel", "provider", "firmware", "device",
					    "rdma_core", "build", "seed",   "started",  "ended" };
	struct report_counts n = report_count(run);
	json_t *o = json_pack("{s:s,s:i,s:{s:i,s:i,s:i,s:i,s:i,s:i}}", "dir", run->dir, "cases", (int)json_array_size(run->cases),
			      "counts", "pass", (int)n.pass, "deviation", (int)n.deviation, "fail", (int)n.fail, "inconclusive",
			      (int)n.inconclusive, "error", (int)n.error, "skip", (int)n.skip);

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_is_string(json_object_get(run->run, keys[i])))
			json_object_set(o, keys[i], json_object_get(run->run, keys[i]));
	return o;
}

/* {"id":[in old, in new]} of those that only one of them met. */
static json_t *deviations_json(const struct comparison *c, int in)
{
	json_t *list = json_object(), *n;
	const char *id;

	json_object_foreach(c->met[in], id, n)
		if (!json_object_get(c->met[!in], id))
			json_object_set(list, id, n);
	return list;
}

static json_t *document(struct comparison *c)
{
	json_t *counts = json_object(), *times = times_json(c), *change;
	size_t i, slower = 0;

	json_array_foreach(json_object_get(times, "changes"), i, change)
		slower += json_bool(change, "regression", false);
	for (int k = 0; k < NUM_CHANGES; k++)
		json_object_set_new(counts, change_names[k], json_integer(c->counts[k]));
	json_object_set_new(counts, "slower", json_integer((json_int_t)slower));
	return json_pack("{s:i,s:o,s:o,s:o,s:b,s:O,s:o,s:O,s:O,s:O,s:O,s:{s:o,s:o},s:o}", "schema", 1, "old", run_json(c->run[0]),
			 "new", run_json(c->run[1]), "differences", differences(c), "profile_differs", c->profile_differs,
			 "changed_scenarios", c->changed, "counts", counts, "cases", c->cases, "gone", c->gone, "appeared",
			 c->appeared, "statuses", c->statuses, "deviations", "new", deviations_json(c, 1), "gone",
			 deviations_json(c, 0), "times", times);
}

static bool have_one_in_common(const struct comparison *c)
{
	const char *id;
	json_t *entries;

	json_object_foreach(c->groups[1], id, entries)
		if (json_object_get(c->groups[0], id))
			return true;
	return false;
}

static const char *first_case(const struct comparison *c, int side)
{
	const json_t *entry = json_array_get(c->run[side]->cases, 0);

	return entry ? report_str(entry, "case") : "none";
}

int compare_runs(const struct report_run *older, const struct report_run *newer, json_t **ret, struct error *e)
{
	struct comparison c = { .run = { older, newer } };
	int rc = 0;

	c.groups[0] = report_groups(older);
	c.groups[1] = report_groups(newer);
	if (!have_one_in_common(&c)) {
		rc = error_set(e, -ENODATA, "%s and %s have no case in common: %zu cases (%s, ...) and %zu (%s, ...)", older->dir,
			       newer->dir, json_array_size(older->cases), first_case(&c, 0), json_array_size(newer->cases),
			       first_case(&c, 1));
		goto free_groups;
	}
	c.times = compare_times_new();
	if (!c.times) {
		rc = error_set(e, -ENOMEM, "out of memory");
		goto free_groups;
	}
	c.cases = json_array();
	c.gone = json_array();
	c.appeared = json_array();
	c.changed = json_object();
	c.statuses = json_object();
	c.met[0] = json_object();
	c.met[1] = json_object();
	c.profile_differs = profiles_differ(&c);
	c.set_differs = !is_equal(&c, "set");
	compare_all(&c);
	*ret = document(&c);
	compare_times_free(c.times);
	json_decref(c.cases);
	json_decref(c.gone);
	json_decref(c.appeared);
	json_decref(c.changed);
	json_decref(c.statuses);
	json_decref(c.met[0]);
	json_decref(c.met[1]);
free_groups:
	json_decref(c.groups[0]);
	json_decref(c.groups[1]);
	return rc;
}

int compare_exit_status(const json_t *doc)
{
	const json_t *counts = json_object_get(doc, "counts");

	if (json_int(counts, change_names[CHANGE_REGRESSION], 0) || json_int(counts, "slower", 0))
		return 1;
	return json_int(counts, change_names[CHANGE_UNTOLD], 0) ? 3 : 0;
}
