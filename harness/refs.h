/* SPDX-License-Identifier: MIT */
/*
 * What a scenario's `refs:` may name: the specification's demands (scenarios/refs/demands.yaml), the rows of the articles that
 * the project began from (seeds.yaml) and reports from the field (field.yaml). Another table (unreached.yaml) says of statuses and
 * events why nothing leads there; it is not cited. A row is {"id","says"} and perhaps "part" or "never" (why it can be shown in
 * part only, or not at all), "source" (where it was told) and "also" (other statements that say the same).
 *
 * Written `IBTA ID`, `seed ID` or `field ID`; `seed ID, corrected` where the article errs. A citation without a word after a slash, of a
 * section or statement that holds several rows, names none of them. Everything else is a source of another kind, and free.
 */
#ifndef QD_REFS_H
#define QD_REFS_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"

enum ref_kind {
	REF_FREE,    /* of another kind */
	REF_GENERAL, /* a section, a statement or an article, but no row */
	REF_ROW,
	REF_UNKNOWN,
};

enum ref_table { REF_DEMANDS, REF_SEEDS, REF_UNREACHED, REF_FIELD, NUM_REF_TABLES };

struct refs {
	json_t *rows[NUM_REF_TABLES];
	json_t *index; /* {"IBTA C9-105/send": row}, and what is "also" that */
	json_t *heads; /* {"IBTA C9-105": true}: what rows begin with */
};

int refs_load(struct refs *ret, struct error *e);
/* The same from memory: the files' texts. */
int refs_load_text(const char *const texts[NUM_REF_TABLES], struct refs *ret, struct error *e);
void refs_release(struct refs *r);
/* Those of this program, read once; NULL with e filled where they are missing. */
const struct refs *refs_own(struct error *e);

/* ret_row (may be NULL) is set for REF_ROW only; borrowed. */
enum ref_kind refs_find(const struct refs *r, const char *text, const json_t **ret_row);
/* The ref that is spelled most like it, as it is written; NULL when there is none. */
const char *refs_nearest(const struct refs *r, const char *text);

#endif
