/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* secret.c - the locked arena.
 *
 * One reserved address range, inaccessible at first; pages at its start are made readable, locked, kept out of core
 * dumps and zeroed in a forked child as they are needed. What is not committed yet, and a page before the range, are
 * the guard pages.
 *
 *     guard | block block block … (committed, locked) | reserved, PROT_NONE … | guard
 *
 * A block is a 64-byte header and a payload of one of a few sizes; freed blocks are wiped at once and kept in a list
 * per size. Nothing is merged: libcrypto asks for the same sizes again and again. One mutex; the data path allocates
 * nothing. This module holds the project's only mutable global (secret.h says why). */
#include "cryptfuse/secret.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"

#define ARENA_BYTES ((size_t)256 << 20) /* address space only; committed as needed */
#define COMMIT_STEP ((size_t)256 << 10)
#define ALIGN ((size_t)64)
#define N_CLASSES 112u /* four sizes a doubling, 64 bytes to 2^34 */

struct block {
	size_t payload_bytes; /* of its class */
	size_t asked_bytes;   /* 0: free */
	struct block *next_free;
	uint64_t magic;
	uint8_t pad[32];
};
_Static_assert(sizeof(struct block) == 64, "the payload must stay 64-byte aligned");
#define MAGIC UINT64_C(0x6366736563726574)

static struct {
	pthread_mutex_t mutex;
	uint8_t *base; /* NULL: no arena */
	pid_t owner;   /* whose arena it is: a forked child has the addresses, but neither contents nor locks */
	size_t used, committed;
	struct block *free[N_CLASSES];
	struct cf_secret_stats stats;
} arena = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void cf_secret_wipe(void *p, size_t len)
{
	if (len)
		explicit_bzero(p, len);
}

/* The class whose payload holds @len, and that payload: 64·{4,5,6,7}/4·2^k, so at most a quarter is lost. */
static unsigned size_class(size_t len, size_t *payload)
{
	unsigned k = 0, quarter = 0;
	size_t base = ALIGN * 4; /* below 256 bytes in steps of 64 */
	if (len <= base) {
		*payload = len ? (len + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
		return (unsigned)(*payload / ALIGN) - 1;
	}
	while (base * 2 < len) {
		base *= 2;
		k++;
	}
	while (base + base / 4 * quarter < len)
		quarter++;
	*payload = base + base / 4 * quarter;
	return 4 + k * 4 + quarter - 1;
}

/* Make the first @need bytes of the arena usable. */
static int commit(size_t need)
{
	if (need <= arena.committed)
		return 0;
	size_t target = (need + COMMIT_STEP - 1) / COMMIT_STEP * COMMIT_STEP;
	if (target > ARENA_BYTES)
		return -ENOMEM;
	uint8_t *from = arena.base + arena.committed;
	size_t len = target - arena.committed;
	if (mprotect(from, len, PROT_READ | PROT_WRITE) != 0)
		return -ENOMEM;
	if (mlock(from, len) != 0)
		arena.stats.locked = false;
	arena.committed = target;
	return 0;
}

static struct block *block_of(void *p)
{
	struct block *b = (struct block *)((uint8_t *)p - sizeof(struct block));
	assert(cf_secret_contains(p) && b->magic == MAGIC && b->asked_bytes);
	return b;
}

static struct block *take_block(size_t len)
{
	size_t payload;
	if (len > ARENA_BYTES)
		return NULL;
	unsigned cls = size_class(len, &payload);
	struct block *b = arena.free[cls];
	if (b) {
		arena.free[cls] = b->next_free;
	} else {
		size_t total = sizeof(*b) + payload;
		if (commit(arena.used + total) != 0)
			return NULL;
		b = (struct block *)(arena.base + arena.used);
		arena.used += total;
		*b = (struct block){.payload_bytes = payload, .magic = MAGIC};
	}
	b->asked_bytes = len ? len : 1;
	b->next_free = NULL;
	arena.stats.in_use_bytes += payload;
	arena.stats.n_alloc++;
	return b;
}

void *cf_secret_alloc(size_t len)
{
	pthread_mutex_lock(&arena.mutex);
	struct block *b = arena.base ? take_block(len) : NULL;
	pthread_mutex_unlock(&arena.mutex);
	if (!b)
		errno = ENOMEM; /* libgcrypt looks there for the reason */
	return b ? b + 1 : NULL;
}

void cf_secret_free(void *p)
{
	if (!p)
		return;
	struct block *b = block_of(p);
	cf_secret_wipe(p, b->payload_bytes);
	pthread_mutex_lock(&arena.mutex);
	size_t payload;
	unsigned cls = size_class(b->payload_bytes, &payload);
	assert(payload == b->payload_bytes);
	b->asked_bytes = 0;
	b->next_free = arena.free[cls];
	arena.free[cls] = b;
	arena.stats.in_use_bytes -= payload;
	pthread_mutex_unlock(&arena.mutex);
}

void cf_secret_freep(void *pp)
{
	void *p;
	memcpy(&p, pp, sizeof(p));
	cf_secret_free(p);
	memset(pp, 0, sizeof(p));
}

bool cf_secret_contains(const void *p)
{
	return arena.base && (const uint8_t *)p >= arena.base && (const uint8_t *)p < arena.base + ARENA_BYTES;
}

void *cf_secret_realloc(void *p, size_t len)
{
	if (!p)
		return len ? cf_secret_alloc(len) : NULL;
	if (!len) {
		cf_secret_free(p);
		return NULL;
	}
	struct block *b = block_of(p);
	if (len <= b->payload_bytes) {
		if (len < b->asked_bytes)
			cf_secret_wipe((uint8_t *)p + len, b->asked_bytes - len);
		b->asked_bytes = len;
		return p;
	}
	void *q = cf_secret_alloc(len);
	if (!q)
		return NULL;
	memcpy(q, p, b->asked_bytes);
	cf_secret_free(p);
	return q;
}

/* ---- libcrypto's allocator ---- */

static void *crypto_malloc(size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	return len ? cf_secret_alloc(len) : NULL;
}

static void crypto_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	cf_secret_free(p);
}

static void *crypto_realloc(void *p, size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	return cf_secret_realloc(p, len);
}

static void unmap_arena(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	munmap(arena.base - page, ARENA_BYTES + 2 * page);
	arena.base = NULL;
}

int cf_secret_init(struct cf_err *err)
{
	if (arena.base && arena.owner != getpid())
		return cf_fail(err, -EBUSY, "the secret arena was made before this process was forked");
	if (arena.base)
		return 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, ARENA_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return cf_fail(err, -ENOMEM, "no address space for the secret arena: %s", strerror(errno));
	arena.base = map + page;
	arena.owner = getpid();
	arena.used = arena.committed = 0;
	arena.stats = (struct cf_secret_stats){.locked = true};
	memset(arena.free, 0, sizeof(arena.free));
	madvise(arena.base, ARENA_BYTES, MADV_DONTDUMP);
	madvise(arena.base, ARENA_BYTES, MADV_WIPEONFORK);
	if (commit(1) != 0) {
		unmap_arena();
		return cf_fail(err, -ENOMEM, "no memory for the secret arena");
	}
	if (!CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free)) {
		unmap_arena();
		return cf_fail(err, -EBUSY, "libcrypto had allocated memory before the secret arena was made");
	}
	return 0;
}

void cf_secret_stats(struct cf_secret_stats *out)
{
	pthread_mutex_lock(&arena.mutex);
	*out = arena.stats;
	out->committed_bytes = arena.committed;
	pthread_mutex_unlock(&arena.mutex);
}

void cf_secret_fini(void)
{
	if (!arena.base)
		return;
	OPENSSL_cleanup(); /* gives its memory back now; its own exit handler then has nothing left to do */
	pthread_mutex_lock(&arena.mutex);
	if (arena.base) {
		cf_secret_wipe(arena.base, arena.committed);
		unmap_arena();
	}
	pthread_mutex_unlock(&arena.mutex);
}
