#!/bin/bash
# SPDX-License-Identifier: MIT
# What a pipeline's job calls: installs, builds, runs, and runs once more what came to no verdict.
# usage: harness/ci/drill.sh PATH... [--shard K/N] [--select GLOB]      which cases, as `qpdrill run` takes them
# DRILL_HOW="--lab guest --kernel 6.12 --deadline 20min": how they run. Exit status: that of `qpdrill run`.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
read -ra how <<<"${DRILL_HOW:---lab guest --deadline 20min}"
# GitHub, GitLab and others have no terminal: nothing is asked.
make setup && make -j"$(nproc)" all || exit 2
build/qpdrill run "$@" "${how[@]}" --out runs
status=$?
# 3: something was inconclusive, or the harness or the guest failed. That is no word about the device, so it is asked again, once.
if [ $status -eq 3 ]; then
	echo "drill: once more, what came to no verdict" >&2
	build/qpdrill run --rerun-failed "$(readlink -f runs/latest)" "${how[@]}" --out runs
	status=$?
fi
exit $status
