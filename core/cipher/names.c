/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* names.c - what the names in a spec stand for: a block cipher of our table, or an algorithm that only the kernel knows
 * and that is asked about there (its block, its IV and its keys). No state.
 *
 * dm-crypt hands the name behind "capi:" to the kernel's crypto API as it stands. What the spec's parser could not take
 * apart into cipher and mode has the mode CF_MODE_API; the engine afalg alone has such names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "impl.h"

void cf_cipher_label(const struct cf_cipher_spec *s, char out[static CF_LABEL])
{
	bool api = strcmp(s->mode, CF_MODE_API) == 0;
	snprintf(out, CF_LABEL, "%s%s%s", s->cipher, api ? "" : "-", api ? "" : s->mode);
}

/* Templates that make a tag beside the ciphertext: dm-crypt has them with dm-integrity below it, nowhere else. */
static bool is_aead(const char *name)
{
	static const char *const templates[] = {"authenc",    "authencesn", "gcm",     "gcm_base", "ccm",
											"ccm_base",   "rfc4106",    "rfc4309", "rfc4543",  "rfc7539",
											"rfc7539esp", "seqiv",      "echainiv"};
	const size_t len = strcspn(name, "(");
	for (size_t i = 0; i < CF_ARRAY_LEN(templates); i++)
		if (strlen(templates[i]) == len && !strncmp(templates[i], name, len))
			return true;
	return !strncmp(name, "aegis", strlen("aegis"));
}

static int find_api(const char *name, const char *engine, const struct cf_engine *use, struct cf_block_cipher *out,
					struct cf_err *err)
{
	struct cf_err why = {0};
	if (is_aead(name))
		return cf_fail(err, -ENODEV,
					   "%s authenticates: its tags need dm-integrity below the volume, which cryptfuse does not have",
					   name);
	if (!use && !cf_engine_is_any(engine)) {
		int rc = cf_engine_find(engine, &use, err);
		if (rc)
			return rc;
	}
	if (!use && cf_engine_find("afalg", &use, &why) != 0)
		return cf_fail(err, -ENODEV, "no engine here has %s: only the kernel's AF_ALG may know that name, and %s", name,
					   why.text);
	if (!use->api_find)
		return cf_fail(err, -ENODEV, "no engine here has %s: only afalg may know that name: asked for %s", name,
					   use->name);
	return use->api_find(name, out, err);
}

int cf_cipher_find_block(const struct cf_cipher_spec *s, const char *engine, const struct cf_engine *use,
						 struct cf_block_cipher *out, struct cf_err *err)
{
	if (strcmp(s->mode, CF_MODE_API) == 0)
		return find_api(s->cipher, engine, use, out, err);
	const struct cf_block_cipher *bc = cf_block_cipher_find(s->cipher);
	if (!bc)
		return cf_fail(err, -ENODEV, "no engine here has the cipher '%s'", s->cipher);
	*out = *bc;
	return 0;
}
