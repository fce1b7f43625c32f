/* SPDX-License-Identifier: MIT */
/*
 * The 40 bytes in front of a datagram in its receive: an IPv6 header, or an IPv4 header in the last 20 (what lies before it then
 * means nothing). Only what its sender and its way decide is kept, so that two of one kind compare equal.
 */
#ifndef QD_GRH_H
#define QD_GRH_H

#include <jansson.h>
#include <stdint.h>

#define GRH_BYTES 40u

struct grh {
	uint8_t src[16], dst[16]; /* IPv4 mapped */
	uint32_t flow_label;
	uint8_t version; /* 4, 6; 0: neither */
	uint8_t traffic_class, hop_limit, protocol;
};

/* All of *ret is written, padding as well. */
void grh_read(const void *bytes, struct grh *ret);
/* {version src dst traffic_class hop_limit flow_label protocol}; {version: 0} of what is neither. New reference. */
json_t *grh_json(const struct grh *g);

#endif
