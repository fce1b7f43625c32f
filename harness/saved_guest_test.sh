#!/bin/bash
# SPDX-License-Identifier: MIT
# The saved guest and the files that it comes from: made, restored, damaged, made anew. Prints `ok NAME`, `not ok NAME` or `skip NAME: REASON`.
# usage: BUILD=build harness/saved_guest_test.sh [FUNCTION...]
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. harness/guest_test.bash

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

# Neither a deadline nor a signal waits until a guest is saved: the run ends with a report.
saving_does_not_hold_up_the_end() {
	local pid
	use_own_cache own
	plain_run --deadline 300ms
	[ $? -eq 3 ] && grep -q 'time of --deadline is up' "$work/out" && ! grep -q 'guest: saved after' "$work/err"
	verdict 'a deadline ends a run that saves a guest' $?
	QPDRILL_CACHE=$work/own "$qpdrill" run "${scenario[@]}" --lab guest --out "$work/saved-runs" >"$work/out" 2>"$work/err" &
	pid=$!
	wait_for_file "$work/own/saved/tmp.*/ram" 60
	kill -TERM $pid
	wait $pid
	[ $? -eq 3 ] && grep -q 'not run: interrupted' "$work/out" && ! grep -q 'guest: saved after' "$work/err"
	verdict 'so does a signal' $?
	! compgen -G "$work/own/saved/*" >/dev/null && [ "$(journals)" -eq 0 ]
	verdict 'and no half one is left' $?
	rm -rf "$work/own"
}

[ $# -gt 0 ] || set -- damaged_cache_is_mended saved_guest_is_restored damaged_saved_guest_boots two_runs_save_at_once \
	other_initramfs_is_another_guest killed_while_saving saving_does_not_hold_up_the_end
run_tests "$@"
