/* SPDX-License-Identifier: MIT */
/* The peer's memory that a request reads or writes: where it is, by the key and address that this end was told, or by wrong ones.
 */
#ifndef QD_REMOTE_H
#define QD_REMOTE_H

#include "controller_case.h"

/* The MR or window of a post by its `to:`, else the peer's own. */
void remote_place(const struct object *qp, const json_t *step, char *mr, size_t size);
/* The MR in which that lies; *off becomes the place in it: a window begins somewhere in a region. */
const char *remote_region(struct case_run *r, const char *mr, uint64_t *off);
/* By how much `addr: misaligned` moves the place. */
uint64_t remote_shift(const json_t *step);
/* An `addr:` that is nowhere in that region: nobody can prepare or look at what is there. */
bool remote_is_elsewhere(const json_t *step);
/* Puts rkey and raddr into req, whose roff is known: as told, or wrong as the post's `rkey:` and `addr:` have it. Where a wrong one
 * is none after all the verdict is told. -ENOKEY: this end was never told, and the post is not to be refused; -ENOENT: there is no
 * other region. */
int remote_key(struct case_run *r, const struct object *qp, const json_t *step, const char *mr, json_t *req, struct error *e);

#endif
