/* SPDX-License-Identifier: MIT */
/*
 * Diagnostics on a source file: `file:line:col: error: message`, the source line, a caret, and what
 * would have been right. Collected, so that a file shows all its mistakes at once.
 */
#ifndef QD_DIAG_H
#define QD_DIAG_H

#include <stddef.h>

struct diag {
	char *text; /* everything rendered so far, NUL-terminated; NULL when clean */
	size_t len;
	unsigned errors;
	unsigned warnings;
};

struct diag_at {
	const char *path;
	const char *source; /* the whole file */
	size_t source_len;
	unsigned line, col; /* from 1; 0: unknown */
	unsigned span;      /* characters to underline, at least 1 */
};

/* hint: "allowed: ..." or "did you mean ...", or NULL. Control characters in the source line are escaped. */
__attribute__((format(printf, 4, 5))) void diag_error(struct diag *d, const struct diag_at *at, const char *hint, const char *fmt,
						      ...);
__attribute__((format(printf, 4, 5))) void diag_warning(struct diag *d, const struct diag_at *at, const char *hint, const char *fmt,
							...);
void diag_release(struct diag *d);

#endif
