/* SPDX-License-Identifier: MIT */
#include "lab_name.h"

#include "test.h"

static const struct {
	int lane;
	const char *what;
	char end;
	const char *name;
} made[] = {
	{ 0, "", 'a', "qd0a-3f9c" },
	{ 7, "w", 'b', "qd7wb-3f9c" },
	{ 63, "f", 'a', "qd63fa-3f9c" },
};

static void names_tell_their_lane(void)
{
	char name[LAB_NAME_MAX];

	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
		lab_name(name, made[i].lane, made[i].what, made[i].end, 0x3f9c);
		ROW_ASSERT(strcmp(name, made[i].name) == 0, "%s: %s", made[i].name, name);
		ROW_ASSERT(lab_name_lane(name, "-3f9c") == made[i].lane, "%s", name);
		ROW_ASSERT(lab_name_lane(name, "-3f9d") == -1, "%s is another run's", name);
	}
}

static const struct {
	const char *text;
	int lane;
} lines[] = {
	{ "rdma_rxe: qd3a-3f9c: something is odd", 3 },
	{ "qd12wb-3f9c: link down", 12 },
	{ "qd3a-3f9c and qd3b-3f9c", 3 },
	{ "qd3a-3f9c and qd4b-3f9c", -2 },
	{ "qd3a-3f9cc", -1 },
	{ "qd3a-0000: another run", -1 },
	{ "xqd3a-3f9c", -1 },
	{ "qda-3f9c qd3-3f9c qd3abcd-3f9c qd1234a-3f9c", -1 },
	{ "WARNING: CPU: 0 PID: 77 at drivers/infiniband/sw/rxe", -1 },
	{ "qd", -1 },
	{ "", -1 },
};

static void lines_tell_of_a_lane(void)
{
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		ROW_ASSERT(lab_name_find(lines[i].text, "-3f9c") == lines[i].lane, "%s: %d", lines[i].text,
			   lab_name_find(lines[i].text, "-3f9c"));
}

static const struct test_case cases[] = {
	{ "names tell their lane", names_tell_their_lane },
	{ "lines tell of a lane", lines_tell_of_a_lane },
};

TEST_MAIN("lab_name", cases)
