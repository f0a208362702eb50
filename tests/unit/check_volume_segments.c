/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_segments.c - a volume in several pieces.
 *
 * The truth is an array again, filled piece by piece by ciphers of their own whose iv_offset is the piece's: no number
 * is worked out as the volume does it. One piece has IVs that wrap at 2^64, one lies where no 4 KiB block begins. */
#include "cryptfuse/volume.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define KIB UINT64_C(1024)
#define ODD (64 * KIB + 63 * 512)
#define BACKING_BYTES (256 * KIB)
#define BYTES (128 * KIB)

static const struct cf_segment pieces[] = {
	{CF_SEGMENT_CRYPT, 0, 8 * KIB, 200 * KIB, 400}, {CF_SEGMENT_CRYPT, 8 * KIB, 40 * KIB, 8 * KIB, 16},
	{CF_SEGMENT_ZERO, 48 * KIB, 16 * KIB, 0, 0},    {CF_SEGMENT_CRYPT, 64 * KIB, 40 * KIB, ODD, UINT64_MAX - 15},
	{CF_SEGMENT_ZERO, 104 * KIB, 8 * KIB, 0, 0},    {CF_SEGMENT_CRYPT, 112 * KIB, 16 * KIB, 220 * KIB, 0},
};
#define N_PIECES CF_ARRAY_LEN(pieces)

static const uint32_t units[] = {512, 4096};

static struct cf_volume *v;
static struct cf_worker *w;
static struct test_backing *t;
static struct cf_cipher *oracle[N_PIECES];
static uint8_t model[BYTES], found[BYTES], data[BYTES], before[BACKING_BYTES];

static struct cf_cipher *cipher_with(uint32_t du_bytes, uint64_t iv_offset)
{
	struct cf_cipher_spec spec = {
		.cipher = "aes", .mode = "cbc", .iv = "plain64", .keycount = 1, .key_bytes = 32, .du_bytes = du_bytes};
	const struct cf_cipher_opts opts = {.n_workers = 1, .path = CF_PATH_BATCH};
	struct cf_cipher *c = NULL;
	struct cf_err err = {.code = 0};
	uint8_t key[32];
	spec.iv_offset = iv_offset;
	test_fill(key, sizeof(key), 1);
	ck_assert_msg(cf_cipher_new(&c, &spec, key, &opts, &err) == 0, "%s", err.text);
	return c;
}

/* The volume as the backing holds it. */
static void decrypt(uint8_t *out, uint32_t du_bytes)
{
	memset(out, 0, BYTES);
	for (size_t i = 0; i < N_PIECES; i++)
		if (pieces[i].kind == CF_SEGMENT_CRYPT)
			ck_assert_int_eq(cf_cipher_crypt(oracle[i], 0, CF_DECRYPT, 0, pieces[i].bytes / du_bytes,
											 t->data + pieces[i].data_off, out + pieces[i].off),
							 0);
}

static int open_pieces(const struct cf_segment *segment, unsigned n, uint32_t du_bytes, enum cf_discards discards)
{
	const struct cf_volume_opts opts = {.bytes = BYTES,
										.access = CF_READ_WRITE,
										.discards = discards,
										.n_workers = 1,
										.segment = segment,
										.n_segments = n};
	struct cf_cipher *c = cipher_with(du_bytes, 0);
	struct cf_err err = {.code = 0};
	t = test_backing_new(BACKING_BYTES, 1);
	test_fill(t->data, BACKING_BYTES, 2);
	memcpy(before, t->data, BACKING_BYTES);
	struct cf_backing *b = &t->base;
	int rc = cf_volume_new(&v, &b, &c, &opts, &err);
	ck_assert_int_eq(err.text[0] != '\0', rc != 0);
	if (!rc)
		return 0;
	cf_backing_free(&b);
	cf_cipher_free(&c);
	return rc;
}

static void open_all(uint32_t du_bytes)
{
	ck_assert_int_eq(open_pieces(pieces, N_PIECES, du_bytes, CF_DISCARDS_REFUSED), 0);
	w = cf_volume_enter(v);
	for (size_t i = 0; i < N_PIECES; i++)
		oracle[i] = cipher_with(du_bytes, pieces[i].iv_sector);
	decrypt(model, du_bytes);
}

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
}

static void teardown(void)
{
	if (w)
		cf_volume_leave(v, w);
	w = NULL;
	cf_volume_free(&v);
	for (size_t i = 0; i < N_PIECES; i++)
		cf_cipher_free(&oracle[i]);
	cf_secret_fini();
}

static bool in_a_piece(uint64_t at)
{
	for (size_t i = 0; i < N_PIECES; i++)
		if (pieces[i].kind == CF_SEGMENT_CRYPT && at >= pieces[i].data_off && at - pieces[i].data_off < pieces[i].bytes)
			return true;
	return false;
}

/* The backing holds the model, and nothing beside the pieces has changed. */
static void check(uint32_t du_bytes)
{
	decrypt(found, du_bytes);
	ck_assert(!memcmp(found, model, BYTES));
	for (uint64_t at = 0; at < BACKING_BYTES; at += 512)
		if (!in_a_piece(at))
			ck_assert_mem_eq(t->data + at, before + at, 512);
}

START_TEST(read__gives_every_range)
{
	uint64_t state = 7;
	open_all(units[_i]);
	ck_assert_int_eq(cf_volume_read(v, w, found, BYTES, 0), BYTES);
	ck_assert(!memcmp(found, model, BYTES));
	for (unsigned i = 0; i < 300; i++) {
		uint64_t off = test_random(&state) % BYTES, len = 1 + test_random(&state) % (i % 2 ? 700 : BYTES - off);
		len = len < BYTES - off ? len : BYTES - off;
		ck_assert_int_eq(cf_volume_read(v, w, found, len, off), (ssize_t)len);
		ck_assert(!memcmp(found, model + off, len));
	}
}
END_TEST

/* Zeros where the volume can hold nothing else. */
static void spare_zeros(uint64_t off, uint64_t len)
{
	for (size_t i = 0; i < N_PIECES; i++)
		for (uint64_t at = pieces[i].off; pieces[i].kind == CF_SEGMENT_ZERO && at < pieces[i].off + pieces[i].bytes;
			 at++)
			if (at >= off && at - off < len)
				data[at - off] = 0;
}

START_TEST(write__reaches_every_piece)
{
	uint64_t state = 9;
	open_all(units[_i]);
	for (unsigned i = 0; i < 120; i++) {
		uint64_t off = test_random(&state) % BYTES, len = 1 + test_random(&state) % (i % 2 ? 9000 : BYTES - off);
		len = len < BYTES - off ? len : BYTES - off;
		test_fill(data, len, i);
		spare_zeros(off, len);
		ck_assert_int_eq(cf_volume_write(v, w, data, len, off), (ssize_t)len);
		memcpy(model + off, data, len);
		check(units[_i]);
	}
}
END_TEST

START_TEST(write__of_anything_but_zeros_where_zeros_are_is_refused)
{
	struct cf_volume_stats stats;
	open_all(512);
	test_fill(data, BYTES, 5);
	ck_assert_int_eq(cf_volume_write(v, w, data, 100, 50 * KIB), -EIO);
	ck_assert_int_eq(cf_volume_write(v, w, data, 1, 64 * KIB - 1), -EIO);
	/* up to the seam, and no further */
	ck_assert_int_eq(cf_volume_write(v, w, data, 4096, 48 * KIB - 1000), 1000);
	memcpy(model + 48 * KIB - 1000, data, 1000);
	check(512);
	memset(data, 0, BYTES);
	data[16 * KIB - 1] = 1;
	ck_assert_int_eq(cf_volume_write(v, w, data, 16 * KIB, 48 * KIB), -EIO);
	ck_assert_int_eq(cf_volume_write(v, w, data, 16 * KIB - 1, 48 * KIB), (ssize_t)(16 * KIB - 1));
	check(512);
	cf_volume_stats(v, &stats);
	ck_assert_uint_eq(stats.write_errors, 4);
}
END_TEST

START_TEST(zero__goes_over_all_pieces)
{
	open_all(units[_i]);
	ck_assert_int_eq(cf_volume_zero(v, w, 100, BYTES - 200), 0);
	memset(model + 100, 0, BYTES - 200);
	check(units[_i]);
	ck_assert_int_eq(cf_volume_punch(v, w, 0, BYTES), -EOPNOTSUPP);
	ck_assert_int_eq(cf_volume_seek(v, 50 * KIB, CF_SEEK_DATA), 50 * (int64_t)KIB);
	ck_assert_int_eq(cf_volume_seek(v, 0, CF_SEEK_HOLE), (int64_t)BYTES);
	check(units[_i]);
}
END_TEST

START_TEST(allocate__asks_for_what_lies_in_the_backing)
{
	open_all(512);
	ck_assert_int_eq(cf_volume_allocate(v, 0, BYTES), 0);
	ck_assert_uint_eq(t->n_allocates, 4);
	ck_assert_int_eq(cf_volume_allocate(v, 50 * KIB, 1 * KIB), 0);
	ck_assert_uint_eq(t->n_allocates, 4);
	ck_assert_int_eq(cf_volume_allocate(v, 0, BYTES + 1), -ENOSPC);
}
END_TEST

static const struct {
	unsigned piece;
	struct cf_segment is;
	uint32_t du_bytes;
} bad[] = {
	{1, {CF_SEGMENT_CRYPT, 9 * KIB, 39 * KIB, 8 * KIB, 16}, 512},    /* a gap */
	{1, {CF_SEGMENT_CRYPT, 7 * KIB, 41 * KIB, 8 * KIB, 16}, 512},    /* an overlap */
	{1, {CF_SEGMENT_CRYPT, 8 * KIB, 40 * KIB, 8 * KIB, 17}, 4096},   /* an IV in the middle of a data unit */
	{5, {CF_SEGMENT_CRYPT, 112 * KIB, 15 * KIB, 220 * KIB, 0}, 512}, /* short */
	{5, {CF_SEGMENT_CRYPT, 112 * KIB, 17 * KIB, 220 * KIB, 0}, 512}, /* long */
	{5, {CF_SEGMENT_CRYPT, 112 * KIB, 16 * KIB, BACKING_BYTES - 8 * KIB, 0}, 512}, /* beyond the image */
	{5, {CF_SEGMENT_CRYPT, 112 * KIB, 16 * KIB, UINT64_MAX - 511, 0}, 512},        /* far beyond */
	{2, {CF_SEGMENT_ZERO, 48 * KIB, 0, 0, 0}, 512},                                /* nothing */
};

START_TEST(new__refuses_pieces_that_do_not_fit)
{
	struct cf_segment s[N_PIECES];
	memcpy(s, pieces, sizeof(s));
	s[bad[_i].piece] = bad[_i].is;
	ck_assert_int_eq(open_pieces(s, N_PIECES, bad[_i].du_bytes, CF_DISCARDS_REFUSED), -EINVAL);
}
END_TEST

START_TEST(new__refuses_discards_and_too_many_pieces)
{
	struct cf_segment s[CF_SEGMENTS_MAX + 1] = {{.kind = CF_SEGMENT_ZERO}};
	ck_assert_int_eq(open_pieces(pieces, N_PIECES, 512, CF_DISCARDS_ALLOWED), -EINVAL);
	ck_assert_int_eq(open_pieces(s, CF_SEGMENTS_MAX + 1, 512, CF_DISCARDS_REFUSED), -EINVAL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("volume segments");
	TCase *c = tcase_create("segments");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, read__gives_every_range, 0, (int)CF_ARRAY_LEN(units));
	tcase_add_loop_test(c, write__reaches_every_piece, 0, (int)CF_ARRAY_LEN(units));
	tcase_add_test(c, write__of_anything_but_zeros_where_zeros_are_is_refused);
	tcase_add_loop_test(c, zero__goes_over_all_pieces, 0, (int)CF_ARRAY_LEN(units));
	tcase_add_test(c, allocate__asks_for_what_lies_in_the_backing);
	tcase_add_loop_test(c, new__refuses_pieces_that_do_not_fit, 0, (int)CF_ARRAY_LEN(bad));
	tcase_add_test(c, new__refuses_discards_and_too_many_pieces);
	suite_add_tcase(s, c);
	return test_run(s);
}
