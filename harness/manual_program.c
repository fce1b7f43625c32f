/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "manual.h"
#include "roff.h"

/* For a terminal: without the backquotes. */
static void put_plain(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text != '`')
			fputc(*text, out);
}

static void put_help(FILE *out, const struct manual_program *p)
{
	const char *name = NULL, *help = NULL;

	fprintf(out, "usage: %s %s\n", p->name, p->usage);
	put_plain(out, p->text);
	if (p->example)
		fprintf(out, "\n  %s", p->example);
	fputs("\n\nRequests:\n", out);
	for (size_t i = 0; p->request(i, &name, &help), name; i++, name = NULL)
		fprintf(out, "  %-16s%s\n", name, help);
	fprintf(out, "\n%s describes them. --man prints this program's manual page.\n", p->document);
}

static void put_page(FILE *out, const struct manual_program *p)
{
	const char *name = NULL, *help = NULL;

	roff_page(out, p->name, 1, p->what);
	roff_section(out, "synopsis");
	fprintf(out, ".B ");
	roff_text(out, p->name);
	roff_text(out, p->usage);
	roff_section(out, "description");
	roff_text(out, p->text);
	if (p->example)
		roff_verbatim(out, p->example);
	roff_section(out, "options");
	roff_item(out, "--help", "says the same in short");
	roff_item(out, "--man", "prints this page");
	roff_section(out, "requests");
	for (size_t i = 0; p->request(i, &name, &help), name; i++, name = NULL)
		roff_item(out, name, help);
	if (p->more)
		p->more(out);
	roff_section(out, "exit status");
	roff_text(out,
		  "0 after the end of its standard input, 1 when it could not go on, 2 for an argument that it does not know.");
	roff_section(out, "files");
	roff_item(out, p->document, "the protocol, with the fields of each request, reply and record");
	roff_see_also(out, p->see_also);
}

int manual_program_tell(const struct manual_program *p, const char *option, int fd)
{
	FILE *out = fdopen(fd, "w");

	if (!out)
		return 1;
	if (!strcmp(option, "--man"))
		put_page(out, p);
	else
		put_help(out, p);
	return fclose(out) ? 1 : 0;
}
