/* SPDX-License-Identifier: MIT */
/* What ends a run before its time: a signal, or --deadline. */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "commands.h"
#include "log.h"

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *user)
{
	struct run_stop *s = user;

	(void)source;
	s->now = true;
	if (++s->signals == 1) {
		progress_clear(s->progress);
		log_warn("%s: ends the run, puts everything back (once more: at once)", strsignal((int)si->ssi_signo));
		return 0;
	}
	/* Children die with us (PR_SET_PDEATHSIG); the journal undoes the rest at the next start. */
	_exit(EXIT_ERROR);
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *user)
{
	struct run_stop *s = user;

	(void)source;
	(void)usec;
	progress_clear(s->progress);
	log_warn("--deadline: the run ends now; what has not been run is reported as such");
	s->now = s->too_late = true;
	return 0;
}

/* By whoever started this: nohup. A shell without job control has SIGINT ignored by all that it puts into the background, and who
 * sends it there all the same means it. */
static bool is_ignored(int number)
{
	struct sigaction how;

	return number == SIGHUP && sigaction(number, NULL, &how) == 0 && how.sa_handler == SIG_IGN;
}

static int listen_to(struct run_stop *s, sd_event *loop, int number)
{
	sigset_t mask;

	/* A signalfd would hear it all the same. */
	if (is_ignored(number))
		return 0;
	sigemptyset(&mask);
	sigaddset(&mask, number);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	/* The source is the loop's. */
	return sd_event_add_signal(loop, NULL, number, on_signal, s);
}

int run_stop_open(struct run_stop *s, sd_event *loop, uint64_t deadline_ns, struct error *e)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sizeof(signals) / sizeof(*signals); i++)
		rc = listen_to(s, loop, signals[i]);
	if (rc >= 0 && deadline_ns)
		rc = sd_event_add_time_relative(loop, NULL, CLOCK_MONOTONIC, deadline_ns / 1000, 1, on_deadline, s);
	return rc < 0 ? error_set(e, rc, "event loop: %s", strerror(-rc)) : 0;
}
