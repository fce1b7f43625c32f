/* SPDX-License-Identifier: MIT */
#include "wire_conn.h"

#include <errno.h>
#include <stdlib.h>

#include "wire_test.h"

static struct wire_place place(struct wire_conns *c, unsigned from, const char *opcode, int64_t psn)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;
	struct wire_place ret;

	packet_decode(frame, test_packet(from, opcode, psn, 0x1f, 0, frame), &p);
	wire_conns_place(c, frame, &p, &ret);
	return ret;
}

static void test_directions(void)
{
	struct wire_names names = { 0 };
	struct wire_conns c = { 0 };
	struct wire_conn conn = test_conn(&names, 1), *added = NULL;

	CU_ASSERT(place(&c, 0, "RC_SEND_ONLY", 0).conn == NULL);
	CU_ASSERT(wire_conns_add(&c, &conn, &added) == 0 && wire_conns_add(&c, &conn, &added) == -EEXIST);
	struct wire_place pl = place(&c, 0, "RC_SEND_ONLY", 0);

	CU_ASSERT(pl.conn == added && pl.from == 0 && pl.psn == 0 && pl.transmission == 1 && pl.has_psn);
	CU_ASSERT(pl.stream == &added->end[0].stream);
	pl = place(&c, 1, "RC_ACKNOWLEDGE", 0);
	CU_ASSERT(pl.from == 1 && pl.stream == &added->end[0].stream && pl.psn == 0 && pl.transmission == 1);
	pl = place(&c, 1, "RC_SEND_ONLY", 5);
	CU_ASSERT(pl.from == 1 && pl.stream == &added->end[1].stream && pl.psn == 5);
	pl = place(&c, 0, "CNP", 0);
	CU_ASSERT(pl.conn == added && !pl.has_psn && pl.transmission == 0);
	wire_conns_remove(&c, conn.pair);
	CU_ASSERT(place(&c, 0, "RC_SEND_ONLY", 0).conn == NULL && c.all == NULL && c.targets == NULL);
	wire_conns_release(&c);
	wire_names_release(&names);
}

/* START_A lies three before the wrap; the stream then goes round the whole circle twice. */
static void test_wrap(void)
{
	struct wire_names names = { 0 };
	struct wire_conns c = { 0 };
	struct wire_conn conn = test_conn(&names, 1), *added = NULL;
	const int64_t step = 100003, end = 2 * ((int64_t)PACKET_PSN_MASK + 1);

	wire_conns_add(&c, &conn, &added);
	for (int64_t psn = 0; psn < end; psn += step) {
		struct wire_place pl = place(&c, 0, "RC_SEND_ONLY", psn);

		ROW_ASSERT(pl.psn == psn, "%lld", (long long)psn);
		ROW_ASSERT(place(&c, 1, "RC_ACKNOWLEDGE", psn).psn == psn, "%lld", (long long)psn);
		ROW_ASSERT(place(&c, 0, "RC_SEND_ONLY", psn - 3).psn == psn - 3, "%lld", (long long)psn);
	}
	wire_conns_release(&c);
	wire_names_release(&names);
}

static void test_transmissions(void)
{
	static const struct {
		const char *opcode;
		unsigned from;
		int64_t psn;
		unsigned transmission;
	} rows[] = {
		{ "RC_SEND_ONLY", 0, 0, 1 },   { "RC_SEND_ONLY", 0, 1, 1 },           { "RC_SEND_ONLY", 0, 0, 2 },
		{ "RC_SEND_ONLY", 0, 1, 2 },   { "RC_SEND_ONLY", 0, 0, 3 },           { "RC_ACKNOWLEDGE", 1, 0, 1 },
		{ "RC_ACKNOWLEDGE", 1, 0, 2 }, { "RC_SEND_ONLY", 1, 0, 1 },           { "RC_SEND_ONLY", 0, WIRE_WINDOW, 1 },
		{ "RC_SEND_ONLY", 0, 0, 2 },   { "RC_SEND_ONLY", 0, WIRE_WINDOW, 2 },
	};
	struct wire_names names = { 0 };
	struct wire_conns c = { 0 };
	struct wire_conn conn = test_conn(&names, 1), *added = NULL;

	wire_conns_add(&c, &conn, &added);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct wire_place pl = place(&c, rows[i].from, rows[i].opcode, rows[i].psn);

		ROW_ASSERT(pl.transmission == rows[i].transmission, "row %zu: %u", i, pl.transmission);
	}
	wire_conns_release(&c);
	wire_names_release(&names);
}

/* A wrong PSN far ahead is no progress. */
static void test_wrong_psn(void)
{
	struct wire_names names = { 0 };
	struct wire_conns c = { 0 };
	struct wire_conn conn = test_conn(&names, 1), *added = NULL;

	wire_conns_add(&c, &conn, &added);
	for (int i = 0; i < 8; i++) {
		place(&c, 0, "RC_SEND_ONLY", i);
		ROW_ASSERT(place(&c, 0, "RC_SEND_ONLY", i + 0x600000).psn == i + 0x600000, "%d", i);
	}
	CU_ASSERT(added->end[0].stream.high == 7);
	CU_ASSERT(place(&c, 0, "RC_SEND_ONLY", -2).psn == -2);
	wire_conns_release(&c);
	wire_names_release(&names);
}

/* Two lives of one QP number: the new one starts 2^22 further on. */
static void test_lives(void)
{
	struct wire_names names = { 0 };
	struct wire_conns c = { 0 };
	struct wire_conn conn = test_conn(&names, 1), *first = NULL, *second = NULL;

	wire_conns_add(&c, &conn, &first);
	place(&c, 0, "RC_SEND_ONLY", 10);
	conn.life = 2;
	conn.end[0].stream.start = (START_A + 0x400000) & PACKET_PSN_MASK;
	wire_conns_add(&c, &conn, &second);
	struct wire_place pl = place(&c, 0, "RC_SEND_ONLY", 0x400000);

	CU_ASSERT(pl.conn == second && pl.psn == 0 && pl.transmission == 1);
	pl = place(&c, 0, "RC_SEND_ONLY", 10);
	CU_ASSERT(pl.conn == first && pl.psn == 10 && pl.transmission == 2);
	pl = place(&c, 1, "RC_ACKNOWLEDGE", 0x400001);
	CU_ASSERT(pl.conn == second && pl.psn == 1);
	wire_conns_release(&c);
	wire_names_release(&names);
}

static void test_addresses(void)
{
	static const struct {
		const char *text;
		int rc;
		uint8_t first, tenth, last;
	} rows[] = {
		{ "10.0.0.1", 0, 0, 0xff, 1 }, { "::ffff:10.0.0.1", 0, 0, 0xff, 1 },
		{ "fe80::2", 0, 0xfe, 0, 2 },  { "10.0.0", -EINVAL, 0, 0, 0 },
		{ "", -EINVAL, 0, 0, 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t addr[16] = { 0 };

		ROW_ASSERT(wire_address(rows[i].text, addr) == rows[i].rc, "%s", rows[i].text);
		ROW_ASSERT(addr[0] == rows[i].first && addr[10] == rows[i].tenth && addr[15] == rows[i].last, "%s", rows[i].text);
	}
	struct wire_names names = { 0 };

	for (int i = 0; i < 100; i++) {
		char text[16];

		snprintf(text, sizeof text, "n%d", i);
		CU_ASSERT(wire_name(&names, text) == (unsigned)i + 1 && !strcmp(wire_name_text(&names, (unsigned)i + 1), text));
	}
	CU_ASSERT(wire_name(&names, "n7") == 8 && !strcmp(wire_name_text(&names, 0), "") &&
		  !strcmp(wire_name_text(&names, 101), ""));
	wire_names_release(&names);
}

static const struct test_case cases[] = {
	{ "a packet belongs to its connection and direction", test_directions },
	{ "relative PSNs run on over the wrap", test_wrap },
	{ "transmissions are counted per class and direction", test_transmissions },
	{ "a wrong PSN far ahead is no progress", test_wrong_psn },
	{ "lives of one QP number are told apart by the PSN", test_lives },
	{ "addresses and names", test_addresses },
};
TEST_MAIN("wire_conn", cases)
