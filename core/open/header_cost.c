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

#define MEMORY_MAX_KIB (UINT64_C(4) << 20) /* what cryptsetup itself takes at most */
#define LANES_MAX 64u                      /* of Argon2: it makes as many threads */
#define ARGON2_MAX_KIB (UINT64_C(1) << 31) /* memory times passes: half an hour or so */
#define PBKDF2_MAX (UINT64_C(1) << 30)     /* iterations: ten minutes or so */

static uint64_t machine_kib(void)
{
	struct sysinfo s;
	return sysinfo(&s) == 0 ? (s.totalram + s.totalswap) / 1024 * s.mem_unit : UINT64_MAX;
}

static const char *way_out(int slot)
{
	return slot < 0 ? "; if another keyslot is yours, name it with --key-slot" : "";
}

static int judge_argon2(const struct crypt_pbkdf_type *kdf, int i, int slot, struct cf_err *err)
{
	const uint64_t kib = kdf->max_memory_kb, here = machine_kib();
	if (kib > MEMORY_MAX_KIB)
		return cf_fail(err, -ENOTSUP,
					   "keyslot %d asks for %llu MiB of memory, more than the %llu MiB that are accepted%s", i,
					   (unsigned long long)kib / 1024, (unsigned long long)MEMORY_MAX_KIB / 1024, way_out(slot));
	if (kib > here)
		return cf_fail(err, -ENOMEM, "keyslot %d asks for %llu MiB of memory, and this machine has %llu MiB%s", i,
					   (unsigned long long)kib / 1024, (unsigned long long)here / 1024, way_out(slot));
	if (kdf->parallel_threads > LANES_MAX)
		return cf_fail(err, -ENOTSUP, "keyslot %d asks for %u threads, more than the %u that are accepted%s", i,
					   kdf->parallel_threads, LANES_MAX, way_out(slot));
	if (kdf->iterations > ARGON2_MAX_KIB / (kib ? kib : 1))
		return cf_fail(
			err, -ENOTSUP, "keyslot %d asks for %u passes over %llu MiB of memory; %llu MiB in all are accepted%s", i,
			kdf->iterations, (unsigned long long)kib / 1024, (unsigned long long)ARGON2_MAX_KIB / 1024, way_out(slot));
	return 0;
}

static int judge_keyslot(struct cf_header *h, int i, int slot, struct cf_err *err)
{
	struct crypt_pbkdf_type kdf = {0};
	if (crypt_keyslot_get_pbkdf(h->cd, i, &kdf) != 0 || !kdf.type)
		return 0; /* it is not opened by a passphrase */
	if (strcmp(kdf.type, CRYPT_KDF_PBKDF2) != 0)
		return judge_argon2(&kdf, i, slot, err);
	if (kdf.iterations > PBKDF2_MAX)
		return cf_fail(err, -ENOTSUP, "keyslot %d asks for %u iterations, more than the %llu that are accepted%s", i,
					   kdf.iterations, (unsigned long long)PBKDF2_MAX, way_out(slot));
	return 0;
}

int cf_header_digest_cost(struct cf_header *h, struct cf_err *err)
{
	if (cf_header_is_luks(h) && cf_luks_digest_iterations(h) > PBKDF2_MAX)
		return cf_fail(err, -ENOTSUP,
					   "to check the volume key the header asks for more than the %llu iterations that are accepted",
					   (unsigned long long)PBKDF2_MAX);
	return 0;
}

int cf_header_costs(struct cf_header *h, int slot, struct cf_err *err)
{
	int rc = 0;
	if (!cf_header_is_luks(h))
		return 0;
	for (int i = 0; i < crypt_keyslot_max(crypt_get_type(h->cd)) && !rc; i++)
		if ((slot < 0 || i == slot) && crypt_keyslot_status(h->cd, i) >= CRYPT_SLOT_ACTIVE)
			rc = judge_keyslot(h, i, slot, err);
	return rc ? rc : cf_header_digest_cost(h, err);
}
