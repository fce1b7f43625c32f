/* SPDX-License-Identifier: MIT */
/* What a UD QP's requests and receives have that others have not. */
#ifndef QD_DATAGRAM_H
#define QD_DATAGRAM_H

#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../harness/error.h"
#include "../harness/grh.h"

struct agent;
struct ah;
struct qp;
struct queue;

/* Where a datagram goes. */
struct datagram {
	struct ah *ah; /* NULL: the request is of no UD QP */
	uint32_t qpn, qkey;
};

/* What body says of it (`ah`, `remote_qpn`, `remote_qkey`), for requests of a UD QP. */
int datagram_parse(struct agent *a, const json_t *body, const struct qp *qp, struct datagram *ret, struct error *e);
/* Its handle is there: no other call changes it. */
bool datagram_goes(const struct datagram *d);
void datagram_put(const struct datagram *d, struct ibv_send_wr *wr);

/* What came with a message: all of it is written, so that two of one kind compare equal. */
struct datagram_seen {
	struct grh grh;
	uint32_t src_qp;
	uint16_t pkey_index;
	bool is, has_grh; /* is: a message to a UD QP */
};
void datagram_look(struct agent *a, const struct queue *q, uint32_t seq, const struct ibv_wc *wc, struct datagram_seen *ret);
/* Adds `src_qp`, `pkey_index` and `grh` (null without one) to a record. */
void datagram_tell(const struct datagram_seen *d, json_t *record);

#endif
