/* SPDX-License-Identifier: MIT */
/*
 * Two agents on two linked RDMA devices: agent_guest_test [DEVICE_A DEVICE_B [AGENT]]. Without arguments it takes the first two
 * devices there are, and says 77 (skipped) when there are fewer.
 */
#include <CUnit/Basic.h>
#include <libgen.h>

#include "agent_peer.h"
#include "first_devices.h"

#define ROUNDS 60

static void test_hello(void)
{
	start(&peers[0], true);
	start(&peers[1], false);
	for (int i = 0; i < 2; i++) {
		const json_t *h = json_object_get(peers[i].hello, "hello");

		CU_ASSERT_EQUAL(json_int(h, "protocol", 0), 1);
		CU_ASSERT_EQUAL(json_int(h, "pid", 0), peers[i].proc.pid);
		CU_ASSERT(json_has(h, "caps", "RC"));
		CU_ASSERT_PTR_NOT_NULL(strchr(json_str(h, "clk"), '/'));
	}
	CU_ASSERT_EQUAL(peers[0].chatter, 1);
	CU_ASSERT_EQUAL(peers[1].chatter, 0);
}

/* Device, memory, queues and a QP of one end. */
static void create(struct peer *p)
{
	json_t *d = ask(p, "{s:s, s:s, s:s, s:i}", "op", "device_open", "name", "dev", "device", p->device, "port", 1);

	json_decref(p->dev);
	p->dev = d;
	CU_ASSERT_EQUAL_FATAL(json_int(d, "rc", -1), 0);
	CU_ASSERT_STRING_EQUAL(json_str(d, "state"), "ACTIVE");
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s}", "op", "seed", "seed", "0x2a"), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s}", "op", "pd_create", "name", "pd", "dev", "dev"), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "scq", "dev", "dev", "depth", 256), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "rcq", "dev", "dev", "depth", 256), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "tx", "pd", "pd", "bytes", 65536, "access",
			    "LOCAL_WRITE"),
			0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:i, s:[s]}", "op", "mr_create", "name", "rx", "pd", "pd", "bytes", 65536 * 8,
			    "access", "LOCAL_WRITE"),
			0);
	json_decref(p->mem);
	json_decref(p->trf);
	json_decref(p->qp);
	p->mem = ask(p, "{s:s, s:s, s:s, s:i, s:[s,s,s,s]}", "op", "mr_create", "name", "mem", "pd", "pd", "bytes", 65536, "access",
		     "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC");
	p->trf = ask(p, "{s:s, s:s, s:s, s:i, s:[s,s,s]}", "op", "mr_create", "name", "trf", "pd", "pd", "bytes", 1 << 20, "access",
		     "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ");
	p->qp = ask(p, "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:i, s:i, s:i}}", "op", "qp_create", "name", "q", "pd", "pd", "type",
		    "RC", "send_cq", "scq", "recv_cq", "rcq", "rx", "rx", "cap", "max_send_wr", 64, "max_recv_wr", 64,
		    "max_send_sge", 4);
	CU_ASSERT_EQUAL_FATAL(json_int(p->qp, "rc", -1), 0);
}

static int to_rts(struct peer *p, struct peer *q, int own_psn, int peer_psn, int timeout)
{
	int rc = ASK(p, "{s:s, s:s, s:s, s:{s:i, s:[s,s,s], s:n}, s:s}", "op", "qp_modify", "name", "q", "to", "INIT", "set",
		     "pkey_index", 0, "access", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC", "gid_index", "by", "connect");

	if (rc == 0)
		rc = ASK(p, "{s:s, s:s, s:i, s:i, s:i}", "op", "post_recv", "qp", "q", "count", 32, "size", 4096, "stride", 4096);
	if (rc == 0)
		rc = ASK(p, "{s:s, s:s, s:s, s:{s:i, s:I, s:s, s:i, s:i, s:i}, s:s}", "op", "qp_modify", "name", "q", "to", "RTR",
			 "set", "path_mtu", 1024, "dest_qpn", (json_int_t)json_int(q->qp, "qpn", 0), "dest_gid",
			 json_str(q->dev, "gid"), "rq_psn", peer_psn, "max_dest_rd_atomic", 4, "min_rnr_timer", 12, "by",
			 "connect");
	if (rc == 0)
		rc = ASK(p, "{s:s, s:s, s:s, s:{s:i, s:i, s:i, s:i, s:i}, s:s}", "op", "qp_modify", "name", "q", "to", "RTS", "set",
			 "timeout", timeout, "retry_cnt", 5, "rnr_retry", 5, "sq_psn", own_psn, "max_rd_atomic", 4, "by",
			 "connect");
	return rc;
}

static void test_connect(void)
{
	json_t *state;

	create(&peers[0]);
	create(&peers[1]);
	CU_ASSERT_EQUAL_FATAL(to_rts(&peers[0], &peers[1], 1000, 2000, 14), 0);
	CU_ASSERT_EQUAL_FATAL(to_rts(&peers[1], &peers[0], 2000, 1000, 14), 0);
	state = record_from(&peers[0], 0, "state", "q", "new", "RTS");
	CU_ASSERT_PTR_NOT_NULL_FATAL(state);
	CU_ASSERT_STRING_EQUAL(json_str(state, "old"), "RTR");
	CU_ASSERT_EQUAL(json_int(state, "errno", -1), 0);
	CU_ASSERT(json_has(state, "mask", "TIMEOUT") && json_has(state, "mask", "SQ_PSN") && !json_has(state, "mask", "AV"));
	CU_ASSERT_EQUAL(json_int(json_object_get(state, "queried"), "timeout", -1), 14);
	CU_ASSERT_EQUAL(json_int(json_object_get(state, "queried"), "dest_qpn", -1), json_int(peers[1].qp, "qpn", -2));
}

static void test_refused_move(void)
{
	size_t from = json_array_size(peers[0].records);
	json_t *state, *reply;

	reply = ask(&peers[0], "{s:s, s:s, s:s, s:{s:i}, s:s}", "op", "qp_modify", "name", "q", "to", "RTR", "set", "min_rnr_timer",
		    12, "by", "step");
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -EINVAL);
	CU_ASSERT_STRING_EQUAL(json_str(reply, "new"), "RTS");
	json_decref(reply);
	state = record_from(&peers[0], from, "state", "q", "asked", "RTR");
	CU_ASSERT_PTR_NOT_NULL_FATAL(state);
	CU_ASSERT_EQUAL(json_int(state, "errno", 0), EINVAL);
	CU_ASSERT(json_has(state, "mask", "MIN_RNR_TIMER"));
}

static void verify(struct peer *p, const char *mr, int off, int size, int count, int tag)
{
	json_t *v = ask(p, "{s:s, s:s, s:i, s:i, s:i, s:i}", "op", "verify", "mr", mr, "off", off, "size", size, "count", count,
			"tag", tag);

	CU_ASSERT_EQUAL(json_int(v, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_int(v, "intact", -1), count);
	json_decref(v);
}

static void test_send(void)
{
	size_t from_a = json_array_size(peers[0].records), from_b = json_array_size(peers[1].records);
	json_t *wc, *found;

	CU_ASSERT_EQUAL(ASK(&peers[0], "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "op", "post", "qp", "q", "as", "w", "wr",
			    "SEND", "mr", "tx", "size", 1000, "count", 8, "tag", 7, "sge", 3),
			0);
	wc = record_from(&peers[0], from_a, "wc", "q.send", "status", "SUCCESS");
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_STRING_EQUAL(json_str(wc, "opcode"), "SEND");
	for (int n = 0; n < 8; n += (int)json_int(wc, "count", 8)) {
		wc = record_from(&peers[1], from_b, "wc", "q.recv", "status", "SUCCESS");
		CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
		CU_ASSERT_EQUAL(json_int(wc, "bytes", 0), 1000 * json_int(wc, "count", 0));
		/* Go on right after it: the next may have come together with it. */
		while (from_b < json_array_size(peers[1].records) && json_array_get(peers[1].records, from_b) != wc)
			from_b++;
		from_b++;
	}
	found = ask(&peers[1], "{s:s, s:s, s:i, s:i, s:i}", "op", "find", "qp", "q", "size", 1000, "count", 9, "tag", 7);
	CU_ASSERT_STRING_EQUAL(json_str(found, "indices"), "iiiiiiiia");
	json_decref(found);
}

static void test_write_read_atomic(void)
{
	json_int_t rkey = (json_int_t)json_int(peers[1].mem, "rkey", 0);
	const char *raddr = json_str(peers[1].mem, "addr");
	size_t from = json_array_size(peers[0].records);
	json_t *wc;

	CU_ASSERT_EQUAL(ASK(&peers[0], "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:s, s:i, s:b}", "op", "post", "qp", "q", "wr",
			    "WRITE", "mr", "tx", "size", 3000, "count", 4, "tag", 9, "rkey", rkey, "raddr", raddr, "roff", 64,
			    "chain", 1),
			0);
	CU_ASSERT_PTR_NOT_NULL(record_from(&peers[0], from, "wc", "q.send", "opcode", "RDMA_WRITE"));
	verify(&peers[1], "mem", 64, 3000, 4, 9);
	CU_ASSERT_EQUAL(ASK(&peers[1], "{s:s, s:s, s:i, s:i, s:i, s:i}", "op", "fill", "mr", "mem", "off", 0, "size", 3000, "count",
			    4, "tag", 11),
			0);
	CU_ASSERT_EQUAL(ASK(&peers[0], "{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:s}", "op", "post", "qp", "q", "wr", "READ", "mr",
			    "tx", "size", 3000, "count", 4, "tag", 11, "rkey", rkey, "raddr", raddr),
			0);
	wc = record_from(&peers[0], from, "wc", "q.send", "opcode", "RDMA_READ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	for (int left = 4 - (int)json_int(wc, "count", 4); left > 0; left -= (int)json_int(wc, "count", 1)) {
		wc = record_from(&peers[0], json_array_size(peers[0].records), "wc", "q.send", "opcode", "RDMA_READ");
		CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	}
	verify(&peers[0], "tx", 0, 3000, 4, 11);
	CU_ASSERT_EQUAL(ASK(&peers[0], "{s:s, s:s, s:s, s:s, s:i, s:I, s:s, s:i}", "op", "post", "qp", "q", "wr", "FETCH_AND_ADD",
			    "mr", "tx", "size", 8, "rkey", rkey, "raddr", raddr, "add", 1),
			0);
	CU_ASSERT_PTR_NOT_NULL(record_from(&peers[0], from, "wc", "q.send", "opcode", "FETCH_ADD"));
}

static json_t *traffic_request(struct peer *p, struct peer *q, int tag, int peer_tag, int messages)
{
	(void)p;
	return json_pack("{s:s, s:s, s:s, s:[s,s,s], s:i, s:i, s:i, s:i, s:I, s:s, s:s, s:I}", "op", "traffic", "as", "t", "qp",
			 "q", "ops", "SEND", "WRITE", "READ", "depth", 16, "messages", messages, "tag", tag, "peer_tag", peer_tag,
			 "rkey", (json_int_t)json_int(q->trf, "rkey", 0), "raddr", json_str(q->trf, "addr"), "mr", "trf",
			 "deadline_ns", (json_int_t)(60 * NSEC_PER_SEC));
}

static void run_traffic(int tag, int messages)
{
	int id[2];

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ASK(&peers[i], "{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "t", "qp", "q",
				    "size", 1024, "tag", tag + i, "mr", "trf"),
				0);
	for (int i = 0; i < 2; i++)
		id[i] = send_request(&peers[i], traffic_request(&peers[i], &peers[!i], tag + i, tag + !i, messages));
	for (int i = 0; i < 2; i++) {
		json_t *stats = answer_of(&peers[i], id[i]);

		if (json_int(stats, "rc", -1)) {
			fprintf(stderr, "  agent %s: ", peers[i].name);
			json_dumpf(stats, stderr, JSON_COMPACT);
			fputc('\n', stderr);
		}
		CU_ASSERT_EQUAL(json_int(stats, "rc", -1), 0);
		CU_ASSERT_EQUAL(json_int(stats, "done", 0), messages);
		CU_ASSERT_EQUAL(json_int(stats, "received", 0), (messages + 2) / 3);
		CU_ASSERT_EQUAL(json_int(stats, "bad_payload", -1), 0);
		CU_ASSERT(json_int(stats, "p50_ns", 0) > 0 && json_int(stats, "p99_ns", 0) >= json_int(stats, "p50_ns", 0));
		json_decref(stats);
	}
	for (int i = 0; i < 2; i++) {
		json_t *v = ask(&peers[i], "{s:s, s:s, s:i}", "op", "traffic_verify", "as", "t", "messages", messages);

		CU_ASSERT(json_int(v, "total", 0) > 0);
		CU_ASSERT_EQUAL(json_int(v, "intact", -1), json_int(v, "total", -2));
		json_decref(v);
	}
}

static void test_traffic(void)
{
	json_t *ledger;

	run_traffic(20, 64);
	run_traffic(30, 500);
	ledger = ask(&peers[0], "{s:s, s:s}", "op", "ledger", "qp", "q");
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "send"), "in_flight", -1), 0);
	CU_ASSERT_EQUAL(json_int(json_object_get(ledger, "recv"), "discarded", -1), 0);
	CU_ASSERT(json_int(json_object_get(ledger, "recv"), "in_flight", -1) >= 64);
	json_decref(ledger);
}

static bool never(void *user)
{
	(void)user;
	return false;
}

static void test_background(void)
{
	json_t *stats;

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ASK(&peers[i], "{s:s, s:s, s:s, s:i, s:i, s:s}", "op", "traffic_prepare", "as", "bg", "qp", "q",
				    "size", 64, "tag", 40 + i, "mr", "trf"),
				0);
	for (int i = 0; i < 2; i++) {
		json_t *req = traffic_request(&peers[i], &peers[!i], 40 + i, 40 + !i, 0);

		json_object_set_new(req, "as", json_string("bg"));
		json_object_set_new(req, "background", json_true());
		json_object_set_new(req, "interval_ns", json_integer(2000000));
		json_object_del(req, "deadline_ns");
		CU_ASSERT_EQUAL(rc_of(answer_of(&peers[i], send_request(&peers[i], req))), 0);
	}
	CU_ASSERT_EQUAL(loop_wait(loop, never, NULL, now_ns() + 500 * NSEC_PER_MSEC), -ETIMEDOUT);
	for (int i = 0; i < 2; i++) {
		stats = ask(&peers[i], "{s:s, s:s}", "op", "traffic_stop", "as", "bg");
		CU_ASSERT_EQUAL(json_int(stats, "rc", -1), 0);
		CU_ASSERT(json_int(stats, "done", 0) > 5); /* of 250: an emulated machine may be busy */
		CU_ASSERT_EQUAL(json_int(stats, "done", 0), json_int(stats, "sent", -1));
		CU_ASSERT_EQUAL(json_int(stats, "errors", -1), 0);
		json_decref(stats);
	}
}

static void move(struct peer *p, const char *to)
{
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:s}", "op", "qp_modify", "name", "q", "to", to, "by", "recover"), 0);
}

/* A local error, the drain of both ends, a new life, and traffic in it. */
static void test_error_and_reset(void)
{
	size_t from = json_array_size(peers[0].records);
	json_t *wc, *drained;

	CU_ASSERT_EQUAL(ASK(&peers[0], "{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "op", "post", "qp", "q", "wr", "SEND", "mr", "tx",
			    "lkey", "wrong", "size", 64, "tag", 50),
			0);
	wc = record_from(&peers[0], from, "wc", "q.send", NULL, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT(strcmp(json_str(wc, "status"), "SUCCESS") != 0);
	CU_ASSERT_PTR_NULL(json_object_get(wc, "opcode"));
	for (int i = 0; i < 2; i++) {
		move(&peers[i], "ERR");
		drained = ask(&peers[i], "{s:s, s:s}", "op", "drain", "qp", "q");
		CU_ASSERT_EQUAL(json_int(drained, "rc", -1), 0);
		CU_ASSERT_EQUAL(json_int(drained, "in_flight", -1), 0);
		json_decref(drained);
		move(&peers[i], "RESET");
	}
	CU_ASSERT_EQUAL(to_rts(&peers[0], &peers[1], 9000000, 5000000, 14), 0);
	CU_ASSERT_EQUAL(to_rts(&peers[1], &peers[0], 5000000, 9000000, 14), 0);
	from = json_array_size(peers[0].records);
	run_traffic(60, 64);
	wc = record_from(&peers[0], from, "wc", "q.send", "status", "SUCCESS");
	CU_ASSERT_PTR_NOT_NULL_FATAL(wc);
	CU_ASSERT_EQUAL(json_int(wc, "life", 0), 2);
}

static void test_blocked_destroy(void)
{
	struct peer *p = &peers[0];
	size_t from = json_array_size(p->records);
	json_t *reply, *late;

	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s}", "op", "cq_hold", "cq", "scq"), 0);
	CU_ASSERT_EQUAL(
		ASK(p, "{s:s, s:s, s:s, s:s, s:i, s:i}", "op", "post", "qp", "q", "wr", "SEND", "mr", "tx", "size", 64, "tag", 70),
		0);
	CU_ASSERT_PTR_NOT_NULL(record_from(p, from, "wc", "q.send", NULL, NULL));
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s}", "op", "destroy", "type", "cq", "name", "scq"), -EBUSY);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s}", "op", "destroy", "type", "qp", "name", "q"), 0);
	reply = ask(p, "{s:s, s:s, s:s, s:i}", "op", "destroy", "type", "cq", "name", "scq", "deadline_ns", 200000000);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ETIMEDOUT);
	CU_ASSERT(json_bool(reply, "blocked", false));
	json_decref(reply);
	CU_ASSERT_PTR_NOT_NULL(record_from(p, from, "blocked", "scq", "verb", "ibv_destroy_cq"));
	CU_ASSERT_EQUAL(ASK(p, "{s:s}", "op", "clock"), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s}", "op", "dump", "why", "test"), 0);
	/* The thread is taken: what needs it waits, and is told so. */
	reply = ask(p, "{s:s, s:s, s:s, s:i}", "op", "pd_create", "name", "pd2", "dev", "dev", "deadline_ns", 100000000);
	CU_ASSERT_EQUAL(json_int(reply, "rc", 0), -ETIMEDOUT);
	CU_ASSERT(json_bool(reply, "blocked", false));
	json_decref(reply);
	from = json_array_size(p->records);
	reply = ask(p, "{s:s, s:s}", "op", "cq_ack", "cq", "scq");
	CU_ASSERT(json_int(reply, "acked", 0) > 0);
	json_decref(reply);
	late = record_from(p, from, "verb", "scq", "verb", "ibv_destroy_cq");
	CU_ASSERT_PTR_NOT_NULL_FATAL(late);
	CU_ASSERT(json_bool(late, "late", false));
	CU_ASSERT_EQUAL(json_int(late, "errno", -1), 0);
	CU_ASSERT_EQUAL(ASK(p, "{s:s, s:s, s:s, s:i}", "op", "cq_create", "name", "scq", "dev", "dev", "depth", 16), 0);
}

static void test_counters(void)
{
	json_t *reply = ask(&peers[0], "{s:s, s:s}", "op", "counters", "dev", "dev");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT(json_is_integer(json_object_get(json_object_get(reply, "values"), "bad_pkey_cntr")));
	json_decref(reply);
}

static unsigned count_fds(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static long rss_pages(pid_t pid)
{
	char path[64], text[128] = "", *after_size;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "r");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	after_size = strchr(text, ' ');
	return after_size ? strtol(after_size, NULL, 10) : 0;
}

static void release(struct peer *p)
{
	json_t *reply = ask(p, "{s:s}", "op", "release");

	CU_ASSERT_EQUAL(json_int(reply, "rc", -1), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(reply, "left")), 0);
	json_decref(reply);
}

static void test_release(void)
{
	struct peer *p = &peers[0];
	unsigned fds;
	long rss;

	release(&peers[0]);
	release(&peers[1]);
	create(p);
	CU_ASSERT_EQUAL(json_int(p->qp, "life", 0), 1);
	release(p);
	fds = count_fds(p->proc.pid);
	for (int i = 0; i < ROUNDS / 4; i++) {
		create(p);
		release(p);
	}
	rss = rss_pages(p->proc.pid);
	for (int i = 0; i < ROUNDS; i++) {
		create(p);
		release(p);
		json_array_clear(p->records);
	}
	CU_ASSERT_EQUAL(count_fds(p->proc.pid), fds);
	fprintf(stderr, "  (resident: %ld pages after %d rounds, %ld after %d)\n", rss, ROUNDS / 4, rss_pages(p->proc.pid), ROUNDS);
	CU_ASSERT(rss_pages(p->proc.pid) < rss + 64);
}

static void test_end_of_file(void)
{
	for (int i = 0; i < 2; i++) {
		struct peer *p = &peers[i];
		uint64_t until = now_ns() + 5 * NSEC_PER_SEC;

		create(p); /* something to release */
		CU_ASSERT_EQUAL(p->garbage, 0);
		line_free(p->line);
		p->line = NULL;
		while (!proc_poll(&p->proc) && now_ns() < until)
			sd_event_run(loop, 1000);
		CU_ASSERT(p->proc.ended);
		CU_ASSERT_EQUAL(p->proc.status, 0);
		proc_stop(&p->proc, SIGKILL, 0);
		json_decref(p->records);
		json_decref(p->replies);
		json_decref(p->hello);
		json_decref(p->dev);
		json_decref(p->qp);
		json_decref(p->mem);
		json_decref(p->trf);
	}
}

static void find_agent(void)
{
	ssize_t n = readlink("/proc/self/exe", agent_path, sizeof(agent_path) - 32);

	agent_path[n > 0 ? n : 0] = '\0';
	/* build/test/agents/agent_guest_test -> build/qpdrill-agent */
	for (int i = 0; i < 3; i++)
		dirname(agent_path);
	strncat(agent_path, "/qpdrill-agent", 31);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{ "hello after a launcher's banner", test_hello },
		{ "connect", test_connect },
		{ "a refused move", test_refused_move },
		{ "SEND", test_send },
		{ "WRITE, READ, atomic", test_write_read_atomic },
		{ "traffic", test_traffic },
		{ "traffic in the background", test_background },
		{ "error, drain, reset, traffic", test_error_and_reset },
		{ "blocked destroy", test_blocked_destroy },
		{ "counters", test_counters },
		{ "release", test_release },
		{ "end of file", test_end_of_file },
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = { { "agent on devices", NULL, NULL, NULL, NULL, tests }, CU_SUITE_INFO_NULL };
	unsigned failed;

	signal(SIGPIPE, SIG_IGN);
	find_agent();
	if (argc >= 3) {
		peers[0].device = argv[1];
		peers[1].device = argv[2];
		if (argc > 3)
			snprintf(agent_path, sizeof(agent_path), "%s", argv[3]);
	} else if (!first_devices(&peers[0].device, &peers[1].device)) {
		printf("skipped: fewer than two RDMA devices in /sys/class/infiniband\n");
		return 77;
	}
	if (sd_event_new(&loop) < 0 || CU_initialize_registry() != CUE_SUCCESS || CU_register_suites(suites) != CUE_SUCCESS)
		return 1;
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed ? 1 : 0;
}
