/* SPDX-License-Identifier: MIT */
/*
 * The one writer of markup: everything that goes out is escaped, and what markup cannot hold (control characters, broken UTF-8)
 * becomes \xNN. The first error stays and is told by xml_close(); until then nothing has to be asked.
 */
#ifndef QD_XML_H
#define QD_XML_H

#include <stdbool.h>
#include <stdio.h>

#include "../harness/error.h"

struct xml;

enum xml_kind {
	XML_DOCUMENT, /* with its declaration, indented; an empty element is <x/> */
	XML_HTML,     /* with <!DOCTYPE html>; every element has an end tag of its own, for HTML knows no other */
};

/* NULL when out of memory. out is borrowed. */
struct xml *xml_open(FILE *out, enum xml_kind kind);
/* Ends what is open. what: whose text an error begins with. NULL is -ENOMEM. */
int xml_close(struct xml *x, const char *what, struct error *e);

void xml_start(struct xml *x, const char *element);
void xml_end(struct xml *x);
/* An element of HTML that never has an end tag: br, meta. Ends what xml_start() began. */
void xml_end_void(struct xml *x);
void xml_attr(struct xml *x, const char *name, const char *value);
__attribute__((format(printf, 3, 4))) void xml_attrf(struct xml *x, const char *name, const char *fmt, ...);
void xml_text(struct xml *x, const char *text);
__attribute__((format(printf, 2, 3))) void xml_textf(struct xml *x, const char *fmt, ...);
/* <element class="class">text</element>; class may be NULL. */
void xml_element(struct xml *x, const char *element, const char *class, const char *text);
/* The same, begun and left open. */
void xml_start_class(struct xml *x, const char *element, const char *class);

#endif
