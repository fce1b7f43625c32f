#!/bin/bash
# SPDX-License-Identifier: MIT
# When a pipeline's job runs once more, and what its exit status is, with a qpdrill that only ends as it is told to.
set -u -o pipefail
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-drill-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/harness/ci" "$work/build" && cp "$(dirname "$0")/ci/drill.sh" "$work/harness/ci/"
cd "$work" || exit 1
printf '%s\n' 'setup:' $'\t@test ! -e no-setup' 'all:' $'\t@:' >Makefile

# Line N of `ends`, "STATUS KIND", is how call N ends: `folder` makes a run folder, `none` none, `slow` waits to be told to end.
cat >build/qpdrill <<'END2'
#!/bin/bash
echo "$*" >>calls
n=$(wc -l <calls)
read -r status kind <<<"$(sed -n "${n}p" ends)"
[ "$kind" = none ] || { mkdir -p "runs/new-$n" && ln -sfn "new-$n" runs/latest; }
[ "$kind" != slow ] || { trap 'exit "$status"' TERM; touch started; for ((i = 0; i < 200; i++)); do sleep 0.05; done; }
exit "$status"
END2
chmod +x build/qpdrill

# name | how the calls end, `,` between them | status | how many calls | what is run again
rows="
a pass is not run again|0 folder|0|1|
a failure is not run again|1 folder|1|1|
no verdict is asked again|3 folder,0 folder|0|2|runs/new-1
no verdict twice|3 folder,3 folder|3|2|runs/new-1
a run of nothing does not run again what was there before|3 none,0 folder|3|1|
nothing to run again is no pass|3 folder,0 none|3|2|runs/new-1
a second run that did not begin|3 folder,2 none|3|2|runs/new-1
"
while IFS='|' read -r name ends status calls again; do
	[ -n "$name" ] || continue
	rm -rf runs calls && mkdir -p runs/old && ln -s old runs/latest
	printf '%s\n' "${ends//,/$'\n'}" >ends
	harness/ci/drill.sh x.yaml >out 2>&1
	seen=$?
	if [ $seen -ne "$status" ]; then
		echo "not ok drill: $name: status $seen, not $status"
	elif [ "$(wc -l <calls)" -ne "$calls" ]; then
		echo "not ok drill: $name: $(wc -l <calls) calls, not $calls"
	elif [ -n "$again" ] && ! sed -n 2p calls | grep -qF -- "--rerun-failed $again "; then
		echo "not ok drill: $name: the second call is $(sed -n 2p calls)"
	else
		echo "ok drill: $name"
	fi
done <<<"$rows"

touch no-setup && rm -f calls
harness/ci/drill.sh x.yaml >out 2>&1
if [ $? -eq 2 ] && [ ! -e calls ]; then echo 'ok drill: no setup, no run'; else echo 'not ok drill: no setup, no run'; fi
rm no-setup

# To it alone: what it runs is told, and waited for. Where this script ignores SIGINT (a job in the background does) env gives it back.
for signal in HUP:129 INT:130 TERM:143; do
	rm -rf runs calls started
	printf '%s\n' '3 slow' '0 folder' >ends
	env --default-signal=HUP,INT,TERM harness/ci/drill.sh x.yaml >out 2>&1 &
	job=$!
	for ((i = 0; i < 200; i++)); do [ ! -e started ] || break; sleep 0.05; done
	kill -"${signal%:*}" $job
	wait $job
	seen=$?
	if [ $seen -eq "${signal#*:}" ] && [ "$(wc -l <calls)" -eq 1 ]; then
		echo "ok drill: SIG${signal%:*} ends it"
	else
		echo "not ok drill: SIG${signal%:*} ends it: status $seen, $(wc -l <calls) calls"
	fi
done
