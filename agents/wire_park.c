/* SPDX-License-Identifier: MIT */
#include "wire_park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wire_parked *wire_parked_new(const struct wire_item *item, const uint8_t *frame, size_t len)
{
	struct wire_parked *p = malloc(sizeof *p + len);

	if (!p)
		return NULL;
	p->prev = p->next = NULL;
	p->due_ns = p->seq = 0;
	p->item = *item;
	memcpy(p->data, frame, len);
	p->item.a.frame = p->data;
	p->item.a.len = len;
	return p;
}

static bool earlier(const struct wire_parked *a, const struct wire_parked *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void swap(struct wire_park *park, size_t i, size_t k)
{
	struct wire_parked *p = park->heap[i];

	park->heap[i] = park->heap[k];
	park->heap[k] = p;
}

int wire_park_add(struct wire_park *park, struct wire_parked *p)
{
	if (park->n == park->room) {
		size_t room = park->room ? park->room * 2 : 64;
		struct wire_parked **grown = reallocarray(
			park->heap, room, sizeof *grown); /* NOLINT(bugprone-sizeof-expression): an array of pointers */

		if (!grown)
			return -ENOMEM;
		park->heap = grown;
		park->room = room;
	}
	p->seq = park->seq++;
	park->heap[park->n] = p;
	for (size_t i = park->n++; i && earlier(park->heap[i], park->heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(park, i, (i - 1) / 2);
	return 0;
}

struct wire_parked *wire_park_take(struct wire_park *park, uint64_t now_ns)
{
	if (!park->n || park->heap[0]->due_ns > now_ns)
		return NULL;
	struct wire_parked *first = park->heap[0];

	park->heap[0] = park->heap[--park->n];
	for (size_t i = 0;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < park->n && earlier(park->heap[child + 1], park->heap[child]))
			child++;
		if (child >= park->n || !earlier(park->heap[child], park->heap[i]))
			break;
		swap(park, i, child);
		i = child;
	}
	return first;
}

uint64_t wire_park_next(const struct wire_park *park)
{
	return park->n ? park->heap[0]->due_ns : UINT64_MAX;
}

void wire_park_release(struct wire_park *park)
{
	for (size_t i = 0; i < park->n; i++)
		free(park->heap[i]);
	free(park->heap);
	memset(park, 0, sizeof *park);
}
