/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "sha256.h"

#define ID_TRIES 16
#define FILE_BYTES_MAX (4u << 20)

static int make_dirs(const char *path, struct error *e)
{
	char *copy = strdup(path);
	int rc = 0;

	if (!copy)
		return error_set(e, -ENOMEM, "out of memory");
	for (char *s = copy + 1; !rc; s++) {
		char c = *s;

		if (c && c != '/')
			continue;
		*s = 0;
		if (mkdir(copy, 0777) < 0 && errno != EEXIST)
			rc = error_set(e, -errno, "%s: cannot make the folder: %s", copy, strerror(errno));
		*s = c;
		if (!c)
			break;
	}
	free(copy);
	return rc;
}

char *run_case_dir(const char *id)
{
	char *dir = NULL;

	if (asprintf(&dir, "cases/%s", id) < 0)
		return NULL;
	for (char *s = dir; *s; s++) {
		bool fine =
			(*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') || strchr("-_=~+,/", *s);

		/* A dot inside a word ("1.5ms") is fine, one that begins a name ("..") is not. */
		if (!fine && !(*s == '.' && s[-1] != '/'))
			*s = '_';
	}
	return dir;
}

static void id_choose(char *buf, size_t size)
{
	unsigned short token = 0;
	time_t now = time(NULL);
	struct tm tm;

	if (getrandom(&token, sizeof(token), 0) != sizeof(token))
		token = (unsigned short)getpid();
	gmtime_r(&now, &tm);
	snprintf(buf, size, "%04d%02d%02d-%02d%02d%02d-%04x", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		 tm.tm_sec, token);
}

/* Readers of the link never see none: the new one is renamed over the old. */
static void link_latest(const char *out, const char *id)
{
	char fresh[4096], latest[4096];

	snprintf(fresh, sizeof(fresh), "%s/.latest-%s", out, id);
	snprintf(latest, sizeof(latest), "%s/latest", out);
	if (symlink(id, fresh) == 0 && rename(fresh, latest) < 0)
		unlink(fresh);
}

void run_folder_stamp(struct run_folder *f, const char *key)
{
	time_t now = time(NULL);
	char stamp[64];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(f->run, key, json_string(stamp));
}

int run_folder_open(const char *out, struct run_folder *ret, struct error *e)
{
	struct run_folder f = { 0 };
	char id[64], path[4096];
	int rc = make_dirs(out, e);

	for (int i = 0; !rc; i++) {
		id_choose(id, sizeof(id));
		if (snprintf(path, sizeof(path), "%s/%s", out, id) >= (int)sizeof(path))
			return error_set(e, -ENAMETOOLONG, "%.100s...: the name is too long", out);
		if (mkdir(path, 0777) == 0)
			break;
		if (errno != EEXIST || i == ID_TRIES)
			rc = error_set(e, -errno, "%s: cannot make the run folder: %s", path, strerror(errno));
	}
	if (rc)
		return rc;
	f.dir = strdup(path);
	f.id = strdup(id);
	snprintf(path, sizeof(path), "%s/%s/results.jsonl", out, id);
	f.results = fopen(path, "wxe");
	if (!f.results)
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
	else if (!f.id || !f.dir)
		rc = error_set(e, -ENOMEM, "out of memory");
	f.run = json_pack("{s:i,s:s,s:{},s:[]}", "schema", 1, "id", id, "hashes", "cases");
	if (rc) {
		run_folder_close(&f);
		return rc;
	}
	link_latest(out, id);
	*ret = f;
	return 0;
}

static int write_file(const char *path, const void *data, size_t len, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	const char *p = data;
	int rc = 0;

	if (fd < 0)
		return error_set(e, -errno, "%s: %s", path, strerror(errno));
	while (len && !rc) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			rc = error_set(e, n < 0 ? -errno : -EIO, "%s: cannot write: %s", path, strerror(errno));
		else
			p += n, len -= (size_t)n;
	}
	if (close(fd) < 0 && !rc)
		rc = error_set(e, -errno, "%s: cannot write: %s", path, strerror(errno));
	return rc;
}

static int read_file(const char *path, char **ret, size_t *ret_len, struct error *e)
{
	char *data = malloc(FILE_BYTES_MAX);
	FILE *in;
	int rc = 0;

	if (!data)
		return error_set(e, -ENOMEM, "out of memory");
	in = fopen(path, "re");
	if (!in) {
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
		goto free_data;
	}
	*ret_len = fread(data, 1, FILE_BYTES_MAX, in);
	if (ferror(in) || *ret_len == FILE_BYTES_MAX)
		rc = error_set(e, -EIO, "%s: cannot be read, or is too large", path);
	fclose(in);
	if (!rc) {
		*ret = data;
		return 0;
	}
free_data:
	free(data);
	return rc;
}

static void note_hash(struct run_folder *f, const char *path, const void *data, size_t len)
{
	char hex[SHA256_HEX];
	json_t *text = json_sprintf("sha256:%s", sha256_hex(data, len, hex));

	json_object_set_new(json_object_get(f->run, "hashes"), path, text);
}

static int copy_profile(struct run_folder *f, const char *case_dir, const char *profile, struct error *e)
{
	char path[4096], *data = NULL;
	size_t len = 0;
	int rc = read_file(profile, &data, &len, e);

	if (rc)
		return rc;
	note_hash(f, profile, data, len);
	snprintf(path, sizeof(path), "%s/profile.yaml", case_dir);
	rc = write_file(path, data, len, e);
	free(data);
	return rc;
}

int run_folder_add(struct run_folder *f, const struct run_case *c, const char *profile, struct error *e)
{
	char dir[3500], path[4096];
	int rc;

	if (snprintf(dir, sizeof(dir), "%s/%s", f->dir, c->dir) >= (int)sizeof(dir))
		return error_set(e, -ENAMETOOLONG, "case %.200s: the name is too long for a folder", c->id);
	rc = make_dirs(dir, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s/scenario.yaml", dir);
	rc = write_file(path, c->scenario->source, c->scenario->source_len, e);
	if (!rc && profile)
		rc = copy_profile(f, dir, profile, e);
	snprintf(path, sizeof(path), "%s/plan.json", dir);
	if (!rc)
		rc = json_save(path, c->plan, e);
	if (rc)
		return rc;
	note_hash(f, c->scenario->path, c->scenario->source, c->scenario->source_len);
	return 0;
}

int run_folder_keep(const struct run_folder *f, const char *name, const void *data, size_t len, struct error *e)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", f->dir, name) >= (int)sizeof(path))
		return error_set(e, -ENAMETOOLONG, "%.100s...: the name is too long", f->dir);
	return write_file(path, data, len, e);
}

int run_folder_verdict(const struct run_folder *f, const struct run_case *c, const json_t *verdict, struct error *e)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s/verdict.json", f->dir, c->dir);
	return json_save(path, verdict, e);
}

int run_folder_save(struct run_folder *f, struct error *e)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/run.json", f->dir);
	return json_save(path, f->run, e);
}

int run_folder_result(struct run_folder *f, const json_t *result, struct error *e)
{
	if (json_dumpf(result, f->results, JSON_COMPACT | JSON_SORT_KEYS) < 0 || fputc('\n', f->results) == EOF ||
	    fflush(f->results) == EOF || (fdatasync(fileno(f->results)) < 0 && errno != EINVAL && errno != EROFS))
		return error_set(e, errno ? -errno : -EIO, "%s/results.jsonl: cannot write: %s", f->dir, strerror(errno));
	return 0;
}

int run_folder_sort(struct run_folder *f, const struct run_cases *list, struct error *e)
{
	char path[4096], temporary[4100];
	FILE *out;
	bool bad = false;

	snprintf(path, sizeof(path), "%s/results.jsonl", f->dir);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	out = fopen(temporary, "we");
	if (!out)
		return error_set(e, -errno, "%s: %s", temporary, strerror(errno));
	for (size_t i = 0; i < list->n && !bad; i++)
		bad = list->cases[i].result &&
		      (json_dumpf(list->cases[i].result, out, JSON_COMPACT | JSON_SORT_KEYS) < 0 || fputc('\n', out) == EOF);
	if (fclose(out) == EOF || bad || rename(temporary, path) < 0)
		return error_set(e, errno ? -errno : -EIO, "%s: cannot write", path);
	return 0;
}

int run_folder_again(struct run_folder *f, const struct run_case *c, int boot, struct error *e)
{
	char from[4096], to[4096];

	snprintf(from, sizeof(from), "%s/%s/observations.jsonl", f->dir, c->dir);
	snprintf(to, sizeof(to), "%s/%s/observations-%d.jsonl", f->dir, c->dir, boot);
	if (rename(from, to) < 0 && errno != ENOENT)
		return error_set(e, -errno, "%s: cannot be kept as %s: %s", from, to, strerror(errno));
	return 0;
}

void run_folder_close(struct run_folder *f)
{
	if (f->results)
		fclose(f->results);
	json_decref(f->run);
	free(f->dir);
	free(f->id);
	*f = (struct run_folder){ 0 };
}
