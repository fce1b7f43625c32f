#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: kernels.sh [--again] BUILD SERIES... [-- ARGUMENTS OF qpdrill run]      (what `make kernels` runs, after building)
#        kernels.sh --table BUILD FILE                                           (what `make kernels-table` runs)
#
# Runs scenarios in a guest of each of these series of Debian's kernels (`newest`: whichever that is), one kernel after the other, and
# prints one table of where they differ, kept as BUILD/kernels/table.md. --table judges what has run by then with the profiles beside FILE,
# makes the table again and puts it into FILE, between the lines `<!-- kernels -->` and `<!-- /kernels -->`.
#
# Each kernel runs in PARTS parts (8), each a run with a folder of its own below BUILD/kernels/SERIES that ends after DEADLINE (30min) at the
# latest. One that has come to its end is not run again: called once more, what was interrupted goes on. With --again those parts run again
# that did not end well. Another program, other scenarios or other arguments begin anew; another profile does not.
#
# A kernel that cannot be had, or does not boot, is a line with the reason, and nothing that failed. Exit status: the worst of the runs; 77
# when there was no kernel.
set -u -o pipefail
here=$(dirname "$0")
again='' table=''
case ${1:-} in
--again) again=1; shift ;;
--table) table=1; shift ;;
esac
build=${1:?usage: kernels.sh [--again] BUILD SERIES... [-- ARGUMENTS], or --table BUILD FILE}
shift
out=$build/kernels parts=${PARTS:-8} deadline=${DEADLINE:-30min}
die() { printf 'kernels: %s\n' "$*" >&2; exit 3; }

# The table of what has run: the kernels in the order of the file `series`, each with its parts or the reason why it has none.
print_table() {
	local one dir runs=() missing=()
	while read -r one; do
		for dir in "$out/$one"/*-of-*/latest; do
			[ ! -r "$dir/run.json" ] || [ -e "${dir%/latest}/nothing" ] || runs+=("$dir")
		done
		[ ! -s "$out/$one/missing" ] || missing+=("* $one: $(cat "$out/$one/missing")")
	done <"$out/series"
	# One run alone is a table too.
	[ ${#runs[@]} -eq 0 ] || "$build/qpdrill" report --table "${runs[@]}" || return
	[ ${#missing[@]} -eq 0 ] || printf '%s\n' '' "${missing[@]}"
}

# Other profiles than the runs had: their cases are judged again.
judge_with() { # folder-of-profiles
	local own dir profile changed
	for dir in "$out"/*/*-of-*/latest; do
		changed=''
		[ -r "$dir/run.json" ] || continue
		own=$1/$(sed -n 's/^ *"provider": *"\([^"]*\)".*/\1/p' "$dir/run.json").yaml
		[ -r "$own" ] || continue
		while read -r profile; do
			cmp -s "$own" "$profile" || { cp "$own" "$profile" && changed=1; } || return
		done < <(find "$dir/" -name profile.yaml)
		[ -z "$changed" ] || "$build/qpdrill" judge "$dir" >/dev/null
		[ $? -ne 2 ] || return
	done
}

if [ -n "$table" ]; then
	file=${1:?usage: kernels.sh --table BUILD FILE}
	[ -s "$out/series" ] || die "nothing has run below $out yet: make kernels"
	[ "$(grep -cxE '<!-- /?kernels -->' "$file")" -eq 2 ] || die "$file has no place for the table: the lines <!-- kernels --> and <!-- /kernels -->"
	judge_with "$(dirname "$file")" || die "the runs below $out cannot be judged again"
	print_table >"$out/table.md" || die "the runs below $out cannot be read"
	awk -v from="$out/table.md" '
		/^<!-- \/kernels -->$/ { skip = 0 }
		!skip
		/^<!-- kernels -->$/ { print ""; while ((getline line < from) > 0) print line; print ""; skip = 1 }' "$file" >"$out/file.new" || die "cannot read $file"
	cat "$out/file.new" >"$file" || die "cannot write $file"
	exit 0
fi

series=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do series+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- scenarios

# What an old part has to do with this call: the program, what it was asked and the files that it was given.
identity() {
	local word files=()
	printf '%s\n' "$parts" "$@"
	for word in "$@"; do [ ! -e "$word" ] || files+=("$word"); done
	find "$build" -maxdepth 1 -name 'qpdrill*' -type f -print0 | sort -z | xargs -0 sha256sum
	[ ${#files[@]} -eq 0 ] || find "${files[@]}" -type f -name '*.yaml' ! -path '*/profiles/*' -print0 | sort -z | xargs -0 sha256sum
}
mkdir -p "$out" || exit 3
identity "$@" >"$out/identity.new" || die "cannot read what is to run"
if [ -e "$out/identity" ] && ! cmp -s "$out/identity" "$out/identity.new"; then
	echo "kernels: the program, the scenarios or the arguments are not those of the last run below $out: beginning anew"
	rm -rf "${out:?}"/*/ "$out/seed" "$out/series"
fi
mv "$out/identity.new" "$out/identity"
# What differs must not differ for the seed.
[ -s "$out/seed" ] || printf '0x%s\n' "$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')" >"$out/seed"
case " $* " in *' --seed '* | *' --seed='*) ;; *) set -- "$@" --seed "$(cat "$out/seed")" ;; esac
touch "$out/series"

child=''
# shellcheck disable=SC2317 # by the trap
stopped() {
	[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; } 2>/dev/null
	echo "kernels: interrupted; the same command goes on where this one was" >&2
	exit 130
}
trap stopped INT TERM HUP

worst=77
note() { # status: 1 before 3 before 0 before 77
	case $worst,$1 in
	*,77) ;;
	77,* | 0,*) worst=$1 ;;
	3,1) worst=1 ;;
	esac
}

# One part: its status is kept when it has come to its end. Fails where the kernel is of no use.
run_part() { # folder series part argument...
	local dir=$1 one=$2 k=$3 rc
	shift 3
	if [ -s "$dir/status" ] && { [ -z "$again" ] || [[ $(cat "$dir/status") =~ ^(0|77)$ ]]; }; then
		note "$(cat "$dir/status")"
		return 0
	fi
	rm -rf "$dir"
	mkdir -p "$dir" || die "cannot write to $dir"
	printf '\n%s\n' "kernel $release, part $k of $parts"
	"$build/qpdrill" run "$@" --shard "$k/$parts" --lab guest --kernel "$one" --deadline "$deadline" --out "$dir" --quiet \
		</dev/null 2>"$dir/said" &
	child=$!
	wait $child
	rc=$?
	child=''
	cat "$dir/said" >&2
	if [ $rc -eq 2 ] && grep -q -- '--shard .* holds none of' "$dir/said"; then
		rc=77
	elif [ $rc -eq 2 ]; then
		exit 2
	elif was_cut "$dir"; then
		note $rc
		return 0
	elif ! grep -qsv '"verdict":"error"' "$dir/latest/results.jsonl"; then
		echo "part $k of $parts did not run. $(why_nothing_ran "$dir")" >"$out/$one/missing"
		touch "$dir/nothing" # the console is there to be looked at
		return 1
	fi
	note $rc
	case $rc in 0 | 1 | 3 | 77) echo $rc >"$dir/status" ;; esac
}

# Its deadline, or a signal, has ended it.
was_cut() { # folder
	grep -qE -- '--deadline: the run ends now|: ends the run, puts everything back' "$1/said"
}

# Every case of a part is an error: the first one says why, or whoever could not even begin.
why_nothing_ran() { # folder
	{ sed -nE '1s/.*"headline":"(([^"\\]|\\.)*)".*/\1/p' "$1/latest/results.jsonl" 2>/dev/null | grep . || tail -1 "$1/said"; } |
		sed 's/; it ends in: .*//; s/^not run: //'
}

for one in "${series[@]}"; do
	if ! answer=$("$here/fetch_kernel.sh" --init "$build/qpdrill-init" --kernel "$one"); then
		mkdir -p "$out/$one" && sed -n 's/^error=/not run. /p' <<<"$answer" >"$out/$one/missing"
		release=''
	else
		release=$(sed -n 's/^release=//p' <<<"$answer")
		# By its own name, so that a newer one is another one.
		[ "$one" != newest ] || one=$(sed -nE 's/^release=([0-9]+\.[0-9]+).*/\1/p' <<<"$answer")
		rm -f "$out/$one/missing" "$out/newest/missing"
	fi
	grep -qxF "$one" "$out/series" || echo "$one" >>"$out/series"
	for ((k = 1; k <= parts && ${#release} > 0; k++)); do
		run_part "$out/$one/$k-of-$parts" "$one" "$k" "$@" || break
	done
done
trap - INT TERM HUP
print_table | tee "$out/table.md" || exit 3
left=$(find "$out" -path '*-of-*/said' -execdir sh -c '! [ -e status ] && ! [ -e nothing ]' \; -print | wc -l)
[ "$left" -eq 0 ] || echo "kernels: $left parts have not come to their end (each may take $deadline): the same command runs them again" >&2
exit "$worst"
