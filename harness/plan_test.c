/* SPDX-License-Identifier: MIT */
/* Golden files: testdata/plan/NAME.case.json is {"id","sweep","seed","set","doc"}, NAME.plan.json what becomes of it. With
 * QPDRILL_GOLDEN=write the latter are written anew; look at the difference before you commit it. */
#include "plan.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "test.h"

#define DATA "harness/testdata/plan/"

static bool rewrites(void)
{
	const char *how = getenv("QPDRILL_GOLDEN");

	return how && !strcmp(how, "write");
}

static json_t *make(const json_t *input, struct error *e)
{
	const char *set[16] = { 0 };
	struct scenario_case c = {
		.id = (char *)json_str(input, "id"),
		.sweep = json_object_get(input, "sweep"),
		.doc = json_object_get(input, "doc"),
	};
	struct plan_options o = { .seed = json_u64(input, "seed", 1), .set = set, .file = "scenarios/t.yaml" };
	json_t *plan = NULL;

	for (size_t i = 0; i < json_array_size(json_object_get(input, "set")) && i < 15; i++)
		set[i] = json_string_value(json_array_get(json_object_get(input, "set"), i));
	plan_make(&c, &o, &plan, e);
	return plan;
}

static void check_golden(const char *path)
{
	struct error e = { "" };
	json_t *input = NULL, *expected = NULL, *plan;
	char golden[512];
	bool equal;

	snprintf(golden, sizeof(golden), "%.*s.plan.json", (int)(strlen(path) - strlen(".case.json")), path);
	CU_ASSERT_FATAL(json_load(path, &input, &e) == 0);
	plan = make(input, &e);
	ROW_ASSERT(plan, "%s: %s", path, e.text);
	if (plan && rewrites())
		CU_ASSERT(json_save(golden, plan, &e) == 0);
	if (json_load(golden, &expected, &e))
		expected = NULL;
	equal = plan && expected && json_equal(plan, expected);
	ROW_ASSERT(equal, "%s differs", golden);
	if (plan && !equal)
		json_save("/tmp/qpdrill-plan-seen.json", plan, &e);
	json_decref(expected);
	json_decref(plan);
	json_decref(input);
}

static void test_golden(void)
{
	glob_t g;

	CU_ASSERT_FATAL(glob(DATA "*.case.json", 0, NULL, &g) == 0);
	CU_ASSERT(g.gl_pathc >= 6);
	for (size_t i = 0; i < g.gl_pathc; i++)
		check_golden(g.gl_pathv[i]);
	globfree(&g);
}

static json_t *input_of(const char *head, const char *steps)
{
	json_t *input = json_pack("{s:s}", "id", "t/x"), *doc;
	char text[4096];
	json_error_t je;

	snprintf(text, sizeof(text), "{%s%s\"steps\":[%s]}", head, *head ? "," : "", steps);
	doc = json_loads(text, 0, &je);
	if (!doc)
		fprintf(stderr, "%s: %s\n", text, je.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
	json_object_set_new(input, "doc", doc);
	return input;
}

#define TWO_PAIRS                                                                                                                  \
	"\"agents\":{\"a\":{\"device\":\"a\"},\"x\":{\"device\":\"b\"},\"y\":{\"device\":\"b\"}},"                                 \
	"\"pairs\":{\"ax\":{\"ends\":[\"a\",\"x\"]},\"ay\":{\"ends\":[\"a\",\"y\"]}}"
#define MANY "\"pairs\":{\"p\":{\"ends\":[\"a\",\"b\"],\"count\":3}}"

static const struct end_row {
	const char *head, *key, *end, *expected; /* expected: names, or "!" and a part of the error */
} end_rows[] = {
	{ "", "modify", "a", "p.a" },
	{ "", "modify", "p.b", "p.b" },
	{ "", "modify", "*", "p.a p.b" },
	{ "", "modify", "*.b", "p.b" },
	{ "", "modify", "a@1", "p.a@1" },
	{ "", "expect", "b.recv", "p.b.recv" },
	{ "", "expect", "p.b.recv", "p.b.recv" },
	{ "", "expect", "dev.a", "dev.a" },
	{ "", "modify", "b.recv", "!queue where a QP" },
	{ "", "modify", "c", "!no pair and no agent called 'c'" },
	{ "", "modify", "p.c", "!names no QP" },
	{ "", "modify", "p.a.b", "!no end" },
	{ "", "modify", "p..a", "!no end" },
	{ "", "modify", "p[x].a", "!no end" },
	{ TWO_PAIRS, "modify", "x", "ax.x" },
	{ TWO_PAIRS, "modify", "ay.a", "ay.a" },
	{ TWO_PAIRS, "modify", "*.a", "ax.a ay.a" },
	{ TWO_PAIRS, "modify", "a", "!has 2 QPs" },
	{ TWO_PAIRS, "expect", "ax.a.send", "ax.a.send" },
	{ MANY, "modify", "p[1].a", "p[1].a" },
	{ MANY, "modify", "p[*].b", "p[0].b p[1].b p[2].b" },
	{ MANY, "modify", "*.b", "p[0].b p[1].b p[2].b" },
	{ MANY, "modify", "p.a", "!say which" },
	{ MANY, "modify", "p[3].a", "!names no QP" },
	{ MANY, "expect", "p[2].a.recv", "p[2].a.recv" },
	{ "\"srq\":{\"s\":{\"at\":\"b\",\"used_by\":[\"b\"]}}", "modify", "srq.s", "s" },
	{ "\"srq\":{\"s\":{\"at\":\"b\",\"used_by\":[\"b\"]}}", "expect", "s", "s" },
};

static void test_ends(void)
{
	for (size_t i = 0; i < sizeof(end_rows) / sizeof(*end_rows); i++) {
		const struct end_row *r = &end_rows[i];
		char step[256], seen[256] = "";
		struct error e = { "" };
		json_t *input, *plan, *name;
		size_t k;

		snprintf(step, sizeof(step), "{\"do\":\"%s\",\"line\":7,\"at\":[\"%s\"]}", r->key, r->end);
		input = input_of(r->head, step);
		plan = make(input, &e);
		json_array_foreach(json_object_get(plan_step(plan, 1), "at"), k, name)
			snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%s", k ? " " : "", json_string_value(name));
		if (*r->expected == '!')
			ROW_ASSERT(!plan && strstr(e.text, r->expected + 1) && strstr(e.text, "t.yaml:7"), "%s: '%s'", r->end,
				   e.text);
		else
			ROW_ASSERT(plan && !strcmp(seen, r->expected), "%s: expected '%s', seen '%s' %s", r->end, r->expected, seen,
				   e.text);
		json_decref(plan);
		json_decref(input);
	}
}

static const struct set_row {
	const char *set, *qp, *key;
	int64_t value;
	const char *error;
} set_rows[] = {
	{ "qp.timeout=18", "p.a", "timeout", 18, NULL },
	{ "qp.timeout=18", "p.b", "timeout", 18, NULL },
	{ "qp.a.retry_cnt=3", "p.a", "retry_cnt", 3, NULL },
	{ "qp.a.retry_cnt=3", "p.b", "retry_cnt", 5, NULL },
	{ "qp.path_mtu=4KiB", "p.b", "path_mtu", 4096, NULL },
	{ "qp.sq_psn=0xfffff0", "p.a", "sq_psn", 0xfffff0, NULL },
	{ "qp.timeout=32", NULL, NULL, 0, "0 to 31" },
	{ "qp.path_mtu=1000", NULL, NULL, 0, "256, 512" },
	{ "qp.tmieout=1", NULL, NULL, 0, "'tmieout' is no attribute" },
	{ "qp.c.timeout=1", NULL, NULL, 0, "no agent 'c'" },
	{ "qp.dest_qpn=1", NULL, NULL, 0, "no attribute" },
	{ "timeout=1", NULL, NULL, 0, "wanted is" },
	{ "qp.timeout", NULL, NULL, 0, "wanted is" },
	{ "qp.timeout=", NULL, NULL, 0, "wanted is" },
	{ "qp.timeout=x", NULL, NULL, 0, "'x' is no value" },
	{ "link.mtu=4200", NULL, NULL, 0, NULL },
	{ "link.mtu=9", NULL, NULL, 0, "576 to 9600" },
	{ "link.loss=9", NULL, NULL, 0, "only the mtu" },
};

static void test_set(void)
{
	for (size_t i = 0; i < sizeof(set_rows) / sizeof(*set_rows); i++) {
		const struct set_row *r = &set_rows[i];
		struct error e = { "" };
		json_t *input = input_of("", "{\"do\":\"connect\",\"line\":1}"), *plan;

		json_object_set_new(input, "set", json_pack("[s]", r->set));
		plan = make(input, &e);
		if (r->error)
			ROW_ASSERT(!plan && strstr(e.text, r->error), "%s: '%s'", r->set, e.text);
		else
			ROW_ASSERT(plan && json_has(plan, "set", r->set), "%s: %s", r->set, e.text);
		if (r->qp)
			ROW_ASSERT(json_int(json_object_get(plan_qp(plan, r->qp), "attr"), r->key, -1) == r->value, "%s at %s",
				   r->set, r->qp);
		json_decref(plan);
		json_decref(input);
	}
}

static const struct skip_row {
	const char *head, *steps, *reason; /* NULL: it runs */
} skip_rows[] = {
	{ "", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"requires\":[\"kernel >= 6.5\",\"srq\"]", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"requires\":[\"wire\"]", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"requires\":[\"magic\"]", "{\"do\":\"connect\",\"line\":1}", "magic" },
	{ "", "{\"do\":\"connect\",\"line\":1,\"by\":\"cm\"}", NULL },
	{ "", "{\"do\":\"fault\",\"line\":1,\"fault\":\"wire\",\"args\":{\"action\":\"drop\"}}", NULL },
	{ "", "{\"do\":\"fault\",\"line\":1,\"fault\":\"moon_phase\",\"args\":{}}", "moon_phase" },
	{ "", "{\"do\":\"expect\",\"line\":1,\"packets\":{\"from\":\"a\"},\"count\":4}", NULL },
	{ "", "{\"do\":\"expect\",\"line\":1,\"any\":[{\"cm\":{\"none\":true}},{\"qp\":\"ERR\"}]}", NULL },
	{ "", "{\"do\":\"recover\",\"line\":1,\"path\":\"cm\"}", NULL },
	{ "", "{\"do\":\"recover\",\"line\":1,\"path\":\"reopen\"}", NULL },
	{ "", "{\"do\":\"recover\",\"line\":1,\"path\":\"recreate\"}", NULL },
	{ "",
	  "{\"do\":\"repeat\",\"line\":1,\"times\":2,\"steps\":[{\"do\":\"fault\",\"line\":2,\"fault\":\"moon_phase\",\"args\":{}}]"
	  "}",
	  "moon_phase" },
	{ "\"qp\":{\"type\":\"UD\"}", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"qp\":{\"type\":\"XRC\"}", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"qp\":{\"a\":{\"type\":\"XRC_SEND\"},\"b\":{\"type\":\"XRC_RECV\"}}", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"qp\":{\"type\":\"XRC\"}", "{\"do\":\"create\",\"line\":1,\"qp\":[\"a\"],\"returns\":[\"EOPNOTSUPP\"]}", NULL },
	{ "\"qp\":{\"type\":\"XRC\"}", "{\"do\":\"create\",\"line\":1,\"qp\":[\"a\"]}", NULL },
	{ "\"qp\":{\"type\":\"UC\"}", "{\"do\":\"connect\",\"line\":1}", NULL },
	{ "\"mr\":{\"m\":{\"at\":\"a\"}},\"mw\":{\"w\":{\"at\":\"a\",\"type\":\"1\",\"over\":\"m\"}}",
	  "{\"do\":\"connect\",\"line\":1}", NULL },
};

static void test_skip(void)
{
	for (size_t i = 0; i < sizeof(skip_rows) / sizeof(*skip_rows); i++) {
		const struct skip_row *r = &skip_rows[i];
		struct error e = { "" };
		json_t *input = input_of(r->head, r->steps), *plan = make(input, &e);
		const char *skip = json_str(plan, "skip");

		CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
		if (r->reason)
			ROW_ASSERT(skip && strstr(skip, r->reason), "%s: skip '%s'", r->steps, skip ? skip : "");
		else
			ROW_ASSERT(!skip, "%s %s: skip '%s'", r->head, r->steps, skip);
		json_decref(plan);
		json_decref(input);
	}
}

/* What only a later life needs is asked for before the case begins. */
static void test_needs_of_a_recovery(void)
{
	struct error e = { "" };
	json_t *input = input_of("", "{\"do\":\"recover\",\"line\":1,\"path\":\"recreate\",\"qp\":{\"a\":{\"api\":\"extended\"}}}");
	json_t *plan = make(input, &e);

	CU_ASSERT(json_has(plan, "requires", "extended"));
	json_decref(plan);
	json_decref(input);
}

static const struct wire_row {
	const char *head, *steps;
	bool wire;
	const char *from; /* what `from` of the first step's match becomes */
} wire_rows[] = {
	{ "", "{\"do\":\"connect\",\"line\":1}", false, NULL },
	{ "\"requires\":[\"wire\"]", "{\"do\":\"connect\",\"line\":1}", true, NULL },
	{ "", "{\"do\":\"expect\",\"line\":1,\"packets\":{\"from\":[\"a\"]},\"count\":4}", true, "[\"a\"]" },
	{ "", "{\"do\":\"expect\",\"line\":1,\"packets\":{\"from\":[\"p.a\"]},\"count\":4}", true, "[\"p.a\"]" },
	{ "", "{\"do\":\"expect\",\"line\":1,\"of\":\"r\",\"phase\":{\"symptom\":{\"op\":\"<=\",\"value\":1}}}", true, NULL },
	{ "", "{\"do\":\"expect\",\"line\":1,\"of\":\"r\",\"phase\":{\"error\":{\"op\":\"<=\",\"value\":1}}}", false, NULL },
	{ "\"pairs\":{\"p\":{\"ends\":[\"a\",\"b\"],\"count\":2}}",
	  "{\"do\":\"fault\",\"line\":1,\"fault\":\"wire\",\"args\":{\"action\":\"drop\",\"match\":{\"from\":[\"p[*].b\"]}}}", true,
	  "[\"p[0].b\", \"p[1].b\"]" },
};

/* A case says in its plan that packets are its subject, and of which ends. */
static void test_wire(void)
{
	for (size_t i = 0; i < sizeof(wire_rows) / sizeof(*wire_rows); i++) {
		const struct wire_row *r = &wire_rows[i];
		struct error e = { "" };
		json_t *input = input_of(r->head, r->steps), *plan = make(input, &e);
		const json_t *step = json_array_get(json_object_get(plan, "steps"), 0), *match = json_object_get(step, "packets");
		char *from;

		ROW_ASSERT(plan != NULL, "%s: %s", r->steps, e.text);
		if (!match)
			match = json_object_get(json_object_get(step, "args"), "match");
		ROW_ASSERT(json_bool(plan, "wire", false) == r->wire, "%s %s: wire", r->head, r->steps);
		ROW_ASSERT(json_array_has(json_object_get(plan, "requires"), "wire") == r->wire, "%s: requires", r->steps);
		from = json_dumps(json_object_get(match, "from"), 0);
		ROW_ASSERT(!r->from || (from && !strcmp(from, r->from)), "%s: from %s", r->steps, from ? from : "nothing");
		free(from);
		json_decref(plan);
		json_decref(input);
	}
}

struct area {
	char mr[64];
	int64_t from, to;
};

static void area_add(struct area *areas, size_t *n, const char *qp, const char *role, const json_t *step, const char *key)
{
	int64_t off = json_int(step, key, -1), bytes = json_int(step, "stride", 0) * json_int(step, "slots", 0);

	if (off < 0)
		return;
	snprintf(areas[*n].mr, sizeof(areas[*n].mr), "%s.%s", qp, role);
	areas[*n].from = off;
	areas[(*n)++].to = off + bytes;
}

static void test_places_do_not_overlap(void)
{
	static const char steps[] = "{\"do\":\"post\",\"line\":1,\"at\":[\"a\"],\"op\":\"WRITE\",\"size\":4096,\"count\":16},"
				    "{\"do\":\"post\",\"line\":2,\"at\":[\"*\"],\"op\":\"READ\",\"size\":100,\"count\":{\"ref\":"
				    "\"a.max_send_wr\",\"add\":0}},"
				    "{\"do\":\"post\",\"line\":3,\"at\":[\"b\"],\"op\":\"SEND\",\"size\":1},"
				    "{\"do\":\"repeat\",\"line\":4,\"times\":3,\"steps\":[{\"do\":\"post\",\"line\":5,\"at\":["
				    "\"b\"],\"op\":\"WRITE\",\"size\":65,\"count\":2}]},"
				    "{\"do\":\"post\",\"line\":6,\"at\":[\"a\"],\"op\":\"CMP_AND_SWP\"}";
	struct error e = { "" };
	json_t *input = input_of("", steps), *plan = make(input, &e), *mr;
	struct area areas[64];
	size_t n = 0, k;

	CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
	for (int i = 1; plan_step(plan, i); i++) {
		const json_t *step = plan_step(plan, i);
		json_t *qp;

		json_array_foreach(json_object_get(step, "at"), k, qp) {
			area_add(areas, &n, json_string_value(qp), "tx", step, "tx_off");
			area_add(areas, &n, json_str(plan_qp(plan, json_string_value(qp)), "peer"), "mem", step, "mem_off");
		}
	}
	CU_ASSERT(n == 11);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++)
			ROW_ASSERT(strcmp(areas[i].mr, areas[j].mr) || areas[i].to <= areas[j].from || areas[j].to <= areas[i].from,
				   "%s: %lld and %lld", areas[i].mr, (long long)areas[i].from, (long long)areas[j].from);
		mr = (json_t *)plan_find(plan, "mrs", areas[i].mr);
		ROW_ASSERT(mr && json_int(mr, "bytes", 0) >= areas[i].to, "%s is too small", areas[i].mr);
	}
	CU_ASSERT(json_int(plan_step(plan, 1), "tag", 0) != json_int(plan_step(plan, 2), "tag", 0));
	json_decref(plan);
	json_decref(input);
}

static void test_psns(void)
{
	struct error e = { "" };
	int64_t last = -1;
	unsigned same = 0;

	for (uint64_t seed = 0; seed < 200; seed++) {
		json_t *input = input_of("", "{\"do\":\"connect\",\"line\":1}"), *plan;
		int64_t a, b;

		json_object_set_new(input, "seed", json_hex(seed));
		plan = make(input, &e);
		a = json_int(json_object_get(plan_qp(plan, "p.a"), "attr"), "sq_psn", -1);
		b = json_int(json_object_get(plan_qp(plan, "p.b"), "attr"), "sq_psn", -1);
		CU_ASSERT(a >= 0 && a <= 0xffffff && b >= 0 && b <= 0xffffff && a != b);
		same += a == last;
		last = a;
		json_decref(plan);
		json_decref(input);
	}
	CU_ASSERT(same == 0);
}

#define XRC(depth) "\"qp\":{\"type\":\"XRC\"},\"srq\":{\"s\":{\"at\":\"b\",\"depth\":" #depth ",\"used_by\":[\"b\"]}}"

static const struct refused_row {
	const char *head, *steps, *error;
} refused_rows[] = {
	{ "\"pairs\":{\"p\":{\"ends\":[\"a\",\"b\"],\"count\":64}}",
	  "{\"do\":\"traffic\",\"line\":1,\"ops\":[\"SEND\"],\"size\":65536}", "MiB" },
	{ "\"pairs\":{\"p\":{\"ends\":[\"a\",\"a\"]}}", "{\"do\":\"connect\",\"line\":1}", "both ends" },
	{ "\"pairs\":{\"p\":{\"ends\":[\"a\",\"z\"]}}", "{\"do\":\"connect\",\"line\":1}", "no agent 'z'" },
	{ "\"agents\":{\"a\":{},\"b\":{},\"c\":{}}", "{\"do\":\"connect\",\"line\":1}", "pairs must be named" },
	{ "\"cq\":{\"rx\":{\"at\":\"a\",\"used_by\":[\"b.recv\"]}}", "{\"do\":\"connect\",\"line\":1}", "cannot use it" },
	{ "\"mr\":{\"m\":{\"at\":\"c\"}}", "{\"do\":\"connect\",\"line\":1}", "no agent 'c'" },
	{ "", "{\"do\":\"fly\",\"line\":3}", "t.yaml:3: there is no step 'fly'" },
	{ "", "{\"do\":\"post\",\"line\":4,\"at\":[\"a\"],\"op\":\"WRITE\",\"replay\":\"w\"}", "no post before it is called 'w'" },
	{ "", "{\"do\":\"destroy\",\"line\":4,\"mr\":[\"pool\"]}", "no object 'pool'" },
	{ "", "{\"do\":\"post\",\"line\":4,\"at\":[\"a\"],\"op\":\"WRITE\",\"count\":{\"ref\":\"c.max_send_wr\",\"add\":0}}",
	  "'c'" },
	{ "", "{\"do\":\"recover\",\"line\":4,\"pair\":[\"q\"],\"path\":\"reset\"}", "no pair 'q'" },
	{ "\"qp\":{\"timeout\":{\"ref\":\"a.x\",\"add\":0}}", "{\"do\":\"connect\",\"line\":1}", "not known" },
	{ "\"qp\":{\"a\":{\"type\":\"XRC_SEND\"}}", "{\"do\":\"connect\",\"line\":1}", "p.a is XRC_SEND and p.b is RC" },
	{ XRC(8), "{\"do\":\"traffic\",\"line\":2,\"ops\":[\"SEND\",\"READ\"],\"messages\":18}", "when `s` has receives again" },
	{ XRC(8), "{\"do\":\"traffic\",\"line\":2,\"ops\":[\"SEND\"],\"as\":\"t\"}", "there may be 8" },
	{ XRC(7), "{\"do\":\"recover\",\"line\":2,\"path\":\"reset\"}", "there may be 7" },
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof(refused_rows) / sizeof(*refused_rows); i++) {
		const struct refused_row *r = &refused_rows[i];
		struct error e = { "" };
		json_t *input = input_of(r->head, r->steps), *plan = make(input, &e);

		ROW_ASSERT(!plan && strstr(e.text, r->error), "%s: '%s'", r->steps, e.text);
		json_decref(plan);
		json_decref(input);
	}
}

#define YEAR_NS (366 * 86400 * NSEC_PER_SEC)

static const struct deadline_row {
	const char *head, *step;
	uint64_t min_ns, max_ns;
} deadline_rows[] = {
	{ "\"qp\":{\"timeout\":18,\"retry_cnt\":6}", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\"}", 30000000000ULL,
	  60000000000ULL },
	{ "\"qp\":{\"timeout\":12,\"retry_cnt\":3}", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\"}", 5000000000ULL,
	  7000000000ULL },
	{ "\"qp\":{\"timeout\":0}", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\"}", 10000000000ULL,
	  20000000000ULL },
	{ "\"qp\":{\"rnr_retry\":7}", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\"}", 10000000000ULL,
	  20000000000ULL },
	{ "", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\",\"within\":100}", 100, 100 },
	{ "", "{\"do\":\"expect\",\"line\":1,\"at\":[\"a\"],\"qp\":\"ERR\",\"for\":3000000000}", 8000000000ULL, 15000000000ULL },
	{ "", "{\"do\":\"wait\",\"line\":1,\"arg\":1000000000}", 1000000000ULL, 7000000000ULL },
	{ "", "{\"do\":\"repeat\",\"line\":1,\"times\":20,\"steps\":[{\"do\":\"wait\",\"line\":2,\"arg\":1000000000}]}",
	  20000000000ULL, 140000000000ULL },
	/* Nobody waits after the last attempt. */
	{ "", "{\"do\":\"recover\",\"line\":1,\"path\":\"reset\",\"backoff\":3600000000000}", 20000000000ULL, 60000000000ULL },
	{ "", "{\"do\":\"recover\",\"line\":1,\"path\":\"reset\",\"attempts\":3,\"backoff\":3600000000000}", 2 * 3600000000000ULL,
	  2 * 3600000000000ULL + 180000000000ULL },
	/* And nobody longer than a year, whatever the file says. */
	{ "",
	  "{\"do\":\"repeat\",\"line\":1,\"times\":100000,\"steps\":[{\"do\":\"recover\",\"line\":2,\"path\":\"reset\","
	  "\"attempts\":1000,\"backoff\":3600000000000}]}",
	  YEAR_NS, YEAR_NS },
	{ "", "{\"do\":\"wait\",\"line\":1,\"arg\":9223372036854775807}", YEAR_NS, YEAR_NS },
	{ "", "{\"do\":\"traffic\",\"line\":1,\"messages\":4294967295}", YEAR_NS, YEAR_NS },
};

static void test_deadlines(void)
{
	for (size_t i = 0; i < sizeof(deadline_rows) / sizeof(*deadline_rows); i++) {
		const struct deadline_row *r = &deadline_rows[i];
		struct error e = { "" };
		json_t *input = input_of(r->head, r->step), *plan = make(input, &e);
		uint64_t ns = json_u64(plan_step(plan, 1), "deadline_ns", 0), budget = json_u64(plan, "budget_ns", 0);

		ROW_ASSERT(ns >= r->min_ns && ns <= r->max_ns, "%s %s: %llu", r->head, r->step, (unsigned long long)ns);
		CU_ASSERT(budget >= ns && budget >= 10000000000ULL);
		json_decref(plan);
		json_decref(input);
	}
}

/* The last step waits for what the steps before have made of the timers. */
static void test_deadlines_follow(void)
{
	static const struct {
		const char *steps;
		uint64_t min_ns, max_ns;
	} rows[] = {
#define CONNECTED "{\"do\":\"connect\",\"line\":1},"
#define LONG "\"path\":\"reset\",\"qp\":{\"timeout\":20,\"retry_cnt\":1}"
#define UNHEARD "{\"do\":\"post\",\"line\":3,\"at\":[\"a\"],\"op\":\"WRITE\",\"as\":\"w\"}"
#define ENDED "{\"do\":\"expect\",\"line\":4,\"of\":\"w\"}"
		{ CONNECTED UNHEARD "," ENDED, 5000000000ULL, 7000000000ULL },
		{ CONNECTED "{\"do\":\"recover\",\"line\":2," LONG "}," UNHEARD "," ENDED, 34000000000ULL, 45000000000ULL },
		{ CONNECTED "{\"do\":\"recover\",\"line\":2," LONG "}", 60000000000ULL, 70000000000ULL },
		{ CONNECTED UNHEARD ",{\"do\":\"recover\",\"line\":2,\"path\":\"reset\",\"qp\":{\"timeout\":1}}," ENDED,
		  5300000000ULL, 7000000000ULL },
		{ CONNECTED "{\"do\":\"modify\",\"line\":2,\"at\":[\"a\"],\"set\":{\"timeout\":20}}," UNHEARD "," ENDED,
		  50000000000ULL, 60000000000ULL },
		{ CONNECTED "{\"do\":\"repeat\",\"line\":2,\"times\":2,\"steps\":[" UNHEARD "," ENDED
			    ",{\"do\":\"recover\",\"line\":5," LONG "}]}",
		  2 * 82000000000ULL, 2 * 110000000000ULL },
		{ CONNECTED "{\"do\":\"fault\",\"line\":2,\"fault\":\"netem\",\"for\":3000000000,\"args\":{\"at\":\"a\"}},"
			    "{\"do\":\"expect\",\"line\":3,\"at\":[\"a\"],\"qp\":\"RTS\"}",
		  8000000000ULL, 10000000000ULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct error e = { "" };
		json_t *input = input_of("\"qp\":{\"timeout\":13,\"retry_cnt\":2}", rows[i].steps), *plan = make(input, &e);
		const json_t *steps = json_object_get(plan, "steps");
		uint64_t ns = json_u64(json_array_get(steps, json_array_size(steps) - 1), "deadline_ns", 0);

		ROW_ASSERT(ns >= rows[i].min_ns && ns <= rows[i].max_ns, "%s: %llu %s", rows[i].steps, (unsigned long long)ns,
			   e.text);
		CU_ASSERT(json_u64(plan, "budget_ns", 0) >= ns);
		json_decref(plan);
		json_decref(input);
	}
}

/* Receives are as long as a message may become, also where the device says how long that is. */
static void test_longest_message(void)
{
	static const struct {
		const char *head, *size;
		int64_t least;
	} rows[] = {
		{ "", "300", 300 },
		{ "", "{\"ref\":\"a.max_inline_data\",\"add\":0}", 64 },
		{ "\"qp\":{\"max_inline_data\":96}", "{\"ref\":\"a.max_inline_data\",\"add\":1}", 97 },
		{ "\"qp\":{\"a\":{\"max_inline_data\":400}}", "{\"ref\":\"p.a.max_inline_data\",\"add\":-1}", 399 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char step[256];
		struct error e = { "" };
		json_t *input, *plan;

		snprintf(step, sizeof(step), "{\"do\":\"post\",\"line\":1,\"at\":[\"a\"],\"op\":\"SEND\",\"size\":%s}",
			 rows[i].size);
		input = input_of(rows[i].head, step);
		plan = make(input, &e);
		ROW_ASSERT(plan && json_int(plan, "msg_bytes", 0) >= rows[i].least, "%s: %lld %s", rows[i].size,
			   (long long)json_int(plan, "msg_bytes", 0), e.text);
		json_decref(plan);
		json_decref(input);
	}
}

/* A group is nobody's: an agent with several peers may have a handle to it. */
static void test_group_handle(void)
{
	struct error e = { "" };
	json_t *input = input_of(TWO_PAIRS ",\"qp\":{\"type\":\"UD\"},\"ah\":{\"all\":{\"at\":\"a\",\"group\":\"ff02::1\"}}",
				 "{\"do\":\"connect\",\"line\":1}");
	json_t *plan = make(input, &e);
	const json_t *ah = plan_find(plan, "ahs", "all");

	ROW_ASSERT(ah && !json_str(ah, "to") && json_str(ah, "group"), "%s", e.text);
	json_decref(plan);
	json_decref(input);
}

static const struct test_case cases[] = {
	{ "longest message", test_longest_message },
	{ "a handle to a group", test_group_handle },
	{ "golden files", test_golden },
	{ "ends", test_ends },
	{ "--set", test_set },
	{ "skip reasons", test_skip },
	{ "what a recovery needs", test_needs_of_a_recovery },
	{ "what needs the wire", test_wire },
	{ "places do not overlap", test_places_do_not_overlap },
	{ "PSNs", test_psns },
	{ "refused", test_refused },
	{ "deadlines", test_deadlines },
	{ "deadlines follow what steps set", test_deadlines_follow },
};

TEST_MAIN("plan", cases)
