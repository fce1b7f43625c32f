/* SPDX-License-Identifier: MIT */
#include "sha256.h"

#include <stdlib.h>

#include "test.h"

/* The first three are examples of FIPS 180-4; the others lie on the edges of the padding (checked against sha256sum). */
static const struct row {
	const char *text;
	size_t times;
	const char *hex;
} rows[] = {
	{ "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	{ "x", 55, "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072" },
	{ "x", 56, "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e" },
	{ "x", 63, "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2" },
	{ "x", 64, "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c" },
	{ "x", 119, "000b48d4edf0fa7bee3c6236ecd2785baa5db4eeb8bb54341b029e0d9fa5fb0c" },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *data = malloc(rows[i].times * strlen(rows[i].text) + 1), hex[SHA256_HEX];
		size_t len = strlen(rows[i].text) * rows[i].times;

		CU_ASSERT_PTR_NOT_NULL_FATAL(data);
		if (!data)
			return;
		if (rows[i].times == 1)
			memcpy(data, rows[i].text, len + 1);
		else
			memset(data, rows[i].text[0], len);
		ROW_ASSERT(!strcmp(sha256_hex(data, len, hex), rows[i].hex), "%zu x '%s': %s", rows[i].times, rows[i].text, hex);
		free(data);
	}
}

static const struct test_case cases[] = { { "rows", test_rows } };

TEST_MAIN("sha256", cases)
