/* SPDX-License-Identifier: MIT */
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "units.h"

static const struct guest_kernel kernel = { (char[]){ "/k/image" }, (char[]){ "/k/initrd" }, (char[]){ "/k/lib/modules/6.1" },
					    (char[]){ "6.1" }, (char[]){ "key" } };

/* The word after `option` that begins with `begin`, or NULL. */
static const char *option_value(char **argv, const char *option, const char *begin)
{
	for (size_t i = 0; argv[i] && argv[i + 1]; i++)
		if (strcmp(argv[i], option) == 0 && strncmp(argv[i + 1], begin, strlen(begin)) == 0)
			return argv[i + 1];
	return NULL;
}

static void command_line(void)
{
	const struct guest_port ports[] = { { "channel", -1, false }, { "err", 9, false } };
	const struct guest_machine cold = { .kind = GUEST_COLD, .qmp_fd = -1, .control_fd = -1 };
	const struct guest_options o = { .kernel = &kernel,
					 .accel = "tcg",
					 .share = "/a,b/runs",
					 .boot_file = "boot-1.txt",
					 .console = "/a,b/console",
					 .ports = ports,
					 .n_ports = 2,
					 .shell_fd = -1,
					 .err_fd = -1 };
	char **argv = NULL;
	struct error e;

	CU_ASSERT_EQUAL_FATAL(guest_argv(&o, &cold, &argv, &e), 0);
	CU_ASSERT_STRING_EQUAL(argv[0], "qemu-system-x86_64");
	/* A comma in a path is the path's. */
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-fsdev", "local,id=fs-share,path=/a,,b/runs,"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-chardev", "file,id=console,path=/a,,b/console"));
	/* The root is read-only, the share is not, and nothing is a network. */
	CU_ASSERT_PTR_NOT_NULL(strstr(option_value(argv, "-fsdev", "local,id=fs-root,path=/,"), "readonly=on"));
	CU_ASSERT_PTR_NULL(strstr(option_value(argv, "-fsdev", "local,id=fs-share"), "readonly"));
	CU_ASSERT_PTR_NULL(option_value(argv, "-netdev", ""));
	CU_ASSERT_PTR_NULL(option_value(argv, "-device", "virtio-net"));
	CU_ASSERT_PTR_NOT_NULL(strstr(option_value(argv, "-append", "console="), "qd.boot=boot-1.txt"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-chardev", "stdio,id=port1"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-chardev", "file,id=port2,path=/proc/self/fd/9"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-accel", "tcg"));
	guest_argv_free(argv);
}

/* What a use of the guest asks for, and what it does not, changes nothing about the devices of a machine that is saved. */
static void machine_that_is_saved(void)
{
	const struct guest_port out[] = { { "out", -1, false }, { "err", 9, false } }, channel[] = { { "channel", 7, true } };
	const struct guest_options uses[] = {
		{ .share = "/s", .console = "/c", .shell_fd = -1 },
		{ .share = "/runs", .console = "/c", .shell_fd = 5, .ports = channel, .n_ports = 1 },
		{ .share = "/runs", .extra_share = "/x", .console = "/c", .shell_fd = -1, .ports = out, .n_ports = 2 },
	};
	char *devices[3] = { NULL };

	for (size_t i = 0; i < 3; i++) {
		const struct guest_machine m = {
			.kind = i ? GUEST_RESTORED : GUEST_TO_SAVE, .memory_file = "/a,b/ram", .qmp_fd = 3, .control_fd = 4
		};
		struct guest_options o = uses[i];
		char **argv = NULL;
		struct error e;
		size_t len;
		FILE *f = open_memstream(&devices[i], &len);

		o.kernel = &kernel;
		o.accel = "tcg";
		o.boot_file = "b";
		CU_ASSERT_EQUAL_FATAL(guest_argv(&o, &m, &argv, &e), 0);
		for (size_t k = 0; argv[k]; k++)
			if (k && (strcmp(argv[k - 1], "-device") == 0 || strcmp(argv[k - 1], "-serial") == 0))
				fprintf(f, "%s\n", argv[k]);
		fclose(f);
		ROW_ASSERT(strcmp(devices[i], devices[0]) == 0, "use %zu has\n%s and not\n%s", i, devices[i], devices[0]);
		/* Only the one that is saved writes to the file. */
		CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-object",
						    i ? "memory-backend-file,id=memory,mem-path=/a,,b/ram,size=768M,share=off"
						      : "memory-backend-file,id=memory,mem-path=/a,,b/ram,size=768M,share=on"));
		CU_ASSERT_EQUAL(option_value(argv, "-incoming", "defer") != NULL, i > 0);
		guest_argv_free(argv);
	}
	for (size_t i = 0; i < 3; i++)
		free(devices[i]);
}

static void boot_file(void)
{
	char dir[] = "/tmp/qd-guest-XXXXXX", path[64], text[2048];
	const char *const argv[] = { "/bin/sh", "-c", "a\nb\\c d", NULL };
	const char *const env[] = { "K=V", NULL };
	const struct guest_boot b = { .argv = argv, .env = env, .channel = "channel", .cwd = "/here", .early = true };
	struct error e;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL(guest_write_boot(dir, "boot.txt", &kernel, "/extra", &b, &e), 0);
	snprintf(path, sizeof path, "%s/boot.txt", dir);
	FILE *f = fopen(path, "re");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	static const char *const lines[] = { "\nextra /extra\n", "\nmodules /k/lib/modules/6.1\n",
					     "\nrelease 6.1\n",  "\ncwd /here\n",
					     "\nenv K=V\n",      "\narg /bin/sh\narg -c\narg a\\nb\\\\c d\n",
					     "\nport channel\n", "\nearly yes\n" };

	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		ROW_ASSERT(strstr(text, lines[i]), "no %s in %s", lines[i], text);
	CU_ASSERT_PTR_NULL(strstr(text, "\nshell"));
	unlink(path);
	rmdir(dir);
}

static void accelerators(void)
{
	const char *accel = NULL;
	struct error e = { "" };

	CU_ASSERT_EQUAL(guest_accel("tcg", &kernel, &accel, &e), 0);
	CU_ASSERT_STRING_EQUAL(accel, "tcg");
	CU_ASSERT(guest_accel("xen", &kernel, &accel, &e) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "xen"));
}

static bool ends_when_asked_again(void *user)
{
	int *left = user;

	return (*left)-- <= 0;
}

/* asks_left: how often it is asked before its patience ends; -1: it has none. */
static void a_word_is_waited_for(void)
{
	static const struct {
		const char *what, *said;
		bool hangs_up, news;
		int asks_left, rc;
		const char *text;
	} rows[] = {
		{ "it is said", "running\n", false, false, -1, 0, "" },
		{ "it is said, with patience", "running\n", false, false, 9, 0, "" },
		{ "another one", "dead\n", false, false, -1, -EIO, "the guest said 'dead' and not 'running'" },
		{ "QEMU ends", "runn", true, false, -1, -EPIPE, "QEMU ended before" },
		{ "nothing in time", "runn", false, false, -1, -ETIMEDOUT, "did not say 'running'" },
		{ "the run has ended", "", false, false, 0, -EINTR, "the run ends before" },
		{ "the run ends meanwhile", "", false, true, 1, -EINTR, "the run ends before" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int control[2], news[2], left = rows[i].asks_left;
		struct guest_patience patience = { .ends = ends_when_asked_again, .user = &left };
		uint64_t most_ns = rows[i].rc == -ETIMEDOUT ? 20 * NSEC_PER_MSEC : 60 * NSEC_PER_SEC;
		struct error e = { "" };

		CU_ASSERT_EQUAL_FATAL(pipe(control) | pipe(news), 0);
		CU_ASSERT_EQUAL(write(control[1], rows[i].said, strlen(rows[i].said)), (ssize_t)strlen(rows[i].said));
		if (rows[i].hangs_up)
			close(control[1]);
		if (rows[i].news)
			CU_ASSERT_EQUAL(write(news[1], "x", 1), 1);
		patience.fd = news[0];

		const struct guest g = { .control = control[0] };
		int rc = guest_await_word(&g, "running", now_ns() + most_ns, rows[i].asks_left < 0 ? NULL : &patience, &e);

		ROW_ASSERT(rc == rows[i].rc && strstr(e.text, rows[i].text), "%s: %d, %s", rows[i].what, rc, e.text);
		close(control[0]);
		if (!rows[i].hangs_up)
			close(control[1]);
		close(news[0]);
		close(news[1]);
	}
}

static const struct test_case cases[] = {
	{ "a word is waited for", a_word_is_waited_for },
	{ "command line", command_line },
	{ "machine that is saved", machine_that_is_saved },
	{ "boot file", boot_file },
	{ "accelerators", accelerators },
};

TEST_MAIN("guest", cases)
