/* SPDX-License-Identifier: MIT */
#include "payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/json.h"
#include "post.h"

#define FIND_WORK_MAX (1u << 22) /* slots x messages that are compared at most */
#define TELLING_BYTES 16u        /* of so many no two messages are alike */

static const char letter_of[NUM_PATTERN_SEEN] = { '?', 'i', 'a', 'p', 's' };

void tally_add(struct tally *t, enum pattern_seen seen)
{
	t->seen[seen]++;
	if (t->n_letters < PAYLOAD_LETTERS_MAX)
		t->letters[t->n_letters++] = letter_of[seen];
}

json_t *tally_json(const struct tally *t)
{
	json_int_t intact = (json_int_t)t->seen[PATTERN_INTACT], absent = (json_int_t)t->seen[PATTERN_ABSENT];
	json_int_t partial = (json_int_t)t->seen[PATTERN_PARTIAL], stale = (json_int_t)t->seen[PATTERN_STALE];

	json_t *json = json_pack("{s:I, s:I, s:I, s:I, s:I, s:s}", "total", intact + absent + partial + stale, "intact", intact,
				 "absent", absent, "partial", partial, "stale", stale, "indices", t->letters);

	if (json && t->twice)
		json_object_set_new(json, "twice", json_integer((json_int_t)t->twice));
	return json;
}

struct place {
	struct mr *mr;
	uint64_t off, size, stride, slots, count, index;
	uint32_t tag;
	/* An atomic's place, instead of a pattern: what it holds, in the host's order, what it held, and what it would hold if the
	 * same were done again. */
	bool has_word, has_was, has_again;
	uint64_t word, was, again;
};

static int parse_place(struct agent *a, const json_t *body, struct place *p, struct error *e)
{
	p->mr = post_mr(a, json_str(body, "mr"), e);
	if (!p->mr)
		return -ENOENT;
	p->off = json_u64(body, "off", 0);
	p->size = json_u64(body, "size", 64);
	p->count = json_u64(body, "count", 1);
	p->stride = json_u64(body, "stride", (p->size + 63) & ~63ULL);
	p->slots = json_u64(body, "slots", p->count);
	p->tag = (uint32_t)json_int(body, "tag", 0);
	p->index = json_u64(body, "index", 0);
	p->has_word = json_object_get(body, "word");
	p->word = json_u64(body, "word", 0);
	p->has_was = json_object_get(body, "was");
	p->was = json_u64(body, "was", 0);
	p->has_again = json_object_get(body, "again");
	p->again = json_u64(body, "again", 0);
	if (p->has_word && p->size != sizeof(p->word))
		return error_set(e, -EINVAL, "a word has %zu bytes, not %llu", sizeof(p->word), (unsigned long long)p->size);
	if (p->count == 0 || p->slots == 0)
		return error_set(e, -EINVAL, "count and slots must be at least 1");
	return post_check_room(p->mr->bytes, p->off, p->stride, p->slots < p->count ? p->slots : p->count, p->size, e);
}

static char *place_at(const struct place *p, uint64_t i)
{
	return (char *)p->mr->addr + p->off + (i % p->slots) * p->stride;
}

void op_fill(struct agent *a, struct request *r)
{
	struct place p;
	struct error e = { "" };
	int rc = parse_place(a, r->body, &p, &e);

	if (rc < 0) {
		request_fail(r, rc, "fill: %s", e.text);
		return;
	}
	for (uint64_t i = 0; i < p.count; i++) {
		if (p.has_word)
			memcpy(place_at(&p, p.index + i), &p.word, sizeof(p.word));
		else
			pattern_fill((struct pattern){ .seed = a->seed, .tag = p.tag, .index = p.index + i },
				     place_at(&p, p.index + i), p.size);
	}
	request_reply(r, NULL);
}

/* Neither what is wanted nor what was there before is stale: done twice, for one. */
static enum pattern_seen word_check(const struct agent *a, const struct place *p, const char *at, uint64_t *twice)
{
	uint64_t seen;

	memcpy(&seen, at, sizeof(seen));
	*twice += p->has_again && seen == p->again;
	if (seen == p->word)
		return PATTERN_INTACT;
	if (p->has_was)
		return seen == p->was ? PATTERN_ABSENT : PATTERN_STALE;
	return pattern_check((struct pattern){ .seed = a->seed, .tag = 0 }, at, sizeof(seen));
}

/* A former message (stale_tag) that lies there whole is stale, and so is what nobody knows. */
void op_verify(struct agent *a, struct request *r)
{
	struct tally tally = { .n_letters = 0 };
	struct place p;
	struct error e = { "" };
	int rc = parse_place(a, r->body, &p, &e);
	uint64_t from;

	if (rc < 0) {
		request_fail(r, rc, "verify: %s", e.text);
		return;
	}
	/* A slot shows the last message that it was given: earlier ones are not asked for. */
	from = p.count > p.slots ? p.count - p.slots : 0;
	for (uint64_t i = from; i < p.count; i++) {
		struct pattern want = { .seed = a->seed, .tag = p.tag, .index = p.index + i };

		tally_add(&tally, p.has_word ? word_check(a, &p, place_at(&p, p.index + i), &tally.twice)
					     : pattern_check(want, place_at(&p, p.index + i), p.size));
	}
	request_reply(r, tally_json(&tally));
}

struct finder {
	struct agent *agent;
	const struct rx *rx;
	uint32_t used; /* slots that ever had a receive in this life */
	uint64_t size;
	uint32_t tag;
	bool *claimed;
	uint64_t work;
};

static const char *slot_at(const struct finder *f, uint32_t slot)
{
	return (const char *)f->rx->mr->addr + f->rx->off + (uint64_t)slot * f->rx->stride + f->rx->head;
}

/* The best slot for a message: its own place first, since order is kept within a queue, then all others. */
static enum pattern_seen find_one(struct finder *f, uint64_t index, uint32_t start)
{
	struct pattern want = { .seed = f->agent->seed, .tag = f->tag, .index = index };
	enum pattern_seen best = PATTERN_ABSENT;
	uint32_t best_slot = 0;

	for (uint32_t k = 0; k < f->used && f->work < FIND_WORK_MAX; k++) {
		uint32_t slot = (start + k) % f->used;
		enum pattern_seen seen;

		if (f->claimed[slot])
			continue;
		f->work++;
		seen = pattern_check(want, slot_at(f, slot), f->size);
		if (seen == PATTERN_INTACT) {
			best = seen;
			best_slot = slot;
			break;
		}
		if (seen == PATTERN_PARTIAL && best == PATTERN_ABSENT) {
			best = seen;
			best_slot = slot;
		}
	}
	if (best != PATTERN_ABSENT)
		f->claimed[best_slot] = true;
	return best;
}

/* Messages that lie whole in a slot that none was found in: a second time, therefore. */
static uint64_t find_again(struct finder *f, uint64_t index0, uint64_t count)
{
	uint64_t twice = 0;

	for (uint64_t i = 0; f->size >= TELLING_BYTES && i < count; i++) {
		struct pattern want = { .seed = f->agent->seed, .tag = f->tag, .index = index0 + i };

		for (uint32_t slot = 0; slot < f->used && f->work < FIND_WORK_MAX; slot++) {
			if (f->claimed[slot])
				continue;
			f->work++;
			twice += pattern_check(want, slot_at(f, slot), TELLING_BYTES) == PATTERN_INTACT &&
				 pattern_check(want, slot_at(f, slot), f->size) == PATTERN_INTACT;
		}
	}
	return twice;
}

void op_find(struct agent *a, struct request *r)
{
	struct object *o = object_find(a, OBJECT_QP, json_str(r->body, "qp") ? json_str(r->body, "qp") : "");
	struct tally tally = { .n_letters = 0 };
	uint64_t count = json_u64(r->body, "count", 1), index0 = json_u64(r->body, "index", 0);
	struct finder f = { .agent = a, .size = json_u64(r->body, "size", 64), .tag = (uint32_t)json_int(r->body, "tag", 0) };
	const char *srq = json_str(r->body, "srq");
	struct object *in = srq ? object_find(a, OBJECT_SRQ, srq) : NULL;
	struct queue *q;
	bool too_many, cut;

	if (!o || !((struct qp *)o)->rq) {
		request_fail(r, -ENOENT, "find: there is no qp %s", json_str(r->body, "qp") ? json_str(r->body, "qp") : "");
		return;
	}
	q = in && ((struct srq *)in)->rq ? ((struct srq *)in)->rq : qp_recv_queue((struct qp *)o);
	f.rx = &q->rx;
	f.used = q->rx.mr ? q->rx.slots : 0;
	/* Of a message that is longer than any receive a beginning is all that can be there. */
	cut = q->rx.mr && q->rx.head + f.size > q->rx.stride;
	if (cut)
		f.size = q->rx.stride > q->rx.head ? q->rx.stride - q->rx.head : 0;
	if (cut && !f.size)
		f.used = 0;
	if (q->rx.mr && f.used && q->rx.off + (uint64_t)(f.used - 1) * q->rx.stride + q->rx.head + f.size > q->rx.mr->bytes) {
		request_fail(r, -ERANGE, "find: %s: %u receive slots of %u bytes do not fit into their memory", o->name, f.used,
			     q->rx.stride);
		return;
	}
	f.claimed = calloc(f.used ? f.used : 1, sizeof(*f.claimed));
	if (!f.claimed)
		abort();
	for (uint64_t i = 0; i < count; i++) {
		enum pattern_seen seen = find_one(&f, index0 + i, f.used ? (uint32_t)(i % f.used) : 0);

		tally_add(&tally, cut && seen == PATTERN_INTACT ? PATTERN_PARTIAL : seen);
	}
	too_many = f.work >= FIND_WORK_MAX;
	tally.twice = too_many || cut ? 0 : find_again(&f, index0, count);
	free(f.claimed);
	if (too_many)
		request_fail(r, -E2BIG, "find: %s: %llu messages in %u slots are too many to look for", o->name,
			     (unsigned long long)count, f.used);
	else
		request_reply(r, tally_json(&tally));
}
