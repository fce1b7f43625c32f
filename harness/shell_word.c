/* SPDX-License-Identifier: MIT */
#include "shell_word.h"

#include <string.h>

void shell_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

	if (*word && strspn(word, plain) == strlen(word)) {
		fprintf(out, " %s", word);
		return;
	}
	fputs(" '", out);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
	fputc('\'', out);
}
