#!/bin/bash
# SPDX-License-Identifier: MIT
# Did anything that runs for every message, packet or case become slow? Ratios beside fixed work, measured now, against those kept in
# harness/testdata/short_bench.json. A change that is meant to cost more writes them anew: build/short_bench --write FILE.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-build}
name='short benchmark: no ratio is worse by more than a third'

if grep -q -- -fsanitize "$build/flags"; then
	echo "skip $name: built with a sanitizer"
	exit 0
fi
out=$("$build/short_bench" harness/testdata/short_bench.json)
status=$?
if [ $status -eq 0 ]; then
	echo "ok $name"
elif [ $status -eq 77 ]; then
	echo "skip $name: $out"
	exit 0
else
	echo "not ok $name"
	printf '%s\n' "$out" >&2
fi
[ $status -eq 0 ]
