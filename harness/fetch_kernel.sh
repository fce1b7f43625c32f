#!/bin/bash
# SPDX-License-Identifier: MIT
# Puts what the guest boots into the cache and prints where it lies, as KEY=VALUE lines:
#   image    what QEMU boots (the uncompressed kernel where it can be had: it starts twice as fast under emulation)
#   initrd   the guest's init and the modules that it loads (only with --init)
#   modules  .../lib/modules/RELEASE, for modprobe in the guest
#   release  as uname -r prints it
#   key      identifies image and modules
# or, with exit status 1, error=WHY.
#
# usage: fetch_kernel.sh [--update] [--init PROGRAM] [--kernel SERIES | --kernel newest | --kernel IMAGE --modules DIR]
#   --init               the guest's first program (build/qpdrill-init); without it no initrd is made
#   --update             look for a newer distribution kernel even when one is in the cache
#   --kernel SERIES      6.12: the newest of Debian's kernels of that series, from the first suite that has one
#   --kernel newest      the newest of the series that the suites have (looked for once, and again with --update)
#   --kernel, --modules  one's own build; DIR is a folder with lib/modules/RELEASE below it, or that folder itself
#
# Whatever is made is made under a temporary name and renamed when whole, so a killed run leaves nothing half-made.
# shellcheck disable=SC2015 # die ends the script, so A && B || die is an if
set -u -o pipefail
export LC_ALL=C

say() { printf 'kernel: %s\n' "$*" >&2; }
# The last word goes to the caller too, for its reports.
exec 3>&1
die() { say "$*"; printf 'error=%s\n' "$*" >&3; exit 1; }

update='' init='' series='' newest='' user_image='' user_modules=''
while [ $# -gt 0 ]; do
	case $1 in
	--update) update=1; shift ;;
	--init) init=${2:?--init needs a PROGRAM}; shift 2 ;;
	--kernel)
		user_image=${2:-}
		[ -n "$user_image" ] || die "--kernel wants a series of Debian's kernels, like 6.12, or an IMAGE"
		shift 2
		;;
	--modules)
		user_modules=${2:-}
		[ -n "$user_modules" ] || die "--modules wants the DIR of a kernel's modules"
		shift 2
		;;
	*) die "unknown argument $1" ;;
	esac
done
if [ -z "$user_modules" ] && [[ $user_image =~ ^[0-9]+\.[0-9]+$ ]]; then series=$user_image user_image=''; fi
if [ -z "$user_modules" ] && [ "$user_image" = newest ]; then newest=1 user_image=''; fi
[ -z "$user_image" ] || [ -n "$user_modules" ] ||
	die "--kernel $user_image needs --modules DIR as well: the modules built with that kernel (a series of Debian's kernels is written like 6.12)"
[ -z "$user_modules" ] || [ -n "$user_image" ] || die "--modules needs --kernel IMAGE as well: the kernel built with those modules"

if [ -n "${QPDRILL_CACHE:-}" ]; then cache=$QPDRILL_CACHE
elif [ -n "${XDG_CACHE_HOME:-}" ]; then cache=$XDG_CACHE_HOME/qpdrill
elif [ -n "${HOME:-}" ]; then cache=$HOME/.cache/qpdrill
else die "no place for the cache: QPDRILL_CACHE, XDG_CACHE_HOME and HOME are all unset"
fi

# The guest cannot do without the first two lists: what it mounts its root with, and what it is for, which loads beside. The third is
# loaded where the kernel has it as a module.
need_first='virtio_pci 9pnet_virtio 9p overlay virtio_console'
need='rdma_rxe ib_uverbs veth'
want='crc32_generic sch_netem rdma_ucm'
# Where a series of Debian's kernels is looked for.
suites='bookworm-backports trixie-backports bookworm trixie sid'

# Takes the ELF image out of a bzImage: finds the compressed payload by its magic.
extract_vmlinux() { # image target
	local magic tool offset
	while read -r magic tool; do
		command -v "${tool%% *}" >/dev/null || continue
		for offset in $(grep -aboP "$magic" "$1" | cut -d: -f1 | head -4); do
			# shellcheck disable=SC2086 # the tool's own words; trailing data makes it fail after the fact
			tail -c "+$((offset + 1))" "$1" | $tool >"$2" 2>/dev/null
			bootable_elf "$2" && return 0
		done
	done <<-'END'
		\xfd7zXZ\x00 xz -dc --single-stream
		\x28\xb5\x2f\xfd zstd -dcq
		\x1f\x8b\x08 gzip -dc
		\x02\x21\x4c\x18 lz4 -dc
	END
	rm -f "$2"
	return 1
}

# QEMU starts an ELF kernel at the entry that a Xen note of type 18 names.
bootable_elf() {
	[ "$(head -c 4 "$1" 2>/dev/null | tr -d '\0')" = $'\x7fELF' ] && readelf -n "$1" 2>/dev/null | grep -q '0x00000012'
}

# Prints the files of the modules, in the order of loading. The whole tree is modules/lib/modules/RELEASE.
list_modules() { # folder-with-lib/modules release module...
	local m out
	for m in "${@:3}"; do
		if ! out=$(modprobe -S "$2" -d "$1" --show-depends "$m" 2>&1); then
			[[ " $want " == *" $m "* ]] && continue
			die "module $m is not in $1/lib/modules/$2 (modprobe: $out). The guest needs: $need_first $need"
		fi
		printf '%s\n' "$out" | awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++'
}

build_initrd() { # kernel-folder target
	local tree
	tree=$(mktemp -d "$cache/tmp.XXXXXX") || die "cannot write to $cache"
	mkdir -p "$tree"/{m,root,tmpfs,proc,sys,dev} && cp "$init" "$tree/init" &&
		chmod 755 "$tree/init" || die "cannot fill $tree"
	# shellcheck disable=SC2086 # lists of words
	list_modules "$1/modules" "$release" $need_first >"$tree/first" && list_modules "$1/modules" "$release" $need $want >"$tree/second" || exit 1
	unpack_modules "$tree" <"$tree/first" >"$tree/m/first"
	unpack_modules "$tree" <"$tree/second" >"$tree/m/second"
	rm "$tree/first" "$tree/second"
	(cd "$tree" && find . -mindepth 1 | cpio -o -H newc --quiet -R 0:0 | gzip -1) >"$tree.img" || die "cannot pack the initramfs"
	mv "$tree.img" "$2" && rm -rf "$tree"
}

unpack_modules() { # initramfs-folder; file names on stdin, module names on stdout
	local tree=$1 module base
	while read -r module; do
		base=${module##*/}
		case $base in
		*.xz) xz -dc "$module" >"$tree/m/${base%.xz}" || die "cannot unpack $module"; base=${base%.xz} ;;
		*.zst) zstd -dcq "$module" >"$tree/m/${base%.zst}" || die "cannot unpack $module"; base=${base%.zst} ;;
		*.gz) gzip -dc "$module" >"$tree/m/${base%.gz}" || die "cannot unpack $module"; base=${base%.gz} ;;
		*) cp "$module" "$tree/m/" || die "cannot copy $module" ;;
		esac
		echo "$base"
	done
}

# Resolves the newest distribution kernel to a package name: the one that the metapackage depends on.
resolve_package() {
	apt-cache "${apt[@]}" depends linux-image-amd64 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-image-[0-9].*-amd64$/ && $2 !~ /-(cloud|rt)-|-dbg/ { print $2; exit }'
}

update_lists() {
	say "updating the package lists (apt-get update)"
	if [ "$(id -u)" -ne 0 ]; then # lists of our own: no root needed
		mkdir -p "$cache/apt/lists/partial" "$cache/apt/archives/partial"
		apt=(-o "Dir::State::Lists=$cache/apt/lists" -o "Dir::Cache=$cache/apt" "${apt[@]}")
	fi
	apt-get -q "${apt[@]}" update </dev/null >"$tmp/log" 2>&1 || { grep -m3 '^[EW]:' "$tmp/log" >&2; return 1; }
}

start_apt() {
	command -v apt-get >/dev/null || die "no apt-get here to fetch a kernel with: give one's own with --kernel IMAGE --modules DIR"
	apt=(-o APT::Sandbox::User=root -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=300)
}

# Has the newest package of what is wanted in $package: where there is none, $why says so.
find_distribution() {
	start_apt
	if [ -n "$series" ]; then find_series; return; fi
	package=$(resolve_package)
	[ -n "$package" ] || { update_lists; package=$(resolve_package); }
	why="apt knows no linux-image-amd64. Is there a network and a Debian mirror in /etc/apt? Or give one's own with --kernel IMAGE --modules DIR"
}

# The mirror that this machine's own apt takes Debian from.
# shellcheck disable=SC2016 # apt fills that in
mirror() {
	apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ { print $4; exit }'
}

# Makes apt look at one suite, with lists of its own: the machine's configuration stays as it is. Fails with $why.
use_suite() { # suite mirror what-is-wanted
	local key=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$cache/apt/$1/partial" "$cache/apt/archives/partial" || die "cannot write to $cache/apt"
	printf 'deb [arch=amd64%s] %s %s main\n' "$([ -r "$key" ] && echo " signed-by=$key")" "$2" "$1" >"$cache/apt/$1.list"
	apt=("${machine[@]}" -o "Dir::Etc::SourceList=$cache/apt/$1.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$cache/apt/$1"
		-o "Dir::Cache=$cache/apt" -o Dir::State::status=/dev/null -o Acquire::Languages=none)
	say "looking for $3 in $1"
	apt-get -q "${apt[@]}" -o APT::Update::Error-Mode=any update </dev/null >"$tmp/log" 2>&1 && return
	why="$3 cannot be had: the package lists of $1 cannot be read ($(grep -m1 '^[EW]:' "$tmp/log" || tail -1 "$tmp/log"))"
	return 1
}

# Debian's kernels of the suite in use whose version begins so (a regular expression).
packages_of() {
	apt-cache "${apt[@]}" search --names-only "^linux-image-$1[.0-9]*[-+].*amd64$" | awk '$1 !~ /-(cloud|rt)-|-dbg|unsigned/ { print $1 }'
}

find_mirror() { # what-is-wanted
	machine=("${apt[@]}")
	uri=$(mirror)
	[ -n "$uri" ] || { update_lists; uri=$(mirror); apt=("${machine[@]}"); }
	[ -n "$uri" ] || die "$1 cannot be had: apt on this machine knows no Debian mirror to look on"
}

# Looks through suites, older ones and small lists first.
find_series() {
	local suite uri machine
	find_mirror "kernel $series"
	why="kernel $series cannot be had: Debian's suites have no such kernel any more, or not yet ($suites)"
	for suite in $suites; do
		use_suite "$suite" "$uri" "kernel $series" || continue
		package=$(packages_of "${series/./\\.}" | sort -V | tail -1)
		[ -z "$package" ] || return 0
	done
}

# Puts the newest series of all suites into the cache. Without any list the newest that was fetched has to do.
find_newest() {
	local suite uri machine found=''
	start_apt
	find_mirror "the newest kernel"
	for suite in $suites; do
		use_suite "$suite" "$uri" "the newest kernel" || { say "$why"; continue; }
		found+=$(packages_of '[0-9]*\.[0-9]*' | sed -nE 's/^linux-image-([0-9]+\.[0-9]+).*/\1/p')$'\n'
	done
	[ -n "${found//$'\n'/}" ] || found=$(find "$cache" -maxdepth 1 -name 'series-*' -printf '%f\n' | sed 's/^series-//')
	found=$(sort -V <<<"$found" | tail -1)
	[ -n "$found" ] || die "$why"
	printf '%s\n' "$found" >"$cache/newest.new" && mv "$cache/newest.new" "$cache/newest" || die "cannot write to $cache"
}

# The package and those that it is split into.
download() {
	local parts
	parts=$(apt-cache "${apt[@]}" depends "$package" | awk '$1 == "Depends:" && $2 ~ /^linux-(binary|modules|base)-[0-9]/ { print $2 }')
	# shellcheck disable=SC2086 # a list of words
	(cd "$tmp" && apt-get -q "${apt[@]}" download "$package" $parts </dev/null >log 2>&1)
}

fetch_distribution() {
	local deb version image
	find_distribution
	[ -n "$package" ] || die "$why"
	if [ -n "$update" ] && [ -e "$link/package" ] && [ "$(cat "$link/package")" = "$package" ]; then
		say "$package is the newest, and in the cache"
		return
	fi
	say "downloading $package (70 to 170 MB, once)"
	if ! download; then
		[ -n "$series" ] || { update_lists; package=$(resolve_package); }
		[ -z "$series" ] && download || {
			grep -m3 '^[EW]:' "$tmp/log" >&2
			die "cannot download $package. Is there a network? A cache filled elsewhere (QPDRILL_CACHE=FOLDER) or --kernel IMAGE --modules DIR does without"
		}
	fi
	version=$(dpkg-deb -f "$tmp/${package}_"*.deb Version) || die "cannot read the downloaded package"
	say "unpacking $package $version"
	mkdir -p "$tmp/new/modules/lib" "$tmp/root"
	for deb in "$tmp"/*.deb; do # Without the drivers of devices that no guest of ours has, a quarter of the tree is left.
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp/root" --exclude='./usr/share' \
			--exclude='*/kernel/sound' --exclude='*/drivers/gpu' --exclude='*/drivers/media' --exclude='*/net/wireless' --exclude='*/drivers/staging' \
			--exclude='*/drivers/iio' --exclude='*/drivers/usb' --exclude='*/drivers/scsi' --exclude='*/drivers/hid' --exclude='*/drivers/input' \
			--exclude='*/drivers/mtd' --exclude='*/drivers/hwmon' --exclude='*/drivers/ata' --exclude='*/drivers/isdn' || die "cannot unpack $deb"
		rm -f "$deb"
	done
	image=$(find "$tmp/root" -type f -name 'vmlinuz*' -print -quit)
	[ -n "$image" ] || die "no kernel image in $package"
	mv "$image" "$tmp/vmlinuz" && mv "$(find "$tmp/root" -type d -path '*lib/modules' -print -quit)" "$tmp/new/modules/lib/modules" || die "no modules in $package"
	release=$(ls "$tmp/new/modules/lib/modules")
	finish_kernel "$tmp/new" "$tmp/vmlinuz" "${release}_${version//[:\/]/_}"
	printf '%s\n' "$package" >"$cache/kernels/$key/package"
	ln -sfn "kernels/$key" "$link.new" && mv -T "$link.new" "$link" || die "cannot write $link"
}

measure() { # kernel-folder
	printf '%s %s\n' "$(stat -c %s "$1/image")" "$(find "$1/modules" -type f -name '*.ko*' | wc -l)"
}

# What a full disk, or somebody who made room, has left of a kernel is fetched anew.
is_whole() { # kernel-folder
	[ -s "$1/stamp" ] && [ -s "$1/release" ] && [ "$(measure "$1" 2>/dev/null)" = "$(cat "$1/stamp")" ]
}

# Takes one's own kernel in: the key is the content of image and modules, so a rebuilt kernel is another one.
fetch_user() {
	local base sum
	[ -f "$user_image" ] && [ -r "$user_image" ] || die "--kernel $user_image: cannot be read"
	bootable_elf "$user_image" || [ "$(tail -c +515 "$user_image" | head -c 4 | tr -d '\0')" = HdrS ] ||
		die "--kernel $user_image: is no kernel image (a bzImage, or a vmlinux with a PVH note)"
	[ -d "$user_modules" ] || die "--modules $user_modules: no such folder"
	mkdir -p "$tmp/new/modules/lib/modules" || die "cannot write to $tmp"
	if bootable_elf "$user_image"; then cp "$user_image" "$tmp/vmlinux"; else extract_vmlinux "$user_image" "$tmp/vmlinux" || :; fi
	base=$user_modules
	if [ -d "$base/lib/modules" ]; then
		base=$base/lib/modules
		if [ "$(find "$base" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ]; then
			base=$(find "$base" -mindepth 1 -maxdepth 1 -type d)
		else
			release=$(strings -n 10 "${tmp}/vmlinux" 2>/dev/null | sed -n 's/^Linux version \([^ ]*\) .*/\1/p' | head -1)
			[ -n "$release" ] && [ -d "$base/$release" ] || die "--modules $user_modules holds several releases and none is that of $user_image (${release:-unknown}): name lib/modules/RELEASE itself"
			base=$base/$release
		fi
	fi
	base=$(realpath "$base")
	release=${base##*/}
	ln -s "$base" "$tmp/new/modules/lib/modules/$release"
	[ -e "$base/modules.dep" ] || die "$base has no modules.dep: run depmod -b ${base%/lib/modules/*} $release"
	# shellcheck disable=SC2086 # lists of words
	list_modules "$tmp/new/modules" "$release" $need_first $need $want >"$tmp/files" || exit 1
	sum=$({ sha256sum <"$user_image"; xargs -d '\n' cat <"$tmp/files" | sha256sum; echo "$base"; } | sha256sum | cut -c1-16)
	key=user-$release-$sum
	is_whole "$cache/kernels/$key" || finish_kernel "$tmp/new" "$user_image" "$key"
}

finish_kernel() { # folder image key; the folder holds modules/lib/modules/RELEASE
	key=$3
	if [ -s "$tmp/vmlinux" ]; then mv "$tmp/vmlinux" "$1/image"
	elif ! extract_vmlinux "$2" "$1/image"; then
		say "$2 could not be unpacked to a directly bootable kernel; it boots as it is, more slowly"
		cp "$2" "$1/image" || die "cannot copy $2"
	fi
	if [ ! -L "$1/modules/lib/modules/$release" ]; then
		depmod -b "$1/modules" "$release" 2>"$tmp/log" || die "depmod failed: $(tail -1 "$tmp/log")"
	fi
	printf '%s\n' "$release" >"$1/release"
	sync -f "$1" 2>/dev/null
	measure "$1" >"$1/stamp"
	mkdir -p "$cache/kernels" && rm -rf "$cache/kernels/$key" && mv -T "$1" "$cache/kernels/$key" || die "cannot write $cache/kernels/$key"
}

[ "$(uname -m)" = x86_64 ] || die "the guest runs on x86_64 only so far; this machine is $(uname -m)"
[ -z "$init" ] || [ -x "$init" ] || die "--init $init: no such program"
for tool in cpio modprobe depmod readelf; do
	command -v "$tool" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || die "$tool is missing: \`make setup\` installs it"
done
PATH=$PATH:/usr/sbin:/sbin

mkdir -p "$cache" 2>/dev/null
# Nobody else fills the cache from here on; $tmp is a folder in it.
lock_cache() {
	[ -z "${tmp:-}" ] || return 0
	[ -w "$cache" ] || die "the cache folder $cache cannot be written; QPDRILL_CACHE=FOLDER names another"
	[ -d "$cache" ] || die "the cache $cache is no folder; QPDRILL_CACHE=FOLDER names another"
	exec 9>"$cache/lock" || die "cannot write $cache/lock"
	flock -n 9 || { say "another run is filling the cache; waiting for it"; flock -w 900 9 || die "gave up after 15 minutes: $cache/lock is still held"; }
	# Nobody else is at work: what lies there was left by a killed run.
	rm -rf "$cache"/tmp.*
	tmp=$(mktemp -d "$cache/tmp.XXXXXX") || die "cannot write to $cache"
	trap 'rm -rf "$tmp"' EXIT
}
if [ -n "$newest" ]; then
	[ -z "$update" ] && [ -s "$cache/newest" ] || { lock_cache; find_newest; }
	series=$(cat "$cache/newest")
fi
# What this machine's own distribution has, or what was fetched for a series; the former may be of that series.
link=$cache/current
if [ -n "$series" ] && [[ $(cat "$link/release" 2>/dev/null) != "$series".* ]]; then link=$cache/series-$series; fi
ready=''
if [ -z "$update$user_image" ] && is_whole "$link/"; then
	key=$(basename "$(readlink "$link")")
	release=$(cat "$link/release") && ready=1
fi
initrd_name=''
[ -z "$init" ] || initrd_name=initrd-$(cat "$init" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-12).gz
has_initrd() { [ -z "$initrd_name" ] || gzip -t "$cache/kernels/$key/$initrd_name" 2>/dev/null; }
if [ -z "$ready" ] || ! has_initrd; then
	lock_cache
	if [ -n "$user_image" ]; then fetch_user
	elif [ -n "$update" ] || ! is_whole "$link/"; then fetch_distribution
	fi
	if [ -z "$user_image" ]; then
		key=$(basename "$(readlink "$link")")
		release=$(cat "$link/release") || die "$link is broken: remove $cache and try again"
	fi
	if ! has_initrd; then
		find "$cache/kernels/$key" -name "initrd-*.gz" -mtime +1 -delete # of other versions of the script
		build_initrd "$cache/kernels/$key" "$cache/kernels/$key/$initrd_name"
	fi
fi
dir=$cache/kernels/$key
printf 'image=%s\ninitrd=%s\nmodules=%s\nrelease=%s\nkey=%s\n' "$dir/image" "${initrd_name:+$dir/$initrd_name}" "$dir/modules/lib/modules/$release" "$release" "$key"
