/* SPDX-License-Identifier: MIT */
#include "scenario_grammar.h"

#include <string.h>

#include "attr.h"
#include "packet.h"
#include "scenario_loader.h"
#include "units.h"

#define MAX_SIZE (1LL << 31)
#define MAX_TRAFFIC_SIZE (256LL << 20) /* as much as an agent may register in all */
#define MAX_COUNT (1LL << 20)
#define MAX_TIME ((int64_t)(3600 * NSEC_PER_SEC))

static const char *const bys[] = { "verbs", "cm", NULL };
static const char *const uptos[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "ERR", NULL };
static const char *const nones[] = { "none", NULL };
static const char *const fills[] = { "all", "none", NULL };
static const char *const polls[] = { "auto", "manual", NULL };
static const char *const arms[] = { "next", "solicited", NULL };
static const char *const apis[] = { "classic", "extended", NULL };
static const char *const wrongs[] = { "wrong", "old", NULL };
static const char *const addr_words[] = { "beyond", "before", "misaligned", "zero", "other", "own", NULL };
static const char *const qkeys[] = { "wrong", "own", NULL };
static const char *const qpns[] = { "wrong", NULL };
static const char *const payloads[] = { "intact", "absent", "partial", "stale", "torn", NULL };
static const char *const opens[] = { "open", NULL };
static const char *const paths[] = { "reset", "recreate", "cm", "sq", "sqd", "reopen", "restart", NULL };
static const char *const results[] = { "verified", "fails", NULL };
static const char *const classes[] = { "request", "ack", "nak", "rnr_nak", "read_response", "atomic_ack", "cnp", NULL };
static const char *const outer_words[] = {
#define OUTER_WORD(id, name, max, usual, help) name,
	PACKET_OUTER(OUTER_WORD) NULL
#undef OUTER_WORD
};
static const char *const mw_types[] = { "1", "2", NULL };

static const struct gkey link_keys[] = {
	{ "mtu", G_NUMBER, G_NO_REF, .min = 576, .max = 9600, .help = "MTU of the Ethernet link; 4200 carries an IB MTU of 4096" },
	{ "ipv6", G_BOOL, 0, .help = "the ends speak IPv6, from their link-local addresses" },
	{ .name = NULL },
};
static const struct gmap link_map = { .what = "`link`", .keys = link_keys };

static const struct gkey agent_keys[] = {
	{ "device", G_NAME, 0, .help = "the device it opens: `a` or `b` in the labs of one machine" },
	{ .name = NULL },
};
static const struct gmap agent_map = { .what = "an agent", .keys = agent_keys };

static const struct gkey pair_keys[] = {
	{ "ends", G_ENDS_OF, G_REQUIRED, .help = "the two agents, `[a, b]`" },
	{ "count", G_NUMBER, G_NO_REF, .min = 1, .max = GRAMMAR_MAX_PAIR_COUNT, .help = "so many QP pairs, named p[0], p[1]..." },
	{ "qp", G_ATTRS, G_AGENTS, .help = "attributes of this pair's QPs, over those of the file" },
	{ .name = NULL },
};
static const struct gmap pair_map = { .what = "a pair", .keys = pair_keys };

static const struct gkey cq_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "depth", G_NUMBER, G_NO_REF, .min = 1, .max = MAX_COUNT, .help = "entries asked for" },
	{ "poll", G_WORD, 0, .words = polls, .help = "`manual`: only `poll`, `traffic` and `recover` take from it" },
	{ "api", G_WORD, 0, .words = apis, .help = "`extended`: ibv_start_poll and its kin" },
	{ "used_by", G_ENDS, G_QUEUES | G_SEVERAL,
	  .help = "the queues that complete into it: `[b.recv, p.a.send]`; an end means both" },
	{ .name = NULL },
};
static const struct gmap cq_map = { .what = "a CQ", .keys = cq_keys };

static const struct gkey srq_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "depth", G_NUMBER, G_NO_REF, .min = 1, .max = MAX_COUNT, .help = "receives it can hold" },
	{ "max_sge", G_NUMBER, G_NO_REF, .min = 0, .max = 1024, .help = "segments per receive" },
	{ "limit", G_NUMBER, G_NO_REF, .min = 0, .max = MAX_COUNT,
	  .help = "below so many receives it raises SRQ_LIMIT_REACHED once" },
	{ "fill", G_WORD, 0, .words = fills, .help = "`all` (default): filled at the first connect; `none`: by `post_recv` only" },
	{ "size", G_SIZE, G_NO_REF, .min = 1, .max = MAX_SIZE, .help = "bytes per receive" },
	{ "pd", G_OBJECT, G_OBJ_PD, .help = "its protection domain" },
	{ "used_by", G_ENDS, G_SEVERAL, .help = "the QPs that receive from it" },
	{ .name = NULL },
};
static const struct gmap srq_map = { .what = "an SRQ", .keys = srq_keys };

static const struct gkey mr_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "size", G_SIZE, G_NO_REF, .min = 1, .max = MAX_SIZE, .help = "bytes" },
	{ "access", G_WORDS, 0, .names = &names_access, .help = "rights" },
	{ "pd", G_OBJECT, G_OBJ_PD, .help = "its protection domain" },
	{ "used_by", G_ENDS, G_SEVERAL, .help = "the QPs whose peers are told its key" },
	{ .name = NULL },
};
static const struct gmap mr_map = { .what = "an MR", .keys = mr_keys };

static const struct gkey pd_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "used_by", G_ENDS, G_SEVERAL, .help = "the QPs that are made in it" },
	{ .name = NULL },
};
static const struct gmap pd_map = { .what = "a PD", .keys = pd_keys };

static const struct gkey mw_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "type", G_WORD, G_REQUIRED, .words = mw_types, .help = "1 or 2" },
	{ "pd", G_OBJECT, G_OBJ_PD, .help = "its protection domain; default that of the region" },
	{ "over", G_OBJECT, G_REQUIRED | G_OBJ_MR, .help = "the region it opens a window into" },
	{ "offset", G_SIZE, 0, .max = MAX_SIZE, .help = "where in the region it begins" },
	{ "size", G_SIZE, 0, .max = MAX_SIZE, .help = "bytes" },
	{ "access", G_WORDS, 0, .names = &names_access, .help = "rights" },
	{ .name = NULL },
};
static const struct gmap mw_map = { .what = "an MW", .keys = mw_keys };

static const struct gkey ah_keys[] = {
	{ "at", G_AGENT, G_REQUIRED, .help = "the agent that holds it" },
	{ "to", G_AGENT, 0, .help = "the agent it leads to" },
	{ "group", G_TEXT, 0, .help = "the multicast group it leads to, a GID: `\"ff02::1\"`" },
	{ "pd", G_OBJECT, G_OBJ_PD, .help = "its protection domain" },
	{ "gid_index", G_NUMBER, G_NO_REF, .max = 255, .help = "index into the GID table" },
	{ "hop_limit", G_NUMBER, G_NO_REF, .max = 255, .help = "hop limit or TTL" },
	{ "traffic_class", G_NUMBER, G_NO_REF, .max = 255, .help = "traffic class or TOS byte" },
	{ "sl", G_NUMBER, G_NO_REF, .max = 15, .help = "service level" },
	{ "flow_label", G_NUMBER, G_NO_REF, .max = 0xfffff, .help = "flow label" },
	{ .name = NULL },
};
static const struct gmap ah_map = { .what = "an AH", .keys = ah_keys, .check = check_ah };

/* In the order in which they are read: a step may only name what came before it here. */
static const struct gkey file_keys[] = {
	{ "qpdrill", G_VERSION, G_REQUIRED, .help = "version of the language, 1; the first key" },
	{ "title", G_TITLE, G_REQUIRED, .help = "one sentence: what the scenario shows" },
	{ "refs", G_REFS, 0, .help = "where it comes from: `IBTA C9-130`, `IBTA 9.7.5.2.8`, an issue, a field report" },
	{ "tags", G_NAMES, 0, .help = "free words to choose scenarios by" },
	{ "requires", G_REQUIRES, 0, .help = "capabilities; a missing one makes a skip with the reason" },
	{ "exclusive", G_BOOL, 0, .help = "nothing else runs beside it" },
	{ "bystander", G_WORD, 0, .words = nones, .help = "`none`: no second pair looks on" },
	{ "link", G_MAP, 0, .map = &link_map, .help = "the link between the devices" },
	{ "sweep", G_SWEEP, 0,
	  .help = "a map of lists: every combination; a list of maps: one case per row; `transition`: moves between states" },
	{ "agents", G_MAP_OF, 0, .map = &agent_map, .help = "the processes; default `a` on device a and `b` on device b" },
	{ "pairs", G_MAP_OF, 0, .map = &pair_map, .help = "pairs of QPs; default `p: { ends: [a, b] }`" },
	{ "qp", G_ATTRS, G_AGENTS, .help = "attributes of all QPs; an agent's name holds that side's own values" },
	{ "pd", G_MAP_OF, 0, .map = &pd_map, .help = "protection domains that are shared or odd" },
	{ "srq", G_MAP_OF, 0, .map = &srq_map, .help = "shared receive queues" },
	{ "cq", G_MAP_OF, 0, .map = &cq_map, .help = "completion queues that are shared or odd" },
	{ "mr", G_MAP_OF, 0, .map = &mr_map, .help = "memory regions that are shared or odd" },
	{ "mw", G_MAP_OF, 0, .map = &mw_map, .help = "memory windows" },
	{ "ah", G_MAP_OF, 0, .map = &ah_map, .help = "address handles" },
	{ "steps", G_STEPS, G_REQUIRED, .help = "what happens, in order" },
	{ .name = NULL },
};
const struct gmap grammar_file = { .what = "a scenario", .keys = file_keys };

#define AS                                                                                                                         \
	{                                                                                                                          \
		"as", G_NAME, 0, .help = "a name for later steps"                                                                  \
	}
#define WITHIN                                                                                                                     \
	{                                                                                                                          \
		"within", G_DURATION, 0, .max = MAX_TIME, .help = "a deadline other than the computed one"                         \
	}
#define RETURNS                                                                                                                    \
	{                                                                                                                          \
		"returns", G_ERRNOS, 0, .names = &names_errno, .help = "what the verb returns, `EINVAL | ENOMEM`; default 0"       \
	}

static const struct gkey step_keys[] = { AS, WITHIN, { .name = NULL } };
static const struct gkey verb_keys[] = { AS, WITHIN, RETURNS, { .name = NULL } };

static const struct gkey connect_keys[] = {
	{ "pair", G_PAIRS, 0, .help = "which pairs; default all" },
	{ "by", G_WORD, 0, .words = bys, .help = "`verbs` (default) or `cm`" },
	{ "from", G_AGENT, 0, .help = "cm: the active side" },
	{ "upto", G_WORD, 0, .words = uptos, .help = "so far; default RTS. SQD and ERR are reached from there" },
	{ "refused", G_WORD, 0, .names = &names_cm_reject, .help = "cm: the reason with which it has to be refused" },
	{ .name = NULL },
};

static const struct gkey object_keys[] = {
	{ "qp", G_ENDS, 0, .help = "QPs" },
	{ "cq", G_OBJECTS, G_OBJ_CQ, .help = "CQs" },
	{ "srq", G_OBJECTS, G_OBJ_SRQ, .help = "SRQs" },
	{ "mr", G_OBJECTS, G_OBJ_MR, .help = "MRs" },
	{ "mw", G_OBJECTS, G_OBJ_MW, .help = "MWs" },
	{ "ah", G_OBJECTS, G_OBJ_AH, .help = "AHs" },
	{ "pd", G_OBJECTS, G_OBJ_PD, .help = "PDs" },
	{ .name = NULL },
};

static const struct gkey modify_keys[] = {
	{ "at", G_ENDS, G_REQUIRED | G_THINGS, .help = "ends, `srq.NAME` or `cq.NAME`" },
	{ "to", G_WORD, 0, .names = &names_state, .help = "the state to move to" },
	{ "set", G_ATTRS, G_UNBOUNDED, .help = "attributes other than the plan's; may be out of range" },
	{ "leave_out", G_WORDS, 0, .names = &names_attr_mask, .help = "mask bits not to give though the transition needs them" },
	{ "add", G_WORDS, 0, .names = &names_attr_mask, .help = "mask bits to give though the transition has none" },
	{ "mask", G_WORD, 0, .names = &names_mask_trial,
	  .help = "`exact`: with what the move requires; `missing`, `forbidden`: once for each bit, without one, with one too "
		  "many" },
	{ .name = NULL },
};

#define POST_BODY                                                                                                                  \
	{ "size", G_SIZE, 0, .max = MAX_SIZE, .help = "bytes per message; default 64" },                                           \
		{ "count", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "so many requests; default 1" },                       \
		{ "to", G_PLACE, 0, .help = "the MR or MW of the peer to write to or read from, `pool + 4096`" },                  \
		{ "sge", G_NUMBER, 0, .max = MAX_COUNT, .help = "segments that the message is cut into; default 1" },              \
		{ "rkey", G_WORD, 0, .words = wrongs, .help = "`wrong`, or `old`: that of the MR's former life" },                 \
		{ "lkey", G_WORD, 0, .words = wrongs, .help = "the same for the local key" },                                      \
		{ "addr", G_WORD, 0, .words = addr_words,                                                                          \
		  .help = "`beyond` the MR's end or `before` it by one byte, `misaligned` by one; `zero`; that of an `other` MR "  \
			  "of the peer, "                                                                                          \
			  "or of the poster's `own`" },                                                                            \
		{ "signaled", G_BOOL, 0, .help = "default true" }, { "inline", G_BOOL, 0, .help = "data in the request" },         \
		{ "fence", G_BOOL, 0, .help = "wait for earlier READs and atomics" },                                              \
		{ "solicited", G_BOOL, 0, .help = "ask for a solicited event" },                                                   \
		{ "imm", G_NUMBER, G_NO_REF, .max = 0xffffffffLL, .help = "immediate data" },                                      \
		{ "compare", G_NUMBER, G_NO_REF | G_HEX, .help = "CMP_AND_SWP: what has to be there" },                            \
		{ "swap", G_NUMBER, G_NO_REF | G_HEX, .help = "CMP_AND_SWP: what is put there" },                                  \
		{ "add", G_NUMBER, G_NO_REF | G_HEX, .help = "FETCH_AND_ADD: what is added" },                                     \
		{ "mw", G_OBJECT, G_OBJ_MW, .help = "BIND_MW, LOCAL_INV, SEND_WITH_INV: the window" },                             \
		{ "ah", G_OBJECT, G_OBJ_AH, .help = "UD: the address handle" },                                                    \
		{ "qkey", G_WORD, 0, .words = qkeys, .help = "UD: `wrong`, or `own`: the high bit set, which means its QP's" },    \
		{ "srq", G_OBJECT, G_OBJ_SRQ, .help = "XRC: the SRQ of the peer that it is for; default its first" },              \
		{ "srqn", G_WORD, 0, .words = qpns, .help = "XRC: `wrong`: an SRQ number that is nobody's" },                      \
	{                                                                                                                          \
		"qpn", G_WORD, 0, .words = qpns, .help = "UD: `wrong`: a QP number that is nobody's"                               \
	}

static const struct gkey member_keys[] = {
	{ "op", G_WORD, 0, .names = &names_op, .help = "the operation; default that of the post" },
	POST_BODY,
	{ .name = NULL },
};
static const struct gmap member_map = { .what = "a member of `chain`", .keys = member_keys };

static const struct gkey post_keys[] = {
	{ "at", G_ENDS, G_REQUIRED, .help = "the ends that post" },
	{ "op", G_WORD, 0, .names = &names_op, .help = "the operation" },
	POST_BODY,
	{ "replay", G_LABEL, G_OF_POST, .help = "the same bytes to the same place as that post" },
	{ "chain", G_CHAIN, 0, .map = &member_map,
	  .help = "true: one list of `count` requests; or its members, `[ {...}, {...} ]`" },
	{ "bad_wr", G_NUMBER, G_NO_REF, .max = MAX_COUNT, .help = "beside `returns`: index of the request that is refused" },
	{ .name = NULL },
};

static const struct gkey recv_member_keys[] = {
	{ "size", G_SIZE, 0, .max = MAX_SIZE, .help = "bytes" },
	{ "sge", G_NUMBER, 0, .max = MAX_COUNT, .help = "segments" },
	{ "lkey", G_WORD, 0, .words = wrongs, .help = "`wrong` or `old`" },
	{ .name = NULL },
};
static const struct gmap recv_member_map = { .what = "a member of `chain`", .keys = recv_member_keys };

static const struct gkey post_recv_keys[] = {
	{ "at", G_ENDS, G_REQUIRED | G_THINGS, .help = "the ends that post, or `srq.NAME`" },
	{ "size", G_SIZE, 0, .max = MAX_SIZE, .help = "bytes per receive; default the longest message of the file" },
	{ "count", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "so many receives; default 1" },
	{ "sge", G_NUMBER, 0, .max = MAX_COUNT, .help = "segments; default 1" },
	{ "lkey", G_WORD, 0, .words = wrongs, .help = "`wrong` or `old`" },
	{ "chain", G_CHAIN, 0, .map = &recv_member_map, .help = "true: one list; or its members" },
	{ "bad_wr", G_NUMBER, G_NO_REF, .max = MAX_COUNT, .help = "beside `returns`: index of the receive that is refused" },
	{ .name = NULL },
};

static const struct gkey group_keys[] = {
	{ "at", G_ENDS, G_REQUIRED, .help = "UD ends" },
	{ "group", G_TEXT, G_REQUIRED, .help = "the multicast group, a GID: `\"ff02::1\"`" },
	{ .name = NULL },
};

static const struct gkey poll_keys[] = {
	{ "cq", G_OBJECT, G_REQUIRED | G_OBJ_CQ, .help = "a CQ with `poll: manual`" },
	{ "max", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "at most so many completions; default all" },
	{ "arm", G_WORD, 0, .words = arms, .help = "asks for an event, of the next completion or of the next solicited one" },
	{ "wait", G_DURATION, 0, .max = MAX_TIME, .help = "for so long events are waited for" },
	{ "events", G_NUMBER, G_NO_REF, .max = MAX_COUNT, .help = "beside `wait`: so many since the CQ was last armed; default 1" },
	{ "ack", G_BOOL, 0, .help = "alone: acknowledges; `false` beside `wait`: the events are not acknowledged" },
	{ .name = NULL },
};

static const char *const traffic_ops[] = { "SEND", "WRITE", "READ", NULL };

static const struct gkey traffic_keys[] = {
	{ "stop", G_LABEL, G_OF_TRAFFIC, .help = "ends the traffic of that name" },
	{ "pair", G_PAIRS, 0, .help = "which pairs; default all" },
	{ "ops", G_WORDS, 0, .words = traffic_ops, .help = "operations, mixed" },
	{ "size", G_SIZE, 0, .min = 1, .max = MAX_TRAFFIC_SIZE, .help = "bytes per message" },
	{ "depth", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "messages under way per direction" },
	{ "messages", G_NUMBER, 0, .min = 1, .max = 1LL << 32,
	  .help = "per direction and operation list; without it: until stopped" },
	{ "to", G_OBJECT, G_OBJ_MR, .help = "an MR of the file instead of memory of its own" },
	{ "lossy", G_BOOL, 0,
	  .help = "UC and UD: messages may be lost, doubled and reordered, which is counted; a damaged one is still an error" },
	{ .name = NULL },
};

static const struct gkey remember_keys[] = {
	{ "end", G_END, 0, .help = "the end whose QPN, PSN, GID and keys are kept" },
	{ "mr", G_OBJECT, G_OBJ_MR, .help = "instead: the MR whose key alone is kept" },
	{ .name = NULL },
};

static const struct gkey exchange_keys[] = {
	{ "pair", G_PAIRS, 0, .help = "which pairs; default all" },
	{ "mr", G_OBJECT, G_OBJ_MR, .help = "only this region's key" },
	{ .name = NULL },
};

const struct gkey grammar_match[] = {
	{ "from", G_ENDS, G_SEVERAL | G_LIVES, .help = "the end that sent it, or several" },
	{ "pair", G_PAIRS, 0, .help = "packets of these pairs" },
	{ "class", G_SOME, 0, .words = classes, .help = "kind of packet; one or a list" },
	{ "opcode", G_SOME, 0, .words = packet_opcode_names,
	  .help = "IBV_OPCODE_ name without prefix, RC_SEND_ONLY; one or a list" },
	{ "syndrome", G_SOME, G_NO_REF, .words = packet_syndrome_names, .max = 255,
	  .help = "what its AETH says: `NAK_PSN`, `RNR_NAK`, a number, or a list of these" },
	{ "size", G_RANGE, 0, .max = MAX_SIZE, .help = "bytes of payload" },
	{ "psn", G_RANGE, 0, .max = 0xffffff, .help = "relative to the requester's first PSN; `2..`" },
	{ "nth", G_RANGE, 0, .min = 1, .max = MAX_COUNT, .help = "the n-th that matches, from 1; `2..5`" },
	{ "transmission", G_RANGE, 0, .min = 1, .max = MAX_COUNT, .help = "the n-th time that this PSN is sent, from 1" },
	{ "every", G_NUMBER, G_NO_REF, .min = 1, .max = MAX_COUNT, .help = "each n-th" },
#define OUTER_KEY(id, name, top, usual, text) { name, G_RANGE, 0, .max = (top), .help = "`packets` of an `expect`: " text },
	PACKET_OUTER(OUTER_KEY)
#undef OUTER_KEY
		{ .name = NULL },
};
static const struct gmap match_map = { .what = "a packet match", .keys = grammar_match };

static const struct gkey grh_keys[] = {
	{ "version", G_MEASURE, 0, .help = "4 or 6" },
	{ "traffic_class", G_MEASURE, 0, .help = "traffic class or TOS byte" },
	{ "hop_limit", G_MEASURE, 0, .help = "hop limit or TTL, as it arrived" },
	{ "flow_label", G_MEASURE, 0, .help = "flow label, of IPv6" },
	{ .name = NULL },
};
static const struct gmap grh_map = { .what = "`grh`", .keys = grh_keys, .check = check_not_empty };

static const struct gkey says_keys[] = {
	{ "imm", G_MEASURE, 0, .help = "the immediate data that came with it" },
	{ "bytes", G_MEASURE, 0, .help = "the length that it names: of what came, or was read" },
	{ "opcode", G_WORD, 0, .names = &names_wc_opcode, .help = "its opcode, `RECV_RDMA_WITH_IMM`" },
	{ "invalidated", G_OBJECT, G_OBJ_MW, .help = "the window whose key was invalidated" },
	{ .name = NULL },
};
static const struct gmap says_map = { .what = "`says`", .keys = says_keys, .check = check_not_empty };

static const struct gkey ledger_keys[] = {
	{ "in_flight", G_MEASURE, 0, .help = "requests without an end" },
	{ "accepted", G_MEASURE, 0, .help = "taken by a post" },
	{ "completed", G_MEASURE, 0, .help = "ended by a completion" },
	{ "retired", G_MEASURE, 0, .help = "unsignaled, and a later one has completed" },
	{ "discarded", G_MEASURE, 0, .help = "gone with a RESET, a destroy, a process or a device" },
	{ "in_srq", G_MEASURE, 0, .help = "not taken by any QP" },
	{ "send", G_WORD, 0, .words = opens, .help = "`open`: completions of this queue may be lost, nothing more is owed" },
	{ "recv", G_WORD, 0, .words = opens, .help = "the same for receives" },
	{ .name = NULL },
};
static const struct gmap ledger_map = { .what = "`ledger`", .keys = ledger_keys, .check = check_not_empty };

static const struct gkey phase_keys[] = {
	{ "symptom", G_COMPARE, G_TIME, .help = "from what broke it until the wire saw something of it" },
	{ "error", G_COMPARE, G_TIME, .help = "from what broke it until the first completion that is no SUCCESS" },
	{ "drained", G_COMPARE, G_TIME, .help = "from the beginning of the recovery until nothing was in flight" },
	{ "told", G_COMPARE, G_TIME, .help = "until the peer knew" },
	{ "rts", G_COMPARE, G_TIME, .help = "until both ends were in RTS again" },
	{ "good", G_COMPARE, G_TIME, .help = "until the first SUCCESS after that" },
	{ "verified", G_COMPARE, G_TIME, .help = "until traffic had gone both ways" },
	{ "full", G_COMPARE, G_TIME, .help = "until traffic was at 90 % of the rate of one like it before" },
	{ .name = NULL },
};
static const struct gmap phase_map = { .what = "`phase`", .keys = phase_keys, .check = check_not_empty };

static const struct gkey expect_keys[] = {
	{ "at", G_ENDS, G_QUEUES | G_LIVES | G_THINGS, .help = "ends" },
	{ "of", G_LABEL, G_OF_POST | G_OF_RECV | G_OF_TRAFFIC | G_OF_FAULT | G_OF_RECOVER,
	  .help = "a named post, traffic, fault or recovery" },
	{ "wc", G_WC, 0, .names = &names_status, .help = "completions of sends, in order" },
	{ "recv_wc", G_WC, 0, .names = &names_status, .help = "completions of receives, in order" },
	{ "says", G_MAP, 0, .map = &says_map,
	  .help = "beside `wc` or `recv_wc`: what each of these completions says, `{ imm: 7, bytes: 64 }`" },
	{ "qp", G_WORD, 0, .names = &names_state, .help = "state" },
	{ "attr", G_ATTRS, G_UNBOUNDED | G_EXPECTED, .help = "queried attributes" },
	{ "event", G_EVENTS, 0, .names = &names_event, .help = "async events: all of them, in any order" },
	{ "cm", G_EVENTS, 0, .names = &names_cm_event, .help = "CM events" },
	{ "payload", G_WORD, 0, .words = payloads, .help = "what lies where the messages should be" },
	{ "counter", G_COUNTERS, 0, .help = "how much device counters have grown in this case" },
	{ "ledger", G_MAP, 0, .map = &ledger_map, .help = "the account of requests" },
	{ "fault", G_LABEL, G_OF_FAULT, .help = "a named fault" },
	{ "hits", G_COMPARE, 0, .help = "how often the fault has acted" },
	{ "grh", G_MAP, 0, .map = &grh_map, .help = "UD: what stands in front of the newest message" },
	{ "packets", G_MAP, 0, .map = &match_map, .help = "packets on the wire" },
	{ "count", G_COMPARE, 0, .help = "how many of `packets`" },
	{ "different", G_WORD, 0, .words = outer_words,
	  .help = "`count` is how many values of this field the `packets` have between them: `source_port`" },
	{ "during", G_LABEL, G_OF_FAULT, .help = "traffic: while that fault was active" },
	{ "errors", G_COMPARE, G_BEFORE, .help = "traffic: messages that failed" },
	{ "gap", G_COMPARE, G_TIME | G_BEFORE, .help = "traffic: longest time without a completion" },
	{ "p50", G_COMPARE, G_TIME | G_BEFORE, .help = "traffic: median latency" },
	{ "p99", G_COMPARE, G_TIME | G_BEFORE, .help = "traffic: latency that 1 in 100 exceeds" },
	{ "delivered", G_COMPARE, 0, .help = "lossy traffic: messages that came whole, each counted once" },
	{ "lost", G_COMPARE, 0, .help = "lossy traffic: messages that were sent and have not come" },
	{ "doubled", G_COMPARE, 0, .help = "lossy traffic: messages that came again" },
	{ "reordered", G_COMPARE, 0, .help = "lossy traffic: messages that a later one overtook" },
	{ "phase", G_MAP, 0, .map = &phase_map, .help = "how long a recovery took" },
	{ "within", G_DURATION, 0, .max = MAX_TIME, .help = "a deadline other than the computed one" },
	{ "for", G_DURATION, 0, .max = MAX_TIME, .help = "must still hold after so long, and nothing else have come" },
	{ .name = NULL },
};
const struct gmap grammar_expect = { .what = "an alternative of `any`", .keys = expect_keys, .check = check_expect };

static const struct gkey expect_step_keys[] = {
	{ "any", G_MAPS, 0, .min = 2, .map = &grammar_expect, .help = "one of several expectations" },
	AS,
	{ .name = NULL },
};

const struct gkey grammar_fault[] = {
	AS,
	WITHIN,
	{ "for", G_DURATION, 0, .max = MAX_TIME, .help = "it ends by itself after so long" },
	{ .name = NULL },
};

static const struct gkey check_keys[] = {
	{ "ops", G_WORDS, 0, .words = traffic_ops, .help = "operations" },
	{ "size", G_SIZE, 0, .min = 1, .max = MAX_TRAFFIC_SIZE, .help = "bytes per message" },
	{ "messages", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "how many" },
	{ "depth", G_NUMBER, 0, .min = 1, .max = MAX_COUNT, .help = "how many under way" },
	{ .name = NULL },
};
static const struct gmap check_map = { .what = "`check`", .keys = check_keys };

static const struct gkey recover_keys[] = {
	{ "pair", G_PAIRS, 0, .help = "which pairs; default all" },
	{ "path", G_WORD, G_REQUIRED, .words = paths, .help = "how" },
	{ "ends", G_ENDS, 0, .help = "only these ends; default both" },
	{ "qp", G_ATTRS, G_AGENTS, .help = "attributes that the new life has instead" },
	{ "replace", G_OBJECTS, G_OBJ_CQ | G_OBJ_MR | G_OBJ_SRQ, .help = "CQs, MRs or SRQs that are made anew on the way" },
	{ "check", G_MAP, 0, .map = &check_map, .help = "the traffic that proves it" },
	{ "attempts", G_NUMBER, G_NO_REF, .min = 1, .max = 1000, .help = "how often it is tried; default 1" },
	{ "backoff", G_DURATION, 0, .max = MAX_TIME, .help = "time between attempts" },
	{ "result", G_WORD, 0, .words = results, .help = "`verified` (default) or `fails`" },
	{ "if_needed", G_BOOL, 0, .help = "not when the pair is still in RTS" },
	{ .name = NULL },
};

static const char *const flat[] = { "flat", NULL };

static const struct gkey repeat_keys[] = {
	{ "times", G_NUMBER, G_REQUIRED | G_NO_REF, .min = 1, .max = 100000, .help = "how often" },
	{ "passes", G_COMPARE, 0, .help = "how many rounds have to hold; default all" },
	{ "resources", G_WORD, 0, .words = flat, .help = "`flat`: what agents and devices hold does not grow with the rounds" },
	{ "steps", G_STEPS, G_REQUIRED, .help = "what is repeated" },
	{ .name = NULL },
};

const struct gstep grammar_steps[] = {
	{ "connect",
	  GSTEP_MAYBE,
	  { "`connect`", connect_keys, verb_keys, check_connect },
	  .help = "creates what does not exist and takes both ends to RTS" },
	{ "create",
	  GSTEP_MAP,
	  { "`create`", object_keys, verb_keys, check_objects },
	  .help = "makes objects again: same name, next life" },
	{ "destroy", GSTEP_MAP, { "`destroy`", object_keys, verb_keys, check_objects }, .help = "destroys objects" },
	{ "modify",
	  GSTEP_MAP,
	  { "`modify`", modify_keys, verb_keys, check_modify },
	  .help = "ibv_modify_qp, with the masks of the transition" },
	{ "post",
	  GSTEP_MAP,
	  { "`post`", post_keys, verb_keys, check_post },
	  .label = G_OF_POST,
	  .help = "sends, writes, reads, atomics" },
	{ "post_recv",
	  GSTEP_MAP,
	  { "`post_recv`", post_recv_keys, verb_keys, check_post_recv },
	  .label = G_OF_RECV,
	  .help = "receives" },
	{ "poll",
	  GSTEP_MAP,
	  { "`poll`", poll_keys, step_keys, check_poll },
	  .help = "takes completions from a CQ with `poll: manual`, or asks for its events" },
	{ "attach",
	  GSTEP_MAP,
	  { "`attach`", group_keys, verb_keys, check_attach },
	  .help = "attaches UD ends to a multicast group" },
	{ "detach", GSTEP_MAP, { "`detach`", group_keys, verb_keys, check_attach }, .help = "detaches them" },
	{ "traffic",
	  GSTEP_MAP,
	  { "`traffic`", traffic_keys, step_keys, check_traffic },
	  .label = G_OF_TRAFFIC,
	  .help = "checksummed messages both ways, to their end or in the background" },
	{ "remember",
	  GSTEP_MAP,
	  { "`remember`", remember_keys, step_keys, check_remember },
	  .label = G_OF_REMEMBER,
	  .help = "keeps what an end told its peer" },
	{ "exchange", GSTEP_MAYBE, { "`exchange`", exchange_keys, step_keys, NULL }, .help = "hands over the current keys" },
	{ "fault",
	  GSTEP_FAULT,
	  { "`fault`", NULL, grammar_fault, NULL },
	  .label = G_OF_FAULT,
	  .help = "injects exactly one fault" },
	{ "clear", GSTEP_VALUE, .value = { .name = "clear", .type = G_LABELS, .flags = G_OF_FAULT }, .help = "ends named faults" },
	{ "expect", GSTEP_EXPECT, { "`expect`", expect_keys, expect_step_keys, check_expect }, .help = "waits until it holds" },
	{ "allow", GSTEP_MAP, { "`allow`", expect_keys, NULL, check_allow }, .help = "permitted from here on, not required" },
	{ "recover",
	  GSTEP_MAP,
	  { "`recover`", recover_keys, step_keys, check_recover },
	  .label = G_OF_RECOVER,
	  .help = "brings pairs back and proves it with traffic" },
	{ "repeat", GSTEP_MAP, { "`repeat`", repeat_keys, NULL, check_repeat }, .help = "steps many times over" },
	{ "together", GSTEP_TOGETHER, .help = "steps sent as one message per agent" },
	{ "wait", GSTEP_VALUE, .value = { .name = "wait", .type = G_DURATION, .max = MAX_TIME }, .help = "lets so much time pass" },
	{ .name = NULL },
};

const struct gstep *grammar_step(const char *name)
{
	for (const struct gstep *s = grammar_steps; s->name; s++)
		if (!strcmp(s->name, name))
			return s;
	return NULL;
}
