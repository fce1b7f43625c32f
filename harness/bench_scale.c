/* SPDX-License-Identifier: MIT */
/* What many queue pairs cost, and how much goes through them: measured by scale_bench. */
#include "bench.h"

#include <stdio.h>

#include "json.h"
#include "log.h"

#define ROUNDS_MAX 2 /* a minute each */

/* ---- points of a curve ---- */

/* All samples at one place; *ret_n: how many there are. */
static double median_at(const json_t *rows, const char *by, int64_t at, const char *what, size_t *ret_n)
{
	struct bench_samples s = { .n = 0 };
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)rows, i, r)
		if (json_int(r, by, -1) == at)
			bench_sample(&s, json_number_value(json_object_get(r, what)));
	if (ret_n)
		*ret_n = s.n;
	return bench_median(&s);
}

static json_t *curve_of(const json_t *load, const char *along, const char *fixed, int64_t fixed_at)
{
	json_t *curve = json_array(), *mine = json_array();
	const json_t *r;
	size_t i;

	json_array_foreach((json_t *)load, i, r)
		if (json_int(r, fixed, -1) == fixed_at)
			json_array_append(mine, (json_t *)r);
	for (int64_t last = 0, at;; last = at) {
		size_t n;

		/* In ascending order, each once. */
		at = INT64_MAX;
		json_array_foreach(mine, i, r)
			if (json_int(r, along, 0) > last && json_int(r, along, 0) < at)
				at = json_int(r, along, 0);
		if (at == INT64_MAX)
			break;
		double rate = median_at(mine, along, at, "rate", &n), p50 = median_at(mine, along, at, "p50_us", NULL);

		json_array_append_new(curve, json_pack("{s:I,s:f,s:f,s:f,s:i}", along, (json_int_t)at, "rate", rate, "p50_us", p50,
						       "p99_us", median_at(mine, along, at, "p99_us", NULL), "n", (int)n));
	}
	json_decref(mine);
	return curve;
}

int64_t bench_knee(const json_t *curve, const char *along)
{
	const json_t *r;
	double best = 0;
	size_t i;

	json_array_foreach((json_t *)curve, i, r)
		best = json_number_value(json_object_get(r, "rate")) > best ? json_number_value(json_object_get(r, "rate")) : best;
	json_array_foreach((json_t *)curve, i, r)
		if (best > 0 && json_number_value(json_object_get(r, "rate")) >= BENCH_KNEE * best)
			return json_int(r, along, 0);
	return 0;
}

json_t *bench_curves(const json_t *load)
{
	json_t *pairs = curve_of(load, "pairs", "depth", 1), *depth = curve_of(load, "depth", "pairs", 1);

	return json_pack("{s:{s:I,s:o},s:{s:I,s:o}}", "pairs", "knee", (json_int_t)bench_knee(pairs, "pairs"), "points", pairs,
			 "depth", "knee", (json_int_t)bench_knee(depth, "depth"), "points", depth);
}

static void put_curve(const json_t *curve, const char *along, const char *name, FILE *out)
{
	int64_t knee = json_int(curve, "knee", 0);
	const json_t *r;
	size_t i;

	json_array_foreach(json_object_get(curve, "points"), i, r)
		fprintf(out, "%-14s %6lld %14.0f %14.1f %14.1f%s\n", i ? "" : name, (long long)json_int(r, along, 0),
			json_number_value(json_object_get(r, "rate")), json_number_value(json_object_get(r, "p50_us")),
			json_number_value(json_object_get(r, "p99_us")), json_int(r, along, 0) == knee ? "  <- knee" : "");
}

void bench_curves_print(const json_t *curves, FILE *out)
{
	if (!curves)
		return;
	fprintf(out, "\nSENDs both ways, all pairs at the same time  messages/s   latency p50 us   p99 us (of the worst end)\n");
	put_curve(json_object_get(curves, "pairs"), "pairs", "pairs, depth 1", out);
	put_curve(json_object_get(curves, "depth"), "depth", "depth, 1 pair", out);
	fprintf(out, "knee: the least that reaches %d %% of the best rate\n", (int)(BENCH_KNEE * 100));
}

/* ---- cost of a pair ---- */

/* What a figure takes from a round: the median of a value of one list, and of another beside it. */
struct part {
	const char *list, *value;
	int pairs;
};

static const struct cost_figure {
	struct bench_figure figure;
	struct part of, over; /* over: without a list, nothing */
} costs[] = {
	{ { "pair_verified_10", "a pair of 10, from broken to verified", "us", 0, 0 },
	  { "cost", "verified_us", 10 },
	  { NULL, NULL, 0 } },
	{ { "pair_verified_100", "a pair of 100", "us", 0, 0 }, { "cost", "verified_us", 100 }, { NULL, NULL, 0 } },
	{ { "pair_verified_1000", "a pair of 1000", "us", 0, 0 }, { "cost", "verified_us", 1000 }, { NULL, NULL, 0 } },
	{ { "pair_scale_ratio", "  ratio, 1000 to 100", "x", BENCH_SCALE_BAR, 0 },
	  { "cost", "verified_us", 1000 },
	  { "cost", "verified_us", 100 } },
	{ { "pair_rts_1000", "a pair of 1000, from broken to RTS", "us", 0, 0 }, { "cost", "rts_us", 1000 }, { NULL, NULL, 0 } },
	{ { "pair_rts_scale_ratio", "  ratio, 1000 to 100", "x", BENCH_SCALE_BAR, 0 },
	  { "cost", "rts_us", 1000 },
	  { "cost", "rts_us", 100 } },
	{ { "pair_bare", "the same moves alone, in one process", "us", 0, 0 }, { "bare", "us", 1000 }, { NULL, NULL, 0 } },
	{ { "pair_bare_ratio", "  ratio, 1000 pairs to RTS to that", "x", BENCH_BARE_BAR, 0 },
	  { "cost", "rts_us", 1000 },
	  { "bare", "us", 1000 } },
	{ { "pair_whole", "with their receives flushed and posted anew", "us", 0, 0 }, { "whole", "us", 1000 }, { NULL, NULL, 0 } },
	{ { "pair_whole_ratio", "  ratio, 1000 pairs to RTS to that", "x", 0, 0 },
	  { "cost", "rts_us", 1000 },
	  { "whole", "us", 1000 } },
};

static double of_round(const json_t *measured, const struct part *p, int round)
{
	struct bench_samples s = { .n = 0 };
	const json_t *r;
	size_t i;

	json_array_foreach(json_object_get(measured, p->list), i, r)
		if (json_int(r, "pairs", 0) == p->pairs && json_int(r, "round", 0) == round)
			bench_sample(&s, json_number_value(json_object_get(r, p->value)));
	return bench_median(&s);
}

void bench_scale_figures(const json_t *measured, int rounds, json_t *figures)
{
	for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
		struct bench_samples s = { .n = 0 };

		for (int round = 0; round < rounds; round++) {
			double value = of_round(measured, &costs[i].of, round);
			double over = costs[i].over.list ? of_round(measured, &costs[i].over, round) : 1;

			if (value > 0 && over > 0)
				bench_sample(&s, value / over);
		}
		if (s.n)
			bench_add(figures, &costs[i].figure, &s);
	}
}

int bench_scale(const struct bench_options *o, json_t *figures, json_t *about, struct error *e)
{
	unsigned rounds = o->rounds < ROUNDS_MAX ? o->rounds : ROUNDS_MAX;
	json_t *measured = NULL;
	char text[16];

	snprintf(text, sizeof text, "%u", rounds);
	log_info("bench: many queue pairs, %u rounds", rounds);
	int rc = bench_in_guest(o, "scale_bench", false, text, &measured, e);

	if (rc == 0 && measured) {
		bench_scale_figures(measured, (int)rounds, figures);
		json_object_set_new(about, "curves", bench_curves(json_object_get(measured, "load")));
	}
	json_decref(measured);
	return rc;
}
