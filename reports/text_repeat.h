/* SPDX-License-Identifier: MIT */
/* Repetitions (--repeat) in the text report. */
#ifndef QD_TEXT_REPEAT_H
#define QD_TEXT_REPEAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "report.h"

/* True when the row goes into one that is there, for another repetition of the same case that ended alike; folded: an object for
 * the table's own use. */
bool text_repeat_fold(json_t *folded, const json_t *entry, json_t *row);
/* Says in a row's name how many it stands for. */
void text_repeat_name(json_t *row);
/* What became of each case that was repeated. */
void text_repeats(FILE *out, const struct report_run *run);

#endif
