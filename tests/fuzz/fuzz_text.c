/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_text.c - text from strangers: what was made printable stays as it is, is as long as before, and has nothing that
 * a terminal acts on. Well-formed UTF-8 is judged by the C library. */
#include "config.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "cryptfuse/text.h"
#include "fuzz.h"

static void check_well_formed(const char *text)
{
	mbstate_t state = {0};
	for (wchar_t c; *text;) {
		size_t n = mbrtowc(&c, text, MB_CUR_MAX, &state);
		fuzz_must(n > 0 && n <= 4 && cf_text_char(text) == n);
		fuzz_must(c >= 0x20 && (c < 0x7f || c >= 0xa0) && (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x206f));
		text += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	CF_CLEANUP(cf_freep) char *text = fuzz_text(&in), *again = NULL;
	const size_t before = strlen(text);
	fuzz_must(setlocale(LC_CTYPE, "C.UTF-8"));
	cf_text_make_printable(text);
	fuzz_must(strlen(text) == before);
	check_well_formed(text);
	again = fuzz_copy(text, before + 1);
	cf_text_make_printable(again);
	fuzz_must(strcmp(text, again) == 0);
	return 0;
}
