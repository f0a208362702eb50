/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec.c - dm-crypt's cipher strings, both forms, into one struct.
 *
 * The old form is "cipher[:keycount]-mode-iv[:ivopts]"; the kernel itself turns it into a crypto API name such as
 * "essiv(cbc(aes),sha256)", which the capi: form spells out. Here both end in the same functions, one for each shape a
 * name can have, so that both give the same struct. A name that is none of ours, or ends in none, is kept whole, under
 * CF_MODE_API: the kernel may know it. Names of IV kinds are passed on unjudged. Pure functions. Source: dm-crypt.c,
 * crypt_ctr_cipher_old(), crypt_ctr_cipher_new(). */
#include "config.h"

#include "cryptfuse/spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mode.h"

/* A piece of the text, not NUL-terminated. at is NULL where the piece is not there at all, which is not the same as
 * empty. */
struct word {
	const char *at;
	size_t len;
};

#define LMK_KEYS 64u /* what the kernel implies for lmk in the capi: form */

static bool is(struct word w, const char *name)
{
	return w.at && strlen(name) == w.len && memcmp(w.at, name, w.len) == 0;
}

static bool ends_with(struct word w, const char *suffix)
{
	size_t len = strlen(suffix);
	return w.len > len && memcmp(w.at + w.len - len, suffix, len) == 0;
}

/* The text before the first @sep; *rest becomes what follows it, or nothing. */
static struct word cut(struct word *rest, char sep)
{
	struct word head = *rest;
	const char *p = head.at ? memchr(head.at, sep, head.len) : NULL;
	if (!p) {
		*rest = (struct word){NULL, 0};
		return head;
	}
	head.len = (size_t)(p - head.at);
	*rest = (struct word){p + 1, rest->len - head.len - 1};
	return head;
}

/* The text after the last @sep, or nothing; *head becomes what precedes it. */
static struct word cut_last(struct word *head, char sep)
{
	const char *p = memrchr(head->at, sep, head->len);
	if (!p)
		return (struct word){NULL, 0};
	struct word tail = {p + 1, head->len - (size_t)(p - head->at) - 1};
	head->len = (size_t)(p - head->at);
	return tail;
}

static int put(char out[static CF_NAME_MAX], struct word w, const char *what, struct cf_err *err)
{
	if (w.len == 0)
		return cf_fail(err, -EINVAL, "the cipher has an empty %s", what);
	if (w.len >= CF_NAME_MAX)
		return cf_fail(err, -EINVAL, "the cipher's %s is longer than %u characters", what, CF_NAME_MAX - 1);
	memcpy(out, w.at, w.len);
	out[w.len] = '\0';
	return 0;
}

static int unknown(struct word w, struct cf_err *err)
{
	return cf_fail(err, -ENODEV, "no engine here has the cipher '%.*s'", (int)(w.len > 128 ? 128 : w.len), w.at);
}

/* A kernel driver is named after its algorithm and how it computes it: "aes-generic", "camellia-aesni-avx2". */
static struct word strip_driver(struct word name)
{
	static const char *const suffixes[] = {
		"-generic", "-asm",       "-aesni",      "-ni",      "-avx",  "-avx2",    "-avx512",  "-vaes",    "-sse2",
		"-ssse3",   "-3way",      "-4way",       "-x86_64",  "-i586", "-ce",      "-neon",    "-neonbs",  "-arm",
		"-arm64",   "-scalar",    "-fixed-time", "-padlock", "-s390", "-ppc",     "-ppc-spe", "-sparc64", "-octeon",
		"-simd",    "-avx10_256", "-avx10_512",  "-p8",      "-lib",  "-riscv64", "-zvkned",  "-zvkb",    "-zvbb",
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(suffixes);) {
		bool found = ends_with(name, suffixes[i]);
		if (found)
			name.len -= strlen(suffixes[i]);
		i = found ? 0 : i + 1; /* another one may stand before it */
	}
	return name;
}

static int apply_api(struct word name, struct cf_cipher_spec *out, struct cf_err *err);

static int apply_essiv_hash(struct word hash, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (!strcmp(out->mode, "ecb"))
		return cf_fail(err, -EINVAL, "ecb has no IV, so essiv cannot be used with it");
	if (out->essiv_hash[0])
		return cf_fail(err, -ENODEV, "no engine here has essiv inside essiv");
	return put(out->essiv_hash, strip_driver(hash), "essiv hash", err);
}

/* essiv(cbc(aes),sha256) */
static int shape_essiv(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word hash = cut_last(&args, ',');
	if (!hash.at)
		return unknown(mode, err);
	int rc = apply_api(args, out, err);
	return rc ? rc : apply_essiv_hash(hash, out, err);
}

static int turn_cbc_into_cts(struct cf_cipher_spec *out, struct cf_err *err)
{
	if (strcmp(out->mode, "cbc") != 0)
		return cf_fail(err, -ENODEV, "no engine here has the cipher 'cts(%.24s(…))': cts goes with cbc only",
					   out->mode);
	strcpy(out->mode, "cts");
	return 0;
}

/* cts(cbc(aes)) */
static int shape_cts(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	(void)mode;
	int rc = apply_api(args, out, err);
	return rc ? rc : turn_cbc_into_cts(out, err);
}

/* adiantum(xchacha12,aes) or, the universal hash spelled out, adiantum(xchacha12,aes,nhpoly1305) */
static int shape_adiantum(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word hash = args, stream = strip_driver(cut(&hash, ',')), block = strip_driver(cut(&hash, ','));
	if (!block.at || (hash.at && !is(strip_driver(hash), "nhpoly1305")))
		return unknown(args, err);
	if (stream.len + 1 + block.len >= CF_NAME_MAX)
		return unknown(args, err);
	char pair[CF_NAME_MAX];
	memcpy(pair, stream.at, stream.len);
	pair[stream.len] = ',';
	memcpy(pair + stream.len + 1, block.at, block.len);
	int rc = put(out->cipher, (struct word){pair, stream.len + 1 + block.len}, "cipher name", err);
	return rc ? rc : put(out->mode, mode, "chaining mode", err);
}

/* cbc(aes) */
static int shape_simple(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	int rc = put(out->cipher, strip_driver(args), "cipher name", err);
	return rc ? rc : put(out->mode, mode, "chaining mode", err);
}

/* xts(aes) or xts(ecb(aes)): these two templates are built on ecb, and take its name too */
static int shape_on_ecb(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word inner = args;
	if (is(cut(&inner, '('), "ecb") && inner.len && inner.at[inner.len - 1] == ')')
		args = (struct word){inner.at, inner.len - 1};
	return shape_simple(mode, args, out, err);
}

static int apply_mode(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	static const struct {
		const char *mode;
		int (*apply)(struct word mode, struct word args, struct cf_cipher_spec *out, struct cf_err *err);
	} shapes[] = {
		{"xts", shape_on_ecb},  {"lrw", shape_on_ecb},        {"cts", shape_cts},
		{"essiv", shape_essiv}, {"adiantum", shape_adiantum},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(shapes); i++)
		if (is(mode, shapes[i].mode))
			return shapes[i].apply(mode, args, out, err);
	return shape_simple(mode, args, out, err);
}

/* What is left of "cts-cbc-aes-ce" and "xts-aes-aesni" without the suffix. */
static int apply_driver_parts(struct word parts, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word cipher = parts, mode = cut(&cipher, '-');
	if (!cipher.at)
		return unknown(parts, err);
	if (!is(mode, "cts"))
		return shape_simple(mode, cipher, out, err);
	int rc = apply_driver_parts(cipher, out, err);
	return rc ? rc : turn_cbc_into_cts(out, err);
}

/* A crypto API name: a template with its arguments, or a driver. */
static int apply_api(struct word name, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word args = name, mode = cut(&args, '(');
	if (!args.at) {
		struct word parts = strip_driver(name);
		return parts.len == name.len ? unknown(name, err) : apply_driver_parts(parts, out, err);
	}
	if (args.len == 0 || args.at[args.len - 1] != ')')
		return cf_fail(err, -EINVAL, "the parentheses of a capi: cipher do not match");
	args.len--;
	return apply_mode(mode, args, out, err);
}

static int apply_iv(struct word iv, struct word ivopts, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (is(iv, "essiv")) {
		if (!ivopts.len)
			return cf_fail(err, -EINVAL, "essiv needs a hash, as in essiv:sha256");
		strcpy(out->iv, "plain64");
		return apply_essiv_hash(ivopts, out, err);
	}
	if (!strcmp(out->mode, "ecb")) /* has no IV; the kernel ignores whatever stands here */
		return 0;
	return put(out->iv, iv, "IV mode", err);
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
static int keep_api_name(struct word name, struct word iv, struct word ivopts, struct cf_cipher_spec *out,
						 struct cf_err *err)
{
	char text[2 * CF_NAME_MAX + 16];
	const bool essiv = is(iv, "essiv");
	if (essiv && !ivopts.len)
		return cf_fail(err, -EINVAL, "essiv needs a hash, as in essiv:sha256");
	if (name.len >= CF_NAME_MAX || (essiv && ivopts.len >= CF_NAME_MAX))
		return cf_fail(err, -EINVAL, "the cipher's name is longer than %u characters", CF_NAME_MAX - 1);
	if (name.len && memchr(name.at, ':', name.len)) /* no name of the kernel's has one: it could not be written again */
		return unknown(name, err);
	int len = essiv
				  ? snprintf(text, sizeof(text), "essiv(%.*s,%.*s)", (int)name.len, name.at, (int)ivopts.len, ivopts.at)
				  : snprintf(text, sizeof(text), "%.*s", (int)name.len, name.at);
	*out = (struct cf_cipher_spec){.mode = CF_MODE_API, .keycount = is(iv, "lmk") ? LMK_KEYS : 1};
	int rc = put(out->cipher, (struct word){text, (size_t)len}, "name", err);
	if (rc || !iv.at)
		return rc;
	return put(out->iv, essiv ? (struct word){"plain64", 7} : iv, "IV mode", err);
}

static int parse_keycount(struct word text, uint32_t *out, struct cf_err *err)
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
static bool can_keep(const struct cf_cipher_spec *s, struct word iv)
{
	return s->keycount == (is(iv, "lmk") ? LMK_KEYS : 1) && !(iv.len && memchr(iv.at, '-', iv.len));
}

/* The kernel makes "mode(cipher)" of the old form. */
static int parse_parts(struct word cipher, struct word mode, struct word iv, struct word ivopts,
					   struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_err why = {0};
	char name[2 * CF_NAME_MAX + 16];
	int rc = apply_mode(mode, cipher, out, &why);
	if (!rc)
		rc = apply_iv(iv, ivopts, out, &why);
	if (rc == -EINVAL || !can_keep(out, iv) || (!rc && is_ours(out)))
		return rc ? cf_fail(err, rc, "%s", why.text) : 0;
	int len = snprintf(name, sizeof(name), "%.*s(%.*s)", (int)mode.len, mode.at, (int)cipher.len, cipher.at);
	if (!strcmp(out->mode, "ecb"))
		iv = (struct word){NULL, 0};
	return keep_api_name((struct word){name, (size_t)len}, iv, ivopts, out, err);
}

static int parse_old(struct word text, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (memchr(text.at, '(', text.len))
		return cf_fail(err, -EINVAL, "a cipher with parentheses is written as capi:…, as in capi:xts(aes)-plain64");
	struct word rest = text, keycount = cut(&rest, '-'), cipher = cut(&keycount, ':');
	struct word mode = cut(&rest, '-'), iv = cut(&rest, ':');
	if (!mode.at || (is(mode, "plain") && !iv.at)) {
		mode = (struct word){"cbc", 3};
		iv = (struct word){"plain", 5};
	}
	if (!iv.at && !is(mode, "ecb"))
		return cf_fail(err, -EINVAL, "the cipher needs an IV mode, as in aes-xts-plain64");
	int rc = keycount.at ? parse_keycount(keycount, &out->keycount, err) : 0;
	return rc ? rc : parse_parts(cipher, mode, iv, rest, out, err);
}

static int parse_capi(struct word api, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct word ivopts = cut_last(&api, ':'), iv = cut_last(&api, '-');
	struct cf_err why = {0};
	int rc = apply_api(api, out, &why);
	if (!rc && !iv.at && strcmp(out->mode, "ecb") != 0)
		return cf_fail(
			err, -EINVAL,
			"a capi: cipher needs an IV mode at its end, as in capi:xts(aes)-plain64: without one the kernel "
			"uses whatever memory holds as the IV");
	if (is(iv, "lmk"))
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
	struct word all = {text, strlen(text)};
	int rc;
	if (!strncmp(text, capi, strlen(capi)))
		rc = parse_capi((struct word){text + strlen(capi), all.len - strlen(capi)}, &spec, err);
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
