/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_open.c - from options to a plan and a key. Truth: tests/vectors/plain-keys.tsv, the tables that the real
 * cryptsetup loaded, or its exit code; the plan is written out as such a table and compared as text. What is not in
 * those rows: check_open_plan.c. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_open.h"
#include "tsv.h"
#include "vectors.h"

/* ---- the rows of the real cryptsetup ---- */

enum column { ROW, EXIT, SOURCE, INPUT, ARGS, LENGTH, CIPHER, KEY, IV_OFFSET, OFFSET, OPTIONS, N_COLUMNS };
static struct tsv rows;

static const struct {
	const char *row, *args; /* where it differs: what cryptfuse makes of it */
	int exit_code;
	const char *options;
} exceptions[] = {
	{"opt --sector-size 8192", "data units above the page size are taken", 0, "1 sector_size:8192"},
};

static void set_option(struct cf_open_opts *o, const char *name, char *value)
{
	const struct {
		const char *name;
		const char **text;
		uint64_t *number;
	} known[] = {
		{"--cipher", &o->cipher, NULL},
		{"--hash", &o->hash, NULL},
		{"--key-size", NULL, &o->key_bits},
		{"--offset", NULL, &o->offset_sectors},
		{"--skip", NULL, &o->skip_sectors},
		{"--size", NULL, &o->size_sectors},
		{"--device-size", NULL, &o->device_size_bytes},
		{"--sector-size", NULL, &o->sector_size_bytes},
		{"--keyfile-size", NULL, &o->keyfile_size_bytes},
		{"--keyfile-offset", NULL, &o->keyfile_offset_bytes},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		ck_assert_ptr_nonnull(value);
		if (known[i].text)
			*known[i].text = value;
		else
			ck_assert_int_eq(cf_units_parse_size(value, 1, known[i].number), 0);
		return;
	}
	ck_abort_msg("the test does not know %s", name);
}

/* "--cipher aes-xts-plain64 --readonly …"; @args is cut up. */
static void set_options(struct cf_open_opts *o, char *args)
{
	for (char *name; (name = strsep(&args, " "));) {
		if (!*name || !strncmp(name, "--perf-", 7))
			continue;
		if (!strcmp(name, "--iv-large-sectors"))
			o->iv_large_sectors = true;
		else if (!strcmp(name, "--readonly"))
			o->access = CF_READ_ONLY;
		else if (!strcmp(name, "--allow-discards"))
			o->discards = CF_DISCARDS_ALLOWED;
		else
			set_option(o, name, strsep(&args, " "));
	}
	if (!o->cipher || !o->hash)
		o->compat = CF_COMPAT_2_6;
}

static size_t input_bytes(const char *text, uint8_t *out)
{
	unsigned n;
	if (sscanf(text, "rule %u", &n) == 1) {
		for (unsigned i = 0; i < n; i++)
			out[i] = (uint8_t)(i * 7 + 3);
		return n;
	}
	return unhex(text, out, strlen(text) / 2);
}

static void set_source(struct cf_open_opts *o, const char *source, const char *input)
{
	static uint8_t bytes[16384];
	size_t len = input_bytes(input, bytes);
	if (!strcmp(source, "keyfile")) {
		put_file(file, bytes, len);
		o->key_file = file;
		len = 0;
	} else if (!strcmp(source, "stdin")) {
		o->key_file = "-";
	}
	feed_stdin(bytes, len);
}

/* The plan and key as the table that dmsetup shows. */
static void write_table(const struct outcome *o, char *out, size_t size)
{
	const struct cf_cipher_spec *c = &o->opening.plan.cipher;
	char key[2 * 64 + 1] = "", options[128] = "";
	for (size_t i = 0; i < c->key_bytes; i++)
		sprintf(key + 2 * i, "%02x", o->opening.key[i]);
	bool discards = o->opening.plan.discards == CF_DISCARDS_ALLOWED, large = c->iv_numbering == CF_IV_LARGE_SECTORS;
	int count = discards + large + (c->du_bytes != 512), len = count ? sprintf(options, "%d", count) : 0;
	if (discards)
		len += sprintf(options + len, " allow_discards");
	if (c->du_bytes != 512)
		len += sprintf(options + len, " sector_size:%u", c->du_bytes);
	if (large)
		sprintf(options + len, " iv_large_sectors");
	snprintf(out, size, "%llu %s-%s-%s%s %s %llu %llu %s", (unsigned long long)o->opening.plan.bytes / 512, c->cipher,
			 c->mode, c->essiv_hash[0] ? "essiv:" : c->iv, c->essiv_hash, key, (unsigned long long)c->iv_offset,
			 (unsigned long long)o->opening.plan.data_off / 512, options);
}

static const char *row_field(int row, enum column c)
{
	return tsv_field(&rows, (size_t)row, c);
}

/* What the row says, but for options that only schedule. */
static void expected_table(int row, const char *options, char *out, size_t size)
{
	if (strstr(options, "_workqueue"))
		options = "";
	snprintf(out, size, "%s %s %s %s %s %s", row_field(row, LENGTH), row_field(row, CIPHER), row_field(row, KEY),
			 row_field(row, IV_OFFSET), row_field(row, OFFSET), options);
}

START_TEST(row__gives_the_table_or_exit_code_of_cryptsetup)
{
	const char *name = row_field(_i, ROW);
	int want = atoi(row_field(_i, EXIT));
	char got[1024], expected[1024], *args = strdup(row_field(_i, ARGS));
	struct cf_open_opts opts = {.image = image, .access = CF_READ_WRITE};
	CF_CLEANUP(outcome_fini) struct outcome o;
	set_options(&opts, args);
	set_source(&opts, row_field(_i, SOURCE), row_field(_i, INPUT));
	int rc = run(&opts, &o);
	expected_table(_i, row_field(_i, OPTIONS), expected, sizeof(expected));
	for (size_t i = 0; i < CF_ARRAY_LEN(exceptions); i++) {
		if (strcmp(name, exceptions[i].row) != 0)
			continue;
		ck_assert_int_ne(want, exceptions[i].exit_code);
		want = exceptions[i].exit_code;
		/* the same volume as with the defaults, but for the option itself */
		snprintf(expected, sizeof(expected), "8192 aes-xts-plain64 %s 0 0 %s", row_field(0, KEY),
				 exceptions[i].options);
	}
	ck_assert_msg(cf_err_exit_code(rc) == want, "%s: %d %s", name, rc, o.err.text);
	if (rc == 0) {
		write_table(&o, got, sizeof(got));
		ck_assert_msg(!strcmp(got, expected), "%s:\n%s\nwanted\n%s", name, got, expected);
		ck_assert_int_eq(fcntl(o.opening.image.fd[0], F_GETFL) & O_ACCMODE,
						 strstr(name, "readonly") ? O_RDONLY : O_RDWR);
	}
	free(args);
}
END_TEST

START_TEST(exceptions__exist)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(exceptions); i++) {
		size_t row = 0;
		while (row < rows.n_rows && strcmp(tsv_field(&rows, row, ROW), exceptions[i].row) != 0)
			row++;
		ck_assert_msg(row < rows.n_rows, "%s is not there", exceptions[i].row);
	}
	ck_assert_str_eq(tsv_field(&rows, 0, ROW), "hash-sha256");
}
END_TEST

/* ---- keys ---- */

START_TEST(key__source_that_is_no_file)
{
	struct cf_open_opts opts = {.image = image, .cipher = "aes-xts-plain64", .key_bits = 512};
	struct outcome o;
	opts.key_file = dir;
	ck_assert_int_eq(run(&opts, &o), -EINVAL);
	ck_assert_ptr_nonnull(strstr(o.err.text, "directory"));
	outcome_fini(&o);
	opts.key_file = file;
	ck_assert_int_eq(run(&opts, &o), -EINVAL);
	ck_assert_ptr_nonnull(strstr(o.err.text, file));
	outcome_fini(&o);
}
END_TEST

START_TEST(key__file_without_permission_is_exit_2)
{
	const struct cf_open_opts opts = {.image = image, .cipher = "aes-xts-plain64", .key_bits = 512, .key_file = file};
	struct outcome o;
	put_file(file, "x", 1);
	ck_assert_int_eq(chmod(file, 0), 0);
	bool root = geteuid() == 0; /* whom permissions do not stop */
	if (root) {
		ck_assert_int_eq(chown(dir, 65534, 65534) | chown(image, 65534, 65534) | chown(file, 65534, 65534), 0);
		ck_assert_int_eq(setegid(65534) | seteuid(65534), 0);
	}
	ck_assert_int_eq(cf_err_exit_code(run(&opts, &o)), 2);
	if (root) /* a leak checker needs it back */
		ck_assert_int_eq(seteuid(0) | setegid(0) | prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	outcome_fini(&o);
}
END_TEST

START_TEST(key__of_cipher_null_is_asked_for_and_dropped)
{
	static const char *const names[] = {"null", "cipher_null", "cipher_null-ecb"};
	for (size_t i = 0; i < CF_ARRAY_LEN(names); i++) {
		const struct cf_open_opts opts = {.image = image, .cipher = names[i]};
		CF_CLEANUP(outcome_fini) struct outcome o;
		feed_stdin("secret\n", 7);
		ck_assert_msg(run(&opts, &o) == 0, "%s", o.err.text);
		ck_assert_str_eq(o.opening.plan.cipher.cipher, "cipher_null");
		ck_assert_str_eq(o.opening.plan.cipher.mode, "ecb");
		ck_assert(o.opening.key == NULL && o.opening.plan.cipher.key_bytes == 0 && o.said.n_asked == 1);
	}
	const struct cf_open_opts opts = {.image = image, .cipher = "null"};
	CF_CLEANUP(outcome_fini) struct outcome o;
	feed_stdin("", 0);
	ck_assert_int_eq(run(&opts, &o), -EINVAL);
}
END_TEST

static const struct {
	const char *input;
	struct cf_open_opts opts;
	const char *key; /* 16 bytes, as text; NULL: refused */
} lengths[] = {
	{"0123456789abcdef0123", {.key_file = "-"}, "0123456789abcdef"},
	{"0123456789abcdef", {.key_file = "-", .keyfile_size_bytes = 3}, "0123456789abcdef"},
	{"0123456789abcde", {.key_file = "-"}, NULL},
	{"xx0123456789abcdef", {.key_file = "-", .keyfile_offset_bytes = 2}, "0123456789abcdef"},
	{"0123456789abcdef0123\n", {.key_file = NULL}, "0123456789abcdef"},
	{"01234567\n89abcdef", {.keyfile_size_bytes = 9}, NULL},
	{"0123456789abcdefxyz", {.keyfile_size_bytes = 16}, "0123456789abcdef"},
	{"x0123456789abcdefxyz", {.keyfile_size_bytes = 16, .keyfile_offset_bytes = 1}, "0123456789abcdef"},
	{"", {.key_file = NULL}, NULL},
	{"\n", {.key_file = NULL}, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
};

START_TEST(key__length_rules_of_standard_input_with_hash_plain)
{
	struct cf_open_opts opts = lengths[_i].opts;
	CF_CLEANUP(outcome_fini) struct outcome o;
	opts.image = image;
	opts.cipher = "aes-cbc-plain";
	opts.hash = "plain";
	opts.key_bits = 128;
	feed_stdin(lengths[_i].input, strlen(lengths[_i].input));
	ck_assert_msg(run(&opts, &o) == (lengths[_i].key ? 0 : -EINVAL), "%s", o.err.text);
	if (lengths[_i].key)
		ck_assert_mem_eq(o.opening.key, lengths[_i].key, 16);
}
END_TEST

int main(void)
{
	rows = tsv_load("plain-keys.tsv", N_COLUMNS);
	printf("%zu rows of cryptsetup, %zu exceptions by name\n", rows.n_rows, CF_ARRAY_LEN(exceptions));
	Suite *s = suite_create("open");
	TCase *t = tcase_create("open");
	tcase_add_loop_test(t, row__gives_the_table_or_exit_code_of_cryptsetup, 0, (int)rows.n_rows);
	tcase_add_test(t, exceptions__exist);
	tcase_add_test(t, key__source_that_is_no_file);
	tcase_add_test(t, key__file_without_permission_is_exit_2);
	tcase_add_test(t, key__of_cipher_null_is_asked_for_and_dropped);
	tcase_add_loop_test(t, key__length_rules_of_standard_input_with_hash_plain, 0, (int)CF_ARRAY_LEN(lengths));
	return test_open_run(s, t);
}
