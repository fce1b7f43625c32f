/* SPDX-License-Identifier: MIT */
#include "extended.h"

#include <CUnit/Basic.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../harness/test.h"
#include "object.h"

/* A queue pair that writes down what it is told. */
static struct {
	struct ibv_qp_ex ex;
	char told[256];
	int err;
} fake;

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	(void)qp;
	return &fake.ex;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
	size_t len = strlen(fake.told);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fake.told + len, sizeof(fake.told) - len, fmt, ap);
	va_end(ap);
}

static void f_start(struct ibv_qp_ex *qp)
{
	(void)qp;
	tell("start");
}

static int f_complete(struct ibv_qp_ex *qp)
{
	(void)qp;
	tell(" complete");
	return fake.err;
}

static void f_send(struct ibv_qp_ex *qp)
{
	tell(" %d:send", (int)qp->wr_id);
}

static void f_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	tell(" %d:send_imm(%u)", (int)qp->wr_id, ntohl(imm));
}

static void f_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	tell(" %d:send_inv(%u)", (int)qp->wr_id, rkey);
}

static void f_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	tell(" %d:write(%u,%d)", (int)qp->wr_id, rkey, (int)addr);
}

static void f_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, __be32 imm)
{
	tell(" %d:write_imm(%u,%d,%u)", (int)qp->wr_id, rkey, (int)addr, ntohl(imm));
}

static void f_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	tell(" %d:read(%u,%d)", (int)qp->wr_id, rkey, (int)addr);
}

static void f_cmp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	tell(" %d:cmp_swp(%u,%d,%d,%d)", (int)qp->wr_id, rkey, (int)addr, (int)compare, (int)swap);
}

static void f_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, uint64_t add)
{
	tell(" %d:fetch_add(%u,%d,%d)", (int)qp->wr_id, rkey, (int)addr, (int)add);
}

static void f_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	tell(" %d:local_inv(%u)", (int)qp->wr_id, rkey);
}

static void f_bind(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	(void)mw;
	tell(" %d:bind_mw(%u,%d)", (int)qp->wr_id, rkey, (int)info->length);
}

static void f_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
	(void)qp;
	tell(" srqn(%u)", srqn);
}

static void f_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	(void)qp;
	tell(" sge(%u,%d,%u)", lkey, (int)addr, length);
}

static void f_sge_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_sge *list)
{
	(void)qp;
	(void)list;
	tell(" sges(%zu)", n);
}

static void f_inline(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	(void)qp;
	tell(" inline(%d,%zu)", (int)(uintptr_t)addr, length);
}

static void f_inline_list(struct ibv_qp_ex *qp, size_t n, const struct ibv_data_buf *list)
{
	(void)qp;
	(void)list;
	tell(" inlines(%zu)", n);
}

static const struct ibv_qp_ex calls = {
	.wr_start = f_start,
	.wr_complete = f_complete,
	.wr_send = f_send,
	.wr_send_imm = f_send_imm,
	.wr_send_inv = f_send_inv,
	.wr_rdma_write = f_write,
	.wr_rdma_write_imm = f_write_imm,
	.wr_rdma_read = f_read,
	.wr_atomic_cmp_swp = f_cmp,
	.wr_atomic_fetch_add = f_add,
	.wr_local_inv = f_inv,
	.wr_bind_mw = f_bind,
	.wr_set_xrc_srqn = f_srqn,
	.wr_set_sge = f_sge,
	.wr_set_sge_list = f_sge_list,
	.wr_set_inline_data = f_inline,
	.wr_set_inline_data_list = f_inline_list,
};

static struct ibv_sge segments[] = { { .addr = 100, .length = 8, .lkey = 5 }, { .addr = 200, .length = 8, .lkey = 5 } };

#define RDMA(op, flags)                                                                                                            \
	{                                                                                                                          \
		.opcode = op, .send_flags = flags, .imm_data = 9, .wr.rdma = {.remote_addr = 64, .rkey = 7 }                       \
	}

static void each_operation(void)
{
	static const struct {
		struct ibv_send_wr wr;
		int n_sge;
		const char *told;
	} rows[] = {
		{ { .opcode = IBV_WR_SEND }, 1, "start 3:send sge(5,100,8) complete" },
		{ { .opcode = IBV_WR_SEND }, 0, "start 3:send sges(0) complete" },
		{ { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE }, 1, "start 3:send inline(100,8) complete" },
		{ { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = 4 }, 2, "start 3:send_inv(4) sges(2) complete" },
		{ { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 4 }, 0, "start 3:local_inv(4) complete" },
		{ RDMA(IBV_WR_RDMA_WRITE, IBV_SEND_INLINE), 2, "start 3:write(7,64) inlines(2) complete" },
		{ RDMA(IBV_WR_RDMA_READ, 0), 2, "start 3:read(7,64) sges(2) complete" },
		{ { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		    .wr.atomic = { .remote_addr = 64, .compare_add = 1, .swap = 2, .rkey = 7 } },
		  1,
		  "start 3:cmp_swp(7,64,1,2) sge(5,100,8) complete" },
		{ { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .wr.atomic = { .remote_addr = 64, .compare_add = 1, .rkey = 7 } },
		  1,
		  "start 3:fetch_add(7,64,1) sge(5,100,8) complete" },
		{ { .opcode = IBV_WR_BIND_MW, .bind_mw = { .rkey = 6, .bind_info.length = 32 } },
		  0,
		  "start 3:bind_mw(6,32) complete" },
	};
	struct ibv_qp ibqp = { .qp_type = IBV_QPT_RC };
	struct qp qp = { .qp = &ibqp, .extended = true };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ibv_send_wr wr = rows[i].wr, *bad = NULL;

		fake.ex = calls;
		fake.told[0] = '\0';
		wr.wr_id = 3;
		wr.sg_list = segments;
		wr.num_sge = rows[i].n_sge;
		ROW_ASSERT(qp_send(&qp, &wr, &bad) == 0 && !bad, "row %zu", i);
		ROW_ASSERT(strcmp(fake.told, rows[i].told) == 0, "row %zu told %s", i, fake.told);
		ROW_ASSERT(fake.ex.wr_flags == wr.send_flags, "row %zu", i);
	}
}

/* A list is one transaction; when it fails nothing of it was taken. */
static void a_list(void)
{
	struct ibv_qp ibqp = { .qp_type = IBV_QPT_RC };
	struct qp qp = { .qp = &ibqp, .extended = true };
	struct ibv_send_wr list[2] = {
		{ .wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(9), .sg_list = segments, .num_sge = 1 },
		{ .wr_id = 2, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(8), .sg_list = segments, .num_sge = 1 },
	};
	struct ibv_send_wr *bad = NULL;

	list[0].next = &list[1];
	fake.ex = calls;
	fake.told[0] = '\0';
	fake.err = ENOSPC;
	CU_ASSERT_EQUAL(qp_send(&qp, list, &bad), ENOSPC);
	CU_ASSERT_PTR_EQUAL(bad, list);
	CU_ASSERT_STRING_EQUAL(fake.told, "start 1:send_imm(9) sge(5,100,8) 2:write_imm(0,0,8) sge(5,100,8) complete");
	fake.err = 0;
}

/* Each names its SRQ, between the operation and its data; what never leaves this end names none. */
static void of_an_extended_reliable_connection(void)
{
	struct ibv_qp ibqp = { .qp_type = IBV_QPT_XRC_SEND };
	struct qp qp = { .qp = &ibqp, .extended = true };
	struct ibv_send_wr list[3] = {
		{ .wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = segments, .num_sge = 1, .qp_type.xrc.remote_srqn = 40 },
		{ .wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = 4, .qp_type.xrc.remote_srqn = 41 },
		{ .wr_id = 3, .opcode = IBV_WR_RDMA_READ, .sg_list = segments, .num_sge = 2, .qp_type.xrc.remote_srqn = 42 },
	};
	struct ibv_send_wr *bad = NULL;

	list[0].next = &list[1];
	list[1].next = &list[2];
	fake.ex = calls;
	fake.told[0] = '\0';
	CU_ASSERT_EQUAL(qp_send(&qp, list, &bad), 0);
	CU_ASSERT_STRING_EQUAL(fake.told,
			       "start 1:send srqn(40) sge(5,100,8) 2:local_inv(4) 3:read(0,0) srqn(42) sges(2) complete");
	CU_ASSERT_EQUAL(extended_send_ops(IBV_QPT_XRC_SEND), extended_send_ops(IBV_QPT_RC));
}

static const struct test_case cases[] = {
	{ "each operation and its data", each_operation },
	{ "a list is one transaction", a_list },
	{ "of an extended reliable connection", of_an_extended_reliable_connection },
};

TEST_MAIN("extended", cases)
