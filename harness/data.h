/* SPDX-License-Identifier: MIT */
/*
 * Files that belong to the program but are not in it: scripts, scenarios, profiles. Looked for in $QPDRILL_DATA, beside the
 * program (a build tree: PROGRAM/../REL; installed: PROGRAM/../share/qpdrill/REL), where it was built, where it was to be
 * installed.
 */
#ifndef QD_DATA_H
#define QD_DATA_H

#include "error.h"

/* "harness/fetch_kernel.sh" or "scenarios/profiles" -> an absolute path in *ret (caller frees). -ENOENT names every place tried. */
int data_path(const char *rel, char **ret, struct error *e);
/* A program of this project beside the one that runs ("qpdrill-agent"), absolute, in *ret (caller frees). */
int data_program(const char *name, char **ret, struct error *e);
/* Where the cache folder is or would be made, absolute or as the environment has it (caller frees). */
int data_cache_place(char **ret, struct error *e);
/* The cache folder outside the tree, made if absent: $QPDRILL_CACHE, else $XDG_CACHE_HOME/qpdrill, else ~/.cache/qpdrill. */
int data_cache(char **ret, struct error *e);

#endif
