/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: whatever the bytes are, the loader neither crashes nor leaks, and what it refuses it says why.
 * clang -fsanitize=fuzzer,address; `make fuzz` builds and runs it.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "scenario.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario s;
	struct diag d = { 0 };
	int rc = scenario_load_text((const char *)data, size, "fuzz.yaml", "fuzz", &s, &d);

	if (rc == -EINVAL && !d.errors)
		abort();
	if (!rc && (d.errors || !s.n_cases))
		abort();
	if (!rc)
		scenario_release(&s);
	diag_release(&d);
	return 0;
}
