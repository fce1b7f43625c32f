/* SPDX-License-Identifier: MIT */
/*
 * One sentence of error text that travels up. Functions return 0 or a negative errno and fill a
 * struct error; only the top (a subcommand, an agent's main) adds file:line and prints.
 */
#ifndef QD_ERROR_H
#define QD_ERROR_H

struct error {
	char text[1024];
};

/* Formats the text (truncating) and returns rc, so that `return error_set(e, -EINVAL, "...")` reads
 * well. e may be NULL. rc is passed through untouched. */
__attribute__((format(printf, 3, 4))) int error_set(struct error *e, int rc, const char *fmt, ...);

/* Puts "prefix: " before the text that is there. Returns rc. */
__attribute__((format(printf, 3, 4))) int error_prefix(struct error *e, int rc, const char *fmt, ...);

#endif
