/* SPDX-License-Identifier: MIT */
#include "scenario_yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

struct builder {
	struct ytree *tree;
	struct ynode *stack[YTREE_MAX_DEPTH];
	size_t depth;
	struct ynode *pending_key[YTREE_MAX_DEPTH];
	bool had_document;
	const char *source;
	size_t source_len;
	size_t cursor; /* how far lines and columns have been counted */
	unsigned line, col;
	struct ytree_error *error;
};

void source_place(const char *source, size_t len, size_t pos, unsigned *ret_line, unsigned *ret_col)
{
	unsigned line = 1, col = 1;
	size_t i = len >= 3 && !memcmp(source, "\xef\xbb\xbf", 3) ? 3 : 0;

	for (; i < len && i < pos; i++) {
		if (source[i] == '\n') {
			line++;
			col = 1;
		} else if (((unsigned char)source[i] & 0xc0) != 0x80) {
			col++;
		}
	}
	*ret_line = line;
	*ret_col = col;
}

__attribute__((format(printf, 5, 6))) static int broken(struct ytree_error *e, size_t pos, size_t span, const char *hint,
							const char *fmt, ...)
{
	va_list ap;

	e->pos = pos;
	e->span = span;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	snprintf(e->hint, sizeof(e->hint), "%s", hint ? hint : "");
	return -EINVAL;
}

static struct ynode *new_node(struct ytree *t, enum ynode_kind kind)
{
	struct ynode *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->kind = kind;
	n->next = t->all;
	t->all = n;
	t->n_nodes++;
	return n;
}

struct ynode *ytree_scalar(struct ytree *t, const struct ynode *like, const char *text)
{
	struct ynode *n = new_node(t, YNODE_SCALAR);

	if (!n)
		return NULL;
	n->key = like->key;
	n->pos = like->pos;
	n->span = like->span;
	n->plain = true;
	n->text = strdup(text);
	return n->text ? n : NULL;
}

void ytree_release(struct ytree *t)
{
	struct ynode *next;

	for (struct ynode *n = t->all; n; n = next) {
		next = n->next;
		free(n->text);
		free(n->kids);
		free(n);
	}
	*t = (struct ytree){ 0 };
}

struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	if (!map || map->kind != YNODE_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (!strcmp(map->kids[i]->key->text, key))
			return map->kids[i];
	return NULL;
}

const struct ynode *ynode_place(const struct ynode *n)
{
	return n->key ? n->key : n;
}

static int add_kid(struct ynode *parent, struct ynode *kid)
{
	if (parent->n == parent->cap) {
		size_t cap = parent->cap ? parent->cap * 2 : 4;
		struct ynode **grown =
			realloc(parent->kids, cap * sizeof(*grown)); /* NOLINT(bugprone-sizeof-expression): an array of pointers */

		if (!grown)
			return -ENOMEM;
		parent->kids = grown;
		parent->cap = cap;
	}
	parent->kids[parent->n++] = kid;
	return 0;
}

static struct ynode *new_like(struct ytree *t, const struct ynode *like, enum ynode_kind kind)
{
	struct ynode *n = new_node(t, kind);

	if (!n)
		return NULL;
	n->key = like->key;
	n->pos = like->pos;
	n->span = like->span;
	return n;
}

struct ynode *ytree_map(struct ytree *t, const struct ynode *like)
{
	return new_like(t, like, YNODE_MAP);
}

struct ynode *ytree_list(struct ytree *t, const struct ynode *like)
{
	return new_like(t, like, YNODE_LIST);
}

bool ytree_append(struct ynode *list, struct ynode *item)
{
	return !add_kid(list, item);
}

bool ytree_put(struct ytree *t, struct ynode *map, const char *key, const char *text)
{
	struct ynode *k = ytree_scalar(t, map, key), *v = k ? ytree_scalar(t, map, text) : NULL;

	if (!v)
		return false;
	v->key = k;
	return !add_kid(map, v);
}

/* Puts a finished or just opened node where it belongs. A scalar in a map is first a key, then a value. */
static int place(struct builder *b, struct ynode *n)
{
	struct ynode *parent = b->depth ? b->stack[b->depth - 1] : NULL;

	if (!parent) {
		b->tree->root = n;
		return 0;
	}
	if (parent->kind == YNODE_MAP) {
		struct ynode **key = &b->pending_key[b->depth - 1];

		if (!*key) {
			if (n->kind != YNODE_SCALAR)
				return broken(b->error, n->pos, n->span, NULL, "a map or list cannot be a key");
			*key = n;
			return 0;
		}
		n->key = *key;
		*key = NULL;
	}
	return add_kid(parent, n);
}

/* Tokens come in file order, so that the file is walked once. */
static void count_to(struct builder *b, struct ynode *n)
{
	if (n->pos < b->cursor)
		return;
	for (; b->cursor < n->pos; b->cursor++) {
		if (b->source[b->cursor] == '\n') {
			b->line++;
			b->col = 1;
		} else if (((unsigned char)b->source[b->cursor] & 0xc0) != 0x80) {
			b->col++;
		}
	}
	n->line = b->line;
	n->col = b->col;
}

static size_t mark_pos(const struct fy_mark *m, size_t len)
{
	return m && m->input_pos <= len ? m->input_pos : len;
}

static void set_place(struct builder *b, struct ynode *n, struct fy_token *token)
{
	const struct fy_mark *start = token ? fy_token_start_mark(token) : NULL;
	const struct fy_mark *end = token ? fy_token_end_mark(token) : NULL;
	const struct ynode *parent = b->depth ? b->stack[b->depth - 1] : NULL;
	const struct ynode *key = b->depth ? b->pending_key[b->depth - 1] : NULL;

	if (start) {
		n->pos = mark_pos(start, b->source_len);
		n->span = end && end->input_pos > n->pos ? mark_pos(end, b->source_len) - n->pos : 1;
		count_to(b, n);
		return;
	}
	/* An empty value has no token: it stands where its key does. */
	n->span = 1;
	if (key) {
		n->pos = key->pos;
		n->span = key->span;
	} else if (parent) {
		n->pos = parent->pos;
	}
}

static int open_node(struct builder *b, enum ynode_kind kind, struct fy_token *token)
{
	struct ynode *n = new_node(b->tree, kind);
	int rc;

	if (!n)
		return -ENOMEM;
	set_place(b, n, token);
	n->flow = token && n->pos < b->source_len && strchr("{[", b->source[n->pos]);
	if (b->depth == YTREE_MAX_DEPTH)
		return broken(b->error, n->pos, 1, NULL, "nested deeper than %d levels", YTREE_MAX_DEPTH);
	rc = place(b, n);
	if (rc)
		return rc;
	b->pending_key[b->depth] = NULL;
	b->stack[b->depth++] = n;
	return 0;
}

/* Those of a build with a leak checker; NULL in others. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* libfyaml (0.7.12) loses the list of a text's pieces where there are many, as of one with nine quotes in quotes: some kilobytes.
 * The text itself is the token's, and goes with it. */
static const char *token_text(struct fy_token *token, size_t *ret_len)
{
	const char *text;

	if (__lsan_disable)
		__lsan_disable();
	text = fy_token_get_text(token, ret_len);
	if (__lsan_enable)
		__lsan_enable();
	return text;
}

static int add_scalar(struct builder *b, struct fy_token *token)
{
	struct ynode *n = new_node(b->tree, YNODE_SCALAR);
	size_t len = 0;
	const char *text = token ? token_text(token, &len) : "";
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	if (!n)
		return -ENOMEM;
	set_place(b, n, token);
	n->plain = style == FYSS_PLAIN;
	/* Without its quotes' own place: the caret goes under the text. */
	n->exact = token && n->span == len;
	n->text = text ? strndup(text, len) : strdup("");
	if (!n->text)
		return -ENOMEM;
	return place(b, n);
}

static int refuse_extras(struct builder *b, struct fy_event *ev)
{
	struct fy_token *anchor = NULL, *tag = NULL;

	switch (ev->type) {
	case FYET_SCALAR:
		anchor = ev->scalar.anchor;
		tag = ev->scalar.tag;
		break;
	case FYET_MAPPING_START:
		anchor = ev->mapping_start.anchor;
		tag = ev->mapping_start.tag;
		break;
	case FYET_SEQUENCE_START:
		anchor = ev->sequence_start.anchor;
		tag = ev->sequence_start.tag;
		break;
	case FYET_ALIAS:
		return broken(b->error, mark_pos(fy_token_start_mark(ev->alias.anchor), b->source_len), 1, "write the value out",
			      "YAML aliases are not part of the language");
	default:
		return 0;
	}
	if (anchor)
		return broken(b->error, mark_pos(fy_token_start_mark(anchor), b->source_len), 1, "write the value out",
			      "YAML anchors are not part of the language");
	if (tag)
		return broken(b->error, mark_pos(fy_token_start_mark(tag), b->source_len), 1, NULL,
			      "YAML tags are not part of the language");
	return 0;
}

static int take_event(struct builder *b, struct fy_event *ev)
{
	int rc = refuse_extras(b, ev);

	if (rc)
		return rc;
	switch (ev->type) {
	case FYET_DOCUMENT_START:
		if (b->had_document)
			return broken(b->error,
				      ev->document_start.document_start
					      ? mark_pos(fy_token_start_mark(ev->document_start.document_start), b->source_len)
					      : b->source_len,
				      3, "a file holds one scenario", "a second document");
		b->had_document = true;
		return 0;
	case FYET_MAPPING_START:
		return open_node(b, YNODE_MAP, ev->mapping_start.mapping_start);
	case FYET_SEQUENCE_START:
		return open_node(b, YNODE_LIST, ev->sequence_start.sequence_start);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		b->depth--;
		return 0;
	case FYET_SCALAR:
		return add_scalar(b, ev->scalar.value);
	default:
		return 0;
	}
}

/* Byte of a line and column (from 1, as libfyaml counts: characters). */
static size_t place_to_pos(const char *source, size_t len, int line, int col)
{
	size_t pos = 0;

	for (int i = 1; i < line && pos < len; i++) {
		const char *nl = memchr(source + pos, '\n', len - pos);

		if (!nl)
			return len;
		pos = (size_t)(nl - source) + 1;
	}
	for (int i = 1; i < col && pos < len && source[pos] != '\n'; pos++)
		if (pos + 1 >= len || ((unsigned char)source[pos + 1] & 0xc0) != 0x80)
			i++;
	return pos;
}

static int syntax_error(struct builder *b, struct fy_diag *diag, const char *source)
{
	const struct ynode *top = b->depth ? b->stack[b->depth - 1] : NULL;
	void *iter = NULL;
	struct fy_diag_error *e = fy_diag_errors_iterate(diag, &iter);

	if (!e)
		return broken(b->error, b->source_len, 1, NULL, "not YAML");
	size_t pos = place_to_pos(source, b->source_len, e->line, e->column);

	char hint[160] = "";

	if (e->msg && strstr(e->msg, "flow") && top && top->flow)
		snprintf(hint, sizeof(hint),
			 "the bracket of line %u is open; inside { } and [ ] quote what holds one of { } [ ] , # as in \"p[7].a\"",
			 top->line);
	/* The parser notices a missing bracket at the end of the file; the person looks for the one that was opened. */
	if (e->msg && strstr(e->msg, "closing bra") && top)
		pos = top->pos;
	return broken(b->error, pos, 1, *hint ? hint : NULL, "%s", e->msg ? e->msg : "not YAML");
}

/* libfyaml ends a scalar at an invalid or control character without a word, so they are looked for first. */
static int check_bytes(const char *source, size_t len, struct ytree_error *e)
{
	const unsigned char *s = (const unsigned char *)source;

	for (size_t i = 0; i < len;) {
		uint32_t c;
		size_t n = utf8_decode(s + i, len - i, &c);

		if (!n)
			return broken(e, i, 1, "the file has to be UTF-8", "byte 0x%02x is not UTF-8", s[i]);
		if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f || (c >= 0x80 && c < 0xa0))
			return broken(e, i, n, NULL, "control character U+%04X", c);
		i += n;
	}
	return 0;
}

int ytree_parse(const char *source, size_t len, struct ytree *ret, struct ytree_error *ret_error)
{
	struct ytree tree = { 0 };
	struct builder b = { .tree = &tree, .source = source, .source_len = len, .line = 1, .col = 1, .error = ret_error };
	struct fy_diag_cfg diag_cfg;
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct fy_event *ev;
	int rc;

	*ret_error = (struct ytree_error){ 0 };
	if (len > YTREE_MAX_BYTES)
		return broken(ret_error, 0, 1, NULL, "the file has %zu bytes; at most %u are read", len, YTREE_MAX_BYTES);
	rc = check_bytes(source, len, ret_error);
	if (rc)
		return rc;
	/* A byte order mark is no character of the first line. */
	if (len >= 3 && !memcmp(source, "\xef\xbb\xbf", 3))
		b.cursor = 3;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.level = FYET_ERROR;
	diag = fy_diag_create(&diag_cfg);
	if (!diag)
		return -ENOMEM;
	fy_diag_set_collect_errors(diag, true);
	struct fy_parse_cfg cfg = { .flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE, .diag = diag };

	rc = -ENOMEM;
	parser = fy_parser_create(&cfg);
	if (!parser)
		goto destroy_diag;
	if (fy_parser_set_string(parser, source, len))
		goto destroy_parser;
	for (rc = 0; !rc && (ev = fy_parser_parse(parser)); fy_parser_event_free(parser, ev))
		rc = take_event(&b, ev);
	if (!rc && fy_parser_get_stream_error(parser))
		rc = syntax_error(&b, diag, source);
	if (!rc) {
		*ret = tree;
		tree = (struct ytree){ 0 };
	}
destroy_parser:
	fy_parser_destroy(parser);
destroy_diag:
	fy_diag_destroy(diag);
	ytree_release(&tree);
	return rc;
}
