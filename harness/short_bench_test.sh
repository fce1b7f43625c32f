#!/bin/bash
# SPDX-License-Identifier: MIT
# Did anything that runs for every message, packet or case become slow? Instructions beside those of fixed work, counted now, against
# those kept in harness/testdata/short_bench.json: no clock is read, so no other load and no other machine changes the answer. A change
# that is meant to cost more writes them anew: build/short_bench --write FILE.
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-build}
reference=harness/testdata/short_bench.json
name='short benchmark: no ratio is worse by more than a third'
found='short benchmark: what takes one and a half times as much is found'

skip() { printf 'skip %s: %s\n' "$name" "$1" "$found" "$1"; exit 0; }

grep -q -- -fsanitize "$build/flags" && skip 'built with a sanitizer'
command -v valgrind >/dev/null || skip 'it needs valgrind'

out=$("$build/short_bench" $reference)
case $? in
0) echo "ok $name" ;;
77) skip "$out" ;;
*)
	echo "not ok $name"
	printf '%s\nfor people, in processor time, which is not judged:\n' "$out" >&2
	"$build/short_bench" --times >&2
	;;
esac

out=$("$build/short_bench" --slow $reference)
if [ $? -eq 1 ] && [ "$(grep -c 'MORE THAN A THIRD' <<<"$out")" -eq "$(wc -l <<<"$out")" ]; then
	echo "ok $found"
else
	echo "not ok $found"
	printf '%s\n' "$out" >&2
fi
