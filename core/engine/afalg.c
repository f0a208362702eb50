/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg.c - the engine that hands its work to the kernel's crypto API, through AF_ALG sockets: to a device where the
 * machine has one, and for the ciphers that no library here has.
 *
 * The block primitive is the kernel's ecb(…), one request for a whole batch; a whole mode is the kernel's own, one
 * request a data unit, since a request carries one IV. Plain sockets, not libkcapi: that allocates, hides its
 * descriptors, leaves them open across exec, has one operation socket a handle, and may vmsplice; the little that it
 * does is afalg_socket.c. No bytes are ever spliced. Keys are the kernel's; nothing secret is kept here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "afalg.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define PASS_BYTES CF_AFALG_REQUEST_MAX
#define PART_MIN ((size_t)8 << 10) /* bytes below which a request is not worth dividing */

/* The kernel's name of a mode of a cipher; false if it can have none. "xchacha12,aes" is what adiantum takes, and no
 * cipher; cipher_null is the null engine's. */
static bool alg_name(char out[static CF_AFALG_NAME], const char *mode, const struct cf_block_cipher *bc)
{
	bool pair = strchr(bc->name, ',') != NULL;
	if (bc->is_api_name)
		return snprintf(out, CF_AFALG_NAME, "%s", bc->name) < (int)CF_AFALG_NAME;
	if (bc->block_bytes == 1 || pair != (strcmp(mode, "adiantum") == 0))
		return false;
	int len = strcmp(mode, "cts") == 0 ? snprintf(out, CF_AFALG_NAME, "cts(cbc(%s))", bc->name)
									   : snprintf(out, CF_AFALG_NAME, "%s(%s)", mode, bc->name);
	return len > 0 && (size_t)len < CF_AFALG_NAME;
}

static int probe(struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = cf_afalg_bind("ecb(aes)");
	if (fd >= 0)
		return 0;
	return cf_fail(err, -ENODEV, "this kernel offers no AF_ALG (%s): does 'modprobe algif_skcipher' help?",
				   fd == -ENOENT ? "no skcipher" : strerror(-fd));
}

/* A device, or the instructions made for it; the kernel's portable ciphers look up tables. */
static bool constant_time(const struct cf_block_cipher *bc)
{
	char alg[CF_AFALG_NAME];
	struct cf_afalg_driver d;
	return alg_name(alg, "ecb", bc) && cf_afalg_driver_find(alg, &d) == 0 && cf_afalg_driver_is_constant_time(&d);
}

static bool on_hardware(const char *mode, const struct cf_block_cipher *bc)
{
	char alg[CF_AFALG_NAME];
	struct cf_afalg_driver d;
	return alg_name(alg, mode, bc) && cf_afalg_driver_find(alg, &d) == 0 && cf_afalg_driver_is_hardware(&d);
}

static bool competes(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	(void)key_len;
	return on_hardware("ecb", bc) || on_hardware(mode, bc);
}

/* From Linux 7.2 on devices are out of reach. */
static bool software_only(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
		   (major > 7 || (major == 7 && minor >= 2));
}

static void describe(const char *mode, const struct cf_block_cipher *bc, char *out, size_t size)
{
	char alg[CF_AFALG_NAME];
	struct cf_afalg_driver d;
	if (!alg_name(alg, mode, bc) || cf_afalg_driver_find(alg, &d) != 0)
		snprintf(out, size, "kernel driver unknown");
	else
		snprintf(out, size, "kernel driver %s, %s%s", d.name, cf_afalg_driver_is_hardware(&d) ? "a device" : "software",
				 software_only() ? " (Linux 7.2 and later offer no other through AF_ALG)" : "");
}

static int tfm_new(struct cf_afalg_tfm **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
				   size_t key_len, size_t iv_bytes, unsigned n_workers)
{
	char alg[CF_AFALG_NAME];
	return alg_name(alg, mode, bc) ? cf_afalg_tfm_new(out, alg, key, key_len, iv_bytes, n_workers) : -ENOENT;
}

/* ---- the block primitive ---- */

struct cf_engine_key {
	struct cf_afalg_tfm *tfm;
	size_t block_bytes;
};

static bool has(const struct cf_block_cipher *bc, size_t key_len)
{
	char alg[CF_AFALG_NAME];
	return !bc->is_api_name && cf_block_cipher_takes_key(bc, key_len) && alg_name(alg, "ecb", bc) &&
		   cf_afalg_takes_key(alg, key_len);
}

static void key_free(struct cf_engine_key **key)
{
	if (*key)
		cf_afalg_tfm_free(&(*key)->tfm);
	cf_secret_freep(key);
}

static int key_new(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len,
				   unsigned n_workers)
{
	CF_CLEANUP(key_free) struct cf_engine_key *k = cf_secret_alloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->block_bytes = bc->block_bytes;
	int rc = tfm_new(&k->tfm, "ecb", bc, key, key_len, 0, n_workers);
	if (!rc)
		*out = cf_take(k);
	return rc;
}

/* Divided evenly among the requests that can be in flight, where that leaves parts worth a request. */
static size_t part_bytes(const struct cf_afalg_tfm *t, unsigned worker, size_t len)
{
	size_t n = cf_afalg_in_flight(t, worker), part = (len + n - 1) / n;
	part = (part + PART_MIN - 1) / PART_MIN * PART_MIN;
	return part < t->request_max ? part : t->request_max;
}

static int crypt_blocks(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
						size_t n_blocks)
{
	size_t len = n_blocks * key->block_bytes, part = part_bytes(key->tfm, worker, len);
	for (size_t at = 0; at < len;) {
		struct cf_afalg_request req[CF_AFALG_IN_FLIGHT];
		size_t n = 0;
		for (; n < CF_AFALG_IN_FLIGHT && at < len; n++) {
			size_t run = len - at < part ? len - at : part;
			req[n] = (struct cf_afalg_request){.src = src + at, .dst = dst + at, .len = run};
			at += run;
		}
		int rc = cf_afalg_run(key->tfm, worker, dir, req, n);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- names that only the kernel knows ---- */

/* The interface of the sockets tells no sizes, and asks for the IV's exactly. /proc/crypto, which any user may read,
 * tells all, of the algorithm that is bound at the moment. (The kernel's other way, NETLINK_CRYPTO, is a module that
 * may be missing, and needs the same bound socket.) The kernel's IV has 8 bytes at least, where it has any. */
static int api_find(const char *name, struct cf_block_cipher *out, struct cf_err *err)
{
	struct cf_afalg_driver d;
	CF_CLEANUP(cf_close_fd) int fd = cf_afalg_bind(name);
	if (fd < 0)
		return cf_fail(err, -ENODEV, "no engine here has %s, nor has this kernel's crypto API: %s", name,
					   fd == -ENOENT ? "no such name" : strerror(-fd));
	if (cf_afalg_driver_find(name, &d) != 0 || !d.has_sizes)
		return cf_fail(err, -ENODEV,
					   "no engine here has %s: the kernel has, but /proc/crypto does not tell its IV size", name);
	if (d.iv_bytes < 0 || d.iv_bytes > (long)CF_AFALG_IV_MAX || (d.iv_bytes && d.iv_bytes < 8) || d.block_bytes < 1 ||
		d.block_bytes > 128 || (d.block_bytes & (d.block_bytes - 1)))
		return cf_fail(err, -ENODEV, "no engine here has %s: blocks of %ld bytes with IVs of %ld", name, d.block_bytes,
					   d.iv_bytes);
	*out = (struct cf_block_cipher){
		.name = name,
		.block_bytes = (uint8_t)d.block_bytes,
		.key_min = (uint8_t)(d.key_min < 255 ? d.key_min : 255),
		.key_max = (uint8_t)(d.key_max < 255 ? d.key_max : 255),
		.key_step = 1,
		.is_api_name = true,
		.api_iv_bytes = (uint8_t)d.iv_bytes,
	};
	return 0;
}

/* ---- whole modes ---- */

static bool mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	char alg[CF_AFALG_NAME];
	return strcmp(mode, "ecb") != 0 && alg_name(alg, mode, bc) && cf_afalg_takes_key(alg, key_len);
}

static size_t mode_iv_bytes(const char *mode, const struct cf_block_cipher *bc)
{
	if (bc->is_api_name)
		return bc->api_iv_bytes;
	return strcmp(mode, "adiantum") == 0 ? CF_AFALG_IV_MAX : bc->block_bytes;
}

static int mode_new(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
					size_t key_len, unsigned n_workers)
{
	struct cf_afalg_tfm *t;
	if (!mode_has(mode, bc, key_len)) /* nor ecb: the block primitive is that */
		return -ENOENT;
	int rc = tfm_new(&t, mode, bc, key, key_len, mode_iv_bytes(mode, bc), n_workers);
	if (!rc)
		*out = (struct cf_engine_mode *)t;
	return rc;
}

static void mode_free(struct cf_engine_mode **mode)
{
	struct cf_afalg_tfm *t = (struct cf_afalg_tfm *)*mode;
	cf_afalg_tfm_free(&t);
	*mode = NULL;
}

/* The next request of a batch: how many data units it carries, from @at on. One, since Linux reads one IV a request.
 * Should the kernel's sockets ever take a data-unit size, this is the place to make use of it. */
static size_t next_request(const struct cf_engine_batch *b, size_t iv_bytes, size_t at, struct cf_afalg_request *out)
{
	*out = (struct cf_afalg_request){
		.src = b->src + at * b->du_bytes,
		.dst = b->dst + at * b->du_bytes,
		.len = b->du_bytes,
		.iv = iv_bytes ? b->ivs + at * iv_bytes : NULL,
	};
	return 1;
}

static int mode_crypt(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *b)
{
	struct cf_afalg_tfm *t = (struct cf_afalg_tfm *)mode;
	if (b->du_bytes > t->request_max)
		return -ENOBUFS;
	for (size_t at = 0; at < b->n_du;) {
		struct cf_afalg_request req[CF_AFALG_IN_FLIGHT];
		size_t n = 0;
		for (; n < CF_AFALG_IN_FLIGHT && at < b->n_du; n++)
			at += next_request(b, t->iv_bytes, at, &req[n]);
		int rc = cf_afalg_run(t, worker, b->dir, req, n);
		if (rc)
			return rc;
	}
	return 0;
}

extern const struct cf_engine cf_engine_afalg;
const struct cf_engine cf_engine_afalg = {
	.name = "afalg",
	.about = "the kernel's ciphers and devices, through AF_ALG",
	.probe = probe,
	.has = has,
	.constant_time = constant_time,
	.key_new = key_new,
	.key_free = key_free,
	.crypt = crypt_blocks,
	.elsewhere = true,
	.competes = competes,
	.describe = describe,
	.api_find = api_find,
	.pass_bytes = PASS_BYTES,
	.mode_path = "per-du",
	.mode_has = mode_has,
	.mode_new = mode_new,
	.mode_free = mode_free,
	.mode_crypt = mode_crypt,
};
