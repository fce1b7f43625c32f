/* SPDX-License-Identifier: MIT */
#include "refs.h"

#include <string.h>

#include "json.h"
#include "test.h"

static const char *const small[NUM_REF_TABLES] = {
	"demands:\n"
	"  - { id: C9-105/send, says: \"once\" }\n"
	"  - { id: C9-105/write, says: \"once\", part: \"half\" }\n"
	"  - { id: CA17-4, also: [CA17-13], says: \"class\" }\n"
	"  - { id: 9.7.5.2.8/spent, says: \"spent\" }\n"
	"  - { id: C17-9, also: [o11-1], says: \"none\", never: \"not here\" }\n",
	"seeds:\n"
	"  - { id: 004 4.3/WR_FLUSH_ERR, says: \"flush\" }\n"
	"  - { id: 003/psn, says: \"psn\" }\n",
	"unreached: []\n",
	"field:\n"
	"  - { id: R42, says: \"acks\", source: \"a/b#1\" }\n"
	"  - { id: R56, says: \"partitions\", never: \"one\" }\n",
};

static const struct {
	const char *text;
	enum ref_kind kind;
	const char *id;
} rows[] = {
	{ "IBTA C9-105/send", REF_ROW, "C9-105/send" },
	{ "IBTA C9-105", REF_GENERAL, NULL },
	{ "IBTA C9-105/both", REF_UNKNOWN, NULL },
	{ "IBTA c9-105/send", REF_UNKNOWN, NULL },
	{ "IBTA CA17-4", REF_ROW, "CA17-4" },
	{ "IBTA CA17-13", REF_ROW, "CA17-4" },
	{ "IBTA CA17-99", REF_UNKNOWN, NULL },
	{ "IBTA o11-1", REF_ROW, "C17-9" },
	{ "IBTA 9.7.5.2.8", REF_GENERAL, NULL },
	{ "IBTA 9.9.1", REF_GENERAL, NULL },
	{ "IBTA A17.9.1", REF_GENERAL, NULL },
	{ "IBTA 9.9.1/word", REF_UNKNOWN, NULL },
	{ "IBTA Table 45", REF_UNKNOWN, NULL },
	{ "IBTA ", REF_UNKNOWN, NULL },
	{ "seed 004 4.3/WR_FLUSH_ERR", REF_ROW, "004 4.3/WR_FLUSH_ERR" },
	{ "seed 004 4.3/WR_FLUSH_ERR, corrected", REF_ROW, "004 4.3/WR_FLUSH_ERR" },
	{ "seed 004 4.3", REF_GENERAL, NULL },
	{ "seed 004 4.3, corrected", REF_GENERAL, NULL },
	{ "seed 004", REF_GENERAL, NULL },
	{ "seed 003", REF_GENERAL, NULL },
	{ "seed 005", REF_UNKNOWN, NULL },
	{ "seed 004 9.9", REF_UNKNOWN, NULL },
	{ "field R42", REF_ROW, "R42" },
	{ "field R56", REF_ROW, "R56" },
	{ "field R43", REF_UNKNOWN, NULL },
	{ "field ", REF_UNKNOWN, NULL },
	{ "CTS C09_060_07", REF_FREE, NULL },
	{ "", REF_FREE, NULL },
};

static void test_find(void)
{
	struct error e = { "" };
	struct refs r;

	CU_ASSERT_FATAL(refs_load_text(small, &r, &e) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const json_t *row = NULL;
		enum ref_kind kind = refs_find(&r, rows[i].text, &row);

		ROW_ASSERT(kind == rows[i].kind, "%s: %d", rows[i].text, kind);
		ROW_ASSERT(!row == !rows[i].id && (!row || !strcmp(json_str(row, "id"), rows[i].id)), "%s: %s", rows[i].text,
			   row ? json_str(row, "id") : "none");
	}
	CU_ASSERT_STRING_EQUAL(refs_nearest(&r, "IBTA C9-105/wrote"), "IBTA C9-105/write");
	CU_ASSERT_STRING_EQUAL(refs_nearest(&r, "seed 004 4.2"), "seed 004 4.3");
	refs_release(&r);
}

static void test_faulty(void)
{
	static const struct {
		const char *demands, *wants;
	} faulty[] = {
		{ "demands: [", "demands.yaml" },
		{ "demands: 3\n", "a list of rows" },
		{ "other: []\n", "a list of rows" },
		{ "demands:\n  - C9-1\n", "demands.yaml:2:5: a row has" },
		{ "demands:\n  - { id: C9-1 }\n", "a row has" },
		{ "demands:\n  - { id: C9-1, says: x, sure: y }\n", "a row has" },
		{ "demands:\n  - { id: C9-1, says: x }\n  - { id: C9-1, says: y }\n", "demands.yaml:3:5: this id is there twice" },
		{ "demands:\n  - { id: C9-1, says: x, also: [C9-1] }\n", "there twice" },
	};

	for (size_t i = 0; i < sizeof(faulty) / sizeof(faulty[0]); i++) {
		const char *const texts[NUM_REF_TABLES] = { faulty[i].demands, small[1], small[2], small[3] };
		struct refs r = { .index = NULL };
		struct error e = { "" };
		int rc = refs_load_text(texts, &r, &e);

		ROW_ASSERT(rc < 0 && strstr(e.text, faulty[i].wants), "row %zu: %d %s", i, rc, e.text);
		ROW_ASSERT(!r.index, "row %zu touched its result", i);
	}
}

/* The project's own tables load, no row is both half and never to be shown, and a section's rows have words. */
static void test_own(void)
{
	struct error e = { "" };
	const struct refs *r = refs_own(&e);
	const json_t *row;
	size_t i;

	MUST(r != NULL);
	CU_ASSERT(json_array_size(r->rows[REF_DEMANDS]) >= 232);
	CU_ASSERT(json_array_size(r->rows[REF_SEEDS]) >= 100);
	CU_ASSERT(json_array_size(r->rows[REF_FIELD]) >= 60);
	for (int t = 0; t < NUM_REF_TABLES; t++)
		json_array_foreach(r->rows[t], i, row)
			ROW_ASSERT(!json_str(row, "part") || !json_str(row, "never"), "%s", json_str(row, "id"));
	/* A section can be cited for itself. */
	json_array_foreach(r->rows[REF_DEMANDS], i, row)
		ROW_ASSERT(strpbrk(json_str(row, "id"), "Co/"), "%s", json_str(row, "id"));
	CU_ASSERT_PTR_EQUAL(refs_own(&e), r);
}

static const struct test_case tests[] = {
	{ "what a ref names", test_find },
	{ "faulty tables", test_faulty },
	{ "the project's own", test_own },
};

TEST_MAIN("refs", tests)
