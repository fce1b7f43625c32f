/* SPDX-License-Identifier: MIT */
#include "guest_qmp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "json.h"
#include "units.h"

#define AGAIN_MS 2

static int send_all(int fd, const char *text, size_t len, int pass_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = (char *)text, .iov_len = len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (pass_fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof control.bytes;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &pass_fd, sizeof pass_fd);
	}
	/* Commands are far shorter than a socket's buffer. */
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -EPIPE;
}

/* The next line, in *ret (new reference). */
static int next_line(struct guest_qmp *q, uint64_t end_ns, json_t **ret, struct error *e)
{
	for (;;) {
		char *nl = q->len ? memchr(q->buf, '\n', q->len) : NULL;

		if (nl) {
			json_t *value = json_loadb(q->buf, (size_t)(nl - q->buf), 0, NULL);

			q->len -= (size_t)(nl + 1 - q->buf);
			memmove(q->buf, nl + 1, q->len);
			if (!value)
				return error_set(e, -EPROTO, "QEMU's control socket: not JSON");
			*ret = value;
			return 0;
		}
		struct pollfd p = { .fd = q->fd, .events = POLLIN };
		uint64_t now = now_ns();
		char *grown = realloc(q->buf, q->len + 4096);

		if (!grown)
			return error_set(e, -ENOMEM, "out of memory");
		q->buf = grown;
		if (now >= end_ns)
			return error_set(e, -ETIMEDOUT, "QEMU does not answer");
		if (poll(&p, 1, (int)((end_ns - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		ssize_t n = read(q->fd, q->buf + q->len, 4096);

		if (n <= 0)
			return error_set(e, -EPIPE, "QEMU has ended");
		q->len += (size_t)n;
	}
}

static int exchange(struct guest_qmp *q, const char *command, json_t *args, int pass_fd, uint64_t end_ns, json_t **ret,
		    struct error *e)
{
	json_t *request = args ? json_pack("{s:s,s:O}", "execute", command, "arguments", args)
			       : json_pack("{s:s}", "execute", command),
	       *line = NULL;
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	int rc = text ? send_all(q->fd, text, strlen(text), pass_fd) : -ENOMEM;

	free(text);
	json_decref(request);
	if (rc < 0)
		return error_set(e, rc, "QEMU takes no command (%s): %s", command, strerror(-rc));
	for (;;) {
		rc = next_line(q, end_ns, &line, e);
		if (rc < 0)
			return error_prefix(e, rc, "%s", command);
		const json_t *refused = json_object_get(line, "error");
		json_t *answer = json_object_get(line, "return");

		if (refused)
			rc = error_set(e, -EREMOTEIO, "%s: %s", command, json_str(refused, "desc") ?: "refused");
		else if (answer && ret)
			*ret = json_incref(answer);
		json_decref(line);
		if (refused || answer) /* and not an event or the greeting */
			return rc;
	}
}

int guest_qmp_run(struct guest_qmp *q, const char *command, json_t *args, int pass_fd, uint64_t end_ns, json_t **ret,
		  struct error *e)
{
	int rc = q->greeted ? 0 : exchange(q, "qmp_capabilities", NULL, -1, end_ns, NULL, e);

	q->greeted = q->greeted || rc == 0;
	if (rc == 0)
		rc = exchange(q, command, args, pass_fd, end_ns, ret, e);
	json_decref(args);
	return rc;
}

int guest_qmp_await(struct guest_qmp *q, const char *command, const char *status, uint64_t end_ns, struct error *e)
{
	for (;;) {
		json_t *answer = NULL;
		int rc = guest_qmp_run(q, command, NULL, -1, end_ns, &answer, e);
		bool there = json_has(answer, "status", status), failed = json_has(answer, "status", "failed");

		if (rc == 0 && failed)
			error_set(e, -EIO, "%s: failed: %s", command, json_str(answer, "error-desc") ?: "no reason given");
		json_decref(answer);
		if (rc < 0 || failed || there)
			return rc < 0 ? rc : failed ? -EIO : 0;
		/* QEMU announces it by an event only when asked to in a way that differs between versions: ask again shortly. */
		struct pollfd p = { .fd = q->fd, .events = POLLIN };

		poll(&p, 1, AGAIN_MS);
	}
}

void guest_qmp_close(struct guest_qmp *q)
{
	if (q->fd >= 0)
		close(q->fd);
	free(q->buf);
	*q = (struct guest_qmp){ .fd = -1 };
}
