/* SPDX-License-Identifier: MIT */
#include "wire_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct stored {
	struct stored *prev, *next;
	uint64_t real_ns;
	size_t len;
	uint8_t data[];
};

struct memory {
	struct wire_link link;
	struct stored *in, *lent, *out, *popped;
	unsigned failing;
};

static struct stored *store(struct stored **queue, const uint8_t *frame, size_t len, uint64_t real_ns)
{
	struct stored *s = malloc(sizeof *s + len);

	if (!s)
		return NULL;
	s->real_ns = real_ns;
	s->len = len;
	memcpy(s->data, frame, len);
	DL_APPEND(*queue, s);
	return s;
}

static void drop_all(struct stored **queue)
{
	struct stored *s, *next;

	DL_FOREACH_SAFE(*queue, s, next)
	{
		DL_DELETE(*queue, s);
		free(s);
	}
}

static int memory_fd(const struct wire_link *l)
{
	(void)l;
	return -1;
}

static unsigned memory_receive(struct wire_link *l, struct wire_buf *bufs, unsigned max)
{
	struct memory *m = (struct memory *)l;
	unsigned n = 0;

	while (m->in && n < max) {
		struct stored *s = m->in;

		DL_DELETE(m->in, s);
		DL_APPEND(m->lent, s);
		bufs[n++] = (struct wire_buf){ .data = s->data, .len = s->len, .real_ns = s->real_ns };
	}
	l->n.in += n;
	return n;
}

static void memory_done(struct wire_link *l)
{
	drop_all(&((struct memory *)l)->lent);
}

static unsigned memory_send(struct wire_link *l, const struct iovec *frames, unsigned n)
{
	struct memory *m = (struct memory *)l;
	unsigned sent = 0;

	for (unsigned i = 0; i < n; i++) {
		if (m->failing) {
			m->failing--;
			l->n.send_failed++;
			l->n.send_errno = ENOBUFS;
			continue;
		}
		sent += store(&m->out, frames[i].iov_base, frames[i].iov_len, 0) != NULL;
	}
	l->n.out += sent;
	return sent;
}

static void memory_counters(struct wire_link *l, struct wire_link_counters *ret)
{
	*ret = l->n;
}

static int memory_error(struct wire_link *l)
{
	(void)l;
	return 0;
}

static void memory_close(struct wire_link *l)
{
	struct memory *m = (struct memory *)l;

	drop_all(&m->in);
	drop_all(&m->lent);
	drop_all(&m->out);
	free(m->popped);
	free(m);
}

static const struct wire_link_ops memory_ops = {
	.name = "memory",
	.fd = memory_fd,
	.receive = memory_receive,
	.done = memory_done,
	.send = memory_send,
	.counters = memory_counters,
	.error = memory_error,
	.close = memory_close,
};

int wire_link_memory_open(struct wire_link **ret)
{
	struct memory *m = calloc(1, sizeof *m);

	if (!m)
		return -ENOMEM;
	m->link.ops = &memory_ops;
	*ret = &m->link;
	return 0;
}

int wire_link_memory_push(struct wire_link *l, const uint8_t *frame, size_t len, uint64_t real_ns)
{
	return store(&((struct memory *)l)->in, frame, len, real_ns) ? 0 : -ENOMEM;
}

bool wire_link_memory_pop(struct wire_link *l, const uint8_t **ret_frame, size_t *ret_len)
{
	struct memory *m = (struct memory *)l;
	struct stored *s = m->out;

	if (!s)
		return false;
	DL_DELETE(m->out, s);
	free(m->popped);
	m->popped = s;
	*ret_frame = s->data;
	*ret_len = s->len;
	return true;
}

void wire_link_memory_fail(struct wire_link *l, unsigned n)
{
	((struct memory *)l)->failing = n;
}
