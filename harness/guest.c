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
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "units.h"

#define QEMU "qemu-system-x86_64"
#define MEMORY_MB 768
#define TAIL_BYTES (64 << 10)

/* Boot at half the time of the defaults under emulation: the TSC is believed instead of calibrated, self-tests are left out. */
#define CMDLINE_COMMON                                                                                                             \
	"console=ttyS0 loglevel=5 panic=-1 mitigations=off cryptomgr.notests init_on_alloc=0 random.trust_cpu=on audit=0 "         \
	"apparmor=0"
#define CMDLINE_TCG " tsc=reliable clocksource=tsc lpj=10000000 no_timer_check"

#define TSC_MEASURE_NS (10 * NSEC_PER_MSEC)
#define TSC_READ_NS 2000

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

static void add_ports(struct args *a, const struct guest_options *o)
{
	add(a, "-device");
	add(a, "virtio-serial-pci,id=serial,max_ports=%zu", o->n_ports + 1);
	for (size_t i = 0; i < o->n_ports; i++) {
		add(a, "-chardev");
		if (o->ports[i].fd < 0)
			add(a, "stdio,id=port%zu,signal=off", i);
		else
			add(a, "file,id=port%zu,path=/proc/self/fd/%d,append=on", i, o->ports[i].fd);
		add(a, "-device");
		add(a, "virtserialport,bus=serial.0,nr=%zu,chardev=port%zu,name=%s", i + 1, i, o->ports[i].name);
	}
}

int guest_argv(const struct guest_options *o, char ***ret, struct error *e)
{
	bool kvm = strcmp(o->accel, "kvm") == 0;
	struct args a = { 0 };
	char rate[40] = "";

	add(&a, QEMU);
	add(&a, "-accel");
	add(&a, "%s", kvm ? "kvm" : "tcg,thread=multi");
	add(&a, "-cpu");
	add(&a, "%s", kvm ? "host" : "max");
	for (const char *const *fixed = (const char *const[]){ "-M", "q35", "-smp", "2", "-nodefaults", "-no-user-config",
							       "-display", "none", "-no-reboot", NULL };
	     *fixed; fixed++)
		add(&a, "%s", *fixed);
	add(&a, "-m");
	add(&a, "%d", MEMORY_MB);
	add(&a, "-kernel");
	add(&a, "%s", o->kernel->image);
	add(&a, "-initrd");
	add(&a, "%s", o->kernel->initrd);
	add(&a, "-append");
	if (!kvm && tsc_khz())
		snprintf(rate, sizeof rate, " tsc_early_khz=%u", tsc_khz());
	add(&a, CMDLINE_COMMON "%s%s %s%s", kvm ? "" : CMDLINE_TCG, rate,
	    o->bare ? "qd.probe" : "qd.boot=", o->bare ? "" : o->boot_file);
	if (o->console) {
		add_path(&a, "-chardev", "file,id=console,path=", o->console, "");
	} else {
		add(&a, "-chardev");
		add(&a, "stdio,id=console,signal=off");
	}
	add(&a, "-serial");
	add(&a, "chardev:console");
	if (o->shell_fd >= 0) {
		add(&a, "-chardev");
		add(&a, "socket,id=shell,fd=%d,server=on,wait=off", o->shell_fd);
		add(&a, "-serial");
		add(&a, "chardev:shell");
	}
	/* The bare guest has the same devices: it is what the other is measured against. */
	add_share(&a, "root", "/", true);
	if (o->share)
		add_share(&a, "share", o->share, false);
	if (o->extra_share)
		add_share(&a, "extra", o->extra_share, false);
	add_ports(&a, o);
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

int guest_start(const struct guest_options *o, struct journal *journal, struct guest *ret, struct error *e)
{
	struct guest g = { .journal = journal };
	char **argv = NULL;
	int rc = guest_argv(o, &argv, e);

	if (rc < 0)
		return rc;
	rc = proc_spawn(&g.proc, argv, NULL, o->err_fd, e);
	guest_argv_free(argv);
	if (rc < 0)
		return rc == -ENOENT ? error_set(e, rc, QEMU " is missing: `make setup` installs the package qemu-system-x86") : rc;
	if (journal) {
		rc = journal_add_process(journal, g.proc.pid, &g.journal_id, e);
		if (rc < 0) {
			proc_stop(&g.proc, SIGKILL, 0);
			return rc;
		}
	}
	*ret = g;
	return 0;
}

void guest_stop(struct guest *g)
{
	if (g->proc.pid <= 0)
		return;
	proc_stop(&g->proc, SIGKILL, 5 * NSEC_PER_SEC);
	if (g->journal_id)
		journal_done(g->journal, g->journal_id);
	*g = (struct guest){ .proc = { .pidfd = -1, .in = -1, .out = -1 } };
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
