/* SPDX-License-Identifier: MIT */
/*
 * A second opinion: a capture of every opcode over IPv4 and IPv6 is read by tshark, which has to see what the decoder sees. Ends
 * with 77 where there is no tshark. (tshark 4.0 shows the ICRC and does not judge it; packet_test judges it.)
 */
#include <stdlib.h>
#include <unistd.h>

#include "wire_capture.h"
#include "wire_test.h"

#define ROWS_MAX 256

static char path[64], command[512];
static struct row {
	struct packet p;
	uint32_t icrc, rkey;
	uint64_t va;
	bool commented;
} rows[ROWS_MAX];
static unsigned n_rows;

static void add(struct wire_capture *c, const struct packet_opcode *op, bool v6)
{
	struct row *r = &rows[n_rows];
	struct packet_spec s = {
		.dmac = { 2, 0, 0, 0, 0, 2 },
		.smac = { 2, 0, 0, 0, 0, 1 },
		.opcode = op->value,
		.dest_qp = 0x100 + n_rows,
		.psn = 0xfffff0 + n_rows % 16,
		.ack_req = n_rows % 2,
		.pkey = 0x8001,
		.syndrome = (uint8_t)(n_rows % 3 ? 0x60 + n_rows % 4 : 0x1f),
		.msn = 0x7000 + n_rows,
		.va = 0x1122334455660000 + n_rows,
		.rkey = 0xabc000 + n_rows,
		.length = 64,
		.payload_bytes = op->payload ? 64 + n_rows % 60 : 0,
	};
	uint8_t frame[FRAME_MAX], payload[128];
	uint64_t value;

	/* zeros would look to tshark like protocols above */
	memset(payload, 0x7b, sizeof payload);
	s.payload = payload;
	if (v6) {
		s.src[0] = s.dst[0] = 0xfe;
		s.src[1] = s.dst[1] = 0x80;
		s.src[15] = 1;
		s.dst[15] = 2;
	} else {
		memcpy(s.src, test_addr[0], 16);
		memcpy(s.dst, test_addr[1], 16);
	}
	int len = packet_build(&s, frame, sizeof frame);

	CU_ASSERT(len > 0 && packet_decode(frame, (size_t)len, &r->p) == PACKET_ROCE);
	r->icrc = packet_icrc_carried(frame, &r->p);
	r->va = packet_field_get(frame, &r->p, "va", &value) == 0 ? value : 0;
	r->rkey = r->p.ext[PACKET_RETH] && packet_field_get(frame, &r->p, "rkey", &value) == 0 ? (uint32_t)value : 0;
	r->commented = n_rows % 5 == 0;
	CU_ASSERT(wire_capture_begin(c, n_rows & 1, n_rows % 7 == 0, 1700000000000000000 + n_rows, frame, (size_t)len) ==
		  n_rows + 1u);
	wire_capture_end(c, r->commented ? "qpdrill: eaten by x" : NULL);
	n_rows++;
}

static void test_capture(void)
{
	static const char *const names[2] = { "a", "b" };
	struct wire_capture *c = NULL;
	int fd;

	snprintf(path, sizeof path, "/tmp/qd-tshark-XXXXXX");
	fd = mkstemp(path);

	CU_ASSERT(fd >= 0 && wire_capture_open(path, names, 0, &c, NULL) == 0);
	close(fd);
	for (size_t i = 0; i < packet_n_opcodes * 2; i++)
		add(c, &packet_opcodes[i / 2], i & 1);
	CU_ASSERT(wire_capture_close(c, 5000000000) == 0);
}

/* A comma-separated field as a number; 0 when it is empty. */
static uint64_t next_field(char **at)
{
	char *text = strsep(at, ",");

	return text && *text ? strtoull(text, NULL, 0) : 0;
}

static void test_agrees(void)
{
	char *line = NULL;
	size_t room = 0;
	unsigned i = 0;

	snprintf(command, sizeof command,
		 "tshark -r %s --disable-protocol rpcordma -T fields -E separator=, -e infiniband.bth.opcode -e "
		 "infiniband.bth.destqp -e infiniband.bth.psn -e "
		 "infiniband.bth.a -e infiniband.bth.p_key "
		 "-e infiniband.aeth.syndrome -e infiniband.aeth.msn -e infiniband.reth.va -e infiniband.invariant.crc -e "
		 "frame.interface_name -e frame.comment -e _ws.malformed 2>&1",
		 path);
	FILE *f = popen(command, "r");

	while (f && getline(&line, &room, f) > 0) {
		struct row *r = &rows[i < n_rows ? i : 0];
		char *at = line;

		line[strcspn(line, "\n")] = 0;
		if (strstr(line, "Running as user"))
			continue;
		i++;
		uint64_t opcode = next_field(&at), qp = next_field(&at), psn = next_field(&at), ack = next_field(&at),
			 pkey = next_field(&at), syndrome = next_field(&at), msn = next_field(&at), va = next_field(&at),
			 icrc = next_field(&at);

		ROW_ASSERT(opcode == r->p.opcode && qp == r->p.dest_qp && psn == r->p.psn && ack == r->p.ack_req &&
				   pkey == r->p.pkey,
			   "%s", r->p.op->name);
		/* of UD (which it takes for management), XRC and CNP it shows the BTH only */
		bool whole = r->p.opcode < 0x60;

		if (whole && r->p.ext[PACKET_AETH])
			ROW_ASSERT(syndrome == r->p.syndrome && msn == 0x7000u + i - 1, "%s", r->p.op->name);
		if (whole && r->p.ext[PACKET_RETH])
			ROW_ASSERT(va == r->va, "%s", r->p.op->name);
		if (whole)
			ROW_ASSERT(icrc == __builtin_bswap32(r->icrc), "%s: %08x", r->p.op->name, (unsigned)icrc);
		ROW_ASSERT(at && *at == ((i - 1) & 1 ? 'b' : 'a'), "%s: %s", r->p.op->name, at);
		ROW_ASSERT(at && !strstr(at, "Malformed"), "%s: %s", r->p.op->name, at);
		ROW_ASSERT(at && (strstr(at, "eaten by x") != NULL) == r->commented, "%s: %s", r->p.op->name, at);
	}
	free(line);
	CU_ASSERT(f && pclose(f) == 0);
	ROW_ASSERT(i == n_rows, "%u of %u packets", i, n_rows);
	unlink(path);
}

static const struct test_case cases[] = {
	{ "a capture of every opcode is written", test_capture },
	{ "tshark sees what the decoder sees", test_agrees },
};

int main(void)
{
	if (system("command -v tshark >/dev/null 2>&1")) {
		printf("skipped: there is no tshark here\n");
		return 77;
	}
	return test_run("wire_tshark", cases, sizeof cases / sizeof cases[0]);
}
