/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu.c - key schedules, whole modes and what else the engines of the CPU's AES instructions have in common (cpu.h). No
 * state. */
#include "cpu.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/secret.h"

#define TWEAKS_AT_ONCE 64u

struct cf_engine_key {
	struct cf_cpu_key k;
	const struct cf_cpu_isa *isa;
};

enum whole_mode { MODE_XTS, MODE_CBC };

struct cf_engine_mode {
	struct cf_cpu_key data, tweak;
	const struct cf_cpu_isa *isa;
	enum whole_mode mode;
};

/* ---- key schedule (FIPS 197, 5.2 and 5.3.5) ---- */

static void store_round(struct cf_cpu_key *k, enum cf_dir dir, unsigned round, const uint8_t *key)
{
	for (unsigned i = 0; i < 4; i++)
		memcpy(k->round[dir][round] + 16 * i, key, 16);
}

/* The words of encryption's round keys. */
static void expand_words(const struct cf_cpu_isa *isa, uint32_t *w, unsigned n, const uint8_t *key, unsigned nk)
{
	uint32_t rcon = 1;
	for (unsigned i = 0; i < nk; i++)
		w[i] = cf_load_le32(key + 4 * i);
	for (unsigned i = nk; i < n; i++) {
		uint32_t t = w[i - 1];
		if (i % nk == 0) {
			t = isa->sub_word(t >> 8 | t << 24) ^ rcon;
			rcon = rcon << 1 ^ (rcon >> 7) * 0x11b;
		} else if (nk > 6 && i % nk == 4) {
			t = isa->sub_word(t);
		}
		w[i] = w[i - nk] ^ t;
	}
}

static void expand(const struct cf_cpu_isa *isa, struct cf_cpu_key *k, const uint8_t *key, size_t key_len)
{
	uint32_t w[4 * CF_CPU_ROUND_KEYS];
	uint8_t enc[16], dec[16];
	k->rounds = (unsigned)key_len / 4 + 6;
	expand_words(isa, w, 4 * (k->rounds + 1), key, (unsigned)key_len / 4);
	for (unsigned r = 0; r <= k->rounds; r++) {
		for (unsigned i = 0; i < 4; i++)
			cf_store_le32(enc + 4 * i, w[4 * r + i]);
		store_round(k, CF_ENCRYPT, r, enc);
		if (r == 0 || r == k->rounds)
			memcpy(dec, enc, 16);
		else
			isa->inv_mix(enc, dec);
		store_round(k, CF_DECRYPT, k->rounds - r, dec);
	}
	cf_secret_wipe(w, sizeof(w));
	cf_secret_wipe(enc, sizeof(enc));
	cf_secret_wipe(dec, sizeof(dec));
}

/* What a compiler may have spilled below the caller's frame, and what lay there: the staging of cbc, or 64 tweaks. */
__attribute__((noinline)) static void clear_stack(void)
{
	uint8_t below[3072];
	cf_secret_wipe(below, sizeof(below));
}

static void clear(const struct cf_cpu_isa *isa)
{
	isa->clear();
	clear_stack();
}

/* ---- the block primitive ---- */

bool cf_cpu_has(const struct cf_block_cipher *bc, size_t key_len)
{
	return !strcmp(bc->name, "aes") && cf_block_cipher_takes_key(bc, key_len);
}

bool cf_cpu_constant_time(const struct cf_block_cipher *bc)
{
	(void)bc;
	return true;
}

int cf_cpu_key_new(const struct cf_cpu_isa *isa, struct cf_engine_key **out, const struct cf_block_cipher *bc,
				   const uint8_t *key, size_t key_len)
{
	if (!cf_cpu_has(bc, key_len))
		return -ENOENT;
	struct cf_engine_key *k = cf_secret_alloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	expand(isa, &k->k, key, key_len);
	k->isa = isa;
	clear(isa);
	*out = k;
	return 0;
}

void cf_cpu_key_free(struct cf_engine_key **key)
{
	cf_secret_freep(key);
}

int cf_cpu_crypt(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
				 size_t n)
{
	(void)worker;
	key->isa->ecb(&key->k, dir, src, dst, n);
	clear(key->isa);
	return 0;
}

/* ---- whole modes ---- */

static int find_mode(const char *mode, const struct cf_block_cipher *bc, size_t key_len, enum whole_mode *out,
					 size_t *part)
{
	*out = !strcmp(mode, "xts") ? MODE_XTS : MODE_CBC;
	*part = *out == MODE_XTS ? key_len / 2 : key_len;
	if ((*out == MODE_CBC && strcmp(mode, "cbc") != 0) || (*out == MODE_XTS && key_len % 2) || !cf_cpu_has(bc, *part))
		return -ENOENT;
	return 0;
}

bool cf_cpu_mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	enum whole_mode m;
	size_t part;
	return find_mode(mode, bc, key_len, &m, &part) == 0;
}

int cf_cpu_mode_new(const struct cf_cpu_isa *isa, struct cf_engine_mode **out, const char *mode,
					const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len)
{
	enum whole_mode which;
	size_t part;
	if (find_mode(mode, bc, key_len, &which, &part) != 0)
		return -ENOENT;
	struct cf_engine_mode *m = cf_secret_alloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->isa = isa;
	m->mode = which;
	expand(isa, &m->data, key, part);
	if (which == MODE_XTS)
		expand(isa, &m->tweak, key + part, part);
	clear(isa);
	*out = m;
	return 0;
}

void cf_cpu_mode_free(struct cf_engine_mode **mode)
{
	cf_secret_freep(mode);
}

/* The first tweaks of many data units in one call, then all of them in one pass. */
static void crypt_xts(const struct cf_engine_mode *m, const struct cf_engine_batch *b)
{
	uint8_t tweaks[(TWEAKS_AT_ONCE + 1) * 16];
	struct cf_engine_batch part = *b;
	for (size_t first = 0; first < b->n_du; first += part.n_du) {
		part.n_du = b->n_du - first < TWEAKS_AT_ONCE ? b->n_du - first : TWEAKS_AT_ONCE;
		part.src = b->src + first * b->du_bytes;
		part.dst = b->dst + first * b->du_bytes;
		m->isa->ecb(&m->tweak, CF_ENCRYPT, b->ivs + 16 * first, tweaks, part.n_du);
		memset(tweaks + 16 * part.n_du, 0, 16);
		m->isa->xts(&m->data, &part, tweaks);
	}
	cf_secret_wipe(tweaks, 16 * (b->n_du < TWEAKS_AT_ONCE ? b->n_du : TWEAKS_AT_ONCE));
}

int cf_cpu_mode_crypt(struct cf_engine_mode *m, unsigned worker, const struct cf_engine_batch *b)
{
	(void)worker;
	size_t du = b->du_bytes;
	if (m->mode == MODE_XTS)
		crypt_xts(m, b);
	else if (b->dir == CF_ENCRYPT)
		m->isa->cbc_encrypt(&m->data, b);
	else
		for (size_t i = 0; i < b->n_du; i++)
			m->isa->cbc_decrypt(&m->data, b->src + i * du, b->dst + i * du, du / 16, b->ivs + 16 * i);
	clear(m->isa);
	return 0;
}
