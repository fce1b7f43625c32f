/* SPDX-License-Identifier: MIT */
/* What a word in a report means: any name that the harness prints, from the tables that it prints it from. */
#include "commands.h"

#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "log.h"
#include "names.h"
#include "scenario.h"
#include "verdict_hint.h"

#define SHOWN_MAX 6

static const struct name verdict_rows[] = {
	{ "pass", 0, "everything was as the specification says, and each fault has its proof" },
	{ "deviation", 0, "the device did otherwise than the specification says, as its profile documents and a run has shown" },
	{ "fail", 0, "the device did otherwise, and no entry of its profile excuses it" },
	{ "inconclusive", 0, "nothing can be said: a fault did not fire, or this machine was too late to tell" },
	{ "skip", 0, "not run: what it requires is not there" },
	{ "error", 0, "the harness, the lab or the guest failed, not the device" },
};

/* As rxe calls them, then as others do; what they count at the end that has them. */
static const struct name counter_rows[] = {
	{ "duplicate_request", 0, "responder: a request came again; its answer was lost or late, or its PSN is behind" },
	{ "out_of_seq_request", 0,
	  "responder: a request was ahead of the PSN expected; one before it was lost, or the PSNs differ" },
	{ "rcvd_seq_err", 0, "requester: a NAK for a PSN sequence error came" },
	{ "rcvd_rnr_err", 0, "requester: an RNR NAK came; each costs the peer's min_rnr_timer" },
	{ "send_rnr_err", 0, "responder: no receive was posted, an RNR NAK was sent" },
	{ "retry_exceeded_err", 0, "requester: retry_cnt was spent: RETRY_EXC_ERR" },
	{ "retry_rnr_exceeded_err", 0, "requester: rnr_retry was spent: RNR_RETRY_EXC_ERR" },
	{ "completer_retry_err", 0, "requester: the timer ran out and it sent again" },
	{ "qkey_viol_cntr", 0, "a datagram with another Q_Key was dropped without a word" },
	{ "bad_pkey_cntr", 0, "a packet with a P_Key that is not in the table was dropped without a word" },
	{ "link_downed", 0, "the port went down" },
	{ "local_ack_timeout_err", 0, "requester: the timer ran out and it sent again" },
	{ "rnr_nak_retry_err", 0, "requester: an RNR NAK came" },
	{ "out_of_buffer", 0, "responder: no receive was posted" },
	{ "out_of_sequence", 0, "responder: a request was ahead of the PSN expected" },
	{ "packet_seq_err", 0, "requester: a NAK for a PSN sequence error came" },
};

#define ROWS(what, rows)                                                                                                           \
	{                                                                                                                          \
		what, rows, sizeof(rows) / sizeof(*(rows))                                                                         \
	}
static const struct name_table verdict_words_table = ROWS("verdict", verdict_rows);
static const struct name_table counter_table = ROWS("counter", counter_rows);

static const struct name_table *const tables[] = { &names_status,    &names_event,         &names_state,    &names_errno,
						   &names_op,        &names_access,        &names_cm_event, &names_cm_reject,
						   &names_wc_opcode, &verdict_words_table, &counter_table,  NULL };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **word = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (*word)
			argp_error(state, "one word at a time");
		*word = arg;
		return 0;
	case ARGP_KEY_END:
		if (!*word)
			argp_error(state, "which word? RETRY_EXC_ERR, say");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_causes(const char *status)
{
	unsigned n = 0;

	for (const struct hint *h = verdict_hints; h->cause; h++)
		if (h->status && !strcmp(h->status, status))
			printf("%s%s\n", n++ ? "  or       " : "  likely   ", h->cause);
}

/* Which counters tell one cause of a status from another. */
static const struct {
	const char *status, *counters;
} tells[] = {
	{ "RETRY_EXC_ERR", "completer_retry_err, retry_exceeded_err here; at the peer duplicate_request (acknowledgements lost) or "
			   "out_of_seq_request (PSN ahead)" },
	{ "RNR_RETRY_EXC_ERR", "rcvd_rnr_err, retry_rnr_exceeded_err here; at the peer send_rnr_err" },
};

static void print_counters(const char *status)
{
	for (size_t i = 0; i < sizeof(tells) / sizeof(*tells); i++)
		if (!strcmp(tells[i].status, status))
			printf("  counters %s\n", tells[i].counters);
}

/* A word by itself, not a part of a longer one. */
static bool speaks_of(const char *path, const char *word)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0, len = strlen(word);
	bool found = false;

	while (in && !found && getline(&line, &size, in) >= 0)
		for (const char *at = strstr(line, word); at && !found; at = strstr(at + 1, word))
			found = !(at > line && strchr(letters, at[-1])) && !(at[len] && strchr(letters, at[len]));
	free(line);
	if (in)
		fclose(in);
	return found;
}

static void print_scenarios(const char *word)
{
	struct scenario_path *found = NULL;
	struct error e = { "" };
	size_t n = 0, shown = 0, all = 0;
	char *dir = NULL;

	if (data_path("scenarios", &dir, &e) || scenario_find(dir, &found, &n, &e)) {
		free(dir);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (speaks_of(found[i].path, word) && ++all <= SHOWN_MAX)
			printf("%s%s\n", shown++ ? "           " : "  shown by ", found[i].id);
		free(found[i].path);
		free(found[i].id);
	}
	if (all > SHOWN_MAX)
		printf("           and %zu more\n", all - SHOWN_MAX);
	free(found);
	free(dir);
}

int cmd_explain(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "WORD",
		.doc = "Says what a status, event, state, errno, verdict or counter means, what is likely to have caused it, and "
		       "which scenarios show it.",
	};
	const char *word = NULL, *near = NULL;
	const struct name *row;
	bool known = false;
	char safe[256];

	command_parse(&argp, argc, argv, &word);
	for (const struct name_table *const *t = tables; *t; t++) {
		row = name_find(*t, word);
		if (row) {
			printf("%s (%s): %s\n", row->text, (*t)->what, row->help ? row->help : "");
			known = true;
		} else if (!near && name_nearest(*t, word)) {
			near = name_nearest(*t, word)->text;
		}
	}
	if (!known) {
		log_error("there is no '%s'%s%s%s", log_escape(word, safe, sizeof(safe)), near ? ": did you mean " : "",
			  near ? near : "", near ? "?" : "");
		return EXIT_USAGE;
	}
	print_causes(word);
	print_counters(word);
	print_scenarios(word);
	return 0;
}
