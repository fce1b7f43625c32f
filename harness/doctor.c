/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor_internal.h"
#include "file_line.h"
#include "json.h"
#include "log.h"

static const char *const lab_names[NUM_LABS] = { [LAB_GUEST] = "guest", [LAB_RXE] = "rxe" };
static const char *const state_names[] = { [STATE_OK] = "ok", [STATE_NOTE] = "note", [STATE_MISSING] = "missing" };

void doctor_say(struct examination *x, const char *group, const char *check, enum state state, unsigned stops, const char *mend,
		const char *fmt, ...)
{
	json_t *list = json_array();
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	for (int i = 0; i < NUM_LABS; i++)
		if (stops & (1u << i)) {
			json_array_append_new(list, json_string(lab_names[i]));
			if (!*x->why[i])
				snprintf(x->why[i], sizeof(x->why[i]), "%s: %.200s", check, text);
		}
	json_array_append_new(x->checks, json_pack("{s:s,s:s,s:s,s:s,s:s,s:o}", "group", group, "check", check, "state",
						   state_names[state], "says", text, "mend", mend, "stops", list));
}

char *doctor_path(const struct examination *x, const char *path, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s", x->d->root, path);
	return buf;
}

char *doctor_line(const struct examination *x, const char *path, char *buf, size_t size)
{
	char full[4096];

	file_line(doctor_path(x, path, full, sizeof(full)), buf, size);
	return buf;
}

char *doctor_value(const struct examination *x, const char *path, const char *key, char *buf, size_t size)
{
	char full[4096], line[512];
	FILE *in = fopen(doctor_path(x, path, full, sizeof(full)), "re");
	const char *value;

	*buf = 0;
	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		value = line + strlen(key) + strspn(line + strlen(key), " \t");
		snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
		break;
	}
	if (in)
		fclose(in);
	return buf;
}

char *doctor_size(unsigned long long bytes, char *buf, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double n = (double)bytes;
	size_t u = 0;

	for (; n >= 1000 && u + 1 < sizeof(units) / sizeof(*units); u++)
		n /= 1024;
	snprintf(buf, size, "%.*f %s", n < 100 && u && n - (double)(unsigned long long)n > 0.05 ? 1 : 0, n, units[u]);
	return buf;
}

int doctor_examine(const struct doctor *d, json_t **ret, struct error *e)
{
	struct examination x = { .d = d, .checks = json_array() };
	json_t *labs = json_object();
	int rc;

	doctor_host(&x);
	doctor_guest(&x);
	rc = doctor_tools(&x, e);
	for (int i = 0; i < NUM_LABS; i++)
		json_object_set_new(labs, lab_names[i], json_pack("{s:b,s:s}", "possible", !*x.why[i], "why", x.why[i]));
	if (!rc)
		*ret = json_pack("{s:i,s:O,s:O}", "schema", 1, "labs", labs, "checks", x.checks);
	json_decref(labs);
	json_decref(x.checks);
	return rc;
}

static bool is_possible(const json_t *doc, enum lab_kind lab)
{
	return json_bool(json_object_get(json_object_get(doc, "labs"), lab_names[lab]), "possible", false);
}

int doctor_exit_status(const json_t *doc)
{
	return is_possible(doc, LAB_GUEST) || is_possible(doc, LAB_RXE) ? 0 : EXIT_ERROR;
}

static void put_check(FILE *out, const json_t *c, bool colour)
{
	static const char *const colours[][2] = { { "ok", "\033[32m" }, { "note", "\033[33m" }, { "missing", "\033[31m" } };
	const char *state = json_str(c, "state"), *before = "";
	char safe[1500];

	for (size_t i = 0; colour && i < sizeof(colours) / sizeof(*colours); i++)
		before = strcmp(colours[i][0], state) ? before : colours[i][1];
	fprintf(out, "  %s%-8s%s %-20s ", before, state, colour ? "\033[0m" : "",
		log_escape(json_str(c, "check"), safe, sizeof(safe)));
	fprintf(out, "%s\n", log_escape(json_str(c, "says"), safe, sizeof(safe)));
	if (*json_str(c, "mend"))
		fprintf(out, "  %-8s %-20s   %s\n", "", "", log_escape(json_str(c, "mend"), safe, sizeof(safe)));
}

void doctor_text(const json_t *doc, FILE *out, bool colour)
{
	const char *group = "";
	const json_t *c;
	char safe[800];
	size_t i;

	for (int k = 0; k < NUM_LABS; k++) {
		const json_t *lab = json_object_get(json_object_get(doc, "labs"), lab_names[k]);
		bool possible = is_possible(doc, (enum lab_kind)k);

		fprintf(out, "lab %-6s %s%s\n", lab_names[k], possible ? "can run here" : "cannot run here: ",
			possible ? "" : log_escape(json_str(lab, "why"), safe, sizeof(safe)));
	}
	json_array_foreach(json_object_get(doc, "checks"), i, c) {
		if (strcmp(group, json_str(c, "group")))
			fprintf(out, "\n%s\n", json_str(c, "group"));
		group = json_str(c, "group");
		put_check(out, c, colour);
	}
}
