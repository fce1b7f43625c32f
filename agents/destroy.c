/* SPDX-License-Identifier: MIT */
#include "destroy.h"

#include <errno.h>
#include <string.h>

#include "../harness/json.h"
#include "cm.h"
#include "cq.h"
#include "events.h"
#include "group.h"
#include "verbs_thread.h"

/* libibverbs returns a positive errno, or -1 with errno set from older providers. */
static int positive(int rc)
{
	if (rc == 0)
		return 0;
	if (rc == -1)
		return errno ? errno : EIO;
	return rc < 0 ? -rc : rc;
}

static void no_begin(struct agent *a, struct object *o)
{
	(void)a;
	(void)o;
}

static void begin_qp(struct agent *a, struct object *o)
{
	(void)a;
	((struct qp *)o)->dying = true;
}

static int call_qp(struct object *o)
{
	return positive(ibv_destroy_qp(((struct qp *)o)->qp));
}

static void end_qp(struct agent *a, struct object *o, bool gone)
{
	struct qp *qp = (struct qp *)o;

	qp->dying = false;
	if (!gone)
		return;
	cq_catch_up(a, qp->scq);
	if (qp->rcq != qp->scq)
		cq_catch_up(a, qp->rcq);
	qp_discard(a, qp);
	groups_forget(qp);
	qp_number_del(a, qp);
	qp->qp = NULL;
	qp->pd->o.users--;
	qp->scq->o.users--;
	qp->rcq->o.users--;
	if (qp->srq)
		qp->srq->o.users--;
	if (qp->xrcd)
		qp->xrcd->o.users--;
}

static int call_srq(struct object *o)
{
	return positive(ibv_destroy_srq(((struct srq *)o)->srq));
}

static void end_srq(struct agent *a, struct object *o, bool gone)
{
	struct srq *srq = (struct srq *)o;

	if (!gone)
		return;
	run_flush(a, srq->rq);
	queue_discard(srq->rq);
	srq->srq = NULL;
	srq->pd->o.users--;
	if (srq->xrcd) {
		srq->xrcd->o.users--;
		srq->cq->o.users--;
	}
}

static void begin_cq(struct agent *a, struct object *o)
{
	struct cq *cq = (struct cq *)o;

	if (!cq->hold && !cq->kept)
		cq_acknowledge(cq);
	cq_park(a, cq, true);
}

static int call_cq(struct object *o)
{
	return positive(ibv_destroy_cq(((struct cq *)o)->cq));
}

static void end_cq(struct agent *a, struct object *o, bool gone)
{
	struct cq *cq = (struct cq *)o;

	if (!gone) {
		cq_park(a, cq, false);
		return;
	}
	ibv_destroy_comp_channel(cq->channel);
	cq->cq = NULL;
	cq->channel = NULL;
	cq->unacked = 0;
	cq->dev->o.users--;
}

static int call_mr(struct object *o)
{
	return positive(ibv_dereg_mr(((struct mr *)o)->mr));
}

static void begin_mr(struct agent *a, struct object *o)
{
	struct mr *mr = (struct mr *)o;

	(void)a;
	mr->old_lkey = mr->mr->lkey;
	mr->old_rkey = mr->mr->rkey;
	mr->has_old = true;
}

static void end_mr(struct agent *a, struct object *o, bool gone)
{
	struct mr *mr = (struct mr *)o;

	(void)a;
	if (!gone)
		return;
	mr->mr = NULL;
	mr->pd->o.users--;
}

static int call_ah(struct object *o)
{
	return positive(ibv_destroy_ah(((struct ah *)o)->ah));
}

static void end_ah(struct agent *a, struct object *o, bool gone)
{
	struct ah *ah = (struct ah *)o;

	(void)a;
	if (!gone)
		return;
	ah->ah = NULL;
	ah->pd->o.users--;
}

static int call_mw(struct object *o)
{
	return positive(ibv_dealloc_mw(((struct mw *)o)->mw));
}

static void end_mw(struct agent *a, struct object *o, bool gone)
{
	struct mw *mw = (struct mw *)o;

	(void)a;
	if (!gone)
		return;
	mw->mw = NULL;
	mw->pd->o.users--;
}

static int call_pd(struct object *o)
{
	return positive(ibv_dealloc_pd(((struct pd *)o)->pd));
}

static void end_pd(struct agent *a, struct object *o, bool gone)
{
	struct pd *pd = (struct pd *)o;

	(void)a;
	if (!gone)
		return;
	pd->pd = NULL;
	pd->dev->o.users--;
}

static int call_xrcd(struct object *o)
{
	return positive(ibv_close_xrcd(((struct xrcd *)o)->xrcd));
}

static void end_xrcd(struct agent *a, struct object *o, bool gone)
{
	struct xrcd *xrcd = (struct xrcd *)o;

	(void)a;
	if (!gone)
		return;
	xrcd->xrcd = NULL;
	xrcd->dev->o.users--;
}

static void begin_dev(struct agent *a, struct object *o)
{
	struct dev *dev = (struct dev *)o;

	(void)a;
	dev->async = sd_event_source_disable_unref(dev->async);
}

/* libibverbs would close a device with objects on it, and every pointer to them would dangle. */
static int call_dev(struct object *o)
{
	return o->users ? EBUSY : positive(ibv_close_device(((struct dev *)o)->ctx));
}

static void end_dev(struct agent *a, struct object *o, bool gone)
{
	struct dev *dev = (struct dev *)o;

	if (gone)
		dev->ctx = NULL;
	else
		events_watch(a, dev);
}

const struct destructor destructors[NUM_OBJECT_TYPES] = {
	[OBJECT_DEV] = { "ibv_close_device", begin_dev, call_dev, end_dev },
	[OBJECT_PD] = { "ibv_dealloc_pd", no_begin, call_pd, end_pd },
	[OBJECT_MR] = { "ibv_dereg_mr", begin_mr, call_mr, end_mr },
	[OBJECT_AH] = { "ibv_destroy_ah", no_begin, call_ah, end_ah },
	[OBJECT_MW] = { "ibv_dealloc_mw", no_begin, call_mw, end_mw },
	[OBJECT_CQ] = { "ibv_destroy_cq", begin_cq, call_cq, end_cq },
	[OBJECT_SRQ] = { "ibv_destroy_srq", no_begin, call_srq, end_srq },
	[OBJECT_QP] = { "ibv_destroy_qp", begin_qp, call_qp, end_qp },
	[OBJECT_CM] = { "rdma_destroy_id", cm_begin_destroy, cm_call_destroy, cm_end_destroy },
	[OBJECT_XRCD] = { "ibv_close_xrcd", no_begin, call_xrcd, end_xrcd },
};

static void run_destroy(struct verbs_call *call)
{
	call->err = destructors[call->obj->type].call(call->obj);
}

static void finish_destroy(struct agent *a, struct verbs_call *call)
{
	struct object *o = call->obj;
	bool gone = !call->cancelled && !call->err;

	o->alive = !gone;
	destructors[o->type].end(a, o, gone);
	o->busy = false;
	if (!call->cancelled)
		verbs_record(a, call, NULL);
	verbs_end(call, json_pack("{s:i}", "life", (int)o->life));
}

void op_destroy(struct agent *a, struct request *r)
{
	const char *type_name = json_str(r->body, "type");
	enum object_type type = OBJECT_INVALID;
	struct verbs_call *call;
	struct object *o;

	for (int i = OBJECT_DEV; type_name && i < NUM_OBJECT_TYPES; i++) {
		if (strcmp(object_type_names[i], type_name) == 0)
			type = (enum object_type)i;
	}
	if (type == OBJECT_INVALID) {
		request_fail(r, -EINVAL, "destroy: unknown type \"%s\"; allowed: cm qp cq srq xrcd mr mw ah pd dev",
			     type_name ? type_name : "");
		return;
	}
	o = object_need(a, r, type, "name");
	if (!o)
		return;
	if (type == OBJECT_DEV && o->users) {
		request_fail(r, -EBUSY, "destroy: %s has %u objects", o->name, o->users);
		return;
	}
	call = verbs_call_new(sizeof(*call));
	*call = (struct verbs_call){
		.verb = destructors[type].verb, .obj = o, .req = r, .run = run_destroy, .finish = finish_destroy
	};
	destructors[type].begin(a, o);
	o->busy = true;
	verbs_submit(a, call, json_u64(r->body, "deadline_ns", 0));
}
