/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "many.h"
#include "test.h"

static char path[] = "/tmp/qdrecXXXXXX";

static struct recorder *open_it(void)
{
	struct recorder_options o = { .path = path, .clk = "boot/1", .boot = 2, .lane = 3 };
	struct recorder *r = NULL;

	CU_ASSERT_EQUAL_FATAL(recorder_open(&o, &r, NULL), 0);
	return r;
}

static json_t *lines(bool *torn)
{
	json_t *array = NULL;

	CU_ASSERT_EQUAL_FATAL(json_load_lines(path, &array, torn, NULL), 0);
	return array;
}

static void fills_what_every_record_carries(void)
{
	static const char *const keys[] = { "v", "n", "t", "clk", "src", "boot", "lane", "step", "kind" };
	struct recorder *r = open_it();
	json_t *rec = json_pack("{s:s}", "kind", "step"), *own = json_pack("{s:s,s:i}", "kind", "wc", "t", 77), *all;
	bool torn = true;

	recorder_step(r, 4, "");
	CU_ASSERT_EQUAL(recorder_write(r, "controller", NULL, rec), 0);
	recorder_step(r, 5, "2.1");
	CU_ASSERT_EQUAL(recorder_write(r, "agent/a", "other/9", own), 0);
	CU_ASSERT_EQUAL(recorder_count(r), 2);
	all = lines(&torn);
	CU_ASSERT_FALSE(torn);
	CU_ASSERT_EQUAL_FATAL(json_array_size(all), 2);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		CU_ASSERT_PTR_NOT_NULL(json_object_get(json_array_get(all, 0), keys[i]));
	const json_t *a = json_array_get(all, 0), *b = json_array_get(all, 1);

	CU_ASSERT_EQUAL(json_int(a, "n", 0), 1);
	CU_ASSERT_EQUAL(json_int(a, "step", 0), 4);
	CU_ASSERT_EQUAL(json_int(a, "boot", 0), 2);
	CU_ASSERT_EQUAL(json_int(a, "lane", 0), 3);
	CU_ASSERT(json_int(a, "t", 0) > 0);
	CU_ASSERT_STRING_EQUAL(json_str(a, "clk"), "boot/1");
	CU_ASSERT_PTR_NULL(json_object_get(a, "iter"));
	CU_ASSERT_EQUAL(json_int(b, "t", 0), 77);
	CU_ASSERT_STRING_EQUAL(json_str(b, "clk"), "other/9");
	CU_ASSERT_STRING_EQUAL(json_str(b, "src"), "agent/a");
	CU_ASSERT_STRING_EQUAL(json_str(b, "iter"), "2.1");
	recorder_close(r);
	json_decref(rec);
	json_decref(own);
	json_decref(all);
}

/* Written as it came or put together again, a record is the same, and so is what the model is fed. */
static void text_is_continued(void)
{
	static const struct {
		const char *text, *line; /* that it becomes */
	} rows[] = {
		{ "{\"t\":5,\"kind\":\"wc\", \"obj\":\"p.a\"}",
		  "{\"t\":5,\"kind\":\"wc\", "
		  "\"obj\":\"p.a\",\"v\":1,\"n\":1,\"clk\":\"c/1\",\"src\":\"agent/a\",\"boot\":2,\"lane\":3,"
		  "\"step\":6,\"iter\":\"3\"}\n" },
		/* What is the recorder's to say is said by it alone. */
		{ "{\"t\":5,\"kind\":\"wc\",\"step\":9}",
		  "{\"t\":5,\"kind\":\"wc\",\"step\":6,\"v\":1,\"n\":1,\"clk\":\"c/1\",\"src\":\"agent/a\",\"boot\":2,\"lane\":3,"
		  "\"iter\":\"3\"}\n" },
		{ "{\"t\":5,\"src\":\"controller\"}", "{\"t\":5,\"src\":\"agent/a\",\"v\":1,\"n\":1,\"clk\":\"c/"
						      "1\",\"boot\":2,\"lane\":3,\"step\":6,\"iter\":\"3\"}\n" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct recorder *r = open_it();
		json_t *rec = json_loads(rows[i].text, 0, NULL), *written;
		char line[512] = "";
		FILE *f;

		recorder_step(r, 6, "3");
		CU_ASSERT_EQUAL(recorder_write_text(r, "agent/a", "c/1", rec, rows[i].text, strlen(rows[i].text)), 0);
		recorder_close(r);
		f = fopen(path, "r");
		CU_ASSERT(f && fgets(line, sizeof line, f) != NULL);
		fclose(f);
		ROW_ASSERT(!strcmp(line, rows[i].line), "row %zu: %s", i, line);
		written = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		ROW_ASSERT(json_equal(written, rec), "row %zu: what is fed differs from what is written", i);
		json_decref(written);
		json_decref(rec);
	}
}

/* Those nobody has read yet: each has a number, the next one goes on behind them, and what was put to it is known. */
static void unread_it_counts_for_as_many_as_it_is(void)
{
	static const char many[] = "{\"kind\":\"many\",\"of\":\"state\",\"t\":9,\"count\":3,\"all\":{\"new\":\"RTR\"},"
				   "\"each\":{\"obj\":[\"p.a\",\"p.b\",\"q.a\"]}}";
	struct recorder *r = open_it();
	json_t *before = json_pack("{s:s}", "kind", "step"), *after = json_pack("{s:s}", "kind", "step"), *more = NULL, *all = NULL;
	json_t *read = json_loads(many, 0, NULL);
	bool torn;

	recorder_step(r, 6, "3");
	CU_ASSERT_EQUAL(recorder_write(r, "controller", NULL, before), 0);
	CU_ASSERT_EQUAL(recorder_write_unread(r, "agent/a", "c/1", many, strlen(many), 3, &more), 0);
	CU_ASSERT_EQUAL(recorder_write(r, "controller", NULL, after), 0);
	CU_ASSERT_EQUAL(recorder_count(r), 5);
	recorder_close(r);
	CU_ASSERT_EQUAL_FATAL(many_load_records(path, &all, &torn, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(json_array_size(all), 5);
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(json_int(json_array_get(all, i), "n", -1), (json_int_t)i + 1);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(all, 2), "obj"), "p.b");
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(all, 2), "kind"), "state");
	CU_ASSERT_EQUAL(json_int(json_array_get(all, 2), "t", -1), 9);
	/* Read afterwards, with that put to it, it is what the file has. */
	json_object_update(read, more);
	for (size_t i = 0; i < 3; i++) {
		json_t *one = many_record(read, i);

		CU_ASSERT(json_equal(one, json_array_get(all, i + 1)));
		json_decref(one);
	}
	json_decref(read);
	json_decref(more);
	json_decref(all);
	json_decref(before);
	json_decref(after);
}

static void a_line_is_there_as_soon_as_it_is_written(void)
{
	struct recorder *r = open_it();
	json_t *rec = json_pack("{s:s}", "kind", "lab"), *all;
	bool torn;

	for (int i = 1; i <= 3; i++) {
		CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), 0);
		all = lines(&torn);
		CU_ASSERT_EQUAL(json_array_size(all), (size_t)i);
		CU_ASSERT_FALSE(torn);
		json_decref(all);
	}
	recorder_close(r);
	json_decref(rec);
}

static void with_a_lag_lines_are_written_together(void)
{
	struct recorder_options o = { .path = path, .clk = "c", .lag_ns = 3600ULL * 1000000000 };
	json_t *rec = json_pack("{s:s}", "kind", "lab"), *all;
	struct recorder *r = NULL;
	bool torn;

	CU_ASSERT_EQUAL_FATAL(recorder_open(&o, &r, NULL), 0);
	CU_ASSERT_EQUAL(recorder_due(r), UINT64_MAX);
	for (size_t round = 1; round <= 2; round++) {
		CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), 0);
		uint64_t due = recorder_due(r);

		CU_ASSERT(due > o.lag_ns && due < UINT64_MAX);
		CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), 0);
		CU_ASSERT_EQUAL(recorder_due(r), due);
		all = lines(&torn);
		CU_ASSERT_EQUAL(json_array_size(all), 2 * (round - 1));
		json_decref(all);
		CU_ASSERT_EQUAL(recorder_flush(r), 0);
		CU_ASSERT_EQUAL(recorder_due(r), UINT64_MAX);
		all = lines(&torn);
		CU_ASSERT_EQUAL(json_array_size(all), 2 * round);
		json_decref(all);
	}
	CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), 0);
	recorder_close(r);
	all = lines(&torn);
	CU_ASSERT_EQUAL(json_array_size(all), 5);
	CU_ASSERT_FALSE(torn);
	json_decref(all);
	json_decref(rec);
}

static void what_waits_has_a_bound(void)
{
	struct recorder_options o = { .path = path, .clk = "c", .lag_ns = 3600ULL * 1000000000 };
	json_t *rec = json_pack("{s:s,s:o}", "kind", "lab", "out", json_sprintf("%02000d", 0)), *all;
	struct recorder *r = NULL;
	bool torn;

	CU_ASSERT_EQUAL_FATAL(recorder_open(&o, &r, NULL), 0);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), 0);
	all = lines(&torn);
	CU_ASSERT(json_array_size(all) > 50);
	json_decref(all);
	recorder_close(r);
	json_decref(rec);
}

static void a_full_disk_stays_an_error(void)
{
	struct recorder_options o = { .path = "/dev/full", .clk = "c", .boot = 0, .lane = 0 };
	json_t *rec = json_pack("{s:s}", "kind", "lab");
	struct recorder *r = NULL;

	CU_ASSERT_EQUAL_FATAL(recorder_open(&o, &r, NULL), 0);
	CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), -ENOSPC);
	CU_ASSERT_EQUAL(recorder_error(r), -ENOSPC);
	CU_ASSERT_EQUAL(recorder_write(r, "lab", NULL, rec), -ENOSPC);
	json_t *more = NULL;

	CU_ASSERT_EQUAL(recorder_write_unread(r, "lab", NULL, "{\"t\":1}", 7, 40, &more), -ENOSPC);
	CU_ASSERT_PTR_NOT_NULL(more);
	CU_ASSERT_EQUAL(recorder_error(r), -ENOSPC);
	recorder_close(r);
	json_decref(more);
	json_decref(rec);
}

static void an_impossible_path_is_named(void)
{
	struct recorder_options o = { .path = "/proc/nonexistent/x.jsonl", .clk = "c" };
	struct recorder *r = NULL;
	struct error e = { "" };

	CU_ASSERT_EQUAL(recorder_open(&o, &r, &e), -ENOENT);
	CU_ASSERT_PTR_NULL(r);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/proc/nonexistent/x.jsonl"));
}

static void the_clock_domain_is_stable(void)
{
	char a[128], b[128];

	CU_ASSERT_STRING_EQUAL(recorder_clock_domain(a, sizeof a), recorder_clock_domain(b, sizeof b));
	CU_ASSERT_PTR_NOT_NULL(strchr(a, '/'));
}

int main(void)
{
	CU_pSuite suite;
	unsigned failed;
	int fd = mkstemp(path);

	if (fd < 0 || CU_initialize_registry() != CUE_SUCCESS)
		return 2;
	close(fd);
	suite = CU_add_suite("record", NULL, NULL);
	CU_ADD_TEST(suite, fills_what_every_record_carries);
	CU_ADD_TEST(suite, text_is_continued);
	CU_ADD_TEST(suite, unread_it_counts_for_as_many_as_it_is);
	CU_ADD_TEST(suite, a_line_is_there_as_soon_as_it_is_written);
	CU_ADD_TEST(suite, with_a_lag_lines_are_written_together);
	CU_ADD_TEST(suite, what_waits_has_a_bound);
	CU_ADD_TEST(suite, a_full_disk_stays_an_error);
	CU_ADD_TEST(suite, an_impossible_path_is_named);
	CU_ADD_TEST(suite, the_clock_domain_is_stable);
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	unlink(path);
	return failed ? 1 : 0;
}
