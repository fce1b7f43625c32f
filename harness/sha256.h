/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), to say in run.json which scenario and which profile a verdict rests on. */
#ifndef QD_SHA256_H
#define QD_SHA256_H

#include <stddef.h>

#define SHA256_HEX 65

/* 64 lower-case hex digits and a 0. Returns hex. */
char *sha256_hex(const void *data, size_t len, char hex[SHA256_HEX]);

#endif
