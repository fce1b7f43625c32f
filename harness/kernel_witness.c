/* SPDX-License-Identifier: MIT */
#include "kernel_witness.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "units.h"

/* Not in step with each other, and each on its processor where there are just so many: one that stands still is seen. */
#define WATCHES 2
#define PERIOD_NS (10 * NSEC_PER_MSEC)

struct watch {
	uint64_t due_ns;
	struct hist late;
};

struct slot {
	uint64_t max_ns; /* since the case began */
	struct hist before[WATCHES];
};

struct shared {
	unsigned lanes;
	struct watch watch[WATCHES];
	struct slot slot[];
};

struct thread {
	struct kernel_witness *w;
	unsigned number;
	int cpu; /* -1: wherever it is put */
	pthread_t id;
	bool runs;
};

struct kernel_witness {
	struct shared *shared;
	size_t bytes;
	struct thread thread[WATCHES];
	bool ends;
};

int kernel_witness_new(unsigned lanes, struct kernel_witness **ret, struct error *e)
{
	size_t bytes = sizeof(struct shared) + lanes * sizeof(struct slot);
	struct shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kernel_witness *w;

	if (s == MAP_FAILED)
		return error_set(e, -errno, "no memory that lanes share: %s", strerror(errno));
	w = calloc(1, sizeof *w);
	if (!w) {
		munmap(s, bytes);
		return error_set(e, -ENOMEM, "out of memory");
	}
	s->lanes = lanes;
	w->shared = s;
	w->bytes = bytes;
	*ret = w;
	return 0;
}

static void raise_max(uint64_t *max, uint64_t value)
{
	uint64_t had = __atomic_load_n(max, __ATOMIC_RELAXED);

	while (value > had && !__atomic_compare_exchange_n(max, &had, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
	}
}

void kernel_witness_saw(struct kernel_witness *w, unsigned watch, uint64_t late_ns)
{
	hist_add(&w->shared->watch[watch].late, late_ns);
	for (unsigned i = 0; i < w->shared->lanes; i++)
		raise_max(&w->shared->slot[i].max_ns, late_ns);
}

static void tick(struct thread *t)
{
	uint64_t *due = &t->w->shared->watch[t->number].due_ns, now = now_ns(), late = now > *due ? now - *due : 0;

	kernel_witness_saw(t->w, t->number, late);
	/* What was missed is in the lateness; there is no catching up. Who sees the next tick's time sees how late this one was. */
	__atomic_store_n(due, *due + (late / PERIOD_NS + 1) * PERIOD_NS, __ATOMIC_RELEASE);
}

static void *run(void *user)
{
	struct thread *t = user;
	const struct watch *watch = &t->w->shared->watch[t->number];
	cpu_set_t set;

	if (t->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((unsigned)t->cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof set, &set);
	}
	while (!__atomic_load_n(&t->w->ends, __ATOMIC_RELAXED)) {
		struct timespec at = { (time_t)(watch->due_ns / NSEC_PER_SEC), (long)(watch->due_ns % NSEC_PER_SEC) };

		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == 0)
			tick(t);
	}
	return NULL;
}

bool kernel_witness_sees(const cpu_set_t *cpus)
{
	return CPU_COUNT(cpus) <= WATCHES;
}

bool kernel_witness_sees_all(void)
{
	cpu_set_t set;

	return !sched_getaffinity(0, sizeof set, &set) && kernel_witness_sees(&set);
}

/* The processors that this process may use; false: more of them than watches, or fewer. */
static bool one_for_each(int cpus[WATCHES])
{
	cpu_set_t set;
	int n = 0;

	if (sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) != WATCHES)
		return false;
	for (int i = 0; i < CPU_SETSIZE && n < WATCHES; i++)
		if (CPU_ISSET((unsigned)i, &set))
			cpus[n++] = i;
	return n == WATCHES;
}

int kernel_witness_start(struct kernel_witness *w, struct error *e)
{
	int cpus[WATCHES], rc = 0;
	bool pinned = one_for_each(cpus);
	sigset_t all, before;

	sigfillset(&all);
	/* Signals are the main thread's. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 0; rc == 0 && i < WATCHES; i++) {
		struct thread *t = &w->thread[i];

		t->w = w;
		t->number = i;
		t->cpu = pinned ? cpus[i] : -1;
		w->shared->watch[i].due_ns = now_ns() + PERIOD_NS + i * PERIOD_NS / WATCHES;
		rc = pthread_create(&t->id, NULL, run, t);
		t->runs = rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? error_set(e, -rc, "no thread that looks how late timers are: %s", strerror(rc)) : 0;
}

void kernel_witness_free(struct kernel_witness *w)
{
	if (!w)
		return;
	__atomic_store_n(&w->ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < WATCHES; i++)
		if (w->thread[i].runs)
			pthread_join(w->thread[i].id, NULL);
	munmap(w->shared, w->bytes);
	free(w);
}

void kernel_witness_begin(struct kernel_witness *w, unsigned lane)
{
	static const struct hist none;
	struct slot *s = &w->shared->slot[lane];

	for (int i = 0; i < WATCHES; i++) {
		memset(&s->before[i], 0, sizeof s->before[i]);
		hist_add_since(&s->before[i], &w->shared->watch[i].late, &none);
	}
	__atomic_store_n(&s->max_ns, 0, __ATOMIC_RELAXED);
}

json_t *kernel_witness_json(const struct kernel_witness *w, unsigned lane)
{
	const struct slot *s = &w->shared->slot[lane];
	uint64_t now = now_ns(), ahead = 0, max;
	struct hist sum = { 0 };

	/* First what is still to come: a tick that comes meanwhile is in one of the two. */
	for (int i = 0; i < WATCHES; i++) {
		uint64_t due = __atomic_load_n(&w->shared->watch[i].due_ns, __ATOMIC_ACQUIRE);

		if (due && due < now && now - due > ahead)
			ahead = now - due;
	}
	max = __atomic_load_n(&s->max_ns, __ATOMIC_RELAXED);
	for (int i = 0; i < WATCHES; i++)
		hist_add_since(&sum, &w->shared->watch[i].late, &s->before[i]);
	sum.max = ahead > max ? ahead : max;
	return witness_record(&sum, PERIOD_NS);
}

json_t *witness_record(const struct hist *late, uint64_t period_ns)
{
	return json_pack("{s:b, s:I, s:I, s:I, s:I}", "witness", 1, "samples", (json_int_t)late->count, "late_max_ns",
			 (json_int_t)late->max, "late_p99_ns", (json_int_t)hist_quantile(late, 990), "period_ns",
			 (json_int_t)period_ns);
}
