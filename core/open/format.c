/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* format.c - a new LUKS2 header through libcryptsetup, in a file in memory.
 *
 * The volume key is ours: random, in the secret arena, and handed to the library, so nothing has to be unlocked
 * afterwards. The data area in memory is a hole that nobody touches. One thread. */
#include "config.h"

#include "cryptfuse/format.h"

#include <errno.h>
#include <libcryptsetup.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "plan.h"

#define HEADER_BYTES (UINT64_C(16) << 20)
#define DEFAULT_CIPHER "aes-xts-plain64"

static void free_device(struct crypt_device **cd)
{
	crypt_free(*cd);
}

void cf_format_fini(struct cf_format *f)
{
	cf_close_fd(&f->fd);
	cf_secret_freep(&f->key);
}

uint64_t cf_format_header_bytes(void)
{
	return HEADER_BYTES;
}

/* ---- what is asked for ---- */

static int plan_volume(const struct cf_format_opts *opts, const struct cf_open_opts *open, struct cf_open_plan *plan,
					   struct cf_err *err)
{
	struct cf_cipher_spec *c = &plan->cipher;
	int rc = cf_spec_parse_cipher(opts->cipher ? opts->cipher : DEFAULT_CIPHER, c, err);
	if (rc)
		return rc;
	c->du_bytes = opts->sector_size_bytes ? (uint32_t)opts->sector_size_bytes : CF_DU_MIN;
	if (!cf_units_du_valid(c->du_bytes) || c->du_bytes > 4096)
		return cf_fail(err, -EINVAL, "--sector-size %llu: LUKS2 has 512, 1024, 2048 and 4096",
					   (unsigned long long)opts->sector_size_bytes);
	if (opts->key_bits % 8 || opts->key_bits > CF_KEY_MAX * 8u)
		return cf_fail(err, -EINVAL, "--key-size %llu is no multiple of 8, or too large",
					   (unsigned long long)opts->key_bits);
	c->key_bytes = opts->key_bits ? (uint32_t)(opts->key_bits / 8) : cf_cipher_default_key_bytes(c);
	if (!c->key_bytes)
		return cf_fail(err, -EINVAL, "LUKS2 without encryption is not made here");
	plan->data_off = HEADER_BYTES;
	plan->keyslot = 0;
	strcpy(plan->type, "luks2");
	plan->access = CF_READ_WRITE;
	return cf_plan_engine(open, plan, err);
}

static int check_pbkdf(const struct cf_format_opts *opts, struct cf_err *err)
{
	const char *p = opts->pbkdf;
	if (p && strcmp(p, CRYPT_KDF_ARGON2ID) && strcmp(p, CRYPT_KDF_ARGON2I) && strcmp(p, CRYPT_KDF_PBKDF2))
		return cf_fail(err, -EINVAL, "--pbkdf %s: argon2id, argon2i and pbkdf2 are known", p);
	if (p && !strcmp(p, CRYPT_KDF_PBKDF2) && (opts->pbkdf_memory_kib || opts->pbkdf_parallel))
		return cf_fail(err, -EINVAL, "--pbkdf-memory and --pbkdf-parallel have no meaning for pbkdf2");
	return 0;
}

int cf_format_check(const struct cf_format_opts *opts, const struct cf_open_opts *open, struct cf_err *err)
{
	struct cf_open_plan plan = {.bytes = 0};
	const int rc = check_pbkdf(opts, err);
	return rc ? rc : plan_volume(opts, open, &plan, err);
}

static int read_key_file(const struct cf_open_opts *open, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	const enum cf_key_read how = open->keyfile_size_bytes ? CF_KEY_READ_EXACT : CF_KEY_READ_ALL;
	int rc = cf_open_input(open->key_file, "key file", &fd, err);
	return rc ? rc
			  : cf_key_read_fd(fd, how, open->keyfile_offset_bytes, open->keyfile_size_bytes, open->key_file, out, err);
}

int cf_format_passphrase(const struct cf_open_opts *open, const struct cf_open_ui *ui, struct cf_secret_buf *out,
						 struct cf_err *err)
{
	const int rc = cf_key_source(open) == CF_KEY_FROM_PASSPHRASE ? ui->passphrase(ui->ctx, open, 0, out, err)
																 : read_key_file(open, out, err);
	if (rc >= 0 && !out->len)
		return cf_fail(err, -EINVAL, "an empty passphrase protects nothing");
	return rc < 0 ? rc : 0;
}

/* ---- libcryptsetup ---- */

/* Its last complaint, without the full stop and newline. */
static void hear(int level, const char *msg, void *ctx)
{
	char *said = ctx;
	if (level != CRYPT_LOG_ERROR)
		return;
	size_t len = strcspn(msg, "\n");
	while (len && (msg[len - 1] == '.' || msg[len - 1] == ' '))
		len--;
	if (len)
		snprintf(said, CF_ERR_TEXT, "%.*s", (int)len, msg);
}

static void hear_nothing(int level, const char *msg, void *ctx)
{
	(void)level;
	(void)msg;
	(void)ctx;
}

static int set_pbkdf(struct crypt_device *cd, const struct cf_format_opts *opts)
{
	const struct crypt_pbkdf_type *usual = crypt_get_pbkdf_default(CRYPT_LUKS2);
	struct crypt_pbkdf_type p = *usual;
	if (opts->pbkdf)
		p.type = opts->pbkdf;
	if (opts->hash)
		p.hash = opts->hash;
	if (!strcmp(p.type, CRYPT_KDF_PBKDF2)) {
		p.max_memory_kb = 0;
		p.parallel_threads = 0;
	}
	if (opts->pbkdf_memory_kib)
		p.max_memory_kb = (uint32_t)opts->pbkdf_memory_kib;
	if (opts->pbkdf_parallel)
		p.parallel_threads = (uint32_t)opts->pbkdf_parallel;
	if (opts->iter_time_ms)
		p.time_ms = (uint32_t)opts->iter_time_ms;
	if (opts->pbkdf_iterations) {
		p.iterations = (uint32_t)opts->pbkdf_iterations;
		p.time_ms = 0;
		p.flags |= CRYPT_PBKDF_NO_BENCHMARK;
	}
	return crypt_set_pbkdf_type(cd, &p);
}

static int open_device(const struct cf_format *f, struct crypt_device **cd, char said[static CF_ERR_TEXT])
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->fd);
	crypt_set_log_callback(NULL, hear_nothing, NULL);
	const int rc = crypt_init(cd, path);
	if (rc)
		return rc;
	crypt_set_log_callback(*cd, hear, said);
	return crypt_metadata_locking(*cd, 0); /* nobody else has this file */
}

static int write_header(struct crypt_device *cd, const struct cf_format_opts *opts, const struct cf_format *f)
{
	const char *text = opts->cipher ? opts->cipher : DEFAULT_CIPHER;
	char cipher[CF_NAME_MAX];
	const size_t len = strcspn(text, "-");
	struct crypt_params_luks2 params = {
		.label = opts->label,
		.data_alignment = (size_t)(f->plan.data_off / CF_SECTOR_BYTES),
		.sector_size = f->plan.cipher.du_bytes,
	};
	if (!text[len] || len >= sizeof(cipher))
		return -EINVAL;
	snprintf(cipher, sizeof(cipher), "%.*s", (int)len, text);
	int rc = set_pbkdf(cd, opts);
	if (!rc)
		rc = crypt_set_data_offset(cd, f->plan.data_off / CF_SECTOR_BYTES);
	return rc ? rc
			  : crypt_format(cd, CRYPT_LUKS2, cipher, text + len + 1, opts->uuid, (const char *)f->key,
							 f->plan.cipher.key_bytes, &params);
}

static int format(const struct cf_format_opts *opts, const struct cf_secret_buf *pass, const struct cf_format *f,
				  struct cf_err *err)
{
	char said[CF_ERR_TEXT] = "";
	CF_CLEANUP(free_device) struct crypt_device *cd = NULL;
	int rc = open_device(f, &cd, said);
	if (!rc)
		rc = write_header(cd, opts, f);
	if (!rc)
		rc = crypt_keyslot_add_by_volume_key(cd, CRYPT_ANY_SLOT, (const char *)f->key, f->plan.cipher.key_bytes,
											 (const char *)pass->data, pass->len);
	if (rc >= 0)
		return 0;
	return cf_fail(err, rc, "libcryptsetup cannot make the LUKS2 header: %s", *said ? said : strerror(-rc));
}

static int make_key(struct cf_format *f, struct cf_err *err)
{
	const size_t len = f->plan.cipher.key_bytes;
	f->key = cf_secret_alloc(len);
	if (!f->key)
		return cf_fail(err, -ENOMEM, "no memory for the volume key");
	for (size_t done = 0; done < len;) {
		const ssize_t n = getrandom(f->key + done, len - done, 0);
		if (n < 0 && errno != EINTR)
			return cf_fail(err, -errno, "no random numbers for the volume key: %s", strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int cf_format_luks2(const struct cf_format_opts *opts, const struct cf_open_opts *open,
					const struct cf_secret_buf *pass, uint64_t bytes, struct cf_format *out, struct cf_err *err)
{
	CF_CLEANUP(cf_format_fini) struct cf_format f = {.fd = memfd_create("cryptfuse header", MFD_CLOEXEC)};
	int rc = plan_volume(opts, open, &f.plan, err);
	if (rc)
		return rc;
	f.plan.bytes = bytes;
	if (f.fd < 0 || ftruncate(f.fd, (off_t)(f.plan.data_off + bytes)) != 0)
		return cf_fail(err, -errno, "cannot make a file in memory: %s", strerror(errno));
	if ((rc = make_key(&f, err)) || (rc = format(opts, pass, &f, err)))
		return rc;
	*out = f;
	f = (struct cf_format)CF_FORMAT_NONE;
	return 0;
}
