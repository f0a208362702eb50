/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* secret.h - the one place where key material lives.
 *
 * One arena a process: an address range between guard pages, left out of core dumps and forked children, locked into
 * memory as it grows, wiped block by block when freed. libcrypto and libgcrypt allocate from it too, so their key
 * schedules and contexts live here (HAZARDS 27). It is the project's only mutable global: there is one set of their
 * allocators a process. Threads: every function may be called from any thread at any time after cf_secret_init. */
#ifndef CRYPTFUSE_SECRET_H
#define CRYPTFUSE_SECRET_H

#include <stdbool.h>

#include "cryptfuse/base.h"

struct cf_err;

struct cf_secret_stats {
	size_t in_use_bytes;    /* handed out now */
	size_t committed_bytes; /* backed by memory now */
	uint64_t n_alloc;       /* allocations since init: a test counts them on the data path */
	bool locked;            /* every committed page is locked into memory */
};

/** cf_secret_init - create the arena and give it to libcrypto
 * Must be the first thing a process that handles keys does: before any call into libcrypto and, since neither locks nor
 * MADV_WIPEONFORK memory survive a fork, after the last fork. A second call is harmless and returns 0.
 * Returns 0; -ENOMEM; -EBUSY libcrypto had allocated already, or the arena is that of a parent. */
int cf_secret_init(struct cf_err *err) CF_MUST_CHECK;

/** cf_secret_alloc - @len bytes, zeroed, 64-byte aligned; NULL and ENOMEM in errno when the arena is full. Never falls
 * back to the heap. */
void *cf_secret_alloc(size_t len);

/** cf_secret_realloc - @p grown or shrunk to @len bytes, what was added zeroed, what was left behind wiped. NULL @p
 * allocates, @len 0 frees (and yields NULL), as the allocators of libraries expect; NULL when full, @p then stays. */
void *cf_secret_realloc(void *p, size_t len);

/** cf_secret_free - wipe and give back; NULL is fine. The pointer must come from cf_secret_alloc. */
void cf_secret_free(void *p);

/** cf_secret_freep - CF_CLEANUP helper: frees *(void **)@pp and leaves NULL. */
void cf_secret_freep(void *pp);

/** cf_secret_contains - whether @p points into the arena. */
bool cf_secret_contains(const void *p);

void cf_secret_stats(struct cf_secret_stats *out);

/** cf_secret_wipe - overwrite @len bytes in a way the compiler cannot drop (for stack copies). */
void cf_secret_wipe(void *p, size_t len);

/** cf_secret_fini - wipe the whole arena and unmap it. Nothing from it, libcrypto included, may be used afterwards. */
void cf_secret_fini(void);

#endif
