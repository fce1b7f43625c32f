/* SPDX-License-Identifier: MIT */
/*
 * What this machine can do: which lab may run here, what is missing for it, and the command that mends it. Looks only: nothing is
 * made, loaded or changed.
 */
#ifndef QD_DOCTOR_H
#define QD_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "error.h"

struct doctor {
	const char *root;     /* before each path of the system: "" (a folder that looks like one, in tests) */
	const char *search;   /* as PATH has it; each below root */
	const char *programs; /* the folder of qpdrill-agent and the others; not below root, as what follows */
	const char *packages; /* packages.txt */
	const char *cache;
	/* What a program says of its version ("7.2.22"), caller frees; NULL: nothing. */
	char *(*version)(const char *program);
	unsigned long long room_bytes; /* that the cache's file system has left; 0: not known */
};

/* {"schema":1,"labs":{"guest":{"possible":true,"why":""},"rxe":{...}},"checks":[{"group","check","state":"ok|note|missing","says",
 * "mend","stops":["guest","rxe"]}]}. New reference; a list of packages that cannot be read is an error. */
int doctor_examine(const struct doctor *d, json_t **ret, struct error *e);
void doctor_text(const json_t *doc, FILE *out, bool colour);
/* 0: some lab can run here; else 3. */
int doctor_exit_status(const json_t *doc);

#endif
