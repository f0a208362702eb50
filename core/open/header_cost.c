/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header_cost.c - how much work and memory a LUKS header may ask for.
 *
 * The costs of a key derivation stand in the header, unprotected: whoever made the image chooses them, and the library
 * does what they say. The limits are far above what cryptsetup makes of any --iter-time in minutes, and its own limit
 * for memory, so that no real volume is refused. One thread, in the parent of the daemon. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "header.h"

/* Of memory: what cryptsetup itself takes at most. Of work, over all keyslots that are tried: half an hour or so. */
#define MEMORY_MAX_KIB (UINT64_C(4) << 20)
#define ARGON2_MAX_KIB (UINT64_C(1) << 31) /* memory times passes */
#define PBKDF2_MAX (UINT64_C(1) << 30)     /* iterations */
#define DIGEST_BYTES 64u                   /* a longer key takes as much work again */
#define LANES_MAX 64u                      /* of Argon2: it makes as many threads */

/** A header on trial: what is asked for so far. */
struct trial {
	struct cf_header *h;
	int slot; /* below 0: all are tried */
	uint64_t argon2_kib, pbkdf2;
};

static uint64_t machine_kib(void)
{
	struct sysinfo s;
	return sysinfo(&s) == 0 ? (s.totalram + s.totalswap) / 1024 * s.mem_unit : UINT64_MAX;
}

static const char *way_out(const struct trial *t)
{
	return t->slot < 0 ? "; if another keyslot is yours, name it with --key-slot" : "";
}

static int judge_argon2(struct trial *t, const struct crypt_pbkdf_type *kdf, int i, struct cf_err *err)
{
	const uint64_t kib = kdf->max_memory_kb, here = machine_kib();
	t->argon2_kib += kib * kdf->iterations;
	if (kib > MEMORY_MAX_KIB)
		return cf_fail(err, -ENOTSUP,
					   "keyslot %d asks for %llu MiB of memory, more than the %llu MiB that are accepted%s", i,
					   (unsigned long long)kib / 1024, (unsigned long long)MEMORY_MAX_KIB / 1024, way_out(t));
	if (kib > here)
		return cf_fail(err, -ENOMEM, "keyslot %d asks for %llu MiB of memory, and this machine has %llu MiB%s", i,
					   (unsigned long long)kib / 1024, (unsigned long long)here / 1024, way_out(t));
	if (kdf->parallel_threads > LANES_MAX)
		return cf_fail(err, -ENOTSUP, "keyslot %d asks for %u threads, more than the %u that are accepted%s", i,
					   kdf->parallel_threads, LANES_MAX, way_out(t));
	if (t->argon2_kib > ARGON2_MAX_KIB)
		return cf_fail(err, -ENOTSUP,
					   "keyslot %d asks for %u passes over %llu KiB of memory; %llu MiB in all are accepted%s", i,
					   kdf->iterations, (unsigned long long)kib, (unsigned long long)ARGON2_MAX_KIB / 1024, way_out(t));
	return 0;
}

static int judge_pbkdf2(struct trial *t, uint64_t iterations, size_t key_bytes, int i, struct cf_err *err)
{
	t->pbkdf2 += iterations * ((key_bytes + DIGEST_BYTES - 1) / DIGEST_BYTES);
	if (t->pbkdf2 > PBKDF2_MAX)
		return cf_fail(err, -ENOTSUP,
					   "keyslot %d asks for %llu iterations for a key of %zu bytes; %llu in all are accepted%s", i,
					   (unsigned long long)iterations, key_bytes, (unsigned long long)PBKDF2_MAX, way_out(t));
	return 0;
}

static int judge_keyslot(struct trial *t, int i, struct cf_err *err)
{
	struct crypt_pbkdf_type kdf = {0};
	size_t key_bytes = 0;
	if (crypt_keyslot_get_pbkdf(t->h->cd, i, &kdf) != 0 || !kdf.type ||
		!crypt_keyslot_get_encryption(t->h->cd, i, &key_bytes))
		return 0; /* it is not opened by a passphrase */
	if (key_bytes > CF_KEY_MAX)
		return cf_fail(err, -ENOTSUP, "keyslot %d asks for a key of %zu bytes, more than the %u that are accepted%s", i,
					   key_bytes, CF_KEY_MAX, way_out(t));
	return strcmp(kdf.type, CRYPT_KDF_PBKDF2) ? judge_argon2(t, &kdf, i, err)
											  : judge_pbkdf2(t, kdf.iterations, key_bytes, i, err);
}

int cf_header_digest_cost(struct cf_header *h, struct cf_err *err)
{
	if (cf_header_is_luks(h) && cf_luks_digest_iterations(h) > PBKDF2_MAX)
		return cf_fail(err, -ENOTSUP,
					   "to check the volume key the header asks for more than the %llu iterations that are accepted",
					   (unsigned long long)PBKDF2_MAX);
	return 0;
}

/* Those of low priority are tried only when they are named. */
static bool is_tried(const struct trial *t, int i)
{
	if (crypt_keyslot_status(t->h->cd, i) < CRYPT_SLOT_ACTIVE)
		return false;
	return t->slot < 0 ? crypt_keyslot_get_priority(t->h->cd, i) != CRYPT_SLOT_PRIORITY_IGNORE : t->slot == i;
}

int cf_header_costs(struct cf_header *h, int slot, struct cf_err *err)
{
	struct trial t = {.h = h, .slot = slot};
	int rc = 0;
	if (!cf_header_is_luks(h))
		return 0;
	for (int i = 0; i < crypt_keyslot_max(crypt_get_type(h->cd)) && !rc; i++)
		if (is_tried(&t, i))
			rc = judge_keyslot(&t, i, err);
	return rc ? rc : cf_header_digest_cost(h, err);
}
