/* SPDX-License-Identifier: MIT */
/* The kernel's network emulation on what an end sends: loss, delay and the rest of tc-netem. */
#include "fault_common.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

static const char *netdev(const struct fault *f)
{
	return json_str(f->env->device(f->env->ctl, fault_agent(f, fault_arg(f, "at"))), "netdev");
}

struct text {
	char buf[512];
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, sizeof t->buf - t->len, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n < sizeof t->buf - t->len)
		t->len += (size_t)n;
}

static int inject(struct fault *f, struct error *e)
{
	static const char *const percents[] = { "loss", "duplicate", "corrupt", "reorder" };
	const char *dev = netdev(f);
	struct text t = { .len = 0 };
	int rc;

	if (!dev)
		return error_set(e, -ENODEV, "netem: %s has no network device in this lab", fault_arg(f, "at"));
	add(&t, "qdisc replace dev %s root netem limit 100000", dev);
	if (json_object_get(f->args, "delay"))
		add(&t, " delay %lldus", (long long)json_int(f->args, "delay", 0) / 1000);
	if (json_object_get(f->args, "jitter"))
		add(&t, " %lldus", (long long)json_int(f->args, "jitter", 0) / 1000);
	for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++)
		if (json_str(f->args, percents[i]))
			add(&t, " %s %s", percents[i], json_str(f->args, percents[i]));
	if (json_str(f->args, "args"))
		add(&t, " %s", json_str(f->args, "args"));
	rc = f->env->lab(f->env->ctl, "tc", t.buf, NULL, e);
	return rc < 0 ? rc : 0;
}

static const json_t *find_netem(const json_t *shown)
{
	const json_t *q;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)shown, i, q) {
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

	snprintf(args, sizeof args, "qdisc show dev %s", netdev(f));
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
	snprintf(args, sizeof args, "qdisc del dev %s root", netdev(f));
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
	.proof = "the qdisc's count of drops (loss) or of packets that passed through it",
	.detection = detection,
	.check = check,
	.inject = inject,
	.clear = clear,
	.prove = prove,
};
