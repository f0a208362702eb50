/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_spec.c - cipher strings: a failed parse leaves no trace, and what parses is written again as what parses to the
 * same. Nothing asks the kernel: the engine is named. */
#include "config.h"

#include <string.h>

#include "cryptfuse/spec.h"
#include "fuzz.h"

typedef int parse_fn(const char *text, struct cf_cipher_spec *out, struct cf_err *err);

static void check_judgement(const struct cf_cipher_spec *parsed)
{
	struct cf_cipher_spec spec = *parsed;
	spec.du_bytes = 4096;
	if (strcmp(spec.mode, CF_MODE_API) == 0)
		return;
	spec.key_bytes = cf_cipher_default_key_bytes(&spec);
	struct cf_err first = {0}, second = {0};
	int rc = cf_cipher_check(&spec, "openssl", &first);
	fuzz_judged(rc, &first);
	fuzz_must(cf_cipher_check(&spec, "openssl", &second) == rc && strcmp(first.text, second.text) == 0);
}

static void check(parse_fn *parse, const char *text)
{
	struct cf_cipher_spec spec, again, blank;
	struct cf_err err = {0}, none = {0};
	char written[CF_SPEC_TEXT];
	memset(&blank, 0x5a, sizeof(blank));
	spec = again = blank;
	int rc = parse(text, &spec, &err);
	fuzz_judged(rc, &err);
	fuzz_must(parse(text, &again, NULL) == rc && memcmp(&spec, &again, sizeof(spec)) == 0);
	if (rc) {
		fuzz_must(memcmp(&spec, &blank, sizeof(spec)) == 0);
		return;
	}
	fuzz_must(spec.key_bytes == blank.key_bytes && spec.du_bytes == blank.du_bytes &&
			  spec.iv_offset == blank.iv_offset);
	cf_spec_format_cipher(&spec, written, sizeof(written));
	again = blank;
	fuzz_must(cf_spec_parse_cipher(written, &again, &none) == 0);
	fuzz_must(strcmp(spec.cipher, again.cipher) == 0 && strcmp(spec.mode, again.mode) == 0);
	fuzz_must(strcmp(spec.iv, again.iv) == 0 && strcmp(spec.essiv_hash, again.essiv_hash) == 0);
	fuzz_must(spec.keycount == again.keycount);
	spec.iv_offset = 0;
	spec.iv_numbering = CF_IV_SECTORS;
	check_judgement(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	CF_CLEANUP(cf_freep) char *text = fuzz_text(&in);
	check(cf_spec_parse_cipher, text);
	check(cf_spec_parse_option, text);
	return 0;
}
