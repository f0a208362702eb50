/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_table.c - table lines: one judgement, no piece of a key in a message, and what parses is written again as what
 * parses to the same table and key. */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/table.h"
#include "fuzz.h"

#define LINE_MAX_BYTES ((size_t)64 * 1024)
#define KEY_RUN 16u /* hex digits in a row that no message may have */

static void check_message(const char *text)
{
	for (; *text; text++) {
		size_t run = strspn(text, "0123456789abcdefABCDEF");
		fuzz_must(run < KEY_RUN);
		text += run;
		if (!*text)
			break;
	}
}

static void put_key(char *out, const uint8_t *key, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		sprintf(out + (size_t)2 * i, "%02x", key[i]);
	if (!bytes)
		strcpy(out, "-");
}

/* As device-mapper wants a field that holds blanks or backslashes. */
static void quote(const char *text, char *out)
{
	for (; *text; text++) {
		if (isspace((unsigned char)*text) || *text == '\\')
			*out++ = '\\';
		*out++ = *text;
	}
	*out = '\0';
}

static char *write_again(const struct cf_table *t, const uint8_t *key)
{
	char cipher[CF_SPEC_TEXT], quoted[2 * CF_SPEC_TEXT], hex[2 * CF_KEY_MAX + 2];
	char *line = malloc(LINE_MAX_BYTES);
	const bool discards = t->discards == CF_DISCARDS_ALLOWED;
	const bool large = t->cipher.iv_numbering == CF_IV_LARGE_SECTORS;
	put_key(hex, key, t->cipher.key_bytes);
	cf_spec_format_cipher(&t->cipher, cipher, sizeof(cipher));
	quote(cipher, quoted);
	fuzz_must(line &&
			  snprintf(line, LINE_MAX_BYTES,
					   "name: 0 %" PRIu64 " crypt %s %s %" PRIu64 " 7:0 %" PRIu64 " %d sector_size:%u%s%s\n",
					   t->sectors, quoted, hex, t->cipher.iv_offset, t->data_sector, 1 + discards + large,
					   t->cipher.du_bytes, large ? " iv_large_sectors" : "", discards ? " allow_discards" : "") > 0);
	return line;
}

static bool same(const struct cf_table *a, const uint8_t *key_a, const struct cf_table *b, const uint8_t *key_b)
{
	char cipher_a[CF_SPEC_TEXT], cipher_b[CF_SPEC_TEXT];
	cf_spec_format_cipher(&a->cipher, cipher_a, sizeof(cipher_a));
	cf_spec_format_cipher(&b->cipher, cipher_b, sizeof(cipher_b));
	return strcmp(cipher_a, cipher_b) == 0 && a->sectors == b->sectors && a->data_sector == b->data_sector &&
		   a->discards == b->discards && a->cipher.du_bytes == b->cipher.du_bytes &&
		   a->cipher.iv_numbering == b->cipher.iv_numbering && a->cipher.iv_offset == b->cipher.iv_offset &&
		   a->cipher.key_bytes == b->cipher.key_bytes &&
		   (!a->cipher.key_bytes || memcmp(key_a, key_b, a->cipher.key_bytes) == 0);
}

static void check_numbers(const struct cf_table *t)
{
	fuzz_must(t->sectors > 0 && t->sectors <= INT64_MAX / CF_SECTOR_BYTES);
	fuzz_must(t->data_sector <= INT64_MAX / CF_SECTOR_BYTES);
	fuzz_must(cf_units_du_valid(t->cipher.du_bytes) && t->cipher.key_bytes <= CF_KEY_MAX);
	fuzz_must(t->sectors * CF_SECTOR_BYTES % t->cipher.du_bytes == 0);
	fuzz_must(t->cipher.keycount >= 1 && t->cipher.keycount <= CF_KEYCOUNT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	CF_CLEANUP(cf_freep) char *text = fuzz_copy(data, len), *line = NULL;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL, *key_again = NULL, *key_written = NULL;
	struct cf_table t, again;
	struct cf_err err = {0}, err_again = {0}, none = {0};
	int rc = cf_table_parse(text, len, &t, &key, &err);
	fuzz_judged(rc, &err);
	check_message(err.text);
	fuzz_must(cf_table_parse(text, len, &again, &key_again, &err_again) == rc && !strcmp(err.text, err_again.text));
	if (rc) {
		fuzz_must(!key);
		return 0;
	}
	fuzz_must(same(&t, key, &again, key_again));
	check_numbers(&t);
	line = write_again(&t, key);
	fuzz_must(cf_table_parse(line, strlen(line), &again, &key_written, &none) == 0);
	fuzz_must(same(&t, key, &again, key_written));
	return 0;
}
