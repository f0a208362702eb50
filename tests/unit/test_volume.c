/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_volume.c - volumes for tests, over memory. */
#include "test_volume.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "core/volume/aligned.h"
#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

#define TAIL_BYTES 512u /* of the backing, behind the volume */

struct cf_cipher *test_cipher(const char *mode, const char *iv, uint32_t du_bytes, unsigned n_workers)
{
	struct cf_cipher_spec spec = {.cipher = "aes", .keycount = 1, .du_bytes = du_bytes};
	struct cf_cipher_opts opts = {.n_workers = n_workers};
	struct cf_cipher *c = NULL;
	struct cf_err err = {.code = 0};
	uint8_t key[64];
	snprintf(spec.mode, sizeof(spec.mode), "%s", mode);
	snprintf(spec.iv, sizeof(spec.iv), "%s", iv);
	spec.key_bytes = strcmp(mode, "xts") ? 32 : 64;
	test_fill(key, sizeof(key), 1);
	ck_assert_msg(cf_cipher_new(&c, &spec, key, &opts, &err) == 0, "%s", err.text);
	return c;
}

/* The test's backing, or what makes it fit for any range. */
static struct cf_backing *backing_of(struct test_volume *tv)
{
	struct cf_backing *inner = &tv->t->base, *tail = NULL, *b = NULL;
	tv->t->block = tv->shape.block;
	if (!tv->shape.block)
		return inner;
	ck_assert_int_eq(cf_aligned_new(&b, &inner, &tail, tv->shape.block, 4096, NULL), 0);
	return b;
}

struct cf_journal_opts test_journal_opts(const struct test_shape *shape)
{
	static const uint8_t key[32] = {1, 2, 3};
	return (struct cf_journal_opts){.key = key,
									.key_bytes = sizeof(key),
									.cipher = "aes-test",
									.uuid = "",
									.data_off = shape->data_off,
									.bytes = shape->bytes,
									.du_bytes = shape->du_bytes,
									.n_callers = shape->n_workers ? shape->n_workers : 1};
}

void test_journal_blank(uint8_t *data)
{
	memcpy(data, "CRYPTFUSEJOURNAL\1\0\0", 20);
}

static void put_journal(struct test_volume *tv, struct cf_backing **b)
{
	const struct cf_journal_opts opts = test_journal_opts(&tv->shape);
	struct cf_err err = {.code = 0};
	if (!tv->shape.log_bytes)
		return;
	tv->log = test_backing_new(tv->shape.log_bytes, 1);
	test_journal_blank(tv->log->data);
	struct cf_backing *log = &tv->log->base;
	ck_assert_msg(cf_journal_wrap(b, &log, &opts, &err) == 0, "%s", err.text);
	ck_assert_ptr_null(log);
}

void test_volume_open(struct test_volume *tv, const struct test_shape *shape)
{
	unsigned n_workers = shape->n_workers ? shape->n_workers : 1;
	unsigned n_permits = shape->n_permits ? shape->n_permits : n_workers;
	struct cf_cipher *c = test_cipher(shape->mode, "plain64", shape->du_bytes, n_permits);
	struct cf_err err = {.code = 0};
	struct cf_volume_opts opts = {
		.data_off = shape->data_off,
		.bytes = shape->bytes,
		.access = shape->access,
		.discards = shape->discards,
		.bad_sectors = shape->bad_sectors,
		.n_workers = n_workers,
		.n_permits = n_permits,
	};
	*tv = (struct test_volume){.shape = *shape};
	uint64_t bytes = cf_units_round_up(shape->data_off + shape->bytes + TAIL_BYTES, shape->block ? shape->block : 1);
	tv->t = test_backing_new(bytes, shape->granule ? shape->granule : 1);
	tv->oracle = test_cipher(shape->mode, "plain64", shape->du_bytes, 1);
	test_fill(tv->t->data, (size_t)tv->t->base.bytes, 2);
	struct cf_backing *b = backing_of(tv);
	put_journal(tv, &b);
	ck_assert_msg(cf_volume_new(&tv->v, &b, &c, &opts, &err) == 0, "%s", err.text);
	ck_assert_ptr_null(b);
	ck_assert_ptr_null(c);
	if (n_workers == 1)
		tv->w = cf_volume_enter(tv->v);
}

void test_volume_close(struct test_volume *tv)
{
	if (tv->w)
		cf_volume_leave(tv->v, tv->w);
	cf_volume_free(&tv->v);
	ck_assert_ptr_null(tv->v);
	cf_cipher_free(&tv->oracle);
}

void test_volume_decrypt(struct test_volume *tv, uint8_t *out)
{
	ck_assert_int_eq(cf_volume_drain(tv->v), 0);
	const uint8_t *src = tv->t->data + tv->shape.data_off;
	size_t n_du = (size_t)(tv->shape.bytes / tv->shape.du_bytes);
	ck_assert_int_eq(cf_cipher_crypt(tv->oracle, 0, CF_DECRYPT, 0, n_du, src, out), 0);
}

uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void test_fill(uint8_t *buf, size_t len, uint64_t seed)
{
	uint64_t state = seed << 32;
	for (size_t i = 0; i < len; i += 8) {
		uint64_t r = test_random(&state);
		memcpy(buf + i, &r, len - i < 8 ? len - i : 8);
	}
}
