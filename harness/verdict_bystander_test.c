/* SPDX-License-Identifier: MIT */
/* The pair that looks on: a record that passes, with what a bystander adds to it. The fault of that record is active from
 * 1000040000 to 1093340000; a blast in which it lies is excused until 4 T of the bystander (2.15 s) and its bound are over as well.
 */
#include "verdict_rig.h"

#define PLAN "{\"period_ns\":2000000,\"guest_period_ns\":10000000,\"gap_ns\":260000000,\"qps\":[{\"attr\":{\"timeout\":17}}]}"
#define OF(agent) "\"src\":\"agent/bystander_" agent "\",\"obj\":\"bystander.bystander_" agent "\",\"v\":1,"
#define START                                                                                                                      \
	"{\"t\":1000035000,\"src\":\"controller\",\"obj\":\"bystander\",\"kind\":\"bystander\",\"phase\":\"start\",\"period_ns\":" \
	"2000000,\"step\":0}"
#define STOP_A                                                                                                                     \
	"{" OF("a") "\"t\":1094500000,\"kind\":\"traffic\",\"phase\":\"stop\",\"sent\":40,\"done\":40,\"received\":0,\"errors\":"  \
		    "0,\"bad_payload\":0,\"gap_max_ns\":2000000,\"step\":-1}"
#define STOP_B(bad)                                                                                                                \
	"{" OF("b") "\"t\":1094500000,\"kind\":\"traffic\",\"phase\":\"stop\",\"sent\":0,\"done\":0,\"received\":40,\"errors\":0," \
		    "\"bad_payload\":" bad ",\"gap_max_ns\":2500000,\"gap_t_ns\":1050000000,\"step\":-1}"
#define WELL START, STOP_A, STOP_B("0")
#define WC(t, step) "{" OF("a") "\"t\":" t ",\"kind\":\"wc\",\"status\":\"RETRY_EXC_ERR\",\"count\":1,\"step\":" step "}"
#define EVENT(t, name, step) "{" OF("b") "\"t\":" t ",\"kind\":\"event\",\"event\":\"" name "\",\"life\":1,\"step\":" step "}"
#define GAP(t, ns, step) "{" OF("b") "\"t\":" t ",\"kind\":\"traffic\",\"phase\":\"gap\",\"gap_ns\":" ns ",\"step\":" step "}"
#define STATE(new, step)                                                                                                           \
	"{" OF("a") "\"t\":1094500000,\"kind\":\"state\",\"by\":\"query\",\"old\":\"RTS\",\"new\":\"" new "\",\"step\":" step "}"
#define LATE(ns)                                                                                                                   \
	"{\"src\":\"agent/bystander_b\",\"t\":1094500000,\"kind\":\"clock\",\"witness\":true,\"late_max_ns\":" ns ",\"step\":-1}"
#define DURING(bad)                                                                                                                \
	"{" OF("b") "\"t\":1093350000,\"kind\":\"traffic\",\"phase\":\"during:dry\",\"sent\":0,\"received\":9,\"errors\":0,\"bad_" \
		    "payload\":" bad ",\"gap_max_ns\":90000000,\"step\":7}"
#define FRAMES "{\"src\":\"wire\",\"t\":1050000000,\"kind\":\"lost\",\"what\":\"frames\",\"count\":3,\"why\":\"ring\",\"step\":5}"
#define DIED                                                                                                                       \
	"{\"src\":\"controller\",\"t\":1050000000,\"kind\":\"lost\",\"what\":\"agent/bystander_a\",\"count\":1,\"text\":\"agent "  \
	"bystander_a died: killed by signal 11\",\"step\":5}"
#define BLOCKED(t, step)                                                                                                           \
	"{" OF("a") "\"t\":" t ",\"kind\":\"blocked\",\"verb\":\"ibv_modify_qp\",\"waited_ns\":5000000000,\"step\":" step "}"
#define NOTHING                                                                                                                    \
	"{" OF("b") "\"t\":1094500000,\"kind\":\"traffic\",\"phase\":\"stop\",\"sent\":0,\"received\":0,\"errors\":0,\"bad_"       \
		    "payload\":0,\"gap_max_ns\":59000000,\"step\":-1}"
#define LATER "9000000000" /* long after the fault */

static const struct row {
	const char *name, *blast, *verdict, *text;
	const char *records[8];
} rows[] = {
	{ "all is well", "pair", "pass", NULL, { WELL, STATE("RTS", "-1") } },
	{ "an error beside a pair's fault",
	  "pair",
	  "fail",
	  "RETRY_EXC_ERR at bystander.bystander_a",
	  { WELL, WC("1050000000", "5") } },
	{ "an error in the link's fault",
	  "link",
	  "pass",
	  "in the blast of dry (link)",
	  { WELL, WC("1050000000", "5"), STATE("ERR", "-1") } },
	{ "an error in the device's fault", "device", "pass", "in the blast of dry (device)", { WELL, WC("1050000000", "5") } },
	{ "an error while it gets over it", "link", "pass", NULL, { WELL, WC("2500000000", "8") } },
	{ "an error long after it", "link", "fail", "RETRY_EXC_ERR", { WELL, WC(LATER, "9") } },
	{ "an error before it", "link", "fail", "RETRY_EXC_ERR", { WELL, WC("1000036000", "0") } },
	{ "an event", "pair", "fail", "event QP_FATAL at bystander.bystander_b", { WELL, EVENT("1050000000", "QP_FATAL", "5") } },
	{ "an event that needs no word", "pair", "pass", NULL, { WELL, EVENT("1050000000", "COMM_EST", "5") } },
	{ "an event in the blast", "link", "pass", NULL, { WELL, EVENT("1050000000", "PORT_ERR", "5") } },
	{ "another state", "pair", "fail", "bystander.bystander_a is in ERR", { WELL, STATE("ERR", "-1") } },
	{ "a gap", "pair", "fail", "300 ms without a message", { WELL, GAP(LATER, "300000000", "5") } },
	{ "a gap within the bound", "pair", "pass", NULL, { WELL, GAP(LATER, "255000000", "5") } },
	{ "a gap on a late machine", "pair", "pass", NULL, { WELL, GAP(LATER, "300000000", "5"), LATE("20000000") } },
	{ "a gap in the blast", "link", "pass", "the longest gap 4.00 s", { WELL, GAP("5000000000", "4000000000", "5") } },
	{ "a gap that begins in the blast", "link", "pass", NULL, { WELL, GAP(LATER, "8500000000", "5") } },
	{ "a gap after it", "link", "fail", "without a message", { WELL, GAP(LATER, "300000000", "9") } },
	{ "a gap, and the wire has lost frames", "pair", "inconclusive", NULL, { WELL, GAP(LATER, "300000000", "5"), FRAMES } },
	{ "a damaged message", "pair", "fail", "1 messages arrived damaged", { START, STOP_A, STOP_B("1") } },
	{ "a damaged message in a pair's fault", "pair", "fail", "damaged", { START, STOP_A, DURING("1"), STOP_B("1") } },
	{ "a damaged message in the blast", "link", "pass", NULL, { START, STOP_A, DURING("1"), STOP_B("1") } },
	{ "one more outside of it", "link", "fail", "1 messages arrived damaged", { START, STOP_A, DURING("1"), STOP_B("2") } },
	{ "an agent dies", "link", "fail", "agent bystander_a died: killed by signal 11", { WELL, DIED } },
	{ "a call that does not return", "pair", "fail", "ibv_modify_qp blocked for 5.00 s", { WELL, BLOCKED("1050000000", "5") } },
	{ "a call that kept it from starting", "pair", "pass", NULL, { BLOCKED("1000034000", "0"), WELL } },
	{ "nothing came", "pair", "fail", "not one of 40 messages arrived", { START, STOP_A, NOTHING } },
	{ "nothing came in the blast", "link", "pass", NULL, { START, STOP_A, NOTHING } },
	{ "it never started", "pair", "inconclusive", "it never started", { NULL } },
	{ "it never ended", "pair", "inconclusive", "its end is not on record", { START } },
};

static bool says(const json_t *v, const char *text)
{
	const json_t *f;
	size_t i;

	json_array_foreach(json_object_get(v, "findings"), i, f)
		if (strstr(json_str(f, "text"), text))
			return true;
	return false;
}

static void put(struct input *in, const char *text)
{
	json_t *r = json_loads(text, 0, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	/* Before the controller's last words. */
	CU_ASSERT_FATAL(json_array_insert_new(in->records, json_array_size(in->records) - 1, r) == 0);
}

static void input_make(const struct row *row, const char *plan, struct input *in)
{
	json_t *r;
	size_t i;

	input_load("rnr-pass", in);
	json_object_set_new(in->plan, "bystander", plan ? json_loads(plan, 0, NULL) : json_false());
	json_array_foreach(in->records, i, r)
		if (!strcmp(json_str(r, "kind"), "fault"))
			json_object_set_new(r, "blast", json_string(row->blast));
	for (i = 0; row->records[i]; i++)
		put(in, row->records[i]);
}

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		struct input in;
		json_t *v;

		input_make(row, PLAN, &in);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, row->verdict), "%s: %s instead of %s: %s", row->name, json_str(v, "verdict"), row->verdict,
			   json_str(v, "headline"));
		ROW_ASSERT(!row->text || says(v, row->text), "%s: no finding has \"%s\"", row->name, row->text);
		ROW_ASSERT(json_is_object(json_object_get(v, "bystander")), "%s: the verdict has no bystander", row->name);
		json_decref(v);
		input_release(&in);
	}
}

/* `bystander: none`: nothing is judged, and nothing that bears its name is anybody else's. */
static void test_none(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct input in;
		json_t *v;

		if (!strcmp(rows[i].name, "a gap, and the wire has lost frames"))
			continue;
		input_make(&rows[i], NULL, &in);
		v = judge(&in, false);
		ROW_ASSERT(is_verdict(v, "pass"), "%s: %s: %s", rows[i].name, json_str(v, "verdict"), json_str(v, "headline"));
		ROW_ASSERT(!json_object_get(v, "bystander"), "%s: a bystander that was not planned", rows[i].name);
		json_decref(v);
		input_release(&in);
	}
}

static void test_figures(void)
{
	const struct row *row = &rows[0];
	const json_t *b;
	struct input in;
	json_t *v;

	input_make(row, PLAN, &in);
	put(&in, LATE("3000000"));
	v = judge(&in, false);
	b = json_object_get(v, "bystander");
	CU_ASSERT_EQUAL(json_int(b, "period_ns", 0), 2000000);
	CU_ASSERT_EQUAL(json_int(b, "sent", 0), 40);
	CU_ASSERT_EQUAL(json_int(b, "received", 0), 40);
	CU_ASSERT_EQUAL(json_int(b, "gap_max_ns", 0), 2500000);
	CU_ASSERT_EQUAL(json_int(b, "gap_t_ns", 0), 1050000000);
	CU_ASSERT_EQUAL(json_int(b, "gap_bound_ns", 0), 260000000 + 4 * 3000000);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(b, "inside")), 0);
	json_decref(v);
	input_release(&in);
}

static const struct test_case cases[] = {
	{ "outside of the blast it may not suffer, inside it is told", test_rows },
	{ "without a bystander nothing is judged", test_none },
	{ "its figures", test_figures },
};

TEST_MAIN("verdict_bystander", cases)
