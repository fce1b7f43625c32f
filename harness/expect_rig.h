/* SPDX-License-Identifier: MIT */
/* A small plan and records in shorthand, for the tests of expectations. */
#ifndef QD_EXPECT_RIG_H
#define QD_EXPECT_RIG_H

#include "observe.h"

#include <stdlib.h>
#include <string.h>

#include "expect_internal.h"
#include "json.h"
#include "test.h"
#include "units.h"

#define MS NSEC_PER_MSEC

static const char plan_text[] =
	"{'steps':[{'n':1,'do':'post','as':'w'},{'n':2,'do':'expect'}],'agents':{'a':{'device':'a'},'b':{'device':'b'}},"
	"'qps':[{'name':'p.a','pair':'p','agent':'a','peer':'p.b','type':'RC','send_cq':'p.a.scq','recv_cq':'p.a.rcq','attr':{}},"
	"{'name':'p.b','pair':'p','agent':'b','peer':'p.a','type':'RC','send_cq':'p.b.scq','recv_cq':'rx','attr':{}}]}";

/* JSON with single quotes, so that a row can be read. */
static inline json_t *parse(const char *text)
{
	char *copy = strdup(text);
	json_error_t e;
	json_t *v;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	v = json_loads(copy, JSON_DECODE_ANY, &e);
	if (!v)
		fprintf(stderr, "    %s: %s\n", text, e.text);
	CU_ASSERT_FATAL(v != NULL);
	free(copy);
	return v;
}

struct world {
	json_t *plan;
	struct model *m;
	uint64_t t;
	struct profile profile;
};

static inline void world_new(struct world *w, const char *entries)
{
	memset(w, 0, sizeof(*w));
	w->plan = parse(plan_text);
	w->t = 1000 * MS;
	if (entries) {
		w->profile.kernel = strdup("6.1.0-57-amd64");
		w->profile.entries = parse(entries);
	}
	CU_ASSERT_FATAL(model_new(w->plan, entries ? &w->profile : NULL, &w->m) == 0);
}

static inline void world_free(struct world *w)
{
	model_free(w->m);
	profile_release(&w->profile);
	json_decref(w->plan);
}

static inline void feed(struct world *w, const char *text)
{
	json_t *r = parse(text);

	if (!json_object_get(r, "t"))
		json_object_set_new(r, "t", json_integer((json_int_t)w->t));
	w->t += MS;
	model_feed(w->m, r);
	json_decref(r);
}

static inline void post(struct world *w, const char *queue, const char *as, unsigned first, unsigned n, bool signaled)
{
	char text[512];
	char agent = queue[2];
	unsigned q = strstr(queue, "recv") ? 2 : 1;

	snprintf(text, sizeof(text),
		 "{'kind':'post','src':'agent/"
		 "%c','obj':'%s','life':1,'step':1,'as':'%s','op':'%s','size':64,'count':%u,'accepted':%u,'errno':0,'by':'step',"
		 "'signaled':%s,'first':'0x%llx','last':'0x%llx'}",
		 agent, queue, as, q == 2 ? "RECV" : "SEND", n, n, signaled ? "true" : "false",
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first }),
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first + n - 1 }));
	feed(w, text);
}

static inline void wc(struct world *w, const char *queue, unsigned first, unsigned n, const char *status)
{
	unsigned q = strstr(queue, "recv") ? 2 : 1;
	char text[512];

	snprintf(text, sizeof(text),
		 "{'kind':'wc','src':'agent/"
		 "%c','obj':'%s','life':1,'step':2,'cq':'x','first':'0x%llx','last':'0x%llx','count':%u,'status':'%s'}",
		 queue[2], queue, (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first }),
		 (unsigned long long)wrid_encode((struct wrid){ 1, q, q == 2 ? WRID_RECV : WRID_SEND, first + n - 1 }), n, status);
	feed(w, text);
}

static inline void begin(struct world *w, int step)
{
	char text[128];

	snprintf(text, sizeof(text), "{'kind':'step','phase':'begin','do':'x','step':%d}", step);
	feed(w, text);
}

static inline enum expect_state ask(struct world *w, const char *expectation, uint64_t later_ns)
{
	json_t *x = parse(expectation);
	enum expect_state state = model_expect(w->m, x, w->t + later_ns, NULL);

	json_decref(x);
	return state;
}

static inline void settle(struct world *w, const char *expectation)
{
	json_t *x = parse(expectation);

	model_settle(w->m, x);
	json_decref(x);
}

#endif
