/* SPDX-License-Identifier: MIT */
/* A traffic's posts are reported as spans of consecutive requests, not one by one. */
#include "traffic.h"

#include "../harness/json.h"
#include "../harness/names.h"
#include "object.h"
#include "post.h"

static void report_span(struct agent *a, const struct traffic *t, struct queue *q, struct span *s, enum wrid_kind kind,
			const char *op)
{
	struct wrid id = { .life = s->life, .queue = q->number, .kind = kind, .seq = s->first };
	struct post_result res = {
		.count = s->n, .accepted = s->n, .bad = -1, .t_first_ns = s->t_first_ns, .t_last_ns = s->t_last_ns
	};

	if (s->n == 0)
		return;
	res.first = wrid_encode(id);
	id.seq += s->n - 1;
	res.last = wrid_encode(id);
	s->n = 0;
	post_record(a, q, &res,
		    json_pack("{s:s, s:I, s:b, s:s, s:s, s:I}", "op", op, "size", (json_int_t)t->size, "signaled", 1, "by",
			      "traffic", "traffic", t->as, "tag", (json_int_t)t->tag));
}

void traffic_report_own_posts(struct traffic *t)
{
	report_span(t->agent, t, t->qp->sq, &t->sent_span, WRID_TRAFFIC, t->n_ops == 1 ? name_of(&names_op, t->ops[0]) : "MIXED");
	report_span(t->agent, t, qp_recv_queue(t->qp), &t->recv_span, WRID_RECV, "RECV");
}

/* Only one that runs has any. */
void traffic_report_posts(struct agent *a, const struct queue *q, uint16_t number)
{
	struct traffic *t = q->qp ? q->qp->traffic : NULL;

	if (t && t->number == number)
		traffic_report_own_posts(t);
	for (t = q->qp ? NULL : a->traffics; t; t = t->links.all)
		if (t->number == number && qp_recv_queue(t->qp) == q)
			traffic_report_own_posts(t);
}

void traffic_span_add(struct traffic *t, struct span *s, const struct queue *q, uint32_t seq, const struct post_result *res)
{
	if (res->accepted == 0)
		return;
	if (s->n && (s->life != q->life || s->first + s->n != seq))
		traffic_report_own_posts(t);
	if (s->n == 0)
		*s = (struct span){ .first = seq, .life = q->life, .t_first_ns = res->t_first_ns };
	s->n += res->accepted;
	s->t_last_ns = res->t_last_ns;
}
