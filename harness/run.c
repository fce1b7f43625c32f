/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "../reports/report.h"
#include "capability.h"
#include "commands.h"
#include "data.h"
#include "json.h"
#include "log.h"
#include "schedule.h"
#include "units.h"

#ifndef QD_BUILD
#define QD_BUILD QPDRILL_VERSION
#endif

struct run {
	const struct run_options *o;
	const struct executor_ops *executor;
	sd_event *loop;
	struct run_cases cases;
	struct run_folder folder;
	struct progress progress;
	struct executor_queue queue;   /* what the executor gets */
	struct executor_case *entries; /* ... its cases, */
	size_t *entry_case;            /* and which case each is */
	struct schedule *schedule;     /* of the queue */
	char kernel[128];
	unsigned counts[NUM_VERDICTS];
	bool stop;
	unsigned signals;
	bool stopped_early;  /* --fail-fast, or --keep after a failure */
	struct error broken; /* the harness itself failed: what to say, once */
};

static int note_broken(struct run *r, int rc, const struct error *e)
{
	if (!r->broken.text[0])
		r->broken = *e;
	return rc;
}

static enum verdict verdict_of(const json_t *verdict)
{
	const char *name = json_str(verdict, "verdict");

	for (int v = VERDICT_PASS; name && v < NUM_VERDICTS; v++)
		if (!strcmp(verdict_names[v], name))
			return (enum verdict)v;
	return VERDICT_ERROR;
}

static const char *text_or(const json_t *obj, const char *key, const char *otherwise)
{
	const char *s = json_str(obj, key);

	return s ? s : otherwise;
}

/* A case has its verdict: count it, write its line, show it. */
static void settle(struct run *r, struct run_case *c, const json_t *verdict, int boot, uint64_t dur_ns)
{
	struct error e = { "" };
	uint64_t ns = json_u64(verdict, "duration_ns", 0);

	c->judged = true;
	c->result = json_pack("{s:s,s:s,s:s,s:s,s:I,s:i,s:i}", "case", c->id, "verdict", verdict_names[verdict_of(verdict)],
			      "headline", text_or(verdict, "headline", ""), "seen", text_or(verdict, "seen", ""), "duration_ns",
			      (json_int_t)(ns ? ns : dur_ns), "boot", boot, "lane", 0);
	r->counts[verdict_of(verdict)]++;
	if (!c->result)
		return;
	if (run_folder_result(&r->folder, c->result, &e))
		note_broken(r, -EIO, &e);
	progress_end(&r->progress, c->result);
}

static void settle_unrun(struct run *r, struct run_case *c, enum verdict v, const char *why)
{
	json_t *verdict = run_verdict_unrun(c->plan, v, why);
	struct error e = { "" };
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s/verdict.json", r->folder.dir, c->dir);
	if (json_save(path, verdict, &e))
		note_broken(r, -EIO, &e);
	settle(r, c, verdict, 0, 0);
	json_decref(verdict);
}

/* What the plan skips comes in its place among the others. */
static void settle_skipped_before(struct run *r, size_t end)
{
	for (size_t i = 0; i < end; i++) {
		struct run_case *c = &r->cases.cases[i];

		if (!c->judged && json_str(c->plan, "skip"))
			settle_unrun(r, c, VERDICT_SKIP, json_str(c->plan, "skip"));
	}
}

static void skip_what_cannot_run(struct run *r, const json_t *env)
{
	for (size_t i = 0; i < r->queue.n; i++) {
		struct run_case *c = &r->cases.cases[r->entry_case[i]];
		struct error e = { "" };
		char reason[256], path[4096];

		if (c->judged || capability_check(json_object_get(c->plan, "requires"), env, reason, sizeof(reason)))
			continue;
		json_object_set_new(c->plan, "skip", json_string(reason));
		snprintf(path, sizeof(path), "%s/plan.json", r->entries[i].dir);
		if (json_save(path, c->plan, &e))
			note_broken(r, -EIO, &e);
	}
}

static void on_environment(void *user, const json_t *env)
{
	struct run *r = user;
	struct error e = { "" };
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)env, key, value)
		json_object_set(r->folder.run, key, value);
	json_object_set_new(r->folder.run, "lab", json_string(r->executor->name));
	snprintf(r->kernel, sizeof(r->kernel), "%s", text_or(env, "kernel", ""));
	if (run_folder_save(&r->folder, &e))
		note_broken(r, -EIO, &e);
	skip_what_cannot_run(r, env);
	progress_note(&r->progress, "lab %s: kernel %s, provider %s, rdma-core %s", r->executor->name, text_or(env, "kernel", "?"),
		      text_or(env, "provider", "?"), text_or(env, "rdma_core", "?"));
}

static void on_start(void *user, size_t index)
{
	struct run *r = user;

	settle_skipped_before(r, r->entry_case[index]);
	progress_start(&r->progress, r->cases.cases[r->entry_case[index]].id);
}

static void on_step(void *user, size_t index, int step, const char *what)
{
	struct run *r = user;

	(void)index;
	progress_step(&r->progress, step, what);
}

static enum executor_next next(void *user, size_t *ret_index, bool *ret_fresh)
{
	static const enum executor_next answers[] = {
		[SCHEDULE_CASE] = EXECUTOR_CASE, [SCHEDULE_WAIT] = EXECUTOR_WAIT, [SCHEDULE_END] = EXECUTOR_END
	};
	struct run *r = user;

	return answers[schedule_next(r->schedule, ret_index, ret_fresh)];
}

static int folder_add(struct run *r, size_t i, struct error *e)
{
	char *profile = run_profile_find(r->cases.cases[i].scenario->path, r->o->provider);
	int rc = run_folder_add(&r->folder, &r->cases.cases[i], profile, e);

	free(profile);
	return rc;
}

static int queue_add(struct run *r, size_t i, struct error *e)
{
	const struct run_case *c = &r->cases.cases[i];
	struct executor_case *entries = reallocarray(r->entries, r->queue.n + 1, sizeof(*entries));
	size_t *entry_case = reallocarray(r->entry_case, r->queue.n + 1, sizeof(*entry_case));
	char *dir = NULL;

	r->entries = entries ? entries : r->entries;
	r->entry_case = entry_case ? entry_case : r->entry_case;
	r->queue.cases = r->entries;
	if (!entries || !entry_case || asprintf(&dir, "%s/%s", r->folder.dir, c->dir) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	entries[r->queue.n] = (struct executor_case){ .id = c->id, .dir = dir, .budget_ns = json_u64(c->plan, "budget_ns", 0) };
	entry_case[r->queue.n++] = i;
	return schedule_add(r->schedule, 0, json_bool(c->plan, "exclusive", false)) ? error_set(e, -ENOMEM, "out of memory") : 0;
}

/* The list in run.json is in the order of the files. */
static int list_cases(struct run *r)
{
	size_t *order = run_cases_order(&r->cases);
	json_t *list = json_array();

	for (size_t i = 0; order && i < r->cases.n; i++) {
		const struct run_case *c = &r->cases.cases[order[i]];

		json_array_append_new(list, json_pack("{s:s,s:s}", "case", c->id, "dir", c->dir));
	}
	json_object_set_new(r->folder.run, "cases", list);
	free(order);
	return order ? 0 : -ENOMEM;
}

/* A first pass has found packets: there is a case for each. */
static int follow(struct run *r, size_t pass, const json_t *packets, struct error *e)
{
	struct plan_options plan = { .seed = r->o->seed, .set = r->o->set };
	size_t before = r->cases.n, selected;
	int rc = run_cases_follow(&r->cases, pass, packets, &plan, e);

	selected = r->cases.n - before;
	for (size_t i = before; !rc && i < r->cases.n; i++) {
		rc = folder_add(r, i, e);
		if (!rc && !json_str(r->cases.cases[i].plan, "skip"))
			rc = queue_add(r, i, e);
	}
	r->progress.total += selected;
	if (!rc && !selected && !run_case_selected(&r->cases, &r->cases.cases[pass]))
		log_warn("%s: none of the %zu packets that it found is selected", r->cases.cases[pass].id,
			 json_array_size(packets));
	if (!rc)
		rc = list_cases(r);
	return rc ? rc : run_folder_save(&r->folder, e);
}

static bool judge_ended(struct run *r, size_t index, const struct executor_end *end)
{
	struct run_case *c = &r->cases.cases[r->entry_case[index]];
	struct error e = { "" };
	json_t *verdict = NULL;
	bool good;

	if (c->judged)
		return !r->stop;
	settle_skipped_before(r, r->entry_case[index]);
	if ((r->o->judge ? r->o->judge : run_judge)(r->entries[index].dir, r->kernel, r->o->strict, &verdict, &e)) {
		settle_unrun(r, c, VERDICT_ERROR, e.text);
		note_broken(r, -EIO, &e);
		return !r->o->fail_fast;
	}
	settle(r, c, verdict, end->boot, end->dur_ns);
	good = verdict_of(verdict) == VERDICT_PASS || verdict_of(verdict) == VERDICT_DEVIATION ||
	       verdict_of(verdict) == VERDICT_SKIP;
	if (c->source->first_pass && verdict_of(verdict) == VERDICT_PASS &&
	    follow(r, r->entry_case[index], json_object_get(verdict, "packets"), &e))
		note_broken(r, -EIO, &e);
	json_decref(verdict);
	if (!good && (r->o->fail_fast || r->o->keep))
		r->stopped_early = true;
	return !r->stopped_early && !r->stop;
}

static bool on_done(void *user, size_t index, const struct executor_end *end)
{
	struct run *r = user;
	bool go_on = judge_ended(r, index, end);

	schedule_done(r->schedule, index);
	if (!go_on)
		schedule_stop(r->schedule);
	return go_on;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *user)
{
	struct run *r = user;

	(void)source;
	r->stop = true;
	if (++r->signals == 1) {
		progress_clear(&r->progress);
		log_warn("%s: ends the run, puts everything back (once more: at once)", strsignal((int)si->ssi_signo));
		return 0;
	}
	/* Children die with us (PR_SET_PDEATHSIG); the journal undoes the rest at the next start. */
	_exit(EXIT_ERROR);
}

static int loop_open(struct run *r, struct error *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	sigset_t mask;
	int rc = sd_event_default(&r->loop);

	sigemptyset(&mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&mask, signals[i]);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	for (size_t i = 0; rc >= 0 && i < sizeof(signals) / sizeof(*signals); i++)
		rc = sd_event_add_signal(r->loop, NULL, signals[i], on_signal, r);
	return rc < 0 ? error_set(e, rc, "event loop: %s", strerror(-rc)) : 0;
}

static int choose_executor(struct run *r, struct error *e)
{
	struct error why = { "" };

	r->executor = r->o->executor;
	if (r->executor)
		return 0;
	if (!strcmp(r->o->lab, "guest") || !strcmp(r->o->lab, "rxe")) {
		r->executor = r->o->lab[0] == 'g' ? &executor_guest : &executor_native;
		return r->executor->probe(e) ? error_prefix(e, -ENODEV, "lab %s cannot run here", r->o->lab) : 0;
	}
	/* A kernel of one's own can only be tested in a guest. */
	r->executor = &executor_native;
	if (!r->o->kernel && !r->executor->probe(&why))
		return 0;
	r->executor = &executor_guest;
	if (why.text[0])
		log_debug("lab rxe is not possible here (%s): lab guest", why.text);
	if (!r->executor->probe(e))
		return 0;
	if (why.text[0])
		return error_prefix(e, -ENODEV, "no lab can run here. rxe: %s; guest", why.text);
	return error_prefix(e, -ENODEV, "lab guest cannot run here");
}

static char *timestamp(char *buf, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buf;
}

static int folder_fill(struct run *r, struct error *e)
{
	const struct run_options *o = r->o;
	json_t *run, *set = json_array();
	char stamp[64], host[65] = "";
	int rc = run_folder_open(o->out, &r->folder, e);

	if (rc) {
		json_decref(set);
		return rc;
	}
	run = r->folder.run;
	for (const char *const *s = o->set; s && *s; s++)
		json_array_append_new(set, json_string(*s));
	json_object_set(run, "command", (json_t *)o->command);
	json_object_set_new(run, "repeat", json_string(o->repeat_command));
	json_object_set_new(run, "seed", json_hex(o->seed));
	json_object_set_new(run, "set", set);
	json_object_set_new(run, "strict", json_boolean(o->strict));
	json_object_set_new(run, "build", json_string(QD_BUILD));
	json_object_set_new(run, "lanes", json_integer(1));
	if (!gethostname(host, sizeof(host) - 1))
		json_object_set_new(run, "host", json_string(host));
	json_object_set_new(run, "started", json_string(timestamp(stamp, sizeof(stamp))));
	for (size_t i = 0; i < r->cases.n && !rc; i++)
		rc = folder_add(r, i, e);
	if (!rc)
		rc = list_cases(r);
	return rc ? rc : run_folder_save(&r->folder, e);
}

static int queue_fill(struct run *r, struct error *e)
{
	if (schedule_new(1, &r->schedule))
		return error_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < r->cases.n; i++) {
		int rc = json_str(r->cases.cases[i].plan, "skip") ? 0 : queue_add(r, i, e);

		if (rc)
			return rc;
	}
	return 0;
}

static int execute(struct run *r, struct error *e)
{
	const struct run_options *o = r->o;
	char *self = NULL;
	struct executor_options x = {
		.run_dir = r->folder.dir,
		.profile = o->provider,
		.launch = o->launch,
		.kernel = o->kernel,
		.modules = o->modules,
		.rdma_core = o->rdma_core,
		.accel = o->accel,
		.keep = o->keep,
		.cold = o->cold,
		.verbose = o->verbose,
		.stop = &r->stop,
		.lanes = 1,
		.next = next,
		.on_environment = on_environment,
		.on_start = on_start,
		.on_step = on_step,
		.on_done = on_done,
		.user = r,
	};
	int rc = o->executor ? 0 : data_program("qpdrill", &self, e);

	if (rc)
		return rc;
	x.self = self;
	progress_note(&r->progress, "lab %s: %zu case%s to run", r->executor->name, r->queue.n, r->queue.n == 1 ? "" : "s");
	rc = r->executor->run(r->loop, &r->queue, &x, e);
	free(self);
	return rc;
}

/* Nothing stays without a verdict. */
static void settle_rest(struct run *r)
{
	char why[1200];

	settle_skipped_before(r, r->cases.n);
	for (size_t i = 0; i < r->cases.n; i++) {
		struct run_case *c = &r->cases.cases[i];

		if (c->judged)
			continue;
		/* With --keep the signal that ends a kept lab is the ordinary end. */
		if (r->stopped_early)
			settle_unrun(r, c, VERDICT_SKIP, "not run: an earlier case failed (--fail-fast or --keep)");
		else if (r->stop)
			settle_unrun(r, c, VERDICT_ERROR, "not run: interrupted");
		else {
			snprintf(why, sizeof(why), "not run: %s", r->broken.text[0] ? r->broken.text : "the lab ended before it");
			/* A headline is one line. */
			for (char *nl = strchr(why, '\n'); nl; nl = strchr(nl, '\n'))
				*nl = ' ';
			settle_unrun(r, c, VERDICT_ERROR, why);
		}
	}
}

static int finish(struct run *r, FILE *out, int status)
{
	struct report_run report;
	struct error e = { "" };
	char stamp[64];
	int rc;

	json_object_set_new(r->folder.run, "ended", json_string(timestamp(stamp, sizeof(stamp))));
	json_object_set_new(r->folder.run, "exit", json_integer(status));
	rc = run_folder_save(&r->folder, &e);
	if (!rc)
		rc = report_load(r->folder.dir, &report, &e);
	if (rc) {
		log_error("%s", e.text);
		return status == EXIT_FAILED ? status : EXIT_ERROR;
	}
	if (report_write_all(&report, &e) || report_find("text")->write(&report, out, r->o->colour, &e)) {
		log_error("%s", e.text);
		status = status == EXIT_FAILED ? status : EXIT_ERROR;
	}
	report_release(&report);
	return status;
}

static int run_prepared(struct run *r, FILE *out)
{
	struct error e = { "" };
	int rc, status;

	rc = loop_open(r, &e);
	if (!rc)
		rc = folder_fill(r, &e);
	if (!rc)
		rc = queue_fill(r, &e);
	if (rc) {
		log_error("%s", e.text);
		return EXIT_ERROR;
	}
	progress_init(&r->progress, stderr, isatty(STDERR_FILENO), r->o->quiet, r->cases.n);
	if (r->queue.n)
		rc = choose_executor(r, &e);
	if (!rc && r->queue.n)
		rc = execute(r, &e);
	if (rc && !r->stop && !r->stopped_early)
		note_broken(r, rc, &e);
	settle_rest(r);
	progress_clear(&r->progress);
	if (r->broken.text[0])
		log_error("%s", r->broken.text);
	status = verdict_exit_status(r->counts);
	if ((r->stop && !r->stopped_early) || (r->broken.text[0] && status != EXIT_FAILED))
		status = EXIT_ERROR;
	return finish(r, out, status);
}

static int load(struct run *r, struct error *e)
{
	const struct run_options *o = r->o;
	struct plan_options plan = { .seed = o->seed, .set = o->set };
	struct diag d = { 0 };
	size_t before;
	int rc = run_cases_load(o->paths, o->n_paths, &r->cases, &d, e);

	if (d.text)
		fputs(d.text, stderr);
	diag_release(&d);
	if (rc)
		return rc == -ENODATA ? EXIT_ERROR : EXIT_USAGE;
	before = r->cases.n;
	run_cases_select(&r->cases, o->select, o->n_select);
	if (!r->cases.n) {
		if (before)
			error_set(e, -ENOENT,
				  "no scenario to run: --select matches none of %zu cases (`qpdrill list scenarios` names them)",
				  before);
		else
			error_set(e, -ENOENT, "no scenario to run: there is no *.yaml below %s", o->paths[0]);
		return EXIT_ERROR;
	}
	if (o->repeat > 1 && run_cases_repeat(&r->cases, o->repeat)) {
		error_set(e, -ENOMEM, "out of memory");
		return EXIT_ERROR;
	}
	return run_cases_plan(&r->cases, &plan, e) ? EXIT_USAGE : 0;
}

int run_main(const struct run_options *o, FILE *out)
{
	struct run r = { .o = o };
	struct error e = { "" };
	int status = load(&r, &e);

	if (status)
		log_error("%s", e.text);
	else
		status = run_prepared(&r, out);
	for (size_t i = 0; i < r.queue.n; i++)
		free((char *)r.entries[i].dir);
	schedule_free(r.schedule);
	free(r.entries);
	free(r.entry_case);
	run_folder_close(&r.folder);
	run_cases_release(&r.cases);
	sd_event_unref(r.loop);
	return status;
}
