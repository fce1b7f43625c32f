/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "../reports/report.h"
#include "capability.h"
#include "commands.h"
#include "data.h"
#include "durations.h"
#include "json.h"
#include "log.h"
#include "pause.h"
#include "schedule.h"
#include "units.h"

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
	unsigned lanes;
	json_t *durations;
	size_t left_out;  /* cases, for their tag */
	json_t *troubles; /* boots in which something happened that was no case's yet: {"1":{"why","cases":[…],"found":BOOL}} */
	char kernel[128];
	unsigned device_looks;
	unsigned counts[NUM_VERDICTS];
	struct run_stop stop;
	bool go_on;
	struct run_pause pause;
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
static void settle(struct run *r, struct run_case *c, const json_t *verdict, const struct executor_end *end)
{
	static const char *const kept[] = { "phase_times", "unrun" };
	struct error e = { "" };
	uint64_t ns = json_u64(verdict, "duration_ns", 0);
	json_t *failed = run_require(r->o, c->plan, verdict);

	if (failed) {
		if (run_folder_verdict(&r->folder, c, failed, &e))
			note_broken(r, -EIO, &e);
		verdict = failed;
		r->stopped_early |= r->o->fail_fast;
	}
	c->judged = true;
	if (end->boot && !pause_max_ns(c->plan))
		durations_note(r->durations, c->id, end->dur_ns);
	c->result = json_pack("{s:s,s:s,s:s,s:s,s:I,s:i,s:i}", "case", c->id, "verdict", verdict_names[verdict_of(verdict)],
			      "headline", text_or(verdict, "headline", ""), "seen", text_or(verdict, "seen", ""), "duration_ns",
			      (json_int_t)(ns ? ns : end->dur_ns), "boot", end->boot, "lane", end->lane);
	r->counts[verdict_of(verdict)]++;
	json_decref(failed);
	if (!c->result)
		return;
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (json_object_get(verdict, kept[i]))
			json_object_set(c->result, kept[i], json_object_get(verdict, kept[i]));
	if (c->again)
		json_object_set_new(c->result, "again", json_string(c->again));
	if (run_folder_result(&r->folder, c->result, &e))
		note_broken(r, -EIO, &e);
	progress_end(&r->progress, c->result);
}

/* unrun: the run did not come to it, so that nothing is known of it. */
static void settle_without(struct run *r, struct run_case *c, enum verdict v, const char *why, bool unrun)
{
	json_t *verdict = run_verdict_unrun(c->plan, v, why);
	struct error e = { "" };

	if (unrun)
		json_object_set_new(verdict, "unrun", json_true());
	if (run_folder_verdict(&r->folder, c, verdict, &e))
		note_broken(r, -EIO, &e);
	settle(r, c, verdict, &(struct executor_end){ 0 });
	json_decref(verdict);
}

/* What the plan skips comes in its place among the others. */
static void settle_skipped_before(struct run *r, size_t end)
{
	for (size_t i = 0; i < end; i++) {
		struct run_case *c = &r->cases.cases[i];

		if (!c->judged && json_str(c->plan, "skip"))
			settle_without(r, c, VERDICT_SKIP, json_str(c->plan, "skip"), false);
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
	progress_note(&r->progress, "lab %s: kernel %s, provider %s, rdma-core %s%s", r->executor->name,
		      text_or(env, "kernel", "?"), text_or(env, "provider", "?"), text_or(env, "rdma_core", "?"),
		      strcmp(text_or(env, "netns", ""), "each") == 0 ? ", each end in a network namespace of its own" : "");
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

	progress_step(&r->progress, r->entries[index].id, step, what);
}

static void on_pause(void *user, size_t index, const json_t *where)
{
	struct run *r = user;
	char look[4300];

	progress_clear(&r->progress);
	snprintf(look, sizeof(look), "%s guest shell --run %s", program_invocation_name, r->folder.dir);
	run_pause_told(&r->pause, r->cases.cases[r->entry_case[index]].plan, where, r->executor == &executor_guest ? look : NULL);
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
	entries[r->queue.n] = (struct executor_case){ .id = c->id,
						      .dir = dir,
						      .budget_ns = json_u64(c->plan, "budget_ns", 0) + pause_max_ns(c->plan) };
	entry_case[r->queue.n++] = i;
	return schedule_add(r->schedule, durations_expect(r->durations, c->id, json_u64(c->plan, "budget_ns", 0)),
			    json_bool(c->plan, "exclusive", false))
		       ? error_set(e, -ENOMEM, "out of memory")
		       : 0;
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

	if (!rc && run_cases_pause(r->o, &r->cases, e))
		rc = -EINVAL;

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

/* What the case has shown is kept beside; why is for people. */
static void run_again(struct run *r, size_t index, const struct executor_end *end, enum schedule_again how, const char *why)
{
	struct run_case *c = &r->cases.cases[r->entry_case[index]];
	struct error e = { "" };

	if (run_folder_again(&r->folder, c, end->boot, &e))
		note_broken(r, -EIO, &e);
	free(c->again);
	c->again = strdup(why);
	r->progress.started--;
	progress_note(&r->progress, "%s: runs again%s: %s", c->id, how == SCHEDULE_BESIDE ? "" : " alone", why);
	schedule_again(r->schedule, index, how);
}

static bool is_good(const json_t *verdict)
{
	enum verdict v = verdict_of(verdict);

	return v == VERDICT_PASS || v == VERDICT_DEVIATION || v == VERDICT_SKIP;
}

/* True when it does not count, and the case is to run once more with the machine for itself. */
static bool is_void(struct run *r, size_t index, const struct executor_end *end, const json_t *verdict)
{
	char why[400];

	if (is_good(verdict) || !end->beside || r->cases.cases[r->entry_case[index]].again ||
	    !run_void(verdict, r->entries[index].dir, why, sizeof(why)))
		return false;
	run_again(r, index, end, SCHEDULE_ALONE, why);
	return true;
}

static void take_verdict(struct run *r, size_t index, const struct executor_end *end, const json_t *verdict)
{
	struct run_case *c = &r->cases.cases[r->entry_case[index]];
	struct error e = { "" };

	settle(r, c, verdict, end);
	if (c->trouble)
		run_trouble_look(r->troubles, c, verdict);
	if (c->source->first_pass && verdict_of(verdict) == VERDICT_PASS &&
	    follow(r, r->entry_case[index], json_object_get(verdict, "packets"), &e))
		note_broken(r, -EIO, &e);
	if (!is_good(verdict) && (r->o->fail_fast || r->o->keep))
		r->stopped_early = true;
}

static void judge_ended(struct run *r, size_t index, const struct executor_end *end)
{
	struct run_case *c = &r->cases.cases[r->entry_case[index]];
	struct error e = { "" };
	json_t *verdict = NULL;

	if (!c->judged) {
		run_devices(r->folder.run, r->entries[index].dir, &r->device_looks);
		settle_skipped_before(r, r->entry_case[index]);
		if ((r->o->judge ? r->o->judge : run_judge)(r->entries[index].dir, r->kernel, r->o->strict, &verdict, &e)) {
			settle_without(r, c, VERDICT_ERROR, e.text, false);
			note_broken(r, -EIO, &e);
			r->stopped_early |= r->o->fail_fast;
		} else if (is_void(r, index, end, verdict)) {
			json_decref(verdict);
			return;
		} else {
			take_verdict(r, index, end, verdict);
			json_decref(verdict);
		}
	}
	schedule_done(r->schedule, index);
}

static bool on_done(void *user, size_t index, const struct executor_end *end)
{
	struct run *r = user;
	bool go_on;

	if (end->blame == EXECUTOR_OWN) {
		judge_ended(r, index, end);
	} else {
		if (end->blame == EXECUTOR_ALONE)
			run_trouble_note(r->troubles, &r->cases.cases[r->entry_case[index]], end);
		run_again(r, index, end, end->blame == EXECUTOR_ALONE ? SCHEDULE_FRESH : SCHEDULE_BESIDE,
			  end->why ? end->why : "?");
	}
	go_on = !r->stopped_early && !r->stop.now;
	if (!go_on)
		schedule_stop(r->schedule);
	return go_on;
}

static int loop_open(struct run *r, struct error *e)
{
	int rc = sd_event_default(&r->loop);

	r->stop.progress = &r->progress;
	return rc < 0 ? error_set(e, rc, "event loop: %s", strerror(-rc)) : run_stop_open(&r->stop, r->loop, r->o->deadline_ns, e);
}

static int folder_fill(struct run *r, struct error *e)
{
	int rc = run_folder_open(r->o->out, &r->folder, e);

	if (rc)
		return rc;
	rc = run_describe(r->o, &r->cases, &r->folder, e);
	run_folder_stamp(&r->folder, "started");
	if (r->left_out)
		json_object_set_new(r->folder.run, "left_out", json_pack("{s:I}", RUN_LEFT_OUT, (json_int_t)r->left_out));
	for (size_t i = 0; i < r->cases.n && !rc; i++)
		rc = folder_add(r, i, e);
	if (!rc)
		rc = list_cases(r);
	return rc ? rc : run_folder_save(&r->folder, e);
}

static int queue_fill(struct run *r, struct error *e)
{
	r->lanes = run_choose_lanes(r->o, &r->cases);
	json_object_set_new(r->folder.run, "lanes", json_integer(r->lanes));
	r->troubles = json_object();
	r->durations = durations_load();
	if (schedule_new(r->lanes, &r->schedule))
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
		.any_link = o->any_link,
		.keep = o->keep,
		.cold = o->cold,
		.verbose = o->verbose,
		.stop = &r->stop.now,
		.lanes = r->lanes,
		.wire = run_wire_wanted(&r->cases),
		.next = next,
		.on_environment = on_environment,
		.on_start = on_start,
		.on_step = on_step,
		.on_pause = on_pause,
		.go_on = &r->go_on,
		.pause = o->pause_at != NULL,
		.on_done = on_done,
		.user = r,
	};
	int rc = o->executor ? 0 : data_program("qpdrill", &self, e);

	if (rc)
		return rc;
	x.self = self;
	progress_note(&r->progress, "lab %s: %zu case%s to run", r->executor->name, r->queue.n, r->queue.n == 1 ? "" : "s");
	r->pause = (struct run_pause){ .loop = r->loop, .go_on = &r->go_on };
	rc = r->executor->run(r->loop, &r->queue, &x, e);
	run_pause_end(&r->pause);
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
			settle_without(r, c, VERDICT_SKIP, "not run: an earlier case failed (--fail-fast or --keep)", true);
		else if (r->stop.now)
			settle_without(r, c, VERDICT_ERROR,
				       r->stop.too_late ? "not run to its end: the time of --deadline is up"
							: "not run: interrupted",
				       true);
		else {
			snprintf(why, sizeof(why), "not run: %s", r->broken.text[0] ? r->broken.text : "the lab ended before it");
			/* A headline is one line. */
			for (char *nl = strchr(why, '\n'); nl; nl = strchr(nl, '\n'))
				*nl = ' ';
			settle_without(r, c, VERDICT_ERROR, why, true);
		}
	}
}

static int finish(struct run *r, FILE *out, int status)
{
	struct report_run report;
	struct error e = { "" };
	int rc;

	run_folder_stamp(&r->folder, "ended");
	json_object_set_new(r->folder.run, "exit", json_integer(status));
	/* What the disk does not take is told all the same. */
	rc = run_folder_save(&r->folder, &e);
	if (rc)
		log_error("%s", e.text);
	if (report_load(r->folder.dir, &report, &e)) {
		log_error("%s", e.text);
		return status == EXIT_FAILED ? status : EXIT_ERROR;
	}
	for (int text = 0; text < 2; text++)
		if (text ? report_find("text")->write(&report, out, r->o->colour, &e) : report_write_all(&report, &e)) {
			log_error("%s", e.text);
			rc = -EIO;
		}
	report_release(&report);
	return !rc || status == EXIT_FAILED ? status : EXIT_ERROR;
}

static int run_prepared(struct run *r, FILE *out)
{
	struct error e = { "" };
	char budget[32];
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
	progress_note(&r->progress, "%zu case%s, at most %s if each took all the time that it has", r->cases.n,
		      r->cases.n == 1 ? "" : "s", units_format_ns(run_cases_budget(&r->cases), budget, sizeof(budget)));
	if (r->queue.n)
		rc = run_choose_executor(r->o, &r->executor, &e);
	if (!rc && r->queue.n)
		rc = execute(r, &e);
	if (rc && !r->stop.now && !r->stopped_early)
		note_broken(r, rc, &e);
	settle_rest(r);
	if (r->cases.gone) {
		error_set(&e, -ENOENT, "%zu of the cases that did not pass in that run are not there any more: no verdict on them",
			  r->cases.gone);
		note_broken(r, -ENOENT, &e);
	}
	durations_save(r->durations);
	if (run_trouble_left(r->troubles, &e))
		note_broken(r, -EIO, &e);
	if (json_object_size(r->troubles))
		json_object_set(r->folder.run, "troubles", r->troubles);
	if (run_folder_sort(&r->folder, &r->cases, &e))
		note_broken(r, -EIO, &e);
	progress_clear(&r->progress);
	if (r->broken.text[0])
		log_error("%s", r->broken.text);
	status = verdict_exit_status(r->counts);
	if ((r->stop.now && !r->stopped_early && !(r->stop.too_late && status == EXIT_FAILED)) ||
	    (r->broken.text[0] && status != EXIT_FAILED))
		status = EXIT_ERROR;
	return finish(r, out, status);
}

int run_main(const struct run_options *o, FILE *out)
{
	struct run r = { .o = o };
	struct error e = { "" };
	int status = run_load(o, &r.cases, &r.left_out, &e);

	if (!status && run_profiles_find(&r.cases, o->provider, &e))
		status = EXIT_USAGE;
	if (status)
		log_error("%s", e.text);
	else
		status = run_prepared(&r, out);
	for (size_t i = 0; i < r.queue.n; i++)
		free((char *)r.entries[i].dir);
	schedule_free(r.schedule);
	json_decref(r.troubles);
	json_decref(r.durations);
	free(r.entries);
	free(r.entry_case);
	run_folder_close(&r.folder);
	run_cases_release(&r.cases);
	sd_event_unref(r.loop);
	return status;
}
