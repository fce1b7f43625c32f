/* SPDX-License-Identifier: MIT */
/* The running kernel: whether soft-RoCE devices can be made in it, by this user. */
#include "doctor_internal.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "plan.h"
#include "scenario.h"

#define GROUP_RDMA "RDMA in the running kernel"
#define GROUP_RIGHTS "rights"

/* Whether a line of the file holds the text. */
static bool file_has(const struct examination *x, const char *path, const char *text)
{
	char full[4096], *line = NULL;
	FILE *in = fopen(doctor_path(x, path, full, sizeof(full)), "re");
	size_t size = 0;
	bool has = false;

	while (in && !has && getline(&line, &size, in) >= 0)
		has = strstr(line, text) != NULL;
	free(line);
	if (in)
		fclose(in);
	return has;
}

static bool exists(const struct examination *x, const char *path, int how)
{
	char full[4096];

	return access(doctor_path(x, path, full, sizeof(full)), how) == 0;
}

static void look_at_module(struct examination *x)
{
	char release[128], dep[300], builtin[300];

	doctor_line(x, "/proc/sys/kernel/osrelease", release, sizeof(release));
	snprintf(dep, sizeof(dep), "/lib/modules/%s/modules.dep", release);
	snprintf(builtin, sizeof(builtin), "/lib/modules/%s/modules.builtin", release);
	if (exists(x, "/sys/module/rdma_rxe", F_OK))
		doctor_say(x, GROUP_RDMA, "rdma_rxe", STATE_OK, 0, "", "is in kernel %s, and loaded", release);
	else if (file_has(x, dep, "/rdma_rxe.ko") || file_has(x, builtin, "/rdma_rxe.ko"))
		doctor_say(x, GROUP_RDMA, "rdma_rxe", STATE_OK, 0, "", "belongs to kernel %s; a run in lab rxe loads it", release);
	else
		doctor_say(x, GROUP_RDMA, "rdma_rxe", STATE_MISSING, STOPS_RXE, "",
			   "kernel %s has no rdma_rxe; lab guest boots a kernel that has one", release);
}

/* "mlx5_core, firmware 22.1, port 1 ACTIVE, 100 Gb/sec" of a device's folder. */
static void describe_device(const struct examination *x, const char *name, char *buf, size_t size)
{
	char path[512], link[512], firmware[64], state[64], rate[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.100s/device/driver", x->d->root, name);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.100s/fw_ver", name);
	doctor_line(x, path, firmware, sizeof(firmware));
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.100s/ports/1/state", name);
	doctor_line(x, path, state, sizeof(state));
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.100s/ports/1/rate", name);
	doctor_line(x, path, rate, sizeof(rate));
	snprintf(buf, size, "%s%s%s%sport 1 %s%s%s", strrchr(link, '/') ? strrchr(link, '/') + 1 : "", *link ? ", " : "",
		 *firmware ? firmware : "", *firmware ? ", " : "", *state ? state : "unknown", *rate ? ", " : "", rate);
}

static void look_at_devices(struct examination *x)
{
	char path[4096], text[600];
	struct dirent **names = NULL;
	int n = scandir(doctor_path(x, "/sys/class/infiniband", path, sizeof(path)), &names, NULL, alphasort), found = 0;

	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			describe_device(x, names[i]->d_name, text, sizeof(text));
			doctor_say(x, GROUP_RDMA, names[i]->d_name, STATE_OK, 0, "", "%s", text);
			found++;
		}
		free(names[i]);
	}
	free(names);
	if (!found)
		doctor_say(x, GROUP_RDMA, "devices", STATE_OK, 0, "", "none; labs make their own");
	if (found && !exists(x, "/dev/infiniband", R_OK | X_OK))
		doctor_say(x, GROUP_RDMA, "/dev/infiniband", STATE_NOTE, 0, "modprobe ib_uverbs",
			   "is not there, or cannot be read: no program can open these devices");
}

static void look_at_user(struct examination *x)
{
	unsigned long inside, outside, count;
	char map[128], uids[128], *p = map;
	bool root;

	doctor_value(x, "/proc/self/status", "Uid:", uids, sizeof(uids));
	doctor_line(x, "/proc/self/uid_map", map, sizeof(map));
	inside = strtoul(p, &p, 10);
	outside = strtoul(p, &p, 10);
	count = strtoul(p, &p, 10);
	/* The second is the effective one. */
	strtoul(uids, &p, 10);
	root = strtoul(p, NULL, 10) == 0 && p != uids;
	if (root && inside == 0 && outside == 0 && count == UINT32_MAX)
		doctor_say(x, GROUP_RIGHTS, "user", STATE_OK, 0, "", "root");
	else
		doctor_say(x, GROUP_RIGHTS, "user", STATE_MISSING, STOPS_RXE, "sudo qpdrill run ...",
			   "%s; lab rxe needs root, lab guest does not", root ? "root of a user namespace alone" : "not root");
}

static void look_at_capabilities(struct examination *x)
{
	static const struct {
		const char *name;
		unsigned bit;
		const char *why;
		const char *unless; /* this is there */
	} caps[] = {
		{ "CAP_NET_ADMIN", 12, "links, addresses and link faults", "" },
		{ "CAP_NET_RAW", 13, "the wire sends packets of its own", "" },
		{ "CAP_SYS_MODULE", 16, "loads rdma_rxe", "/sys/module/rdma_rxe" },
	};
	char hex[64];
	uint64_t have;

	doctor_value(x, "/proc/self/status", "CapEff:", hex, sizeof(hex));
	have = strtoull(hex, NULL, 16);
	for (size_t i = 0; i < sizeof(caps) / sizeof(*caps); i++) {
		bool has = have >> caps[i].bit & 1 || (*caps[i].unless && exists(x, caps[i].unless, F_OK));

		doctor_say(x, GROUP_RIGHTS, caps[i].name, has ? STATE_OK : STATE_MISSING, has ? 0 : STOPS_RXE,
			   has ? "" : "sudo qpdrill run ...", "%s%s", has ? "" : "lab rxe lacks it: ", caps[i].why);
	}
}

/* What the regions of one end of a scenario take that says nothing of sizes. */
static uint64_t usual_bytes(void)
{
	static const char text[] = "qpdrill: 1\ntitle: t\nsteps: [connect: , traffic: { ops: [SEND], messages: 1 }]\n";
	struct plan_options o = { .seed = 1 };
	struct scenario s = { 0 };
	struct diag d = { 0 };
	json_t *plan = NULL, *mr;
	uint64_t bytes = 0;
	struct error e;
	size_t i;

	if (!scenario_load_text(text, strlen(text), "t", "t", &s, &d)) {
		if (!plan_make(&s.cases[0], &o, &plan, &e))
			json_array_foreach(json_object_get(plan, "mrs"), i, mr)
				if (json_has(mr, "agent", "a"))
					bytes += json_u64(mr, "bytes", 0);
		scenario_release(&s);
	}
	json_decref(plan);
	diag_release(&d);
	return bytes;
}

static void look_at_memlock(struct examination *x)
{
	uint64_t need = usual_bytes(), limit;
	char text[128], hex[64], has[32], wants[32], *end;

	doctor_value(x, "/proc/self/limits", "Max locked memory", text, sizeof(text));
	doctor_value(x, "/proc/self/status", "CapEff:", hex, sizeof(hex));
	limit = strtoull(text, &end, 10);
	doctor_size(need, wants, sizeof(wants));
	if (end == text || strtoull(hex, NULL, 16) >> 14 & 1) {
		doctor_say(x, GROUP_RIGHTS, "locked memory", STATE_OK, 0, "",
			   "not limited; an end of a plain scenario registers %s", wants);
		return;
	}
	doctor_say(x, GROUP_RIGHTS, "locked memory", limit < need ? STATE_MISSING : STATE_OK, limit < need ? STOPS_RXE : 0,
		   limit < need ? "ulimit -l unlimited" : "", "at most %s; an end of a plain scenario registers %s",
		   doctor_size(limit, has, sizeof(has)), wants);
}

static void look_at_namespaces(struct examination *x)
{
	bool there = exists(x, "/proc/self/ns/net", F_OK);

	doctor_say(x, GROUP_RIGHTS, "network namespaces", there ? STATE_OK : STATE_NOTE, 0, "", "%s",
		   there ? "the kernel has them; whether its rxe receives in one, lab rxe tries out (netns in run.json)"
			 : "the kernel has none: agents cannot be put into them (--launch 'ip netns exec ...')");
}

void doctor_host(struct examination *x)
{
	look_at_module(x);
	look_at_devices(x);
	look_at_user(x);
	look_at_capabilities(x);
	look_at_memlock(x);
	look_at_namespaces(x);
}
