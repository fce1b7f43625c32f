/* SPDX-License-Identifier: MIT */
/* Two run folders of testdata with everything that a file, a device or a kernel may say turned against whoever reads the report. */
#include "report.h"

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/test.h"

#define DATA "reports/testdata/"
#define PATH_BYTES 1024
/* Markup, what ends an attribute, a CDATA section, a comment, a cell or a code span; escape sequences (also of eight bits), a bell,
 * a new line; a character of four bytes. */
#define HOSTILE                                                                                                                    \
	"<script>console.error(7)</script>\"'&]]>--><!--<img src=x onerror=alert(7)>|`` `\x1b[2J\x1b]0;x\x07\x7f\xc2\x9b"          \
	"2J\nnew\r\xe2\x80\xae\xf0\x9f\x98\x80"
/* No UTF-8 at all: a file may hold it, JSON may not. */
#define BROKEN "\xff\xfe\xc0\x80\xed\xa0\x80"

/* What decides how a thing is told, and where it lies. */
static const char *const structural[] = { "dir",     "kind",  "verdict", "severity", "phase", "do",   "src",    "type",
					  "outcome", "asked", "new",     "old",      "class", "fate", "op",     "from",
					  "obj",     "agent", "peer",    "name",     "pair",  "at",   "device", "qp",
					  "clk",     "as",    "status",  "opcode",   "event" };
/* Objects whose keys are names that something else gave. */
static const char *const named[] = { "hashes", "troubles", "counters", "ledger", "devices", "values", "dev.a", "attrs" };

static bool is_one_of(const char *const *list, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], key))
			return true;
	return false;
}

#define IS_ONE_OF(list, key) is_one_of(list, sizeof(list) / sizeof(*(list)), key)

/* all: what decides how it is told as well. New reference. */
static json_t *turned(const json_t *value, const char *key, bool all)
{
	const char *name;
	json_t *kid, *out;
	size_t i;

	if (json_is_string(value) && strcmp(key, "dir") && (all || !IS_ONE_OF(structural, key)))
		return json_sprintf("%s" HOSTILE, json_string_value(value));
	if (json_is_array(value)) {
		out = json_array();
		json_array_foreach(value, i, kid)
			json_array_append_new(out, turned(kid, key, all));
		return out;
	}
	if (!json_is_object(value))
		return json_deep_copy(value);
	out = json_object();
	json_object_foreach((json_t *)value, name, kid) {
		char longer[512];

		snprintf(longer, sizeof(longer), "%s%s", name, IS_ONE_OF(named, key) ? HOSTILE : "");
		json_object_set_new(out, longer, turned(kid, name, all));
	}
	return out;
}

static void turn_json(const char *from, const char *to, const char *name, bool all)
{
	char path[2 * PATH_BYTES];
	struct error e = { "" };
	json_t *value, *fresh;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	if (access(path, F_OK) < 0)
		return;
	MUST(json_load(path, &value, &e) == 0);
	fresh = turned(value, "", all);
	snprintf(path, sizeof(path), "%s/%s", to, name);
	MUST(json_save(path, fresh, &e) == 0);
	json_decref(value);
	json_decref(fresh);
}

static void turn_lines(const char *from, const char *to, const char *name, bool all)
{
	char path[2 * PATH_BYTES];
	struct error e = { "" };
	json_t *lines, *line;
	bool torn;
	size_t i;
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	if (access(path, F_OK) < 0)
		return;
	MUST(json_load_lines(path, &lines, &torn, &e) == 0);
	snprintf(path, sizeof(path), "%s/%s", to, name);
	out = fopen(path, "w");
	MUST(out != NULL);
	json_array_foreach(lines, i, line) {
		json_t *fresh = turned(line, "", all);

		json_dumpf(fresh, out, JSON_COMPACT);
		fputc('\n', out);
		json_decref(fresh);
	}
	fclose(out);
	json_decref(lines);
}

static void turn_text(const char *from, const char *to, const char *name)
{
	char path[2 * PATH_BYTES], line[4096];
	FILE *in, *out;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	in = fopen(path, "r");
	if (!in)
		return;
	snprintf(path, sizeof(path), "%s/%s", to, name);
	out = fopen(path, "w");
	MUST(out != NULL);
	while (fgets(line, sizeof(line), in))
		fprintf(out, "%.*s" HOSTILE BROKEN "\n", (int)strcspn(line, "\n"), line);
	fclose(in);
	fclose(out);
}

static void make_dirs(char *path)
{
	for (char *at = path + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			mkdir(path, 0700);
			*at = '/';
		}
	mkdir(path, 0700);
}

static void turn_run(const char *from, const char *to, bool all)
{
	char path[PATH_BYTES], own[PATH_BYTES];
	struct error e = { "" };
	json_t *run, *entry;
	size_t i;

	turn_json(from, to, "run.json", all);
	turn_lines(from, to, "results.jsonl", all);
	snprintf(path, sizeof(path), "%s/run.json", from);
	MUST(json_load(path, &run, &e) == 0);
	json_array_foreach(json_object_get(run, "cases"), i, entry) {
		snprintf(path, sizeof(path), "%s/%s", from, json_str(entry, "dir"));
		snprintf(own, sizeof(own), "%s/%s", to, json_str(entry, "dir"));
		make_dirs(own);
		turn_json(path, own, "plan.json", all);
		turn_json(path, own, "verdict.json", all);
		turn_lines(path, own, "observations.jsonl", all);
		turn_text(path, own, "scenario.yaml");
	}
	json_decref(run);
}

static char *render(const char *dir, const char *format, size_t *ret_len)
{
	struct report_run run;
	struct error e = { "" };
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	MUST(report_load(dir, &run, &e) == 0);
	if (!strcmp(format, "table"))
		report_matrix(&run, 1, out);
	else
		ROW_ASSERT(report_find(format)->write(&run, out, true, &e) == 0, "%s: %s", format, e.text);
	report_release(&run);
	fclose(out);
	return text;
}

/* data: for programs, where a control character is written as what it is; all else may come to a terminal. */
static void check_bytes(const char *what, const char *text, size_t len, bool data)
{
	static const char *const colours[] = { "\033[32m", "\033[36m", "\033[31m", "\033[33m", "\033[2m", "\033[0m" };

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i], next = (unsigned char)text[i + 1];
		bool fine = c >= 0x20 || c == '\n' || c == '\t';

		for (size_t k = 0; c == 033 && !data && k < sizeof(colours) / sizeof(*colours); k++)
			fine = fine || !strncmp(text + i, colours[k], strlen(colours[k]));
		fine = fine && (data || (c != 0x7f && (c != 0xc2 || next >= 0xa0)));
		ROW_ASSERT(fine, "%s: control character 0x%02x %02x after %.40s", what, c, next, text + (i > 40 ? i - 40 : 0));
		ROW_ASSERT(c < 0xf8 && c != 0xc0, "%s: no UTF-8", what);
	}
	ROW_ASSERT(data || !strstr(text, "\xe2\x80\xae"), "%s: what follows is written from right to left", what);
	ROW_ASSERT(strstr(text, "\xf0\x9f\x98\x80") != NULL, "%s: the character of four bytes is gone", what);
}

static double number(xmlDocPtr doc, const char *xpath)
{
	xmlXPathContextPtr context = xmlXPathNewContext(doc);
	xmlXPathObjectPtr result = xmlXPathEvalExpression(BAD_CAST xpath, context);
	double n = result ? xmlXPathCastToNumber(result) : -1;

	xmlXPathFreeObject(result);
	xmlXPathFreeContext(context);
	return n;
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)))
		n++, text++;
	return n;
}

static void check_markup(const char *what, const char *text, size_t len)
{
	static const char *const none[] = {
		"count(//@*[starts-with(local-name(), 'on')])",
		"count(//*[local-name() = 'script' or local-name() = 'img' or local-name() = 'iframe' or local-name() = 'object'])",
		"count(//*[local-name() = 'a'][not(starts-with(@href, '#') or starts-with(@href, 'cases/'))])",
		"count(//comment())",
	};
	xmlDocPtr doc = xmlReadMemory(text, (int)len, what, NULL, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_HUGE);

	ROW_ASSERT(doc != NULL, "%s is not well-formed", what);
	for (size_t i = 0; doc && i < sizeof(none) / sizeof(*none); i++)
		ROW_ASSERT(number(doc, none[i]) == 0, "%s: %s is %g", what, none[i], number(doc, none[i]));
	ROW_ASSERT(times(text, "&lt;script&gt;console.error(7)") > 10, "%s: it is told %u times", what,
		   times(text, "&lt;script&gt;console.error(7)"));
	ROW_ASSERT(!strstr(text, "<script") && !strstr(text, "<img"), "%s has an element that is not its own", what);
	xmlFreeDoc(doc);
}

static void check_json(const char *text, size_t len)
{
	json_t *report = json_loadb(text, len, 0, NULL);

	CU_ASSERT(report != NULL);
	ROW_ASSERT(times(text, "<script>console.error(7)</script>\\\"") > 20, "it is told %u times",
		   times(text, "<script>console.error(7)"));
	json_decref(report);
}

static void test_all_formats(void)
{
	static const char *const formats[] = { "text", "json", "junit", "html", "table" };
	static const struct {
		const char *from;
		bool all;
	} runs[] = { { DATA "run", false }, { DATA "run", true }, { DATA "ladder", false }, { DATA "ladder", true } };

	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		char dir[] = "/tmp/qpdrill-escape-XXXXXX", remove[64];

		MUST(mkdtemp(dir) != NULL);
		turn_run(runs[i].from, dir, runs[i].all);
		for (size_t k = 0; k < sizeof(formats) / sizeof(*formats); k++) {
			size_t len;
			char *text = render(dir, formats[k], &len);

			ROW_ASSERT(len > 300, "%s of %s: %zu bytes", formats[k], runs[i].from, len);
			check_bytes(formats[k], text, len, !strcmp(formats[k], "json"));
			if (!strcmp(formats[k], "html") || (!strcmp(formats[k], "junit") && !runs[i].all))
				check_markup(formats[k], text, len);
			if (!strcmp(formats[k], "json"))
				check_json(text, len);
			free(text);
		}
		snprintf(remove, sizeof(remove), "rm -rf %s", dir);
		CU_ASSERT(system(remove) == 0);
	}
}

static const struct test_case cases[] = {
	{ "hostile text stays text, in every format", test_all_formats },
};

TEST_MAIN("escape", cases)
