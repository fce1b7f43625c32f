/* SPDX-License-Identifier: MIT */
#include "data.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef QD_SOURCE_DIR
#define QD_SOURCE_DIR ""
#endif
#ifndef QD_DATA_DIR
#define QD_DATA_DIR ""
#endif

static int self_dir(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);

	if (n <= 0)
		return -errno;
	buf[n] = '\0';
	char *slash = strrchr(buf, '/');
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	return 0;
}

static char *try_path(const char *base, const char *mid, const char *rel)
{
	char *joined = NULL;

	if (asprintf(&joined, "%s%s/%s", base, mid, rel) < 0)
		return NULL;
	char *real = access(joined, R_OK) == 0 ? realpath(joined, NULL) : NULL;
	free(joined);
	return real;
}

int data_path(const char *rel, char **ret, struct error *e)
{
	char self[PATH_MAX] = "";
	const char *env = getenv("QPDRILL_DATA");

	(void)self_dir(self, sizeof(self));
	const struct {
		const char *base, *mid;
	} places[] = {
		{ env && env[0] ? env : NULL, "" },
		{ self[0] ? self : NULL, "/.." },
		{ self[0] ? self : NULL, "/../share/qpdrill" },
		{ QD_SOURCE_DIR[0] ? QD_SOURCE_DIR : NULL, "" },
		{ QD_DATA_DIR[0] ? QD_DATA_DIR : NULL, "" },
	};
	char tried[768] = "";
	size_t used = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!places[i].base)
			continue;
		char *found = try_path(places[i].base, places[i].mid, rel);
		if (found) {
			*ret = found;
			return 0;
		}
		int n = snprintf(tried + used, sizeof(tried) - used, "%s%s%s", used ? ", " : "", places[i].base, places[i].mid);
		if (n > 0)
			used = used + (size_t)n < sizeof(tried) ? used + (size_t)n : sizeof(tried) - 1;
	}
	return error_set(e, -ENOENT, "%s: not found in %s; QPDRILL_DATA may name the folder that holds it", rel, tried);
}

int data_program(const char *name, char **ret, struct error *e)
{
	char self[PATH_MAX];
	char *path = NULL;
	int rc = self_dir(self, sizeof(self));

	if (rc < 0)
		return error_set(e, rc, "/proc/self/exe: %s", strerror(-rc));
	if (asprintf(&path, "%s/%s", self, name) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	if (access(path, X_OK) < 0) {
		rc = error_set(e, -errno, "%s: %s; it belongs beside the running program", path, strerror(errno));
		free(path);
		return rc;
	}
	*ret = path;
	return 0;
}

static int make_folders(char *path)
{
	for (char *p = path + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char keep = *p;
		*p = '\0';
		int rc = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
		*p = keep;
		if (rc < 0 && (rc != -EROFS || keep == '\0'))
			return rc;
		if (keep == '\0')
			return 0;
	}
}

int data_cache_place(char **ret, struct error *e)
{
	const char *own = getenv("QPDRILL_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n;

	if (own && own[0])
		n = asprintf(&path, "%s", own);
	else if (xdg && xdg[0])
		n = asprintf(&path, "%s/qpdrill", xdg);
	else if (home && home[0])
		n = asprintf(&path, "%s/.cache/qpdrill", home);
	else
		return error_set(e, -ENOENT, "no place for the cache: QPDRILL_CACHE, XDG_CACHE_HOME and HOME are all unset");
	if (n < 0)
		return error_set(e, -ENOMEM, "out of memory");
	*ret = path;
	return 0;
}

int data_cache(char **ret, struct error *e)
{
	char *path = NULL;
	int rc = data_cache_place(&path, e);

	if (rc || !path)
		return rc;
	rc = make_folders(path);
	if (rc == 0 && access(path, R_OK | X_OK) < 0)
		rc = -errno;
	if (rc < 0) {
		rc = error_set(e, rc, "cache folder %s: %s; QPDRILL_CACHE=FOLDER names another", path, strerror(-rc));
		free(path);
		return rc;
	}
	*ret = path;
	return 0;
}
