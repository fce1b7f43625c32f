/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "test.h"

#define LOOKS_MAX 8

#define OPEN(obj, device, errno_, ret)                                                                                             \
	"{\"kind\":\"verb\",\"verb\":\"ibv_open_device\",\"obj\":\"" obj "\",\"errno\":" errno_ ",\"args\":{\"device\":\"" device  \
	"\"},\"ret\":" ret "}\n"
#define WHOLE(fw) "{\"fw\":\"" fw "\",\"attr\":{\"max_qp\":7}}"

static const struct {
	const char *what, *records; /* NULL: there is no such file */
	size_t n;                   /* devices that are known then */
	const char *fw_of_a;
} rows[] = {
	{ "no records", NULL, 0, NULL },
	{ "opened again: not all is told", OPEN("dev.a", "x0", "0", "{\"fw\":\"1.0\"}"), 0, NULL },
	{ "refused", "{\"kind\":\"verb\",\"verb\":\"ibv_open_device\",\"obj\":\"dev.a\",\"errno\":19}\n", 0, NULL },
	{ "of the pair that looks on", OPEN("dev.bystander_a", "x0", "0", WHOLE("2.0")), 0, NULL },
	{ "one end", OPEN("dev.a", "x0", "0", WHOLE("2.1")), 1, "2.1" },
	{ "both ends", OPEN("dev.b", "x1", "0", WHOLE("2.2")) OPEN("dev.a", "x0", "0", WHOLE("2.3")), 2, "2.3" },
	{ "what is known is not asked for again", OPEN("dev.a", "x0", "0", WHOLE("2.4")), 2, "2.3" },
};

static void test_devices(void)
{
	char dir[] = "/tmp/qpdrill-devices-XXXXXX", path[64];
	json_t *run = json_object();
	unsigned looks = 0;

	MUST(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/observations.jsonl", dir);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const json_t *a;

		if (rows[i].records) {
			FILE *out = fopen(path, "w");

			MUST(out && fputs(rows[i].records, out) >= 0);
			fclose(out);
		}
		run_devices(run, dir, &looks);
		a = json_object_get(json_object_get(run, "devices"), "a");
		ROW_ASSERT(json_object_size(json_object_get(run, "devices")) == rows[i].n, "%s", rows[i].what);
		ROW_ASSERT(!rows[i].fw_of_a == !a && (!a || !strcmp(json_str(a, "fw"), rows[i].fw_of_a)), "%s", rows[i].what);
		ROW_ASSERT(!a || !strcmp(json_str(a, "device"), "x0"), "%s", rows[i].what);
	}
	json_object_del(run, "devices");
	looks = LOOKS_MAX;
	run_devices(run, dir, &looks);
	CU_ASSERT(!json_object_get(run, "devices"));
	unlink(path);
	rmdir(dir);
	json_decref(run);
}

static const struct test_case cases[] = {
	{ "what run.json says of the devices", test_devices },
};

TEST_MAIN("run_devices", cases)
