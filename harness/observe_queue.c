/* SPDX-License-Identifier: MIT */
#include "observe_model.h"

#include <errno.h>

#include "json.h"

int seq_set_add(struct seq_set *s, uint32_t first, uint32_t last, uint32_t *ret_twice)
{
	size_t from = 0, to;
	struct seq_range *r;

	*ret_twice = seq_set_count(s, first, last);
	while (from < s->r.n && (uint64_t)s->r.v[from].last + 1 < first)
		from++;
	for (to = from; to < s->r.n && s->r.v[to].first <= (uint64_t)last + 1; to++) {
		if (s->r.v[to].first < first)
			first = s->r.v[to].first;
		if (s->r.v[to].last > last)
			last = s->r.v[to].last;
	}
	if (to == from) {
		r = VEC_PUSH(&s->r);
		if (!r)
			return -ENOMEM;
		memmove(&s->r.v[from + 1], &s->r.v[from], (s->r.n - 1 - from) * sizeof(*r));
	} else if (to > from + 1) {
		memmove(&s->r.v[from + 1], &s->r.v[to], (s->r.n - to) * sizeof(*r));
		s->r.n -= to - from - 1;
	}
	s->r.v[from] = (struct seq_range){ first, last };
	return 0;
}

uint32_t seq_set_count(const struct seq_set *s, uint32_t first, uint32_t last)
{
	uint32_t n = 0;

	for (size_t i = 0; i < s->r.n; i++) {
		uint32_t a = s->r.v[i].first > first ? s->r.v[i].first : first;
		uint32_t b = s->r.v[i].last < last ? s->r.v[i].last : last;

		if (a <= b)
			n += b - a + 1;
	}
	return n;
}

uint32_t seq_set_size(const struct seq_set *s)
{
	return seq_set_count(s, 0, UINT32_MAX);
}

const struct m_life *m_life_of(const struct model *m, size_t queue, unsigned life)
{
	const struct m_queue *q;

	if (queue == M_NONE)
		return NULL;
	q = &m->queues.v[queue];
	for (size_t i = q->lives.n; i-- > 0;)
		if (q->lives.v[i].life == life)
			return &q->lives.v[i];
	return NULL;
}

const struct m_life *m_queue_life(const struct model *m, size_t queue)
{
	const struct m_queue *q;

	if (queue == M_NONE)
		return NULL;
	q = &m->queues.v[queue];
	return q->lives.n ? &q->lives.v[q->lives.n - 1] : NULL;
}

struct m_life *m_life_get(struct model *m, size_t queue, unsigned life, bool make)
{
	struct m_life *l = (struct m_life *)m_life_of(m, queue, life);

	if (l || !make || queue == M_NONE)
		return l;
	l = M_PUSH(m, &m->queues.v[queue].lives);
	if (!l)
		return NULL;
	l->life = life;
	l->first_error = M_NONE;
	l->order_rec = M_NONE;
	l->over_rec = M_NONE;
	l->over_why = "";
	l->open_why = "";
	return l;
}

static void life_over(struct model *m, size_t queue, unsigned life, const struct m_record *r, const char *why)
{
	struct m_life *l = m_life_get(m, queue, life, true);

	if (!l || l->over)
		return;
	l->over = true;
	l->over_t = r->t;
	l->over_rec = r->rec;
	l->over_inst = r->inst;
	l->over_why = why;
}

void m_qp_over(struct model *m, size_t qp, const struct m_record *r, const char *why)
{
	unsigned life = m->qps.v[qp].life;

	if (!life)
		return;
	life_over(m, m->qps.v[qp].send, life, r, why);
	life_over(m, m->qps.v[qp].recv, life, r, why);
}

void m_qp_new_life(struct model *m, size_t qp, unsigned life, const struct m_record *r, const char *why)
{
	struct m_qp *q = &m->qps.v[qp];
	size_t sides[2] = { q->send, q->recv };

	if (!life)
		life = q->life + 1;
	if (life <= q->life)
		return;
	m_qp_over(m, qp, r, why);
	q->life = life;
	q->life_comps = q->comps.n;
	for (int i = 0; i < 2; i++) {
		struct m_life *l = m_life_get(m, sides[i], life, true);

		if (l) {
			l->begin_rec = r->rec;
			l->begin_t = r->t;
		}
	}
}

static void life_open(struct model *m, size_t queue, unsigned life, const char *why)
{
	struct m_life *l = m_life_get(m, queue, life, true);

	if (l && !l->open) {
		l->open = true;
		l->open_why = why;
	}
}

void m_agent_gone(struct model *m, const char *agent, const struct m_record *r, const char *why)
{
	for (size_t i = 0; i < m->qps.n; i++) {
		struct m_qp *q = &m->qps.v[i];

		if (strcmp(q->agent, agent) || !q->life)
			continue;
		life_open(m, q->send, q->life, why);
		life_open(m, q->recv, q->life, why);
		m_qp_over(m, i, r, why);
		q->exists = false;
		q->state = "unreachable";
		q->state_rec = r->rec;
	}
}

void m_cq_broken(struct model *m, const char *cq, const struct m_record *r)
{
	const char *name;

	(void)r;
	for (size_t i = 0; i < m->qps.n; i++) {
		struct m_qp *q = &m->qps.v[i];

		name = json_str(q->plan, "send_cq");
		if (name && !strcmp(name, cq) && q->life)
			life_open(m, q->send, q->life, "its CQ raised CQ_ERR");
		name = json_str(q->plan, "recv_cq");
		if (name && !strcmp(name, cq) && q->life)
			life_open(m, q->recv, q->life, "its CQ raised CQ_ERR");
	}
}

/* The queue of a record's obj: a queue, an SRQ, or a QP whose side the record tells otherwise. */
static size_t queue_of(const struct model *m, const char *obj, bool recv)
{
	size_t queue = m_queue_find(m, obj), qp;

	if (queue != M_NONE)
		return queue;
	qp = m_qp_find(m, obj, strlen(obj));
	if (qp == M_NONE)
		return M_NONE;
	return recv ? m->qps.v[qp].recv : m->qps.v[qp].send;
}

static void seen_life(struct model *m, size_t queue, const struct m_record *r)
{
	size_t qp = m->queues.v[queue].qp;

	if (qp != M_NONE && r->life > m->qps.v[qp].life)
		m_qp_new_life(m, qp, r->life, r, "a new life began");
}

static int post_order(const struct m_post *p, unsigned life, uint32_t seq)
{
	if (p->life != life)
		return p->life < life ? -1 : 1;
	return p->first < seq ? -1 : p->first > seq;
}

/* Almost always the last place; the records of a traffic may come in another order. */
static void post_index(struct model *m, size_t index)
{
	const struct m_post *p = &m->posts.v[index];
	struct m_queue *q = &m->queues.v[p->queue];
	size_t *slot = VEC_PUSH(&q->posts), at = q->posts.n - 1;

	if (!slot) {
		m->err = -ENOMEM;
		return;
	}
	while (at && post_order(&m->posts.v[q->posts.v[at - 1]], p->life, p->first) > 0) {
		q->posts.v[at] = q->posts.v[at - 1];
		at--;
	}
	q->posts.v[at] = index;
}

static void post_accepted(struct model *m, struct m_post *p, const struct m_record *r)
{
	struct wrid first = wrid_decode(json_u64(r->r, "first", 0)), last = wrid_decode(json_u64(r->r, "last", 0));
	struct m_queue *q;
	struct m_life *l;

	seen_life(m, p->queue, r);
	p->life = r->life ? r->life : first.life;
	p->first = first.seq;
	p->last = last.seq;
	q = &m->queues.v[p->queue];
	q->numbered = true;
	q->number = first.queue;
	if (!*q->agent)
		q->agent = m_intern(m, r->agent);
	l = m_life_get(m, p->queue, p->life, true);
	if (!l)
		return;
	l->accepted += p->accepted;
	if (p->last + 1 > l->posted)
		l->posted = p->last + 1;
	post_index(m, m->posts.n - 1);
}

/* first..last are so many wr_ids of one queue, life and kind. */
static bool is_run(const json_t *r, uint64_t count)
{
	uint64_t first = json_u64(r, "first", 0), last = json_u64(r, "last", first);

	return first >> 32 == last >> 32 && last >= first && last - first + 1 == count;
}

static void note_keys(struct model *m, json_t *keys)
{
	if (!keys)
		return;
	if (!m->mw_keys)
		m->mw_keys = json_object();
	json_object_update(m->mw_keys, keys);
}

void m_on_post(struct model *m, const struct m_record *r)
{
	const char *op = json_str(r->r, "op");
	size_t queue = queue_of(m, r->obj, op && !strcmp(op, "RECV"));
	struct m_post *p = M_PUSH(m, &m->posts);
	size_t *tried;

	if (!p)
		return;
	note_keys(m, json_object_get(r->r, "rkeys"));
	*p = (struct m_post){ .as = m_intern(m, json_str(r->r, "as")),
			      .op = m_intern(m, op),
			      .by = m_intern(m, json_str(r->r, "by")),
			      .traffic = m_intern(m, json_str(r->r, "traffic")),
			      .obj = m_intern(m, r->obj),
			      .queue = queue,
			      .life = r->life,
			      .tag = json_int(r->r, "tag", 0),
			      .asked = (unsigned)json_int(r->r, "count", 1),
			      .accepted = (unsigned)json_int(r->r, "accepted", 0),
			      .err = (int)json_int(r->r, "errno", 0),
			      .bad = (int)json_int(r->r, "bad", -1),
			      .signaled = json_bool(r->r, "signaled", true),
			      .kept_back = json_bool(r->r, "kept_back", false) || json_int(r->r, "kept_back", 0) > 0,
			      .size = json_u64(r->r, "size", 0),
			      .t = r->t,
			      .t_last = json_u64(r->r, "t_last", r->t),
			      .inst = r->inst,
			      .rec = r->rec };
	tried = queue == M_NONE ? NULL : M_PUSH(m, &m->queues.v[queue].tried);
	if (tried)
		*tried = m->posts.n - 1;
	if (!p->accepted || queue == M_NONE || !json_object_get(r->r, "first")) {
		p->accepted = 0;
		return;
	}
	if (!is_run(r->r, p->accepted)) {
		m->odd++;
		p->accepted = 0;
		return;
	}
	post_accepted(m, p, r);
}

/* likely: where it is looked for first. */
static size_t queue_numbered(const struct model *m, const char *agent, unsigned number, size_t likely)
{
	if (likely != M_NONE && m->queues.v[likely].numbered && m->queues.v[likely].number == number &&
	    !strcmp(m->queues.v[likely].agent, agent))
		return likely;
	for (size_t i = 0; i < m->queues.n; i++)
		if (m->queues.v[i].numbered && m->queues.v[i].number == number && !strcmp(m->queues.v[i].agent, agent))
			return i;
	return M_NONE;
}

static size_t qp_numbered(const struct model *m, const char *agent, int64_t qpn)
{
	for (size_t i = 0; i < m->qps.n; i++)
		if (!strcmp(m->qps.v[i].agent, agent) && qpn && json_int(m->qps.v[i].queried, "qpn", 0) == qpn)
			return i;
	return M_NONE;
}

static void comp_into_life(struct model *m, struct m_comp *c, size_t index)
{
	struct m_life *l = m_life_get(m, c->queue, c->life, true);
	uint32_t last = c->seq + c->count - 1;

	if (!l)
		return;
	c->late = l->over;
	if (seq_set_add(&l->ended, c->seq, last, &c->twice))
		m->err = -ENOMEM;
	if (!c->twice && l->any_ended && c->seq < l->last_ended && !m->queues.v[c->queue].srq) {
		if (!l->order_breaks++)
			l->order_rec = c->rec;
	}
	if (!l->any_ended || last > l->last_ended)
		l->last_ended = last;
	l->any_ended = true;
	if (!c->success && l->first_error == M_NONE)
		l->first_error = index;
	m->queues.v[c->queue].last_t = c->t_last;
}

static void comp_add(struct model *m, const struct m_comp *from)
{
	struct m_comp *c = M_PUSH(m, &m->comps);
	size_t *own;

	if (!c)
		return;
	*c = *from;
	own = c->qp == M_NONE ? NULL : M_PUSH(m, &m->qps.v[c->qp].comps);
	if (own)
		*own = m->comps.n - 1;
	own = c->queue == M_NONE ? NULL : M_PUSH(m, &m->queues.v[c->queue].comps);
	if (own)
		*own = m->comps.n - 1;
	if (c->queue != M_NONE)
		comp_into_life(m, c, m->comps.n - 1);
}

void m_on_wc(struct model *m, const struct m_record *r)
{
	struct wrid first = wrid_decode(json_u64(r->r, "first", 0));
	const char *status = json_str(r->r, "status"), *opcode = json_str(r->r, "opcode");
	struct m_comp c = { .obj = m_intern(m, r->obj),
			    .status = m_intern(m, status),
			    .cq = m_intern(m, json_str(r->r, "cq")),
			    .traffic = m_intern(m, json_str(r->r, "traffic")),
			    .seq = first.seq,
			    .opcode = m_intern(m, opcode),
			    .imm = json_int(r->r, "imm", -1),
			    .invalidated = json_int(r->r, "invalidated", -1),
			    .t = r->t,
			    .t_last = json_u64(r->r, "t_last", r->t),
			    .inst = r->inst,
			    .rec = r->rec };
	uint64_t count = json_u64(r->r, "count", 1);
	size_t named;

	c.bytes = json_object_get(r->r, "bytes") && count ? json_int(r->r, "bytes", 0) / (int64_t)count : -1;
	if (json_object_get(r->r, "grh")) {
		if (!m->datagrams)
			m->datagrams = json_array();
		if (!json_array_append(m->datagrams, (json_t *)r->r))
			c.datagram = r->r;
	}
	if (!is_run(r->r, count) || (!*c.traffic && count > M_RUN_MAX)) {
		m->odd++;
		return;
	}
	c.success = !strcmp(c.status, "SUCCESS");
	c.marker = first.kind == WRID_MARKER;
	c.recv = first.kind == WRID_RECV || (opcode && !strncmp(opcode, "RECV", 4));
	named = queue_of(m, r->obj, c.recv);
	c.queue = strcmp(r->obj, "?") ? queue_numbered(m, r->agent, first.queue, named) : M_NONE;
	if (c.queue == M_NONE)
		c.queue = named;
	c.qp = named != M_NONE && m->queues.v[named].qp != M_NONE ? m->queues.v[named].qp
								  : qp_numbered(m, r->agent, json_int(r->r, "qpn", 0));
	if (c.queue != M_NONE) {
		c.recv = !m->queues.v[c.queue].send;
		if (m->queues.v[c.queue].srq)
			c.life = first.life;
		else
			seen_life(m, c.queue, r);
	}
	if (!c.life)
		c.life = r->life && (r->life & 0xfff) == first.life ? r->life : first.life;
	c.qp_life = c.queue != M_NONE && !m->queues.v[c.queue].srq ? c.life : c.qp != M_NONE ? m->qps.v[c.qp].life : 0;
	if (*c.traffic) {
		c.count = (uint32_t)count;
		comp_add(m, &c);
		return;
	}
	c.count = 1;
	for (uint64_t i = 0; i < count && !m->err; i++, c.seq++) {
		comp_add(m, &c);
		c.t = c.t_last;
	}
}

bool m_post_signaled(const struct model *m, const struct m_post *p)
{
	const struct m_queue *q;

	if (p->signaled || p->queue == M_NONE)
		return true;
	q = &m->queues.v[p->queue];
	/* Of the QP that took it the record speaks; before there was a last record it spoke of the request alone. */
	return !q->send || (!m->ends_told && json_bool(m->qps.v[q->qp].plan, "signal_all", false));
}

const struct m_post *m_comp_post(const struct model *m, const struct m_comp *c)
{
	const struct m_queue *q = c->queue == M_NONE ? NULL : &m->queues.v[c->queue];
	size_t low = 0, high = q ? q->posts.n : 0;
	const struct m_post *p;

	/* The last one that begins at or before this request. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (post_order(&m->posts.v[q->posts.v[mid]], c->life, c->seq) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	p = &m->posts.v[q->posts.v[low - 1]];
	return p->life == c->life && p->first <= c->seq && c->seq <= p->last ? p : NULL;
}

struct m_account m_account_post(const struct model *m, const struct m_post *p)
{
	const struct m_life *l = m_life_of(m, p->queue, p->life);
	const struct m_queue *q;
	struct m_account a = { 0 };
	uint32_t left, upto;

	if (!p->accepted || !l)
		return a;
	q = &m->queues.v[p->queue];
	a.accepted = p->last - p->first + 1;
	a.completed = seq_set_count(&l->ended, p->first, p->last);
	left = a.accepted - a.completed;
	if (!m_post_signaled(m, p) && l->any_ended && l->last_ended > p->first) {
		upto = l->last_ended - 1 < p->last ? l->last_ended - 1 : p->last;
		a.retired = upto - p->first + 1 - seq_set_count(&l->ended, p->first, upto);
		left -= a.retired;
	}
	if (q->srq)
		a.in_srq = left;
	else if (l->over)
		a.discarded = left;
	else
		a.in_flight = left;
	/* In ERR even an unsignaled request completes. */
	if (a.in_flight && (m_post_signaled(m, p) || l->first_error != M_NONE))
		a.awaited = a.in_flight;
	return a;
}

size_t m_comps_of_life(const struct m_qp *q, unsigned life)
{
	return life == q->life ? q->life_comps : 0;
}

size_t m_posts_of_life(const struct model *m, size_t queue, unsigned life)
{
	const struct m_queue *q = &m->queues.v[queue];
	size_t low = 0, high = q->posts.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->posts.v[q->posts.v[mid]].life < life)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct m_account m_account_life(const struct model *m, size_t queue, const struct m_life *l, bool traffic_too)
{
	struct m_account sum = { 0 }, a;

	if (!l)
		return sum;
	for (size_t i = m_posts_of_life(m, queue, l->life); i < m->queues.v[queue].posts.n; i++) {
		const struct m_post *p = &m->posts.v[m->queues.v[queue].posts.v[i]];

		if (p->life != l->life)
			break;
		if (*p->traffic && !traffic_too)
			continue;
		a = m_account_post(m, p);
		sum.accepted += a.accepted;
		sum.completed += a.completed;
		sum.retired += a.retired;
		sum.discarded += a.discarded;
		sum.in_srq += a.in_srq;
		sum.in_flight += a.in_flight;
		sum.awaited += a.awaited;
	}
	return sum;
}

unsigned model_in_flight(const struct model *m, const char *qp)
{
	size_t i = m_qp_find(m, qp, strlen(qp));
	const struct m_life *l;
	unsigned n = 0;

	if (i == M_NONE)
		return 0;
	l = m_queue_life(m, m->qps.v[i].send);
	n += m_account_life(m, m->qps.v[i].send, l, true).in_flight;
	l = m_queue_life(m, m->qps.v[i].recv);
	n += m_account_life(m, m->qps.v[i].recv, l, true).in_flight;
	return n;
}

void model_post_progress(const struct model *m, const char *as, unsigned *ret_accepted, unsigned *ret_completed)
{
	size_t inst = M_NONE;

	*ret_accepted = *ret_completed = 0;
	for (size_t i = m->posts.n; i-- > 0;) {
		const struct m_post *p = &m->posts.v[i];
		struct m_account a;

		if (strcmp(p->as, as) || (inst != M_NONE && p->inst != inst))
			continue;
		inst = p->inst;
		a = m_account_post(m, p);
		*ret_accepted += a.accepted;
		*ret_completed += a.completed + a.retired;
	}
}
