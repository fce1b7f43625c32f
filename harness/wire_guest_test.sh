#!/bin/bash
# SPDX-License-Identifier: MIT
# A wire that dies, that hangs, and whose rule meets nothing, in a guest. Prints `ok NAME` or `not ok NAME`.
# usage: BUILD=build harness/wire_guest_test.sh
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-$PWD/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
qpdrill=$build/qpdrill
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-wire-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

verdict() { # name condition-status
	if [ "$2" -eq 0 ]; then echo "ok $1"; else echo "not ok $1"; fi
}

cat >"$work/wired.yaml" <<END
qpdrill: 1
title: A case that waits with its wire
requires: [wire]
steps:
  - connect:
  - post: { at: a, op: SEND, size: 64, as: s }
  - expect: { of: s, wc: SUCCESS }
  - wait: 5s
  - fault: { wire: { match: { class: nak }, action: drop }, as: idle }
  - traffic: { ops: [SEND], messages: 8 }
  - clear: idle
END

# Runs the case, does something to its wire after the first second, and prints what came of both: this case, and one after it.
cat >"$work/inside" <<END
cd '$PWD'
export QPDRILL_STATE=/run/qpdrill-test
wires() { grep -lxs qpdrill-wire /proc/[0-9]*/comm | cut -d/ -f3; }
for signal in KILL STOP NONE; do
	'$qpdrill' run '$work/wired.yaml' --provider none --lab rxe --out /run/out-\$signal >/dev/null 2>&1 &
	pid=\$!
	for i in \$(seq 100); do
		grep -qs '"do":"wait"' /run/out-\$signal/2*/cases/*/observations.jsonl && break
		sleep 0.1
	done
	wire=\$(wires)
	[ \$signal = NONE ] || kill -\$signal \$wire
	begin=\$(date +%s)
	wait \$pid
	took=\$((\$(date +%s) - begin))
	[ \$took -le 30 ] && soon=soon || soon="after \$took s"
	echo "\$signal \$(sed -E 's/.*"headline": ?"([^"]*)".*"verdict": ?"([^"]*)".*/\2: \1/' /run/out-\$signal/latest/results.jsonl)" \
		"\$soon links \$(ls /sys/class/net | grep -c ^qd) wires \$(wires | wc -l)"
done
END
timeout -k 5 200 "$qpdrill" guest run "bash $work/inside" >"$work/out" 2>"$work/err"

grep -q '^KILL error: .*the wire died: killed by signal 9 soon links 0 wires 0$' "$work/out"
verdict 'a wire that dies is an error, and nothing is left' $?
grep -q '^STOP error: .*the wire did not answer .* soon links 0 wires 0$' "$work/out"
verdict 'a wire that hangs is an error, bounded, and nothing is left' $?
grep -q '^NONE inconclusive: .*fault idle (wire) left no evidence that it fired (.*another class).* soon links 0 wires 0$' "$work/out"
verdict 'a rule that meets nothing is inconclusive, with the reason' $?
