/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *e, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return rc;
	/* Through a copy: an argument may be e->text itself. */
	char text[sizeof(e->text)];

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	memcpy(e->text, text, sizeof(text));
	return rc;
}

int error_prefix(struct error *e, int rc, const char *fmt, ...)
{
	va_list ap;
	char text[sizeof(e->text)];

	if (!e)
		return rc;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t used = strnlen(text, sizeof(text) - 1);
	size_t room = sizeof(text) - 1 - used;
	size_t rest = strlen(e->text);

	if (room > 2) {
		memcpy(text + used, ": ", 2);
		rest = rest < room - 2 ? rest : room - 2;
		memcpy(text + used + 2, e->text, rest);
		text[used + 2 + rest] = '\0';
	}
	memcpy(e->text, text, sizeof(text));
	return rc;
}
