/* SPDX-License-Identifier: MIT */
/* Durations and sizes as the scenario language writes them. */
#ifndef QD_UNITS_H
#define QD_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC 1000000000ULL

/* "20ms" "3s" "10us" "5ns" -> ns. -EINVAL for anything else, -ERANGE on overflow. */
int units_parse_duration(const char *text, uint64_t *ret_ns);
/* "64" "4KiB" "2MiB" "1GiB" -> bytes. */
int units_parse_size(const char *text, uint64_t *ret_bytes);
/* "12.9 ms", "1.2 s", "840 us": three significant digits. Returns buf. */
char *units_format_ns(uint64_t ns, char *buf, size_t size);
char *units_format_bytes(uint64_t bytes, char *buf, size_t size);
/* CLOCK_MONOTONIC now. */
uint64_t now_ns(void);

#endif
