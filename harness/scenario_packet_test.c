/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include "test.h"

static void names_of_packets(void)
{
	static const char *const wrong[] = {
		"",          "first-pass", "a",       "a.request",     "a.request.",        "a.request.x", "a.request.-1",
		"request.0", ".request.0", "a.req.0", "a.request.0x1", "a.request.99999999"
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ROW_ASSERT(!scenario_packet_parse(wrong[i]), "%s", wrong[i]);
	for (int i = 0; scenario_packet_class_name(i); i++)
		CU_ASSERT_EQUAL(scenario_packet_class(scenario_packet_class_name(i)), i);
	CU_ASSERT_EQUAL(scenario_packet_class("malformed"), -1);
}

static const struct test_case cases[] = {
	{ "names of packets", names_of_packets },
};

TEST_MAIN("names of packets", cases)
