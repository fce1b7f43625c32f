/* SPDX-License-Identifier: MIT */
#include "wire_backlog.h"

#include <stdio.h>
#include <string.h>

#include "../harness/test.h"

#define REST " 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "

/* A processor that has taken up so many and has so many waiting. */
#define CPU(taken, waiting) taken REST waiting " 00000000\n"
/* The same of a newer kernel. */
#define NEW_CPU(taken, waiting) taken REST waiting " 00000001 00000000 00000000\n"

static void test_read(void)
{
	static const struct {
		const char *name, *text;
		unsigned n; /* 0: it says nothing */
		uint32_t due[2];
	} rows[] = {
		{ "two", CPU("00000005", "00000000") CPU("0000000a", "00000003"), 2, { 5, 13 } },
		{ "columns of later", NEW_CPU("00000005", "00000002"), 1, { 7 } },
		{ "it wraps", CPU("fffffffe", "00000003"), 1, { 1 } },
		{ "no such column",
		  "00000005 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n",
		  0,
		  { 0 } },
		{ "cut short", CPU("00000005", "00000000") "0000000a 0000", 0, { 0 } },
		{ "no number", "processed\n", 0, { 0 } },
		{ "empty", "", 0, { 0 } },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct wire_backlog b = { .n = 77 };
		bool ok = wire_backlog_read(rows[i].text, &b);

		ROW_ASSERT(ok == (rows[i].n != 0), "%s", rows[i].name);
		ROW_ASSERT(b.n == (ok ? rows[i].n : 77), "%s: %u", rows[i].name, b.n);
		for (unsigned k = 0; ok && k < b.n; k++)
			ROW_ASSERT(b.due[k] == rows[i].due[k], "%s: %u", rows[i].name, b.due[k]);
	}
}

static void test_done(void)
{
	static const struct {
		const char *name, *then, *now;
		bool done;
	} rows[] = {
		{ "nothing waited", CPU("00000005", "00000000"), CPU("00000005", "00000000"), true },
		{ "they wait", CPU("00000005", "00000003"), CPU("00000005", "00000003"), false },
		{ "one of them waits, others came", CPU("00000005", "00000003"), CPU("00000007", "00000009"), false },
		{ "others wait", CPU("00000005", "00000003"), CPU("00000008", "00000009"), true },
		{ "nothing waits, whatever is counted", CPU("00000005", "00000003"), CPU("00000006", "00000000"), true },
		{ "it wraps and waits", CPU("fffffffe", "00000003"), CPU("ffffffff", "00000002"), false },
		{ "it wraps", CPU("fffffffe", "00000003"), CPU("00000001", "00000002"), true },
		{ "the other processor's wait", CPU("00000005", "00000000") CPU("00000005", "00000001"),
		  CPU("00000005", "00000000") CPU("00000005", "00000001"), false },
		{ "a processor is gone", CPU("00000005", "00000000") CPU("00000005", "00000001"), CPU("00000005", "00000000"),
		  true },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct wire_backlog then;

		CU_ASSERT_FATAL(wire_backlog_read(rows[i].then, &then));
		ROW_ASSERT(wire_backlog_is_done(&then, rows[i].now) == rows[i].done, "%s", rows[i].name);
	}
}

/* Every kernel that the project runs on says it. */
static void test_this_kernel(void)
{
	struct wire_backlog b;

	CU_ASSERT(wire_backlog_look(&b) && b.n >= 1);
}

static const struct test_case cases[] = {
	{ "read", test_read },
	{ "done", test_done },
	{ "this kernel says it", test_this_kernel },
};

int main(void)
{
	return test_run("wire_backlog", cases, sizeof cases / sizeof cases[0]);
}
