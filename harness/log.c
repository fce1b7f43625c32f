/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

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

char *log_escape(const char *text, char *buf, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t n = 0;

	if (!size)
		return buf;
	while (*s) {
		uint32_t c;
		size_t len = utf8_decode(s, UTF8_MAX, &c);
		bool plain = len && !utf8_hides(c);

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
