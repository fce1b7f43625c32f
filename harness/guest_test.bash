# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # who reads this uses what it sets
# What the tests of the guest share: read by them with `.`; a folder of their own, a case, and how it is told what was seen.
set -u -o pipefail
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

# Runs the functions that are named, in that order.
run_tests() { # FUNCTION...
	local test
	for test; do
		rm -f "$work"/{verdicts,out,err}
		"$test"
	done
}
