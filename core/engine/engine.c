/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* engine.c - the tables of engines and of the block ciphers they may have, and the choice between engines. No state. */
#include "cryptfuse/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "cryptfuse/err.h"

extern const struct cf_engine cf_engine_cpu_vaes512, cf_engine_cpu_vaes256, cf_engine_cpu_aesni, cf_engine_cpu_arm64,
	cf_engine_openssl, cf_engine_gcrypt, cf_engine_afalg, cf_engine_null;

/* clang-format off */
const struct cf_engine *const cf_engines[] = {
#ifdef HAVE_CPU_X86
	&cf_engine_cpu_vaes512,
	&cf_engine_cpu_vaes256,
	&cf_engine_cpu_aesni,
#endif
#ifdef HAVE_CPU_ARM64
	&cf_engine_cpu_arm64,
#endif
	&cf_engine_openssl,
#ifdef HAVE_GCRYPT
	&cf_engine_gcrypt,
#endif
	&cf_engine_null,
#ifdef HAVE_AFALG
	&cf_engine_afalg, /* last: asking for it makes the kernel load modules */
#endif
	NULL,
};
/* clang-format on */

/* Those that a build may lack, which is another thing than a name that nobody knows. */
static const struct {
	const char *name, *why;
} optional_engines[] = {
	{"gcrypt", "configure --with-gcrypt"}, {"afalg", "configure --with-afalg"}, {"cpu-vaes512", "x86-64 only"},
	{"cpu-vaes256", "x86-64 only"},        {"cpu-aesni", "x86-64 only"},        {"cpu-arm64", "arm64 only"},
};

/* What dm-crypt's users know. Key bytes: minimum, maximum, step. Source: the ciphers' sources in Linux crypto/. */
#define CIPHER(name_, block, min, max, step)                                                  \
	{                                                                                         \
		.name = name_, .block_bytes = block, .key_min = min, .key_max = max, .key_step = step \
	}
static const struct cf_block_cipher block_ciphers[] = {
	CIPHER("aes", 16, 16, 32, 8),
	CIPHER("camellia", 16, 16, 32, 8),
	CIPHER("serpent", 16, 1, 32, 1),
	CIPHER("twofish", 16, 16, 32, 8),
	CIPHER("cast6", 16, 16, 32, 4),
	CIPHER("blowfish", 8, 4, 56, 1),
	CIPHER("cast5", 8, 5, 16, 1),
	CIPHER("des3_ede", 8, 24, 24, 0),
	CIPHER("cipher_null", 1, 0, 0, 0),
	/* Adiantum's parts: no block primitive, a whole mode only. */
	CIPHER("xchacha12,aes", 16, 32, 32, 0),
	CIPHER("xchacha20,aes", 16, 32, 32, 0),
};

const struct cf_block_cipher *cf_block_cipher_find(const char *name)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(block_ciphers); i++)
		if (!strcmp(block_ciphers[i].name, name))
			return &block_ciphers[i];
	return NULL;
}

bool cf_block_cipher_takes_key(const struct cf_block_cipher *bc, size_t key_len)
{
	if (key_len < bc->key_min || key_len > bc->key_max)
		return false;
	return bc->key_step == 0 || (key_len - bc->key_min) % bc->key_step == 0;
}

bool cf_engine_is_any(const char *name)
{
	return !name || !*name || !strcmp(name, "auto");
}

int cf_engine_find(const char *name, const struct cf_engine **out, struct cf_err *err)
{
	char names[128] = "";
	for (size_t i = 0; cf_engines[i]; i++) {
		if (!strcmp(cf_engines[i]->name, name)) {
			int rc = cf_engines[i]->probe(err);
			if (!rc)
				*out = cf_engines[i];
			return rc;
		}
		size_t len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%s%s", len ? ", " : "", cf_engines[i]->name);
	}
	for (size_t i = 0; i < CF_ARRAY_LEN(optional_engines); i++)
		if (!strcmp(optional_engines[i].name, name))
			return cf_fail(err, -EINVAL, "this build has no engine '%s' (%s)", name, optional_engines[i].why);
	return cf_fail(err, -EINVAL, "unknown engine '%s': this build has auto, %s", name, names);
}
