/* SPDX-License-Identifier: MIT */
/*
 * The attributes that a QP's timers follow from (timeout, retry_cnt, rnr_retry, min_rnr_timer), as the steps of a plan change them.
 * Who wants to know walks the steps in their order, begins with an empty object, and follows each of them. A copy (json_copy) keeps
 * what was at one of them.
 */
#ifndef QD_PLAN_TIMERS_H
#define QD_PLAN_TIMERS_H

#include "plan.h"

/* What a `qp:` block sets at an end: what is for all, and on top what its agent has of its own. New reference. */
json_t *plan_own_attr(const json_t *block, const char *agent);

/* What a step changes; its members are steps of their own. */
void plan_timers_follow(json_t *timers, const json_t *plan, const json_t *step);
/* Before the steps of a repeat: what any of its rounds may begin with. */
void plan_timers_rounds(json_t *timers, const json_t *plan, const json_t *step);

/* Where a step may have acted or not, or only in the round before, a QP has several; borrowed. */
size_t plan_timers_count(const json_t *timers, const json_t *qp);
const json_t *plan_timers_at(const json_t *timers, const json_t *qp, size_t i);
/* No life of the QP has begun after that step. */
bool plan_timers_same_life(const json_t *timers, const json_t *qp, const json_t *step);

#endif
