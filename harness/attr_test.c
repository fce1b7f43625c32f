/* SPDX-License-Identifier: MIT */
#include "attr.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#include "names.h"
#include "test.h"

/* "PORT AV" -> IBV_QP_PORT | IBV_QP_AV; -1 for a name that does not exist. */
static int mask_of(const char *text)
{
	char *copy = strdup(text), *rest = copy, *word;
	int mask = 0;

	while ((word = strsep(&rest, " ")) && *word) {
		const struct name *n = name_find(&names_attr_mask, word);

		mask = n && mask >= 0 ? mask | n->value : -1;
	}
	free(copy);
	return mask;
}

struct row {
	const char *type, *from, *to, *required, *optional;
};

#define CONNECTED "PKEY_INDEX PORT ACCESS_FLAGS"
#define RTS_RC "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"
#define RTS_UC "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"

/* Written down again from the specification's list of attributes per transition, by name. */
static const struct row rows[] = {
	{ "RC", "RESET", "INIT", CONNECTED, "" },
	{ "UC", "RESET", "INIT", CONNECTED, "" },
	{ "UD", "RESET", "INIT", "PKEY_INDEX PORT QKEY", "" },
	{ "RC", "INIT", "INIT", "", CONNECTED },
	{ "UC", "INIT", "INIT", "", CONNECTED },
	{ "UD", "INIT", "INIT", "", "PKEY_INDEX PORT QKEY" },
	{ "RC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER", "ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "UC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "UD", "INIT", "RTR", "", "PKEY_INDEX QKEY" },
	{ "RC", "RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC", RTS_RC },
	{ "UC", "RTR", "RTS", "SQ_PSN", RTS_UC },
	{ "UD", "RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY" },
	{ "RC", "RTS", "RTS", "", RTS_RC },
	{ "UC", "RTS", "RTS", "", RTS_UC },
	{ "UD", "RTS", "RTS", "", "CUR_STATE QKEY" },
	{ "RC", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "UC", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "UD", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "RC", "SQD", "RTS", "", RTS_RC },
	{ "UC", "SQD", "RTS", "", RTS_UC },
	{ "UD", "SQD", "RTS", "", "CUR_STATE QKEY" },
	{ "RC", "SQD", "SQD", "",
	  "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER "
	  "PATH_MIG_STATE" },
	{ "UC", "SQD", "SQD", "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE" },
	{ "UD", "SQD", "SQD", "", "PKEY_INDEX QKEY" },
	{ "UC", "SQE", "RTS", "", "CUR_STATE ACCESS_FLAGS" },
	{ "UD", "SQE", "RTS", "", "CUR_STATE QKEY" },
	{ "XRC_SEND", "RESET", "INIT", CONNECTED, "" },
	{ "XRC_RECV", "RESET", "INIT", CONNECTED, "" },
	{ "XRC_SEND", "INIT", "INIT", "", CONNECTED },
	{ "XRC_RECV", "INIT", "INIT", "", CONNECTED },
	{ "XRC_SEND", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "XRC_RECV", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
	  "ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "XRC_SEND", "RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC", RTS_UC },
	{ "XRC_RECV", "RTR", "RTS", "TIMEOUT SQ_PSN", RTS_RC },
	{ "XRC_SEND", "RTS", "RTS", "", RTS_UC },
	{ "XRC_RECV", "RTS", "RTS", "", RTS_RC },
	{ "XRC_SEND", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "XRC_RECV", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "XRC_SEND", "SQD", "RTS", "", RTS_UC },
	{ "XRC_RECV", "SQD", "RTS", "", RTS_RC },
	{ "XRC_SEND", "SQD", "SQD", "",
	  "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE" },
	{ "XRC_RECV", "SQD", "SQD", "",
	  "PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE" },
};

static void transitions_take_what_the_specification_says(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct transition *t =
			transition_find(name_find(&names_qp_type, rows[i].type)->value,
					name_find(&names_state, rows[i].from)->value, name_find(&names_state, rows[i].to)->value);

		ROW_ASSERT(t, "%s %s -> %s is missing", rows[i].type, rows[i].from, rows[i].to);
		if (!t)
			continue;
		ROW_ASSERT(t->required == mask_of(rows[i].required), "%s %s -> %s", rows[i].type, rows[i].from, rows[i].to);
		ROW_ASSERT(t->optional == mask_of(rows[i].optional), "%s %s -> %s", rows[i].type, rows[i].from, rows[i].to);
	}
}

/* Which moves exist: one line per type and origin, in the order RESET INIT RTR RTS SQD SQE ERR. */
static void moves_that_exist(void)
{
	static const struct {
		int type;
		const char *matrix[7];
	} types[] = {
		{ IBV_QPT_RC, { "xx.....", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", ".......", "x.....x" } },
		{ IBV_QPT_XRC_SEND, { "xx.....", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", ".......", "x.....x" } },
		{ IBV_QPT_XRC_RECV, { "xx.....", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", ".......", "x.....x" } },
		{ IBV_QPT_UC, { "xx.....", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", "x..x..x", "x.....x" } },
		{ IBV_QPT_UD, { "xx.....", "xxx...x", "x..x..x", "x..xx.x", "x..xx.x", "x..x..x", "x.....x" } },
	};
	size_t seen = 0;

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		for (int from = 0; from < 7; from++)
			for (int to = 0; to < 7; to++) {
				const struct transition *t = transition_find(types[k].type, from, to);

				ROW_ASSERT(!!t == (types[k].matrix[from][to] == 'x'), "%s %s -> %s",
					   name_of(&names_qp_type, types[k].type), name_of(&names_state, from),
					   name_of(&names_state, to));
				if (t && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
					ROW_ASSERT(!t->required && !t->optional, "to %s takes no attributes",
						   name_of(&names_state, to));
				seen += !!t;
			}
	CU_ASSERT_EQUAL(seen, transition_table_n);
}

static void contested_moves_are_no_moves(void)
{
	static const int types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };

	for (int from = 0; from < 7; from++)
		for (int to = 0; to < 7; to++)
			for (size_t type = 0; type < sizeof(types) / sizeof(types[0]); type++)
				ROW_ASSERT(!transition_contested(from, to) || !transition_find(types[type], from, to), "%s -> %s",
					   name_of(&names_state, from), name_of(&names_state, to));
	CU_ASSERT_PTR_NOT_NULL(transition_contested(IBV_QPS_RESET, IBV_QPS_ERR));
	CU_ASSERT_PTR_NULL(transition_contested(IBV_QPS_RESET, IBV_QPS_RTS));
}

static void masks_to_try(void)
{
	static const struct {
		enum mask_trial trial;
		const char *from, *to, *bits;
	} trials[] = {
		{ MASK_EXACT, "RESET", "INIT", "" },
		{ MASK_MISSING, "RESET", "INIT", CONNECTED },
		{ MASK_MISSING, "RTS", "SQD", "" },
		{ MASK_MISSING, "RESET", "RTS", "" },
		{ MASK_FORBIDDEN, "RESET", "RTS", "" },
		{ MASK_FORBIDDEN, "RTR", "RTS",
		  "EN_SQD_ASYNC_NOTIFY PKEY_INDEX PORT QKEY AV PATH_MTU RQ_PSN MAX_DEST_RD_ATOMIC CAP DEST_QPN" },
		{ MASK_FORBIDDEN, "SQD", "SQD", "CUR_STATE EN_SQD_ASYNC_NOTIFY QKEY PATH_MTU RQ_PSN SQ_PSN CAP DEST_QPN" },
	};

	for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
		ROW_ASSERT(mask_trial_bits(trials[i].trial, IBV_QPT_RC, name_find(&names_state, trials[i].from)->value,
					   name_find(&names_state, trials[i].to)->value) == mask_of(trials[i].bits),
			   "%s -> %s", trials[i].from, trials[i].to);
	CU_ASSERT_EQUAL(transition_required_into(IBV_QPT_UC, IBV_QPS_RTR), mask_of("AV PATH_MTU DEST_QPN RQ_PSN"));
	CU_ASSERT_EQUAL(transition_required_into(IBV_QPT_UC, IBV_QPS_ERR), 0);
}

/* Every bit that a mask can name says where it comes from, once. */
static void bits_have_references(void)
{
	int seen = 0;

	for (size_t i = 0; i < attr_bit_table_n; i++) {
		const struct attr_bit *b = &attr_bit_table[i];

		ROW_ASSERT(!(seen & b->bit), "%s is there twice", name_of(&names_attr_mask, b->bit));
		ROW_ASSERT(!strncmp(b->ref, "IBTA ", 5) && b->help[0], "%s", name_of(&names_attr_mask, b->bit));
		seen |= b->bit;
	}
	for (size_t i = 0; i < names_attr_mask.n; i++)
		ROW_ASSERT(seen & names_attr_mask.rows[i].value, "%s", names_attr_mask.rows[i].text);
}

static void ack_timer(void)
{
	static const struct {
		unsigned code;
		uint64_t ns;
	} t[] = { { 0, 0 }, { 1, 8192 }, { 12, 16777216 }, { 14, 67108864 }, { 18, 1073741824 }, { 31, 8796093022208ULL } };

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		ROW_ASSERT(timer_ack_ns(t[i].code) == t[i].ns, "timeout %u", t[i].code);
}

static void rnr_timer(void)
{
	static const double ms[32] = { 655.36, .01,   .02,   .03,   .04,   .06,    .08,    .12,    .16,    .24,   .32,
				       .48,    .64,   .96,   1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
				       20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52 };

	for (unsigned i = 0; i < 32; i++)
		ROW_ASSERT(timer_rnr_ns(i) == (uint64_t)(ms[i] * 100 + .5) * 10000, "code %u is %llu ns", i,
			   (unsigned long long)timer_rnr_ns(i));
}

static void mtu(void)
{
	static const int bytes[] = { 256, 512, 1024, 2048, 4096 };

	for (int i = 0; i < 5; i++) {
		ROW_ASSERT(mtu_to_enum(bytes[i]) == i + 1, "%d", bytes[i]);
		ROW_ASSERT(mtu_from_enum(i + 1) == bytes[i], "%d", bytes[i]);
	}
	CU_ASSERT_EQUAL(mtu_to_enum(1500), 0);
	CU_ASSERT_EQUAL(mtu_to_enum(0), 0);
	CU_ASSERT_EQUAL(mtu_from_enum(6), 0);
}

static void attributes(void)
{
	for (size_t i = 0; i < attr_table_n; i++) {
		const struct attr *a = &attr_table[i];

		ROW_ASSERT(attr_find(a->name) == a, "%s is there twice", a->name);
		ROW_ASSERT(a->kind > ATTR_INVALID && a->kind < NUM_ATTR_KINDS, "%s", a->name);
		ROW_ASSERT((a->kind == ATTR_MODIFY) == (a->mask != 0), "%s", a->name);
		ROW_ASSERT(a->min <= a->max, "%s", a->name);
		ROW_ASSERT(a->help[0], "%s", a->name);
		if (a->max > 0 && a->def >= 0)
			ROW_ASSERT(a->def >= a->min && a->def <= a->max, "%s: its default is out of its range", a->name);
	}
	CU_ASSERT_PTR_NULL(attr_find("no_such_attribute"));
	CU_ASSERT_EQUAL(attr_find("timeout")->mask, IBV_QP_TIMEOUT);
	CU_ASSERT_EQUAL(attr_find("retry_cnt")->max, 7);
	CU_ASSERT_EQUAL(names_attr_mask.n, 21);
}

static const struct test_case cases[] = {
	{ "transitions take what the specification says", transitions_take_what_the_specification_says },
	{ "moves that exist", moves_that_exist },
	{ "contested moves are no moves", contested_moves_are_no_moves },
	{ "masks to try", masks_to_try },
	{ "bits have references", bits_have_references },
	{ "ack timer", ack_timer },
	{ "rnr timer", rnr_timer },
	{ "mtu", mtu },
	{ "attributes", attributes },
};

TEST_MAIN("attr", cases)
