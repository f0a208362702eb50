/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-128.h - the code that cpu-aesni.c and cpu-arm64.c share but for the instructions: vectors of one block, eight in
 * flight, which hides the latency of a round. Included once by each, after it has defined:
 *
 *   FEATURES            of the CPU, as the compiler names them
 *   WIDE                8: blocks in flight
 *   vec                 a block        load store xor
 *   rounds              WIDE blocks or fewer, a constant number, through the whole cipher
 *   times_x             the next tweak of xts
 *   next_tweaks         the next WIDE ones
 */
/* ---- ecb ---- */

INLINE void ecb_some(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, unsigned n)
{
	vec x[WIDE];
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = load(src + 16 * i);
	rounds(k, dir, x, n);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		store(dst + 16 * i, x[i]);
}

INLINE void ecb_dir(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE)
		ecb_some(k, dir, src, dst, WIDE);
	for (; n; n--, src += 16, dst += 16)
		ecb_some(k, dir, src, dst, 1);
}

TARGET static void ecb(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	if (dir == CF_ENCRYPT)
		ecb_dir(k, CF_ENCRYPT, src, dst, n);
	else
		ecb_dir(k, CF_DECRYPT, src, dst, n);
}

/* ---- xts ---- */

INLINE void first_tweaks(const uint8_t *tweak, vec *t)
{
	t[0] = load(tweak);
	UNROLL
	for (unsigned i = 1; i < WIDE; i++)
		t[i] = times_x(t[i - 1]);
}

/* @n blocks: any number of data units of @du blocks, if that is a multiple of WIDE, or one. The tweaks that come next,
 * those of the next data unit too, are made before the rounds, so that the CPU does both at once. */
INLINE void xts_run(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n, size_t du,
					const uint8_t *tweaks)
{
	vec x[WIDE], t[WIDE], used[WIDE];
	size_t left = du;
	first_tweaks(tweaks, t);
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE) {
		UNROLL
		for (unsigned i = 0; i < WIDE; i++)
			x[i] = xor(load(src + 16 * i), used[i] = t[i]);
		left = left == WIDE ? du : left - WIDE;
		if (left == du)
			first_tweaks(tweaks += 16, t);
		else
			next_tweaks(t);
		rounds(k, dir, x, WIDE);
		UNROLL
		for (unsigned i = 0; i < WIDE; i++)
			store(dst + 16 * i, xor(x[i], used[i]));
	}
	for (; n; n--, src += 16, dst += 16, t[0] = times_x(t[0])) {
		x[0] = xor(load(src), t[0]);
		rounds(k, dir, x, 1);
		store(dst, xor(x[0], t[0]));
	}
}

INLINE void xts_dir(const struct cf_cpu_key *k, enum cf_dir dir, const struct cf_engine_batch *b, const uint8_t *tweaks)
{
	size_t du = b->du_bytes / 16, all = b->n_du * du, n = du % WIDE ? du : all;
	for (size_t at = 0; at < all; at += n)
		xts_run(k, dir, b->src + 16 * at, b->dst + 16 * at, n, du, tweaks + at / du * 16);
}

TARGET static void xts(const struct cf_cpu_key *k, const struct cf_engine_batch *b, const uint8_t *tweaks)
{
	if (b->dir == CF_ENCRYPT)
		xts_dir(k, CF_ENCRYPT, b, tweaks);
	else
		xts_dir(k, CF_DECRYPT, b, tweaks);
}

/* ---- cbc ---- */

INLINE vec cbc_decrypt_some(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, vec before, unsigned n)
{
	vec x[WIDE];
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = load(src + 16 * i);
	rounds(k, CF_DECRYPT, x, n);
	store(dst, xor(x[0], before));
	UNROLL
	for (unsigned i = 1; i < n; i++)
		store(dst + 16 * i, xor(x[i], load(src + 16 * (i - 1))));
	return load(src + 16 * (n - 1));
}

TARGET static void cbc_decrypt(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n,
							   const uint8_t iv[16])
{
	vec before = load(iv);
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE)
		before = cbc_decrypt_some(k, src, dst, before, WIDE);
	for (; n; n--, src += 16, dst += 16)
		before = cbc_decrypt_some(k, src, dst, before, 1);
}

/* A line of @lanes data units from staging to staging: lanes lie a power of two apart in memory, and going through them
 * there block by block would have sixteen cache lines fight for the eight places of one set. */
#define LINE 64u
struct stage {
	uint8_t plain[WIDE][LINE], cipher[WIDE][LINE];
};

/* Of constant lengths, so that no library's memcpy does it, which has registers of its own. */
INLINE void copy(uint8_t *to, const uint8_t *from, size_t line)
{
	if (line == LINE)
		memcpy(to, from, LINE);
	else
		memcpy(to, from, 16);
}

INLINE void cbc_encrypt_line(const struct cf_cpu_key *k, struct stage *s, vec *chain, unsigned lanes, size_t line)
{
	for (size_t at = 0; at < line; at += 16) {
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			chain[l] = xor(chain[l], load(s->plain[l] + at));
		rounds(k, CF_ENCRYPT, chain, lanes);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			store(s->cipher[l] + at, chain[l]);
	}
}

INLINE void cbc_encrypt_lanes(const struct cf_cpu_key *k, const struct cf_engine_batch *b, size_t first, unsigned lanes)
{
	struct stage s;
	vec chain[WIDE];
	size_t du = b->du_bytes;
	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		chain[l] = load(b->ivs + 16 * (first + l));
	for (size_t at = 0, line; at < du; at += line) {
		line = du - at < LINE ? 16 : LINE;
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			copy(s.plain[l], b->src + (first + l) * du + at, line);
		cbc_encrypt_line(k, &s, chain, lanes, line);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			copy(b->dst + (first + l) * du + at, s.cipher[l], line);
	}
}

TARGET static void cbc_encrypt(const struct cf_cpu_key *k, const struct cf_engine_batch *b)
{
	size_t first = 0;
	for (; b->n_du - first >= WIDE; first += WIDE)
		cbc_encrypt_lanes(k, b, first, WIDE);
	if ((b->n_du - first) & 4) {
		cbc_encrypt_lanes(k, b, first, 4);
		first += 4;
	}
	if ((b->n_du - first) & 2) {
		cbc_encrypt_lanes(k, b, first, 2);
		first += 2;
	}
	if (b->n_du - first)
		cbc_encrypt_lanes(k, b, first, 1);
}
