#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2317,SC2016 # functions are called by name; the inner shell expands
# usage: lint.sh CPPFLAGS C-FILE... -- SHELL-FILE...      (what `make lint` runs)
# Every check runs; the exit status is 1 when any of them found something.
set -u
cppflags=$1
shift
sources=() scripts=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do sources+=("$1"); shift; done
[ $# -gt 0 ] && shift
scripts=("$@")
status=0

check() { # name command...
	local name=$1
	shift
	if ! command -v "$1" >/dev/null; then
		printf 'lint: %s is missing (apt-get install %s)\n' "$1" "$1" >&2
		status=1
		return
	fi
	printf 'lint: %s\n' "$name"
	"$@" || { printf 'lint: %s found something\n' "$name" >&2; status=1; }
}

forbidden() {
	local found
	found=$(grep -nE '(^|[^a-zA-Z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|sleep|usleep)[[:space:]]*\(' "${sources[@]}" ./*/*.h) || return 0
	printf '%s\n' "$found"
	return 1
}

lengths() {
	wc -l "${sources[@]}" ./*/*.h | awk '$2 != "total" && $1 > 650 { print $2 ": " $1 " lines, at most 650"; bad = 1 } END { exit bad }'
}

licences() {
	local file bad=0
	for file in "${sources[@]}" ./*/*.h "${scripts[@]}"; do
		head -2 "$file" | grep -q 'SPDX-License-Identifier: MIT' || { echo "$file: no SPDX line"; bad=1; }
	done
	return "$bad"
}

tidy() {
	# One file at a time: with several, clang-tidy 14 sees va_lists without va_start in all but the first.
	# shellcheck disable=SC2086 # the flags are words
	printf '%s\n' "${sources[@]}" | xargs -P 2 -n 1 sh -c '
		flags=$1; shift
		clang-tidy --quiet "$@" -- -std=gnu11 $flags 2>/dev/null | grep -E "^/|warning:|error:" >&2 && exit 1
		exit 0' sh "$cppflags"
}

check 'forbidden functions' forbidden
check 'file lengths' lengths
check 'licence lines' licences
[ ${#scripts[@]} -eq 0 ] || check shellcheck shellcheck "${scripts[@]}"
check cppcheck cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --enable=warning,portability,performance \
	--suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches --suppress=unknownMacro -D_GNU_SOURCE -I. "${sources[@]}"
if command -v clang-tidy >/dev/null; then check clang-tidy tidy; else echo 'lint: clang-tidy is missing (apt-get install clang-tidy)' >&2; status=1; fi
exit $status
