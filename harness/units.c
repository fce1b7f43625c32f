/* SPDX-License-Identifier: MIT */
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct unit {
	const char *text;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
};

static const struct unit size_units[] = {
	{ "", 1 },
	{ "KiB", 1ULL << 10 },
	{ "MiB", 1ULL << 20 },
	{ "GiB", 1ULL << 30 },
};

static int parse(const char *text, const struct unit *units, size_t n_units, uint64_t *ret)
{
	const char *p = text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	for (size_t i = 0; i < n_units; i++) {
		if (strcmp(p, units[i].text))
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value))
			return -ERANGE;
		*ret = value;
		return 0;
	}
	return -EINVAL;
}

int units_parse_duration(const char *text, uint64_t *ret_ns)
{
	return parse(text, duration_units, sizeof(duration_units) / sizeof(duration_units[0]), ret_ns);
}

int units_parse_size(const char *text, uint64_t *ret_bytes)
{
	return parse(text, size_units, sizeof(size_units) / sizeof(size_units[0]), ret_bytes);
}

char *units_format_ns(uint64_t ns, char *buf, size_t size)
{
	static const char *const names[] = { "ns", "us", "ms", "s" };
	double value = (double)ns;
	size_t i = 0;

	/* 999.5 would be shown as 1000 of the smaller unit. */
	while (value >= 999.5 && i + 1 < sizeof(names) / sizeof(names[0])) {
		value /= 1000;
		i++;
	}
	if (i == 0 || value >= 99.95)
		snprintf(buf, size, "%.0f %s", value, names[i]);
	else if (value >= 9.995)
		snprintf(buf, size, "%.1f %s", value, names[i]);
	else
		snprintf(buf, size, "%.2f %s", value, names[i]);
	return buf;
}

char *units_format_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB" };
	size_t i = 0;
	uint64_t value = bytes;

	/* Only exact multiples: a size in a message is compared with the file by eye. */
	while (value >= 1024 && value % 1024 == 0 && i + 1 < sizeof(names) / sizeof(names[0])) {
		value /= 1024;
		i++;
	}
	snprintf(buf, size, "%llu %s", (unsigned long long)value, names[i]);
	return buf;
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}
