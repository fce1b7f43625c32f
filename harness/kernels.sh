#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: kernels.sh BUILD SERIES... [-- ARGUMENTS OF qpdrill run]      (what `make kernels` runs, after building)
#
# Runs scenarios in a guest of each of these series of Debian's kernels and prints one table, a column a kernel, kept as BUILD/kernels/table.md.
# A kernel that cannot be had is a line with the reason, and nothing that failed. Exit status: the worst of the runs; 77 when there was no kernel.
set -u -o pipefail
build=${1:?usage: kernels.sh BUILD SERIES... [-- ARGUMENTS]}
shift
series=() missing=() runs=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do series+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- scenarios
out=$build/kernels
mkdir -p "$out" || exit 3
status=77
for one in "${series[@]}"; do
	if ! answer=$("$(dirname "$0")/fetch_kernel.sh" --init "$build/qpdrill-init" --kernel "$one"); then
		missing+=("* $one: not run. $(sed -n 's/^error=//p' <<<"$answer")")
		continue
	fi
	printf '\n%s\n' "kernel $(sed -n 's/^release=//p' <<<"$answer")"
	"$build/qpdrill" run "$@" --lab guest --kernel "$one" --out "$out/$one" --quiet </dev/null
	rc=$?
	[ $rc -eq 2 ] && exit 2
	[ -r "$out/$one/latest/run.json" ] && runs+=("$out/$one/latest")
	case "$status,$rc" in # 1 before 3 before 0 before 77
	*,77) ;;
	77,* | 0,*) status=$rc ;;
	3,1) status=1 ;;
	esac
done
{
	# One run alone is a table too.
	[ ${#runs[@]} -gt 0 ] && "$build/qpdrill" report --table "${runs[@]}"
	[ ${#missing[@]} -gt 0 ] && printf '%s\n' '' "${missing[@]}"
	true
} | tee "$out/table.md"
exit $status
