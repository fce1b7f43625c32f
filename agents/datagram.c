/* SPDX-License-Identifier: MIT */
#include "datagram.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "object.h"

int datagram_parse(struct agent *a, const json_t *body, const struct qp *qp, struct datagram *ret, struct error *e)
{
	const char *name = json_str(body, "ah");
	struct object *o;

	*ret = (struct datagram){ NULL, 0, 0 };
	if (qp->type != IBV_QPT_UD)
		return 0;
	o = name ? object_find(a, OBJECT_AH, name) : NULL;
	if (!name)
		return error_set(e, -EINVAL, "%s is a UD QP: no ah is named", qp->o.name);
	if (!o || !o->alive || o->busy)
		return error_set(e, -ENOENT, "there is no ah %s%s", name, o && o->life ? ": it was destroyed" : "");
	*ret = (struct datagram){ (struct ah *)o, (uint32_t)json_int(body, "remote_qpn", 0),
				  (uint32_t)json_int(body, "remote_qkey", 0) };
	return 0;
}

bool datagram_goes(const struct datagram *d)
{
	return !d->ah || (d->ah->o.alive && !d->ah->o.busy);
}

void datagram_put(const struct datagram *d, struct ibv_send_wr *wr)
{
	if (!d->ah)
		return;
	wr->wr.ud.ah = d->ah->ah;
	wr->wr.ud.remote_qpn = d->qpn;
	wr->wr.ud.remote_qkey = d->qkey;
}

void datagram_look(struct agent *a, const struct queue *q, uint32_t seq, const struct ibv_wc *wc, struct datagram_seen *ret)
{
	const struct qp *qp;
	uint64_t at;

	memset(ret, 0, sizeof(*ret));
	if (q->send || !q->rx.head || wc->status != IBV_WC_SUCCESS)
		return;
	qp = q->qp ? q->qp : qp_by_qpn(a, wc->qp_num);
	if (!qp || qp->type != IBV_QPT_UD)
		return;
	ret->is = true;
	ret->src_qp = wc->src_qp;
	ret->pkey_index = wc->pkey_index;
	ret->has_grh = wc->wc_flags & IBV_WC_GRH;
	if (!ret->has_grh || !q->rx.mr)
		return;
	at = q->rx.off + (uint64_t)(seq % q->rx.slots) * q->rx.stride;
	if (at + GRH_BYTES <= q->rx.mr->bytes)
		grh_read((const char *)q->rx.mr->addr + at, &ret->grh);
}

void datagram_tell(const struct datagram_seen *d, json_t *record)
{
	if (!d->is)
		return;
	json_object_set_new(record, "src_qp", json_integer((json_int_t)d->src_qp));
	json_object_set_new(record, "pkey_index", json_integer(d->pkey_index));
	json_object_set_new(record, "grh", d->has_grh ? grh_json(&d->grh) : json_null());
}
