/* SPDX-License-Identifier: MIT */
/* The same packets, rules and times for two wires: one asks as few rules as it can, the other asks every rule about every packet.
 */
#include "wire_chain.h"

#include <errno.h>
#include <stdlib.h>

#include "wire_path_internal.h"
#include "wire_test.h"

#define SEEDS 60
#define STEPS 200
#define RULES_MAX 40
#define ROOM 2048

struct twin {
	struct wire_link *ports[2];
	struct wire_path *w;
	json_t *records;
};

static uint64_t rng;

static unsigned below(unsigned n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (unsigned)(rng >> 33) % n;
}

static void keep_record(void *user, json_t *rec)
{
	json_array_append_new(((struct twin *)user)->records, rec);
}

static void start(struct twin *t, bool plain)
{
	static const char *const names[2] = { "a", "b" };

	t->records = json_array();
	wire_link_memory_open(&t->ports[0]);
	wire_link_memory_open(&t->ports[1]);
	MUST(wire_path_new(t->ports, names, keep_record, t, &t->w) == 0);
	t->w->chain.plain = plain;
}

static void stop(struct twin *t)
{
	wire_path_free(t->w);
	t->ports[0]->ops->close(t->ports[0]);
	t->ports[1]->ops->close(t->ports[1]);
	json_decref(t->records);
}

static struct wire_clock clock_at(uint64_t ns)
{
	return (struct wire_clock){ .mono_ns = ns, .real_ns = ns + 1000000000000 };
}

/* One of the texts, with its %u filled in. */
static void add_one_of(FILE *f, const char *const *texts, unsigned n)
{
	const char *text = texts[below(n)], *at = strstr(text, "%u");

	if (at)
		fprintf(f, "%.*s%u%s", (int)(at - text), text, below(60), at + 2);
	else
		fputs(text, f);
}
#define ADD_ONE_OF(f, texts) add_one_of(f, texts, sizeof(texts) / sizeof *(texts))

/* Each in a third of all rules. */
static const char *const froms[] = { "\"a\"", "\"b\"", "\"p.a\"", "\"p.b\"", "\"q.a\"", "[\"p.a\",\"q.b\"]" };
static const char *const pairs[] = { "\"p\"", "\"q\"", "[\"p\",\"q\"]", "\"nobody\"" };
static const char *const classes[] = { "\"request\"", "\"ack\"",          "\"nak\"", "[\"ack\",\"nak\",\"rnr_nak\"]",
				       "\"cnp\"",     "\"read_response\"" };
static const char *const opcodes[] = { "\"RC_SEND_ONLY\"", "\"RC_ACKNOWLEDGE\"", "[\"RC_RDMA_WRITE_ONLY\",\"RC_SEND_ONLY\"]" };
static const char *const syndromes[] = { "\"ACK\"", "96", "[\"RNR_NAK\",\"NAK_PSN\"]", "\"NAK_OP\"" };
static const char *const sizes[] = { "64", "{\"op\":\">\",\"value\":10}", "{\"op\":\"range\",\"min\":1,\"max\":100}" };
static const char *const psns[] = {
	"%u",  "-%u", "{\"op\":\">=\",\"value\":%u}", "{\"op\":\"range\",\"min\":5,\"max\":12}", "{\"op\":\"<\",\"value\":%u}",
	"5000"
};
static const char *const transmissions[] = { "1", "2", "{\"op\":\">=\",\"value\":2}", "{\"op\":\"range\",\"min\":2,\"max\":3}" };
static const char *const nths[] = { "%u", "{\"op\":\">=\",\"value\":100}", "{\"op\":\"range\",\"min\":70,\"max\":75}", "150",
				    "100000" };
static const char *const everys[] = { "2", "7", "65", "100", "130" };
static const char *const actions[] = {
	"\"action\":\"drop\"",
	"\"action\":\"hold\"",
	"\"action\":\"delay\",\"by\":\"1ms\"",
	"\"action\":\"duplicate\"",
	"\"action\":\"duplicate\",\"copies\":2,\"by\":\"300us\"",
	"\"action\":\"reorder\",\"packets\":3",
	"\"action\":\"corrupt\"",
	"\"action\":\"truncate\",\"bytes\":4",
	"\"action\":\"rewrite\",\"rewrite\":{\"psn\":\"+2\"}",
	"\"action\":\"rewrite\",\"rewrite\":{\"pkey\":32767}",
	"\"action\":\"rewrite\",\"rewrite\":{\"dest_qp\":28}",
	"\"action\":\"rewrite\",\"rewrite\":{\"syndrome\":96}",
	"\"action\":\"replay\",\"by\":\"1ms\"",
	"\"action\":\"replay\",\"into\":\"next_life\",\"fit\":\"both\"",
	"\"action\":\"forge\",\"forge\":{\"kind\":\"ACK\",\"psn\":\"+1\"}",
	"\"action\":\"forge\",\"forge\":{\"kind\":\"NAK_PSN\"},\"by\":\"1ms\"",
	"\"action\":\"blackhole\"",
	"\"action\":\"blackhole\",\"ways\":\"one\"",
};
static const struct {
	const char *key;
	const char *const *values;
	unsigned n, odds; /* one rule in so many has it */
} keys[] = {
	{ "from", froms, sizeof froms / sizeof *froms, 3 },
	{ "pair", pairs, sizeof pairs / sizeof *pairs, 5 },
	{ "class", classes, sizeof classes / sizeof *classes, 3 },
	{ "opcode", opcodes, sizeof opcodes / sizeof *opcodes, 6 },
	{ "syndrome", syndromes, sizeof syndromes / sizeof *syndromes, 8 },
	{ "size", sizes, sizeof sizes / sizeof *sizes, 8 },
	{ "psn", psns, sizeof psns / sizeof *psns, 2 },
	{ "transmission", transmissions, sizeof transmissions / sizeof *transmissions, 5 },
	{ "nth", nths, sizeof nths / sizeof *nths, 3 },
	{ "every", everys, sizeof everys / sizeof *everys, 5 },
};

static json_t *random_rule(unsigned as)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool first = true;

	fprintf(f, "{\"as\":\"r%u\",", as);
	ADD_ONE_OF(f, actions);
	fputs(",\"match\":{", f);
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (below(keys[i].odds))
			continue;
		fprintf(f, "%s\"%s\":", first ? "" : ",", keys[i].key);
		add_one_of(f, keys[i].values, keys[i].n);
		first = false;
	}
	fputc('}', f);
	if (below(3))
		fprintf(f, ",\"times\":%u", 1 + below(5));
	if (!below(6))
		fprintf(f, ",\"for\":\"%ums\"", 1 + below(20));
	fputc('}', f);
	fclose(f);
	json_t *rule = json_loads(text, 0, NULL);

	ROW_ASSERT(rule != NULL, "%s", text);
	free(text);
	return rule;
}

/* Of pair p or q, of neither, or no RoCEv2. Its PSN goes on, or back a little. */
static size_t random_frame(unsigned from, int64_t *psn, uint8_t *frame)
{
	static const char *const kinds[] = { "RC_SEND_ONLY", "RC_RDMA_WRITE_ONLY", "RC_ACKNOWLEDGE", "RC_RDMA_READ_RESPONSE_ONLY",
					     "CNP",          "RC_SEND_ONLY" };
	static const uint8_t aeths[] = { 0x1f, 0x1f, 0x60, 0x2e };
	const char *opcode = kinds[below(sizeof kinds / sizeof *kinds)];
	bool payload = packet_opcode_by_name(opcode)->payload;
	int64_t at = below(5) ? (*psn)++ : *psn - (int64_t)below(4);
	size_t len = test_packet(from, opcode, at, aeths[below(4)], payload ? below(3) * 64 : 0, frame);
	struct packet p;

	packet_decode(frame, len, &p);
	switch (below(8)) {
	case 0: /* pair q: QPs 27 and 28 */
	case 1:
	case 2:
		packet_field_set(frame, &p, "dest_qp", p.dest_qp + 10);
		packet_icrc_mend(frame, &p);
		break;
	case 3:
		packet_field_set(frame, &p, "dest_qp", 99);
		break;
	case 4:
		if (!below(4))
			memcpy(frame + 12, "\x88\xb5", 2);
		break;
	default:
		break;
	}
	return len;
}

static void connect_pair(struct twin *t, const char *pair, unsigned life)
{
	struct wire_conn conn = test_conn(wire_path_names(t->w), life);

	conn.pair = wire_name(wire_path_names(t->w), pair);
	for (unsigned e = 0; e < 2; e++)
		conn.end[e].qpn += *pair == 'q' ? 10 : 0;
	wire_path_connect(t->w, &conn, NULL);
}

/* What left at a port of one left at that port of the other. */
static bool same_frames(struct twin *t, unsigned port)
{
	const uint8_t *frame[2];
	size_t len[2];
	bool there[2];

	do {
		for (unsigned i = 0; i < 2; i++)
			there[i] = wire_link_memory_pop(t[i].ports[port], &frame[i], &len[i]);
		if (there[0] != there[1] || (there[0] && (len[0] != len[1] || memcmp(frame[0], frame[1], len[0]))))
			return false;
	} while (there[0]);
	return true;
}

static bool same_json(json_t *a, json_t *b, bool tell)
{
	bool same = json_equal(a, b);

	for (size_t i = 0; tell && !same && i < json_array_size(a); i++) {
		if (json_equal(json_array_get(a, i), json_array_get(b, i)))
			continue;
		char *x = json_dumps(json_array_get(a, i), JSON_SORT_KEYS), *y = json_dumps(json_array_get(b, i), JSON_SORT_KEYS);

		fprintf(stderr, "    %zu of %zu and %zu\n    few: %s\n    all: %s\n", i, json_array_size(a), json_array_size(b), x,
			y ? y : "");
		free(x);
		free(y);
		break;
	}
	return same;
}

static bool same_reports(struct twin *t)
{
	json_t *few = wire_path_rules(t[0].w), *all = wire_path_rules(t[1].w);
	bool same = same_json(few, all, true);

	json_decref(few);
	json_decref(all);
	return same;
}

/* One thing that happens to both. False: they differ. */
static bool one_step(struct twin *t, unsigned *n_rules, int64_t psn[2], uint64_t now_ns)
{
	uint8_t frame[FRAME_MAX];
	unsigned what = below(100), from = below(2), life = 2 + below(2);
	char as[16];

	snprintf(as, sizeof as, "r%u", *n_rules ? below(*n_rules) : 0);
	if (what < 3 && *n_rules < RULES_MAX) {
		json_t *rule = random_rule((*n_rules)++);
		int rc[2] = { wire_path_rule(t[0].w, rule, clock_at(now_ns), NULL),
			      wire_path_rule(t[1].w, rule, clock_at(now_ns), NULL) };

		json_decref(rule);
		return rc[0] == rc[1];
	}
	if (what < 4) {
		json_t *few = NULL, *all = NULL;
		int rc[2] = { wire_path_clear(t[0].w, as, clock_at(now_ns), &few),
			      wire_path_clear(t[1].w, as, clock_at(now_ns), &all) };
		bool same = rc[0] == rc[1] && (rc[0] || json_equal(few, all));

		json_decref(few);
		json_decref(all);
		return same;
	}
	if (what < 5 || (what < 10 && !below(4))) {
		for (unsigned i = 0; i < 2; i++)
			if (what < 5)
				connect_pair(&t[i], "p", life);
			else
				wire_path_due(t[i].w, clock_at(now_ns));
		return true;
	}
	size_t burst = 1 + below(20);

	for (size_t n = 0; n < burst; n++) {
		size_t len = random_frame(from, &psn[from], frame);

		for (unsigned i = 0; i < 2; i++)
			wire_link_memory_push(t[i].ports[from], frame, len, 0);
	}
	for (unsigned i = 0; i < 2; i++)
		wire_path_pump(t[i].w, from, clock_at(now_ns));
	return true;
}

static void one_seed(uint64_t seed)
{
	struct twin t[2];
	unsigned n_rules = 0;
	int64_t psn[2] = { 0, 0 };
	uint64_t now_ns = 1000000;

	rng = seed * 0x9e3779b97f4a7c15u + 1;
	for (unsigned i = 0; i < 2; i++) {
		start(&t[i], i == 1);
		connect_pair(&t[i], "p", 1);
		connect_pair(&t[i], "q", 1);
	}
	unsigned first = below(20);

	for (unsigned i = 0; i < first; i++) {
		json_t *rule = random_rule(n_rules++);

		for (unsigned k = 0; k < 2; k++)
			wire_path_rule(t[k].w, rule, clock_at(now_ns), NULL);
		json_decref(rule);
	}
	bool same = true;
	unsigned step = 0;

	for (; same && step < STEPS; step++) {
		now_ns += below(200000);
		same = one_step(t, &n_rules, psn, now_ns) && same_frames(t, 0) && same_frames(t, 1);
	}
	ROW_ASSERT(same, "seed %llu, step %u", (unsigned long long)seed, step);
	ROW_ASSERT(same_reports(t), "seed %llu, the reports", (unsigned long long)seed);
	for (unsigned d = 0; d < 2; d++)
		ROW_ASSERT(!memcmp(wire_path_account(t[0].w, d), wire_path_account(t[1].w, d), sizeof(struct wire_account)),
			   "seed %llu, the accounts of direction %u", (unsigned long long)seed, d);
	wire_report_flush(wire_path_report(t[0].w), UINT64_MAX);
	wire_report_flush(wire_path_report(t[1].w), UINT64_MAX);
	ROW_ASSERT(same_json(t[0].records, t[1].records, true), "seed %llu, the records", (unsigned long long)seed);
	stop(&t[0]);
	stop(&t[1]);
}

static void test_same(void)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		one_seed(seed);
}

/* The rules of these kinds cost nothing as long as no packet of theirs comes: how many are asked of a request of p.a. */
static void test_asked(void)
{
	static const struct {
		const char *rule;
		unsigned asked; /* of a request of p.a */
	} rows[] = {
		{ "\"match\":{\"from\":\"b\"}", 0 },
		{ "\"match\":{\"class\":\"ack\"}", 0 },
		{ "\"match\":{\"pair\":\"q\"}", 0 },
		{ "\"match\":{\"opcode\":\"RC_ACKNOWLEDGE\"}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"class\":\"request\",\"psn\":70}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"transmission\":2}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"transmission\":1}", 1 },
		{ "\"match\":{\"from\":\"p.a\",\"nth\":1000}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"every\":1000}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"nth\":2}", 1 },
		{ "\"match\":{\"from\":\"p.a\",\"every\":3}", 1 },
		{ "\"match\":{\"from\":\"p.a\",\"size\":64}", 0 },
		{ "\"match\":{\"from\":\"p.a\",\"size\":0}", 1 },
		{ "\"match\":{\"psn\":{\"op\":\">=\",\"value\":70}}", 0 },
		{ "\"match\":{\"psn\":{\"op\":\"<\",\"value\":70}}", 1 },
		{ "\"match\":{\"psn\":{\"op\":\"<\",\"value\":70},\"nth\":1000}", 0 },
	};
	uint8_t frame[FRAME_MAX];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct twin t;
		char text[256];

		start(&t, false);
		connect_pair(&t, "p", 1);
		snprintf(text, sizeof text, "{\"as\":\"r\",\"action\":\"drop\",%s}", rows[i].rule);
		json_t *rule = json_loads(text, 0, NULL);

		CU_ASSERT(wire_path_rule(t.w, rule, clock_at(1), NULL) == 0);
		json_decref(rule);
		wire_link_memory_push(t.ports[0], frame, test_packet(0, "RC_SEND_ONLY", 0, 0, 0, frame), 0);
		wire_path_pump(t.w, 0, clock_at(2));
		const struct wire_kind *k = t.w->chain.kinds ? t.w->chain.kinds->first : NULL;

		ROW_ASSERT(k && k->n_asked == rows[i].asked, "%s: %u asked", rows[i].rule, k ? k->n_asked : 0);
		stop(&t);
	}
}

static const struct test_case cases[] = {
	{ "few rules asked, and all of them: the same", test_same },
	{ "which rules are asked", test_asked },
};
TEST_MAIN("wire_chain", cases)
