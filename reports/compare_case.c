/* SPDX-License-Identifier: MIT */
/* One case in two runs: what it was in each, and what the difference amounts to. */
#include "compare_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"
#include "report_util.h"

#define CHANCE_MAX 0.01

const char *const change_names[NUM_CHANGES] = {
	[CHANGE_ALIKE] = "alike",
	[CHANGE_REGRESSION] = "regression",
	[CHANGE_UNTOLD] = "untold",
	[CHANGE_UNHELD] = "unheld",
	[CHANGE_IMPROVEMENT] = "improvement",
	[CHANGE_OTHER] = "other",
	[CHANGE_INCOMPARABLE] = "incomparable",
};

enum outcome { OUTCOME_PASS, OUTCOME_DEVIATES, OUTCOME_FAILS, OUTCOME_UNTOLD, OUTCOME_UNRUN, OUTCOME_SKIPPED };

static void bump(json_t *of, const char *key)
{
	json_object_set_new(of, key, json_integer(json_int(of, key, 0) + 1));
}

/* What follows from a deviation, and is waived with it. */
static bool is_consequence(const json_t *finding)
{
	static const char *const checks[] = { "payload", "cause-first", "delivered" };

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++)
		if (json_has(finding, "check", checks[i]))
			return true;
	return false;
}

/* The entries of the profile that say what a failure is: under --strict, or before a run on this kernel has shown them. NULL:
 * something else fails, too. New reference. */
static json_t *entries_behind(const json_t *verdict, bool *ret_unseen)
{
	json_t *ids = json_object(), *finding, *id;
	size_t i, k;

	*ret_unseen = false;
	json_array_foreach(json_object_get(verdict, "findings"), i, finding) {
		const json_t *likely = json_object_get(finding, "likely");

		if (!json_has(finding, "severity", "fail"))
			continue;
		if (*report_str(finding, "deviation"))
			json_object_set_new(ids, report_str(finding, "deviation"), json_true());
		json_array_foreach(likely, k, id)
			json_object_set_new(ids, json_string_value(id), json_true());
		*ret_unseen |= json_array_size(likely) > 0;
		if (!*report_str(finding, "deviation") && !json_array_size(likely) && !is_consequence(finding)) {
			json_decref(ids);
			return NULL;
		}
	}
	if (json_object_size(ids))
		return ids;
	json_decref(ids);
	return NULL;
}

static enum outcome outcome_of(const json_t *entry, json_t **ret_behind, bool *ret_unseen)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *name = report_str(verdict, "verdict"), *headline = report_str(verdict, "headline");

	*ret_behind = NULL;
	*ret_unseen = false;
	if (!report_ran(entry) || !strncmp(headline, "no verdict: ", 12))
		return OUTCOME_UNRUN;
	if (!strcmp(name, "pass"))
		return OUTCOME_PASS;
	if (!strcmp(name, "deviation"))
		return OUTCOME_DEVIATES;
	if (!strcmp(name, "skip"))
		return OUTCOME_SKIPPED;
	if (strcmp(name, "fail") != 0)
		return OUTCOME_UNTOLD;
	*ret_behind = entries_behind(verdict, ret_unseen);
	return *ret_behind ? OUTCOME_DEVIATES : OUTCOME_FAILS;
}

static void add_met(struct compare_case *c, const json_t *entry, json_t *behind, bool unseen)
{
	json_t *ids = behind ? json_incref(behind) : json_object(), *item;
	const char *id;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), i, item)
		json_object_set_new(ids, report_str(item, "id"), json_true());
	json_object_foreach(ids, id, item) {
		bump(c->met, id);
		if (unseen)
			bump(c->unseen, id);
	}
	json_decref(ids);
}

/* What one record says of the end of a request other than SUCCESS. Those of the pair that looks on are told by its own check. */
static void add_status(json_t *set, const json_t *rec)
{
	int64_t vendor = json_int(rec, "vendor_err", 0);
	char key[512], code[48] = "";

	if (!json_has(rec, "kind", "wc") || json_has(rec, "status", "SUCCESS") ||
	    !strncmp(report_str(rec, "obj"), "bystander.", 10))
		return;
	if (vendor)
		snprintf(code, sizeof(code), " (vendor_err 0x%llx)", (unsigned long long)vendor);
	snprintf(key, sizeof(key), "%s %s%s", report_str(rec, "obj"), report_str(rec, "status"), code);
	json_object_set_new(set, key, json_true());
}

/* Its records: which statuses came, and how late the machine was. Of a damaged file nothing is known. */
static void add_records(struct compare_case *c, const struct report_run *run, const json_t *entry)
{
	json_t *records, *rec, *set = json_object(), *v;
	struct error ignored;
	const char *key;
	bool torn;
	size_t i;

	if (report_records(run, entry, &records, &torn, &ignored)) {
		json_decref(set);
		return;
	}
	json_array_foreach(records, i, rec) {
		uint64_t late_ns = json_u64(rec, "late_max_ns", 0);

		add_status(set, rec);
		if (json_bool(rec, "witness", false) && (c->late_ns == UINT64_MAX || late_ns > c->late_ns))
			c->late_ns = late_ns;
	}
	json_object_foreach(set, key, v)
		bump(c->statuses, key);
	json_decref(records);
	json_decref(set);
}

static int says_more(enum outcome o)
{
	static const int rank[] = { [OUTCOME_FAILS] = 5, [OUTCOME_DEVIATES] = 4, [OUTCOME_UNTOLD] = 3,
				    [OUTCOME_UNRUN] = 2, [OUTCOME_SKIPPED] = 1,  [OUTCOME_PASS] = 0 };

	return rank[o];
}

static void add_entry(struct compare_case *c, const struct report_run *run, const json_t *entry, int *best)
{
	json_t *behind;
	bool unseen;
	enum outcome o = outcome_of(entry, &behind, &unseen);
	unsigned *const counts[] = {
		[OUTCOME_PASS] = &c->pass,     [OUTCOME_DEVIATES] = &c->deviates, [OUTCOME_FAILS] = &c->fails,
		[OUTCOME_UNTOLD] = &c->untold, [OUTCOME_UNRUN] = &c->unrun,       [OUTCOME_SKIPPED] = &c->skipped
	};

	c->n++;
	++*counts[o];
	add_met(c, entry, behind, unseen);
	if (o <= OUTCOME_FAILS)
		add_records(c, run, entry);
	if (says_more(o) > *best) {
		*best = says_more(o);
		c->shown = entry;
	}
	json_decref(behind);
}

void compare_case_init(struct compare_case *c, const struct report_run *run, const json_t *entries)
{
	int best = -1;
	json_t *entry;
	size_t i;

	*c = (struct compare_case){
		.entries = entries, .met = json_object(), .unseen = json_object(), .statuses = json_object(), .late_ns = UINT64_MAX
	};
	json_array_foreach(entries, i, entry)
		add_entry(c, run, entry, &best);
}

void compare_case_release(struct compare_case *c)
{
	json_decref(c->met);
	json_decref(c->unseen);
	json_decref(c->statuses);
}

unsigned compare_told(const struct compare_case *c)
{
	return c->pass + c->deviates + c->fails;
}

char *compare_ends(const struct compare_case *c, char *buf, size_t size)
{
	const struct {
		unsigned n;
		const char *word;
	} ends[] = { { c->pass, "pass" },         { c->deviates, "deviation" }, { c->fails, "fail" },
		     { c->untold, "not judged" }, { c->unrun, "not run" },      { c->skipped, "skip" } };
	size_t len = 0;

	*buf = 0;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends) && len < size; i++) {
		if (ends[i].n && c->n == 1)
			len += (size_t)snprintf(buf + len, size - len, "%s", ends[i].word);
		else if (ends[i].n)
			len += (size_t)snprintf(buf + len, size - len, "%s%u %s", len ? ", " : "", ends[i].n, ends[i].word);
	}
	return buf;
}

/* Each term from the one before it, all of them to one scale. */
double compare_chance(unsigned a, unsigned m, unsigned b, unsigned n)
{
	unsigned all = a + b, least = all > m ? all - m : 0, most = all < n ? all : n;
	double term = 1, sum = 0, tail = 0;

	for (unsigned k = least; k <= most; k++) {
		sum += term;
		tail += k >= b ? term : 0;
		term *= (double)(n - k) * (all - k) / ((k + 1.0) * ((double)m - all + k + 1));
		if (sum > 1e200) {
			term /= 1e200;
			sum /= 1e200;
			tail /= 1e200;
		}
	}
	return tail / sum;
}

__attribute__((format(printf, 2, 3))) static struct change_why because(enum change change, const char *fmt, ...)
{
	struct change_why w = { .change = change };
	va_list args;

	va_start(args, fmt);
	vsnprintf(w.text, sizeof(w.text), fmt, args);
	va_end(args);
	return w;
}

/* Whose keys are in one and not in the other: "a, b". Returns buf. */
static char *list_missing(const json_t *in, const json_t *from, char *buf, size_t size)
{
	const char *key;
	json_t *v;
	size_t len = 0;

	*buf = 0;
	json_object_foreach((json_t *)in, key, v)
		if (!json_object_get(from, key) && len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "", key);
	return buf;
}

/* Statuses that every repetition of one showed, and none of the other. */
static bool is_firm(const json_t *statuses, const char *key, const struct compare_case *c)
{
	return json_int(statuses, key, 0) == (int64_t)compare_told(c);
}

static void list_firm(const struct compare_case *in, const struct compare_case *from, char *buf, size_t size)
{
	const char *key;
	json_t *v;
	size_t len = 0;

	*buf = 0;
	json_object_foreach(in->statuses, key, v)
		if (is_firm(in->statuses, key, in) && !json_object_get(from->statuses, key) && len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "", key);
}

static struct change_why change_of_statuses(const struct compare_case *older, const struct compare_case *newer)
{
	char gone[220], come[220];

	list_firm(older, newer, gone, sizeof(gone));
	list_firm(newer, older, come, sizeof(come));
	if (*gone && *come)
		return because(CHANGE_OTHER, "%s in place of %s, and the scenario allows both", come, gone);
	if (*gone || *come)
		return because(CHANGE_OTHER, "%s %s, and the scenario allows both", *come ? come : gone,
			       *come ? "came" : "did not come");
	return because(CHANGE_ALIKE, "%s", "");
}

static struct change_why change_of_deviations(const struct compare_case *older, const struct compare_case *newer)
{
	char come[200], gone[200];

	list_missing(newer->met, older->met, come, sizeof(come));
	list_missing(older->met, newer->met, gone, sizeof(gone));
	if (*come && *gone)
		return because(CHANGE_OTHER, "deviates from the specification in another way: %s in place of %s", come, gone);
	if (*come)
		return because(CHANGE_REGRESSION, "deviates from the specification: %s", come);
	if (*gone)
		return because(CHANGE_IMPROVEMENT, "does not deviate from the specification any more: %s", gone);
	list_missing(newer->unseen, older->unseen, come, sizeof(come));
	list_missing(older->unseen, newer->unseen, gone, sizeof(gone));
	if (*come)
		return because(CHANGE_OTHER,
			       "the same deviation as before, %s, but no run has shown it on this kernel: it is not in `seen` of "
			       "the profile",
			       come);
	if (*gone)
		return because(CHANGE_OTHER, "the same deviation as before, %s, and the profile knows it of this kernel", gone);
	return change_of_statuses(older, newer);
}

static const char *check_of(const struct compare_case *c)
{
	return report_str(compare_finding(c, NULL), "check");
}

static struct change_why change_of_failures(const struct compare_case *older, const struct compare_case *newer,
					    bool profile_differs)
{
	unsigned m = compare_told(older), n = compare_told(newer);
	const char *or_profile = profile_differs ? ", or the profile does not excuse it any more" : "";

	if (!older->fails && m + n > 2)
		return because(CHANGE_REGRESSION, "fails in %u of %u, where none of %u did%s", newer->fails, n, m,
			       older->deviates ? or_profile : "");
	if (!older->fails)
		return because(CHANGE_REGRESSION, "fails%s", older->deviates ? or_profile : "");
	if (!newer->fails && newer->deviates && profile_differs)
		return because(CHANGE_OTHER, "does not fail any more, but the profile is another one, and excuses it");
	if (!newer->fails && older->fails == m)
		return because(CHANGE_IMPROVEMENT, "does not fail any more");
	if (compare_chance(older->fails, m, newer->fails, n) < CHANCE_MAX)
		return because(CHANGE_REGRESSION, "fails more often: %u of %u, %u of %u before", newer->fails, n, older->fails, m);
	if (compare_chance(newer->fails, n, older->fails, m) < CHANCE_MAX)
		return because(CHANGE_IMPROVEMENT, "fails less often: %u of %u, %u of %u before", newer->fails, n, older->fails, m);
	if (newer->fails * m != older->fails * n)
		return because(CHANGE_OTHER, "%u of %u fail, %u of %u did: that may be chance", newer->fails, n, older->fails, m);
	if (strcmp(check_of(older), check_of(newer)))
		return because(CHANGE_OTHER, "fails in another way: %s, before it was %s", check_of(newer), check_of(older));
	return change_of_statuses(older, newer);
}

static struct change_why change_untold(const struct compare_case *older, const struct compare_case *newer)
{
	const char *headline = report_str(json_object_get(newer->shown, "verdict"), "headline");

	if (newer->skipped == newer->n)
		return older->skipped == older->n ? because(CHANGE_ALIKE, "%s", "")
						  : because(CHANGE_OTHER, "is skipped: %s", headline);
	if (!compare_told(older))
		return because(CHANGE_ALIKE, "%s", "");
	return because(CHANGE_UNTOLD, "%s: %s", newer->untold ? "could not be judged" : "did not run to its end", headline);
}

struct change_why compare_change(const struct compare_case *older, const struct compare_case *newer, bool profile_differs)
{
	if (!compare_told(newer))
		return change_untold(older, newer);
	if (!compare_told(older) && newer->fails)
		return because(CHANGE_UNHELD, "fails, and %s before",
			       older->skipped == older->n ? "was skipped" : "could not be judged");
	if (!compare_told(older))
		return because(older->skipped == older->n ? CHANGE_OTHER : CHANGE_IMPROVEMENT, "%s",
			       older->skipped == older->n ? "was skipped, and runs now" : "could not be judged, and is now");
	if (older->fails || newer->fails)
		return change_of_failures(older, newer, profile_differs);
	return change_of_deviations(older, newer);
}

/* The first of that severity; of those that the known do not explain, where told so. */
static const json_t *first_finding(const struct compare_case *c, const char *severity, const json_t *known)
{
	json_t *finding;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(c->shown, "verdict"), "findings"), i, finding)
		if (json_has(finding, "severity", severity) && !json_object_get(known, report_str(finding, "deviation")))
			return finding;
	return NULL;
}

const json_t *compare_finding(const struct compare_case *c, const json_t *known)
{
	static const char *const severities[] = { "fail", "deviation", "error", "inconclusive" };
	const json_t *finding = NULL;

	for (size_t k = 0; k < sizeof(severities) / sizeof(*severities) && !finding; k++) {
		finding = first_finding(c, severities[k], known);
		if (!finding)
			finding = first_finding(c, severities[k], NULL);
	}
	return finding;
}
