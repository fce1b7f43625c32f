#!/bin/bash
# SPDX-License-Identifier: MIT
# What `make kernels` does around the runs, with a qpdrill that only says what it was asked: parts, what goes on, what is told.
# shellcheck disable=SC2317 # tests are called by their names
set -u -o pipefail
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-kernels-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/harness" "$work/build" "$work/scenarios/profiles" && cp "$(dirname "$0")/kernels.sh" "$work/harness/"
cd "$work" || exit 1
export PARTS=3
echo 'title: x' >scenarios/x.yaml
echo 'provider: rxe' >scenarios/profiles/rxe.yaml
printf '%s\n' before '<!-- kernels -->' old '<!-- /kernels -->' after >scenarios/profiles/README.md

cat >harness/fetch_kernel.sh <<'END'
#!/bin/bash
case $4 in
5.5) echo "error=kernel 5.5 cannot be had: no such suite"; exit 1 ;;
newest) echo "release=7.3.4+deb13-amd64" ;;
*) echo "release=$4.0-amd64" ;;
esac
END
# does/KERNEL-PART says what else than to pass.
cat >build/qpdrill <<'END'
#!/bin/bash
[ "$1" != report ] || { echo "table of $(($# - 2)) runs"; exit; }
[ "$1" != judge ] || { echo "judged $2" >>calls; exit 1; }
args=" $* "
value() { [[ $args =~ " --$1 "([^ ]*) ]] && echo "${BASH_REMATCH[1]}"; }
dir=$(value out)/1 part=$(value shard)
does=$(cat "does/$(value kernel)-${part%/*}" 2>/dev/null)
echo "$(value kernel) $part seed $(value seed)" >>calls
mkdir -p "$dir" && ln -sfn 1 "$(value out)/latest"
printf '%s\n' '{' ' "provider": "rxe"' '}' >"$dir/run.json"
echo 'provider: old' >"$dir/profile.yaml"
case $does in
hang) touch started; exec sleep 600 ;;
cut) echo "qpdrill: warning: --deadline: the run ends now; what has not been run is reported as such" >&2; exit 3 ;;
fail) echo '{"case":"a","verdict":"fail"}' >"$dir/results.jsonl"; exit 1 ;;
boot) echo '{"case":"a","headline":"the guest \"died\"","verdict":"error"}' >"$dir/results.jsonl"; exit 3 ;;
empty) rm -rf "$dir"; echo "no scenario to run: --shard $part holds none of 2 cases" >&2; exit 2 ;;
esac
echo '{"case":"a","verdict":"pass"}' >"$dir/results.jsonl"
END
chmod +x build/qpdrill harness/*.sh

begin() { rm -rf build/kernels does calls started; mkdir does; }
run() { harness/kernels.sh build "$@" >out 2>err; }
calls() { grep -c "$1" calls; }
verdict() { # name status
	if [ "$2" -eq 0 ]; then echo "ok $1"; return; fi
	echo "not ok $1"
	sed "s/^/# $1: /" calls out err >&2
}

each_part_once() {
	run 6.1 6.12 && run 6.1 6.12 && [ "$(calls .)" -eq 6 ] && [ "$(cut -d' ' -f4 calls | sort -u | wc -l)" -eq 1 ] && grep -q 'table of 6 runs' out
}
a_part_that_was_cut() {
	echo cut >does/6.1-2
	run 6.1
	[ $? -eq 3 ] && grep -q '1 parts have not come to their end' err && rm does/6.1-2 && run 6.1 && [ "$(calls .)" -eq 4 ] && [ "$(calls ' 2/3 ')" -eq 2 ]
}
interrupted() {
	local pid i
	echo hang >does/6.1-2
	harness/kernels.sh build 6.1 >out 2>err &
	pid=$!
	for ((i = 0; i < 600 && ! $([ -e started ] && echo 1 || echo 0); i++)); do sleep 0.1; done
	kill -TERM "$pid"
	wait "$pid"
	[ $? -eq 130 ] && rm does/6.1-2 && run 6.1 && [ "$(calls ' 1/3 ')" -eq 1 ] && [ "$(calls ' 2/3 ')" -eq 2 ]
}
failures_count() {
	echo fail >does/6.1-2
	run 6.1
	[ $? -eq 1 ] || return
	run 6.1
	[ $? -eq 1 ] && [ "$(calls .)" -eq 3 ] || return
	rm does/6.1-2
	harness/kernels.sh --again build 6.1 >out 2>err && [ "$(calls .)" -eq 4 ]
}
not_to_be_had() {
	run 5.5 6.1 && grep -q '^\* 5.5: not run. kernel 5.5 cannot be had: no such suite$' out && [ "$(calls .)" -eq 3 ]
}
none_at_all() {
	run 5.5
	[ $? -eq 77 ] && ! grep -q table out
}
does_not_boot() {
	echo boot >does/6.1-1
	run 6.1 6.12 && grep -qF '* 6.1: part 1 of 3 did not run. the guest \"died\"' out && [ "$(calls '^6.1 ')" -eq 1 ] && grep -q 'table of 3 runs' out
}
an_empty_part() {
	echo empty >does/6.1-3
	run 6.1 && run 6.1 && [ "$(calls .)" -eq 3 ] && grep -q 'table of 2 runs' out
}
newest_by_name() {
	run newest && run 7.3 && [ "$(calls '^7.3 ')" -eq 3 ] && [ "$(calls .)" -eq 3 ]
}
others_begin_anew() {
	run 6.1 && run 6.1 -- scenarios --select core && [ "$(calls .)" -eq 6 ] && grep -q 'beginning anew' out &&
		echo 'title: y' >scenarios/x.yaml && run 6.1 -- scenarios --select core && [ "$(calls .)" -eq 9 ] &&
		echo 'provider: rxe # y' >scenarios/profiles/rxe.yaml && run 6.1 -- scenarios --select core && [ "$(calls .)" -eq 9 ]
}
put_into_its_place() {
	run 6.1 && harness/kernels.sh --table build scenarios/profiles/README.md && [ "$(calls '^judged')" -eq 3 ] &&
		diff - scenarios/profiles/README.md <<-'END' && harness/kernels.sh --table build scenarios/profiles/README.md && [ "$(calls '^judged')" -eq 3 ]
			before
			<!-- kernels -->

			table of 3 runs

			<!-- /kernels -->
			after
		END
}
no_place() {
	run 6.1 && echo nothing >plain.md && ! harness/kernels.sh --table build plain.md 2>err && grep -q 'has no place for the table' err && grep -q nothing plain.md
}

while read -r test name; do
	begin
	"$test"
	verdict "$name" $?
done <<'END'
each_part_once each kernel runs in parts, with one seed, and what has run does not run again
a_part_that_was_cut a part that its deadline has ended runs again
interrupted an interrupted run goes on where it was
failures_count a failure is a result, and runs again where that is asked for
not_to_be_had a kernel that cannot be had is a line with the reason
none_at_all no kernel at all is a status of its own
does_not_boot a kernel on which nothing runs is a line with the reason
an_empty_part a part without cases is none
newest_by_name the newest kernel goes by its series
others_begin_anew another program, other scenarios and other arguments begin anew, another profile does not
put_into_its_place the table goes where it belongs, judged with the profiles there
no_place a file without a place for the table is left alone
END
