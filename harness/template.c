/* SPDX-License-Identifier: MIT */
#include "template.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../faults/action.h"
#include "../faults/fault.h"
#include "names.h"
#include "units.h"

#define PART_MAX 64
#define COMMENT_COLUMN 36
#define WIDTH 120
#define CONNECTS "  # Makes both ends and takes them to RTS.\n"

static const struct scene *scene_find(const struct scene *table, const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

static bool part_is_name(const char *part, size_t len)
{
	if (!len || len > PART_MAX || !islower((unsigned char)*part) || part[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)part[i]) && !isdigit((unsigned char)part[i]) && part[i] != '-')
			return false;
	return true;
}

int template_check_id(const char *id, struct error *e)
{
	const char *slash = strchr(id, '/');
	size_t area = slash ? (size_t)(slash - id) : 0, len = strlen(id);

	if (len > 5 && !strcmp(id + len - 5, ".yaml"))
		return error_set(e, -EINVAL, "'%.80s': the name without .yaml is wanted", id);
	if (!slash || !part_is_name(id, area) || !part_is_name(slash + 1, strlen(slash + 1)))
		return error_set(e, -EINVAL,
				 "'%.80s' is no AREA/NAME: two parts of small letters, digits and hyphens, "
				 "receive/peer-that-is-slow",
				 id);
	/* Folders of the same tree that hold no scenarios (scenario_find). */
	if ((area == 8 && !strncmp(id, "profiles", area)) || (area == 4 && !strncmp(id, "refs", area)))
		return error_set(e, -EINVAL, "'%.80s': the folder %.*s holds no scenarios", id, (int)area, id);
	return 0;
}

/* ---- the fault's arguments ---- */

/* A value of "name=value name=value", where a value may be a map with spaces in it. */
static bool arg_of(const char *args, const char *name, char *buf, size_t size)
{
	size_t len = strlen(name);

	for (const char *at = args; at && *at;) {
		const char *eq = strchr(at, '='), *end;

		if (!eq)
			return false;
		end = eq[1] == '{' ? strchr(eq, '}') : strchr(eq, ' ');
		end = end ? end + (eq[1] == '{') : eq + strlen(eq);
		if ((size_t)(eq - at) == len && !strncmp(at, name, len)) {
			snprintf(buf, size, "%.*s", (int)(end - eq - 1), eq + 1);
			return true;
		}
		at = *end ? end + 1 : end;
	}
	return false;
}

/* What the parameter is without a word of the scene: true when that can be written down as it is. */
static bool value_of(const struct fault_param *p, char *buf, size_t size)
{
	static const char *const samples[NUM_FAULT_PARAM_TYPES] = {
		[FAULT_PARAM_END] = "b",       [FAULT_PARAM_ENDS] = "b",         [FAULT_PARAM_AGENT] = "b",
		[FAULT_PARAM_DEVICE] = "b",    [FAULT_PARAM_INT] = "1",          [FAULT_PARAM_DURATION] = "1ms",
		[FAULT_PARAM_SIZE] = "64",     [FAULT_PARAM_PERCENT] = "\"5%\"", [FAULT_PARAM_NAME] = "name",
		[FAULT_PARAM_STRING] = "text", [FAULT_PARAM_MAP] = "{ }",
	};
	bool quoted = p->def && strpbrk(p->def, ":#{}[],&*!|>'\"%@`");

	if (p->def && !strncmp(p->def, "QP.", 3)) {
		snprintf(buf, size, "p.b%s", p->def + 2);
		return true;
	}
	if (p->def)
		snprintf(buf, size, quoted ? "\"%s\"" : "%s", p->def);
	else if (p->type == FAULT_PARAM_ENUM)
		snprintf(buf, size, "%s", p->values[0]);
	else
		snprintf(buf, size, "%s", samples[p->type]);
	return p->def || p->required;
}

static void number_text(const struct fault_param *p, int64_t n, char *buf, size_t size)
{
	if (p->type == FAULT_PARAM_DURATION)
		units_format_ns((uint64_t)n, buf, size);
	else
		snprintf(buf, size, "%lld", (long long)n);
}

/* Words of help, in lines that begin with `head`. */
static void put_wrapped(FILE *out, const char *head, const char *text)
{
	while (*text) {
		size_t room = WIDTH - strlen(head), len = strlen(text), cut = len;

		if (len > room) {
			cut = room;
			while (cut && text[cut] != ' ')
				cut--;
			cut = cut ? cut : room;
		}
		fprintf(out, "%s%.*s\n", head, (int)cut, text);
		text += cut;
		text += *text == ' ';
	}
}

static void put_comment(FILE *out, const struct fault_param *p)
{
	char low[32], high[32];

	fputs(p->help ? p->help : "", out);
	if (p->required)
		fputs("; required", out);
	for (size_t i = 0; p->type == FAULT_PARAM_ENUM && p->values && p->values[i]; i++)
		fprintf(out, "%s%s", i ? " | " : "; ", p->values[i]);
	if (p->min || p->max) {
		number_text(p, p->min, low, sizeof(low));
		number_text(p, p->max, high, sizeof(high));
		fprintf(out, "; %s to %s", low, high);
	}
	if (p->unit && p->type == FAULT_PARAM_INT)
		fprintf(out, " %s", p->unit);
	if (p->def)
		fprintf(out, "; default %s", p->def);
}

/* One that need not be given stands in a comment, ready to be taken out of it. Its help stands behind it where there is room. */
static void put_param(FILE *out, const struct fault_param *p, const char *args)
{
	char value[256], *comment = NULL;
	bool given = arg_of(args, p->name, value, sizeof(value));
	bool live = given || value_of(p, value, sizeof(value));
	char line[400];
	int width = snprintf(line, sizeof(line), "        %s%s: %s", live ? "" : "# ", p->name, value);
	size_t len = 0;
	FILE *text = open_memstream(&comment, &len);

	if (text) {
		put_comment(text, p);
		fclose(text);
	}
	width = width < COMMENT_COLUMN ? COMMENT_COLUMN : width + 1;
	if ((size_t)width + 2 + len > WIDTH) {
		put_wrapped(out, "        # ", comment ? comment : "");
		fprintf(out, "%s\n", line);
	} else {
		fprintf(out, "%-*s# %s\n", width, line, comment ? comment : "");
	}
	free(comment);
}

static void put_params(FILE *out, const struct fault_param *params, const char *args)
{
	for (const struct fault_param *p = params; p && p->name; p++)
		put_param(out, p, args);
}

/* The wire's own parameters are those of all its actions: here those of one. */
static void put_wire_params(FILE *out, const struct fault_ops *f, const struct action_ops *action, const char *args)
{
	static const char *const common[] = { "match", "action", "times" };

	for (size_t i = 0; i < sizeof(common) / sizeof(*common); i++)
		for (const struct fault_param *p = f->params; p->name; p++) {
			char value[64];

			if (strcmp(p->name, common[i]) != 0)
				continue;
			snprintf(value, sizeof(value), "action=%s", action->name);
			put_param(out, p, strcmp(p->name, "action") ? args : value);
		}
	put_params(out, action->params, args);
}

static bool is_empty(const struct fault_ops *f)
{
	return !f->params || !f->params[0].name;
}

static void put_fault(FILE *out, const struct fault_ops *f, const struct action_ops *action, const char *args)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s (%s): %s.", f->name, fault_layer_names[f->layer], f->help);
	put_wrapped(out, "  # ", text);
	if (action) {
		snprintf(text, sizeof(text), "action %s: %s.", action->name, action->help);
		put_wrapped(out, "  # ", text);
	}
	snprintf(text, sizeof(text), "What proves that it fired: %s.", f->proof);
	put_wrapped(out, "  # ", text);
	fprintf(out, "  - fault:\n      %s:%s\n", f->name, is_empty(f) ? " {}" : "");
	if (action)
		put_wire_params(out, f, action, args);
	else
		put_params(out, f->params, args);
	fputs("      as: trouble                   # its name, for `clear` and `expect`\n", out);
	if (f->clear)
		fputs("      # for: 200ms                  # it ends by itself after so long, without a `clear`\n", out);
}

/* ---- a fault without a scene of its own ---- */

static const struct scene *scene_by_detection(const struct fault_ops *f)
{
	static const struct scene silent = {
		.title = "What goes wrong here leads to silence, and the sender gives up",
		.qp = "{ type: RC, timeout: 14, retry_cnt: 2 }",
		.before = "  - connect:\n",
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"
			 "  - expect:  { of: w, wc: RETRY_EXC_ERR }\n"
			 "  - expect:  { at: a, qp: ERR }\n"
			 "  - clear:   trouble\n"
			 "  - recover: { path: recreate, qp: { timeout: 17, retry_cnt: 6 } }\n",
	};
	static const struct scene unheard = {
		.title = "What goes wrong here harms no message",
		.qp = "{ type: RC, timeout: 17, retry_cnt: 6 }",
		.before = "  - connect:\n",
		.after = "  - post:    { at: a, op: WRITE, size: 4KiB, as: w }\n"
			 "  - expect:  { of: w, wc: SUCCESS, payload: intact }\n"
			 "  - clear:   trouble\n"
			 "  - recover: { path: recreate }\n",
	};
	json_t *none = json_object();
	bool silence = f->detection && f->detection(none) == DETECTION_SILENT;

	json_decref(none);
	return silence ? &silent : &unheard;
}

/* ---- the file ---- */

static void put_head(FILE *out, const char *id, const struct scene *s)
{
	fprintf(out,
		"# scenarios/README.md is the language. `qpdrill check` says where a mistake is, `qpdrill plan` what will run, "
		"with\n"
		"# every default filled in, `qpdrill predict` when its errors must come; `qpdrill run` runs it.\n"
		"qpdrill: 1\n"
		"# One sentence, at most 140 characters: what this file shows.\n"
		"title: %s\n"
		"# Where it comes from: a demand of the specification (scenarios/refs/demands.yaml), a report from the field, an "
		"issue.\n"
		"# refs: [IBTA C9-130]\n"
		"# Words to choose it by; `make run` takes those of `core`.\n"
		"# tags: [%.*s]\n",
		s->title, (int)strcspn(id, "/"), id);
	if (s->top)
		fputs(s->top, out);
	fprintf(out,
		"# Attributes of both ends; `b: { ... }` in it holds those of one. Deadlines follow from them (`qpdrill "
		"predict`).\n"
		"qp: %s\n"
		"steps:\n",
		s->qp);
}

static int no_fault(const char *name, struct error *e)
{
	const char *near = NULL;

	for (const struct fault_ops *const *f = fault_table; *f && !near; f++)
		near = name_is_near(name, (*f)->name) ? (*f)->name : NULL;
	return error_set(e, -ENOENT, "there is no fault '%.60s'%s%s%s (qpdrill list faults)", name, near ? ": did you mean " : "",
			 near ? near : "", near ? "?" : "");
}

int template_write(FILE *out, const char *id, const char *fault, const char *action, struct error *e)
{
	const struct fault_ops *f = fault_find(fault ? fault : TEMPLATE_FAULT);
	const struct action_ops *a = NULL;
	const struct scene *s;

	if (!f)
		return no_fault(fault, e);
	if (!strcmp(f->name, "wire")) {
		a = action_find(action ? action : TEMPLATE_ACTION);
		if (!a)
			return error_set(e, -ENOENT, "the fault wire has no action '%.60s' (qpdrill list actions)", action);
	} else if (action) {
		return error_set(e, -EINVAL, "the fault %s has no actions: they are of the fault wire", f->name);
	}
	s = a ? scene_find(scene_actions, a->name) : scene_find(scene_table, f->name);
	if (!s)
		s = scene_by_detection(f);
	put_head(out, id, s);
	if (s->before)
		fprintf(out, "%s%s\n", CONNECTS, s->before);
	put_fault(out, f, a, s->args);
	if (s->connects)
		fputs("\n" CONNECTS "  - connect:\n", out);
	fputs("\n  # What has to come of it, as the specification says. Whatever is neither expected nor allowed is a failure.\n",
	      out);
	fputs(s->after, out);
	return 0;
}
