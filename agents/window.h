/* SPDX-License-Identifier: MIT */
/*
 * Memory windows. A window has a key from the start and another one from each bind on: of type 1 the provider chooses it, of type 2
 * the agent does. A bind that fails leaves the key that was there before.
 */
#ifndef QD_WINDOW_H
#define QD_WINDOW_H

#include "object.h"

/* What a BIND_MW is to do. */
struct bind {
	struct mw *mw; /* NULL: the request is no bind */
	struct mr *over;
	uint64_t addr, bytes;
	unsigned access;
};

/* `access[]` as a mask; e says which name is unknown. */
int access_parse(const json_t *names, unsigned *ret, struct error *e);

/* `mw mr off size access[]` of a request. */
int bind_parse(struct agent *a, const json_t *body, struct bind *ret, struct error *e);
/* The work request of a bind. */
void bind_build(const struct bind *b, struct ibv_send_wr *wr);
/* A window of type 1 is bound by a verb of its own. As ibv_post_send(): 0 or a positive errno. */
int bind_by_verb(const struct bind *b, struct ibv_qp *qp, const struct ibv_send_wr *wr);
/* The post was accepted: the window's key is another one, and `rkeys` of the reply says which. */
void bind_accepted(const struct bind *b, const struct ibv_send_wr *wr, json_t *rkeys);
/* A request of this number failed: if it was a bind, its window has its former key again. */
void bind_failed(struct agent *a, uint64_t wr_id);

#endif
