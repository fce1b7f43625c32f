/* SPDX-License-Identifier: MIT */
/*
 * Recovery of ends that have lost, or give up, everything they had: with their process (restart), with their device (reopen). What
 * the two differ in.
 */
#ifndef QD_RECOVER_RENEW_H
#define QD_RECOVER_RENEW_H

#include "controller_step.h"

struct renewal {
	/* It has lost what it had, and cannot drain. */
	bool (*is_gone)(struct case_run *r, const char *agent);
	/* It lets go of what it still has. Its objects are gone when this returns. */
	void (*end)(struct case_run *r, const json_t *step, const char *agent);
	/* It can make objects again: all of these agents. */
	int (*begin)(struct case_run *r, const json_t *agents, struct error *e);
};

/* Agents of these ends that are gone are renewed; where none is, all of them are. The others drain and stay. Then new QPs,
 * connected. */
int recover_renew(struct case_run *r, const struct ends *ends, const json_t *step, const struct renewal *how, struct error *e);

#endif
