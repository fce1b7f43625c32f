/* SPDX-License-Identifier: MIT */
/* The kernel's network emulation on what an end sends: loss, delay and the rest of tc-netem. */
#include "link_common.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"

static const struct fault_param params[] = {
	{ .name = "at", .type = FAULT_PARAM_END, .required = true, .help = "the end whose outgoing packets pass through" },
	{ .name = "loss", .type = FAULT_PARAM_PERCENT, .help = "of the packets that vanish" },
	{ .name = "delay",
	  .type = FAULT_PARAM_DURATION,
	  .min = 1000,
	  .max = 60000000000LL,
	  .unit = "duration",
	  .help = "that each packet waits" },
	{ .name = "jitter",
	  .type = FAULT_PARAM_DURATION,
	  .min = 1000,
	  .max = 60000000000LL,
	  .unit = "duration",
	  .help = "by which delay varies" },
	{ .name = "duplicate", .type = FAULT_PARAM_PERCENT, .help = "of the packets that come twice" },
	{ .name = "reorder", .type = FAULT_PARAM_PERCENT, .help = "of the packets that overtake delayed ones" },
	{ .name = "corrupt", .type = FAULT_PARAM_PERCENT, .help = "of the packets that get a wrong bit" },
	{ .name = "args", .type = FAULT_PARAM_STRING, .help = "further arguments, as tc-netem(8) has them" },
	{ .name = NULL },
};

static int check(const json_t *args, struct error *e)
{
	static const char *const any[] = { "loss", "delay", "duplicate", "corrupt", "args" };
	const char *raw = json_str(args, "args");

	for (const char *c = raw; c && *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr(" .%_-", *c))
			return error_set(e, -EINVAL, "netem: args: '%c' has no place in arguments of tc-netem", *c);
	if (json_object_get(args, "jitter") && !json_object_get(args, "delay"))
		return error_set(e, -EINVAL, "netem: jitter goes with delay");
	if (json_object_get(args, "reorder") && !json_object_get(args, "delay"))
		return error_set(e, -EINVAL, "netem: reorder goes with delay: the others must be late to be overtaken");
	for (size_t i = 0; i < sizeof any / sizeof any[0]; i++)
		if (json_object_get(args, any[i]))
			return 0;
	return error_set(e, -EINVAL, "netem wants at least one of loss, delay, duplicate, corrupt, args");
}

static void write_args(FILE *out, const struct fault *f)
{
	static const char *const percents[] = { "loss", "duplicate", "corrupt", "reorder" };

	if (json_object_get(f->args, "delay"))
		fprintf(out, " delay %lldus", (long long)json_int(f->args, "delay", 0) / 1000);
	if (json_object_get(f->args, "jitter"))
		fprintf(out, " %lldus", (long long)json_int(f->args, "jitter", 0) / 1000);
	for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++)
		if (json_str(f->args, percents[i]))
			fprintf(out, " %s %s", percents[i], json_str(f->args, percents[i]));
	if (json_str(f->args, "args"))
		fprintf(out, " %s", json_str(f->args, "args"));
}

static int inject(struct fault *f, struct error *e)
{
	const char *dev = link_netdev(f);
	char *text = NULL;
	size_t size = 0;
	FILE *out;
	int rc;

	if (!dev)
		return error_set(e, -ENODEV, "netem: %s has no network device in this lab", fault_arg(f, "at"));
	out = open_memstream(&text, &size);
	if (!out)
		return error_set(e, -ENOMEM, "netem: out of memory");
	fprintf(out, "qdisc replace dev %s root netem limit 100000", dev);
	write_args(out, f);
	fclose(out);
	rc = f->env->lab(f->env->ctl, "tc", text, NULL, e);
	free(text);
	return rc < 0 ? rc : 0;
}

static const json_t *find_netem(const json_t *shown)
{
	const json_t *q;
	size_t i;

	json_array_foreach((json_t *)shown, i, q) {
		const char *kind = json_str(q, "kind");

		if (kind && strcmp(kind, "netem") == 0)
			return q;
	}
	return NULL;
}

/* What the qdisc has counted so far; kept, for the qdisc goes with the fault. */
static void count(struct fault *f)
{
	char args[64];
	json_t *out = NULL;
	const json_t *q;

	snprintf(args, sizeof args, "qdisc show dev %s", link_netdev(f));
	if (f->env->lab(f->env->ctl, "tc", args, &out, NULL) >= 0) {
		q = find_netem(out);
		if (q) {
			json_object_set_new(f->state, "packets", json_integer(json_int(q, "packets", 0)));
			json_object_set_new(f->state, "drops", json_integer(json_int(q, "drops", 0)));
			json_object_set_new(f->state, "backlog", json_integer(json_int(q, "qlen", 0)));
		}
	}
	json_decref(out);
}

static int clear(struct fault *f, struct error *e)
{
	char args[64];
	int rc;

	count(f);
	snprintf(args, sizeof args, "qdisc del dev %s root", link_netdev(f));
	rc = f->env->lab(f->env->ctl, "tc", args, NULL, e);
	return rc < 0 ? rc : 0;
}

static int prove(struct fault *f, json_t **ret, struct error *e)
{
	int64_t packets, drops;

	(void)e;
	if (f->active)
		count(f);
	packets = json_int(f->state, "packets", 0) + json_int(f->state, "backlog", 0);
	drops = json_int(f->state, "drops", 0);
	*ret = json_pack("{s:I,s:I}", "packets", (json_int_t)packets, "drops", (json_int_t)drops);
	return json_object_get(f->args, "loss") ? drops > 0 : packets > 0;
}

static enum detection detection(const json_t *args)
{
	return json_object_get(args, "loss") || json_object_get(args, "delay") || json_object_get(args, "args") ? DETECTION_SILENT
														: DETECTION_NONE;
}

const struct fault_ops fault_netem = {
	.name = "netem",
	.help = "packets of an end are lost, late, doubled, reordered or damaged on the link",
	.layer = FAULT_LINK,
	.blast = FAULT_BLAST_LINK,
	.params = params,
	.counts_link = true,
	.proof = "the qdisc's count of drops (loss) or of packets that passed through it",
	.detection = detection,
	.check = check,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
