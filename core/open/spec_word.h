/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec_word.h - inside the parser of cipher strings: pieces of the text (here), and what names of the crypto API mean
 * (spec_name.c). Pure functions. */
#ifndef CRYPTFUSE_OPEN_SPEC_WORD_H
#define CRYPTFUSE_OPEN_SPEC_WORD_H

#include <stdbool.h>
#include <string.h>

#include "cryptfuse/spec.h"

/* A piece of the text, not NUL-terminated. at is NULL where the piece is not there at all, which is not the same as
 * empty. */
struct cf_word {
	const char *at;
	size_t len;
};
static inline bool cf_word_is(struct cf_word w, const char *name)
{
	return w.at && strlen(name) == w.len && memcmp(w.at, name, w.len) == 0;
}

/* The text before the first @sep; *rest becomes what follows it, or nothing. */
static inline struct cf_word cf_word_cut(struct cf_word *rest, char sep)
{
	struct cf_word head = *rest;
	const char *p = head.at ? memchr(head.at, sep, head.len) : NULL;
	if (!p) {
		*rest = (struct cf_word){NULL, 0};
		return head;
	}
	head.len = (size_t)(p - head.at);
	*rest = (struct cf_word){p + 1, rest->len - head.len - 1};
	return head;
}

/* The text after the last @sep, or nothing; *head becomes what precedes it. */
static inline struct cf_word cf_word_cut_last(struct cf_word *head, char sep)
{
	const char *p = memrchr(head->at, sep, head->len);
	if (!p)
		return (struct cf_word){NULL, 0};
	struct cf_word tail = {p + 1, head->len - (size_t)(p - head->at) - 1};
	head->len = (size_t)(p - head->at);
	return tail;
}

/** cf_word_put - the word as a name of the struct; @what it is, for messages. 0; -EINVAL empty or too long. */
int cf_word_put(char out[static CF_NAME_MAX], struct cf_word w, const char *what, struct cf_err *err) CF_MUST_CHECK;

/** cf_word_unknown - "no engine here has the cipher …". Returns -ENODEV. */
int cf_word_unknown(struct cf_word w, struct cf_err *err);

/** cf_spec_apply_mode, cf_spec_apply_api - set cipher, mode and essiv_hash of @out from "xts" and "aes", from
 * "xts(aes)" or a driver's name. Returns 0; -EINVAL malformed; -ENODEV it means nothing here. */
int cf_spec_apply_mode(struct cf_word mode, struct cf_word args, struct cf_cipher_spec *out,
					   struct cf_err *err) CF_MUST_CHECK;
int cf_spec_apply_api(struct cf_word name, struct cf_cipher_spec *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_spec_apply_essiv_hash - essiv by that hash over what @out has so far. */
int cf_spec_apply_essiv_hash(struct cf_word hash, struct cf_cipher_spec *out, struct cf_err *err) CF_MUST_CHECK;

#endif
