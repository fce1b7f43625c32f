/* SPDX-License-Identifier: MIT */
/* Needs rdma_rxe and root: where they are not, exits with 77, and `make test` runs it again in the guest. */
#include "lab.h"

#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "lab_netns.h"
#include "test.h"

static char state[] = "/tmp/qd-lab-XXXXXX";

struct fixture {
	struct journal *journal;
	struct lab *lab;
	struct lab_lane lane;
};

static void up(struct fixture *f)
{
	struct error e = { "" };

	CU_ASSERT_EQUAL_FATAL(journal_open(&f->journal, &e), 0);
	int rc = lab_rxe.open(NULL, f->journal, &f->lab, &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	rc = f->lab->ops->lane_up(f->lab, 0, &f->lane, &e);
	ROW_ASSERT(rc == 0, "%s", e.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
}

static void down(struct fixture *f)
{
	f->lab->ops->close(f->lab);
	journal_close(f->journal);
}

/* 0: there is none, or no such namespace. */
static unsigned index_in(const char *netns, const char *netdev)
{
	struct error ignored;
	unsigned index;
	int back;

	if (lab_netns_enter(netns, &back, &ignored) < 0)
		return 0;
	index = if_nametoindex(netdev);
	lab_netns_leave(back);
	return index;
}

static void lane_has_what_it_says(void)
{
	struct fixture f;

	up(&f);
	for (int i = 0; i < 2; i++) {
		const struct lab_device *d = &f.lane.device[i];

		CU_ASSERT(index_in(d->netns, d->netdev) > 0);
		/* In one of its own, or at home with a reason. */
		CU_ASSERT_EQUAL(d->netns[0] == 0, f.lab->one_netns && f.lab->one_netns[0]);
		CU_ASSERT_EQUAL(if_nametoindex(d->netdev) > 0, d->netns[0] == 0);
		CU_ASSERT_EQUAL(d->name[0], 'a' + i);
		CU_ASSERT_EQUAL(d->port, 1);
		CU_ASSERT_EQUAL(d->gid_index, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(d->gid, "ffff:0a"));
		json_t *counters = lab_counters(d->rdma, d->port);

		CU_ASSERT(json_is_integer(json_object_get(counters, "sent_pkts")));
		CU_ASSERT_PTR_NULL(json_object_get(counters, "lifespan"));
		json_decref(counters);
	}
	CU_ASSERT(!f.lane.device[0].netns[0] || strcmp(f.lane.device[0].netns, f.lane.device[1].netns) != 0);
	const struct lab_device was = f.lane.device[1];

	down(&f);
	CU_ASSERT_EQUAL(index_in(was.netns, was.netdev), 0);
	CU_ASSERT(!was.netns[0] || access(was.netns, F_OK) != 0);
}

static void snapshots_show_a_change_and_its_undoing(void)
{
	struct fixture f;
	json_t *before = NULL, *during = NULL, *after = NULL, *out = NULL;
	struct error e = { "" };
	char args[128];

	up(&f);
	CU_ASSERT_EQUAL_FATAL(f.lab->ops->snapshot(f.lab, 0, &before, &e), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(before, "qdisc")), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(before, "rdma")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(before, "link")), 4);
	snprintf(args, sizeof args, "qdisc replace dev %s root netem loss 5%%", f.lane.device[0].netdev);
	CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "tc", args, NULL, &e), 0);
	CU_ASSERT_EQUAL_FATAL(f.lab->ops->snapshot(f.lab, 0, &during, &e), 0);
	CU_ASSERT_FALSE(json_equal(before, during));
	snprintf(args, sizeof args, "qdisc show dev %s", f.lane.device[0].netdev);
	CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "tc", args, &out, &e), 0);
	CU_ASSERT_STRING_EQUAL(json_str(json_array_get(out, 0), "kind"), "netem");
	CU_ASSERT(json_is_integer(json_object_get(json_array_get(out, 0), "drops")));
	snprintf(args, sizeof args, "qdisc del dev %s root", f.lane.device[0].netdev);
	CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "tc", args, NULL, &e), 0);
	CU_ASSERT_EQUAL_FATAL(f.lab->ops->snapshot(f.lab, 0, &after, &e), 0);
	CU_ASSERT(json_equal(before, after));
	json_decref(after);
	/* Nothing was done: the picture of before is good, and it is that one. */
	CU_ASSERT_EQUAL_FATAL(f.lab->ops->snapshot(f.lab, 0, &after, &e), 0);
	CU_ASSERT(json_equal(before, after));
	static const char *const changes[][2] = { { "link set dev @ mtu 1400", "link set dev @ mtu 1500" },
						  { "addr add 192.0.2.77/32 dev @", "addr del 192.0.2.77/32 dev @" },
						  { "neigh add 192.0.2.78 lladdr 02:00:00:00:00:01 dev @ nud permanent",
						    "neigh del 192.0.2.78 dev @" },
						  { "rule add iif @ lookup 77", "rule del iif @ lookup 77" } };

	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
		for (int undo = 0; undo < 2; undo++) {
			json_t *now = NULL;

			snprintf(args, sizeof args, "%.*s%s%s", (int)strcspn(changes[i][undo], "@"), changes[i][undo],
				 f.lane.device[0].netdev, strchr(changes[i][undo], '@') + 1);
			CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "ip", args, NULL, &e), 0);
			CU_ASSERT_EQUAL_FATAL(f.lab->ops->snapshot(f.lab, 0, &now, &e), 0);
			CU_ASSERT_EQUAL(json_equal(before, now), undo);
			json_decref(now);
		}
	}
	json_decref(out);
	json_decref(before);
	json_decref(during);
	json_decref(after);
	down(&f);
}

static void refusals_are_told(void)
{
	struct fixture f;
	struct error e = { "" };
	struct lab_lane again;

	up(&f);
	CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "ip", "link set qd-nowhere up", NULL, &e), -ENODEV);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "qd-nowhere"));
	CU_ASSERT_EQUAL(f.lab->ops->command(f.lab, "rm", "-rf /", NULL, &e), -EINVAL);
	CU_ASSERT_EQUAL(f.lab->ops->lane_up(f.lab, 0, &again, &e), -EINVAL);
	CU_ASSERT_EQUAL(f.lab->ops->set_mtu(f.lab, &f.lane, 4200, &e), 0);
	down(&f);
}

/* What a killed controller leaves is found in its journal and undone. */
static void journal_undoes_a_lane(void)
{
	struct error e = { "" };
	struct lab_device left = { .name = "" };
	unsigned n = 0;
	int fds[2], status = 0;

	CU_ASSERT_EQUAL_FATAL(pipe(fds), 0);
	pid_t pid = fork();

	if (pid == 0) {
		struct fixture f = { .journal = NULL };

		if (journal_open(&f.journal, &e) == 0 && lab_rxe.open(NULL, f.journal, &f.lab, &e) == 0 &&
		    f.lab->ops->lane_up(f.lab, 0, &f.lane, &e) == 0 && write(fds[1], &f.lane.device[0], sizeof left) == sizeof left)
			raise(SIGKILL);
		_exit(1);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFSIGNALED(status));
	close(fds[1]);
	CU_ASSERT_EQUAL(read(fds[0], &left, sizeof left), sizeof left);
	close(fds[0]);
	CU_ASSERT(index_in(left.netns, left.netdev) > 0);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, left.netns[0] ? 5 : 3);
	CU_ASSERT_EQUAL(index_in(left.netns, left.netdev), 0);
	CU_ASSERT(!left.netns[0] || access(left.netns, F_OK) != 0);
	CU_ASSERT_EQUAL(journal_clean(&n, false, &e), 0);
	CU_ASSERT_EQUAL(n, 0);
}

/* The second pair of devices has no link but what stands between the far ends; asked for twice it is the same. */
static void a_lane_has_a_place_for_the_wire(void)
{
	struct lab_lane wired, again;
	struct error e = { "" };
	char name[4][16];
	struct fixture f;

	up(&f);
	CU_ASSERT_EQUAL(f.lab->ops->lane_wire(f.lab, 1, &wired, &e), -EINVAL);
	int rc = f.lab->ops->lane_wire(f.lab, 0, &wired, &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL(f.lab->ops->lane_wire(f.lab, 0, &again, &e), 0);
	CU_ASSERT_EQUAL(f.lab->ops->set_mtu(f.lab, &wired, 4200, &e), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(name[i], sizeof name[i], "%s", wired.device[i].netdev);
		snprintf(name[2 + i], sizeof name[i], "%s", wired.far[i]);
		CU_ASSERT_STRING_EQUAL(wired.far[i], again.far[i]);
		CU_ASSERT_STRING_NOT_EQUAL(wired.device[i].rdma, f.lane.device[i].rdma);
		CU_ASSERT_STRING_NOT_EQUAL(wired.device[i].gid, f.lane.device[i].gid);
		CU_ASSERT_EQUAL(f.lane.far[i][0], 0);
	}
	/* The far ends are where the wire stands, whatever the ends live in. */
	for (int i = 0; i < 4; i++)
		CU_ASSERT(index_in(i < 2 ? wired.device[i].netns : "", name[i]) > 0);
	down(&f);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(index_in(i < 2 ? wired.device[i].netns : "", name[i]), 0);
}

int main(void)
{
	static const struct test_case cases[] = {
		{ "a lane has what it says, and goes", lane_has_what_it_says },
		{ "snapshots show a change and its undoing", snapshots_show_a_change_and_its_undoing },
		{ "refusals are told", refusals_are_told },
		{ "the journal undoes a lane", journal_undoes_a_lane },
		{ "a lane has a place for the wire", a_lane_has_a_place_for_the_wire },
	};
	struct error e;

	if (lab_rxe.probe(&e) != 0) {
		fprintf(stderr, "skipped: %s\n", e.text);
		return 77;
	}
	if (!mkdtemp(state))
		return 1;
	setenv("QPDRILL_STATE", state, 1);
	int status = test_run("lab_rxe", cases, sizeof cases / sizeof cases[0]);

	if (rmdir(state) != 0)
		status = 1;
	return status;
}
