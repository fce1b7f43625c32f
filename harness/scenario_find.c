/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIND_MAX_DEPTH 16

struct found {
	struct scenario_path *paths;
	size_t n;
	char *prefix; /* "core/" where the walk began inside of a `scenarios` folder, else "" */
};

static bool has_suffix(const char *text, const char *suffix)
{
	size_t n = strlen(text), m = strlen(suffix);

	return n > m && !strcmp(text + n - m, suffix);
}

static int add(struct found *f, const char *path, const char *id)
{
	struct scenario_path *grown = realloc(f->paths, (f->n + 1) * sizeof(*grown));
	struct scenario_path p;

	if (!grown)
		return -ENOMEM;
	f->paths = grown;
	p.path = strdup(path);
	p.id = strndup(id, strlen(id) - (has_suffix(id, ".yaml") ? strlen(".yaml") : 0));
	if (!p.path || !p.id) {
		free(p.path);
		free(p.id);
		return -ENOMEM;
	}
	f->paths[f->n++] = p;
	return 0;
}

static int add_below(struct found *f, const char *path, const char *rel)
{
	char *id;
	int rc = asprintf(&id, "%s%s", f->prefix, rel) < 0 ? -ENOMEM : 0;

	if (rc)
		return rc;
	rc = add(f, path, id);
	free(id);
	return rc;
}

/* A case is called the same, whichever folder above it was asked for: what lies between `scenarios` and dir belongs to the id. */
static int find_prefix(struct found *f, const char *dir, struct error *e)
{
	char *real = realpath(dir, NULL), *whole = NULL;
	const char *mark = NULL;
	int rc = 0;

	if (!real) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", dir, strerror(-rc));
	}
	if (asprintf(&whole, "%s/", real) < 0) {
		free(real);
		return error_set(e, -ENOMEM, "%s: out of memory", dir);
	}
	for (const char *p = whole; (p = strstr(p, "/scenarios/")); p++)
		mark = p + strlen("/scenarios/");
	f->prefix = strdup(mark ? mark : "");
	if (!f->prefix)
		rc = error_set(e, -ENOMEM, "%s: out of memory", dir);
	free(whole);
	free(real);
	return rc;
}

static int walk(struct found *f, const char *dir, size_t root_len, int depth, struct error *e)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int rc = 0;

	if (!d) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", dir, strerror(-rc));
	}
	while (!rc && (entry = readdir(d))) {
		struct stat st;
		char *path;

		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "profiles") || !strcmp(entry->d_name, "refs"))
			continue;
		if (asprintf(&path, "%s/%s", dir, entry->d_name) < 0) {
			rc = error_set(e, -ENOMEM, "%s: out of memory", dir);
			break;
		}
		if (stat(path, &st))
			rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
		else if (S_ISDIR(st.st_mode) && depth < FIND_MAX_DEPTH)
			rc = walk(f, path, root_len, depth + 1, e);
		else if (S_ISREG(st.st_mode) && has_suffix(path, ".yaml"))
			rc = add_below(f, path, path + root_len + 1);
		free(path);
	}
	closedir(d);
	return rc;
}

/* A copy that a run has kept, wherever its folder lies. */
static bool is_kept_stdin(const char *path)
{
	size_t dir_len = strlen(path) - strlen(strrchr(path, '/'));
	char run[PATH_MAX];

	return has_suffix(path, "/" SCENARIO_STDIN_ID ".yaml") &&
	       snprintf(run, sizeof(run), "%.*s/run.json", (int)dir_len, path) < (int)sizeof(run) && !access(run, F_OK);
}

/* The id of a single file: below the nearest folder named `scenarios`, else its name alone. */
static int add_file(struct found *f, const char *path, struct error *e)
{
	char *real = realpath(path, NULL);
	const char *id, *mark = NULL;
	int rc;

	if (!real) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
	for (const char *p = real; !is_kept_stdin(real) && (p = strstr(p, "/scenarios/")); p++)
		mark = p;
	id = mark ? mark + strlen("/scenarios/") : strrchr(real, '/') + 1;
	rc = add(f, path, id);
	free(real);
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct scenario_path *)a)->path, ((const struct scenario_path *)b)->path);
}

int scenario_find(const char *path, struct scenario_path **ret, size_t *ret_n, struct error *e)
{
	struct found f = { NULL, 0, NULL };
	struct stat st;
	size_t len = strlen(path);
	int rc;

	if (!strcmp(path, "-")) {
		rc = add(&f, path, SCENARIO_STDIN_ID);
		goto done;
	}
	if (stat(path, &st)) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
	if (S_ISDIR(st.st_mode)) {
		char *dir;

		while (len > 1 && path[len - 1] == '/')
			len--;
		dir = strndup(path, len);
		rc = dir ? find_prefix(&f, dir, e) : -ENOMEM;
		if (!rc)
			rc = walk(&f, dir, len, 0, e);
		free(dir);
		free(f.prefix);
	} else {
		rc = add_file(&f, path, e);
	}
done:
	if (rc) {
		scenario_paths_free(f.paths, f.n);
		return rc;
	}
	if (f.n)
		qsort(f.paths, f.n, sizeof(*f.paths), by_path);
	*ret = f.paths;
	*ret_n = f.n;
	return 0;
}

void scenario_paths_free(struct scenario_path *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(paths[i].path);
		free(paths[i].id);
	}
	free(paths);
}
