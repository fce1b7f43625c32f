#!/bin/bash
# SPDX-License-Identifier: MIT
# What a pipeline sees of the program without a lab: exit statuses, and where its messages go. Prints `ok NAME` or `not ok NAME`.
# usage: BUILD=build harness/cli_test.sh
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-$PWD/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-cli-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export QPDRILL_STATE=$work/state
mkdir "$work/empty"
printf 'not: [a scenario\n' >"$work/faulty.yaml"

good=scenarios/receive/rnr-retry-exceeded.yaml
swept=scenarios/wire/every-packet-twice.yaml
compared=reports/testdata/compare
cp -r $compared/new "$work/damaged" && echo '{"case":' >"$work/damaged/cases/3/verdict.json"
for verdict in skip pass fail; do
	mkdir -p "$work/all-$verdict/x" && echo '{"paths":["x"],"cases":[{"case":"x","dir":"x"}]}' >"$work/all-$verdict/run.json"
	echo '{"case":"x","verdict":"'$verdict'"}' >"$work/all-$verdict/x/verdict.json"
done
mkdir "$work/strict" && cp -r harness/testdata/verdict/psn-false-success-in-profile "$work/strict/ran" && cp -r "$work/all-skip/x" "$work/strict/skipped"
echo '{}' >"$work/strict/skipped/plan.json"
echo '{"case":"x","verdict":"fail","headline":"--require xrc: needs xrc"}' >"$work/strict/skipped/verdict.json"
cp -r "$work/strict" "$work/lenient"
cp -r "$work/strict/ran" "$work/strict/unrun" && echo '{"case":"x","verdict":"skip","unrun":true}' >"$work/strict/unrun/verdict.json"
echo '{"strict":true,"cases":[{"case":"x","dir":"ran"},{"case":"y","dir":"unrun"}]}' >"$work/strict/run.json"
echo '{"strict":false,"cases":[{"case":"x","dir":"ran"}]}' >"$work/lenient/run.json"
echo '{"paths":["'$good'"],"strict":true,"require":["wire"],"profile":"rxee","cases":[{"case":"receive/rnr-retry-exceeded","dir":"x"}]}' >"$work/all-fail/run.json"
q() { "$build/qpdrill" "$@"; }

# status | what standard error must hold (a fixed string; - for nothing at all) | the arguments and redirections
rows="
2|usage: qpdrill COMMAND|
0|-|help
0|-|--help
0|-|help run
2|there is no command 'nope'|help nope
0|-|--version
2|there is no command 'nope'|nope
2|there is no command '--nope'|--nope
2|unrecognized option|run --nope
2|which scenarios|run
2|No such file|run $work/absent
2|No such file|check $work/absent
2|No such file|plan $work/absent
2|No such file|judge $work/absent
2|No such file|report $work/absent
2|no run folder|report $work/empty
2|neither a case folder nor a run folder|judge $work/empty
1|-|judge $work/strict
1|-|judge $work/strict/ran
1|-|judge $work/strict/skipped
77|-|judge $work/strict/unrun
0|-|judge $work/lenient
1|-|judge $work/lenient --strict
1|-|judge $work/lenient/skipped
0|-|doctor --json
2|Too many arguments|doctor now
1|-|compare $compared/old $compared/new
0|-|compare $compared/old $compared/old --json
2|which two run folders|compare $compared/old
2|two runs are compared|compare $compared/old $compared/new $compared/new
2|empty is no run folder|compare $compared/old $work/empty
2|have no case in common|compare $compared/old reports/testdata/ladder
1|damaged/cases/3/verdict.json|compare $compared/old $work/damaged
0|damaged/cases/3/verdict.json|report $work/damaged
2|1 mistake|run $work/faulty.yaml
2|faulty.yaml:|check $work/faulty.yaml
2|<stdin>:1:|check - <$work/faulty.yaml
2|<stdin>:1:|run - <$work/faulty.yaml
2|standard input has been read|check - - <$good
0|-|check - <$good
0|-|plan - <$good
0|-|predict - <$good
2|no scenario files|check $work/empty
0|~op=SEND~packet=first-pass: a run of it finds packets|plan $swept
0|-|plan $swept --case wire/every-packet-twice~op=SEND~packet=b.ack.3
2|has no case|plan $swept --case wire/every-packet-twice~op=SEND~packet=b.ack
3|no *.yaml below|run $work/empty
3|no *.yaml below $work/empty|run $good $work/empty
3|--select nothing matches none|run $good --select nothing
3|--select nothing matches none|run $good --select 'receive/*' --select nothing
77|was skipped: there is nothing|run --rerun-failed $work/all-skip
0|passed: there is nothing|run --rerun-failed $work/all-pass
2|there is no profile 'rxee'|run --rerun-failed $work/all-fail
2|'nope' is no attribute|run $good --set qp.nope=1
2|allowed are 0 to 31|run $good --set qp.timeout=99
2|wanted is qp.|run $good --set qp
2|'garbage' is no number|run $good --seed garbage
2|'-1' is no number|run $good --seed -1
2|'0x' is no number|run $good --seed 0x
2|'0' is no number|run $good --repeat 0
2|none of auto, guest, rxe|run $good --lab nope
2|none of auto, kvm, tcg|run $good --accel nope
2|cannot be split|run $good --launch ''
2|which folder|run $good --out ''
2|no libibverbs.so.1|run $good --rdma-core $work/empty
3|/etc/passwd: is no kernel image|run $good --lab guest --out $work/runs --kernel /etc/passwd --modules $work/empty
3|needs --modules DIR as well|run $good --lab guest --out $work/runs --kernel /etc/passwd
3|--kernel wants a series|run $good --lab guest --out $work/runs --kernel ''
3|the cache /dev/null is no folder|run $good --lab guest --out $work/runs
2|no name of a profile|run $good --provider ../rxe
2|there is no profile 'rxee'|run $good --lab guest --provider rxee
3|cannot make the folder|run $good --out /dev/null/x
2|there is no 'nope'|report --format nope $work/empty
2|nothing to list|list nope
2|what is to be listed|list
2|no profile|list profiles $work/empty
2|No such file|list scenarios $work/absent
0|-|new area/name --dir $work/empty --fault netem
2|is there already|new area/name --dir $work/empty
0|-|check $work/empty/area/name.yaml
2|no AREA/NAME|new ../name --dir $work/empty
2|there is no fault 'nope'|new area/other --dir $work/empty --fault nope
2|there is no folder|new area/other --dir $work/absent
2|Too many arguments|clean now
2|shell, run or prepare|guest
2|which command|guest run
0|-|list faults
3|standard output: No space left|list faults >/dev/full
3|standard output: No space left|check scenarios >/dev/full
3|standard output: No space left|plan $good >/dev/full
3|standard output: No space left|schema >/dev/full
3|standard output: No space left|help >/dev/full
3|standard output: Bad file|list faults >&-
0|-|list faults <&- 2>&-
"

while IFS='|' read -r status wanted args; do
	[ -n "$status" ] || continue
	case $wanted in *' cache '*) export QPDRILL_CACHE=/dev/null ;; *) unset QPDRILL_CACHE ;; esac
	eval "q $args" >"$work/out" 2>"$work/err" </dev/null
	seen=$?
	if [ "$seen" -ne "$status" ]; then
		echo "not ok qpdrill $args: status $seen, not $status"
	elif [ "$wanted" = - ] && [ -s "$work/err" ]; then
		echo "not ok qpdrill $args: something on standard error"
	elif [ "$wanted" != - ] && ! grep -qF -- "$wanted" "$work/err"; then
		echo "not ok qpdrill $args: standard error does not say: $wanted"
	else
		echo "ok qpdrill ${args//"$work"/DIR}"
		continue
	fi
	sed 's/^/# /' "$work/err" >&2
done <<<"$rows"

# A second run is judged as the first was.
q run --rerun-failed "$work/all-fail" --provider none --lab guest --out "$work/runs" --kernel '' >"$work/out" 2>&1
if grep -q '"strict": true' "$work/runs/latest/run.json" && grep -q -- '--provider none --require wire --strict"' "$work/runs/latest/run.json"; then
	echo 'ok --rerun-failed is as strict as the run was'
else
	echo 'not ok --rerun-failed is as strict as the run was'
fi

for seed in 010:0xa 0x10:0x10; do
	q run $good --seed ${seed%:*} --lab guest --out "$work/runs" --kernel '' >"$work/out" 2>&1
	if grep -q '"seed": "'${seed#*:}'"' "$work/runs/latest/run.json"; then echo "ok --seed ${seed%:*}"; else echo "not ok --seed ${seed%:*}"; fi
done

# The next file that the program opens must not become its standard output.
q check scenarios >&- 2>"$work/err"
if [ $? -eq 3 ]; then echo 'ok closed standard output is told'; else echo 'not ok closed standard output is told'; fi
# A reader that has seen enough is no error.
q schema 2>"$work/err" | head -1 >"$work/out"
if [ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s "$work/err" ]; then echo 'ok a reader that leaves is no error'; else echo 'not ok a reader that leaves is no error'; fi

# Printed before main, without an end of line: as a provider's constructor may.
if (printf 'no end of line'; exec "$build/qpdrill-agent" </dev/null) 2>"$work/err" | sed -n 2p | grep -q '^{.*"hello"'; then
	echo "ok the agent's hello is a line of its own"
else
	echo "not ok the agent's hello is a line of its own"
fi
if [ "$(q help run)" = "$(q run --help)" ]; then echo 'ok help COMMAND is COMMAND --help'; else echo 'not ok help COMMAND is COMMAND --help'; fi

# Every topic lists something, and as much for programs as for people.
for topic in $(q list --help | sed -n '/^Topics:/,$s/^  \([a-z-]*\) .*/\1/p'); do
	lines=$(q list "$topic" | grep -c '^[^ ]')
	rows=$(q list "$topic" --json | grep -c '^ {')
	if [ "$lines" -gt 0 ] && [ "$lines" -eq "$rows" ]; then echo "ok list $topic"; else echo "not ok list $topic: $lines lines, $rows rows"; fi
done
