/* SPDX-License-Identifier: MIT */
/* Without a guest: what is left of one that could not be saved, and how many are kept. saved_guest_test.sh restores real ones. */
#include "guest_saved.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

static char root[] = "/tmp/qd-saved-XXXXXX";

static void put_file(const char *name, const char *text, int mode)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", root, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* A folder that was last used so many seconds after the epoch. */
static void put_folder(const char *name, long used_s)
{
	const struct timespec times[2] = { { .tv_sec = used_s }, { .tv_sec = used_s } };
	char path[PATH_MAX], file[PATH_MAX];

	snprintf(path, sizeof path, "%s/saved/%s", root, name);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
	snprintf(file, sizeof file, "saved/%s/ram", name);
	put_file(file, "memory", 0644);
	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The names in saved/, sorted, with a blank after each. */
static void list(char *buf, size_t size)
{
	char path[PATH_MAX], names[32][NAME_MAX + 1];
	size_t n = 0, used = 0;

	snprintf(path, sizeof path, "%s/saved", root);
	DIR *d = opendir(path);

	for (const struct dirent *entry; d && (entry = readdir(d)) && n < 32;)
		if (entry->d_name[0] != '.')
			snprintf(names[n++], sizeof names[0], "%s", entry->d_name);
	if (d)
		closedir(d);
	qsort(names, n, sizeof names[0], by_name);
	buf[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s ", names[i]);
}

static struct guest_saved *find(void)
{
	char initrd[PATH_MAX];
	struct journal *journal = NULL;
	struct error e;

	put_file("initrd", "initramfs", 0644);
	snprintf(initrd, sizeof initrd, "%s/initrd", root);
	const struct guest_kernel kernel = {
		.image = initrd, .initrd = initrd, .release = (char[]){ "6.1" }, .key = (char[]){ "key" }
	};
	const struct guest_saved_options o = { .kernel = &kernel, .accel = "tcg", .inner = initrd, .lanes = 1 };
	struct guest_saved_options with_journal = o;

	CU_ASSERT_EQUAL_FATAL(journal_open(&journal, &e), 0);
	with_journal.journal = journal;
	struct guest_saved *s = guest_saved_find(&with_journal);

	journal_close(journal);
	return s;
}

static void a_qemu_that_ends_at_once_leaves_nothing(void)
{
	char names[1024], path[PATH_MAX];
	struct stat st;

	put_file("bin/qemu-system-x86_64", "#!/bin/sh\nprintf x >>$QPDRILL_CACHE/tries\necho it does not start >&2\nexit 1\n",
		 0755);
	CU_ASSERT_PTR_NULL(find());
	list(names, sizeof names);
	CU_ASSERT_STRING_EQUAL(names, "");
	/* One that dies while it boots is booted once more. */
	snprintf(path, sizeof path, "%s/tries", root);
	CU_ASSERT(stat(path, &st) == 0 && st.st_size == 2);
}

static void a_missing_qemu_leaves_nothing(void)
{
	char names[1024], path[PATH_MAX];

	snprintf(path, sizeof path, "%s/bin/qemu-system-x86_64", root);
	unlink(path);
	CU_ASSERT_PTR_NULL(find());
	list(names, sizeof names);
	CU_ASSERT_STRING_EQUAL(names, "");
}

static void few_are_kept_and_no_half_ones(void)
{
	char names[1024];

	put_folder("e", 500);
	put_folder("a", 100);
	put_folder("c", 300);
	put_folder("d", 400);
	put_folder("b", 200);
	put_folder("y", 20);
	put_folder("x", 5);
	put_folder("z", 10);
	put_folder("v", 3);
	put_folder("tmp.1234", 900);
	CU_ASSERT_PTR_NULL(find());
	list(names, sizeof names);
	CU_ASSERT_STRING_EQUAL(names, "a b c d e y z ");
}

static const struct test_case cases[] = {
	{ "a QEMU that ends at once leaves nothing", a_qemu_that_ends_at_once_leaves_nothing },
	{ "a missing QEMU leaves nothing", a_missing_qemu_leaves_nothing },
	{ "few are kept, and no half ones", few_are_kept_and_no_half_ones },
};

static void set_up(const char *variable, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s%s", root, name);
	mkdir(path, 0755);
	setenv(variable, path, 1);
}

int main(void)
{
	if (!mkdtemp(root))
		return 1;
	set_up("QPDRILL_CACHE", "");
	set_up("QPDRILL_STATE", "/state");
	set_up("PATH", "/bin");

	int rc = test_run("guest_saved", cases, sizeof cases / sizeof cases[0]);
	char command[PATH_MAX];

	snprintf(command, sizeof command, "/bin/rm -rf %s", root);
	return system(command) == 0 ? rc : 1;
}
