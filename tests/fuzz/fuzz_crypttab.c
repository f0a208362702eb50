/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_crypttab.c - a crypttab whose first line is the name that is looked for: one judgement, and the line that is
 * written of what was found says the same again. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/open/plan.h"
#include "cryptfuse/crypttab.h"
#include "fuzz.h"

static int find(const char *text, size_t len, const char *name, struct cf_crypttab *out, struct cf_err *err)
{
	int rc = cf_crypttab_find(text, len, "crypttab", name, out, err);
	fuzz_judged(rc, err);
	return rc;
}

/* Blanks and backslashes as octal, and a name that begins like a comment. */
static void put_word(FILE *f, const char *word)
{
	for (const char *p = word; *p; p++)
		if (strchr(" \t\r\n\\#", *p))
			fprintf(f, "\\%03o", (unsigned)*p);
		else
			fputc(*p, f);
}

static void put_text(FILE *f, const char *name, const char *value)
{
	if (!value)
		return;
	fprintf(f, ",%s=", name);
	put_word(f, value);
}

static void put_number(FILE *f, const char *name, uint64_t value)
{
	if (value)
		fprintf(f, ",%s=%" PRIu64, name, value);
}

static void put_line(FILE *f, const char *name, const struct cf_crypttab *t)
{
	static const char *const types[] = {[CF_TYPE_PLAIN] = ",plain",
										[CF_TYPE_LUKS] = ",luks",
										[CF_TYPE_BITLK] = ",bitlk",
										[CF_TYPE_FVAULT2] = ",fvault2"};
	const struct cf_open_opts *v = &t->volume;
	put_word(f, name);
	fputc('\t', f);
	put_word(f, t->source);
	fputc(' ', f);
	put_word(f, v->key_file ? v->key_file : "none");
	fprintf(f, " noauto%s%s%s", v->type ? types[v->type] : "", v->access == CF_READ_ONLY ? ",readonly" : "",
			v->discards == CF_DISCARDS_ALLOWED ? ",discard" : "");
	fputs(t->verify ? ",verify" : "", f);
	put_text(f, "cipher", v->cipher);
	put_text(f, "hash", v->hash);
	put_text(f, "header", v->header_file);
	put_text(f, "key-slot", v->key_slot);
	put_number(f, "size", v->key_bits);
	put_number(f, "offset", v->offset_sectors);
	put_number(f, "skip", v->skip_sectors);
	put_number(f, "sector-size", v->sector_size_bytes);
	put_number(f, "keyfile-size", v->keyfile_size_bytes);
	put_number(f, "keyfile-offset", v->keyfile_offset_bytes);
	put_number(f, "tries", v->tries);
	put_number(f, "timeout", t->timeout_s);
	fputc('\n', f);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same(const struct cf_crypttab *a, const struct cf_crypttab *b)
{
	const struct cf_open_opts *x = &a->volume, *y = &b->volume;
	return same_text(x->image, y->image) && same_text(x->key_file, y->key_file) && same_text(x->cipher, y->cipher) &&
		   same_text(x->hash, y->hash) && same_text(x->header_file, y->header_file) &&
		   same_text(x->key_slot, y->key_slot) && x->type == y->type && x->access == y->access &&
		   x->discards == y->discards && x->key_bits == y->key_bits && x->offset_sectors == y->offset_sectors &&
		   x->skip_sectors == y->skip_sectors && x->sector_size_bytes == y->sector_size_bytes &&
		   x->keyfile_size_bytes == y->keyfile_size_bytes && x->keyfile_offset_bytes == y->keyfile_offset_bytes &&
		   x->tries == y->tries && a->timeout_s == b->timeout_s && a->verify == b->verify;
}

/* What a line fills in never changes what was said already. */
static void check_apply(const struct cf_crypttab *t)
{
	struct cf_open_opts opts = {.image = "image", .cipher = "aes-ecb", .volume_key_file = "key", .tries = 5};
	struct cf_err first = {0}, second = {0};
	cf_crypttab_apply(t, &opts);
	fuzz_must(!strcmp(opts.image, "image") && !strcmp(opts.cipher, "aes-ecb") && opts.tries == 5);
	fuzz_must(!opts.key_file && !opts.keyfile_size_bytes && !opts.keyfile_offset_bytes);
	int rc = cf_type_check(&opts, &first);
	fuzz_judged(rc, &first);
	fuzz_must(cf_type_check(&opts, &second) == rc && !strcmp(first.text, second.text));
}

static void check_written(const char *name, const struct cf_crypttab *t)
{
	static struct cf_crypttab again;
	CF_CLEANUP(cf_freep) char *text = NULL;
	size_t len = 0;
	struct cf_err err = {0};
	FILE *f = open_memstream(&text, &len);
	fuzz_must(f);
	put_line(f, name, t);
	fclose(f);
	if (len <= CF_CRYPTTAB_LINE_MAX) /* escapes make it longer */
		fuzz_must(find(text, len, name, &again, &err) == 0 && same(t, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct cf_crypttab t, again;
	struct fuzz_in in = {data, len};
	struct cf_err first = {0}, second = {0};
	CF_CLEANUP(cf_freep) char *name = fuzz_line(&in), *text = fuzz_copy(in.at, in.left);
	int rc = find(text, in.left, name, &t, &first);
	fuzz_must(find(text, in.left, name, &again, &second) == rc && !strcmp(first.text, second.text));
	if (rc)
		return 0;
	fuzz_must(same(&t, &again));
	check_apply(&t);
	if (!strpbrk(t.source, "=,") && !(t.volume.key_file && strchr(t.volume.key_file, ':')))
		check_written(name, &t);
	return 0;
}
