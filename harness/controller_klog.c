/* SPDX-License-Identifier: MIT */
/* The kernel's log while a case runs: markers in it, and every warning of it on record. */
#include "controller_case.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "json.h"
#include "kernel_words.h"
#include "lab_name.h"
#include "log.h"
#include "units.h"

#define KLOG_LINE_MAX 8192
#define KLOG_WARNING 4

/* Findings that some kernels print below warning level. */
static const char *const telltales[] = {
	"WARNING:", "BUG:", "Oops", "hung", "blocked for more than", "refcount", "unregister_netdevice", "rcu_"
};

/* Warnings about how slow this machine is: they come on any busy or emulated one, whatever the case did. */
static const char *const slowness[] = { "hrtimer: interrupt took", "perf: interrupt took too long",
					"clocksource: timekeeping watchdog" };

static bool matters(int level, const char *text)
{
	for (size_t i = 0; i < sizeof slowness / sizeof slowness[0]; i++)
		if (strstr(text, slowness[i]))
			return false;
	if (level <= KLOG_WARNING)
		return true;
	for (size_t i = 0; i < sizeof telltales / sizeof telltales[0]; i++)
		if (strstr(text, telltales[i]))
			return true;
	return false;
}

/* Another lane's controller writes down what names its devices. True when the line is of this case, or of nobody in particular. */
static bool is_of_this_lane(struct case_run *r, const char *text)
{
	struct controller *c = r->c;
	const char *suffix = strchr(c->lane.device[0].rdma, '-');
	int lane = suffix ? lab_name_find(text, suffix) : -1;

	if (lane >= 0 && lane != c->lane.lane)
		return false;
	if (!kernel_complains(text))
		return true;
	if (!c->complaints.own && !c->complaints.other)
		log_escape(text, c->complaints.first, sizeof c->complaints.first);
	c->complaints.own += lane >= 0;
	c->complaints.other += lane < 0;
	return true;
}

/* "6,1234,5678901,-;text\n KEY=value\n". */
static void take_line(struct case_run *r, char *line)
{
	char *text = strchr(line, ';'), shown[KLOG_LINE_MAX];
	unsigned long prio, usec = 0;
	char *end;

	if (!text)
		return;
	*text++ = 0;
	text[strcspn(text, "\n")] = 0;
	prio = strtoul(line, &end, 10);
	end = strchr(end, ',') ? strchr(strchr(end, ',') + 1, ',') : NULL;
	if (end)
		usec = strtoul(end + 1, NULL, 10);
	if (strncmp(text, "qpdrill: ", 9) == 0 || !matters((int)(prio & 7), text) || !is_of_this_lane(r, text))
		return;
	log_escape(text, shown, sizeof shown);
	case_note(r, "kernel", NULL,
		  json_pack("{s:s,s:i,s:s,s:I}", "kind", "klog", "level", (int)(prio & 7), "text", shown, "kernel_t",
			    (json_int_t)usec * 1000));
}

static int on_kmsg(sd_event_source *source, int fd, uint32_t events, void *user)
{
	struct controller *c = user;
	char line[KLOG_LINE_MAX];

	(void)source;
	(void)events;
	for (;;) {
		ssize_t n = read(fd, line, sizeof line - 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE) {
			if (c->run)
				case_note(c->run, "controller", NULL,
					  json_pack("{s:s,s:s,s:i}", "kind", "lost", "what",
						    "kernel log lines, overwritten before they were read", "count", 1));
			continue;
		}
		if (n <= 0)
			return 0;
		line[n] = 0;
		if (c->run)
			take_line(c->run, line);
	}
}

static void marker(struct case_run *r, const char *what)
{
	char text[512];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC), n;

	if (fd < 0)
		return;
	n = snprintf(text, sizeof text, "<6>qpdrill: case %.300s lane %d %s\n", r->id, r->c->lane.lane, what);
	if (n > 0 && write(fd, text, (size_t)n) < 0)
		log_debug("kernel log: no marker: %s", strerror(errno));
	close(fd);
}

void klog_begin(struct case_run *r)
{
	struct controller *c = r->c;
	int rc = 0;

	c->complaints = (struct controller_complaints){ 0 };
	if (c->kmsg_fd < 0) {
		c->kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		rc = c->kmsg_fd < 0 ? -errno : 0;
	}
	if (!rc && lseek(c->kmsg_fd, 0, SEEK_END) < 0)
		rc = -errno;
	if (!rc && !c->kmsg_source)
		rc = sd_event_add_io(c->loop, &c->kmsg_source, c->kmsg_fd, EPOLLIN, on_kmsg, c);
	if (rc < 0) {
		case_lost(r, 1, "the kernel log cannot be read here (/dev/kmsg: %s): its warnings are no findings of this case",
			  strerror(-rc));
		return;
	}
	marker(r, "begin");
}

void klog_end(struct case_run *r)
{
	marker(r, "end");
	/* What was printed so far is there at once: one look, no wait. */
	if (r->c->kmsg_source)
		on_kmsg(NULL, r->c->kmsg_fd, EPOLLIN, r->c);
	r->c->kmsg_source = sd_event_source_disable_unref(r->c->kmsg_source);
	case_drain(r);
}
