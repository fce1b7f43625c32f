/* SPDX-License-Identifier: MIT */
/*
 * A network namespace for each end: all the ends a of a lab live in one, all the ends b in the other, and the wire, with the far
 * ends of the links, in the namespace of the lab itself. Only where the kernel's rxe receives there, which is tried out.
 */
#ifndef QD_LAB_APART_H
#define QD_LAB_APART_H

#include <stdbool.h>

#include "journal.h"
#include "lab_netns.h"
#include "lab_tools.h"

#define LAB_APART_WHY_MAX 128

struct lab_apart {
	bool on;
	char name[2][LAB_NETNS_NAME_MAX]; /* of the namespaces: "qda-3f9c", "qdb-3f9c" */
	char path[2][sizeof LAB_NETNS_FOLDER + LAB_NETNS_NAME_MAX];
	int undo[2];                 /* journal ids; 0: none */
	char why[LAB_APART_WHY_MAX]; /* not on: the reason */
};

void lab_apart_name(struct lab_apart *a, unsigned token);
/* Tries it: the two namespaces are there afterwards, with their programs in t, or neither is and `why` says so. An error only where
 * something could not be put back. */
int lab_apart_try(struct lab_apart *a, struct lab_tools *t, struct journal *journal, unsigned token, struct error *e);
/* The namespaces are there, made by another process. */
int lab_apart_adopt(struct lab_apart *a, struct lab_tools *t, struct error *e);
/* All links and devices are gone from them. */
int lab_apart_end(struct lab_apart *a, struct lab_tools *t, struct journal *journal, struct error *e);
/* The namespace of end 0 or 1, where each has its own. */
enum lab_space lab_apart_space(const struct lab_apart *a, int end);

#endif
