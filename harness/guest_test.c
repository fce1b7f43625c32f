/* SPDX-License-Identifier: MIT */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

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
	const struct guest_port ports[] = { { "channel", -1 }, { "err", 9 } };
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

	CU_ASSERT_EQUAL_FATAL(guest_argv(&o, &argv, &e), 0);
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
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-chardev", "stdio,id=port0"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-chardev", "file,id=port1,path=/proc/self/fd/9"));
	CU_ASSERT_PTR_NOT_NULL(option_value(argv, "-accel", "tcg"));
	guest_argv_free(argv);
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

static const struct test_case cases[] = {
	{ "command line", command_line },
	{ "boot file", boot_file },
	{ "accelerators", accelerators },
};

TEST_MAIN("guest", cases)
