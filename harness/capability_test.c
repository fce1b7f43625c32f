/* SPDX-License-Identifier: MIT */
#include "capability.h"

#include "json.h"
#include "test.h"

static const struct row {
	const char *requirement, *env, *reason; /* NULL: it is there */
} rows[] = {
	{ "kernel >= 6.5", "{\"kernel\":\"6.1.0-56-amd64\"}", "needs kernel >= 6.5, this is 6.1.0-56-amd64" },
	{ "kernel >= 6.5", "{\"kernel\":\"6.12.115-amd64\"}", NULL },
	{ "kernel >= 6.5", "{\"kernel\":\"6.5.0\"}", NULL },
	{ "kernel >= 6.5", "{\"kernel\":\"7.2-rc1\"}", NULL },
	{ "kernel >= 6.5.3", "{\"kernel\":\"6.5.2\"}", "6.5.2" },
	{ "kernel < 6.4", "{\"kernel\":\"6.1.0\"}", NULL },
	{ "kernel < 6.4", "{\"kernel\":\"6.4.0\"}", "6.4.0" },
	{ "kernel <= 6.4", "{\"kernel\":\"6.4.0\"}", NULL },
	{ "kernel > 6.4", "{\"kernel\":\"6.4.0\"}", "6.4.0" },
	{ "kernel == 6.1", "{\"kernel\":\"6.1\"}", NULL },
	{ "kernel>=6.10", "{\"kernel\":\"6.9\"}", "6.9" },
	{ "kernel >= 6.5", "{}", NULL },
	{ "lab: rxe", "{\"lab\":\"rxe\",\"guest\":true}", NULL },
	{ "lab: rxe", "{\"lab\":\"guest\",\"guest\":true}", NULL },
	{ "lab: rxe", "{\"lab\":\"devices\",\"guest\":false}", "this is lab devices" },
	{ "lab: guest", "{\"lab\":\"rxe\",\"guest\":true}", NULL },
	{ "lab: guest", "{\"lab\":\"rxe\",\"guest\":false}", "lab: guest" },
	{ "lab: devices", "{\"lab\":\"rxe\"}", "this is lab rxe" },
	{ "guest", "{\"guest\":false}", "guest" },
	{ "guest", "{\"guest\":true}", NULL },
	{ "guest", "{}", NULL },
	{ "srq", "{\"caps\":[\"RC\",\"srq\"]}", NULL },
	{ "srq", "{\"caps\":[\"RC\"]}", "needs srq" },
	{ "uc", "{\"caps\":[\"UC\"]}", NULL },
	{ "ud", "{\"caps\":[\"UD\"]}", NULL },
	{ "ud", "{\"caps\":[\"UC\"]}", "needs ud" },
	{ "atomics", "{\"caps\":[]}", "needs atomics" },
	{ "wire", "{\"wire\":true}", NULL },
	{ "wire", "{\"wire\":false}", "needs the wire" },
	{ "wire", "{}", NULL },
	{ "cm", "{\"caps\":[\"RC\"]}", "needs cm" },
	{ "cm", "{\"caps\":[\"cm\"]}", NULL },
	{ "xrc", "{\"caps\":[\"srq\"]}", NULL },
	{ "xrc", "{\"device_caps\":[\"xrc\"]}", NULL },
	{ "xrc", "{\"caps\":[\"xrc\"],\"device_caps\":[]}", "needs xrc, which the device does not have: its device_cap_flags" },
	{ "kernels", "{}", "nothing here provides" },
	{ "", "{}", "nothing here provides" },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *requires = json_pack("[s]", rows[i].requirement), *env = json_loads(rows[i].env, 0, NULL);
		char reason[256] = "";
		bool there = capability_check(requires, env, reason, sizeof(reason));

		if (rows[i].reason)
			ROW_ASSERT(!there && strstr(reason, rows[i].reason), "%s with %s: '%s'", rows[i].requirement, rows[i].env,
				   reason);
		else
			ROW_ASSERT(there, "%s with %s: '%s'", rows[i].requirement, rows[i].env, reason);
		json_decref(requires);
		json_decref(env);
	}
}

static void test_table(void)
{
	for (size_t i = 0; i < capability_table_n; i++) {
		const struct capability *c = &capability_table[i];

		CU_ASSERT_PTR_EQUAL(capability_find(c->name), c);
		CU_ASSERT(*c->help && *c->env);
		if (i)
			ROW_ASSERT(strcmp(capability_table[i - 1].name, c->name) < 0, "%s is out of order", c->name);
	}
	CU_ASSERT_PTR_NULL(capability_find("magic"));
}

static const struct test_case cases[] = { { "rows", test_rows }, { "table", test_table } };

TEST_MAIN("capability", cases)
