/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "../harness/json.h"
#include "wire_path_internal.h"

int wire_path_new(struct wire_link *const ports[2], const char *const names[2], void (*record)(void *user, json_t *rec), void *user,
		  struct wire_path **ret)
{
	struct wire_path *w = calloc(1, sizeof *w);

	if (!w)
		return -ENOMEM;
	for (unsigned i = 0; i < 2; i++) {
		w->ports[i] = ports[i];
		w->port_names[i] = wire_name(&w->names, names[i]);
	}
	w->env = wire_path_env;
	w->env.wire = w;
	w->report.names = &w->names;
	w->report.record = record;
	w->report.user = user;
	w->check_icrc = true;
	w->expires_ns = UINT64_MAX;
	*ret = w;
	return 0;
}

static void drop_list(struct wire_parked **list)
{
	struct wire_parked *p, *next;

	DL_FOREACH_SAFE(*list, p, next)
	{
		DL_DELETE(*list, p);
		free(p);
	}
}

void wire_path_free(struct wire_path *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->chain.n; i++)
		drop_list(&w->chain.rules[i]->held);
	wire_chain_release(&w->chain);
	drop_list(&w->ready);
	wire_park_release(&w->park);
	wire_report_flush(&w->report, UINT64_MAX);
	wire_conns_release(&w->conns);
	wire_names_release(&w->names);
	free(w);
}

int wire_path_connect(struct wire_path *w, const struct wire_conn *conn, struct error *e)
{
	struct wire_conn *added;
	int rc = wire_conns_add(&w->conns, conn, &added);

	if (rc == -EEXIST)
		return error_set(e, rc, "pair `%s` has had its life %u already", wire_name_text(&w->names, conn->pair), conn->life);
	return rc ? error_set(e, rc, "no memory") : 0;
}

/* What waits may still speak of the connection: it goes on without one. */
static void forget(struct wire_parked *p)
{
	p->item.place = (struct wire_place){ 0 };
	p->item.a.known = false;
}

void wire_path_disconnect(struct wire_path *w, const char *pair)
{
	struct wire_parked *p;

	wire_report_flush(&w->report, UINT64_MAX);
	for (size_t i = 0; i < w->park.n; i++)
		forget(w->park.heap[i]);
	for (unsigned i = 0; i < w->chain.n; i++)
		DL_FOREACH(w->chain.rules[i]->held, p)
			forget(p);
	wire_conns_remove(&w->conns, pair ? wire_name(&w->names, pair) : 0);
}

static int find_rule(const struct wire_path *w, const char *as)
{
	for (unsigned i = 0; as && i < w->chain.n; i++)
		if (!strcmp(wire_name_text(&w->names, w->chain.rules[i]->name), as))
			return (int)i;
	return -ENOENT;
}

void wire_path_find_expiry(struct wire_path *w)
{
	w->expires_ns = UINT64_MAX;
	for (unsigned i = 0; i < w->chain.n; i++)
		if (w->chain.rules[i]->expires_ns < w->expires_ns)
			w->expires_ns = w->chain.rules[i]->expires_ns;
}

int wire_path_rule(struct wire_path *w, const json_t *rule, struct wire_clock now, struct error *e)
{
	const char *as = json_str(rule, "as");
	struct wire_rule *r;

	if (find_rule(w, as) >= 0)
		return error_set(e, -EEXIST, "there is a rule `%s` already", as);
	int rc = wire_rule_new(rule, &w->names, &w->env, ++w->order, now.mono_ns, &r, e);

	if (rc)
		return rc;
	rc = wire_chain_add(&w->chain, r);
	if (rc) {
		wire_rule_free(r);
		return error_set(e, rc, "no memory");
	}
	wire_report_flush(&w->report, UINT64_MAX);
	w->n_anything += r->action.ops->anything;
	wire_path_find_expiry(w);
	return 0;
}

int wire_path_clear(struct wire_path *w, const char *as, struct wire_clock now, json_t **ret)
{
	int at = find_rule(w, as);

	if (at < 0)
		return at;
	struct wire_rule *r = wire_chain_remove(&w->chain, (unsigned)at);

	w->now = now;
	*ret = wire_rule_report(r, &w->names);
	wire_path_let_go(w, r, UINT32_MAX);
	w->n_anything -= r->action.ops->anything;
	wire_path_find_expiry(w);
	wire_rule_free(r);
	wire_path_run_ready(w);
	wire_path_flush(w, 0);
	wire_path_flush(w, 1);
	wire_report_flush(&w->report, UINT64_MAX);
	return 0;
}

json_t *wire_path_rule_report(struct wire_path *w, const char *as)
{
	int at = find_rule(w, as);

	wire_chain_count(&w->chain);
	return at < 0 ? NULL : wire_rule_report(w->chain.rules[at], &w->names);
}

json_t *wire_path_rules(struct wire_path *w)
{
	json_t *all = json_array();

	wire_chain_count(&w->chain);
	for (unsigned i = 0; i < w->chain.n; i++)
		json_array_append_new(all, wire_rule_report(w->chain.rules[i], &w->names));
	return all;
}

void wire_path_capture(struct wire_path *w, struct wire_capture *c)
{
	w->capture = c;
}

void wire_path_check_icrc(struct wire_path *w, bool check)
{
	w->check_icrc = check;
}

struct wire_report *wire_path_report(struct wire_path *w)
{
	return &w->report;
}

struct wire_names *wire_path_names(struct wire_path *w)
{
	return &w->names;
}

const struct wire_account *wire_path_account(const struct wire_path *w, unsigned direction)
{
	return &w->account[direction];
}

int64_t wire_path_unaccounted(const struct wire_path *w, unsigned direction)
{
	const struct wire_account *a = &w->account[direction];

	return (int64_t)(a->in + a->invented - a->out - a->eaten - a->kept - a->lost);
}
