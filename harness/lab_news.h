/* SPDX-License-Identifier: MIT */
/*
 * Whether anything has changed since the last look: the kernel tells of every link, address, neighbour, queue and rule that comes,
 * goes or changes, and so a picture of them need not be made again where nothing was told.
 */
#ifndef QD_LAB_NEWS_H
#define QD_LAB_NEWS_H

#include <stdbool.h>

/* A descriptor to be closed, or a negative errno. */
int lab_news_open(void);
/* Takes what was told since. True when it is about one of these devices, or about no device (a rule), or when something was missed.
 */
bool lab_news_take(int fd, const unsigned *ifindex, unsigned n);

#endif
