/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "plan.h"
#include "run.h"
#include "many.h"

#define ENDS 2
#define LOOKS_MAX 8 /* cases that are looked at before it is left */

/* The record of an agent that opened its device for the first time: with all that the device says of itself. */
static const json_t *description(const json_t *record)
{
	const char *kind = json_str(record, "kind"), *verb = json_str(record, "verb"), *obj = json_str(record, "obj");
	const json_t *ret = json_object_get(record, "ret");

	if (!kind || strcmp(kind, "verb") || !verb || strcmp(verb, "ibv_open_device") || !obj || strncmp(obj, "dev.", 4) ||
	    plan_is_bystander(obj))
		return NULL;
	return json_object_get(ret, "attr") ? ret : NULL;
}

void run_devices(json_t *run, const char *case_dir, unsigned *looks)
{
	json_t *devices = json_object_get(run, "devices"), *records, *record;
	struct error e;
	char path[4096];
	bool torn;
	size_t i;

	if (json_object_size(devices) >= ENDS || *looks >= LOOKS_MAX)
		return;
	snprintf(path, sizeof(path), "%s/observations.jsonl", case_dir);
	++*looks;
	if (many_load_records(path, &records, &torn, &e))
		return;
	json_array_foreach(records, i, record) {
		const json_t *ret = description(record);
		json_t *about;

		if (!ret)
			continue;
		about = json_copy((json_t *)ret);
		json_object_set(about, "device", json_object_get(json_object_get(record, "args"), "device"));
		if (!devices) {
			devices = json_object();
			json_object_set_new(run, "devices", devices);
		}
		json_object_set_new(devices, json_str(record, "obj") + strlen("dev."), about);
	}
	json_decref(records);
}
