/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_alloc.c - the data path allocates nothing: neither our code from the heap (the linker sends its calls
 * here), nor libcrypto from the arena (which counts). */
#include <stdatomic.h>
#include <stdlib.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define ROUNDS 1000u

static _Atomic uint64_t n_heap;

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__real_realloc(void *p, size_t len);
void *__wrap_realloc(void *p, size_t len);
int __real_posix_memalign(void **p, size_t align, size_t len);
int __wrap_posix_memalign(void **p, size_t align, size_t len);

void *__wrap_malloc(size_t len)
{
	atomic_fetch_add(&n_heap, 1);
	return __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
	atomic_fetch_add(&n_heap, 1);
	return __real_calloc(n, len);
}

void *__wrap_realloc(void *p, size_t len)
{
	atomic_fetch_add(&n_heap, 1);
	return __real_realloc(p, len);
}

int __wrap_posix_memalign(void **p, size_t align, size_t len)
{
	atomic_fetch_add(&n_heap, 1);
	return __real_posix_memalign(p, align, len);
}

static uint64_t n_arena(void)
{
	struct cf_secret_stats s;
	cf_secret_stats(&s);
	return s.n_alloc;
}

/* One request; whether it succeeded (Check's own assertions allocate). */
static bool request(struct cf_volume *v, struct cf_worker *w, uint64_t kind, size_t len, uint64_t off)
{
	switch (kind) {
	case 0:
		return cf_volume_zero(v, w, off, len) == 0;
	case 1:
		return cf_volume_punch(v, w, off, len) == 0;
	case 2:
		return cf_volume_sync(v) == 0 && cf_volume_allocate(v, off, len) == 0;
	case 3:
		return cf_volume_seek(v, off, CF_SEEK_DATA) == (int64_t)off && cf_volume_seek(v, off, CF_SEEK_HOLE) > 0;
	case 4:
	case 5:
		return cf_volume_write(v, w, w->io, len, off) == (ssize_t)len;
	default:
		return cf_volume_read(v, w, w->io, len, off) == (ssize_t)len;
	}
}

static bool use(struct cf_volume *v, uint64_t *random, uint64_t bytes)
{
	uint64_t off = test_random(random) % bytes;
	size_t len = 1 + (size_t)(test_random(random) % (bytes - off < 65536 ? bytes - off : 65536));
	struct cf_worker *w = cf_volume_enter(v);
	bool ok = request(v, w, test_random(random) % 10, len, off);
	cf_volume_leave(v, w);
	return ok;
}

static const struct test_shape shapes[] = {
	{.mode = "xts", .du_bytes = 512, .bytes = 1 << 20, .discards = CF_DISCARDS_ALLOWED, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 512, .bytes = 1 << 20, .discards = CF_DISCARDS_ALLOWED, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 65536, .bytes = 1 << 20, .discards = CF_DISCARDS_ALLOWED, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 65536, .bytes = 1 << 20, .discards = CF_DISCARDS_ALLOWED, .access = CF_READ_WRITE},
	{.mode = "xts",
	 .du_bytes = 512,
	 .bytes = 1 << 20,
	 .discards = CF_DISCARDS_ALLOWED,
	 .access = CF_READ_WRITE,
	 .log_bytes = 512 << 10},
	{.mode = "cbc",
	 .du_bytes = 4096,
	 .bytes = 1 << 20,
	 .discards = CF_DISCARDS_ALLOWED,
	 .access = CF_READ_WRITE,
	 .log_bytes = 1 << 20},
};

START_TEST(data_path__allocates_nothing)
{
	struct test_shape shape = shapes[_i];
	struct test_volume tv;
	uint64_t random = 1;
	shape.n_workers = 2;
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	test_volume_open(&tv, &shape);
	ck_assert_uint_gt(n_heap, 0); /* it does count */
	uint64_t heap = n_heap, arena = n_arena();
	unsigned n_ok = 0;
	for (unsigned i = 0; i < ROUNDS; i++)
		n_ok += use(tv.v, &random, shape.bytes);
	heap = n_heap - heap;
	arena = n_arena() - arena;
	ck_assert_uint_eq(n_ok, ROUNDS);
	ck_assert_uint_eq(heap, 0);
	ck_assert_uint_eq(arena, 0);
	test_volume_close(&tv);
	cf_secret_fini();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("allocations");
	TCase *t = tcase_create("allocations");
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, data_path__allocates_nothing, 0, (int)CF_ARRAY_LEN(shapes));
	suite_add_tcase(s, t);
	return test_run(s);
}
