#!/bin/bash
# SPDX-License-Identifier: MIT
# A wire that dies or hangs at one moment or another, one whose rule meets nothing, and one that carries tags, in a guest. Prints `ok NAME` or `not ok NAME`.
# usage: BUILD=build harness/wire_guest_test.sh
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. harness/guest_test.bash

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
  - wait: WAIT
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
# Forks as little as can be: what it looks for does not last.
waits() {
	local file text
	for file in \$out/2*/cases/*1-wired/observations.jsonl; do
		text=''
		[ ! -r "\$file" ] || read -rd '' text <"\$file"
		[[ \$text == *'"do":"wait"'* ]] && return 0
	done
	return 1
}
moment() {
	case \$1 in
	start) [ -n "\$(wires)" ] ;;
	traffic) waits ;;
	never) false ;;
	esac
}
# A wire's death ends the wait of its case, so that may be long; that one stands still is found by the next question to it.
one() { # signal moment how-long-the-case-waits
	out=/run/out-\$1-\$2
	mkdir /run/\$1-\$2
	sed "s/WAIT/\$3/" '$work/1-wired.yaml' >/run/\$1-\$2/1-wired.yaml
	'$qpdrill' run /run/\$1-\$2/1-wired.yaml '$work/2-after.yaml' --provider none --lab rxe --lanes 1 --out \$out >/dev/null 2>&1 &
	pid=\$!
	until moment \$2 || ! kill -0 \$pid 2>/dev/null; do
		sleep 0.05
	done
	[ \$1 = NONE ] || kill -\$1 \$(wires)
	begin=\$(date +%s)
	wait \$pid
	took=\$((\$(date +%s) - begin))
	[ \$took -le 150 ] && soon=soon || soon="after \$took s"
	echo "\$1 \$2 \$(sed -E 's/.*"headline": ?"([^"]*)".*"verdict": ?"([^"]*)".*/\2: \1;/' \$out/latest/results.jsonl | tr '\n' ' ')" \
		"\$soon links \$(ls /sys/class/net | grep -c ^qd) wires \$(wires | wc -l) sockets \$(tail -n +2 /proc/net/packet | wc -l)"
}
heard() { # id
	for i in \$(seq 600); do grep -q "\"id\":\$1" /run/heard && break; sleep 0.1; done
}
# VLAN devices on both sides of a wire of its own, each side in a namespace: what they say to each other is tagged.
tagged() {
	modprobe 8021q && modprobe veth || return
	for side in a b; do
		ip netns add ns\$side && ip link add wire\$side type veth peer name end\$side netns ns\$side && ip link set wire\$side up
		ip -n ns\$side link set end\$side up && ip -n ns\$side link add link end\$side name tag\$side type vlan id 5
		ip -n ns\$side addr add 10.77.0.\$([ \$side = a ] && echo 1 || echo 2)/24 dev tag\$side && ip -n ns\$side link set tag\$side up
	done
	mkfifo /run/say
	'$build/qpdrill-wire' </run/say >/run/heard &
	exec 3>/run/say
	echo '{"id":1,"op":"open","ports":[{"name":"a","netdev":"wirea"},{"name":"b","netdev":"wireb"}]}' >&3
	echo '{"id":2,"op":"capture","path":"/run/tagged.pcapng"}' >&3
	heard 2
	# Nobody listens there: each datagram is answered, and what reads fails at once. Without a checksum (SO_NO_CHECK, 11): veth
	# leaves it to be filled in, and the wire takes frames as they are.
	ip netns exec nsb bash -c 'echo 0 >/proc/sys/net/ipv4/icmp_ratelimit'
	ip netns exec nsa perl -MSocket -e 'socket(S, PF_INET, SOCK_DGRAM, 17) && setsockopt(S, SOL_SOCKET, 11, 1) or die;
		connect(S, pack_sockaddr_in(9, inet_aton("10.77.0.2"))) or die;
		for (1 .. 5) {
			send(S, "x" x 1400, 0);
			vec(\$set = "", fileno(S), 1) = 1;
			\$n++ if select(\$set, undef, undef, 5) && !defined recv(S, \$got, 1, 0);
		}
		print "ANSWERED \$n\n"'
	echo '{"id":3,"op":"release"}' >&3
	heard 3
	exec 3>&-
	wait
	grep -o '"complete":[a-z]*' /run/heard | tail -1
	echo "TAGGED \$(od -An -v -tx1 /run/tagged.pcapng | tr -d ' \n' | grep -o '81000005080045' | wc -l)"
}
tagged
one KILL start 400s
one KILL traffic 400s
one STOP start 15s
one STOP traffic 15s
one NONE never 1s
END
timeout -k 5 2000 "$qpdrill" guest run "bash $work/inside" >"$work/out" 2>"$work/err"

grep -qx 'ANSWERED 5' "$work/out" && grep -q '^"complete":true' "$work/out" &&
	[ "$(sed -n 's/^TAGGED //p' "$work/out")" -ge 10 ]
verdict 'tagged datagrams and their answers cross the wire with their tags' $?
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
