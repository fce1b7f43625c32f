/* SPDX-License-Identifier: MIT */
#include "observe_model.h"

#include "test.h"

static const struct {
	const char *args, *with;
	bool has;
} rows[] = {
	{ "{\"behind\":16}", "[\"behind\"]", true },
	{ "{\"ahead\":16}", "[\"behind\"]", false },
	{ "{\"ahead\":16}", "[]", true },
	{ "{\"action\":\"forge\"}", "[\"action=forge\"]", true },
	{ "{\"action\":\"drop\"}", "[\"action=forge\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.psn=+100\"]", true },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.psn=+10\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.kind=ACK\",\"forge.psn=+100\"]", true },
	{ "{\"forge\":{\"kind\":\"ACK\",\"psn\":\"+100\"}}", "[\"forge.kind=NAK_OP\",\"forge.psn=+100\"]", false },
	{ "{\"forge\":{\"kind\":\"ACK\"}}", "[\"forge.psn\"]", false },
	{ "{\"kind\":\"ACK\"}", "[\"forge.kind=ACK\"]", false },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=0x64\"]", true },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=0x64..0x7f\"]", true },
	{ "{\"rewrite\":{\"syndrome\":127}}", "[\"rewrite.syndrome=0x64..0x7f\"]", true },
	{ "{\"rewrite\":{\"syndrome\":99}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"syndrome\":128}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"syndrome\":100}}", "[\"rewrite.syndrome=100x\"]", false },
	{ "{\"rewrite\":{\"syndrome\":\"100\"}}", "[\"rewrite.syndrome=0x64..0x7f\"]", false },
	{ "{\"rewrite\":{\"opcode\":\"RC_SEND_LAST\"}}", "[\"rewrite.opcode=RC_SEND_LAST\"]", true },
	{ "{\"rewrite\":7}", "[\"rewrite.opcode=7\"]", false },
};

static void test_with(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *args = json_loads(rows[i].args, 0, NULL), *with = json_loads(rows[i].with, 0, NULL);

		ROW_ASSERT(args && with, "row %zu", i);
		ROW_ASSERT(m_profile_has_arguments(args, with) == rows[i].has, "%s with %s", rows[i].args, rows[i].with);
		json_decref(args);
		json_decref(with);
	}
}

static const struct test_case cases[] = {
	{ "what a fault was given", test_with },
};

TEST_MAIN("profile_match", cases)
