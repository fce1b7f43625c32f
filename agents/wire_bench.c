/* SPDX-License-Identifier: MIT */
/*
 * How fast the wire carries RoCEv2 frames, beside a kernel bridge and a bare poll-and-send loop between the same two veth pairs in
 * the same run. Needs namespaces (or root), veth and `ip`; no RDMA. Rounds are interleaved; what is printed are medians with the
 * smallest and the largest, ratios within each round. Exit status 1 when a ratio is beyond its bar.
 *
 * wire_bench [ROUNDS [MILLISECONDS [json]]]
 */
#include <arpa/inet.h>
#include <jansson.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../harness/packet.h"
#include "../harness/units.h"
#include "wire_netns.h"
#include "wire_serve.h"

#define BATCH 32
#define WINDOW 256
#define FRAMES 1024
#define FRAME_ROOM 4400
#define LATENCY_SAMPLES 400
#define LATENCY_GAP_NS (500 * NSEC_PER_USEC)
#define ROUNDS_MAX 32

enum middle { BRIDGE, BARE, WIRE, WIRE_100, NUM_MIDDLES };
static const char *const middle_names[NUM_MIDDLES] = { "bridge", "bare loop", "wire", "wire, 100 rules" };
static const size_t sizes[] = { 4, 1024, 4096 }; /* payload; with the headers of the smallest the frame has 64 bytes */
#define NUM_SIZES (sizeof sizes / sizeof *sizes)
static const char *const sizes_text[NUM_SIZES] = { "64 B", "1 KiB", "4 KiB" };
static const double rate_bars[NUM_SIZES] = { 0.5, 0.8, 0.8 };
#define OWN_BAR 0.9
#define IDLE_BAR 1.3

/* Between source and sink. */
static struct shared {
	atomic_ullong received;
	atomic_bool ready; /* the child that was started last has opened its sockets */
} * shared;

static uint8_t (*frames)[FRAME_ROOM];

static int make_links(void)
{
	return run(
		"ip link add va type veth peer name wa && ip link add vb type veth peer name wb && ip link add br0 type bridge && "
		"for d in va wa vb wb; do echo 1 > /proc/sys/net/ipv6/conf/$d/disable_ipv6; ip link set $d mtu 4200 up; done; "
		"echo 1 > /proc/sys/net/ipv6/conf/br0/disable_ipv6; ip link set br0 mtu 4200 up");
}

static int open_socket(const char *dev, bool receives)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), bytes = 16 << 20, one = 1;
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = receives ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = (int)if_nametoindex(dev),
	};

	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one);
	return fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) ? -1 : fd;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void wait_ready(void)
{
	uint64_t deadline_ns = now_ns() + 5 * NSEC_PER_SEC;

	while (!atomic_load(&shared->ready) && now_ns() < deadline_ns)
		sched_yield();
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what stands in the middle ---- */

static void bare_loop(void)
{
	static uint8_t buf[65536];
	int fds[2] = { open_socket("wa", true), open_socket("wb", true) };
	struct pollfd p[2] = { { .fd = fds[0], .events = POLLIN }, { .fd = fds[1], .events = POLLIN } };

	atomic_store(&shared->ready, true);
	while (poll(p, 2, -1) >= 0)
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[i].revents & POLLIN ? recv(fds[i], buf, sizeof buf, MSG_DONTWAIT) : 0;

			if (n > 0 && send(fds[!i], buf, (size_t)n, 0) < 0)
				_exit(1);
		}
	_exit(1);
}

static void wire_loop(int rfd, int wfd)
{
	struct wire_serve *s = NULL;
	sd_event *loop = NULL;

	if (sd_event_new(&loop) < 0 || wire_serve_new(loop, rfd, wfd, &s, NULL))
		_exit(1);
	_exit(wire_serve_run(s) != 0);
}

/* What rules look like, none of which means a packet of the bench, though most let its sender and class pass. N is a number of
 * the rule's own. */
static const char *const matches[] = {
	"{'from':'p.a','class':'request','psn':N}",
	"{'from':'b','class':'ack','psn':N}",
	"{'from':'p.a','class':'request','nth':N0000}",
	"{'class':['nak','rnr_nak'],'nth':N}",
	"{'pair':'p','psn':{'op':'range','min':N,'max':200000},'transmission':1}",
	"{'from':'p.a','opcode':'RC_RDMA_READ_REQUEST','psn':N}",
	"{'class':'request','every':N0000}",
	"{'from':'p.a','size':{'op':'>=','value':N}}",
	"{'pair':'p','transmission':{'op':'>=','value':N}}",
	"{'from':'a','psn':{'op':'>=','value':N}}",
};

static void put_match(FILE *f, int rule)
{
	for (const char *at = matches[(unsigned)rule % (sizeof matches / sizeof *matches)]; *at; at++) {
		if (*at == 'N')
			fprintf(f, "%d", 100000 + rule);
		else
			fputc(*at == '\'' ? '"' : *at, f);
	}
}

/* Opens the wire and gives it its rules; what it says is read to the reply of the last request. */
static int instruct(int to, int from, int rules)
{
	FILE *f = fdopen(from, "r"), *out = fdopen(to, "w");
	char *line = NULL, last[32];
	size_t room = 0;
	int rc = -1;

	fprintf(out,
		"{\"id\":1,\"op\":\"open\",\"ports\":[{\"name\":\"a\",\"netdev\":\"wa\"},{\"name\":\"b\",\"netdev\":\"wb\"}]}\n"
		"{\"id\":2,\"op\":\"records\",\"packets\":\"none\"}\n"
		"{\"id\":3,\"op\":\"connect\",\"pair\":\"p\",\"ends\":[{\"agent\":\"a\",\"addr\":\"10.0.0.1\",\"qpn\":17,"
		"\"psn\":0},"
		"{\"agent\":\"b\",\"addr\":\"10.0.0.2\",\"qpn\":18,\"psn\":0}]}\n");
	for (int i = 0; i < rules; i++) {
		fprintf(out, "{\"id\":%d,\"op\":\"rule\",\"as\":\"r%d\",\"action\":\"drop\",\"match\":", 10 + i, i);
		put_match(out, i);
		fputs("}\n", out);
	}
	fprintf(out, "{\"id\":9,\"op\":\"clock\"}\n");
	fflush(out);
	snprintf(last, sizeof last, "\"id\":9}");
	while (rc && getline(&line, &room, f) > 0) {
		if (strstr(line, "\"error\""))
			fputs(line, stderr);
		if (strstr(line, last))
			rc = 0;
	}
	free(line);
	return rc;
}

static pid_t start_wire(int rules)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return -1;
	pid_t pid = child();

	if (pid == 0) {
		close(to[1]);
		close(from[0]);
		wire_loop(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	return instruct(to[1], from[0], rules) ? -1 : pid;
}

static pid_t start_middle(enum middle m)
{
	pid_t pid = 0;

	if (m == BRIDGE)
		return run("ip link set wa master br0 && ip link set wb master br0") ? -1 : 0;
	if (m == WIRE || m == WIRE_100)
		return start_wire(m == WIRE_100 ? 100 : 0);
	atomic_store(&shared->ready, false);
	pid = child();
	if (pid == 0)
		bare_loop();
	wait_ready();
	return pid;
}

static void stop_middle(enum middle m, pid_t pid)
{
	if (m != BRIDGE)
		end_child(pid);
	else if (run("ip link set wa nomaster && ip link set wb nomaster"))
		exit(1);
}

/* ---- flood and latency ---- */

static size_t make_frames(size_t payload)
{
	static const uint8_t a[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 }, b[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };
	struct packet_spec s = {
		.dmac = { 2, 0, 0, 0, 0, 2 }, .smac = { 2, 0, 0, 0, 0, 1 }, .opcode = 4, .dest_qp = 18, .payload_bytes = payload
	};
	int len = 0;

	memcpy(s.src, a, 16);
	memcpy(s.dst, b, 16);
	for (uint32_t i = 0; i < FRAMES; i++) {
		s.psn = i;
		len = packet_build(&s, frames[i], FRAME_ROOM);
	}
	return (size_t)len;
}

static void sink(void)
{
	static uint8_t room[BATCH][FRAME_ROOM];
	struct mmsghdr msgs[BATCH] = { 0 };
	struct iovec iov[BATCH];
	int fd = open_socket("vb", true);

	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ .iov_base = room[i], .iov_len = FRAME_ROOM };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	atomic_store(&shared->ready, true);
	for (;;) {
		int n = recvmmsg(fd, msgs, BATCH, MSG_WAITFORONE, NULL);

		if (n < 0)
			_exit(1);
		atomic_fetch_add(&shared->received, (unsigned)n);
	}
}

/* Frames a second with a closed window: nothing is lost, or the rate says so. */
static double flood(size_t payload, uint64_t ms)
{
	size_t len = make_frames(payload);
	struct mmsghdr msgs[BATCH] = { 0 };
	struct iovec iov[BATCH];
	unsigned long long sent = 0;
	int fd = open_socket("va", false);

	atomic_store(&shared->received, 0);
	atomic_store(&shared->ready, false);
	pid_t pid = child();

	if (pid == 0)
		sink();
	wait_ready();
	uint64_t began = now_ns(), end = began + ms * NSEC_PER_MSEC;

	while (now_ns() < end) {
		if (sent - atomic_load(&shared->received) > WINDOW - BATCH) {
			sched_yield();
			continue;
		}
		for (int i = 0; i < BATCH; i++) {
			iov[i] = (struct iovec){ .iov_base = frames[(sent + (unsigned)i) % FRAMES], .iov_len = len };
			msgs[i].msg_hdr.msg_iov = &iov[i];
			msgs[i].msg_hdr.msg_iovlen = 1;
		}
		int n = sendmmsg(fd, msgs, BATCH, 0);

		if (n > 0)
			sent += (unsigned)n;
	}
	double rate = (double)atomic_load(&shared->received) * 1e9 / (double)(now_ns() - began);

	end_child(pid);
	close(fd);
	return rate;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Median one-way time of single frames from va to another device, us. */
static double latency(const char *to)
{
	static double us[LATENCY_SAMPLES];
	size_t len = make_frames(64);
	int out = open_socket("va", false), in = open_socket(to, true), n = 0;
	static uint8_t buf[FRAME_ROOM];

	for (int i = 0; i < LATENCY_SAMPLES; i++) {
		struct pollfd p = { .fd = in, .events = POLLIN };
		struct timespec gap = { .tv_nsec = LATENCY_GAP_NS };
		uint64_t t = now_ns();

		if (send(out, frames[i], len, 0) < 0 || poll(&p, 1, 100) < 1 || recv(in, buf, sizeof buf, MSG_DONTWAIT) <= 0)
			continue;
		us[n++] = (double)(now_ns() - t) / 1000;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &gap, NULL); /* between samples the path is idle */
	}
	close(out);
	close(in);
	qsort(us, (size_t)n, sizeof *us, by_value);
	return n ? us[n / 2] : -1;
}

/* ---- the report ---- */

/* Of each round: frames a second, one-way times, and that of one veth pair alone. */
static double rates[NUM_MIDDLES][NUM_SIZES][ROUNDS_MAX], delays[NUM_MIDDLES][ROUNDS_MAX], direct[ROUNDS_MAX];

struct spread {
	double median, min, max;
};

static struct spread spread_of(const double *v, int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, v, (size_t)n * sizeof *v);
	qsort(sorted, (size_t)n, sizeof *sorted, by_value);
	return (struct spread){ sorted[n / 2], sorted[0], sorted[n - 1] };
}

/* Round by round: what disturbed the one has mostly disturbed the other too. less is taken off both. */
static struct spread ratio_of(const double *a, const double *b, const double *less, int n)
{
	double ratios[ROUNDS_MAX] = { 0 };

	for (int r = 0; r < n; r++)
		ratios[r] = (a[r] - (less ? less[r] : 0)) / (b[r] - (less ? less[r] : 0));
	return spread_of(ratios, n);
}

static void put_table(int rounds)
{
	printf("%-18s %22s %28s %28s %28s\n", "", "idle us", sizes_text[0], sizes_text[1], sizes_text[2]);
	for (int m = 0; m < NUM_MIDDLES; m++) {
		struct spread idle = spread_of(delays[m], rounds);

		printf("%-18s %8.1f [%4.1f,%6.1f]", middle_names[m], idle.median, idle.min, idle.max);
		for (size_t k = 0; k < NUM_SIZES; k++) {
			struct spread r = ratio_of(rates[m][k], rates[BRIDGE][k], NULL, rounds);

			printf(" %8.0f pps %4.2f [%4.2f,%4.2f]", spread_of(rates[m][k], rounds).median, r.median, r.min, r.max);
		}
		printf("\n");
	}
	printf("rates beside the bridge's of the same round; %.1f us of each idle time are the veth pair's own\n",
	       spread_of(direct, rounds).median);
}

/* True when the bar is kept. */
static bool put_bar(const char *what, struct spread s, double bar, bool at_most)
{
	bool kept = at_most ? s.median <= bar : s.median >= bar;

	printf("%-64s %5.2f [%4.2f,%4.2f] at %s %.2f: %s\n", what, s.median, s.min, s.max, at_most ? "most" : "least", bar,
	       kept ? "yes" : "NO");
	return kept;
}

/* The same bars as figures of a bench, one line of JSON. */
static void put_json(int rounds)
{
	static const char *const keys[NUM_SIZES] = { "wire_64", "wire_1k", "wire_4k" };
	json_t *figures = json_object();
	char name[96];

	for (size_t k = 0; k <= NUM_SIZES; k++) {
		bool idle = k == NUM_SIZES;
		struct spread s = idle ? ratio_of(delays[WIRE], delays[BARE], direct, rounds)
				       : ratio_of(rates[WIRE_100][k], rates[BRIDGE][k], NULL, rounds);

		snprintf(name, sizeof name, "wire %s%s",
			 idle ? "when idle, added delay to a bare loop's" : "with 100 rules to a bridge, ",
			 idle ? "" : sizes_text[k]);
		json_object_set_new(figures, idle ? "wire_idle" : keys[k],
				    json_pack("{s:s,s:f,s:f,s:f,s:i,s:s,s:f}", "name", name, "median", s.median, "min", s.min,
					      "max", s.max, "n", rounds, "unit", "x", idle ? "at_most" : "at_least",
					      idle ? IDLE_BAR : rate_bars[k]));
	}
	json_t *all = json_pack("{s:o}", "figures", figures);

	json_dumpf(all, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(all);
}

static bool put_bars(int rounds)
{
	char what[96];
	bool kept = true;

	for (size_t k = 0; k < NUM_SIZES; k++) {
		snprintf(what, sizeof what, "%s: wire with 100 rules beside the bridge", sizes_text[k]);
		kept &= put_bar(what, ratio_of(rates[WIRE_100][k], rates[BRIDGE][k], NULL, rounds), rate_bars[k], false);
		snprintf(what, sizeof what, "%s: wire with 100 rules beside the wire without", sizes_text[k]);
		kept &= put_bar(what, ratio_of(rates[WIRE_100][k], rates[WIRE][k], NULL, rounds), OWN_BAR, false);
	}
	kept &= put_bar("idle: added by the wire beside added by the bare loop",
			ratio_of(delays[WIRE], delays[BARE], direct, rounds), IDLE_BAR, true);
	kept &= put_bar("idle: the same with 100 rules", ratio_of(delays[WIRE_100], delays[BARE], direct, rounds), IDLE_BAR, true);
	return kept;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
	uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;

	signal(SIGPIPE, SIG_IGN);
	if (rounds < 1 || rounds > ROUNDS_MAX || ms < 10)
		return 2;
	if (enter_namespace() || make_links()) {
		printf("skipped: namespaces, veth pairs or bridges cannot be made here\n");
		return 77;
	}
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	frames = mmap(NULL, (size_t)FRAMES * FRAME_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || (void *)frames == MAP_FAILED)
		return 1;
	for (int r = 0; r < rounds; r++) {
		direct[r] = latency("wa");
		for (int m = 0; m < NUM_MIDDLES; m++) {
			pid_t pid = start_middle((enum middle)m);

			if (pid < 0)
				return 1;
			delays[m][r] = latency("vb");
			for (size_t k = 0; k < NUM_SIZES; k++)
				rates[m][k][r] = flood(sizes[k], ms);
			stop_middle((enum middle)m, pid);
		}
	}
	if (argc > 3) {
		put_json(rounds);
		return 0;
	}
	put_table(rounds);
	return put_bars(rounds) ? 0 : 1;
}
