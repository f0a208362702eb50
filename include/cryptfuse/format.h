/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* format.h - a new LUKS2 header, made by libcryptsetup in memory.
 *
 * The library never sees the image: it formats a file in memory, and the caller writes what came of it where the image
 * is to be. So it needs no rights, no device-mapper and no lock. One thread. */
#ifndef CRYPTFUSE_FORMAT_H
#define CRYPTFUSE_FORMAT_H

#include "cryptfuse/key.h"
#include "cryptfuse/open.h"

/** What the new volume is to be; strings are borrowed; zero or NULL is libcryptsetup's default. */
struct cf_format_opts {
	const char *cipher; /* "aes-xts-plain64" */
	uint64_t key_bits;
	uint64_t sector_size_bytes;
	const char *hash, *label, *uuid;
	const char *pbkdf; /* "argon2id", "argon2i", "pbkdf2" */
	uint64_t pbkdf_memory_kib, pbkdf_iterations, pbkdf_parallel, iter_time_ms;
};

/** A header that is not on any disk yet. */
struct cf_format {
	int fd;                   /* a file in memory: the header is its first @plan.data_off bytes */
	uint8_t *key;             /* the volume key, from cf_secret_alloc */
	struct cf_open_plan plan; /* of the volume: cipher, data_off, bytes */
};

/** cf_format_fini - wipes the key; CF_CLEANUP helper, idempotent. */
void cf_format_fini(struct cf_format *f);

#define CF_FORMAT_NONE \
	{                  \
		.fd = -1       \
	}

/** cf_format_check - can such a volume be made and opened here? Before anybody is asked for a passphrase. Returns 0;
 * -EINVAL; -ENODEV. */
int cf_format_check(const struct cf_format_opts *opts, const struct cf_open_opts *open,
					struct cf_err *err) CF_MUST_CHECK;

/** cf_format_passphrase - the passphrase of a new keyslot: a key file's content, standard input, or what is typed
 * Returns 0; -EINVAL it is empty; errors as cf_key_read_fd and of @ui. */
int cf_format_passphrase(const struct cf_open_opts *open, const struct cf_open_ui *ui, struct cf_secret_buf *out,
						 struct cf_err *err) CF_MUST_CHECK;

/** cf_format_header_bytes - how much a header takes in front of the data. */
uint64_t cf_format_header_bytes(void);

/** cf_format_luks2 - make it
 * @open: engine and threads of the plan   @bytes: length of the volume, a multiple of its data unit
 * Takes as long as the key derivation asks for. Returns 0; -EINVAL, -ENOMEM …: what libcryptsetup said. */
int cf_format_luks2(const struct cf_format_opts *opts, const struct cf_open_opts *open,
					const struct cf_secret_buf *pass, uint64_t bytes, struct cf_format *out,
					struct cf_err *err) CF_MUST_CHECK;

#endif
