/* SPDX-License-Identifier: MIT */
/* What the parts of an expectation share. An expectation is a map; each key that says something is one part. */
#ifndef QD_EXPECT_INTERNAL_H
#define QD_EXPECT_INTERNAL_H

#include "observe_model.h"

/* Text that truncates. */
struct text {
	char b[512];
	size_t len;
};
__attribute__((format(printf, 2, 3))) void text_add(struct text *t, const char *fmt, ...);

struct eval {
	struct model *m;
	size_t inst; /* the run of the step, M_NONE when it never began */
	int step;
	uint64_t now, begin_t, for_ns, deadline_ns;
	size_t begin_rec;    /* M_NONE: anything is fresh */
	bool take;           /* mark what was named */
	uint64_t held_since; /* when the newest thing that holds came about */
	json_t *deviations;  /* ids of entries that excuse something here */
	json_t *likely;      /* ids of entries that would, had this kernel been seen */
};

struct part {
	enum expect_state state;
	const json_t *absent[8]; /* entries: pending for something that the profile says never comes */
	size_t n_absent;
	bool late; /* pending for something that may still come, too */
	struct text expected, seen;
	const char *at;
};

/* One row per key of an expectation. */
struct part_ops {
	const char *key;
	void (*eval)(struct eval *v, const json_t *x, struct part *p);
};
extern const struct part_ops expect_parts[];
extern const size_t expect_parts_n;

void expect_wc(struct eval *v, const json_t *x, struct part *p); /* expect_wc.c */
void expect_recv_wc(struct eval *v, const json_t *x, struct part *p);
void expect_qp(struct eval *v, const json_t *x, struct part *p); /* expect_state.c */
void expect_attr(struct eval *v, const json_t *x, struct part *p);
void expect_event(struct eval *v, const json_t *x, struct part *p);
void expect_cm(struct eval *v, const json_t *x, struct part *p);
void expect_counter(struct eval *v, const json_t *x, struct part *p); /* expect_number.c */
void expect_ledger(struct eval *v, const json_t *x, struct part *p);
void expect_hits(struct eval *v, const json_t *x, struct part *p);
void expect_traffic(struct eval *v, const json_t *x, struct part *p);
void expect_phase(struct eval *v, const json_t *x, struct part *p);
void expect_grh(struct eval *v, const json_t *x, struct part *p);     /* expect_datagram.c */
void expect_payload(struct eval *v, const json_t *x, struct part *p); /* expect_payload.c */

/* How many packets of a record, of whichever life, fit a match without nth and every, and the PSN of the first of them. */
int64_t expect_packet_fits(const struct model *m, const struct m_packet *p, const json_t *match, int64_t *ret_first);
void expect_packets(struct eval *v, const json_t *x, struct part *p); /* expect_packets.c */

/* The worse of two: BROKEN, PENDING, MET. */
enum expect_state expect_worse(enum expect_state a, enum expect_state b);
void expect_held(struct eval *v, uint64_t t);
bool expect_fresh(const struct eval *v, size_t rec);
void expect_deviates(struct eval *v, const json_t *entry, bool seen);
/* A profile entry excuses this value of the device by a run on this kernel; noted, and used up where the expectation takes. */
bool expect_excused(struct eval *v, const struct m_match *what, const char *device);

/* The ends that an expectation speaks of: `at`, else those of the posts it names. */
struct ends {
	VEC(struct m_end) e;
};
int expect_ends(const struct eval *v, const json_t *x, struct ends *ret);
/* The newest run of the step that posted under this name, M_NONE. */
size_t expect_post_inst(const struct model *m, const char *as);

/* A comparison against a number. before: what `x before` multiplies, NULL when there is none.
 * 1 holds, 0 does not, -ENOENT not known yet. */
int cmp_holds(const struct model *m, const json_t *cmp, int64_t value, const int64_t *before);
/* An upper bound is exceeded: a number that only grows cannot hold any more. */
bool cmp_exceeded(const struct model *m, const json_t *cmp, int64_t value);
void cmp_text(const struct model *m, const json_t *cmp, struct text *t);

/* none, all, or a list: names as they are written. */
void names_text(const json_t *value, struct text *t);

/* One element of a pattern of completions. */
struct wc_elem {
	const json_t *any;
	uint32_t min, max; /* UINT32_MAX: no bound */
	bool rest;
};

/* What `wc` or `recv_wc` says. */
struct wc_pattern {
	VEC(struct wc_elem) e;
	bool all, none, open; /* open: some element has a range */
	bool unknown;         /* a ref that no device has answered yet */
	const json_t *says;   /* what each of them has to say beside its status; NULL: nothing */
};

/* The completions that it is held against: of one post, or of one queue. */
struct wc_group {
	size_t qp;
	bool recv;
	const char *at;
	VEC(size_t) comps;
	uint32_t units;
	uint32_t accepted, awaited, discarded, retired;
	uint32_t left; /* have no end yet, awaited or not */
	size_t used;   /* set by wc_group_eval: so many of comps the pattern has taken */
	uint64_t last_t;
	const struct m_post *post; /* the first of a named post that was accepted; NULL for an end */
};

/* expect_match.c: ret->e.v is the caller's to free. */
int wc_pattern_read(const struct eval *v, const json_t *value, struct wc_pattern *ret);
void wc_pattern_text(const struct wc_pattern *pt, struct text *t);
void wc_group_text(const struct eval *v, const struct wc_group *g, struct text *t);
/* How a group stands against a pattern; of: it is all of a post. Notes deviations, and takes when asked to. */
enum expect_state wc_group_eval(struct eval *v, struct wc_group *g, const struct wc_pattern *pt, bool of);

#endif
