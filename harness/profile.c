/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attr.h"
#include "json.h"
#include "names.h"
#include "scenario_yaml.h"
#include "units.h"

#define PROFILE_MAX_BYTES (1u << 20)

struct reader {
	struct diag *d;
	const char *path, *source;
	size_t len;
};

enum value_kind {
	VALUE_INVALID,
	VALUE_TEXT,
	VALUE_NAME,
	VALUE_NAMES,
	VALUE_ENUM,
	VALUE_INT,
	VALUE_DURATION,
	VALUE_TEXTS,
	VALUE_MAP
};

struct field {
	const char *key;
	enum value_kind kind;
	const struct name_table *names;
	const char *const *values;
	const struct field *sub; /* VALUE_MAP */
	bool required, none;     /* none: no name but `none` is a value, too */
};

static const char *const sides[] = { "send", "recv", NULL };
static const char *const recoveries[] = { "fails", "verified", NULL };
static const char *const roles[] = { "requester", "responder", NULL };
static const char *const detections[] = { "local", "nak", "seq-nak", "rnr", "silent", "none", NULL };
static const char *const psn_halves[] = { "lower", "upper", NULL };
static const char *const mtus[] = { "same", "differs", NULL };
static const char *const receives[] = { "short", "long", NULL };
static const char *const qkeys[] = { "wrong", "own", NULL };
static const char *const wrong_keys[] = { "wrong", "old", NULL };
static const char *const payloads[] = { "intact", "absent", "partial", "stale", NULL };
static const char *const completion_events[] = { "comes", "none", NULL };
static const char *const groups[] = { "all_nodes", "other", NULL };
static const char *const notifies[] = { "asked", "unasked", "again", NULL };
static const char *const links[] = { "direct", "wire", NULL };
static const char *const fault_ends[] = { "own", "peer", NULL };
static const char *const arms[] = { "next", "solicited", NULL };
static const char *const data[] = { "inline_segments", NULL };
static const char *const apis[] = { "classic", "extended", NULL };
static const char *const targets[] = { "beyond_window", "misaligned", NULL };
static const char *const holes[] = { "inside", NULL };
static const char *const drains[] = { "outstanding", NULL };
static const char *const checks[] = { "unexpected", "ledger", "cause-first", "state", "payload", "time", NULL };

#define VALUES 11
/* Everything that narrows an entry. `spec`, `event`, `state` and `returns` (of a verb) are the value that the specification wants.
 */
static const struct field when_fields[] = {
	{ .key = "spec", .kind = VALUE_NAME, .names = &names_status },
	{ .key = "event", .kind = VALUE_NAME, .names = &names_event, .none = true }, /* none: that there is no event */
	{ .key = "state", .kind = VALUE_NAME, .names = &names_state },
	{ .key = "returns", .kind = VALUE_NAME, .names = &names_errno },
	{ .key = "refused", .kind = VALUE_NAME, .names = &names_errno }, /* a post that was: no completion may follow */
	{ .key = "recovery", .kind = VALUE_ENUM, .values = recoveries },
	{ .key = "payload", .kind = VALUE_ENUM, .values = payloads }, /* what lies where a request's bytes should be, or not */
	{ .key = "attr", .kind = VALUE_TEXT },                        /* of a queried one that is not as asked for: its name */
	{ .key = "packets", .kind = VALUE_TEXT }, /* of packets that never come: what was asked of them, as in `with` */
	{ .key = "completion_event", .kind = VALUE_ENUM, .values = completion_events }, /* that a `poll` waits for */
	{ .key = "says", .kind = VALUE_TEXT }, /* what a completion should say beside its status: `imm`, `invalidated` */
	{ .key = "queue", .kind = VALUE_ENUM, .values = sides },
	{ .key = "at", .kind = VALUE_ENUM, .values = roles },
	{ .key = "op", .kind = VALUE_NAMES, .names = &names_op },
	{ .key = "type", .kind = VALUE_NAME, .names = &names_qp_type },
	{ .key = "detection", .kind = VALUE_ENUM, .values = detections },
	{ .key = "fault", .kind = VALUE_TEXT },
	{ .key = "fault_at", .kind = VALUE_ENUM, .values = fault_ends }, /* whose end the fault was given */
	{ .key = "with", .kind = VALUE_TEXTS },                          /* arguments that the fault was given, all of them */
	{ .key = "psn", .kind = VALUE_ENUM, .values = psn_halves },      /* where the QP's own sq_psn lies */
	{ .key = "path_mtu", .kind = VALUE_ENUM, .values = mtus },       /* the QP's own and its peer's */
	{ .key = "posted_in", .kind = VALUE_NAME, .names = &names_state },
	{ .key = "in", .kind = VALUE_NAME, .names = &names_state },  /* the state of the QP when it is judged */
	{ .key = "notify", .kind = VALUE_ENUM, .values = notifies }, /* SQ_DRAINED, by the newest move into SQD */
	{ .key = "path", .kind = VALUE_TEXT },                       /* of a recovery */
	{ .key = "move", .kind = VALUE_TEXTS },                      /* `INIT->RTS`: what a modify was to do, any of them */
	{ .key = "set", .kind = VALUE_TEXTS }, /* attributes that a modify was given, all of them; as `with` */
	{ .key = "lkey", .kind = VALUE_ENUM, .values = wrong_keys },
	{ .key = "rkey", .kind = VALUE_ENUM, .values = wrong_keys },
	{ .key = "data", .kind = VALUE_ENUM, .values = data },    /* of a request: where it lies */
	{ .key = "api", .kind = VALUE_ENUM, .values = apis },     /* of the QP */
	{ .key = "to", .kind = VALUE_ENUM, .values = targets },   /* where in the peer's memory the access was */
	{ .key = "size", .kind = VALUE_TEXT },                    /* of a request; also N..M */
	{ .key = "hole", .kind = VALUE_ENUM, .values = holes },   /* the wire kept one back that was not the first of its message */
	{ .key = "drain", .kind = VALUE_ENUM, .values = drains }, /* sends had no end when their QP went to SQD */
	{ .key = "timeout", .kind = VALUE_TEXT },                 /* also N..M */
	{ .key = "retry_cnt", .kind = VALUE_INT },
	{ .key = "rnr_retry", .kind = VALUE_INT },
	{ .key = "peer", .kind = VALUE_NAMES, .names = &names_status }, /* how a request of the peer ended, or should have */
	{ .key = "own", .kind = VALUE_NAMES, .names = &names_status },  /* the same of a request of its own */
	{ .key = "receive", .kind = VALUE_ENUM, .values = receives },   /* beside the longest message of the peer */
	{ .key = "peer_qkey", .kind = VALUE_ENUM, .values = qkeys },    /* of the peer's newest request */
	{ .key = "group", .kind = VALUE_ENUM, .values = groups },       /* of IPv6, to which that request goes */
	{ .key = "link", .kind = VALUE_ENUM, .values = links },         /* whether a process carries the packets from end to end */
	{ .key = "arm", .kind = VALUE_ENUM, .values = arms },           /* what a completion event was asked for */
	{ .key = "completion", .kind = VALUE_NAME, .names = &names_status }, /* the first one that the CQ held since */
	{ .key = NULL },
};
static const struct field kernel_fields[] = {
	{ .key = "from", .kind = VALUE_TEXT },
	{ .key = "before", .kind = VALUE_TEXT },
	{ .key = NULL },
};
static const struct field entry_fields[] = {
	{ .key = "id", .kind = VALUE_TEXT, .required = true },
	{ .key = "provider", .kind = VALUE_TEXT, .required = true },
	{ .key = "kernel", .kind = VALUE_MAP, .sub = kernel_fields },
	{ .key = "rdma_core", .kind = VALUE_MAP, .sub = kernel_fields },
	{ .key = "seen", .kind = VALUE_TEXTS, .required = true },
	{ .key = "when", .kind = VALUE_MAP, .sub = when_fields, .required = true },
	{ .key = "device", .kind = VALUE_TEXT, .required = true },
	{ .key = "waives", .kind = VALUE_TEXTS, .values = checks },
	{ .key = "source", .kind = VALUE_TEXT, .required = true },
	{ .key = "note", .kind = VALUE_TEXT },
	{ .key = NULL },
};
static const struct field timing_fields[] = {
	{ .key = "granularity", .kind = VALUE_DURATION },  { .key = "ack_floor", .kind = VALUE_DURATION },
	{ .key = "ack_adaptive", .kind = VALUE_DURATION }, { .key = "rnr_floor", .kind = VALUE_DURATION },
	{ .key = "source", .kind = VALUE_TEXT },           { .key = NULL },
};

__attribute__((format(printf, 4, 5))) static void complain(struct reader *r, const struct ynode *n, const char *hint,
							   const char *fmt, ...)
{
	struct diag_at at = { .path = r->path, .source = r->source, .source_len = r->len, .span = n ? (unsigned)n->span : 1 };
	char text[512];
	va_list ap;

	source_place(r->source, r->len, n ? n->pos : 0, &at.line, &at.col);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_error(r->d, &at, hint, "%s", text);
}

static bool is_one_of(const char *const *values, const char *text)
{
	for (; *values; values++)
		if (!strcmp(*values, text))
			return true;
	return false;
}

static void join(const char *const *values, char *buf, size_t size)
{
	size_t len = (size_t)snprintf(buf, size, "allowed:");

	for (; *values && len < size; values++)
		len += (size_t)snprintf(buf + len, size - len, " %s", *values);
}

static json_t *read_scalar(struct reader *r, const struct field *f, const struct ynode *n)
{
	char hint[256] = "", *end;
	uint64_t ns;
	long value;

	if (n->kind != YNODE_SCALAR || !*n->text) {
		complain(r, n, NULL, "`%s` takes one value", f->key);
		return NULL;
	}
	switch (f->kind) {
	case VALUE_NAME:
	case VALUE_NAMES:
		if (!name_find(f->names, n->text) && !(f->none && !strcmp(n->text, "none"))) {
			const struct name *near = name_nearest(f->names, n->text);

			snprintf(hint, sizeof(hint), "did you mean %s", near ? near->text : "?");
			complain(r, n, near ? hint : NULL, "`%s` is no %s", n->text, f->names->what);
			return NULL;
		}
		return json_string(n->text);
	case VALUE_INT:
		errno = 0;
		value = strtol(n->text, &end, 0);
		if (*end || errno) {
			complain(r, n, NULL, "`%s` takes a number", f->key);
			return NULL;
		}
		return json_integer(value);
	case VALUE_DURATION:
		if (units_parse_duration(n->text, &ns)) {
			complain(r, n, "a duration: 4ms, 200us", "`%s` takes a duration", f->key);
			return NULL;
		}
		return json_integer((json_int_t)ns);
	default:
		if (f->values && !is_one_of(f->values, n->text)) {
			join(f->values, hint, sizeof(hint));
			complain(r, n, hint, "`%s` does not know `%s`", f->key, n->text);
			return NULL;
		}
		return json_string(n->text);
	}
}

static json_t *read_map(struct reader *r, const struct field *fields, const struct ynode *map);

static json_t *read_value(struct reader *r, const struct field *f, const struct ynode *n)
{
	json_t *list, *v;

	if (f->kind == VALUE_MAP)
		return read_map(r, f->sub, n);
	if (f->kind != VALUE_TEXTS && f->kind != VALUE_NAMES)
		return read_scalar(r, f, n);
	list = json_array();
	if (n->kind == YNODE_LIST) {
		for (size_t i = 0; i < n->n; i++) {
			v = read_scalar(r, f, n->kids[i]);
			if (v)
				json_array_append_new(list, v);
		}
	} else if (n->kind != YNODE_SCALAR || *n->text) {
		v = read_scalar(r, f, n);
		if (v)
			json_array_append_new(list, v);
	}
	return list;
}

static json_t *read_map(struct reader *r, const struct field *fields, const struct ynode *map)
{
	json_t *o, *v;
	char hint[512];

	if (map->kind != YNODE_MAP) {
		complain(r, map, NULL, "a map is wanted here");
		return NULL;
	}
	o = json_object();
	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *kid = map->kids[i];
		const struct field *f = fields;
		size_t len = (size_t)snprintf(hint, sizeof(hint), "allowed:");

		while (f->key && strcmp(f->key, kid->key->text))
			f++;
		if (!f->key) {
			for (f = fields; f->key && len < sizeof(hint); f++)
				len += (size_t)snprintf(hint + len, sizeof(hint) - len, " %s", f->key);
			complain(r, kid->key, hint, "unknown key `%s`", kid->key->text);
			continue;
		}
		v = read_value(r, f, kid);
		if (v)
			json_object_set_new(o, f->key, v);
	}
	for (const struct field *f = fields; f->key; f++)
		if (f->required && !ynode_get(map, f->key))
			complain(r, map, NULL, "an entry needs `%s`", f->key);
	return o;
}

/* An attribute has a number for another one; packets are there or not. */
static void check_own_words(struct reader *r, const struct ynode *n, const json_t *when, const char *device)
{
	const char *attr = json_str(when, "attr");
	char *end;

	if (attr && !attr_find(attr))
		complain(r, ynode_get(ynode_get(n, "when"), "attr"), NULL, "`%s` is no attribute of a QP", attr);
	if (attr && (strtoll(device, &end, 0), *end || end == device))
		complain(r, ynode_get(n, "device"), "the number that the device has", "`%s` is no number", device);
	else if (json_str(when, "packets") && strcmp(device, "none"))
		complain(r, ynode_get(n, "device"), "none", "packets that do not come are `none`, not `%s`", device);
}

/* One value is excused by one other value of the same sort, or by nothing. */
static void check_entry(struct reader *r, const struct ynode *n, const json_t *entry)
{
	const json_t *when = json_object_get(entry, "when");
	const char *device = json_str(entry, "device"), *spec = NULL;
	const struct name_table *names = NULL;
	const char *const *words = NULL;
	int values = 0;

	for (const struct field *f = when_fields; f < when_fields + VALUES; f++) {
		if (!json_object_get(when, f->key))
			continue;
		names = !strcmp(f->key, "refused") ? &names_status : f->names;
		words = f->values;
		spec = json_str(when, f->key);
		values++;
	}
	if (values != 1) {
		complain(r, n, "spec, event, state, returns, refused, recovery, payload, attr, packets, completion_event or says",
			 "`when` names exactly one value that the specification wants, not %d", values);
		return;
	}
	if (!device || !spec)
		return;
	if (!words && !names)
		check_own_words(r, n, when, device);
	else if (words && !is_one_of(words, device))
		complain(r, ynode_get(n, "device"), NULL, "`%s` is no %s", device,
			 words == payloads     ? "payload"
			 : words == recoveries ? "end of a recovery"
					       : "word on a completion event");
	else if (!words && strcmp(device, "none") && !name_find(names, device))
		complain(r, ynode_get(n, "device"), "one name, or none", "`%s` is no %s", device, names->what);
	else if (!strcmp(device, spec))
		complain(r, ynode_get(n, "device"), NULL, "`%s` is what the specification wants: nothing to excuse", device);
}

static void read_entries(struct reader *r, const struct ynode *list, struct profile *p)
{
	if (list->kind != YNODE_LIST) {
		complain(r, list, NULL, "a list of entries is wanted here");
		return;
	}
	for (size_t i = 0; i < list->n; i++) {
		json_t *entry = read_map(r, entry_fields, list->kids[i]), *other;
		const char *id = json_str(entry, "id");
		size_t k;

		if (!entry)
			continue;
		check_entry(r, list->kids[i], entry);
		json_array_foreach(p->entries, k, other)
			if (id && json_str(other, "id") && !strcmp(json_str(other, "id"), id))
				complain(r, list->kids[i], NULL, "the id `%s` is there twice", id);
		json_array_append_new(p->entries, entry);
	}
}

static void read_profile(struct reader *r, const struct ynode *root, struct profile *p)
{
	if (root->kind == YNODE_LIST) {
		read_entries(r, root, p);
		return;
	}
	if (root->kind != YNODE_MAP) {
		complain(r, root, NULL, "a profile is a map, or a list of entries");
		return;
	}
	for (size_t i = 0; i < root->n; i++) {
		const struct ynode *kid = root->kids[i];

		if (!strcmp(kid->key->text, "provider") && kid->kind == YNODE_SCALAR) {
			free(p->provider);
			p->provider = strdup(kid->text);
		} else if (!strcmp(kid->key->text, "timing")) {
			json_decref(p->timing);
			p->timing = read_map(r, timing_fields, kid);
		} else if (!strcmp(kid->key->text, "deviations")) {
			read_entries(r, kid, p);
		} else {
			complain(r, kid->key, "allowed: provider timing deviations", "unknown key `%s`", kid->key->text);
		}
	}
}

static int read_file(const char *path, char **ret, size_t *ret_len, struct error *e)
{
	FILE *f = fopen(path, "re");
	char *text;
	size_t len;

	if (!f)
		return error_set(e, -errno, "cannot read %s: %s", path, strerror(errno));
	text = malloc(PROFILE_MAX_BYTES + 1);
	if (!text) {
		fclose(f);
		return error_set(e, -ENOMEM, "%s: out of memory", path);
	}
	len = fread(text, 1, PROFILE_MAX_BYTES + 1, f);
	if (ferror(f) || len > PROFILE_MAX_BYTES) {
		fclose(f);
		free(text);
		return error_set(e, -EIO, "cannot read %s whole (at most %u bytes)", path, PROFILE_MAX_BYTES);
	}
	fclose(f);
	text[len] = 0;
	*ret = text;
	*ret_len = len;
	return 0;
}

static void name_after_file(struct profile *p, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (!p->provider)
		p->provider = strndup(base, strcspn(base, "."));
}

int profile_load(const char *path, const char *kernel, struct profile *ret, struct diag *d, struct error *e)
{
	struct profile p = { .kernel = strdup(kernel ? kernel : ""), .entries = json_array() };
	struct reader r = { .d = d, .path = path };
	struct ytree_error broken;
	unsigned errors = d->errors;
	struct ytree tree;
	char *source = NULL;
	int rc;

	rc = read_file(path, &source, &r.len, e);
	if (rc)
		goto release;
	r.source = source;
	rc = ytree_parse(source, r.len, &tree, &broken);
	if (rc == -EINVAL) {
		struct ynode at = { .pos = broken.pos, .span = broken.span };

		complain(&r, &at, *broken.hint ? broken.hint : NULL, "%s", broken.text);
	}
	if (rc) {
		error_set(e, rc, "%s is not a profile", path);
		goto release;
	}
	if (tree.root)
		read_profile(&r, tree.root, &p);
	ytree_release(&tree);
	name_after_file(&p, path);
	if (!p.provider || !p.kernel || !p.entries)
		rc = error_set(e, -ENOMEM, "%s: out of memory", path);
	else if (d->errors != errors)
		rc = error_set(e, -EINVAL, "%s has mistakes", path);
release:
	free(source);
	if (rc)
		profile_release(&p);
	else
		*ret = p;
	return rc;
}

void profile_release(struct profile *p)
{
	if (!p)
		return;
	free(p->provider);
	free(p->kernel);
	json_decref(p->entries);
	json_decref(p->timing);
	*p = (struct profile){ 0 };
}

/*
 * The series and the flavour: 6.1.0-57-amd64 and 6.1.0-58-amd64, 6.12.95+deb12-amd64 and 6.12.101+deb13-amd64 are builds of one
 * stable branch, which takes fixes and nothing else. Where one of them undoes a deviation, the entry is told to be stale.
 */
static void release_key(const char *release, char *buf, size_t size)
{
	size_t series = strspn(release, "0123456789"), version = strspn(release, "0123456789.");
	const char *flavour = strchr(release, '-') ?: "";

	if (release[series] == '.')
		series += 1 + strspn(release + series + 1, "0123456789");
	if (flavour[0] && isdigit((unsigned char)flavour[1])) {
		/* A count of builds: Debian's stands for the stable release where that is 0, somebody's own for anything. */
		if (version == series + 2 && release[version - 1] == '0')
			flavour = strchr(flavour + 1, '-') ?: "";
		else
			series = version;
	}
	snprintf(buf, size, "%.*s%s", (int)series, release, flavour);
}

bool profile_entry_seen(const struct profile *p, const json_t *entry)
{
	char want[128], have[128];
	const json_t *v;
	size_t i;

	if (!p->kernel || !*p->kernel)
		return false;
	release_key(p->kernel, want, sizeof(want));
	json_array_foreach(json_object_get(entry, "seen"), i, v) {
		if (!json_is_string(v))
			continue;
		release_key(json_string_value(v), have, sizeof(have));
		if (!strcmp(want, have))
			return true;
	}
	return false;
}

static uint64_t version_of(const char *text)
{
	unsigned long part[3] = { 0, 0, 0 };
	char *end;

	if (*text == 'v')
		text++;
	for (int i = 0; i < 3; i++) {
		part[i] = strtoul(text, &end, 10);
		if (end == text || *end != '.')
			break;
		text = end + 1;
	}
	return (uint64_t)part[0] << 40 | (uint64_t)part[1] << 20 | part[2];
}

static bool in_range(const json_t *range, const char *version)
{
	const char *from = json_str(range, "from"), *before = json_str(range, "before");
	uint64_t have = version_of(version);

	return (!from || have >= version_of(from)) && (!before || have < version_of(before));
}

bool profile_entry_in_range(const struct profile *p, const json_t *entry)
{
	return p->kernel && *p->kernel && in_range(json_object_get(entry, "kernel"), p->kernel);
}

bool profile_entry_of_library(const json_t *entry, const char *rdma_core)
{
	const json_t *range = json_object_get(entry, "rdma_core");

	return !range || (rdma_core && in_range(range, rdma_core));
}
