#!/bin/bash
# SPDX-License-Identifier: MIT
# What a pipeline's job calls: installs, builds, runs, and runs once more what came to no verdict.
# usage: harness/ci/drill.sh PATH... [--shard K/N] [--select GLOB]      which cases, as `qpdrill run` takes them
# DRILL_HOW="--lab guest --kernel 6.12 --deadline 20min": how they run. Exit status: that of `qpdrill run`, or 128 + a signal.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
read -ra how <<<"${DRILL_HOW:---lab guest --deadline 20min}"
child=0 stopped=0 status=0

# In the background, since bash hears a signal only after what runs in the foreground; there SIGINT is ignored, so TERM is passed on.
# shellcheck disable=SC2317 # called by traps
stop() {
	stopped=$((128 + $1))
	[ "$child" -eq 0 ] || kill -TERM "$child" 2>/dev/null
}
trap 'stop 1' HUP
trap 'stop 2' INT
trap 'stop 15' TERM

# Nothing is begun once the job was told to end.
does() {
	[ "$stopped" -eq 0 ] || exit "$stopped"
	"$@" <&0 &
	child=$!
	[ "$stopped" -eq 0 ] || kill -TERM "$child" 2>/dev/null
	while wait "$child"; status=$?; kill -0 "$child" 2>/dev/null; do :; done
	child=0
	[ "$stopped" -eq 0 ] || exit "$stopped"
}

latest() { readlink runs/latest; }

# GitHub, GitLab and others have no terminal: nothing is asked.
does make setup
[ $status -eq 0 ] || exit 2
does make -j"$(nproc)" all
[ $status -eq 0 ] || exit 2
before=$(latest)
does build/qpdrill run "$@" "${how[@]}" --out runs
first=$(latest)
# 3: something was inconclusive, or the harness or the guest failed. That is no word about the device, so it is asked again, once;
# where it came to no run folder there is nothing to ask again, and `latest` is another run.
if [ $status -eq 3 ] && [ "$first" != "$before" ]; then
	echo "drill: once more, what came to no verdict" >&2
	does build/qpdrill run --rerun-failed "runs/$first" "${how[@]}" --out runs
	[ "$(latest)" != "$first" ] || status=3
fi
exit $status
