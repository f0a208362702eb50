/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_walk.c - the n-th call of the backing or of the engine fails, n = 1, 2, 3 … until none does, for each
 * request, mode and size of a data unit.
 *
 * The plaintext in memory is the model. After a failure: the errno is the fault's, bytes outside of the request are as
 * before, a data unit that it wanted in part is old or new, what was reported is new; and the same request then works.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define BYTES (5u * 65536)
#define ENGINE TEST_CALLS /* the call after those of the backing */
#define N_CALLS (TEST_CALLS + 1)

enum kind { READ, WRITE, ZERO, PUNCH, ALLOCATE, SEEK, SYNC };

/* Of everything but what reaches the range's ends a few bytes: off and len in data units, and what is taken off both.
 */
static const struct request {
	const char *name;
	enum kind kind;
	unsigned first_du, n_du;
	unsigned inward;
} requests[] = {
	{"read whole units", READ, 1, 3, 0},
	{"read in part", READ, 1, 3, 77},
	{"write whole units", WRITE, 1, 3, 0},
	{"write inside one", WRITE, 2, 1, 77},
	{"write part, whole, part", WRITE, 1, 3, 77},
	{"zero part, whole, part", ZERO, 1, 3, 77},
	{"punch part, whole, part", PUNCH, 1, 3, 77},
	{"allocate", ALLOCATE, 1, 3, 77},
	{"seek", SEEK, 1, 1, 0},
	{"sync", SYNC, 0, 0, 0},
};

static const struct shape {
	const char *mode;
	uint32_t du_bytes;
} shapes[] = {{"xts", 512},  {"cbc", 512},   {"xts", 4096},  {"cbc", 4096},  {"ctr", 4096},
			  {"lrw", 4096}, {"pcbc", 4096}, {"xts", 65536}, {"cbc", 65536}, {"lrw", 65536}};

static const int codes[N_CALLS][3] = {
	[TEST_PREAD] = {-EIO, 0, -ENOMEM}, [TEST_PWRITE] = {-EIO, 0, -ENOSPC},         [TEST_SYNC] = {-EIO, -ENOSPC, -EIO},
	[TEST_PUNCH] = {-EIO, -EIO, -EIO}, [TEST_ALLOCATE] = {-ENOSPC, -EIO, -ENOSPC}, [TEST_SEEK] = {-EIO, -EIO, -EIO},
	[ENGINE] = {-EIO, -EIO, -EIO},
};

static struct test_volume tv;
static uint8_t *cipher_before, *before, *after, *now, *data;
static unsigned engine_left, n_injected;

int __real_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);
int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);
int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst)
{
	if (engine_left && --engine_left == 0) {
		memset(dst, 0xdd, n_du * tv.shape.du_bytes);
		return -EIO;
	}
	return __real_cf_cipher_crypt(c, worker, dir, du, n_du, src, dst);
}

static void setup(void)
{
	uint8_t **const all[] = {&cipher_before, &before, &after, &now, &data};
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	for (size_t i = 0; i < CF_ARRAY_LEN(all); i++)
		ck_assert_ptr_nonnull(*all[i] = malloc(BYTES));
	test_fill(data, BYTES, 9);
	n_injected = 0;
}

static void teardown(void)
{
	free(cipher_before);
	free(before);
	free(after);
	free(now);
	free(data);
	if (tv.v)
		test_volume_close(&tv);
	cf_secret_fini();
}

static uint64_t off_of(const struct request *q)
{
	return (uint64_t)q->first_du * tv.shape.du_bytes + q->inward;
}

static size_t len_of(const struct request *q)
{
	return (size_t)q->n_du * tv.shape.du_bytes - 2 * q->inward;
}

/* What came of it: bytes, 0, or -errno. */
static int64_t ask(const struct request *q)
{
	const uint64_t off = off_of(q);
	const size_t len = len_of(q);
	switch (q->kind) {
	case READ:
		return cf_volume_read(tv.v, tv.w, now, len, off);
	case WRITE:
		return cf_volume_write(tv.v, tv.w, data + off, len, off);
	case ZERO:
		return cf_volume_zero(tv.v, tv.w, off, len);
	case PUNCH:
		return cf_volume_punch(tv.v, tv.w, off, len);
	case ALLOCATE:
		return cf_volume_allocate(tv.v, off, len);
	case SEEK:
		return cf_volume_seek(tv.v, off, CF_SEEK_HOLE);
	case SYNC:
		break;
	}
	return cf_volume_sync(tv.v);
}

static void read_all(uint8_t *out)
{
	for (uint64_t off = 0; off < BYTES; off += 65536)
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, out + off, 65536, off), 65536);
}

static void expect(const struct request *q)
{
	memcpy(after, before, BYTES);
	if (q->kind == WRITE)
		memcpy(after + off_of(q), data + off_of(q), len_of(q));
	if (q->kind == ZERO || q->kind == PUNCH)
		memset(after + off_of(q), 0, len_of(q));
}

static bool same(const uint8_t *a, uint64_t from, uint64_t to)
{
	return memcmp(a + from, now + from, (size_t)(to - from)) == 0;
}

/* Only of a unit that was to be new as a whole may anything be left. */
static void judge_unit(const struct request *q, uint64_t from, uint64_t reported_to)
{
	const uint64_t du = tv.shape.du_bytes, end = off_of(q) + len_of(q);
	const uint64_t lo = from > off_of(q) ? from : off_of(q), hi = from + du < end ? from + du : end;
	if (hi <= reported_to)
		ck_assert_msg(same(after, lo, hi), "%s: reported, and not there", q->name);
	else if (hi - lo < du)
		ck_assert_msg(same(before, lo, hi) || same(after, lo, hi), "%s: neither old nor new", q->name);
}

static void judge_bytes(const struct request *q, uint64_t reported)
{
	const uint64_t off = off_of(q), end = off + len_of(q), du = tv.shape.du_bytes;
	read_all(now);
	if (q->kind != WRITE && q->kind != ZERO && q->kind != PUNCH) {
		ck_assert(same(before, 0, BYTES));
		return;
	}
	ck_assert_msg(same(before, 0, off) && same(before, end, BYTES), "%s: a neighbour has changed", q->name);
	for (uint64_t from = off / du * du; from < end; from += du)
		judge_unit(q, from, off + reported);
}

static void judge_code(const struct request *q, int code, int64_t rc)
{
	const bool counts = q->kind == READ || q->kind == WRITE;
	if (rc < 0)
		ck_assert_msg(rc == (code ? code : -EIO), "%s: %d, and not %d", q->name, (int)rc, code);
	else if (code && counts && q->kind == READ)
		ck_assert_msg(false, "%s: a failed read is a success", q->name);
	if (q->kind == SYNC || q->kind == ALLOCATE) /* a seek that fails finds no hole */
		ck_assert_int_lt(rc, 0);
}

static void open_shape(const struct shape *s)
{
	const struct test_shape shape = {.mode = s->mode,
									 .du_bytes = s->du_bytes,
									 .data_off = 63 * 512,
									 .bytes = BYTES,
									 .access = CF_READ_WRITE,
									 .discards = CF_DISCARDS_ALLOWED};
	test_volume_open(&tv, &shape);
	memcpy(cipher_before, tv.t->data + shape.data_off, BYTES);
	read_all(before);
}

static void disarm(void)
{
	tv.t->nth.left = engine_left = 0;
}

/* False: there was no n-th call. */
static bool fail_nth(const struct shape *s, const struct request *q, unsigned call, unsigned n)
{
	const int code = codes[call][n % 3];
	if (!tv.v)
		open_shape(s);
	memcpy(tv.t->data + tv.shape.data_off, cipher_before, BYTES);
	expect(q);
	if (call == ENGINE)
		engine_left = n;
	else
		tv.t->nth = (struct test_nth){.call = call, .left = n, .code = code};
	const int64_t rc = ask(q);
	const bool fired = call == ENGINE ? engine_left == 0 : tv.t->nth.left == 0;
	disarm();
	if (fired) {
		n_injected++;
		judge_code(q, code, rc);
		judge_bytes(q, rc < 0 ? 0 : q->kind == WRITE ? (uint64_t)rc : len_of(q));
	}
	const int64_t again = ask(q);
	ck_assert_msg(again >= 0 || (q->kind == SYNC && fired), "%s: %d, although the fault has gone", q->name, (int)again);
	read_all(now);
	ck_assert_msg(same(after, 0, BYTES), "%s: not there, although the fault has gone", q->name);
	if (q->kind == SYNC) /* it stays failed until the volume is opened anew */
		test_volume_close(&tv);
	return fired;
}

START_TEST(request__whose_nth_call_fails_harms_nobody)
{
	const struct shape *s = &shapes[_i];
	for (size_t i = 0; i < CF_ARRAY_LEN(requests); i++)
		for (unsigned call = 0; call < N_CALLS; call++)
			for (unsigned n = 1; fail_nth(s, &requests[i], call, n); n++)
				;
	ck_assert_uint_gt(n_injected, 20);
	printf("# %s, %u: faults injected %u, handled %u\n", s->mode, s->du_bytes, n_injected, n_injected);
	fflush(stdout);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("volume, every call");
	TCase *t = tcase_create("walk");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, request__whose_nth_call_fails_harms_nobody, 0, (int)CF_ARRAY_LEN(shapes));
	suite_add_tcase(s, t);
	return test_run(s);
}
