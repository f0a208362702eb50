/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_engine.c - the one suite that every engine passes: for each cipher and key length it says it has, many blocks
 * are what single blocks are, decryption undoes encryption, sources stay intact, any key is taken, workers do not
 * disturb each other, whole modes are what their definition makes of the block primitive, and engines that have the
 * same cipher agree. Known answers are in the self-test and in the vectors. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"

static const char *const ciphers[] = {"aes",      "camellia", "serpent",  "twofish",    "cast6",
									  "blowfish", "cast5",    "des3_ede", "cipher_null"};

#define N_BLOCKS 259u
#define N_BYTES (N_BLOCKS * CF_BLOCK_MAX)

/* Is it to be tested? It works here, and CHECK_ENGINE, which names the only one of interest, does not say otherwise. */
static bool is_asked_for(const struct cf_engine *e)
{
	const char *only = getenv("CHECK_ENGINE");
	return e->probe(NULL) == 0 && (!only || !strcmp(only, e->name));
}

/* Call @fn for every engine, cipher and key length there is; returns how many. */
typedef void for_one(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len);

static unsigned for_all(for_one *fn)
{
	unsigned n = 0;
	for (size_t e = 0; cf_engines[e]; e++) {
		if (!is_asked_for(cf_engines[e]))
			continue;
		for (size_t c = 0; c < CF_ARRAY_LEN(ciphers); c++) {
			const struct cf_block_cipher *bc = cf_block_cipher_find(ciphers[c]);
			ck_assert_ptr_nonnull(bc);
			for (size_t key_len = 0; key_len <= 64; key_len++)
				if (cf_engines[e]->has(bc, key_len)) {
					fn(cf_engines[e], bc, key_len);
					n++;
				}
		}
	}
	return n;
}

static void fill(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)((i * 2654435761u + seed * 40503u) >> 11);
}

static bool have(const char *engine)
{
	const struct cf_engine *e = NULL;
	return cf_engine_find(engine, &e, NULL) == 0;
}

/* How many combinations there must be, at least, with those of these engines that are asked for. */
static unsigned at_least(unsigned openssl, unsigned gcrypt, unsigned afalg)
{
	unsigned n = 0;
	for (size_t i = 0; cf_engines[i]; i++) {
		const char *name = cf_engines[i]->name;
		if (is_asked_for(cf_engines[i]))
			n += !strcmp(name, "openssl")  ? openssl
				 : !strcmp(name, "gcrypt") ? gcrypt
				 : !strcmp(name, "afalg")  ? afalg
										   : 0;
	}
	return n;
}

static struct cf_engine_key *new_key(const struct cf_engine *e, const struct cf_block_cipher *bc, const uint8_t *key,
									 size_t len, unsigned workers)
{
	struct cf_engine_key *k = NULL;
	ck_assert_msg(e->key_new(&k, bc, key, len, workers) == 0, "%s: %s with %zu bytes", e->name, bc->name, len);
	ck_assert_ptr_nonnull(k);
	return k;
}

static void check_blocks(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	uint8_t key[64], src[N_BYTES], copy[N_BYTES], many[N_BYTES], one[N_BYTES];
	size_t len = N_BLOCKS * bc->block_bytes;
	fill(key, sizeof(key), (unsigned)key_len);
	fill(src, len, 7);
	memcpy(copy, src, len);
	ck_assert(cf_block_cipher_takes_key(bc, key_len));
	struct cf_engine_key *k = new_key(e, bc, key, key_len, 1);
	for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
		ck_assert_int_eq(e->crypt(k, 0, dir, src, many, N_BLOCKS), 0);
		for (size_t i = 0; i < N_BLOCKS; i++)
			ck_assert_int_eq(e->crypt(k, 0, dir, src + i * bc->block_bytes, one + i * bc->block_bytes, 1), 0);
		ck_assert_msg(!memcmp(many, one, len), "%s %s %zu: many blocks differ from single ones", e->name, bc->name,
					  key_len);
		ck_assert_int_eq(e->crypt(k, 0, dir == CF_ENCRYPT ? CF_DECRYPT : CF_ENCRYPT, many, one, N_BLOCKS), 0);
		ck_assert_msg(!memcmp(one, src, len), "%s %s %zu: does not come back", e->name, bc->name, key_len);
		ck_assert(!memcmp(src, copy, len));
	}
	e->key_free(&k);
	ck_assert_ptr_null(k);
}

START_TEST(blocks__many_equal_single_and_come_back)
{
	unsigned n = for_all(check_blocks);
	printf("%u engine x cipher x key length combinations\n", n);
	/* libcrypto: aes 3, camellia 3, blowfish 53, cast5 12, des3_ede 1; gcrypt: serpent 32, twofish 2 more, cast5 6
	 * fewer; afalg: all of these, cast6, and a cipher that does nothing */
	ck_assert_uint_ge(n, at_least(72, 100, 112));
}
END_TEST

/* Buffers that end where memory ends: one byte past them is a fault. */
static uint8_t *src_end, *dst_end;

#define EDGE_BYTES (3u * 4096u)

static uint8_t *edge_new(void)
{
	uint8_t *p = mmap(NULL, EDGE_BYTES + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(p, MAP_FAILED);
	ck_assert_int_eq(mprotect(p + EDGE_BYTES, 4096, PROT_NONE), 0);
	return p + EDGE_BYTES;
}

static void edge_free(uint8_t *end)
{
	ck_assert_int_eq(munmap(end - EDGE_BYTES, EDGE_BYTES + 4096), 0);
}

#define COUNT_MAX 600u
_Static_assert(COUNT_MAX *CF_BLOCK_MAX <= EDGE_BYTES, "the largest run must fit");

/* Engines work in groups of blocks and treat the last ones apart: each number of blocks, against one by one, with
 * nothing read or written past the end. */
static void check_counts(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	static uint8_t one[COUNT_MAX * CF_BLOCK_MAX];
	size_t block = bc->block_bytes, len = COUNT_MAX * block;
	uint8_t key[64], *src = src_end - len, *dst = dst_end - len;
	if (key_len != 16 && key_len != 24 && key_len != 32)
		return;
	fill(key, sizeof(key), 9);
	fill(src, len, 10);
	struct cf_engine_key *k = new_key(e, bc, key, key_len, 1);
	for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
		for (size_t i = 0; i < COUNT_MAX; i++)
			ck_assert_int_eq(e->crypt(k, 0, dir, src + i * block, one + i * block, 1), 0);
		for (size_t n = 0; n <= COUNT_MAX; n++) {
			memset(dst, 0xee, len);
			ck_assert_int_eq(e->crypt(k, 0, dir, src + len - n * block, dst + len - n * block, n), 0);
			ck_assert_msg(!memcmp(dst + len - n * block, one + len - n * block, n * block), "%s %s: %zu blocks",
						  e->name, bc->name, n);
			ck_assert(n == COUNT_MAX || dst[len - n * block - 1] == 0xee);
		}
	}
	e->key_free(&k);
}

START_TEST(blocks__every_count_up_to_600_is_right_and_stays_inside)
{
	src_end = edge_new();
	dst_end = edge_new();
	for_all(check_counts);
	edge_free(src_end);
	edge_free(dst_end);
}
END_TEST

/* Many authors, one cipher. */
static unsigned agreed;

static void check_agrees(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	static const uint8_t weak[] = {0x00, 0x01, 0xfe, 0xff};
	uint8_t key[64], src[64 * CF_BLOCK_MAX], mine[sizeof(src)], theirs[sizeof(src)];
	fill(src, sizeof(src), 12);
	for (size_t o = 0; cf_engines[o] != e; o++) {
		if (cf_engines[o]->probe(NULL) != 0 || !cf_engines[o]->has(bc, key_len))
			continue;
		for (size_t i = 0; i <= sizeof(weak); i++) {
			fill(key, sizeof(key), 13 + (unsigned)key_len);
			if (i < sizeof(weak))
				memset(key, weak[i], sizeof(key));
			struct cf_engine_key *a = new_key(e, bc, key, key_len, 1), *b = new_key(cf_engines[o], bc, key, key_len, 1);
			ck_assert_int_eq(e->crypt(a, 0, CF_ENCRYPT, src, mine, 64), 0);
			ck_assert_int_eq(cf_engines[o]->crypt(b, 0, CF_ENCRYPT, src, theirs, 64), 0);
			ck_assert_msg(!memcmp(mine, theirs, 64 * bc->block_bytes), "%s and %s differ on %s with %zu bytes", e->name,
						  cf_engines[o]->name, bc->name, key_len);
			e->key_free(&a);
			cf_engines[o]->key_free(&b);
		}
		agreed++;
	}
}

START_TEST(engines__that_have_the_same_cipher_agree)
{
	agreed = 0;
	for_all(check_agrees);
	printf("%u combinations that two engines have\n", agreed);
	if (have("gcrypt"))
		ck_assert_uint_ge(agreed, 66); /* aes 3, camellia 3, blowfish 53, cast5 6, des3_ede 1 */
}
END_TEST

/* dm-crypt takes any key: zeros, and keys that libraries call weak (HAZARDS 24). */
static void check_weak(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	static const uint8_t bytes[] = {0x00, 0x01, 0xfe, 0xff};
	uint8_t key[64];
	for (size_t i = 0; i < sizeof(bytes); i++) {
		memset(key, bytes[i], sizeof(key));
		struct cf_engine_key *k = new_key(e, bc, key, key_len, 1);
		e->key_free(&k);
	}
}

START_TEST(keys__weak_ones_are_taken)
{
	for_all(check_weak);
}
END_TEST

START_TEST(keys__wrong_lengths_are_not_had)
{
	static const struct {
		const char *cipher;
		size_t len;
	} wrong[] = {{"aes", 15},     {"aes", 20},      {"aes", 64},    {"camellia", 0}, {"des3_ede", 16},
				 {"blowfish", 3}, {"blowfish", 57}, {"cast5", 4},   {"cast5", 17},   {"serpent", 0},
				 {"serpent", 33}, {"twofish", 20},  {"twofish", 33}};
	for (size_t i = 0; i < CF_ARRAY_LEN(wrong); i++)
		for (size_t e = 0; cf_engines[e]; e++)
			ck_assert(!cf_engines[e]->has(cf_block_cipher_find(wrong[i].cipher), wrong[i].len));
}
END_TEST

/* ---- every length, against libcrypto ---- */

#define LONGEST 600u /* blocks: several passes of the widest vectors, and every rest */

static uint8_t long_src[LONGEST * 16 * 3], long_want[sizeof(long_src)], long_got[sizeof(long_src)];

static const struct cf_engine *libcrypto(void)
{
	const struct cf_engine *e = NULL;
	ck_assert_int_eq(cf_engine_find("openssl", &e, NULL), 0);
	return e;
}

static void compare_mode(const struct cf_engine *e, const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	struct cf_engine_mode *a = NULL, *b = NULL;
	uint8_t key[64], ivs[40 * 16];
	const struct cf_engine *ref = libcrypto();
	fill(key, sizeof(key), (unsigned)key_len + 1);
	fill(ivs, sizeof(ivs), 99);
	ck_assert_int_eq(ref->mode_new(&a, mode, bc, key, key_len, 1), 0);
	ck_assert_int_eq(e->mode_new(&b, mode, bc, key, key_len, 1), 0);
	for (uint32_t blocks = 1; blocks <= LONGEST; blocks++)
		for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
			/* three data units, and as many small ones as there are IVs for every number of lanes */
			size_t n_du = blocks <= 8 ? 1 + (blocks * 7 + (size_t)dir * 5) % 40 : 3;
			uint32_t du = blocks * 16;
			struct cf_engine_batch run = {
				.dir = dir, .src = long_src, .dst = long_want, .ivs = ivs, .n_du = n_du, .du_bytes = du};
			ck_assert_int_eq(ref->mode_crypt(a, 0, &run), 0);
			run.dst = long_got;
			memset(long_got, 0, n_du * du);
			ck_assert_int_eq(e->mode_crypt(b, 0, &run), 0);
			ck_assert_msg(!memcmp(long_want, long_got, n_du * du),
						  "%s %s-%s %zu, %zu data units of %u blocks, %d: differs", e->name, bc->name, mode, key_len,
						  n_du, blocks, dir);
			if (!e->in_place_mode || strcmp(mode, e->in_place_mode) != 0)
				continue;
			memcpy(long_got, long_src, n_du * du);
			run.src = long_got;
			ck_assert_int_eq(e->mode_crypt(b, 0, &run), 0);
			ck_assert_msg(!memcmp(long_want, long_got, n_du * du), "%s %s, %zu of %u blocks: differs in place", e->name,
						  mode, n_du, blocks);
		}
	/* all numbers of lanes at one length */
	for (size_t n_du = 1; n_du <= 40; n_du++) {
		struct cf_engine_batch run = {
			.dir = CF_ENCRYPT, .src = long_src, .dst = long_want, .ivs = ivs, .n_du = n_du, .du_bytes = 512};
		ck_assert_int_eq(ref->mode_crypt(a, 0, &run), 0);
		run.dst = long_got;
		ck_assert_int_eq(e->mode_crypt(b, 0, &run), 0);
		ck_assert_msg(!memcmp(long_want, long_got, n_du * 512), "%s %s, %zu lanes: differs", e->name, mode, n_du);
	}
	ref->mode_free(&a);
	e->mode_free(&b);
}

START_TEST(modes__equal_libcrypto_at_every_length)
{
	static const char *const modes[] = {"xts", "cbc"};
	unsigned n = 0;
	fill(long_src, sizeof(long_src), 17);
	for (size_t i = 0; cf_engines[i]; i++) {
		const struct cf_engine *e = cf_engines[i];
		if (!e->mode_has || e == libcrypto() || !is_asked_for(e))
			continue;
		for (size_t c = 0; c < CF_ARRAY_LEN(ciphers); c++)
			for (size_t m = 0; m < 2; m++)
				for (size_t key_len = 16; key_len <= 64; key_len += 8) {
					const struct cf_block_cipher *bc = cf_block_cipher_find(ciphers[c]);
					if (!e->mode_has(modes[m], bc, key_len) || !libcrypto()->mode_has(modes[m], bc, key_len))
						continue;
					compare_mode(e, modes[m], bc, key_len);
					n++;
				}
	}
	printf("%u engine x mode x key length combinations compared at every length\n", n);
}
END_TEST

START_TEST(blocks__equal_libcrypto_at_every_length)
{
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	uint8_t key[32];
	fill(long_src, sizeof(long_src), 23);
	fill(key, sizeof(key), 24);
	for (size_t i = 0; cf_engines[i]; i++)
		for (size_t key_len = 16; key_len <= 32; key_len += 8) {
			const struct cf_engine *e = cf_engines[i], *ref = libcrypto();
			if (e == ref || !is_asked_for(e) || !e->has(aes, key_len))
				continue;
			struct cf_engine_key *a = new_key(ref, aes, key, key_len, 1), *b = new_key(e, aes, key, key_len, 1);
			for (size_t n = 1; n <= LONGEST; n++)
				for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
					ck_assert_int_eq(ref->crypt(a, 0, dir, long_src, long_want, n), 0);
					memset(long_got, 0, n * 16 + 16);
					ck_assert_int_eq(e->crypt(b, 0, dir, long_src, long_got, n), 0);
					ck_assert_msg(!memcmp(long_want, long_got, n * 16), "%s %zu: %zu blocks differ", e->name, key_len,
								  n);
					for (size_t at = 0; at < 16; at++)
						ck_assert_msg(!long_got[n * 16 + at], "%s %zu: wrote past %zu blocks", e->name, key_len, n);
				}
			ref->key_free(&a);
			e->key_free(&b);
		}
}
END_TEST

/* ---- workers ---- */

struct job {
	const struct cf_engine *e;
	struct cf_engine_key *k;
	struct cf_engine_mode *m;
	unsigned worker;
	const uint8_t *src, *want[2];
	int bad;
};

static void *work(void *arg)
{
	struct job *j = arg;
	uint8_t dst[4096];
	static const uint8_t ivs[8 * 16];
	for (unsigned round = 0; round < 400; round++) {
		enum cf_dir dir = (round + j->worker) & 1 ? CF_DECRYPT : CF_ENCRYPT;
		struct cf_engine_batch b = {.dir = dir, .src = j->src, .dst = dst, .ivs = ivs, .n_du = 8, .du_bytes = 512};
		int rc = j->m ? j->e->mode_crypt(j->m, j->worker, &b) : j->e->crypt(j->k, j->worker, dir, j->src, dst, 256);
		j->bad |= rc != 0 || memcmp(dst, j->want[dir], sizeof(dst)) != 0;
	}
	return NULL;
}

static void run_workers(struct job *jobs, unsigned n)
{
	pthread_t t[4];
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, work, &jobs[i]), 0);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(t[i], NULL);
		ck_assert_msg(!jobs[i].bad, "worker %u", i);
	}
}

START_TEST(workers__do_not_disturb_each_other)
{
	static uint8_t src[4096], want[2][4096];
	uint8_t key[64];
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	fill(key, sizeof(key), 3);
	fill(src, sizeof(src), 4);
	for (size_t i = 0; cf_engines[i]; i++) {
		const struct cf_engine *e = cf_engines[i];
		static const uint8_t ivs[8 * 16];
		if (!is_asked_for(e) || !e->has(aes, 32))
			continue;
		struct job jobs[4] = {0};
		struct cf_engine_key *k = new_key(e, aes, key, 32, 4);
		struct cf_engine_mode *m = NULL;
		for (enum cf_dir d = CF_ENCRYPT; d <= CF_DECRYPT; d++)
			ck_assert_int_eq(e->crypt(k, 0, d, src, want[d], 256), 0);
		for (unsigned w = 0; w < 4; w++)
			jobs[w] = (struct job){.e = e, .k = k, .worker = w, .src = src, .want = {want[0], want[1]}};
		run_workers(jobs, 4);
		if (e->mode_has && e->mode_has("xts", aes, 64)) {
			ck_assert_int_eq(e->mode_new(&m, "xts", aes, key, 64, 4), 0);
			for (enum cf_dir d = CF_ENCRYPT; d <= CF_DECRYPT; d++) {
				struct cf_engine_batch b = {
					.dir = d, .src = src, .dst = want[d], .ivs = ivs, .n_du = 8, .du_bytes = 512};
				ck_assert_int_eq(e->mode_crypt(m, 0, &b), 0);
			}
			for (unsigned w = 0; w < 4; w++)
				jobs[w].m = m;
			run_workers(jobs, 4);
			e->mode_free(&m);
			ck_assert_ptr_null(m);
		}
		e->key_free(&k);
	}
}
END_TEST

/* ---- whole modes ---- */

/* The first two blocks of a data unit by definition: T = E2(IV), C = E1(P ^ T) ^ T; C = E(P ^ IV), C' = E(P' ^ C). */
static void expect_xts(const struct cf_engine *e, struct cf_engine_key *k, struct cf_engine_key *tweak,
					   const uint8_t *iv, const uint8_t *plain, uint8_t *out)
{
	uint8_t t[16], x[16];
	ck_assert_int_eq(e->crypt(tweak, 0, CF_ENCRYPT, iv, t, 1), 0);
	for (size_t b = 0; b < 2; b++) {
		for (size_t i = 0; i < 16; i++)
			x[i] = plain[16 * b + i] ^ t[i];
		ck_assert_int_eq(e->crypt(k, 0, CF_ENCRYPT, x, out + 16 * b, 1), 0);
		for (size_t i = 0; i < 16; i++)
			out[16 * b + i] ^= t[i];
		bool carry = t[15] & 0x80;
		for (size_t i = 15; i; i--)
			t[i] = (uint8_t)(t[i] << 1 | t[i - 1] >> 7);
		t[0] = (uint8_t)(t[0] << 1 ^ (carry ? 0x87 : 0));
	}
}

static void expect_cbc(const struct cf_engine *e, struct cf_engine_key *k, size_t block, const uint8_t *iv,
					   const uint8_t *plain, uint8_t *out)
{
	uint8_t x[CF_BLOCK_MAX];
	for (size_t b = 0; b < 2; b++) {
		for (size_t i = 0; i < block; i++)
			x[i] = plain[block * b + i] ^ (b ? out[i] : iv[i]);
		ck_assert_int_eq(e->crypt(k, 0, CF_ENCRYPT, x, out + block * b, 1), 0);
	}
}

static unsigned n_modes;

/* @key: the mode's, @parts times @key_len bytes. */
static void check_mode(const struct cf_engine *e, const char *mode, const struct cf_block_cipher *bc,
					   const uint8_t *key, size_t key_len, size_t parts)
{
	uint8_t src[3 * 512], copy[sizeof(src)], there[sizeof(src)], back[sizeof(src)], ivs[3 * CF_BLOCK_MAX], want[32];
	struct cf_engine_mode *m = NULL;
	struct cf_engine_key *k = NULL, *tweak = NULL;
	int rc = e->mode_new(&m, mode, bc, key, parts * key_len, 1);
	if (rc == -EINVAL && parts == 2 && !memcmp(key, key + key_len, key_len))
		return; /* equal halves: the batch path serves */
	ck_assert_msg(rc == 0, "%s: %s-%s with %zu bytes", e->name, bc->name, mode, key_len);
	fill(src, sizeof(src), 14);
	fill(ivs, sizeof(ivs), 15);
	memcpy(copy, src, sizeof(src));
	struct cf_engine_batch b = {.dir = CF_ENCRYPT, .src = src, .dst = there, .ivs = ivs, .n_du = 3, .du_bytes = 512};
	ck_assert_int_eq(e->mode_crypt(m, 0, &b), 0);
	ck_assert(!memcmp(src, copy, sizeof(src)));
	k = new_key(e, bc, key, key_len, 1);
	if (parts == 2)
		tweak = new_key(e, bc, key + key_len, key_len, 1);
	for (size_t i = 0; i < 3; i++) {
		if (parts == 2)
			expect_xts(e, k, tweak, ivs + i * 16, src + i * 512, want);
		else
			expect_cbc(e, k, bc->block_bytes, ivs + i * bc->block_bytes, src + i * 512, want);
		ck_assert_msg(!memcmp(there + i * 512, want, 2 * (size_t)bc->block_bytes), "%s: %s-%s with %zu bytes", e->name,
					  bc->name, mode, key_len);
	}
	b = (struct cf_engine_batch){.dir = CF_DECRYPT, .src = there, .dst = back, .ivs = ivs, .n_du = 3, .du_bytes = 512};
	ck_assert_int_eq(e->mode_crypt(m, 0, &b), 0);
	ck_assert(!memcmp(src, back, sizeof(src)));
	e->mode_free(&m);
	e->key_free(&k);
	e->key_free(&tweak);
	n_modes++;
}

static void check_modes(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	uint8_t key[128];
	fill(key, sizeof(key), 16 + (unsigned)key_len);
	if (e->mode_has && e->mode_has("cbc", bc, key_len))
		check_mode(e, "cbc", bc, key, key_len, 1);
	if (!e->mode_has || !e->mode_has("xts", bc, 2 * key_len))
		return;
	ck_assert(bc->block_bytes == 16 && !e->mode_has("xts", bc, 2 * key_len + 1));
	check_mode(e, "xts", bc, key, key_len, 2);
	memset(key, 0, sizeof(key));
	check_mode(e, "xts", bc, key, key_len, 2);
}

START_TEST(modes__are_what_their_definition_makes_of_the_block_primitive)
{
	n_modes = 0;
	for_all(check_modes);
	printf("%u engine x mode x cipher x key length combinations\n", n_modes);
	ck_assert_uint_ge(n_modes, at_least(74, 180, 204));
}
END_TEST

START_TEST(modes__that_nobody_has_are_refused)
{
	static const uint8_t key[64];
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes"), *des = cf_block_cipher_find("des3_ede");
	for (size_t i = 0; cf_engines[i]; i++) {
		const struct cf_engine *e = cf_engines[i];
		struct cf_engine_mode *m = NULL;
		if (e->probe(NULL) != 0 || !e->mode_has)
			continue;
		ck_assert(!e->mode_has("ecb", aes, 32) && !e->mode_has("made-up", aes, 32) && !e->mode_has("xts", des, 48));
		ck_assert_int_eq(e->mode_new(&m, "ecb", aes, key, 32, 1), -ENOENT);
		ck_assert_int_eq(e->mode_new(&m, "made-up", aes, key, 32, 1), -ENOENT);
		ck_assert_int_eq(e->mode_new(&m, "xts", des, key, 48, 1), -ENOENT);
		ck_assert_int_eq(e->mode_new(&m, "cbc", aes, key, 33, 1), -ENOENT);
		ck_assert_ptr_null(m);
	}
}
END_TEST

/* ---- memory ---- */

/* Both libraries allocate from the arena, which counts. */
static void check_allocations(const struct cf_engine *e, const struct cf_block_cipher *bc, size_t key_len)
{
	static uint8_t src[4096], dst[4096], ivs[8 * CF_BLOCK_MAX];
	struct cf_secret_stats start, before, after, end;
	struct cf_engine_mode *m = NULL;
	uint8_t key[64];
	fill(key, sizeof(key), 5);
	struct cf_engine_key *k = new_key(e, bc, key, key_len, 1);
	e->key_free(&k); /* what a library makes once and keeps is there now */
	cf_secret_stats(&start);
	k = new_key(e, bc, key, key_len, 1);
	cf_secret_stats(&before);
	ck_assert_msg(!key_len || before.in_use_bytes > start.in_use_bytes + key_len, "%s %s: a key elsewhere", e->name,
				  bc->name);
	if (e->mode_has && e->mode_has("cbc", bc, key_len))
		ck_assert_int_eq(e->mode_new(&m, "cbc", bc, key, key_len, 1), 0);
	cf_secret_stats(&before);
	for (unsigned i = 0; i < 20; i++) {
		struct cf_engine_batch b = {
			.dir = i & 1 ? CF_DECRYPT : CF_ENCRYPT, .src = src, .dst = dst, .ivs = ivs, .n_du = 8, .du_bytes = 512};
		ck_assert_int_eq(e->crypt(k, 0, b.dir, src, dst, 1 + 12 * i), 0);
		if (m)
			ck_assert_int_eq(e->mode_crypt(m, 0, &b), 0);
	}
	cf_secret_stats(&after);
	ck_assert_uint_eq(before.n_alloc, after.n_alloc);
	if (m)
		e->mode_free(&m);
	e->key_free(&k);
	cf_secret_stats(&end);
	ck_assert_uint_eq(start.in_use_bytes, end.in_use_bytes);
}

START_TEST(memory__keys_are_in_the_arena_and_crypt_allocates_nothing)
{
	for_all(check_allocations);
}
END_TEST

/* ---- names ---- */

START_TEST(find__says_whether_a_name_is_unknown_or_not_in_this_build)
{
	const struct cf_engine *e = NULL;
	struct cf_err err = {0};
	ck_assert_int_eq(cf_engine_find("made-up", &e, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, "unknown engine 'made-up'") && strstr(err.text, "openssl"), "%s", err.text);
	err = (struct cf_err){0};
	int rc = cf_engine_find("gcrypt", &e, &err);
#ifdef HAVE_GCRYPT
	ck_assert_msg(rc == 0, "%s", err.text);
	ck_assert_str_eq(e->name, "gcrypt");
#else
	ck_assert_int_eq(rc, -EINVAL);
	ck_assert_str_eq(err.text, "this build has no engine 'gcrypt' (configure --with-gcrypt)");
#endif
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("engine");
	TCase *tc = tcase_create("every engine");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, blocks__many_equal_single_and_come_back);
	tcase_add_test(tc, blocks__every_count_up_to_600_is_right_and_stays_inside);
	tcase_add_test(tc, engines__that_have_the_same_cipher_agree);
	tcase_add_test(tc, keys__weak_ones_are_taken);
	tcase_add_test(tc, keys__wrong_lengths_are_not_had);
	tcase_add_test(tc, modes__equal_libcrypto_at_every_length);
	tcase_add_test(tc, blocks__equal_libcrypto_at_every_length);
	tcase_add_test(tc, workers__do_not_disturb_each_other);
	tcase_add_test(tc, modes__are_what_their_definition_makes_of_the_block_primitive);
	tcase_add_test(tc, modes__that_nobody_has_are_refused);
	tcase_add_test(tc, memory__keys_are_in_the_arena_and_crypt_allocates_nothing);
	tcase_add_test(tc, find__says_whether_a_name_is_unknown_or_not_in_this_build);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	test_one_arena();
	return test_run(suite());
}
