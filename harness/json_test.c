/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

static char path[] = "/tmp/qd-json-test-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static void getters(void)
{
	json_t *o =
		json_loads("{\"s\":\"text\",\"i\":-5,\"h\":\"0xffffffffffffffff\",\"bad\":\"0xzz\",\"tail\":\"0x1 \",\"t\":true,"
			   "\"a\":[\"x\",\"y\",3],\"big\":\"0x1ffffffffffffffff\"}",
			   0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(o);
	CU_ASSERT_STRING_EQUAL(json_str(o, "s"), "text");
	CU_ASSERT_PTR_NULL(json_str(o, "i"));
	CU_ASSERT_PTR_NULL(json_str(o, "none"));
	CU_ASSERT_EQUAL(json_int(o, "i", 1), -5);
	CU_ASSERT_EQUAL(json_int(o, "s", 7), 7);
	CU_ASSERT_EQUAL(json_int(o, "none", 7), 7);
	CU_ASSERT_EQUAL(json_u64(o, "h", 0), UINT64_MAX);
	CU_ASSERT_EQUAL(json_u64(o, "bad", 9), 9);
	CU_ASSERT_EQUAL(json_u64(o, "tail", 9), 9);
	CU_ASSERT_EQUAL(json_u64(o, "big", 9), 9);
	CU_ASSERT_TRUE(json_bool(o, "t", false));
	CU_ASSERT_TRUE(json_bool(o, "none", true));
	CU_ASSERT_FALSE(json_bool(o, "s", false));
	CU_ASSERT_TRUE(json_has(o, "a", "y"));
	CU_ASSERT_FALSE(json_has(o, "a", "z"));
	CU_ASSERT_TRUE(json_has(o, "s", "text"));
	CU_ASSERT_FALSE(json_has(o, "none", "text"));
	json_decref(o);

	json_t *h = json_hex(UINT64_MAX);

	CU_ASSERT_STRING_EQUAL(json_string_value(h), "0xffffffffffffffff");
	json_decref(h);
}

static void files(void)
{
	struct error e = { "" };
	json_t *in = json_pack("{s:i,s:[i,i]}", "b", 1, "a", 2, 3);
	json_t *out = NULL;

	CU_ASSERT_EQUAL(json_save(path, in, &e), 0);
	CU_ASSERT_EQUAL(json_load(path, &out, &e), 0);
	CU_ASSERT_TRUE(json_equal(in, out));
	json_decref(in);
	json_decref(out);

	out = NULL;
	write_file("{\"a\":1,\n\"a\":2}");
	CU_ASSERT_EQUAL(json_load(path, &out, &e), -EBADMSG);
	CU_ASSERT_PTR_NULL(out);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, ":2:"));
	CU_ASSERT_EQUAL(json_load("/proc/nonexistent/file", &out, &e), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "/proc/nonexistent/file"));
	CU_ASSERT_EQUAL(json_save("/proc/nonexistent/file", json_null(), &e), -ENOENT);
}

static void lines(void)
{
	static const struct {
		const char *text;
		int rc;
		size_t n;
		bool torn;
		const char *says;
	} rows[] = {
		{ "", 0, 0, false, NULL },
		{ "{\"a\":1}\n{\"a\":2}\n", 0, 2, false, NULL },
		{ "{\"a\":1}\n{\"a\":", 0, 1, true, NULL },
		{ "{\"a\":1}\n{\"a\":2}", 0, 1, true, NULL },
		{ "{\"a\":1}\nbroken\n{\"a\":3}\n", -EBADMSG, 0, false, ":2:" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error e = { "" };
		json_t *array = NULL;
		bool torn = !rows[i].torn;

		write_file(rows[i].text);
		ROW_ASSERT(json_load_lines(path, &array, &torn, &e) == rows[i].rc, "row %zu: %s", i, e.text);
		if (rows[i].rc) {
			ROW_ASSERT(!array && strstr(e.text, rows[i].says), "row %zu: %s", i, e.text);
			continue;
		}
		ROW_ASSERT(json_array_size(array) == rows[i].n, "row %zu", i);
		ROW_ASSERT(torn == rows[i].torn, "row %zu", i);
		json_decref(array);
	}
}

static const struct test_case cases[] = {
	{ "getters", getters },
	{ "files", files },
	{ "lines", lines },
};

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	int status = test_run("json", cases, sizeof(cases) / sizeof(cases[0]));

	unlink(path);
	return status;
}
