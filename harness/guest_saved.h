/* SPDX-License-Identifier: MIT */
/*
 * A guest that was booted once, with its links up and none of the host's files mounted, and saved: its memory in a file that later
 * guests map copy-on-write, the rest of the machine in another. Restoring one takes a fraction of a boot (guest_boot.h has what is
 * said then; clock, random numbers and boot id are renewed).
 *
 * CACHE/saved/KEY/{ram,state,stamp.json}. KEY is a digest of all that the memory depends on: QEMU, its command line, accelerator,
 * kernel and initramfs, the sources that say how links are made and their number, and this boot of this machine, whose time stamp
 * counter the guest's clock was set by. A folder is made under another name and renamed when whole; the few used last are kept.
 * What is not as it was written is not restored, but removed.
 */
#ifndef QD_GUEST_SAVED_H
#define QD_GUEST_SAVED_H

#include "guest.h"

/* Lanes that are up in a guest that is saved for runs: one who wants more makes the rest. */
#define GUEST_SAVED_LANES 8

struct guest_saved_options {
	const struct guest_kernel *kernel;
	const char *accel;
	const char *inner;       /* the program that makes the links (data_program) */
	int lanes;               /* how many; 0: none */
	struct journal *journal; /* for its QEMU */
	/* How long one is waited for, made or restored; outlives it. NULL: to the end. */
	const struct guest_patience *patience;
};

/* The one for these; where there is none yet it is made, which takes a boot. NULL: none can be had, and the log says why. */
struct guest_saved *guest_saved_find(const struct guest_saved_options *o);
/* Restores it with the ports, shares and boot file of o. On failure (logged) it is gone from the cache, and s is empty; -EINTR: its
 * patience has ended, and nothing is wrong with it. */
int guest_saved_restore(struct guest_saved *s, const struct guest_options *o, struct journal *journal, struct guest *ret,
			struct error *e);
/* It came up and was no good: gone from the cache. NULL and empty are fine, here and below. */
void guest_saved_drop(struct guest_saved *s, const char *why);
void guest_saved_free(struct guest_saved *s);

#endif
