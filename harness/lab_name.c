/* SPDX-License-Identifier: MIT */
#include "lab_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT_LETTERS_MAX 3 /* what it is for, and the end */

void lab_name(char buf[LAB_NAME_MAX], int lane, const char *what, char end, unsigned token)
{
	snprintf(buf, LAB_NAME_MAX, "qd%d%s%c-%04x", lane, what, end, token & 0xffff);
}

int lab_name_lane(const char *text, const char *suffix)
{
	size_t digits, letters, len = strlen(suffix);

	if (strncmp(text, "qd", 2) != 0)
		return -1;
	digits = strspn(text + 2, "0123456789");
	letters = strspn(text + 2 + digits, "abcdefghijklmnopqrstuvwxyz");
	if (digits < 1 || digits > 3 || letters < 1 || letters > WHAT_LETTERS_MAX)
		return -1;
	if (strncmp(text + 2 + digits + letters, suffix, len) != 0 || isalnum((unsigned char)text[2 + digits + letters + len]))
		return -1;
	return (int)strtol(text + 2, NULL, 10);
}

int lab_name_find(const char *text, const char *suffix)
{
	int found = -1;

	for (const char *p = strstr(text, "qd"); p; p = strstr(p + 2, "qd")) {
		int lane = p > text && isalnum((unsigned char)p[-1]) ? -1 : lab_name_lane(p, suffix);

		if (lane >= 0 && found >= 0 && lane != found)
			return -2;
		found = lane >= 0 ? lane : found;
	}
	return found;
}
