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
/* Prints every ratio that is in both and by how much it is worse; returns how many are worse by more than BENCH_WORSE, -EINVAL when
 * there is nothing to compare. */
int bench_compare(const json_t *old, const json_t *new, FILE *out);

struct bench_options {
	unsigned rounds;
	const char *accel, *kernel_image, *modules;
};
/* The parts. Each adds to `figures`, and to `about` what its figures depend on. */
int bench_guest(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_data(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_suite(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);
int bench_wire(const struct bench_options *o, json_t *figures, json_t *about, struct error *e);

#endif
