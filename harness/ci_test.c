/* SPDX-License-Identifier: MIT */
/* The jobs for pipelines are YAML, and call what is there. */
#include <libfyaml.h>
#include <unistd.h>

#include "test.h"

#define SCRIPT "harness/ci/drill.sh"

static const struct row {
	const char *file, *path, *holds;
} rows[] = {
	{ "harness/ci/github.yml", "/jobs/drill/container/image", "debian:12" },
	{ "harness/ci/github.yml", "/jobs/drill/steps/3/run", SCRIPT " scenarios --shard ${{ matrix.shard }}/4" },
	{ "harness/ci/github.yml", "/jobs/drill/strategy/matrix/shard/3", "4" },
	{ "harness/ci/github.yml", "/jobs/drill/steps/4/with/path", "runs/2*/junit.xml" },
	{ "harness/ci/github.yml", "/jobs/drill/env/QPDRILL_CACHE", ".cache/qpdrill" },
	{ "harness/ci/github.yml", "/jobs/drill/steps/2/with/path", ".cache/qpdrill/kernels" },
	{ "harness/ci/gitlab.yml", "/drill/image", "debian:12" },
	{ "harness/ci/gitlab.yml", "/drill/script/0", SCRIPT " scenarios --shard $CI_NODE_INDEX/$CI_NODE_TOTAL" },
	{ "harness/ci/gitlab.yml", "/drill/artifacts/reports/junit", "runs/2*/junit.xml" },
	{ "harness/ci/gitlab.yml", "/drill/variables/QPDRILL_CACHE", ".cache/qpdrill" },
	{ "harness/ci/gitlab.yml", "/drill/cache/paths/0", ".cache/qpdrill/kernels" },
	{ "harness/ci/gitlab.yml", "/drill/allow_failure/exit_codes/0", "77" },
};

static void test_jobs(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fy_document *doc = fy_document_build_from_file(NULL, rows[i].file);
		struct fy_node *node = doc ? fy_node_by_path(fy_document_root(doc), rows[i].path, FY_NT, FYNWF_DONT_FOLLOW) : NULL;
		const char *value = node ? fy_node_get_scalar0(node) : NULL;

		ROW_ASSERT(doc, "%s is no YAML", rows[i].file);
		ROW_ASSERT(value && strstr(value, rows[i].holds), "%s: %s is %s", rows[i].file, rows[i].path,
			   value ? value : "absent");
		fy_document_destroy(doc);
	}
	CU_ASSERT(access(SCRIPT, X_OK) == 0);
}

static const struct test_case cases[] = {
	{ "jobs for pipelines", test_jobs },
};

TEST_MAIN("ci", cases)
