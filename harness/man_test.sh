#!/bin/bash
# SPDX-License-Identifier: MIT
# The manual pages say what the programs do, and are pages that man understands. Prints `ok NAME`, `not ok NAME` or `skip NAME: REASON`.
# usage: BUILD=build harness/man_test.sh
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
build=${BUILD:-$PWD/build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
man=$build/man
q() { "$build/qpdrill" "$@"; }

# The page's own text: escapes undone, macros left.
plain() { sed 's/\\-/-/g; s/\\fB//g; s/\\fR//g; s/\\(aq/'\''/g; s/\\(ti/~/g; s/\\(ha/^/g; s/\\&//g; s/\\e/\\/g' "$1"; }

# That each word of the list (one a line, standard input) is a term of the page, in the part from the line $2 to the next of the kind.
terms() { # name page part
	local missing='' n=0 word part
	part=$(plain "$man/$2" | awk -v part="$3" '$0 == part { on = 1; next } on && /^\.S[HS] / && (part ~ /^\.SH/ ? /^\.SH/ : 1) { exit } on')
	while read -r word; do
		n=$((n + 1))
		grep -qxF -- "$word" <<<"$part" || grep -qE -- "(^|, )$word(=.*)?\$" <<<"$part" || missing+=" $word"
	done
	if [ $n -eq 0 ]; then echo "not ok $1: nothing to look for"; elif [ -n "$missing" ]; then echo "not ok $1: not in $2:$missing"; else echo "ok $1 ($n)"; fi
}

for command in $(q help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
	[ "$command" = help ] && continue
	{ q "$command" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+' | grep -vxE -- '--(help|usage)'; echo "qpdrill $command"; } |
		sed 's/^qpdrill \(.*\)/qpdrill \1.*/' >"$build/man/.terms"
	terms "the options of $command" qpdrill.1 ".SS \"qpdrill $command\"" <"$build/man/.terms"
done
rm -f "$build/man/.terms"
terms 'the steps' qpdrill-scenario.5 '.SH "STEPS"' < <(q list steps | awk '{ print ".SS \"" $1 "\"" }')
terms 'the faults' qpdrill-scenario.5 '.SH "FAULTS"' < <(q list faults | awk '{ print $1 }')
terms 'the actions' qpdrill-scenario.5 '.SH "ACTIONS"' < <(q list actions | awk '/^[a-z]/ { print $1 }')
terms 'the statuses' qpdrill-scenario.5 '.SH "STATUSES"' < <(q list statuses | awk '{ print $1 }')
terms 'the events' qpdrill-scenario.5 '.SH "EVENTS"' < <(q list events | awk '{ print $1 }')
terms 'the recovery paths' qpdrill-scenario.5 '.SH "RECOVERY PATHS"' < <(q list recoveries | awk '{ print $1 }')
terms 'the attributes' qpdrill-scenario.5 '.SH "ATTRIBUTES"' < <(q list attributes | awk '{ print $1 }')
terms 'the capabilities' qpdrill-scenario.5 '.SH "CAPABILITIES"' < <(q list capabilities | awk '{ print $1 }')
terms 'the requests of the agent' qpdrill-agent.1 '.SH "REQUESTS"' < <("$build/qpdrill-agent" --help </dev/null | sed -n '/^Requests:/,/^$/s/^  \([a-z_]*\) .*/\1/p')
terms 'the requests of the wire' qpdrill-wire.1 '.SH "REQUESTS"' < <("$build/qpdrill-wire" --help </dev/null | sed -n '/^Requests:/,/^$/s/^  \([a-z_]*\) .*/\1/p')

for page in "$man"/*.[15]; do
	name=${page##*/}
	if ! command -v groff >/dev/null; then
		echo "skip $name and groff: there is no groff (apt-get install groff-base)"
	elif said=$(groff -man -ww -z -Tascii "$page" 2>&1) && [ -z "$said" ]; then
		echo "ok groff has nothing to say of $name"
	else
		echo "not ok groff has nothing to say of $name"
		printf '%s\n' "$said" >&2
	fi
	if ! command -v mandoc >/dev/null; then
		echo "skip $name and mandoc: there is no mandoc (apt-get install mandoc)"
	elif said=$(mandoc -T lint -W error "$page" 2>&1) && [ -z "$said" ]; then
		echo "ok mandoc finds no error in $name"
	else
		echo "not ok mandoc finds no error in $name"
		printf '%s\n' "$said" >&2
	fi
done
