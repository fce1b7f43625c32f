/* SPDX-License-Identifier: MIT */
#include "recover_renew.h"

#include <errno.h>

#include "json.h"

/* Names, each once. New reference. */
static json_t *agents_of(struct case_run *r, const struct ends *ends, bool (*wanted)(struct case_run *r, const char *agent))
{
	json_t *names = json_array();

	for (size_t i = 0; i < ends->n; i++) {
		const char *agent = ends->qp[i]->agent;

		if (!json_array_has(names, agent) && (!wanted || wanted(r, agent)))
			json_array_append_new(names, json_string(agent));
	}
	return names;
}

static void end_all(struct case_run *r, const json_t *step, const json_t *names, const struct renewal *how)
{
	const json_t *name;
	size_t i;

	json_array_foreach((json_t *)names, i, name)
		how->end(r, step, json_string_value(name));
}

int recover_renew(struct case_run *r, const struct ends *ends, const json_t *step, const struct renewal *how, struct error *e)
{
	json_t *gone = agents_of(r, ends, how->is_gone);
	bool any_gone = json_array_size(gone) > 0;
	json_t *names = any_gone ? json_incref(gone) : agents_of(r, ends, NULL);
	int rc;

	/* Those first: who drains must not wait for them. */
	end_all(r, step, gone, how);
	rc = recover_drain(r, ends, e);
	if (rc && rc != -EBUSY)
		goto free_names;
	recover_phase(r, step, "drained", r->attempt, rc ? e->text : NULL);
	if (!any_gone)
		end_all(r, step, names, how);
	rc = how->begin(r, names, e);
	if (!rc)
		rc = recover_remake(r, ends, step, e);
	if (rc)
		goto free_names;
	recover_phase(r, step, "told", r->attempt, NULL);
	rc = link_up(r, ends, "RTS", "recover", e);
free_names:
	json_decref(names);
	json_decref(gone);
	return rc;
}
