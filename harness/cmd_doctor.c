/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "data.h"
#include "doctor.h"
#include "log.h"
#include "proc.h"
#include "units.h"

#define VERSION_TIMEOUT_NS (5 * NSEC_PER_SEC)

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "print a JSON document", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*(bool *)state->input = true;
	return 0;
}

/* The first word that looks like a version: digits, a dot, digits. */
static char *version_in(const char *text)
{
	for (const char *p = text; (p = strpbrk(p, "0123456789")); p += strspn(p, "0123456789.")) {
		size_t len = strspn(p, "0123456789.");

		if (memchr(p, '.', len) && (p == text || !isalnum((unsigned char)p[-1]) || p[-1] == 'v' || p[-1] == 'V'))
			return strndup(p, len - (p[len - 1] == '.'));
	}
	return NULL;
}

static char *version(const char *program)
{
	static const char *const short_option[] = { "ip", "tc", "rdma" };
	const char *argv[] = { "sh", "-c", "exec \"$0\" \"$1\" 2>/dev/null </dev/null", program, "--version", NULL };
	char *out = NULL, *found = NULL;
	struct error ignored;

	for (size_t i = 0; i < sizeof(short_option) / sizeof(*short_option); i++)
		if (!strcmp(program, short_option[i]))
			argv[4] = "-V";
	if (proc_run((char *const *)argv, VERSION_TIMEOUT_NS, &out, &ignored) >= 0 && out)
		found = version_in(out);
	free(out);
	return found;
}

/* Of the folder itself, or where it would be made. */
static unsigned long long room_of(const char *path)
{
	char up[4096];
	struct statvfs fs;

	snprintf(up, sizeof(up), "%s", path);
	while (statvfs(up, &fs) < 0) {
		char *slash = strrchr(up, '/');

		if (!slash || slash == up)
			return 0;
		*slash = 0;
	}
	return (unsigned long long)fs.f_bavail * fs.f_frsize;
}

static void print(const json_t *doc, bool json)
{
	if (!json) {
		doctor_text(doc, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
		return;
	}
	json_dumpf(doc, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
	putchar('\n');
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Says what this machine can do, and of what is missing the command that mends it. Changes nothing.\v"
		       "Exit status: 0 when scenarios can run here, in a guest or in the running kernel, else 3.",
	};
	char *cache = NULL, *packages = NULL, *self = NULL;
	struct error e = { "" };
	json_t *doc = NULL;
	bool json = false;
	int rc;

	command_parse(&argp, argc, argv, &json);
	rc = data_cache_place(&cache, &e);
	if (!rc)
		rc = data_path("harness/packages.txt", &packages, &e);
	if (!rc)
		rc = data_program("qpdrill", &self, &e);
	if (!rc) {
		*strrchr(self, '/') = 0;
		struct doctor d = { .root = "",
				    .search = getenv("PATH"),
				    .programs = self,
				    .packages = packages,
				    .cache = cache,
				    .version = version,
				    .room_bytes = room_of(cache) };

		rc = doctor_examine(&d, &doc, &e);
	}
	if (rc)
		log_error("%s", e.text);
	else
		print(doc, json);
	rc = rc ? EXIT_ERROR : doctor_exit_status(doc);
	json_decref(doc);
	free(cache);
	free(packages);
	free(self);
	return rc;
}
