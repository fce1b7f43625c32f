/* SPDX-License-Identifier: MIT */
/*
 * The time oracle without a lab: when the errors that a case expects must come, from the attributes of its plan and what a profile
 * says of the provider's timers. The same rules that the verdict judges by (plan_window), without the lateness that only a run can
 * measure.
 */
#ifndef QD_PREDICT_H
#define QD_PREDICT_H

#include <jansson.h>
#include <stdio.h>

/* {"case","budget_ns","wire","steps":[{"n","do","line","deadline_ns","windows":[{"at","of","status","detection","fault","low_ns",
 * "high_ns"|null,"never","spec_low_ns","spec_high_ns"|null,"by":{attributes}}]}]}. timing: of a profile, or NULL. New reference. */
json_t *predict_case(const json_t *plan, const json_t *timing);
/* For people. */
void predict_text(const json_t *prediction, FILE *out);

#endif
