#!/bin/bash
# SPDX-License-Identifier: MIT
# What `make setup` runs first: looks which packages are missing, says which and why, and installs them with
# apt-get where that is allowed. Does nothing, and says nothing, when all are there.
# usage: setup.sh [PACKAGE...]: these besides, for what only some want (perftest: `make bench`)
set -u -o pipefail

list=$(dirname "${BASH_SOURCE[0]}")/packages.txt
# package|what it is for
packages=$(awk -F'|' '!/^#/ && NF == 4 && $3 != "optional" { print $1 "|" $4 }' "$list")$'\n'
[ -n "${packages//$'\n'/}" ] || { echo "setup: $list, the list of packages, cannot be read" >&2; exit 1; }
for extra; do packages+="$extra|asked for"$'\n'; done

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if ! command -v dpkg-query >/dev/null; then
	say "this system has no dpkg, so nothing can be checked or installed; needed are the equivalents of these Debian packages:"
	printf '%s' "$packages" | awk -F'|' 'NF == 2 { printf "    %-18s %s\n", $1, $2 }' >&2
	[ -n "${QPDRILL_SKIP_SETUP:-}" ] && exit 0
	die "with all of them in place, QPDRILL_SKIP_SETUP=1 goes on without this check"
fi

missing=()
while IFS='|' read -r package reason; do
	[ -n "$package" ] || continue
	if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
		missing+=("$package")
		say "missing: $package ($reason)"
	fi
done <<<"$packages"
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
	say "only root can install packages. Run this, then try again:"
	die "    sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
fi

log=$(mktemp) || die "no temporary file can be made in ${TMPDIR:-/tmp}"
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0)
install() { "${apt[@]}" install --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1; }

say "installing ${#missing[@]} packages with apt-get"
if ! install; then
	say "that did not work with the package lists as they are; updating them (apt-get update)"
	"${apt[@]}" update </dev/null >"$log" 2>&1 || say "apt-get update failed: $(grep -m1 '^E:' "$log" || tail -1 "$log")"
	if ! install; then
		tail -15 "$log" >&2
		die "apt-get could not install ${missing[*]} (above: its last words). Is there a network and a package mirror?"
	fi
fi
say "installed: ${missing[*]}"
