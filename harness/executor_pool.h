/* SPDX-License-Identifier: MIT */
/*
 * Hands cases out to the lanes of a boot, as they become free, and finds out whose doing it is when the kernel complains, dies or a
 * lane falls silent. What a lane is, and where, its owner knows (executor_native.c, executor_guest.c): it starts cases and tells
 * what came of them; callbacks only note that, pool_run() acts.
 *
 * Blame: while one case runs alone, all is its. While several do, a complaint of the kernel is of the lane whose devices it names.
 * One that names none, a kernel that dies and a case that does not end are nobody's yet: every case that ran at that time runs
 * again alone. Once a kernel has complained, its boot is given no more cases.
 */
#ifndef QD_EXECUTOR_POOL_H
#define QD_EXECUTOR_POOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "error.h"
#include "executor.h"

struct pool_ops {
	/* Ends the boot there may be, makes one and sets the pool's `boot` and `gone`. NULL: there is one only, and it is up. */
	int (*boot)(void *user, struct error *e);
	int (*start)(void *user, unsigned lane, size_t index, struct error *e);
	/* A case that has stopped is to go on. */
	int (*resume)(void *user, unsigned lane);
	/* The case will never be done; writes that down in its folder. whole: all of the boot is gone, not only the lane. */
	int (*lost)(void *user, size_t index, bool whole, const char *why, struct error *e);
	/* What became of the boot, for people; called when it is gone. */
	void (*gone_text)(void *user, char *buf, size_t size);
	/* All is done, or one has failed under --keep: shows what is kept. May be NULL. */
	void (*keep_up)(void *user, size_t index);
};

struct pool_lane {
	bool busy, ended, silent;
	bool whole; /* silent because all of the boot is gone */
	bool paused;
	bool aside;  /* gets no more cases in this boot */
	bool beside; /* another case ran while this one did */
	size_t index;
	uint64_t begin_ns, until_ns;
	bool marked, stuck;
	unsigned own, other;
	uint64_t dur_ns;
	char why[256];
};

struct pool {
	sd_event *loop;
	const struct executor_options *o;
	const struct executor_queue *queue;
	const struct pool_ops *ops;
	void *user;
	unsigned n;
	int boot; /* its number, from 1; the owner's */
	struct pool_lane lane[EXECUTOR_LANES_MAX];
	bool up, used, worn; /* worn: the next case wants a new boot */
	bool gone;           /* the boot is */
	bool over;           /* no more cases */
	bool failed;         /* on_done() has said to stop */
	size_t last;         /* case that was judged last */
	bool waiting;        /* next() has nothing for now */
	bool has_next;
	size_t next; /* taken, and waits for a fresh boot */
};

/* 0 when every case that next() named has been told of; -EINTR; or what made going on impossible. */
int pool_run(struct pool *p, struct error *e);

/* From callbacks: what the lane's process said ({"state":"step"…} or "done"), that it has ended, that the whole boot is gone. */
void pool_on_message(struct pool *p, unsigned lane, const json_t *message);
void pool_on_lane_gone(struct pool *p, unsigned lane, const char *why);
void pool_on_gone(struct pool *p);

#endif
