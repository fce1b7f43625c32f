#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: test_all.sh [--unit] BUILD       (what `make test` and `make unit` run, after building)
#
# Runs the unit tests (CUnit programs, BUILD/test/*/*_test), the script tests (*_test.sh, which print `ok NAME`, `not ok NAME` or
# `skip NAME: REASON` a line) and all scenarios. A unit test that ends with 77 needs a kernel with rxe and runs again in the guest. The last line is
# `N passed, N failed, N skipped`; the exit status is 0 only when nothing failed and something passed.
set -u -o pipefail
unit_only=''
[ "${1:-}" = --unit ] && { unit_only=1; shift; }
build=${1:?usage: test_all.sh [--unit] BUILD}
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
case $build in /*) ;; *) build=$PWD/$build ;; esac
export QPDRILL=$build/qpdrill BUILD=$build
out=$build/test-results
mkdir -p "$out" || exit 1
rm -f "$out"/*.status
passed=0 failed=0 skipped=0

# Adds up what a CUnit program printed; one that crashed or printed no summary is one failure.
count_unit() { # name status log
	local ok bad
	ok=$(awk '$1 == "tests" { print $4 }' "$3") bad=$(awk '$1 == "tests" { print $5 }' "$3")
	if [ -z "$ok" ] || { [ "$2" -ne 0 ] && [ "$bad" -eq 0 ]; }; then
		failed=$((failed + 1))
		printf '  FAIL  %s: exit status %s%s\n' "$1" "$2" "${ok:+, though its summary shows no failure}"
		tail -20 "$3" | sed 's/^/        /'
		return
	fi
	passed=$((passed + ok)) failed=$((failed + bad))
	if [ "$bad" -eq 0 ]; then
		printf '  ok    %s (%s)\n' "$1" "$ok"
	else
		printf '  FAIL  %s: %s of %s\n' "$1" "$bad" "$((ok + bad))"
		grep -vE '^$|CUnit|cunit|^Elapsed' "$3" | sed 's/^/        /' | head -60
	fi
}

# Runs each of these programs in the background, so many at a time, in the order given. What NAME printed stands in NAME.log (and
# NAME.log.out when its output is wanted by itself), how it ended in NAME.status; NAME is its path with - for /.
side_by_side() { # how-many seconds split-output? program...
	local most=$1 seconds=$2 split=$3 running=0 program name log
	shift 3
	for program; do
		name=${program#"$build"/test/} name=${name//\//-} log=$out/${name}.log
		[ $running -lt "$most" ] || { wait -n; running=$((running - 1)); }
		{
			if [ -n "$split" ]; then
				timeout -k 10 "$seconds" "$program" </dev/null >"$log.out" 2>"$log"
			else
				timeout -k 10 "$seconds" "$program" </dev/null >"$log" 2>&1
			fi
			echo $? >"$out/$name.status"
		} &
		running=$((running + 1))
	done
	wait
}

status_of() { # name
	local status
	read -r status <"$out/${1//\//-}.status" || status=1
	echo "$status"
}

# Some of them wait more than they work.
echo "unit tests"
side_by_side $((2 * $(nproc))) 600 '' "$build"/test/*/*_test
guest_units=()
for test in "$build"/test/*/*_test; do
	name=${test#"$build"/test/}
	status=$(status_of "$name")
	if [ "$status" -eq 77 ]; then guest_units+=("$test"); continue; fi
	count_unit "$name" "$status" "$out/${name//\//-}.log"
done
for test in ${guest_units[@]+"${guest_units[@]}"}; do
	name=${test#"$build"/test/}
	log=$out/${name//\//-}.log
	status=77
	if [ -z "$unit_only" ]; then
		timeout -k 5 900 "$QPDRILL" guest run --lane "$test" >"$log" 2>&1 </dev/null
		status=$?
	fi
	if [ $status -eq 77 ]; then
		skipped=$((skipped + 1))
		printf '  skip  %s: %s\n' "$name" "$(grep -m1 skipped: "$log" | sed 's/skipped: //')"
		continue
	fi
	count_unit "$name (in the guest)" $status "$log"
done

if [ -z "$unit_only" ]; then
	echo "scenarios"
	report=$out/scenarios.log
	rm -rf "$out/runs"
	"$QPDRILL" run scenarios --out "$out/runs" </dev/null | tee "$report"
	status=$?
	results=$out/runs/latest/results.jsonl
	ok=0 bad=0 skip=0
	if [ -r "$results" ]; then
		ok=$(grep -cE '"verdict": ?"(pass|deviation)"' "$results")
		skip=$(grep -cE '"verdict": ?"skip"' "$results")
		bad=$(($(wc -l <"$results") - ok - skip))
	fi
	# The run's own word counts as well: it may have failed without any case having failed.
	if [ $status -ne 0 ] && [ $status -ne 77 ] && [ $bad -eq 0 ]; then
		echo "  FAIL  the run of the scenarios ended with status $status"
		bad=1
	fi
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))

	# They wait more than they work, so one more of them than there are processors runs at a time; told in the order of their names.
	scripts=(*/*_test.sh)
	side_by_side $(($(nproc) + 1)) 3600 split "${scripts[@]}"
	for script in "${scripts[@]}"; do
		echo "$script"
		log=$out/${script//\//-}.log
		sed 's/^/  /' "$log.out"
		status=$(status_of "$script")
		ok=$(grep -c '^ok ' "$log.out") bad=$(grep -c '^not ok ' "$log.out") skip=$(grep -c '^skip ' "$log.out")
		if [ "$bad" -gt 0 ] || [ "$status" -ne 0 ] || [ $((ok + skip)) -eq 0 ]; then
			[ "$bad" -gt 0 ] || { bad=1; echo "  not ok $script ended with status $status"; }
			tail -40 "$log" | sed 's/^/    /'
		fi
		passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
