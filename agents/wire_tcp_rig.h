/* SPDX-License-Identifier: MIT */
/* For a test of the wire: the two ends of a TCP transfer, each in a process and a network namespace of its own. */
#ifndef QD_WIRE_TCP_RIG_H
#define QD_WIRE_TCP_RIG_H

#include <arpa/inet.h>

#include "wire_native_rig.h"

#define TCP_BYTES (1u << 20)

static inline int tcp_socket(bool server)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(5000), .sin_addr.s_addr = inet_addr("10.9.0.2") };
	struct timeval limit = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	if (!server)
		return connect(fd, (struct sockaddr *)&addr, sizeof addr) ? -1 : fd;
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) || listen(fd, 1))
		return -1;
	return accept(fd, NULL, NULL);
}

/* One end of a transfer in a namespace of its own; go is readable when the device is there. Exits. */
static inline void tcp_end(bool server, int go, int ready)
{
	const char *dev = server ? "vb" : "va";
	char command[256], byte = 0;
	uint32_t sum = 0;
	static uint8_t chunk[65536];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || write(ready, &byte, 1) != 1 || read(go, &byte, 1) != 1)
		_exit(2);
	snprintf(command, sizeof command, "ip addr add 10.9.0.%d/24 dev %s && ip link set lo up && ip link set %s up",
		 server ? 2 : 1, dev, dev);
	if (run(command) || offload_off(dev) || (server && write(ready, &byte, 1) != 1))
		_exit(3);
	int fd = tcp_socket(server);

	if (fd < 0)
		_exit(4);
	for (size_t done = 0; done < TCP_BYTES;) {
		ssize_t n;

		for (size_t i = 0; i < sizeof chunk && !server; i++)
			chunk[i] = (uint8_t)((done + i) * 2654435761u >> 24);
		n = server ? read(fd, chunk, sizeof chunk)
			   : write(fd, chunk, TCP_BYTES - done < sizeof chunk ? TCP_BYTES - done : sizeof chunk);
		if (n <= 0)
			_exit(5);
		for (ssize_t i = 0; i < n && server; i++)
			sum += chunk[i] != (uint8_t)((done + (size_t)i) * 2654435761u >> 24);
		done += (size_t)n;
	}
	if (server ? write(fd, &sum, sizeof sum) != sizeof sum : read(fd, &sum, sizeof sum) != sizeof sum)
		_exit(6);
	_exit(sum ? 7 : 0);
}

#endif
