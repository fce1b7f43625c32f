/* SPDX-License-Identifier: MIT */
#include "durations.h"

#include <unistd.h>

#include "test.h"

static char folder[64], path[96];

static void begin(void)
{
	snprintf(folder, sizeof folder, "/tmp/qpdrill-durations-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/durations.json", folder);
	setenv("QPDRILL_CACHE", folder, 1);
}

static void end(void)
{
	unlink(path);
	rmdir(folder);
	unsetenv("QPDRILL_CACHE");
}

static void what_was_noted_is_remembered(void)
{
	json_t *d;

	begin();
	d = durations_load();
	CU_ASSERT_EQUAL(durations_expect(d, "a/b", 60), 60);
	durations_note(d, "a/b", 7);
	durations_note(d, "a/c~r2", 8);
	durations_note(d, "a/d~retry_cnt=3", 9);
	durations_note(d, "a/e", 0);
	durations_save(d);
	json_decref(d);
	d = durations_load();
	CU_ASSERT_EQUAL(durations_expect(d, "a/b", 60), 7);
	CU_ASSERT_EQUAL(durations_expect(d, "a/b~r17", 60), 7);
	CU_ASSERT_EQUAL(durations_expect(d, "a/c", 60), 8);
	CU_ASSERT_EQUAL(durations_expect(d, "a/d~retry_cnt=3", 60), 9);
	CU_ASSERT_EQUAL(durations_expect(d, "a/d", 60), 60);
	CU_ASSERT_EQUAL(durations_expect(d, "a/e", 60), 60);
	json_decref(d);
	end();
}

static void a_damaged_memory_is_none(void)
{
	static const char *const texts[] = { "", "[1,2]", "{\"a\":", "null" };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		begin();
		FILE *f = fopen(path, "w");

		CU_ASSERT_PTR_NOT_NULL_FATAL(f);
		fputs(texts[i], f);
		fclose(f);
		json_t *d = durations_load();

		ROW_ASSERT(json_is_object(d) && json_object_size(d) == 0, "'%s'", texts[i]);
		ROW_ASSERT(durations_expect(d, "a", 5) == 5, "'%s'", texts[i]);
		json_decref(d);
		end();
	}
}

static const struct test_case cases[] = {
	{ "what was noted is remembered", what_was_noted_is_remembered },
	{ "a damaged memory is none", a_damaged_memory_is_none },
};

TEST_MAIN("durations", cases)
