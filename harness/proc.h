/* SPDX-License-Identifier: MIT */
/*
 * Child processes by pidfd: started with PR_SET_PDEATHSIG(SIGKILL), ended by id, never by name.
 * stdin and stdout are pipes (owned by the caller after proc_spawn), stderr is inherited or a file.
 */
#ifndef QD_PROC_H
#define QD_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "error.h"

struct proc {
	pid_t pid;   /* 0: none */
	int pidfd;   /* -1: none */
	int in, out; /* our ends: write to in, read from out; -1: none */
	int status;  /* wait status once `ended` */
	bool ended;
};

/* argv[0] is searched in PATH. env_add: NULL-terminated "K=V" strings to add, or NULL. err_fd: where stderr
 * goes, -1 to inherit. */
int proc_spawn(struct proc *ret, char *const argv[], const char *const *env_add, int err_fd, struct error *e);
/* The same, in the network namespace at that path; "": in this process's own. */
int proc_spawn_in(const char *netns, struct proc *ret, char *const argv[], const char *const *env_add, int err_fd, struct error *e);
/* Reaps without waiting; true when it has ended. */
bool proc_poll(struct proc *p);
/* The same, waiting for it. */
bool proc_wait(struct proc *p, uint64_t timeout_ns);
/* SIGTERM or sig, waits up to grace_ns, then SIGKILL and reap. Safe on an ended or empty one. */
void proc_stop(struct proc *p, int sig, uint64_t grace_ns);
/* It wants a processor, or the kernel works for it: that it is silent tells nothing. One that sleeps, is stopped or gone is not. */
bool proc_is_at_work(pid_t pid);
/* For how long the one of its threads that had to wait most for a processor has waited, since it began. 0 where the kernel does not
 * say. */
uint64_t proc_waited_ns(pid_t pid);
/* Runs a command to its end with a deadline, output (stdout) captured up to 1 MiB into *ret_out (caller frees, may be
 * NULL). Returns the exit status (0..255), 128+signal, or a negative errno. */
int proc_run(char *const argv[], uint64_t timeout_ns, char **ret_out, struct error *e);
/* How many files this process has open; -errno. */
int proc_files(void);

#endif
