/* SPDX-License-Identifier: MIT */
/* Keys, windows and what lies in memory. */
#include "agent.h"

#include <CUnit/Basic.h>

#include "agent_objects_rig.h"
#include "object.h"
#include "../harness/test.h"

static void test_keys(void)
{
	uint32_t lkey;

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx"), 0);
	lkey = fake.qp->first_sge[0].lkey;
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "lkey", "wrong"),
			0);
	CU_ASSERT_EQUAL(fake.qp->first_sge[1].lkey, ~lkey);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "lkey", "old"),
			-ENOENT);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s}", "op", "destroy", "type", "mr", "name", "tx"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mr_create", "name", "tx", "pd", "pd", "bytes", 4096), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx", "lkey", "old"), 0);
	CU_ASSERT_EQUAL(fake.qp->first_sge[2].lkey, lkey);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx"), 0);
	CU_ASSERT_NOT_EQUAL(fake.qp->first_sge[3].lkey, lkey);
	tear_down();
}

/* From each bind on a window has another key; a bind that failed leaves the one before it. */
static void test_windows(void)
{
	static const struct {
		int type;
		uint32_t step; /* from one key to the next */
	} rows[] = { { 1, 0x10 }, { 2, 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct ibv_send_wr *wr;
		json_t *reply;
		int64_t key;

		set_up();
		CU_ASSERT_EQUAL(to_rts(), 0);
		reply = rig_ask("{s:s, s:s, s:s, s:i}", "op", "mw_create", "name", "w", "pd", "pd", "type", rows[i].type);
		key = json_int(reply, "rkey", -1);
		CU_ASSERT_EQUAL(json_int(reply, "life", 0), 1);
		for (int n = 0; n < 2; n++) {
			reply = rig_ask("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:[s]}", "op", "post", "qp", "p.a", "wr", "BIND_MW",
					"mw", "w", "mr", "rx", "off", 64, "size", 128, "access", "REMOTE_READ");
			ROW_ASSERT(json_int(json_object_get(reply, "rkeys"), "w", -1) == key + rows[i].step, "row %zu", i);
			wr = &fake.qp->sent[n];
			ROW_ASSERT(wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.rkey == key + rows[i].step, "row %zu", i);
			ROW_ASSERT(wr->bind_mw.bind_info.length == 128 &&
					   wr->bind_mw.bind_info.mw_access_flags == IBV_ACCESS_REMOTE_READ,
				   "row %zu", i);
			complete(wr->wr_id, n ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
			CU_ASSERT_EQUAL(rig_rc(REQ("clock")), 0);
			key += n ? 0 : rows[i].step;
		}
		reply = rig_ask("{s:s, s:s, s:s, s:s, s:s}", "op", "post", "qp", "p.a", "wr", "BIND_MW", "mw", "w", "mr", "rx");
		ROW_ASSERT(json_int(json_object_get(reply, "rkeys"), "w", -1) == key + rows[i].step, "row %zu", i);
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i}", "op", "post", "qp", "p.a", "wr", "LOCAL_INV", "mr", "tx",
				       "inv_rkey", 77),
				0);
		ROW_ASSERT(fake.qp->sent[3].invalidate_rkey == 77 && fake.qp->sent[3].num_sge == 0, "row %zu", i);
		tear_down();
	}
}

static void test_windows_refused(void)
{
	static const struct {
		const char *request;
		int rc;
	} rows[] = {
		{ "{\"op\":\"mw_create\",\"name\":\"v\",\"pd\":\"pd\",\"type\":3}", -EINVAL },
		{ "{\"op\":\"mw_create\",\"name\":\"v\",\"pd\":\"nopd\",\"type\":1}", -ENOENT },
		{ "{\"op\":\"mw_create\",\"name\":\"w\",\"pd\":\"pd\",\"type\":1}", -EEXIST },
		{ "{\"op\":\"post\",\"qp\":\"p.a\",\"wr\":\"BIND_MW\",\"mw\":\"v\",\"mr\":\"rx\"}", -ENOENT },
		{ "{\"op\":\"post\",\"qp\":\"p.a\",\"wr\":\"BIND_MW\",\"mw\":\"w\",\"mr\":\"nomr\"}", -ENOENT },
		{ "{\"op\":\"post\",\"qp\":\"p.a\",\"wr\":\"BIND_MW\",\"mw\":\"w\",\"mr\":\"rx\",\"access\":[\"ALL\"]}", -EINVAL },
	};

	set_up();
	CU_ASSERT_EQUAL(to_rts(), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:i}", "op", "mw_create", "name", "w", "pd", "pd", "type", 2), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *req = json_loads(rows[i].request, 0, NULL), *reply;
		int id = rig.next_id++;

		CU_ASSERT_PTR_NOT_NULL_FATAL(req);
		json_object_set_new(req, "id", json_integer(id));
		CU_ASSERT_EQUAL(line_send(rig.line, req), 0);
		json_decref(req);
		reply = rig_wait(id);
		ROW_ASSERT(json_int(reply, "rc", 0) == rows[i].rc && json_str(reply, "error"), "row %zu", i);
	}
	CU_ASSERT_EQUAL(fake.qp->n_sent, 0);
	tear_down();
}

/* The device has its copy when the call returns: what is in the buffer then does not count any more. */
static void test_inline(void)
{
	static const struct {
		bool is_inline;
		int intact;
	} rows[] = { { false, 2 }, { true, 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		json_t *seen;

		set_up();
		CU_ASSERT_EQUAL(to_rts(), 0);
		CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:s, s:s, s:i, s:i, s:b}", "op", "post", "qp", "p.a", "wr", "SEND", "mr", "tx",
				       "count", 2, "tag", 5, "inline", rows[i].is_inline),
				0);
		CU_ASSERT_EQUAL(!!(fake.qp->sent[0].send_flags & IBV_SEND_INLINE), rows[i].is_inline);
		seen = rig_ask("{s:s, s:s, s:i, s:i}", "op", "verify", "mr", "tx", "count", 2, "tag", 5);
		ROW_ASSERT(json_int(seen, "intact", -1) == rows[i].intact, "row %zu", i);
		ROW_ASSERT(json_int(seen, "absent", -1) == 2 - rows[i].intact, "row %zu", i);
		tear_down();
	}
}

static void test_payload(void)
{
	json_t *v;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s}", "op", "seed", "seed", "0x5"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "fill", "mr", "tx", "size", 128, "count", 8, "tag", 0), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "fill", "mr", "tx", "size", 128, "count", 2, "tag", 4), 0);
	CU_ASSERT_EQUAL(
		rig_rc("{s:s, s:s, s:i, s:i, s:i, s:i}", "op", "fill", "mr", "tx", "size", 64, "off", 256, "index", 2, "tag", 4),
		0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "fill", "mr", "tx", "size", 128, "off", 384, "tag", 9), 0);
	v = rig_ask("{s:s, s:s, s:i, s:i, s:i}", "op", "verify", "mr", "tx", "size", 128, "count", 5, "tag", 4);
	CU_ASSERT_STRING_EQUAL(json_str(v, "indices"), "iipsa");
	CU_ASSERT_EQUAL(json_int(v, "intact", 0), 2);
	CU_ASSERT_EQUAL(json_int(v, "stale", 0), 1);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "verify", "mr", "tx", "size", 128, "count", 33, "tag", 4),
			-ERANGE);
	tear_down();
}

static void test_words(void)
{
	json_t *v;

	set_up();
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:i}", "op", "fill", "mr", "tx", "size", 8, "count", 4, "tag", 0), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:s}", "op", "fill", "mr", "tx", "size", 8, "count", 1, "word", "0x7"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:s}", "op", "fill", "mr", "tx", "size", 8, "off", 64, "word", "0x8"), 0);
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:s}", "op", "fill", "mr", "tx", "size", 8, "off", 128, "word", "0x9"), 0);
	v = rig_ask("{s:s, s:s, s:i, s:i, s:s, s:s}", "op", "verify", "mr", "tx", "size", 8, "count", 3, "word", "0x8", "was",
		    "0x7");
	CU_ASSERT_STRING_EQUAL(json_str(v, "indices"), "ais");
	CU_ASSERT_PTR_NULL(json_object_get(v, "twice"));
	v = rig_ask("{s:s, s:s, s:i, s:i, s:s, s:s, s:s}", "op", "verify", "mr", "tx", "size", 8, "count", 3, "word", "0x8", "was",
		    "0x7", "again", "0x9");
	CU_ASSERT_EQUAL(json_int(v, "twice", 0), 1);
	v = rig_ask("{s:s, s:s, s:i, s:i, s:s}", "op", "verify", "mr", "tx", "size", 8, "count", 4, "word", "0x8");
	CU_ASSERT_STRING_EQUAL(json_str(v, "indices"), "sisa");
	CU_ASSERT_EQUAL(rig_rc("{s:s, s:s, s:i, s:i, s:s}", "op", "verify", "mr", "tx", "size", 16, "count", 1, "word", "0x8"),
			-EINVAL);
	tear_down();
}

static const struct test_case cases[] = {
	{ "keys", test_keys },
	{ "windows", test_windows },
	{ "windows refused", test_windows_refused },
	{ "inline data is taken when it is posted", test_inline },
	{ "payload", test_payload },
	{ "words", test_words },
};

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	return test_run("agent_memory", cases, sizeof(cases) / sizeof(cases[0]));
}
