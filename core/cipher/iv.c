/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* iv.c - the table of IV kinds and those that are a number: null, plain, plain64, plain64be, benbi. No state of its
 * own. */
#include "cryptfuse/iv.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

extern const struct cf_iv_kind cf_iv_kind_eboiv, cf_iv_kind_elephant, cf_iv_kind_lmk, cf_iv_kind_tcw;

static int generate_null(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	memset(r->ivs, 0, r->n_du * iv->iv_bytes);
	return 0;
}

static int generate_plain(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	memset(r->ivs, 0, r->n_du * iv->iv_bytes);
	for (size_t i = 0; i < r->n_du; i++)
		cf_store_le32(r->ivs + i * iv->iv_bytes, (uint32_t)r->sectors[i]);
	return 0;
}

static int generate_plain64(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	memset(r->ivs, 0, r->n_du * iv->iv_bytes);
	for (size_t i = 0; i < r->n_du; i++)
		cf_store_le64(r->ivs + i * iv->iv_bytes, r->sectors[i]);
	return 0;
}

/* The last 8 bytes of each IV, big-endian: (s << shift) + plus. */
static int generate_be(const struct cf_iv *iv, const struct cf_iv_run *r, unsigned shift, unsigned plus)
{
	memset(r->ivs, 0, r->n_du * iv->iv_bytes);
	for (size_t i = 0; i < r->n_du; i++)
		cf_store_be64(r->ivs + (i + 1) * iv->iv_bytes - 8, (r->sectors[i] << shift) + plus);
	return 0;
}

static int generate_plain64be(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	return generate_be(iv, r, 0, 0);
}

static int generate_benbi(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	return generate_be(iv, r, iv->shift, 1);
}

static int init_benbi(struct cf_iv *iv, const struct cf_iv_setup *s)
{
	iv->shift = CF_SECTOR_SHIFT - cf_units_log2(cf_mode_block_bytes(s->mode, s->bc));
	return 0;
}

static int check_random(const struct cf_iv_setup *s, struct cf_err *err)
{
	(void)s;
	return cf_fail(err, -EINVAL, "IV mode 'random' needs dm-integrity, which cryptfuse does not have");
}

static const struct cf_iv_kind kind_null = {.name = "null", .generate = generate_null},
							   kind_plain = {.name = "plain", .generate = generate_plain},
							   kind_plain64 = {.name = "plain64", .generate = generate_plain64},
							   kind_plain64be = {.name = "plain64be", .generate = generate_plain64be},
							   kind_benbi = {.name = "benbi", .init = init_benbi, .generate = generate_benbi},
							   kind_random = {.name = "random", .check = check_random, .generate = generate_null};

static const struct cf_iv_kind *const kinds[] = {
	&kind_plain64, &kind_plain,       &kind_plain64be,      &kind_benbi,     &kind_null,
	&kind_random,  &cf_iv_kind_eboiv, &cf_iv_kind_elephant, &cf_iv_kind_lmk, &cf_iv_kind_tcw,
};

const struct cf_iv_kind *cf_iv_find(const char *name)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}

int cf_iv_layout(const struct cf_iv_kind *kind, const struct cf_cipher_spec *spec, size_t iv_bytes,
				 struct cf_key_layout *out, struct cf_err *err)
{
	*out = (struct cf_key_layout){0};
	int rc = kind && kind->layout ? kind->layout(spec, iv_bytes, out, err) : 0;
	if (rc)
		return rc;
	if (out->extra_bytes > spec->key_bytes || (spec->key_bytes - out->extra_bytes) % spec->keycount)
		return cf_fail(err, -ENODEV, "a volume key of %u bytes does not divide into %u keys%s", spec->key_bytes,
					   spec->keycount, out->extra_bytes ? " and what the IV needs" : "");
	out->extra_off = spec->key_bytes - out->extra_bytes;
	out->subkey_bytes = out->extra_off / spec->keycount;
	return 0;
}

int cf_iv_init(struct cf_iv *iv, const struct cf_iv_kind *kind, const struct cf_iv_setup *s)
{
	*iv = (struct cf_iv){
		.kind = kind,
		.iv_bytes = s->iv_bytes,
		.du_bytes = s->spec->du_bytes,
		.key0 = s->key0,
		.engine = s->engine,
	};
	return kind->init ? kind->init(iv, s) : 0;
}

void cf_iv_fini(struct cf_iv *iv)
{
	cf_secret_freep(&iv->secret);
	if (iv->sector_key)
		iv->engine->key_free(&iv->sector_key);
}
