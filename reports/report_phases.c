/* SPDX-License-Identifier: MIT */
/* What a recovery took, in one line. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "report_util.h"

__attribute__((format(printf, 3, 4))) static void add(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf + len, size - len, fmt, args);
	va_end(args);
}

static void add_time(char *buf, size_t size, const json_t *o, const char *key, const char *before, const char *name)
{
	char ns[32];

	if (json_object_get(o, key))
		add(buf, size, "%s%s %s", before, name, units_format_ns(json_u64(o, key, 0), ns, sizeof(ns)));
}

char *report_phases(const json_t *p, char *buf, size_t size)
{
	static const char *const names[] = { "drained", "told", "rts", "good", "verified", "full" };
	const char *since = report_str(p, "since");
	const char *first = " ";

	*buf = 0;
	add(buf, size, "step %" PRId64 "%s%s, ", json_int(p, "step", 0), *report_str(p, "iter") ? " iteration " : "",
	    report_str(p, "iter"));
	if (strcmp(since, "recovery") != 0) {
		add(buf, size, "since %s%s%s:", since, *report_str(p, "fault") ? " " : "", report_str(p, "fault"));
		add_time(buf, size, p, "symptom_ns", " ", "symptom");
		add_time(buf, size, p, "error_ns", json_object_get(p, "symptom_ns") ? ", " : " ", "error");
		add_time(buf, size, p, "began_ns", json_object_get(p, "symptom_ns") || json_object_get(p, "error_ns") ? ", " : " ",
			 "recovery");
		add(buf, size, "; ");
	}
	add(buf, size, "%s:", report_str(p, "path"));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char key[32];

		snprintf(key, sizeof(key), "%s_ns", names[i]);
		add_time(buf, size, p, key, first, names[i]);
		if (json_object_get(p, key))
			first = ", ";
	}
	if (json_int(p, "pairs", 1) > 1)
		add(buf, size, " (%" PRId64 " pairs)", json_int(p, "pairs", 1));
	if (json_int(p, "attempts", 1) > 1)
		add(buf, size, " in attempt %" PRId64, json_int(p, "attempts", 1));
	add_time(buf, size, p, "bound_ns", ", ", "known to");
	return buf;
}
