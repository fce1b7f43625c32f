/* SPDX-License-Identifier: MIT */
/*
 * What the links and devices of a lane are called: "qd", the lane, a letter for what it is for ("" the direct link, "w" the link
 * with the wire, "f" where the wire stands), the end, and the token of the run. They must fit IFNAMSIZ, and tell whose a kernel
 * message is.
 */
#ifndef QD_LAB_NAME_H
#define QD_LAB_NAME_H

#include <stddef.h>

#define LAB_NAME_MAX 16

void lab_name(char buf[LAB_NAME_MAX], int lane, const char *what, char end, unsigned token);
/* The lane whose name begins at text; suffix ("-3f9c") is the run's. -1: none does. */
int lab_name_lane(const char *text, const char *suffix);
/* The lane that a line of text speaks of; -1: of none, -2: of several. */
int lab_name_find(const char *text, const char *suffix);

#endif
