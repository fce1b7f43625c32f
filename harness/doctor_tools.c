/* SPDX-License-Identifier: MIT */
/* Packages that are missing, by the list that setup.sh installs from, and the programs beside this one. */
#include "doctor_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP_TOOLS "tools"
#define FIELDS 4

/* What is missing for what stops which lab. */
static const struct purpose {
	const char *name;
	unsigned stops;
	enum state state;
} purposes[] = {
	{ "build", 0, STATE_NOTE },   { "lab", STOPS_BOTH, STATE_MISSING }, { "guest", STOPS_GUEST, STATE_MISSING },
	{ "test", 0, STATE_MISSING }, { "optional", 0, STATE_NOTE },
};

static const struct purpose *purpose_find(const char *name)
{
	for (size_t i = 0; i < sizeof(purposes) / sizeof(*purposes); i++)
		if (!strcmp(purposes[i].name, name))
			return &purposes[i];
	return NULL;
}

/* A program in the search path, or a file. */
static bool is_there(const struct examination *x, const char *name)
{
	char path[4096];

	if (*name == '/')
		return access(doctor_path(x, name, path, sizeof(path)), R_OK) == 0;
	for (const char *dir = x->d->search; dir && *dir;) {
		int len = (int)strcspn(dir, ":");

		snprintf(path, sizeof(path), "%s%.*s/%s", x->d->root, len, dir, name);
		if (len && access(path, X_OK) == 0)
			return true;
		dir += len + (dir[len] == ':');
	}
	return false;
}

static void add_version(const struct examination *x, const char *program, char *buf, size_t size)
{
	char *version = *program == '/' || !x->d->version ? NULL : x->d->version(program);
	size_t len = strlen(buf);

	if (version)
		snprintf(buf + len, size - len, "%s%s %s", len ? ", " : "", program, version);
	free(version);
}

static void look_at_package(struct examination *x, char *fields[FIELDS], const struct purpose *p)
{
	char versions[300] = "", gone[300] = "", mend[400] = "", *rest = fields[1], *name;

	while ((name = strsep(&rest, " "))) {
		size_t len = strlen(gone);

		if (!*name)
			continue;
		if (is_there(x, name))
			add_version(x, name, versions, sizeof(versions));
		else
			snprintf(gone + len, sizeof(gone) - len, "%s%s", len ? " and " : "no ", name);
	}
	if (!*gone) {
		doctor_say(x, GROUP_TOOLS, fields[0], STATE_OK, 0, "", "%s", *versions ? versions : fields[3]);
		return;
	}
	snprintf(mend, sizeof(mend), "apt-get install --no-install-recommends %s", fields[0]);
	doctor_say(x, GROUP_TOOLS, fields[0], p->state, p->stops, mend, "%s: %s (%s)", gone, fields[3], p->name);
}

static int look_at_line(struct examination *x, char *line, unsigned number, struct error *e)
{
	char *fields[FIELDS] = { NULL }, *rest = line;
	const struct purpose *p;
	int n = 0;

	line[strcspn(line, "\n")] = 0;
	if (!*line || *line == '#')
		return 0;
	while (n < FIELDS && (fields[n] = strsep(&rest, "|")))
		n++;
	p = n == FIELDS ? purpose_find(fields[2]) : NULL;
	if (!p || rest)
		return error_set(e, -EINVAL, "%s:%u: no `package | how it shows | for | what it is for`", x->d->packages, number);
	look_at_package(x, fields, p);
	return 0;
}

static int look_at_packages(struct examination *x, struct error *e)
{
	FILE *in = fopen(x->d->packages, "re");
	char *line = NULL;
	unsigned number = 0;
	size_t size = 0;
	int rc = 0;

	if (!in)
		return error_set(e, -errno, "%s: %s", x->d->packages, strerror(errno));
	while (!rc && getline(&line, &size, in) >= 0)
		rc = look_at_line(x, line, ++number, e);
	free(line);
	fclose(in);
	return rc;
}

static void look_at_programs(struct examination *x)
{
	static const struct {
		const char *name;
		unsigned stops;
	} programs[] = { { "qpdrill-agent", STOPS_BOTH },
			 { "qpdrill-wire", STOPS_BOTH },
			 { "qpdrill-inner", STOPS_GUEST },
			 { "qpdrill-init", STOPS_GUEST } };

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		char path[4096];
		bool there;

		snprintf(path, sizeof(path), "%s/%s", x->d->programs, programs[i].name);
		there = access(path, X_OK) == 0;
		doctor_say(x, GROUP_TOOLS, programs[i].name, there ? STATE_OK : STATE_MISSING, there ? 0 : programs[i].stops,
			   there ? "" : "make", "%s", there ? "beside this program" : "is not beside this program");
	}
}

int doctor_tools(struct examination *x, struct error *e)
{
	look_at_programs(x);
	return look_at_packages(x, e);
}
