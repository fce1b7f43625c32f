/* SPDX-License-Identifier: MIT */
/* testdata/ladder is the folder of a real run, with captures: what is drawn is held against them. testdata/run is the one that
 * tries to break out. */
#include "html.h"

#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <libxml/xpathInternals.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "../harness/json.h"
#include "../harness/packet.h"
#include "../harness/test.h"
#include "ladder.h"
#include "report_util.h"

#define DATA "reports/testdata/"

static char *render(const char *dir, size_t *ret_len)
{
	struct report_run run;
	struct error e = { "" };
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	MUST(report_load(dir, &run, &e) == 0);
	ROW_ASSERT(report_find("html")->write(&run, out, false, &e) == 0, "%s", e.text);
	report_release(&run);
	fclose(out);
	return text;
}

static double number(xmlDocPtr doc, const char *xpath)
{
	xmlXPathContextPtr context = xmlXPathNewContext(doc);
	xmlXPathObjectPtr result;
	double n;

	xmlXPathRegisterNs(context, BAD_CAST "h", BAD_CAST "http://www.w3.org/1999/xhtml");
	xmlXPathRegisterNs(context, BAD_CAST "s", BAD_CAST "http://www.w3.org/2000/svg");
	result = xmlXPathEvalExpression(BAD_CAST xpath, context);
	n = result ? xmlXPathCastToNumber(result) : -1;
	xmlXPathFreeObject(result);
	xmlXPathFreeContext(context);
	return n;
}

static xmlDocPtr parse(const char *text, size_t len)
{
	xmlDocPtr doc = xmlReadMemory(text, (int)len, "report.html", NULL, XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_HUGE);

	MUST(doc != NULL);
	return doc;
}

static const struct {
	const char *xpath;
	double n;
} rows[] = {
	{ "count(//h:details[@class='case'])", 7 },
	{ "count(//h:details[@class='case'][@open])", 4 },
	{ "count(//h:h2[@id='cases']/following-sibling::h:table[1]/h:tbody/h:tr/h:th[@scope='row']/h:a[starts-with(@href, "
	  "'#case-')])",
	  7 },
	{ "count(//h:h2[@id='problems']/following-sibling::h:table[1]/h:tbody/h:tr)", 4 },
	{ "count(//h:h2[@id='problems']/following-sibling::h:table[1]//h:div[contains(., 'likely: the <peer> had no receive')])",
	  1 },
	{ "count(//h:h2[@id='problems'][following-sibling::h:h2[@id='cases'][following-sibling::h:h2[@id='environment']]])", 1 },
	{ "count(//h:script | //@onclick | //@onload | //h:img | //h:iframe)", 0 },
	{ "count(//h:link[not(starts-with(@href, 'data:'))] | //@src)", 0 },
	{ "count(//h:h3[contains(., '<script>alert(1)</script>')])", 1 },
	{ "count(//h:pre[contains(., '<script>alert(1)</script>') and contains(., 'expected  RETRY_EXC_ERR')])", 1 },
	{ "count(//h:pre[contains(., '--select')])", 4 },
	{ "count(//h:li[contains(., 'needs wire')])", 1 },
	{ "count(//h:li[contains(., 'nothing shows that late (late_receive) fired')])", 1 },
	{ "count(//h:code[. = 'local-cause-lost'])", 2 },
	{ "count(//h:th[not(@scope)])", 0 },
	{ "count(//h:td[. = 'mlx5_0 on ens1f0np0, node GUID 0x506b4b0300d1a2c4, GID ::ffff:10.0.0.1 (index 3)'])", 1 },
	{ "count(//h:td[. = '0000:3b:00.0, 0x15b3:0x1017'])", 1 },
	{ "count(//h:td[. = 'none: the device sits on no PCI bus (vendor 0xffffff, part 0)'])", 1 },
	{ "count(//h:tr[h:th = 'firmware'][h:td = '16.35.<2000>'])", 1 },
	{ "count(//h:tr[h:th = 'firmware'][h:td = 'none'])", 2 },
	{ "count(//h:td[. = 'ACTIVE, Ethernet, 103.124 Gb/s (4 x 25.781), MTU 4096'])", 1 },
	{ "count(//h:td[. = 'DOWN, Ethernet, speed not known, MTU 1024'])", 1 },
	{ "count(//h:td[. = 'atomics yes, max_qp 131072'])", 1 },
	{ "count(//h:tr[h:th = 'profile'][h:td = 'scenarios/profiles/rxe.yaml sha256:5e2bf57d'])", 1 },
	{ "count(//h:tr[h:th = 'files'][starts-with(h:td, '2, scenarios and profile; sha256')])", 1 },
	{ "count(//h:tr[h:th = 'attributes set'][h:td = 'not on record'])", 1 },
	{ "count(//h:html/@lang)", 1 },
	{ "count(//h:h1)", 1 },
};

static void test_escaped(void)
{
	size_t len;
	char *text = render(DATA "run", &len);
	xmlDocPtr doc = parse(text, len);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		double n = number(doc, rows[i].xpath);

		ROW_ASSERT(n == rows[i].n, "%s: expected %g, seen %g", rows[i].xpath, rows[i].n, n);
	}
	CU_ASSERT(strstr(text, "<script") == NULL);
	CU_ASSERT(strstr(text, "\xf0\x9f\x98\x80") != NULL);
	for (size_t i = 0; i < len; i++)
		ROW_ASSERT((unsigned char)text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t', "control character at %zu", i);
	/* HTML has no other way to end an element that is not void. */
	for (const char *at = strstr(text, "/>"); at; at = strstr(at + 2, "/>")) {
		const char *begin = at;

		while (*begin != '<')
			begin--;
		ROW_ASSERT(!strncmp(begin, "<meta ", 6) || !strncmp(begin, "<link ", 6) || !strncmp(begin, "<br", 3), "%.40s",
			   begin);
	}
	xmlFreeDoc(doc);
	free(text);
}

static char *text_at(xmlDocPtr doc, const char *xpath)
{
	xmlXPathContextPtr context = xmlXPathNewContext(doc);
	xmlXPathObjectPtr result;
	xmlChar *text;

	xmlXPathRegisterNs(context, BAD_CAST "h", BAD_CAST "http://www.w3.org/1999/xhtml");
	result = xmlXPathEvalExpression(BAD_CAST xpath, context);
	text = xmlXPathCastToString(result);
	xmlXPathFreeObject(result);
	xmlXPathFreeContext(context);
	return (char *)text;
}

/* The terminal, junit.xml and the page say one thing of a failure. */
static void test_one_text(void)
{
	static const struct {
		const char *format, *xpath;
	} places[] = { { "html", "//h:div[@id='case-core/wrong-status']/h:pre" },
		       { "junit", "//testcase[@name='core/wrong-status']/failure" } };
	struct report_run run;
	struct error e = { "" };
	char *text;

	MUST(report_load(DATA "run", &run, &e) == 0);
	text = report_failure(run.run, json_array_get(run.cases, 2));
	CU_ASSERT(strstr(text, "likely    the <peer> had no receive & more: p.b.recv has posted 0 receives\\x07") != NULL);
	CU_ASSERT(strstr(text, "vendor_err 0x87, QPN 0x000011, to QPN 0x000012, GID ::ffff:10.0.0.1 to ::ffff:10.0.0.2") != NULL);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *page = NULL, *seen;
		size_t len;
		FILE *out = open_memstream(&page, &len);
		xmlDocPtr doc;

		MUST(report_find(places[i].format)->write(&run, out, false, &e) == 0);
		fclose(out);
		doc = parse(page, len);
		seen = text_at(doc, places[i].xpath);
		ROW_ASSERT(!strcmp(seen, text), "%s: expected\n%s\nseen\n%s", places[i].format, text, seen);
		xmlFree(seen);
		xmlFreeDoc(doc);
		free(page);
	}
	free(text);
	report_release(&run);
}

/* Every link within the page leads somewhere, and no two things are found at one place. */
static void check_links(xmlDocPtr doc)
{
	xmlXPathContextPtr context = xmlXPathNewContext(doc);
	xmlXPathObjectPtr ids = xmlXPathEvalExpression(BAD_CAST "//@id", context),
			  links = xmlXPathEvalExpression(BAD_CAST "//@href[starts-with(., '#')]", context);
	json_t *known = json_object();

	for (int i = 0; i < ids->nodesetval->nodeNr; i++) {
		xmlChar *id = xmlNodeGetContent(ids->nodesetval->nodeTab[i]);

		ROW_ASSERT(!json_object_get(known, (char *)id), "twice: %s", id);
		json_object_set_new(known, (char *)id, json_true());
		xmlFree(id);
	}
	CU_ASSERT(links->nodesetval->nodeNr > 0);
	for (int i = 0; i < links->nodesetval->nodeNr; i++) {
		xmlChar *link = xmlNodeGetContent(links->nodesetval->nodeTab[i]);

		ROW_ASSERT(json_object_get(known, (char *)link + 1), "leads nowhere: %s", link);
		xmlFree(link);
	}
	json_decref(known);
	xmlXPathFreeObject(ids);
	xmlXPathFreeObject(links);
	xmlXPathFreeContext(context);
}

static void test_same_bytes(void)
{
	static const char *const dirs[] = { DATA "run", DATA "ladder" };

	for (size_t i = 0; i < 2; i++) {
		size_t len, again_len;
		char *text = render(dirs[i], &len), *again = render(dirs[i], &again_len);
		xmlDocPtr doc = parse(text, len);

		CU_ASSERT(len == again_len && !memcmp(text, again, len));
		check_links(doc);
		xmlFreeDoc(doc);
		free(text);
		free(again);
	}
}

/* What a capture says of one direction; sent: by the wire itself, whichever way. */
struct seen {
	unsigned packets, lost, touched, sent;
};

static uint32_t u32(const uint8_t *b)
{
	uint32_t v;

	memcpy(&v, b, sizeof(v));
	return v;
}

static bool is_aside(const json_t *records, const struct packet *p)
{
	const json_t *r, *end;
	size_t i, k;

	json_array_foreach(records, i, r)
		json_array_foreach(json_object_get(r, "ends"), k, end)
			if (!strncmp(report_str(r, "pair"), "bystander", 9) && json_int(end, "qpn", -1) == (int64_t)p->dest_qp)
				return true;
	return false;
}

/* The options of an enhanced packet block: sent out by the wire itself; a comment tells which rule touched it. */
static void read_options(const uint8_t *b, const uint8_t *end, bool *ret_outbound, char comment[128])
{
	*comment = 0;
	*ret_outbound = false;
	while (b + 4 <= end && (u32(b) & 0xffff)) {
		uint32_t head = u32(b), n = head >> 16;

		if ((head & 0xffff) == 2)
			*ret_outbound = (u32(b + 4) & 3) == 2;
		if ((head & 0xffff) == 1)
			snprintf(comment, 128, "%.*s", (int)n, (const char *)b + 4);
		b += 4 + (n + 3) / 4 * 4;
	}
}

static void look_at_capture(const char *path, const json_t *records, struct seen ret[2])
{
	static uint8_t data[1 << 20];
	FILE *in = fopen(path, "rb");
	size_t len, at = 0;

	MUST(in != NULL);
	len = fread(data, 1, sizeof(data), in);
	fclose(in);
	memset(ret, 0, 2 * sizeof(*ret));
	while (at + 12 <= len) {
		uint32_t type = u32(data + at), total = u32(data + at + 4), bytes;
		const uint8_t *b = data + at + 8;
		char comment[128];
		struct packet p;
		bool outbound;

		MUST(total >= 12 && at + total <= len);
		at += total;
		if (type != 6)
			continue;
		bytes = u32(b + 12);
		read_options(b + 20 + (bytes + 3) / 4 * 4, data + at - 4, &outbound, comment);
		if (packet_decode(b + 20, bytes, &p) != PACKET_ROCE || is_aside(records, &p))
			continue;
		MUST(u32(b) < 2);
		ret[u32(b)].sent += outbound;
		if (outbound)
			continue;
		ret[u32(b)].packets++;
		ret[u32(b)].touched += *comment != 0;
		ret[u32(b)].lost += strstr(comment, "eaten") != NULL;
	}
}

/* Packets of the arrows of the n-th ladder that the condition holds for. */
static unsigned sum(xmlDocPtr doc, size_t n, const char *condition, const char *what)
{
	char xpath[256];

	snprintf(xpath, sizeof(xpath), "sum(//s:svg[@aria-describedby='d%zu']//s:path[%s]/@%s)", n, condition, what);
	return (unsigned)number(doc, xpath);
}

static const struct {
	const char *what, *from_left, *from_right; /* arrows */
	size_t seen;                               /* member of struct seen */
} counts[] = {
	{ "arrows", "starts-with(@class, 'p l')", "starts-with(@class, 'p r')", offsetof(struct seen, packets) },
	{ "lost", "starts-with(@class, 'p l lost')", "starts-with(@class, 'p r lost')", offsetof(struct seen, lost) },
	{ "marked", "starts-with(@class, 'p l') and @data-did", "starts-with(@class, 'p r') and @data-did",
	  offsetof(struct seen, touched) },
};

static void check_ladder(xmlDocPtr doc, size_t n, const char *id, const struct seen seen[2])
{
	unsigned late = sum(doc, n, "true()", "data-late");

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		for (size_t k = 0; k < 2; k++) {
			unsigned drawn = sum(doc, n, k ? counts[i].from_right : counts[i].from_left, "data-n");
			unsigned captured = *(const unsigned *)((const char *)&seen[k] + counts[i].seen);

			ROW_ASSERT(drawn == captured && (i || captured), "%s: %s from %zu: %u drawn, %u captured", id,
				   counts[i].what, k, drawn, captured);
		}
	ROW_ASSERT(late == seen[0].sent + seen[1].sent, "%s: %u drawn from the wire, %u captured", id, late,
		   seen[0].sent + seen[1].sent);
}

/* What is drawn is what went over the wire: no packet more, none less, and each loss has its cross. */
static void test_ladder_is_capture(void)
{
	struct report_run run;
	struct error e = { "" };
	size_t len, i, late = 0, marks = 0;
	char *text = render(DATA "ladder", &len);
	xmlDocPtr doc = parse(text, len);
	json_t *entry;

	MUST(report_load(DATA "ladder", &run, &e) == 0);
	json_array_foreach(run.cases, i, entry) {
		json_t *records;
		struct ladder l;
		struct seen seen[2];
		char path[512];
		bool torn;

		MUST(report_records(&run, entry, &records, &torn, &e) == 0);
		snprintf(path, sizeof(path), DATA "ladder/%s/wire.pcapng", report_str(entry, "dir"));
		look_at_capture(path, records, seen);
		MUST(ladder_make(json_object_get(entry, "plan"), records, 1000, &l) == 0);
		check_ladder(doc, i, report_str(entry, "case"), seen);
		for (size_t k = 0; k < l.n; k++) {
			late += l.rows[k].kind == LADDER_PACKET && !l.rows[k].arrival;
			marks += l.rows[k].mark != NULL;
		}
		ladder_release(&l);
		json_decref(records);
	}
	CU_ASSERT(i == 4 && late == number(doc, "count(//s:path[@data-late])") && late >= 2);
	/* One dropped, one sent twice and one damaged; the copies and the damaged one as it left. */
	CU_ASSERT(marks >= 5);
	CU_ASSERT(strstr(text, ">dropped deaf</text>") || strstr(text, ">dropped by deaf</text>"));
	CU_ASSERT(number(doc, "count(//s:svg[@role='img'][@aria-label and s:desc])") == 4);
	CU_ASSERT(number(doc, "count(//s:rect[@class='fault'])") >= 3);
	report_release(&run);
	xmlFreeDoc(doc);
	free(text);
}

/* Rows that there is no room for are counted: nothing goes without a word. */
static void test_cut(void)
{
	struct report_run run;
	struct error e = { "" };
	struct ladder whole, cut;
	json_t *records;
	unsigned packets = 0;
	bool torn;

	MUST(report_load(DATA "ladder", &run, &e) == 0);
	MUST(report_records(&run, json_array_get(run.cases, 0), &records, &torn, &e) == 0);
	MUST(ladder_make(json_object_get(json_array_get(run.cases, 0), "plan"), records, 1000, &whole) == 0);
	MUST(ladder_make(json_object_get(json_array_get(run.cases, 0), "plan"), records, 10, &cut) == 0);
	CU_ASSERT(whole.n > 11 && cut.n == 11);
	for (size_t i = 0; i < cut.n; i++)
		packets += cut.rows[i].kind == LADDER_CUT ? cut.rows[i].packets : cut.rows[i].arrival ? cut.rows[i].count : 0;
	CU_ASSERT(packets == whole.packets[0] + whole.packets[1] && packets > 0);
	ladder_release(&whole);
	ladder_release(&cut);
	json_decref(records);
	report_release(&run);
}

/* 500 cases stay below 10 MB: so much may a case cost. */
static void test_size(void)
{
	size_t len;
	char *text = render(DATA "ladder", &len);

	ROW_ASSERT(len / 4 < 20000, "%zu bytes for 4 cases", len);
	free(text);
}

static const struct test_case cases[] = {
	{ "escaped", test_escaped },
	{ "one text of a failure", test_one_text },
	{ "the same bytes twice, and links that lead somewhere", test_same_bytes },
	{ "a ladder is what was captured", test_ladder_is_capture },
	{ "rows that are not shown are counted", test_cut },
	{ "size", test_size },
};

TEST_MAIN("html", cases)
