/* SPDX-License-Identifier: MIT */
/*
 * The table of symptoms and causes. Sources: what each fault must show at both ends (IBTA 9.7, 9.9, 10.10, 11.6.2), and reports of
 * people who ran queue pairs: which of their mistakes gave which status, and which counter told it.
 */
#include "verdict_hint.h"

#include "verdict_symptom.h"

const struct hint verdict_hints[] = {
	{ "RNR_RETRY_EXC_ERR", "the peer had no receive posted when the message came", symptom_receive_is_missing },
	{ "RNR_RETRY_EXC_ERR", "rnr_retry 0: the first message that finds no receive ends the connection", symptom_rnr_at_once },
	{ "RNR_RETRY_EXC_ERR", "receives came later than rnr_retry x min_rnr_timer, or fewer of them than messages", NULL },

	{ "RETRY_EXC_ERR", "the peer's process has died", symptom_peer_is_gone },
	{ "RETRY_EXC_ERR", "a link or a port on the way is down", symptom_port_is_down },
	{ "RETRY_EXC_ERR", "a completion queue has overflowed: a queue pair that uses it answers no more",
	  symptom_cq_has_overflowed },
	{ "RETRY_EXC_ERR", "connected to another QPN than the peer has: a stale or foreign handshake", symptom_is_another_qpn },
	{ "RETRY_EXC_ERR", "the peer is not behind the GID that this end sends to: wrong GID index, or its address has moved",
	  symptom_gid_has_moved },
	{ "RETRY_EXC_ERR", "the first PSN is ahead of the one that the peer expects: one NAK, then silence", symptom_psn_is_ahead },
	{ "RETRY_EXC_ERR", "the first PSN is behind the one that the peer expects: it takes each packet for a duplicate",
	  symptom_psn_is_behind },
	{ "RETRY_EXC_ERR", "the peer's queue pair is gone", symptom_peer_is_destroyed },
	{ "RETRY_EXC_ERR", "the peer's queue pair does not answer in its state", symptom_peer_is_not_ready },
	{ "RETRY_EXC_ERR", "the peer had no receive posted when the message came", symptom_receive_is_missing },
	{ "RETRY_EXC_ERR", "packets of this length do not get through", symptom_longer_is_lost },
	{ "RETRY_EXC_ERR", "the P_Key is not one of the peer's: it drops what comes", symptom_wrong_pkey },
	{ "RETRY_EXC_ERR", "retry_cnt 0: the first packet that is lost ends the connection", symptom_no_retries },
	{ "RETRY_EXC_ERR", "answers (acknowledgements, data of READs) are lost on the way back: the request has arrived",
	  symptom_answers_are_lost },
	{ "RETRY_EXC_ERR", "requests are lost on the way", symptom_requests_are_lost },
	{ "RETRY_EXC_ERR",
	  "nothing that was sent has reached the peer, or nothing comes back: address, neighbour (ARP), VLAN, firewall (UDP 4791), "
	  "P_Key",
	  symptom_nobody_answers },
	{ "RETRY_EXC_ERR", "the retry budget (timeout, retry_cnt) is shorter than the path's loss or congestion lasts", NULL },

	{ "REM_ACCESS_ERR", "the memory was deregistered while the peer held its key", symptom_region_is_gone },
	{ "REM_ACCESS_ERR", "the memory was registered without the right that the operation needs", symptom_region_lacks_right },
	{ "REM_ACCESS_ERR", "the operation reaches beyond the end of the memory", symptom_beyond_region },
	{ "REM_ACCESS_ERR", "the rkey is not that of the memory: wrong, of a former registration, or of another device or PD",
	  symptom_key_is_wrong },
	{ "REM_ACCESS_ERR", "a key, a range or a right that the responder's memory does not have", NULL },

	{ "REM_INV_REQ_ERR", "the receive is shorter than the message", symptom_receive_is_short },
	{ "REM_INV_REQ_ERR", "the ends disagree on path_mtu", symptom_path_mtus_differ },
	{ "REM_INV_REQ_ERR", "the peer's queue pair was made without the right that the operation needs (qp_access_flags)",
	  symptom_qp_lacks_right },
	{ "REM_INV_REQ_ERR", "more READs and atomics outstanding than the peer serves", symptom_fewer_reads_served },
	{ "REM_INV_REQ_ERR", "an operation that the peer's QP does not take: a right, a length, or an atomic off its 8 bytes",
	  NULL },

	{ "REM_OP_ERR", "the receive is shorter than the message", symptom_receive_is_short },
	{ "REM_OP_ERR", "the peer's receive has a key, a range or a right that its memory does not have",
	  symptom_receive_is_refused },
	{ "REM_OP_ERR", "the peer could not carry it out: look at its own completion", NULL },

	{ "LOC_PROT_ERR", "the lkey is not that of the buffer, or the buffer reaches beyond its region, or is of another PD",
	  NULL },
	{ "LOC_LEN_ERR", "the message is longer than the receive, or than the port can send", NULL },
	{ "LOC_QP_OP_ERR", "the address handle was destroyed under the message", symptom_handle_is_gone },
	{ "LOC_QP_OP_ERR", "a link or a port on the way is down", symptom_port_is_down },
	{ "LOC_QP_OP_ERR", "the address behind this end's GID is gone", symptom_own_address_is_gone },
	{ "LOC_QP_OP_ERR", "the lkey is not that of the buffer, or the buffer reaches beyond its region",
	  symptom_is_plain_operation },
	{ "LOC_QP_OP_ERR", "the queue pair cannot do this operation, or its own receive is not usable", NULL },
	{ "LOC_ACCESS_ERR", "the peer's request with immediate data hit memory that does not allow it", NULL },
	{ "MW_BIND_ERR", "the region under the window lacks MW_BIND, or the range or the rights are more than it has", NULL },
	{ "BAD_RESP_ERR", "the answer does not fit the request: a broken responder, or packets changed on the way", NULL },

	{ "WR_FLUSH_ERR", "the completion queue has overflowed", symptom_cq_has_overflowed },
	{ "WR_FLUSH_ERR", "the queue pair was in ERR: a flush is what follows, not the cause", symptom_was_moved_to_error },

	/* It said SUCCESS, and something was not as it should be. */
	{ "SUCCESS", "the first PSN is behind the one that the peer expects: it acknowledges what it takes for a duplicate",
	  symptom_psn_is_behind },
	{ "SUCCESS", "sent to another QPN than the peer has", symptom_is_another_qpn },
	{ "SUCCESS", "a datagram is one packet, and this one is longer", symptom_datagram_too_long },
	{ "SUCCESS", "the address handle does not lead to the peer", symptom_handle_leads_astray },
	{ "SUCCESS", "the Q_Key is not the peer's: it drops the message without a word", symptom_wrong_qkey },
	{ "SUCCESS", "the P_Key is not one of the peer's: it drops what comes", symptom_wrong_pkey },
	{ "SUCCESS", "the peer had no receive posted: what finds none is lost without a word", symptom_dropped_without_receive },
	{ "SUCCESS", "requests are lost on the way", symptom_requests_are_lost },
	{ "SUCCESS", "lost on the way, or dropped at the peer: over an unreliable transport nobody tells",
	  symptom_nobody_would_tell },

	/* Nothing came. */
	{ "", "the address handle was destroyed under the message", symptom_handle_is_gone },
	{ "", "no receive is posted at the peer, and rnr_retry 7 never gives up", symptom_rnr_for_ever },
	{ "", "a packet was lost, and the timer that would send it again is off", symptom_timer_is_off },
	{ "", "the device goes on trying for ever", symptom_retries_without_end },
	{ "", "the completion queue has overflowed", symptom_cq_has_overflowed },
	{ "", "the peer's process has died", symptom_peer_is_gone },
	{ "", "a link or a port on the way is down", symptom_port_is_down },
	{ "", "the sender waits for receives", symptom_sender_waits_for_receives },
	{ "", "the peer's queue pair does not answer in its state", symptom_peer_is_not_ready },
	{ "", "packets of this length do not get through", symptom_longer_is_lost },
	{ "", "requests are lost on the way", symptom_requests_are_lost },
	{ .cause = NULL },
};
