/* SPDX-License-Identifier: MIT */
/* Words of a command that people are to type or paste. */
#ifndef QD_SHELL_WORD_H
#define QD_SHELL_WORD_H

#include <stdio.h>

/* A space and the word, quoted where a shell would read it otherwise. */
void shell_word(FILE *out, const char *word);

#endif
