/* SPDX-License-Identifier: MIT */
/* Which kernel boots, and with which accelerator. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "file_line.h"
#include "guest_boot.h"
#include "json.h"
#include "log.h"
#include "units.h"

#define FETCH_TIMEOUT_NS (1200 * NSEC_PER_SEC)
#define VERSION_TIMEOUT_NS (60 * NSEC_PER_SEC) /* where nothing is slow a tenth of a second */
#define PROBE_TIMEOUT_NS (5 * NSEC_PER_SEC)

static char *value_of(const char *lines, const char *key)
{
	size_t len = strlen(key);

	for (const char *p = lines; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		if (strncmp(p, key, len) == 0 && p[len] == '=')
			return strndup(p + len + 1, strcspn(p + len + 1, "\n"));
	return NULL;
}

int guest_kernel_find(const char *image, const char *modules, bool update, struct guest_kernel *ret, struct error *e)
{
	char *script = NULL, *init = NULL, *out = NULL;
	int rc = data_path("harness/fetch_kernel.sh", &script, e);

	if (rc == 0)
		rc = data_program("qpdrill-init", &init, e);
	if (rc < 0)
		goto free_out;
	char *argv[10] = { script, (char *)"--init", init };
	int n = 3;

	if (update)
		argv[n++] = (char *)"--update";
	if (image) {
		argv[n++] = (char *)"--kernel";
		argv[n++] = (char *)image;
	}
	if (modules) {
		argv[n++] = (char *)"--modules";
		argv[n++] = (char *)modules;
	}
	rc = proc_run(argv, FETCH_TIMEOUT_NS, &out, e);
	if (rc > 0) {
		char *why = value_of(out, "error");

		rc = error_set(e, -ENOENT, "no kernel for the guest: %s", why ? why : script);
		free(why);
	}
	if (rc < 0)
		goto free_out;
	struct guest_kernel k = {
		.image = value_of(out, "image"),
		.initrd = value_of(out, "initrd"),
		.modules = value_of(out, "modules"),
		.release = value_of(out, "release"),
		.key = value_of(out, "key"),
	};

	if (k.image && k.initrd && k.modules && k.release && k.key) {
		*ret = k;
		rc = 0;
	} else {
		rc = error_set(e, -EPROTO, "%s did not name image, initrd, modules, release and key", script);
		guest_kernel_release(&k);
	}
free_out:
	free(out);
	free(init);
	free(script);
	return rc;
}

void guest_kernel_release(struct guest_kernel *k)
{
	free(k->image);
	free(k->initrd);
	free(k->modules);
	free(k->release);
	free(k->key);
	*k = (struct guest_kernel){ 0 };
}

char *guest_qemu_version(char *buf, size_t size)
{
	const char *const argv[] = { "qemu-system-x86_64", "--version", NULL };
	struct error ignored;
	char *out = NULL;

	buf[0] = '\0';
	if (proc_run((char *const *)argv, VERSION_TIMEOUT_NS, &out, &ignored) == 0) {
		const char *v = strstr(out, "version ");

		if (v)
			snprintf(buf, size, "%.*s", (int)strcspn(v + 8, " \n("), v + 8);
	}
	free(out);
	return buf;
}

/* Reads until the mark, the end or the deadline. */
static bool reads_mark(struct proc *p, uint64_t end)
{
	char text[8192];
	size_t len = 0;

	for (;;) {
		uint64_t now = now_ns();
		struct pollfd pfd = { .fd = p->out, .events = POLLIN };

		if (now >= end)
			return false;
		if (poll(&pfd, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		ssize_t n = read(p->out, text + len, sizeof text - 1 - len);

		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		if (strstr(text, GUEST_BOOT_PROBE_MARK))
			return true;
		if (len > sizeof text / 2) { /* the mark may lie across two reads */
			memmove(text, text + len - 64, 64);
			len = 64;
		}
	}
}

static bool kvm_boots(const struct guest_kernel *k)
{
	struct guest_options o = { .kernel = k, .accel = "kvm", .shell_fd = -1, .bare = true };
	struct guest g;
	struct error e;

	o.err_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int rc = guest_start(&o, NULL, &g, &e);
	bool ok = rc == 0 && reads_mark(&g.proc, now_ns() + PROBE_TIMEOUT_NS);

	if (rc == 0)
		guest_stop(&g);
	if (o.err_fd >= 0)
		close(o.err_fd);
	return ok;
}

/* The boot of this machine, QEMU and kernel that an answer holds for. */
static char *probe_key(const struct guest_kernel *k, char boot_id[64])
{
	char qemu[64], *key = NULL;

	file_line(BOOT_ID_PATH, boot_id, 64);
	/* What QEMU it was is not known: the answer is of no use later. */
	if (!guest_qemu_version(qemu, sizeof qemu)[0])
		return NULL;
	return asprintf(&key, "%s %s %s", boot_id, qemu, k->key) < 0 ? NULL : key;
}

static json_t *known_answers(const char *path, const char *boot_id)
{
	struct error ignored;
	json_t *known = NULL, *value;
	const char *key;
	void *next;

	if (!path || json_load(path, &known, &ignored) < 0 || !json_is_object(known)) {
		json_decref(known);
		return json_object();
	}
	json_object_foreach_safe(known, next, key, value) if (strncmp(key, boot_id, strlen(boot_id)) != 0)
		json_object_del(known, key);
	return known;
}

static const char *probe(const struct guest_kernel *k)
{
	struct error ignored;
	char *cache = NULL, *path = NULL, boot_id[64], *key = probe_key(k, boot_id);

	if (data_cache(&cache, &ignored) == 0 && asprintf(&path, "%s/accel.json", cache) < 0)
		path = NULL;
	json_t *known = known_answers(path, boot_id), *answer = key ? json_object_get(known, key) : NULL;
	bool kvm = json_is_true(answer);

	if (!answer) {
		log_info("guest: trying whether /dev/kvm boots a kernel (up to %d s, once)",
			 (int)(PROBE_TIMEOUT_NS / NSEC_PER_SEC));
		kvm = kvm_boots(k);
		log_info("guest: %s", kvm ? "it does: KVM" : "it does not: emulation (tcg)");
		if (key && json_object_set_new(known, key, json_boolean(kvm)) == 0 && path && json_save(path, known, &ignored) < 0)
			log_debug("%s", ignored.text);
	}
	json_decref(known);
	free(path);
	free(cache);
	free(key);
	return kvm ? "kvm" : "tcg";
}

int guest_accel(const char *wanted, const struct guest_kernel *k, const char **ret, struct error *e)
{
	bool may = access("/dev/kvm", R_OK | W_OK) == 0;
	int why = errno;

	if (!wanted || strcmp(wanted, "auto") == 0)
		*ret = may ? probe(k) : "tcg";
	else if (strcmp(wanted, "tcg") == 0)
		*ret = "tcg";
	else if (strcmp(wanted, "kvm") == 0 && may)
		*ret = "kvm";
	else if (strcmp(wanted, "kvm") == 0)
		return error_set(e, -why, "--accel kvm: /dev/kvm: %s", strerror(why));
	else
		return error_set(e, -EINVAL, "--accel %s: there are auto, kvm and tcg", wanted);
	return 0;
}
