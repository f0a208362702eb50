/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_open.c - from options to a plan and a key. Truth: tests/vectors/plain-keys.tsv, the tables that the real
 * cryptsetup loaded, or its exit code; the plan is written out as such a table and compared as text. */
#include "config.h"

#include "cryptfuse/open.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../core/open/plan.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "run.h"
#include "tsv.h"
#include "vectors.h"

#define IMAGE_BYTES ((off_t)4 << 20) /* as for the vectors */

/* ---- scratch ---- */

static char dir[] = "/tmp/cryptfuse-check-XXXXXX", image[64], file[64];

static void put_file(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert(fd >= 0);
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* A test that fails is cut short and tidies nothing: main() does, and each test starts anew. */
static void make_dir(void)
{
	if (!mkdtemp(dir))
		exit(99);
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
}

static void remove_dir(void)
{
	unlink(image);
	unlink(file);
	rmdir(dir);
}

static void start(void)
{
	struct cf_err err = {0};
	ck_assert_msg(cf_secret_init(&err) == 0, "%s", err.text);
	unlink(image);
	unlink(file);
	put_file(image, "", 0);
	ck_assert_int_eq(truncate(image, IMAGE_BYTES), 0);
}

/* ---- what a command line would do ---- */

struct said {
	char text[4096];
	int n_asked;
};

static void hear(void *ctx, const char *text)
{
	struct said *said = ctx;
	size_t len = strlen(said->text);
	snprintf(said->text + len, sizeof(said->text) - len, "%s\n", text);
}

/* A line of standard input, which in these tests is never a terminal. */
static int ask(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
			   struct cf_err *err)
{
	ck_assert_uint_eq(attempt, 0);
	((struct said *)ctx)->n_asked++;
	return cf_key_read_fd(STDIN_FILENO, CF_KEY_READ_LINE, opts->keyfile_offset_bytes, opts->keyfile_size_bytes,
						  "standard input", out, err);
}

static void feed_stdin(const void *bytes, size_t len)
{
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], bytes, len), (ssize_t)len);
	close(fds[1]);
	ck_assert_int_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
}

struct outcome {
	struct cf_opening opening;
	struct said said;
	struct cf_err err;
};

static void outcome_fini(struct outcome *o)
{
	cf_opening_fini(&o->opening);
}

/* Everything here is about plain volumes; check_header.c is about the others. */
static struct cf_open_opts as_plain(const struct cf_open_opts *opts)
{
	struct cf_open_opts plain = *opts;
	plain.type = CF_TYPE_PLAIN;
	return plain;
}

static int run(const struct cf_open_opts *opts, struct outcome *o)
{
	const struct cf_open_opts plain = as_plain(opts);
	const struct cf_open_ui ui = {.ctx = &o->said, .note = hear, .passphrase = ask};
	*o = (struct outcome){0};
	int rc = cf_open_plan(&plain, &ui, &o->opening, &o->err);
	if (!rc)
		rc = cf_open_key(&plain, &ui, &o->opening, &o->err);
	ck_assert(rc == o->err.code && (rc == 0) == (o->err.text[0] == '\0'));
	return rc;
}

static int run_plan(const struct cf_open_opts *opts, struct outcome *o)
{
	const struct cf_open_opts plain = as_plain(opts);
	const struct cf_open_ui ui = {.ctx = &o->said, .note = hear, .passphrase = ask};
	*o = (struct outcome){0};
	int rc = cf_open_plan(&plain, &ui, &o->opening, &o->err);
	ck_assert(rc == o->err.code && (rc == 0) == (o->err.text[0] == '\0'));
	ck_assert_int_eq(o->said.n_asked, 0);
	if (rc)
		ck_assert(!o->opening.image.n_parts && !o->opening.key);
	return rc;
}

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

/* ---- where a volume lies ---- */

#define MAX_SECTORS ((uint64_t)INT64_MAX / 512)
static const struct {
	struct cf_place place;
	int rc;
	uint64_t off, bytes;
	const char *says;
} places[] = {
	{{4096, 0, 0, 512, NULL}, 0, 0, 4096, NULL},
	{{4096 + 511, 0, 0, 512, NULL}, 0, 0, 4096, NULL},
	{{4096 + 511, 0, 0, 4096, NULL}, 0, 0, 4096, NULL},
	{{4096, 7, 0, 512, NULL}, 0, 3584, 512, NULL},
	{{4096, 8, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{511, 0, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{0, 0, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{1 << 20, 3, 0, 4096, NULL}, -EINVAL, 0, 0, "--device-size 1044480 would fit"},
	{{(1 << 20) + 512, 0, 0, 4096, NULL}, -EINVAL, 0, 0, "--device-size 1048576 would fit"},
	{{4096, 1, 0, 4096, NULL}, -EINVAL, 0, 0, "less than --sector-size 4096"},
	{{65536, 0, 0, 65536, NULL}, 0, 0, 65536, NULL},
	{{65535, 0, 0, 65536, NULL}, -EINVAL, 0, 0, "less than --sector-size 65536"},
	{{1 << 20, 3, 2040, 4096, NULL}, 0, 1536, 1044480, NULL},
	{{1 << 20, 3, 8, 4096, NULL}, 0, 1536, 4096, NULL},
	{{1 << 20, 0, 9, 4096, NULL}, -EINVAL, 0, 0, "not a multiple of --sector-size 4096"},
	{{1 << 20, 0, 2048, 512, NULL}, 0, 0, 1 << 20, NULL},
	{{1 << 20, 0, 2049, 512, NULL}, -EINVAL, 0, 0, "2049 sectors is beyond the image, which has 2048"},
	{{1 << 20, 1, 2048, 512, NULL}, -EINVAL, 0, 0, "2048 sectors is beyond the image, which has 2047"},
	{{1 << 20, 8, UINT64_MAX - 7, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{4096, 8, 0, 512, "partition"}, -EINVAL, 0, 0, "beyond the partition"},
	{{1 << 20, UINT64_MAX, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{1 << 20, UINT64_C(1) << 55, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{INT64_MAX, 0, 0, 512, NULL}, 0, 0, MAX_SECTORS * 512, NULL},
	{{INT64_MAX, MAX_SECTORS - 1, 0, 512, NULL}, 0, (MAX_SECTORS - 1) * 512, 512, NULL},
};

START_TEST(place__is_resolved)
{
	struct cf_err err = {0};
	uint64_t off = 0, bytes = 0;
	ck_assert_msg(cf_place_resolve(&places[_i].place, &off, &bytes, &err) == places[_i].rc, "%s", err.text);
	ck_assert_uint_eq(off, places[_i].off);
	ck_assert_uint_eq(bytes, places[_i].bytes);
	if (places[_i].says)
		ck_assert_msg(strstr(err.text, places[_i].says) != NULL, "%s", err.text);
}
END_TEST

/* ---- plans ---- */

#define XTS .cipher = "aes-xts-plain64", .hash = "sha256", .key_bits = 512
static const struct {
	struct cf_open_opts opts;
	int rc;
	const char *says;
} refused[] = {
	{{XTS, .sector_size_bytes = 1000}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = 256}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = 131072}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = (UINT64_C(1) << 32) + 4096}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{{XTS, .sector_size_bytes = 512, .iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{{XTS, .sector_size_bytes = 4096, .skip_sectors = 4}, -EINVAL, "--skip 4"},
	{{.cipher = "aes-xts-plain64", .key_bits = 260}, -EINVAL, "multiple of 8"},
	{{.cipher = "aes-xts-plain64", .key_bits = CF_KEY_MAX * 8 + 8}, -EINVAL, "above 131072 bits"},
	{{.cipher = "aes-xts-plain64", .key_bits = (UINT64_C(1) << 32) + 512}, -EINVAL, "above 131072 bits"},
	{{XTS, .size_sectors = 8, .device_size_bytes = 4096}, -EINVAL, "together"},
	{{XTS, .device_size_bytes = 4097}, -EINVAL, "multiple of 512"},
	{{XTS, .device_size_bytes = UINT64_C(1) << 40}, -EINVAL, "beyond the image"},
	{{XTS, .offset_sectors = 8191, .size_sectors = 2}, -EINVAL, "beyond the image"},
	{{XTS, .sector_size_bytes = 4096, .offset_sectors = 3}, -EINVAL, "--device-size 4190208 would fit"},
	{{.cipher = "aes-xts-plain64", .hash = "nosuch"}, -EINVAL, "nosuch"},
	{{.cipher = "aes-xts-plain64", .hash = "sha256:0x10"}, -EINVAL, "decimal digits"},
	{{.cipher = "aes-xts", .hash = "sha256"}, -EINVAL, "IV mode"},
	{{.cipher = "nope-xts-plain64", .hash = "sha256"}, -ENODEV, "nope"},
	{{.cipher = "aes-xts-plain64", .key_bits = 128}, -ENODEV, "aes"},
	{{XTS, .engine = "0123456789012345678901234567890123456789012345678901234567890123"}, -EINVAL, "engine"},
};

START_TEST(plan__refuses_before_anybody_is_asked)
{
	struct cf_open_opts opts = refused[_i].opts;
	struct outcome o;
	opts.image = image;
	opts.access = CF_READ_WRITE;
	ck_assert_msg(run_plan(&opts, &o) == refused[_i].rc, "%d %s", o.err.code, o.err.text);
	ck_assert_msg(strstr(o.err.text, refused[_i].says) != NULL, "%s", o.err.text);
	ck_assert_str_eq(o.said.text, "");
}
END_TEST

START_TEST(plan__takes_any_offset_with_an_aligned_size)
{
	struct cf_open_opts opts = {.image = image, XTS, .sector_size_bytes = 4096, .offset_sectors = 3};
	for (int by_bytes = 0; by_bytes <= 1; by_bytes++) {
		CF_CLEANUP(outcome_fini) struct outcome o;
		opts.size_sectors = by_bytes ? 0 : 8184;
		opts.device_size_bytes = by_bytes ? 8184 * 512 : 0;
		ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
		ck_assert_uint_eq(o.opening.plan.data_off, 1536);
		ck_assert_uint_eq(o.opening.plan.bytes, 8184 * 512);
		ck_assert_ptr_nonnull(strstr(o.said.text, "the last 2560 bytes of "));
	}
}
END_TEST

START_TEST(plan__reports_bytes_short_of_a_sector)
{
	const struct cf_open_opts opts = {.image = image, XTS};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_int_eq(truncate(image, IMAGE_BYTES + 100), 0);
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_uint_eq(o.opening.plan.bytes, IMAGE_BYTES);
	ck_assert_ptr_nonnull(strstr(o.said.text, "the last 100 bytes of "));
}
END_TEST

START_TEST(plan__counts_workers)
{
	const struct cf_open_opts opts = {.image = image, XTS};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_int_eq(run_plan(&opts, &o), 0);
	ck_assert_uint_eq(o.opening.plan.n_workers, CF_WORKERS_MAX);
	ck_assert_uint_ge(o.opening.plan.n_permits, 1);
	ck_assert_uint_le(o.opening.plan.n_permits, CF_WORKERS_MAX);
}
END_TEST

/* No more permits than CPUs that this process may use, and no more than threads. */
START_TEST(plan__counts_permits)
{
	cpu_set_t before, one;
	CPU_ZERO(&one);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	for (unsigned threads = 1; threads <= CF_WORKERS_MAX; threads++) {
		const struct cf_open_opts opts = {.image = image, XTS, .threads = threads};
		CF_CLEANUP(outcome_fini) struct outcome all;
		ck_assert_int_eq(run_plan(&opts, &all), 0);
		const unsigned cpus = (unsigned)CPU_COUNT(&before);
		ck_assert_uint_eq(all.opening.plan.n_workers, threads);
		ck_assert_uint_eq(all.opening.plan.n_permits, threads < cpus ? threads : cpus);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		CF_CLEANUP(outcome_fini) struct outcome pinned;
		ck_assert_int_eq(run_plan(&opts, &pinned), 0);
		ck_assert_uint_eq(pinned.opening.plan.n_permits, 1);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	}
}
END_TEST

static const struct {
	struct cf_open_opts opts;
	const char *says[2]; /* NULL: nothing */
} notes[] = {
	{{XTS}, {NULL}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512}, {"2.7 were used: --hash sha256;", "--compat 2.6"}},
	{{.hash = "sha512"}, {"2.7 were used: --cipher aes-xts-plain64 --key-size 256;", "--compat 2.6"}},
	{{.compat = CF_COMPAT_2_6},
	 {"2.6 were used: --cipher aes-cbc-essiv:sha256 --key-size 256 --hash ripemd160;", "--compat 2.7"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .key_file = file}, {NULL}},
	{{XTS, .key_file = file}, {"--hash sha256 has no effect"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .hash = "nosuch", .key_file = file},
	 {"--hash nosuch has no effect"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .key_file = file, .keyfile_size_bytes = 9},
	 {"--keyfile-size has no effect", "64 bytes"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .hash = "plain", .key_file = "-", .keyfile_size_bytes = 9},
	 {"--keyfile-size has no effect", "64 bytes"}},
	{{XTS, .key_file = "-", .keyfile_size_bytes = 9}, {NULL}},
};

START_TEST(plan__says_what_was_assumed_or_ignored)
{
	struct cf_open_opts opts = notes[_i].opts;
	CF_CLEANUP(outcome_fini) struct outcome o;
	feed_stdin("", 0);
	opts.image = image;
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_msg(notes[_i].says[0] || !o.said.text[0], "%s", o.said.text);
	for (size_t i = 0; i < 2 && notes[_i].says[i]; i++)
		ck_assert_msg(strstr(o.said.text, notes[_i].says[i]) != NULL, "%s", o.said.text);
}
END_TEST

START_TEST(plan__of_a_missing_image_is_exit_4)
{
	const struct cf_open_opts opts = {.image = file, XTS};
	struct outcome o;
	ck_assert_int_eq(cf_err_exit_code(run_plan(&opts, &o)), 4);
	ck_assert_ptr_nonnull(strstr(o.err.text, file));
}
END_TEST

START_TEST(plan__of_an_open_image_is_busy_and_gives_the_lock_back_on_failure)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE};
	struct cf_open_opts bad = opts;
	bad.offset_sectors = 8192;
	struct outcome first, second, failed;
	ck_assert_int_eq(run_plan(&bad, &failed), -EINVAL);
	ck_assert_int_eq(run_plan(&opts, &first), 0);
	ck_assert_int_eq(run_plan(&opts, &second), -EBUSY);
	outcome_fini(&first);
	ck_assert_int_eq(run_plan(&opts, &second), 0);
	outcome_fini(&second);
}
END_TEST

/* ---- tables ---- */

#define KEY32 "0123456789abcdeffedcba98765432100123456789abcdeffedcba9876543210"
#define TABLE \
	"v: 0 64 crypt aes-cbc-essiv:sha256 " KEY32 " 16 7:0 3 3 sector_size:4096 iv_large_sectors allow_discards\n"

static void check_table_plan(const char *path)
{
	const struct cf_open_opts opts = {.image = image, .table_file = path, .access = CF_READ_WRITE};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_uint_eq(o.opening.plan.data_off, 3 * 512);
	ck_assert_uint_eq(o.opening.plan.bytes, 64 * 512);
	ck_assert_uint_eq(o.opening.plan.cipher.iv_offset, 16);
	ck_assert_uint_eq(o.opening.plan.cipher.du_bytes, 4096);
	ck_assert_int_eq(o.opening.plan.cipher.iv_numbering, CF_IV_LARGE_SECTORS);
	ck_assert_int_eq(o.opening.plan.discards, CF_DISCARDS_ALLOWED);
	ck_assert_uint_eq(o.opening.plan.cipher.key_bytes, 32);
	ck_assert(cf_secret_contains(o.opening.key) && o.opening.key[0] == 0x01 && o.opening.key[31] == 0x10);
	ck_assert_ptr_nonnull(strstr(o.said.text, "the last 4160000 bytes of "));
	ck_assert_ptr_null(strstr(o.said.text, "default"));
}

START_TEST(table__from_a_file)
{
	put_file(file, TABLE, strlen(TABLE));
	check_table_plan(file);
}
END_TEST

START_TEST(table__from_standard_input)
{
	feed_stdin(TABLE, strlen(TABLE));
	check_table_plan("-");
}
END_TEST

START_TEST(table__from_a_pipe_by_name)
{
	feed_stdin(TABLE, strlen(TABLE));
	check_table_plan("/dev/stdin");
}
END_TEST

static const struct {
	const char *table;
	struct cf_open_opts opts;
	int rc;
	const char *says;
} bad_tables[] = {
	{TABLE, {.cipher = "aes"}, -EINVAL, "--cipher"},
	{TABLE, {.hash = "sha256"}, -EINVAL, "--hash"},
	{TABLE, {.key_bits = 256}, -EINVAL, "--key-size"},
	{TABLE, {.compat = CF_COMPAT_2_6}, -EINVAL, "--compat"},
	{TABLE, {.offset_sectors = 1}, -EINVAL, "--offset"},
	{TABLE, {.skip_sectors = 1}, -EINVAL, "--skip"},
	{TABLE, {.size_sectors = 1}, -EINVAL, "--size"},
	{TABLE, {.device_size_bytes = 1}, -EINVAL, "--device-size"},
	{TABLE, {.sector_size_bytes = 512}, -EINVAL, "--sector-size"},
	{TABLE, {.iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{TABLE, {.key_file = "-"}, -EINVAL, "--key-file"},
	{TABLE, {.keyfile_size_bytes = 1}, -EINVAL, "--keyfile-size"},
	{TABLE, {.keyfile_offset_bytes = 1}, -EINVAL, "--keyfile-offset"},
	{"0 8193 crypt aes-cbc-plain " KEY32 " 0 7:0 0", {.cipher = NULL}, -EINVAL, "beyond the image"},
	{"0 8 crypt aes-cbc-plain " KEY32 " 0 7:0 8192", {.cipher = NULL}, -EINVAL, "beyond the image"},
	{"0 8 crypt aes-cbc-plain " KEY32 "00 0 7:0 0", {.cipher = NULL}, -ENODEV, "aes"},
	{"0 8 crypt cipher_null-ecb 00 0 7:0 0", {.cipher = NULL}, 0, "cipher_null"},
	{"", {.cipher = NULL}, -EINVAL, "nothing to read"},
};

START_TEST(table__refused_and_why)
{
	struct cf_open_opts opts = bad_tables[_i].opts;
	struct outcome o;
	opts.image = image;
	opts.table_file = file;
	put_file(file, bad_tables[_i].table, strlen(bad_tables[_i].table));
	int rc = run_plan(&opts, &o);
	ck_assert_msg(bad_tables[_i].rc ? rc == bad_tables[_i].rc : rc < 0, "%d %s", rc, o.err.text);
	ck_assert_msg(strstr(o.err.text, bad_tables[_i].says) != NULL, "%s", o.err.text);
}
END_TEST

START_TEST(table__that_is_too_long_is_refused)
{
	const struct cf_open_opts opts = {.image = image, .table_file = file};
	static char text[200000];
	struct outcome o;
	memset(text, ' ', sizeof(text));
	memcpy(text, TABLE, strlen(TABLE) - 1);
	put_file(file, text, sizeof(text));
	ck_assert_int_eq(run_plan(&opts, &o), -EINVAL);
	ck_assert_ptr_nonnull(strstr(o.err.text, "too long"));
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

/* ---- volumes ---- */

START_TEST(volume__is_made_and_keeps_the_lock)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE, .offset_sectors = 8};
	struct outcome o, other;
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	feed_stdin("correct horse", 13);
	ck_assert_int_eq(run(&opts, &o), 0);
	ck_assert_msg(cf_open_volume(&o.opening.plan, o.opening.key, &o.opening.image, &v, &o.err) == 0, "%s", o.err.text);
	outcome_fini(&o);
	ck_assert_uint_eq(cf_volume_bytes(v), IMAGE_BYTES - 4096);
	ck_assert_int_eq(run_plan(&opts, &other), -EBUSY);
	cf_volume_free(&v);
	ck_assert_int_eq(run_plan(&opts, &other), 0);
	outcome_fini(&other);
}
END_TEST

START_TEST(volume__that_fails_leaves_descriptor_and_lock)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE};
	struct outcome o, other;
	struct cf_volume *v = NULL;
	feed_stdin("correct horse", 13);
	ck_assert_int_eq(run(&opts, &o), 0);
	o.opening.plan.bytes = (uint64_t)IMAGE_BYTES + 512;
	ck_assert_int_eq(cf_open_volume(&o.opening.plan, o.opening.key, &o.opening.image, &v, &o.err), -EINVAL);
	ck_assert_ptr_null(v);
	ck_assert_int_ge(fcntl(o.opening.image.fd[0], F_GETFD), 0);
	ck_assert_int_eq(run_plan(&opts, &other), -EBUSY);
	outcome_fini(&o);
}
END_TEST

int main(void)
{
	rows = tsv_load("plain-keys.tsv", N_COLUMNS);
	printf("%zu rows of cryptsetup, %zu exceptions by name\n", rows.n_rows, CF_ARRAY_LEN(exceptions));
	Suite *s = suite_create("open");
	TCase *t = tcase_create("open");
	tcase_add_checked_fixture(t, start, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, row__gives_the_table_or_exit_code_of_cryptsetup, 0, (int)rows.n_rows);
	tcase_add_test(t, exceptions__exist);
	tcase_add_loop_test(t, place__is_resolved, 0, (int)CF_ARRAY_LEN(places));
	tcase_add_loop_test(t, plan__refuses_before_anybody_is_asked, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(t, plan__takes_any_offset_with_an_aligned_size);
	tcase_add_test(t, plan__reports_bytes_short_of_a_sector);
	tcase_add_test(t, plan__counts_workers);
	tcase_add_test(t, plan__counts_permits);
	tcase_add_loop_test(t, plan__says_what_was_assumed_or_ignored, 0, (int)CF_ARRAY_LEN(notes));
	tcase_add_test(t, plan__of_a_missing_image_is_exit_4);
	tcase_add_test(t, plan__of_an_open_image_is_busy_and_gives_the_lock_back_on_failure);
	tcase_add_test(t, table__from_a_file);
	tcase_add_test(t, table__from_standard_input);
	tcase_add_test(t, table__from_a_pipe_by_name);
	tcase_add_loop_test(t, table__refused_and_why, 0, (int)CF_ARRAY_LEN(bad_tables));
	tcase_add_test(t, table__that_is_too_long_is_refused);
	tcase_add_test(t, key__source_that_is_no_file);
	tcase_add_test(t, key__file_without_permission_is_exit_2);
	tcase_add_test(t, key__of_cipher_null_is_asked_for_and_dropped);
	tcase_add_loop_test(t, key__length_rules_of_standard_input_with_hash_plain, 0, (int)CF_ARRAY_LEN(lengths));
	tcase_add_test(t, volume__is_made_and_keeps_the_lock);
	tcase_add_test(t, volume__that_fails_leaves_descriptor_and_lock);
	suite_add_tcase(s, t);
	make_dir();
	int status = test_run(s);
	remove_dir();
	return status;
}
