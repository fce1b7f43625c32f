/* SPDX-License-Identifier: MIT */
#include "template.h"

#define CONNECT "  - connect:\n"
#define CLEAR "  - clear:   trouble\n"
/* Attributes of the new life that a machine with much to do keeps to as well. */
#define BACK(path)                                                                                                                 \
	"  # Brings the pair back and proves it with traffic.\n"                                                                   \
	"  - recover: { path: " path ", qp: { timeout: 17, retry_cnt: 6 } }\n"
#define TRAFFIC "  - traffic: { ops: [SEND, WRITE, READ], messages: 32 }\n"
#define PATIENT "{ type: RC, timeout: 17, retry_cnt: 6 }"
#define HASTY "{ type: RC, timeout: 14, retry_cnt: 2 }"
#define ALONE "# No second pair looks on: what is done here reaches the whole device or link.\nbystander: none\n"
#define WIRED "# The process between the ends sees every packet.\nrequires: [wire]\n"

#define SILENCE(op)                                                                                                                \
	"  - post:    { at: a, op: " op ", size: 4KiB, as: w }\n"                                                                  \
	"  - expect:  { of: w, wc: RETRY_EXC_ERR, payload: absent }\n"                                                             \
	"  - expect:  { at: a, qp: ERR }\n"
#define NOBODY_TOLD "  - expect:  { at: b, qp: RTS, recv_wc: none, event: none, for: 50ms }\n"
#define DENIED                                                                                                                     \
	"  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"                                                                   \
	"  - expect:  { of: w, wc: REM_ACCESS_ERR, payload: absent }\n"                                                            \
	"  - expect:  { at: a, qp: ERR }\n"                                                                                        \
	"  - expect:  { at: b, qp: ERR, event: QP_ACCESS_ERR }\n"
#define DELIVERED                                                                                                                  \
	"  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"                                                                   \
	"  - expect:  { of: w, wc: SUCCESS, payload: intact }\n"

const struct scene scene_table[] = {
	{
		.name = "access_revoked",
		.title = "A WRITE into memory that lacks the right is a remote access error",
		.qp = PATIENT,
		.before = CONNECT,
		.args = "of=mr right=REMOTE_WRITE",
		.after = DENIED CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "address_moved",
		.title = "An address that moves to another GID index is told, and a new connection uses the new index",
		.top = ALONE,
		.qp = HASTY,
		.before = CONNECT,
		.after = "  - expect:  { at: dev.b, event: GID_CHANGE }\n" CLEAR BACK("recreate") TRAFFIC,
	},
	{
		.name = "address_removed",
		.title = "An address that goes away is told, and the pair comes back once it is there again",
		.top = ALONE,
		.qp = PATIENT,
		.before = CONNECT,
		.after = "  - expect:  { at: dev.b, event: GID_CHANGE }\n" CLEAR BACK("recreate") TRAFFIC,
	},
	{
		.name = "agent_frozen",
		.title = "A process that stands still takes what its receives hold and no more, and is replaced by another one",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6, rnr_retry: 1, max_recv_wr: 4 }",
		.before = CONNECT,
		.after = "  - post:    { at: a, op: SEND, size: 64, count: b.max_recv_wr + 2, as: unread }\n"
			 "  - expect:  { of: unread, wc: [SUCCESS x b.max_recv_wr, RNR_RETRY_EXC_ERR, WR_FLUSH_ERR] }\n"
			 "  # A new process in its place; `clear: trouble` would let the old one run on.\n"
			 "  - recover: { path: restart, qp: { rnr_retry: 6 } }\n" TRAFFIC,
	},
	{
		.name = "agent_killed",
		.title = "A peer that dies is silence to who sends to it, and a new process brings the pair back",
		.qp = HASTY,
		.before = CONNECT,
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"
			 "  - expect:  { of: w, wc: RETRY_EXC_ERR }\n"
			 "  - expect:  { at: a, qp: ERR }\n" BACK("restart") TRAFFIC,
	},
	{
		.name = "agent_restarted",
		.title = "A process that was started anew without a word is silence to its peer",
		.qp = HASTY,
		.before = CONNECT,
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"
			 "  - expect:  { of: w, wc: RETRY_EXC_ERR }\n"
			 "  - expect:  { at: a, qp: ERR }\n" BACK("recreate") TRAFFIC,
	},
	{
		.name = "ah_destroyed",
		.title = "A handle that is destroyed under waiting sends is an error of those sends, or none",
		.top = "requires: [ud]\nah: { far: { at: a, to: b } }\n",
		.qp = "{ type: UD }",
		.before = CONNECT "  - modify:  { at: a, to: SQD }\n"
				  "  - post:    { at: a, op: SEND, size: 200, count: 2, ah: far, as: waiting }\n",
		.args = "at=a ah=far",
		.after = "  - modify:  { at: a, to: RTS }\n"
			 "  - expect:\n"
			 "      any:\n"
			 "        - { of: waiting, wc: SUCCESS }\n"
			 "        - { of: waiting, wc: [LOC_QP_OP_ERR, WR_FLUSH_ERR x rest] }\n"
			 "  - expect:  { at: b, qp: RTS, event: none }\n" CLEAR "  - recover: { path: reset }\n",
	},
	{
		.name = "connection_left",
		.title = "When one end disconnects both learn of it, and what is posted then is flushed",
		.top = "requires: [cm]\n",
		.qp = PATIENT,
		.before = "  - connect: { by: cm, from: a }\n",
		.after = "  - expect:  { at: \"*\", cm: DISCONNECTED, qp: ERR }\n"
			 "  - allow:   { at: \"*\", recv_wc: WR_FLUSH_ERR }\n"
			 "  - post:    { at: a, op: SEND, size: 64, as: late }\n"
			 "  - expect:  { of: late, wc: WR_FLUSH_ERR, payload: absent }\n"
			 "  - recover: { path: cm }\n" TRAFFIC,
	},
	{
		.name = "connection_refused",
		.title = "Who asks for a connection and is refused learns why, and the same ends connect later",
		.top = "requires: [cm]\n",
		.qp = PATIENT,
		.after = "  - connect: { by: cm, from: a, refused: CONSUMER_DEFINED }     # `how: nobody`: INVALID_SERVICE_ID\n"
			 "  - expect:  { at: a, cm: REJECTED }\n"
			 "  - expect:  { at: \"*\", qp: INIT }\n" CLEAR "  - connect: { by: cm, from: a }\n" TRAFFIC,
	},
	{
		.name = "controller_killed",
		.title = "An agent whose controller is gone lets go of everything and leaves, and its peer hears silence",
		.qp = HASTY,
		.before = CONNECT,
		.after = "  - post:    { at: a, op: SEND, size: 4KiB, as: w }\n"
			 "  - expect:  { of: w, wc: RETRY_EXC_ERR }\n"
			 "  - expect:  { at: a, qp: ERR }\n" BACK("restart") TRAFFIC,
	},
	{
		.name = "cq_swapped",
		.title = "A QP made with its CQs in each other's place works, and completions come where nobody looks",
		.top = "cq:\n  rx: { at: b, depth: 128, poll: manual, used_by: [b.recv] }\n",
		.qp = PATIENT,
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 64, count: 4, as: there }\n"
			 "  - expect:  { of: there, wc: SUCCESS, payload: intact }\n"
			 "  - expect:  { at: b, recv_wc: SUCCESS x 4 }         # though rx was never polled\n" CLEAR BACK(
				 "recreate") TRAFFIC,
	},
	{
		.name = "cq_too_small",
		.title = "A send CQ that overflows raises CQ_ERR and takes its QP down",
		.top = "cq:\n  tx: { at: a, depth: 256, poll: manual, used_by: [a.send] }     # nobody polls it\n",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6, max_send_wr: 256 }",
		.args = "at=a queue=send depth=15",
		.connects = true,
		.after = "  - post:    { at: a, op: WRITE, size: 64, count: tx.cqe + 16, as: flood }\n"
			 "  - expect:  { at: a, event: [CQ_ERR, QP_FATAL], qp: ERR }\n"
			 "  - expect:  { at: a, ledger: { send: open } }      # completions are lost: no more is owed\n" CLEAR
			 "  - recover: { path: recreate, replace: [tx] }\n" TRAFFIC,
	},
	{
		.name = "device_recreated",
		.title = "After its device was taken away and made anew an end opens it again and comes back",
		.top = ALONE,
		.qp = HASTY,
		.before = CONNECT,
		.after = CLEAR BACK("reopen") TRAFFIC,
	},
	{
		.name = "events_unacknowledged",
		.title = "A completion queue with an unacknowledged event is not destroyed before that is acknowledged",
		.top = "cq:\n  rx: { at: b, depth: 64, used_by: [b.recv] }\n",
		.qp = PATIENT,
		.before = CONNECT,
		.after =
			"  - post:    { at: a, op: SEND, size: 64, as: one }\n"
			"  - expect:  { of: one, wc: SUCCESS, payload: intact }\n"
			"  - expect:  { at: b, recv_wc: SUCCESS }\n"
			"  - destroy: { qp: [a, b] }\n"
			"  - destroy: { cq: rx, within: 300ms }              # waits, which is recorded; the agent answers all the "
			"same\n" CLEAR "  - create:  { cq: rx }\n" CONNECT TRAFFIC,
	},
	{
		.name = "kernel_panic",
		.title = "A kernel that panics is the finding of the case that ran",
		.qp = PATIENT,
		.before = CONNECT,
		.after =
			"  # Nothing: such a case fails with the tail of the kernel's console, and the rest of the run has a fresh "
			"boot.\n" TRAFFIC,
	},
	{
		.name = "late_receive",
		.title = "With rnr_retry 7 a SEND waits for a receive that comes late, and then it is delivered",
		.qp = "{ type: RC, timeout: 19, retry_cnt: 5, rnr_retry: 7, min_rnr_timer: 14 }",
		.args = "by=60ms",
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 256, as: patient }\n"
			 "  - expect:  { of: patient, wc: SUCCESS, payload: intact }\n"
			 "  - expect:  { at: b, recv_wc: SUCCESS, qp: RTS }\n" CLEAR TRAFFIC,
	},
	{
		.name = "link_down",
		.title = "What is sent while the link is away is lost, and the sender gives up; both its end and its return are "
			 "told",
		.top = WIRED ALONE,
		.qp = HASTY,
		.before = CONNECT,
		.after = "  - expect:  { at: dev.b, event: PORT_ERR }\n" SILENCE("WRITE") CLEAR
		"  - expect:  { at: dev.b, event: PORT_ACTIVE }\n" BACK("reset") TRAFFIC,
	},
	{
		.name = "memory_replaced",
		.title = "Where other pages lie under a region, what is written through it is acknowledged and not seen",
		.top = ALONE,
		.qp = PATIENT,
		.before = CONNECT,
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: unseen }\n"
			 "  - expect:  { of: unseen, wc: SUCCESS, payload: absent }\n"
			 "  - expect:  { at: [a, b], qp: RTS, event: none }\n"
			 "  - recover: { path: reset, replace: [p.b.mem] }\n" DELIVERED,
	},
	{
		.name = "memory_rewritten",
		.title = "A buffer that its owner writes to while it is read arrives torn, and nobody is told",
		.top = WIRED ALONE,
		.qp = "{ type: RC, path_mtu: 1024, timeout: 16, retry_cnt: 5 }",
		.before = CONNECT
		"  # The second half of the answer is lost, and what asks for it again is held: the moment to write is exact.\n"
		"  - fault:   { wire: { match: { from: b, class: read_response, psn: \"2..\" }, action: drop, times: 2 }, as: "
		"lost }\n"
		"  - fault:   { wire: { match: { from: a, class: request, psn: 2 }, action: hold }, as: held }\n"
		"  - post:    { at: a, op: READ, size: 4KiB, as: r }\n"
		"  - expect:  { fault: held, hits: \">= 1\" }\n",
		.after = "  - clear:   [held, lost]\n"
			 "  - expect:  { of: r, wc: SUCCESS, payload: torn }\n"
			 "  - expect:  { at: [a, b], qp: RTS, event: none }\n" TRAFFIC,
	},
	{
		.name = "missing_receive",
		.title = "A SEND that finds no receive fails when its RNR retries are spent, and the receiver notices nothing",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6, rnr_retry: 3, min_rnr_timer: 20 }",
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 64, count: 3, as: unheard }\n"
			 "  - expect:  { of: unheard, wc: [RNR_RETRY_EXC_ERR, WR_FLUSH_ERR x rest], payload: absent }\n"
			 "  - expect:  { at: a, qp: ERR }\n" NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "mr_deregistered",
		.title = "A WRITE into a region that is no longer registered is a remote access error",
		.qp = PATIENT,
		.before = CONNECT,
		.after = DENIED CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "mr_shrunk",
		.title = "A region that is registered anew and shorter gives what is left of it, and no more",
		.top = "mr:\n  pool: { at: b, size: 16KiB, access: [LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ], used_by: [b] }\n",
		.qp = PATIENT,
		.before = CONNECT,
		.args = "mr=pool size=8KiB",
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, to: pool + 4096, as: left }\n"
			 "  - expect:  { of: left, wc: SUCCESS, payload: intact }\n"
			 "  - post:    { at: a, op: WRITE, size: 4KiB, to: pool + 4097, as: beyond }\n"
			 "  - expect:  { of: beyond, wc: REM_ACCESS_ERR }\n"
			 "  - expect:  { at: a, qp: ERR }\n"
			 "  - expect:  { at: b, qp: ERR, event: QP_ACCESS_ERR }\n" CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "mtu_mismatch",
		.title = "An end that was told a smaller path_mtu refuses longer packets",
		.qp = "{ type: RC, path_mtu: 1024, timeout: 17, retry_cnt: 6 }",
		.args = "mtu=512",
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 512, as: fits }\n"
			 "  - expect:  { of: fits, wc: SUCCESS, payload: intact }\n"
			 "  - post:    { at: a, op: SEND, size: 1024, as: too_long }\n"
			 "  - expect:  { of: too_long, wc: REM_INV_REQ_ERR }\n"
			 "  - expect:  { at: b, recv_wc: [SUCCESS, LOC_LEN_ERR | REM_INV_REQ_ERR, WR_FLUSH_ERR x rest], within: 1s "
			 "}\n"
			 "  - expect:  { at: [a, b], qp: ERR, within: 1s }\n" CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "mtu_shrunk",
		.title = "Where a link carries shorter frames than path_mtu says, long packets vanish and short ones arrive",
		.top = WIRED "link: { mtu: 4200 }\n",
		.qp = "{ type: RC, path_mtu: 2048, timeout: 14, retry_cnt: 3 }",
		.before = CONNECT,
		.args = "mtu=1500",
		.after = "  - post:    { at: a, op: SEND, size: 64, count: 4, as: short }\n"
			 "  - expect:  { of: short, wc: SUCCESS, payload: intact }\n" SILENCE("SEND") CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "neighbour",
		.title = "Packets to a link address that nobody has are lost, and the requester gives up after its retries",
		.qp = HASTY,
		.before = CONNECT,
		.args = "at=a",
		.after = SILENCE("WRITE") NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "netem",
		.title = "Where every packet of an end is lost its retries are spent, and the peer notices nothing",
		.qp = HASTY,
		.before = CONNECT,
		.args = "at=a loss=\"100%\"",
		.after = SILENCE("WRITE") NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "peer_held",
		.title = "A peer that becomes ready before the retries are spent costs retransmissions and nothing else",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6 }",
		.args = "in=INIT",
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 64, as: early }\n"
			 "  - wait:    100ms\n" CLEAR "  - expect:  { of: early, wc: SUCCESS, payload: intact }\n"
			 "  - expect:  { at: [a, b], qp: RTS }\n" TRAFFIC,
	},
	{
		.name = "pkey_index",
		.title = "A P_Key index that the port's table does not have is refused",
		.qp = PATIENT,
		.args = "at=b index=1",
		.after = "  # The table of a RoCE port has one entry.\n"
			 "  - connect: { returns: EINVAL }\n" CLEAR "  - recover: { path: recreate }\n",
	},
	{
		.name = "psn_mismatch",
		.title = "A requester whose PSN is ahead of what its peer expects is not heard, and its retries are spent",
		.qp = HASTY,
		.args = "at=a ahead=16",
		.connects = true,
		.after = "  - expect:  { at: [a, b], qp: RTS }              # nothing local gives it away\n" SILENCE("SEND")
			NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "qp_destroyed",
		.title = "A peer whose QP is gone is silence; only a new QP brings the pair back",
		.qp = HASTY,
		.before = CONNECT,
		.after = SILENCE("WRITE") CLEAR BACK("recreate") TRAFFIC,
	},
	{
		.name = "qp_error",
		.title = "What is posted to a QP in the error state is flushed, and its receives are too",
		.qp = PATIENT,
		.before = CONNECT,
		.args = "at=a",
		.after = "  - post:    { at: a, op: SEND, size: 64, count: 2, as: late }\n"
			 "  - expect:  { of: late, wc: WR_FLUSH_ERR, payload: absent }\n"
			 "  - expect:  { at: a, recv_wc: WR_FLUSH_ERR x rest }\n" CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "qp_reset",
		.title = "A peer that reset its QP alone is silence to the other end; both have to start again",
		.qp = HASTY,
		.before = CONNECT,
		.after = SILENCE("SEND") "  - expect:  { at: b, qp: RESET, event: none }\n" CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "rd_atomic_mismatch",
		.title = "More READs than the peer answers at a time are served if it has the room, or are an invalid request",
		.top = "bystander: none\n",
		.qp = "{ type: RC, timeout: 18, retry_cnt: 6, a: { max_rd_atomic: 8 } }",
		.args = "max_dest_rd_atomic=1",
		.connects = true,
		.after = "  - allow:   { at: b, event: [QP_REQ_ERR, QP_ACCESS_ERR] }\n"
			 "  - post:    { at: a, op: READ, count: 8, as: r }\n"
			 "  - expect:\n"
			 "      any:\n"
			 "        - { of: r, wc: SUCCESS x 8, payload: intact }\n"
			 "        - { of: r, wc: [SUCCESS x 0..7, REM_INV_REQ_ERR, WR_FLUSH_ERR x rest] }\n" CLEAR
			 "  - recover: { path: recreate }\n",
	},
	{
		.name = "srq_dry",
		.title = "A SEND that finds its SRQ empty fails when its RNR retries are spent",
		.top = "requires: [srq]\nsrq:\n  s: { at: b, depth: 16, used_by: [b] }\n",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6, rnr_retry: 3, min_rnr_timer: 20 }",
		.args = "srq=s",
		.connects = true,
		.after = "  - post:    { at: a, op: SEND, size: 256, as: unheard }\n"
			 "  - expect:  { of: unheard, wc: RNR_RETRY_EXC_ERR, payload: absent }\n"
			 "  - expect:  { at: a, qp: ERR }\n" NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "stale_peer",
		.title = "Connected to the QPN of a former life, an end looks healthy and reaches nobody",
		.qp = HASTY,
		.before = CONNECT "  - remember: { end: b, as: former }\n"
				  "  - destroy:  { qp: [a, b] }\n"
				  "  - create:   { qp: [a, b] }\n",
		.args = "at=a use=former",
		.connects = true,
		.after = "  - expect:  { at: [a, b], qp: RTS }\n" SILENCE(
			"WRITE") "  - expect:  { at: b, qp: RTS, event: none, for: 50ms }\n" CLEAR BACK("recreate") TRAFFIC,
	},
	{
		.name = "wire_killed",
		.title = "When the way between them is dead the sender gives up, and both come back over another one",
		.top = WIRED,
		.qp = HASTY,
		.before = CONNECT,
		.after = SILENCE("WRITE") CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "wrong_gid",
		.title = "An end that was connected to a GID of nobody looks healthy and reaches nobody",
		.qp = HASTY,
		.args = "at=a",
		.connects = true,
		.after = "  - expect:  { at: [a, b], qp: RTS }\n" SILENCE("SEND") NOBODY_TOLD CLEAR BACK("recreate") TRAFFIC,
	},
	{ .name = NULL },
};

#define FOUR_PACKETS "{ type: RC, path_mtu: 1024, timeout: 17, retry_cnt: 6 }"
#define ONE_OF_FOUR "match={ from: a, class: request, psn: 1 } times=1"
#define SURVIVED                                                                                                                   \
	"  # Four packets, of which one is touched.\n" DELIVERED "  - expect:  { fault: trouble, hits: 1 }\n"                      \
	"  - expect:  { at: [a, b], qp: RTS, event: none }\n" CLEAR TRAFFIC

#define ACTION_SURVIVED(action_, title_, more)                                                                                     \
	{                                                                                                                          \
		.name = action_, .title = title_, .top = WIRED, .qp = FOUR_PACKETS, .before = CONNECT, .args = ONE_OF_FOUR more,   \
		.after = SURVIVED,                                                                                                 \
	}

const struct scene scene_actions[] = {
	{
		.name = "blackhole",
		.title = "Where everything is swallowed from one packet on the sender gives up, and its peer notices nothing",
		.top = WIRED,
		.qp = "{ type: RC, path_mtu: 1024, timeout: 14, retry_cnt: 2 }",
		.before = CONNECT,
		.args = "match={ from: a, pair: p, class: request, psn: 0 } ways=one",
		.after = SILENCE("WRITE") NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	ACTION_SURVIVED("corrupt", "A packet that arrives damaged is sent again, and the message is whole", ""),
	ACTION_SURVIVED("delay", "A packet that comes late costs time and nothing else", " by=5ms"),
	ACTION_SURVIVED("drop", "A packet that is lost is sent again, and the message is whole", ""),
	ACTION_SURVIVED("duplicate", "A packet that comes twice is executed once", ""),
	{
		.name = "forge",
		.title = "A NAK for an access error that nobody sent ends the request all the same",
		.top = WIRED,
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6 }",
		.before = CONNECT,
		.args = "match={ from: a, class: request, psn: 0 } times=1 forge={ kind: NAK_ACCESS, instead: true }",
		.after = "  - post:    { at: a, op: WRITE, size: 64, as: w }\n"
			 "  - expect:  { of: w, wc: REM_ACCESS_ERR, payload: absent }\n"
			 "  - expect:  { at: a, qp: ERR }\n" NOBODY_TOLD CLEAR BACK("reset") TRAFFIC,
	},
	{
		.name = "hold",
		.title = "A packet that is held for less than the retries take costs time and nothing else",
		.top = WIRED,
		.qp = FOUR_PACKETS,
		.before = CONNECT,
		.args = "match={ from: a, class: request, psn: 1 }",
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"
			 "  - expect:  { fault: trouble, hits: \">= 1\" }      # here it is held: an exact moment to do something "
			 "in\n"
			 "  - expect:  { of: w, wc: none, for: 20ms }\n" CLEAR
			 "  - expect:  { of: w, wc: SUCCESS, payload: intact }\n"
			 "  - expect:  { at: [a, b], qp: RTS, event: none }\n" TRAFFIC,
	},
	ACTION_SURVIVED("reorder", "A packet that another one overtakes is sent again, and the message is whole", ""),
	ACTION_SURVIVED("replay", "A packet that comes again later is executed once", " by=5ms"),
	ACTION_SURVIVED("rewrite", "A packet of another partition is dropped and sent again, and the message is whole",
			" rewrite={ pkey: 0x1234 }"),
	ACTION_SURVIVED("truncate", "A packet that was cut short is sent again, and the message is whole", " bytes=16 icrc=wrong"),
	{ .name = NULL },
};
