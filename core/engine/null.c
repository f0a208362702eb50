/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* null.c - the engine of cipher_null: blocks pass unchanged. A real engine, so that the whole data path can be run and
 * measured without a cipher; it has no other cipher, so that --engine null can never store plaintext by mistake. */
#include <errno.h>
#include <string.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/secret.h"

struct cf_engine_key {
	char nothing;
};

static int probe(struct cf_err *err)
{
	(void)err;
	return 0;
}

static bool has(const struct cf_block_cipher *bc, size_t key_len)
{
	return !strcmp(bc->name, "cipher_null") && key_len == 0;
}

static bool constant_time(const struct cf_block_cipher *bc)
{
	(void)bc;
	return true;
}

static int key_new(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len,
				   unsigned n_workers)
{
	(void)key;
	(void)n_workers;
	if (!has(bc, key_len))
		return -ENOENT;
	struct cf_engine_key *k = cf_secret_alloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	*out = k;
	return 0;
}

static void key_free(struct cf_engine_key **key)
{
	cf_secret_freep(key);
}

static int crypt_blocks(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
						size_t n_blocks)
{
	(void)key;
	(void)worker;
	(void)dir;
	memcpy(dst, src, n_blocks);
	return 0;
}

extern const struct cf_engine cf_engine_null;
const struct cf_engine cf_engine_null = {
	.name = "null",
	.about = "cipher_null only: data pass unchanged",
	.probe = probe,
	.has = has,
	.constant_time = constant_time,
	.key_new = key_new,
	.key_free = key_free,
	.crypt = crypt_blocks,
};
