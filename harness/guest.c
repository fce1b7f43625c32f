/* SPDX-License-Identifier: MIT */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest_saved.h"
#include "log.h"
#include "units.h"

#define QEMU "qemu-system-x86_64"
#define TAIL_BYTES (64 << 10)

/* Boot at half the time of the defaults under emulation: the TSC is believed instead of calibrated, self-tests are left out. */
#define CMDLINE_COMMON                                                                                                             \
	"console=ttyS0 loglevel=5 panic=-1 mitigations=off cryptomgr.notests init_on_alloc=0 random.trust_cpu=on audit=0 "         \
	"apparmor=0 unknown_nmi_panic"
#define CMDLINE_TCG " tsc=reliable clocksource=tsc lpj=10000000 no_timer_check"

#define TSC_MEASURE_NS (10 * NSEC_PER_MSEC)
#define TSC_READ_NS 2000

/* Ports of a machine that is saved, in this order; a boot has those that it is asked for. */
static const char *const saved_ports[] = { "control",  "channel",  "channel1", "channel2", "channel3", "channel4",
					   "channel5", "channel6", "channel7", "out",      "err",      "status" };

struct args {
	char **v;
	size_t n;
	bool failed;
};

static void add(struct args *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct args *a, const char *fmt, ...)
{
	char **grown = reallocarray(a->v, a->n + 2, sizeof *grown);
	va_list ap;

	if (!grown) {
		a->failed = true;
		return;
	}
	a->v = grown;
	va_start(ap, fmt);
	if (vasprintf(&a->v[a->n], fmt, ap) < 0) {
		a->v[a->n] = NULL;
		a->failed = true;
	} else {
		a->n++;
	}
	va_end(ap);
	a->v[a->n] = NULL;
}

/* The rate of this machine's time stamp counter, which an emulated guest reads, too; 0: unknown. A guest that measures it itself
 * while the machine is busy has been off by a factor of six, and all its deadlines with it. */
static unsigned tsc_khz(void)
{
#ifdef __x86_64__
	static unsigned khz;
	uint64_t begin = now_ns(), begin_ticks = __builtin_ia32_rdtsc(), ns, ticks;

	if (khz)
		return khz;
	/* Only where the counter and the clock were read one right after the other is the rate right. */
	do {
		ns = now_ns();
		ticks = __builtin_ia32_rdtsc();
	} while (ns - begin < TSC_MEASURE_NS || now_ns() - ns > TSC_READ_NS);
	khz = (unsigned)((ticks - begin_ticks) * NSEC_PER_MSEC / (ns - begin));
	return khz;
#else
	return 0;
#endif
}

/* In QEMU's option lists a comma is doubled. */
static void add_path(struct args *a, const char *option, const char *before, const char *path, const char *after)
{
	char *escaped = malloc(2 * strlen(path) + 1), *to = escaped;

	if (!escaped) {
		a->failed = true;
		return;
	}
	for (const char *p = path; *p; p++) {
		if (*p == ',')
			*to++ = ',';
		*to++ = *p;
	}
	*to = '\0';
	add(a, "%s", option);
	add(a, "%s%s%s", before, escaped, after);
	free(escaped);
}

static void add_share(struct args *a, const char *tag, const char *path, bool readonly)
{
	char before[64], device[64];

	snprintf(before, sizeof before, "local,id=fs-%s,path=", tag);
	add_path(a, "-fsdev", before, path,
		 readonly ? ",security_model=none,readonly=on,multidevs=remap" : ",security_model=none,multidevs=remap");
	snprintf(device, sizeof device, "virtio-9p-pci,fsdev=fs-%s,mount_tag=%s", tag, tag);
	add(a, "-device");
	add(a, "%s", device);
}

static void add_port(struct args *a, size_t nr, const char *name, const struct guest_port *p)
{
	add(a, "-chardev");
	if (!p)
		add(a, "file,id=port%zu,path=/dev/null", nr);
	else if (p->fd < 0)
		add(a, "stdio,id=port%zu,signal=off", nr);
	else if (p->socket)
		add(a, "socket,id=port%zu,fd=%d", nr, p->fd);
	else
		add(a, "file,id=port%zu,path=/proc/self/fd/%d,append=on", nr, p->fd);
	add(a, "-device");
	add(a, "virtserialport,bus=serial.0,nr=%zu,chardev=port%zu,name=%s", nr, nr, name);
}

static const struct guest_port *port_named(const struct guest_options *o, const char *name)
{
	for (size_t i = 0; i < o->n_ports; i++)
		if (strcmp(o->ports[i].name, name) == 0)
			return &o->ports[i];
	return NULL;
}

static void add_ports(struct args *a, const struct guest_options *o, const struct guest_machine *m)
{
	size_t n = m->kind == GUEST_COLD ? o->n_ports : sizeof saved_ports / sizeof saved_ports[0];

	add(a, "-device");
	add(a, "virtio-serial-pci,id=serial,max_ports=%zu", n + 1);
	for (size_t i = 0; i < n; i++) {
		const struct guest_port control = { .name = "control", .fd = m->control_fd, .socket = true };
		const char *name = m->kind == GUEST_COLD ? o->ports[i].name : saved_ports[i];

		add_port(a, i + 1, name,
			 m->kind == GUEST_COLD             ? &o->ports[i]
			 : strcmp(name, control.name) == 0 ? &control
							   : port_named(o, name));
	}
}

static void add_serial_lines(struct args *a, const struct guest_options *o, const struct guest_machine *m)
{
	if (o->console) {
		add_path(a, "-chardev", "file,id=console,path=", o->console, "");
	} else {
		add(a, "-chardev");
		add(a, "stdio,id=console,signal=off");
	}
	add(a, "-serial");
	add(a, "chardev:console");
	if (o->shell_fd < 0 && m->kind == GUEST_COLD)
		return;
	add(a, "-chardev");
	if (o->shell_fd >= 0)
		add(a, "socket,id=shell,fd=%d,server=on,wait=off", o->shell_fd);
	else
		add(a, "null,id=shell");
	add(a, "-serial");
	add(a, "chardev:shell");
}

static void add_machine(struct args *a, const struct guest_machine *m, bool kvm)
{
	add(a, "-accel");
	add(a, "%s", kvm ? "kvm" : "tcg,thread=multi");
	add(a, "-cpu");
	add(a, "%s", kvm ? "host" : "max");
	for (const char *const *fixed =
		     (const char *const[]){ "-smp", "2", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", NULL };
	     *fixed; fixed++)
		add(a, "%s", *fixed);
	add(a, "-m");
	add(a, "%d", GUEST_MEMORY_MB);
	add(a, "-M");
	add(a, "q35%s", m->kind == GUEST_COLD ? "" : ",memory-backend=memory");
	if (m->kind != GUEST_COLD) {
		char size[64];

		/* What is restored from it stays private to its guest. */
		snprintf(size, sizeof size, ",size=%dM,share=%s", GUEST_MEMORY_MB, m->kind == GUEST_TO_SAVE ? "on" : "off");
		add_path(a, "-object", "memory-backend-file,id=memory,mem-path=", m->memory_file, size);
	}
	if (m->kind == GUEST_RESTORED) {
		add(a, "-incoming");
		add(a, "defer");
	}
	if (m->qmp_fd >= 0) {
		add(a, "-chardev");
		add(a, "socket,id=qmp,fd=%d", m->qmp_fd);
		add(a, "-mon");
		add(a, "chardev=qmp,mode=control");
	}
}

static void add_kernel(struct args *a, const struct guest_options *o, const struct guest_machine *m, bool kvm)
{
	char rate[40] = "";

	if (!kvm && m->tell_rate && tsc_khz())
		snprintf(rate, sizeof rate, " tsc_early_khz=%u", tsc_khz());
	add(a, "-kernel");
	add(a, "%s", o->kernel->image);
	add(a, "-initrd");
	add(a, "%s", o->kernel->initrd);
	add(a, "-append");
	if (o->bare)
		add(a, CMDLINE_COMMON "%s%s qd.probe", kvm ? "" : CMDLINE_TCG, rate);
	else
		add(a, CMDLINE_COMMON "%s%s %s=%s", kvm ? "" : CMDLINE_TCG, rate, m->kind == GUEST_COLD ? "qd.boot" : "qd.save",
		    o->boot_file);
}

int guest_argv(const struct guest_options *o, const struct guest_machine *m, char ***ret, struct error *e)
{
	bool kvm = strcmp(o->accel, "kvm") == 0;
	const char *extra = o->extra_share ?: m->kind == GUEST_COLD ? NULL : o->share;
	struct args a = { 0 };

	add(&a, QEMU);
	add_machine(&a, m, kvm);
	add_kernel(&a, o, m, kvm);
	add_serial_lines(&a, o, m);
	/* The bare guest has the same devices: it is what the other is measured against. */
	add_share(&a, "root", "/", true);
	if (o->share)
		add_share(&a, "share", o->share, false);
	if (extra)
		add_share(&a, "extra", extra, false);
	add_ports(&a, o, m);
	if (a.failed) {
		guest_argv_free(a.v);
		return error_set(e, -ENOMEM, "out of memory");
	}
	*ret = a.v;
	return 0;
}

void guest_argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

static void close_pair(int pair[2])
{
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/* A socket of ours in pair[0], one that the child inherits in pair[1]. */
static int make_pair(int pair[2], struct error *e)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(e, -errno, "no socket for QEMU: %s", strerror(errno));
	fcntl(pair[1], F_SETFD, 0);
	return 0;
}

int guest_spawn(const struct guest_options *o, enum guest_kind kind, const char *memory_file, struct journal *journal,
		struct guest *ret, struct error *e)
{
	struct guest g = { .journal = journal, .qmp = { .fd = -1 }, .control = -1 };
	int qmp[2] = { -1, -1 }, control[2] = { -1, -1 };
	char **argv = NULL;
	int rc = make_pair(qmp, e);

	if (rc == 0 && kind != GUEST_COLD)
		rc = make_pair(control, e);
	const struct guest_machine m = { .kind = kind,
					 .tell_rate = kind != GUEST_RESTORED, /* it knows already */
					 .memory_file = memory_file,
					 .qmp_fd = qmp[1],
					 .control_fd = control[1] };

	if (rc == 0)
		rc = guest_argv(o, &m, &argv, e);
	if (rc == 0)
		rc = proc_spawn(&g.proc, argv, NULL, o->err_fd, e);
	if (rc == -ENOENT)
		error_set(e, rc, QEMU " is missing: `make setup` installs the package qemu-system-x86");
	guest_argv_free(argv);
	if (rc == 0 && journal) {
		rc = journal_add_process(journal, g.proc.pid, &g.journal_id, e);
		if (rc < 0)
			proc_stop(&g.proc, SIGKILL, 0);
	}
	if (rc == 0) {
		g.qmp.fd = qmp[0];
		g.control = control[0];
		qmp[0] = control[0] = -1;
		*ret = g;
	}
	close_pair(qmp);
	close_pair(control);
	return rc;
}

int guest_start(const struct guest_options *o, struct journal *journal, struct guest *ret, struct error *e)
{
	int rc = o->saved ? guest_saved_restore(o->saved, o, journal, ret, e) : -ENOENT;

	if (rc == 0 || rc == -EINTR)
		return rc;
	return guest_spawn(o, GUEST_COLD, NULL, journal, ret, e);
}

void guest_stop(struct guest *g)
{
	if (g->proc.pid <= 0)
		return;
	proc_stop(&g->proc, SIGKILL, 5 * NSEC_PER_SEC);
	guest_qmp_close(&g->qmp);
	if (g->control >= 0)
		close(g->control);
	if (g->journal_id)
		journal_done(g->journal, g->journal_id);
	*g = (struct guest){ .proc = { .pidfd = -1, .in = -1, .out = -1 }, .qmp = { .fd = -1 }, .control = -1 };
}

/* One line of the boot file; line breaks and backslashes in the value are escaped. */
static void put(FILE *f, const char *key, const char *value)
{
	if (!value)
		return;
	fprintf(f, "%s ", key);
	for (const char *p = value; *p; p++) {
		if (*p == '\n')
			fputs("\\n", f);
		else if (*p == '\\')
			fputs("\\\\", f);
		else
			fputc(*p, f);
	}
	fputc('\n', f);
}

int guest_write_boot(const char *folder, const char *name, const struct guest_kernel *k, const char *extra_share,
		     const struct guest_boot *b, struct error *e)
{
	char *path = NULL;
	int rc = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return error_set(e, -ENOMEM, "out of memory");
	FILE *f = fopen(path, "we");

	if (!f) {
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
		goto free_path;
	}
	fputs("# What a guest ran once it was up.\n", f);
	put(f, "share", folder);
	put(f, "extra", extra_share);
	put(f, "modules", k->modules);
	put(f, "release", k->release);
	put(f, "cwd", b->cwd);
	put(f, "tty", b->tty);
	put(f, "out", b->out);
	put(f, "err", b->err);
	put(f, "status", b->status);
	put(f, "shell", b->shell ? "yes" : NULL);
	put(f, "early", b->early ? "yes" : NULL);
	for (const char *const *v = b->env; v && *v; v++)
		put(f, "env", *v);
	for (const char *const *v = b->argv; *v; v++)
		put(f, "arg", *v);
	put(f, "port", b->channel);
	if (fclose(f) != 0)
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
free_path:
	free(path);
	return rc;
}

/* The last lines; where the kernel's headline lies before them, a quarter of the room is its. */
static void keep_the_end(json_t *lines, size_t max_lines)
{
	static const char *const headlines[] = { "Kernel panic", "BUG:", "Oops:", "WARNING:" };
	size_t n = json_array_size(lines), from = n > max_lines ? n - max_lines : 0, head = from, quarter = max_lines / 4;

	for (size_t i = from; i-- > 0 && head == from;)
		for (size_t k = 0; k < sizeof headlines / sizeof headlines[0]; k++)
			if (strstr(json_string_value(json_array_get(lines, i)), headlines[k]))
				head = i;
	size_t head_end = head < from ? head + quarter : head;

	from = head < from ? n - (max_lines - quarter) : from;
	for (size_t i = n; i-- > 0;)
		if (i < from && !(i >= head && i < head_end))
			json_array_remove(lines, i);
}

json_t *guest_console_tail(const char *path, size_t max_lines)
{
	json_t *lines = json_array();
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = malloc(TAIL_BYTES + 1);
	struct stat st;

	if (lines && fd >= 0 && text && fstat(fd, &st) == 0) {
		off_t from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
		ssize_t n = pread(fd, text, TAIL_BYTES, from);

		text[n > 0 ? n : 0] = '\0';
		for (char *p = text; *p;) {
			size_t len = strcspn(p, "\r\n");
			char line[1024], shown[2048];

			if (len) {
				snprintf(line, sizeof line, "%.*s", (int)len, p);
				json_array_append_new(lines, json_string(log_escape(line, shown, sizeof shown)));
			}
			p += len + (p[len] != '\0');
		}
	}
	if (fd >= 0)
		close(fd);
	free(text);
	keep_the_end(lines, max_lines);
	return lines;
}
