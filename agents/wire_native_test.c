/* SPDX-License-Identifier: MIT */
/*
 * The wire as it runs: its process between two veth pairs, in a network namespace of its own. Needs user namespaces (or root), veth
 * and `ip`; where they are not there it says so and ends with 77.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness/units.h"
#include "wire_link.h"
#include "wire_serve.h"
#include "wire_test.h"

#define DEADLINE_NS (10 * NSEC_PER_SEC)
#define TCP_BYTES (1u << 20)

static struct {
	pid_t pid;
	int to, from;
	FILE *lines;
	unsigned id;
	json_t *records;
} wire;

static int run(const char *command)
{
	return system(command) == 0 ? 0 : -1;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Root in namespaces of our own. */
static int enter_namespace(void)
{
	char map[64];
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return geteuid() == 0 ? unshare(CLONE_NEWNET) : -1;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof map, "0 %u 1", uid);
	if (write_file("/proc/self/uid_map", map))
		return -1;
	snprintf(map, sizeof map, "0 %u 1", gid);
	return write_file("/proc/self/gid_map", map);
}

/* What checksums and segments are left to the device would cross the wire unfinished. */
static int offload_off(const char *netdev)
{
	static const uint32_t commands[] = {
		ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		struct ethtool_value v = { .cmd = commands[i] };
		struct ifreq ifr = { .ifr_data = (void *)&v };

		snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", netdev);
		if (ioctl(fd, SIOCETHTOOL, &ifr) && i == 0)
			rc = -1;
	}
	close(fd);
	return rc;
}

static int make_links(void)
{
	static const char *const devices[] = { "va", "wa", "vb", "wb" };

	if (run("ip link add va type veth peer name wa 2>/dev/null && ip link add vb type veth peer name wb"))
		return -1;
	for (size_t i = 0; i < 4; i++) {
		char command[256];

		snprintf(command, sizeof command, "echo 1 > /proc/sys/net/ipv6/conf/%s/disable_ipv6; ip link set %s mtu 4200 up",
			 devices[i], devices[i]);
		if (run(command) || offload_off(devices[i]))
			return -1;
	}
	return 0;
}

static void serve(int rfd, int wfd)
{
	struct wire_serve *s = NULL;
	sd_event *loop = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	if (sd_event_new(&loop) < 0 || wire_serve_new(loop, rfd, wfd, &s, NULL))
		_exit(1);
	int rc = sd_event_loop(loop);

	wire_serve_flush(s, NSEC_PER_SEC);
	_exit(rc || wire_serve_free(s));
}

static int start_wire(void)
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return -1;
	wire.pid = fork();
	if (wire.pid == 0) {
		close(to[1]);
		close(from[0]);
		serve(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	wire.to = to[1];
	wire.lines = fdopen(from[0], "r");
	wire.records = json_array();
	return wire.pid < 0 ? -1 : 0;
}

/* The reply; records on the way are kept. */
static json_t *ask(const char *request)
{
	char *line = NULL;
	size_t room = 0;
	json_t *reply = NULL;

	wire.id++;
	dprintf(wire.to, "{\"id\":%u,%s}\n", wire.id, request);
	while (!reply && getline(&line, &room, wire.lines) > 0) {
		json_t *j = json_loads(line, 0, NULL);

		if (json_integer_value(json_object_get(j, "id")) == wire.id)
			reply = json_incref(j);
		json_array_extend(wire.records, json_object_get(j, "recs"));
		json_decref(j);
	}
	free(line);
	return reply;
}

static int64_t ask_rc(const char *request)
{
	json_t *reply = ask(request);
	int64_t rc = reply ? json_integer_value(json_object_get(reply, "rc")) : -EPIPE;

	if (rc)
		fprintf(stderr, "    %s: %s\n", request, json_string_value(json_object_get(reply, "error")));
	json_decref(reply);
	return rc;
}

static bool receive_one(struct wire_link *l, struct wire_buf *ret, uint64_t deadline_ns)
{
	while (now_ns() < deadline_ns) {
		struct pollfd pfd = { .fd = l->ops->fd(l), .events = POLLIN };

		l->ops->done(l);
		if (l->ops->receive(l, ret, 1) == 1)
			return true;
		poll(&pfd, 1, 50);
	}
	return false;
}

/* 10,000 RoCE packets and tagged and foreign frames both ways: the same bytes in the same order. */
static void test_untouched(void)
{
	struct wire_link *ends[2] = { NULL, NULL };
	uint8_t frame[FRAME_MAX];
	unsigned wrong = 0, missing = 0;
	struct wire_buf buf;

	CU_ASSERT(wire_link_packet_open("va", 0, 0, &ends[0], NULL) == 0 && wire_link_packet_open("vb", 0, 0, &ends[1], NULL) == 0);
	if (!ends[0] || !ends[1])
		return;
	for (int i = 0; i < 10000 && !missing; i++) {
		unsigned from = i & 1;
		size_t len = test_packet(from, from ? "RC_RDMA_READ_RESPONSE_MIDDLE" : "RC_RDMA_WRITE_MIDDLE", i, 0,
					 (size_t)i * 7 % 4097, frame);

		if (i % 100 == 0) {
			/* a tag, and something behind it that is not RoCE */
			memmove(frame + 16, frame + 12, len - 12);
			memcpy(frame + 12, "\x81\x00\x20\x07", 4);
			len += 4;
		} else if (i % 101 == 0) {
			memcpy(frame + 12, "\x88\xb5", 2);
		}
		struct iovec iov = { .iov_base = frame, .iov_len = len };

		CU_ASSERT(ends[from]->ops->send(ends[from], &iov, 1) == 1);
		if (!receive_one(ends[!from], &buf, now_ns() + DEADLINE_NS))
			missing++;
		else
			wrong += buf.len != len || memcmp(buf.data, frame, len) != 0;
	}
	CU_ASSERT(wrong == 0 && missing == 0);
	ends[0]->ops->close(ends[0]);
	ends[1]->ops->close(ends[1]);
}

/* Rules on the running process: the 3rd request is lost, the first is late; records and reports say so. */
static void rules_on(unsigned life)
{
	struct wire_link *a = NULL, *b = NULL;
	struct wire_buf buf;
	uint8_t frame[FRAME_MAX];
	char seen[8] = "", request[512], addr[2][INET6_ADDRSTRLEN];
	size_t before = json_array_size(wire.records);

	CU_ASSERT(wire_link_packet_open("va", 0, 0, &a, NULL) == 0 && wire_link_packet_open("vb", 0, 0, &b, NULL) == 0);
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
	for (int psn = 0; psn < 5; psn++) {
		struct iovec iov = { .iov_base = frame, .iov_len = test_packet(0, "RC_SEND_ONLY", psn, 0, 64, frame) };

		a->ops->send(a, &iov, 1);
	}
	uint64_t began_ns = now_ns();

	for (size_t i = 0; i < 4 && receive_one(b, &buf, now_ns() + DEADLINE_NS); i++) {
		struct packet p;

		packet_decode(buf.data, buf.len, &p);
		seen[i] = (char)('0' + packet_psn_diff(p.psn, START_A));
	}
	uint64_t took_ns = now_ns() - began_ns;

	ROW_ASSERT(!strcmp(seen, "1340"), "%s: %s", test_variant->name, seen);
	ROW_ASSERT(took_ns > 15 * NSEC_PER_MSEC && took_ns < 500 * NSEC_PER_MSEC, "%llu ns", (unsigned long long)took_ns);
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

	CU_ASSERT(wire_link_packet_open("va", 0, 0, &a, NULL) == 0 && wire_link_packet_open("vb", 0, 0, &b, NULL) == 0);
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

static int tcp_socket(bool server)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(5000), .sin_addr.s_addr = inet_addr("10.9.0.2") };
	struct timeval limit = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (!server)
		return connect(fd, (struct sockaddr *)&addr, sizeof addr) ? -1 : fd;
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 1))
		return -1;
	return accept(fd, NULL, NULL);
}

/* One end of a transfer in a namespace of its own; go is readable when the device is there. Exits. */
static void tcp_end(bool server, int go, int ready)
{
	const char *dev = server ? "vb" : "va";
	char command[256], byte = 0;
	uint32_t sum = 0;
	static uint8_t chunk[65536];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(2);
	snprintf(command, sizeof command, "ip addr add 10.9.0.%d/24 dev %s && ip link set lo up && ip link set %s up",
		 server ? 2 : 1, dev, dev);
	if (run(command) || offload_off(dev) || (server && write(ready, &byte, 1) != 1))
		_exit(3);
	int fd = tcp_socket(server);

	if (fd < 0)
		_exit(4);
	for (size_t done = 0; done < TCP_BYTES;) {
		ssize_t n;

		for (size_t i = 0; i < sizeof chunk && !server; i++)
			chunk[i] = (uint8_t)((done + i) * 2654435761u >> 24);
		n = server ? read(fd, chunk, sizeof chunk)
			   : write(fd, chunk, TCP_BYTES - done < sizeof chunk ? TCP_BYTES - done : sizeof chunk);
		if (n <= 0)
			_exit(5);
		for (ssize_t i = 0; i < n && server; i++)
			sum += chunk[i] != (uint8_t)((done + (size_t)i) * 2654435761u >> 24);
		done += (size_t)n;
	}
	if (server ? write(fd, &sum, sizeof sum) != sizeof sum : read(fd, &sum, sizeof sum) != sizeof sum)
		_exit(6);
	_exit(sum ? 7 : 0);
}

static int child_status(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* ARP and a megabyte of TCP cross the wire. */
static void test_tcp(void)
{
	int go[2][2], ready[2][2];
	pid_t pid[2];
	char byte = 0, command[128];

	for (int e = 0; e < 2; e++) {
		CU_ASSERT(pipe(go[e]) == 0 && pipe(ready[e]) == 0);
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

static void test_leave(void)
{
	json_t *reply = ask("\"op\":\"release\""), *rules = json_object_get(reply, "rules");
	char path[64];

	CU_ASSERT(json_integer_value(json_object_get(reply, "rc")) == 0 && json_is_array(rules));
	for (size_t i = 0; i < 2; i++) {
		const json_t *d = json_array_get(json_object_get(reply, "directions"), i);

		CU_ASSERT(json_integer_value(json_object_get(d, "in")) > 5000 &&
			  json_integer_value(json_object_get(d, "icrc_bad")) == 0);
		CU_ASSERT(json_integer_value(json_object_get(d, "ring_dropped")) == 0 &&
			  json_integer_value(json_object_get(d, "lost")) == 0);
	}
	json_decref(reply);
	close(wire.to);
	CU_ASSERT(child_status(wire.pid) == 0);
	fclose(wire.lines);
	json_decref(wire.records);
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
	{ "the process opens its ports", test_open },
	{ "10,000 frames cross it untouched", test_untouched },
	{ "rules on the running process", test_rule },
	{ "a port goes down and comes back", test_port_comes_back },
	{ "TCP crosses it", test_tcp },
	{ "it leaves, and its accounts add up", test_leave },
};

int main(void)
{
	if (enter_namespace()) {
		printf("skipped: namespaces cannot be made here: %s\n", strerror(errno));
		return 77;
	}
	if (make_links()) {
		printf("skipped: veth pairs cannot be made here\n");
		return 77;
	}
	if (start_wire()) {
		printf("the wire does not start: %s\n", strerror(errno));
		return 1;
	}
	return test_run("wire_native", cases, sizeof cases / sizeof cases[0]);
}
