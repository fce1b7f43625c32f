/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <wordexp.h>

#include "capability.h"
#include "executor_lane.h"
#include "json.h"
#include "log.h"
#include "pause.h"
#include "run.h"
#include "shell_word.h"
#include "units.h"

enum key {
	KEY_LAB = 256,
	KEY_KERNEL,
	KEY_MODULES,
	KEY_RDMA_CORE,
	KEY_ACCEL,
	KEY_SET,
	KEY_SEED,
	KEY_STRICT,
	KEY_KEEP,
	KEY_COLD,
	KEY_REPEAT,
	KEY_LANES,
	KEY_SHARD,
	KEY_RERUN_FAILED,
	KEY_DEADLINE,
	KEY_SELECT,
	KEY_ALL,
	KEY_REQUIRE,
	KEY_FAIL_FAST,
	KEY_UNTIL_FAIL,
	KEY_PAUSE_AT,
	KEY_PAUSE_MAX,
	KEY_OUT,
	KEY_LAUNCH,
	KEY_ANY_LINK,
	KEY_PROVIDER,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Where it runs:", 1 },
	{ "lab", KEY_LAB, "LAB", 0,
	  "rxe (this kernel), guest (a small virtual machine), auto (rxe where it is possible; the default)", 1 },
	{ "kernel", KEY_KERNEL, "SERIES|IMAGE", 0,
	  "lab guest: boot Debian's newest kernel of that series (6.12, fetched once; newest: of the newest series), or this one",
	  1 },
	{ "modules", KEY_MODULES, "DIR", 0, "lab guest: its modules (the folder that holds modules.dep, or lib/modules/VERSION)",
	  1 },
	{ "rdma-core", KEY_RDMA_CORE, "PREFIX", 0, "use the libibverbs and providers installed there", 1 },
	{ "accel", KEY_ACCEL, "ACCEL", 0, "lab guest: kvm, tcg or auto (kvm where it works; the default)", 1 },
	{ "allow-any-link", KEY_ANY_LINK, NULL, 0,
	  "link faults also on an interface that carries the default route, this login, or a launcher's connection", 1 },
	{ "launch", KEY_LAUNCH, "'PREFIX'", 0, "start agents through this command, for example 'ip netns exec blue'", 1 },
	{ "lanes", KEY_LANES, "N", 0,
	  "run so many cases side by side, each on links and devices of its own (default: two for each processor, at most 4; 1: "
	  "one after the other, in file "
	  "order)",
	  1 },
	{ NULL, 0, NULL, 0, "What runs:", 2 },
	{ "select", KEY_SELECT, "GLOB", 0, "only cases whose id or one of whose tags matches; may be repeated", 2 },
	{ "all", KEY_ALL, NULL, 0, "also what is tagged soak, which otherwise runs only by --select or by the name of its file",
	  2 },
	{ "shard", KEY_SHARD, "K/N", 0, "only part K of N; which cases that are follows from their ids alone", 2 },
	{ "rerun-failed", KEY_RERUN_FAILED, "RUN", 0,
	  "what has no good result in the run folder RUN, with its paths, seed, --set, --provider and --require unless others are "
	  "given, and with --strict if it had that; where it runs is not taken over",
	  2 },
	{ "deadline", KEY_DEADLINE, "TIME", 0, "end the run after so long (10min); what has not run is reported as an error", 2 },
	{ "set", KEY_SET, "K=V", 0, "override an attribute: qp.timeout=18, qp.a.retry_cnt=3, link.mtu=4200; may be repeated", 2 },
	{ "seed", KEY_SEED, "N", 0, "choose PSNs and payload (default: a new one each run)", 2 },
	{ "repeat", KEY_REPEAT, "N", 0, "run each case N times", 2 },
	{ "fail-fast", KEY_FAIL_FAST, NULL, 0, "stop after the first case that does not pass", 2 },
	{ "until-fail", KEY_UNTIL_FAIL, NULL, 0,
	  "run each case again and again (--repeat times, else 1000) until one does not pass", 2 },
	{ NULL, 0, NULL, 0, "How it is judged and told:", 3 },
	{ "strict", KEY_STRICT, NULL, 0, "documented deviations of the device are failures", 3 },
	{ "require", KEY_REQUIRE, "CAP", 0,
	  "a case that is skipped for want of this capability (list capabilities) fails; may be repeated", 3 },
	{ "provider", KEY_PROVIDER, "NAME", 0, "whose profile of deviations applies (default: rxe; none: no deviation is excused)",
	  3 },
	{ "out", KEY_OUT, "DIR", 0, "where run folders are made (default: runs)", 3 },
	{ "cold", KEY_COLD, NULL, 0, "boot the guest, whether a saved one is there or not", 3 },
	{ "keep", KEY_KEEP, NULL, 0, "leave the lab up after a failure and tell how to enter it", 3 },
	{ "pause-at", KEY_PAUSE_AT, "STEP", 0,
	  "stop the one case before this step and tell how to look at it; Enter (a line on standard input) lets it go on. STEP is "
	  "its number, its name (`as`), FILE:LINE as failures name it, or what it does. The case's deadlines do not count "
	  "the time, but timers of the protocol run on in the kernel: what fails after that is inconclusive",
	  3 },
	{ "pause-max", KEY_PAUSE_MAX, "TIME", 0, "it goes on by itself after so long (default: 10min)", 3 },
	{ "quiet", 'q', NULL, 0, "no progress, only the report", 3 },
	{ "verbose", 'v', NULL, 0, "tell more while it works", 3 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

#define UNTIL_FAIL_TIMES 1000

struct input {
	struct run_options o;
	const char **paths, **set, **select, **require;
	size_t n_set;
	wordexp_t launch;
	json_t *command;
	char *repeat, *rdma_core;
	bool seed_given, launch_given, provider_given, until_fail;
	const char *failed_run;
	struct run_failed failed;
};

static const char **append(const char **list, size_t n, const char *item)
{
	const char **grown = reallocarray(list, n + 2, sizeof(*grown));

	if (!grown) {
		log_error("out of memory");
		exit(EXIT_ERROR);
	}
	grown[n] = item;
	grown[n + 1] = NULL;
	return grown;
}

static uint64_t number(struct argp_state *state, const char *option, const char *text, uint64_t min, uint64_t max)
{
	unsigned long long n;
	char *end;

	errno = 0;
	/* Not 0: a seed with zeros before it is no octal number. */
	n = strtoull(text, &end, strncasecmp(text, "0x", 2) ? 10 : 16);
	if (errno || !isdigit((unsigned char)*text) || *end || n < min || n > max)
		argp_error(state, "%s: '%s' is no number from %llu to %llu", option, text, (unsigned long long)min,
			   (unsigned long long)max);
	return n;
}

static const char *one_of(struct argp_state *state, const char *option, const char *text, const char *a, const char *b,
			  const char *c)
{
	if (strcmp(text, a) && strcmp(text, b) && strcmp(text, c))
		argp_error(state, "%s: '%s' is none of %s, %s, %s", option, text, a, b, c);
	return text;
}

/* Words as a shell would split them, without running anything. */
static void parse_launch(struct argp_state *state, struct input *in, const char *text)
{
	if (wordexp(text, &in->launch, WRDE_NOCMD | WRDE_UNDEF) || !in->launch.we_wordc)
		argp_error(state, "--launch: '%s' cannot be split into words", text);
	in->launch_given = true;
	in->o.launch = (const char *const *)in->launch.we_wordv;
}

static void parse_shard(struct argp_state *state, struct run_options *o, const char *text)
{
	char *slash;
	unsigned long k = strtoul(text, &slash, 10), n = *slash == '/' ? strtoul(slash + 1, &slash, 10) : 0;

	if (!isdigit((unsigned char)*text) || *slash || !k || k > n || n > 10000)
		argp_error(state, "--shard: '%s' is no part of a whole, like 2/8", text);
	o->shard = (unsigned)k;
	o->shards = (unsigned)n;
}

/* As scenarios have it, and minutes. */
static uint64_t run_time(struct argp_state *state, const char *option, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t ns = 0;

	if (digits && digits < 9 && !strcmp(text + digits, "min"))
		ns = strtoull(text, NULL, 10) * 60 * NSEC_PER_SEC;
	else if (units_parse_duration(text, &ns))
		ns = 0;
	if (!ns)
		argp_error(state, "%s: '%s' is no time like 90s or 10min", option, text);
	return ns;
}

/* A second run that is milder than the first would turn its failures into passes. */
static void take_judging(struct input *in, const json_t *earlier)
{
	struct run_options *o = &in->o;
	const json_t *value;
	size_t i;

	o->strict |= json_bool(earlier, "strict", false);
	if (!in->provider_given && json_str(earlier, "profile"))
		o->provider = json_str(earlier, "profile");
	if (!o->n_require)
		json_array_foreach(json_object_get(earlier, "require"), i, value)
			if (json_is_string(value))
				in->require = append(in->require, o->n_require++, json_string_value(value));
}

/* What is not given is as in that run. */
static void take_earlier(struct argp_state *state, struct input *in)
{
	struct run_options *o = &in->o;
	struct error e = { "" };
	const json_t *value, *earlier;
	size_t i;

	if (o->n_select)
		argp_error(state, "--rerun-failed and --select both say which cases: one of them");
	o->rerun = true;
	if (run_failed_load(in->failed_run, &in->failed, &e))
		argp_error(state, "--rerun-failed: %s", e.text);
	earlier = in->failed.run;
	for (i = 0; i < in->failed.n; i++)
		in->select = append(in->select, o->n_select++, in->failed.globs[i]);
	o->rerun_part = o->n_paths;
	if (!o->n_paths)
		json_array_foreach(json_object_get(earlier, "paths"), i, value)
			in->paths = append(in->paths, o->n_paths++, json_string_value(value));
	if (!in->n_set)
		json_array_foreach(json_object_get(earlier, "set"), i, value)
			in->set = append(in->set, in->n_set++, json_string_value(value));
	if (!in->seed_given)
		o->seed = json_u64(earlier, "seed", 1);
	in->seed_given = true;
	take_judging(in, earlier);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct input *in = state->input;
	struct run_options *o = &in->o;
	struct error e = { "" };

	switch (key) {
	case KEY_LAB:
		o->lab = one_of(state, "--lab", arg, "auto", "guest", "rxe");
		break;
	case KEY_ACCEL:
		o->accel = one_of(state, "--accel", arg, "auto", "kvm", "tcg");
		break;
	case KEY_KERNEL:
		o->kernel = arg;
		break;
	case KEY_MODULES:
		o->modules = arg;
		break;
	case KEY_RDMA_CORE:
		in->rdma_core = rdma_core_find(arg, &e);
		if (!in->rdma_core)
			argp_error(state, "--rdma-core: %s", e.text);
		o->rdma_core = in->rdma_core;
		break;
	case KEY_ANY_LINK:
		o->any_link = true;
		break;
	case KEY_LAUNCH:
		parse_launch(state, in, arg);
		break;
	case KEY_SELECT:
		in->select = append(in->select, o->n_select++, arg);
		break;
	case KEY_ALL:
		o->all = true;
		break;
	case KEY_REQUIRE:
		if (!capability_find(arg))
			argp_error(state, "--require: there is no capability '%s' (list capabilities)", arg);
		in->require = append(in->require, o->n_require++, arg);
		break;
	case KEY_SET:
		in->set = append(in->set, in->n_set++, arg);
		break;
	case KEY_SEED:
		o->seed = number(state, "--seed", arg, 0, UINT64_MAX);
		in->seed_given = true;
		break;
	case KEY_REPEAT:
		o->repeat = (unsigned)number(state, "--repeat", arg, 1, 100000);
		break;
	case KEY_LANES:
		o->lanes = (unsigned)number(state, "--lanes", arg, 1, EXECUTOR_LANES_MAX);
		break;
	case KEY_SHARD:
		parse_shard(state, o, arg);
		break;
	case KEY_RERUN_FAILED:
		in->failed_run = arg;
		break;
	case KEY_DEADLINE:
		o->deadline_ns = run_time(state, "--deadline", arg);
		break;
	case KEY_PAUSE_AT:
		o->pause_at = arg;
		break;
	case KEY_PAUSE_MAX:
		o->pause_max_ns = run_time(state, "--pause-max", arg);
		break;
	case KEY_UNTIL_FAIL:
		in->until_fail = true;
		/* fallthrough */
	case KEY_FAIL_FAST:
		o->fail_fast = true;
		break;
	case KEY_STRICT:
		o->strict = true;
		break;
	case KEY_PROVIDER:
		if (!*arg || strchr(arg, '/'))
			argp_error(state, "--provider: '%s' is no name of a profile", arg);
		o->provider = arg;
		in->provider_given = true;
		break;
	case KEY_OUT:
		if (!*arg)
			argp_error(state, "--out: which folder?");
		o->out = arg;
		break;
	case KEY_COLD:
		o->cold = true;
		break;
	case KEY_KEEP:
		o->keep = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case ARGP_KEY_ARG:
		in->paths = append(in->paths, o->n_paths++, arg);
		break;
	case ARGP_KEY_END:
		if (in->failed_run)
			take_earlier(state, in);
		if (!o->repeat)
			o->repeat = in->until_fail ? UNTIL_FAIL_TIMES : 1;
		if (!o->n_paths)
			argp_error(state, "which scenarios? A file or a folder is wanted");
		if ((o->kernel || o->modules) && o->lab[0] == 'r')
			argp_error(state, "--kernel and --modules are for lab guest");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void put_option(FILE *out, const char *option, const char *value)
{
	if (!value)
		return;
	fprintf(out, " %s", option);
	shell_word(out, value);
}

/* What repeats this run besides its paths, whatever was chosen for it. Without --select and --repeat: a report adds the case it
 * speaks of. */
static char *repeat_options(const struct input *in, const char *launch)
{
	const struct run_options *o = &in->o;
	char *text = NULL, seed[32];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	snprintf(seed, sizeof(seed), "0x%llx", (unsigned long long)o->seed);
	put_option(out, "--seed", seed);
	put_option(out, "--lab", strcmp(o->lab, "auto") ? o->lab : NULL);
	put_option(out, "--kernel", o->kernel);
	put_option(out, "--modules", o->modules);
	put_option(out, "--rdma-core", o->rdma_core);
	put_option(out, "--accel", strcmp(o->accel, "auto") ? o->accel : NULL);
	if (o->lanes) {
		snprintf(seed, sizeof(seed), "%u", o->lanes);
		put_option(out, "--lanes", seed);
	}
	put_option(out, "--launch", launch);
	if (o->any_link)
		fputs(" --allow-any-link", out);
	put_option(out, "--provider", strcmp(o->provider, "rxe") ? o->provider : NULL);
	for (size_t i = 0; i < in->n_set; i++)
		put_option(out, "--set", in->set[i]);
	for (size_t i = 0; i < o->n_require; i++)
		put_option(out, "--require", in->require[i]);
	if (o->all)
		fputs(" --all", out);
	if (o->strict)
		fputs(" --strict", out);
	fclose(out);
	return text;
}

/* Skipped is what was skipped: as for a run, that is no pass. */
static int nothing_failed(const char *run, const struct run_failed *f)
{
	if (f->skipped == f->all) {
		log_info("every case of %s was skipped: there is nothing to run again", run);
		return EXIT_SKIPPED;
	}
	log_info("every case of %s passed%s: there is nothing to run again", run, f->skipped ? " or was skipped" : "");
	return 0;
}

int cmd_run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PATH...",
		.doc = "Runs every scenario below each PATH (a file, a folder, or - for one on standard input) and judges it.\v"
		       "The report goes to standard output, progress to standard error, everything else to a folder of its own "
		       "below runs/.",
	};
	struct input in = {
		.o = { .lab = "auto", .accel = "auto", .out = "runs", .provider = "rxe", .pause_max_ns = PAUSE_MAX_NS }
	};
	const char *launch = NULL;
	int status;

	in.command = json_pack("[s]", program_invocation_name);
	for (int i = 0; i < argc; i++)
		json_array_append_new(in.command, json_string(argv[i]));
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--launch", 8))
			launch = argv[i][8] == '=' ? argv[i] + 9 : argv[i + 1];
	command_parse(&argp, argc, argv, &in);
	if (!in.seed_given && getrandom(&in.o.seed, 4, 0) != 4)
		in.o.seed = (uint64_t)getpid();
	log_init("qpdrill", in.o.verbose);
	in.o.paths = in.paths;
	in.o.set = in.set;
	in.o.select = in.select;
	in.o.require = in.require;
	in.o.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	in.repeat = repeat_options(&in, launch);
	in.o.command = in.command;
	in.o.program = program_invocation_name;
	in.o.repeat_options = in.repeat;
	if (in.failed_run && !in.failed.n)
		status = nothing_failed(in.failed_run, &in.failed);
	else
		status = run_main(&in.o, stdout);
	if (fflush(stdout) == EOF || ferror(stdout)) {
		log_error("standard output: %s", strerror(errno));
		status = status ? status : EXIT_ERROR;
	}
	free(in.repeat);
	free(in.rdma_core);
	json_decref(in.command);
	if (in.launch_given)
		wordfree(&in.launch);
	run_failed_release(&in.failed);
	free(in.paths);
	free(in.set);
	free(in.select);
	free(in.require);
	return status;
}
