/* SPDX-License-Identifier: MIT */
#include "wire_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire_device.h"

/* TPACKET_V2 and not V3: V3 hands over whole blocks, which comes late by half a jiffy or more when the link is idle. */
#define DEFAULT_FRAMES 2048
#define MIN_FRAME_BYTES 4500
#define BLOCK_BYTES (256u << 10)
#define TAG_BYTES 4
#define SEND_BUFFER_BYTES (8 << 20)
#define SEND_WAIT_MS 20

struct packet_link {
	struct wire_link link;
	int fd, ifindex;
	char netdev[IF_NAMESIZE];
	uint8_t *ring;
	size_t ring_bytes;
	unsigned frame_bytes, frames_per_block, frames, head, lent;
	struct wire_device device;
	struct wire_device_counters base;
};

static struct tpacket2_hdr *slot(const struct packet_link *p, unsigned i)
{
	return (struct tpacket2_hdr *)(void *)(p->ring + (size_t)(i / p->frames_per_block) * BLOCK_BYTES +
					       (size_t)(i % p->frames_per_block) * p->frame_bytes);
}

static int packet_fd(const struct wire_link *l)
{
	return ((const struct packet_link *)l)->fd;
}

/* The kernel takes the tag out of the frame; PACKET_RESERVE left room to put it back. */
static uint8_t *restore_tag(const struct tpacket2_hdr *h, uint8_t *data)
{
	uint16_t tpid = h->tp_status & TP_STATUS_VLAN_TPID_VALID ? h->tp_vlan_tpid : ETH_P_8021Q;

	memmove(data - TAG_BYTES, data, 2 * ETH_ALEN);
	data -= TAG_BYTES;
	tpid = htons(tpid);
	memcpy(data + 2 * ETH_ALEN, &tpid, 2);
	uint16_t tci = htons(h->tp_vlan_tci);

	memcpy(data + 2 * ETH_ALEN + 2, &tci, 2);
	return data;
}

static unsigned packet_receive(struct wire_link *l, struct wire_buf *bufs, unsigned max)
{
	struct packet_link *p = (struct packet_link *)l;
	unsigned n = 0;

	while (n < max && p->lent < p->frames) {
		struct tpacket2_hdr *h = slot(p, (p->head + p->lent) % p->frames);

		if (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		p->lent++;
		l->n.in++;
		if (h->tp_snaplen < h->tp_len) {
			l->n.truncated++;
			continue;
		}
		struct wire_buf *b = &bufs[n++];

		b->data = (uint8_t *)h + h->tp_mac;
		b->len = h->tp_len;
		b->real_ns = (uint64_t)h->tp_sec * 1000000000u + h->tp_nsec;
		l->n.unsummed += !!(h->tp_status & TP_STATUS_CSUMNOTREADY);
		if (h->tp_status & TP_STATUS_VLAN_VALID && b->len >= 2 * ETH_ALEN) {
			b->data = restore_tag(h, b->data);
			b->len += TAG_BYTES;
		}
	}
	return n;
}

static void packet_done(struct wire_link *l)
{
	struct packet_link *p = (struct packet_link *)l;

	for (; p->lent; p->lent--, p->head = (p->head + 1) % p->frames)
		__atomic_store_n(&slot(p, p->head)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
}

static bool wait_for_room(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	return poll(&pfd, 1, SEND_WAIT_MS) > 0 && pfd.revents & POLLOUT;
}

static unsigned packet_send(struct wire_link *l, const struct iovec *frames, unsigned n)
{
	struct packet_link *p = (struct packet_link *)l;
	struct mmsghdr msgs[WIRE_BURST];
	unsigned at = 0, sent = 0;
	bool waited = false;

	/* when the link is idle frames come one by one, and this is the shorter way */
	if (n == 1 && send(p->fd, frames->iov_base, frames->iov_len, MSG_DONTWAIT) >= 0)
		at = sent = 1;
	while (at < n) {
		unsigned batch = n - at < WIRE_BURST ? n - at : WIRE_BURST;

		memset(msgs, 0, batch * sizeof *msgs);
		for (unsigned i = 0; i < batch; i++) {
			msgs[i].msg_hdr.msg_iov = (struct iovec *)&frames[at + i];
			msgs[i].msg_hdr.msg_iovlen = 1;
		}
		int rc = sendmmsg(p->fd, msgs, batch, MSG_DONTWAIT);

		if (rc > 0) {
			at += (unsigned)rc;
			sent += (unsigned)rc;
			waited = false;
			continue;
		}
		if (errno == EINTR)
			continue;
		if ((errno == EAGAIN || errno == ENOBUFS) && !waited) {
			l->n.send_errno = errno;
			waited = wait_for_room(p->fd);
			if (waited)
				continue;
		}
		l->n.send_errno = errno;
		l->n.send_failed++;
		at++;
	}
	l->n.out += sent;
	return sent;
}

static uint64_t since(uint64_t now, uint64_t base)
{
	return now > base ? now - base : 0;
}

static void packet_counters(struct wire_link *l, struct wire_link_counters *ret)
{
	struct packet_link *p = (struct packet_link *)l;
	struct tpacket_stats stats;
	socklen_t len = sizeof stats;

	/* reading sets it back to zero */
	if (getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0) {
		l->n.dropped += stats.tp_drops;
		l->n.in += stats.tp_drops;
	}
	struct wire_device_counters c;

	wire_device_read(&p->device, &c);
	l->n.exact = p->device.exact;
	l->n.device_in = since(c.in, p->base.in);
	l->n.device_out = since(c.out, p->base.out);
	l->n.device_dropped = since(c.out_dropped, p->base.out_dropped);
	l->n.peer_dropped = since(c.peer_dropped, p->base.peer_dropped);
	*ret = l->n;
}

static int packet_error(struct wire_link *l)
{
	struct packet_link *p = (struct packet_link *)l;
	int err = 0;
	socklen_t len = sizeof err;

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	return -err;
}

static void packet_close(struct wire_link *l)
{
	struct packet_link *p = (struct packet_link *)l;

	if (p->ring)
		munmap(p->ring, p->ring_bytes);
	if (p->fd >= 0)
		close(p->fd);
	wire_device_release(&p->device);
	free(p);
}

static int set_option(const struct packet_link *p, int option, int value, const char *what, struct error *e)
{
	if (setsockopt(p->fd, SOL_PACKET, option, &value, sizeof value) == 0)
		return 0;
	return error_set(e, -errno, "%s: %s: %s", p->netdev, what, strerror(errno));
}

static int map_ring(struct packet_link *p, unsigned frames, unsigned frame_bytes, struct error *e)
{
	struct tpacket_req req;

	p->frame_bytes = (TPACKET2_HDRLEN + 64 + frame_bytes + 63) / 64 * 64;
	p->frames_per_block = BLOCK_BYTES / p->frame_bytes;
	if (!p->frames_per_block)
		return error_set(e, -EINVAL, "%s: frames of %u bytes are too long for the ring", p->netdev, frame_bytes);
	req.tp_block_size = BLOCK_BYTES;
	req.tp_frame_size = p->frame_bytes;
	req.tp_block_nr = (frames + p->frames_per_block - 1) / p->frames_per_block;
	req.tp_frame_nr = req.tp_block_nr * p->frames_per_block;
	if (setsockopt(p->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof req))
		return error_set(e, -errno, "%s: a receive ring of %u frames: %s", p->netdev, req.tp_frame_nr, strerror(errno));
	p->frames = req.tp_frame_nr;
	p->ring_bytes = (size_t)req.tp_block_nr * BLOCK_BYTES;
	void *at = mmap(NULL, p->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);

	if (at == MAP_FAILED)
		return error_set(e, -errno, "%s: mapping the receive ring: %s", p->netdev, strerror(errno));
	p->ring = at;
	return 0;
}

static int attach(struct packet_link *p, struct error *e)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = p->ifindex };
	struct packet_mreq mreq = { .mr_ifindex = p->ifindex, .mr_type = PACKET_MR_PROMISC };
	int bytes = SEND_BUFFER_BYTES, on = 1;

	/* The kernel stamps frames when a device hands them over then, not when their turn comes, which on a busy machine may be
	 * tens of milliseconds later (net/core/dev.c, netdev_tstamp_prequeue). Without it they are stamped late, and that is all.
	 */
	setsockopt(p->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
	if (setsockopt(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
		setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	if (bind(p->fd, (struct sockaddr *)&addr, sizeof addr))
		return error_set(e, -errno, "%s: bind: %s", p->netdev, strerror(errno));
	if (setsockopt(p->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &mreq, sizeof mreq))
		return error_set(e, -errno, "%s: promiscuous: %s", p->netdev, strerror(errno));
	return 0;
}

static int device_mtu(const struct packet_link *p)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, p->netdev, sizeof ifr.ifr_name);
	return ioctl(p->fd, SIOCGIFMTU, &ifr) ? -errno : ifr.ifr_mtu;
}

static bool is_on(const struct packet_link *p, uint32_t command, uint32_t bits)
{
	struct ethtool_value v = { .cmd = command };
	struct ifreq ifr = { .ifr_data = (void *)&v };

	memcpy(ifr.ifr_name, p->netdev, sizeof ifr.ifr_name);
	return ioctl(p->fd, SIOCETHTOOL, &ifr) == 0 && v.data & bits;
}

/* What would not carry every frame as it came, and why not. */
static int fit_for_a_wire(struct packet_link *p, struct error *e)
{
	struct ifreq ifr = { 0 };

	memcpy(ifr.ifr_name, p->netdev, sizeof ifr.ifr_name);
	if (ioctl(p->fd, SIOCGIFFLAGS, &ifr) == 0 && !(ifr.ifr_flags & IFF_UP))
		return error_set(e, -ENETDOWN, "%s is down: `ip link set %s up`", p->netdev, p->netdev);
	if (is_on(p, ETHTOOL_GGRO, 1) || is_on(p, ETHTOOL_GFLAGS, ETH_FLAG_LRO))
		return error_set(e, -EINVAL, "%s puts frames together that came apart (GRO, LRO): `ethtool -K %s gro off lro off`",
				 p->netdev, p->netdev);
	return 0;
}

static int packet_again(struct wire_link *l)
{
	struct packet_link *p = (struct packet_link *)l;
	struct wire_link_counters dropped;
	struct wire_buf bufs[WIRE_BURST];
	struct error e;

	if ((int)if_nametoindex(p->netdev) != p->ifindex || device_mtu(p) != (int)l->mtu)
		return -ESTALE;
	if (fit_for_a_wire(p, &e) || packet_error(l))
		return -EIO;
	for (unsigned n = p->frames; n && packet_receive(l, bufs, WIRE_BURST); n--)
		packet_done(l);
	packet_counters(l, &dropped);
	l->n = (struct wire_link_counters){ 0 };
	wire_device_read(&p->device, &p->base);
	return 0;
}

static const struct wire_link_ops packet_ops = {
	.name = "tpacket_v2",
	.fd = packet_fd,
	.receive = packet_receive,
	.done = packet_done,
	.send = packet_send,
	.counters = packet_counters,
	.error = packet_error,
	.again = packet_again,
	.close = packet_close,
};

int wire_link_packet_open(const char *netdev, unsigned frames, unsigned frame_bytes, struct wire_link **ret, struct error *e)
{
	unsigned ifindex = if_nametoindex(netdev);
	int rc;

	if (!ifindex || strlen(netdev) >= IF_NAMESIZE)
		return error_set(e, -ENODEV, "there is no network device `%s` here", netdev);
	struct packet_link *p = calloc(1, sizeof *p);

	if (!p)
		return error_set(e, -ENOMEM, "no memory");
	p->link.ops = &packet_ops;
	p->ifindex = (int)ifindex;
	memset(p->device.figure, 0xff, sizeof p->device.figure);
	memcpy(p->netdev, netdev, strlen(netdev) + 1);
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0) {
		rc = error_set(e, -errno, "%s: a packet socket: %s (CAP_NET_RAW is needed)", netdev, strerror(errno));
		goto close_link;
	}
	rc = fit_for_a_wire(p, e);
	if (rc)
		goto close_link;
	int mtu = device_mtu(p);

	p->link.mtu = mtu > 0 ? (unsigned)mtu : 0;

	if (!frame_bytes)
		frame_bytes = (unsigned)(mtu > MIN_FRAME_BYTES ? mtu : MIN_FRAME_BYTES) + ETH_HLEN + 2 * TAG_BYTES;
	wire_device_init(&p->device, netdev, p->fd);
	rc = set_option(p, PACKET_VERSION, TPACKET_V2, "TPACKET_V2", e);
	if (!rc)
		rc = set_option(p, PACKET_RESERVE, TAG_BYTES, "room for a tag", e);
	if (!rc)
		rc = set_option(p, PACKET_IGNORE_OUTGOING, 1, "leaving out what is sent here", e);
	if (!rc)
		rc = map_ring(p, frames ? frames : DEFAULT_FRAMES, frame_bytes, e);
	if (!rc)
		rc = attach(p, e);
	if (rc)
		goto close_link;
	wire_device_read(&p->device, &p->base);
	*ret = &p->link;
	return 0;
close_link:
	packet_close(&p->link);
	return rc;
}
