/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mode.c - the table of chaining modes, setting up a subkey, and what several modes share. No state of its own. */
#include "cryptfuse/mode.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/cipher.h"
#include "cryptfuse/secret.h"

extern const struct cf_mode cf_mode_xts, cf_mode_lrw, cf_mode_cbc, cf_mode_cts, cf_mode_pcbc, cf_mode_ctr, cf_mode_ecb;

/* Adiantum is a hash, a stream cipher and a block cipher: only an engine that has it whole can serve. */
static const struct cf_mode adiantum = {.name = "adiantum", .key_parts = 1, .iv_bytes = 32, .native_only = true};

/* What dm-crypt would hand to the kernel's crypto API as it stands, and nobody else knows. */
static const struct cf_mode api = {.name = CF_MODE_API, .key_parts = 1, .native_only = true, .is_api_name = true};

static const struct cf_mode *const modes[] = {
	&cf_mode_xts, &cf_mode_cbc, &cf_mode_cts, &cf_mode_lrw, &cf_mode_ecb, &cf_mode_ctr, &cf_mode_pcbc, &adiantum, &api,
};

const struct cf_mode *cf_mode_find(const char *name)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(modes); i++)
		if (!strcmp(modes[i]->name, name))
			return modes[i];
	return NULL;
}

size_t cf_mode_iv_bytes(const struct cf_mode *m, const struct cf_block_cipher *bc)
{
	if (m->no_iv)
		return 0;
	if (m->is_api_name)
		return bc->api_iv_bytes;
	return m->iv_bytes ? m->iv_bytes : bc->block_bytes;
}

size_t cf_mode_block_bytes(const struct cf_mode *m, const struct cf_block_cipher *bc)
{
	return m->block_bytes ? m->block_bytes : bc->block_bytes;
}

int cf_mode_key_part(const struct cf_mode *m, size_t subkey_len, size_t *part_len)
{
	if (subkey_len < m->key_extra || (subkey_len - m->key_extra) % m->key_parts)
		return -EINVAL;
	*part_len = (subkey_len - m->key_extra) / m->key_parts;
	return 0;
}

int cf_mode_key_init(struct cf_mode_key *k, const struct cf_mode *m, const struct cf_engine *engine,
					 const struct cf_block_cipher *bc, const uint8_t *subkey, size_t subkey_len, unsigned n_workers,
					 enum cf_native native)
{
	*k = (struct cf_mode_key){.mode = m, .engine = engine, .block = bc->block_bytes};
	size_t part;
	int rc = cf_mode_key_part(m, subkey_len, &part);
	if (!rc && native == CF_NATIVE_IF_ANY && engine->mode_new) {
		rc = engine->mode_new(&k->native, m->name, bc, subkey, subkey_len, n_workers);
		if ((rc == -ENOENT || rc == -EINVAL) && !m->native_only)
			rc = 0; /* no such mode, or it refuses this key (XTS with equal halves): the batch path takes any */
	}
	if (rc || m->native_only)
		return rc;
	rc = engine->key_new(&k->data, bc, subkey, part, n_workers);
	if (!rc && m->key_parts == 2)
		rc = engine->key_new(&k->tweak, bc, subkey + part, part, n_workers);
	if (!rc && m->init)
		rc = m->init(k, subkey + m->key_parts * part);
	return rc;
}

void cf_mode_key_fini(struct cf_mode_key *k)
{
	if (k->data)
		k->engine->key_free(&k->data);
	if (k->tweak)
		k->engine->key_free(&k->tweak);
	if (k->native)
		k->engine->mode_free(&k->native);
	cf_secret_freep(&k->extra);
}

int cf_mode_crypt_native(const struct cf_mode_key *k, const struct cf_mode_run *run)
{
	struct cf_engine_batch b = {
		.dir = run->dir,
		.src = run->src,
		.dst = run->dst,
		.ivs = run->ivs,
		.n_du = run->n_du,
		.du_bytes = (uint32_t)run->du_bytes,
	};
	return k->engine->mode_crypt(k->native, run->worker, &b);
}

int cf_mode_crypt_any(const struct cf_mode_key *k, const struct cf_mode_run *run)
{
	return k->mode->native_only ? cf_mode_crypt_native(k, run) : k->mode->crypt(k, run);
}

int cf_mode_whitened(const struct cf_mode_key *k, const struct cf_mode_run *r, cf_mode_tweaks *tweaks, void *state)
{
	size_t total = r->n_du * r->du_bytes;
	uint8_t *whitened = r->scratch[0], *tweak = r->scratch[1];
	assert(k->block == 16);
	for (size_t at = 0; at < total;) {
		size_t len = total - at < r->pass_bytes ? total - at : r->pass_bytes;
		tweaks(state, tweak, len / 16);
		cf_xor(whitened, r->src + at, tweak, len);
		int rc = cf_mode_crypt_blocks(k, r, whitened, r->dst + at, len / 16);
		if (rc)
			return rc;
		cf_xor(r->dst + at, r->dst + at, tweak, len);
		at += len;
	}
	return 0;
}
