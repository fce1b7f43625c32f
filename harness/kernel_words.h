/* SPDX-License-Identifier: MIT */
#ifndef QD_KERNEL_WORDS_H
#define QD_KERNEL_WORDS_H

#include <stdbool.h>

/* A line of the kernel's log that is a finding, whoever caused it. text may be NULL. */
bool kernel_complains(const char *text);

#endif
