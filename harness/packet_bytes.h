/* SPDX-License-Identifier: MIT */
/* Big-endian numbers at any address, for the packet_*.c files. */
#ifndef QD_PACKET_BYTES_H
#define QD_PACKET_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t get_be(const uint8_t *b, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | b[i];
	return v;
}

static inline void put_be(uint8_t *b, unsigned bytes, uint64_t v)
{
	for (unsigned i = bytes; i-- > 0; v >>= 8)
		b[i] = (uint8_t)v;
}

static inline uint16_t get16(const uint8_t *b)
{
	return (uint16_t)(b[0] << 8 | b[1]);
}

static inline uint32_t get24(const uint8_t *b)
{
	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void put16(uint8_t *b, uint16_t v)
{
	b[0] = (uint8_t)(v >> 8);
	b[1] = (uint8_t)v;
}

/* The header checksum of an IPv4 header, in place. */
static inline void ipv4_checksum_mend(uint8_t *ip)
{
	uint32_t sum = 0;

	put16(ip + 10, 0);
	for (unsigned i = 0; i < (ip[0] & 0xfu) * 4; i += 2)
		sum += get16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, (uint16_t)~sum);
}

#endif
