/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

extern const struct report_ops report_text, report_json, report_junit, report_html;

const struct report_ops *const report_table[] = { &report_text, &report_json, &report_junit, &report_html, NULL };

const struct report_ops *report_find(const char *name)
{
	for (const struct report_ops *const *r = report_table; *r; r++)
		if (!strcmp((*r)->name, name))
			return *r;
	return NULL;
}

/* Written beside and renamed, so that a report is whole or not there. */
static int write_one(const struct report_run *run, const struct report_ops *ops, struct error *e)
{
	char path[4096], fresh[4096 + 8];
	FILE *out;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", run->dir, ops->file);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	out = fopen(fresh, "we");
	if (!out)
		return error_set(e, -errno, "%s: %s", path, strerror(errno));
	rc = ops->write(run, out, false, e);
	if (fclose(out) == EOF && !rc)
		rc = error_set(e, -errno, "%s: cannot write: %s", path, strerror(errno));
	if (!rc && rename(fresh, path) < 0)
		rc = error_set(e, -errno, "%s: %s", path, strerror(errno));
	if (rc)
		unlink(fresh);
	return rc;
}

int report_write_all(const struct report_run *r, struct error *e)
{
	for (const struct report_ops *const *ops = report_table; *ops; ops++) {
		int rc = (*ops)->file ? write_one(r, *ops, e) : 0;

		if (rc)
			return rc;
	}
	return 0;
}
