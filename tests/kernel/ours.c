/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ours.c - see ours.h. */
#include "ours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/secret.h"

int ours_parse(struct ours *o, uint64_t sectors, const char *params, struct cf_err *err)
{
	size_t size = strlen(params) + 64;
	char *text = malloc(size);
	if (!text)
		return -ENOMEM;
	*o = (struct ours){0};
	int len = snprintf(text, size, "0 %llu crypt %s", (unsigned long long)sectors, params);
	int rc = cf_table_parse(text, (size_t)len, &o->table, &o->key, err);
	free(text);
	return rc;
}

void ours_fini(struct ours *o)
{
	cf_secret_freep(&o->key);
}

int ours_open(struct cf_volume **out, const struct ours *o, int fd, const char *engine, enum cf_path path,
			  struct cf_err *err)
{
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *cipher = NULL;
	CF_CLEANUP(cf_backing_free) struct cf_backing *backing = NULL;
	CF_CLEANUP(cf_close_fd) int twin = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	const struct cf_cipher_opts cipher_opts = {.engine = engine, .path = path, .n_workers = 1};
	const struct cf_volume_opts volume_opts = {.data_off = o->table.data_sector * CF_SECTOR_BYTES,
											   .bytes = o->table.sectors * CF_SECTOR_BYTES,
											   .access = CF_READ_WRITE,
											   .discards = o->table.discards,
											   .n_workers = 1};
	int rc = cf_cipher_new(&cipher, &o->table.cipher, o->key, &cipher_opts, err);
	if (!rc)
		rc = cf_backing_from_fd(&backing, twin, CF_READ_WRITE, err);
	if (rc)
		return rc;
	twin = -1;
	return cf_volume_new(out, &backing, &cipher, &volume_opts, err);
}

int ours_read(struct cf_volume *v, void *buf, size_t len, uint64_t off)
{
	struct cf_worker *w = cf_volume_enter(v);
	ssize_t n = cf_volume_read(v, w, buf, len, off);
	cf_volume_leave(v, w);
	return n < 0 ? (int)n : (size_t)n == len ? 0 : -EIO;
}

int ours_write(struct cf_volume *v, const void *buf, size_t len, uint64_t off)
{
	struct cf_worker *w = cf_volume_enter(v);
	ssize_t n = cf_volume_write(v, w, buf, len, off);
	cf_volume_leave(v, w);
	return n < 0 ? (int)n : (size_t)n == len ? 0 : -EIO;
}
