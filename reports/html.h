/* SPDX-License-Identifier: MIT */
/* The parts of report.html: one file each. All of them write into the page that html.c opened. */
#ifndef QD_HTML_H
#define QD_HTML_H

#include "report.h"
#include "xml.h"

extern const char html_style[];

/* Fails, ends without a verdict, or says that something was not proven: it is shown open, and at length. */
bool html_is_problem(const json_t *verdict);
/* The fragment that a case is found at: its id, with what no id may have as :XX. Caller frees. */
char *html_anchor(const char *id);
/* A link to the case, named by its id. */
void html_case_link(struct xml *x, const char *id);

/* The cell that a row of cases begins with, and the case's own, which heads the row. */
void html_verdict_cell(struct xml *x, const char *verdict);
void html_case_head(struct xml *x, const char *id);
/* A heading that can be linked to. */
void html_section(struct xml *x, const char *id, const char *text);
/* <thead> with one row of column heads. */
void html_head_row(struct xml *x, const char *const *heads, size_t n);

/* html_head.c: what was tested on what, what was not, what deviates. */
void html_environment(struct xml *x, const struct report_run *run);
void html_not_injected(struct xml *x, const struct report_run *run);
void html_deviations(struct xml *x, const struct report_run *run);
void html_troubles(struct xml *x, const struct report_run *run);

/* html_case.c: one case, from its folder. n counts the cases, for the ids of what is drawn. */
void html_case(struct xml *x, const struct report_run *run, const json_t *entry, size_t n);

/* html_side.c: the tables beside the ladder. */
void html_expectations(struct xml *x, const struct report_run *run, const json_t *entry, const json_t *records);
void html_windows(struct xml *x, const json_t *verdict);
void html_numbers(struct xml *x, const json_t *verdict);
/* at_length: every transition with what it was asked with; else a line for each QP. */
void html_states(struct xml *x, const json_t *records, bool at_length);

/* html_ladder.c */
void html_ladder(struct xml *x, const json_t *plan, const json_t *records, const char *title, bool problem, size_t n);

#endif
