/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* resume.c - cryptfuse resume: make the key again, in the way it was made at open, and hand it to the daemon.
 *
 * The daemon tells the command line that opens the volume in the same way; that is parsed as if it had been typed, and
 * what was typed now goes over it. A daemon of somebody else could name files that only this user can read and would
 * get what is in them, so only the owner resumes. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json.h>

#include "cli.h"
#include "cryptfuse/control.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "cryptfuse/secret.h"

#define WORDS_MAX 128u

static const struct cli_option resume_options[] = {
	{.name = "header",
	 .kind = CLI_STRING,
	 .arg = "FILE",
	 .help = "the LUKS header is in FILE now",
	 CLI_FIELD(volume.header_file)},
	{.name = NULL},
};

static const struct cli_group resume_groups[] = {
	{"Key", cli_key_options},
	{"Volume", resume_options},
	{"General", cli_quiet_options},
	{"Help", cli_help_options},
	{NULL, NULL},
};

static void put_json(struct json_object **j)
{
	json_object_put(*j);
	*j = NULL;
}

/* ---- what was opened, and how ---- */

static int ask_daemon(const struct cf_mount *m, struct json_object **out, struct cf_err *err)
{
	char text[CF_CONTROL_STATUS_MAX];
	struct json_object *suspended = NULL;
	int rc = cf_control_ask(m, text);
	if (rc)
		return cf_fail(err, rc, "%s: the daemon cannot be asked: %s", m->mountpoint, strerror(-rc));
	*out = json_tokener_parse(text);
	if (!json_object_object_get_ex(*out, "suspended", &suspended) || !suspended)
		return cf_fail(err, -EINVAL, "%s: it is not suspended", m->mountpoint);
	return 0;
}

/* The words of the command that opened it, in @words with their number, borrowed from @status. */
static int take_command(struct json_object *status, char *words[static WORDS_MAX])
{
	struct json_object *list = NULL;
	if (!json_object_object_get_ex(status, "command", &list) || !json_object_is_type(list, json_type_array))
		return -ENOENT;
	const size_t n = json_object_array_length(list);
	if (n < 3 || n >= WORDS_MAX)
		return -ENOENT;
	for (size_t i = 0; i < n; i++)
		words[i] = (char *)(uintptr_t)json_object_get_string(json_object_array_get_idx(list, i));
	words[n] = NULL;
	return (int)n;
}

static int parse_command(const struct cf_mount *m, struct json_object *status, struct cli_opts *o, struct cf_err *err)
{
	char *words[WORDS_MAX];
	const int n = take_command(status, words);
	if (n < 0)
		return cf_fail(err, n, "%s: the daemon does not say how it was opened", m->mountpoint);
	const struct cli_command *cmd = !strcmp(words[1], cli_mount.name) ? &cli_mount : &cli_open;
	return cli_options_parse(cmd, n - 1, words + 1, o, err);
}

/* What was typed now. Another source of the key replaces all that was said of the first. */
static void put_over(const struct cli_opts *given, struct cli_opts *o)
{
	const struct cf_open_opts *g = &given->volume;
	struct cf_open_opts *v = &o->volume;
	if (g->key_file || g->volume_key_file || g->volume_key_keyring) {
		v->key_file = g->key_file;
		v->volume_key_file = g->volume_key_file;
		v->volume_key_keyring = g->volume_key_keyring;
		v->keyfile_size_bytes = v->keyfile_offset_bytes = 0;
	}
	if (g->keyfile_size_bytes)
		v->keyfile_size_bytes = g->keyfile_size_bytes;
	if (g->keyfile_offset_bytes)
		v->keyfile_offset_bytes = g->keyfile_offset_bytes;
	if (g->hash)
		v->hash = g->hash;
	if (g->header_file)
		v->header_file = g->header_file;
	v->key_slot = g->key_slot; /* any passphrase of it will do */
	v->tries = g->tries;
	o->askpass = given->askpass;
	o->timeout_s = given->timeout_s;
	o->verify = given->verify;
	o->batch = given->batch;
	o->verbose = given->verbose;
}

/* Only looked at: the daemon holds the locks. */
static void only_look(struct cli_opts *o)
{
	o->volume.image = o->args[0];
	o->volume.access = CF_READ_ONLY;
	o->volume.lock = CF_LOCK_NONE;
	o->volume.image_cache = CF_IMAGE_CACHED;
	o->volume.discards = CF_DISCARDS_REFUSED;
	o->volume.journal = NULL;
	o->volume.journal_bytes = 0;
}

/* ---- the key ---- */

/** Whether a wrong passphrase can be replaced by another: only the daemon tells, of a plain volume. */
struct asker {
	const struct cli_opts *o;
	int may_ask_again;
};

static int ask(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
			   struct cf_err *err)
{
	struct asker *a = ctx;
	const int rc = cli_passphrase((void *)(uintptr_t)a->o, opts, attempt, out, err);
	a->may_ask_again = rc == CF_MAY_ASK_AGAIN;
	return rc;
}

static void note(void *ctx, const char *text)
{
	const struct asker *a = ctx;
	if (!a->o->batch)
		cli_say("%s", text);
}

static void nothing(void *ctx, const char *text)
{
	(void)ctx;
	(void)text;
}

static int try_once(const struct cf_mount *m, const struct cli_opts *o, struct asker *a, struct cf_opening *opening,
					struct cf_err *err)
{
	const struct cf_open_ui ui = {.ctx = a, .note = note, .warn = note, .passphrase = ask};
	int rc = cf_open_key(&o->volume, &ui, opening, err);
	return rc ? rc : cf_control_tell(m, CF_CONTROL_RESUME, opening->key, opening->plan.cipher.key_bytes, err);
}

static int resume(const struct cf_mount *m, const struct cli_opts *o, struct cf_err *err)
{
	struct asker a = {.o = o};
	const struct cf_open_ui silent = {.ctx = &a, .note = nothing, .warn = nothing, .passphrase = ask};
	CF_CLEANUP(cf_opening_fini) struct cf_opening opening = {0};
	int rc = cli_guard_secrets(err);
	if (rc || (rc = cf_open_plan(&o->volume, &silent, &opening, err)))
		return rc;
	for (uint64_t attempt = 1;; attempt++) {
		struct cf_err why = {0};
		const int by_header = opening.header != NULL; /* which tells by itself, and asks again by itself */
		rc = try_once(m, o, &a, &opening, &why);
		if (rc != -EPERM || by_header || !a.may_ask_again || attempt >= o->volume.tries)
			return rc ? cf_fail(err, rc, "%s", why.text) : 0;
		cli_say("%s", why.text);
		cf_secret_freep(&opening.key);
	}
}

static int run_resume(const struct cli_opts *given, struct cf_err *err)
{
	struct cf_mount m;
	struct cli_opts o;
	CF_CLEANUP(put_json) struct json_object *status = NULL;
	int rc = cli_find_volume(given->args[0], &m, err);
	if (rc == 0 && m.uid != geteuid())
		rc = cf_fail(err, -EPERM, "%s belongs to another user, who alone can resume it", m.mountpoint);
	if (rc || (rc = ask_daemon(&m, &status, err)) || (rc = parse_command(&m, status, &o, err)))
		return rc;
	put_over(given, &o);
	only_look(&o);
	rc = resume(&m, &o, err);
	cf_secret_fini();
	return rc;
}

const struct cli_command cli_resume = {
	.name = "resume",
	.args = "MOUNTPOINT",
	.about = "Ask for the key of a suspended volume again, and let everybody go on",
	.min_args = 1,
	.max_args = 1,
	.groups = resume_groups,
	.run = run_resume,
};
