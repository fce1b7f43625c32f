/* SPDX-License-Identifier: MIT */
/*
 * The boot file: what a guest does after it has booted. Written by the host (guest.h), read by guest_init. One "KEY VALUE" a line;
 * in values a line break is \n and a backslash \\. Its name is on the kernel's command line (qd.boot=NAME), it lies in the share.
 *   share PATH    where the writable share is to be seen, besides GUEST_BOOT_SHARE
 *   extra PATH    where a second writable share is to be seen
 *   modules PATH, release NAME    the modules for modprobe
 *   env K=V       any number
 *   cwd PATH
 *   arg WORD      the command, word by word
 *   port NAME     one more word: the device of this virtio-serial port
 *   tty DEVICE    the command gets a terminal; otherwise its standard input is empty and
 *   out NAME, err NAME    virtio-serial ports that take its output (the console without)
 *   status NAME   the port that takes its exit status, in decimal and a line break
 *   shell yes     a shell on ttyS1 beside it
 *   early yes     the command may start before the modules that it is for are loaded: end of file on descriptor $QD_MODULES_FD
 * tells when they are
 *
 * A guest that is to be saved has qd.save=NAME on the command line instead: that boot file lies in the share too, and its command
 * runs once the modules are loaded, in a mount namespace that ends with it. What it leaves is saved: its network devices, and the
 * files below GUEST_BOOT_KEPT. On the virtio-serial port "control" then go, a line each:
 *   guest: prepared STATUS        nothing of the host is mounted any more; the machine is saved while the guest waits for
 *   host:  run NAME SEC NSEC HEX  the boot file to go on with, the wall clock, and 64 bytes for the random generator
 *   guest: running
 * after which it is a guest that has just booted: clock, random numbers and boot id are its own. Any time later, when it seems to
 * hang: host:  look                   the kernel is to say on the console what its tasks and processors do guest: looked
 */
#ifndef QD_GUEST_BOOT_H
#define QD_GUEST_BOOT_H

#define GUEST_BOOT_SHARE "/run/qd/share"
/* A folder in memory: what a command leaves here before the guest is saved is there after. */
#define GUEST_BOOT_KEPT "/run/qd/kept"
#define GUEST_BOOT_LANES GUEST_BOOT_KEPT "/lanes.json"
#define GUEST_BOOT_SEED_BYTES 64
/* What a guest that is only asked whether it boots (qd.probe) prints. */
#define GUEST_BOOT_PROBE_MARK "qpdrill-probe-reached"

#endif
