/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <termios.h>
#include <unistd.h>

#include "json.h"
#include "log.h"
#include "pause.h"
#include "units.h"

/* A line, whatever it says, is the word. Without more input to come only the time is left. */
static void take(struct run_pause *p)
{
	char buf[256];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0 && !memchr(buf, '\n', (size_t)n))
		return;
	p->input = sd_event_source_disable_unref(p->input);
	if (n > 0)
		*p->go_on = true;
	else
		log_info("nothing more comes from standard input: it goes on by itself, %s after it stopped", p->until);
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *user)
{
	(void)source;
	(void)fd;
	(void)events;
	take(user);
	return 0;
}

static void listen_to_input(struct run_pause *p)
{
	int rc;

	/* What was typed before there was something to look at was for something else. */
	if (isatty(STDIN_FILENO))
		tcflush(STDIN_FILENO, TCIFLUSH);
	rc = sd_event_add_io(p->loop, &p->input, STDIN_FILENO, EPOLLIN, on_input, p);
	/* A file, or /dev/null: what it has to say is there at once. */
	if (rc == -EPERM)
		take(p);
	else if (rc < 0)
		log_info("standard input cannot be waited for (%s): it goes on by itself after %s", strerror(-rc), p->until);
}

static bool has_an_end(const json_t *ends, const char *agent)
{
	const json_t *end;
	size_t i;

	json_array_foreach((json_t *)ends, i, end)
		if (agent && json_has(end, "agent", agent))
			return true;
	return false;
}

/* Of each agent its queue pairs, or what there is of it without one. */
static void put_agent(const json_t *a, const json_t *ends)
{
	const char *name = json_str(a, "agent");
	char what[160];
	const json_t *end;
	size_t i;

	snprintf(what, sizeof(what), "agent %s: pid %d, device %s on %s", name, (int)json_int(a, "pid", 0), json_str(a, "device"),
		 json_str(a, "netdev"));
	json_array_foreach((json_t *)ends, i, end)
		if (json_has(end, "agent", name))
			log_info("  %-8s QPN 0x%06x, %-5s  %s", json_str(end, "qp"), (unsigned)json_int(end, "qpn", 0),
				 json_str(end, "state"), what);
	if (!has_an_end(ends, name))
		log_info("  no queue pair             %s", what);
}

static void put_where(const json_t *plan, const json_t *where, const char *look)
{
	const json_t *a;
	const char *file = json_str(plan, "file");
	size_t i;

	log_info("%s: stopped before step %d (%s), %s:%d, lane %d", json_str(where, "case"), (int)json_int(where, "step", 0),
		 json_str(where, "what"), file ? file : "?", (int)json_int(where, "line", 0), (int)json_int(where, "lane", 0));
	json_array_foreach(json_object_get(where, "agents"), i, a)
		put_agent(a, json_object_get(where, "ends"));
	if (json_int(where, "wire_pid", 0))
		log_info("  wire: pid %d", (int)json_int(where, "wire_pid", 0));
	if (look)
		log_info("  a shell there: %s", look);
	else
		log_info("  all of it is in this kernel: rdma resource show qp, ip link, gdb -p PID");
	log_info("  the protocol's timers run on: what fails after this is inconclusive");
}

void run_pause_told(struct run_pause *p, const json_t *plan, const json_t *where, const char *look)
{
	char text[32];

	if (json_has(where, "state", "resumed")) {
		run_pause_end(p);
		log_info("%s: goes on after %s%s", json_str(where, "case"),
			 units_format_ns(json_u64(where, "paused_ns", 0), text, sizeof(text)),
			 json_bool(where, "asked", false) ? "" : ", by itself: that is as long as --pause-max lets it stand");
		return;
	}
	units_format_ns(pause_max_ns(plan), p->until, sizeof(p->until));
	put_where(plan, where, look);
	log_info("Enter lets it go on; by itself it does after %s", p->until);
	listen_to_input(p);
}

void run_pause_end(struct run_pause *p)
{
	p->input = sd_event_source_disable_unref(p->input);
}
