/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* keysource.c - which input a plain volume's key comes from, how much of it is read, and whether it is hashed.
 *
 * One row of FORMAT's table a source: a passphrase and `-d -` are hashed, `-d FILE` is the key itself. The key is made
 * in the secret arena. Runs before the daemon, in one thread. Source: cryptsetup(8) and what cryptsetup 2.6.1 did. */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

enum cf_key_source cf_key_source(const struct cf_open_opts *opts)
{
	if (!opts->key_file)
		return CF_KEY_FROM_PASSPHRASE;
	if (strcmp(opts->key_file, "-") != 0)
		return CF_KEY_FROM_FILE;
	return isatty(STDIN_FILENO) ? CF_KEY_FROM_PASSPHRASE : CF_KEY_FROM_STDIN;
}

int cf_open_input(const char *path, const char *what, int *out_fd, struct cf_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	const char *shown = is_stdin ? "standard input" : path;
	CF_CLEANUP(cf_close_fd)
	int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return cf_fail(err, errno == EACCES ? -EACCES : -EINVAL, "cannot open %s %s: %s", what, shown, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return cf_fail(err, -EINVAL, "%s %s is a directory", what, shown);
	if (isatty(fd))
		return cf_fail(err, -EINVAL, "%s %s is a terminal", what, shown);
	*out_fd = fd;
	fd = -1;
	return 0;
}

static int read_file(const struct cf_open_opts *opts, size_t key_len, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	int rc = cf_open_input(opts->key_file, "key file", &fd, err);
	return rc ? rc
			  : cf_key_read_fd(fd, CF_KEY_READ_EXACT, opts->keyfile_offset_bytes, key_len, opts->key_file, out, err);
}

static int read_stdin(const struct cf_open_opts *opts, size_t key_len, struct cf_secret_buf *out, struct cf_err *err)
{
	uint64_t size = strcmp(cf_plain_hash(opts), "plain") ? opts->keyfile_size_bytes : key_len;
	return cf_key_read_fd(STDIN_FILENO, size ? CF_KEY_READ_EXACT : CF_KEY_READ_ALL, opts->keyfile_offset_bytes, size,
						  "standard input", out, err);
}

static int read_source(const struct cf_open_opts *opts, const struct cf_open_ui *ui, size_t key_len,
					   struct cf_secret_buf *out, struct cf_err *err)
{
	switch (cf_key_source(opts)) {
	case CF_KEY_FROM_FILE:
		return read_file(opts, key_len, out, err);
	case CF_KEY_FROM_STDIN:
		return read_stdin(opts, key_len, out, err);
	case CF_KEY_FROM_PASSPHRASE:
		break;
	}
	int rc = ui->passphrase(ui->ctx, opts, 0, out, err);
	return rc < 0 ? rc : 0;
}

/* cryptsetup asks for a key even where cipher_null then has no use for one, and fails where there is none to read. */
int cf_open_key(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o, struct cf_err *err)
{
	if (opts->table_file || opts->type == CF_TYPE_LOOPAES) /* both bring it */
		return 0;
	if (o->header)
		return cf_header_key(opts, ui, o, err);
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf in = {NULL, 0};
	size_t key_len = o->plan.cipher.key_bytes ? o->plan.cipher.key_bytes : cf_plain_key_bytes(opts);
	const char *hash = cf_key_source(opts) == CF_KEY_FROM_FILE ? "plain" : cf_plain_hash(opts);
	int rc = read_source(opts, ui, key_len, &in, err);
	if (rc)
		return rc;
	CF_CLEANUP(cf_secret_freep) uint8_t *bytes = cf_secret_alloc(key_len);
	if (!bytes)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	rc = cf_key_from_passphrase(hash, &in, bytes, key_len, err);
	if (rc)
		return rc;
	o->key = o->plan.cipher.key_bytes ? cf_take(bytes) : NULL;
	return 0;
}
