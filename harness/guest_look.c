/* SPDX-License-Identifier: MIT */
/* What a guest says of itself: words on its control port, and what it does when it seems to hang. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"
#include "log.h"
#include "units.h"

#define LOOK_TIMEOUT_NS (3 * NSEC_PER_SEC)
#define PANIC_TIMEOUT_NS (3 * NSEC_PER_SEC)

int guest_await_word(const struct guest *g, const char *word, uint64_t end_ns, const struct guest_patience *patience,
		     struct error *e)
{
	char line[64];
	size_t len = 0;

	for (;;) {
		struct pollfd p[] = { { .fd = g->control, .events = POLLIN },
				      { .fd = patience ? patience->fd : -1, .events = POLLIN } };
		uint64_t now = now_ns();

		if (patience && patience->ends(patience->user))
			return error_set(e, -EINTR, "the run ends before the guest said '%s'", word);
		if (now >= end_ns)
			return error_set(e, -ETIMEDOUT, "the guest did not say '%s'", word);
		if (poll(p, 2, (int)((end_ns - now) / NSEC_PER_MSEC) + 1) <= 0 || !p[0].revents)
			continue;
		ssize_t n = read(p[0].fd, line + len, sizeof line - 1 - len);

		if (n <= 0)
			return error_set(e, -EPIPE, "QEMU ended before the guest said '%s'", word);
		len += (size_t)n;
		line[len] = '\0';
		if (!strchr(line, '\n') && len < sizeof line - 1)
			continue;
		line[strcspn(line, "\n")] = '\0';
		return strcmp(line, word) == 0 ? 0 : error_set(e, -EIO, "the guest said '%s' and not '%s'", line, word);
	}
}

/* All of them but those that only compute. */
static int write_text(FILE *f, const char *text)
{
	static const char *const left_out[] = { "FCW", "FPR", "XMM", "YMM", "ZMM", "Opmask" };
	int rc = 0;

	for (const char *p = text; *p && rc >= 0;) {
		size_t len = strcspn(p, "\n");
		bool out = false;

		for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
			out |= strncmp(p, left_out[i], strlen(left_out[i])) == 0;
		if (!out)
			rc = fprintf(f, "%.*s\n", (int)strcspn(p, "\r\n"), p);
		p += len + (p[len] == '\n');
	}
	return rc;
}

static int write_registers(struct guest *g, const char *path, uint64_t end_ns, struct error *e)
{
	json_t *text = NULL;
	int rc = guest_qmp_run(&g->qmp, "human-monitor-command", json_pack("{s:s}", "command-line", "info registers -a"), -1,
			       end_ns, &text, e);
	FILE *f = rc == 0 ? fopen(path, "we") : NULL;

	if (rc == 0 && (!f || write_text(f, json_string_value(text) ?: "") < 0))
		rc = error_set(e, -EIO, "%s: %s", path, strerror(errno));
	if (f && fclose(f) != 0 && rc == 0)
		rc = error_set(e, -EIO, "%s: %s", path, strerror(errno));
	json_decref(text);
	return rc;
}

void guest_look(struct guest *g, const char *path)
{
	uint64_t end_ns = now_ns() + LOOK_TIMEOUT_NS;
	struct error e;

	if (g->proc.pid <= 0 || g->qmp.fd < 0)
		return;
	if (write_registers(g, path, end_ns, &e) < 0)
		log_debug("guest: no registers: %s", e.text);
	if (g->control >= 0 && dprintf(g->control, "look\n") > 0 && guest_await_word(g, "looked", end_ns, NULL, &e) == 0)
		return;
	/* Nothing runs in it that would answer. An interrupt that cannot be masked makes its kernel panic, and say where it was. */
	if (guest_qmp_run(&g->qmp, "inject-nmi", NULL, -1, end_ns + PANIC_TIMEOUT_NS, NULL, &e) < 0)
		log_debug("guest: %s", e.text);
	else if (!proc_wait(&g->proc, PANIC_TIMEOUT_NS))
		log_debug("guest: no panic follows an NMI");
}
