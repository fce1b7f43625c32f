/* SPDX-License-Identifier: MIT */
#include "executor_crash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "json.h"
#include "test.h"
#include "many.h"

static char dir[] = "/tmp/qd-crash-XXXXXX";

static void write_text(const char *name, const char *text, char path[64])
{
	snprintf(path, 64, "%s/%s", dir, name);
	FILE *f = fopen(path, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static json_t *record(const char *observations, const char *console_text)
{
	char path[64], console[64];
	struct error e = { "" };
	json_t *records = NULL;
	bool torn = true;

	if (observations)
		write_text("observations.jsonl", observations, path);
	else
		snprintf(path, sizeof path, "%s/observations.jsonl", dir);
	write_text("console.log", console_text, console);
	int rc = executor_crash_record(dir, console, 3, "guest", "its kernel stopped", &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	CU_ASSERT_EQUAL_FATAL(many_load_records(path, &records, &torn, &e), 0);
	CU_ASSERT_FALSE(torn);
	unlink(path);
	unlink(console);
	return records;
}

static void goes_on_after_the_last_whole_record(void)
{
	json_t *r = record(
		"{\"v\":1,\"n\":7,\"t\":50,\"clk\":\"c\",\"lane\":0,\"step\":4,\"kind\":\"wc\"}\n{\"v\":1,\"n\":8,\"t\":60,\"cl",
		"[ 1.0] hello\r\n[ 2.0] Kernel panic - not syncing: x\r\n");

	CU_ASSERT_EQUAL_FATAL(json_array_size(r), 4);
	for (size_t i = 1; i < 4; i++) {
		const json_t *rec = json_array_get(r, i);

		CU_ASSERT_EQUAL(json_int(rec, "n", 0), 7 + (json_int_t)i);
		CU_ASSERT_EQUAL(json_int(rec, "t", 0), 50);
		CU_ASSERT_EQUAL(json_int(rec, "step", 0), 4);
		CU_ASSERT_EQUAL(json_int(rec, "boot", 0), 3);
		CU_ASSERT_STRING_EQUAL(json_str(rec, "clk"), "c");
	}
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 2), "kind"), "klog");
	CU_ASSERT_PTR_NOT_NULL(strstr(json_str(json_array_get(r, 2), "text"), "panic"));
	CU_ASSERT(json_int(json_array_get(r, 2), "level", 9) < json_int(json_array_get(r, 1), "level", 0));
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 3), "kind"), "lost");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 3), "what"), "guest");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 3), "text"), "its kernel stopped");
	json_decref(r);
}

/* The number of a record of many is that of its first: what follows begins behind its last. */
static void goes_on_after_a_record_of_many(void)
{
	json_t *r = record(
		"{\"v\":1,\"n\":7,\"t\":50,\"clk\":\"c\",\"lane\":0,\"step\":4,\"kind\":\"many\",\"of\":\"state\",\"count\":3,"
		"\"all\":{},\"each\":{\"obj\":[\"p.a\",\"q.a\",\"r.a\"],\"t\":[50,51,52]}}\n{\"v\":1,\"n\":10,\"kind\":\"many\","
		"\"cou",
		"[ 1.0] hello\r\n");

	CU_ASSERT_EQUAL_FATAL(json_array_size(r), 5);
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(json_int(json_array_get(r, i), "n", 0), 7 + (json_int_t)i);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 2), "obj"), "r.a");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 3), "kind"), "klog");
	CU_ASSERT_EQUAL(json_int(json_array_get(r, 3), "t", 0), 52);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 4), "kind"), "lost");
	json_decref(r);
}

/* Whoever could record the proof is dead: a panic on the console is it, and only for the fault that was to make one. */
static void a_panic_that_was_asked_for_is_proven(void)
{
#define INJECT(name, phase)                                                                                                        \
	"{\"v\":1,\"n\":1,\"t\":9,\"kind\":\"fault\",\"as\":\"x\",\"name\":\"" name "\",\"phase\":\"" phase "\",\"evidence\":{}}"  \
	"\n"
	static const struct {
		const char *records, *console;
		bool proven;
	} rows[] = {
		{ INJECT("kernel_panic", "inject"), "[ 2.0] Kernel panic - not syncing: sysrq triggered crash\n", true },
		{ INJECT("kernel_panic", "inject"), "[ 2.0] all is well\n", false },
		{ INJECT("kernel_panic", "inject"), "[ 2.0] Kernel panic - not syncing: NMI: Not continuing\n", false },
		{ INJECT("netem", "inject"), "[ 2.0] Kernel panic - not syncing: x\n", false },
		{ INJECT("kernel_panic", "inject") INJECT("kernel_panic", "not_fired"), "Kernel panic - not syncing: x\n", false },
		{ "", "[ 2.0] Kernel panic - not syncing: x\n", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *r = record(rows[i].records, rows[i].console), *rec;
		const char *console = NULL;
		size_t k;

		json_array_foreach(r, k, rec)
			if (json_str(rec, "phase") && !strcmp(json_str(rec, "phase"), "fired"))
				console = json_str(json_object_get(rec, "evidence"), "console");
		ROW_ASSERT((console != NULL) == rows[i].proven && (!console || strstr(console, "sysrq triggered")), "row %zu: %s",
			   i, console ? console : "no proof");
		json_decref(r);
	}
#undef INJECT
}

static void works_without_any_record(void)
{
	json_t *r = record(NULL, "");

	CU_ASSERT_EQUAL_FATAL(json_array_size(r), 1);
	CU_ASSERT_EQUAL(json_int(json_array_get(r, 0), "n", 0), 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 0), "kind"), "lost");
	json_decref(r);
}

static void keeps_headline_and_end(void)
{
	char text[16384];
	size_t used = 0;

	for (int i = 0; i < 200; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, i == 100 ? "Kernel panic at %d\n" : "line %d\n", i);
	json_t *r = record("", text);

	CU_ASSERT_EQUAL_FATAL(json_array_size(r), 41);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 0), "text"), "Kernel panic at 100");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 9), "text"), "line 109");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 10), "text"), "line 170");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(r, 39), "text"), "line 199");
	json_decref(r);
}

static void unwritable_folder_is_named(void)
{
	struct error e = { "" };

	CU_ASSERT(executor_crash_record("/proc/nowhere", "/dev/null", 1, "guest", "x", &e) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/proc/nowhere"));
}

int main(void)
{
	static const struct test_case cases[] = {
		{ "goes on after the last whole record", goes_on_after_the_last_whole_record },
		{ "goes on after a record of many", goes_on_after_a_record_of_many },
		{ "a panic that was asked for is proven", a_panic_that_was_asked_for_is_proven },
		{ "works without any record", works_without_any_record },
		{ "keeps headline and end of a long console", keeps_headline_and_end },
		{ "an unwritable folder is named", unwritable_folder_is_named },
	};

	if (!mkdtemp(dir))
		return 1;
	int status = test_run("executor_crash", cases, sizeof cases / sizeof cases[0]);

	if (rmdir(dir) != 0)
		status = 1;
	return status;
}
