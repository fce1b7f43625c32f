#!/bin/bash
# SPDX-License-Identifier: MIT
# The guest as a place to run in, and what is left when somebody is killed. Prints `ok NAME`, `not ok NAME` or `skip NAME: REASON`.
# usage: BUILD=build harness/lab_guest_test.sh [FUNCTION...]
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-$PWD/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
qpdrill=$build/qpdrill
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-guest-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export QPDRILL_STATE=$work/state
mkdir "$QPDRILL_STATE"
chmod 755 "$work"

# What is tested is the lab: a case that nothing can be said against, and no profile. Its retries outlast any turn that an end waits for.
cat >"$work/plain.yaml" <<END
qpdrill: 1
title: One message arrives
bystander: none
qp: { timeout: 20, retry_cnt: 7 }
steps:
  - connect:
  - post: { at: a, op: SEND, size: 64, as: s }
  - expect: { of: s, wc: SUCCESS }
END
scenario=("$work/plain.yaml" --provider none)

# One that a test ends, however fast the machine is.
sed 's/^title.*/title: One message arrives, and then nothing happens/; $a\  - wait: 600s' "$work/plain.yaml" >"$work/stays.yaml"

# What was seen is told of what fails.
verdict() { # name condition-status [what-should-have-been]
	local file
	if [ "$2" -eq 0 ]; then
		echo "ok $1"
		return
	fi
	echo "not ok $1"
	echo "# $1: ${3:-failed}; seen was" >&2
	for file in verdicts out err; do
		[ ! -e "$work/$file" ] || tail -15 "$work/$file" | sed "s/^/# $file: /" >&2
	done
}

journals() { find "$QPDRILL_STATE" -name 'journal-*' | wc -l; }

children_of() { awk -v p="$1" '{ sub(/.*\) /, ""); if ($2 == p) { split(FILENAME, f, "/"); print f[3] } }' /proc/[0-9]*/stat 2>/dev/null; }

# Waits until none of the processes is left; fails after a minute.
all_gone() {
	local i pid left
	for ((i = 0; i < 600; i++)); do
		left=''
		for pid in "$@"; do [ -d "/proc/$pid" ] && left=$pid; done
		[ -z "$left" ] && return 0
		sleep 0.1
	done
	return 1
}

wait_for_file() { # glob seconds
	local i
	for ((i = 0; i < $2 * 10; i++)); do
		compgen -G "$1" >/dev/null && return 0
		sleep 0.1
	done
	return 1
}

results() { # run-folder: "id verdict" a line
	sed -E 's/.*"case": ?"([^"]*)".*/\1 &/; s/^([^ ]*) .*"verdict": ?"([^"]*)".*/\1 \2/' "$1/results.jsonl"
}

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

# A run that does not end by itself is killed, once for each moment, and leaves no process. A moment is a number of seconds, wherever
# that finds it, or a file (a glob) that has come.
killed_at() { # MOMENT...
	local moment pid kids bad=0
	for moment; do
		rm -rf "$work/killed"
		# What an earlier one has left is not what is waited for.
		case $moment in */*) compgen -G "$moment" | xargs -r rm -rf ;; esac
		"$qpdrill" run "${scenario[@]}" "$work/stays.yaml" --lanes 1 --lab guest --out "$work/killed" >/dev/null 2>"$work/err" &
		pid=$!
		case $moment in
		*/*) wait_for_file "$moment" 300 || { echo "# no $moment" >&2; bad=1; } ;;
		*) sleep "$moment" ;;
		esac
		mapfile -t kids < <(children_of $pid)
		kill -KILL $pid || { echo "# at $moment it had ended" >&2; bad=1; }
		wait $pid 2>/dev/null
		all_gone "${kids[@]}" || { echo "# killed at $moment: ${kids[*]} live on" >&2; bad=1; }
	done
	return $bad
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

# Lab rxe is native inside a guest: its links and devices are what a killed controller leaves there.
killed_native_controller_is_cleaned_up_after() {
	cat >"$work/native" <<-END
		cd '$PWD'
		export QPDRILL_STATE=/run/qpdrill-test
		for delay in 0.2 0.5 0.9 1.6; do
			'$qpdrill' run '$work/plain.yaml' '$work/stays.yaml' --provider none --lanes 1 --lab rxe --out /run/out >/dev/null 2>&1 &
			pid=\$!
			sleep \$delay
			kill -KILL \$pid || exit 1
			wait \$pid 2>/dev/null
		done
		'$qpdrill' clean >&2 || exit 1
		agents() { cat /proc/[0-9]*/comm 2>/dev/null | grep -cx qpdrill-agent; }
		for i in \$(seq 600); do [ "\$(agents)" = 0 ] && break; sleep 0.1; done
		echo "links \$(ls /sys/class/net | grep -c ^qd) devices \$(ls /sys/class/infiniband | wc -l) agents \$(agents) journals \$(ls /run/qpdrill-test | wc -l)"
	END
	"$qpdrill" guest run "bash $work/native" >"$work/out" 2>"$work/err"
	[ "$(cat "$work/out")" = 'links 0 devices 0 agents 0 journals 0' ]
	verdict 'clean removes links, devices and agents of killed native runs' $?
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

# What a full disk has left of a kernel is noticed before it boots.
damaged_cache_is_mended() {
	local cache=${QPDRILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qpdrill} key
	key=$(readlink "$cache/current") && mkdir -p "$work/damaged/kernels" && cp -r "$cache/$key" "$work/damaged/kernels/" &&
		ln -s "$key" "$work/damaged/current" && truncate -s 100000 "$work/damaged/$key"/initrd-*
	QPDRILL_CACHE=$work/damaged "$qpdrill" guest run true >"$work/out" 2>"$work/err"
	verdict 'a damaged initramfs is made anew' $?
	rm -rf "$work/damaged"
}

# A cache of our own, with the kernel of the real one.
use_own_cache() { # name
	local cache=${QPDRILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qpdrill}
	mkdir -p "$work/$1/kernels" && ln -s "$cache/$(readlink "$cache/current")" "$work/$1/kernels/" && cp -P "$cache/current" "$cache/accel.json" "$work/$1/"
}

saved() { compgen -G "$work/own/saved/*/stamp.json" | wc -l; }

# Runs the plain scenario in the guest of our own cache; its log is in err.
plain_run() { QPDRILL_CACHE=$work/own "$qpdrill" run "${scenario[@]}" --lab guest --out "$work/saved-runs" "$@" >"$work/out" 2>"$work/err"; }

saved_guest_is_restored() {
	local a b before after
	use_own_cache own
	plain_run && grep -q 'guest: saved after' "$work/err" && grep -q 'guest: restored' "$work/err" && [ "$(saved)" -eq 1 ]
	verdict 'the first run saves a guest and uses it' $?
	plain_run && ! grep -q 'saved' "$work/err" && grep -q 'guest: restored' "$work/err"
	verdict 'the next one restores it' $?
	plain_run --cold && grep -q 'guest: booting' "$work/err"
	verdict 'with --cold the guest boots' $?

	# shellcheck disable=SC2016 # the guest's shell expands
	ask='echo "$(cat /proc/sys/kernel/random/boot_id) $(cat /proc/sys/kernel/random/uuid) $(date +%s)"'
	"$qpdrill" guest run true >/dev/null 2>&1
	before=$(date +%s)
	a=$("$qpdrill" guest run "$ask" 2>/dev/null) b=$("$qpdrill" guest run "$ask" 2>/dev/null) after=$(date +%s)
	# shellcheck disable=SC2086 # words
	set -- $a $b
	[ $# -eq 6 ] && [ "$1" != "$4" ] && [ "$2" != "$5" ]
	verdict 'two restored guests have other boot ids and other random numbers' $?
	[ $# -eq 6 ] && [ "$3" -ge $((before - 1)) ] && [ "$3" -le "$6" ] && [ "$6" -le $((after + 1)) ]
	verdict 'their clock is right' $? "from $before to $after: $*"
}

# Every way in which the files may be wrong ends in a verdict all the same.
damaged_saved_guest_boots() {
	local dir sum
	dir=$(dirname "$(compgen -G "$work/own/saved/*/stamp.json")")
	truncate -s 100M "$dir/ram"
	plain_run && grep -q 'damaged' "$work/err" && grep -q 'guest: saved after' "$work/err" && [ "$(saved)" -eq 1 ]
	verdict 'a memory file cut short is noticed and made anew' $?
	printf x | dd of="$dir/state" bs=1 seek=1000 conv=notrunc status=none
	plain_run && grep -q 'damaged' "$work/err" && [ "$(saved)" -eq 1 ]
	verdict 'a changed state is noticed and made anew' $?
	# What its stamp does not tell QEMU does.
	truncate -s 1000 "$dir/state"
	sum=$(sha256sum <"$dir/state")
	sed -i -E "s/(\"state_bytes\": *)[0-9]+/\\11000/; s/(\"state_sha256\": *)\"[0-9a-f]+/\\1\"${sum%% *}/" "$dir/stamp.json"
	plain_run && grep -q 'does not come up' "$work/err" && grep -q 'guest: booting' "$work/err" && [ "$(saved)" -eq 0 ]
	verdict 'a state that QEMU refuses costs a boot and goes' $?
}

two_runs_save_at_once() {
	local first second
	rm -rf "$work/own/saved"
	QPDRILL_CACHE=$work/own "$qpdrill" run "${scenario[@]}" --lab guest --out "$work/at-once" >"$work/out-2" 2>&1 &
	plain_run
	first=$?
	wait $!
	second=$?
	[ $first -eq 0 ] && [ $second -eq 0 ] && [ "$(saved)" -eq 1 ] && [ "$(find "$work/own/saved" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ]
	verdict 'two first runs at once pass, and save one guest' $? "statuses $first and $second, saved: $(ls "$work/own/saved"); the other said $(tail -15 "$work/out-2")"
	plain_run && grep -q 'guest: restored' "$work/err"
	verdict 'which the next one restores' $?
}

other_initramfs_is_another_guest() {
	local key
	key=$work/own/$(readlink "$work/own/current")
	cp -rL "$key" "$work/copy" && rm "$key" && mv "$work/copy" "$key" && for i in "$key"/initrd-*.gz; do gzip -dc "$i" | gzip -9 >"$work/i" && mv "$work/i" "$i"; done
	plain_run && grep -q 'guest: saved after' "$work/err" && [ "$(saved)" -eq 2 ]
	verdict 'another initramfs gets another saved guest' $?
}

killed_while_saving() {
	rm -rf "$work/own/saved"
	QPDRILL_CACHE=$work/own killed_at 0.2 "$work/own/saved/tmp.*" "$work/own/saved/tmp.*/ram"
	verdict 'a controller killed while it saves takes the guest with it' $?
	plain_run && grep -q 'guest: restored' "$work/err" && [ "$(saved)" -eq 1 ] && ! compgen -G "$work/own/saved/tmp.*" >/dev/null
	verdict 'and what it left is neither used nor kept' $?
	rm -rf "$work/own"
}

[ $# -gt 0 ] || set -- run_tells_output_and_status host_is_read_only damaged_cache_is_mended saved_guest_is_restored damaged_saved_guest_boots \
	two_runs_save_at_once other_initramfs_is_another_guest killed_while_saving dead_guest_is_told hung_guest_is_asked_what_it_does \
	crash_is_the_finding_of_its_case lanes_tell_whose_doing_it_was killed_controller_leaves_nothing \
	killed_guest_is_an_error_of_nobody_else killed_native_controller_is_cleaned_up_after ordinary_user_without_network
for test; do
	rm -f "$work"/{verdicts,out,err}
	$test
done
