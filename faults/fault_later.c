/* SPDX-License-Identifier: MIT */
/*
 * Faults whose files load and whose cases are skipped with the reason: nothing here injects them yet. Each becomes a file of its
 * own when something does.
 */
#include "fault_common.h"

static const struct fault_param no_params[] = {
	{ .name = NULL },
};

static const char *const process_faults[] = { "process-faults", NULL };

const struct fault_ops fault_controller_killed = {
	.name = "controller_killed",
	.help = "the controller is killed in the middle of a case",
	.layer = FAULT_PROCESS,
	.blast = FAULT_BLAST_LINK,
	.params = no_params,
	.needs = process_faults,
	.proof = "nothing yet: cases with it are skipped",
	.detection = fault_detect_none,
};
