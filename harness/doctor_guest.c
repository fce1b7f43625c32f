/* SPDX-License-Identifier: MIT */
/* What the guest is made of, and what runs have left. */
#include "doctor_internal.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_line.h"
#include "guest.h"
#include "journal.h"
#include "json.h"

#define GROUP_GUEST "the guest"
/* Below this no guest is saved (guest_saved.c), and a run folder may not fit. */
#define ROOM_MIN_BYTES (1ULL << 30)

/* What the last boot said, of whichever kernel; NULL: nothing is known. */
static const json_t *answer_of_boot(const struct examination *x, json_t *known)
{
	const json_t *answer = NULL, *value;
	char boot_id[64];
	const char *key;

	doctor_line(x, BOOT_ID_PATH, boot_id, sizeof(boot_id));
	json_object_foreach((json_t *)known, key, value)
		if (*boot_id && !strncmp(key, boot_id, strlen(boot_id)) && !json_is_true(answer))
			answer = value;
	return answer;
}

static void look_at_kvm(struct examination *x)
{
	char path[4096];
	json_t *known = NULL;
	const json_t *answer;
	struct error ignored;

	if (access(doctor_path(x, "/dev/kvm", path, sizeof(path)), F_OK) < 0) {
		doctor_say(
			x, GROUP_GUEST, "/dev/kvm", STATE_NOTE, 0, "",
			"is not there: the guest is emulated, and slower (modprobe kvm-intel or kvm-amd, where the processor may)");
		return;
	}
	if (access(path, R_OK | W_OK) < 0) {
		doctor_say(
			x, GROUP_GUEST, "/dev/kvm", STATE_NOTE, 0, "sudo usermod -aG kvm \"$USER\"",
			"may not be opened by this user: the guest is emulated, and slower (the group counts from the next login)");
		return;
	}
	snprintf(path, sizeof(path), "%s/accel.json", x->d->cache);
	if (json_load(path, &known, &ignored))
		known = NULL;
	answer = answer_of_boot(x, known);
	doctor_say(x, GROUP_GUEST, "/dev/kvm", json_is_false(answer) ? STATE_NOTE : STATE_OK, 0, "", "%s",
		   !answer                ? "is there; the first run tries whether it boots a kernel"
		   : json_is_true(answer) ? "boots kernels"
					  : "is there, but boots no kernel: the guest is emulated, and slower");
	json_decref(known);
}

static void look_at_memory(struct examination *x)
{
	char text[64], has[32], wants[32];
	uint64_t free_bytes, need = (uint64_t)GUEST_MEMORY_MB << 20;

	doctor_value(x, "/proc/meminfo", "MemAvailable:", text, sizeof(text));
	free_bytes = strtoull(text, NULL, 10) << 10;
	if (*text)
		doctor_say(x, GROUP_GUEST, "memory", free_bytes < need ? STATE_NOTE : STATE_OK, 0, "",
			   "%s available; a guest may take %s", doctor_size(free_bytes, has, sizeof(has)),
			   doctor_size(need, wants, sizeof(wants)));
}

/* The folders below one of the cache's, "6.1.0-57-amd64, 6.12.95"; how many. */
static unsigned list_folders(const struct examination *x, const char *name, const char *holds, char *buf, size_t size)
{
	char path[4096];
	struct dirent **names = NULL;
	size_t len = 0;
	unsigned found = 0;
	int n;

	*buf = 0;
	snprintf(path, sizeof(path), "%s/%s", x->d->cache, name);
	n = scandir(path, &names, NULL, versionsort);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s/%s/%s", x->d->cache, name, names[i]->d_name, holds);
		if (names[i]->d_name[0] != '.' && access(path, F_OK) == 0) {
			if (len < size)
				len += (size_t)snprintf(buf + len, size - len, "%s%.*s", found ? ", " : "",
							(int)strcspn(names[i]->d_name, "_"), names[i]->d_name);
			found++;
		}
		free(names[i]);
	}
	free(names);
	return found;
}

/* Whether the cache is a folder that may be written to, or can be made where it is to be. */
static bool has_cache(const struct examination *x)
{
	char up[4096];
	struct stat st;

	snprintf(up, sizeof(up), "%s", x->d->cache);
	while (stat(up, &st) < 0) {
		char *slash = strrchr(up, '/');

		if (!slash || slash == up)
			return access("/", W_OK) == 0;
		*slash = 0;
	}
	return S_ISDIR(st.st_mode) && access(up, W_OK | X_OK) == 0;
}

static void look_at_cache(struct examination *x)
{
	char text[400], path[4096], has[32];
	unsigned n = list_folders(x, "kernels", "", text, sizeof(text));
	bool current;

	if (!has_cache(x))
		doctor_say(x, GROUP_GUEST, "cache", STATE_MISSING, STOPS_GUEST, "export QPDRILL_CACHE=FOLDER",
			   "%s is no folder that this user may write to, nor can it be made", x->d->cache);
	snprintf(path, sizeof(path), "%s/current", x->d->cache);
	current = access(path, F_OK) == 0;
	if (current)
		doctor_say(x, GROUP_GUEST, "kernels", STATE_OK, 0, "", "%s", text);
	else
		doctor_say(x, GROUP_GUEST, "kernels", STATE_NOTE, 0, "make setup",
			   "%s%s%sthe distribution's is not in %s: the first run fetches it (70 to 170 MB), which needs a network "
			   "and apt-get",
			   n ? text : "", n ? "; but " : "", n ? "" : "none; ", x->d->cache);
	n = list_folders(x, "saved", "stamp.json", text, sizeof(text));
	doctor_say(x, GROUP_GUEST, "saved guests", STATE_OK, 0, "", "%u%s", n, n ? "" : "; the first run saves one");
	if (x->d->room_bytes)
		doctor_say(x, GROUP_GUEST, "disk", x->d->room_bytes < ROOM_MIN_BYTES ? STATE_NOTE : STATE_OK, 0, "",
			   "%s left for %s%s", doctor_size(x->d->room_bytes, has, sizeof(has)), x->d->cache,
			   x->d->room_bytes < ROOM_MIN_BYTES ? "; below 1 GiB no guest is saved" : "");
}

static void look_at_journals(struct examination *x)
{
	unsigned alive, left;

	journal_look(&alive, &left);
	if (left)
		doctor_say(x, GROUP_GUEST, "left over", STATE_NOTE, 0, "qpdrill clean",
			   "%u run%s been killed, and what %s changed is not undone yet (the next run does it, too)", left,
			   left == 1 ? " has" : "s have", left == 1 ? "it" : "they");
	else
		doctor_say(x, GROUP_GUEST, "left over", STATE_OK, 0, "", "nothing; %u run%s going on", alive,
			   alive == 1 ? "" : "s");
}

void doctor_guest(struct examination *x)
{
	look_at_kvm(x);
	look_at_memory(x);
	look_at_cache(x);
	look_at_journals(x);
}
