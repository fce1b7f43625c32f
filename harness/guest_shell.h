/* SPDX-License-Identifier: MIT */
/* A shell in a guest that a run keeps up (--keep): its second serial line, reached through RUNDIR/guest.sock. */
#ifndef QD_GUEST_SHELL_H
#define QD_GUEST_SHELL_H

#include "error.h"

/* A listening socket at run_dir/guest.sock that a child inherits, in *ret_fd. */
int guest_shell_listen(const char *run_dir, int *ret_fd, struct error *e);
void guest_shell_unlisten(const char *run_dir, int fd);
/* Joins this terminal to it until Ctrl-] or the guest's end. */
int guest_shell_attach(const char *run_dir, struct error *e);

#endif
