/* SPDX-License-Identifier: MIT */
/* What recoveries ask of the agents, and when they have come to an end: against agents that this program plays itself. */
#include "controller_rig.h"

#include <fcntl.h>
#include <time.h>

#include "controller_fake.h"

#define ASKED "QD_ASKED"

/* ---- a device that is where it was moved to, and writes down what it was asked ---- */

static void write_down(const json_t *req)
{
	char *text = json_dumps(req, JSON_COMPACT | JSON_SORT_KEYS), path[512];
	FILE *out;

	snprintf(path, sizeof path, "%s", getenv(ASKED) ? getenv(ASKED) : "/dev/null");
	out = fopen(path, "a");
	if (out && text)
		fprintf(out, "%s\n", text);
	if (out)
		fclose(out);
	free(text);
}

static json_t *state_told(const json_t *req, const char *state, const char *asked)
{
	static json_int_t t = 1000;

	say_record(json_pack("{s:I,s:s,s:O,s:i,s:s*,s:s,s:O?,s:{s:s}}", "t", t++, "kind", "state", "obj",
			     json_object_get(req, "name"), "life", 1, "asked", asked, "new", state, "by",
			     json_object_get(req, "by"), "queried", "state", state));
	return json_pack("{s:i,s:s,s:i,s:{s:s},s:{s:s}}", "rc", 0, "new", state, "life", 1, "queried", "state", state, "state",
			 "state", state);
}

/* Mode "slow": its traffic takes 1.2 s. Mode "damaged": 160 ms, and fails. Mode "silent": all the time that it has, and nothing
 * comes. */
static json_t *traffic_done(const json_t *req, const char *mode)
{
	bool damaged = !strcmp(mode, "damaged");

	if (damaged)
		nanosleep(&(struct timespec){ .tv_nsec = 160000000 }, NULL);
	if (!strcmp(mode, "slow"))
		nanosleep(&(struct timespec){ 1, 200000000 }, NULL);
	if (!strcmp(mode, "silent")) {
		uint64_t ns = json_u64(req, "deadline_ns", 0);

		nanosleep(&(struct timespec){ (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) }, NULL);
		return json_pack("{s:i,s:s}", "rc", -ETIMEDOUT, "error", "nothing came");
	}
	return json_pack("{s:i,s:i,s:i,s:i}", "rc", 0, "done", 0, "errors", 0, "bad_payload", damaged);
}

static json_t *device(const json_t *req)
{
	static char state[16] = "RESET";
	const char *op = json_str(req, "op"), *mode = getenv(MODE);

	write_down(req);
	if (!strcmp(op, "qp_create"))
		snprintf(state, sizeof state, "RESET");
	if (!strcmp(op, "qp_modify")) {
		snprintf(state, sizeof state, "%s", json_str(req, "to"));
		return state_told(req, state, state);
	}
	if (!strcmp(op, "qp_query"))
		return state_told(req, state, NULL);
	if (!strcmp(op, "drain"))
		return json_pack("{s:i,s:i}", "rc", 0, "in_flight", 0);
	return strcmp(op, "traffic") || !mode ? NULL : traffic_done(req, mode);
}

/* ---- cases ---- */

#define RECOVER(n, more)                                                                                                           \
	",{'n':" #n                                                                                                                \
	",'do':'recover','line':6,'pairs':['p'],'check':{'ops':['SEND'],'size':64,'depth':1,'messages':0,'tag':8192}," more "}"

struct outcome {
	json_t *records, *asked; /* asked: of both agents */
};

static struct outcome recovered(const char *mode, const char *steps)
{
	char path[128], text[4096];
	struct controller *c;
	struct error e = { "" };
	struct outcome o = { NULL, NULL };

	snprintf(path, sizeof path, "%s/asked", dir);
	unlink(path);
	setenv(ASKED, path, 1);
	c = controller_of(mode, NULL);
	snprintf(text, sizeof text, "[" CONNECT "%s]", steps);
	CU_ASSERT_EQUAL(run_plan(c, plan_of(text, 20 * NSEC_PER_SEC), &o.records, &e), 0);
	CU_ASSERT_EQUAL_FATAL(json_load_lines(path, &o.asked, &(bool){ false }, NULL), 0);
	controller_done(c);
	return o;
}

static void outcome_free(struct outcome *o)
{
	json_decref(o->records);
	json_decref(o->asked);
}

/* The last request of that kind about a QP; to NULL: any. */
static const json_t *last_asked(const json_t *asked, const char *op, const char *qp, const char *to)
{
	const json_t *req, *last = NULL;
	size_t i;

	json_array_foreach((json_t *)asked, i, req)
		if (json_has(req, "op", op) && json_has(req, "name", qp) && (!to || json_has(req, "to", to)))
			last = req;
	return last;
}

static int64_t last_set(const json_t *asked, const char *qp, const char *to, const char *attr)
{
	return json_int(json_object_get(last_asked(asked, "qp_modify", qp, to), "set"), attr, -1);
}

static void an_ends_own_value_goes_before_the_common_one(void)
{
	static const char *const blocks[] = { "'qp':{'timeout':14,'a':{'timeout':16}}", "'qp':{'a':{'timeout':16},'timeout':14}" };

	for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
		char steps[512];
		struct outcome o;

		snprintf(steps, sizeof steps, RECOVER(2, "'path':'reset',%s"), blocks[i]);
		o = recovered("good", steps);
		ROW_ASSERT(!strcmp(outcome_of(o.records, 2), "done"), "%s: %s", blocks[i], outcome_of(o.records, 2));
		ROW_ASSERT(last_set(o.asked, "p.a", "RTS", "timeout") == 16 && last_set(o.asked, "p.b", "RTS", "timeout") == 14,
			   "%s: a %lld, b %lld", blocks[i], (long long)last_set(o.asked, "p.a", "RTS", "timeout"),
			   (long long)last_set(o.asked, "p.b", "RTS", "timeout"));
		outcome_free(&o);
	}
}

/* What one recovery has set holds in the lives after it; a drained queue is told only what this step sets. */
static void what_was_set_holds_and_is_not_said_again(void)
{
	struct outcome o =
		recovered("good", RECOVER(2, "'path':'recreate','qp':{'path_mtu':512,'max_recv_wr':32,'retry_cnt':5}")
					  RECOVER(3, "'path':'sqd','qp':{'a':{'min_rnr_timer':14}}") RECOVER(4, "'path':'reset'"));
	const json_t *set;

	for (int i = 2; i <= 4; i++)
		ROW_ASSERT(!strcmp(outcome_of(o.records, i), "done"), "step %d: %s", i, outcome_of(o.records, i));
	set = json_object_get(last_asked(o.asked, "qp_modify", "p.a", "SQD"), "set");
	CU_ASSERT(json_object_size(set) == 1 && json_int(set, "min_rnr_timer", 0) == 14);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.b", "SQD", "min_rnr_timer"), -1);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.b", "SQD", "en_sqd_async_notify"), 1);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.a", "RTR", "min_rnr_timer"), 14);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.a", "RTR", "path_mtu"), 512);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.b", "RTS", "retry_cnt"), 5);
	outcome_free(&o);
}

static void a_new_qp_is_made_as_the_recovery_says(void)
{
	struct outcome o = recovered(
		"good", RECOVER(2, "'path':'recreate','qp':{'signal_all':true,'a':{'api':'extended'},'rq_psn':77,'max_recv_wr':32}")
				RECOVER(3, "'path':'recreate','qp':{'signal_all':false}"));
	const json_t *first = NULL, *req;
	size_t i, made = 0;

	json_array_foreach(o.asked, i, req)
		if (json_has(req, "op", "qp_create") && json_has(req, "name", "p.a") && ++made == 2)
			first = req;
	CU_ASSERT_EQUAL(made, 3);
	CU_ASSERT(json_bool(first, "signal_all", false) && json_has(first, "api", "extended"));
	CU_ASSERT_EQUAL(json_int(json_object_get(first, "cap"), "max_recv_wr", 0), 32);
	CU_ASSERT_EQUAL(last_set(o.asked, "p.a", "RTR", "rq_psn"), 77);
	CU_ASSERT(!json_bool(last_asked(o.asked, "qp_create", "p.a", NULL), "signal_all", true));
	CU_ASSERT_PTR_NULL(json_object_get(last_asked(o.asked, "qp_create", "p.b", NULL), "api"));
	outcome_free(&o);
}

static void who_is_unreachable_needs_a_recovery(void)
{
	static const struct {
		const char *fault, *text;
	} rows[] = {
		{ "", "not needed" },
		{ ",{'n':2,'do':'fault','line':5,'fault':'agent_frozen','as':'f','args':{'agent':'b'},'blast':'pair'}", NULL },
		{ ",{'n':2,'do':'fault','line':5,'fault':'agent_killed','as':'f','args':{'agent':'b'},'blast':'pair'}", NULL },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char steps[1024];
		struct outcome o;
		const json_t *skipped;

		snprintf(steps, sizeof steps, "%s" RECOVER(3, "'path':'restart','if_needed':true"), rows[i].fault);
		o = recovered("good", steps);
		skipped = find_kind(o.records, "step", "not needed");
		ROW_ASSERT(!strcmp(outcome_of(o.records, 3), "done"), "%s: %s", rows[i].fault, outcome_of(o.records, 3));
		ROW_ASSERT(!skipped == !rows[i].text && !find_kind(o.records, "recover", "verified") == !!rows[i].text, "%s: %s",
			   rows[i].fault, skipped ? "not needed" : "recovered");
		outcome_free(&o);
	}
}

/* What comes before the traffic takes far less than a second. */
static void a_deadline_is_one(void)
{
	static const struct {
		const char *mode, *more, *outcome, *phase, *text;
		unsigned attempts;
	} rows[] = {
		{ "slow", "", "done", "verified", "", 1 },
		{ "slow", ",'deadline_ns':1000000000", "timeout", "failed", "it recovered, but that took ", 1 },
		{ "slow", ",'deadline_ns':1", "timeout", "failed", "no time is left for traffic", 1 },
		{ "slow", ",'deadline_ns':1000000000,'result':'fails'", "broken", "verified", "was expected not to", 1 },
		{ "silent", ",'deadline_ns':2000000000,'result':'fails'", "done", "failed", "nothing came", 1 },
		{ "damaged", "", "broken", "failed", "arrived damaged", 1 },
		{ "damaged", ",'result':'fails','attempts':2", "done", "failed", "arrived damaged", 2 },
		{ "damaged", ",'result':'fails','deadline_ns':100000000,'attempts':2", "timeout", "failed", "and it had 100 ms",
		  1 },
		{ "damaged", ",'result':'fails','deadline_ns':500000000,'attempts':2,'backoff':60000000000", "timeout", "failed",
		  "and it had 500 ms", 1 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char steps[512], attempt[32];
		struct outcome o;

		snprintf(steps, sizeof steps, RECOVER(2, "'path':'reset'%s"), rows[i].more);
		o = recovered(rows[i].mode, steps);
		ROW_ASSERT(!strcmp(outcome_of(o.records, 2), rows[i].outcome), "%s: %s", rows[i].more, outcome_of(o.records, 2));
		ROW_ASSERT(find_kind(o.records, "recover", rows[i].phase) != NULL, "%s: not %s", rows[i].more, rows[i].phase);
		ROW_ASSERT(find_kind(o.records, "step", rows[i].text) != NULL, "%s: not '%s'", rows[i].more, rows[i].text);
		snprintf(attempt, sizeof attempt, "\"attempt\": %u", rows[i].attempts + 1);
		ROW_ASSERT(!find_kind(o.records, "recover", attempt), "%s: another attempt", rows[i].more);
		outcome_free(&o);
	}
}

static const struct test_case tests[] = {
	{ "an end's own value goes before the common one", an_ends_own_value_goes_before_the_common_one },
	{ "what was set holds, and is not said again", what_was_set_holds_and_is_not_said_again },
	{ "a new QP is made as the recovery says", a_new_qp_is_made_as_the_recovery_says },
	{ "who is unreachable needs a recovery", who_is_unreachable_needs_a_recovery },
	{ "a deadline is one", a_deadline_is_one },
};

int main(void)
{
	fake_special = device;
	if (getenv(MODE))
		return fake_agent(getenv(MODE));
	return run_in_dir("recover", tests, sizeof tests / sizeof tests[0]);
}
