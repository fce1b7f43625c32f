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
 */
#ifndef QD_GUEST_BOOT_H
#define QD_GUEST_BOOT_H

#define GUEST_BOOT_SHARE "/run/qd/share"
/* What a guest that is only asked whether it boots (qd.probe) prints. */
#define GUEST_BOOT_PROBE_MARK "qpdrill-probe-reached"

#endif
