/* SPDX-License-Identifier: MIT */
#include "durations.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "json.h"
#include "log.h"

#define ENTRIES_MAX 20000 /* beyond it the memory begins anew: cases come and go */
#define KEY_MAX 512

static char *file_path(void)
{
	char *folder = NULL, *path = NULL;
	struct error e;

	if (data_cache(&folder, &e) < 0 || asprintf(&path, "%s/durations.json", folder) < 0)
		path = NULL;
	free(folder);
	return path;
}

/* The id without ~rN. */
static const char *key_of(const char *case_id, char buf[KEY_MAX])
{
	char *tail;

	snprintf(buf, KEY_MAX, "%s", case_id);
	tail = strrchr(buf, '~');
	if (tail && tail[1] == 'r' && isdigit((unsigned char)tail[2]) && strspn(tail + 2, "0123456789") == strlen(tail + 2))
		*tail = '\0';
	return buf;
}

json_t *durations_load(void)
{
	char *path = file_path();
	json_t *d = NULL;
	struct error e;

	if (path && json_load(path, &d, &e) < 0)
		d = NULL;
	free(path);
	if (json_is_object(d) && json_object_size(d) <= ENTRIES_MAX)
		return d;
	json_decref(d);
	return json_object();
}

uint64_t durations_expect(const json_t *d, const char *case_id, uint64_t budget_ns)
{
	char key[KEY_MAX];

	return json_u64(d, key_of(case_id, key), budget_ns);
}

void durations_note(json_t *d, const char *case_id, uint64_t ns)
{
	char key[KEY_MAX];

	if (ns)
		json_object_set_new(d, key_of(case_id, key), json_integer((json_int_t)ns));
}

void durations_save(const json_t *d)
{
	char *path = file_path();
	struct error e;

	if (path && json_save(path, d, &e) < 0)
		log_debug("%s", e.text);
	free(path);
}
