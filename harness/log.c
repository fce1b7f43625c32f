/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *log_program = "qpdrill";
static bool log_verbose;

void log_init(const char *program, bool verbose)
{
	log_program = program;
	log_verbose = verbose;
}

__attribute__((format(printf, 2, 0))) static void log_put(const char *level, const char *fmt, va_list ap)
{
	char text[4096];
	char line[4200];

	vsnprintf(text, sizeof(text), fmt, ap);
	/* One write a line, so that two processes on one terminal do not mix within it. */
	snprintf(line, sizeof(line), "%s: %s%s\n", log_program, level, text);
	fputs(line, stderr);
	fflush(stderr);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put("", fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	if (!log_verbose)
		return;
	va_start(ap, fmt);
	log_put("debug: ", fmt, ap);
	va_end(ap);
}

void log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put("warning: ", fmt, ap);
	va_end(ap);
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put("error: ", fmt, ap);
	va_end(ap);
}

/* Length of the valid UTF-8 sequence at s (1..4), 0 when there is none. Overlong forms, surrogates and values beyond
 * U+10FFFF are invalid. s is NUL-terminated, so a cut sequence ends at the NUL. */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char lead_min, lead_max, second_min, second_max, len;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0xff, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].lead_min || s[0] > forms[i].lead_max)
			continue;
		if (forms[i].len == 1)
			return 1;
		if (s[1] < forms[i].second_min || s[1] > forms[i].second_max)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

static bool is_control(const unsigned char *s, size_t len)
{
	if (len == 1)
		return s[0] < 0x20 || s[0] == 0x7f;
	return len == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

char *log_escape(const char *text, char *buf, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = 0;

	if (!size)
		return buf;
	while (*s) {
		size_t len = utf8_len(s);
		bool plain = len && !is_control(s, len);

		if (!len)
			len = 1;
		if (plain) {
			if (n + len >= size)
				break;
			memcpy(buf + n, s, len);
			n += len;
		} else {
			if (n + 4 * len >= size)
				break;
			for (size_t i = 0; i < len; i++, n += 4)
				snprintf(buf + n, 5, "\\x%02x", s[i]);
		}
		s += len;
	}
	buf[n] = '\0';
	return buf;
}
