/* SPDX-License-Identifier: MIT */
/* What posting sends and receives have in common. */
#ifndef QD_POST_H
#define QD_POST_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>

#include "object.h"

#define POST_COUNT_MAX 65536u
#define POST_SGE_MAX 64u

/* Splits size bytes from addr over n segments; those past the end are of length 0. */
void post_split(struct ibv_sge *sge, unsigned n, uint64_t addr, uint32_t size, uint32_t lkey);

enum post_key { POST_KEY_OWN, POST_KEY_WRONG, POST_KEY_OLD };
/* The lkey that `lkey` asks for. -EINVAL or -ENOENT with e filled. */
int post_lkey(const json_t *body, const struct mr *mr, uint32_t *ret, struct error *e);

/* The living MR named at key, or NULL with e filled. */
struct mr *post_mr(struct agent *a, const char *name, struct error *e);
/* The slots [0, slots) of stride bytes from off hold size bytes each inside an MR of `bytes`. */
int post_check_room(uint64_t bytes, uint64_t off, uint64_t stride, uint64_t slots, uint64_t size, struct error *e);

/* Where the list stopped: index of bad_wr, 0 when it points nowhere in the list (nothing counts as accepted then). */
unsigned post_bad_index(const void *bad, const void *list, size_t stride, unsigned n);

/* What a `post` record and the reply say. */
struct post_result {
	unsigned count, accepted;
	int err; /* positive errno */
	int bad; /* index of bad_wr, -1: none */
	uint64_t first, last;
	uint64_t t_first_ns, t_last_ns;
	json_t *rkeys; /* window -> its new key; NULL where nothing can be bound */
};
void post_record(struct agent *a, const struct queue *q, const struct post_result *res, json_t *fields);
json_t *post_reply(const struct post_result *res);

/* The keys of a request that say where receives lie. */
struct rx_keys {
	const char *mr, *size, *stride, *slots;
};
/* Brings *ret up to what the request says; as it is where it says nothing. def_mr: the MR when none was ever named. */
int rx_parse(struct agent *a, const json_t *body, const struct rx_keys *k, const char *def_mr, struct rx *ret, struct error *e);
int rx_lkey(struct agent *a, const struct queue *q, uint32_t *ret, struct error *e);

/* Posts res->count receives at the next slots of q, many in one call; stops at the first that is refused. */
void recv_post_list(struct agent *a, struct qp *qp, struct srq *srq, struct queue *q, uint32_t lkey, struct post_result *res);

#endif
