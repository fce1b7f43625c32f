/* SPDX-License-Identifier: MIT */
#include "grh.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "test.h"

/* As soft-RoCE wrote them into receives. */
#define V4_FRONT "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"
/* TOS 0x20, TTL 7, UDP, 10.0.0.1 to 10.0.0.2, its checksum right */
#define V4 "452000380000400007115f930a0000010a000002"
/* traffic class 0x42, flow label 0x12345, UDP, hop limit 9, fe80::1 to fe80::2 */
#define V6                                                                                                                         \
	"64212345005c1109"                                                                                                         \
	"fe800000000000000000000000000001"                                                                                         \
	"fe800000000000000000000000000002"

static const struct {
	const char *hex, *seen;
} rows[] = {
	{ V4_FRONT V4,
	  "{\"version\":4,\"src\":\"::ffff:10.0.0.1\",\"dst\":\"::ffff:10.0.0.2\",\"traffic_class\":32,\"hop_limit\":7,"
	  "\"flow_label\":0,\"protocol\":17}" },
	{ V6, "{\"version\":6,\"src\":\"fe80::1\",\"dst\":\"fe80::2\",\"traffic_class\":66,\"hop_limit\":9,\"flow_label\":74565,"
	      "\"protocol\":17}" },
	/* What lies before an IPv4 header may look like anything. */
	{ "6000000000000000000000000000000000000000" V4,
	  "{\"version\":4,\"src\":\"::ffff:10.0.0.1\",\"dst\":\"::ffff:10.0.0.2\",\"traffic_class\":32,\"hop_limit\":7,"
	  "\"flow_label\":0,\"protocol\":17}" },
	/* One bit of its checksum: no IPv4 header. */
	{ V4_FRONT "452000380000400007115f920a0000010a000002", "{\"version\":0}" },
	{ V4_FRONT V4_FRONT, "{\"version\":0}" },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *want = json_loads(rows[i].seen, 0, NULL), *seen;
		uint8_t bytes[GRH_BYTES];
		struct grh g;
		char *text;

		CU_ASSERT_EQUAL_FATAL(strlen(rows[i].hex), 2 * sizeof(bytes));
		for (size_t k = 0; k < sizeof(bytes); k++) {
			char two[3] = { rows[i].hex[2 * k], rows[i].hex[2 * k + 1], 0 };

			bytes[k] = (uint8_t)strtoul(two, NULL, 16);
		}
		memset(&g, 0xee, sizeof(g));
		grh_read(bytes, &g);
		seen = grh_json(&g);
		text = json_dumps(seen, JSON_COMPACT);
		ROW_ASSERT(json_equal(seen, want), "row %zu: %s", i, text);
		free(text);
		json_decref(seen);
		json_decref(want);
	}
}

/* What differs from packet to packet is not kept: two of one kind are equal. */
static void test_alike(void)
{
	uint8_t a[GRH_BYTES] = { 0x60, 0, 0, 0, 0, 92, 17, 64 }, b[GRH_BYTES];
	struct grh x, y;

	memcpy(b, a, sizeof(b));
	b[5] = 28; /* the length of the packet */
	memset(&x, 0, sizeof(x));
	memset(&y, 0xff, sizeof(y));
	grh_read(a, &x);
	grh_read(b, &y);
	CU_ASSERT_EQUAL(memcmp(&x, &y, sizeof(x)), 0);
	b[7] = 63;
	grh_read(b, &y);
	CU_ASSERT_NOT_EQUAL(memcmp(&x, &y, sizeof(x)), 0);
}

static const struct test_case cases[] = {
	{ "headers", test_rows },
	{ "those of one kind are equal", test_alike },
};

TEST_MAIN("grh", cases)
