/* SPDX-License-Identifier: MIT */
/*
 * Figures of a bench: each is a median with its spread, the ones that count are ratios of two things measured side by side in one
 * run. The parts measure, bench_figures.c prints, keeps and compares. formats.md, "Bench".
 */
#ifndef QD_BENCH_H
#define QD_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

#define BENCH_SAMPLES_MAX 512
#define BENCH_WORSE (4.0 / 3) /* a ratio that is worse by more is a regression */

struct bench_samples {
	double v[BENCH_SAMPLES_MAX];
	size_t n;
};
void bench_sample(struct bench_samples *s, double value);
/* Sorts. 0 when there are none. */
double bench_median(struct bench_samples *s);

/* A figure: what it is called, and which way is good. */
struct bench_figure {
	const char *key, *name, *unit; /* unit "x": a ratio, which is compared */
	double at_most, at_least;      /* its bar; 0: none. at_least: more is better */
};
void bench_add(json_t *figures, const struct bench_figure *f, struct bench_samples *s);
/* Prints the table; true when every bar is kept. `quiet` prints nothing. */
bool bench_table(const json_t *figures, bool quiet);
/* Prints by how much every ratio is worse, and what else is different; returns how many are worse by more than BENCH_WORSE or not
 * in the newer one, or a negative errno with e filled where a ratio is no number above 0 or there is nothing to compare. */
int bench_compare(const json_t *old, const json_t *new, FILE *out, struct error *e);

struct bench_options {
	unsigned rounds;
	const char *accel, *kernel_image, *modules;
};
/* The parts. Each adds to `figures`, and to `about` what its figures depend on. */
int bench_guest(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_data(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_suite(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_scale(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_wire(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);

/* Runs a program of this build in a guest (with a lane up, where it does not bring one up by itself), which prints its figures.
 * When it says that it cannot measure there, *ret stays NULL. */
int bench_in_guest(const struct bench_options *o, const char *program, bool lane, const char *rounds, json_t **ret,
		   struct error *e);

/* ---- many queue pairs (bench_scale.c) ---- */

#define BENCH_SCALE_BAR 1.3 /* cost of a pair of 1000 to that of a pair of 100 */
#define BENCH_BARE_BAR 2.0  /* to the same moves by a loop that does nothing else */
#define BENCH_KNEE 0.9

/* The knee of a curve [{along: 1, "rate": 0}, …], ascending: the least place whose rate is at least BENCH_KNEE of the best one.
 * Beyond it more queue pairs, or deeper queues, bring latency alone. 0: no point has any rate. */
int64_t bench_knee(const json_t *curve, const char *along);
/* {"pairs":{"knee","points"},"depth":{…}} from rows {pairs, depth, rate, p50_us, p99_us}: medians, over pairs at depth 1 and over
 * depths of one pair. */
json_t *bench_curves(const json_t *load);
/* One table, the knees named. NULL is fine. */
void bench_curves_print(const json_t *curves, FILE *out);
/* The figures of a pair, a sample for each round; what was not measured has none. */
void bench_scale_figures(const json_t *measured, int rounds, json_t *figures);

#endif
