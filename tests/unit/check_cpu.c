/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_cpu.c - what the engines of the CPU's AES instructions leave behind: nothing. Each call runs on a stack of its
 * own, painted before. Afterwards the vector registers are zero or what they were, and the stack holds the paint,
 * zeros, and what a secret of eight bytes would hardly be: pointers and small numbers, and the compiler's canary. Also
 * edges of their own: no data unit at all, and buffers at odd addresses. What they compute is check_engine's. */
#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "config.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/secret.h"
#include "run.h"

#define STACK_BYTES ((size_t)64 << 10)
#define PAINT 0xa5a5a5a5a5a5a5a5u
#define DU_MAX 4096u
#define N_DU_MAX 70u

/* Sanitizers keep copies of their own, and have the compiler keep more. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOOK false
#else
#define LOOK true
#endif

enum what { NEW_KEY, CRYPT, NEW_MODE, MODE_CRYPT };

static struct task {
	const struct cf_engine *e;
	const char *mode;
	const uint8_t *key_bytes;
	size_t key_len, n_blocks;
	struct cf_engine_batch batch;
	struct cf_engine_key *key;
	struct cf_engine_mode *m;
	enum what what;
	int rc;
} task;

static ucontext_t here, there;
static uint64_t *stack;
static struct registers {
	uint64_t words[32 * 8];
} before, after;
static uint8_t src[N_DU_MAX * DU_MAX + 16], dst[sizeof(src)], ivs[N_DU_MAX * 16 + 16], key_bytes[64];

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		buf[i] = (uint8_t)(seed >> 56);
	}
}

#if defined(__x86_64__)
#define ALL_16(op, reg, at)                                                                                         \
	__asm__ volatile(op " %%" reg "0, 0*" at "(%0)\n" op " %%" reg "1, 1*" at "(%0)\n" op " %%" reg "2, 2*" at      \
						"(%0)\n" op " %%" reg "3, 3*" at "(%0)\n" op " %%" reg "4, 4*" at "(%0)\n" op " %%" reg     \
						"5, 5*" at "(%0)\n" op " %%" reg "6, 6*" at "(%0)\n" op " %%" reg "7, 7*" at "(%0)\n" op    \
						" %%" reg "8, 8*" at "(%0)\n" op " %%" reg "9, 9*" at "(%0)\n" op " %%" reg "10, 10*" at    \
						"(%0)\n" op " %%" reg "11, 11*" at "(%0)\n" op " %%" reg "12, 12*" at "(%0)\n" op " %%" reg \
						"13, 13*" at "(%0)\n" op " %%" reg "14, 14*" at "(%0)\n" op " %%" reg "15, 15*" at "(%0)"   \
					 :                                                                                              \
					 : "r"(to)                                                                                      \
					 : "memory")
#define MORE_16(op, reg, at)                                                                                           \
	__asm__ volatile(op " %%" reg "16, 16*" at "(%0)\n" op " %%" reg "17, 17*" at "(%0)\n" op " %%" reg "18, 18*" at   \
						"(%0)\n" op " %%" reg "19, 19*" at "(%0)\n" op " %%" reg "20, 20*" at "(%0)\n" op " %%" reg    \
						"21, 21*" at "(%0)\n" op " %%" reg "22, 22*" at "(%0)\n" op " %%" reg "23, 23*" at "(%0)\n" op \
						" %%" reg "24, 24*" at "(%0)\n" op " %%" reg "25, 25*" at "(%0)\n" op " %%" reg "26, 26*" at   \
						"(%0)\n" op " %%" reg "27, 27*" at "(%0)\n" op " %%" reg "28, 28*" at "(%0)\n" op " %%" reg    \
						"29, 29*" at "(%0)\n" op " %%" reg "30, 30*" at "(%0)\n" op " %%" reg "31, 31*" at "(%0)"      \
					 :                                                                                                 \
					 : "r"(to)                                                                                         \
					 : "memory")

static void save_registers(struct registers *to)
{
	if (__builtin_cpu_supports("avx512f")) {
		ALL_16("vmovdqu64", "zmm", "64");
		MORE_16("vmovdqu64", "zmm", "64");
	} else if (__builtin_cpu_supports("avx2")) {
		ALL_16("vmovdqu", "ymm", "32");
	} else {
		ALL_16("movdqu", "xmm", "16");
	}
}

static uint64_t canary(void)
{
	uint64_t c;
	__asm__("movq %%fs:0x28, %0" : "=r"(c));
	return c;
}
#elif defined(__aarch64__)
#define PAIR(a, b) "stp q" #a ", q" #b ", [%0], #32\n"
static void save_registers(struct registers *to)
{
	__asm__ volatile(PAIR(0, 1) PAIR(2, 3) PAIR(4, 5) PAIR(6, 7) PAIR(8, 9) PAIR(10, 11) PAIR(12, 13) PAIR(14, 15)
						 PAIR(16, 17) PAIR(18, 19) PAIR(20, 21) PAIR(22, 23) PAIR(24, 25) PAIR(26, 27) PAIR(28, 29)
							 PAIR(30, 31)
					 : "+r"(to)
					 :
					 : "memory");
}

extern uint64_t __stack_chk_guard;
static uint64_t canary(void)
{
	return __stack_chk_guard;
}
#else
static void save_registers(struct registers *to)
{
	(void)to;
}
static uint64_t canary(void)
{
	return 0;
}
#endif

/* On the painted stack: the call, and at once the registers. */
static void run_task(void)
{
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	save_registers(&before);
	switch (task.what) {
	case NEW_KEY:
		task.rc = task.e->key_new(&task.key, aes, task.key_bytes, task.key_len, 1);
		break;
	case CRYPT:
		task.rc = task.e->crypt(task.key, 0, task.batch.dir, task.batch.src, task.batch.dst, task.n_blocks);
		break;
	case NEW_MODE:
		task.rc = task.e->mode_new(&task.m, task.mode, aes, task.key_bytes, task.key_len, 1);
		break;
	case MODE_CRYPT:
		task.rc = task.e->mode_crypt(task.m, 0, &task.batch);
		break;
	}
	save_registers(&after);
}

static unsigned bad_words(void)
{
	unsigned bad = 0;
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		if (stack[i] != PAINT && stack[i] >> 48 && ~stack[i] >> 32 && stack[i] != canary()) {
			bad++;
			printf("  %zu bytes below the top: %016llx\n", STACK_BYTES - 8 * i, (unsigned long long)stack[i]);
		}
	return bad;
}

static void run_and_look(enum what what)
{
	static const char *const names[] = {"key_new", "crypt", "mode_new", "mode_crypt"};
	task.what = what;
	for (size_t i = 0; i < STACK_BYTES / 8; i++)
		stack[i] = PAINT;
	before = after = (struct registers){0};
	ck_assert_int_eq(getcontext(&there), 0);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &here;
	makecontext(&there, run_task, 0);
	ck_assert_int_eq(swapcontext(&here, &there), 0);
	ck_assert_int_eq(task.rc, 0);
	if (!LOOK)
		return;
	/* where there are 32, strcmp leaves names of modes and ciphers in the upper ones */
	size_t n = what == NEW_KEY || what == NEW_MODE ? CF_ARRAY_LEN(after.words) / 2 : CF_ARRAY_LEN(after.words);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(!after.words[i] || after.words[i] == before.words[i], "%s: %s leaves word %zu of the registers",
					  task.e->name, names[what], i);
	unsigned bad = bad_words();
	ck_assert_msg(bad == 0, "%s %s %zu: %s leaves %u words on the stack (%zu x %u)", task.e->name,
				  task.mode ? task.mode : "ecb", task.key_len, names[what], bad, task.batch.n_du, task.batch.du_bytes);
}

/* Call @fn for every engine of the CPU's that is here; returns how many. */
static unsigned for_cpu(void (*fn)(const struct cf_engine *e))
{
	unsigned n = 0;
	for (size_t i = 0; cf_engines[i]; i++)
		if (!strncmp(cf_engines[i]->name, "cpu-", 4) && cf_engines[i]->probe(NULL) == 0) {
			fn(cf_engines[i]);
			n++;
		}
	return n;
}

static void look_at_blocks(const struct cf_engine *e)
{
	static const size_t counts[] = {0, 1, 7, 8, 9, 31, 33, 64, 300};
	for (size_t key_len = 16; key_len <= 32; key_len += 8) {
		task = (struct task){.e = e, .key_bytes = key_bytes, .key_len = key_len};
		run_and_look(NEW_KEY);
		for (size_t i = 0; i < CF_ARRAY_LEN(counts); i++)
			for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
				task.batch = (struct cf_engine_batch){.dir = dir, .src = src, .dst = dst};
				task.n_blocks = counts[i];
				run_and_look(CRYPT);
			}
		e->key_free(&task.key);
	}
}

START_TEST(blocks__leave_nothing_in_registers_and_on_the_stack)
{
	printf("%u engines\n", for_cpu(look_at_blocks));
}
END_TEST

static void look_at_mode(const struct cf_engine *e, const char *mode, size_t key_len)
{
	static const size_t counts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, N_DU_MAX};
	static const uint32_t sizes[] = {512, DU_MAX, 16, 37 * 16};
	task = (struct task){.e = e, .mode = mode, .key_bytes = key_bytes, .key_len = key_len};
	run_and_look(NEW_MODE);
	for (size_t s = 0; s < CF_ARRAY_LEN(sizes); s++)
		for (size_t i = 0; i < CF_ARRAY_LEN(counts); i++)
			for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
				task.batch = (struct cf_engine_batch){
					.dir = dir, .src = src, .dst = dst, .ivs = ivs, .n_du = counts[i], .du_bytes = sizes[s]};
				run_and_look(MODE_CRYPT);
			}
	e->mode_free(&task.m);
}

static void look_at_modes(const struct cf_engine *e)
{
	for (size_t key_len = 16; key_len <= 32; key_len += 8) {
		look_at_mode(e, "xts", 2 * key_len);
		look_at_mode(e, "cbc", key_len);
	}
}

START_TEST(modes__leave_nothing_in_registers_and_on_the_stack)
{
	for_cpu(look_at_modes);
}
END_TEST

/* ---- edges ---- */

static void odd_addresses(const struct cf_engine *e)
{
	static uint8_t want[17 * 512];
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	for (size_t run = 0; run < 4; run++) {
		struct cf_engine_mode *mode = NULL;
		const char *name = run & 2 ? "cbc" : "xts";
		ck_assert_int_eq(e->mode_new(&mode, name, aes, key_bytes, run & 2 ? 32 : 64, 1), 0);
		for (size_t at = 0; at < 16; at++) {
			struct cf_engine_batch b = {.dir = run & 1 ? CF_DECRYPT : CF_ENCRYPT, .n_du = 17, .du_bytes = 512};
			b.src = src + at;
			b.ivs = ivs + at;
			b.dst = at ? dst + at * 7 % 16 : want;
			fill(src + at, sizeof(want), 5);
			fill(ivs + at, 17 * 16, 6);
			ck_assert_int_eq(e->mode_crypt(mode, 0, &b), 0);
			ck_assert_msg(!memcmp(want, b.dst, sizeof(want)), "%s %s at %zu", e->name, name, at);
		}
		e->mode_free(&mode);
	}
}

START_TEST(modes__take_any_address)
{
	for_cpu(odd_addresses);
}
END_TEST

static void no_data_unit(const struct cf_engine *e)
{
	static const char *const modes[] = {"xts", "cbc"};
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	for (size_t m = 0; m < CF_ARRAY_LEN(modes); m++)
		for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
			struct cf_engine_mode *mode = NULL;
			struct cf_engine_batch b = {.dir = dir, .src = src, .dst = dst, .ivs = ivs, .n_du = 0, .du_bytes = 512};
			memset(dst, 0x77, 512);
			ck_assert_int_eq(e->mode_new(&mode, modes[m], aes, key_bytes, m ? 32 : 64, 1), 0);
			ck_assert_int_eq(e->mode_crypt(mode, 0, &b), 0);
			for (size_t i = 0; i < 512; i++)
				ck_assert_uint_eq(dst[i], 0x77);
			e->mode_free(&mode);
		}
}

START_TEST(modes__without_a_data_unit_write_nothing)
{
	for_cpu(no_data_unit);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("cpu");
	TCase *tc = tcase_create("traces and edges");
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, blocks__leave_nothing_in_registers_and_on_the_stack);
	tcase_add_test(tc, modes__leave_nothing_in_registers_and_on_the_stack);
	tcase_add_test(tc, modes__take_any_address);
	tcase_add_test(tc, modes__without_a_data_unit_write_nothing);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	test_one_arena();
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED)
		return 99;
	fill(src, sizeof(src), 1);
	fill(ivs, sizeof(ivs), 2);
	fill(key_bytes, sizeof(key_bytes), 3);
	return test_run(suite());
}
