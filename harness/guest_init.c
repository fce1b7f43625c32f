/* SPDX-License-Identifier: MIT */
/*
 * /init of the guest, a static program, alone in its initramfs: loads the modules, mounts the host's root read-only with a tmpfs
 * over it, and runs what the boot file says (guest_boot.h). When that ends, the guest powers off. One process and no shell:
 * starting programs is the dear thing in an emulated machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest_boot.h"

#define P9_OPTIONS "trans=virtio,version=9p2000.L,msize=262144,"
#define MAX_WORDS 256
#define PORT_TIMEOUT_MS 10000
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

struct boot {
	char *text;
	char *argv[MAX_WORDS + 1];
	size_t argc;
	const char *share, *extra, *modules, *release, *cwd, *tty, *out, *err, *status, *port;
	bool shell, early;
};

static __attribute__((noreturn)) void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static __attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	printf("guest: ");
	vprintf(fmt, ap);
	printf(": %s\n", strerror(err));
	va_end(ap);
	fflush(stdout);
	power_off();
}

static void mount_or_fail(const char *what, const char *where, const char *type, unsigned long flags, const char *options)
{
	if (mount(what, where, type, flags, options) < 0)
		fail("cannot mount %s at %s", type ? type : what, where);
}

static char *read_file(const char *path)
{
	size_t len = 0, cap = 65536;
	char *text = malloc(cap);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 || !text)
		fail("cannot read %s", path);
	while ((n = read(fd, text + len, cap - len - 1)) > 0) {
		len += (size_t)n;
		if (len + 1 < cap)
			continue;
		cap *= 2;
		text = realloc(text, cap);
		if (!text)
			fail("%s is too large", path);
	}
	if (n < 0)
		fail("cannot read %s", path);
	close(fd);
	text[len] = '\0';
	return text;
}

/* A word of the kernel's command line, "" when it is not there. */
static const char *kernel_word(const char *name)
{
	static char cmdline[4096];
	size_t len = strlen(name);

	if (!cmdline[0]) {
		char *text = read_file("/proc/cmdline");

		snprintf(cmdline, sizeof cmdline, "%s", text);
		free(text);
	}
	for (const char *p = cmdline; (p = strstr(p, name)); p += len) {
		static char value[256];

		if (p != cmdline && p[-1] != ' ')
			continue;
		snprintf(value, sizeof value, "%.*s", (int)strcspn(p + len, " \n"), p + len);
		return p[len] == '=' ? value + 1 : "1";
	}
	return "";
}

static void load_modules(const char *list)
{
	char *order = read_file(list), *rest = order, *name;

	while ((name = strsep(&rest, "\n"))) {
		char path[300];

		if (!name[0])
			continue;

		snprintf(path, sizeof path, "/m/%s", name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
			printf("guest: module %s does not load: %s\n", name, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	free(order);
}

/* In a process of its own, before the root changes. Returns the end of a pipe that is at its end of file when all are loaded. */
static int load_beside(const char *list)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		fail("no pipe");
	pid_t pid = fork();

	if (pid == 0) {
		load_modules(list);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0)
		load_modules(list);
	close(fds[1]);
	return fds[0];
}

/* From here on / is the host's root with a scratch layer on it. */
static void change_root(void)
{
	static const char *const moved[] = { "proc", "sys", "dev", "run" };
	char from[16], to[32];

	mount_or_fail("root", "/root", "9p", MS_RDONLY, P9_OPTIONS "cache=loose");
	mount_or_fail("tmpfs", "/tmpfs", "tmpfs", 0, "mode=755");
	if (mkdir("/tmpfs/upper", 0755) < 0 || mkdir("/tmpfs/work", 0755) < 0 || mkdir("/tmpfs/new", 0755) < 0)
		fail("cannot make folders in the tmpfs");
	mount_or_fail("overlay", "/tmpfs/new", "overlay", 0, "lowerdir=/root,upperdir=/tmpfs/upper,workdir=/tmpfs/work");
	for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
		snprintf(from, sizeof from, "/%s", moved[i]);
		snprintf(to, sizeof to, "/tmpfs/new/%s", moved[i]);
		mount_or_fail(from, to, NULL, MS_MOVE, NULL);
	}
	if (chdir("/tmpfs/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		fail("cannot change to the new root");
}

/* What needs nothing of the host. */
static void furnish(void)
{
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	mkdir("/run", 0755);
	mount_or_fail("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
	mount_or_fail("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	mount_or_fail("tmpfs", "/run", "tmpfs", 0, "mode=755");
	if (symlink("/proc/self/fd", "/dev/fd") < 0 || symlink("fd/0", "/dev/stdin") < 0 || symlink("fd/1", "/dev/stdout") < 0 ||
	    symlink("fd/2", "/dev/stderr") < 0 || mkdir("/run/qd", 0755) < 0 || mkdir(GUEST_BOOT_SHARE, 0755) < 0 ||
	    mkdir(GUEST_BOOT_KEPT, 0755) < 0 || mkdir("/run/netns", 0755) < 0)
		fail("cannot furnish /dev and /run");
	/* Network namespaces that get a name while the guest is prepared stay when the mounts of that time go. */
	mount_or_fail("tmpfs", "/run/netns", "tmpfs", 0, "mode=755");
	mount_or_fail(NULL, "/run/netns", NULL, MS_SHARED, NULL);

	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		printf("guest: lo does not come up: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void set_environment(void)
{
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("QPDRILL_GUEST", "1", 1);
	setenv("PS1", "guest:\\w\\$ ", 1);
	setenv("QPDRILL_STATE", "/run/qpdrill", 1);
}

/* "\\n" and "\\\\" back to what they stand for. */
static void unescape(char *value)
{
	char *to = value;

	for (const char *p = value; *p; p++) {
		if (*p == '\\' && p[1])
			*to++ = *++p == 'n' ? '\n' : *p;
		else
			*to++ = *p;
	}
	*to = '\0';
}

static void take_line(struct boot *b, const char *key, char *value)
{
	const struct {
		const char *key;
		const char **to;
	} rows[] = {
		{ "share", &b->share },   { "extra", &b->extra }, { "modules", &b->modules }, { "release", &b->release },
		{ "cwd", &b->cwd },       { "tty", &b->tty },     { "out", &b->out },         { "err", &b->err },
		{ "status", &b->status }, { "port", &b->port },
	};

	unescape(value);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(key, rows[i].key) == 0)
			*rows[i].to = value;
	if (strcmp(key, "arg") == 0 && b->argc < MAX_WORDS)
		b->argv[b->argc++] = value;
	else if (strcmp(key, "env") == 0)
		putenv(value);
	else if (strcmp(key, "shell") == 0)
		b->shell = true;
	else if (strcmp(key, "early") == 0)
		b->early = true;
}

static void read_boot_file(struct boot *b, const char *name)
{
	char path[300], *rest, *line;

	mount_or_fail("share", GUEST_BOOT_SHARE, "9p", 0, P9_OPTIONS "cache=none");
	snprintf(path, sizeof path, GUEST_BOOT_SHARE "/%s", name);
	b->text = read_file(path);
	rest = b->text;
	while ((line = strsep(&rest, "\n"))) {
		char *space = strchr(line, ' ');

		if (line[0] == '#' || !space)
			continue;
		*space = '\0';
		take_line(b, line, space + 1);
	}
}

static void mount_shares(const struct boot *b)
{
	char path[300];

	if (b->share)
		mount_or_fail(GUEST_BOOT_SHARE, b->share, NULL, MS_BIND, NULL);
	if (b->extra)
		mount_or_fail("extra", b->extra, "9p", 0, P9_OPTIONS "cache=none");
	if (!b->modules || !b->release)
		return;
	snprintf(path, sizeof path, "/lib/modules/%s", b->release);
	mkdir("/lib/modules", 0755);
	if (symlink(b->modules, path) < 0 && errno != EEXIST)
		printf("guest: %s: %s\n", path, strerror(errno));
}

/* QD_PORT_<name>=/dev/vportXpY for each virtio-serial port. */
static void name_ports(void)
{
	DIR *d = opendir("/sys/class/virtio-ports");

	for (const struct dirent *entry; d && (entry = readdir(d));) {
		char path[300], key[300], dev[300];

		snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
		if (entry->d_name[0] == '.' || access(path, R_OK) < 0)
			continue;
		char *name = read_file(path);

		name[strcspn(name, "\n")] = '\0';
		snprintf(key, sizeof key, "QD_PORT_%s", name);
		snprintf(dev, sizeof dev, "/dev/%s", entry->d_name);
		setenv(key, dev, 1);
		free(name);
	}
	if (d)
		closedir(d);
}

static void redirect(int fd, const char *path, int flags)
{
	int opened = path ? open(path, flags) : -1;

	if (opened >= 0 && opened != fd) {
		dup2(opened, fd);
		close(opened);
	} else if (path && opened < 0) {
		printf("guest: %s: %s\n", path, strerror(errno));
	}
}

static const char *port(const char *name)
{
	char key[300];

	snprintf(key, sizeof key, "QD_PORT_%s", name ? name : "");
	return name ? getenv(key) : NULL;
}

static pid_t run_on(const char *tty, const struct boot *b, char *const argv[])
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	setsid();
	if (tty) {
		redirect(0, tty, O_RDWR);
		ioctl(0, TIOCSCTTY, 1);
		dup2(0, 1);
		dup2(0, 2);
	} else {
		redirect(0, "/dev/null", O_RDONLY);
		redirect(2, port(b->err), O_WRONLY);
		redirect(1, port(b->out), O_WRONLY);
	}
	if (b->cwd && chdir(b->cwd) < 0)
		fprintf(stderr, "guest: %s: %s\n", b->cwd, strerror(errno));
	execvp(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static void await_modules(int fd, bool early)
{
	char text[16];

	if (fd < 0)
		return;
	if (early) {
		snprintf(text, sizeof text, "%d", fd);
		setenv("QD_MODULES_FD", text, 1);
		fcntl(fd, F_SETFD, 0);
		return;
	}
	while (read(fd, text, sizeof text) > 0)
		;
	close(fd);
}

/* Reaps everything until the one process has ended; the shell beside it is started again each time it ends. */
static int wait_for(pid_t wanted, const struct boot *b)
{
	/* Without the user's own start-up files: they may take long here, and mean another machine. */
	char *const shell_argv[] = { (char[]){ "/bin/bash" }, (char[]){ "--norc" }, (char[]){ "-i" }, NULL };
	pid_t shell = b->shell ? run_on("/dev/ttyS1", b, shell_argv) : -1;
	int status;

	for (;;) {
		pid_t pid = waitpid(-1, &status, 0);

		if (pid == wanted)
			return status;
		if (pid == shell && shell > 0)
			shell = run_on("/dev/ttyS1", b, shell_argv);
		if (pid < 0 && errno != EINTR)
			return 0;
	}
}

/* ---- to be saved ---- */

/* The port of that name, once its driver has heard of it. */
static int await_port(const char *name)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	struct pollfd events = { .fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT),
				 .events = POLLIN };
	char drop[4096];
	int fd = -1;

	if (events.fd < 0 || bind(events.fd, (struct sockaddr *)&addr, sizeof addr) < 0)
		fail("no news of devices");
	for (name_ports(); !port(name); name_ports()) {
		if (poll(&events, 1, PORT_TIMEOUT_MS) == 0) {
			errno = ETIMEDOUT;
			fail("port %s", name);
		}
		while (recv(events.fd, drop, sizeof drop, 0) > 0)
			;
	}
	close(events.fd);
	fd = open(port(name), O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail("port %s", name);
	return fd;
}

/* Runs the boot file's command with the host's files mounted; when it returns they no longer are. */
static int prepare(const char *name)
{
	static struct boot b;
	int status = 0, ended;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid > 0)
		return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	/* Everything started in there ends before the namespace does: processes whose parents have gone come here. */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (unshare(CLONE_NEWNS) < 0)
		fail("no mount namespace");
	change_root();
	set_environment();
	read_boot_file(&b, name);
	mount_shares(&b);
	name_ports();
	pid = b.argc ? run_on(NULL, &b, b.argv) : 0;
	for (pid_t one; (one = waitpid(-1, &ended, 0)) > 0 || errno == EINTR;)
		if (one == pid)
			status = ended;
	fflush(stdout);
	_exit(pid < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void renew_random(const char *hex)
{
	struct {
		int entropy_count, buf_size;
		unsigned char buf[GUEST_BOOT_SEED_BYTES];
	} seed = { .entropy_count = 8 * GUEST_BOOT_SEED_BYTES, .buf_size = GUEST_BOOT_SEED_BYTES };
	int fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	unsigned byte;

	_Static_assert(offsetof(struct rand_pool_info, buf) == 2 * sizeof(int), "as the kernel has it");
	for (size_t i = 0; i < sizeof seed.buf; i++) {
		/* NOLINTNEXTLINE(cert-err34-c): two digits fit */
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			fail("the seed is short");
		seed.buf[i] = (unsigned char)byte;
	}
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &seed) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
		fail("the random generator takes no seed");
	close(fd);
}

/* Two guests restored from one file are two boots: what they record must not be taken for one clock's. */
static void renew_boot_id(void)
{
	char *uuid = read_file("/proc/sys/kernel/random/uuid");
	int fd = open("/run/qd/boot_id", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);

	if (fd < 0 || write(fd, uuid, strlen(uuid)) != (ssize_t)strlen(uuid))
		fail("cannot write a boot id");
	close(fd);
	free(uuid);
	mount_or_fail("/run/qd/boot_id", BOOT_ID, NULL, MS_BIND, NULL);
}

/* A process that is there when the others hang. Its files are open before they move to another root. */
static void serve_control(int control)
{
	/* All tasks, those that are blocked, and what runs on each processor, in the order of a reader who begins at the end. */
	static const char questions[] = "twl";
	int level = open("/proc/sys/kernel/printk", O_WRONLY | O_CLOEXEC), ask = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
	char line[64];

	if (fork() == 0) {
		while (read(control, line, sizeof line) > 0) {
			bool ok = write(level, "8", 1) == 1;

			for (size_t i = 0; questions[i]; i++)
				ok = write(ask, questions + i, 1) == 1 && ok;
			dprintf(control, ok ? "looked\n" : "not looked\n");
		}
		_exit(0);
	}
	close(level);
	close(ask);
	close(control);
}

/* Prepares, waits - across the save - for the host's word, and returns the name of the boot file to go on with. */
static const char *be_saved(const char *name)
{
	static char line[512], next[256];
	char hex[2 * GUEST_BOOT_SEED_BYTES + 1] = "";
	struct timespec now = { 0 };
	int control = await_port("control");
	size_t len = 0;
	ssize_t n;

	dprintf(control, "prepared %d\n", prepare(name));
	while (!memchr(line, '\n', len) && (n = read(control, line + len, sizeof line - 1 - len)) > 0)
		len += (size_t)n;
	/* NOLINTNEXTLINE(cert-err34-c): the host's own time */
	if (sscanf(line, "run %255s %ld %ld %128s", next, &now.tv_sec, &now.tv_nsec, hex) != 4) {
		errno = EPROTO;
		fail("control: %s", line);
	}
	renew_random(hex);
	if (clock_settime(CLOCK_REALTIME, &now) < 0)
		fail("the clock cannot be set");
	renew_boot_id();
	puts("guest: restored");
	dprintf(control, "running\n");
	serve_control(control);
	return next;
}

int main(void)
{
	static struct boot b;
	const char *name;

	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	redirect(0, "/dev/console", O_RDWR);
	dup2(0, 1);
	dup2(0, 2);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (kernel_word("qd.probe")[0]) { /* only asked whether a kernel comes this far */
		puts(GUEST_BOOT_PROBE_MARK);
		power_off();
	}
	mount("sys", "/sys", "sysfs", 0, NULL);
	load_modules("/m/first");
	int loader = load_beside("/m/second");

	furnish();
	name = kernel_word("qd.save");
	if (name[0]) {
		await_modules(loader, false);
		loader = -1;
		name = be_saved(name);
	} else {
		name = kernel_word("qd.boot");
	}
	change_root();
	set_environment();
	read_boot_file(&b, name);
	mount_shares(&b);
	name_ports();
	if (b.port)
		b.argv[b.argc++] = (char *)(port(b.port) ?: "/dev/null");
	if (b.argc == 0) {
		puts("guest: the boot file names nothing to run");
		power_off();
	}
	await_modules(loader, b.early);
	int status = wait_for(run_on(b.tty, &b, b.argv), &b);
	int fd = port(b.status) ? open(port(b.status), O_WRONLY | O_CLOEXEC) : -1;

	if (fd >= 0)
		dprintf(fd, "%d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	power_off();
}
