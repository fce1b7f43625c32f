/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "../harness/json.h"
#include "../harness/loop.h"
#include "../harness/units.h"
#include "object.h"

struct counters_file {
	char *name;
	int fd;
};

struct counters_port {
	char rdma[64];
	int port;
	struct counters_file *files; /* of those that show a number */
	size_t n;
	struct counters_port *next;
};

/* 0; -EINVAL when it is no number: some devices answer "N/A (no PMA)"; or why it cannot be read. */
static int read_open(int fd, uint64_t *ret)
{
	char text[64], *end;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -EINVAL;
	text[n] = '\0';
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return end != text && errno == 0 && (*end == '\n' || *end == '\0') ? 0 : -EINVAL;
}

static bool read_number(const char *path, uint64_t *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return false;
	rc = read_open(fd, ret);
	close(fd);
	return rc == 0;
}

static void port_free(struct counters_port *p)
{
	for (size_t i = 0; i < p->n; i++) {
		close(p->files[i].fd);
		free(p->files[i].name);
	}
	free(p->files);
	free(p);
}

void counters_forget(struct agent *a)
{
	while (a->counters_ports) {
		struct counters_port *p = a->counters_ports;

		a->counters_ports = p->next;
		port_free(p);
	}
}

static void take_file(struct counters_port *p, int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	struct counters_file *grown;
	uint64_t value;

	if (fd < 0)
		return;
	if (read_open(fd, &value)) {
		close(fd);
		return;
	}
	grown = reallocarray(p->files, p->n + 1, sizeof(*grown));
	if (!grown)
		abort();
	p->files = grown;
	p->files[p->n++] = (struct counters_file){ .name = strdup(name), .fd = fd };
}

static void take_dir(struct counters_port *p, const char *which)
{
	char path[256];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/%s", p->rdma, p->port, which);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, "lifespan") != 0)
			take_file(p, dirfd(dir), entry->d_name);
	closedir(dir);
}

static struct counters_port *port_open(struct agent *a, const struct dev *dev)
{
	struct counters_port *p;

	p = a->counters_ports;
	while (p && (p->port != dev->port || strcmp(p->rdma, dev->rdma) != 0))
		p = p->next;
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	snprintf(p->rdma, sizeof(p->rdma), "%s", dev->rdma);
	p->port = dev->port;
	take_dir(p, "counters");
	take_dir(p, "hw_counters");
	LL_PREPEND(a->counters_ports, p);
	return p;
}

/* False: the device is another one now, or gone. */
static bool read_files(const struct counters_port *p, json_t *values)
{
	for (size_t i = 0; i < p->n; i++) {
		uint64_t value = 0;
		int rc = read_open(p->files[i].fd, &value);

		if (rc == -ENODEV)
			return false;
		if (rc == 0)
			json_object_set_new(values, p->files[i].name, json_integer((json_int_t)value));
	}
	return p->n > 0;
}

json_t *counters_read(struct agent *a, struct dev *dev)
{
	json_t *values = json_object();
	struct ibv_port_attr port;

	dev->counted_ns = now_ns();
	if (!read_files(port_open(a, dev), values)) {
		counters_forget(a);
		json_object_clear(values);
		read_files(port_open(a, dev), values);
	}
	if (ibv_query_port(dev->ctx, (uint8_t)dev->port, &port) == 0) {
		json_object_set_new(values, "bad_pkey_cntr", json_integer((json_int_t)port.bad_pkey_cntr));
		json_object_set_new(values, "qkey_viol_cntr", json_integer((json_int_t)port.qkey_viol_cntr));
	}
	return values;
}

/* How long the kernel may go on showing an old picture. A software device is this lab's own, and is told not to keep one. */
static uint64_t lifespan_ns(const struct dev *dev)
{
	char path[256], target[512];
	struct timespec tick = { 0 };
	uint64_t ms = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/hw_counters/lifespan", dev->rdma, dev->port);
	if (!read_number(path, &ms))
		return 0;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	if (ms) {
		char link[128];

		snprintf(link, sizeof(link), "/sys/class/infiniband/%s", dev->rdma);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		fd = strstr(target, "/virtual/") ? open(path, O_WRONLY | O_CLOEXEC) : -1;
		if (fd >= 0) {
			if (write(fd, "0", 1) == 1)
				ms = 0;
			close(fd);
		}
	}
	/* Ages are counted in ticks: one more is needed to be past it. */
	return ms * NSEC_PER_MSEC + (uint64_t)tick.tv_nsec + NSEC_PER_USEC;
}

/* When a picture taken now is a new one; 0: already. Only who knows of all other readers can spare the wait. */
static uint64_t fresh_ns(const struct dev *dev, const json_t *body)
{
	uint64_t span_ns = lifespan_ns(dev), last = json_u64(body, "read_ns", UINT64_MAX), now = now_ns();

	if (!span_ns)
		return 0;
	if (last > now)
		return now + span_ns;
	if (dev->counted_ns > last)
		last = dev->counted_ns;
	return last + span_ns > now ? last + span_ns : 0;
}

struct counters_wait {
	struct agent *agent;
	struct request *req;
	struct dev *dev;
	sd_event_source *timer;
	struct counters_wait *next;
};

static void end(struct counters_wait *w)
{
	struct agent *a = w->agent;
	struct request *req = w->req;
	struct dev *dev = w->dev;

	LL_DELETE(a->counters_waits, w);
	sd_event_source_disable_unref(w->timer);
	free(w);
	if (dev->o.alive && !dev->o.busy)
		request_reply(req, json_pack("{s:o}", "values", counters_read(a, dev)));
	else
		request_fail(req, -ENODEV, "counters: %s was closed meanwhile", dev->rdma);
}

void counters_end_all(struct agent *a)
{
	while (a->counters_waits)
		end(a->counters_waits);
}

static int on_fresh(sd_event_source *source, uint64_t usec, void *user)
{
	(void)source;
	(void)usec;
	end(user);
	return 0;
}

void op_counters(struct agent *a, struct request *r)
{
	struct object *o = object_need(a, r, OBJECT_DEV, "dev");
	struct counters_wait *w;
	uint64_t at_ns;

	if (!o)
		return;
	at_ns = fresh_ns((struct dev *)o, r->body);
	if (!at_ns) {
		request_reply(r, json_pack("{s:o}", "values", counters_read(a, (struct dev *)o)));
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	*w = (struct counters_wait){ .agent = a, .req = r, .dev = (struct dev *)o };
	if (loop_timer(a->loop, at_ns, on_fresh, w, &w->timer) < 0)
		abort(); /* no memory */
	LL_PREPEND(a->counters_waits, w);
}
