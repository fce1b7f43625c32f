/* SPDX-License-Identifier: MIT */
/* libFuzzer target: whatever a frame says, nothing reads or writes past it. */
#include <stdlib.h>
#include <string.h>

#include "packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame = malloc(size ? size : 1), src[16], dst[16];
	struct packet p;
	uint64_t v;

	memcpy(frame, data, size);
	enum packet_kind kind = packet_decode(frame, size, &p);

	if (p.icrc) {
		if ((size_t)p.icrc + PACKET_ICRC_BYTES > size)
			abort();
		packet_icrc_mend(frame, &p);
		if (packet_icrc_compute(frame, &p) != packet_icrc_carried(frame, &p))
			abort();
		packet_addresses(frame, &p, src, dst);
	}
	if (kind == PACKET_ROCE) {
		if ((size_t)p.payload + p.payload_bytes + p.pad != p.icrc)
			abort();
		for (size_t i = 0; i < packet_n_fields; i++)
			if (packet_field_get(frame, &p, packet_fields[i].name, &v) == 0 &&
			    packet_field_set(frame, &p, packet_fields[i].name, ~v & 1) != 0)
				abort();
		if (packet_decode(frame, size, &p) == PACKET_ROCE && size > 60)
			packet_cut(frame, size, &p, frame[size / 2]);
	}
	free(frame);
	return 0;
}
