/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* status.c - cryptfuse status: what is open, how, by which engine, counters.
 *
 * The list comes from mountinfo, the rest is the daemon's own JSON, which never contains a key. Data goes to standard
 * output. A daemon that is dead or does not answer is listed as such and holds nobody up for longer than its time-out.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/json.h"
#include "cryptfuse/mounts.h"
#include "place.h"

static const struct cli_option status_options[] = {
	{.name = "json", .kind = CLI_SET, .help = "machine-readable", CLI_FIELD(json), .value = 1},
	{.name = NULL},
};

static const struct cli_group status_groups[] = {
	{"Output", status_options},
	{"Help", cli_help_options},
	{NULL, NULL},
};

static void put_json(struct json_object **j)
{
	json_object_put(*j);
	*j = NULL;
}

/* What is wrong with a mount whose status could not be had. */
static const char *trouble(int rc)
{
	switch (rc) {
	case -ENOTCONN:
		return "the daemon has died";
	case -ETIMEDOUT:
		return "the daemon does not answer";
	case -EACCES:
	case -EPERM:
		return "belongs to another user";
	case -ENODATA:
		return "closed in the meantime";
	case -EBADMSG:
		return "the daemon's status is no JSON";
	default:
		return strerror(-rc);
	}
}

static int get_status(const struct cf_mount *m, struct json_object **out)
{
	char text[CLI_STATUS_MAX];
	int rc = cli_daemon_status(m, text);
	if (rc)
		return rc;
	struct json_object *j = json_tokener_parse(text);
	if (!json_object_is_type(j, json_type_object)) {
		json_object_put(j);
		return -EBADMSG;
	}
	*out = j;
	return 0;
}

/* ---- one mount ---- */

/* json_object_get_string would need memory for what is no string. */
static void print_value(const char *key, struct json_object *value)
{
	char line[PATH_MAX];
	if (json_object_is_type(value, json_type_int))
		snprintf(line, sizeof(line), "%s: %" PRIu64, key, json_object_get_uint64(value));
	else if (json_object_is_type(value, json_type_boolean))
		snprintf(line, sizeof(line), "%s: %s", key, json_object_get_boolean(value) ? "true" : "false");
	else
		snprintf(line, sizeof(line), "%s: %s", key, json_object_get_string(value));
	cli_printable(line);
	puts(line);
}

static void print_readable(const char *prefix, struct json_object *j);

/* For a shell: in quotes where it would do something with a character. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
	if (*word && strspn(word, plain) == strlen(word)) {
		printf(" %s", word);
		return;
	}
	fputs(" '", stdout);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar((unsigned char)*word < 0x20 || *word == 0x7f ? '?' : *word);
	putchar('\'');
}

static void print_words(const char *key, struct json_object *list)
{
	printf("%s:", key);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		print_word(json_object_get_string(json_object_array_get_idx(list, i)));
	putchar('\n');
}

/* Members of a list are named by their place: "outer.0.inner: value"; words stand in one line, as for a shell. */
static void print_member(const char *key, struct json_object *value)
{
	char name[256];
	if (json_object_is_type(value, json_type_object)) {
		print_readable(key, value);
	} else if (json_object_is_type(value, json_type_array) &&
			   json_object_is_type(json_object_array_get_idx(value, 0), json_type_string)) {
		print_words(key, value);
	} else if (json_object_is_type(value, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(value); i++) {
			snprintf(name, sizeof(name), "%s.%zu", key, i);
			print_member(name, json_object_array_get_idx(value, i));
		}
	} else if (value) {
		print_value(key, value);
	} else {
		printf("%s: none\n", key);
	}
}

/* "key: value" lines; what is nested as "outer.inner: value". */
static void print_readable(const char *prefix, struct json_object *j)
{
	struct json_object_iterator it = json_object_iter_begin(j), end = json_object_iter_end(j);
	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		char key[256];
		snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? "." : "", json_object_iter_peek_name(&it));
		print_member(key, json_object_iter_peek_value(&it));
	}
}

static int print_one(const char *path, unsigned json, struct cf_err *err)
{
	CF_CLEANUP(put_json) struct json_object *j = NULL;
	struct cf_mount m;
	int rc = cli_find_volume(path, &m, err);
	if (rc)
		return rc;
	rc = get_status(&m, &j);
	if (rc == -ENOTCONN)
		return cf_fail(err, -ENODEV, "%s: %s; clean up with 'cryptfuse close %s'", m.mountpoint, trouble(rc),
					   m.mountpoint);
	if (rc)
		return cf_fail(err, rc, "%s: %s", m.mountpoint, trouble(rc));
	if (json)
		return cli_print_json(cf_take(j), err);
	print_readable("", j);
	return 0;
}

/* ---- all of them ---- */

static int list_line(void *ctx, const struct cf_mount *m)
{
	(void)ctx;
	CF_CLEANUP(put_json) struct json_object *j = NULL;
	char line[3 * PATH_MAX + 64], target[PATH_MAX] = "";
	const int rc = get_status(m, &j);
	if (rc == -ENODATA)
		return 0; /* closed since the list was read */
	const int is_inside = cli_place_target(m->mountpoint, target);
	snprintf(line, sizeof(line), "%s: %s%s%s%s%s%s", m->mountpoint, m->source, is_inside ? ", mounted at " : "", target,
			 rc ? " (" : "", rc ? trouble(rc) : "", rc ? ")" : "");
	cli_printable(line);
	puts(line);
	return 0;
}

static int list_json(void *ctx, const struct cf_mount *m)
{
	struct json_object *j = NULL;
	char target[PATH_MAX];
	const int rc = get_status(m, &j);
	if (rc == -ENODATA)
		return 0;
	struct json_object *entry = json_object_new_object();
	cf_json_add_text(entry, "mountpoint", m->mountpoint);
	cf_json_add_text(entry, "image", m->source);
	if (cli_place_target(m->mountpoint, target))
		cf_json_add_text(entry, "directory", target);
	if (rc)
		cf_json_add_text(entry, "error", trouble(rc));
	else
		cf_json_add(entry, "status", j);
	cf_json_append(ctx, entry);
	return 0;
}

static int print_all(unsigned json, struct cf_err *err)
{
	CF_CLEANUP(put_json) struct json_object *list = json_object_new_array();
	int rc = cf_mounts_each(json ? list_json : list_line, list);
	if (rc < 0)
		return cf_fail(err, rc, "the list of mounts cannot be read: %s", strerror(-rc));
	return json ? cli_print_json(cf_take(list), err) : 0;
}

static int run_status(const struct cli_opts *o, struct cf_err *err)
{
	return o->n_args ? print_one(o->args[0], o->json, err) : print_all(o->json, err);
}

const struct cli_command cli_status = {
	.name = "status",
	.args = "[MOUNTPOINT]",
	.about = "Tell what is open, how, by which engine, and counters",
	.min_args = 0,
	.max_args = 1,
	.groups = status_groups,
	.run = run_status,
};
