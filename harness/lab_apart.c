/* SPDX-License-Identifier: MIT */
#include "lab_apart.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab_name.h"

#define ROCE_PORT 4791

void lab_apart_name(struct lab_apart *a, unsigned token)
{
	for (int i = 0; i < 2; i++) {
		snprintf(a->name[i], sizeof a->name[i], "qd%c-%04x", 'a' + i, token & 0xffff);
		snprintf(a->path[i], sizeof a->path[i], LAB_NETNS_FOLDER "%s", a->name[i]);
	}
}

enum lab_space lab_apart_space(const struct lab_apart *a, int end)
{
	return !a->on ? LAB_HOME : end ? LAB_B : LAB_A;
}

static int make(struct lab_apart *a, struct lab_tools *t, struct journal *journal, struct error *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < 2; i++) {
		const char *const undo[] = { "ip", "netns", "del", a->name[i], NULL };

		rc = journal_add(journal, undo, &a->undo[i], e);
		if (rc == 0)
			rc = lab_netns_add(a->name[i], e);
		if (rc == 0)
			rc = lab_tools_new(t, i ? LAB_B : LAB_A, a->path[i], e);
	}
	return rc;
}

static bool receives_in(const char *path)
{
	struct error ignored;
	bool found = false;
	int back;

	if (lab_netns_enter(path, &back, &ignored) == 0) {
		found = lab_netns_has_udp(ROCE_PORT);
		lab_netns_leave(back);
	}
	return found;
}

/* One device in there tells: rxe opens its socket in the namespace of the first one, or has had it elsewhere all the time. */
static int look(struct lab_apart *a, struct lab_tools *t, unsigned token, struct error *e)
{
	char name[LAB_NAME_MAX], far[LAB_NAME_MAX], path[96];
	struct error ignored;
	int rc;

	lab_name(name, 0, "p", 'a', token);
	lab_name(far, 0, "p", 'b', token);
	rc = lab_tools_run(t, LAB_A, LAB_IP, NULL, e, "link add %s type veth peer name %s", name, far);
	if (rc == 0)
		rc = lab_tools_run(t, LAB_A, LAB_RDMA, NULL, e, "link add %s type rxe netdev %s", name, name);
	if (rc == 0) {
		snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/hw_counters", name);
		if (!receives_in(a->path[0]))
			rc = error_set(e, -EOPNOTSUPP,
				       "this kernel's rxe does not receive in a network namespace that is not the first one");
		else if (access(path, R_OK) != 0)
			rc = error_set(e, -EOPNOTSUPP,
				       "the counters of an RDMA device in another network namespace are not to be seen");
		lab_tools_run(t, LAB_HOME, LAB_RDMA, NULL, &ignored, "link del %s", name);
	}
	/* With the namespace it goes anyway. */
	lab_tools_run(t, LAB_A, LAB_IP, NULL, &ignored, "link del %s", name);
	return rc;
}

static int lo_up(struct lab_tools *t, struct error *e)
{
	int rc = lab_tools_run(t, LAB_A, LAB_IP, NULL, e, "link set lo up");

	return rc ? rc : lab_tools_run(t, LAB_B, LAB_IP, NULL, e, "link set lo up");
}

int lab_apart_try(struct lab_apart *a, struct lab_tools *t, struct journal *journal, unsigned token, struct error *e)
{
	struct error why = { "" };
	int rc;

	lab_apart_name(a, token);
	rc = make(a, t, journal, &why);
	if (rc == 0)
		rc = look(a, t, token, &why);
	if (rc == 0)
		rc = lo_up(t, &why);
	a->on = rc == 0;
	if (rc == 0)
		return 0;
	snprintf(a->why, sizeof a->why, "%s", why.text);
	return lab_apart_end(a, t, journal, e);
}

int lab_apart_adopt(struct lab_apart *a, struct lab_tools *t, struct error *e)
{
	int rc = lab_tools_new(t, LAB_A, a->path[0], e);

	return rc ? rc : lab_tools_new(t, LAB_B, a->path[1], e);
}

int lab_apart_end(struct lab_apart *a, struct lab_tools *t, struct journal *journal, struct error *e)
{
	int first = 0;

	for (int i = 0; i < 2; i++) {
		lab_tools_free(t, i ? LAB_B : LAB_A);
		if (!a->undo[i])
			continue;
		int rc = lab_netns_del(a->name[i], e);

		if (rc == 0)
			journal_done(journal, a->undo[i]);
		else if (!first)
			first = rc;
		a->undo[i] = 0;
	}
	a->on = false;
	return first;
}
