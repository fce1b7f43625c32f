/* SPDX-License-Identifier: MIT */
#include "lab_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "test.h"
#include "units.h"

static void errnos(void)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
		{ "RTNETLINK answers: File exists", -EEXIST },
		{ "RTNETLINK answers: Invalid argument", -EINVAL },
		{ "RTNETLINK answers: Operation not permitted", -EPERM },
		{ "Cannot find device \"x\"", -ENODEV },
		{ "Wrong device name - x", -ENODEV },
		{ "error: No such file or directory", -ENOENT },
		{ "Object \"bogus\" is unknown, try \"ip help\".", -EINVAL },
		{ "something else", -EIO },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ROW_ASSERT(lab_tool_errno(rows[i].text) == rows[i].rc, "'%s' gave %d", rows[i].text, lab_tool_errno(rows[i].text));
}

/* Queries need neither root nor devices. */
static void answers(void)
{
	struct lab_tool *t = NULL;
	struct error e = { "" };
	json_t *out = NULL;

	CU_ASSERT_EQUAL_FATAL(lab_tool_new("ip", "", &t, &e), 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL_FATAL(lab_tool_run(t, "link show dev lo", LAB_TOOL_TIMEOUT_NS, &out, &e), 0);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_array_get(out, 0), "ifname")), "lo");
		json_decref(out);
		/* A refusal ends nothing, and its words do not leak into the next answer. */
		out = NULL;
		CU_ASSERT_EQUAL(lab_tool_run(t, "link show dev qd-nowhere", LAB_TOOL_TIMEOUT_NS, &out, &e), -ENODEV);
		CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "qd-nowhere"));
		CU_ASSERT_PTR_NULL(out);
		CU_ASSERT_EQUAL(lab_tool_run(t, "nonsense", LAB_TOOL_TIMEOUT_NS, NULL, &e), -EINVAL);
	}
	lab_tool_free(t);
}

static void bad_commands(void)
{
	static const char *const rows[] = { "link show\nlink del x", "link show # x", "link show \"lo\"", "link show \\" };
	struct lab_tool *t = NULL;
	struct error e;

	CU_ASSERT_EQUAL(lab_tool_new("cat", "", &t, &e), -EINVAL);
	CU_ASSERT_EQUAL_FATAL(lab_tool_new("tc", "", &t, &e), 0);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ROW_ASSERT(lab_tool_run(t, rows[i], LAB_TOOL_TIMEOUT_NS, NULL, &e) == -EINVAL, "row %zu was taken", i);
	lab_tool_free(t);
}

/* A folder that comes first in PATH, with a program of that name in it. */
struct fake {
	char dir[32], file[64], *path;
};

static void fake_new(struct fake *k, const char *name, const char *script)
{
	const char *before = getenv("PATH");
	char path[512];

	*k = (struct fake){ .dir = "/tmp/qd-tool-XXXXXX", .path = strdup(before ? before : "/usr/bin:/bin") };
	CU_ASSERT_PTR_NOT_NULL_FATAL(k->path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(k->dir));
	snprintf(k->file, sizeof k->file, "%s/%s", k->dir, name);
	FILE *f = fopen(k->file, "we");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(script, f);
	fclose(f);
	chmod(k->file, 0755);
	snprintf(path, sizeof path, "%s:%s", k->dir, k->path);
	setenv("PATH", path, 1);
}

static void fake_free(struct fake *k)
{
	setenv("PATH", k->path, 1);
	free(k->path);
	unlink(k->file);
	rmdir(k->dir);
}

/* A program that never answers is ended at the deadline; the next command starts it again. */
static void stuck_program(void)
{
	struct lab_tool *t = NULL;
	struct error e = { "" };
	struct fake fake;

	fake_new(&fake, "ip", "#!/bin/sh\nexec tail -f /dev/null\n");
	CU_ASSERT_EQUAL_FATAL(lab_tool_new("ip", "", &t, &e), 0);
	uint64_t begin = now_ns();

	CU_ASSERT_EQUAL(lab_tool_run(t, "link show dev lo", 100 * NSEC_PER_MSEC, NULL, &e), -ETIMEDOUT);
	CU_ASSERT(now_ns() - begin >= 100 * NSEC_PER_MSEC);
	CU_ASSERT(now_ns() - begin < 60 * NSEC_PER_SEC);
	fake_free(&fake);
	CU_ASSERT_EQUAL(lab_tool_run(t, "link show dev lo", LAB_TOOL_TIMEOUT_NS, NULL, &e), 0);
	lab_tool_free(t);
}

/* A program that spends itself, as rdma does its descriptors, is begun anew before it is spent. */
static void tired_program(void)
{
	struct lab_tool *t = NULL;
	struct error e = { "" };
	struct fake fake;
	int rc = 0, n;

	fake_new(&fake, "rdma",
		 "#!/bin/sh\nn=0\nwhile read -r line; do\n"
		 "case $line in qdmark*) echo \"Object $line is unknown\" >&2; continue;; esac\n"
		 "n=$((n + 1))\n[ $n -gt 300 ] && echo 'Failed to open NETLINK' >&2\necho '[]'\ndone\n");
	CU_ASSERT_EQUAL_FATAL(lab_tool_new("rdma", "", &t, &e), 0);
	for (n = 0; n < 700 && rc == 0; n++)
		rc = lab_tool_run(t, "res show", LAB_TOOL_TIMEOUT_NS, NULL, &e);
	ROW_ASSERT(rc == 0, "command %d: %s", n, e.text);
	lab_tool_free(t);
	fake_free(&fake);
}

/* What changed while it was told is asked for again; what never holds still is told. */
static void interrupted_dumps(void)
{
	static const struct {
		const char *times;
		int rc;
	} rows[] = { { "3", 0 }, { "1000", -EIO } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct lab_tool *t = NULL;
		struct error e = { "" };
		struct fake fake;
		char script[512];
		json_t *out = NULL;

		snprintf(script, sizeof script,
			 "#!/bin/sh\nn=0\nwhile read -r line; do\n"
			 "case $line in qdmark*) echo \"Object $line is unknown\" >&2; continue;; esac\n"
			 "n=$((n + 1))\necho \"[{\\\"try\\\":$n}]\"\n"
			 "[ $n -le %s ] && echo 'Dump was interrupted and may be inconsistent.' >&2\ndone\n",
			 rows[i].times);
		fake_new(&fake, "ip", script);
		CU_ASSERT_EQUAL_FATAL(lab_tool_new("ip", "", &t, &e), 0);
		ROW_ASSERT(lab_tool_run(t, "addr show", LAB_TOOL_TIMEOUT_NS, &out, &e) == rows[i].rc, "%s: %s", rows[i].times,
			   e.text);
		ROW_ASSERT(rows[i].rc || json_int(json_array_get(out, 0), "try", 0) == 4, "%s", rows[i].times);
		json_decref(out);
		lab_tool_free(t);
		fake_free(&fake);
	}
}

static const struct test_case cases[] = {
	{ "a tired program", tired_program }, { "interrupted dumps", interrupted_dumps },      { "errnos from words", errnos },
	{ "answers and refusals", answers },  { "commands that cannot be one", bad_commands }, { "a stuck program", stuck_program },
};

TEST_MAIN("lab_tool", cases)
