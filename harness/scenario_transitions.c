/* SPDX-License-Identifier: MIT */
/* A sweep over moves between states: its rows are made from the table of transitions, and then are rows like any others. */
#include "scenario_loader.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "attr.h"
#include "json.h"

static const char *const moves_words[] = { "legal", "demanding", "illegal", NULL };

const struct gkey grammar_transition[] = {
	{ "type", G_WORDS, G_REQUIRED, .names = &names_qp_type, .help = "types of QP" },
	{ "from", G_WORDS, 0, .names = &names_state, .help = "where the moves begin; default all that a modify reaches" },
	{ "to", G_WORDS, 0, .names = &names_state, .help = "where they lead; default all seven" },
	{ "moves", G_WORD, G_REQUIRED, .words = moves_words,
	  .help = "`legal`: those that the specification has; `demanding`: of these, those that require attributes; `illegal`: the "
		  "others" },
	{ .name = NULL },
};
static const struct gmap transition_map = { .what = "`transition`", .keys = grammar_transition };

struct ynode *sweep_transition(const struct ynode *sweep)
{
	struct ynode *value = ynode_get(sweep, "transition");

	return value && value->kind == YNODE_MAP && !ynode_get(value, "packets") ? value : NULL;
}

static bool wanted(const char *moves, int type, int from, int to)
{
	const struct transition *t = transition_find(type, from, to);

	if (!strcmp(moves, "illegal"))
		return !t && !transition_contested(from, to);
	return t && (strcmp(moves, "demanding") || t->required);
}

/* Those that were named, or all; SQE is entered by a failing send queue alone. */
static bool chosen(const json_t *names, int value, bool from)
{
	if (!names)
		return !from || value != IBV_QPS_SQE;
	return json_array_has(names, name_of(&names_state, value));
}

static bool add_row(struct loader *l, struct ynode *rows, const char *type, int from, int to)
{
	struct ynode *row = ytree_map(&l->tree, rows);

	return row && ytree_put(&l->tree, row, "type", type) && ytree_put(&l->tree, row, "from", name_of(&names_state, from)) &&
	       ytree_put(&l->tree, row, "to", name_of(&names_state, to)) && ytree_append(rows, row);
}

static bool add_rows(struct loader *l, struct ynode *rows, const json_t *what)
{
	const json_t *froms = json_object_get(what, "from"), *tos = json_object_get(what, "to"), *type;
	const char *moves = json_string_value(json_object_get(what, "moves"));
	size_t i;

	json_array_foreach(json_object_get(what, "type"), i, type) {
		int value = name_find(&names_qp_type, json_string_value(type))->value;

		for (size_t f = 0; f < names_state.n; f++)
			for (size_t t = 0; t < names_state.n; t++) {
				int from = names_state.rows[f].value, to = names_state.rows[t].value;

				if (chosen(froms, from, true) && chosen(tos, to, false) && wanted(moves, value, from, to) &&
				    !add_row(l, rows, json_string_value(type), from, to))
					return false;
			}
	}
	return true;
}

struct ynode *transition_rows(struct loader *l, struct ynode *sweep)
{
	struct ynode *value = sweep_transition(sweep), *rows;
	size_t before = l->n_errors;
	json_t *what;

	if (sweep->n > 1) {
		complain(l, value->key, "write another file", "a sweep over transitions stands alone");
		return NULL;
	}
	what = map_parse(l, value, &transition_map);
	if (l->n_errors != before) {
		json_decref(what);
		return NULL;
	}
	rows = ytree_list(&l->tree, sweep);
	if (rows && !add_rows(l, rows, what))
		rows = NULL;
	json_decref(what);
	if (rows && !rows->n) {
		complain(l, value->key, NULL, "no move is of this kind");
		return NULL;
	}
	return rows;
}
