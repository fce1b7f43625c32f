/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <string.h>

extern const struct fault_ops fault_access_revoked, fault_address_moved, fault_address_removed, fault_agent_frozen,
	fault_agent_killed, fault_agent_restarted, fault_ah_destroyed, fault_connection_left, fault_connection_refused,
	fault_controller_killed, fault_cq_swapped, fault_cq_too_small, fault_device_recreated, fault_events_unacknowledged,
	fault_kernel_panic, fault_late_receive, fault_link_down, fault_memory_replaced, fault_memory_rewritten,
	fault_missing_receive, fault_mr_deregistered, fault_mr_shrunk, fault_mtu_mismatch, fault_mtu_shrunk, fault_neighbour,
	fault_netem, fault_peer_held, fault_pkey_index, fault_psn_mismatch, fault_qp_destroyed, fault_qp_error, fault_qp_reset,
	fault_rd_atomic_mismatch, fault_srq_dry, fault_stale_peer, fault_wire, fault_wire_killed, fault_wrong_gid;

const struct fault_ops *const fault_table[] = {
	&fault_access_revoked,
	&fault_address_moved,
	&fault_address_removed,
	&fault_agent_frozen,
	&fault_agent_killed,
	&fault_agent_restarted,
	&fault_ah_destroyed,
	&fault_connection_left,
	&fault_connection_refused,
	&fault_controller_killed,
	&fault_cq_swapped,
	&fault_cq_too_small,
	&fault_device_recreated,
	&fault_events_unacknowledged,
	&fault_kernel_panic,
	&fault_late_receive,
	&fault_link_down,
	&fault_memory_replaced,
	&fault_memory_rewritten,
	&fault_missing_receive,
	&fault_mr_deregistered,
	&fault_mr_shrunk,
	&fault_mtu_mismatch,
	&fault_mtu_shrunk,
	&fault_neighbour,
	&fault_netem,
	&fault_peer_held,
	&fault_pkey_index,
	&fault_psn_mismatch,
	&fault_qp_destroyed,
	&fault_qp_error,
	&fault_qp_reset,
	&fault_rd_atomic_mismatch,
	&fault_srq_dry,
	&fault_stale_peer,
	&fault_wire,
	&fault_wire_killed,
	&fault_wrong_gid,
	NULL,
};

enum fault_blast fault_blast_of(const struct fault_ops *ops, const json_t *args)
{
	return ops->blast_of ? ops->blast_of(args) : ops->blast;
}

const char *const fault_layer_names[NUM_FAULT_LAYERS] = {
	[FAULT_LAYER_INVALID] = "?", [FAULT_VERBS] = "verbs",     [FAULT_LINK] = "link",
	[FAULT_WIRE] = "wire",       [FAULT_PROCESS] = "process",
};

const char *const fault_blast_names[NUM_FAULT_BLASTS] = {
	[FAULT_BLAST_INVALID] = "?",
	[FAULT_BLAST_PAIR] = "pair",
	[FAULT_BLAST_DEVICE] = "device",
	[FAULT_BLAST_LINK] = "link",
};

const struct fault_ops *fault_find(const char *name)
{
	for (size_t i = 0; name && fault_table[i]; i++)
		if (strcmp(fault_table[i]->name, name) == 0)
			return fault_table[i];
	return NULL;
}
