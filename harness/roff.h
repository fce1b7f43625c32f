/* SPDX-License-Identifier: MIT */
/*
 * Manual pages as roff with the macros of man(7). Text is escaped; what stands between `backquotes` is printed bold, without them.
 */
#ifndef QD_ROFF_H
#define QD_ROFF_H

#include <stdio.h>

/* The page's head and its NAME. */
void roff_page(FILE *out, const char *name, int section, const char *what);
void roff_section(FILE *out, const char *title);    /* .SH, in capitals */
void roff_subsection(FILE *out, const char *title); /* .SS */
/* Paragraphs; an empty line parts them, other line breaks are spaces. A line that begins with a space stands by itself. */
void roff_text(FILE *out, const char *text);
/* A term and what is said of it; text may be empty. */
void roff_item(FILE *out, const char *term, const char *text);
/* As it is, in lines of its own. */
void roff_verbatim(FILE *out, const char *text);
/* "qpdrill\-wire(1)" and the like, with commas. NULL-terminated. */
void roff_see_also(FILE *out, const char *const *pages);

#endif
