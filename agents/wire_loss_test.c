/* SPDX-License-Identifier: MIT */
/*
 * What the wire or the devices around it lose without a rule is found, told, and makes the case inconclusive. Needs what
 * wire_native_test needs, and `tc`.
 */
#include "wire_native_rig.h"

#include "../harness/verdict_rig.h"

#define GOLDEN "wire-lost-frames"

static void send_frames(const char *netdev, unsigned n, size_t payload)
{
	struct wire_link *end = NULL;
	uint8_t frame[FRAME_MAX];

	MUST(wire_link_packet_open(netdev, 0, 0, &end, NULL) == 0);
	for (unsigned i = 0; i < n; i++) {
		struct iovec iov = { .iov_base = frame, .iov_len = test_packet(0, "RC_SEND_ONLY", i, 0, payload, frame) };

		end->ops->send(end, &iov, 1);
	}
	end->ops->close(end);
}

/* The record of a case that would pass without the loss; borrowed. */
static json_t *golden_loss(const struct input *in)
{
	json_t *rec;
	size_t i;

	json_array_foreach(in->records, i, rec)
		if (!strcmp(json_str(rec, "kind"), "lost"))
			return rec;
	return NULL;
}

/* A case in which this was lost. */
static void check_verdict(const json_t *loss, const char *text)
{
	struct input in;

	input_load(GOLDEN, &in);
	json_t *rec = golden_loss(&in);

	MUST(rec != NULL);
	for (const char *const *key = (const char *const[]){ "what", "count", "why", "port", NULL }; *key; key++) {
		json_object_del(rec, *key);
		if (json_object_get(loss, *key))
			json_object_set(rec, *key, json_object_get(loss, *key));
	}
	json_t *v = judge(&in, false);

	ROW_ASSERT(is_verdict(v, "inconclusive") && strstr(json_str(v, "headline"), text), "%s: %s", text, json_str(v, "headline"));
	json_decref(v);
	input_release(&in);
}

static void test_golden_without(void)
{
	struct input in;
	size_t i;

	input_load(GOLDEN, &in);
	for (i = 0; i < json_array_size(in.records); i++)
		if (json_array_get(in.records, i) == golden_loss(&in))
			break;
	json_array_remove(in.records, i);
	renumber(in.records);
	json_t *v = judge(&in, false);

	ROW_ASSERT(is_verdict(v, "pass"), "%s", json_str(v, "headline"));
	json_decref(v);
	input_release(&in);
}

/* How frames are sent: while the wire does not run; the last one only when the others have been found lost. */
enum how { AT_ONCE, STOPPED, LOOKED_AT };

/* Opens the wire, loses, and asks what was lost. */
static const struct row {
	const char *open;    /* further arguments of `open` */
	const char *command; /* before the frames are sent */
	const char *undo;
	unsigned frames;
	size_t payload;
	enum how how;
	const char *why, *port;
	unsigned least; /* so many of them at least */
} rows[] = {
	{ ",\"frames\":16", NULL, NULL, 400, 64, STOPPED, "they came in and the receive ring was full", "a", 100 },
	{ ",\"frame_bytes\":1600", NULL, NULL, 5, 3000, AT_ONCE, "they were longer than a slot of the receive ring", "a", 5 },
	{ ",\"frame_bytes\":1600", NULL, NULL, 5, 3000, LOOKED_AT, "they were longer than a slot of the receive ring", "a", 5 },
	{ "", "ip link set wb down", "ip link set wb up", 5, 64, AT_ONCE, "they could not be sent: Network is down", "b", 5 },
	{ "", "tc qdisc replace dev wb root blackhole", "tc qdisc del dev wb root", 5, 64, AT_ONCE,
	  "the network device was given them and has not sent them", "b", 5 },
	{ "", "ip link set wa mtu 1500", "ip link set wa mtu 4200", 5, 3000, AT_ONCE,
	  "the other end of the veth sent them and the network device did not take them", "a", 5 },
};

/* What was lost for this reason, counted over all the looks that found some of it: the wire looks while frames still come. New
 * reference; NULL: nothing. */
static json_t *find_loss(const char *why)
{
	json_t *rec, *all = NULL;
	json_int_t count = 0;
	size_t i;

	json_array_foreach(wire.records, i, rec) {
		const char *kind = json_str(rec, "kind"), *text = json_str(rec, "why");

		if (!kind || !text || strcmp(kind, "lost") || !strstr(text, why))
			continue;
		count += json_integer_value(json_object_get(rec, "count"));
		all = all ? all : json_copy(rec);
	}
	if (all)
		json_object_set_new(all, "count", json_integer(count));
	return all;
}

static void check_nothing_lost(void)
{
	json_t *loss = find_loss("");

	ROW_ASSERT(!loss, "lost: %s", json_str(loss, "why"));
	json_decref(loss);
}

static void lose(const struct row *row)
{
	const uint64_t until_ns = now_ns() + DEADLINE_NS;
	json_t *loss = NULL;

	if (row->how == STOPPED)
		kill(wire.pid, SIGSTOP);
	send_frames("va", row->how == LOOKED_AT ? row->frames - 1 : row->frames, row->payload);
	if (row->how == STOPPED)
		kill(wire.pid, SIGCONT);
	if (row->how != LOOKED_AT)
		return;
	while (!(loss = find_loss(row->why)) && now_ns() < until_ns)
		json_decref(ask("\"op\":\"stats\""));
	ROW_ASSERT(loss != NULL, "%s: never found", row->why);
	json_decref(loss);
	send_frames("va", 1, row->payload);
}

static void one_row(const struct row *row)
{
	char request[256];

	json_array_clear(wire.records);
	snprintf(request, sizeof request,
		 "\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]%s", row->open);
	CU_ASSERT(ask_rc(request) == 0);
	ROW_ASSERT(!row->command || run(row->command) == 0, "%s", row->command);
	lose(row);
	json_t *stats = ask("\"op\":\"release\"");
	const json_t *from_a = json_array_get(json_object_get(stats, "directions"), 0);
	json_t *loss = find_loss(row->why);

	ROW_ASSERT(!row->undo || run(row->undo) == 0, "%s", row->undo);
	ROW_ASSERT(json_is_false(json_object_get(stats, "complete")), "%s: complete", row->why);
	ROW_ASSERT(json_integer_value(json_object_get(from_a, "in")) ==
			   json_integer_value(json_object_get(from_a, "out")) + json_integer_value(json_object_get(from_a, "lost")),
		   "%s: the account", row->why);
	ROW_ASSERT(loss && json_integer_value(json_object_get(loss, "count")) >= row->least &&
			   !strcmp(json_str(loss, "port"), row->port) && !strcmp(json_str(loss, "what"), "frames"),
		   "%s: %lld", row->why, (long long)json_integer_value(json_object_get(loss, "count")));
	if (loss)
		check_verdict(loss, row->why);
	json_decref(loss);
	json_decref(stats);
}

static void test_losses(void)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		one_row(&rows[i]);
}

/* The same without any loss, between and after the others. */
static void test_nothing_lost(void)
{
	json_array_clear(wire.records);
	CU_ASSERT(ask_rc("\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]") == 0);
	send_frames("va", 500, 3000);
	send_frames("vb", 500, 64);
	json_t *stats = ask("\"op\":\"release\"");

	for (size_t i = 0; i < 2; i++) {
		const json_t *d = json_array_get(json_object_get(stats, "directions"), i);

		for (const char *const *key = (const char *const[]){ "in", "out", "device_in", "device_out", NULL }; *key; key++)
			ROW_ASSERT(json_integer_value(json_object_get(d, *key)) == 500, "%s %zu: %lld", *key, i,
				   (long long)json_integer_value(json_object_get(d, *key)));
	}
	CU_ASSERT(json_is_true(json_object_get(stats, "complete")));
	check_nothing_lost();
	json_decref(stats);
}

/* What is still held when the wire is released is gone with it, and the account says so. */
static void test_held(void)
{
	json_array_clear(wire.records);
	CU_ASSERT(ask_rc("\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]") == 0);
	CU_ASSERT(ask_rc("\"op\":\"rule\",\"as\":\"h\",\"action\":\"hold\",\"match\":{\"class\":\"request\",\"nth\":{\"op\":\"<=\","
			 "\"value\":3}}") == 0);
	CU_ASSERT(ask_rc("\"op\":\"rule\",\"as\":\"d\",\"action\":\"delay\",\"by\":\"60s\",\"times\":2") == 0);
	send_frames("va", 10, 64);
	json_t *stats = ask("\"op\":\"release\""), *d = json_array_get(json_object_get(stats, "directions"), 0);

	CU_ASSERT(json_integer_value(json_object_get(d, "in")) == 10 && json_integer_value(json_object_get(d, "out")) == 5 &&
		  json_integer_value(json_object_get(d, "kept")) == 5);
	CU_ASSERT(json_is_true(json_object_get(stats, "complete")));
	check_nothing_lost();
	json_decref(stats);
}

static void test_end(void)
{
	CU_ASSERT(end_wire() == 0);
}

static const struct test_case cases[] = {
	{ "the case passes without the loss", test_golden_without },
	{ "no loss is found where none is", test_nothing_lost },
	{ "each loss is found and makes the case inconclusive", test_losses },
	{ "after them none is found", test_nothing_lost },
	{ "what is held is accounted for", test_held },
	{ "it leaves", test_end },
};

int main(void)
{
	int rc = rig_start();

	return rc ? rc : test_run("wire_loss", cases, sizeof cases / sizeof cases[0]);
}
