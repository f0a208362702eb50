/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* command.c - the options that open a volume again in the same way, whatever the defaults are by then.
 *
 * Made of what was asked for and what came of it: every default is spelled out, paths are absolute. A key or passphrase
 * is never in it, since no option holds one. No state; one thread. */
#include "config.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/spec.h"
#include "plan.h"

/** Words, a NUL behind each; an empty word ends them. */
struct words {
	char *text;
	size_t len, size;
	bool cut; /* they did not fit */
};

static void add_word(struct words *w, const char *word)
{
	const size_t len = strlen(word) + 1;
	if (len == 1 || w->len + len >= w->size) {
		w->cut = true;
		return;
	}
	memcpy(w->text + w->len, word, len);
	w->len += len;
}

static void add_text(struct words *w, const char *option, const char *value)
{
	add_word(w, option);
	add_word(w, value);
}

static void add_number(struct words *w, const char *option, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRIu64, value);
	add_text(w, option, text);
}

static void add_path(struct words *w, const char *option, const char *path)
{
	char resolved[PATH_MAX];
	if (path)
		add_text(w, option, strcmp(path, "-") && realpath(path, resolved) ? resolved : path);
}

static void add_key(struct words *w, const struct cf_open_opts *opts)
{
	add_path(w, "--key-file", opts->key_file);
	if (opts->keyfile_size_bytes)
		add_number(w, "--keyfile-size", opts->keyfile_size_bytes);
	if (opts->keyfile_offset_bytes)
		add_number(w, "--keyfile-offset", opts->keyfile_offset_bytes);
}

/* Where a volume without a header lies, and how its IVs count. */
static void add_place(struct words *w, const struct cf_open_opts *opts, const struct cf_open_plan *plan)
{
	add_number(w, "--offset", opts->offset_sectors);
	add_number(w, "--skip", plan->cipher.iv_offset);
	add_number(w, "--size", plan->bytes / CF_SECTOR_BYTES);
	add_number(w, "--sector-size", plan->cipher.du_bytes);
	if (plan->cipher.iv_numbering == CF_IV_LARGE_SECTORS)
		add_word(w, "--iv-large-sectors");
}

static void add_plain(struct words *w, const struct cf_open_opts *opts, const struct cf_open_plan *plan)
{
	char cipher[CF_SPEC_TEXT];
	cf_spec_format_cipher(&plan->cipher, cipher, sizeof(cipher));
	add_text(w, "--cipher", cipher);
	add_number(w, "--key-size", plan->cipher.key_bytes ? plan->cipher.key_bytes * 8u : cf_plain_key_bytes(opts) * 8);
	if (cf_key_source(opts) != CF_KEY_FROM_FILE)
		add_text(w, "--hash", cf_plain_hash(opts));
	add_text(w, "--compat", cf_plain_defaults(opts->compat)->release);
	add_place(w, opts, plan);
	add_key(w, opts);
}

/* Its defaults are those of loop-AES, which do not change. */
static void add_loopaes(struct words *w, const struct cf_open_opts *opts, const struct cf_open_plan *plan)
{
	if (opts->cipher)
		add_text(w, "--cipher", opts->cipher);
	if (opts->key_bits)
		add_number(w, "--key-size", opts->key_bits);
	if (opts->hash)
		add_text(w, "--hash", opts->hash);
	add_place(w, opts, plan);
	add_key(w, opts);
}

static void add_header(struct words *w, const struct cf_open_opts *opts, const struct cf_open_plan *plan)
{
	add_path(w, "--header", opts->header_file);
	add_number(w, "--size", plan->bytes / CF_SECTOR_BYTES);
	if (plan->keyslot >= 0 && !opts->volume_key_file && !opts->volume_key_keyring)
		add_number(w, "--key-slot", (uint64_t)plan->keyslot);
	add_path(w, "--volume-key-file", opts->volume_key_file);
	if (opts->volume_key_keyring)
		add_text(w, "--volume-key-keyring", opts->volume_key_keyring);
	add_key(w, opts);
}

static void add_use(struct words *w, const struct cf_open_plan *plan)
{
	if (plan->access == CF_READ_ONLY)
		add_word(w, "--readonly");
	if (plan->lock == CF_LOCK_NONE)
		add_word(w, "--shared");
	if (plan->discards == CF_DISCARDS_ALLOWED)
		add_word(w, "--allow-discards");
	if (plan->image_cache == CF_IMAGE_DIRECT)
		add_word(w, "--direct");
	if (*plan->journal)
		add_text(w, "--journal", plan->journal);
	add_text(w, "--bad-sectors", plan->bad_sectors == CF_BAD_ZERO ? "zero" : "eio");
	add_text(w, "--engine", *plan->engine ? plan->engine : "auto");
}

static void add_volume(struct words *w, const struct cf_open_opts *opts, const struct cf_open_plan *plan)
{
	if (opts->table_file) {
		add_path(w, "--table", opts->table_file);
	} else {
		add_text(w, "--type", plan->type);
		if (!strcmp(plan->type, "plain"))
			add_plain(w, opts, plan);
		else if (!strcmp(plan->type, "loopaes"))
			add_loopaes(w, opts, plan);
		else
			add_header(w, opts, plan);
	}
	if (opts->partition)
		add_text(w, "--partition", opts->partition);
	else if (plan->partition)
		add_number(w, "--partition", plan->partition);
}

/* Half a command would be worse than none. */
static void end_words(struct words *w)
{
	if (w->cut)
		memset(w->text, 0, w->size);
}

void cf_open_command(const struct cf_open_opts *opts, struct cf_open_plan *plan)
{
	struct words w = {.text = plan->command, .size = sizeof(plan->command)};
	memset(plan->command, 0, sizeof(plan->command));
	add_volume(&w, opts, plan);
	add_use(&w, plan);
	end_words(&w);
}

void cf_open_command_add(struct cf_open_plan *plan, const char *option, const char *value)
{
	struct words w = {.text = plan->command, .size = sizeof(plan->command)};
	while (w.text[w.len])
		w.len += strlen(w.text + w.len) + 1;
	w.cut = !w.len;
	add_word(&w, option);
	if (value)
		add_word(&w, value);
	end_words(&w);
}
