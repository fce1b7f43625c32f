/* SPDX-License-Identifier: MIT */
/* The device under an end is gone, or is closed: it is waited for, opened again, and all is made anew on it. */
#include "recover_renew.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "json.h"
#include "units.h"

#define BACK_NS (10 * NSEC_PER_SEC)
#define LOOK_NS (5 * NSEC_PER_MSEC)

static const struct lab_device *device_of(struct case_run *r, const char *agent)
{
	const struct ctl_agent *a = agent_find(r, agent);

	return a ? a->lab_device : NULL;
}

static bool is_gone(struct case_run *r, const char *agent)
{
	const struct lab_device *device = device_of(r, agent);
	char path[96];

	if (!device)
		return false;
	snprintf(path, sizeof path, "/sys/class/infiniband/%s", device->rdma);
	return access(path, F_OK) != 0;
}

static void end(struct case_run *r, const json_t *step, const char *agent)
{
	struct error e = { "" };

	(void)step;
	if (agent_find(r, agent)->device && agent_lets_go(r, agent, &e) < 0)
		case_lost(r, 1, "reopen: agent %s: %s", agent, e.text);
}

/* A device that is there may not have its GIDs yet. */
static bool is_back(struct case_run *r, const char *agent)
{
	const struct lab_device *device = device_of(r, agent);

	return device && !is_gone(r, agent) && (!device->gid[0] || gid_find("/sys", device->rdma, device->port, device->gid) >= 0);
}

static int open_again(struct case_run *r, const char *agent, struct error *e)
{
	uint64_t until = now_ns() + BACK_NS;

	while (!is_back(r, agent)) {
		if (now_ns() >= until)
			return error_set(e, -ENODEV, "the device of agent %s is not back after %llu s", agent,
					 BACK_NS / NSEC_PER_SEC);
		case_wait(r, NULL, NULL, now_ns() + LOOK_NS);
	}
	/* Who made it may have had it opened, too. */
	return agent_find(r, agent)->device ? 0 : agents_open(r, agent, e);
}

static int begin(struct case_run *r, const json_t *agents, struct error *e)
{
	const json_t *name;
	size_t i;
	int rc = 0;

	json_array_foreach((json_t *)agents, i, name)
		rc = rc ? rc : open_again(r, json_string_value(name), e);
	return rc;
}

int recover_reopen(struct case_run *r, const struct ends *ends, const json_t *step, struct error *e)
{
	static const struct renewal reopen = { is_gone, end, begin };

	return recover_renew(r, ends, step, &reopen, e);
}
