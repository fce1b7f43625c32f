/* SPDX-License-Identifier: MIT */
/* Ports that a release left open, for whoever opens the same ones next. */
#include <string.h>
#include <sys/epoll.h>

#include "wire_serve_internal.h"

void wire_kept_close(struct wire_serve *s)
{
	for (unsigned i = 0; i < 2; i++) {
		if (s->kept[i].link)
			s->kept[i].link->ops->close(s->kept[i].link);
		s->kept[i].link = NULL;
	}
}

struct wire_link *wire_kept_take(struct wire_serve *s, const struct wire_kept *how)
{
	for (unsigned i = 0; i < 2; i++) {
		struct wire_kept *k = &s->kept[i];
		struct wire_link *link = k->link;

		if (!link || strcmp(k->netdev, how->netdev) || k->frames != how->frames || k->frame_bytes != how->frame_bytes)
			continue;
		k->link = NULL;
		if (link->ops->again && link->ops->again(link) == 0)
			return link;
		link->ops->close(link);
	}
	return NULL;
}

void wire_kept_put(struct wire_serve *s, struct wire_port *p)
{
	struct epoll_event none = { .events = 0 };

	if (!p->link || !p->link->ops->again)
		return;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, p->link->ops->fd(p->link), &none))
		return;
	s->kept[p->index] = p->how;
	s->kept[p->index].link = p->link;
	p->link = NULL;
}
