/* SPDX-License-Identifier: MIT */
/* The symptoms that the table of causes asks for: each is there or not, and says what shows it. */
#ifndef QD_VERDICT_SYMPTOM_H
#define QD_VERDICT_SYMPTOM_H

#include "verdict_hint.h"

bool symptom_peer_is_gone(const struct scene *s, char *why, size_t size);
bool symptom_port_is_down(const struct scene *s, char *why, size_t size);
bool symptom_gid_has_moved(const struct scene *s, char *why, size_t size);
bool symptom_own_address_is_gone(const struct scene *s, char *why, size_t size);
bool symptom_is_another_qpn(const struct scene *s, char *why, size_t size);
bool symptom_psn_is_ahead(const struct scene *s, char *why, size_t size);
bool symptom_psn_is_behind(const struct scene *s, char *why, size_t size);
bool symptom_peer_is_destroyed(const struct scene *s, char *why, size_t size);
bool symptom_peer_is_not_ready(const struct scene *s, char *why, size_t size);
bool symptom_path_mtus_differ(const struct scene *s, char *why, size_t size);
bool symptom_longer_is_lost(const struct scene *s, char *why, size_t size);
bool symptom_answers_are_lost(const struct scene *s, char *why, size_t size);
bool symptom_no_retries(const struct scene *s, char *why, size_t size);
bool symptom_wrong_pkey(const struct scene *s, char *why, size_t size);
bool symptom_rnr_at_once(const struct scene *s, char *why, size_t size);
bool symptom_requests_are_lost(const struct scene *s, char *why, size_t size);
bool symptom_nobody_answers(const struct scene *s, char *why, size_t size);
bool symptom_receive_is_missing(const struct scene *s, char *why, size_t size);
bool symptom_rnr_for_ever(const struct scene *s, char *why, size_t size);
bool symptom_timer_is_off(const struct scene *s, char *why, size_t size);
bool symptom_retries_without_end(const struct scene *s, char *why, size_t size);
bool symptom_was_moved_to_error(const struct scene *s, char *why, size_t size);
bool symptom_cq_has_overflowed(const struct scene *s, char *why, size_t size);
bool symptom_sender_waits_for_receives(const struct scene *s, char *why, size_t size);
bool symptom_is_plain_operation(const struct scene *s, char *why, size_t size);

/* verdict_symptom_memory.c */
bool symptom_region_is_gone(const struct scene *s, char *why, size_t size);
bool symptom_region_lacks_right(const struct scene *s, char *why, size_t size);
bool symptom_beyond_region(const struct scene *s, char *why, size_t size);
bool symptom_key_is_wrong(const struct scene *s, char *why, size_t size);
bool symptom_qp_lacks_right(const struct scene *s, char *why, size_t size);
bool symptom_receive_is_short(const struct scene *s, char *why, size_t size);
bool symptom_receive_is_refused(const struct scene *s, char *why, size_t size);
bool symptom_fewer_reads_served(const struct scene *s, char *why, size_t size);

/* verdict_symptom_datagram.c */
bool symptom_wrong_qkey(const struct scene *s, char *why, size_t size);
bool symptom_handle_is_gone(const struct scene *s, char *why, size_t size);
bool symptom_handle_leads_astray(const struct scene *s, char *why, size_t size);
bool symptom_datagram_too_long(const struct scene *s, char *why, size_t size);
bool symptom_dropped_without_receive(const struct scene *s, char *why, size_t size);
bool symptom_nobody_would_tell(const struct scene *s, char *why, size_t size);

#endif
