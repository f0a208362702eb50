/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bulk.c - the same 256 MiB written through dm-crypt and through cryptfuse, with batches and without: is the ciphertext
 * the same? Runs as root in a kernel that has dm-crypt.
 *
 *   bulk [--mib N] [--engine NAME]
 */
#include "config.h"

#include <getopt.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/secret.h"
#include "dm.h"
#include "ours.h"
#include "tables.h"

#define CIPHER_AND_KEY                                                                                                 \
	"aes-xts-plain64 "                                                                                                 \
	"7f9ba8b3daaf59510ec899a9de1fe253a60fc3366d02e0274d5f38a3863b773a1a7ddcf94f0a2e3a19101b8431c2e84e90db70468d4f1785" \
	"f1e2"                                                                                                             \
	"d3c4b5a69788"
#define PARAMS CIPHER_AND_KEY " 0 " DM_DEVICE " 0" /* data units of 512 bytes */

struct bulk {
	uint64_t bytes;
	const char *engine;
	struct dm dm;
	struct ours ours;
	uint8_t *plain, *buf; /* CF_IO_MAX each */
};

/** Who writes, and in what portions. */
struct writer {
	const char *name, *about;
	enum cf_path path;
	size_t portion; /* bytes a call */
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The plaintext at @off: the same whoever writes it. */
static void plaintext(struct bulk *b, uint64_t off)
{
	struct rng r = rng_new(0x62756c6b, off / CF_IO_MAX);
	rng_fill(&r, b->plain, CF_IO_MAX);
}

static void digest_image(struct bulk *b, char out[static 65])
{
	uint8_t sum[32];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
	for (uint64_t off = 0; off < b->bytes; off += CF_IO_MAX) {
		whole_pread(b->dm.backing, b->buf, CF_IO_MAX, off);
		EVP_DigestUpdate(ctx, b->buf, CF_IO_MAX);
	}
	EVP_DigestFinal_ex(ctx, sum, NULL);
	EVP_MD_CTX_free(ctx);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

/* Nobody may pass by leaving alone what another wrote. */
static void clear_image(struct bulk *b)
{
	memset(b->buf, 0, CF_IO_MAX);
	for (uint64_t off = 0; off < b->bytes; off += CF_IO_MAX)
		whole_pwrite(b->dm.backing, b->buf, CF_IO_MAX, off);
}

static void timed(const struct bulk *b, const char *name, double start)
{
	printf("%s: %.0f MiB/s\n", name, (double)(b->bytes >> 20) / (now_s() - start));
}

static void kernel_writes(struct bulk *b)
{
	double start = now_s();
	for (uint64_t off = 0; off < b->bytes; off += CF_IO_MAX) {
		plaintext(b, off);
		dm_pwrite(&b->dm, b->plain, CF_IO_MAX, off);
	}
	timed(b, "dm-crypt", start);
}

static int ours_writes(struct bulk *b, const struct writer *w)
{
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	struct cf_err err = {0};
	int rc = ours_open(&v, &b->ours, b->dm.backing, b->engine, w->path, &err);
	if (rc) {
		printf("%s: %s\n", w->name, err.text);
		return rc;
	}
	struct cf_cipher_info info;
	cf_cipher_info(cf_volume_cipher(v), &info);
	printf("%s: engine %s\n", w->name, info.engine);
	double start = now_s();
	for (uint64_t off = 0; off < b->bytes; off += CF_IO_MAX) {
		plaintext(b, off);
		for (size_t at = 0; at < CF_IO_MAX && !rc; at += w->portion)
			rc = ours_write(v, b->plain + at, w->portion, off + at);
	}
	timed(b, w->name, start);
	return rc;
}

static int compare(struct bulk *b, const struct writer *w, const char *want)
{
	char got[65] = "nothing";
	clear_image(b);
	int rc = ours_writes(b, w);
	if (!rc)
		digest_image(b, got);
	bool good = !rc && !strcmp(got, want);
	printf("%s: bulk/%s (%llu MiB %s, sha256 %.16s...%s)\n", good ? "PASS" : "FAIL", w->name,
		   (unsigned long long)(b->bytes >> 20), w->about, got, good ? ", as dm-crypt's" : ", not dm-crypt's");
	return good ? 0 : 1;
}

static void parse(struct bulk *b, int argc, char **argv)
{
	static const struct option names[] = {{"mib", 1, NULL, 'm'}, {"engine", 1, NULL, 'e'}, {NULL, 0, NULL, 0}};
	*b = (struct bulk){.bytes = 256u << 20, .plain = aligned_new(CF_IO_MAX), .buf = aligned_new(CF_IO_MAX)};
	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		if (c == 'm')
			b->bytes = strtoull(optarg, NULL, 10) << 20;
		else if (c == 'e')
			b->engine = optarg;
		else
			exit(2);
	}
}

static int setup(struct bulk *b)
{
	struct cf_err err = {0};
	char why[DM_WHY];
	int rc = cf_secret_init(&err);
	if (!rc)
		rc = ours_parse(&b->ours, b->bytes / CF_SECTOR_BYTES, PARAMS, &err);
	if (rc) {
		fprintf(stderr, "%s\n", err.text);
		return rc;
	}
	rc = dm_open(&b->dm, "bulk", b->bytes);
	if (!rc)
		rc = dm_load(&b->dm, b->bytes / CF_SECTOR_BYTES, PARAMS, why);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct writer writers[] = {
		{"batch", "in batches of 1 MiB", CF_PATH_BATCH, CF_IO_MAX},
		{"native", "in the engine's own mode, no batches", CF_PATH_NATIVE, CF_IO_MAX},
		{"single", "one data unit a call", CF_PATH_BATCH, CF_SECTOR_BYTES},
	};
	struct bulk b;
	char want[65];
	int bad = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(&b, argc, argv);
	if (setup(&b) != 0)
		return 99;
	kernel_writes(&b);
	digest_image(&b, want);
	for (size_t i = 0; i < CF_ARRAY_LEN(writers); i++)
		bad += compare(&b, &writers[i], want);
	ours_fini(&b.ours);
	dm_close(&b.dm);
	free(b.plain);
	free(b.buf);
	return bad ? 1 : 0;
}
