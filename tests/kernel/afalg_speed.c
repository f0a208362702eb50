/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg_speed.c - what batches are worth with AF_ALG: batch against per-du in one run, interleaved, the median of
 * several rounds, with the process's CPU time; prints a table, then the ratios that must hold. Exit 0 they do, 1 one
 * does not, 77 no AF_ALG. Inside user-mode-linux the fixed cost of a request dominates, as it does with an accelerator.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"

#define BYTES ((size_t)1 << 20)
#define ROUNDS 7u
#define ROUND_S 0.05 /* at least: CPU time is counted in ticks of 10 ms */

enum { BATCH, PER_DU, N_PATHS };

/* One cipher, data unit and direction, on both paths. */
struct line {
	const char *cipher;
	uint32_t key_bytes, du_bytes;
	enum cf_dir dir;
	struct cf_cipher *c[N_PATHS];
	double mb_per_s[N_PATHS][ROUNDS], cpu_s[N_PATHS], bytes[N_PATHS];
};

static struct line lines[] = {
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 512, .dir = CF_ENCRYPT},
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 512, .dir = CF_DECRYPT},
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 4096, .dir = CF_ENCRYPT},
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 4096, .dir = CF_DECRYPT},
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 65536, .dir = CF_ENCRYPT},
	{.cipher = "aes-xts-plain64", .key_bytes = 64, .du_bytes = 65536, .dir = CF_DECRYPT},
	{.cipher = "aes-cbc-essiv:sha256", .key_bytes = 32, .du_bytes = 512, .dir = CF_DECRYPT},
	{.cipher = "aes-cbc-essiv:sha256", .key_bytes = 32, .du_bytes = 4096, .dir = CF_DECRYPT},
	{.cipher = "aes-cbc-essiv:sha256", .key_bytes = 32, .du_bytes = 512, .dir = CF_ENCRYPT},
	{.cipher = "aes-cbc-essiv:sha256", .key_bytes = 32, .du_bytes = 4096, .dir = CF_ENCRYPT},
};

static uint8_t src[BYTES], dst[BYTES];

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct cf_cipher *open_cipher(const struct line *l, enum cf_path path)
{
	static const uint8_t key[64] = {1, 2, 3, [32] = 4, 5, 6};
	struct cf_cipher_spec spec = {.keycount = 1};
	struct cf_err err = {0};
	struct cf_cipher_opts opts = {.engine = "afalg", .path = path, .n_workers = 1};
	struct cf_cipher *c = NULL;
	int rc = cf_spec_parse_cipher(l->cipher, &spec, &err);
	spec.key_bytes = l->key_bytes;
	spec.du_bytes = l->du_bytes;
	if (rc || cf_cipher_new(&c, &spec, key, &opts, &err) != 0) {
		fprintf(stderr, "%s: %s\n", l->cipher, err.text);
		exit(99);
	}
	return c;
}

/* Over and over for a while. */
static void run(struct line *l, unsigned path, unsigned round)
{
	double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), took = 0, done = 0;
	for (; took < ROUND_S; took = seconds(CLOCK_MONOTONIC) - start, done += (double)BYTES)
		if (cf_cipher_crypt(l->c[path], 0, l->dir, 0, BYTES / l->du_bytes, src, dst) != 0)
			exit(99);
	l->cpu_s[path] += seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	l->bytes[path] += done;
	l->mb_per_s[path][round] = done / took / 1e6;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double v[static ROUNDS])
{
	double sorted[ROUNDS];
	memcpy(sorted, v, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(sorted[0]), ascending);
	return sorted[ROUNDS / 2];
}

/* The machine may be shared: only rounds next to each other are compared. */
static double ratio(const double a[static ROUNDS], const double b[static ROUNDS])
{
	double r[ROUNDS];
	for (unsigned i = 0; i < ROUNDS; i++)
		r[i] = a[i] / b[i];
	return median(r);
}

static double gain(unsigned i)
{
	return ratio(lines[i].mb_per_s[BATCH], lines[i].mb_per_s[PER_DU]);
}

static double cpu_per_gib(unsigned i, unsigned path)
{
	return lines[i].cpu_s[path] / lines[i].bytes[path] * (1 << 30);
}

static double cpu_saved(unsigned i)
{
	return 1 - cpu_per_gib(i, BATCH) / cpu_per_gib(i, PER_DU);
}

static void print(void)
{
	printf("%-22s %6s %-8s %9s %9s %7s %10s %10s\n", "AES-256", "DU", "", "batch", "per-du", "ratio", "CPU s/GiB",
		   "per-du");
	for (unsigned i = 0; i < CF_ARRAY_LEN(lines); i++)
		printf("%-22s %6" PRIu32 " %-8s %9.1f %9.1f %7.1f %10.1f %10.1f\n", lines[i].cipher, lines[i].du_bytes,
			   lines[i].dir == CF_ENCRYPT ? "encrypt" : "decrypt", median(lines[i].mb_per_s[BATCH]),
			   median(lines[i].mb_per_s[PER_DU]), gain(i), cpu_per_gib(i, BATCH), cpu_per_gib(i, PER_DU));
}

/* A figure and its target. Printed, never asserted: the machine may be busy with other work. */
static void compare(const char *what, double have, double want)
{
	printf("%-58s %7.2f, wanted %.2f%s\n", what, have, want, have >= want ? "" : "  missed");
}

int main(void)
{
	struct cf_err err = {0};
	const struct cf_engine *e;
	if (cf_secret_init(&err) != 0 || cf_engine_find("afalg", &e, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 77;
	}
	memset(src, 0x5a, sizeof(src));
	for (unsigned i = 0; i < CF_ARRAY_LEN(lines); i++)
		for (unsigned path = 0; path < N_PATHS; path++)
			lines[i].c[path] = open_cipher(&lines[i], path == BATCH ? CF_PATH_BATCH : CF_PATH_NATIVE);
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < CF_ARRAY_LEN(lines); i++)
			for (unsigned path = 0; path < N_PATHS; path++)
				run(&lines[i], path, round);
	print();
	compare("xts, DU 512, encryption: batch over per-du", gain(0), 10);
	compare("xts, DU 512, decryption: batch over per-du", gain(1), 10);
	compare("xts, DU 4096, encryption: batch over per-du", gain(2), 2.5);
	compare("xts, DU 4096, decryption: batch over per-du", gain(3), 2.5);
	compare("cbc-essiv, DU 512, decryption: batch over per-du", gain(6), 8);
	compare("xts, encryption, per-du: DU 65536 over DU 512",
			ratio(lines[4].mb_per_s[PER_DU], lines[0].mb_per_s[PER_DU]), 10);
	compare("xts, decryption, per-du: DU 65536 over DU 512",
			ratio(lines[5].mb_per_s[PER_DU], lines[1].mb_per_s[PER_DU]), 10);
	compare("xts, DU 512, encryption: CPU time saved by batches", cpu_saved(0), 0.8);
	compare("xts, DU 512, decryption: CPU time saved by batches", cpu_saved(1), 0.8);
	for (unsigned i = 0; i < CF_ARRAY_LEN(lines); i++)
		for (unsigned path = 0; path < N_PATHS; path++)
			cf_cipher_free(&lines[i].c[path]);
	return 0;
}
