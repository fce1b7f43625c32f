/* SPDX-License-Identifier: MIT */
/* What follows from a first pass: a case for each packet that it has found. */
#include "run.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* No id has it. */
#define DIGITS '#'

const char *run_packet_place(const char *id, const json_t *doc, const char **ret_tail)
{
	const char *name = json_str(json_object_get(doc, "first_pass"), "name"), *at;
	char key[128];

	if (!name)
		return NULL;
	snprintf(key, sizeof(key), "~%s=" SCENARIO_FIRST_PASS, name);
	at = strstr(id, key);
	if (!at)
		return NULL;
	*ret_tail = at + strlen(key);
	return *ret_tail - strlen(SCENARIO_FIRST_PASS);
}

static const char *packet_place(const struct scenario_case *pass, const char **ret_tail)
{
	return pass->first_pass ? run_packet_place(pass->id, pass->doc, ret_tail) : NULL;
}

/* The length of what stands for one character: `?`, `[a-z]`, `\\*`, `x`. */
static size_t atom_length(const char *glob)
{
	const char *end;

	if (*glob == '\\' && glob[1])
		return 2;
	if (*glob != '[')
		return 1;
	/* A bracket that comes first is a member. */
	end = glob + 1 + (glob[1] == '!' || glob[1] == '^');
	end = strchr(*end == ']' ? end + 1 : end, ']');
	return end ? (size_t)(end - glob) + 1 : 1;
}

static bool atom_fits(const char *glob, size_t len, char c)
{
	char atom[64], text[2] = { c, '\0' };

	if (len >= sizeof(atom))
		return true;
	memcpy(atom, glob, len);
	atom[len] = '\0';
	return !fnmatch(atom, text, 0);
}

static bool atom_fits_digit(const char *glob, size_t len)
{
	bool fits = false;

	for (int c = '0'; c <= '9'; c++)
		fits |= atom_fits(glob, len, (char)c);
	return fits;
}

/* at[i]: the glob so far may match what is before the i-th of n characters. One more atom of it, into next. */
static void match_atom(const bool *at, bool *next, const char *id, size_t n, const char *glob, size_t len)
{
	const bool fits_digit = atom_fits_digit(glob, len);

	memset(next, 0, n + 1);
	for (size_t i = 0; i < n; i++) {
		if (!at[i])
			continue;
		if (id[i] != DIGITS) {
			next[i + 1] |= atom_fits(glob, len, id[i]);
			continue;
		}
		/* Its only digit, or one of more. */
		next[i + 1] |= fits_digit;
		next[i] |= fits_digit;
	}
}

/* Whether a glob matches an id in which DIGITS stands for one or more of them; in a time that grows with both, not with the power
 * of the stars. */
static bool may_match(const char *glob, const char *id)
{
	const size_t n = strlen(id);
	bool *at = calloc(2, n + 1), *next = at ? at + n + 1 : NULL, *both = at, matches;

	if (!at)
		return true;
	at[0] = true;
	for (size_t len; *glob; glob += len) {
		bool *swap = at;

		len = atom_length(glob);
		if (*glob == '*') {
			for (size_t i = 1; i <= n; i++)
				at[i] |= at[i - 1];
			continue;
		}
		match_atom(at, next, id, n, glob, len);
		at = next;
		next = swap;
	}
	matches = at[n];
	free(both);
	return matches;
}

/* from: as a packet's name has it, DIGITS for what a count makes many of. */
static bool any_class_matches(const struct run_cases *list, const struct scenario_case *pass, const char *from)
{
	const char *tail, *hole = packet_place(pass, &tail);
	bool possible = false;

	for (int k = 0; hole && scenario_packet_class_name(k) && !possible; k++) {
		char *id;

		if (asprintf(&id, "%.*s%s.%s.%c%s", (int)(hole - pass->id), pass->id, from, scenario_packet_class_name(k), DIGITS,
			     tail) < 0)
			return true;
		for (size_t g = 0; g < list->n_globs; g++)
			possible |= may_match(list->globs[g], id);
		free(id);
	}
	return possible;
}

static bool any_end_matches(const struct run_cases *list, const struct scenario_case *pass, const char *pair, const json_t *of_pair,
			    const char *agent)
{
	char from[128];

	if (any_class_matches(list, pass, agent))
		return true;
	if (json_int(of_pair, "count", 1) > 1)
		snprintf(from, sizeof(from), "%s_%c_.%s", pair, DIGITS, agent);
	else
		snprintf(from, sizeof(from), "%s.%s", pair, agent);
	return any_class_matches(list, pass, from);
}

bool run_follow_possible(const struct run_cases *list, const struct scenario_case *pass)
{
	json_t *pairs = json_object_get(pass->doc, "pairs"), *pair, *end;
	const char *name;
	size_t i;

	if (!pass->first_pass)
		return false;
	if (!pairs)
		return any_end_matches(list, pass, "p", NULL, "a") || any_end_matches(list, pass, "p", NULL, "b");
	json_object_foreach(pairs, name, pair)
		json_array_foreach(json_object_get(pair, "ends"), i, end)
			if (any_end_matches(list, pass, name, pair, json_string_value(end)))
				return true;
	return false;
}

/* The packet that a glob names when it is the whole id of a case. New reference or NULL. */
static json_t *packet_named(const char *glob, const struct scenario_case *pass)
{
	const char *tail, *hole = packet_place(pass, &tail);
	size_t head = hole ? (size_t)(hole - pass->id) : 0, len = strlen(glob);
	char *name;
	json_t *packet;

	if (!hole || len <= head + strlen(tail) || strncmp(glob, pass->id, head) || strcmp(glob + len - strlen(tail), tail))
		return NULL;
	name = strndup(glob + head, len - head - strlen(tail));
	packet = name ? scenario_packet_parse(name) : NULL;
	free(name);
	return packet;
}

static bool has_packet(const json_t *packets, const json_t *packet)
{
	size_t i;
	const json_t *other;

	json_array_foreach(packets, i, other)
		if (json_equal(other, packet))
			return true;
	return false;
}

/* What was found and what was named. */
static json_t *all_packets(const struct run_cases *list, const struct scenario_case *pass, const json_t *found)
{
	json_t *all = found ? json_deep_copy(found) : json_array();

	for (size_t g = 0; g < list->n_globs; g++) {
		json_t *packet = packet_named(list->globs[g], pass);

		if (packet && !has_packet(all, packet))
			json_array_append(all, packet);
		json_decref(packet);
	}
	return all;
}

static int add_case(struct run_cases *list, size_t pass, const struct scenario_case *source, const struct plan_options *o,
		    struct error *e)
{
	struct run_case *grown = reallocarray(list->cases, list->n + 1, sizeof(*grown)), *c;
	const char *repetition;

	if (!grown)
		return error_set(e, -ENOMEM, "out of memory");
	list->cases = grown;
	c = &grown[list->n];
	/* What comes after the pass' own id is ~rN. */
	repetition = grown[pass].id + strlen(grown[pass].source->id);
	*c = (struct run_case){ .scenario = grown[pass].scenario, .source = source, .place = grown[pass].place };
	list->n++;
	if (asprintf(&c->id, "%s%s", source->id, repetition) < 0)
		c->id = NULL;
	c->dir = c->id ? run_case_dir(c->id) : NULL;
	if (!c->dir)
		return error_set(e, -ENOMEM, "out of memory");
	return run_case_plan(c, o, e);
}

static int keep_followers(struct run_cases *list, struct scenario *s)
{
	struct scenario **grown = reallocarray(list->followers, list->n_followers + 1, sizeof(struct scenario *));

	if (!grown)
		return -ENOMEM;
	list->followers = grown;
	grown[list->n_followers++] = s;
	return 0;
}

int run_cases_follow(struct run_cases *list, size_t i, const json_t *packets, const struct plan_options *o, struct error *e)
{
	const struct run_case *pass = &list->cases[i];
	struct scenario *s = calloc(1, sizeof(*s));
	json_t *all = all_packets(list, pass->source, packets);
	int rc = s && all ? scenario_follow(pass->scenario, pass->source, all, s, e) : error_set(e, -ENOMEM, "out of memory");

	json_decref(all);
	if (!rc && keep_followers(list, s)) {
		scenario_release(s);
		rc = error_set(e, -ENOMEM, "out of memory");
	}
	if (rc) {
		free(s);
		return rc;
	}
	for (size_t k = 0; k < s->n_cases && !rc; k++) {
		struct run_case follower = { .source = &s->cases[k] };

		if (run_case_selected(list, &follower))
			rc = add_case(list, i, &s->cases[k], o, e);
	}
	return rc;
}

size_t *run_cases_order(const struct run_cases *list)
{
	size_t *order = calloc(list->n + 1, sizeof(*order)), n = 0;

	/* Followers of a pass come after it, and after each other as they were added. */
	for (size_t i = 0; order && i < list->n; i++) {
		if (list->cases[i].place != i)
			continue;
		order[n++] = i;
		for (size_t k = i + 1; k < list->n; k++)
			if (list->cases[k].place == i)
				order[n++] = k;
	}
	return order;
}
