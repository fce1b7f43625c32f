/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *json_str(const json_t *obj, const char *key)
{
	return json_string_value(json_object_get(obj, key));
}

/* A whole "0x..." string, nothing before or after it. */
static bool parse_hex(const char *text, uint64_t *ret)
{
	char *end;

	if (!text || text[0] != '0' || text[1] != 'x' || !text[2] || strspn(text + 2, "0123456789abcdefABCDEF") != strlen(text + 2))
		return false;
	errno = 0;
	unsigned long long value = strtoull(text + 2, &end, 16);

	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

uint64_t json_u64(const json_t *obj, const char *key, uint64_t def)
{
	const json_t *v = json_object_get(obj, key);
	uint64_t value;

	if (json_is_integer(v))
		return (uint64_t)json_integer_value(v);
	return parse_hex(json_string_value(v), &value) ? value : def;
}

int64_t json_int(const json_t *obj, const char *key, int64_t def)
{
	return (int64_t)json_u64(obj, key, (uint64_t)def);
}

bool json_bool(const json_t *obj, const char *key, bool def)
{
	const json_t *v = json_object_get(obj, key);

	return json_is_boolean(v) ? json_is_true(v) : def;
}

json_t *json_hex(uint64_t value)
{
	return json_sprintf("0x%llx", (unsigned long long)value);
}

bool json_array_has(const json_t *array, const char *text)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *s = json_string_value(json_array_get(array, i));

		if (s && !strcmp(s, text))
			return true;
	}
	return false;
}

bool json_has(const json_t *obj, const char *key, const char *text)
{
	const json_t *v = json_object_get(obj, key);

	if (json_is_string(v))
		return !strcmp(json_string_value(v), text);
	return json_array_has(v, text);
}

/* All of a file in one piece: to parse it character by character from a stream takes twice as long. NULL: errno says why. */
static char *read_whole(const char *path, size_t *ret_len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), failed = 0;
	struct stat st = { .st_size = 0 };
	size_t len = 0, room = 0;
	char *text = NULL;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	/* One more than is expected: a read of nothing says that it was all. */
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		room = (size_t)st.st_size + 1;
	while (!failed && n != 0) {
		if (!text || len == room) {
			char *grown = realloc(text, room = !text && room ? room : 2 * room + 4096);

			if (!grown) {
				failed = ENOMEM;
				break;
			}
			text = grown;
		}
		n = read(fd, text + len, room - len);
		if (n < 0 && errno != EINTR)
			failed = errno;
		len += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	if (failed) {
		free(text);
		errno = failed;
		return NULL;
	}
	*ret_len = len;
	return text;
}

int json_load(const char *path, json_t **ret, struct error *e)
{
	json_error_t je;
	json_t *value;
	size_t len;
	char *text = read_whole(path, &len);

	if (!text) {
		int rc = -errno;

		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	free(text);
	if (!value)
		return error_set(e, -EBADMSG, "%s:%d:%d: %s", path, je.line, je.column, je.text);
	*ret = value;
	return 0;
}

int json_save(const char *path, const json_t *value, struct error *e)
{
	char *tmp;
	int rc = 0;

	if (asprintf(&tmp, "%s.%ld.tmp", path, (long)getpid()) < 0)
		return error_set(e, -ENOMEM, "%s: out of memory", path);
	FILE *f = fopen(tmp, "we");

	if (!f) {
		rc = error_set(e, -errno, "%s: %s", tmp, strerror(errno));
		goto free_tmp;
	}
	if (json_dumpf(value, f, JSON_INDENT(1) | JSON_SORT_KEYS | JSON_ENCODE_ANY) || fputc('\n', f) == EOF || fflush(f))
		rc = errno ? -errno : -EIO;
	if (fclose(f) && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc) {
		error_set(e, rc, "%s: cannot write: %s", path, strerror(-rc));
		unlink(tmp);
	}
free_tmp:
	free(tmp);
	return rc;
}

int json_load_lines(const char *path, json_t **ret_array, bool *ret_torn, struct error *e)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0, number = 0;
	ssize_t len;
	bool torn = false;
	int rc = 0;

	if (!f) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
	json_t *array = json_array();

	while ((len = getline(&line, &size, f)) > 0) {
		json_error_t je;
		json_t *value;

		number++;
		if (line[len - 1] != '\n') {
			torn = true;
			break;
		}
		value = json_loadb(line, (size_t)len, JSON_DECODE_ANY, &je);
		if (!value) {
			rc = error_set(e, -EBADMSG, "%s:%zu: not a JSON line: %s", path, number, je.text);
			goto free_line;
		}
		json_array_append_new(array, value);
	}
	if (ferror(f)) {
		rc = error_set(e, -EIO, "%s: read error", path);
		goto free_line;
	}
	*ret_array = array;
	array = NULL;
	if (ret_torn)
		*ret_torn = torn;
free_line:
	free(line);
	json_decref(array);
	fclose(f);
	return rc;
}
