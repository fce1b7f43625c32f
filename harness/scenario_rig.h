/* SPDX-License-Identifier: MIT */
/* What the tests of the loader share. */
#ifndef QD_SCENARIO_RIG_H
#define QD_SCENARIO_RIG_H

#include <stdio.h>

/* A whole file as a string, the caller's; NULL: it cannot be read. */
static char *read_text(const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r"), *out;
	int c;

	if (!f)
		return NULL;
	out = open_memstream(&text, &size);
	while (out && (c = fgetc(f)) != EOF)
		fputc(c, out);
	if (out)
		fclose(out);
	fclose(f);
	return text;
}

#endif
