/* SPDX-License-Identifier: MIT */
/*
 * Loads a scenario file: the only place that knows YAML (libfyaml). The grammar is data (tables in
 * scenario_grammar.c), used by the loader, by `qpdrill schema` and by the language reference.
 *
 * The result is one document per case: sweep expanded, `${}` replaced, scalars normalised, names checked.
 * Shapes: formats.md, "Case document".
 */
#ifndef QD_SCENARIO_H
#define QD_SCENARIO_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "error.h"

struct scenario_case {
	char *id;      /* "states/reset-discards~to=RESET" */
	json_t *sweep; /* {"to":"RESET"} or NULL */
	json_t *doc;
	size_t row; /* of the sweep's other names */
	/* The sweep goes over packets that only a run can find: this case finds them, scenario_follow() makes those of them. */
	bool first_pass;
};

struct scenario {
	char *path;
	char *id;     /* path below the root without suffix */
	char *source; /* the file's bytes, for copies and carets */
	size_t source_len;
	struct scenario_case *cases;
	size_t n_cases;
};

/* What standard input is called, as a file and as a scenario. */
#define SCENARIO_STDIN "<stdin>"
#define SCENARIO_STDIN_ID "stdin"

/* path: the file to read ("-" is standard input); id: what to call it. Mistakes go to d (all of them, not only the
 * first) and make it return -EINVAL; an unreadable file is a negative errno with e filled. *ret untouched then. */
int scenario_load(const char *path, const char *id, struct scenario *ret, struct diag *d, struct error *e);
/* The same from memory (tests, fuzzing). */
int scenario_load_text(const char *text, size_t len, const char *path, const char *id, struct scenario *ret, struct diag *d);
void scenario_release(struct scenario *s);

/* What a first pass is called where its packet's name would stand. */
#define SCENARIO_FIRST_PASS "first-pass"
/* The cases that follow from a first pass of s, one for each packet, in this order: [{"from":"a","class":"request","psn":0}].
 * *ret is a scenario of its own; its cases' ids have the packet's name where that of the pass stood. */
int scenario_follow(const struct scenario *s, const struct scenario_case *pass, const json_t *packets, struct scenario *ret,
		    struct error *e);
/* "a.request.0" of a packet (caller frees), and back (new reference; NULL: no such name). */
char *scenario_packet_name(const json_t *packet);
json_t *scenario_packet_parse(const char *name);
/* The place of a packet's class among those that there are, for a stable order; -1 unknown. */
int scenario_packet_class(const char *name);
const char *scenario_packet_class_name(int place); /* NULL beyond the last */

/* A JSON Schema (draft 2020-12) for editors, made from the grammar's tables and the fault table. New reference. */
json_t *scenario_schema(void);

/* Walks dir (or takes a single file) and returns sorted paths of *.yaml, without profiles/ and refs/. The id of each is its path
 * below the root: root is the nearest parent named `scenarios` (or dir itself, if it is called so), else dir or the file's folder.
 * What a run folder has kept of standard input is called as it was then. "-": standard input.
 */
struct scenario_path {
	char *path;
	char *id;
};
int scenario_find(const char *path, struct scenario_path **ret, size_t *ret_n, struct error *e);
void scenario_paths_free(struct scenario_path *paths, size_t n);

#endif
