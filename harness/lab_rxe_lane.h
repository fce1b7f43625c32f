/* SPDX-License-Identifier: MIT */
/* Within lab rxe: what a lane is made of, and how it is made and taken away (lab.h has the rest). */
#ifndef QD_LAB_RXE_LANE_H
#define QD_LAB_RXE_LANE_H

#include <stdbool.h>

#include "error.h"
#include "journal.h"
#include "lab.h"
#include "lab_apart.h"
#include "lab_name.h"
#include "lab_snapshot.h"
#include "lab_tools.h"
#include "proc.h"

#define MAX_LANES 64

/* What a lane's link is made of: one veth pair, or two with the wire between their far ends. */
enum kind { KIND_DIRECT, KIND_WIRE, NUM_KINDS };

struct lane {
	bool used;
	int lane;
	enum kind kind;
	int undo_link[2], undo_rdma[2]; /* journal ids; 0: none */
	char name[2][LAB_NAME_MAX], far[2][LAB_NAME_MAX];
	char want[2][64]; /* GIDs */
	struct lab_lane made;
};

struct lab_rxe {
	struct lab lab;
	struct journal *journal;
	struct lab_tools tools;
	struct lab_apart apart;
	unsigned token;      /* 16 bits: in names and MAC addresses */
	int net;             /* second byte of the addresses: 10.net.lane.0/30 */
	int kept[NUM_KINDS]; /* so many lanes were up before this process: they are taken as they are */
	struct lane lanes[MAX_LANES][NUM_KINDS];
	struct lab_snapshot_memory *pictures[MAX_LANES];
	struct proc removal; /* of one device at a time */
};

/* Makes links and devices, which may not be ready yet; nothing where another process has made them. */
int rxe_lane_make(struct lab_rxe *r, int lane, enum kind kind, struct error *e);
/* On failure the journal keeps what could not be put back, and e says the first reason. */
int rxe_lane_remove(struct lab_rxe *r, struct lane *s, struct error *e);

#endif
