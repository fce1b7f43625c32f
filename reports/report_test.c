/* SPDX-License-Identifier: MIT */
/* Golden files: testdata/run is a run folder (a title that tries to break out, a killed case, a torn line); golden.* is what each
 * format makes of it. QPDRILL_GOLDEN=write writes them anew. */
#include "report.h"

#include <errno.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <libxml/xpath.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/test.h"
#include "report_util.h"

#define DATA "reports/testdata/"

static bool rewrites(void)
{
	const char *how = getenv("QPDRILL_GOLDEN");

	return how && !strcmp(how, "write");
}

/* change: NULL, or what happens to the run before. */
static char *render_changed(const char *format, void (*change)(struct report_run *run), size_t *ret_len)
{
	struct report_run run;
	struct error e = { "" };
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);
	int rc = report_load(DATA "run", &run, &e);

	ROW_ASSERT(rc == 0, "%s", e.text);
	if (!rc) {
		if (change)
			change(&run);
		rc = report_find(format)->write(&run, out, false, &e);
		ROW_ASSERT(rc == 0, "%s", e.text);
		report_release(&run);
	}
	fclose(out);
	return text;
}

static char *render(const char *format, size_t *ret_len)
{
	return render_changed(format, NULL, ret_len);
}

static char *read_whole(const char *path)
{
	FILE *in = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (in) {
		if (fread(text, 1, (1 << 20) - 1, in) == 0)
			*text = 0;
		fclose(in);
	}
	return text;
}

static void test_golden(void)
{
	static const char *const formats[] = { "text", "json", "junit" };

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char path[256], *seen, *expected;
		size_t len;

		snprintf(path, sizeof(path), DATA "golden.%s", formats[i]);
		seen = render(formats[i], &len);
		if (rewrites()) {
			FILE *out = fopen(path, "w");

			CU_ASSERT_PTR_NOT_NULL_FATAL(out);
			CU_ASSERT(fwrite(seen, 1, len, out) == len);
			fclose(out);
		}
		expected = read_whole(path);
		ROW_ASSERT(!strcmp(seen, expected), "%s differs; seen:\n%s", path, seen);
		free(seen);
		free(expected);
	}
}

static void keep_cases(struct report_run *run, size_t from, size_t n)
{
	json_t *kept = json_array(), *entry;
	size_t i;

	json_array_foreach(run->cases, i, entry)
		if (i >= from && i < from + n)
			json_array_append(kept, entry);
	json_decref(run->cases);
	run->cases = kept;
}

/* One run and, in two parts and but for one case, the same on another kernel, where nothing deviates. */
static void on_two_kernels(struct report_run runs[3])
{
	struct error e = { "" };
	json_t *entry;
	size_t k;

	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_FATAL(report_load(DATA "run", &runs[i], &e) == 0);
	for (size_t i = 1; i < 3; i++) {
		json_object_set_new(runs[i].run, "kernel", json_string("6.12.95+deb12-amd64"));
		json_array_foreach(runs[i].cases, k, entry) {
			json_t *verdict = json_object_get(entry, "verdict");

			if (!strcmp(json_string_value(json_object_get(verdict, "verdict")), "deviation")) {
				json_object_set_new(verdict, "verdict", json_string("pass"));
				json_object_set_new(verdict, "deviations", json_array());
			}
		}
	}
	keep_cases(&runs[1], 0, 2);
	keep_cases(&runs[2], 2, json_array_size(runs[2].cases) - 3);
}

/* Nothing ran, and but for one for the same reason. */
static void all_skipped(struct report_run *run)
{
	struct error e = { "" };
	json_t *entry;
	size_t k;

	CU_ASSERT_FATAL(report_load(DATA "run", run, &e) == 0);
	json_array_foreach(run->cases, k, entry) {
		json_t *verdict = json_object_get(entry, "verdict");

		json_object_set_new(verdict, "verdict", json_string("skip"));
		json_object_set_new(verdict, "headline", json_string(k == 1 ? "needs wire" : "needs xrc"));
		json_object_set_new(verdict, "deviations", json_array());
	}
}

/* One run alone, the same one twice (the columns say the same), one on two kernels, and one that could do nothing. */
static void test_matrix(void)
{
	struct report_run one[1], twice[2], kernels[3], skips[1];
	const struct {
		const char *name;
		struct report_run *runs;
		size_t n;
	} tables[] = { { "matrix.one", one, 1 },
		       { "matrix.twice", twice, 2 },
		       { "matrix.kernels", kernels, 3 },
		       { "matrix.skips", skips, 1 } };
	struct error e = { "" };

	CU_ASSERT_FATAL(report_load(DATA "run", &one[0], &e) == 0);
	CU_ASSERT_FATAL(report_load(DATA "run", &twice[0], &e) == 0 && report_load(DATA "run", &twice[1], &e) == 0);
	on_two_kernels(kernels);
	all_skipped(&skips[0]);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		char path[256], *text = NULL, *expected;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		report_matrix(tables[i].runs, tables[i].n, out);
		fclose(out);
		snprintf(path, sizeof(path), DATA "golden.%s", tables[i].name);
		if (rewrites()) {
			out = fopen(path, "w");
			CU_ASSERT_PTR_NOT_NULL_FATAL(out);
			fputs(text, out);
			fclose(out);
		}
		expected = read_whole(path);
		ROW_ASSERT(!strcmp(text, expected), "%s differs; seen:\n%s", path, text);
		free(expected);
		free(text);
		for (size_t k = 0; k < tables[i].n; k++)
			report_release(&tables[i].runs[k]);
	}
}

static void silent(void *user, const char *fmt, ...)
{
	(void)user;
	(void)fmt;
}

/* 0: valid. */
static int validate(xmlDocPtr doc)
{
	xmlSchemaParserCtxtPtr parser = xmlSchemaNewParserCtxt(DATA "junit.xsd");
	xmlSchemaPtr schema = xmlSchemaParse(parser);
	xmlSchemaValidCtxtPtr valid = schema ? xmlSchemaNewValidCtxt(schema) : NULL;
	int rc = -1;

	CU_ASSERT_PTR_NOT_NULL_FATAL(valid);
	xmlSchemaSetValidErrors(valid, silent, silent, NULL);
	rc = xmlSchemaValidateDoc(valid, doc);
	xmlSchemaFreeValidCtxt(valid);
	xmlSchemaFree(schema);
	xmlSchemaFreeParserCtxt(parser);
	return rc;
}

static double count(xmlDocPtr doc, const char *xpath)
{
	xmlXPathContextPtr context = xmlXPathNewContext(doc);
	xmlXPathObjectPtr result = xmlXPathEvalExpression(BAD_CAST xpath, context);
	double n = result ? xmlXPathCastToNumber(result) : -1;

	xmlXPathFreeObject(result);
	xmlXPathFreeContext(context);
	return n;
}

static const struct xpath_row {
	const char *xpath;
	double n;
} xpath_rows[] = {
	{ "count(//testcase)", 7 },
	{ "count(//testcase[failure])", 1 },
	{ "count(//testcase[error])", 3 },
	{ "count(//testcase[skipped])", 1 },
	{ "count(//script)", 0 },
	{ "number(//testsuite/@tests)", 7 },
	{ "number(//testsuite/@failures)", 1 },
	{ "number(//testsuite/@errors)", 3 },
	{ "number(//testsuite/@skipped)", 1 },
	{ "count(//testcase[@name='core/wrong-status' and @classname='qpdrill.core'])", 1 },
	{ "count(//testcase[@name='core/local-key~op=SEND'])", 1 },
	{ "count(//testcase[@classname='qpdrill' and @name='top-level~r2' and @time='0.005'])", 1 },
	{ "count(//failure[contains(., 'expected') and contains(., 'RETRY_EXC_ERR') and contains(., '<script>alert(1)</script>')])",
	  1 },
	{ "count(//failure[contains(., '--select')])", 1 },
	{ "count(//skipped[contains(@message, 'needs wire')])", 1 },
	{ "count(//system-out[contains(., 'local-cause-lost')])", 1 },
	{ "count(//property[@name='seed' and @value='0x1'])", 1 },
};

static void test_junit(void)
{
	size_t len;
	char *text = render("junit", &len);
	xmlDocPtr doc = xmlReadMemory(text, (int)len, "junit.xml", NULL, XML_PARSE_NONET | XML_PARSE_NOERROR);

	CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
	CU_ASSERT(validate(doc) == 0);
	for (size_t i = 0; i < sizeof(xpath_rows) / sizeof(*xpath_rows); i++) {
		double n = count(doc, xpath_rows[i].xpath);

		ROW_ASSERT(n == xpath_rows[i].n, "%s: expected %g, seen %g", xpath_rows[i].xpath, xpath_rows[i].n, n);
	}
	for (size_t i = 0; i < len; i++)
		ROW_ASSERT((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t', "control character at %zu", i);
	CU_ASSERT(strstr(text, "\xf0\x9f\x98\x80") != NULL);
	/* The schema is one that can say no. */
	xmlSetProp(xmlDocGetRootElement(doc)->children->next, BAD_CAST "tests", BAD_CAST "many");
	CU_ASSERT(validate(doc) != 0);
	xmlFreeDoc(doc);
	free(text);
}

static void test_text(void)
{
	size_t len;
	char *text = render("text", &len);

	for (size_t i = 0; i < len; i++)
		ROW_ASSERT((unsigned char)text[i] >= 0x20 || text[i] == '\n', "control character at %zu", i);
	CU_ASSERT(strstr(text, "scenarios/core/wrong-status.yaml:12: ") != NULL);
	CU_ASSERT(strstr(text, "qpdrill run scenarios --seed 0x1 --select 'core/wrong-status'") != NULL);
	CU_ASSERT(strstr(text, "--select 'top-level'\n") != NULL);
	/* The last line is the summary. */
	CU_ASSERT(len > 40 &&
		  !strcmp(strrchr(text, '\n') - strlen("2 passed, 4 failed, 1 skipped"), "2 passed, 4 failed, 1 skipped\n"));
	free(text);
}

static json_t *warning_of(const char *check, int step)
{
	return json_pack("{s:s,s:s,s:i,s:i,s:s,s:s,s:s,s:s,s:[],s:s,s:s}", "severity", "warning", "check", check, "step", step,
			 "line", 8, "at", "", "iter", "", "expected", "none", "seen", "one", "last", "text",
			 "a \033 that nobody names", "deviation", "");
}

static void warn_of_each(struct report_run *run)
{
	json_t *entry, *findings;
	size_t i;

	json_array_foreach(run->cases, i, entry) {
		findings = json_object_get(json_object_get(entry, "verdict"), "findings");
		json_array_append_new(findings, warning_of("stale", 2));
		json_array_append_new(findings, warning_of("expect", 3));
		json_array_append_new(findings, warning_of("harness", 4));
		json_array_append_new(findings, warning_of("expect", 3));
		json_array_append_new(findings, warning_of("expect", 3));
	}
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* Of what passed each step has a line; with what did not they stand with the rest that is said of it. */
static void test_warnings(void)
{
	static const char line[] =
		"\nwarning in core/rnr-retry-exceeded, step 3: a \\x1b that nobody names; 2 more of that step, in "
		"verdict.json\nwarning in core/rnr-retry-exceeded, step 4: a \\x1b that nobody names\n";
	size_t len;
	char *text = render_changed("text", warn_of_each, &len);

	CU_ASSERT_EQUAL(times(text, "\nwarning in "), 2 * 2); /* steps of those that passed */
	CU_ASSERT_EQUAL(times(text, line), 1);
	CU_ASSERT_EQUAL(times(text, "  warning   a \\x1b that nobody names\n"), 4 * 5);
	free(text);
}

static void test_write_all(void)
{
	char dir[] = "/tmp/qpdrill-report-XXXXXX", path[128];
	struct report_run run;
	struct error e = { "" };
	struct stat st;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_FATAL(report_load(DATA "run", &run, &e) == 0);
	run.dir = dir;
	CU_ASSERT(report_write_all(&run, &e) == 0);
	for (const struct report_ops *const *r = report_table; *r; r++) {
		CU_ASSERT_PTR_EQUAL(report_find((*r)->name), *r);
		if (!(*r)->file)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, (*r)->file);
		CU_ASSERT(stat(path, &st) == 0 && st.st_size > 100);
		unlink(path);
	}
	rmdir(dir);
	CU_ASSERT(report_write_all(&run, &e) == -ENOENT);
	CU_ASSERT(strstr(e.text, dir) != NULL);
	report_release(&run);
	CU_ASSERT(report_find("html5") == NULL);
}

static void put_text(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	CU_ASSERT_FATAL(out && fputs(text, out) >= 0 && !fclose(out));
}

/* What one damaged file has lost is lost, and nothing else. */
static void test_damaged(void)
{
	static const struct {
		const char *plan, *verdict, *name, *headline;
	} rows[] = {
		{ "{\"case\":\"x\"}", "{\"verdict\":\"pass\",\"headline\":\"h\"}", "pass", "h" },
		{ "{\"case\":", "{\"verdict\":\"fail\",\"headline\":\"h\"}", "fail", "h" },
		{ "{}", "{\"verdict\":\"fa", "error", "/verdict.json:1:" },
		{ "{}", "", "error", "/verdict.json:1:" },
		{ "{}", "[]", "error", "/verdict.json: is no JSON object" },
	};
	char dir[] = "/tmp/qpdrill-report-XXXXXX", command[64];
	struct error e = { "" };

	CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
	put_text(dir, "run.json", "{\"cases\":[{\"case\":\"x\",\"dir\":\".\"},{\"case\":\"y\",\"dir\":\"y\"}]}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct report_run run;
		const json_t *verdict;

		put_text(dir, "plan.json", rows[i].plan);
		put_text(dir, "verdict.json", rows[i].verdict);
		CU_ASSERT_FATAL(report_load(dir, &run, &e) == 0);
		verdict = json_object_get(json_array_get(run.cases, 0), "verdict");
		ROW_ASSERT(json_array_size(run.cases) == 2 && json_has(verdict, "verdict", rows[i].name), "row %zu", i);
		ROW_ASSERT(strstr(json_str(verdict, "headline"), rows[i].headline), "row %zu: %s", i,
			   json_str(verdict, "headline"));
		report_release(&run);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CU_ASSERT(system(command) == 0);
}

static void test_load_errors(void)
{
	struct report_run run;
	struct error e = { "" };

	CU_ASSERT(report_load("/nonexistent", &run, &e) < 0);
	CU_ASSERT(strstr(e.text, "/nonexistent") != NULL);
}

static const struct test_case cases[] = {
	{ "golden files", test_golden },
	{ "several runs side by side", test_matrix },
	{ "junit", test_junit },
	{ "text", test_text },
	{ "warnings of what passed are told", test_warnings },
	{ "write all", test_write_all },
	{ "damaged files of a case", test_damaged },
	{ "load errors", test_load_errors },
};

TEST_MAIN("reports", cases)
