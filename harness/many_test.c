/* SPDX-License-Identifier: MIT */
#include "many.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "test.h"

/* Rows are easier to read with single quotation marks. */
static json_t *read_json(const char *quoted)
{
	char text[512];
	json_t *value;

	snprintf(text, sizeof text, "%s", quoted);
	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	value = json_loads(text, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	return value;
}

static void has_the_same_fields(const json_t *fold, size_t k, json_t *member, size_t row)
{
	const char *key, *child;
	json_t *value, *inner;
	char path[64];

	json_object_foreach(member, key, value) {
		/* One that was taken apart is there in parts only. */
		bool apart = json_is_object(value) && !json_equal(many_field(fold, k, key), value);

		ROW_ASSERT(apart || json_equal(many_field(fold, k, key), value), "row %zu: %s of member %zu", row, key, k);
		json_object_foreach(apart ? value : NULL, child, inner) {
			snprintf(path, sizeof path, "%s.%s", key, child);
			ROW_ASSERT(json_equal(many_field(fold, k, path), inner), "row %zu: %s of member %zu", row, path, k);
		}
	}
	CU_ASSERT_PTR_NULL(many_field(fold, k, "none"));
	CU_ASSERT_PTR_NULL(many_field(fold, k, "none.of.these"));
}

static void there_and_back(void)
{
	static const struct {
		const char *members, *fold; /* fold NULL: they cannot be folded */
	} rows[] = {
		{ "[{'a':1,'b':'x'},{'a':1,'b':'y'}]", "{'count':2,'all':{'a':1},'each':{'b':['x','y']}}" },
		{ "[{'a':1},{'a':1}]", "{'count':2,'all':{'a':1},'each':{}}" },
		{ "[{'set':{'p':1,'q':2}},{'set':{'p':1,'q':3}}]", "{'count':2,'all':{'set':{'p':1}},'each':{'set.q':[2,3]}}" },
		/* Not all have it. */
		{ "[{'a':1},{},{'b':2}]", "{'count':3,'all':{},'each':{'a':[1,null,null],'b':[null,null,2]}}" },
		/* One level is taken apart, and only where all have the same fields there. */
		{ "[{'s':{'o':{'x':1}}},{'s':{'o':{'x':2}}}]", "{'count':2,'all':{'s':{}},'each':{'s.o':[{'x':1},{'x':2}]}}" },
		{ "[{'s':{'p':1}},{'s':{'q':1}}]", "{'count':2,'all':{},'each':{'s':[{'p':1},{'q':1}]}}" },
		{ "[{'s':{'p.a':1}},{'s':{'p.a':2}}]", "{'count':2,'all':{},'each':{'s':[{'p.a':1},{'p.a':2}]}}" },
		{ "[{'s':{'p':1}},{'s':7}]", "{'count':2,'all':{},'each':{'s':[{'p':1},7]}}" },
		/* A null that all have is one. */
		{ "[{'set':{'g':null,'n':1}},{'set':{'g':null,'n':2}}]",
		  "{'count':2,'all':{'set':{'g':null}},'each':{'set.n':[1,2]}}" },
		{ "[{'a.b':1},{'a.b':2}]", NULL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *members = read_json(rows[i].members), *fold = many_fold(members), *want, *m;
		size_t k;

		if (!rows[i].fold) {
			ROW_ASSERT(!fold, "row %zu", i);
			json_decref(members);
			continue;
		}
		want = read_json(rows[i].fold);
		ROW_ASSERT(json_equal(fold, want), "row %zu: the fold", i);
		ROW_ASSERT(many_count(fold) == json_array_size(members), "row %zu: its count", i);
		json_array_foreach(members, k, m) {
			json_t *back = many_member(fold, k);

			ROW_ASSERT(json_equal(back, m), "row %zu: member %zu", i, k);
			has_the_same_fields(fold, k, back, i);
			json_decref(back);
		}
		ROW_ASSERT(json_equal(fold, want), "row %zu: unfolding changed the fold", i);
		json_decref(want);
		json_decref(fold);
		json_decref(members);
	}
}

static void broken_folds(void)
{
	static const char *const rows[] = {
		"{}",
		"{'count':2,'all':{}}",
		"{'count':2,'each':{}}",
		"{'count':0,'all':{},'each':{}}",
		"{'count':-1,'all':{},'each':{}}",
		"{'count':2000000,'all':{},'each':{}}",
		"{'count':2,'all':{},'each':{'a':[1]}}",
		"{'count':2,'all':{},'each':{'a':[1,2,3]}}",
		"{'count':2,'all':{},'each':{'a':7}}",
		"{'count':2,'all':[],'each':{}}",
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *fold = read_json(rows[i]);

		ROW_ASSERT(many_count(fold) == 0, "row %zu: %s", i, rows[i]);
		json_decref(fold);
	}
}

/* Those of a file, each with its own number. */
static void records(void)
{
	static const struct {
		const char *text;
		int rc;
		size_t n;
	} rows[] = {
		{ "{\"kind\":\"step\",\"n\":1}\n"
		  "{\"kind\":\"many\",\"of\":\"state\",\"count\":2,\"all\":{\"new\":\"ERR\"},\"each\":{\"obj\":[\"p\",\"q\"],\"t\":"
		  "[5,6]},"
		  "\"n\":2,\"src\":\"agent/a\"}\n"
		  "{\"kind\":\"step\",\"n\":4}\n",
		  0, 4 },
		{ "{\"kind\":\"many\",\"of\":\"state\",\"count\":2,\"all\":{},\"each\":{\"obj\":[\"p\"]},\"n\":1}\n", -EINVAL, 0 },
		{ "{\"kind\":\"many\"}\n", -EINVAL, 0 },
	};
	char path[] = "/tmp/qd-many-test-XXXXXX";
	int fd = mkstemp(path);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	close(fd);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		FILE *f = fopen(path, "w");
		json_t *all = NULL;
		struct error e = { "" };
		bool torn = true;

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		fputs(rows[i].text, f);
		fclose(f);
		ROW_ASSERT(many_load_records(path, &all, &torn, &e) == rows[i].rc, "row %zu: %s", i, e.text);
		ROW_ASSERT(json_array_size(all) == rows[i].n, "row %zu: %zu records", i, json_array_size(all));
		for (size_t k = 0; k < json_array_size(all); k++)
			ROW_ASSERT(json_int(json_array_get(all, k), "n", 0) == (int64_t)k + 1, "row %zu: number %zu", i, k);
		if (rows[i].n) {
			const json_t *r = json_array_get(all, 2);

			CU_ASSERT_STRING_EQUAL(json_str(r, "kind"), "state");
			CU_ASSERT_STRING_EQUAL(json_str(r, "obj"), "q");
			CU_ASSERT_STRING_EQUAL(json_str(r, "new"), "ERR");
			CU_ASSERT_STRING_EQUAL(json_str(r, "src"), "agent/a");
			CU_ASSERT_EQUAL(json_int(r, "t", 0), 6);
			CU_ASSERT_PTR_NULL(json_object_get(r, "of"));
			CU_ASSERT_FALSE(torn);
		} else {
			CU_ASSERT_PTR_NOT_NULL(strstr(e.text, ":1: "));
		}
		json_decref(all);
	}
	unlink(path);
}

static const struct test_case tests[] = {
	{ "there and back", there_and_back },
	{ "broken folds", broken_folds },
	{ "records", records },
};

int main(void)
{
	return test_run("many", tests, sizeof tests / sizeof *tests);
}
