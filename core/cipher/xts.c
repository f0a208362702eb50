/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* xts.c - XTS over a batch: the first tweaks of all data units in one call, the chain by arithmetic, then whiten,
 * encrypt, whiten. Source: IEEE 1619-2007. A data unit is whole blocks, so there is no ciphertext stealing. */
#include "cryptfuse/bytes.h"
#include "cryptfuse/mode.h"

struct chain {
	const uint8_t *first; /* encrypted IVs, one a data unit */
	size_t blocks_per_du, block;
	uint64_t lo, hi;
};

/* Within a data unit each tweak is the one before times x in GF(2^128), little-endian. */
static void tweaks(void *state, uint8_t *out, size_t n)
{
	struct chain *c = state;
	uint64_t lo = c->lo, hi = c->hi;
	for (size_t run; n; n -= run) {
		if (c->block == 0) {
			lo = cf_load_le64(c->first);
			hi = cf_load_le64(c->first + 8);
			c->first += 16;
		}
		run = c->blocks_per_du - c->block < n ? c->blocks_per_du - c->block : n;
		for (size_t i = 0; i < run; i++, out += 16) {
			cf_store_le64(out, lo);
			cf_store_le64(out + 8, hi);
			uint64_t carry = UINT64_C(0x87) & (0 - (hi >> 63));
			hi = hi << 1 | lo >> 63;
			lo = lo << 1 ^ carry;
		}
		c->block = c->block + run == c->blocks_per_du ? 0 : c->block + run;
	}
	c->lo = lo;
	c->hi = hi;
}

static int crypt_xts(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	struct chain c = {.first = r->iv_scratch, .blocks_per_du = r->du_bytes / 16};
	int rc = k->engine->crypt(k->tweak, r->worker, CF_ENCRYPT, r->ivs, r->iv_scratch, r->n_du);
	return rc ? rc : cf_mode_whitened(k, r, tweaks, &c);
}

extern const struct cf_mode cf_mode_xts;
const struct cf_mode cf_mode_xts = {.name = "xts", .key_parts = 2, .block16_only = true, .crypt = crypt_xts};
