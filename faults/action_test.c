/* SPDX-License-Identifier: MIT */
#include "action.h"

#include <errno.h>
#include <stdlib.h>

#include "../harness/test.h"

static void test_table(void)
{
	for (const struct action_ops *const *a = action_table; *a; a++) {
		ROW_ASSERT(action_find((*a)->name) == *a, "%s", (*a)->name);
		ROW_ASSERT((*a)->help && (*a)->apply, "%s", (*a)->name);
		ROW_ASSERT(!a[1] || strcmp((*a)->name, a[1]->name) < 0, "%s is not in order", (*a)->name);
		for (const struct fault_param *p = (*a)->params; p && p->name; p++) {
			bool listed = p->type != FAULT_PARAM_ENUM || !p->def;

			ROW_ASSERT(p->help && p->type > FAULT_PARAM_INVALID && p->type < NUM_FAULT_PARAM_TYPES, "%s %s", (*a)->name,
				   p->name);
			ROW_ASSERT((p->type == FAULT_PARAM_ENUM) == (p->values != NULL), "%s %s", (*a)->name, p->name);
			for (const char *const *v = p->values; v && *v; v++)
				listed |= p->def && !strcmp(*v, p->def);
			ROW_ASSERT(listed, "%s %s: the default is none of the values", (*a)->name, p->name);
		}
	}
	CU_ASSERT(action_find("explode") == NULL && action_find("") == NULL);
}

static void test_numbers(void)
{
	static const struct {
		const char *action, *args, *name;
		int64_t want;
	} rows[] = {
		{ "delay", "{\"by\":\"20ms\"}", "by", 20000000 },
		{ "delay", "{\"by\":7}", "by", 7 },
		{ "duplicate", "{}", "copies", 1 },
		{ "duplicate", "{}", "by", 0 },
		{ "truncate", "{\"bytes\":\"1KiB\"}", "bytes", 1024 },
		{ "reorder", "{\"packets\":3}", "packets", 3 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct action_ops *ops = action_find(rows[i].action);
		json_t *args = json_loads(rows[i].args, 0, NULL);
		struct error e = { "" };

		ROW_ASSERT(action_check(ops, args, &e) == 0, "%s: %s", rows[i].args, e.text);
		ROW_ASSERT(action_int(ops, args, rows[i].name) == rows[i].want, "%s %s", rows[i].action, rows[i].args);
		json_decref(args);
	}
	CU_ASSERT_STRING_EQUAL(action_text(action_find("corrupt"), NULL, "where"), "payload");
}

static const uint8_t addr_a[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, addr_b[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };

/* A write of 8 bytes with relative PSN 5 in a connection that began at 0xfffffe. */
static struct action_packet a_write(uint8_t frame[256], bool known)
{
	struct packet_spec s = {
		.opcode = 0x0a, .dest_qp = 18, .psn = 3, .rkey = 0xff, .va = 0x1000, .length = 8, .payload_bytes = 8
	};
	struct action_packet p = { .frame = frame, .known = known, .psn = 5, .zero_psn = 0xfffffe };

	memcpy(s.src, addr_a, 16);
	memcpy(s.dst, addr_b, 16);
	p.len = (size_t)packet_build(&s, frame, 256);
	packet_decode(frame, p.len, &p.p);
	return p;
}

static void test_fields(void)
{
	static const struct {
		const char *map, *field;
		bool known, done;
		uint64_t want;
	} rows[] = {
		{ "{\"pkey\":4660}", "pkey", true, true, 0x1234 },
		{ "{\"pkey\":\"0x7fff\"}", "pkey", true, true, 0x7fff },
		{ "{\"rkey\":\"+1\"}", "rkey", true, true, 0x100 },
		{ "{\"rkey\":\"-0x100\"}", "rkey", true, true, 0xffffffff },
		{ "{\"rkey\":\"^0xff\"}", "rkey", true, true, 0 },
		{ "{\"psn\":0}", "psn", true, true, 0xfffffe },
		{ "{\"psn\":2}", "psn", true, true, 0 },
		{ "{\"psn\":-1}", "psn", true, true, 0xfffffd },
		{ "{\"psn\":0}", "psn", false, false, 3 },
		{ "{\"psn\":\"-4\"}", "psn", false, true, 0xffffff },
		{ "{\"ack_req\":true}", "ack_req", true, true, 1 },
		{ "{\"opcode\":\"RC_RDMA_WRITE_FIRST\"}", "opcode", true, true, 6 },
		{ "{\"opcode\":31}", "opcode", true, true, 31 },
		{ "{\"ecn\":3}", "ecn", true, true, 3 },
		{ "{\"syndrome\":96,\"pkey\":1}", "pkey", true, false, 0xffff },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t frame[256];
		struct action_packet p = a_write(frame, rows[i].known);
		struct action_fields fields;
		struct error e = { "" };
		json_t *map = json_loads(rows[i].map, 0, NULL);
		uint64_t seen = 0;

		ROW_ASSERT(action_fields_parse(map, &fields, &e) == 0, "%s: %s", rows[i].map, e.text);
		ROW_ASSERT(action_fields_apply(&fields, &p) == rows[i].done, "%s", rows[i].map);
		ROW_ASSERT(packet_field_get(frame, &p.p, rows[i].field, &seen) == 0 && seen == rows[i].want, "%s: 0x%llx",
			   rows[i].map, (unsigned long long)seen);
		ROW_ASSERT(packet_icrc_compute(frame, &p.p) == packet_icrc_carried(frame, &p.p), "%s", rows[i].map);
		json_decref(map);
	}
}

static const struct test_case cases[] = {
	{ "the table is whole and in order", test_table },
	{ "numbers, durations, sizes and defaults", test_numbers },
	{ "fields are set, moved and flipped", test_fields },
};
TEST_MAIN("action", cases)
