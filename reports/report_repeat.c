/* SPDX-License-Identifier: MIT */
/* What repetitions of a case (~rN) had in common, and what not. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/phases.h"
#include "report.h"
#include "report_util.h"

size_t report_base_length(const char *id)
{
	size_t len = strlen(id), end = len;

	while (end && isdigit((unsigned char)id[end - 1]))
		end--;
	return end < len && end > 2 && id[end - 1] == 'r' && id[end - 2] == '~' ? end - 2 : len;
}

bool report_ran(const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");

	return strncmp(report_str(verdict, "headline"), "not run: ", 9) != 0;
}

/* All times of one phase in these cases; the caller frees. */
static uint64_t *times_of(const json_t *entries, const char *name, size_t *ret_n)
{
	char key[32];
	uint64_t *v = NULL;
	size_t n = 0, i, k;
	json_t *entry, *phases;

	snprintf(key, sizeof(key), "%s_ns", name);
	json_array_foreach(entries, i, entry) {
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "phases"), k, phases) {
			uint64_t *more = json_object_get(phases, key) ? reallocarray(v, n + 1, sizeof(*v)) : NULL;

			if (!more)
				continue;
			v = more;
			v[n++] = json_u64(phases, key, 0);
		}
	}
	*ret_n = n;
	return v;
}

static json_t *phases_of_all(const json_t *entries)
{
	json_t *all = json_object();

	for (int k = 0; k < NUM_PHASES; k++) {
		size_t n;
		uint64_t *v = times_of(entries, phase_names[k], &n);

		if (n)
			json_object_set_new(all, phase_names[k], phases_spread(v, n));
		free(v);
	}
	return all;
}

static json_t *durations(const json_t *entries)
{
	size_t n = json_array_size(entries), i;
	uint64_t *v = calloc(n ? n : 1, sizeof(*v));
	json_t *entry, *spread;

	if (!v)
		return json_null();
	json_array_foreach(entries, i, entry)
		v[i] = report_duration(entry);
	spread = n ? phases_spread(v, n) : json_null();
	free(v);
	return spread;
}

/* Flaky: what has run did not always end in the same way. */
static json_t *summary(const char *id, const json_t *entries)
{
	json_t *verdicts = json_object(), *ran = json_array(), *entry, *o;
	size_t i;

	json_array_foreach(entries, i, entry) {
		const char *name = report_str(json_object_get(entry, "verdict"), "verdict");

		if (!report_ran(entry))
			continue;
		json_array_append(ran, entry);
		json_object_set_new(verdicts, name, json_integer(json_int(verdicts, name, 0) + 1));
	}
	o = json_pack("{s:s,s:i,s:i,s:b,s:o,s:o,s:o}", "case", id, "repeat", (int)json_array_size(entries), "ran",
		      (int)json_array_size(ran), "flaky", json_object_size(verdicts) > 1, "verdicts", verdicts, "duration",
		      durations(ran), "phases", phases_of_all(ran));
	json_decref(ran);
	return o;
}

json_t *report_groups(const struct report_run *run)
{
	json_t *by_case = json_object(), *entry, *entries;
	size_t i;

	json_array_foreach(run->cases, i, entry) {
		const char *id = report_str(entry, "case");
		char base[1024];

		snprintf(base, sizeof(base), "%.*s", (int)report_base_length(id), id);
		entries = json_object_get(by_case, base);
		if (!entries) {
			entries = json_array();
			json_object_set_new(by_case, base, entries);
		}
		json_array_append(entries, entry);
	}
	return by_case;
}

json_t *report_repeats(const struct report_run *run)
{
	json_t *by_case = report_groups(run), *all = json_array(), *entries;
	const char *id;

	json_object_foreach(by_case, id, entries) {
		const char *first = report_str(json_array_get(entries, 0), "case");

		if (first[report_base_length(first)])
			json_array_append_new(all, summary(id, entries));
	}
	json_decref(by_case);
	return all;
}

char *report_verdicts(const json_t *repeat, char *buf, size_t size)
{
	static const char *const order[] = { "pass", "deviation", "fail", "inconclusive", "error", "skip" };
	size_t len = 0;

	*buf = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order) && len < size; i++) {
		int64_t n = json_int(json_object_get(repeat, "verdicts"), order[i], 0);

		if (n)
			len += (size_t)snprintf(buf + len, size - len, "%s%lld %s", len ? ", " : "", (long long)n, order[i]);
	}
	if (!len)
		snprintf(buf, size, "never ran");
	return buf;
}
