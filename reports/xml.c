/* SPDX-License-Identifier: MIT */
#include "xml.h"

#include <errno.h>
#include <libxml/xmlwriter.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/utf8.h"

struct xml {
	xmlTextWriterPtr w;
	FILE *out;
	enum xml_kind kind;
	bool failed;
};

/* XML 1.0, production 2 (Char), without what hides or turns the text around it. */
static bool is_shown(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || (!utf8_hides(c) && c != 0xfffe && c != 0xffff);
}

/* What cannot be shown becomes \xNN. Caller frees; NULL when out of memory. */
static char *clean(const char *text)
{
	size_t len = strlen(text);
	char *out = malloc(4 * len + 1), *o = out;

	for (const unsigned char *s = (const unsigned char *)text; out && *s;) {
		uint32_t c;
		size_t n = utf8_decode(s, UTF8_MAX, &c);

		if (n && is_shown(c)) {
			memcpy(o, s, n);
			o += n;
			s += n;
			continue;
		}
		for (n = n ? n : 1; n; n--, o += 4)
			snprintf(o, 5, "\\x%02x", *s++);
	}
	if (out)
		*o = 0;
	return out;
}

static int to_file(void *context, const char *buffer, int len)
{
	return fwrite(buffer, 1, (size_t)len, context) == (size_t)len ? len : -1;
}

struct xml *xml_open(FILE *out, enum xml_kind kind)
{
	struct xml *x = calloc(1, sizeof(*x));
	xmlOutputBufferPtr buffer = x ? xmlOutputBufferCreateIO(to_file, NULL, out, NULL) : NULL;

	if (buffer)
		x->w = xmlNewTextWriter(buffer);
	if (!buffer || !x->w) {
		if (buffer)
			xmlOutputBufferClose(buffer);
		free(x);
		return NULL;
	}
	x->out = out;
	x->kind = kind;
	if (kind == XML_DOCUMENT)
		x->failed = xmlTextWriterSetIndent(x->w, 1) < 0 || xmlTextWriterStartDocument(x->w, "1.0", "UTF-8", NULL) < 0;
	else
		x->failed = xmlTextWriterWriteRaw(x->w, BAD_CAST "<!DOCTYPE html>\n") < 0;
	return x;
}

int xml_close(struct xml *x, const char *what, struct error *e)
{
	bool failed;

	if (!x)
		return error_set(e, -ENOMEM, "%s: out of memory", what);
	failed = x->failed || xmlTextWriterEndDocument(x->w) < 0 || xmlTextWriterFlush(x->w) < 0;
	xmlFreeTextWriter(x->w);
	if (ferror(x->out))
		failed = true;
	free(x);
	return failed ? error_set(e, -EIO, "%s: cannot be written", what) : 0;
}

void xml_start(struct xml *x, const char *element)
{
	x->failed |= xmlTextWriterStartElement(x->w, BAD_CAST element) < 0;
}

void xml_end(struct xml *x)
{
	x->failed |= (x->kind == XML_HTML ? xmlTextWriterFullEndElement(x->w) : xmlTextWriterEndElement(x->w)) < 0;
}

void xml_end_void(struct xml *x)
{
	x->failed |= xmlTextWriterEndElement(x->w) < 0;
}

void xml_attr(struct xml *x, const char *name, const char *value)
{
	char *text = clean(value);

	x->failed |= !text || xmlTextWriterWriteAttribute(x->w, BAD_CAST name, BAD_CAST text) < 0;
	free(text);
}

void xml_text(struct xml *x, const char *value)
{
	char *text = clean(value);

	x->failed |= !text || xmlTextWriterWriteString(x->w, BAD_CAST text) < 0;
	free(text);
}

/* The caller frees it; NULL: no memory, and the document has failed. */
__attribute__((format(printf, 2, 0))) static char *formatted(struct xml *x, const char *fmt, va_list args)
{
	char *value;

	if (vasprintf(&value, fmt, args) < 0)
		value = NULL;
	x->failed |= !value;
	return value;
}

void xml_attrf(struct xml *x, const char *name, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	char *value = formatted(x, fmt, args);

	va_end(args);
	if (value)
		xml_attr(x, name, value);
	free(value);
}

void xml_textf(struct xml *x, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	char *value = formatted(x, fmt, args);

	va_end(args);
	if (value)
		xml_text(x, value);
	free(value);
}

void xml_start_class(struct xml *x, const char *element, const char *class)
{
	xml_start(x, element);
	if (class)
		xml_attr(x, "class", class);
}

void xml_element(struct xml *x, const char *element, const char *class, const char *text)
{
	xml_start_class(x, element, class);
	xml_text(x, text);
	xml_end(x);
}
