/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* table.c - a dm-crypt table line.
 *
 * Split as device-mapper splits it (blanks, a backslash quotes), judged as the kernel judges it, except that what the
 * kernel takes only by misreading it is refused. The line holds the key: it is copied into the secret arena and split
 * there, and since a misplaced key may stand in any field no message quotes one. Pure but for reading a kernel keyring.
 * Source: device-mapper's dm_split_args(), dm-crypt.c's crypt_ctr() and crypt_ctr_optional(). */
#include "config.h"

#include "cryptfuse/table.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "keyring.h"

enum field { F_START, F_LENGTH, F_TARGET, F_CIPHER, F_KEY, F_IV_OFFSET, F_DEVICE, F_OFFSET, N_FIELDS };

#define TOKENS_MAX 64u
#define SECTORS_MAX ((uint64_t)INT64_MAX / CF_SECTOR_BYTES)

struct tokens {
	char *at[TOKENS_MAX];
	size_t n;
};

/* Copy the line without blanks at its ends into the arena; it must be one line of text. */
static int copy_line(const char *text, size_t len, char **out, struct cf_err *err)
{
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (!len)
		return cf_fail(err, -EINVAL, "the table is empty");
	if (memchr(text, '\n', len))
		return cf_fail(err, -EINVAL,
					   "the table has more than one line: cryptfuse opens volumes of a single crypt target");
	if (memchr(text, '\0', len))
		return cf_fail(err, -EINVAL, "the table holds a NUL byte: it is not text");
	char *line = cf_secret_alloc(len + 1);
	if (!line)
		return cf_fail(err, -ENOMEM, "no memory for the table");
	memcpy(line, text, len);
	*out = line;
	return 0;
}

/* Cut the line at blanks, in place; "\x" is x, also where x is a blank. */
static int split(char *line, struct tokens *t, struct cf_err *err)
{
	const char *in = line;
	for (t->n = 0;; t->n++) {
		while (isspace((unsigned char)*in))
			in++;
		if (!*in)
			return 0;
		if (t->n == TOKENS_MAX)
			return cf_fail(err, -EINVAL, "the table has more than %u fields", TOKENS_MAX);
		char *to = t->at[t->n] = line + (in - line);
		while (*in && !isspace((unsigned char)*in)) {
			if (*in == '\\' && in[1])
				in++;
			*to++ = *in++;
		}
		if (*in)
			in++;
		*to = '\0';
	}
}

static int parse_field(const char *text, const char *name, uint64_t max, uint64_t *out, struct cf_err *err)
{
	switch (cf_units_parse_number(text, max, out)) {
	case 0:
		return 0;
	case -ERANGE:
		return cf_fail(err, -EINVAL, "the table's %s is too large (the kernel would wrap it around)", name);
	default:
		return cf_fail(err, -EINVAL, "the table's %s is not a plain decimal number", name);
	}
}

/* ---- options ---- */

static int set_du(const char *text, struct cf_table *out, struct cf_err *err)
{
	uint64_t du;
	int rc = cf_units_parse_number(text, CF_DU_MAX, &du);
	if (rc == -ERANGE)
		return cf_fail(err, -EINVAL, "the table's sector_size is above 65536 (older kernels wrap it around)");
	if (rc)
		return cf_fail(err, -EINVAL, "the table's sector_size is not a plain decimal number");
	if (!cf_units_du_valid(du))
		return cf_fail(err, -EINVAL, "the table's sector_size must be 512 to 65536, a power of two");
	if (out->sectors & (du / CF_SECTOR_BYTES - 1))
		return cf_fail(err, -EINVAL, "the table's LENGTH is not a multiple of its sector_size");
	out->cipher.du_bytes = (uint32_t)du;
	return 0;
}

static int refuse_integrity(const char *text, struct cf_table *out, struct cf_err *err)
{
	(void)text;
	(void)out;
	return cf_fail(err, -EINVAL,
				   "the table asks for integrity: that needs dm-integrity, which cryptfuse cannot stand in for");
}

static int set_large_sectors(const char *text, struct cf_table *out, struct cf_err *err)
{
	(void)text;
	(void)err;
	out->cipher.iv_numbering = CF_IV_LARGE_SECTORS;
	return 0;
}

static int set_discards(const char *text, struct cf_table *out, struct cf_err *err)
{
	(void)text;
	(void)err;
	out->discards = CF_DISCARDS_ALLOWED;
	return 0;
}

/* Scheduling inside the kernel: there are no such queues here. */
static int set_nothing(const char *text, struct cf_table *out, struct cf_err *err)
{
	(void)text;
	(void)out;
	(void)err;
	return 0;
}

enum option_form { WORD /* in any case */, PREFIX /* name:value, as written */ };

static const struct {
	const char *name;
	enum option_form form;
	int (*apply)(const char *value, struct cf_table *out, struct cf_err *err);
} options[] = {
	{"allow_discards", WORD, set_discards},        {"same_cpu_crypt", WORD, set_nothing},
	{"submit_from_crypt_cpus", WORD, set_nothing}, {"high_priority", WORD, set_nothing},
	{"no_read_workqueue", WORD, set_nothing},      {"no_write_workqueue", WORD, set_nothing},
	{"iv_large_sectors", WORD, set_large_sectors}, {"sector_size:", PREFIX, set_du},
	{"integrity:", PREFIX, refuse_integrity},      {"integrity_key_size:", PREFIX, refuse_integrity},
};

static int apply_option(const char *text, size_t position, struct cf_table *out, struct cf_err *err)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(options); i++) {
		size_t len = strlen(options[i].name);
		if (options[i].form == WORD ? !strcasecmp(text, options[i].name) : !strncmp(text, options[i].name, len))
			return options[i].apply(text + len, out, err);
	}
	return cf_fail(err, -EINVAL, "option %zu of the table is none that dm-crypt has", position);
}

/* "[COUNT option…]". The kernel does not look at what follows the COUNT options: such a table does not say what it
 * means. */
static int parse_options(char *const *at, size_t n, struct cf_table *out, struct cf_err *err)
{
	uint64_t count;
	if (n == 0)
		return 0;
	int rc = parse_field(at[0], "option COUNT", UINT32_MAX, &count, err);
	if (rc)
		return rc;
	if (count > n - 1)
		return cf_fail(err, -EINVAL, "the table has fewer options than its COUNT says");
	if (count < n - 1)
		return cf_fail(err, -EINVAL,
					   "the table has more options than its COUNT says (the kernel would ignore the rest)");
	for (size_t i = 1; i < n && !rc; i++)
		rc = apply_option(at[i], i, out, err);
	return rc;
}

/* ---- key and cipher ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hex_key(const char *text, uint8_t **key, uint32_t *key_bytes, struct cf_err *err)
{
	size_t digits = strlen(text);
	if (digits != strspn(text, "0123456789abcdefABCDEF"))
		return cf_fail(err, -EINVAL,
					   "the table's KEY has characters that are no hex digits (field 5; - stands for no key)");
	if (digits % 2)
		return cf_fail(err, -EINVAL,
					   "the table's KEY has an odd number of hex digits (the kernel would drop the last)");
	if (digits / 2 > CF_KEY_MAX)
		return cf_fail(err, -EINVAL, "the table's KEY is longer than %u bytes", CF_KEY_MAX);
	uint8_t *bytes = cf_secret_alloc(digits / 2);
	if (!bytes)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	for (size_t i = 0; i < digits / 2; i++)
		bytes[i] = (uint8_t)(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
	*key = bytes;
	*key_bytes = (uint32_t)(digits / 2);
	return 0;
}

static int parse_key(char *text, uint8_t **key, uint32_t *key_bytes, struct cf_err *err)
{
	if (!strcmp(text, "-")) {
		*key = NULL;
		*key_bytes = 0;
		return 0;
	}
	if (*text == ':')
		return cf_keyring_read(text, key, key_bytes, err);
	return parse_hex_key(text, key, key_bytes, err);
}

/* Messages about a cipher quote it, so it must not be a key that slipped into its field. */
static bool looks_like_key(const char *text)
{
	size_t run = 0;
	if (text[strspn(text, "0123456789abcdefABCDEF")] == '\0')
		return true;
	for (; *text; text++) {
		run = hex_value(*text) >= 0 ? run + 1 : 0;
		if (run >= 16)
			return true;
	}
	return false;
}

static int parse_cipher(const char *text, struct cf_table *out, struct cf_err *err)
{
	if (looks_like_key(text))
		return cf_fail(err, -EINVAL, "the table has what looks like a key where the cipher belongs (field 4)");
	return cf_spec_parse_cipher(text, &out->cipher, err);
}

/* ---- the line ---- */

static int parse_place(char *const *at, struct cf_table *out, struct cf_err *err)
{
	uint64_t start;
	int rc = parse_field(at[F_START], "START", UINT64_MAX, &start, err);
	if (!rc && start)
		return cf_fail(err, -EINVAL, "the table's START must be 0: cryptfuse opens volumes of a single crypt target");
	if (!rc)
		rc = parse_field(at[F_LENGTH], "LENGTH", SECTORS_MAX, &out->sectors, err);
	if (!rc && !out->sectors)
		return cf_fail(err, -EINVAL, "the table's LENGTH is 0");
	if (!rc && strcmp(at[F_TARGET], "crypt") != 0)
		return cf_fail(err, -EINVAL, "the table is not one of a crypt target");
	return rc ? rc : parse_field(at[F_OFFSET], "OFFSET", SECTORS_MAX, &out->data_sector, err);
}

static int parse_iv_offset(const char *text, struct cf_table *out, struct cf_err *err)
{
	int rc = parse_field(text, "IV_OFFSET", UINT64_MAX, &out->cipher.iv_offset, err);
	if (!rc && (out->cipher.iv_offset & (out->cipher.du_bytes / CF_SECTOR_BYTES - 1)))
		return cf_fail(err, -EINVAL, "the table's IV_OFFSET is not a multiple of its sector_size");
	return rc;
}

static int parse_tokens(const struct tokens *t, struct cf_table *out, uint8_t **key, struct cf_err *err)
{
	size_t named = t->at[0][strlen(t->at[0]) - 1] == ':'; /* no token is empty */
	char *const *at = t->at + named;
	size_t n = t->n - named;
	if (n < N_FIELDS)
		return cf_fail(err, -EINVAL,
					   "the table has too few fields: START LENGTH crypt CIPHER KEY IV_OFFSET DEVICE OFFSET");
	out->cipher.du_bytes = CF_DU_MIN;
	int rc = parse_place(at, out, err);
	if (!rc)
		rc = parse_options(at + N_FIELDS, n - N_FIELDS, out, err);
	if (!rc)
		rc = parse_iv_offset(at[F_IV_OFFSET], out, err);
	if (!rc)
		rc = parse_key(at[F_KEY], key, &out->cipher.key_bytes, err);
	return rc ? rc : parse_cipher(at[F_CIPHER], out, err);
}

int cf_table_parse(const char *text, size_t len, struct cf_table *out, uint8_t **key, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_freep) char *line = NULL;
	CF_CLEANUP(cf_secret_freep) uint8_t *bytes = NULL;
	struct tokens t;
	struct cf_table table = {0};
	int rc = copy_line(text, len, &line, err);
	if (!rc)
		rc = split(line, &t, err);
	if (!rc)
		rc = parse_tokens(&t, &table, &bytes, err);
	if (rc)
		return rc;
	*out = table;
	*key = cf_take(bytes);
	return 0;
}
