/* SPDX-License-Identifier: MIT */
#include "executor_crash.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest.h"
#include "json.h"
#include "many.h"

#define TAIL_LINES 40
#define LEVEL_CRITICAL 2
#define LEVEL_INFO 6

static const char *json_text(const json_t *rec, const char *key)
{
	const char *text = json_str(rec, key);

	return text ? text : "";
}

/* Cuts what follows the last newline. */
static int cut_torn(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char c = '\n';

	while (end > 0 && pread(fd, &c, 1, end - 1) == 1 && c != '\n')
		end--;
	return ftruncate(fd, end) < 0 ? -errno : 0;
}

static int append(int fd, const json_t *last, int *n, json_t *rec, int boot)
{
	static const char *const carried[] = { "t", "clk", "lane", "step", NULL };

	json_object_set_new(rec, "v", json_integer(1));
	json_object_set_new(rec, "n", json_integer(++*n));
	json_object_set_new(rec, "boot", json_integer(boot));
	json_object_set_new(rec, "obj", json_string(""));
	json_object_set_new(rec, "life", json_integer(0));
	for (size_t i = 0; carried[i]; i++) {
		json_t *value = json_object_get(last, carried[i]);

		if (value)
			json_object_set(rec, carried[i], value);
		else
			json_object_set_new(rec, carried[i], strcmp(carried[i], "clk") == 0 ? json_string("") : json_integer(0));
	}
	char *text = json_dumps(rec, JSON_COMPACT);
	int rc = text && dprintf(fd, "%s\n", text) > 0 ? 0 : -EIO;

	free(text);
	json_decref(rec);
	return rc;
}

/* A line of the console that tells of the end, and not only how it came there. */
static int level_of(const char *line)
{
	static const char *const grave[] = { "panic",        "Oops", "BUG:", "WARNING:", "lockup", "stall", "blocked for more than",
					     "Out of memory" };

	for (size_t i = 0; i < sizeof grave / sizeof grave[0]; i++)
		if (strstr(line, grave[i]))
			return LEVEL_CRITICAL;
	return LEVEL_INFO;
}

/* A fault that only a dead kernel proves, and cannot record any more: what its end says on the console is the proof. */
static json_t *proof_of_panic(const json_t *records, const json_t *tail)
{
	const json_t *fault = NULL, *rec, *line;
	json_t *proof;
	size_t i;

	json_array_foreach(records, i, rec)
		if (!strcmp(json_text(rec, "kind"), "fault") && !strcmp(json_text(rec, "name"), "kernel_panic"))
			fault = rec;
	if (!fault || strcmp(json_text(fault, "phase"), "inject") != 0)
		return NULL;
	json_array_foreach(tail, i, line) {
		/* One that guest_look() asked for proves nothing. */
		if (!strstr(json_string_value(line), "Kernel panic") || strstr(json_string_value(line), "NMI: Not continuing"))
			continue;
		proof = json_deep_copy(fault);
		json_object_set_new(proof, "src", json_string("controller"));
		json_object_set_new(proof, "phase", json_string("fired"));
		json_object_set_new(proof, "evidence", json_pack("{s:O}", "console", line));
		return proof;
	}
	return NULL;
}

int executor_crash_record(const char *case_dir, const char *console, int boot, const char *what, const char *text, struct error *e)
{
	json_t *records = NULL, *tail = NULL, *line, *proof;
	const json_t *last;
	char path[PATH_MAX];
	bool torn = false;
	size_t i;
	int n, rc;

	snprintf(path, sizeof path, "%s/observations.jsonl", case_dir);
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd < 0)
		return error_set(e, -errno, "%s: %s", path, strerror(errno));
	rc = cut_torn(fd);
	if (rc == 0)
		rc = many_load_records(path, &records, &torn, e);
	if (rc < 0)
		goto close_fd;
	last = json_array_get(records, json_array_size(records) ? json_array_size(records) - 1 : 0);
	n = (int)json_int(last, "n", 0);
	tail = console ? guest_console_tail(console, TAIL_LINES) : json_array();
	json_array_foreach(tail, i, line)
		if (rc == 0)
			rc = append(fd, last, &n,
				    json_pack("{s:s,s:s,s:i,s:O}", "src", "kernel", "kind", "klog", "level",
					      level_of(json_string_value(line)), "text", line),
				    boot);
	proof = proof_of_panic(records, tail);
	if (rc == 0 && proof)
		rc = append(fd, last, &n, json_incref(proof), boot);
	json_decref(proof);
	if (rc == 0)
		rc = append(fd, last, &n,
			    json_pack("{s:s,s:s,s:s,s:i,s:s}", "src", "controller", "kind", "lost", "what", what, "count", 1,
				      "text", text),
			    boot);
	if (rc < 0)
		error_set(e, rc, "%s: cannot write: %s", path, strerror(-rc));
	json_decref(tail);
	json_decref(records);
close_fd:
	close(fd);
	return rc;
}
