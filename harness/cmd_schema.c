/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <jansson.h>
#include <stdio.h>

#include "scenario.h"

static const struct argp argp = {
	.doc = "Prints the JSON Schema (draft 2020-12) of scenario files. It is made from the tables that the loader itself reads; "
	       "editors with a "
	       "YAML language server complete and check with it.",
};

int cmd_schema(int argc, char **argv)
{
	json_t *schema;

	command_parse(&argp, argc, argv, NULL);
	schema = scenario_schema();
	if (!schema)
		return EXIT_ERROR;
	json_dumpf(schema, stdout, JSON_INDENT(1) | JSON_SORT_KEYS);
	putchar('\n');
	json_decref(schema);
	return 0;
}
