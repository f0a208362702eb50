/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ctr.c - counter mode: the IV is a big-endian counter of a whole block that wraps; both directions encrypt the
 * counters. Source: Linux crypto/ctr.c. */
#include "cryptfuse/bytes.h"
#include "cryptfuse/mode.h"

/* Add @n to a big-endian number of @block bytes, 8 or 16. */
static void counter_at(uint8_t *out, const uint8_t *iv, size_t block, uint64_t n)
{
	uint64_t low = cf_load_be64(iv + block - 8), sum = low + n;
	cf_store_be64(out + block - 8, sum);
	if (block == 16)
		cf_store_be64(out, cf_load_be64(iv) + (sum < low));
}

static int crypt_ctr(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	size_t block = k->block, total = r->n_du * r->du_bytes, per_du = r->du_bytes / block;
	uint8_t *counters = r->scratch[0], *stream = r->scratch[1];
	for (size_t at = 0; at < total;) {
		size_t len = total - at < r->pass_bytes ? total - at : r->pass_bytes, n = len / block;
		for (size_t i = 0; i < n; i++) {
			size_t b = at / block + i;
			counter_at(counters + i * block, r->ivs + b / per_du * block, block, b % per_du);
		}
		int rc = k->engine->crypt(k->data, r->worker, CF_ENCRYPT, counters, stream, n);
		if (rc)
			return rc;
		cf_xor(r->dst + at, r->src + at, stream, len);
		at += len;
	}
	return 0;
}

extern const struct cf_mode cf_mode_ctr;
const struct cf_mode cf_mode_ctr = {.name = "ctr", .key_parts = 1, .block_bytes = 1, .crypt = crypt_ctr};
