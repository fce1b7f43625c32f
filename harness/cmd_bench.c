/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "json.h"
#include "log.h"

enum key { KEY_ROUNDS = 256, KEY_ACCEL, KEY_KERNEL, KEY_MODULES, KEY_JSON, KEY_PART, KEY_COMPARE };

static const struct argp_option options[] = {
	{ "rounds", KEY_ROUNDS, "N", 0, "how often each thing is measured (default 5)", 0 },
	{ "part", KEY_PART, "PART", 0, "only this part (may be repeated): guest, data, suite, scale, wire", 0 },
	{ "accel", KEY_ACCEL, "ACCEL", 0, "kvm, tcg or auto", 0 },
	{ "kernel", KEY_KERNEL, "SERIES|IMAGE", 0, "boot Debian's newest kernel of that series (6.12, newest), or this one", 0 },
	{ "modules", KEY_MODULES, "DIR", 0, "its modules", 0 },
	{ "json", KEY_JSON, "FILE", 0, "write the figures there as well ('-': instead of the table)", 0 },
	{ "compare", KEY_COMPARE, "OLD", 0, "measure nothing: compare the figures in OLD with those in the file NEW", 0 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const struct part {
	const char *name;
	int (*measure)(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
} parts[] = {
	{ "guest", bench_guest }, { "data", bench_data }, { "suite", bench_suite },
	{ "scale", bench_scale }, { "wire", bench_wire },
};
#define NUM_PARTS (sizeof parts / sizeof *parts)

struct arguments {
	struct bench_options o;
	const char *json, *compare, *with;
	unsigned parts; /* bits; 0: all */
};

static unsigned part_bit(const char *name)
{
	for (unsigned i = 0; i < NUM_PARTS; i++)
		if (strcmp(parts[i].name, name) == 0)
			return 1u << i;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	char *end;

	switch (key) {
	case KEY_ROUNDS:
		a->o.rounds = (unsigned)strtoul(arg, &end, 10);
		if (*end || a->o.rounds < 1 || a->o.rounds > 100)
			argp_error(state, "--rounds: '%s' is no number from 1 to 100", arg);
		break;
	case KEY_PART:
		if (!part_bit(arg))
			argp_error(state, "--part: '%s' is none of guest, data, suite, scale, wire", arg);
		a->parts |= part_bit(arg);
		break;
	case KEY_ACCEL:
		a->o.accel = arg;
		break;
	case KEY_KERNEL:
		a->o.kernel_image = arg;
		break;
	case KEY_MODULES:
		a->o.modules = arg;
		break;
	case KEY_JSON:
		a->json = arg;
		break;
	case KEY_COMPARE:
		a->compare = arg;
		break;
	case ARGP_KEY_ARG:
		if (!a->compare || a->with)
			argp_error(state, "'%s': a file is taken only after --compare OLD", arg);
		a->with = arg;
		break;
	case ARGP_KEY_END:
		if (a->compare && !a->with)
			argp_error(state, "--compare %s: with which file?", a->compare);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int compare(const struct arguments *a, struct error *e)
{
	json_t *old = NULL, *new = NULL;
	int rc = json_load(a->compare, &old, e);

	if (rc == 0)
		rc = json_load(a->with, &new, e);
	if (rc == 0) {
		rc = bench_compare(old, new, stdout, e);
		if (rc < 0)
			error_prefix(e, rc, "%s and %s", a->compare, a->with);
	}
	json_decref(old);
	json_decref(new);
	return rc > 0 ? EXIT_FAILED : rc;
}

static int measure(const struct arguments *a, struct error *e)
{
	json_t *figures = json_object(),
	       *out = json_pack("{s:i,s:i,s:o}", "schema", 1, "rounds", (int)a->o.rounds, "figures", figures);
	bool table = !a->json || strcmp(a->json, "-") != 0, kept = true;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < NUM_PARTS; i++)
		if (!a->parts || a->parts & 1u << i)
			rc = parts[i].measure(&a->o, figures, out, e);
	if (rc == 0)
		kept = bench_table(figures, !table);
	if (rc == 0 && table)
		bench_curves_print(json_object_get(out, "curves"), stdout);
	if (rc == 0 && !table)
		json_dumpf(out, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
	else if (rc == 0 && a->json)
		rc = json_save(a->json, out, e);
	json_decref(out);
	return rc < 0 ? rc : kept ? 0 : EXIT_FAILED;
}

int cmd_bench(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "\n--compare OLD NEW",
		.doc = "Measures what the harness itself costs, as ratios of two things side by side: guests against bare ones, "
		       "agents against perftest, a suite against its longest case and its CPU time, a pair of a thousand "
		       "against one of a hundred and against the bare moves, the wire against a bridge.\vExit status 1 when "
		       "a ratio is beyond its bar or, with --compare, worse by more than a third or not in NEW.",
	};
	struct arguments a = { .o = { .rounds = 5, .accel = "auto" } };
	struct error e = { "" };
	int rc;

	command_parse(&argp, argc, argv, &a);
	rc = a.compare ? compare(&a, &e) : measure(&a, &e);
	if (rc < 0)
		log_error("%s", e.text);
	return rc < 0 ? EXIT_ERROR : rc;
}
