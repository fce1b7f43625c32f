/* SPDX-License-Identifier: MIT */
/*
 * What the loader's parts share. One struct loader per file: the tree, the mistakes found so far, and for the case at hand
 * (a row of the sweep) the names that the file has defined. Mistakes do not stop it: a value that cannot be read is left out.
 */
#ifndef QD_SCENARIO_LOADER_H
#define QD_SCENARIO_LOADER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "diag.h"
#include "scenario_grammar.h"
#include "scenario_yaml.h"

#define SWEEP_MAX_KEYS 32
#define MISTAKES_MAX 100

struct mistake {
	size_t pos, span;
	bool warning;
	char *text, *hint;
};

struct sweep_var {
	struct ynode *key;   /* where it is named */
	struct ynode *value; /* in the row at hand */
	char *shown;         /* in ids, where it is not the value itself; owned */
	bool used;
};

/* How a file whose sweep goes over packets is read. */
enum sweep_mode {
	SWEEP_PLAIN,      /* it goes over nothing of the kind */
	SWEEP_CHECKED,    /* with a packet that stands for all: only mistakes are wanted */
	SWEEP_FIRST_PASS, /* without the steps that are about the packet, up to the end of the transfer */
	SWEEP_PACKET,     /* with one that was found */
};

struct loader {
	const char *path, *source;
	size_t len;
	struct ytree tree;
	struct mistake *mistakes;
	size_t n_mistakes, n_errors;
	struct sweep_var vars[SWEEP_MAX_KEYS];
	size_t n_vars;
	struct ynode *sweep; /* as the cases see it: that of the file, or the rows that it stands for */
	/* The case at hand. */
	json_t *doc;     /* top level, as far as it is read */
	json_t *agents;  /* name: {"device"} */
	json_t *pairs;   /* name: {"ends":[..],"count":n,"qp":{}} */
	json_t *objects; /* name: {"kind":"mr","at":"a"} */
	json_t *labels;  /* name: {"kind":G_OF_*,"line":n,"do":"post","at":[..]} */
	unsigned n_steps, nesting;
	bool cm;            /* an earlier step connects by rdma_cm */
	bool cm_keeps;      /* an agent has met rdma_cm, which keeps devices open */
	bool attrs_changed; /* a step has changed retry attributes: what the file says of them holds no more */
	/* A sweep over packets. */
	enum sweep_mode mode;
	const json_t *packets; /* found by a first pass of row `only_row`; NULL: the file is loaded, not what follows from it */
	size_t only_row;
	const json_t *packet; /* the one at hand */
	bool touched;         /* what is being read speaks of the packet, or of what a step gave that does */
	bool matched;         /* a fault's match is the packet */
	bool posted, over;    /* the transfer has begun, has ended */
};

/* scenario_mistake.c. hint may be NULL. The same words at the same place are kept once: cases repeat them. */
__attribute__((format(printf, 4, 5))) void complain(struct loader *l, const struct ynode *n, const char *hint, const char *fmt,
						    ...);
/* Under a part of a scalar: off and len in bytes of its text. */
__attribute__((format(printf, 6, 7))) void complain_part(struct loader *l, const struct ynode *n, size_t off, size_t len,
							 const char *hint, const char *fmt, ...);
__attribute__((format(printf, 6, 7))) void warn_part(struct loader *l, const struct ynode *n, size_t off, size_t len,
						     const char *hint, const char *fmt, ...);
void mistakes_render(struct loader *l, struct diag *d);
void mistakes_release(struct loader *l);

/* Words that were allowed, for a hint. */
struct word_list {
	const char *word[160];
	size_t n;
};
void words_add(struct word_list *w, const char *word);
void words_add_all(struct word_list *w, const char *const *words);
void words_add_table(struct word_list *w, const struct name_table *table);
void words_add_object(struct word_list *w, const json_t *object);
/* "did you mean `x`? allowed: a, b, c". Returns buf, or NULL when there is no word. */
const char *words_hint(const struct word_list *w, const char *text, char *buf, size_t size);
#define HINT_SIZE 1024

/* scenario_fault.c: of a packet match that is to act: it may name no former life. */
void match_is_present(struct loader *l, const struct ynode *map, void *out);

/* scenario_sweep.c */
/* How many cases there are (1 without a sweep); 0 when the sweep is wrong. */
size_t sweep_count(struct loader *l, struct ynode *sweep);
/* The member of a sweep that goes over packets, or NULL. */
struct ynode *sweep_packets(const struct ynode *sweep);
/* Sets l->vars to row i. */
void sweep_select(struct loader *l, struct ynode *sweep, size_t i);
/* ret_sweep: {"to":"RESET"}; ret_suffix: "~to=RESET", fit for a file name. */
int sweep_name(struct loader *l, json_t **ret_sweep, char **ret_suffix);
/* The node that is meant: `${x}` replaced. NULL after a complaint. */
struct ynode *sweep_resolve(struct loader *l, struct ynode *n);

/* scenario_value.c: a new reference, or NULL after a complaint. n is resolved by value_parse. */
json_t *value_parse(struct loader *l, struct ynode *n, const struct gkey *k);
bool node_is_null(const struct ynode *n);
/* What was found, for messages: "a map", "a list", "`20`", "nothing". */
const char *node_shown(const struct ynode *n, char *buf, size_t size);

/* scenario_number.c, scenario_pattern.c, scenario_end.c, scenario_attr.c, scenario_text.c: one reader per type. */
json_t *parse_number(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_duration(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_range(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_compare(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_measure(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_counters(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_wc(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_events(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_errnos(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_end(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_ends(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_pairs(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_agent(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_device(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_label(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_labels(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_object(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_objects(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_place(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_attrs(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_text(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_title(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_refs(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_requires(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_name(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_word(struct loader *l, struct ynode *n, const struct gkey *k);
/* A scalar or a list of them, each read by one(); always an array. */
json_t *parse_list(struct loader *l, struct ynode *n, const struct gkey *k, const char *what,
		   json_t *(*one)(struct loader *, struct ynode *, const struct gkey *));
/* The scalar's text, or NULL after a complaint that `what` is wanted. */
const char *scalar_text(struct loader *l, struct ynode *n, const char *what);
/* A name as it may be given to something; complains. */
bool name_check(struct loader *l, const struct ynode *n, const char *text);

/* scenario_end.c: what an end's text means. */
struct end_name {
	char pair[GRAMMAR_MAX_NAME + 1];  /* "" none given; "*" any */
	char agent[GRAMMAR_MAX_NAME + 1]; /* "" any */
	char thing[GRAMMAR_MAX_NAME + 1]; /* srq.x, cq.x, dev.a: "srq" "cq" "dev" */
	int index;                        /* -1 none, -2 all */
	bool queue;
};
unsigned agent_qps(const struct loader *l, const char *agent);
/* What the file says of an attribute for this agent's QPs of a pair, or NULL. */
const json_t *file_qp_attr(const struct loader *l, const json_t *pair, const char *agent, const char *name);
int file_qp_type(const struct loader *l, const json_t *pair, const char *agent);        /* IBV_QPT_* */
bool file_qp_unanswered(const struct loader *l, const json_t *pair, const char *agent); /* UC, UD */
/* The QPs that an end stands for, one of each pair: `while (end_walk_next(&w))` w.pair, w.agent. None for srq.x, cq.x, dev.a. */
struct end_walk {
	const struct loader *l;
	struct end_name name;
	void *iter;
	size_t at;
	const json_t *pair;
	const char *agent;
};
void end_walk_begin(struct end_walk *w, const struct loader *l, const char *end);
bool end_walk_next(struct end_walk *w);
/* Of one QP of this end, the value of an attribute as the file sets it; def when it does not. */
int64_t end_attr(const struct loader *l, const char *end, const char *name, int64_t def);
/* A number, or a value that the device returns. ret_add may be NULL. Used for numbers and sizes. */
json_t *parse_ref(struct loader *l, struct ynode *n, const char *text, size_t off, bool *ret_is_ref);

/* scenario_map.c */
json_t *map_parse(struct loader *l, struct ynode *n, const struct gmap *m);
json_t *parse_map_of(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_maps(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_any_map(struct loader *l, struct ynode *n, const struct gkey *k);
json_t *parse_chain(struct loader *l, struct ynode *n, const struct gkey *k);

/* scenario_steps.c */
json_t *parse_steps(struct loader *l, struct ynode *n, const struct gkey *k);

/* scenario_packets.c: a sweep over packets. */
/* Whether this member of a sweep is one, and well-formed. */
bool packets_check(struct loader *l, const struct ynode *sweep, const struct ynode *value);
/* The value that stands for the packet, and how ids show it. */
struct ynode *packets_value(struct loader *l, const struct ynode *where, char **ret_shown);
/* Once the file is read: what it has to say beside the sweep; of a first pass `first_pass` into the document. */
void packets_finish(struct loader *l, struct ynode *swept);
/* A step as a first pass has it: a new reference, or NULL: it is left out. Takes out. */
json_t *packets_step(struct loader *l, json_t *out);

/* scenario_transitions.c: a sweep over moves between states. */
extern const struct gkey grammar_transition[];
/* What such a sweep is made of, or NULL. */
struct ynode *sweep_transition(const struct ynode *sweep);
/* The list of rows that it stands for; NULL after a complaint. */
struct ynode *transition_rows(struct loader *l, struct ynode *sweep);

/* scenario_fault.c: what stands under a fault's name, by the fault's own table. */
struct fault_ops;
json_t *fault_args_parse(struct loader *l, struct ynode *n, const struct fault_ops *ops);

/* scenario_check.c: what the tables cannot say. */
void check_not_empty(struct loader *l, const struct ynode *map, void *out);
void check_connect(struct loader *l, const struct ynode *map, void *out);
void check_objects(struct loader *l, const struct ynode *map, void *out);
void check_modify(struct loader *l, const struct ynode *map, void *out);
void check_post(struct loader *l, const struct ynode *map, void *out);
void check_post_recv(struct loader *l, const struct ynode *map, void *out);
void check_ah(struct loader *l, const struct ynode *map, void *out);
void check_attach(struct loader *l, const struct ynode *map, void *out);
void check_poll(struct loader *l, const struct ynode *map, void *out);
void check_traffic(struct loader *l, const struct ynode *map, void *out);
void check_remember(struct loader *l, const struct ynode *map, void *out);
void check_recover(struct loader *l, const struct ynode *map, void *out);
void check_repeat(struct loader *l, const struct ynode *map, void *out);
void check_expect(struct loader *l, const struct ynode *map, void *out);
void check_allow(struct loader *l, const struct ynode *map, void *out);
/* scenario_fit.c: what each part is right for itself and does not fit another: the type of a QP, the agent of an object. */
void fit_post(struct loader *l, const struct ynode *map, const json_t *out);
void fit_connect(struct loader *l, const struct ynode *map, const json_t *out);
void fit_post_recv(struct loader *l, const struct ynode *map, const json_t *out);
void fit_modify(struct loader *l, const struct ynode *map, const json_t *out);
void fit_group(struct loader *l, const struct ynode *map, const json_t *out);
void fit_lossy(struct loader *l, const struct ynode *map, const json_t *out);
void fit_recover(struct loader *l, const struct ynode *map, const json_t *out);
void fit_expect(struct loader *l, const struct ynode *map, const json_t *out);
/* The SRQ that this end of a pair receives from, or NULL; of several the first. */
const char *file_srq_of(struct loader *l, const struct end_walk *of);
/* scenario_fit_xrc.c */
bool is_xrc_type(int type);
/* pairs: NULL for all. */
void fit_xrc_connect(struct loader *l, const struct ynode *map, const json_t *pairs);
void fit_xrc_request(struct loader *l, const struct ynode *map, const json_t *out, const json_t *ends);
/* A post, or a post_recv, at an end that has no such queue. */
void fit_xrc_queue(struct loader *l, const struct ynode *map, const json_t *out, bool recv);
/* scenario_fit_objects.c */
void fit_objects(struct loader *l, struct ynode *root);
/* Marks the attributes under `qp:` that some QP of this case takes; fit_attrs_finish complains about what was none's in all. */
void fit_attrs(struct loader *l, struct ynode *root);
/* The same of a block of attributes elsewhere; NULL is none. */
void fit_block(struct loader *l, struct ynode *block);
void fit_attrs_finish(struct loader *l);
/* Whether any move of a QP of this type takes a bit of the mask. */
bool type_takes(int type, int mask);
/* Before any grammar: duplicate keys and words that YAML 1.1 takes for booleans. */
void check_tree(struct loader *l);

#endif
