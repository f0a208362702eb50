/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* unlock.c - where the key of a volume with a header comes from, and another try when a passphrase was wrong.
 *
 * A key file is taken whole and unlocks a keyslot, as a passphrase does; only a volume key is the key itself. The
 * header is freed as soon as the key is there: the library keeps copies. One thread, in the parent of the daemon.
 * Source: cryptsetup(8), "Notes on passphrase processing for LUKS". */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "header.h"
#include "keyring.h"
#include "plan.h"

static int read_whole(const struct cf_open_opts *opts, int fd, const char *what, struct cf_secret_buf *out,
					  struct cf_err *err)
{
	return cf_key_read_fd(fd, opts->keyfile_size_bytes ? CF_KEY_READ_EXACT : CF_KEY_READ_ALL,
						  opts->keyfile_offset_bytes, opts->keyfile_size_bytes, what, out, err);
}

static int read_key_file(const struct cf_open_opts *opts, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	int rc = cf_open_input(opts->key_file, "key file", &fd, err);
	return rc ? rc : read_whole(opts, fd, opts->key_file, out, err);
}

/* Returns 0, or CF_MAY_ASK_AGAIN. */
static int read_passphrase(const struct cf_open_opts *opts, const struct cf_open_ui *ui, unsigned attempt,
						   struct cf_secret_buf *out, struct cf_err *err)
{
	switch (cf_key_source(opts)) {
	case CF_KEY_FROM_FILE:
		return read_key_file(opts, out, err);
	case CF_KEY_FROM_STDIN:
		return read_whole(opts, STDIN_FILENO, "standard input", out, err);
	case CF_KEY_FROM_PASSPHRASE:
		break;
	}
	return ui->passphrase(ui->ctx, opts, attempt, out, err);
}

static int by_passphrase(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
						 struct cf_err *err)
{
	uint64_t slot = 0;
	int wanted = CRYPT_ANY_SLOT;
	if (opts->key_slot && cf_units_parse_number(opts->key_slot, CF_KEYSLOTS_MAX - 1, &slot) == 0)
		wanted = (int)slot;
	for (unsigned attempt = 1;; attempt++) {
		CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf pass = {NULL, 0};
		struct cf_err why = {0};
		int again = read_passphrase(opts, ui, attempt, &pass, err);
		if (again < 0)
			return again;
		int rc = cf_header_unlock(o->header, wanted, &pass, &o->key, &why);
		if (rc >= 0) {
			o->plan.keyslot = cf_header_is_luks(o->header) ? rc : -1; /* others do not say which it was */
			return 0;
		}
		if (rc != -EPERM || again != CF_MAY_ASK_AGAIN || attempt >= opts->tries)
			return cf_fail(err, rc, "%s: %s", opts->image, why.text);
		cf_open_note(ui, "%s: %s", opts->image, why.text);
	}
}

/* ---- the volume key itself ---- */

static int read_volume_key(const struct cf_open_opts *opts, size_t key_bytes, struct cf_secret_buf *out,
						   struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	int rc = cf_open_input(opts->volume_key_file, "volume key file", &fd, err);
	return rc ? rc : cf_key_read_fd(fd, CF_KEY_READ_EXACT, 0, key_bytes, opts->volume_key_file, out, err);
}

static int by_volume_key(const struct cf_open_opts *opts, struct cf_opening *o, struct cf_err *err)
{
	size_t key_bytes = cf_header_key_bytes(o->header);
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf key = {NULL, 0};
	int rc = opts->volume_key_file ? read_volume_key(opts, key_bytes, &key, err)
								   : cf_keyring_read_named(opts->volume_key_keyring, key_bytes, &key.data, err);
	if (!rc)
		rc = cf_header_verify(o->header, key.data, err);
	if (rc)
		return rc;
	o->key = cf_take(key.data);
	return 0;
}

int cf_header_key(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				  struct cf_err *err)
{
	bool direct = opts->volume_key_file || opts->volume_key_keyring;
	int rc = direct ? by_volume_key(opts, o, err) : by_passphrase(opts, ui, o, err);
	if (!rc)
		cf_header_free(&o->header);
	return rc;
}
