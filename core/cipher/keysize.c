/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* keysize.c - how long a volume key has to be, when nobody said: the shortest one that gives every key of the cipher
 * the length wanted, found by asking the rules by which a given key is judged. No state. */
#include "impl.h"

/* Does a volume key of spec->key_bytes leave keys of @part bytes to the cipher? */
static bool divides(const struct cf_cipher_spec *spec, const struct cf_mode *mode, const struct cf_block_cipher *bc,
					size_t part)
{
	const struct cf_iv_kind *iv = cf_iv_find(spec->iv);
	struct cf_iv_setup setup = {.spec = spec, .mode = mode, .bc = bc, .iv_bytes = cf_mode_iv_bytes(mode, bc)};
	size_t got;
	return cf_iv_layout(iv, spec, setup.iv_bytes, &setup.layout, NULL) == 0 &&
		   cf_mode_key_part(mode, setup.layout.subkey_bytes, &got) == 0 && got == part &&
		   (!iv || !iv->check || iv->check(&setup, NULL) == 0);
}

/* A name of the kernel's says from where to where, but not what in between. */
static bool takes_key(const struct cf_mode *mode, const struct cf_block_cipher *bc, size_t part)
{
	const struct cf_engine *e = NULL;
	if (!cf_block_cipher_takes_key(bc, part))
		return false;
	return !bc->is_api_name || (cf_engine_find("afalg", &e, NULL) == 0 && e->mode_has(mode->name, bc, part));
}

uint32_t cf_cipher_default_key_bytes(const struct cf_cipher_spec *spec)
{
	const struct cf_mode *mode = cf_mode_find(spec->mode);
	struct cf_block_cipher bc;
	if (!mode || cf_cipher_find_block(spec, NULL, NULL, &bc, NULL) != 0)
		return 32;
	const uint32_t parts[] = {32, bc.key_max, 16, bc.key_min};
	struct cf_cipher_spec s = *spec;
	s.du_bytes = CF_DU_MIN;
	for (size_t i = 0; i < CF_ARRAY_LEN(parts); i++) {
		/* The cipher's keys come first, then what the IV kind needs: as much again at most, or some seeds. */
		const uint32_t least = (parts[i] * mode->key_parts + mode->key_extra) * s.keycount;
		if (!takes_key(mode, &bc, parts[i]))
			continue;
		for (s.key_bytes = least; s.key_bytes <= 2 * least + 64; s.key_bytes++)
			if (divides(&s, mode, &bc, parts[i]))
				return s.key_bytes;
	}
	return 32;
}
