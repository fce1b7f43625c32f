/* SPDX-License-Identifier: MIT */
/*
 * One program of iproute2 (ip, tc, rdma) kept open in batch mode: a command costs a fraction of what starting a program does.
 *
 * End of an answer: after each command comes a word that no version knows, a new one each time; the complaint about it on stderr is
 * the mark (stderr is unbuffered, and JSON answers are flushed per command before). A program that does not come to its mark in
 * time is ended by pid and started again for the next command.
 *
 * Blocks the caller, up to the deadline: commands are short, and faults are injected from inside callbacks too.
 */
#ifndef QD_LAB_TOOL_H
#define QD_LAB_TOOL_H

#include <jansson.h>
#include <stdint.h>

#include "error.h"

/* A command takes milliseconds. On a machine that emulates, and is busy, it has taken more than 5 s. */
#define LAB_TOOL_TIMEOUT_NS 30000000000ULL

struct lab_tool;

/* name: "ip" "tc" "rdma". netns: the path of the network namespace that it works in, "" for this process's own. Starts nothing yet.
 */
int lab_tool_new(const char *name, const char *netns, struct lab_tool **ret, struct error *e);
/* Starts the program without waiting for it, so that several come up at a time. */
int lab_tool_start(struct lab_tool *t, struct error *e);
/* One command, without the program's name ("link show"). ret_out (may be NULL): the JSON answer, null when there is none, new
 * reference. A refusal is a negative errno (the kernel's own where the program names it) with the program's words in e. */
int lab_tool_run(struct lab_tool *t, const char *args, uint64_t timeout_ns, json_t **ret_out, struct error *e);
/* Several commands, one a line, none of whose answers is wanted: one wait for all. All of them run; a refusal of any is an error
 * with all its words. */
int lab_tool_batch(struct lab_tool *t, const char *lines, uint64_t timeout_ns, struct error *e);
/* Ends the program; the next command starts it afresh. rdma learns of devices only when it starts. */
void lab_tool_restart(struct lab_tool *t);
void lab_tool_free(struct lab_tool *t);
/* In a child process after fork(): the program is the parent's and is left alone; the next command starts one for this process. */
void lab_tool_forked(struct lab_tool *t);

/* The errno that a complaint names ("RTNETLINK answers: File exists"), negative; -EIO when it names none. */
int lab_tool_errno(const char *text);

#endif
