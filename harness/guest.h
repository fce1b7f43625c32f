/* SPDX-License-Identifier: MIT */
/*
 * A small QEMU guest on this machine: a kernel that has rxe, the host's root file system read-only with a tmpfs over it, one
 * writable folder, no network device. Needs no root and, once the kernel is in the cache, no network.
 *
 * A guest is ended by its pidfd; it dies with its controller (PR_SET_PDEATHSIG), and is in the journal beside that.
 */
#ifndef QD_GUEST_H
#define QD_GUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "guest_qmp.h"
#include "journal.h"
#include "proc.h"

#define GUEST_MEMORY_MB 768

/* What boots, as fetch_kernel.sh put it into the cache. */
struct guest_kernel {
	char *image, *initrd;
	char *modules; /* .../lib/modules/RELEASE */
	char *release;
	char *key; /* identifies image and modules */
};

/* Fetches or builds what is missing (progress on stderr). image and modules: one's own kernel, both or neither; image alone: a
 * series of Debian's kernels ("6.12"), whose newest it is then. */
int guest_kernel_find(const char *image, const char *modules, bool update, struct guest_kernel *ret, struct error *e);
void guest_kernel_release(struct guest_kernel *k);

/* "7.2.22"; "" when there is no QEMU. Returns buf. */
char *guest_qemu_version(char *buf, size_t size);

/* What `wanted` ("auto" "kvm" "tcg") comes to here: "kvm" or "tcg". auto boots the kernel with KVM to its first program, once per
 * boot of this machine, QEMU and kernel (the answer is in the cache): a /dev/kvm that opens may hang an ordinary kernel all the
 * same. */
int guest_accel(const char *wanted, const struct guest_kernel *k, const char **ret, struct error *e);

/* A virtio-serial port; a program in the guest finds it as $QD_PORT_<name>. */
struct guest_port {
	const char *name;
	int fd;      /* where its bytes go; -1: QEMU's stdin and stdout, which are proc.in and proc.out */
	bool socket; /* fd is one, and the port works both ways; else it is written to */
};

/* The same machine, down to the last port, saves a guest and restores it: then it has every device that any use asks for. */
enum guest_kind { GUEST_COLD, GUEST_TO_SAVE, GUEST_RESTORED };

struct guest_saved;

struct guest_options {
	const struct guest_kernel *kernel;
	const char *accel;     /* "kvm" or "tcg" */
	const char *share;     /* writable folder on the host; the guest sees it at its own path too */
	const char *boot_file; /* its name in `share` (guest_write_boot) */
	const char *console;   /* file for the console; NULL: QEMU's stdin and stdout */
	const struct guest_port *ports;
	size_t n_ports;
	const char *extra_share; /* a second writable folder, or NULL (9p tag `extra`) */
	int shell_fd;            /* a listening socket that gives a shell on ttyS1; -1: none */
	int err_fd;              /* QEMU's own complaints; -1: inherited */
	bool bare;               /* only to the first program, then off (probe, bench) */
	/* Where it may come from instead of a boot; NULL: it boots. */
	struct guest_saved *saved;
};

/* How one QEMU is started: filled in by guest_spawn and those who call it. */
struct guest_machine {
	enum guest_kind kind;
	const char *memory_file; /* of the last two kinds */
	bool tell_rate;          /* of its clock, measured anew by each process of this program */
	int qmp_fd, control_fd;  /* sockets that QEMU inherits; -1: none */
};

/* The QEMU command line, NULL-terminated, in *ret (free with guest_argv_free). */
int guest_argv(const struct guest_options *o, const struct guest_machine *m, char ***ret, struct error *e);
void guest_argv_free(char **argv);

struct guest {
	struct proc proc;
	struct journal *journal;
	int journal_id;
	struct guest_qmp qmp;
	int control; /* our end of its port `control`; -1: it booted, and has none */
};

/* Starts QEMU with that machine (whose descriptors it makes) and no more: a restored one waits for its state. */
int guest_spawn(const struct guest_options *o, enum guest_kind kind, const char *memory_file, struct journal *journal,
		struct guest *ret, struct error *e);
/* Restores o->saved, or boots where there is none or it does not come up (which is logged, and the file removed). -EINTR: nobody
 * waits for it any more. */
int guest_start(const struct guest_options *o, struct journal *journal, struct guest *ret, struct error *e);
/* How long somebody waits for a guest besides a deadline: not any more when `ends` says so, which is asked at first, and when the
 * descriptor (-1: none) has something to read. */
struct guest_patience {
	int fd;
	bool (*ends)(void *user);
	void *user;
};

/* The next line on its control port is to be this one. patience may be NULL. -EINTR: it has ended. */
int guest_await_word(const struct guest *g, const char *word, uint64_t end_ns, const struct guest_patience *patience,
		     struct error *e);
/* Ends it at once. Safe on one that has ended or never began. */
void guest_stop(struct guest *g);

/* It seems to hang: has its kernel say on the console what it does - a panic, where it does not even do that - and writes the
 * registers of its processors to the file. Takes a few seconds at most; the guest is not to be used after. */
void guest_look(struct guest *g, const char *path);

/* What the guest runs once it is up; guest_boot.h says how that is written down. */
struct guest_boot {
	const char *const *argv;        /* NULL-terminated */
	const char *channel;            /* appended to argv: the device of this port; NULL: none */
	const char *const *env;         /* "K=V", NULL-terminated, or NULL */
	const char *cwd;                /* NULL: / */
	const char *tty;                /* "/dev/ttyS0": a terminal; NULL: no input, output to the ports below (console without) */
	const char *out, *err, *status; /* names of ports, or NULL */
	bool shell;                     /* a shell on ttyS1 beside it (options' shell_fd) */
	bool early;                     /* starts while modules still load; waits for them by itself ($QD_MODULES_FD) */
};

/* Writes the boot file folder/name. */
int guest_write_boot(const char *folder, const char *name, const struct guest_kernel *k, const char *extra_share,
		     const struct guest_boot *b, struct error *e);

/* The last max_lines lines of a console file, control characters escaped: array of strings, new reference (empty when there is
 * none). */
json_t *guest_console_tail(const char *path, size_t max_lines);

#endif
