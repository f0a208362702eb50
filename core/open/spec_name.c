/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec_name.c - what a name of the crypto API means: one function for each shape that it can have, which both forms of
 * a cipher string end in. A driver means its algorithm. Pure functions. */
#include "config.h"

#include <errno.h>

#include "cryptfuse/err.h"
#include "spec_word.h"

static bool ends_with(struct cf_word w, const char *suffix)
{
	size_t len = strlen(suffix);
	return w.len > len && memcmp(w.at + w.len - len, suffix, len) == 0;
}

int cf_word_put(char out[static CF_NAME_MAX], struct cf_word w, const char *what, struct cf_err *err)
{
	if (w.len == 0)
		return cf_fail(err, -EINVAL, "the cipher has an empty %s", what);
	if (w.len >= CF_NAME_MAX)
		return cf_fail(err, -EINVAL, "the cipher's %s is longer than %u characters", what, CF_NAME_MAX - 1);
	memcpy(out, w.at, w.len);
	out[w.len] = '\0';
	return 0;
}

int cf_word_unknown(struct cf_word w, struct cf_err *err)
{
	return cf_fail(err, -ENODEV, "no engine here has the cipher '%.*s'", (int)(w.len > 128 ? 128 : w.len), w.at);
}
/* A kernel driver is named after its algorithm and how it computes it: "aes-generic", "camellia-aesni-avx2". */
static struct cf_word strip_driver(struct cf_word name)
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

int cf_spec_apply_essiv_hash(struct cf_word hash, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (!strcmp(out->mode, "ecb"))
		return cf_fail(err, -EINVAL, "ecb has no IV, so essiv cannot be used with it");
	if (out->essiv_hash[0])
		return cf_fail(err, -ENODEV, "no engine here has essiv inside essiv");
	return cf_word_put(out->essiv_hash, strip_driver(hash), "essiv hash", err);
}

/* essiv(cbc(aes),sha256) */
static int shape_essiv(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word hash = cf_word_cut_last(&args, ',');
	if (!hash.at)
		return cf_word_unknown(mode, err);
	int rc = cf_spec_apply_api(args, out, err);
	return rc ? rc : cf_spec_apply_essiv_hash(hash, out, err);
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
static int shape_cts(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	(void)mode;
	int rc = cf_spec_apply_api(args, out, err);
	return rc ? rc : turn_cbc_into_cts(out, err);
}

/* adiantum(xchacha12,aes) or, the universal hash spelled out, adiantum(xchacha12,aes,nhpoly1305) */
static int shape_adiantum(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word hash = args, stream = strip_driver(cf_word_cut(&hash, ',')),
				   block = strip_driver(cf_word_cut(&hash, ','));
	if (!block.at || (hash.at && !cf_word_is(strip_driver(hash), "nhpoly1305")))
		return cf_word_unknown(args, err);
	if (stream.len + 1 + block.len >= CF_NAME_MAX)
		return cf_word_unknown(args, err);
	char pair[CF_NAME_MAX];
	memcpy(pair, stream.at, stream.len);
	pair[stream.len] = ',';
	memcpy(pair + stream.len + 1, block.at, block.len);
	int rc = cf_word_put(out->cipher, (struct cf_word){pair, stream.len + 1 + block.len}, "cipher name", err);
	return rc ? rc : cf_word_put(out->mode, mode, "chaining mode", err);
}

/* cbc(aes) */
static int shape_simple(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	if (cf_word_is(mode, CF_MODE_API)) /* our own word: nobody has such a mode */
		return cf_word_unknown(mode, err);
	int rc = cf_word_put(out->cipher, strip_driver(args), "cipher name", err);
	return rc ? rc : cf_word_put(out->mode, mode, "chaining mode", err);
}

/* xts(aes) or xts(ecb(aes)): these two templates are built on ecb, and take its name too */
static int shape_on_ecb(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word inner = args;
	if (cf_word_is(cf_word_cut(&inner, '('), "ecb") && inner.len && inner.at[inner.len - 1] == ')')
		args = (struct cf_word){inner.at, inner.len - 1};
	return shape_simple(mode, args, out, err);
}

int cf_spec_apply_mode(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err)
{
	static const struct {
		const char *mode;
		int (*apply)(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out, struct cf_err *err);
	} shapes[] = {
		{"xts", shape_on_ecb},  {"lrw", shape_on_ecb},        {"cts", shape_cts},
		{"essiv", shape_essiv}, {"adiantum", shape_adiantum},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(shapes); i++)
		if (cf_word_is(mode, shapes[i].mode))
			return shapes[i].apply(mode, args, out, err);
	return shape_simple(mode, args, out, err);
}

/* What is left of "cts-cbc-aes-ce" and "xts-aes-aesni" without the suffix. */
static int apply_driver_parts(struct cf_word parts, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word cipher = parts, mode = cf_word_cut(&cipher, '-');
	if (!cipher.at)
		return cf_word_unknown(parts, err);
	if (!cf_word_is(mode, "cts"))
		return shape_simple(mode, cipher, out, err);
	int rc = apply_driver_parts(cipher, out, err);
	return rc ? rc : turn_cbc_into_cts(out, err);
}

/* A crypto API name: a template with its arguments, or a driver. */
int cf_spec_apply_api(struct cf_word name, struct cf_cipher_spec *out, struct cf_err *err)
{
	struct cf_word args = name, mode = cf_word_cut(&args, '(');
	if (!args.at) {
		struct cf_word parts = strip_driver(name);
		return parts.len == name.len ? cf_word_unknown(name, err) : apply_driver_parts(parts, out, err);
	}
	if (args.len == 0 || args.at[args.len - 1] != ')')
		return cf_fail(err, -EINVAL, "the parentheses of a capi: cipher do not match");
	args.len--;
	return cf_spec_apply_mode(mode, args, out, err);
}
