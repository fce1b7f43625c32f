/* SPDX-License-Identifier: MIT */
/* Multicast groups that a QP is attached to. */
#ifndef QD_GROUP_H
#define QD_GROUP_H

struct qp;

/* Detaches it from all of them: of everything that is released nothing may hold it. On the verbs thread. */
void groups_leave(struct qp *qp);
/* It is gone, and with it its memberships. */
void groups_forget(struct qp *qp);

#endif
