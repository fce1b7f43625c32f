/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "scenario_loader.h"

static void case_reset(struct loader *l)
{
	json_decref(l->doc);
	json_decref(l->agents);
	json_decref(l->pairs);
	json_decref(l->objects);
	json_decref(l->labels);
	l->doc = l->agents = l->pairs = l->objects = l->labels = NULL;
	l->n_steps = l->nesting = 0;
	l->cm = l->cm_keeps = l->attrs_changed = l->touched = l->posted = l->over = false;
}

static void case_begin(struct loader *l)
{
	case_reset(l);
	l->agents = json_pack("{s:{s:s},s:{s:s}}", "a", "device", "a", "b", "device", "b");
	l->pairs = json_pack("{s:{s:[s,s]}}", "p", "ends", "a", "b");
	l->objects = json_object();
	l->labels = json_object();
	l->doc = json_object();
}

/* Agents of the file's own without pairs: the default pair is of a and b. */
static void check_default_pair(struct loader *l, struct ynode *root)
{
	struct ynode *agents = ynode_get(root, "agents");

	if (!agents || ynode_get(root, "pairs") || (json_object_get(l->agents, "a") && json_object_get(l->agents, "b")))
		return;
	complain(l, agents->key, "`pairs: { p: { ends: [x, y] } }`",
		 "the default pair is of agents `a` and `b`: the file has to say its `pairs`");
}

static void check_agent_names(struct loader *l, struct ynode *root)
{
	struct ynode *agents = ynode_get(root, "agents");

	for (size_t i = 0; agents && agents->kind == YNODE_MAP && i < agents->n; i++) {
		struct ynode *key = agents->kids[i]->key;

		if (attr_find(key->text) || !strcmp(key->text, "api"))
			complain(l, key, "choose another name", "`%s` is an attribute of QPs: under `qp:` it could mean either",
				 key->text);
	}
}

static void check_pairs_number(struct loader *l, const struct ynode *pairs)
{
	const json_t *pair;
	const char *name;
	int64_t n = 0;

	json_object_foreach(json_object_get(l->doc, "pairs"), name, pair)
		n += json_int(pair, "count", 1);
	if (n > GRAMMAR_MAX_PAIRS)
		complain(l, pairs->key, NULL, "%lld pairs of QPs; at most %d", (long long)n, GRAMMAR_MAX_PAIRS);
}

/* Table order, each key kept in l->doc at once: what follows may look there. */
static void read_file(struct loader *l, struct ynode *root)
{
	for (const struct gkey *k = grammar_file.keys; k->name; k++) {
		struct ynode *kid = ynode_get(root, k->name);
		json_t *value;

		if (!kid) {
			if (k->flags & G_REQUIRED)
				complain(l, root, NULL, "the file has no `%s:` (%s)", k->name, k->help);
			if (!strcmp(k->name, "pairs"))
				check_default_pair(l, root);
			continue;
		}
		if (k->type == G_SWEEP)
			continue;
		if (k->type == G_STEPS && !l->n_errors)
			fit_objects(l, root);
		value = value_parse(l, kid, k);
		if (value)
			json_object_set_new(l->doc, k->name, value);
		if (value && !strcmp(k->name, "pairs"))
			check_pairs_number(l, kid);
	}
	if (sweep_packets(l->sweep))
		packets_finish(l, sweep_packets(l->sweep));
	if (!l->n_errors)
		fit_attrs(l, root);
}

static void check_top(struct loader *l, struct ynode *root)
{
	struct word_list w = { .n = 0 };
	char hint[HINT_SIZE];

	for (const struct gkey *k = grammar_file.keys; k->name; k++)
		words_add(&w, k->name);
	for (size_t i = 0; i < root->n; i++) {
		const struct ynode *key = root->kids[i]->key;
		bool known = false;

		for (size_t j = 0; j < w.n; j++)
			known = known || !strcmp(w.word[j], key->text);
		if (!known && !root->kids[i]->bad)
			complain(l, key, words_hint(&w, key->text, hint, sizeof(hint)), "unknown key `%s`", key->text);
	}
	if (root->n && ynode_get(root, "qpdrill") && strcmp(root->kids[0]->key->text, "qpdrill"))
		complain(l, ynode_get(root, "qpdrill")->key, NULL, "`qpdrill: 1` has to be the first key");
	check_agent_names(l, root);
}

static void check_used(struct loader *l)
{
	for (size_t i = 0; i < l->n_vars; i++)
		if (!l->vars[i].used)
			complain(l, l->vars[i].key, "it is written `${name}`, in quotes inside { }", "`%s` is swept but never used",
				 l->vars[i].key->text);
}

static int case_keep(struct loader *l, struct ynode *sweep, const char *id, struct scenario *s)
{
	struct scenario_case *c = &s->cases[s->n_cases];
	char *suffix;
	int rc = sweep_name(l, &c->sweep, &suffix);

	if (rc)
		return rc;
	if (asprintf(&c->id, "%s%s", id, suffix) < 0)
		c->id = NULL;
	free(suffix);
	if (!c->id)
		return -ENOMEM;
	c->doc = json_incref(l->doc);
	for (size_t i = 0; i < s->n_cases; i++)
		if (!strcmp(s->cases[i].id, c->id))
			complain(l, sweep->key, "values that differ only in characters unfit for a file name, or equal rows",
				 "two cases of this sweep have the same id `%s`", c->id);
	s->n_cases++;
	return 0;
}

static void read_row(struct loader *l, struct ynode *root, enum sweep_mode mode, size_t row)
{
	case_begin(l);
	l->mode = mode;
	sweep_select(l, l->sweep, row);
	read_file(l, root);
}

static int load_row(struct loader *l, struct ynode *root, size_t row, const char *id, struct scenario *s)
{
	struct ynode *sweep = l->sweep;
	bool first_pass = sweep_packets(sweep) != NULL;

	if (first_pass)
		read_row(l, root, SWEEP_CHECKED, row);
	/* What is wrong in it would only be found a second time. */
	if (!first_pass || !l->n_errors)
		read_row(l, root, first_pass ? SWEEP_FIRST_PASS : SWEEP_PLAIN, row);
	s->cases[s->n_cases].row = row;
	s->cases[s->n_cases].first_pass = first_pass;
	return case_keep(l, sweep, id, s);
}

static int load_followers(struct loader *l, struct ynode *root, const char *id, struct scenario *s)
{
	int rc = 0;
	size_t i;
	const json_t *packet;

	s->cases = calloc(json_array_size(l->packets) + 1, sizeof(*s->cases));
	if (!s->cases)
		return -ENOMEM;
	json_array_foreach(l->packets, i, packet) {
		l->packet = packet;
		read_row(l, root, SWEEP_PACKET, l->only_row);
		s->cases[s->n_cases].row = l->only_row;
		rc = case_keep(l, l->sweep, id, s);
		if (rc || l->n_errors)
			break;
	}
	return rc;
}

static int load_cases(struct loader *l, struct ynode *root, const char *id, struct scenario *s)
{
	struct ynode *sweep = ynode_get(root, "sweep");
	size_t n = 0;
	int rc = 0;

	if (sweep_transition(sweep))
		sweep = transition_rows(l, sweep);
	l->sweep = sweep;
	if (sweep || !ynode_get(root, "sweep"))
		n = sweep_count(l, sweep);

	if (n && l->packets)
		return load_followers(l, root, id, s);
	if (n && l->tree.n_nodes * n > GRAMMAR_MAX_WORK) {
		complain(l, sweep ? sweep->key : root, NULL, "%zu cases of a file with %zu tokens are more than the harness loads",
			 n, l->tree.n_nodes);
		n = 0;
	}
	/* Without a good sweep no `${}` means anything. */
	if (!n)
		return -EINVAL;
	s->cases = calloc(n, sizeof(*s->cases));
	if (!s->cases)
		return -ENOMEM;
	for (size_t i = 0; i < n && !rc && l->n_mistakes < MISTAKES_MAX; i++)
		rc = load_row(l, root, i, id, s);
	if (!rc && !l->n_errors)
		fit_attrs_finish(l);
	if (!rc && !l->n_errors)
		check_used(l);
	return rc;
}

static void syntax_mistake(struct loader *l, const struct ytree_error *e)
{
	struct ynode at = { .pos = e->pos, .span = e->span };

	complain(l, &at, *e->hint ? e->hint : NULL, "%s", e->text);
}

static int load(struct loader *l, const char *id, struct scenario *s)
{
	struct ytree_error error;
	struct ynode *root;
	int rc = ytree_parse(l->source, l->len, &l->tree, &error);

	if (rc == -EINVAL)
		syntax_mistake(l, &error);
	if (rc)
		return rc;
	root = l->tree.root;
	if (!root || root->kind != YNODE_MAP) {
		struct ynode top = { .pos = root ? root->pos : 0, .span = 1 };

		complain(l, &top, "`qpdrill: 1`, `title: ...`, `steps: [...]`",
			 root ? "a scenario is a map of keys" : "the file is empty");
		return -EINVAL;
	}
	check_tree(l);
	check_top(l, root);
	rc = load_cases(l, root, id, s);
	if (!rc && l->n_errors)
		rc = -EINVAL;
	return rc;
}

/* what: what is to be loaded of it (packets, only_row). */
static int load_text(const char *text, size_t len, const char *path, const char *id, const struct loader *what,
		     struct scenario *ret, struct diag *d)
{
	struct scenario s = { 0 };
	struct loader l = *what;
	int rc = -ENOMEM;

	l.path = path;
	l.len = len;
	s.source = malloc(len + 1);
	s.path = strdup(path);
	s.id = strdup(id);
	if (!s.source || !s.path || !s.id)
		goto release;
	if (len)
		memcpy(s.source, text, len);
	s.source[len] = '\0';
	s.source_len = len;
	l.source = s.source;
	rc = load(&l, id, &s);
	mistakes_render(&l, d);
	mistakes_release(&l);
	case_reset(&l);
	for (size_t i = 0; i < l.n_vars; i++)
		free(l.vars[i].shown);
	ytree_release(&l.tree);
	if (!rc) {
		*ret = s;
		return 0;
	}
release:
	scenario_release(&s);
	return rc;
}

int scenario_load_text(const char *text, size_t len, const char *path, const char *id, struct scenario *ret, struct diag *d)
{
	return load_text(text, len, path, id, &(struct loader){ .packets = NULL }, ret, d);
}

int scenario_follow(const struct scenario *s, const struct scenario_case *pass, const json_t *packets, struct scenario *ret,
		    struct error *e)
{
	const struct loader what = { .packets = packets, .only_row = pass->row };
	struct diag d = { 0 };
	int rc;

	if (json_array_size(packets) > GRAMMAR_MAX_CASES)
		return error_set(e, -E2BIG,
				 "%s: %zu packets would make as many cases, at most %d: sweep over fewer (`from`, `class`, `psn`)",
				 pass->id, json_array_size(packets), GRAMMAR_MAX_CASES);
	rc = load_text(s->source, s->source_len, s->path, s->id, &what, ret, &d);
	if (rc)
		error_set(e, rc, "%s: the cases that follow from it cannot be made: %s", pass->id, d.text ? d.text : strerror(-rc));
	diag_release(&d);
	return rc;
}

static int read_all(FILE *f, char **ret, size_t *ret_len)
{
	size_t cap = 65536, len = 0, n;
	char *buf = malloc(cap);

	if (!buf)
		return -ENOMEM;
	/* One byte more than is allowed shows that there is more. */
	while ((n = fread(buf + len, 1, cap - len, f)) > 0) {
		len += n;
		if (len > YTREE_MAX_BYTES)
			break;
		if (len == cap) {
			char *grown = realloc(buf, cap * 2);

			if (!grown) {
				free(buf);
				return -ENOMEM;
			}
			buf = grown;
			cap *= 2;
		}
	}
	if (ferror(f)) {
		int rc = errno ? -errno : -EIO;

		free(buf);
		return rc;
	}
	*ret = buf;
	*ret_len = len;
	return 0;
}

int scenario_load(const char *path, const char *id, struct scenario *ret, struct diag *d, struct error *e)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (!f) {
		rc = -errno;
		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	}
	if (is_stdin && feof(f))
		return error_set(e, -EALREADY, "standard input has been read: - stands for one scenario, once");
	errno = 0;
	rc = read_all(f, &text, &len);
	if (!is_stdin)
		fclose(f);
	if (rc)
		return error_set(e, rc, "%s: %s", path, strerror(-rc));
	rc = scenario_load_text(text, len, is_stdin ? SCENARIO_STDIN : path, id, ret, d);
	free(text);
	if (rc == -EINVAL)
		error_set(e, rc, "%s: not a good scenario", path);
	else if (rc)
		error_set(e, rc, "%s: %s", path, strerror(-rc));
	return rc;
}

void scenario_release(struct scenario *s)
{
	for (size_t i = 0; i < s->n_cases; i++) {
		free(s->cases[i].id);
		json_decref(s->cases[i].sweep);
		json_decref(s->cases[i].doc);
	}
	free(s->cases);
	free(s->path);
	free(s->id);
	free(s->source);
	*s = (struct scenario){ 0 };
}
