/* SPDX-License-Identifier: MIT */
/* A report format is one file in this folder with one `const struct report_ops`, listed in report_table.c. It reads a run folder
 * and writes one file (or stdout); it never calls the controller. */
#ifndef QD_REPORT_H
#define QD_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "../harness/error.h"

/* A run as loaded from its folder: run.json, and verdict.json and plan.json of each case in the file order of run.json's `cases`.
 */
struct report_run {
	const char *dir;
	json_t *run;
	json_t *cases; /* array of {"case","plan","verdict","dir"} */
};

struct report_ops {
	const char *name; /* "text" "json" "junit" "html" */
	const char *file; /* in the run folder: "junit.xml"; NULL: stdout only */
	const char *help;
	int (*write)(const struct report_run *run, FILE *out, bool colour, struct error *e);
};

extern const struct report_ops *const report_table[];
const struct report_ops *report_find(const char *name);

int report_load(const char *run_dir, struct report_run *ret, struct error *e);
void report_release(struct report_run *r);
/* The records of a case, in their order; none where it has no such file. ret_torn: the last one is not whole. */
int report_records(const struct report_run *run, const json_t *entry, json_t **ret, bool *ret_torn, struct error *e);
/* A file of a case's folder as text (caller frees); NULL where it cannot be read. */
char *report_case_file(const struct report_run *run, const json_t *entry, const char *name);
/* All formats that have a file, into the run folder. */
int report_write_all(const struct report_run *r, struct error *e);

/* Several runs side by side, a column each, as Markdown (matrix.c). */
void report_matrix(const struct report_run *runs, size_t n, FILE *out);

/* One line of the live table and of the final one: verdict, case, seen, time. Text is escaped. */
void report_text_case(FILE *out, const json_t *result, bool colour);
/* A failing case at length: step with file:line, side, expected, seen, last observations, the command that repeats it. */
void report_text_failure(FILE *out, const json_t *plan, const json_t *verdict, const json_t *run, bool colour);

#endif
