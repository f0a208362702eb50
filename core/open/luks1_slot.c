/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* luks1_slot.c - LUKS1 keyslots in a cipher that libcryptsetup does not have without the kernel.
 *
 * The library has ciphers of its crypto library only; for serpent, twofish or essiv:wp256 it asks the kernel. Our
 * engines have them. So a keyslot's key material is decrypted here and encrypted again, under the same key, in a cipher
 * that the library has; it gets a copy of the header that says so, and does the rest: split, digest, judgement. One
 * thread, in the parent of the daemon. Source: the LUKS1 on-disk format specification. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/volume.h"
#include "header.h"

/* Where the fields are: bytes from the start of the header, and in a keyslot of it. */
#define HEADER_BYTES 592u
#define CIPHER_OFF 8u
#define MODE_OFF 40u
#define NAME_BYTES 32u
#define SLOTS_OFF 208u
#define SLOT_BYTES 48u
#define SALT_OFF 8u
#define SALT_BYTES 32u

/* What the key material is written in for the library; key bytes. */
static const struct substitute {
	size_t key_bytes;
	const char *cipher, *mode;
} substitutes[] = {
	{64, "aes", "xts-plain64"},
	{32, "aes", "xts-plain64"},
	{24, "aes", "cbc-plain64"},
	{16, "aes", "cbc-plain64"},
};

static const struct substitute *find_substitute(size_t key_bytes)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(substitutes); i++)
		if (substitutes[i].key_bytes == key_bytes)
			return &substitutes[i];
	return NULL;
}

static int crypt_area(const char *cipher, const char *mode, const uint8_t *key, size_t key_bytes, enum cf_dir dir,
					  const uint8_t *src, uint8_t *dst, size_t len)
{
	const struct cf_cipher_opts opts = {.path = CF_PATH_AUTO, .n_workers = 1};
	struct cf_cipher_spec spec = {.du_bytes = CF_DU_MIN, .key_bytes = (uint32_t)key_bytes};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	char text[CF_SPEC_TEXT];
	snprintf(text, sizeof(text), "%s-%s", cipher, mode);
	int rc = cf_spec_parse_cipher(text, &spec, NULL);
	if (!rc)
		rc = cf_cipher_new(&c, &spec, key, &opts, NULL);
	return rc ? rc : cf_cipher_crypt(c, 0, dir, 0, len / CF_DU_MIN, src, dst);
}

static int derive(struct cf_header *h, int slot, const uint8_t *header, const struct cf_secret_buf *pass, uint8_t *key,
				  size_t key_bytes)
{
	struct crypt_pbkdf_type kdf;
	const uint8_t *salt = header + SLOTS_OFF + SLOT_BYTES * (unsigned)slot + SALT_OFF;
	int rc = crypt_keyslot_get_pbkdf(h->cd, slot, &kdf);
	return rc ? rc
			  : cf_digest_pbkdf2(kdf.hash, pass->data, pass->len, salt, SALT_BYTES, kdf.iterations, key, key_bytes);
}

/* The key material of @slot in the substitute cipher, in @out. */
static int recode(struct cf_header *h, int slot, const uint8_t *header, const struct substitute *to,
				  const struct cf_secret_buf *pass, uint8_t *area, uint8_t *out, size_t len)
{
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(to->key_bytes);
	CF_CLEANUP(cf_secret_freep) uint8_t *plain = cf_secret_alloc(len);
	if (!key || !plain)
		return -ENOMEM;
	int rc = derive(h, slot, header, pass, key, to->key_bytes);
	if (!rc)
		rc = crypt_area(crypt_get_cipher(h->cd), crypt_get_cipher_mode(h->cd), key, to->key_bytes, CF_DECRYPT, area,
						plain, len);
	return rc ? rc : crypt_area(to->cipher, to->mode, key, to->key_bytes, CF_ENCRYPT, plain, out, len);
}

static void put_name(uint8_t *field, const char *name)
{
	memset(field, 0, NAME_BYTES);
	memcpy(field, name, strlen(name));
}

/* A header and one keyslot's material, as long as the copy that they come from; sealed. Returns the descriptor. */
static int make_copy(int from, const uint8_t *header, const uint8_t *material, size_t len, uint64_t off)
{
	struct stat st;
	CF_CLEANUP(cf_close_fd) int fd = memfd_create("cryptfuse-keyslot", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fstat(from, &st) != 0 || ftruncate(fd, st.st_size) != 0)
		return -errno;
	if (pwrite(fd, header, HEADER_BYTES, 0) != (ssize_t)HEADER_BYTES ||
		pwrite(fd, material, len, (off_t)off) != (ssize_t)len)
		return -ENOMEM;
	const int rc = cf_seal_memory(fd);
	if (rc < 0)
		return rc;
	int out = fd;
	fd = -1;
	return out;
}

static void free_device(struct crypt_device **cd)
{
	crypt_free(*cd);
}

static int unlock_copy(struct cf_header *h, int copy, int slot, const struct cf_secret_buf *pass, uint8_t *key,
					   size_t *key_bytes)
{
	CF_CLEANUP(free_device) struct crypt_device *cd = NULL;
	int rc = cf_header_load_fd(h, copy, CRYPT_LUKS1, &cd);
	return rc ? rc
			  : crypt_volume_key_get(cd, slot, (char *)key, key_bytes, pass->data ? (const char *)pass->data : "",
									 pass->len);
}

int cf_luks1_unlock(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t *key, size_t *key_bytes)
{
	const struct substitute *to = find_substitute(cf_header_key_bytes(h));
	uint8_t header[HEADER_BYTES];
	uint64_t off, len;
	int rc = crypt_keyslot_area(h->cd, slot, &off, &len);
	if (rc || !to || len % CF_DU_MIN || len > CF_IO_MAX)
		return rc ? rc : -ENOTSUP;
	CF_CLEANUP(cf_secret_freep) uint8_t *area = cf_secret_alloc(len), *out = cf_secret_alloc(len);
	if (!area || !out)
		return -ENOMEM;
	if (pread(h->copy, header, HEADER_BYTES, 0) != (ssize_t)HEADER_BYTES ||
		pread(h->copy, area, len, (off_t)off) != (ssize_t)len)
		return -EIO;
	rc = recode(h, slot, header, to, pass, area, out, len);
	if (rc)
		return rc;
	put_name(header + CIPHER_OFF, to->cipher);
	put_name(header + MODE_OFF, to->mode);
	CF_CLEANUP(cf_close_fd) int copy = make_copy(h->copy, header, out, len, off);
	return copy < 0 ? copy : unlock_copy(h, copy, slot, pass, key, key_bytes);
}
