/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lrw.c - LRW: block j of a data unit is whitened, before and after the cipher, with K * (IV + j) in GF(2^128) modulo
 * x^128 + x^7 + x^2 + x + 1. K, IV and product are big-endian numbers; IV + j wraps at 2^128. Source: Linux
 * crypto/lrw.c; IEEE P1619 draft 2004.
 *
 * Counting up by one flips the lowest t + 1 bits, t the trailing ones of the counter: so product changes by K *
 * (2^(t+1) - 1), one of 128 values computed at open. The first product of a data unit is a sum of K * 2^i over the bits
 * of IV. */
#include <errno.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/mode.h"
#include "cryptfuse/secret.h"

struct elem {
	uint64_t hi, lo;
};

struct lrw {
	struct elem power[128];     /* K * 2^i */
	struct elem increment[128]; /* K * (2^(i+1) - 1) */
};

static struct elem add(struct elem a, struct elem b)
{
	return (struct elem){a.hi ^ b.hi, a.lo ^ b.lo};
}

static struct elem twice(struct elem a)
{
	uint64_t carry = a.hi >> 63;
	return (struct elem){a.hi << 1 | a.lo >> 63, a.lo << 1 ^ (UINT64_C(0x87) & (0 - carry))};
}

static int init(struct cf_mode_key *k, const uint8_t *extra)
{
	struct lrw *l = k->extra = cf_secret_alloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	struct elem p = {cf_load_be64(extra), cf_load_be64(extra + 8)}, sum = {0, 0};
	for (unsigned i = 0; i < 128; i++) {
		l->power[i] = p;
		l->increment[i] = sum = add(sum, p);
		p = twice(p);
	}
	return 0;
}

struct chain {
	const struct lrw *l;
	const uint8_t *iv; /* of the next data unit */
	size_t blocks_per_du, block;
	struct elem counter, product;
};

static struct elem multiply(const struct lrw *l, struct elem n)
{
	struct elem sum = {0, 0};
	for (unsigned i = 0; i < 64; i++) {
		uint64_t low = 0 - (n.lo >> i & 1), high = 0 - (n.hi >> i & 1);
		sum.hi ^= (l->power[i].hi & low) ^ (l->power[i + 64].hi & high);
		sum.lo ^= (l->power[i].lo & low) ^ (l->power[i + 64].lo & high);
	}
	return sum;
}

/* From K * counter to K * (counter + 1). */
static void step(struct chain *c)
{
	uint64_t lo = ~c->counter.lo, hi = ~c->counter.hi;
	unsigned trailing_ones = lo ? (unsigned)__builtin_ctzll(lo) : hi ? 64 + (unsigned)__builtin_ctzll(hi) : 127;
	c->product = add(c->product, c->l->increment[trailing_ones]);
	c->counter.lo++;
	c->counter.hi += c->counter.lo == 0;
}

static void tweaks(void *state, uint8_t *out, size_t n)
{
	struct chain *c = state;
	for (size_t i = 0; i < n; i++) {
		if (c->block == 0) {
			c->counter = (struct elem){cf_load_be64(c->iv), cf_load_be64(c->iv + 8)};
			c->product = multiply(c->l, c->counter);
			c->iv += 16;
		}
		cf_store_be64(out + 16 * i, c->product.hi);
		cf_store_be64(out + 16 * i + 8, c->product.lo);
		step(c);
		c->block = c->block + 1 == c->blocks_per_du ? 0 : c->block + 1;
	}
}

static int crypt_lrw(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	struct chain c = {.l = k->extra, .iv = r->ivs, .blocks_per_du = r->du_bytes / 16};
	return cf_mode_whitened(k, r, tweaks, &c);
}

extern const struct cf_mode cf_mode_lrw;
const struct cf_mode cf_mode_lrw = {
	.name = "lrw", .key_parts = 1, .key_extra = 16, .block16_only = true, .init = init, .crypt = crypt_lrw};
