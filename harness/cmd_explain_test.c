/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <fcntl.h>
#include <unistd.h>

#include "names.h"
#include "test.h"
#include "verdict_hint.h"

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	CU_ASSERT(argp_parse(argp, argc, argv, 0, NULL, input) == 0);
}

/* What it prints of a word (caller frees), and its exit status. */
static char *explain(const char *word, int *ret_status)
{
	char name[] = "explain", arg[128], path[] = "/tmp/qpdrill-explain-XXXXXX", *argv[] = { name, arg, NULL },
	     *text = calloc(1, 1 << 16);
	int fd = mkstemp(path), out = dup(STDOUT_FILENO);

	MUST(text && fd >= 0 && out >= 0);
	snprintf(arg, sizeof(arg), "%s", word);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	*ret_status = cmd_explain(2, argv);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	CU_ASSERT(pread(fd, text, (1 << 16) - 1, 0) >= 0);
	close(fd);
	unlink(path);
	return text;
}

static const struct {
	const char *word;
	int status;
	const char *says[3];
} rows[] = {
	{ "RETRY_EXC_ERR", 0, { "WC status", "stale or foreign handshake", "shown by " } },
	{ "RNR_RETRY_EXC_ERR", 0, { "no receive posted", "send_rnr_err", "shown by " } },
	{ "QP_ACCESS_ERR", 0, { "async event", "shown by access/" } },
	{ "SQE", 0, { "SQE (" } },
	{ "ENOMEM", 0, { "errno" } },
	{ "deviation", 0, { "verdict", "profile" } },
	{ "duplicate_request", 0, { "counter", "responder" } },
	{ "RETRY_EXC_ERROR", EXIT_USAGE, { "" } },
	{ "%s\033[31m", EXIT_USAGE, { "" } },
};

static void test_words(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int status;
		char *text = explain(rows[i].word, &status);

		ROW_ASSERT(status == rows[i].status, "%s: exit status %d", rows[i].word, status);
		for (size_t k = 0; k < 3 && rows[i].says[k]; k++)
			ROW_ASSERT(strstr(text, rows[i].says[k]), "%s: expected '%s', seen\n%s", rows[i].word, rows[i].says[k],
				   text);
		free(text);
	}
}

/* The table of causes speaks of statuses that there are, and says of each error but the flush what is likely. */
static void test_statuses(void)
{
	static const char *const wanted[] = { "LOC_LEN_ERR",    "LOC_QP_OP_ERR", "LOC_PROT_ERR",   "WR_FLUSH_ERR",
					      "MW_BIND_ERR",    "BAD_RESP_ERR",  "LOC_ACCESS_ERR", "REM_INV_REQ_ERR",
					      "REM_ACCESS_ERR", "REM_OP_ERR",    "RETRY_EXC_ERR",  "RNR_RETRY_EXC_ERR" };

	for (const struct hint *h = verdict_hints; h->cause; h++)
		ROW_ASSERT(!h->status || !*h->status || name_find(&names_status, h->status), "there is no status %s", h->status);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		const struct hint *h = verdict_hints;

		while (h->cause && (!h->status || strcmp(h->status, wanted[i])))
			h++;
		ROW_ASSERT(h->cause, "no cause of %s", wanted[i]);
	}
}

static const struct test_case cases[] = {
	{ "words", test_words },
	{ "every status has its causes", test_statuses },
};

TEST_MAIN("explain", cases)
