/* SPDX-License-Identifier: MIT */
#include "utf8.h"

size_t utf8_decode(const void *text, size_t max, uint32_t *ret_char)
{
	static const struct {
		unsigned char lead_min, lead_max, second_min, second_max, len;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0xff, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *s = text;

	for (size_t i = 0; max && i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t len = forms[i].len;
		uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

		if (s[0] < forms[i].lead_min || s[0] > forms[i].lead_max)
			continue;
		if (len > max || (len > 1 && (s[1] < forms[i].second_min || s[1] > forms[i].second_max)))
			return 0;
		for (size_t k = 1; k < len; k++) {
			if ((s[k] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (s[k] & 0x3fu);
		}
		*ret_char = c;
		return len;
	}
	return 0;
}

bool utf8_hides(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{ 0x00, 0x1f },     { 0x7f, 0x9f },     { 0xad, 0xad },       { 0x61c, 0x61c },
		{ 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },   { 0x2060, 0x206f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}
