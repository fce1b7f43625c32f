/* SPDX-License-Identifier: MIT */
#include "guest_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#define NAME "guest.sock"
#define ESCAPE 0x1d /* Ctrl-] */

/* A socket's name holds 107 characters, a folder's may be longer: it is named by a descriptor of its folder. */
static int address(const char *run_dir, struct sockaddr_un *ret, struct error *e)
{
	int dir = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return error_set(e, -errno, "%s: %s", run_dir, strerror(errno));
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/" NAME, dir);
	return dir;
}

int guest_shell_listen(const char *run_dir, int *ret_fd, struct error *e)
{
	struct sockaddr_un addr;
	int dir = address(run_dir, &addr, e);

	if (dir < 0)
		return dir;
	unlinkat(dir, NAME, 0);
	/* Not close-on-exec: QEMU takes it over. */
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), rc = 0;

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 || listen(fd, 1) < 0)
		rc = error_set(e, -errno, "%s/" NAME ": %s", run_dir, strerror(errno));
	close(dir);
	if (rc < 0 && fd >= 0)
		close(fd);
	if (rc == 0)
		*ret_fd = fd;
	return rc;
}

void guest_shell_unlisten(const char *run_dir, int fd)
{
	int dir = open(run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	close(fd);
	if (dir < 0)
		return;
	unlinkat(dir, NAME, 0);
	close(dir);
}

static int relay(int sock)
{
	struct pollfd p[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = sock, .events = POLLIN } };
	char buf[4096];

	for (;;) {
		if (poll(p, 2, -1) < 0)
			return errno == EINTR ? 0 : -errno;
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			ssize_t n = read(p[i].fd, buf, sizeof buf);

			if (n <= 0 || (i == 0 && memchr(buf, ESCAPE, (size_t)n)))
				return 0;
			if (write(i ? STDOUT_FILENO : sock, buf, (size_t)n) < 0)
				return 0;
		}
	}
}

int guest_shell_attach(const char *run_dir, struct error *e)
{
	struct sockaddr_un addr;
	struct termios old, raw;
	struct winsize w = { 0 };
	char size[64];
	int dir = address(run_dir, &addr, e), rc = 0;

	if (dir < 0)
		return dir;
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (struct sockaddr *)&addr, sizeof addr) < 0)
		rc = error_set(e, -errno, "%s/" NAME ": %s. Is the run that was started with --keep still up?", run_dir,
			       strerror(errno));
	close(dir);
	if (rc < 0)
		goto close_sock;
	if (tcgetattr(STDIN_FILENO, &old) < 0) {
		rc = error_set(e, -ENOTTY, "guest shell wants a terminal; `guest run CMD` does without");
		goto close_sock;
	}
	fprintf(stderr, "In the guest. Ctrl-] leaves it.\r\n");
	raw = old;
	cfmakeraw(&raw);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	int n = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col
			? snprintf(size, sizeof size, " stty rows %u cols %u\r", w.ws_row, w.ws_col)
			: snprintf(size, sizeof size, "\r");

	if (write(sock, size, (size_t)n) == n)
		rc = relay(sock);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	fprintf(stderr, "\n");
close_sock:
	if (sock >= 0)
		close(sock);
	return rc;
}
