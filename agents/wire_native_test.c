/* SPDX-License-Identifier: MIT */
/*
 * The wire as it runs: its process between two veth pairs, in a network namespace of its own. Needs user namespaces (or root), veth
 * and `ip`; where they are not there it says so and ends with 77.
 */
#include <sys/stat.h>

#include "wire_native_rig.h"
#include "wire_tcp_rig.h"

#define MANY 10000u
#define BURST_MAX 32u
#define PAYLOAD_MAX 4096u

static uint8_t pattern[PAYLOAD_MAX + 256];

/* Number i of what `from` sends: IPv4 and IPv6, without, with one and with two tags, of all sizes. */
static size_t make_frame(unsigned from, unsigned i, uint8_t *frame)
{
	static const uint8_t v6[2][16] = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 } };
	struct packet_spec s = {
		.dmac = { 2, 0, 0, 0, 0, (uint8_t)!from },
		.smac = { 2, 0, 0, 0, 0, (uint8_t)from },
		.n_tags = (uint8_t)(i % 3),
		.tags = { (uint16_t)(0x2000 | i % 4000), 0x0007 },
		.opcode = packet_opcode_by_name(from ? "RC_RDMA_READ_RESPONSE_MIDDLE" : "RC_RDMA_WRITE_MIDDLE")->value,
		.dest_qp = from ? QPN_A : QPN_B,
		.psn = i,
		.payload = pattern + i % 256,
		.payload_bytes = i * 7 % (PAYLOAD_MAX + 1),
	};

	memcpy(s.src, i & 2 ? v6[from] : test_addr[from], 16);
	memcpy(s.dst, i & 2 ? v6[!from] : test_addr[!from], 16);
	int len = packet_build(&s, frame, FRAME_MAX);

	return len > 0 ? (size_t)len : 0;
}

/* What came out is what number i was, and its ICRC is right. */
static bool is_frame(const struct wire_buf *buf, unsigned from, unsigned i)
{
	uint8_t frame[FRAME_MAX];
	size_t len = make_frame(from, i, frame);
	struct packet p;

	return buf->len == len && !memcmp(buf->data, frame, len) && packet_decode(buf->data, buf->len, &p) == PACKET_ROCE &&
	       packet_icrc_compute(buf->data, &p) == packet_icrc_carried(buf->data, &p);
}

static void send_burst(struct wire_link *end, unsigned from, unsigned first, unsigned n)
{
	static uint8_t frames[BURST_MAX][FRAME_MAX];
	struct iovec iov[BURST_MAX];

	for (unsigned k = 0; k < n; k++)
		iov[k] = (struct iovec){ .iov_base = frames[k], .iov_len = make_frame(from, first + k, frames[k]) };
	CU_ASSERT(end->ops->send(end, iov, n) == n);
}

/* 10,000 RoCE packets in bursts both ways: the same bytes in the same order, none lost, the ICRC right on all; and frames of which
 * the wire knows nothing. */
static void test_untouched(void)
{
	struct wire_link *ends[2] = { NULL, NULL };
	uint8_t other[64] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0x88, 0xb5 };
	unsigned wrong = 0, came = 0, sent[2] = { 0, 0 };
	struct wire_buf buf;

	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 2654435761u >> 13);
	MUST(wire_link_packet_open("va", 0, 0, &ends[0], NULL) == 0 && wire_link_packet_open("vb", 0, 0, &ends[1], NULL) == 0);
	for (unsigned round = 0; sent[0] + sent[1] < MANY; round++) {
		unsigned from = round & 1, n = 1 + round * 11 % BURST_MAX;

		if (n > MANY - sent[0] - sent[1])
			n = MANY - sent[0] - sent[1];
		send_burst(ends[from], from, sent[from], n);
		for (unsigned k = 0; k < n && receive_one(ends[!from], &buf, now_ns() + DEADLINE_NS); k++, came++)
			wrong += !is_frame(&buf, from, sent[from] + k);
		sent[from] += n;
		if (came < sent[0] + sent[1])
			break;
		struct iovec iov = { .iov_base = other, .iov_len = 14 + round % 50 };

		CU_ASSERT(ends[from]->ops->send(ends[from], &iov, 1) == 1);
		wrong += !receive_one(ends[!from], &buf, now_ns() + DEADLINE_NS) || buf.len != iov.iov_len ||
			 memcmp(buf.data, other, buf.len) != 0;
	}
	ROW_ASSERT(came == MANY && wrong == 0, "%u came, %u of them wrong", came, wrong);
	json_t *stats = ask("\"op\":\"stats\"");

	for (size_t i = 0; i < 2; i++) {
		const json_t *d = json_array_get(json_object_get(stats, "directions"), i);

		CU_ASSERT(json_integer_value(json_object_get(d, "roce")) == (json_int_t)sent[i]);
		CU_ASSERT(json_integer_value(json_object_get(d, "in")) == json_integer_value(json_object_get(d, "out")));
		CU_ASSERT(json_integer_value(json_object_get(d, "icrc_bad")) == 0);
	}
	CU_ASSERT(json_is_true(json_object_get(stats, "complete")));
	json_decref(stats);
	ends[0]->ops->close(ends[0]);
	ends[1]->ops->close(ends[1]);
}

/* What came of five packets whose first is late by 20 ms and whose third is lost, however late this machine is besides. */
static void late_and_lost(struct wire_link *a, struct wire_link *b)
{
	struct wire_buf buf;
	uint8_t frame[FRAME_MAX];
	char plain[8] = "";
	uint64_t began_ns = now_ns(), late_ns = 0;
	size_t n = 0;

	for (int psn = 0; psn < 5; psn++) {
		struct iovec iov = { .iov_base = frame, .iov_len = test_packet(0, "RC_SEND_ONLY", psn, 0, 64, frame) };

		a->ops->send(a, &iov, 1);
	}
	for (size_t i = 0; i < 4 && receive_one(b, &buf, now_ns() + DEADLINE_NS); i++) {
		struct packet p;

		packet_decode(buf.data, buf.len, &p);
		if (packet_psn_diff(p.psn, START_A) == 0)
			late_ns = now_ns() - began_ns;
		else
			plain[n++] = (char)('0' + packet_psn_diff(p.psn, START_A));
	}
	ROW_ASSERT(!strcmp(plain, "134"), "%s: %s", test_variant->name, plain);
	ROW_ASSERT(late_ns >= 20 * NSEC_PER_MSEC, "%s: after %llu ns", test_variant->name, (unsigned long long)late_ns);
}

/* Rules on the running process: the 3rd request is lost, the first is late; records and reports say so. */
static void rules_on(unsigned life)
{
	struct wire_link *a = NULL, *b = NULL;
	char request[512], addr[2][INET6_ADDRSTRLEN];
	size_t before = json_array_size(wire.records);

	MUST(wire_link_packet_open("va", 0, 0, &a, NULL) == 0 && wire_link_packet_open("vb", 0, 0, &b, NULL) == 0);
	inet_ntop(AF_INET6, test_variant->addr[0], addr[0], sizeof addr[0]);
	inet_ntop(AF_INET6, test_variant->addr[1], addr[1], sizeof addr[1]);
	snprintf(request, sizeof request,
		 "\"op\":\"connect\",\"pair\":\"p\",\"life\":%u,\"ends\":[{\"agent\":\"a\",\"addr\":\"%s\",\"qpn\":17,"
		 "\"psn\":16777213},{\"agent\":\"b\",\"addr\":\"%s\",\"qpn\":18,\"psn\":291}]",
		 life, addr[0], addr[1]);
	CU_ASSERT(ask_rc(request) == 0);
	CU_ASSERT(ask_rc("\"op\":\"rule\",\"as\":\"lost\",\"action\":\"drop\",\"match\":{\"from\":\"p.a\",\"psn\":2}") == 0);
	CU_ASSERT(ask_rc("\"op\":\"rule\",\"as\":\"late\",\"action\":\"delay\",\"by\":\"20ms\",\"match\":{\"from\":\"p.a\",\"psn\":"
			 "0}") == 0);
	late_and_lost(a, b);
	json_t *reply = ask("\"op\":\"clear\",\"as\":\"lost\"");

	CU_ASSERT(json_integer_value(json_object_get(json_object_get(reply, "rule"), "hits")) == 1);
	json_decref(reply);
	CU_ASSERT(ask_rc("\"op\":\"clear\",\"as\":\"late\"") == 0);
	unsigned eaten = 0, released = 0, passed = 0;
	json_t *rec;
	size_t i;

	json_array_foreach(wire.records, i, rec) {
		const char *fate = json_string_value(json_object_get(rec, "fate")),
			   *obj = json_string_value(json_object_get(rec, "obj"));

		if (i < before || !fate || !obj || strcmp(obj, "p.a"))
			continue;
		eaten += !strcmp(fate, "eaten") && json_integer_value(json_object_get(rec, "psn")) == 2;
		released += !strcmp(fate, "released");
		passed += !strcmp(fate, "passed") ? (unsigned)json_integer_value(json_object_get(rec, "count")) : 0;
	}
	ROW_ASSERT(eaten == 1 && released == 1 && passed == 3, "%s: %u eaten, %u released, %u passed", test_variant->name, eaten,
		   released, passed);
	a->ops->close(a);
	b->ops->close(b);
}

/* The kernel takes the tag out of what comes in: it is put back, and what lies behind it is ruled. */
static void test_rule(void)
{
	for (unsigned i = 0; i < sizeof test_variants / sizeof *test_variants; i++) {
		test_variant = &test_variants[i];
		rules_on(i + 1);
	}
	test_variant = &test_variants[0];
}

/* Ports that stay open begin anew: nothing of before is left, and what came in between is nobody's. */
static void test_kept_ports(void)
{
	static const char open_both[] =
		"\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]";
	struct wire_link *a = NULL, *b = NULL;
	struct wire_buf buf;
	uint8_t frame[FRAME_MAX];
	struct iovec iov = { .iov_base = frame };

	MUST(wire_link_packet_open("va", 0, 0, &a, NULL) == 0 && wire_link_packet_open("vb", 0, 0, &b, NULL) == 0);
	CU_ASSERT(ask_rc(open_both) == 0);
	for (int round = 0; round < 3; round++) {
		struct packet p = { .psn = 0 };

		iov.iov_len = test_packet(0, "RC_SEND_ONLY", 10, 0, 64, frame);
		CU_ASSERT(ask_rc("\"op\":\"rule\",\"as\":\"all\",\"action\":\"drop\",\"match\":{}") == 0);
		a->ops->send(a, &iov, 1);
		CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
		/* the second one has nothing to keep, and closes what was left open */
		CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
		CU_ASSERT(ask_rc(open_both) == 0);
		CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
		for (int i = 0; i < 5; i++)
			a->ops->send(a, &iov, 1);
		CU_ASSERT(ask_rc(open_both) == 0);
		iov.iov_len = test_packet(0, "RC_SEND_ONLY", 11 + round, 0, 64, frame);
		a->ops->send(a, &iov, 1);
		/* the first to arrive is the one that was sent while the ports were open */
		CU_ASSERT_FATAL(receive_one(b, &buf, now_ns() + DEADLINE_NS));
		packet_decode(buf.data, buf.len, &p);
		CU_ASSERT_EQUAL(packet_psn_diff(p.psn, START_A), 11 + round);
		json_t *stats = ask("\"op\":\"stats\""), *d = json_array_get(json_object_get(stats, "directions"), 0);

		CU_ASSERT_EQUAL(json_integer_value(json_object_get(d, "in")), 1);
		CU_ASSERT_EQUAL(json_integer_value(json_object_get(d, "out")), 1);
		CU_ASSERT(json_is_true(json_object_get(stats, "complete")));
		json_decref(stats);
	}
	CU_ASSERT(ask_rc("\"op\":\"release\"") == 0);
	a->ops->close(a);
	b->ops->close(b);
}

/* What has changed meanwhile makes it another port. */
static void test_kept_port_has_changed(void)
{
	static const char open_both[] =
		"\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]";

	CU_ASSERT(ask_rc(open_both) == 0);
	CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
	CU_ASSERT_EQUAL_FATAL(run("ip link set wb down"), 0);
	json_t *reply = ask(open_both);

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(reply, "rc")), -ENETDOWN);
	json_decref(reply);
	CU_ASSERT_EQUAL_FATAL(run("ip link set wb up"), 0);
	CU_ASSERT(ask_rc(open_both) == 0);
	CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
	CU_ASSERT_EQUAL_FATAL(run("ip link set wa mtu 2000 && ip link set wb mtu 2000"), 0);
	CU_ASSERT(ask_rc(open_both) == 0);
	CU_ASSERT(ask_rc("\"op\":\"release\",\"keep\":true") == 0);
	CU_ASSERT_EQUAL_FATAL(run("ip link set wa mtu 4200 && ip link set wb mtu 4200"), 0);
	CU_ASSERT(ask_rc(open_both) == 0);
	CU_ASSERT(ask_rc("\"op\":\"release\"") == 0);
}

static int ethtool_gro(const char *netdev, bool on)
{
	struct ethtool_value v = { .cmd = ETHTOOL_SGRO, .data = on };
	struct ifreq ifr = { .ifr_data = (void *)&v };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
	rc = ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
	return rc;
}

static int gro_on(void)
{
	return ethtool_gro("wb", true);
}

static int gro_off(void)
{
	return ethtool_gro("wb", false);
}

static int mtu_other(void)
{
	return run("ip link set wb mtu 1500");
}

static int mtu_same(void)
{
	return run("ip link set wb mtu 4200");
}

static int port_down(void)
{
	return run("ip link set wb down");
}

static int port_up(void)
{
	return run("ip link set wb up");
}

static int nothing(void)
{
	return 0;
}

/* What would not carry every frame is refused at once, with what to do about it. */
static void test_ports_refused(void)
{
	static const struct {
		const char *netdevs[2];
		int (*before)(void), (*after)(void);
		int rc;
		const char *says;
	} rows[] = {
		{ { "wa", "nowhere0" }, nothing, nothing, -ENODEV, "there is no network device `nowhere0` here" },
		{ { "wa", "wa" }, nothing, nothing, -EINVAL, "the two `ports` are the same" },
		{ { "wa", "wb" }, port_down, port_up, -ENETDOWN, "wb is down: `ip link set wb up`" },
		{ { "wa", "wb" }, gro_on, gro_off, -EINVAL, "`ethtool -K wb gro off lro off`" },
		{ { "wa", "wb" }, mtu_other, mtu_same, -EINVAL, "different MTUs: wa 4200, wb 1500" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char request[256];

		ROW_ASSERT(rows[i].before() == 0, "%s: cannot be tried", rows[i].says);
		snprintf(request, sizeof request,
			 "\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"%s\"},{\"name\":\"b\",\"netdev\":\"%s\"}]",
			 rows[i].netdevs[0], rows[i].netdevs[1]);
		json_t *reply = ask(request);
		const char *text = json_string_value(json_object_get(reply, "error"));

		ROW_ASSERT(json_integer_value(json_object_get(reply, "rc")) == rows[i].rc && text && strstr(text, rows[i].says),
			   "%s: %s", rows[i].says, text);
		ROW_ASSERT(rows[i].after() == 0, "%s: cannot be undone", rows[i].says);
		json_decref(reply);
	}
}

/* Whoever has no right to packets of this namespace is told which one is missing. */
static void test_no_right(void)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		struct wire_link *l = NULL;
		struct error e = { "" };
		int rc = unshare(CLONE_NEWUSER) ? 0 : wire_link_packet_open("wa", 0, 0, &l, &e);

		_exit(rc == -EPERM && strstr(e.text, "CAP_NET_RAW is needed") ? 0 : 1);
	}
	CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
}

static bool crosses(void)
{
	struct wire_link *a = NULL, *b = NULL;
	uint8_t frame[FRAME_MAX];
	struct wire_buf buf;
	struct iovec iov = { .iov_base = frame, .iov_len = test_packet(0, "RC_SEND_ONLY", 0, 0, 64, frame) };
	bool ret;

	MUST(wire_link_packet_open("va", 0, 0, &a, NULL) == 0 && wire_link_packet_open("vb", 0, 0, &b, NULL) == 0);
	a->ops->send(a, &iov, 1);
	ret = receive_one(b, &buf, now_ns() + DEADLINE_NS) && buf.len == iov.iov_len;
	a->ops->close(a);
	b->ops->close(b);
	return ret;
}

/* A port that goes down while it carries is told, and carries again when it is up. */
static void test_port_comes_back(void)
{
	unsigned told = 0;
	json_t *rec;
	size_t i;

	CU_ASSERT(crosses());
	CU_ASSERT(port_down() == 0 && ask_rc("\"op\":\"stats\"") == 0);
	CU_ASSERT(port_up() == 0 && ask_rc("\"op\":\"stats\"") == 0);
	CU_ASSERT(crosses());
	CU_ASSERT(ask_rc("\"op\":\"stats\"") == 0);
	json_array_foreach(wire.records, i, rec) {
		const char *what = json_string_value(json_object_get(rec, "what")),
			   *port = json_string_value(json_object_get(rec, "port"));

		told += what && port && !strcmp(what, "port") && !strcmp(port, "b");
	}
	CU_ASSERT(told == 1);
}

/* Some frames from a to b; true when all came, untouched, within the time. */
static bool cross(struct wire_link *const ends[2], unsigned n, uint64_t within_ns)
{
	static unsigned next;
	uint64_t until_ns = now_ns() + within_ns;
	struct wire_buf buf;
	bool right = true;

	for (unsigned k = 0; right && k < n; k++, next++) {
		send_burst(ends[0], 0, next, 1);
		right = receive_one(ends[1], &buf, until_ns) && is_frame(&buf, 0, next);
	}
	return right;
}

static void start_fifo_capture(const char *path)
{
	char request[256];

	snprintf(request, sizeof request, "\"op\":\"capture\",\"path\":\"%s\"", path);
	CU_ASSERT(ask_rc(request) == 0);
}

/* Reads to the end of file. */
static size_t read_fifo(int fd)
{
	uint64_t until_ns = now_ns() + DEADLINE_NS;
	static char chunk[65536];
	size_t total = 0;
	ssize_t n = 1;

	while (n && now_ns() < until_ns) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };

		poll(&pfd, 1, 50);
		n = read(fd, chunk, sizeof chunk);
		total += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	return total;
}

/* A capture that cannot be written as long as nobody reads it: its end is waited for, packets and other requests are not kept. */
static void test_capture_end(void)
{
	struct wire_link *ends[2] = { NULL, NULL };
	char path[64];
	unsigned id;

	snprintf(path, sizeof path, "/tmp/qd-wire-%d.fifo", (int)getpid());
	CU_ASSERT(ask_rc("\"op\":\"capture_stop\"") == 0);
	MUST(wire_link_packet_open("va", 0, 0, &ends[0], NULL) == 0 && wire_link_packet_open("vb", 0, 0, &ends[1], NULL) == 0);
	MUST(mkfifo(path, 0600) == 0);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	MUST(fd >= 0 && fcntl(fd, F_SETPIPE_SZ, 4096) > 0);
	start_fifo_capture(path);
	CU_ASSERT(cross(ends, 100, DEADLINE_NS));
	id = tell("\"op\":\"capture_stop\",\"deadline_ns\":60000000000");
	CU_ASSERT(cross(ends, 100, DEADLINE_NS) && ask_rc("\"op\":\"clock\"") == 0);
	CU_ASSERT(json_array_size(wire.late) == 0);
	CU_ASSERT(read_fifo(fd) > 40000);
	json_t *reply = await(id);

	CU_ASSERT(json_integer_value(json_object_get(reply, "rc")) == 0 &&
		  json_integer_value(json_object_get(reply, "packets")) >= 100);
	json_decref(reply);

	start_fifo_capture(path);
	CU_ASSERT(cross(ends, 100, DEADLINE_NS));
	id = tell("\"op\":\"batch\",\"ops\":[{\"op\":\"capture_stop\",\"deadline_ns\":100000000},{\"op\":\"clock\"}]");
	CU_ASSERT(cross(ends, 100, DEADLINE_NS));
	reply = await(id);
	const json_t *replies = json_object_get(reply, "replies");

	CU_ASSERT(json_integer_value(json_object_get(json_array_get(replies, 0), "rc")) == -ETIMEDOUT);
	CU_ASSERT(json_integer_value(json_object_get(json_array_get(replies, 1), "rc")) == 0);
	json_decref(reply);
	close(fd);
	unlink(path);
	ends[0]->ops->close(ends[0]);
	ends[1]->ops->close(ends[1]);
}

/* ARP and a megabyte of TCP cross the wire. */
static void test_tcp(void)
{
	int go[2][2], ready[2][2];
	pid_t pid[2];
	char byte = 0, command[128];

	for (int e = 0; e < 2; e++) {
		MUST(pipe(go[e]) == 0 && pipe(ready[e]) == 0);
		pid[e] = fork();
		if (pid[e] == 0)
			tcp_end(e == 1, go[e][0], ready[e][1]);
		close(ready[e][1]);
		CU_ASSERT(read(ready[e][0], &byte, 1) == 1);
		snprintf(command, sizeof command, "ip link set %s netns %d", e ? "vb" : "va", (int)pid[e]);
		CU_ASSERT(run(command) == 0);
	}
	CU_ASSERT(write(go[1][1], &byte, 1) == 1 && read(ready[1][0], &byte, 1) == 1);
	CU_ASSERT(write(go[0][1], &byte, 1) == 1);
	int client = child_status(pid[0]);

	ROW_ASSERT(client == 0, "the client ended with %d", client);
	if (client)
		kill(pid[1], SIGKILL);
	int server = child_status(pid[1]);

	ROW_ASSERT(server == 0, "the server ended with %d", server);
}

static json_int_t figure(const json_t *direction, const char *key)
{
	return json_integer_value(json_object_get(direction, key));
}

/* Nothing is missing: what could not be sent is counted as lost. The ends of the TCP connection go with their namespaces, and what
 * comes for them then is that; so it may be none or some. */
static void test_leave(void)
{
	unsigned id = tell("\"op\":\"release\"");
	char path[64];

	/* the requests end behind it: what waits for the capture is answered all the same */
	close(wire.to);
	wire.to = -1;
	json_t *reply = await(id), *rules = json_object_get(reply, "rules");

	CU_ASSERT(json_integer_value(json_object_get(reply, "rc")) == 0 && json_is_array(rules));
	for (size_t i = 0; i < 2; i++) {
		const json_t *d = json_array_get(json_object_get(reply, "directions"), i);

		CU_ASSERT(figure(d, "in") > 5000 && figure(d, "icrc_bad") == 0);
		ROW_ASSERT(figure(d, "in") + figure(d, "invented") ==
				   figure(d, "out") + figure(d, "eaten") + figure(d, "kept") + figure(d, "lost"),
			   "direction %zu: %lld in, %lld out, %lld lost", i, figure(d, "in"), figure(d, "out"), figure(d, "lost"));
		ROW_ASSERT(figure(d, "ring_dropped") == 0, "direction %zu: %lld found no room", i, figure(d, "ring_dropped"));
	}
	json_decref(reply);
	CU_ASSERT(end_wire() == 0);
	snprintf(path, sizeof path, "/tmp/qd-wire-%d.pcapng", (int)getpid());
	CU_ASSERT(access(path, R_OK) == 0);
	unlink(path);
}

static void test_open(void)
{
	char request[256];

	CU_ASSERT(ask_rc("\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]") == 0);
	snprintf(request, sizeof request, "\"op\":\"capture\",\"path\":\"/tmp/qd-wire-%d.pcapng\"", (int)getpid());
	CU_ASSERT(ask_rc(request) == 0);
}

static const struct test_case cases[] = {
	{ "ports that would lose frames are refused", test_ports_refused },
	{ "without the right to packets", test_no_right },
	{ "ports that stay open begin anew", test_kept_ports },
	{ "a port that changed meanwhile is another one", test_kept_port_has_changed },
	{ "the process opens its ports", test_open },
	{ "10,000 packets cross it untouched", test_untouched },
	{ "rules on the running process", test_rule },
	{ "a capture comes to its end beside the packets", test_capture_end },
	{ "a port goes down and comes back", test_port_comes_back },
	{ "TCP crosses it", test_tcp },
	{ "it leaves, and its accounts add up", test_leave },
};

int main(void)
{
	int rc = rig_start();

	if (rc)
		return rc;
	return test_run("wire_native", cases, sizeof cases / sizeof cases[0]);
}
