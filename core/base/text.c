/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* text.c - what of a text prints. No state. Source: the Unicode standard, table 3-7 (well-formed UTF-8). */
#include "cryptfuse/text.h"

#include <stdbool.h>
#include <stdint.h>

static size_t length_of(uint8_t first)
{
	return first >= 0xc2 && first < 0xe0   ? 2
		   : first >= 0xe0 && first < 0xf0 ? 3
		   : first >= 0xf0 && first < 0xf5 ? 4
										   : 0;
}

size_t cf_text_char(const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	size_t len = length_of(s[0]);
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	bool control = s[0] == 0xc2 && s[1] < 0xa0; /* U+0080 to U+009F */
	bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool outside = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90); /* surrogates; no code point */
	bool reordering = s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
									   (s[1] == 0x81 && s[2] >= 0xa6)); /* line breaks and direction marks */
	return control || overlong || outside || reordering ? 0 : len;
}

void cf_text_make_printable(char *text)
{
	for (size_t len; *text; text += len) {
		len = cf_text_char(text);
		if (!len) {
			*text = '?';
			len = 1;
		}
	}
}
