/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg.h - inside the AF_ALG engine: a keyed algorithm of the kernel as a set of sockets (afalg_socket.c), and what
 * /proc/crypto says of the driver behind one (afalg_driver.c). The engine itself is afalg.c. */
#ifndef CRYPTFUSE_ENGINE_AFALG_H
#define CRYPTFUSE_ENGINE_AFALG_H

#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdio.h>

#include "cryptfuse/base.h"

#define CF_AFALG_NAME 128u                /* bytes of an algorithm's name, NUL included: CRYPTO_MAX_ALG_NAME */
#define CF_AFALG_IV_MAX 32u               /* bytes: adiantum's */
#define CF_AFALG_IN_FLIGHT 8u             /* operation sockets a worker, so requests outstanding at once */
#define CF_AFALG_REQUEST_MAX (128u << 10) /* bytes: past about 192 KiB a request does not fit the socket buffer */

/** One request: @len bytes under one IV (NULL for ecb). */
struct cf_afalg_request {
	const uint8_t *src;
	uint8_t *dst;
	size_t len;
	const uint8_t *iv;
};

/** A worker's operation sockets. One request is on a socket at a time: its IV and its data are the socket's state. */
struct cf_afalg_slot {
	unsigned n_ops;
	int op[CF_AFALG_IN_FLIGHT]; /* -1: was closed after a failure, accepted anew when it is needed */
	aio_context_t aio;          /* 0: none, one request at a time */
};

/** A keyed algorithm. The key is the kernel's: nothing secret is here. */
struct cf_afalg_tfm {
	int fd; /* holds the key; operation sockets are accepted from it */
	unsigned n_workers;
	size_t iv_bytes;
	size_t request_max; /* bytes */
	struct cf_afalg_slot slot[];
};

/** cf_afalg_bind - a socket bound to @alg, close-on-exec: the descriptor; -ENOENT the kernel has no such algorithm;
 * -EAFNOSUPPORT and others: no AF_ALG. May make the kernel load modules. */
int cf_afalg_bind(const char *alg) CF_MUST_CHECK;

/** cf_afalg_takes_key - does the kernel have @alg with keys of this length? Tried with a throwaway key. */
bool cf_afalg_takes_key(const char *alg, size_t key_len);

/** cf_afalg_tfm_new - bind, set the key, accept operation sockets for every worker
 * Returns 0; -ENOENT no such algorithm; -EINVAL the key is refused; -EMFILE, -ENOMEM … no sockets to be had. */
int cf_afalg_tfm_new(struct cf_afalg_tfm **out, const char *alg, const uint8_t *key, size_t key_len, size_t iv_bytes,
					 unsigned n_workers) CF_MUST_CHECK;
void cf_afalg_tfm_free(struct cf_afalg_tfm **tfm);

/** cf_afalg_in_flight - how many requests it is worth handing to cf_afalg_run at once. */
unsigned cf_afalg_in_flight(const struct cf_afalg_tfm *t, unsigned worker);

/** cf_afalg_run - do @n requests, all in flight together where the driver is asynchronous
 * @req: each at most t->request_max bytes; sources are never written.
 * Returns 0; a want of resources that may pass: -EAGAIN, -ENOBUFS, -ENOMEM, -EMFILE …; -ENODEV everything else, which
 * will not. After an error no destination is written any more. */
int cf_afalg_run(struct cf_afalg_tfm *t, unsigned worker, enum cf_dir dir, const struct cf_afalg_request *req,
				 size_t n) CF_MUST_CHECK;

/** What stands behind an algorithm's name. */
struct cf_afalg_driver {
	char name[128];
	long priority;
	bool async;
	/* bytes; only skciphers and the block ciphers of older kernels have all four */
	bool has_sizes;
	long block_bytes, key_min, key_max, iv_bytes;
};

/** cf_afalg_driver_find - of /proc/crypto, the driver that the kernel would take for @alg now, which is an algorithm's
 * name or a driver's. Loads nothing, and shows nothing that no socket was bound to yet. 0 or -ENOENT. */
int cf_afalg_driver_find(const char *alg, struct cf_afalg_driver *out) CF_MUST_CHECK;

/** cf_afalg_driver_read - the same from an open file. */
int cf_afalg_driver_read(FILE *f, const char *alg, struct cf_afalg_driver *out) CF_MUST_CHECK;

/** cf_afalg_driver_is_hardware - a device that works while the CPU does something else: asynchronous, and none of the
 * ways in which software is asynchronous. */
bool cf_afalg_driver_is_hardware(const struct cf_afalg_driver *d);

/** cf_afalg_driver_is_constant_time - does it compute AES without tables? */
bool cf_afalg_driver_is_constant_time(const struct cf_afalg_driver *d);

#endif
