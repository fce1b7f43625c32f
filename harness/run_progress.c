/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdarg.h>
#include <string.h>

#include "../reports/report.h"
#include "log.h"
#include "units.h"

#define REDRAW_NS (50 * NSEC_PER_MSEC)

void progress_init(struct progress *p, FILE *out, bool is_terminal, bool quiet, size_t total)
{
	*p = (struct progress){ .out = out, .total = total, .live = is_terminal && !quiet, .quiet = quiet };
}

void progress_clear(struct progress *p)
{
	if (!p->line_open)
		return;
	fputs("\r\033[K", p->out);
	fflush(p->out);
	p->line_open = false;
}

static void draw(struct progress *p, const char *text)
{
	/* One line, whatever the terminal's width: the rest of a long one is cut by switching wrapping off around it. */
	fprintf(p->out, "\r\033[K\033[?7l%s\033[?7h", text);
	fflush(p->out);
	p->line_open = true;
	p->drawn_ns = now_ns();
}

void progress_note(struct progress *p, const char *fmt, ...)
{
	char text[512], safe[1024];
	va_list args;

	if (p->quiet)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	progress_clear(p);
	fprintf(p->out, "qpdrill: %s\n", log_escape(text, safe, sizeof(safe)));
	fflush(p->out);
}

/* Several may run: all that have begun and not ended are so many. */
static void position(const struct progress *p, char *buf, size_t size)
{
	size_t running = p->started > p->done ? p->started - p->done : 1;

	if (running > 1)
		snprintf(buf, size, "[%zu/%zu, %zu run]", p->done + 1, p->total, running);
	else
		snprintf(buf, size, "[%zu/%zu]", p->done + 1, p->total);
}

void progress_start(struct progress *p, const char *case_id)
{
	char text[600], at[80];

	p->started++;
	if (p->quiet)
		return;
	position(p, at, sizeof(at));
	if (!p->live) {
		progress_note(p, "%s %s: runs, %zu more after it", at, case_id, p->total > p->started ? p->total - p->started : 0);
		return;
	}
	snprintf(text, sizeof(text), "%s %s", at, case_id);
	draw(p, text);
}

void progress_step(struct progress *p, const char *case_id, int step, const char *what)
{
	char text[700], safe[900], at[80];

	if (!p->live || (p->line_open && now_ns() - p->drawn_ns < REDRAW_NS))
		return;
	position(p, at, sizeof(at));
	snprintf(text, sizeof(text), "%s %s: step %d, %s", at, case_id, step, what ? what : "");
	draw(p, log_escape(text, safe, sizeof(safe)));
}

void progress_end(struct progress *p, const json_t *result)
{
	p->done++;
	if (p->started < p->done)
		p->started = p->done;
	if (p->quiet)
		return;
	progress_clear(p);
	fprintf(p->out, "[%zu/%zu] ", p->done, p->total);
	report_text_case(p->out, result, p->live);
	fflush(p->out);
}
