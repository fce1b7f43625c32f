/* SPDX-License-Identifier: MIT */
#include "grh.h"

#include <arpa/inet.h>
#include <string.h>

#define V4_AT 20u
#define V4_WORDS 5u

static void read_v6(const uint8_t *b, struct grh *g)
{
	g->version = 6;
	g->traffic_class = (uint8_t)(b[0] << 4 | b[1] >> 4);
	g->flow_label = (uint32_t)(b[1] & 0xf) << 16 | (uint32_t)b[2] << 8 | b[3];
	g->protocol = b[6];
	g->hop_limit = b[7];
	memcpy(g->src, b + 8, sizeof(g->src));
	memcpy(g->dst, b + 24, sizeof(g->dst));
}

static void map_v4(uint8_t to[16], const uint8_t *addr)
{
	to[10] = to[11] = 0xff;
	memcpy(to + 12, addr, 4);
}

static uint16_t sum_v4(const uint8_t *b)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < V4_WORDS * 4; i += 2)
		sum += (uint32_t)b[i] << 8 | b[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void read_v4(const uint8_t *b, struct grh *g)
{
	g->version = 4;
	g->traffic_class = b[1];
	g->hop_limit = b[8];
	g->protocol = b[9];
	map_v4(g->src, b + 12);
	map_v4(g->dst, b + 16);
}

void grh_read(const void *bytes, struct grh *ret)
{
	const uint8_t *b = bytes;

	memset(ret, 0, sizeof(*ret));
	/* Anything may lie before an IPv4 header: its own checksum tells it. */
	if (b[V4_AT] == (4 << 4 | V4_WORDS) && sum_v4(b + V4_AT) == 0xffff)
		read_v4(b + V4_AT, ret);
	else if (b[0] >> 4 == 6)
		read_v6(b, ret);
}

json_t *grh_json(const struct grh *g)
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	if (!g->version)
		return json_pack("{s:i}", "version", 0);
	inet_ntop(AF_INET6, g->src, src, sizeof(src));
	inet_ntop(AF_INET6, g->dst, dst, sizeof(dst));
	return json_pack("{s:i, s:s, s:s, s:i, s:i, s:I, s:i}", "version", (int)g->version, "src", src, "dst", dst, "traffic_class",
			 (int)g->traffic_class, "hop_limit", (int)g->hop_limit, "flow_label", (json_int_t)g->flow_label, "protocol",
			 (int)g->protocol);
}
