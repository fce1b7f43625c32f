/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

void bench_sample(struct bench_samples *s, double value)
{
	if (s->n < BENCH_SAMPLES_MAX)
		s->v[s->n++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_median(struct bench_samples *s)
{
	qsort(s->v, s->n, sizeof s->v[0], by_value);
	if (s->n == 0)
		return 0;
	return s->n % 2 ? s->v[s->n / 2] : (s->v[s->n / 2 - 1] + s->v[s->n / 2]) / 2;
}

void bench_add(json_t *figures, const struct bench_figure *f, struct bench_samples *s)
{
	double mid = bench_median(s);
	json_t *v = json_pack("{s:s,s:f,s:f,s:f,s:i,s:s}", "name", f->name, "median", mid, "min", s->n ? s->v[0] : 0.0, "max",
			      s->n ? s->v[s->n - 1] : 0.0, "n", (int)s->n, "unit", f->unit);

	if (f->at_most > 0)
		json_object_set_new(v, "at_most", json_real(f->at_most));
	if (f->at_least > 0)
		json_object_set_new(v, "at_least", json_real(f->at_least));
	json_object_set_new(figures, f->key, v);
}

static double real(const json_t *f, const char *key)
{
	return json_number_value(json_object_get(f, key));
}

static bool is_ratio(const json_t *f)
{
	const char *unit = json_str(f, "unit");

	return unit && strcmp(unit, "x") == 0;
}

static bool bar_is_kept(const json_t *f)
{
	double mid = real(f, "median"), most = real(f, "at_most"), least = real(f, "at_least");

	return (most <= 0 || mid <= most) && (least <= 0 || mid >= least);
}

static void put_figure(const json_t *f)
{
	const char *unit = json_str(f, "unit") ?: "";
	int digits = strcmp(unit, "kB") == 0 ? 0 : 2;
	double most = real(f, "at_most"), least = real(f, "at_least");

	printf("%-54s %9.*f %-5s %9.*f .. %-9.*f", json_str(f, "name") ?: "?", digits, real(f, "median"), unit, digits,
	       real(f, "min"), digits, real(f, "max"));
	if (most > 0)
		printf(" at most %.2f: %s", most, bar_is_kept(f) ? "yes" : "NO");
	if (least > 0)
		printf(" at least %.2f: %s", least, bar_is_kept(f) ? "yes" : "NO");
	putchar('\n');
}

bool bench_table(const json_t *figures, bool quiet)
{
	const json_t *f;
	const char *key;
	bool kept = true;

	if (!quiet)
		printf("%-54s %9s %-5s %9s .. %s\n", "", "median", "", "min", "max");
	json_object_foreach((json_t *)figures, key, f) {
		kept = kept && bar_is_kept(f);
		if (!quiet)
			put_figure(f);
	}
	return kept;
}

/* What else is different about them, by which a ratio may have changed. */
static void put_differences(const json_t *old, const json_t *new, FILE *out)
{
	static const char *const keys[] = { "kernel", "accel", "rounds" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const json_t *a = json_object_get(old, keys[i]), *b = json_object_get(new, keys[i]);
		char *before = a ? json_dumps(a, JSON_ENCODE_ANY) : NULL, *after = b ? json_dumps(b, JSON_ENCODE_ANY) : NULL;

		if ((a || b) && !json_equal(a, b))
			fprintf(out, "different: %s %s -> %s\n", keys[i], before ?: "not told", after ?: "not told");
		free(before);
		free(after);
	}
}

static int median_of(const json_t *figure, const char *key, const char *which, double *ret, struct error *e)
{
	*ret = real(figure, "median");
	return *ret > 0 ? 0 : error_set(e, -EINVAL, "%s in the %s file: its median is no number above 0", key, which);
}

/* 1: worse by more than BENCH_WORSE, or not there any more; 0: not; a negative errno. */
static int compare_one(const char *key, const json_t *before, const json_t *after, FILE *out, struct error *e)
{
	double a, b, by;

	if (!is_ratio(after)) {
		fprintf(out, "%-24s is no ratio of the newer file  MISSING\n", key);
		return 1;
	}
	if (median_of(before, key, "older", &a, e) || median_of(after, key, "newer", &b, e))
		return -EINVAL;
	by = real(before, "at_least") > 0 ? a / b : b / a;
	fprintf(out, "%-24s %8.3f [%.3f .. %.3f] -> %8.3f [%.3f .. %.3f]  %s %.0f %%%s\n", key, a, real(before, "min"),
		real(before, "max"), b, real(after, "min"), real(after, "max"), by > 1 ? "worse by" : "better by",
		by > 1 ? (by - 1) * 100 : (1 / by - 1) * 100, by > BENCH_WORSE ? "  MORE THAN A THIRD" : "");
	return by > BENCH_WORSE;
}

int bench_compare(const json_t *old, const json_t *new, FILE *out, struct error *e)
{
	const json_t *figure, *olds = json_object_get(old, "figures"), *news = json_object_get(new, "figures");
	const char *key;
	int worse = 0, compared = 0;

	if (json_int(old, "schema", 1) != json_int(new, "schema", 1))
		return error_set(e, -EINVAL, "they are of two schemas, and cannot be compared");
	put_differences(old, new, out);
	json_object_foreach((json_t *)olds, key, figure) {
		int rc = is_ratio(figure) ? compare_one(key, figure, json_object_get(news, key), out, e) : 0;

		if (rc < 0)
			return rc;
		worse += rc;
		compared += is_ratio(figure) && is_ratio(json_object_get(news, key));
	}
	json_object_foreach((json_t *)news, key, figure)
		if (is_ratio(figure) && !is_ratio(json_object_get(olds, key)))
			fprintf(out, "%-24s is no ratio of the older file\n", key);
	return compared ? worse : error_set(e, -EINVAL, "they have no ratio in common");
}
