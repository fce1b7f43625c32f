/* SPDX-License-Identifier: MIT */
/* Faults of the packets themselves. Loaded and checked; what runs them is the wire process, which this build does not have. */
#include "fault_common.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"

static const char *const actions[] = { "drop",     "hold",    "delay",  "duplicate", "reorder",   "corrupt",
				       "truncate", "rewrite", "replay", "forge",     "blackhole", NULL };

static const struct fault_param params[] = {
	{ .name = "match",
	  .type = FAULT_PARAM_MAP,
	  .help = "which packets: from, pair, class, opcode, size, psn, nth, transmission, every" },
	{ .name = "action", .type = FAULT_PARAM_ENUM, .required = true, .values = actions, .help = "what is done to them" },
	{ .name = "by",
	  .type = FAULT_PARAM_DURATION,
	  .min = 1,
	  .max = 60000000000LL,
	  .unit = "duration",
	  .help = "how long a packet waits" },
	{ .name = "times", .type = FAULT_PARAM_INT, .min = 1, .max = 1000000, .unit = "packets", .help = "how many at most" },
	{ .name = "rewrite", .type = FAULT_PARAM_MAP, .help = "header fields given anew; the ICRC is mended" },
	{ .name = "forge", .type = FAULT_PARAM_MAP, .help = "the packet that is made" },
	{ .name = NULL },
};
static const char *const needs[] = { "wire", NULL };

static const char *const match_keys[] = { "from", "pair", "class", "opcode", "size", "psn", "nth", "transmission", "every", NULL };

static int check(const json_t *args, struct error *e)
{
	const char *action = json_str(args, "action"), *key;
	json_t *value;

	json_object_foreach(json_object_get(args, "match"), key, value) {
		size_t i = 0;

		while (match_keys[i] && strcmp(match_keys[i], key) != 0)
			i++;
		if (!match_keys[i])
			return error_set(e, -EINVAL, "wire: match: '%s' is not something packets are chosen by", key);
	}
	if (!action)
		return 0;
	if (strcmp(action, "delay") == 0 && !json_object_get(args, "by"))
		return error_set(e, -EINVAL, "wire: delay wants by:");
	if (strcmp(action, "rewrite") == 0 && !json_object_get(args, "rewrite"))
		return error_set(e, -EINVAL, "wire: action rewrite wants the fields under rewrite:");
	if (strcmp(action, "forge") == 0 && !json_object_get(args, "forge"))
		return error_set(e, -EINVAL, "wire: action forge wants the packet under forge:");
	return 0;
}

const struct fault_ops fault_wire = {
	.name = "wire",
	.help = "exactly the chosen packets are dropped, held, delayed, doubled, changed or forged between the ends",
	.layer = FAULT_WIRE,
	.blast = FAULT_BLAST_PAIR,
	.params = params,
	.needs = needs,
	.proof = "the wire's own count of packets that it did this to",
	.undo_in_injector = true,
	.detection = fault_detect_silent,
	.check = check,
};
