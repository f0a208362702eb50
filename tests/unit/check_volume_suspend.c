/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_suspend.c - a volume without its key, and with it again: every engine, every sort of key material. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/engine.h"
#include "run.h"
#include "test_volume.h"

#define BYTES 65536u

/* What is made of a key: two parts, a hashed part, several subkeys, a seed, whitening, an IV key of its own. */
static const struct {
	struct cf_cipher_spec spec;
} kinds[] = {
	{{"aes", "xts", "plain64", "", 1, 64, 4096, CF_IV_SECTORS, 0}},
	{{"aes", "xts", "plain64", "", 2, 128, 512, CF_IV_SECTORS, 0}},
	{{"aes", "cbc", "plain64", "sha256", 1, 32, 512, CF_IV_SECTORS, 0}},
	{{"aes", "cbc", "lmk", "", 64, 64 * 16 + 16, 512, CF_IV_SECTORS, 0}},
	{{"aes", "cbc", "tcw", "", 1, 32 + 32, 512, CF_IV_SECTORS, 0}},
	{{"aes", "cbc", "eboiv", "", 1, 32, 4096, CF_IV_SECTORS, 0}},
	{{"aes", "lrw", "benbi", "", 1, 48, 512, CF_IV_SECTORS, 0}},
	{{"cipher_null", "ecb", "", "", 1, 0, 512, CF_IV_SECTORS, 0}},
};
#define N_KINDS (int)CF_ARRAY_LEN(kinds)

static uint8_t key[2048], before[BYTES], after[BYTES];
static struct cf_volume *v;
static struct cf_worker *w;
static struct test_backing *t;
static unsigned n_opened;

static void teardown(void)
{
	if (v)
		cf_volume_leave(v, w);
	cf_volume_free(&v);
}

/* False: the engine has no such cipher. */
static bool open_with(const struct cf_engine *e, const struct cf_cipher_spec *spec)
{
	const struct cf_cipher_opts opts = {.engine = e->name, .n_workers = 1};
	const struct cf_volume_opts volume = {.bytes = BYTES, .access = CF_READ_WRITE, .n_workers = 1};
	struct cf_cipher *c = NULL;
	struct cf_err err = {0};
	test_fill(key, sizeof(key), 5);
	if (e->probe(NULL) != 0 || cf_cipher_new(&c, spec, key, &opts, NULL) != 0)
		return false;
	ck_assert_int_eq(cf_cipher_keep_check(c, key), 0);
	t = test_backing_new(BYTES, 1);
	test_fill(t->data, BYTES, 6);
	struct cf_backing *b = &t->base;
	ck_assert_msg(cf_volume_new(&v, &b, &c, &volume, &err) == 0, "%s", err.text);
	w = cf_volume_enter(v);
	n_opened++;
	return true;
}

static void read_all(uint8_t *out)
{
	ck_assert_int_eq(cf_volume_read(v, w, out, BYTES, 0), BYTES);
}

static void suspend_and_resume(const struct cf_engine *e, const struct cf_cipher_spec *spec)
{
	if (!open_with(e, spec))
		return;
	read_all(before);
	if (!cf_volume_can_suspend(v)) {
		ck_assert(e->elsewhere);
		return;
	}
	cf_volume_suspend(v);
	ck_assert_int_eq(cf_volume_read(v, w, after, 512, 0), -EIO);
	test_fill(key, sizeof(key), 5);
	ck_assert_int_eq(cf_volume_resume(v, key, NULL), 0);
	read_all(after);
	ck_assert_mem_eq(before, after, BYTES);
	ck_assert_int_eq(cf_volume_write(v, w, before, 1000, 777), 1000);
	ck_assert_int_eq(cf_volume_read(v, w, after, 1000, 777), 1000);
	ck_assert_mem_eq(before, after, 1000);
}

START_TEST(resume__gives_the_same_bytes_by_every_engine)
{
	n_opened = 0;
	for (size_t i = 0; cf_engines[i]; i++) {
		suspend_and_resume(cf_engines[i], &kinds[_i].spec);
		teardown();
	}
	ck_assert_uint_ge(n_opened, 1);
}
END_TEST

static void open_one(void)
{
	for (size_t i = 0; !v && cf_engines[i]; i++)
		if (!cf_engines[i]->elsewhere)
			(void)open_with(cf_engines[i], &kinds[0].spec);
	ck_assert_ptr_nonnull(v);
	read_all(before);
}

START_TEST(suspend__lets_nothing_be_read_or_changed)
{
	static uint8_t was[BYTES];
	open_one();
	memcpy(was, t->data, BYTES);
	cf_volume_suspend(v);
	ck_assert_int_eq(cf_volume_read(v, w, after, 1, 0), -EIO);
	ck_assert_int_eq(cf_volume_write(v, w, before, 4096, 4096), -EIO);
	ck_assert_int_eq(cf_volume_write(v, w, before, 10, 5), -EIO);
	ck_assert_int_eq(cf_volume_zero(v, w, 0, 8192), -EIO);
	ck_assert_mem_eq(t->data, was, BYTES);
	ck_assert_int_eq(cf_volume_sync(v), 0);
}
END_TEST

START_TEST(suspend__wipes_what_was_read)
{
	open_one();
	uint8_t mark[64];
	ck_assert_int_eq(cf_volume_read(v, w, w->io, 4096 + 100, 100), 4096 + 100);
	memcpy(mark, w->io, sizeof(mark));
	cf_volume_suspend(v);
	for (unsigned i = 0; i < 4096 + 100; i++)
		ck_assert_uint_eq(w->io[i], 0);
	for (unsigned i = 0; i < 4096; i++)
		ck_assert_uint_eq(w->edge[i], 0);
	ck_assert_int_ne(memcmp(mark, w->io, sizeof(mark)), 0);
}
END_TEST

/* One bit of the key is another, at its start, at the border of its parts, at its end. */
START_TEST(resume__refuses_another_key)
{
	static const size_t at[] = {0, 31, 32, 63};
	struct cf_err err = {0};
	open_one();
	cf_volume_suspend(v);
	key[at[_i]] ^= 1;
	ck_assert_int_eq(cf_volume_resume(v, key, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, "not the key"));
	ck_assert_int_eq(cf_volume_read(v, w, after, 1, 0), -EIO);
	key[at[_i]] ^= 1;
	ck_assert_int_eq(cf_volume_resume(v, key, NULL), 0);
	read_all(after);
	ck_assert_mem_eq(before, after, BYTES);
}
END_TEST

START_TEST(suspend__again_and_again)
{
	open_one();
	struct cf_secret_stats first, last;
	for (unsigned i = 0; i < 20; i++) {
		cf_volume_suspend(v);
		ck_assert_int_eq(cf_volume_resume(v, key, NULL), 0);
		cf_secret_stats(i ? &last : &first);
	}
	ck_assert_uint_eq(first.in_use_bytes, last.in_use_bytes);
	read_all(after);
	ck_assert_mem_eq(before, after, BYTES);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("volume_suspend");
	TCase *c = tcase_create("suspend");
	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_loop_test(c, resume__gives_the_same_bytes_by_every_engine, 0, N_KINDS);
	tcase_add_test(c, suspend__lets_nothing_be_read_or_changed);
	tcase_add_test(c, suspend__wipes_what_was_read);
	tcase_add_loop_test(c, resume__refuses_another_key, 0, 4);
	tcase_add_test(c, suspend__again_and_again);
	suite_add_tcase(s, c);
	return test_run(s);
}
