/* SPDX-License-Identifier: MIT */
/*
 * What is changed on a machine is written down (and synced) before it is done, with the command that undoes it. A clean
 * end removes the file; `qpdrill clean`, and each run at its start, replays what a killed controller left, newest first. Entries of
 * a controller that still lives (same pid and start time) are left alone.
 *
 * Folder: $QPDRILL_STATE, else /run/qpdrill for root, else $XDG_RUNTIME_DIR/qpdrill, else ~/.cache/qpdrill/state.
 */
#ifndef QD_JOURNAL_H
#define QD_JOURNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

struct journal;

int journal_open(struct journal **ret, struct error *e);
/* undo: an argv that puts it back and may find it already gone ("ip" "link" "del" "qd0a-3f9c"). Returns an id through ret. */
int journal_add(struct journal *j, const char *const undo[], int *ret_id, struct error *e);
/* A process to be ended by id; start time is recorded so that a recycled pid is not hit. */
int journal_add_process(struct journal *j, pid_t pid, int *ret_id, struct error *e);
/* The change was undone. */
void journal_done(struct journal *j, int id);
/* Removes the file if nothing is left in it. */
void journal_close(struct journal *j);
/* Undoes the journals of controllers that are gone. ret_n: how many changes were undone. */
int journal_clean(unsigned *ret_n, bool verbose, struct error *e);

/* How many journals there are of controllers that live, and of such that are gone. Changes nothing. */
void journal_look(unsigned *ret_alive, unsigned *ret_left);

#endif
