/* SPDX-License-Identifier: MIT */
#include "manual.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "roff.h"

/* What argp prints: the filter may make another text of it. Caller frees when *ret_own is set. */
static const char *filtered(const struct argp *argp, int key, const char *text, char **ret_own)
{
	char *made = argp->help_filter ? argp->help_filter(key, text, NULL) : NULL;

	*ret_own = NULL;
	if (!made || made == text)
		return text;
	*ret_own = made;
	return made;
}

static void put_usage(FILE *out, const char *name, const struct argp *argp)
{
	const char *docs = argp->args_doc ? argp->args_doc : "";
	char line[512];

	do {
		size_t len = strcspn(docs, "\n");

		snprintf(line, sizeof(line), "`%s` %s%.*s", name, argp->options ? "[OPTION...] " : "", (int)len, docs);
		roff_text(out, line);
		docs += len;
		if (*docs)
			fputs(".br\n", out);
		docs += *docs == '\n';
	} while (*docs);
}

static void put_option(FILE *out, const struct argp_option *o)
{
	char term[160], letter[8] = "";

	if (isprint(o->key) && o->key > ' ')
		snprintf(letter, sizeof(letter), "-%c%s", o->key, o->name ? ", " : "");
	snprintf(term, sizeof(term), "%s%s%s%s%s", letter, o->name ? "--" : "", o->name ? o->name : "", o->arg ? "=" : "",
		 o->arg ? o->arg : "");
	roff_item(out, term, o->doc ? o->doc : "");
}

static void put_options(FILE *out, const struct argp_option *o)
{
	for (; o && (o->name || o->key || o->doc); o++) {
		if (o->flags & OPTION_HIDDEN)
			continue;
		if (o->name || o->key) {
			put_option(out, o);
		} else {
			fputs(".PP\n", out);
			roff_text(out, o->doc);
		}
	}
}

void manual_argp(FILE *out, const char *name, const struct argp *argp)
{
	const char *doc = argp->doc ? argp->doc : "", *post = strchr(doc, '\v');
	char *before = strndup(doc, post ? (size_t)(post - doc) : strlen(doc)), *own;
	const char *text;

	roff_subsection(out, name);
	put_usage(out, name, argp);
	fputs(".PP\n", out);
	roff_text(out, before ? before : "");
	put_options(out, argp->options);
	text = filtered(argp, ARGP_KEY_HELP_POST_DOC, post ? post + 1 : NULL, &own);
	if (text) {
		fputs(".PP\n", out);
		roff_text(out, text);
	}
	free(own);
	free(before);
}
