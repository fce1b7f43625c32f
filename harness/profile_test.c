/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "test.h"

#define ENTRY                                                                                                                      \
	"- id: x\n  provider: rxe\n  seen: [6.1.0-57-amd64]\n  when: { spec: LOC_PROT_ERR, queue: send }\n  device: "              \
	"WR_FLUSH_ERR\n"                                                                                                           \
	"  source: s\n"

static int load(const char *text, const char *kernel, struct profile *ret, struct diag *d)
{
	char path[] = "/tmp/qpdrill-profile-XXXXXX";
	int fd = mkstemp(path), rc;
	struct error e;

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_FATAL(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	rc = profile_load(path, kernel, ret, d, &e);
	unlink(path);
	return rc;
}

/* Each mistake is refused, with a word on what is wrong. */
static const struct {
	const char *text, *says;
} mistakes[] = {
	{ ENTRY "  any: thing\n", "unknown key `any`" },
	{ "provider: rxe\nrules: []\n", "unknown key `rules`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  device: SUCCESS\n  source: s\n", "needs `when`" },
	{ "- id: x\n  provider: rxe\n  when: { spec: SUCCESS }\n  device: FATAL_ERR\n  source: s\n", "needs `seen`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { event: none }\n  device: none\n  source: s\n", "nothing to excuse" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: none }\n  device: SUCCESS\n  source: s\n", "`none` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { event: none, notify: maybe }\n  device: SQ_DRAINED\n  source: s\n",
	  "`notify` does not know `maybe`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { queue: send }\n  device: FATAL_ERR\n  source: s\n",
	  "exactly one value" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERR, event: CQ_ERR }\n  device: none\n  source: s\n",
	  "exactly one value" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: '*' }\n  device: FATAL_ERR\n  source: s\n", "`*` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: [LOC_PROT_ERR, LOC_LEN_ERR] }\n  device: FATAL_ERR\n  source: s\n",
	  "takes one value" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERR }\n  device: '*'\n  source: s\n", "`*` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERR }\n  device: LOC_PROT_ERR\n  source: s\n",
	  "nothing to excuse" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { event: CQ_ERR }\n  device: LOC_PROT_ERR\n  source: s\n",
	  "`LOC_PROT_ERR` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERROR }\n  device: none\n  source: s\n",
	  "`LOC_PROT_ERROR` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERR, queue: both }\n  device: none\n  source: s\n",
	  "does not know `both`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: LOC_PROT_ERR }\n  device: none\n  waives: everything\n  source: "
	  "s\n",
	  "does not know `everything`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { returns: ENOMEM }\n  device: SUCCESS\n  source: s\n",
	  "`SUCCESS` is no" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { attr: hops }\n  device: '64'\n  source: s\n", "`hops` is no attribute" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { attr: timeout }\n  device: none\n  source: s\n", "`none` is no number" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { packets: hop_limit }\n  device: '64'\n  source: s\n",
	  "packets that do not come are `none`" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { recovery: fails }\n  device: SUCCESS\n  source: s\n",
	  "`SUCCESS` is no end of a recovery" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { completion_event: comes }\n  device: verified\n  source: s\n",
	  "`verified` is no word on a completion event" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { recovery: fails }\n  device: fails\n  source: s\n",
	  "nothing to excuse" },
	{ "- id: x\n  provider: rxe\n  seen: []\n  when: { spec: SUCCESS, path_mtu: some }\n  device: none\n  source: s\n",
	  "does not know `some`" },
	{ ENTRY ENTRY, "there twice" },
	{ "provider: rxe\ntiming: { granularity: 4 parsecs }\n", "takes a duration" },
	{ "provider: rxe\ndeviations: { a: b }\n", "a list of entries" },
	{ "just a word\n", "a profile is a map" },
};

static void test_mistakes(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct profile p = { .provider = NULL };
		struct diag d = { .text = NULL };
		int rc = load(mistakes[i].text, "6.1.0-57-amd64", &p, &d);

		ROW_ASSERT(rc < 0 && d.errors && d.text && strstr(d.text, mistakes[i].says), "row %zu: %d, %s", i, rc,
			   d.text ? d.text : "nothing said");
		if (!rc)
			profile_release(&p);
		diag_release(&d);
	}
}

static void test_good(void)
{
	struct profile p;
	struct diag d = { .text = NULL };

	CU_ASSERT_FATAL(load("provider: rxe\ntiming: { granularity: 4ms }\ndeviations:\n" ENTRY, "6.1.0-57-amd64", &p, &d) == 0);
	CU_ASSERT(!strcmp(p.provider, "rxe"));
	CU_ASSERT(json_int(p.timing, "granularity", 0) == 4000000);
	CU_ASSERT(json_array_size(p.entries) == 1);
	CU_ASSERT(profile_entry_seen(&p, json_array_get(p.entries, 0)));
	profile_release(&p);
	diag_release(&d);
}

static const struct {
	const char *kernel, *seen;
	bool is;
} releases[] = {
	{ "6.1.0-57-amd64", "6.1.0-57-amd64", true },
	{ "6.1.0-58-amd64", "6.1.0-57-amd64", true },
	{ "6.1.0-57-arm64", "6.1.0-57-amd64", false },
	{ "6.1.0-57-cloud-amd64", "6.1.0-57-amd64", false },
	{ "6.12.115+deb13-amd64", "6.12.115-amd64", true },
	{ "6.12.116+deb13-amd64", "6.12.115+deb12-amd64", true },
	{ "6.17.13+deb13-amd64", "6.12.13+deb13-amd64", false },
	{ "6.12.95+deb12-cloud-amd64", "6.12.95+deb12-amd64", false },
	{ "6.12.3-mine", "6.12.95+deb12-amd64", false },
	{ "6.12.3", "6.12.3-mine", false },
	{ "6.1.0", "6.1.0-57-amd64", false },
	{ "6.1.5-57-amd64", "6.1.5-58-amd64", false },
	{ "", "6.1.0-57-amd64", false },
};

static void test_releases(void)
{
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		struct profile p = { .kernel = (char *)releases[i].kernel };
		json_t *entry = json_pack("{s:[s]}", "seen", releases[i].seen);

		ROW_ASSERT(profile_entry_seen(&p, entry) == releases[i].is, "%s seen on %s", releases[i].kernel, releases[i].seen);
		json_decref(entry);
	}
}

static const struct {
	const char *kernel, *from, *before;
	bool in;
} ranges[] = {
	{ "6.1.0-57-amd64", NULL, NULL, true },
	{ "6.1.0-57-amd64", "v6.1", NULL, true },
	{ "6.1.0-57-amd64", "v6.4", NULL, false },
	{ "6.1.0-57-amd64", NULL, "v6.4", true },
	{ "6.12.115-amd64", NULL, "v6.4", false },
	{ "6.12.115-amd64", "v6.4", "v6.13", true },
	{ "6.4.0", NULL, "v6.4", false },
	{ "7.2.1", "6.4", NULL, true },
	{ "", NULL, NULL, false },
};

static void test_ranges(void)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct profile p = { .kernel = (char *)ranges[i].kernel };
		json_t *entry = json_pack("{s:{}}", "kernel"), *kernel = json_object_get(entry, "kernel");

		if (ranges[i].from)
			json_object_set_new(kernel, "from", json_string(ranges[i].from));
		if (ranges[i].before)
			json_object_set_new(kernel, "before", json_string(ranges[i].before));
		ROW_ASSERT(profile_entry_in_range(&p, entry) == ranges[i].in, "%s from %s before %s", ranges[i].kernel,
			   ranges[i].from ? ranges[i].from : "-", ranges[i].before ? ranges[i].before : "-");
		json_decref(entry);
	}
}

static void test_libraries(void)
{
	static const struct {
		const char *version;
		bool of;
	} rows[] = {
		{ "44.0", true }, { "44.1", true }, { "43.9", false }, { "45.0", false }, { "unknown", false }, { NULL, false }
	};
	json_t *none = json_object(), *entry = json_pack("{s:{s:s,s:s}}", "rdma_core", "from", "v44", "before", "v45");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ROW_ASSERT(profile_entry_of_library(entry, rows[i].version) == rows[i].of, "%s",
			   rows[i].version ? rows[i].version : "-");
		ROW_ASSERT(profile_entry_of_library(none, rows[i].version), "an entry of the kernel alone");
	}
	json_decref(none);
	json_decref(entry);
}

static void own_entry(const struct profile *p, const json_t *entry)
{
	const json_t *release;
	size_t k;

	ROW_ASSERT(!strcmp(json_str(entry, "provider"), p->provider), "%s is no entry of %s", json_str(entry, "id"), p->provider);
	json_array_foreach(json_object_get(entry, "seen"), k, release) {
		struct profile on = { .kernel = (char *)json_string_value(release) };

		ROW_ASSERT(profile_entry_in_range(&on, entry), "%s was seen on %s, outside its range", json_str(entry, "id"),
			   json_string_value(release));
	}
}

/* The project's own profiles load, and nothing was seen where it cannot have been. */
static void test_own(void)
{
	static const char *const own[] = { "rxe", "mlx5", "irdma" };
	const json_t *entry;
	size_t k;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		struct error e = { "" };
		struct diag d = { .text = NULL };
		struct profile p;
		char path[256];
		int rc;

		snprintf(path, sizeof(path), "scenarios/profiles/%s.yaml", own[i]);
		rc = profile_load(path, "6.1.0-57-amd64", &p, &d, &e);
		ROW_ASSERT(rc == 0, "%s", d.text ? d.text : e.text);
		diag_release(&d);
		if (rc)
			continue;
		ROW_ASSERT(!strcmp(p.provider, own[i]) && json_array_size(p.entries) > 0, "%s", path);
		json_array_foreach(p.entries, k, entry)
			own_entry(&p, entry);
		profile_release(&p);
	}
}

static void test_missing_file(void)
{
	struct profile p;
	struct diag d = { .text = NULL };
	struct error e = { "" };

	CU_ASSERT(profile_load("/nonexistent/profile.yaml", "", &p, &d, &e) < 0);
	CU_ASSERT(strstr(e.text, "/nonexistent/profile.yaml") != NULL);
	diag_release(&d);
}

static const struct test_case cases[] = {
	{ "what the library does", test_libraries },
	{ "mistakes are refused", test_mistakes },
	{ "a good one", test_good },
	{ "releases that count as seen", test_releases },
	{ "ranges", test_ranges },
	{ "the project's own", test_own },
	{ "a missing file", test_missing_file },
};

TEST_MAIN("profile", cases)
