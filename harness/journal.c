/* SPDX-License-Identifier: MIT */
#include "journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file_line.h"
#include "json.h"
#include "log.h"
#include "proc.h"
#include "units.h"

#define UNDO_TIMEOUT_NS (20 * NSEC_PER_SEC)
#define KILL_TIMEOUT_MS 5000
#define PREFIX "journal-"

/* The file is locked as long as its controller lives: a lock cannot be left behind, and no pid can be taken for another. */
struct journal {
	char *path;
	int fd;
	int next_id;
	int open_entries;
};

struct place {
	const char *base, *sub;
};

static int make_folder(char *path)
{
	for (char *p = path + 1;; p++) {
		if (*p != '/' && *p != '\0')
			continue;
		char keep = *p;

		*p = '\0';
		int rc = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;

		*p = keep;
		if (keep == '\0')
			return access(path, W_OK | X_OK) < 0 ? (rc ? rc : -errno) : 0;
	}
}

#define PLACES 4

/* Where journals may be, the first choice first. base: NULL where the environment has none. */
static void state_places(struct place places[PLACES])
{
	const char *own = getenv("QPDRILL_STATE"), *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");

	places[0] = (struct place){ own && own[0] ? own : NULL, "" };
	places[1] = (struct place){ geteuid() == 0 ? "/run" : NULL, "/qpdrill" };
	places[2] = (struct place){ runtime && runtime[0] ? runtime : NULL, "/qpdrill" };
	places[3] = (struct place){ home && home[0] ? home : NULL, "/.cache/qpdrill/state" };
}

static int state_dir(char **ret, struct error *e)
{
	struct place places[PLACES];
	bool any = false;
	int rc = -ENOENT;

	state_places(places);
	for (size_t i = 0; i < PLACES; i++) {
		char *path;

		if (!places[i].base)
			continue;
		any = true;
		if (asprintf(&path, "%s%s", places[i].base, places[i].sub) < 0)
			return error_set(e, -ENOMEM, "out of memory");
		rc = make_folder(path);
		if (rc == 0) {
			*ret = path;
			return 0;
		}
		error_set(e, rc, "%s cannot hold the journal of changes: %s; QPDRILL_STATE=FOLDER names another place", path,
			  strerror(-rc));
		free(path);
		if (i == 0)
			return rc;
	}
	return any ? rc
		   : error_set(e, rc, "no place for the journal of changes: QPDRILL_STATE, XDG_RUNTIME_DIR and HOME are all unset");
}

static json_t *file_id(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? json_sprintf("%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino)
				    : json_string("");
}

static json_t *boot_id(void)
{
	char buf[64];

	file_line(BOOT_ID_PATH, buf, sizeof buf);
	return json_string(buf);
}

/* Field 22 of /proc/PID/stat; 0 when there is no such process. */
static uint64_t start_time(pid_t pid)
{
	char path[64], buf[1024];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t n = read(fd, buf, sizeof buf - 1);

	close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	const char *p = strrchr(buf, ')'); /* a program's name may hold anything */

	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p, NULL, 10) : 0;
}

static int append(struct journal *j, json_t *line, struct error *e)
{
	char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
	int rc = -ENOMEM;

	json_decref(line);
	if (text && dprintf(j->fd, "%s\n", text) > 0 && fdatasync(j->fd) == 0)
		rc = 0;
	else if (text)
		rc = -errno;
	free(text);
	return rc ? error_set(e, rc, "%s: cannot write down a change before it is made: %s", j->path, strerror(-rc)) : 0;
}

int journal_open(struct journal **ret, struct error *e)
{
	struct journal *j = calloc(1, sizeof *j);
	char *dir = NULL;
	int rc;

	if (!j)
		return error_set(e, -ENOMEM, "out of memory");
	j->fd = -1;
	j->next_id = 1;
	rc = state_dir(&dir, e);
	if (rc)
		goto free_journal;
	for (unsigned i = 0; j->fd < 0; i++) {
		free(j->path);
		if (asprintf(&j->path, "%s/" PREFIX "%d-%u.jsonl", dir, (int)getpid(), i) < 0) {
			j->path = NULL;
			rc = error_set(e, -ENOMEM, "out of memory");
			goto free_journal;
		}
		j->fd = open(j->path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
		if (j->fd < 0 && errno == EEXIST)
			continue;
		if (j->fd < 0) {
			rc = error_set(e, -errno, "%s: %s", j->path, strerror(errno));
			goto free_journal;
		}
		if (flock(j->fd, LOCK_EX) < 0) {
			rc = error_set(e, -errno, "%s: cannot be locked: %s", j->path, strerror(errno));
			goto free_journal;
		}
		/* A run that starts just now may have taken the file, not locked yet, for one that is left over. */
		struct stat st;

		if (fstat(j->fd, &st) == 0 && st.st_nlink == 0) {
			close(j->fd);
			j->fd = -1;
		}
	}
	rc = append(j,
		    json_pack("{s:i,s:o,s:o}", "controller", (int)getpid(), "boot_id", boot_id(), "netns",
			      file_id("/proc/self/ns/net")),
		    e);
	if (rc)
		goto free_journal;
	free(dir);
	*ret = j;
	return 0;
free_journal:
	if (j->fd >= 0)
		close(j->fd);
	if (j->fd >= 0 && j->path)
		unlink(j->path);
	free(j->path);
	free(j);
	free(dir);
	return rc;
}

static int add(struct journal *j, json_t *entry, int *ret_id, struct error *e)
{
	int rc;

	if (!entry || json_object_set_new(entry, "id", json_integer(j->next_id)) < 0) {
		json_decref(entry);
		return error_set(e, -ENOMEM, "out of memory");
	}
	rc = append(j, entry, e);
	if (rc)
		return rc;
	j->open_entries++;
	if (ret_id)
		*ret_id = j->next_id;
	j->next_id++;
	return 0;
}

int journal_add(struct journal *j, const char *const undo[], int *ret_id, struct error *e)
{
	json_t *argv = json_array();

	for (size_t i = 0; undo[i]; i++)
		json_array_append_new(argv, json_string(undo[i]));
	return add(j, json_pack("{s:o}", "undo", argv), ret_id, e);
}

int journal_add_process(struct journal *j, pid_t pid, int *ret_id, struct error *e)
{
	return add(j, json_pack("{s:i,s:o}", "pid", (int)pid, "start", json_hex(start_time(pid))), ret_id, e);
}

void journal_done(struct journal *j, int id)
{
	struct error ignored;

	if (append(j, json_pack("{s:i}", "done", id), &ignored) == 0 && j->open_entries > 0)
		j->open_entries--;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	if (j->open_entries == 0)
		unlink(j->path);
	close(j->fd);
	free(j->path);
	free(j);
}

/* Ends a process by id unless the id belongs to another one now. True when it was there. */
static bool end_process(const json_t *entry)
{
	pid_t pid = (pid_t)json_int(entry, "pid", 0);
	int pidfd = pid > 1 ? (int)syscall(SYS_pidfd_open, pid, 0u) : -1;
	bool ours = pidfd >= 0 && start_time(pid) == json_u64(entry, "start", 0);

	if (ours && syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0u) == 0) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		poll(&p, 1, KILL_TIMEOUT_MS);
	}
	if (pidfd >= 0)
		close(pidfd);
	return ours;
}

static bool run_undo(const json_t *undo, bool verbose)
{
	size_t n = json_array_size(undo);
	char **argv = calloc(n + 1, sizeof *argv);
	struct error e = { "" };

	if (!argv || n == 0) {
		free(argv);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		argv[i] = (char *)(json_string_value(json_array_get(undo, i)) ?: "");
	/* Its complaints that a thing is gone already are of no interest. */
	int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct proc p;
	int rc = proc_spawn(&p, argv, NULL, quiet, &e);

	if (rc == 0) {
		struct pollfd wait = { .fd = p.pidfd, .events = POLLIN };

		poll(&wait, 1, (int)(UNDO_TIMEOUT_NS / NSEC_PER_MSEC));
		rc = proc_poll(&p) ? p.status : -ETIMEDOUT;
		proc_stop(&p, SIGKILL, 0);
	}
	if (verbose)
		log_info("undo: %s %s %s ... %s", argv[0], n > 1 ? argv[1] : "", n > 2 ? argv[2] : "",
			 rc == 0  ? "done"
			 : rc < 0 ? (e.text[0] ? e.text : "did not end in time")
				  : "was gone already");
	if (quiet >= 0)
		close(quiet);
	free(argv);
	return rc == 0;
}

/* Some process (a shell in `ip netns exec`) still lives in the network namespace with this id. */
static bool netns_is_used(const char *id)
{
	DIR *proc = opendir("/proc");
	bool used = false;

	for (const struct dirent *d; proc && !used && (d = readdir(proc));) {
		char path[300];

		if (d->d_name[0] < '1' || d->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/ns/net", d->d_name);
		json_t *other = file_id(path);

		used = other && strcmp(json_string_value(other), id) == 0;
		json_decref(other);
	}
	if (proc)
		closedir(proc);
	return used;
}

static bool is_done(const json_t *lines, json_int_t id)
{
	size_t i;
	json_t *line;

	json_array_foreach(lines, i, line)
		if (json_int(line, "done", 0) == id)
			return true;
	return false;
}

/* Newest first. Returns false when something has to stay in the journal. */
static bool replay(const json_t *lines, const char *path, unsigned *n, bool verbose)
{
	json_t *here = file_id("/proc/self/ns/net"), *boot = boot_id();
	const json_t *head = json_array_get(lines, 0);
	const char *netns = json_str(head, "netns") ?: "";
	bool same_boot = strcmp(json_str(head, "boot_id") ?: "", json_string_value(boot) ?: "") == 0;
	bool same_netns = strcmp(netns, json_string_value(here) ?: "") == 0, whole = true;

	/* After a reboot there is nothing left of any of it. */
	for (size_t i = same_boot ? json_array_size(lines) : 0; i-- > 1;) {
		const json_t *entry = json_array_get(lines, i);
		const json_t *undo = json_object_get(entry, "undo");

		if (is_done(lines, json_int(entry, "id", 0)))
			continue;
		if (json_object_get(entry, "pid")) {
			bool was_there = end_process(entry);

			if (verbose)
				log_info("undo: process %d ... %s", (int)json_int(entry, "pid", 0),
					 was_there ? "ended" : "was gone already");
			*n += was_there;
		} else if (undo && same_netns) {
			*n += run_undo(undo, verbose);
		} else if (undo && netns_is_used(netns)) {
			log_warn("%s: changes in another network namespace that is still in use; run `qpdrill clean` there", path);
			whole = false;
			break;
		}
	}
	json_decref(here);
	json_decref(boot);
	return whole;
}

/* After a power failure, say. What it held cannot be undone, and is no reason never to run again. */
static void set_aside(const char *path, const struct error *why)
{
	const char *name = strrchr(path, '/') + 1;
	char *aside = NULL;

	if (asprintf(&aside, "%.*sdamaged-%s", (int)(name - path), path, name) < 0)
		return;
	if (rename(path, aside) == 0)
		log_warn("%s; it is %s now, and what it told of is not undone", why->text, aside);
	free(aside);
}

static int clean_file(const char *path, unsigned *n, bool verbose, struct error *e)
{
	json_t *lines = NULL;
	bool torn = false;
	int fd = open(path, O_RDWR | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : error_set(e, -errno, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		goto close_fd; /* its controller lives */
	rc = json_load_lines(path, &lines, &torn, e);
	if (rc == -EBADMSG) {
		set_aside(path, e);
		rc = 0;
		goto close_fd;
	}
	/* Still there: another cleaner may have been quicker. */
	struct stat st;

	if (rc == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0 && replay(lines, path, n, verbose))
		unlink(path);
	json_decref(lines);
close_fd:
	close(fd);
	return rc;
}

int journal_clean(unsigned *ret_n, bool verbose, struct error *e)
{
	struct dirent **names = NULL;
	unsigned undone = 0;
	char *dir = NULL;
	int rc = state_dir(&dir, e);

	if (rc || !dir)
		return rc;
	int n = scandir(dir, &names, NULL, alphasort);

	if (n < 0)
		rc = error_set(e, -errno, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (strncmp(names[i]->d_name, PREFIX, strlen(PREFIX)) == 0 && asprintf(&path, "%s/%s", dir, names[i]->d_name) > 0) {
			int one = clean_file(path, &undone, verbose, e);

			rc = rc ? rc : one;
		}
		free(path);
		free(names[i]);
	}
	free(names);
	free(dir);
	if (ret_n)
		*ret_n = undone;
	return rc;
}

/* Whether it can be locked tells whether its controller is gone; one that begins just now waits for that moment. */
static void look_at(const char *path, unsigned *alive, unsigned *left)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		++*alive;
	else
		++*left;
	close(fd);
}

void journal_look(unsigned *ret_alive, unsigned *ret_left)
{
	struct place places[PLACES];

	*ret_alive = *ret_left = 0;
	state_places(places);
	for (size_t i = 0; i < PLACES; i++) {
		char dir[4096], path[4400];
		struct dirent *entry;
		DIR *d;

		if (!places[i].base)
			continue;
		snprintf(dir, sizeof dir, "%s%s", places[i].base, places[i].sub);
		d = opendir(dir);
		while (d && (entry = readdir(d))) {
			snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
			if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0)
				look_at(path, ret_alive, ret_left);
		}
		if (d)
			closedir(d);
		/* Whoever names one has no other. */
		if (i == 0)
			return;
	}
}
