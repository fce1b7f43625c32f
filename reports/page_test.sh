#!/bin/bash
# SPDX-License-Identifier: MIT
# report.html as others read it: a validator and a browser. And all formats are functions of the run folder alone.
# shellcheck disable=SC2317 # tests are called by their names
set -u -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
qpdrill=$(realpath "${QPDRILL:-build/qpdrill}")
work=$(mktemp -d "${TMPDIR:-/tmp}/qd-page-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
runs=(run ladder)

# What tries to break out says so to the browser when it does.
for run in "${runs[@]}"; do
	cp -r "reports/testdata/$run" "$work/$run" || exit 1
	find "$work/$run" -type f ! -name '*.pcapng' -exec sed -i 's/alert(1)/console.error(7)/g' {} +
	"$qpdrill" report "$work/$run" --format html >"$work/$run.html" || exit 1
done

verdict() { # name status
	if [ "$2" -eq 0 ]; then echo "ok $1"; return; fi
	echo "not ok $1"
	sed "s/^/# $1: /" "$work"/log* >&2
}

# All formats of a folder, one after the other. The text names the folder that it was asked for.
print_all() {
	local format
	for format in text json junit html; do
		"$qpdrill" report "$1" --format $format | sed "s|^everything about it: $1\$|everything about it: RUN|" || return
	done
	"$qpdrill" report "$1" --table
}
the_same_bytes() {
	local run other=$work/elsewhere/x
	mkdir -p "$other"
	for run in "${runs[@]}"; do
		cp -r "$work/$run" "$other/" && find "$other/$run" -exec touch -d 2001-02-03 {} + || return
		print_all "$work/$run" >"$work/log-once" && print_all "$work/$run" >"$work/log-twice" || return
		(umask 077 && cd / && TZ=Asia/Kolkata LC_ALL=C.UTF-8 LANG=C COLUMNS=40 TERM=dumb HOME=/nonexistent \
			print_all "$other/$run") >"$work/log-elsewhere" || return
		[ -s "$work/log-once" ] && cmp "$work/log-once" "$work/log-twice" && cmp "$work/log-once" "$work/log-elsewhere" || return
		rm "$work"/log-*
	done
}

# tidy does not know one attribute of SVG 2.
valid_page() {
	local run status=0
	: >"$work/log"
	for run in "${runs[@]}"; do
		tidy -q -e "$work/$run.html" 2>&1 | grep -v 'proprietary attribute "paint-order"$' >>"$work/log"
	done
	for run in "${runs[@]}"; do
		"$qpdrill" report "$work/$run" --format junit | xmllint --noout - >>"$work/log" 2>&1
		xmllint --noout "$work/$run.html" >>"$work/log" 2>&1
	done
	[ ! -s "$work/log" ] || return
	sed 's|</table>|</tabel>|' "$work/run.html" | tidy -q -e >"$work/log" 2>&1 && status=1
	return $status
}

# One start for all: pages in frames, asked by the page around them, which proves first that its words are heard.
open_in_browser() { # -> log: what it said; 1: it did not come up
	local run
	{
		echo '<!DOCTYPE html><html lang="en"><title>t</title><script>console.error("CONTROL");'
		echo 'function look(f) { const d = f.contentDocument, n = q => d.querySelectorAll(q).length;'
		echo 'console.log("SEEN " + f.title + " " + n("details.case") + " cases, " + n("details.case svg.ladder") + " ladders, " +'
		echo 'n("script, img, iframe, object, embed, form, base, [onclick], [onload], [onerror]") + " of others") }</script>'
		for run in "${runs[@]}"; do
			printf '<iframe title="%s" src="%s.html" onload="look(this)"></iframe>\n' "$run" "$run"
		done
		echo '</html>'
	} >"$work/around.html"
	timeout -k 5 120 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions \
		--disable-background-networking --disable-component-update --disable-sync --user-data-dir="$work/profile" \
		--allow-file-access-from-files --enable-logging=stderr --v=0 --dump-dom "file://$work/around.html" \
		>/dev/null 2>"$work/browser" </dev/null
	grep -a CONSOLE "$work/browser" >"$work/log"
	[ "$(grep -ac ' cases, ' "$work/log")" -eq ${#runs[@]} ]
}
opens_in_browser() {
	local run cases
	[ "$(grep -c CONTROL "$work/log")" -eq 1 ] || return
	for run in "${runs[@]}"; do
		cases=$(grep -c '"dir"' "reports/testdata/$run/run.json")
		grep -q "SEEN $run $cases cases, [0-9]* ladders, 0 of others" "$work/log" || return
	done
	grep -q 'SEEN ladder 4 cases, 4 ladders' "$work/log" || return
	# Nothing else, and nothing that came out of the run folder, has anything to say.
	[ "$(grep -vc -e CONTROL -e SEEN "$work/log")" -eq 0 ]
}

the_same_bytes
verdict 'the same bytes again, elsewhere, in another time zone, language, mask and width' $?

name='a validator finds nothing on the page, and something where there is something'
if command -v tidy >/dev/null && command -v xmllint >/dev/null; then
	valid_page
	verdict "$name" $?
else
	echo "skip $name: it needs tidy and xmllint"
fi

name='a browser opens the page without a word, and nothing in it comes alive'
if ! command -v chromium >/dev/null; then
	echo "skip $name: there is no chromium"
elif ! open_in_browser && ! open_in_browser; then
	echo "skip $name: chromium did not open a page within two minutes, twice"
	tail -5 "$work/browser" >&2
else
	opens_in_browser
	verdict "$name" $?
fi
