#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# shellcheck shell=dash
# /init of the guest, run by busybox from the initramfs: loads the modules, mounts the host's root read-only with a
# tmpfs over it, and hands over to the script that lies in the boot's own folder on the host (9p share `share`, file
# named by qd.script= on the kernel's command line). When that script ends, the guest powers off.
#
# The script finds: the share at /run/qd/share, its virtio-serial ports in QD_PORT_<name>, /lib/modules/RELEASE if
# QD_MODULES names the tree, the host's programs everywhere else.

if [ "$1" != second ]; then
	busybox=/bin/busybox
	$busybox mount -t proc proc /proc
	case $($busybox cat /proc/cmdline) in
	*qd.probe*) # only asked whether this machine can run a guest at all
		echo "qpdrill-probe-reached" >/dev/console
		$busybox poweroff -f
		;;
	esac
	$busybox mount -t sysfs sys /sys
	$busybox mount -t devtmpfs dev /dev
	while read -r module; do
		$busybox insmod "/m/$module" || echo "guest: module $module does not load" >/dev/console
	done </m/order
	$busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose root /root || echo "guest: no root" >/dev/console
	$busybox mount -t tmpfs -o mode=755 tmpfs /tmpfs
	$busybox mkdir /tmpfs/upper /tmpfs/work /tmpfs/new
	$busybox mount -t overlay -o lowerdir=/root,upperdir=/tmpfs/upper,workdir=/tmpfs/work overlay /tmpfs/new
	cd /tmpfs/new || exit 1
	$busybox mount --move /proc proc
	$busybox mount --move /sys sys
	$busybox mount --move /dev dev
	$busybox mkdir -p dev/pts dev/shm
	$busybox mount -t devpts devpts dev/pts
	$busybox mount -t tmpfs tmpfs dev/shm
	$busybox mount -t tmpfs -o mode=755 tmpfs run
	$busybox mkdir -p run/qd/share
	$busybox cp /bin/busybox /init run/qd/
	$busybox ln -s /proc/self/fd dev/fd
	exec $busybox switch_root . /run/qd/busybox sh /run/qd/init second
fi

busybox=/run/qd/busybox
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-linux}"
export QPDRILL_GUEST=1 QPDRILL_STATE=/run/qpdrill
$busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /run/qd/share
$busybox ip link set lo up
script=''
for word in $($busybox cat /proc/cmdline); do
	case $word in
	qd.script=*) script=${word#qd.script=} ;;
	esac
done
for port in /sys/class/virtio-ports/*; do
	read -r name <"$port/name" && export "QD_PORT_$name=/dev/${port##*/}"
done
$busybox sh "/run/qd/share/$script" </dev/null >/dev/console 2>&1
$busybox poweroff -f
