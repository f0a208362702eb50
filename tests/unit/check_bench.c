/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_bench.c - the bench measures everything once, marks one, keeps its budget and can be stopped; and the key
 * lengths that are taken when none is given. Speeds are not judged, only that they are in the units they claim. */
#include "cryptfuse/bench.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "run.h"

#define BUDGET_NS 100000000u

static struct cf_bench out;

/* What the bench said. */
struct said {
	unsigned steps, stop_at; /* stop_at: 0 never */
	unsigned percent, notes;
	char note[512];
};

static void note(void *ctx, const char *text)
{
	struct said *s = ctx;
	s->notes++;
	snprintf(s->note, sizeof(s->note), "%s", text);
}

static int step(void *ctx, unsigned percent, const struct cf_bench_result *next)
{
	struct said *s = ctx;
	ck_assert_uint_ge(percent, s->percent);
	ck_assert_uint_lt(percent, 100);
	ck_assert(next->engine && next->path && next->du_bytes);
	s->percent = percent;
	return ++s->steps == s->stop_at ? -EINTR : 0;
}

static struct cf_bench_opts opts_of(const char *cipher, const char *engine)
{
	struct cf_bench_opts o = {.engine = engine, .budget_ns = BUDGET_NS, .n_du_sizes = 1, .du_sizes = {512}};
	struct cf_err err = {0};
	ck_assert_msg(cf_spec_parse_option(cipher, &o.cipher, &err) == 0, "%s", err.text);
	o.cipher.key_bytes = cf_cipher_default_key_bytes(&o.cipher);
	return o;
}

static int run(const struct cf_bench_opts *o, struct said *s)
{
	struct cf_err err = {0};
	const struct cf_bench_ui ui = {.ctx = s, .note = note, .step = step};
	int rc = cf_bench_run(o, &ui, &out, &err);
	ck_assert_msg(rc == 0 || rc == -EINTR, "%s", err.text);
	return rc;
}

static unsigned count(const char *engine, const char *path, enum cf_dir dir, uint32_t du_bytes)
{
	unsigned n = 0;
	for (size_t i = 0; i < out.n_results; i++) {
		const struct cf_bench_result *r = &out.results[i];
		n += (!engine || !strcmp(r->engine, engine)) && (!path || !strcmp(r->path, path)) && r->dir == dir &&
			 r->du_bytes == du_bytes;
	}
	return n;
}

static unsigned count_chosen(enum cf_dir dir, uint32_t du_bytes)
{
	unsigned n = 0;
	for (size_t i = 0; i < out.n_results; i++)
		n += out.results[i].chosen && out.results[i].dir == dir && out.results[i].du_bytes == du_bytes;
	return n;
}

/* Which engines and paths there must be is asked of the engines themselves. */
static unsigned expect_engine(const struct cf_engine *e, const char *mode, enum cf_dir dir, uint32_t du_bytes)
{
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	const size_t whole = strcmp(mode, "xts") ? 32 : 64;
	const bool batch = e->probe(NULL) == 0 && e->has(aes, 32);
	const bool native = batch && e->mode_has && e->mode_has(mode, aes, whole);
	ck_assert_uint_eq(count(e->name, "batch", dir, du_bytes), batch);
	ck_assert_uint_eq(count(e->name, native ? e->mode_path : "native", dir, du_bytes), native);
	return (unsigned)batch + native;
}

static const char *const ciphers[] = {"aes-xts-plain64", "aes-cbc-essiv:sha256", "aes-lrw-benbi"};
static const char *const modes[] = {"xts", "cbc", "lrw"};

START_TEST(run__measures_all_once_and_marks_one)
{
	struct cf_bench_opts o = opts_of(ciphers[_i], NULL);
	struct said s = {0};
	o.n_du_sizes = 3;
	o.du_sizes[1] = 65536;
	o.du_sizes[2] = 4096;
	ck_assert_int_eq(run(&o, &s), 0);
	size_t expected = 0;
	for (size_t i = 0; i < o.n_du_sizes; i++)
		for (enum cf_dir d = CF_ENCRYPT; d <= CF_DECRYPT; d++) {
			for (size_t e = 0; cf_engines[e]; e++)
				expected += expect_engine(cf_engines[e], modes[_i], d, o.du_sizes[i]);
			ck_assert_uint_eq(count_chosen(d, o.du_sizes[i]), 1);
		}
	ck_assert_uint_eq(out.n_results, expected);
	ck_assert_uint_eq(out.results[0].du_bytes, 512);
	ck_assert_uint_eq(out.results[out.n_results - 1].du_bytes, 4096);
	ck_assert_int_eq(out.results[0].dir, CF_ENCRYPT);
	ck_assert_uint_ge(s.steps, out.n_results);
}
END_TEST

START_TEST(run__in_the_units_it_claims)
{
	struct cf_bench_opts o = opts_of("aes-cbc-plain64", "openssl");
	struct said s = {0};
	o.budget_ns = 1000000000u; /* a kernel's CPU clock may tick each 10 ms only */
	ck_assert_int_eq(run(&o, &s), 0);
	for (size_t i = 0; i < out.n_results; i++) {
		const struct cf_bench_result *r = &out.results[i];
		const double wall_s_per_gib = 1073741824.0 / (r->mb_per_s * 1000000.0);
		ck_assert_double_gt(r->mb_per_s, 0.5);
		ck_assert_double_lt(r->mb_per_s, 1000000.0);
		/* One thread: the CPU cannot be busy for longer than it takes; on an idle machine it is busy throughout. */
		ck_assert_double_lt(r->cpu_s_per_gib, 3 * wall_s_per_gib);
		ck_assert_double_gt(r->cpu_s_per_gib, wall_s_per_gib / 100);
	}
}
END_TEST

static const struct cf_bench_result *find(const char *path, enum cf_dir dir)
{
	for (size_t i = 0; i < out.n_results; i++)
		if (!strcmp(out.results[i].path, path) && out.results[i].dir == dir)
			return &out.results[i];
	ck_abort_msg("no %s", path);
}

/* Open's own measurement is short: where another process comes in between, or all is slow as under valgrind, it may end
 * before it has seen the lanes win. */
#define SLOW_MB_PER_S 300.0

START_TEST(run__marks_lanes_where_they_are_several_times_faster)
{
	struct cf_bench_opts o = opts_of("aes-cbc-plain64", "openssl");
	bool seen = false;
	for (unsigned i = 0; i < 10 && !seen; i++) {
		struct said s = {0};
		ck_assert_int_eq(run(&o, &s), 0);
		const struct cf_bench_result *lanes = find("batch", CF_ENCRYPT), *native = find("native", CF_ENCRYPT);
		ck_assert_int_ne(lanes->chosen, native->chosen);
		seen = lanes->chosen || lanes->mb_per_s < SLOW_MB_PER_S;
	}
	ck_assert(seen);
}
END_TEST

START_TEST(run__names_who_is_left_out)
{
	struct cf_bench_opts o = opts_of("cipher_null-ecb", NULL);
	struct said s = {0};
	o.n_du_sizes = 2;
	o.du_sizes[1] = 4096;
	ck_assert_int_eq(run(&o, &s), 0);
	ck_assert_uint_eq(out.n_results, 4);
	ck_assert_str_eq(out.results[0].engine, "null");
	unsigned others = 0;
	for (size_t i = 0; cf_engines[i]; i++)
		others += strcmp(cf_engines[i]->name, "null") != 0;
	ck_assert_uint_eq(s.notes, others); /* once, not for each size */
	ck_assert_ptr_nonnull(strstr(s.note, "is left out: "));
}
END_TEST

START_TEST(run__of_one_engine_measures_that_alone)
{
	struct cf_bench_opts o = opts_of("aes-xts-plain64", "openssl");
	struct said s = {0};
	ck_assert_int_eq(run(&o, &s), 0);
	ck_assert_uint_eq(count(NULL, NULL, CF_DECRYPT, 512), count("openssl", NULL, CF_DECRYPT, 512));
	ck_assert_uint_eq(count_chosen(CF_DECRYPT, 512), 1);
	ck_assert_uint_eq(s.notes, 0);
}
END_TEST

/* Each of these keys serves two data units of a tile. */
START_TEST(run__with_several_keys_marks_one)
{
	struct cf_bench_opts o = opts_of("aes:64-cbc-plain64", NULL);
	struct said s = {0};
	ck_assert_int_eq(run(&o, &s), 0);
	ck_assert_uint_eq(count_chosen(CF_ENCRYPT, 512), 1);
	ck_assert_uint_eq(count_chosen(CF_DECRYPT, 512), 1);
}
END_TEST

static const unsigned stops[] = {1, 2, 7};

START_TEST(run__stops_when_told_and_gives_nothing)
{
	struct cf_bench_opts o = opts_of("aes-xts-plain64", NULL);
	struct said s = {.stop_at = stops[_i]};
	struct cf_secret_stats before, after;
	struct said once = {0};
	ck_assert_int_eq(run(&o, &once), 0); /* libcrypto keeps what it made for the first one */
	cf_secret_stats(&before);
	out.n_results = 77;
	ck_assert_int_eq(run(&o, &s), -EINTR);
	ck_assert_uint_eq(s.steps, stops[_i]);
	ck_assert_uint_eq(out.n_results, 77);
	cf_secret_stats(&after);
	ck_assert_uint_eq(after.in_use_bytes, before.in_use_bytes);
}
END_TEST

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* At least so much goes by; and not ten times as much is computed, however long the machine keeps it waiting. */
START_TEST(run__keeps_its_budget)
{
	struct cf_bench_opts o = opts_of("aes-xts-plain64", NULL);
	struct said s = {0};
	o.budget_ns = 300000000u;
	const double from = seconds(CLOCK_MONOTONIC), cpu_from = seconds(CLOCK_PROCESS_CPUTIME_ID);
	ck_assert_int_eq(run(&o, &s), 0);
	ck_assert_double_gt(seconds(CLOCK_MONOTONIC) - from, 0.15);
	ck_assert_double_lt(seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_from, 3.0);
}
END_TEST

/* ---- lengths ---- */

static const struct {
	const char *cipher;
	uint32_t du_bytes, request_bytes;
} requests[] = {
	{"aes-xts-plain64", 512, 131072},        {"aes-xts-plain64", 65536, 131072},
	{"aes-cbc-essiv:sha256", 16384, 131072}, {"aes-cbc-essiv:sha256", 32768, 262144}, /* eight lanes */
	{"aes-pcbc-plain64", 65536, 524288},     {"aes-ctr-plain64", 65536, 131072},
};

START_TEST(batch__is_one_request)
{
	struct cf_bench_opts o = opts_of(requests[_i].cipher, "openssl");
	struct said s = {0};
	o.du_sizes[0] = o.cipher.du_bytes = requests[_i].du_bytes;
	o.budget_ns = 10000000u;
	ck_assert_uint_eq(cf_cipher_request_bytes(&o.cipher), requests[_i].request_bytes);
	ck_assert_int_eq(run(&o, &s), 0);
	ck_assert_uint_gt(out.n_results, 0);
	for (size_t i = 0; i < out.n_results; i++)
		ck_assert_uint_eq(out.results[i].batch_bytes, requests[_i].request_bytes);
}
END_TEST

static const struct {
	const char *cipher;
	uint32_t bits;
} keys[] = {
	{"aes-xts-plain64", 512},
	{"aes-cbc-essiv:sha256", 256},
	{"aes-ecb", 256},
	{"aes-lrw-benbi", 384},
	{"aes:8-cbc-plain64", 2048},
	{"aes:64-cbc-lmk", 16384},
	{"aes-cbc-tcw", 512},      /* 256 of cipher key, 128 of IV seed, 128 of whitening */
	{"des3_ede-cbc-tcw", 384}, /* 192, 64, 128 */
	{"aes-cbc-elephant", 512},
	{"aes-xts-elephant", 512}, /* the sector key has 256 at most, and so have both halves of xts together */
	{"des3_ede-cbc-plain64", 192},
	{"blowfish-cbc-plain64", 256},
	{"cast5-cbc-plain64", 128},
	{"serpent-xts-plain64", 512},
	{"xchacha12,aes-adiantum-plain64", 256},
	{"cipher_null-ecb", 0},
	{"nonsense-cbc-plain64", 256},
	{"aes-cbc-random", 256},
};

START_TEST(default_key__fits_the_cipher)
{
	struct cf_cipher_spec spec = {.key_bytes = 7};
	struct cf_err err = {0};
	ck_assert_int_eq(cf_spec_parse_cipher(keys[_i].cipher, &spec, &err), 0);
	ck_assert_msg(cf_cipher_default_key_bytes(&spec) * 8 == keys[_i].bits, "%s: %u", keys[_i].cipher,
				  cf_cipher_default_key_bytes(&spec) * 8);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("bench");
	TCase *t = tcase_create("bench");
	suite_add_tcase(s, t);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, run__measures_all_once_and_marks_one, 0, (int)CF_ARRAY_LEN(ciphers));
	tcase_add_test(t, run__in_the_units_it_claims);
	tcase_add_test(t, run__marks_lanes_where_they_are_several_times_faster);
	tcase_add_test(t, run__names_who_is_left_out);
	tcase_add_test(t, run__of_one_engine_measures_that_alone);
	tcase_add_test(t, run__with_several_keys_marks_one);
	tcase_add_loop_test(t, run__stops_when_told_and_gives_nothing, 0, (int)CF_ARRAY_LEN(stops));
	tcase_add_test(t, run__keeps_its_budget);
	tcase_add_loop_test(t, batch__is_one_request, 0, (int)CF_ARRAY_LEN(requests));
	tcase_add_loop_test(t, default_key__fits_the_cipher, 0, (int)CF_ARRAY_LEN(keys));
	return test_run(s);
}
