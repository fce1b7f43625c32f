/* SPDX-License-Identifier: MIT */
/* What the parts of an examination share. */
#ifndef QD_DOCTOR_INTERNAL_H
#define QD_DOCTOR_INTERNAL_H

#include <stddef.h>

#include "doctor.h"

enum lab_kind { LAB_GUEST, LAB_RXE, NUM_LABS };
#define STOPS_GUEST (1u << LAB_GUEST)
#define STOPS_RXE (1u << LAB_RXE)
#define STOPS_BOTH (STOPS_GUEST | STOPS_RXE)

enum state { STATE_OK, STATE_NOTE, STATE_MISSING };

struct examination {
	const struct doctor *d;
	json_t *checks;
	char why[NUM_LABS][300]; /* the first thing that stops it */
};

/* mend: a command, or "". stops: which labs cannot run for it. */
__attribute__((format(printf, 7, 8))) void doctor_say(struct examination *x, const char *group, const char *check, enum state state,
						      unsigned stops, const char *mend, const char *fmt, ...);
/* The path below the root. Returns buf. */
char *doctor_path(const struct examination *x, const char *path, char *buf, size_t size);
/* The line of a file below the root; "" where there is none. Returns buf. */
char *doctor_line(const struct examination *x, const char *path, char *buf, size_t size);
/* What stands behind `key` in a file of lines "key value" below the root; "" where there is none. Returns buf. */
char *doctor_value(const struct examination *x, const char *path, const char *key, char *buf, size_t size);

/* "22.8 GiB", to three digits; whatever the unit. Returns buf. */
char *doctor_size(unsigned long long bytes, char *buf, size_t size);

/* doctor_host.c: kernel, RDMA, rights, limits. */
void doctor_host(struct examination *x);
/* doctor_tools.c: packages, and the programs beside this one. */
int doctor_tools(struct examination *x, struct error *e);
/* doctor_guest.c: KVM, the cache, what was left over. */
void doctor_guest(struct examination *x);

#endif
