#!/bin/bash
# SPDX-License-Identifier: MIT
# A wire that dies or hangs at one moment or another, and one whose rule meets nothing, in a guest. Prints `ok NAME` or `not ok NAME`.
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

cat >"$work/1-wired.yaml" <<END
qpdrill: 1
title: A case that takes its time with its wire
requires: [wire]
qp: { timeout: 18, retry_cnt: 6 }
steps:
  - connect:
  - post: { at: a, op: SEND, size: 64, as: s }
  - expect: { of: s, wc: SUCCESS }
  - traffic: { ops: [SEND], depth: 4, as: t }
  - fault: { wire: { match: { class: nak }, action: drop }, as: idle }
  - wait: 6s
  - traffic: { stop: t }
  - clear: idle
END
cat >"$work/2-after.yaml" <<END
qpdrill: 1
title: The case after it
requires: [wire]
qp: { timeout: 18, retry_cnt: 6 }
steps:
  - connect:
  - traffic: { ops: [SEND], messages: 8 }
END

# Does something to the wire of the first case at its moment, and prints what came of both cases, and what is left.
cat >"$work/inside" <<END
cd '$PWD'
export QPDRILL_STATE=/run/qpdrill-test
wires() { grep -lxs qpdrill-wire /proc/[0-9]*/comm | cut -d/ -f3; }
records() { grep -qs "\$1" \$out/2*/cases/*1-wired/observations.jsonl; }
moment() {
	case \$1 in
	start) [ -n "\$(wires)" ] ;;
	traffic) records '"do":"wait"' ;;
	never) false ;;
	esac
}
one() { # signal moment
	out=/run/out-\$1-\$2
	'$qpdrill' run '$work/1-wired.yaml' '$work/2-after.yaml' --provider none --lab rxe --out \$out >/dev/null 2>&1 &
	pid=\$!
	until moment \$2 || ! kill -0 \$pid 2>/dev/null; do
		sleep 0.05
	done
	[ \$1 = NONE ] || kill -\$1 \$(wires)
	begin=\$(date +%s)
	wait \$pid
	took=\$((\$(date +%s) - begin))
	[ \$took -le 60 ] && soon=soon || soon="after \$took s"
	echo "\$1 \$2 \$(sed -E 's/.*"headline": ?"([^"]*)".*"verdict": ?"([^"]*)".*/\2: \1;/' \$out/latest/results.jsonl | tr '\n' ' ')" \
		"\$soon links \$(ls /sys/class/net | grep -c ^qd) wires \$(wires | wc -l) sockets \$(tail -n +2 /proc/net/packet | wc -l)"
}
one KILL start
one KILL traffic
one STOP start
one STOP traffic
one NONE never
END
timeout -k 5 500 "$qpdrill" guest run "bash $work/inside" >"$work/out" 2>"$work/err"

after='; pass: .*; *soon links 0 wires 0 sockets 0$'
grep -qE "^KILL start error: .*(the wire|wire batch).*$after" "$work/out"
verdict 'a wire that dies while it begins is an error, and the next case has another' $?
grep -qE "^KILL traffic error: .*the wire died: killed by signal 9$after" "$work/out"
verdict 'a wire that dies under traffic is an error, and the next case has another' $?
grep -qE "^STOP start error: .*did not answer .*$after" "$work/out"
verdict 'a wire that hangs while it begins is an error, bounded, and the next case has another' $?
grep -qE "^STOP traffic error: .*did not answer .*$after" "$work/out"
verdict 'a wire that hangs under traffic is an error, bounded, and the next case has another' $?
grep -qE "^NONE never inconclusive: .*fault idle \(wire\) left no evidence that it fired \(.*\)[^;]*$after" "$work/out"
verdict 'a rule that meets nothing is inconclusive, with the reason' $?
[ "${VERBOSE:-}" ] && cat "$work/out" "$work/err"
exit 0
