/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ecb.c - ECB: the block primitive itself, no IV. */
#include "cryptfuse/mode.h"

static int crypt_ecb(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	return cf_mode_crypt_blocks(k, r, r->src, r->dst, r->n_du * r->du_bytes / k->block);
}

extern const struct cf_mode cf_mode_ecb;
const struct cf_mode cf_mode_ecb = {.name = "ecb", .key_parts = 1, .no_iv = true, .crypt = crypt_ecb};
