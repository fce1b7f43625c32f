/* SPDX-License-Identifier: MIT */
/*
 * Manual pages, made from the tables that the help, the loader and the protocols are made of, so that they say the same. `make man`
 * writes them: qpdrill.1 and qpdrill-scenario.5 by `qpdrill man`, those of the other programs by the programs.
 */
#ifndef QD_MANUAL_H
#define QD_MANUAL_H

#include <argp.h>
#include <stddef.h>
#include <stdio.h>

/* One subcommand: usage, text, options (manual.c). name: "qpdrill run". */
void manual_argp(FILE *out, const char *name, const struct argp *argp);
/* qpdrill-scenario(5), but for its head (manual_scenario.c). */
void manual_scenario(FILE *out);

/* A program that speaks JSON lines and takes no arguments but --help and --man (manual_program.c). */
struct manual_program {
	const char *name, *what; /* "qpdrill-wire"; one line */
	const char *usage;       /* "<REQUESTS >RECORDS" */
	const char *text;        /* what it does */
	const char *example;     /* a line for a shell, or NULL */
	const char *document;    /* where the protocol is described: "agents/wire.md" */
	/* Row i of its table of requests; *ret_name stays NULL behind the last. */
	void (*request)(size_t i, const char **ret_name, const char **ret_help);
	void (*more)(FILE *out); /* further sections of the page, or NULL */
	const char *const *see_also;
};

/* What --help (or --man, the page) asks for, to a descriptor that is taken over. The exit status. */
int manual_program_tell(const struct manual_program *p, const char *option, int fd);

#endif
