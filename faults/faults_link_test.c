/* SPDX-License-Identifier: MIT */
/* Faults of the link: which commands they give, what they put back, and what proves them. */
#include "faults_rig.h"

#include "../harness/test.h"

static const char *command(const struct world *w, size_t i)
{
	const char *text = json_string_value(json_array_get(w->commands, i));

	return text ? text : "";
}

static void shows(struct world *w, const char *text)
{
	json_decref(w->netem);
	w->netem = parse(text);
}

/* What both commands that ask need: `addr show` and `neigh show`. */
#define DEVICE                                                                                                                     \
	"[{},{'flags':['UP'],'mtu':1500,'dst':'10.1.0.1','lladdr':'02:71:00:00:00:01',"                                            \
	"'addr_info':[{'family':'inet','local':'10.1.0.2','prefixlen':30}]}]"

static const struct command_row {
	const char *fault, *args;
	const char *inject[7], *clear[3];
} command_rows[] = {
	{ "link_down",
	  "{'at':'p.b'}",
	  { "ip neigh show dev v0", "ip link set dev v0 down" },
	  { "ip link set dev v0 up", "ip neigh replace 10.1.0.1 lladdr 02:71:00:00:00:01 dev v0 nud permanent" } },
	{ "address_removed",
	  "{'at':'p.b'}",
	  { "ip addr show dev v0", "ip neigh show dev v0", "ip addr del 10.1.0.2/30 dev v0" },
	  { "ip addr add 10.1.0.2/30 dev v0", "ip neigh replace 10.1.0.1 lladdr 02:71:00:00:00:01 dev v0 nud permanent" } },
	{ "address_moved",
	  "{'at':'p.b'}",
	  { "ip addr show dev v0", "ip neigh show dev v0", "ip addr del 10.1.0.2/30 dev v0", "ip addr add 10.1.0.130/32 dev v0",
	    "ip addr add 10.1.0.2/30 dev v0", "ip neigh replace 10.1.0.1 lladdr 02:71:00:00:00:01 dev v0 nud permanent",
	    "ip addr del 10.1.0.130/32 dev v0" },
	  { NULL } },
	{ "neighbour",
	  "{'at':'p.b'}",
	  { "ip neigh show dev v0", "ip neigh replace 10.1.0.1 lladdr 02:71:ff:ff:ff:fe dev v0 nud permanent" },
	  { "ip neigh replace 10.1.0.1 lladdr 02:71:00:00:00:01 dev v0 nud permanent" } },
	{ "neighbour",
	  "{'at':'p.b','lladdr':'02:00:00:00:00:09'}",
	  { "ip neigh show dev v0", "ip neigh replace 10.1.0.1 lladdr 02:00:00:00:00:09 dev v0 nud permanent" },
	  { "ip neigh replace 10.1.0.1 lladdr 02:71:00:00:00:01 dev v0 nud permanent" } },
};

static void commands_are(const struct world *w, const struct command_row *row, const char *const *want, size_t max)
{
	size_t n = 0;

	for (; n < max && want[n]; n++)
		ROW_ASSERT(strcmp(command(w, n), want[n]) == 0, "%s: %s, seen %s", row->fault, want[n], command(w, n));
	ROW_ASSERT(json_array_size(w->commands) == n, "%s: %zu commands, seen %zu", row->fault, n, json_array_size(w->commands));
}

static void what_is_done_is_undone(void)
{
	for (size_t i = 0; i < sizeof command_rows / sizeof command_rows[0]; i++) {
		const struct command_row *row = &command_rows[i];
		struct world w;
		struct fault f;

		world_init(&w);
		w.gid_index[0] = 1;
		w.gid_index[1] = 3;
		shows(&w, DEVICE);
		f = fault_of(&w, row->fault, parse(row->args));
		ROW_ASSERT(f.ops->inject(&f, NULL) == 0, "%s", row->fault);
		commands_are(&w, row, row->inject, sizeof row->inject / sizeof row->inject[0]);
		json_array_clear(w.commands);
		f.active = false;
		ROW_ASSERT(f.ops->clear(&f, NULL) == 0, "%s", row->fault);
		commands_are(&w, row, row->clear, sizeof row->clear / sizeof row->clear[0]);
		fault_done(&f);
		world_free(&w);
	}
}

static const struct proof_row {
	const char *fault, *args, *shown; /* by ip, when it is asked for the proof */
	int moved_to, proof;
} proof_rows[] = {
	{ "link_down", "{'at':'p.b'}", "[{'flags':['BROADCAST']}]", 3, 1 },
	{ "link_down", "{'at':'p.b'}", "[{'flags':['BROADCAST','UP']}]", 3, 0 },
	{ "link_down", "{'at':'p.b'}", "[]", 3, 0 },
	{ "mtu_shrunk", "{'at':'p.b','mtu':600}", "[{'mtu':600}]", 3, 1 },
	{ "mtu_shrunk", "{'at':'p.b','mtu':600}", "[{'mtu':1500}]", 3, 0 },
	{ "address_removed", "{'at':'p.b'}", "[{'addr_info':[]}]", 3, 1 },
	{ "address_removed", "{'at':'p.b'}", DEVICE, 3, 0 },
	{ "address_moved", "{'at':'p.b'}", DEVICE, 3, 1 },
	{ "neighbour", "{'at':'p.b'}", "[{},{'dst':'10.1.0.1','lladdr':'02:71:FF:ff:ff:fe'}]", 3, 1 },
	{ "neighbour", "{'at':'p.b'}", DEVICE, 3, 0 },
	{ "neighbour", "{'at':'p.b'}", "[]", 3, 0 },
};

static void only_what_is_there_is_a_proof(void)
{
	for (size_t i = 0; i < sizeof proof_rows / sizeof proof_rows[0]; i++) {
		const struct proof_row *row = &proof_rows[i];
		struct world w;
		struct fault f;

		world_init(&w);
		w.gid_index[0] = 1;
		w.gid_index[1] = row->moved_to;
		shows(&w, DEVICE);
		f = fault_of(&w, row->fault, parse(row->args));
		ROW_ASSERT(f.ops->inject(&f, NULL) == 0, "%s %s", row->fault, row->shown);
		shows(&w, row->shown);
		ROW_ASSERT(prove(&f) == row->proof, "%s %s", row->fault, row->shown);
		fault_done(&f);
		world_free(&w);
	}
}

static void a_gid_that_stays_where_it_is_has_not_moved(void)
{
	struct error e = { "" };
	struct world w;
	struct fault f;

	world_init(&w);
	w.gid_index[0] = w.gid_index[1] = 1;
	shows(&w, DEVICE);
	f = fault_of(&w, "address_moved", parse("{'at':'p.b'}"));
	CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -ETIMEDOUT);
	CU_ASSERT_STRING_EQUAL(command(&w, json_array_size(w.commands) - 1), "ip addr del 10.1.0.130/32 dev v0");
	CU_ASSERT_EQUAL(prove(&f), 0);
	fault_done(&f);
	world_free(&w);
}

static void nothing_to_change_is_told(void)
{
	static const struct {
		const char *fault, *shown;
		int rc;
	} rows[] = {
		{ "neighbour", "[{}]", -ENOENT },
		{ "address_removed", "[{'addr_info':[{'family':'inet6','local':'fe80::1','prefixlen':64}]}]", -EADDRNOTAVAIL },
		{ "address_moved", "[{'addr_info':[]}]", -EADDRNOTAVAIL },
		{ "device_recreated", "[{}]", -ENODEV },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error e = { "" };
		struct world w;
		struct fault f;

		world_init(&w);
		w.gid_index[0] = 1;
		shows(&w, rows[i].shown);
		f = fault_of(&w, rows[i].fault, parse("{'at':'p.b'}"));
		ROW_ASSERT(f.ops->inject(&f, &e) == rows[i].rc, "%s", rows[i].fault);
		ROW_ASSERT(e.text[0] != 0, "%s", rows[i].fault);
		fault_done(&f);
		world_free(&w);
	}
}

static void link_addresses_are_checked(void)
{
	static const struct {
		const char *args;
		bool ok;
	} rows[] = {
		{ "{'at':'p.a'}", true },
		{ "{'at':'p.a','lladdr':'02:00:00:00:00:01'}", true },
		{ "{'at':'p.a','lladdr':'02:00:00:00:00'}", false },
		{ "{'at':'p.a','lladdr':'02:00:00:00:00:01:02'}", false },
		{ "{'at':'p.a','lladdr':'02-00-00-00-00-01'}", false },
		{ "{'at':'p.a','lladdr':'0g:00:00:00:00:01'}", false },
		{ "{'at':'p.a','lladdr':'02:00:00:00:00:01 nud'}", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct error e = { "" };
		json_t *args = parse(rows[i].args);

		ROW_ASSERT(fault_find("neighbour")->check(args, &e) == (rows[i].ok ? 0 : -EINVAL), "%s", rows[i].args);
		ROW_ASSERT((e.text[0] == 0) == rows[i].ok, "%s", rows[i].args);
		json_decref(args);
	}
}

static void a_device_is_another_one_by_its_number(void)
{
	static const struct {
		const char *after;
		int proof;
	} rows[] = { { "[{'ifindex':9}]", 1 }, { "[{'ifindex':4}]", 0 } };

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct world w;
		struct fault f;

		world_init(&w);
		shows(&w, "[{},{'ifindex':4}]");
		f = fault_of(&w, "device_recreated", parse("{'at':'p.b'}"));
		CU_ASSERT_EQUAL(f.ops->inject(&f, NULL), 0);
		CU_ASSERT_STRING_EQUAL(command(&w, 0), "rdma dev show r0");
		CU_ASSERT_EQUAL(w.removed, 1);
		CU_ASSERT_EQUAL(prove(&f), 1);
		shows(&w, rows[i].after);
		f.active = false;
		CU_ASSERT_EQUAL(f.ops->clear(&f, NULL), 0);
		CU_ASSERT_EQUAL(w.made, 1);
		ROW_ASSERT(prove(&f) == rows[i].proof, "%s", rows[i].after);
		fault_done(&f);
		world_free(&w);
	}
}

static void a_device_that_stays_is_no_fault(void)
{
	struct error e = { "" };
	struct world w;
	struct fault f;

	world_init(&w);
	shows(&w, "[{'ifindex':4}]");
	f = fault_of(&w, "device_recreated", parse("{'at':'p.b'}"));
	w.rc = -ETIMEDOUT;
	CU_ASSERT_EQUAL(f.ops->inject(&f, &e), -ETIMEDOUT);
	f.active = false;
	CU_ASSERT_EQUAL(prove(&f), 0);
	fault_done(&f);
	world_free(&w);
}

static const struct test_case tests[] = {
	{ "what is done is undone", what_is_done_is_undone },
	{ "only what is there is a proof", only_what_is_there_is_a_proof },
	{ "a GID that stays where it is has not moved", a_gid_that_stays_where_it_is_has_not_moved },
	{ "nothing to change is told", nothing_to_change_is_told },
	{ "link addresses are checked", link_addresses_are_checked },
	{ "a device is another one by its number", a_device_is_another_one_by_its_number },
	{ "a device that stays is no fault", a_device_that_stays_is_no_fault },
};

TEST_MAIN("faults_link", tests)
