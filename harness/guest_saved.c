/* SPDX-License-Identifier: MIT */
#include "guest_saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "data.h"
#include "file_line.h"
#include "guest_boot.h"
#include "json.h"
#include "log.h"
#include "sha256.h"
#include "units.h"

#ifndef QD_LINKS
#define QD_LINKS ""
#endif

#define SCHEMA 2
#define KEEP 8
#define ROOM_BYTES (1ULL << 30)
#define MAKE_TIMEOUT_NS (90 * NSEC_PER_SEC)
#define RESTORE_TIMEOUT_NS (20 * NSEC_PER_SEC)
#define PREPARE_FILE "prepare.txt"
#define HALF "tmp."

/* All that may lie in a folder, whole or half made. */
static const char *const file_names[] = { "ram", "state", "stamp.json", PREPARE_FILE, "console.log", "qemu.log" };

struct guest_saved {
	char dir[PATH_MAX]; /* "": gone */
	const struct guest_patience *patience;
};

static int open_in(const char *dir, const char *name, int flags)
{
	char path[PATH_MAX + 32];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

/* In *ret (caller frees), with a 0 after it. */
static int read_whole(const char *path, char **ret, size_t *ret_len, struct error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t n = text ? read(fd, text, (size_t)st.st_size) : -1;

	close(fd);
	if (n != st.st_size) {
		free(text);
		return error_set(e, -EIO, "%s cannot be read", path);
	}
	text[n] = '\0';
	*ret = text;
	*ret_len = (size_t)n;
	return rc;
}

static void empty_folder(int dir)
{
	for (size_t i = 0; i < sizeof file_names / sizeof file_names[0]; i++)
		unlinkat(dir, file_names[i], 0);
}

static void remove_folder(int at, const char *name)
{
	int dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0) {
		empty_folder(dir);
		close(dir);
	}
	unlinkat(at, name, AT_REMOVEDIR);
}

/* A half made one whose maker has gone. */
static bool is_left(int at, const char *name)
{
	int dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool left = dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0;

	if (dir >= 0)
		close(dir);
	return left;
}

/* ---- key ---- */

static void key_file(FILE *f, const char *name, const char *path)
{
	char hex[SHA256_HEX], *text = NULL;
	struct error ignored;
	size_t len = 0;

	if (read_whole(path, &text, &len, &ignored) == 0)
		fprintf(f, "%s %s\n", name, sha256_hex(text, len, hex));
	free(text);
}

static void key_qemu(FILE *f, const char *program)
{
	const char *path = getenv("PATH");

	for (const char *p = path; p && *p; p += strcspn(p, ":"), p += *p == ':') {
		char name[PATH_MAX];
		struct stat st;

		snprintf(name, sizeof name, "%.*s/%s", (int)strcspn(p, ":"), p, program);
		if (access(name, X_OK) < 0 || stat(name, &st) < 0)
			continue;
		fprintf(f, "qemu %s %lld %lld.%09ld\n", name, (long long)st.st_size, (long long)st.st_mtim.tv_sec,
			st.st_mtim.tv_nsec);
		return;
	}
}

/* The same whoever asks: what differs between two guests of one machine is the same everywhere here. */
static int key_machine(FILE *f, const struct guest_saved_options *o, struct error *e)
{
	const struct guest_options go = { .kernel = o->kernel,
					  .accel = o->accel,
					  .share = "/",
					  .boot_file = PREPARE_FILE,
					  .console = "/dev/null",
					  .shell_fd = -1 };
	const struct guest_machine m = { .kind = GUEST_TO_SAVE, .memory_file = "ram", .qmp_fd = 0, .control_fd = 0 };
	char **argv = NULL;
	int rc = guest_argv(&go, &m, &argv, e);

	for (size_t i = 0; rc == 0 && argv[i]; i++)
		fprintf(f, "%s\n", argv[i]);
	if (rc == 0)
		key_qemu(f, argv[0]);
	guest_argv_free(argv);
	return rc;
}

static int make_key(const struct guest_saved_options *o, char hex[SHA256_HEX], struct error *e)
{
	char *text = NULL, boot[64] = "";
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	file_line(BOOT_ID_PATH, boot, sizeof boot);
	if (!f)
		return error_set(e, -ENOMEM, "out of memory");
	fprintf(f, "schema %d\nmachine %s\nkernel %s\nlanes %d %s\n", SCHEMA, boot, o->kernel->key, o->lanes,
		/* NOLINTNEXTLINE(bugprone-branch-clone): empty only where the Makefile does not say it */
		o->lanes > 0 ? QD_LINKS : "");
	key_file(f, "initrd", o->kernel->initrd);
	int rc = key_machine(f, o, e);

	if (fclose(f) != 0 && rc == 0)
		rc = error_set(e, -ENOMEM, "out of memory");
	if (rc == 0)
		sha256_hex(text, len, hex);
	free(text);
	return rc;
}

/* ---- is it what was written ---- */

static int describe(const char *dir, json_t **ret, struct error *e)
{
	char path[PATH_MAX + 32], hex[SHA256_HEX], *state = NULL;
	size_t len = 0;
	struct stat st;
	int rc;

	snprintf(path, sizeof path, "%s/ram", dir);
	if (stat(path, &st) < 0)
		return error_set(e, -errno, "%s: %s", path, strerror(errno));
	snprintf(path, sizeof path, "%s/state", dir);
	rc = read_whole(path, &state, &len, e);
	if (rc < 0)
		return rc;
	*ret = json_pack("{s:I,s:I,s:I,s:I,s:s}", "ram_bytes", (json_int_t)st.st_size, "ram_mtime_s", (json_int_t)st.st_mtim.tv_sec,
			 "ram_mtime_ns", (json_int_t)st.st_mtim.tv_nsec, "state_bytes", (json_int_t)len, "state_sha256",
			 sha256_hex(state, len, hex));
	free(state);
	return *ret ? 0 : error_set(e, -ENOMEM, "out of memory");
}

/* The memory is too large to be read whole each time: its size and the time of its last change stand for it. */
static int check(const char *dir, struct error *e)
{
	char path[PATH_MAX + 32];
	json_t *is = NULL, *was = NULL;

	snprintf(path, sizeof path, "%s/stamp.json", dir);
	int rc = json_load(path, &was, e);

	if (rc == 0)
		rc = describe(dir, &is, e);
	if (rc == 0 && !json_equal(is, was))
		rc = error_set(e, -EUCLEAN, "%s is not as it was written", dir);
	json_decref(is);
	json_decref(was);
	return rc;
}

/* ---- the words on its control port ---- */

static int say_run(int fd, const char *boot_file, struct error *e)
{
	unsigned char seed[GUEST_BOOT_SEED_BYTES];
	char hex[2 * sizeof seed + 1];
	struct timespec now;

	if (getrandom(seed, sizeof seed, 0) != (ssize_t)sizeof seed)
		return error_set(e, -EIO, "no random numbers for the guest");
	for (size_t i = 0; i < sizeof seed; i++)
		snprintf(hex + 2 * i, 3, "%02x", seed[i]);
	clock_gettime(CLOCK_REALTIME, &now);
	return dprintf(fd, "run %s %lld %ld %s\n", boot_file, (long long)now.tv_sec, now.tv_nsec, hex) > 0
		       ? 0
		       : error_set(e, -EIO, "the guest takes no word");
}

/* ---- making one ---- */

static int save(struct guest *g, const char *dir, uint64_t end_ns, struct error *e)
{
	int fd = open_in(dir, "state", O_WRONLY | O_CREAT | O_EXCL);

	if (fd < 0)
		return error_set(e, -errno, "%s/state: %s", dir, strerror(errno));
	int rc = guest_qmp_run(&g->qmp, "stop", NULL, -1, end_ns, NULL, e);

	if (rc == 0)
		rc = guest_qmp_run(&g->qmp, "migrate-set-capabilities",
				   json_pack("{s:[{s:s,s:b}]}", "capabilities", "capability", "x-ignore-shared", "state", true), -1,
				   end_ns, NULL, e);
	if (rc == 0)
		rc = guest_qmp_run(&g->qmp, "getfd", json_pack("{s:s}", "fdname", "state"), fd, end_ns, NULL, e);
	if (rc == 0)
		rc = guest_qmp_run(&g->qmp, "migrate", json_pack("{s:s}", "uri", "fd:state"), -1, end_ns, NULL, e);
	if (rc == 0)
		rc = guest_qmp_await(&g->qmp, "query-migrate", "completed", end_ns, e);
	if (rc == 0)
		rc = guest_qmp_run(&g->qmp, "quit", NULL, -1, end_ns, NULL, e);
	if (rc == 0 && !proc_wait(&g->proc, end_ns - now_ns()))
		rc = error_set(e, -ETIMEDOUT, "QEMU does not quit");
	close(fd);
	return rc;
}

static int write_prepare(const struct guest_saved_options *o, const char *dir, struct error *e)
{
	static const char *const env[] = { "QPDRILL_STATE=/run/qd/prepared", NULL };
	char lanes[16];
	/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): one string in two lines */
	const char *const argv[] = { o->inner, "--keep-lanes", lanes, GUEST_BOOT_LANES, NULL }, *const nothing[] = { NULL };
	const struct guest_boot b = { .argv = o->lanes > 0 ? argv : nothing, .env = env };

	snprintf(lanes, sizeof lanes, "%d", o->lanes);
	return guest_write_boot(dir, PREPARE_FILE, o->kernel, NULL, &b, e);
}

static int boot_and_save(const struct guest_saved_options *o, const char *dir, struct error *e)
{
	uint64_t end_ns = now_ns() + MAKE_TIMEOUT_NS;
	char console[PATH_MAX + 32], ram[PATH_MAX + 32];
	struct guest g;
	int rc = write_prepare(o, dir, e);

	if (rc < 0)
		return rc;
	snprintf(console, sizeof console, "%s/console.log", dir);
	snprintf(ram, sizeof ram, "%s/ram", dir);
	int log_fd = open_in(dir, "qemu.log", O_WRONLY | O_CREAT);
	const struct guest_options go = { .kernel = o->kernel,
					  .accel = o->accel,
					  .share = dir,
					  .boot_file = PREPARE_FILE,
					  .console = console,
					  .shell_fd = -1,
					  .err_fd = log_fd };

	rc = guest_spawn(&go, GUEST_TO_SAVE, ram, o->journal, &g, e);
	if (log_fd >= 0)
		close(log_fd);
	if (rc < 0)
		return rc;
	rc = guest_await_word(&g, "prepared 0", end_ns, o->patience, e);
	if (rc == 0)
		rc = save(&g, dir, end_ns, e);
	guest_stop(&g);
	return rc;
}

static int write_stamp(const char *dir, struct error *e)
{
	char path[PATH_MAX + 32];
	json_t *stamp = NULL;
	int rc = describe(dir, &stamp, e);

	snprintf(path, sizeof path, "%s/stamp.json", dir);
	if (rc == 0)
		rc = json_save(path, stamp, e);
	json_decref(stamp);
	return rc;
}

/* The last word of QEMU, or else of the guest. */
static void say_why(const char *dir, struct error *e)
{
	char path[PATH_MAX + 32];
	json_t *last;

	snprintf(path, sizeof path, "%s/qemu.log", dir);
	last = guest_console_tail(path, 1);
	if (json_array_size(last) == 0) {
		json_decref(last);
		snprintf(path, sizeof path, "%s/console.log", dir);
		last = guest_console_tail(path, 1);
	}
	struct error head = *e;

	if (json_array_size(last) > 0)
		error_set(e, -EIO, "%s (%s)", head.text, json_string_value(json_array_get(last, 0)));
	json_decref(last);
}

/* Opens the folder in which the one for target is made, empty and locked; one that was left half made is begun again. */
static int open_half(const char *dir, struct error *e)
{
	struct stat here, there;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return error_set(e, -errno, "%s: %s", dir, strerror(errno));
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* Between the two calls somebody may have taken it for a left one. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &here) < 0 || stat(dir, &there) < 0 ||
	    here.st_ino != there.st_ino) {
		if (fd >= 0)
			close(fd);
		return error_set(e, -EBUSY, "another run is saving one");
	}
	empty_folder(fd);
	return fd;
}

static int make(const struct guest_saved_options *o, const char *saved, const char *target, struct error *e)
{
	char dir[PATH_MAX];
	struct statvfs room;
	int rc = 0;

	if (statvfs(saved, &room) == 0 && (uint64_t)room.f_bavail * room.f_frsize < ROOM_BYTES)
		return error_set(e, -ENOSPC, "%s has less than 1 GiB left", saved);
	snprintf(dir, sizeof dir, "%.4000s/" HALF "%s", saved, strrchr(target, '/') + 1);
	int fd = open_half(dir, e);

	if (fd < 0)
		return fd;
	if (access(target, F_OK) == 0) { /* another run was faster */
		rc = check(target, e);
		remove_folder(AT_FDCWD, dir);
		close(fd);
		return rc;
	}
	rc = boot_and_save(o, dir, e);
	/* A kernel that writes over its own code while it boots may die of it under emulation, where processors are emulated side
	 * by side. */
	if (rc == -EPIPE) {
		say_why(dir, e);
		log_info("guest: it ended while it booted, and is booted once more: %s", e->text);
		empty_folder(fd);
		rc = boot_and_save(o, dir, e);
	}
	if (rc == 0)
		rc = write_stamp(dir, e);
	if (rc == 0 && rename(dir, target) < 0)
		rc = error_set(e, -errno, "%s: %s", target, strerror(errno));
	if (rc < 0) {
		say_why(dir, e);
		remove_folder(AT_FDCWD, dir);
	}
	close(fd);
	return rc;
}

/* ---- the folder of all ---- */

struct entry {
	char name[NAME_MAX + 1];
	struct timespec used;
};

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? 1 : -1;
	return (x->used.tv_nsec < y->used.tv_nsec) - (x->used.tv_nsec > y->used.tv_nsec);
}

/* Keeps those used last, and room for one more. */
static void prune(const char *saved)
{
	struct entry found[64] = { 0 };
	size_t n = 0;
	DIR *d = opendir(saved);

	for (const struct dirent *entry; d && (entry = readdir(d)) && n < sizeof found / sizeof found[0];) {
		struct stat st;

		if (entry->d_name[0] == '.' || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (strncmp(entry->d_name, HALF, strlen(HALF)) == 0) {
			if (is_left(dirfd(d), entry->d_name))
				remove_folder(dirfd(d), entry->d_name);
			continue;
		}
		snprintf(found[n].name, sizeof found[n].name, "%s", entry->d_name);
		found[n++].used = st.st_mtim;
	}
	qsort(found, n, sizeof found[0], newest_first);
	for (size_t i = KEEP - 1; i < n; i++)
		remove_folder(dirfd(d), found[i].name);
	if (d)
		closedir(d);
}

/* What lies there whole, or what is made now that nobody else does. */
static int find_or_make(const struct guest_saved_options *o, const char *saved, const char *dir, struct error *e)
{
	struct error damage;
	uint64_t begin = now_ns();

	if (access(dir, F_OK) == 0) {
		if (check(dir, &damage) == 0)
			return 0;
		log_warn("guest: the saved one is damaged, and removed: %s", damage.text);
		remove_folder(AT_FDCWD, dir);
	}
	prune(saved);
	log_info("guest: booting one to save (%s, once for this machine's boot, QEMU and kernel)", o->kernel->release);
	int rc = make(o, saved, dir, e);

	if (rc == 0)
		log_info("guest: saved after %.1f s", (double)(now_ns() - begin) / 1e9);
	return rc;
}

struct guest_saved *guest_saved_find(const struct guest_saved_options *o)
{
	struct guest_saved *s = calloc(1, sizeof *s);
	char *cache = NULL, saved[PATH_MAX], hex[SHA256_HEX];
	struct error e = { "out of memory" };
	int rc = s ? data_cache(&cache, &e) : -ENOMEM;

	if (rc == 0) {
		snprintf(saved, sizeof saved, "%.3900s/saved", cache);
		if (mkdir(saved, 0777) < 0 && errno != EEXIST)
			rc = error_set(&e, -errno, "%s: %s", saved, strerror(errno));
	}
	if (rc == 0)
		rc = make_key(o, hex, &e);
	if (rc == 0) {
		snprintf(s->dir, sizeof s->dir, "%.4000s/%.24s", saved, hex);
		s->patience = o->patience;
		rc = find_or_make(o, saved, s->dir, &e);
	}
	if (rc < 0) {
		log_info("guest: no saved one: %s", e.text);
		free(s);
		s = NULL;
	}
	free(cache);
	return s;
}

int guest_saved_restore(struct guest_saved *s, const struct guest_options *o, struct journal *journal, struct guest *ret,
			struct error *e)
{
	uint64_t end_ns = now_ns() + RESTORE_TIMEOUT_NS;
	char ram[PATH_MAX + 32];
	struct guest g;

	if (!s->dir[0])
		return error_set(e, -ENOENT, "no saved guest");
	int rc = check(s->dir, e), fd = rc == 0 ? open_in(s->dir, "state", O_RDONLY) : -1;

	snprintf(ram, sizeof ram, "%s/ram", s->dir);
	if (rc == 0)
		utimensat(AT_FDCWD, s->dir, NULL, 0);
	if (rc == 0)
		rc = guest_spawn(o, GUEST_RESTORED, ram, journal, &g, e);
	if (rc < 0)
		goto close_fd;
	rc = guest_qmp_run(&g.qmp, "migrate-set-capabilities",
			   json_pack("{s:[{s:s,s:b}]}", "capabilities", "capability", "x-ignore-shared", "state", true), -1, end_ns,
			   NULL, e);
	if (rc == 0)
		rc = guest_qmp_run(&g.qmp, "getfd", json_pack("{s:s}", "fdname", "state"), fd, end_ns, NULL, e);
	if (rc == 0)
		rc = guest_qmp_run(&g.qmp, "migrate-incoming", json_pack("{s:s}", "uri", "fd:state"), -1, end_ns, NULL, e);
	if (rc == 0)
		rc = guest_qmp_await(&g.qmp, "query-migrate", "completed", end_ns, e);
	if (rc == 0)
		rc = guest_qmp_run(&g.qmp, "cont", NULL, -1, end_ns, NULL, e);
	if (rc == 0)
		rc = say_run(g.control, o->boot_file, e);
	if (rc == 0)
		rc = guest_await_word(&g, "running", end_ns, s->patience, e);
	if (rc == 0)
		*ret = g;
	else
		guest_stop(&g);
close_fd:
	if (fd >= 0)
		close(fd);
	/* Nothing is wrong with one that nobody waited for. */
	if (rc < 0 && rc != -EINTR)
		guest_saved_drop(s, e->text);
	return rc;
}

void guest_saved_drop(struct guest_saved *s, const char *why)
{
	if (!s || !s->dir[0])
		return;
	log_warn("guest: the saved one does not come up, and is removed: %s", why);
	remove_folder(AT_FDCWD, s->dir);
	s->dir[0] = '\0';
}

void guest_saved_free(struct guest_saved *s)
{
	free(s);
}
