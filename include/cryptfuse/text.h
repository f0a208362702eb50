/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* text.h - text from strangers: labels, names, messages that repeat them. Any thread. */
#ifndef CRYPTFUSE_TEXT_H
#define CRYPTFUSE_TEXT_H

#include <stddef.h>

/** cf_text_char - how many bytes of well-formed UTF-8 that print stand at @s; 0 none do, and at the end. What moves a
 * cursor, starts a terminal's command (also U+0080 to U+009F), breaks a line or turns its direction does not print. */
size_t cf_text_char(const char *s);

/** cf_text_make_printable - '?' for every byte that does not print, in place. */
void cf_text_make_printable(char *text);

#endif
