/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check.c - what a cipher spec means and whether dm-crypt would take it: everything that can be said without the key.
 * Pure functions. Source: dm-crypt.c, crypt_ctr_cipher(), crypt_ctr_ivmode(), crypt_setkey(); Linux crypto/essiv.c. */
#include <errno.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "impl.h"

static int check_numbers(const struct cf_cipher_spec *s, struct cf_err *err)
{
	if (!cf_units_du_valid(s->du_bytes))
		return cf_fail(err, -EINVAL, "data units of %u bytes: it must be a power of two from %u to %u", s->du_bytes,
					   CF_DU_MIN, CF_DU_MAX);
	if (s->keycount == 0 || s->keycount > CF_KEYCOUNT_MAX || (s->keycount & (s->keycount - 1)))
		return cf_fail(err, -EINVAL, "key count %u: it must be a power of two up to %u", s->keycount, CF_KEYCOUNT_MAX);
	if (s->key_bytes > CF_KEY_MAX)
		return cf_fail(err, -EINVAL, "a volume key of %u bytes: at most %u are taken", s->key_bytes, CF_KEY_MAX);
	if (s->iv_offset & ((s->du_bytes >> CF_SECTOR_SHIFT) - 1))
		return cf_fail(err, -EINVAL, "IV offset %llu is not a multiple of the data unit, %u sectors of 512 bytes",
					   (unsigned long long)s->iv_offset, s->du_bytes >> CF_SECTOR_SHIFT);
	return 0;
}

static int find_names(const struct cf_cipher_spec *s, const char *engine, const struct cf_engine *use,
					  struct cf_cipher_plan *p, struct cf_err *err)
{
	char label[CF_LABEL];
	int rc = cf_cipher_find_block(s, engine, use, &p->bc, err);
	if (rc)
		return rc;
	cf_cipher_label(s, label);
	p->mode = cf_mode_find(s->mode);
	if (!p->mode)
		return cf_fail(err, -ENODEV, "no engine here has the mode '%s'", s->mode);
	p->iv_bytes = cf_mode_iv_bytes(p->mode, &p->bc);
	if (p->bc.block_bytes == 1 && !p->bc.is_api_name && !p->mode->no_iv)
		return cf_fail(err, -EINVAL, "cipher_null goes with ecb only, not with '%s'", s->mode);
	if (p->mode->block16_only && p->bc.block_bytes != 16)
		return cf_fail(err, -ENODEV, "mode '%s' needs a cipher with 16-byte blocks, which '%s' is not", s->mode,
					   s->cipher);
	if (p->iv_bytes == 0)
		return 0; /* ecb: an IV mode is ignored, as the kernel does */
	if (!*s->iv)
		return cf_fail(err, -EINVAL, "%s needs an IV mode, such as %s%s-plain64", label,
					   p->mode->is_api_name ? "capi:" : "", label);
	p->iv = cf_iv_find(s->iv);
	if (!p->iv)
		return cf_fail(err, -EINVAL, "unknown IV mode '%s'", s->iv);
	return 0;
}

static int check_essiv(const struct cf_cipher_spec *s, struct cf_cipher_plan *p, struct cf_err *err)
{
	if (!*s->essiv_hash)
		return 0;
	if (p->iv_bytes != p->bc.block_bytes || p->mode->is_api_name)
		return cf_fail(err, -ENODEV, "essiv needs a mode whose IV is one block, which '%s' has not", s->mode);
	if (p->iv->no_essiv)
		return cf_fail(err, -EINVAL, "no engine here has essiv over the IV mode '%s'", s->iv);
	p->essiv_bytes = cf_digest_bytes(CF_DIGEST_KERNEL, s->essiv_hash);
	if (p->essiv_bytes < 0)
		return cf_fail(err, -ENODEV, "no engine here has the essiv hash '%s'", s->essiv_hash);
	if (!cf_block_cipher_takes_key(&p->bc, (size_t)p->essiv_bytes))
		return cf_fail(err, -ENODEV, "essiv hash '%s' gives %d bytes, which is no key of '%s'", s->essiv_hash,
					   p->essiv_bytes, s->cipher);
	return 0;
}

static int check_key(const struct cf_cipher_spec *s, struct cf_cipher_plan *p, struct cf_err *err)
{
	char label[CF_LABEL];
	int rc = cf_iv_layout(p->iv, s, p->iv_bytes, &p->layout, err);
	if (rc)
		return rc;
	cf_cipher_label(s, label);
	if (cf_mode_key_part(p->mode, p->layout.subkey_bytes, &p->part_bytes) != 0 ||
		!cf_block_cipher_takes_key(&p->bc, p->part_bytes))
		return cf_fail(err, -ENODEV, "a key of %zu bits does not fit %s%s", p->layout.subkey_bytes * 8, label,
					   s->keycount > 1 ? ", each of its keys" : "");
	return 0;
}

static struct cf_iv_setup setup_of(const struct cf_cipher_spec *s, const struct cf_cipher_plan *p)
{
	return (struct cf_iv_setup){.spec = s, .mode = p->mode, .bc = &p->bc, .iv_bytes = p->iv_bytes, .layout = p->layout};
}

bool cf_cipher_engine_serves(const struct cf_engine *e, const struct cf_cipher_spec *spec,
							 const struct cf_cipher_plan *p)
{
	struct cf_iv_setup setup = setup_of(spec, p);
	if (p->mode->native_only && !(e->mode_has && e->mode_has(p->mode->name, &p->bc, p->layout.subkey_bytes)))
		return false;
	if (!p->mode->native_only && !e->has(&p->bc, p->part_bytes))
		return false;
	if (p->essiv_bytes && !e->has(&p->bc, (size_t)p->essiv_bytes))
		return false;
	size_t key_len;
	const char *extra = p->iv && p->iv->needs_cipher ? p->iv->needs_cipher(&setup, &key_len) : NULL;
	return !extra || e->has(cf_block_cipher_find(extra), key_len);
}

/* The first that serves; who is best among several is for cf_cipher_choose to say. */
static int find_engine(const char *name, const struct cf_engine *use, const struct cf_cipher_spec *s,
					   struct cf_cipher_plan *p, struct cf_err *err)
{
	bool any = !use && cf_engine_is_any(name);
	char label[CF_LABEL];
	if (!use && !any) {
		int rc = cf_engine_find(name, &use, err);
		if (rc)
			return rc;
	}
	for (size_t i = 0; any && !use && cf_engines[i]; i++)
		if (cf_engines[i]->probe(NULL) == 0 && cf_cipher_engine_serves(cf_engines[i], s, p))
			use = cf_engines[i];
	cf_cipher_label(s, label);
	if (!use || !cf_cipher_engine_serves(use, s, p))
		return cf_fail(err, -ENODEV, "no engine here has %s with %zu-bit keys%s%s", label, p->layout.subkey_bytes * 8,
					   any ? "" : ": asked for ", any ? "" : use->name);
	p->engine = use;
	return 0;
}

int cf_cipher_plan(const struct cf_cipher_spec *s, const char *engine, const struct cf_engine *use,
				   struct cf_cipher_plan *out, struct cf_err *err)
{
	struct cf_cipher_plan p = {0};
	int rc = check_numbers(s, err);
	if (!rc)
		rc = find_names(s, engine, use, &p, err);
	if (!rc)
		rc = check_essiv(s, &p, err);
	if (!rc)
		rc = check_key(s, &p, err);
	if (rc)
		return rc;
	struct cf_iv_setup setup = setup_of(s, &p);
	if (p.iv && p.iv->check)
		rc = p.iv->check(&setup, err);
	if (!rc)
		rc = find_engine(engine, use, s, &p, err);
	if (!rc)
		*out = p;
	return rc;
}

#define REQUEST_BYTES \
	(128u * 1024u) /* longer ones fall out of the CPU's own cache on their way, and leave threads idle */
#define LANES 8u   /* data units at least, where a serial mode is computed across them: cbc, pcbc */

uint32_t cf_cipher_request_bytes(const struct cf_cipher_spec *spec)
{
	uint32_t lanes = strstr(spec->mode, "cbc") ? LANES * spec->du_bytes : 0;
	return lanes > REQUEST_BYTES ? lanes : REQUEST_BYTES;
}

int cf_cipher_check(const struct cf_cipher_spec *spec, const char *engine, struct cf_err *err)
{
	struct cf_cipher_plan plan;
	return cf_cipher_plan(spec, engine, NULL, &plan, err);
}
