/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_fault.c - a backing that fails after n bytes, for every n that is a multiple of 512 (HAZARDS 14).
 *
 * Whatever fails: bytes that are reported as written are new, bytes outside the request are as before, and so are all
 * bytes that share a data unit with them. Only whole data units of the request itself may be half done. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define DU 65536u
#define N_DU 5u
#define BYTES (N_DU * DU)
#define STEP 512u

struct request {
	const char *name;
	uint64_t off;
	size_t len;
};

static const struct request requests[] = {
	{"inside one data unit", DU + 1000, 777},
	{"head of one", DU, DU - 1},
	{"tail of one", DU + 1, DU - 1},
	{"two in part", 2 * DU - 5000, 10000},
	{"one whole", DU, DU},
	{"three whole", DU, 3 * DU},
	{"part, two whole, part", DU - 10, 2 * DU + 30},
	{"a whole one and a part", 2 * DU, DU + 1},
	{"across the chunk", DU / 2, 4 * DU},
};

static const int codes[] = {-EIO, -ENOSPC, 0};

static struct test_volume tv;
static uint8_t *old_cipher, *old_plain, *new_plain, *now_plain;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	old_cipher = malloc(BYTES);
	old_plain = malloc(BYTES);
	new_plain = malloc(BYTES);
	now_plain = malloc(BYTES);
	ck_assert(old_cipher && old_plain && new_plain && now_plain);
	test_fill(new_plain, BYTES, 9);
}

static void teardown(void)
{
	free(old_cipher);
	free(old_plain);
	free(new_plain);
	free(now_plain);
	test_volume_close(&tv);
	cf_secret_fini();
}

static void open_mode(const char *mode)
{
	const struct test_shape shape = {
		.mode = mode, .du_bytes = DU, .data_off = 63 * 512, .bytes = BYTES, .access = CF_READ_WRITE};
	test_volume_open(&tv, &shape);
	memcpy(old_cipher, tv.t->data + shape.data_off, BYTES);
	test_volume_decrypt(&tv, old_plain);
}

static void restore(void)
{
	memcpy(tv.t->data + tv.shape.data_off, old_cipher, BYTES);
	tv.t->write_fault = tv.t->read_fault = (struct test_fault){.n_calls = 0};
}

static uint64_t undo_failures(void)
{
	struct cf_volume_stats s;
	cf_volume_stats(tv.v, &s);
	return s.undo_failures;
}

static const uint8_t *cipher_now(uint64_t off)
{
	return tv.t->data + tv.shape.data_off + off;
}

/* How many bytes of the backing a request writes: whole data units. */
static uint64_t touched(const struct request *q)
{
	return (q->off + q->len + DU - 1) / DU * DU - q->off / DU * DU;
}

/* May this data unit differ from before, given what was reported? Reported: yes. Else only the first one that lies
 * wholly inside the request may, since it can be torn; one that is asked for in part was put back, or never reached. */
static bool may_differ(const struct request *q, uint64_t from, uint64_t done, bool *torn)
{
	uint64_t to = from + DU, end = q->off + q->len;
	if (to <= q->off || from >= end)
		return false;
	if (to <= done || (done > q->off && done > from)) {
		ck_assert(to <= done || done == end); /* a part is written as a whole or not at all */
		return true;
	}
	bool first = from >= q->off && to <= end && !*torn;
	*torn = *torn || first;
	return first;
}

static void check_untouched(const struct request *q, size_t reported)
{
	uint64_t end = q->off + q->len;
	bool torn = false;
	for (uint64_t from = 0; from < BYTES; from += DU)
		if (!may_differ(q, from, q->off + reported, &torn))
			ck_assert_mem_eq(cipher_now(from), old_cipher + from, DU);
	test_volume_decrypt(&tv, now_plain);
	ck_assert_mem_eq(now_plain + q->off, new_plain + q->off, reported);
	ck_assert_mem_eq(now_plain, old_plain, q->off);
	ck_assert_mem_eq(now_plain + end, old_plain + end, BYTES - end);
}

static ssize_t write_request(const struct request *q)
{
	return cf_volume_write(tv.v, tv.w, new_plain + q->off, q->len, q->off);
}

static void fail_once(const struct request *q, uint64_t after, int code, enum test_tear tear)
{
	restore();
	tv.t->write_fault = (struct test_fault){code, after, 1};
	tv.t->tear = tear;
	ssize_t rc = write_request(q);
	if (rc < 0)
		ck_assert_int_eq(rc, code ? code : -EIO);
	else
		ck_assert_uint_lt((size_t)rc, after < touched(q) ? q->len : q->len + 1);
	check_untouched(q, rc < 0 ? 0 : (size_t)rc);
	ck_assert_uint_eq(undo_failures(), 0);
}

START_TEST(write__that_fails_once_leaves_its_neighbours_intact)
{
	const struct request *q = &requests[(size_t)_i / 2 % CF_ARRAY_LEN(requests)];
	open_mode(_i % 2 ? "cbc" : "xts");
	for (uint64_t after = 0; after <= touched(q); after += STEP)
		fail_once(q, after, codes[after / STEP % CF_ARRAY_LEN(codes)], after / STEP % 2 ? TEST_TORN : TEST_CLEAN);
}
END_TEST

/* The backing never recovers, so what it tore it keeps: the caller must hear EIO, and the count go up; but only then.
 */
static void fail_for_good(const struct request *q, uint64_t after, int code)
{
	uint64_t failures = undo_failures();
	restore();
	tv.t->write_fault = (struct test_fault){code, after, TEST_FOREVER};
	tv.t->tear = TEST_CLEAN;
	ssize_t rc = write_request(q);
	if (undo_failures() == failures) {
		ck_assert_int_eq(rc < 0 ? rc : 0, rc < 0 ? (code ? code : -EIO) : 0);
		check_untouched(q, rc < 0 ? 0 : (size_t)rc);
		return;
	}
	ck_assert_uint_eq(undo_failures(), failures + 1);
	ck_assert_int_eq(rc, -EIO);
	uint64_t du = (q->off / DU * DU + after) / DU; /* the one that is damaged, of which only a part was asked for */
	ck_assert(du * DU < q->off || (du + 1) * DU > q->off + q->len);
	ck_assert_uint_ne(after % DU, 0);
	for (uint64_t i = 0; i < N_DU; i++)
		if (i > du || (i + 1) * DU <= q->off)
			ck_assert_mem_eq(cipher_now(i * DU), old_cipher + i * DU, DU);
}

START_TEST(write__that_cannot_be_undone_says_eio_and_counts)
{
	const struct request *q = &requests[(size_t)_i / 2 % CF_ARRAY_LEN(requests)];
	open_mode(_i % 2 ? "cbc" : "xts");
	for (uint64_t after = 0; after <= touched(q); after += STEP)
		fail_for_good(q, after, codes[after / STEP % CF_ARRAY_LEN(codes)]);
	bool in_part = q->off % DU || (q->off + q->len) % DU;
	ck_assert_int_eq(undo_failures() > 0, in_part);
}
END_TEST

START_TEST(write__on_a_full_disk_is_enospc_and_damages_nothing)
{
	open_mode("cbc");
	restore();
	tv.t->write_fault = (struct test_fault){-ENOSPC, 0, TEST_FOREVER};
	ck_assert_int_eq(write_request(&requests[0]), -ENOSPC);
	ck_assert_uint_eq(undo_failures(), 0);
	check_untouched(&requests[0], 0);
}
END_TEST

START_TEST(write__whose_read_fails_writes_nothing_of_that_unit)
{
	const struct request *q = &requests[(size_t)_i / 2 % CF_ARRAY_LEN(requests)];
	open_mode(_i % 2 ? "cbc" : "xts");
	for (uint64_t after = 0; after < 2 * DU; after += STEP) {
		restore();
		tv.t->read_fault = (struct test_fault){codes[after / STEP % CF_ARRAY_LEN(codes)], after, TEST_FOREVER};
		ssize_t rc = write_request(q);
		if (rc < 0)
			ck_assert_int_eq(rc, tv.t->read_fault.code ? tv.t->read_fault.code : -EIO);
		check_untouched(q, rc < 0 ? 0 : (size_t)rc);
	}
}
END_TEST

START_TEST(read__that_fails_or_ends_early_is_an_error_never_zeros)
{
	const struct request *q = &requests[(size_t)_i / 2 % CF_ARRAY_LEN(requests)];
	open_mode(_i % 2 ? "cbc" : "xts");
	for (uint64_t after = 0; after < touched(q); after += STEP) {
		int code = codes[after / STEP % CF_ARRAY_LEN(codes)];
		restore();
		tv.t->read_fault = (struct test_fault){code, after, TEST_FOREVER};
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, now_plain, q->len, q->off), code ? code : -EIO);
	}
	struct cf_volume_stats s;
	cf_volume_stats(tv.v, &s);
	ck_assert_uint_eq(s.read_errors, touched(q) / STEP);
	ck_assert_uint_eq(s.reads, 0);
}
END_TEST

/* An engine that fails: the linker sends the volume's calls here. */
static unsigned crypt_fails_in; /* counts down to the call that fails; 0: none does */

int __real_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);
int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);
int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst)
{
	if (crypt_fails_in && --crypt_fails_in == 0) {
		memset(dst, 0xdd, n_du * DU);
		return -EIO;
	}
	return __real_cf_cipher_crypt(c, worker, dir, du, n_du, src, dst);
}

START_TEST(request__whose_engine_fails_writes_nothing_wrong)
{
	const struct request *q = &requests[(size_t)_i / 2];
	bool failed = true;
	open_mode(_i % 2 ? "cbc" : "xts");
	for (unsigned k = 1; failed; k++) {
		restore();
		crypt_fails_in = k;
		ssize_t rc = write_request(q);
		failed = crypt_fails_in == 0;
		crypt_fails_in = 0;
		ck_assert(failed ? rc == -EIO || (rc > 0 && (size_t)rc < q->len) : rc == (ssize_t)q->len);
		check_untouched(q, rc < 0 ? 0 : (size_t)rc);
		crypt_fails_in = 1;
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, now_plain, q->len, q->off), -EIO);
	}
	ck_assert_uint_eq(undo_failures(), 0);
}
END_TEST

START_TEST(zero__that_fails_says_so)
{
	open_mode("cbc");
	restore();
	tv.t->write_fault = (struct test_fault){-ENOSPC, DU, 1};
	ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, 0, 3 * DU), -ENOSPC);
	restore();
	ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, 0, 3 * DU), 0);
}
END_TEST

int main(void)
{
	const int n = 2 * (int)CF_ARRAY_LEN(requests);
	Suite *s = suite_create("volume under faults");
	TCase *t = tcase_create("faults");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, write__that_fails_once_leaves_its_neighbours_intact, 0, n);
	tcase_add_loop_test(t, write__that_cannot_be_undone_says_eio_and_counts, 0, n);
	tcase_add_test(t, write__on_a_full_disk_is_enospc_and_damages_nothing);
	tcase_add_loop_test(t, write__whose_read_fails_writes_nothing_of_that_unit, 0, n);
	tcase_add_loop_test(t, read__that_fails_or_ends_early_is_an_error_never_zeros, 0, n);
	tcase_add_loop_test(t, request__whose_engine_fails_writes_nothing_wrong, 0, n);
	tcase_add_test(t, zero__that_fails_says_so);
	suite_add_tcase(s, t);
	return test_run(s);
}
