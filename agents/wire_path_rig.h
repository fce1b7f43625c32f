/* SPDX-License-Identifier: MIT */
/* A path between two ports in memory, under a clock that the test turns: for the tests of what it does to packets, and of what it
 * says of them. */
#ifndef QD_WIRE_PATH_RIG_H
#define QD_WIRE_PATH_RIG_H

#include "wire_path.h"
#include "wire_test.h"

#define MS 1000000ull

struct bench {
	struct wire_link *ports[2];
	struct wire_path *w;
	json_t *records;
	uint64_t now_ns;
};

static inline void keep_record(void *user, json_t *rec)
{
	json_array_append_new(((struct bench *)user)->records, rec);
}

static inline struct wire_clock clock_of(const struct bench *b)
{
	return (struct wire_clock){ .mono_ns = b->now_ns, .real_ns = b->now_ns + 1000000000000 };
}

static inline void connect_life(struct bench *b, unsigned life, uint32_t psn_shift)
{
	struct wire_conn conn = test_conn(wire_path_names(b->w), life);

	for (int e = 0; e < 2; e++)
		conn.end[e].stream.start = (conn.end[e].stream.start + psn_shift) & PACKET_PSN_MASK;
	CU_ASSERT(wire_path_connect(b->w, &conn, NULL) == 0);
}

static inline struct bench open_bench(void)
{
	struct bench b = { .records = json_array(), .now_ns = 1000000 };

	return b;
}

static inline void start(struct bench *b)
{
	static const char *const names[2] = { "a", "b" };

	wire_link_memory_open(&b->ports[0]);
	wire_link_memory_open(&b->ports[1]);
	CU_ASSERT(wire_path_new(b->ports, names, keep_record, b, &b->w) == 0);
	connect_life(b, 1, 0);
}

static inline void stop(struct bench *b)
{
	wire_path_free(b->w);
	b->ports[0]->ops->close(b->ports[0]);
	b->ports[1]->ops->close(b->ports[1]);
	json_decref(b->records);
}

static inline int rule(struct bench *b, const char *json, struct error *e)
{
	json_t *j = json_loads(json, 0, NULL);
	int rc = wire_path_rule(b->w, j, clock_of(b), e);

	ROW_ASSERT(j != NULL, "%s", json);
	json_decref(j);
	return rc;
}

static inline void send_frame(struct bench *b, unsigned port, const uint8_t *frame, size_t len)
{
	wire_link_memory_push(b->ports[port], frame, len, 0);
	wire_path_pump(b->w, port, clock_of(b));
}

static inline void send_packet(struct bench *b, unsigned from, const char *opcode, int64_t psn, size_t payload)
{
	uint8_t frame[FRAME_MAX];

	send_frame(b, from, frame, test_packet(from, opcode, psn, 0x1f, payload, frame));
}

/* The same between two QPs beside those of p. */
static inline void send_beside(struct bench *b, unsigned from, const char *opcode, int64_t psn, size_t payload)
{
	uint8_t frame[FRAME_MAX];
	size_t len = test_packet(from, opcode, psn, 0x1f, payload, frame);
	struct packet p;

	CU_ASSERT(packet_decode(frame, len, &p) == PACKET_ROCE);
	CU_ASSERT(packet_field_set(frame, &p, "dest_qp", p.dest_qp + 100) == 0);
	packet_icrc_mend(frame, &p);
	send_frame(b, from, frame, len);
}

/* What came out at a port, one letter a packet: its relative PSN as a digit for a request of a, 'A' + PSN for what answers a, '!'
 * when its ICRC is wrong,
 * '?' when it is no RoCE packet. */
static char *came_out(struct bench *b, unsigned port, char *buf, size_t size)
{
	const uint8_t *frame;
	size_t len, n = 0;

	while (n + 1 < size && wire_link_memory_pop(b->ports[port], &frame, &len)) {
		struct packet p;
		enum packet_kind kind = packet_decode(frame, len, &p);
		int psn = packet_psn_diff(p.psn, START_A);

		if (kind != PACKET_ROCE)
			buf[n++] = '?';
		else if (packet_icrc_compute(frame, &p) != packet_icrc_carried(frame, &p))
			buf[n++] = '!';
		else
			buf[n++] = (char)((port ? '0' : 'A') + psn);
	}
	buf[n] = 0;
	return buf;
}

static inline void advance(struct bench *b, uint64_t ns)
{
	b->now_ns += ns;
	wire_path_due(b->w, clock_of(b));
}

#endif
