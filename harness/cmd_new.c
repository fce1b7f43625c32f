/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "template.h"

enum key { KEY_FAULT = 256, KEY_ACTION, KEY_DIR };

static const struct argp_option options[] = {
	{ "fault", KEY_FAULT, "NAME", 0, "the fault it injects, of `qpdrill list faults` (default: " TEMPLATE_FAULT ")", 0 },
	{ "action", KEY_ACTION, "NAME", 0,
	  "with --fault wire: what is done to packets, of `qpdrill list actions` (default: " TEMPLATE_ACTION ")", 0 },
	{ "dir", KEY_DIR, "DIR", 0, "the folder that holds the areas (default: scenarios, which has to be here)", 0 },
	{ 0 },
};

struct input {
	const char *id, *fault, *action, *dir;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;
	struct error e = { "" };

	switch (key) {
	case KEY_FAULT:
		in->fault = arg;
		return 0;
	case KEY_ACTION:
		in->action = arg;
		return 0;
	case KEY_DIR:
		in->dir = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (in->id)
			argp_error(state, "one name is wanted");
		in->id = arg;
		return 0;
	case ARGP_KEY_END:
		if (!in->id)
			argp_error(state, "which name? AREA/NAME, receive/peer-that-is-slow");
		if (template_check_id(in->id, &e))
			argp_error(state, "%s", e.text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The template as text: nothing is made on disk before it is known to be right. */
static char *make_text(const struct input *in, struct error *e)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int rc = out ? template_write(out, in->id, in->fault, in->action, e) : error_set(e, -ENOMEM, "out of memory");

	if (out)
		fclose(out);
	if (!rc)
		return text;
	free(text);
	return NULL;
}

static int write_new(const char *path, const char *text, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), rc = 0;
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!out) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return error_set(e, rc, "%s: %s", path, rc == -EEXIST ? "is there already; nothing was changed" : strerror(-rc));
	}
	if (fputs(text, out) == EOF)
		rc = -errno;
	if (fclose(out) && !rc)
		rc = -errno;
	if (!rc)
		return 0;
	unlink(path);
	return error_set(e, rc, "%s: %s", path, strerror(-rc));
}

/* A folder that was not asked for by name is not made: whoever stands elsewhere is told. */
static int make_file(const struct input *in, const char *text, char *path, size_t size, struct error *e)
{
	const char *dir = in->dir ? in->dir : "scenarios";
	size_t area = strcspn(in->id, "/");
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return error_set(e, -ENOENT, "there is no folder %s%s", dir,
				 in->dir ? "" : " here: --dir says where the file belongs");
	if ((size_t)snprintf(path, size, "%s/%.*s", dir, (int)area, in->id) >= size)
		return error_set(e, -ENAMETOOLONG, "%s: the path is too long", dir);
	if (mkdir(path, 0777) && errno != EEXIST)
		return error_set(e, -errno, "%s: %s", path, strerror(errno));
	if ((size_t)snprintf(path, size, "%s/%s.yaml", dir, in->id) >= size)
		return error_set(e, -ENAMETOOLONG, "%s: the path is too long", dir);
	return write_new(path, text, e);
}

int cmd_new(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "AREA/NAME",
		.doc = "Writes scenarios/AREA/NAME.yaml: a scenario to begin with, with comments, that is well-formed and runs as "
		       "it is. It injects one fault, with all the parameters that this has, and expects what the "
		       "specification says of it.\vA file that is there is left as it is.",
	};
	struct input in = { .id = NULL };
	struct error e = { "" };
	char path[PATH_MAX], *text;
	int rc;

	command_parse(&argp, argc, argv, &in);
	text = make_text(&in, &e);
	if (!text) {
		log_error("%s", e.text);
		return EXIT_USAGE;
	}
	rc = make_file(&in, text, path, sizeof(path), &e);
	free(text);
	if (rc) {
		log_error("%s", e.text);
		return EXIT_USAGE;
	}
	printf("%s\nqpdrill check %s\nqpdrill run %s\n", path, path, path);
	return 0;
}
