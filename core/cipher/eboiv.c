/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* eboiv.c - the IV of BitLocker's CBC: a zero block through the volume's own cipher, mode and first key, with IV LE64
 * of s * DU, zero padded. In CBC that is E(LE64 of s * DU). The product wraps at 2^64, as the kernel's does. */
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/iv.h"

int cf_iv_eboiv(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	static const uint8_t zeros[CF_BATCH_DU_MAX * CF_BLOCK_MAX];
	uint8_t number[CF_BATCH_DU_MAX * CF_BLOCK_MAX] = {0};
	for (size_t i = 0; i < r->n_du; i++)
		cf_store_le64(number + i * iv->iv_bytes, r->sectors[i] * iv->du_bytes);
	struct cf_mode_run run = *r->via;
	run.dir = CF_ENCRYPT;
	run.worker = r->worker;
	run.src = zeros;
	run.dst = r->ivs;
	run.ivs = number;
	run.n_du = r->n_du;
	run.du_bytes = iv->iv_bytes;
	return cf_mode_crypt_any(iv->key0, &run);
}

int cf_iv_eboiv_check(const struct cf_iv_setup *s, struct cf_err *err)
{
	if (s->iv_bytes != cf_mode_block_bytes(s->mode, s->bc) || s->iv_bytes > CF_BLOCK_MAX)
		return cf_fail(err, -EINVAL, "IV mode '%s' needs a mode whose IV is one block: not '%s'", s->spec->iv,
					   cf_iv_mode_name(s));
	return 0;
}

extern const struct cf_iv_kind cf_iv_kind_eboiv;
const struct cf_iv_kind cf_iv_kind_eboiv = {
	.name = "eboiv", .check = cf_iv_eboiv_check, .generate = cf_iv_eboiv, .no_essiv = true};
