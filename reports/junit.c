/* SPDX-License-Identifier: MIT */
/*
 * junit.xml: one testsuite, one testcase per case, named by the case id, which never changes with order or lane. Elements and
 * attributes are those that the common schemas share, in the order that the strictest wants: <properties>, <testcase> with at most
 * one of <skipped>, <error>, <failure>, then <system-out> and <system-err>. A deviation passes and is named in <system-out>.
 */
#include <errno.h>
#include <libxml/xmlwriter.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "../harness/units.h"
#include "report.h"
#include "report_util.h"

/* Decodes one UTF-8 sequence; 0 bytes: invalid. */
static int decode(const unsigned char *s, unsigned *ret)
{
	static const struct {
		unsigned char mask, lead;
		unsigned min;
	} forms[] = { { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };

	for (int n = 0; n < 4; n++) {
		unsigned c = s[0] & (unsigned char)~forms[n].mask;

		if ((s[0] & forms[n].mask) != forms[n].lead)
			continue;
		for (int i = 1; i <= n; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[i] & 0x3f);
		}
		if (c < forms[n].min || c > 0x10ffff)
			return 0;
		*ret = c;
		return n + 1;
	}
	return 0;
}

/* XML 1.0, production 2 (Char); the discouraged C1 controls are kept out as well. */
static bool is_xml_char(unsigned c)
{
	if (c < 0x20)
		return c == '\t' || c == '\n' || c == '\r';
	return (c < 0x7f || c > 0x9f) && !(c >= 0xd800 && c <= 0xdfff) && c != 0xfffe && c != 0xffff;
}

/* What XML cannot hold becomes \xNN. Caller frees; NULL when out of memory. */
static char *xml_text(const char *text)
{
	size_t len = strlen(text);
	char *out = malloc(4 * len + 1), *o = out;

	for (const unsigned char *s = (const unsigned char *)text; out && *s;) {
		unsigned c;
		int n = decode(s, &c);

		if (n && is_xml_char(c)) {
			memcpy(o, s, (size_t)n);
			o += n;
			s += n;
			continue;
		}
		snprintf(o, 5, "\\x%02x", *s++);
		o += 4;
	}
	if (out)
		*o = 0;
	return out;
}

static int put_attribute(xmlTextWriterPtr w, const char *name, const char *value)
{
	char *text = xml_text(value);
	int rc = text ? xmlTextWriterWriteAttribute(w, BAD_CAST name, BAD_CAST text) : -1;

	free(text);
	return rc < 0 ? -1 : 0;
}

static int put_number(xmlTextWriterPtr w, const char *name, unsigned long n)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", n);
	return put_attribute(w, name, text);
}

static int put_seconds(xmlTextWriterPtr w, uint64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%llu.%03llu", (unsigned long long)(ns / NSEC_PER_SEC),
		 (unsigned long long)(ns % NSEC_PER_SEC / NSEC_PER_MSEC));
	return put_attribute(w, "time", text);
}

static int put_text(xmlTextWriterPtr w, const char *value)
{
	char *text = xml_text(value);
	int rc = text ? xmlTextWriterWriteString(w, BAD_CAST text) : -1;

	free(text);
	return rc < 0 ? -1 : 0;
}

/* <failure> or <error>: the text is what the text report says of the case. */
static int put_problem(xmlTextWriterPtr w, const struct report_run *run, const json_t *entry, const char *element)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int rc;

	if (!out)
		return -1;
	report_text_failure(out, json_object_get(entry, "plan"), verdict, run->run, false);
	fclose(out);
	rc = xmlTextWriterStartElement(w, BAD_CAST element);
	if (rc >= 0)
		rc = put_attribute(w, "message", report_str(verdict, "headline"));
	if (rc >= 0)
		rc = put_attribute(w, "type", report_str(verdict, "verdict"));
	if (rc >= 0)
		rc = put_text(w, text);
	if (rc >= 0)
		rc = xmlTextWriterEndElement(w);
	free(text);
	return rc < 0 ? -1 : 0;
}

static int put_skipped(xmlTextWriterPtr w, const json_t *verdict)
{
	if (xmlTextWriterStartElement(w, BAD_CAST "skipped") < 0 || put_attribute(w, "message", report_str(verdict, "headline")))
		return -1;
	return xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

/* "states/reset-discards~to=RESET" -> "states": a dotted name, as Java's packages are. */
static void class_name(const char *id, char *buf, size_t size)
{
	size_t file = strcspn(id, "~");
	const char *slash = memrchr(id, '/', file);

	snprintf(buf, size, "qpdrill%s%.*s", slash ? "." : "", slash ? (int)(slash - id) : 0, id);
	for (char *s = buf; *s; s++)
		if (*s == '/')
			*s = '.';
}

static int put_case(xmlTextWriterPtr w, const struct report_run *run, const json_t *entry)
{
	const json_t *verdict = json_object_get(entry, "verdict");
	const char *id = report_str(entry, "case"), *name = report_str(verdict, "verdict");
	char class[512];
	int rc = 0;

	class_name(id, class, sizeof(class));
	if (xmlTextWriterStartElement(w, BAD_CAST "testcase") < 0 || put_attribute(w, "name", id) ||
	    put_attribute(w, "classname", class) || put_seconds(w, report_duration(entry)))
		return -1;
	if (!strcmp(name, "skip"))
		rc = put_skipped(w, verdict);
	else if (!strcmp(name, "fail"))
		rc = put_problem(w, run, entry, "failure");
	else if (strcmp(name, "pass") && strcmp(name, "deviation"))
		rc = put_problem(w, run, entry, "error");
	return rc || xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

static int put_properties(xmlTextWriterPtr w, const json_t *run)
{
	static const char *const names[] = {
		"id", "seed", "build", "kernel", "provider", "firmware", "rdma_core", "lab", "repeat"
	};

	if (xmlTextWriterStartElement(w, BAD_CAST "properties") < 0)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *value = json_str(run, names[i]);

		if (!value)
			continue;
		if (xmlTextWriterStartElement(w, BAD_CAST "property") < 0 || put_attribute(w, "name", names[i]) ||
		    put_attribute(w, "value", value) || xmlTextWriterEndElement(w) < 0)
			return -1;
	}
	return xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

static int put_deviations(xmlTextWriterPtr w, const struct report_run *run)
{
	size_t i, k;
	json_t *entry, *deviation;

	if (xmlTextWriterStartElement(w, BAD_CAST "system-out") < 0)
		return -1;
	json_array_foreach(run->cases, i, entry)
		json_array_foreach(json_object_get(json_object_get(entry, "verdict"), "deviations"), k, deviation)
			if (put_text(w, report_str(entry, "case")) || put_text(w, ": deviation ") ||
			    put_text(w, report_str(deviation, "id")) || put_text(w, "\n"))
				return -1;
	json_array_foreach(run->cases, i, entry) {
		const char *why = report_str(json_object_get(entry, "result"), "again");

		if (*why && (put_text(w, report_str(entry, "case")) || put_text(w, ": ran again: ") || put_text(w, why) ||
			     put_text(w, "\n")))
			return -1;
	}
	return xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

/* What no case did alone. */
static int put_troubles(xmlTextWriterPtr w, const struct report_run *run)
{
	const char *boot;
	json_t *trouble;

	if (xmlTextWriterStartElement(w, BAD_CAST "system-err") < 0)
		return -1;
	json_object_foreach(json_object_get(run->run, "troubles"), boot, trouble)
		if (!json_bool(trouble, "found", false) &&
		    (put_text(w, "boot ") || put_text(w, boot) || put_text(w, ": ") || put_text(w, report_str(trouble, "why")) ||
		     put_text(w, ", and no case does it alone\n")))
			return -1;
	return xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

static int put_suite(xmlTextWriterPtr w, const struct report_run *run)
{
	struct report_counts c = report_count(run);
	char stamp[20], host[65] = "";
	uint64_t ns = 0;
	size_t i;
	json_t *entry;

	snprintf(stamp, sizeof(stamp), "%s",
		 *report_str(run->run, "started") ? report_str(run->run, "started") : "1970-01-01T00:00:00");
	snprintf(host, sizeof(host), "%s", *report_str(run->run, "host") ? report_str(run->run, "host") : "localhost");
	json_array_foreach(run->cases, i, entry)
		ns += report_duration(entry);
	if (xmlTextWriterStartElement(w, BAD_CAST "testsuite") < 0 || put_attribute(w, "name", "qpdrill") ||
	    put_attribute(w, "package", "scenarios") || put_number(w, "id", 0) || put_attribute(w, "timestamp", stamp) ||
	    put_attribute(w, "hostname", host) || put_number(w, "tests", json_array_size(run->cases)) ||
	    put_number(w, "failures", c.fail) || put_number(w, "errors", c.inconclusive + c.error) ||
	    put_number(w, "skipped", c.skip) || put_seconds(w, ns) || put_properties(w, run->run))
		return -1;
	json_array_foreach(run->cases, i, entry)
		if (put_case(w, run, entry))
			return -1;
	if (put_deviations(w, run) || put_troubles(w, run))
		return -1;
	return xmlTextWriterEndElement(w) < 0 ? -1 : 0;
}

static int junit_write(const struct report_run *run, FILE *out, bool colour, struct error *e)
{
	xmlBufferPtr buffer = xmlBufferCreate();
	xmlTextWriterPtr w = buffer ? xmlNewTextWriterMemory(buffer, 0) : NULL;
	bool fine;
	int rc = 0;

	(void)colour;
	fine = w && xmlTextWriterSetIndent(w, 1) >= 0 && xmlTextWriterStartDocument(w, "1.0", "UTF-8", NULL) >= 0 &&
	       xmlTextWriterStartElement(w, BAD_CAST "testsuites") >= 0 && put_suite(w, run) == 0 &&
	       xmlTextWriterEndDocument(w) >= 0;
	if (w)
		xmlFreeTextWriter(w);
	if (!fine)
		rc = error_set(e, -ENOMEM, "junit.xml: cannot be made");
	else if (fwrite(xmlBufferContent(buffer), 1, (size_t)xmlBufferLength(buffer), out) != (size_t)xmlBufferLength(buffer))
		rc = error_set(e, -EIO, "junit.xml: cannot write: %s", strerror(errno));
	if (buffer)
		xmlBufferFree(buffer);
	return rc;
}

extern const struct report_ops report_junit;
const struct report_ops report_junit = {
	.name = "junit",
	.file = "junit.xml",
	.help = "for CI servers",
	.write = junit_write,
};
