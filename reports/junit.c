/* SPDX-License-Identifier: MIT */
/*
 * junit.xml: one testsuite, one testcase per case, named by the case id, which never changes with order or lane. Elements and
 * attributes are those that the common schemas share, in the order that the strictest wants: <properties>, <testcase> with at most
 * one of <skipped>, <error>, <failure>, then <system-out> and <system-err>. A deviation passes and is named in <system-out>.
 */
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "report.h"
#include "report_util.h"
#include "xml.h"

static void put_seconds(struct xml *x, uint64_t ns)
{
	xml_attrf(x, "time", "%llu.%03llu", (unsigned long long)(ns / NSEC_PER_SEC),
		  (unsigned long long)(ns % NSEC_PER_SEC / NSEC_PER_MSEC));
}

/* <failure> or <error>: the text is what the text report says of the case. */
static void put_problem(struct xml *x, const struct report_run *run, const json_t *entry, const char *element)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	char *text = report_failure(run->run, entry);

	xml_start(x, element);
	xml_attr(x, "message", report_str(verdict, "headline"));
	xml_attr(x, "type", report_str(verdict, "verdict"));
	xml_text(x, text ? text : "");
	xml_end(x);
	free(text);
}

/* "states/reset-discards~to=RESET" -> "states": a dotted name, as Java's packages are. */
static void class_name(const char *id, char *buf, size_t size)
{
	size_t file = strcspn(id, "~");
	const char *slash = memrchr(id, '/', file);

	snprintf(buf, size, "qpdrill%s%.*s", slash ? "." : "", slash ? (int)(slash - id) : 0, id);
	for (char *s = buf; *s; s++)
		if (*s == '/')
			*s = '.';
}

static void put_case(struct xml *x, const struct report_run *run, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *id = report_str(entry, "case"), *name = report_str(verdict, "verdict");
	char class[512];

	class_name(id, class, sizeof(class));
	xml_start(x, "testcase");
	xml_attr(x, "name", id);
	xml_attr(x, "classname", class);
	put_seconds(x, report_duration(entry));
	if (!strcmp(name, "skip")) {
		xml_start(x, "skipped");
		xml_attr(x, "message", report_str(verdict, "headline"));
		xml_end(x);
	} else if (!strcmp(name, "fail")) {
		put_problem(x, run, entry, "failure");
	} else if (strcmp(name, "pass") && strcmp(name, "deviation")) {
		put_problem(x, run, entry, "error");
	}
	xml_end(x);
}

static void put_properties(struct xml *x, const json_t *run)
{
	static const char *const names[] = {
		"id", "seed", "build", "kernel", "provider", "firmware", "rdma_core", "lab", "repeat"
	};

	xml_start(x, "properties");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = json_str(run, names[i]);

		if (!value)
			continue;
		xml_start(x, "property");
		xml_attr(x, "name", names[i]);
		xml_attr(x, "value", value);
		xml_end(x);
	}
	xml_end(x);
}

static void put_repeats(struct xml *x, const struct report_run *run)
{
	json_t *repeats = report_repeats(run), *repeat, *spread;
	char verdicts[256];
	const char *phase;
	size_t i;

	json_array_foreach(repeats, i, repeat) {
		xml_textf(x, "%s: %s: %s\n", report_str(repeat, "case"), json_bool(repeat, "flaky", false) ? "flaky" : "repeated",
			  report_verdicts(repeat, verdicts, sizeof(verdicts)));
		json_object_foreach(json_object_get(repeat, "phases"), phase, spread)
			xml_textf(x, "%s: %s: min %lld ns, median %lld ns, p99 %lld ns\n", report_str(repeat, "case"), phase,
				  (long long)json_int(spread, "min_ns", 0), (long long)json_int(spread, "median_ns", 0),
				  (long long)json_int(spread, "p99_ns", 0));
	}
	json_decref(repeats);
}

static void put_deviations(struct xml *x, const struct report_run *run)
{
	size_t i, k;
	json_t *entry, *deviation;

	xml_start(x, "system-out");
	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), k, deviation)
			xml_textf(x, "%s: deviation %s\n", report_str(entry, "case"), report_str(deviation, "id"));
	json_array_foreach(run->cases, i, entry) {
		const char *why = report_str(json_object_get(entry, "result"), "again");

		if (*why)
			xml_textf(x, "%s: ran again: %s\n", report_str(entry, "case"), why);
	}
	put_repeats(x, run);
	xml_end(x);
}

/* What no case did alone. */
static void put_troubles(struct xml *x, const struct report_run *run)
{
	const char *boot;
	json_t *trouble;

	xml_start(x, "system-err");
	json_object_foreach(json_object_get(run->run, "troubles"), boot, trouble)
		if (!json_bool(trouble, "found", false))
			xml_textf(x, "boot %s: %s, and no case does it alone\n", boot, report_str(trouble, "why"));
	xml_end(x);
}

static void put_suite(struct xml *x, const struct report_run *run)
{
	struct report_counts c = report_count(run);
	const char *stamp = report_str(run->run, "started"), *host = report_str(run->run, "host");
	uint64_t ns = 0;
	size_t i;
	json_t *entry;

	json_array_foreach(run->cases, i, entry)
		ns += report_duration(entry);
	xml_start(x, "testsuite");
	xml_attr(x, "name", "qpdrill");
	xml_attr(x, "package", "scenarios");
	xml_attr(x, "id", "0");
	/* The schema's dateTime has no zone: 19 characters. */
	xml_attrf(x, "timestamp", "%.19s", *stamp ? stamp : "1970-01-01T00:00:00");
	xml_attrf(x, "hostname", "%.64s", *host ? host : "localhost");
	xml_attrf(x, "tests", "%zu", json_array_size(run->cases));
	xml_attrf(x, "failures", "%u", c.fail);
	xml_attrf(x, "errors", "%u", c.inconclusive + c.error);
	xml_attrf(x, "skipped", "%u", c.skip);
	put_seconds(x, ns);
	put_properties(x, run->run);
	json_array_foreach(run->cases, i, entry)
		put_case(x, run, entry);
	put_deviations(x, run);
	put_troubles(x, run);
	xml_end(x);
}

static int junit_write(const struct report_run *run, FILE *out, bool colour, struct error *e)
{
	struct xml *x = xml_open(out, XML_DOCUMENT);

	(void)colour;
	if (x) {
		xml_start(x, "testsuites");
		put_suite(x, run);
	}
	return xml_close(x, "junit.xml", e);
}

extern const struct report_ops report_junit;
const struct report_ops report_junit = {
	.name = "junit",
	.file = "junit.xml",
	.help = "for CI servers",
	.write = junit_write,
};
