/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "test.h"

static void complete(const struct name_table *table, int first, int last)
{
	ROW_ASSERT(table->n == (size_t)(last - first + 1), "%s has %zu rows", table->what, table->n);
	for (int v = first; v <= last; v++)
		ROW_ASSERT(strcmp(name_of(table, v), "?") != 0, "%s %d has no name", table->what, v);
}

static void every_value_has_a_name(void)
{
	complete(&names_status, IBV_WC_SUCCESS, IBV_WC_TM_RNDV_INCOMPLETE);
	CU_ASSERT_EQUAL(IBV_WC_TM_RNDV_INCOMPLETE, 23);
	complete(&names_event, IBV_EVENT_CQ_ERR, IBV_EVENT_WQ_FATAL);
	complete(&names_state, IBV_QPS_RESET, IBV_QPS_ERR);
	complete(&names_cm_event, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static const struct name_table *const tables[] = {
	&names_status,  &names_state,    &names_event, &names_op,        &names_access,
	&names_qp_type, &names_cm_event, &names_errno, &names_wc_opcode, &names_cm_reject,
};

static void every_name_is_found_again(void)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (size_t i = 0; i < tables[t]->n; i++) {
			const struct name *row = &tables[t]->rows[i];

			ROW_ASSERT(name_find(tables[t], row->text) == row, "%s %s", tables[t]->what, row->text);
			/* `XRC` stands for both ends, and is made as the one that sends. */
			ROW_ASSERT(!strcmp(name_of(tables[t], row->value), strcmp(row->text, "XRC") ? row->text : "XRC_SEND"),
				   "%s %s", tables[t]->what, row->text);
			ROW_ASSERT(row->help && row->help[0], "%s %s has no help", tables[t]->what, row->text);
		}
		CU_ASSERT_PTR_NULL(name_find(tables[t], "NO_SUCH_NAME"));
		CU_ASSERT_STRING_EQUAL(name_of(tables[t], -12345), "?");
	}
}

static void values_are_those_of_the_header(void)
{
	static const struct {
		const struct name_table *table;
		const char *text;
		int value;
	} rows[] = {
		{ &names_status, "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR },
		{ &names_status, "WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR },
		{ &names_op, "WRITE", IBV_WR_RDMA_WRITE },
		{ &names_op, "FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
		{ &names_event, "QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED },
		{ &names_access, "REMOTE_READ", IBV_ACCESS_REMOTE_READ },
		{ &names_wc_opcode, "RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM },
		{ &names_errno, "EINVAL", 22 },
		{ &names_errno, "0", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct name *n = name_find(rows[i].table, rows[i].text);

		ROW_ASSERT(n && n->value == rows[i].value, "%s", rows[i].text);
	}
}

static void nearest(void)
{
	static const struct {
		const struct name_table *table;
		const char *text, *want;
	} rows[] = {
		{ &names_status, "RETRY_EXEC_ERR", "RETRY_EXC_ERR" },
		{ &names_status, "retry_exc_err", "RETRY_EXC_ERR" },
		{ &names_status, "RNR_RETRY_EXC", "RNR_RETRY_EXC_ERR" },
		{ &names_status, "banana", NULL },
		{ &names_state, "rts", "RTS" },
		{ &names_op, "WRITE-WITH-IMM", "WRITE_WITH_IMM" },
		{ &names_op, "", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct name *n = name_nearest(rows[i].table, rows[i].text);

		ROW_ASSERT(rows[i].want ? n && !strcmp(n->text, rows[i].want) : !n, "'%s' gave %s", rows[i].text,
			   n ? n->text : "nothing");
	}
	CU_ASSERT_EQUAL(name_distance("kitten", "sitting"), 3);
	CU_ASSERT_EQUAL(name_distance("", "abc"), 3);
}

static void every_event_is_of_something(void)
{
	static const char *const of[] = {
		[EVENT_OF_DEV] = "DEVICE_FATAL",
		[EVENT_OF_PORT] = "PORT_ACTIVE PORT_ERR LID_CHANGE PKEY_CHANGE SM_CHANGE CLIENT_REREGISTER GID_CHANGE",
		[EVENT_OF_QP] =
			"QP_FATAL QP_REQ_ERR QP_ACCESS_ERR COMM_EST SQ_DRAINED PATH_MIG PATH_MIG_ERR QP_LAST_WQE_REACHED WQ_FATAL",
		[EVENT_OF_CQ] = "CQ_ERR",
		[EVENT_OF_SRQ] = "SRQ_ERR SRQ_LIMIT_REACHED",
	};

	for (size_t i = 0; i < names_event.n; i++) {
		const struct name *n = &names_event.rows[i];

		ROW_ASSERT(strstr(of[event_subject(n->value)], n->text) != NULL, "%s is of %d", n->text, (int)event_subject(n->value));
	}
}

static const struct test_case cases[] = {
	{ "every event is of something", every_event_is_of_something },
	{ "every value has a name", every_value_has_a_name },
	{ "every name is found again", every_name_is_found_again },
	{ "values are those of the header", values_are_those_of_the_header },
	{ "nearest", nearest },
};

TEST_MAIN("names", cases)
