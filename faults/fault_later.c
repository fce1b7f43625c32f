/* SPDX-License-Identifier: MIT */
/*
 * Faults whose files load and whose cases are skipped with the reason: nothing here injects them yet. Each becomes a file of its
 * own when something does.
 */
#include "fault_common.h"

static const struct fault_param end_only[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "which end" },
	{ .name = NULL },
};
static const struct fault_param device_only[] = {
	{ .name = "device", .type = FAULT_PARAM_DEVICE, .required = true, .help = "which device" },
	{ .name = NULL },
};
static const struct fault_param no_params[] = {
	{ .name = NULL },
};
static const struct fault_param neighbour_params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "whose neighbour table" },
	{ .name = "lladdr", .type = FAULT_PARAM_STRING, .required = true, .help = "the link address its peer seems to have" },
	{ .name = NULL },
};

static const char *const link_faults[] = { "link-faults", NULL };
static const char *const process_faults[] = { "process-faults", NULL };

#define LATER(id, n, text, lay, bl, par, need, found)                                                                              \
	const struct fault_ops id = { .name = n,                                                                                   \
				      .help = text,                                                                                \
				      .layer = lay,                                                                                \
				      .blast = bl,                                                                                 \
				      .params = par,                                                                               \
				      .needs = need,                                                                               \
				      .proof = "nothing yet: cases with it are skipped",                                           \
				      .detection = found }

LATER(fault_address_moved, "address_moved", "an end's address moves to another GID index", FAULT_LINK, FAULT_BLAST_DEVICE, end_only,
      link_faults, fault_detect_silent);
LATER(fault_controller_killed, "controller_killed", "the controller is killed in the middle of a case", FAULT_PROCESS,
      FAULT_BLAST_LINK, no_params, process_faults, fault_detect_none);
LATER(fault_device_recreated, "device_recreated", "a device goes away and comes back with QPNs from the start", FAULT_LINK,
      FAULT_BLAST_DEVICE, device_only, link_faults, fault_detect_silent);
LATER(fault_neighbour, "neighbour", "an end's neighbour entry points to another link address", FAULT_LINK, FAULT_BLAST_DEVICE,
      neighbour_params, link_faults, fault_detect_silent);
