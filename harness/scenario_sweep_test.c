/* SPDX-License-Identifier: MIT */
/* A sweep over moves between states: which rows it makes, and what is no such sweep. */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>

#include "json.h"
#include "test.h"

#define HEAD "qpdrill: 1\ntitle: t\nsweep: "
#define TAIL                                                                                                                       \
	"\nqp: { type: \"${type}\" }\nsteps:\n  - connect: { upto: \"${from}\" }\n  - modify: { at: a, to: \"${to}\", mask: "      \
	"exact }\n"

static int load(const char *sweep, struct scenario *s, struct diag *d)
{
	char text[1024];

	snprintf(text, sizeof(text), HEAD "%s" TAIL, sweep);
	return scenario_load_text(text, strlen(text), "f", "f", s, d);
}

static const struct {
	const char *sweep;
	size_t n;
	const char *first, *last;
} rows[] = {
	{ "{ transition: { type: RC, moves: legal } }", 19, "f~type=RC~from=RESET~to=RESET", "f~type=RC~from=ERR~to=ERR" },
	/* Six starts and seven ends, without the 19 that exist and the one that is contested. */
	{ "{ transition: { type: RC, moves: illegal } }", 22, "f~type=RC~from=RESET~to=RTR", "f~type=RC~from=ERR~to=SQE" },
	{ "{ transition: { type: [RC, UC, UD], moves: demanding } }", 8, "f~type=RC~from=RESET~to=INIT",
	  "f~type=UD~from=RTR~to=RTS" },
	{ "{ transition: { type: UC, from: [RTS, SQD], to: RTS, moves: legal } }", 2, "f~type=UC~from=RTS~to=RTS",
	  "f~type=UC~from=SQD~to=RTS" },
	{ "{ transition: { type: RC, from: SQD, to: SQE, moves: illegal } }", 1, "f~type=RC~from=SQD~to=SQE", NULL },
};

static void transitions_make_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct diag d = { 0 };
		struct scenario s;

		if (load(rows[i].sweep, &s, &d)) {
			ROW_ASSERT(false, "%s: %s", rows[i].sweep, d.text);
			diag_release(&d);
			continue;
		}
		ROW_ASSERT(s.n_cases == rows[i].n, "%s: %zu", rows[i].sweep, s.n_cases);
		CU_ASSERT_STRING_EQUAL(s.cases[0].id, rows[i].first);
		if (rows[i].last)
			CU_ASSERT_STRING_EQUAL(s.cases[s.n_cases - 1].id, rows[i].last);
		CU_ASSERT_STRING_EQUAL(json_str(json_object_get(s.cases[0].doc, "qp"), "type"), json_str(s.cases[0].sweep, "type"));
		scenario_release(&s);
		diag_release(&d);
	}
}

static void mistakes(void)
{
	static const struct {
		const char *sweep, *text;
	} wrong[] = {
		{ "{ transition: { type: RC, moves: legal }, x: [1] }", "f:3:10: error: a sweep over transitions stands alone" },
		{ "{ transition: { type: RC, to: SQE, moves: legal } }", "f:3:10: error: no move is of this kind" },
		{ "{ transition: { type: RC } }", "f:3:10: error: `transition` wants `moves:`" },
		{ "{ transition: { type: RC, moves: legal, with: x } }", "f:3:48: error: unknown key `with` in `transition`" },
		{ "{ transition: { type: RX, moves: legal } }", "f:3:30: error: `RX` is no QP type" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct diag d = { 0 };
		struct scenario s;

		ROW_ASSERT(load(wrong[i].sweep, &s, &d), "%s is accepted", wrong[i].sweep);
		ROW_ASSERT(d.text && !strncmp(d.text, wrong[i].text, strlen(wrong[i].text)), "%s: %s", wrong[i].sweep, d.text);
		diag_release(&d);
	}
}

static const struct test_case cases[] = {
	{ "transitions make rows", transitions_make_rows },
	{ "mistakes", mistakes },
};

TEST_MAIN("scenario_sweep", cases)
