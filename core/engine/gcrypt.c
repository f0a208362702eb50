/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gcrypt.c - the libgcrypt engine: serpent and twofish, which libcrypto lacks, and what else libgcrypt has in common
 * with dm-crypt; its own XTS and CBC as whole modes.
 *
 * libgcrypt's ECB goes block by block, while its feedback modes use the wide instructions of the processor. So the
 * block primitive runs over those whose every block-cipher call has its input at hand, and takes off what they xor:
 *
 *     decrypt: CBC decryption  D(C[i]) ^ C[i-1]   xor C[i-1]
 *     encrypt: CFB decryption  E(X[i]) ^ X[i+1]   xor X[i+1]      (X[0] is the IV; the mode only knows E)
 *
 * A key is one handle per worker and direction: handles keep state and must not be shared. All memory of libgcrypt is
 * the secret arena's. Nothing is allocated once the handles are there. */
#include <errno.h>
#include <gcrypt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define GROUP_MAX 32u

/* The ciphers by libgcrypt's numbers. @key_min to @key_max bytes are taken and @pad-ded to @set bytes: 0 they are set
 * as they are. */
static const struct gcry_name {
	const char *cipher;
	uint8_t key_min, key_max;
	enum { PAD_NOT, PAD_ZEROS, PAD_SERPENT } pad; /* PAD_SERPENT: a byte 01, then zeros */
	uint8_t set;
	int algo;
} gcry_names[] = {
	{"aes", 16, 16, PAD_NOT, 0, GCRY_CIPHER_AES128},
	{"aes", 24, 24, PAD_NOT, 0, GCRY_CIPHER_AES192},
	{"aes", 32, 32, PAD_NOT, 0, GCRY_CIPHER_AES256},
	{"camellia", 16, 16, PAD_NOT, 0, GCRY_CIPHER_CAMELLIA128},
	{"camellia", 24, 24, PAD_NOT, 0, GCRY_CIPHER_CAMELLIA192},
	{"camellia", 32, 32, PAD_NOT, 0, GCRY_CIPHER_CAMELLIA256},
	{"serpent", 1, 32, PAD_SERPENT, 32, GCRY_CIPHER_SERPENT256},
	{"twofish", 16, 16, PAD_NOT, 0, GCRY_CIPHER_TWOFISH128}, /* it has no 24-byte keys */
	{"twofish", 32, 32, PAD_NOT, 0, GCRY_CIPHER_TWOFISH},
	{"blowfish", 4, 56, PAD_NOT, 0, GCRY_CIPHER_BLOWFISH},
	{"cast5", 11, 16, PAD_ZEROS, 16, GCRY_CIPHER_CAST5}, /* shorter keys mean 12 rounds: it has 16 only */
	{"des3_ede", 24, 24, PAD_NOT, 0, GCRY_CIPHER_3DES},
};

/* How many blocks libgcrypt's code computes at once, and from how many on it pays to fill up a group with zeros rather
 * than go on block by block. Measured, on processors that have what the code needs; elsewhere nothing is filled up. */
static const struct grouping {
	const char *cipher;
	uint8_t group, fill_from;
	enum { BY_ANY, BY_AESNI } by;
} groupings[] = {
	{"aes", 16, 9, BY_AESNI},   {"camellia", 32, 8, BY_AESNI}, {"serpent", 16, 4, BY_ANY}, {"twofish", 16, 12, BY_ANY},
	{"blowfish", 4, 3, BY_ANY}, {"cast5", 4, 3, BY_ANY},       {"des3_ede", 3, 3, BY_ANY},
};
static const struct grouping nothing_filled = {NULL, 16, 16, BY_ANY};

/* One key of one cipher: hd[worker][direction]. */
struct gcry_handles {
	size_t block_bytes;
	size_t group, fill_from;
	unsigned n_workers;
	gcry_cipher_hd_t hd[][2];
};

static int from_gcry(gcry_error_t e)
{
	switch (gcry_err_code(e)) {
	case GPG_ERR_NO_ERROR:
		return 0;
	case GPG_ERR_ENOMEM:
		return -ENOMEM;
	case GPG_ERR_INV_KEYLEN:
	case GPG_ERR_WEAK_KEY:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/* ---- once a process ---- */

static int in_arena(const void *p)
{
	return cf_secret_contains(p);
}

/* What libgcrypt hands out may come from libgpg-error, which has the heap. */
static void free_any(void *p)
{
	if (cf_secret_contains(p))
		cf_secret_free(p);
	else
		free(p);
}

/* Not in FIPS mode: what dm-crypt wrote must be readable whatever the policy, and that mode takes no allocators. */
static void init_gcry(void)
{
	gcry_control(GCRYCTL_NO_FIPS_MODE);
	gcry_set_allocation_handler(cf_secret_alloc, cf_secret_alloc, in_arena, cf_secret_realloc, free_any);
	if (gcry_check_version("1.10.0"))
		gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
}

static int probe(struct cf_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	CF_CLEANUP(cf_secret_freep) void *arena = cf_secret_alloc(1);
	gcry_cipher_hd_t hd;
	if (!arena)
		return cf_fail(err, -ENOMEM, "libgcrypt has to wait for the secret arena, which is full or not there yet");
	pthread_once(&once, init_gcry);
	if (!gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P))
		return cf_fail(err, -ENODEV, "libgcrypt %s is too old: 1.10 is needed", gcry_check_version(NULL));
	gcry_error_t e = gcry_cipher_open(&hd, GCRY_CIPHER_AES128, GCRY_CIPHER_MODE_CBC, GCRY_CIPHER_SECURE);
	if (gcry_err_code(e) == GPG_ERR_ENOMEM)
		return cf_fail(err, -ENOMEM, "out of memory");
	if (e)
		return cf_fail(err, -ENODEV, "libgcrypt has no AES here");
	bool ours = cf_secret_contains(hd);
	gcry_cipher_close(hd);
	return ours ? 0 : cf_fail(err, -ENODEV, "libgcrypt was set up by somebody else: keys would leave the secret arena");
}

/* ---- names and keys ---- */

static const struct gcry_name *find(const struct cf_block_cipher *bc, size_t key_len)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(gcry_names); i++) {
		const struct gcry_name *g = &gcry_names[i];
		if (!strcmp(g->cipher, bc->name) && key_len >= g->key_min && key_len <= g->key_max)
			return gcry_cipher_test_algo(g->algo) == 0 ? g : NULL;
	}
	return NULL;
}

static bool has(const struct cf_block_cipher *bc, size_t key_len)
{
	return find(bc, key_len) != NULL;
}

/* Serpent is computed bit by bit everywhere, AES by the processor's own instructions where libgcrypt uses them; the
 * others look up tables, if only for a few blocks and for the key schedule. */
static bool constant_time(const struct cf_block_cipher *bc)
{
	if (!strcmp(bc->name, "serpent"))
		return true;
	if (strcmp(bc->name, "aes") != 0)
		return false;
	char *features = gcry_get_config(0, "hwflist");
	bool yes = features && (strstr(features, "intel-aesni:") || strstr(features, "arm-aes:"));
	gcry_free(features);
	return yes;
}

static const struct grouping *grouping_of(const char *cipher)
{
	bool any = false, aesni = false;
#if defined(__x86_64__)
	any = true;
	aesni = __builtin_cpu_supports("aes") && __builtin_cpu_supports("avx");
#endif
	for (size_t i = 0; i < CF_ARRAY_LEN(groupings); i++)
		if (!strcmp(groupings[i].cipher, cipher) && (groupings[i].by == BY_AESNI ? aesni : any))
			return &groupings[i];
	return &nothing_filled;
}

static void handles_free(struct gcry_handles **handles)
{
	struct gcry_handles *h = *handles;
	for (unsigned w = 0; h && w < h->n_workers; w++)
		for (unsigned d = 0; d < 2; d++)
			gcry_cipher_close(h->hd[w][d]);
	cf_secret_freep(handles);
}

/* A weak key is reported and set all the same, in most versions: see whether the handle works. */
static int set_key(gcry_cipher_hd_t hd, const uint8_t *key, size_t len)
{
	uint8_t block[CF_BLOCK_MAX] = {0};
	gcry_cipher_ctl(hd, GCRYCTL_SET_ALLOW_WEAK_KEY, NULL, 1);
	gcry_error_t e = gcry_cipher_setkey(hd, key, len);
	if (gcry_err_code(e) != GPG_ERR_WEAK_KEY)
		return from_gcry(e);
	return gcry_cipher_encrypt(hd, block, sizeof(block), NULL, 0) == 0 ? 0 : -EINVAL;
}

/* @key: as it is to be set. @modes: libgcrypt's, by direction. */
static int handles_new(struct gcry_handles **out, const struct cf_block_cipher *bc, int algo, const int modes[static 2],
					   const uint8_t *key, size_t key_len, unsigned n_workers)
{
	const struct grouping *g = grouping_of(bc->name);
	CF_CLEANUP(handles_free)
	struct gcry_handles *h = cf_secret_alloc(sizeof(*h) + n_workers * sizeof(h->hd[0]));
	if (!h)
		return -ENOMEM;
	h->n_workers = n_workers;
	h->block_bytes = bc->block_bytes;
	h->group = g->group;
	h->fill_from = g->fill_from;
	for (unsigned w = 0; w < n_workers; w++)
		for (enum cf_dir d = CF_ENCRYPT; d <= CF_DECRYPT; d++) {
			int rc = from_gcry(gcry_cipher_open(&h->hd[w][d], algo, modes[d], GCRY_CIPHER_SECURE));
			if (!rc)
				rc = set_key(h->hd[w][d], key, key_len);
			if (rc)
				return rc;
		}
	*out = cf_take(h);
	return 0;
}

/* Set up @parts keys of @part_len bytes each, padded where the cipher wants it, as one key of libgcrypt's. */
static int padded_new(struct gcry_handles **out, const struct cf_block_cipher *bc, const int modes[static 2],
					  const uint8_t *key, size_t part_len, size_t parts, unsigned n_workers)
{
	uint8_t full[2 * 64] = {0};
	const struct gcry_name *g = find(bc, part_len);
	if (!g)
		return -ENOENT;
	size_t set = g->set ? g->set : part_len;
	for (size_t i = 0; i < parts; i++) {
		memcpy(full + i * set, key + i * part_len, part_len);
		if (g->pad == PAD_SERPENT && part_len < set)
			full[i * set + part_len] = 0x01;
	}
	int rc = handles_new(out, bc, g->algo, modes, full, parts * set, n_workers);
	cf_secret_wipe(full, sizeof(full));
	return rc;
}

/* ---- the block primitive ---- */

static const uint8_t zeros[CF_BLOCK_MAX];

static int key_new(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len,
				   unsigned n_workers)
{
	static const int modes[] = {[CF_ENCRYPT] = GCRY_CIPHER_MODE_CFB, [CF_DECRYPT] = GCRY_CIPHER_MODE_CBC};
	struct gcry_handles *h;
	int rc = padded_new(&h, bc, modes, key, key_len, 1, n_workers);
	if (!rc)
		*out = (struct cf_engine_key *)h;
	return rc;
}

static void key_free(struct cf_engine_key **key)
{
	struct gcry_handles *h = (struct gcry_handles *)*key;
	handles_free(&h);
	*key = NULL;
}

/* The last blocks go through a buffer, where the group can be filled up and encryption has the one block more that it
 * wants. @head blocks have gone before.
 *
 *     in:  [ src[head - 1] | src[head] … | zeros … ]
 */
static int crypt_tail(const struct gcry_handles *h, gcry_cipher_hd_t hd, enum cf_dir dir, const uint8_t *src,
					  uint8_t *dst, size_t head, size_t tail)
{
	uint8_t in[(2 + GROUP_MAX) * CF_BLOCK_MAX], out[GROUP_MAX * CF_BLOCK_MAX];
	size_t block = h->block_bytes, run = (tail < h->fill_from ? tail : h->group) * block;
	const uint8_t *fed = in + (dir == CF_ENCRYPT ? 2 : 1) * block, *xored = in + (dir == CF_ENCRYPT ? 2 : 0) * block;
	memcpy(in, head ? src + (head - 1) * block : zeros, block);
	memcpy(in + block, src + head * block, tail * block);
	memset(in + (1 + tail) * block, 0, run + block - tail * block);
	if (gcry_cipher_decrypt(hd, out, run, fed, run) != 0)
		return -EIO;
	cf_xor(dst + head * block, out, xored, tail * block);
	return 0;
}

static int crypt_head(const struct gcry_handles *h, gcry_cipher_hd_t hd, enum cf_dir dir, const uint8_t *src,
					  uint8_t *dst, size_t head)
{
	size_t block = h->block_bytes, len = head * block;
	if (gcry_cipher_decrypt(hd, dst, len, dir == CF_ENCRYPT ? src + block : src, len) != 0)
		return -EIO;
	if (dir == CF_ENCRYPT)
		cf_xor(dst, dst, src + block, len);
	else
		cf_xor(dst + block, dst + block, src, len - block);
	return 0;
}

static int crypt_blocks(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
						size_t n_blocks)
{
	const struct gcry_handles *h = (struct gcry_handles *)key;
	gcry_cipher_hd_t hd = h->hd[worker][dir];
	if (n_blocks == 0)
		return 0;
	size_t head = (n_blocks - 1) / h->group * h->group;
	if (gcry_cipher_setiv(hd, dir == CF_ENCRYPT ? src : zeros, h->block_bytes) != 0)
		return -EIO;
	int rc = head ? crypt_head(h, hd, dir, src, dst, head) : 0;
	return rc ? rc : crypt_tail(h, hd, dir, src, dst, head, n_blocks - head);
}

/* ---- whole modes ---- */

static int mode_number(const char *mode, const struct cf_block_cipher *bc)
{
	if (!strcmp(mode, "xts") && bc->block_bytes == 16)
		return GCRY_CIPHER_MODE_XTS;
	return strcmp(mode, "cbc") ? GCRY_CIPHER_MODE_NONE : GCRY_CIPHER_MODE_CBC;
}

static size_t parts_of(int mode)
{
	return mode == GCRY_CIPHER_MODE_XTS ? 2 : 1;
}

static bool mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	int number = mode_number(mode, bc);
	return number != GCRY_CIPHER_MODE_NONE && key_len % parts_of(number) == 0 && has(bc, key_len / parts_of(number));
}

static int mode_new(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
					size_t key_len, unsigned n_workers)
{
	struct gcry_handles *h;
	int number = mode_number(mode, bc);
	if (!mode_has(mode, bc, key_len))
		return -ENOENT;
	size_t parts = parts_of(number);
	int rc = padded_new(&h, bc, (const int[]){number, number}, key, key_len / parts, parts, n_workers);
	if (!rc)
		*out = (struct cf_engine_mode *)h;
	return rc;
}

static void mode_free(struct cf_engine_mode **mode)
{
	struct gcry_handles *h = (struct gcry_handles *)*mode;
	handles_free(&h);
	*mode = NULL;
}

static int mode_crypt(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *b)
{
	const struct gcry_handles *h = (struct gcry_handles *)mode;
	gcry_cipher_hd_t hd = h->hd[worker][b->dir];
	for (size_t i = 0; i < b->n_du; i++) {
		const uint8_t *src = b->src + i * b->du_bytes;
		uint8_t *dst = b->dst + i * b->du_bytes;
		if (gcry_cipher_setiv(hd, b->ivs + i * h->block_bytes, h->block_bytes) != 0)
			return -EIO;
		gcry_error_t e = b->dir == CF_ENCRYPT ? gcry_cipher_encrypt(hd, dst, b->du_bytes, src, b->du_bytes)
											  : gcry_cipher_decrypt(hd, dst, b->du_bytes, src, b->du_bytes);
		if (e != 0)
			return -EIO;
	}
	return 0;
}

extern const struct cf_engine cf_engine_gcrypt;
const struct cf_engine cf_engine_gcrypt = {
	.name = "gcrypt",
	.about = "libgcrypt: serpent, twofish, aes, camellia, blowfish, cast5, des3_ede",
	.probe = probe,
	.has = has,
	.constant_time = constant_time,
	.key_new = key_new,
	.key_free = key_free,
	.crypt = crypt_blocks,
	.mode_path = "native",
	.mode_has = mode_has,
	.mode_new = mode_new,
	.mode_free = mode_free,
	.mode_crypt = mode_crypt,
};
