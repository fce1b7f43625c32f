/* SPDX-License-Identifier: MIT */
/* Machines that are folders: what is said of each, and what would mend it. */
#include "doctor.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.h"
#include "test.h"

static char base[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* With all folders above it. A name that ends in / is a folder. */
static void put(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", base, name);
	for (char *s = path + 1; (s = strchr(s, '/')); s++) {
		*s = 0;
		mkdir(path, 0755);
		*s = '/';
	}
	if (path[strlen(path) - 1] == '/')
		return;
	f = fopen(path, "w");
	MUST(f != NULL);
	fputs(text, f);
	fclose(f);
	chmod(path, 0755);
}

static void take(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", base, name);
	CU_ASSERT(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* A machine that lacks nothing. */
static const struct file {
	const char *name, *text;
} whole[] = {
	{ "/proc/sys/kernel/osrelease", "6.1.0-57-amd64\n" },
	{ "/proc/sys/kernel/random/boot_id", "boot-1\n" },
	{ "/proc/self/status", "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n" },
	{ "/proc/self/uid_map", "         0          0 4294967295\n" },
	{ "/proc/self/limits", "Max locked memory         65536                65536                bytes     \n" },
	{ "/proc/self/ns/net", "" },
	{ "/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    8388608 kB\n" },
	{ "/lib/modules/6.1.0-57-amd64/modules.dep", "kernel/a.ko:\nkernel/drivers/infiniband/sw/rxe/rdma_rxe.ko: kernel/a.ko\n" },
	{ "/sys/class/infiniband/mlx5_0/fw_ver", "22.38.1002\n" },
	{ "/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n" },
	{ "/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n" },
	{ "/dev/infiniband/uverbs0", "" },
	{ "/dev/kvm", "" },
	{ "/bin/qemu", "" },
	{ "/sbin/ip", "" },
	{ "/bin/tc", "" },
	{ "/bin/valgrind", "" },
	{ "/bin/tshark", "" },
	{ "/etc/rxe.driver", "" },
	{ "/bin/gcc", "" },
	{ "/built/qpdrill-agent", "" },
	{ "/built/qpdrill-wire", "" },
	{ "/built/qpdrill-inner", "" },
	{ "/built/qpdrill-init", "" },
	{ "/cache/kernels/6.1.0-57-amd64_6.1.192-3/", "" },
	{ "/cache/kernels/6.12.95_x/", "" },
	{ "/cache/current", "" },
	{ "/cache/saved/aa/stamp.json", "{}" },
	{ "/cache/saved/half/ram", "" },
	{ "/cache/accel.json", "{\"boot-0 q k\":false,\"boot-1 q k\":true}" },
	{ "/state/", "" },
	{ "/packages.txt", "# a comment\ngcc|gcc|build|compiles\niproute2|ip tc|lab|links\nproviders|/etc/rxe.driver|lab|drives "
			   "rxe\nqemu|qemu|guest|boots\n"
			   "valgrind|valgrind|test|counts\ntshark|tshark|optional|reads\n" },
};

static char *fake_version(const char *program)
{
	return strcmp(program, "qemu") ? NULL : strdup("7.2.22");
}

static void setup(void)
{
	char path[128];

	snprintf(base, sizeof(base), "/tmp/qd-doctor-XXXXXX");
	MUST(mkdtemp(base) != NULL);
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		put(whole[i].name, whole[i].text);
	snprintf(path, sizeof(path), "%s/state", base);
	setenv("QPDRILL_STATE", path, 1);
}

static void teardown(void)
{
	unsetenv("QPDRILL_STATE");
	nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int examine(json_t **ret, struct error *e)
{
	char programs[128], packages[128], cache[128];
	struct doctor d = { .root = base,
			    .search = "/bin:/sbin",
			    .programs = programs,
			    .packages = packages,
			    .cache = cache,
			    .version = fake_version,
			    .room_bytes = 8ULL << 30 };

	snprintf(programs, sizeof(programs), "%s/built", base);
	snprintf(packages, sizeof(packages), "%s/packages.txt", base);
	snprintf(cache, sizeof(cache), "%s/cache", base);
	return doctor_examine(&d, ret, e);
}

/* Finds a check; NULL: there is none. */
static const json_t *check_named(const json_t *doc, const char *name)
{
	const json_t *c;
	size_t i;

	json_array_foreach(json_object_get(doc, "checks"), i, c)
		if (json_has(c, "check", name))
			return c;
	return NULL;
}

static bool is_possible(const json_t *doc, const char *lab)
{
	return json_bool(json_object_get(json_object_get(doc, "labs"), lab), "possible", false);
}

static const struct row {
	const char *gone;          /* is taken away */
	const char *put, *text;    /* and this put in its place, or beside it */
	const char *check, *state; /* then of this check is said */
	const char *says, *mend;
	bool guest, rxe; /* and these can run */
} rows[] = {
	{ NULL, NULL, NULL, "rdma_rxe", "ok", "belongs to kernel 6.1.0-57-amd64", "", true, true },
	{ NULL, "/sys/module/rdma_rxe/x", "", "rdma_rxe", "ok", "and loaded", "", true, true },
	{ "/lib/modules", NULL, NULL, "rdma_rxe", "missing", "lab guest boots a kernel that has one", "", true, false },
	{ "/lib/modules", "/lib/modules/6.1.0-57-amd64/modules.builtin", "kernel/rxe/rdma_rxe.ko\n", "rdma_rxe", "ok", "belongs",
	  "", true, true },
	{ NULL, NULL, NULL, "mlx5_0", "ok", "22.38.1002, port 1 4: ACTIVE, 100 Gb/sec", "", true, true },
	{ "/sys/class", NULL, NULL, "devices", "ok", "none", "", true, true },
	{ "/dev/infiniband", NULL, NULL, "/dev/infiniband", "note", "no program can open", "modprobe ib_uverbs", true, true },
	{ NULL, NULL, NULL, "user", "ok", "root", "", true, true },
	{ NULL, "/proc/self/status", "Uid:\t1000\t1000\nCapEff:\t0\n", "user", "missing", "not root", "sudo qpdrill", true, false },
	{ NULL, "/proc/self/uid_map", "0 1000 1\n", "user", "missing", "root of a user namespace alone", "sudo qpdrill", true,
	  false },
	{ NULL, "/proc/self/status", "Uid:\t0\t0\nCapEff:\t000001ffffffdfff\n", "CAP_NET_RAW", "missing", "lab rxe lacks it",
	  "sudo", true, false },
	{ NULL, "/proc/self/status", "Uid:\t0\t0\nCapEff:\t000001ffffffdfff\n", "CAP_NET_ADMIN", "ok", "links", "", true, false },
	{ NULL, "/proc/self/status", "Uid:\t0\t0\nCapEff:\t000001fffffeffff\n", "CAP_SYS_MODULE", "missing", "loads rdma_rxe",
	  "sudo", true, false },
	{ NULL, NULL, NULL, "locked memory", "ok", "not limited", "", true, true },
	{ NULL, "/proc/self/status", "Uid:\t0\t0\nCapEff:\t000001ffffffbfff\n", "locked memory", "missing",
	  "at most 64 KiB; an end", "ulimit -l", true, false },
	{ "/proc/self/ns", NULL, NULL, "network namespaces", "note", "has none", "", true, true },
	{ NULL, NULL, NULL, "/dev/kvm", "ok", "boots kernels", "", true, true },
	{ "/cache/accel.json", NULL, NULL, "/dev/kvm", "ok", "the first run tries", "", true, true },
	{ NULL, "/cache/accel.json", "{\"boot-1 q k\":false}", "/dev/kvm", "note", "boots no kernel", "", true, true },
	{ NULL, "/cache/accel.json", "{\"boot-0 q k\":false}", "/dev/kvm", "ok", "the first run tries", "", true, true },
	{ NULL, "/cache/accel.json", "{", "/dev/kvm", "ok", "the first run tries", "", true, true },
	{ "/dev/kvm", NULL, NULL, "/dev/kvm", "note", "emulated", "", true, true },
	{ NULL, NULL, NULL, "memory", "ok", "8 GiB available; a guest may take 768 MiB", "", true, true },
	{ NULL, "/proc/meminfo", "MemAvailable: 1024 kB\n", "memory", "note", "1 MiB available", "", true, true },
	{ NULL, NULL, NULL, "kernels", "ok", "6.1.0-57-amd64, 6.12.95", "", true, true },
	{ "/cache/current", NULL, NULL, "kernels", "note", "but the distribution's is not in", "make setup", true, true },
	{ "/cache", NULL, NULL, "kernels", "note", "none; the distribution's is not in", "make setup", true, true },
	{ "/cache", "/cache", "a file", "cache", "missing", "/cache is no folder that this user may write to", "QPDRILL_CACHE",
	  false, true },
	{ NULL, NULL, NULL, "saved guests", "ok", "1", "", true, true },
	{ NULL, NULL, NULL, "disk", "ok", "8 GiB left", "", true, true },
	{ NULL, NULL, NULL, "left over", "ok", "nothing; 0 runs", "", true, true },
	{ NULL, "/state/journal-1-0.jsonl", "{}\n", "left over", "note", "1 run has been killed", "qpdrill clean", true, true },
	{ NULL, NULL, NULL, "qemu", "ok", "qemu 7.2.22", "", true, true },
	{ "/bin/qemu", NULL, NULL, "qemu", "missing", "no qemu: boots (guest)", "apt-get install --no-install-recommends qemu",
	  false, true },
	{ "/bin/tc", NULL, NULL, "iproute2", "missing", "no tc: links (lab)", "install --no-install-recommends iproute2", false,
	  false },
	{ "/etc", NULL, NULL, "providers", "missing", "no /etc/rxe.driver", "providers", false, false },
	{ "/bin/gcc", NULL, NULL, "gcc", "note", "compiles (build)", "gcc", true, true },
	{ "/bin/valgrind", NULL, NULL, "valgrind", "missing", "counts (test)", "valgrind", true, true },
	{ "/bin/tshark", NULL, NULL, "tshark", "note", "reads (optional)", "tshark", true, true },
	{ "/built/qpdrill-init", NULL, NULL, "qpdrill-init", "missing", "is not beside", "make", false, true },
	{ "/built/qpdrill-agent", NULL, NULL, "qpdrill-agent", "missing", "is not beside", "make", false, false },
};

static void each_machine(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct error e = { "" };
		json_t *doc = NULL;
		const json_t *c;

		setup();
		if (r->gone)
			take(r->gone);
		if (r->put)
			put(r->put, r->text);
		MUST(examine(&doc, &e) == 0);
		c = check_named(doc, r->check);
		ROW_ASSERT(c && json_has(c, "state", r->state) && strstr(json_str(c, "says"), r->says), "row %zu, %s: %s, %s", i,
			   r->check, c ? json_str(c, "state") : "none", c ? json_str(c, "says") : "");
		ROW_ASSERT(c && (*r->mend ? strstr(json_str(c, "mend"), r->mend) != NULL : !*json_str(c, "mend")),
			   "row %zu, %s: mend: %s", i, r->check, c ? json_str(c, "mend") : "none");
		ROW_ASSERT(is_possible(doc, "guest") == r->guest && is_possible(doc, "rxe") == r->rxe,
			   "row %zu, %s: guest %d, rxe %d", i, r->check, is_possible(doc, "guest"), is_possible(doc, "rxe"));
		ROW_ASSERT(doctor_exit_status(doc) == (r->guest || r->rxe ? 0 : 3), "row %zu: %d", i, doctor_exit_status(doc));
		json_decref(doc);
		teardown();
	}
}

/* What a run that goes on has written down is not left over, and is not disturbed. */
static void who_lives_is_not_left_over(void)
{
	struct error e = { "" };
	json_t *doc = NULL;
	char path[128];
	int fd;

	setup();
	put("/state/journal-2-0.jsonl", "{}\n");
	snprintf(path, sizeof(path), "%s/state/journal-2-0.jsonl", base);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0 && flock(fd, LOCK_EX) == 0);
	MUST(examine(&doc, &e) == 0);
	CU_ASSERT_STRING_EQUAL(json_str(check_named(doc, "left over"), "says"), "nothing; 1 run going on");
	close(fd);
	CU_ASSERT(access(path, F_OK) == 0);
	json_decref(doc);
	teardown();
}

static void first_reasons_come_first(void)
{
	struct error e = { "" };
	json_t *doc = NULL;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	setup();
	take("/bin/qemu");
	take("/lib/modules");
	MUST(examine(&doc, &e) == 0);
	doctor_text(doc, out, false);
	fclose(out);
	CU_ASSERT(!strncmp(text,
			   "lab guest  cannot run here: qemu: no qemu: boots (guest)\nlab rxe    cannot run here: rdma_rxe: ", 88));
	CU_ASSERT_EQUAL(doctor_exit_status(doc), 3);
	free(text);
	json_decref(doc);
	teardown();
}

/* The list is somebody's to edit. */
static void a_list_that_cannot_be_read(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = { { "a|b|lab\n", "packages.txt:1: no `package" },
		    { "# x\n\na|b|fun|d\n", "packages.txt:3: no `package" },
		    { "a|b|lab|d|e\n", "packages.txt:1: no `package" } };
	struct error e = { "" };
	json_t *doc = NULL;

	setup();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put("/packages.txt", bad[i].text);
		ROW_ASSERT(examine(&doc, &e) < 0 && strstr(e.text, bad[i].says), "row %zu: %s", i, e.text);
	}
	take("/packages.txt");
	CU_ASSERT(examine(&doc, &e) < 0 && strstr(e.text, "No such file"));
	CU_ASSERT_PTR_NULL(doc);
	teardown();
}

static const struct test_case cases[] = {
	{ "each machine", each_machine },
	{ "who lives is not left over", who_lives_is_not_left_over },
	{ "first reasons come first", first_reasons_come_first },
	{ "a list that cannot be read", a_list_that_cannot_be_read },
};

TEST_MAIN("doctor", cases)
