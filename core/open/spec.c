/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec.c - dm-crypt's cipher strings, both forms, into one struct.
 *
 * The old form is "cipher[:keycount]-mode-iv[:ivopts]"; the kernel itself turns it into a crypto API name such as
 * "essiv(cbc(aes),sha256)", which the capi: form spells out. Here both end in the same functions (spec_name.c), so that
 * both give the same struct. A name that is none of ours, or ends in none, is kept whole, under
 * CF_MODE_API: the kernel may know it. Names of IV kinds are passed on unjudged. Pure functions. Source: dm-crypt.c,
 * crypt_ctr_cipher_old(), crypt_ctr_cipher_new(). */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mode.h"
#include "spec_word.h"

#define LMK_KEYS 64u /* what the kernel implies for lmk in the capi: form */

static int apply_iv(struct cf_word iv, struct cf_word ivopts, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (cf_word_is(iv, "essiv")) {
		if (!ivopts.len)
			return cf_fail(err, -EINVAL, "essiv needs a hash, as in essiv:sha256");
		strcpy(out->iv, "plain64");
		return cf_spec_apply_essiv_hash(ivopts, out, err);
	}
	if (!strcmp(out->mode, "ecb")) /* has no IV; the kernel ignores whatever stands here */
		return 0;
	return cf_word_put(out->iv, iv, "IV mode", err);
}

/* ---- names that are the kernel's affair ---- */

/* Whether the whole of it means something here, apart from the IV kind. */
static bool is_ours(const struct cf_cipher_spec *s)
{
	const struct cf_mode *mode = cf_mode_find(s->mode);
	return mode && !mode->is_api_name && cf_block_cipher_find(s->cipher) &&
		   (!s->essiv_hash[0] || cf_digest_bytes(CF_DIGEST_KERNEL, s->essiv_hash) >= 0);
}

/* Keep the name as dm-crypt hands it on; essiv becomes a part of it, and has the numbers of plain64. */
static int keep_api_name(struct cf_word name, struct cf_word iv, struct cf_word ivopts, struct cf_cipher_spec *out,
						 struct cf_err *err)
{
	char text[2 * CF_NAME_MAX + 16];
	const bool essiv = cf_word_is(iv, "essiv");
	if (essiv && !ivopts.len)
		return cf_fail(err, -EINVAL, "essiv needs a hash, as in essiv:sha256");
	if (essiv && strcspn(ivopts.at, ",()") < ivopts.len) /* it would be another name inside essiv(…) */
		return cf_word_unknown(ivopts, err);
	if (name.len >= CF_NAME_MAX || (essiv && ivopts.len >= CF_NAME_MAX))
		return cf_fail(err, -EINVAL, "the cipher's name is longer than %u characters", CF_NAME_MAX - 1);
	int len = essiv
				  ? snprintf(text, sizeof(text), "essiv(%.*s,%.*s)", (int)name.len, name.at, (int)ivopts.len, ivopts.at)
				  : snprintf(text, sizeof(text), "%.*s", (int)name.len, name.at);
	if (strchr(text, ':')) /* no name of the kernel's has one: it could not be written again */
		return cf_word_unknown(name, err);
	*out = (struct cf_cipher_spec){.mode = CF_MODE_API, .keycount = cf_word_is(iv, "lmk") ? LMK_KEYS : 1};
	int rc = cf_word_put(out->cipher, (struct cf_word){text, (size_t)len}, "name", err);
	if (rc || !iv.at)
		return rc;
	return cf_word_put(out->iv, essiv ? (struct cf_word){"plain64", 7} : iv, "IV mode", err);
}

static int parse_keycount(struct cf_word text, uint32_t *out, struct cf_err *err)
{
	char digits[24];
	uint64_t n;
	for (; text.len > 1 && *text.at == '0'; text.len--)
		text.at++;
	if (text.len >= sizeof(digits))
		return cf_fail(err, -EINVAL, "the cipher's key count is far too large");
	memcpy(digits, text.at, text.len);
	digits[text.len] = '\0';
	int rc = cf_units_parse_number(digits, UINT32_MAX, &n);
	if (rc == -ERANGE)
		return cf_fail(err, -EINVAL, "key count too large: the kernel would take it modulo 2^32");
	if (rc || !n || (n & (n - 1)))
		return cf_fail(err, -EINVAL, "the cipher's key count must be a power of two, digits only");
	if (n > CF_KEYCOUNT_MAX)
		return cf_fail(err, -EINVAL, "key count %u: cryptfuse takes at most %u keys", (unsigned)n, CF_KEYCOUNT_MAX);
	*out = (uint32_t)n;
	return 0;
}

/* What the capi: form cannot say as well is not kept: several keys, and what no name of the kernel's has. */
static bool can_keep(const struct cf_cipher_spec *s, struct cf_word iv)
{
	return s->keycount == (cf_word_is(iv, "lmk") ? LMK_KEYS : 1) && !(iv.len && memchr(iv.at, '-', iv.len));
}

/* The kernel makes "mode(cipher)" of the old form. */
static int parse_parts(struct cf_word cipher, struct cf_word mode, struct cf_word iv, struct cf_word ivopts,
					   struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_err why = {0};
	char name[2 * CF_NAME_MAX + 16];
	int rc = cf_spec_apply_mode(mode, cipher, out, &why);
	if (!rc)
		rc = apply_iv(iv, ivopts, out, &why);
	if (!strcmp(out->mode, "ecb"))
		iv = (struct cf_word){NULL, 0};
	if (rc == -EINVAL || !can_keep(out, iv) || (!rc && is_ours(out)))
		return rc ? cf_fail(err, rc, "%s", why.text) : 0;
	int len = snprintf(name, sizeof(name), "%.*s(%.*s)", (int)mode.len, mode.at, (int)cipher.len, cipher.at);
	return keep_api_name((struct cf_word){name, (size_t)len}, iv, ivopts, out, err);
}

static int parse_old(struct cf_word text, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (memchr(text.at, '(', text.len))
		return cf_fail(err, -EINVAL, "a cipher with parentheses is written as capi:…, as in capi:xts(aes)-plain64");
	struct cf_word rest = text, keycount = cf_word_cut(&rest, '-'), cipher = cf_word_cut(&keycount, ':');
	struct cf_word mode = cf_word_cut(&rest, '-'), iv = cf_word_cut(&rest, ':');
	if (!mode.at || (cf_word_is(mode, "plain") && !iv.at)) {
		mode = (struct cf_word){"cbc", 3};
		iv = (struct cf_word){"plain", 5};
	}
	if (!iv.at && !cf_word_is(mode, "ecb"))
		return cf_fail(err, -EINVAL, "the cipher needs an IV mode, as in aes-xts-plain64");
	int rc = keycount.at ? parse_keycount(keycount, &out->keycount, err) : 0;
	return rc ? rc : parse_parts(cipher, mode, iv, rest, out, err);
}

static int parse_capi(struct cf_word api, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word ivopts = cf_word_cut_last(&api, ':'), iv = cf_word_cut_last(&api, '-');
	struct cf_err why = {0};
	if (iv.at && strcspn(iv.at, "(:") < iv.len)
		return cf_fail(err, -EINVAL, "unknown IV mode '%.*s'", (int)(iv.len < 64 ? iv.len : 64), iv.at);
	int rc = cf_spec_apply_api(api, out, &why);
	if (!rc && !iv.at && strcmp(out->mode, "ecb") != 0)
		return cf_fail(
			err, -EINVAL,
			"a capi: cipher needs an IV mode at its end, as in capi:xts(aes)-plain64: without one the kernel "
			"uses whatever memory holds as the IV");
	if (cf_word_is(iv, "lmk"))
		out->keycount = LMK_KEYS;
	if (!rc)
		rc = apply_iv(iv, ivopts, out, &why);
	if (rc == -EINVAL)
		return cf_fail(err, rc, "%s", why.text);
	return !rc && is_ours(out) ? 0 : keep_api_name(api, iv, ivopts, out, err);
}

int cf_spec_parse_cipher(const char *text, struct cf_cipher_spec *out, struct cf_err *err)
{
	static const char capi[] = "capi:";
	struct cf_cipher_spec spec = {.keycount = 1};
	struct cf_word all = {text, strlen(text)};
	int rc;
	if (!strncmp(text, capi, strlen(capi)))
		rc = parse_capi((struct cf_word){text + strlen(capi), all.len - strlen(capi)}, &spec, err);
	else
		rc = parse_old(all, &spec, err);
	if (rc)
		return rc;
	memcpy(out->cipher, spec.cipher, CF_NAME_MAX);
	memcpy(out->mode, spec.mode, CF_NAME_MAX);
	memcpy(out->iv, spec.iv, CF_NAME_MAX);
	memcpy(out->essiv_hash, spec.essiv_hash, CF_NAME_MAX);
	out->keycount = spec.keycount;
	return 0;
}

int cf_spec_parse_option(const char *text, struct cf_cipher_spec *out, struct cf_err *err)
{
	bool null = !strcmp(text, "null") || !strcmp(text, "cipher_null");
	return cf_spec_parse_cipher(null ? "cipher_null-ecb" : text, out, err);
}
