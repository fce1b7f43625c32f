/* SPDX-License-Identifier: MIT */
/*
 * The scenario language as data: which keys a map takes, what may stand under each, and one line of help. The loader, the
 * schema and the language reference's test read these tables; nothing else knows a key's name.
 *
 * A key that means something new is a row here; a value that is written in a new way is a row in
 * scenario_value.c's table.
 */
#ifndef QD_SCENARIO_GRAMMAR_H
#define QD_SCENARIO_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "names.h"

enum gtype {
	G_INVALID,
	G_VERSION, /* the number 1 */
	G_BOOL,
	G_NUMBER, /* an integer, or what a device returned: a.max_send_wr + 1 */
	G_SIZE,   /* the same in bytes, 4KiB */
	G_DURATION,
	G_RANGE,   /* an integer, 2..5, 2.. */
	G_COMPARE, /* ">= 3", 5..9, 3; always an object in the document */
	G_MEASURE, /* a number stays a number, anything else is a comparison */
	G_TEXT,
	G_TITLE,
	G_REFS,
	G_REQUIRES,
	G_NAME, /* a name that this key gives */
	G_NAMES,
	G_WORD,  /* one of `words` or `names` */
	G_WORDS, /* a list of them */
	G_SOME,  /* one of `words` or a list of them, as written; with a `max` numbers up to it as well */
	G_AGENT,
	G_DEVICE,
	G_END,     /* one end */
	G_ENDS,    /* one or a list */
	G_PAIRS,   /* pair names or "*" */
	G_ENDS_OF, /* the two agents of a pair */
	G_LABEL,   /* what an earlier step named by `as:` */
	G_LABELS,
	G_OBJECT, /* a named CQ, SRQ, MR, MW, AH or PD */
	G_OBJECTS,
	G_PLACE,  /* a memory region, or a place in it: pool + 4096 */
	G_WC,     /* a WC pattern */
	G_EVENTS, /* none, one or a list out of `names` */
	G_ERRNOS,
	G_ATTRS,    /* QP attributes by name */
	G_COUNTERS, /* counter: comparison */
	G_MAP,      /* `map` */
	G_MAPS,     /* a list of at least `min` of `map` */
	G_MAP_OF,   /* name: `map` */
	G_ANY_MAP,  /* key: scalar or map, passed through */
	G_CHAIN,    /* true, or a list of `map` */
	G_STEPS,
	G_SWEEP,
	NUM_GTYPES,
};

/* Flags of a key; what they mean depends on its type. */
enum {
	G_REQUIRED = 1 << 0,
	/* G_END, G_ENDS */
	G_QUEUES = 1 << 1,  /* b.recv may stand here */
	G_LIVES = 1 << 2,   /* a@1 may */
	G_THINGS = 1 << 3,  /* srq.x, cq.x, dev.a may */
	G_SEVERAL = 1 << 4, /* an agent with several QPs stands for all of them */
	/* G_COMPARE, G_MEASURE */
	G_TIME = 1 << 5,   /* values are durations */
	G_BEFORE = 1 << 6, /* also by what it was before the fault: "<= 3 x before" */
	/* G_ATTRS */
	G_UNBOUNDED = 1 << 7, /* values out of range are what the scenario wants to see refused */
	G_AGENTS = 1 << 8,    /* an agent's name holds that side's own values */
	G_EXPECTED = 1 << 9,  /* values may be comparisons */
	/* G_SIZE, G_NUMBER */
	G_NO_REF = 1 << 10, /* known before there is a device */
	/* G_LABEL: the kinds of step it may name */
	G_OF_POST = 1 << 11,
	G_OF_RECV = 1 << 12,
	G_OF_TRAFFIC = 1 << 13,
	G_OF_FAULT = 1 << 14,
	G_OF_REMEMBER = 1 << 15,
	G_OF_RECOVER = 1 << 16,
	/* G_OBJECT */
	G_OBJ_CQ = 1 << 17,
	G_OBJ_SRQ = 1 << 18,
	G_OBJ_MR = 1 << 19,
	G_OBJ_PD = 1 << 20,
	G_OBJ_MW = 1 << 21,
	G_OBJ_AH = 1 << 22,
	G_NULL = 1 << 23, /* may be left empty */
	G_HEX = 1 << 24,  /* 64 bits: a number beyond 2^63-1 is written as a hex string in the document */
};
#define G_OBJ_ANY (G_OBJ_CQ | G_OBJ_SRQ | G_OBJ_MR | G_OBJ_PD | G_OBJ_MW | G_OBJ_AH)

struct gkey {
	const char *name; /* NULL ends a table */
	enum gtype type;
	unsigned flags;
	int64_t min, max;         /* numbers, sizes, durations; both 0: any that is not negative */
	const char *const *words; /* NULL-terminated */
	const struct name_table *names;
	const struct gmap *map;
	const char *help;
};

struct loader;
struct ynode;

struct gmap {
	const char *what; /* "a step `post`" as messages say it */
	const struct gkey *keys;
	const struct gkey *also; /* keys that several maps share, or NULL */
	/* What the table cannot say, asked once all keys are read: json_t *out is the map in the document. May be NULL. */
	void (*check)(struct loader *l, const struct ynode *map, void *out);
};

/* What a step's argument is, where it is no map of keys. */
enum gstep_arg {
	GSTEP_MAP,   /* a map */
	GSTEP_MAYBE, /* a map or nothing */
	GSTEP_VALUE, /* one value, under "arg" in the document: `arg` */
	GSTEP_FAULT,
	GSTEP_EXPECT,   /* a map, or { any: [...] } */
	GSTEP_TOGETHER, /* a list of steps */
	NUM_GSTEP_ARGS,
};

struct gstep {
	const char *name;
	enum gstep_arg arg;
	struct gmap map;
	struct gkey value; /* GSTEP_VALUE */
	unsigned label;    /* G_OF_*: what `as:` names here; 0: nothing that can be referred to */
	const char *help;
};

extern const struct gmap grammar_file;
extern const struct gstep grammar_steps[]; /* ends with a row without name */
extern const struct gkey grammar_match[];  /* how a packet is addressed: `packets:` and the wire's `match:` */
extern const struct gkey grammar_fault[];  /* beside the fault's name: as, for, within */
extern const struct gmap grammar_expect;   /* without `any` */
const struct gstep *grammar_step(const char *name);

/* Bounds that keep a hostile file from costing much. */
#define GRAMMAR_MAX_CASES 4096
#define GRAMMAR_MAX_STEPS 4096
#define GRAMMAR_MAX_NESTING 6
#define GRAMMAR_MAX_PAIR_COUNT 1024
#define GRAMMAR_MAX_PAIRS 4096     /* of a file */
#define GRAMMAR_MAX_ROUNDS 1000000 /* of all repeats that are nested */
#define GRAMMAR_MAX_NAME 32
#define GRAMMAR_MAX_WORK 2000000 /* cases x tokens */

#endif
