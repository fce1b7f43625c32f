#!/bin/bash
# SPDX-License-Identifier: MIT
# The guest as a place to run in, and what is left when somebody is killed. Prints `ok NAME`, `not ok NAME` or `skip NAME: REASON`.
# usage: BUILD=build harness/lab_guest_test.sh [FUNCTION...]
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. harness/guest_test.bash

run_tells_output_and_status() {
	local out status
	# shellcheck disable=SC2016 # the guest's shell expands
	out=$("$qpdrill" guest run 'echo "out $(id -u)"; echo err >&2; exit 7' 2>"$work/err")
	status=$?
	[ "$out" = 'out 0' ] && grep -qx err "$work/err" && [ $status -eq 7 ]
	verdict 'guest run passes on output, errors and status' $?

	out=$("$qpdrill" guest run printf '%s|' 'a b' "it's" $'two\nlines' 'c\d' 2>/dev/null)
	[ "$out" = $'a b|it\'s|two\nlines|c\\d|' ]
	verdict 'guest run passes words on as they are' $?
}

host_is_read_only() {
	echo before >"$work/file"
	"$qpdrill" guest run "echo after >$work/file; cat $work/file; ip -o link show | wc -l" >"$work/out" 2>/dev/null
	[ "$(head -1 "$work/out")" = after ] && [ "$(cat "$work/file")" = before ]
	verdict 'what the guest writes stays in the guest' $?
	[ "$(tail -1 "$work/out")" = 1 ]
	verdict 'the guest has no network device but lo' $?
}

dead_guest_is_told() {
	"$qpdrill" guest run 'echo c >/proc/sysrq-trigger' >"$work/out" 2>"$work/err"
	[ $? -eq 125 ] && grep -q 'panic' "$work/err"
	verdict 'guest run tells of a guest that died' $?
}

hung_guest_is_asked_what_it_does() {
	local begin
	"$qpdrill" guest run --deadline 4s 'sleep 1000' >"$work/out" 2>"$work/err"
	[ $? -eq 125 ] && grep -q 'has not ended within 4' "$work/err" && grep -q 'Show Blocked State' "$work/err" && grep -q 'RIP=' "$work/err"
	verdict 'guest run ends at its deadline and tells what the guest did' $?
	# Booted by then, however long that takes here.
	begin=$SECONDS
	"$qpdrill" guest run --cold true >"$work/out" 2>"$work/err"
	"$qpdrill" guest run --cold --deadline $((5 + 3 * (SECONDS - begin)))s 'sleep 1000' >"$work/out" 2>"$work/err"
	[ $? -eq 125 ] && grep -q 'NMI: Not continuing' "$work/err" && grep -q 'RIP=' "$work/err"
	verdict 'so does one that was not restored' $?
}

# In the third of five cases the kernel crashes.
crash_is_the_finding_of_its_case() {
	local run status
	# Each case tells its agents the seed once: the third time in a boot is the third case.
	cat >"$work/crash" <<-'END'
		#!/bin/bash
		seeds=0
		while IFS= read -r line; do
			case $line in *'"op":"seed"'* | *'"op": "seed"'*) seeds=$((seeds + 1)) ;; esac
			[ $seeds -lt 3 ] || echo c >/proc/sysrq-trigger
			printf '%s\n' "$line"
		done | exec "$@"
	END
	chmod 755 "$work/crash"
	"$qpdrill" run "${scenario[@]}" --repeat 5 --lanes 1 --lab guest --out "$work/runs" --launch "$work/crash" >"$work/out" 2>"$work/err"
	status=$?
	run=$work/runs/latest
	results "$run" >"$work/verdicts"
	[ $status -eq 1 ] && [ "$(grep -c ' fail$' "$work/verdicts")" -eq 1 ] && grep -q '~r3 fail$' "$work/verdicts" &&
		[ "$(grep -c ' pass$\| deviation$' "$work/verdicts")" -eq 4 ]
	verdict 'a guest that crashes in the third of five cases gives one fail and four verdicts' $?
	grep -q 'Kernel panic' "$run"/cases/*~r3/observations.jsonl
	verdict 'the console of the crash is in the records of its case' $?
	[ -s "$run/console-1.log" ] && [ -s "$run/console-2.log" ]
	verdict 'the rest ran in a fresh guest' $?
	[ "$(journals)" -eq 0 ]
	verdict 'after a crash the journal is empty' $?
}

# Four cases on four lanes, and one of them, told by the size of its message, does something to the kernel; where $device is its
# lane's. What overlaps does so by events alone: each holds its message back until all four have theirs to send, the odd one then
# does it, and the others send theirs once it is done. A case that has been here before is alone, and waits for nobody. A fifth, which
# wants the lab for itself, comes after them.
one_of_several() { # what-it-does
	local size
	rm -rf "$work/cases"
	mkdir "$work/cases"
	for size in 64 65 66 67 77; do
		cat >"$work/cases/case$size.yaml" <<-END
			qpdrill: 1
			title: One message arrives
			bystander: none
			qp: { timeout: 20, retry_cnt: 7 }
			steps:
			  - connect:
			  - post: { at: a, op: SEND, size: $size, as: s, within: 120s }
			  - expect: { of: s, wc: SUCCESS }
		END
	done
	sed -i 's/^bystander.*/&\nexclusive: true/' "$work/cases/case67.yaml"
	cat >"$work/odd" <<-END
		#!/bin/bash
		seen=/run/qd/share/seen did=/run/odd-one-did
		mkdir -p \$seen
		first_time() { [ \$1 -ne 67 ] && mkdir \$seen/\$1 2>/dev/null; }
		all_are_here() { [ -e \$seen/64 ] && [ -e \$seen/65 ] && [ -e \$seen/66 ] && [ -e \$seen/77 ]; }
		while IFS= read -r line; do
			[[ \$line =~ (qd[0-9]+[a-z]+-[0-9a-f]+) ]] && device=\${BASH_REMATCH[1]}
			if [[ \$line =~ \"op\":\ ?\"post\",.*\"size\":\ ?([0-9]+), ]]; then
				size=\${BASH_REMATCH[1]} first=''
				first_time \$size && first=1
				while [ \$first ] && ! all_are_here; do read -rt 0.02 <> <(:); done
				if [ \$size -eq 77 ]; then
					$1
					touch \$did
				fi
				while [ \$first ] && [ ! -e \$did ]; do read -rt 0.02 <> <(:); done
			fi
			printf '%s\n' "\$line"
		done | exec "\$@"
	END
	chmod 755 "$work/odd"
	"$qpdrill" run "$work/cases" --provider none --lanes 4 --lab guest --out "$work/several" --launch "$work/odd" >"$work/out" 2>"$work/err"
	results "$work/several/latest" >"$work/verdicts"
}

only_the_odd_one_fails() { # name, and the cases that ran again
	local again expected
	again=$(sed -nE 's/.*case([0-9]+): runs again.*/\1/p' "$work/err" | sort | tr '\n' ' ')
	expected=$'case64 pass\ncase65 pass\ncase66 pass\ncase67 pass\ncase77 fail'
	[ "$(sort "$work/verdicts")" = "$expected" ] && [ "$again" = "$2" ]
	verdict "$1" $? "77 fails, the others pass, and these run again, not '$again': ${2:-none}"
}

lanes_tell_whose_doing_it_was() {
	one_of_several 'echo c >/proc/sysrq-trigger; exec cat'
	only_the_odd_one_fails 'of four cases side by side the one that kills the kernel is found, the others pass' '64 65 66 77 '
	one_of_several 'echo "<4>BUG: somebody did something" >/dev/kmsg'
	only_the_odd_one_fails 'of four cases side by side the one that makes the kernel complain is found' '64 65 66 77 '
	# shellcheck disable=SC2016 # what runs in the guest expands
	one_of_several 'echo "<4>BUG: $device did something" >/dev/kmsg'
	only_the_odd_one_fails 'a complaint that names a device is of its lane, and nothing runs again' ''
}

killed_controller_leaves_nothing() {
	killed_at 0.3 1.1 2.3 4.1 "$work/killed/2*/console-1.log" "$work/killed/2*/cases/plain/verdict.json" "$work/killed/2*/cases/stays/observations.jsonl"
	verdict 'a killed controller takes its guest with it' $?
	"$qpdrill" clean >"$work/out" 2>&1
	verdict 'clean ends well after that' $?
	[ "$(journals)" -eq 0 ]
	verdict 'and leaves the journal empty' $?
}

killed_guest_is_an_error_of_nobody_else() {
	local pid kid
	cp "$work/plain.yaml" "$work/then.yaml"
	"$qpdrill" run "$work"/{plain,stays,then}.yaml --provider none --lanes 1 --lab guest --out "$work/shot" >"$work/out" 2>"$work/err" &
	pid=$!
	wait_for_file "$work/shot/2*/cases/stays/observations.jsonl" 300
	for kid in $(children_of $pid); do
		grep -qz qemu-system "/proc/$kid/cmdline" 2>/dev/null && kill -KILL "$kid"
	done
	wait $pid
	results "$work/shot/latest" >"$work/verdicts"
	[ "$(cat "$work/verdicts")" = $'plain pass\nstays fail\nthen pass' ]
	verdict 'a killed QEMU costs one case' $? 'stays fails, the two around it pass'
}

# Lab rxe is native inside a guest: its links and devices are what a killed controller leaves there. One run tells how long it takes; the
# others are killed at random moments of such a time, under every fault of the link, and after `clean` the machine has to be as it was.
# A random moment may lie before the first change or after the last, so one more is killed once its journal names a change.
# QPDRILL_KILL_POINTS says how many (4), QPDRILL_KILL_SEED where the moments come from; both are printed.
killed_native_controller_is_cleaned_up_after() {
	local points=${QPDRILL_KILL_POINTS:-4} seed=${QPDRILL_KILL_SEED:-$RANDOM}
	cat >"$work/busy.yaml" <<-END
		qpdrill: 1
		title: Links are changed in every way, one after the other
		bystander: none
		qp: { timeout: 20, retry_cnt: 7 }
		steps:
		  - connect:
		  - fault: { netem: { at: a, delay: 1ms }, as: late }
		  - post: { at: a, op: SEND, size: 64, as: s }
		  - expect: { of: s, wc: SUCCESS }
		  - clear: late
		  - fault: { neighbour: { at: a }, as: astray }
		  - clear: astray
		  - fault: { mtu_shrunk: { at: a, mtu: 1400 }, as: narrow }
		  - clear: narrow
		  - allow: { at: [dev.a, dev.b], event: [PORT_ERR, GID_CHANGE] }
		  - fault: { link_down: { at: a }, as: down }
		  - clear: down
		  - fault: { address_moved: { at: b }, as: moved }
		  - clear: moved
		  - fault: { device_recreated: { at: b }, as: renewed }
		  - clear: renewed
	END
	cat >"$work/native" <<-END
		cd '$PWD'
		export QPDRILL_STATE=/run/qpdrill-test
		RANDOM=$seed
		busy() { exec '$qpdrill' run '$work/busy.yaml' --provider none --lanes 1 --lab rxe --out /run/out; }
		# What a run may change: links, addresses, neighbours, queues, rules, routes, sysctls of all and default, devices, processes, journals.
		picture() {
			ip -o addr; ip -o link; ip neigh; ip rule; ip route show table all; tc qdisc; rdma link; ls /sys/class/infiniband
			grep -rs . /proc/sys/net/ipv[46]/conf/all /proc/sys/net/ipv[46]/conf/default /proc/sys/net/core | sort
			readlink /proc/[0-9]*/exe | grep -E '/qpdrill[^/]*\$|/(ip|tc|rdma)\$' | sort
			ls "\$QPDRILL_STATE"
		}
		now_ms() { read -r up _ </proc/uptime; echo \$((10#\${up/./} * 10)); }
		begin=\$(now_ms)
		(busy) >/run/first 2>&1 || { cat /run/first >&2; exit 1; }
		whole=\$((\$(now_ms) - begin)) undone=0
		picture >/run/before
		changes_something() { grep -qs '"undo"' "\$QPDRILL_STATE"/*; }
		for ((i = 0; i <= $points; i++)); do
			(busy) >/dev/null 2>&1 &
			pid=\$!
			if [ \$i -eq 0 ]; then
				moment='its first change'
				for ((w = 0; w < 1000; w++)); do changes_something && break; sleep 0.01; done
			else
				delay=\$((RANDOM * whole / 32768))
				moment="\$delay of \$whole ms"
				sleep \$(printf '%d.%03d' \$((delay / 1000)) \$((delay % 1000)))
			fi
			kill -KILL \$pid 2>/dev/null
			wait \$pid 2>/dev/null
			'$qpdrill' clean >/run/clean 2>&1 || { cat /run/clean >&2; exit 1; }
			n=\$(sed -n 's/^\([0-9]*\) changes* undone\$/\1/p' /run/clean)
			# Each is told of in a line of its own.
			[ "\$(grep -c 'undo: .*done\$\|undo: .*ended\$' /run/clean)" -eq "\$n" ] || { echo "point \$i: \$n changes undone and not told"; cat /run/clean; }
			undone=\$((undone + n))
			# What was killed takes a moment to be gone.
			for ((w = 0; w < 600; w++)); do picture >/run/after; cmp -s /run/before /run/after && break; sleep 0.1; done
			diff /run/before /run/after >/run/difference || { echo "point \$i, killed after \$moment"; cat /run/difference; }
		done
		[ \$undone -gt 0 ] && echo undone
		'$qpdrill' clean 2>&1 | tail -1
	END
	"$qpdrill" guest run "bash $work/native" >"$work/out" 2>"$work/err"
	[ "$(cat "$work/out")" = $'undone\n0 changes undone' ]
	verdict "clean leaves nothing of native runs killed at $points random points, and says what it undid" $? "seed $seed"
}

# A line on standard input is the word to go on, also one that was there before.
case_stops_before_a_step() {
	echo | "$qpdrill" run "${scenario[@]}" --lab guest --pause-at expect --out "$work/paused" >"$work/out" 2>"$work/err" &&
		grep -qE 'plain: stopped before step 3 \(expect\), .*plain\.yaml:8, lane 0' "$work/err" &&
		grep -qE 'p\.b +QPN 0x[0-9a-f]+, RTS +agent b: pid [0-9]+, device qd0b-[0-9a-f]+ on qd0b-' "$work/err" &&
		grep -qF "guest shell --run $work/paused/" "$work/err" && grep -q 'plain: goes on after' "$work/err"
	verdict 'a case stops before a step, tells where it is, and goes on' $?
	grep -qE '^pass .*; stood still for .* before step 3' "$work/out"
	verdict 'and its verdict says that it did' $?
}

# Who says how late timers were: the lanes' own process, and behind a launcher, which may bind or throttle, each agent.
lateness_is_on_record() {
	local launch by
	for launch in '' env; do
		"$qpdrill" run "${scenario[@]}" --lab guest --out "$work/late" ${launch:+--launch "$launch"} >"$work/out" 2>"$work/err" &&
			sed -n 's/.*"witness":true,"samples":[1-9].*"src":"\([^"]*\)".*/\1/p' "$work/late/latest/cases"/*/observations.jsonl | sort >"$work/verdicts"
		by=controller
		[ -z "$launch" ] || by=$'agent/a\nagent/b'
		[ "$(cat "$work/verdicts")" = "$by" ]
		verdict "how late timers were is told ${launch:+behind a launcher }by ${by/$'\n'/ and }" $?
	done
}

# Somebody who is not root, without network, with a filled cache.
ordinary_user_without_network() {
	local name='an ordinary user without network runs lab guest' cache
	if [ "$(id -u)" -ne 0 ] || ! setpriv --reuid 65534 --regid 65534 --clear-groups unshare -rn true 2>/dev/null; then
		echo "skip $name: needs root, to become somebody else, and user namespaces"
		return
	fi
	if ! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$qpdrill" -a -r scenarios/README.md; then
		echo "skip $name: this folder is not readable to others"
		return
	fi
	cache=${QPDRILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qpdrill}
	mkdir -p "$work/user/home" "$work/user/cache" && cp -r "$cache/kernels" "$cache/current" "$cache/accel.json" "$work/user/cache/" && chmod -R a+rX "$work/user" && chown -R 65534:65534 "$work/user"
	setpriv --reuid 65534 --regid 65534 --clear-groups unshare -rn env HOME="$work/user/home" QPDRILL_CACHE="$work/user/cache" \
		QPDRILL_STATE="$work/user/home/state" "$qpdrill" run "${scenario[@]}" --lab guest --out "$work/user/home/runs" >"$work/out" 2>"$work/err"
	verdict "$name" $?
}

[ $# -gt 0 ] || set -- run_tells_output_and_status host_is_read_only dead_guest_is_told hung_guest_is_asked_what_it_does \
	crash_is_the_finding_of_its_case lanes_tell_whose_doing_it_was killed_controller_leaves_nothing \
	killed_guest_is_an_error_of_nobody_else killed_native_controller_is_cleaned_up_after \
	case_stops_before_a_step lateness_is_on_record ordinary_user_without_network
run_tests "$@"
