/* SPDX-License-Identifier: MIT */
/*
 * What people see while a program works, on stderr; stdout belongs to the product. Device and file
 * text is escaped before it is shown (log_escape), so a terminal stays sane.
 */
#ifndef QD_LOG_H
#define QD_LOG_H

#include <stdbool.h>
#include <stddef.h>

void log_init(const char *program, bool verbose);
__attribute__((format(printf, 1, 2))) void log_info(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *fmt, ...); /* only when verbose */
__attribute__((format(printf, 1, 2))) void log_warn(const char *fmt, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *fmt, ...);

/* Replaces control characters (C0, DEL, C1) and invalid UTF-8 by \xNN. Writes at most size bytes
 * with the terminating 0; returns buf. Valid UTF-8 beyond ASCII stays. */
char *log_escape(const char *text, char *buf, size_t size);

#endif
