/* SPDX-License-Identifier: MIT */
/*
 * /init of the guest, a static program, alone in its initramfs: loads the modules, mounts the host's root read-only with a tmpfs
 * over it, and runs what the boot file says (guest_boot.h). When that ends, the guest powers off. One process and no shell:
 * starting programs is the dear thing in an emulated machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest_boot.h"

#define P9_OPTIONS "trans=virtio,version=9p2000.L,msize=262144,"
#define MAX_WORDS 256

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
	static const char *const moved[] = { "proc", "sys", "dev" };
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

static void furnish(void)
{
	mkdir("/dev/pts", 0755);
	mkdir("/dev/shm", 01777);
	mount_or_fail("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
	mount_or_fail("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
	mount_or_fail("tmpfs", "/run", "tmpfs", 0, "mode=755");
	if (symlink("/proc/self/fd", "/dev/fd") < 0 || symlink("fd/0", "/dev/stdin") < 0 || symlink("fd/1", "/dev/stdout") < 0 ||
	    symlink("fd/2", "/dev/stderr") < 0 || mkdir("/run/qd", 0755) < 0 || mkdir(GUEST_BOOT_SHARE, 0755) < 0)
		fail("cannot furnish /dev and /run");

	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
		printf("guest: lo does not come up: %s\n", strerror(errno));
	if (fd >= 0)
		close(fd);
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

static void read_boot_file(struct boot *b)
{
	char path[300], *rest, *line;

	mount_or_fail("share", GUEST_BOOT_SHARE, "9p", 0, P9_OPTIONS "cache=none");
	snprintf(path, sizeof path, GUEST_BOOT_SHARE "/%s", kernel_word("qd.boot"));
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

int main(void)
{
	static struct boot b;

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

	change_root();
	furnish();
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("QPDRILL_GUEST", "1", 1);
	setenv("PS1", "guest:\\w\\$ ", 1);
	setenv("QPDRILL_STATE", "/run/qpdrill", 1);
	read_boot_file(&b);
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
