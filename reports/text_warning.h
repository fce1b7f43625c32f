/* SPDX-License-Identifier: MIT */
/* Warnings in the text report. */
#ifndef QD_TEXT_WARNING_H
#define QD_TEXT_WARNING_H

#include <stdio.h>

#include "report.h"

/* Those of cases that passed all the same, one line for a step. That an entry of the profile is stale is told elsewhere. */
void text_warnings(FILE *out, const struct report_run *run);

#endif
