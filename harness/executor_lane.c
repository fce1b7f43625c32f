/* SPDX-License-Identifier: MIT */
#include "executor_lane.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "data.h"
#include "journal.h"
#include "log.h"

/* Documentation/admin-guide/tainted-kernels: died, warned, locked up. */
#define TAINT_MARKS (1ul << 7 | 1ul << 9 | 1ul << 14)

struct executor_lane {
	sd_event *loop;
	struct lane_options o;
	struct journal *journal;
	struct lab *lab;
	struct lab_lane lane;
	struct controller *controller;
	struct profile profile;
	bool has_profile;
	char *agent, *wire;
	unsigned long taint;
};

static unsigned long read_taint(void)
{
	char buf[32] = "";
	int fd = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : 0;

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return strtoul(buf, NULL, 10) & TAINT_MARKS;
}

/* Where a libibverbs of one's own may lie below its prefix. */
static const char *const lib_dirs[] = { "lib/x86_64-linux-gnu", "lib64", "lib" };

/* "libibverbs.so.1.14.44.0" is the library of rdma-core 44.0. */
static void library_version(const char *prefix, char *buf, size_t size)
{
	snprintf(buf, size, "unknown");
	for (size_t i = 0; i < sizeof lib_dirs / sizeof lib_dirs[0]; i++) {
		char path[PATH_MAX], *dot;

		snprintf(path, sizeof path, "%s/%s/libibverbs.so.1", prefix, lib_dirs[i]);
		char *real = realpath(path, NULL);

		dot = real ? strstr(real, ".so.1.") : NULL;
		dot = dot ? strchr(dot + 6, '.') : NULL;
		if (dot) {
			snprintf(buf, size, "%s", dot + 1);
			free(real);
			return;
		}
		free(real);
	}
}

char *rdma_core_find(const char *prefix, struct error *e)
{
	for (size_t i = 0; i < sizeof lib_dirs / sizeof lib_dirs[0]; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s/%s/libibverbs.so.1", prefix, lib_dirs[i]);
		if (access(path, R_OK) == 0)
			return realpath(prefix, NULL);
	}
	error_set(e, -ENOENT, "%s has no libibverbs.so.1 in %s, %s or %s", prefix, lib_dirs[0], lib_dirs[1], lib_dirs[2]);
	return NULL;
}

static void use_rdma_core(const char *prefix)
{
	char path[3 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s:%s/%s:%s/%s", prefix, lib_dirs[0], prefix, lib_dirs[1], prefix, lib_dirs[2]);
	setenv("LD_LIBRARY_PATH", path, 1);
}

int executor_lane_open(sd_event *loop, const struct lane_options *o, struct executor_lane **ret, struct error *e)
{
	struct executor_lane *x = calloc(1, sizeof *x);
	int rc;

	if (!x)
		return error_set(e, -ENOMEM, "out of memory");
	x->loop = loop;
	x->o = *o;
	x->taint = read_taint();
	rc = data_program("qpdrill-agent", &x->agent, e);
	if (rc == 0)
		rc = data_program("qpdrill-wire", &x->wire, e);
	if (rc == 0)
		rc = journal_open(&x->journal, e);
	if (rc == 0)
		rc = o->kept ? lab_rxe.adopt(loop, x->journal, o->kept, &x->lab, e) : lab_rxe.open(loop, x->journal, &x->lab, e);
	if (rc == 0)
		rc = x->lab->ops->lane_up(x->lab, 0, &x->lane, e);
	if (rc < 0) {
		executor_lane_close(x);
		return rc;
	}
	x->lane.boot = o->boot;
	if (o->rdma_core)
		use_rdma_core(o->rdma_core);
	*ret = x;
	return 0;
}

void executor_lane_close(struct executor_lane *x)
{
	if (!x)
		return;
	controller_free(x->controller);
	if (x->lab)
		x->lab->ops->close(x->lab);
	journal_close(x->journal);
	if (x->has_profile)
		profile_release(&x->profile);
	free(x->agent);
	free(x->wire);
	free(x);
}

json_t *executor_lane_environment(const struct executor_lane *x)
{
	char path[128], fw[64] = "", core[64];
	struct utsname u;

	uname(&u);
	snprintf(path, sizeof path, "/sys/class/infiniband/%s/fw_ver", x->lane.device[0].rdma);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, fw, sizeof fw - 1) : 0;

	if (fd >= 0)
		close(fd);
	fw[n > 0 ? n : 0] = '\0';
	fw[strcspn(fw, "\n")] = '\0';
	library_version(x->o.rdma_core ? x->o.rdma_core : "/usr", core, sizeof core);
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:b}", "kernel", u.release, "provider", "rxe", "firmware", fw, "rdma_core", core,
			 "lab", x->lab->ops->name, "guest", getenv("QPDRILL_GUEST") != NULL);
}

static void load_profile(struct executor_lane *x, const char *case_dir)
{
	char path[PATH_MAX];
	struct diag d = { 0 };
	struct error e;
	struct utsname u;

	snprintf(path, sizeof path, "%s/profile.yaml", case_dir);
	uname(&u);
	if (access(path, R_OK) != 0)
		return;
	if (profile_load(path, u.release, &x->profile, &d, &e) == 0)
		x->has_profile = true;
	else
		log_warn("%s: %s", path, d.text ? d.text : e.text);
	diag_release(&d);
}

static int make_controller(struct executor_lane *x, const char *case_dir, struct error *e)
{
	/* One profile serves a whole run: every case folder has the same copy. */
	if (!x->has_profile)
		load_profile(x, case_dir);
	const struct controller_options o = {
		.agent_path = x->agent,
		.wire_path = x->wire,
		.launch = x->o.launch,
		.profile = x->has_profile ? &x->profile : NULL,
		.keep = x->o.keep,
		.on_step = x->o.on_step,
		.user = x->o.user,
	};

	return controller_new(x->loop, x->lab, &x->lane, &o, &x->controller, e);
}

int executor_lane_run(struct executor_lane *x, const char *case_dir, struct error *e)
{
	/* With keep nothing was let go after the case before: its agents go now. */
	if (x->o.keep && x->controller) {
		controller_free(x->controller);
		x->controller = NULL;
	}
	int rc = x->controller ? 0 : make_controller(x, case_dir, e);

	if (rc == 0)
		rc = controller_run_case(x->controller, case_dir, e);
	if (rc < 0 && x->controller && !x->o.keep) {
		controller_free(x->controller);
		x->controller = NULL;
	}
	return rc;
}

bool executor_lane_kernel_marked(const struct executor_lane *x)
{
	return (read_taint() & ~x->taint) != 0;
}
