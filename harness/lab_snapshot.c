/* SPDX-License-Identifier: MIT */
#include "lab_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file_line.h"
#include "json.h"
#include "lab_name.h"
#include "lab_netns.h"
#include "lab_news.h"
#include "lab_nldev.h"

#define DEVICES_MAX 16

/* What is told of one network namespace, where a number is that of another device than in the next one. */
struct heard {
	int news;
	unsigned ifindex[DEVICES_MAX], n;
};

struct lab_snapshot_memory {
	struct heard in[LAB_SNAPSHOT_SPACES_MAX];
	unsigned spaces;
	json_t *kept; /* "link" "qdisc" "rule"; NULL: nothing that could be relied on */
};

struct snapshot {
	struct lab_snapshot_memory *memory;
	const struct lab_snapshot_of *of;
	json_t *out;
	bool ask[5]; /* of each type: there are more objects than the kernel's own */
};

static bool is_ours(const struct snapshot *s, const char *name)
{
	return name && lab_name_lane(name, s->of->suffix) == s->of->lane;
}

static void copy_keys(json_t *to, const json_t *from, const char *const keys[])
{
	for (size_t i = 0; keys[i]; i++)
		if (json_object_get(from, keys[i]))
			json_object_set(to, keys[i], json_object_get(from, keys[i]));
}

static json_t *addresses(const json_t *link)
{
	json_t *list = json_array(), *addr;
	size_t i;

	json_array_foreach(json_object_get(link, "addr_info"), i, addr)
		json_array_append_new(list,
				      json_sprintf("%s/%d", json_str(addr, "local") ?: "?", (int)json_int(addr, "prefixlen", 0)));
	return list;
}

static int links(struct snapshot *s, unsigned space, struct error *e)
{
	static const char *const keys[] = { "ifname", "address", "mtu", "operstate", "master", NULL };
	static const char *const neigh_keys[] = { "dst", "dev", "lladdr", "state", NULL };
	json_t *answer = NULL, *list = json_object_get(s->out, "link"), *item;
	struct heard *heard = &s->memory->in[space];
	size_t i;
	int rc = s->of->command(s->of->user, space, "ip", "addr show", &answer, e);

	json_array_foreach(answer, i, item) {
		if (!is_ours(s, json_str(item, "ifname")))
			continue;
		json_t *link = json_pack("{s:o}", "addr", addresses(item));

		copy_keys(link, item, keys);
		if (heard->n < DEVICES_MAX)
			heard->ifindex[heard->n] = (unsigned)json_int(item, "ifindex", 0);
		heard->n++;
		json_array_append_new(list, link);
	}
	json_decref(answer);
	answer = NULL;
	if (rc == 0)
		rc = s->of->command(s->of->user, space, "ip", "neigh show", &answer, e);
	json_array_foreach(answer, i, item) {
		if (!is_ours(s, json_str(item, "dev")))
			continue;
		json_t *neigh = json_pack("{s:s}", "kind", "neigh");

		copy_keys(neigh, item, neigh_keys);
		json_array_append_new(list, neigh);
	}
	json_decref(answer);
	return rc;
}

/* A veth without a queue is shown as noqueue when it is new, and not at all after a queue was taken from it. */
static int qdiscs(struct snapshot *s, unsigned space, struct error *e)
{
	static const char *const keys[] = { "dev", "kind", "root", "parent", "options", NULL };
	json_t *answer = NULL, *item;
	size_t i;
	int rc = s->of->command(s->of->user, space, "tc", "qdisc show", &answer, e);

	json_array_foreach(answer, i, item) {
		if (!is_ours(s, json_str(item, "dev")) || json_has(item, "kind", "noqueue"))
			continue;
		json_t *qdisc = json_object();

		copy_keys(qdisc, item, keys);
		json_array_append_new(json_object_get(s->out, "qdisc"), qdisc);
	}
	json_decref(answer);
	return rc;
}

static int rules(struct snapshot *s, unsigned space, struct error *e)
{
	json_t *answer = NULL;
	int rc = s->of->command(s->of->user, space, "ip", "rule show", &answer, e);

	if (rc == 0 && json_is_array(answer))
		json_array_extend(json_object_get(s->out, "rule"), answer);
	json_decref(answer);
	return rc;
}

/* Objects with a pid are a program's; the kernel's own have none. */
static int rdma_objects(struct snapshot *s, const char *type, struct error *e)
{
	static const char *const keys[] = { "ifname", "lqpn", "cqn", "mrn", "pdn", "srqn", "type", "state", "pid", "comm", NULL };
	char args[32] = "res show ";
	json_t *answer = NULL, *item;
	size_t i;

	strncat(args, type, sizeof args - strlen(args) - 1);
	int rc = s->of->command(s->of->user, 0, "rdma", args, &answer, e);

	json_array_foreach(answer, i, item) {
		if (!is_ours(s, json_str(item, "ifname")) || !json_object_get(item, "pid"))
			continue;
		json_t *object = json_pack("{s:s}", "object", type);

		copy_keys(object, item, keys);
		json_array_append_new(json_object_get(s->out, "rdma"), object);
	}
	json_decref(answer);
	return rc;
}

static const char *const types[] = { "qp", "cq", "mr", "pd", "srq" };
/* The kernel's own: one PD, one CQ and the QP of the general services interface. */
static const unsigned kernel_own[] = { 1, 1, 0, 1, 0 };

static void note_count(void *user, const char *rdma, const char *type, uint64_t count)
{
	struct snapshot *s = user;

	for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
		if (strcmp(type, types[k]) == 0 && count > kernel_own[k] && is_ours(s, rdma))
			s->ask[k] = true;
}

static void read_line(const char *rdma, const char *file, char *buf, size_t size)
{
	char path[320];

	snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/%s", rdma, file);
	file_line(path, buf, size);
}

/* Without a link to its name there is no device, whatever netlink has of it. */
static void rdma_links(struct snapshot *s)
{
	DIR *dir = opendir("/sys/class/infiniband");
	char state[32], netdev[32];

	for (const struct dirent *d; dir && (d = readdir(dir));) {
		if (!is_ours(s, d->d_name))
			continue;
		read_line(d->d_name, "state", state, sizeof state);
		read_line(d->d_name, "gid_attrs/ndevs/0", netdev, sizeof netdev);
		json_array_append_new(json_object_get(s->out, "rdma"),
				      json_pack("{s:s,s:s,s:i,s:s,s:s}", "object", "link", "ifname", d->d_name, "port", 1, "state",
						strchr(state, ' ') ? strchr(state, ' ') + 1 : state, "netdev", netdev));
	}
	if (dir)
		closedir(dir);
}

/* The counts say whether it is worth asking for each kind of object. */
static int rdma(struct snapshot *s, struct error *e)
{
	int rc = lab_nldev_counts(note_count, s, e);

	for (size_t k = 0; rc == 0 && k < sizeof types / sizeof types[0]; k++)
		if (s->ask[k])
			rc = rdma_objects(s, types[k], e);
	if (rc == 0)
		rdma_links(s);
	return rc;
}

/* ---- what is remembered ---- */

static const char *const remembered[] = { "link", "qdisc", "rule" };

void lab_snapshot_forget(struct lab_snapshot_memory *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->spaces; i++)
		if (m->in[i].news >= 0)
			close(m->in[i].news);
	json_decref(m->kept);
	free(m);
}

static int news_of(const char *netns)
{
	struct error ignored;
	int back, rc = lab_netns_enter(netns, &back, &ignored);

	if (rc < 0)
		return rc;
	rc = lab_news_open();
	lab_netns_leave(back);
	return rc;
}

static int memory_new(const struct lab_snapshot_of *of, struct lab_snapshot_memory **ret)
{
	struct lab_snapshot_memory *m = calloc(1, sizeof *m);

	if (!m)
		return -ENOMEM;
	for (; m->spaces < of->n; m->spaces++)
		m->in[m->spaces].news = news_of(of->netns[m->spaces]);
	*ret = m;
	return 0;
}

/* Takes the news of all, whatever the first has told. */
static bool has_news(struct lab_snapshot_memory *m)
{
	bool any = false;

	for (unsigned i = 0; i < m->spaces; i++) {
		const struct heard *h = &m->in[i];

		any |= h->news < 0 || lab_news_take(h->news, h->ifindex, h->n < DEVICES_MAX ? h->n : DEVICES_MAX);
	}
	return any;
}

/* True when the picture of before is still the picture. */
static bool recall(struct snapshot *s)
{
	struct lab_snapshot_memory *m = s->memory;

	if (has_news(m) || !m->kept) {
		json_decref(m->kept);
		m->kept = NULL;
		return false;
	}
	for (size_t i = 0; i < sizeof remembered / sizeof remembered[0]; i++)
		json_object_set(s->out, remembered[i], json_object_get(m->kept, remembered[i]));
	return true;
}

/* What is told from here on is about something later than this picture, or part of it already: then it is made once more. */
static void remember(struct snapshot *s)
{
	struct lab_snapshot_memory *m = s->memory;

	for (unsigned i = 0; i < m->spaces; i++)
		if (m->in[i].news < 0 || m->in[i].n > DEVICES_MAX)
			return;
	m->kept = json_object();
	for (size_t i = 0; i < sizeof remembered / sizeof remembered[0]; i++)
		json_object_set(m->kept, remembered[i], json_object_get(s->out, remembered[i]));
}

static int with_tools(struct snapshot *s, struct error *e)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < s->of->n; i++) {
		s->memory->in[i].n = 0;
		rc = links(s, i, e);
		if (rc == 0)
			rc = qdiscs(s, i, e);
		if (rc == 0)
			rc = rules(s, i, e);
	}
	if (rc == 0)
		remember(s);
	return rc;
}

int lab_snapshot(const struct lab_snapshot_of *of, struct lab_snapshot_memory **memory, json_t **ret, struct error *e)
{
	struct snapshot s = { .of = of };
	int rc = *memory ? 0 : memory_new(of, memory);

	s.memory = *memory;
	s.out = rc ? NULL : json_pack("{s:[],s:[],s:[],s:[]}", "rdma", "link", "qdisc", "rule");
	if (!s.out)
		return error_set(e, -ENOMEM, "out of memory");
	rc = recall(&s) ? 0 : with_tools(&s, e);
	if (rc == 0)
		rc = rdma(&s, e);
	if (rc < 0) {
		json_decref(s.out);
		return rc;
	}
	*ret = s.out;
	return 0;
}
