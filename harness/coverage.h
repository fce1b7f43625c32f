/* SPDX-License-Identifier: MIT */
/*
 * What scenarios assert, added up over their plans: transport x operation x fault x status x recovery path, async events, and which
 * demands and rows they name in `refs:` (refs.h). Pure: plans, verdicts and tables in, a document out (formats.md, "Coverage").
 */
#ifndef QD_COVERAGE_H
#define QD_COVERAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "error.h"
#include "refs.h"

/* plans: array of plan.json. verdicts: {"CASE":"pass"} of a run, or NULL. *ret is a new reference. */
int coverage_make(const json_t *plans, const json_t *verdicts, const struct refs *refs, json_t **ret, struct error *e);
void coverage_text(const json_t *coverage, FILE *out);

/* Whether verbs have this operation on this transport at all. */
bool coverage_possible(const char *transport, const char *op);

#endif
