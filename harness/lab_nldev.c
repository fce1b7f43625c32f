/* SPDX-License-Identifier: MIT */
#include "lab_nldev.h"

#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_BYTES_MAX 65536
#define ANSWER_SECONDS 10

struct walk {
	lab_nldev_fn *told;
	void *user;
	const char *rdma, *type;
};

static void each(const void *data, size_t len, void (*visit)(struct walk *w, unsigned type, const void *data, size_t len),
		 struct walk *w)
{
	const char *at = data;

	while (len >= NLA_HDRLEN) {
		struct nlattr a;
		size_t step;

		memcpy(&a, at, sizeof a);
		if (a.nla_len < NLA_HDRLEN || a.nla_len > len)
			return;
		visit(w, a.nla_type & NLA_TYPE_MASK, at + NLA_HDRLEN, (size_t)a.nla_len - NLA_HDRLEN);
		step = NLA_ALIGN(a.nla_len);
		if (step >= len)
			return;
		at += step;
		len -= step;
	}
}

static const char *text_of(const void *data, size_t len)
{
	return len && memchr(data, 0, len) ? data : NULL;
}

static void visit_entry(struct walk *w, unsigned type, const void *data, size_t len)
{
	uint64_t count;

	if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME)
		w->type = text_of(data, len);
	if (type != RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR || len < sizeof count || !w->type || !w->rdma)
		return;
	memcpy(&count, data, sizeof count);
	w->told(w->user, w->rdma, w->type, count);
}

static void visit_summary(struct walk *w, unsigned type, const void *data, size_t len)
{
	w->type = NULL;
	if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY)
		each(data, len, visit_entry, w);
}

static void visit_device(struct walk *w, unsigned type, const void *data, size_t len)
{
	if (type == RDMA_NLDEV_ATTR_DEV_NAME)
		w->rdma = text_of(data, len);
	if (type == RDMA_NLDEV_ATTR_RES_SUMMARY)
		each(data, len, visit_summary, w);
}

/* True when it was the last message of the answer. */
static bool take(const char *buf, size_t len, struct walk *w, int *ret_rc)
{
	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr h;

		memcpy(&h, buf, sizeof h);
		if (h.nlmsg_len < sizeof h || h.nlmsg_len > len)
			break;
		if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= sizeof h + sizeof(int))
			memcpy(ret_rc, buf + sizeof h, sizeof(int));
		if (h.nlmsg_type == NLMSG_DONE || h.nlmsg_type == NLMSG_ERROR)
			return true;
		w->rdma = NULL;
		each(buf + NLMSG_HDRLEN, h.nlmsg_len - NLMSG_HDRLEN, visit_device, w);
		size_t step = NLMSG_ALIGN(h.nlmsg_len);

		if (step >= len)
			break;
		buf += step;
		len -= step;
	}
	return false;
}

int lab_nldev_counts(lab_nldev_fn *told, void *user, struct error *e)
{
	const struct nlmsghdr ask = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.nlmsg_seq = 1,
	};
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct walk w = { .told = told, .user = user };
	static char buf[ANSWER_BYTES_MAX];
	bool last = false;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA), rc = 0;

	if (fd < 0)
		return error_set(e, -errno, "RDMA netlink: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 || send(fd, &ask, sizeof ask, 0) < 0)
		rc = -errno;
	while (rc == 0 && !last) {
		ssize_t n = recv(fd, buf, sizeof buf, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			rc = n < 0 ? -errno : -EIO;
		else
			last = take(buf, (size_t)n, &w, &rc);
	}
	close(fd);
	return rc < 0 ? error_set(e, rc, "RDMA netlink: the devices' objects: %s", strerror(-rc)) : 0;
}
