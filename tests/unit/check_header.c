/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_header.c - headers by libcryptsetup, and open on top of them. The images are made by libcryptsetup too: what it
 * wrote, with the key it was given, is the truth; tests/integration has those of other programs. */
#include "config.h"

#include "cryptfuse/header.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <libcryptsetup.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open/header.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_image.h"
#include "test_volume.h"

#define MIB ((uint64_t)1 << 20)
#define IMAGE_BYTES (20 * MIB)
#define KEY_BYTES 64u

static struct test_image img;
static char key[KEY_BYTES];

/* No cf_secret_fini: libcryptsetup keeps memory of libcrypto until the program ends. */
static void start(void)
{
	struct cf_err err = {0};
	ck_assert_msg(cf_secret_init(&err) == 0, "%s", err.text);
	test_image_make(&img, IMAGE_BYTES);
	test_fill((uint8_t *)key, sizeof(key), 4);
}

static void finish(void)
{
	test_image_remove(&img);
}

static void quiet(int level, const char *msg, void *ctx)
{
	(void)level;
	(void)msg;
	(void)ctx;
}

/* A LUKS header in @path with "first" in keyslot 0 and "second" in keyslot 3. */
static void format(const char *path, const char *type)
{
	const struct crypt_pbkdf_type kdf = {
		.type = CRYPT_KDF_PBKDF2, .hash = "sha256", .iterations = 1000, .flags = CRYPT_PBKDF_NO_BENCHMARK};
	struct crypt_params_luks2 luks2 = {.pbkdf = &kdf, .sector_size = 4096, .label = "a\t\xc2\x9bxlabel"};
	struct crypt_params_luks1 luks1 = {.hash = "sha256"};
	bool is_luks1 = !strcmp(type, CRYPT_LUKS1);
	struct crypt_device *cd = NULL;
	crypt_set_log_callback(NULL, quiet, NULL);
	ck_assert_int_eq(crypt_init(&cd, path), 0);
	ck_assert_int_eq(crypt_set_pbkdf_type(cd, &kdf), 0);
	ck_assert_int_eq(crypt_format(cd, type, "aes", "xts-plain64", "0fb3d2c5-2b3c-4d67-a91f-7d25e6a4e7c1", key,
								  KEY_BYTES, is_luks1 ? (void *)&luks1 : (void *)&luks2),
					 0);
	ck_assert_int_eq(crypt_keyslot_add_by_volume_key(cd, 0, NULL, 0, "first", 5), 0);
	ck_assert_int_eq(crypt_keyslot_add_by_volume_key(cd, 3, NULL, 0, "second", 6), 3);
	crypt_free(cd);
}

static int load(struct cf_header **h, enum cf_header_kind kind, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = test_image_backing(&img, CF_READ_ONLY);
	return cf_header_load(h, kind, b, 0, b->bytes, NULL, err);
}

static const struct {
	const char *type;
	enum cf_header_kind kind;
	const char *name, *plan;
	uint32_t du_bytes;
	uint64_t data_off;
} kinds[] = {
	{CRYPT_LUKS1, CF_HEADER_LUKS1, "LUKS1", "luks1", 512, 2 * MIB},
	{CRYPT_LUKS2, CF_HEADER_LUKS2, "LUKS2", "luks2", 4096, 16 * MIB},
};

START_TEST(info__says_what_the_header_says)
{
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	struct cf_header_info info;
	struct cf_err err = {0};
	format(img.path, kinds[_i].type);
	ck_assert_msg(load(&h, CF_HEADER_NONE, &err) == 0, "%s", err.text);
	cf_header_info(h, &info);
	ck_assert_int_eq(info.kind, kinds[_i].kind);
	ck_assert_str_eq(cf_header_kind_name(info.kind), kinds[_i].name);
	ck_assert_str_eq(info.uuid, "0fb3d2c5-2b3c-4d67-a91f-7d25e6a4e7c1");
	ck_assert_str_eq(info.label, info.kind == CF_HEADER_LUKS2 ? "a???xlabel" : "");
	ck_assert_str_eq(info.cipher, "aes-xts-plain64");
	ck_assert_uint_eq(info.key_bits, 512);
	ck_assert_uint_eq(info.du_bytes, kinds[_i].du_bytes);
	ck_assert_uint_eq(info.data_off, kinds[_i].data_off);
	ck_assert_str_eq(info.problem, "");
	ck_assert_uint_eq(info.n_keyslots, 2);
	ck_assert_int_eq(info.keyslot[0].number, 0);
	ck_assert_int_eq(info.keyslot[1].number, 3);
	ck_assert_str_eq(info.keyslot[1].kdf, "pbkdf2-sha256");
	ck_assert_str_eq(info.keyslot[1].cipher, "aes-xts-plain64");
}
END_TEST

/* Where LUKS1 keeps its iterations: of keyslot 0, of keyslot 3, of the digest. */
static const struct {
	off_t at;
	int slot, rc;
	const char *says;
} costs[] = {
	{212, CRYPT_ANY_SLOT, -ENOTSUP, "keyslot 0 asks for 1073741825 iterations"},
	{212, 0, -ENOTSUP, "keyslot 0 asks for"},
	{212, 3, 3, ""},
	{356, CRYPT_ANY_SLOT, -ENOTSUP, "keyslot 3 asks for"},
	{164, CRYPT_ANY_SLOT, -ENOTSUP, "to check the volume key"},
	{164, 3, -ENOTSUP, "to check the volume key"},
};

START_TEST(unlock__refuses_what_would_take_hours)
{
	static const uint8_t too_many[] = {0x40, 0, 0, 1};
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	CF_CLEANUP(cf_secret_freep) uint8_t *got = NULL;
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf pass = {.data = cf_secret_alloc(6), .len = 6};
	struct cf_err err = {0};
	memcpy(pass.data, "second", 6);
	format(img.path, CRYPT_LUKS1);
	int fd = open(img.path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, too_many, sizeof(too_many), costs[_i].at), (ssize_t)sizeof(too_many));
	close(fd);
	ck_assert_msg(load(&h, CF_HEADER_NONE, &err) == 0, "%s", err.text);
	ck_assert_int_eq(cf_header_unlock(h, costs[_i].slot, &pass, &got, &err), costs[_i].rc);
	ck_assert_msg(strstr(err.text, costs[_i].says), "%s", err.text);
}
END_TEST

START_TEST(load__insists_on_a_kind)
{
	struct cf_header *h = NULL;
	struct cf_err err = {0};
	format(img.path, kinds[_i].type);
	ck_assert_int_eq(load(&h, kinds[!_i].kind, &err), -ENOENT);
	ck_assert_int_eq(load(&h, CF_HEADER_BITLK, &err), -ENOENT);
	ck_assert_ptr_null(h);
	ck_assert_int_eq(load(&h, kinds[_i].kind, &err), 0);
	cf_header_free(&h);
	ck_assert_ptr_null(h);
}
END_TEST

START_TEST(load__counts_from_the_start_of_a_range)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	struct cf_header_info info;
	struct cf_err err = {0};
	char command[512];
	format(img.path, CRYPT_LUKS1);
	snprintf(command, sizeof(command), "{ head -c %llu /dev/zero; cat '%s'; } > '%s'", (unsigned long long)MIB + 512,
			 img.path, img.other);
	ck_assert_int_eq(system(command), 0);
	int fd = open(img.other, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(cf_backing_from_fd(&b, fd, CF_READ_ONLY, &err), 0);
	ck_assert_int_eq(cf_header_load(&h, CF_HEADER_NONE, b, 0, b->bytes, NULL, &err), -ENOENT);
	ck_assert_int_eq(cf_header_load(&h, CF_HEADER_NONE, b, MIB + 512, b->bytes - MIB - 512, NULL, &err), 0);
	cf_header_info(h, &info);
	ck_assert_uint_eq(info.data_off, MIB + 512 + 2 * MIB);
}
END_TEST

static const uint64_t sizes[] = {0, 1, 511, 512, 513, 4096, 8 * MIB, IMAGE_BYTES};

START_TEST(load__of_no_header)
{
	struct cf_header *h = NULL;
	struct cf_err err = {0};
	ck_assert_int_eq(truncate(img.path, (off_t)sizes[_i]), 0);
	ck_assert_int_eq(load(&h, CF_HEADER_NONE, &err), -ENOENT);
	ck_assert_int_eq(err.code, 0);
	ck_assert_ptr_null(h);
}
END_TEST

static void poke(uint64_t at, const void *bytes, size_t len)
{
	int fd = open(img.path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
	close(fd);
}

static const struct {
	uint64_t at;
	const char *signature;
	size_t len;
	int rc;
} signatures[] = {
	{0, "LUKS\xba\xbe\0\1", 8, -EINVAL},
	{0, "LUKS\xba\xbe\0\2", 8, -EINVAL},
	{0, "LUKS\xba\xbe\0\7", 8, -EINVAL},
	{3, "-FVE-FS-", 8, -EINVAL},
	{3, "MSWIN4.1", 8, -ENOENT}, /* any FAT of Windows 98 */
	{88, "CS", 2, -ENOENT},
};

START_TEST(load__of_a_mere_signature)
{
	struct cf_header *h = NULL;
	struct cf_err err = {0};
	poke(signatures[_i].at, signatures[_i].signature, signatures[_i].len);
	ck_assert_int_eq(load(&h, CF_HEADER_NONE, &err), signatures[_i].rc);
	ck_assert_int_eq(err.text[0] != '\0', signatures[_i].rc == -EINVAL);
	ck_assert_ptr_null(h);
}
END_TEST

/* Whatever stands there: no crash, and an answer. */
START_TEST(load__of_a_damaged_header)
{
	uint64_t state = (uint64_t)_i;
	struct cf_err err = {0};
	struct cf_header_info info;
	format(img.path, kinds[_i & 1].type);
	for (unsigned i = 0; i < 40; i++) {
		struct cf_header *h = NULL;
		uint64_t r = test_random(&state);
		poke(r % (i & 1 ? 592 : 32768), &(uint8_t){(uint8_t)(r >> 32)}, 1);
		err.code = 0;
		int rc = load(&h, CF_HEADER_NONE, &err);
		ck_assert(rc == 0 || rc == -ENOENT || rc == -EINVAL);
		if (!rc)
			cf_header_info(h, &info);
		cf_header_free(&h);
	}
}
END_TEST

/* ---- what cannot be read ---- */

#define SECTORS (IMAGE_BYTES / 512)
#define KIB ((uint64_t)1 << 10)

/* Which bytes are lost, and who can open the volume all the same. Where keyslots lie is libcryptsetup's choice. */
static const struct {
	unsigned kind; /* of kinds */
	uint64_t from, to;
	int load, first, second;
	bool said; /* that something cannot be read, where it fails */
} losses[] = {
	{0, 3 * MIB, 8 * MIB, 0, 0, 3, false},   /* data */
	{1, 3 * MIB, 8 * MIB, 0, 0, 3, false},   /* room for more keyslots */
	{1, 16 * KIB, 32 * KIB, 0, 0, 3, false}, /* the second header */
	{1, 4 * KIB, 16 * KIB, 0, 0, 3, false},  /* the first but for its signature: the second serves */
	{1, 4 * KIB, 32 * KIB, -EINVAL, 0, 0, true},
	{0, 4 * KIB, 8 * KIB, 0, -EPERM, 3, true},   /* keyslot 0 */
	{1, 32 * KIB, 36 * KIB, 0, -EPERM, 3, true}, /* keyslot 0 */
	{0, 0, 512, -EIO, 0, 0, true},
	{1, 0, 512, -EIO, 0, 0, true},
};

static int unlock(struct cf_header *h, const char *pass, struct cf_err *err)
{
	const struct cf_secret_buf text = {(uint8_t *)(uintptr_t)pass, strlen(pass)};
	CF_CLEANUP(cf_secret_freep) uint8_t *got = NULL;
	int rc = cf_header_unlock(h, CRYPT_ANY_SLOT, &text, &got, err);
	if (rc >= 0)
		ck_assert_mem_eq(got, key, KEY_BYTES);
	return rc;
}

static void assert_answer(int rc, int wanted, const struct cf_err *err, bool said)
{
	ck_assert_msg(rc == wanted, "%d, not %d: %s", rc, wanted, err->text);
	if (rc < 0)
		ck_assert_int_eq(strstr(err->text, "cannot be read") != NULL, said);
}

START_TEST(load__does_without_what_cannot_be_read)
{
	static uint8_t lost[SECTORS];
	struct test_backing *t = test_backing_new(IMAGE_BYTES, 1);
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = &t->base, *image = NULL;
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	struct cf_err err = {0}, why_first = {0}, why_second = {0};
	format(img.path, kinds[losses[_i].kind].type);
	image = test_image_backing(&img, CF_READ_ONLY);
	ck_assert_int_eq(cf_backing_read_full(image, t->data, image->bytes, 0), 0);
	memset(lost, 0, sizeof(lost));
	memset(lost + losses[_i].from / 512, 1, (losses[_i].to - losses[_i].from) / 512);
	t->unreadable = lost;
	assert_answer(cf_header_load(&h, CF_HEADER_NONE, b, 0, b->bytes, NULL, &err), losses[_i].load, &err,
				  losses[_i].said);
	if (losses[_i].load)
		return;
	assert_answer(unlock(h, "first", &why_first), losses[_i].first, &why_first, losses[_i].said);
	assert_answer(unlock(h, "second", &why_second), losses[_i].second, &why_second, losses[_i].said);
}
END_TEST

/* ---- open ---- */

struct asked {
	const char *answers[4];
	unsigned n, notes;
	int rc;
};

static void hear(void *ctx, const char *text)
{
	(void)text;
	((struct asked *)ctx)->notes++;
}

static int answer(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
				  struct cf_err *err)
{
	struct asked *a = ctx;
	(void)opts;
	(void)err;
	ck_assert_uint_eq(attempt, ++a->n);
	const char *text = a->answers[a->n - 1];
	out->len = strlen(text);
	out->data = cf_secret_alloc(out->len + 1);
	memcpy(out->data, text, out->len);
	return a->rc;
}

static int open_header(const struct cf_open_opts *opts, struct asked *a, struct cf_opening *o, struct cf_err *err)
{
	const struct cf_open_ui ui = {.ctx = a, .note = hear, .warn = hear, .passphrase = answer};
	int rc = cf_open_plan(opts, &ui, o, err);
	if (rc)
		return rc;
	ck_assert_ptr_nonnull(o->header);
	ck_assert_ptr_null(o->key);
	return cf_open_key(opts, &ui, o, err);
}

START_TEST(open__gives_plan_and_key)
{
	CF_CLEANUP(cf_opening_fini) struct cf_opening o = {0};
	struct asked a = {.answers = {"second"}};
	struct cf_err err = {0};
	const struct cf_open_opts opts = {.image = img.path, .access = CF_READ_WRITE};
	format(img.path, kinds[_i].type);
	ck_assert_msg(open_header(&opts, &a, &o, &err) == 0, "%s", err.text);
	ck_assert_mem_eq(o.key, key, KEY_BYTES);
	ck_assert(cf_secret_contains(o.key));
	ck_assert_ptr_null(o.header);
	ck_assert_str_eq(o.plan.type, kinds[_i].plan);
	ck_assert_str_eq(o.plan.uuid, "0fb3d2c5-2b3c-4d67-a91f-7d25e6a4e7c1");
	ck_assert_int_eq(o.plan.keyslot, 3);
	ck_assert_uint_eq(o.plan.data_off, kinds[_i].data_off);
	ck_assert_uint_eq(o.plan.bytes, IMAGE_BYTES - kinds[_i].data_off);
	ck_assert_uint_eq(o.plan.n_segments, 0);
	ck_assert_uint_eq(o.plan.cipher.key_bytes, KEY_BYTES);
	ck_assert_uint_eq(o.plan.cipher.du_bytes, kinds[_i].du_bytes);
	ck_assert_int_eq(o.plan.cipher.iv_numbering, CF_IV_SECTORS);
}
END_TEST

static const struct {
	struct asked asked;
	uint64_t tries;
	int rc;
	unsigned n, notes;
} tries[] = {
	{{.answers = {"wrong", "first"}, .rc = CF_MAY_ASK_AGAIN}, 3, 0, 2, 1},
	{{.answers = {"wrong", "", "second"}, .rc = CF_MAY_ASK_AGAIN}, 3, 0, 3, 2},
	{{.answers = {"wrong", "wrong", "wrong", "first"}, .rc = CF_MAY_ASK_AGAIN}, 3, -EPERM, 3, 2},
	{{.answers = {"wrong", "first"}, .rc = CF_MAY_ASK_AGAIN}, 0, -EPERM, 1, 0},
	{{.answers = {"wrong", "first"}, .rc = 0}, 3, -EPERM, 1, 0}, /* standard input has one line */
};

START_TEST(key__is_asked_for_again)
{
	CF_CLEANUP(cf_opening_fini) struct cf_opening o = {0};
	struct asked a = tries[_i].asked;
	struct cf_err err = {0};
	const struct cf_open_opts opts = {.image = img.path, .tries = tries[_i].tries};
	format(img.path, CRYPT_LUKS1);
	ck_assert_int_eq(open_header(&opts, &a, &o, &err), tries[_i].rc);
	ck_assert_uint_eq(a.n, tries[_i].n);
	ck_assert_uint_eq(a.notes, tries[_i].notes);
	ck_assert_int_eq(o.key != NULL, tries[_i].rc == 0);
	ck_assert_int_eq(err.text[0] != '\0', tries[_i].rc != 0);
}
END_TEST

/* What is refused before anybody is asked, on a LUKS2 image. */
static const struct {
	struct cf_open_opts opts;
	int rc;
	const char *says;
} refused[] = {
	{{.cipher = "aes-xts-plain64"}, -EINVAL, "--cipher is for plain volumes"},
	{{.key_bits = 512}, -EINVAL, "--key-size is for plain volumes"},
	{{.hash = "sha256"}, -EINVAL, "--hash is for plain volumes"},
	{{.compat = CF_COMPAT_2_6}, -EINVAL, "--compat is for plain volumes"},
	{{.offset_sectors = 8}, -EINVAL, "--offset is for plain volumes"},
	{{.skip_sectors = 8}, -EINVAL, "--skip is for plain volumes"},
	{{.sector_size_bytes = 512}, -EINVAL, "--sector-size is for plain volumes"},
	{{.iv_large_sectors = true}, -EINVAL, "--iv-large-sectors is for plain volumes"},
	{{.type = CF_TYPE_LUKS, .cipher = "aes-xts-plain64"}, -EINVAL, "--type luks"},
	{{.type = CF_TYPE_LUKS1}, -ENODEV, "not one of --type luks1"},
	{{.type = CF_TYPE_BITLK}, -ENODEV, "not one of --type bitlk"},
	{{.type = CF_TYPE_FVAULT2}, -ENODEV, "not one of --type fvault2"},
	{{.type = CF_TYPE_PLAIN, .key_slot = "1"}, -EINVAL, "--key-slot is for volumes with a header"},
	{{.type = CF_TYPE_PLAIN, .volume_key_file = "x"}, -EINVAL, "--volume-key-file is for volumes with a header"},
	{{.type = CF_TYPE_LUKS2, .table_file = "x"}, -EINVAL, "--table"},
	{{.type = CF_TYPE_BITLK, .header_file = "x"}, -EINVAL, "only LUKS"},
	{{.header_file = "/nonexistent"}, -ENODEV, "/nonexistent"},
	{{.key_slot = "32"}, -EINVAL, "--key-slot '32'"},
	{{.key_slot = "-1"}, -EINVAL, "--key-slot '-1'"},
	{{.volume_key_file = "x", .volume_key_keyring = "y"}, -EINVAL, "together"},
	{{.volume_key_file = "x", .key_file = "y"}, -EINVAL, "--key-file cannot be given beside"},
	{{.size_sectors = 8, .device_size_bytes = 4096}, -EINVAL, "together"},
	{{.size_sectors = 7}, -EINVAL, "multiple of --sector-size 4096"},
	{{.size_sectors = 1 << 20}, -EINVAL, "beyond"},
};

START_TEST(plan__refuses_before_a_prompt)
{
	struct asked a = {.n = 0};
	const struct cf_open_ui ui = {.ctx = &a, .note = hear, .warn = hear, .passphrase = answer};
	struct cf_opening o = {0};
	struct cf_err err = {0};
	struct cf_open_opts opts = refused[_i].opts;
	opts.image = img.path;
	format(img.path, CRYPT_LUKS2);
	ck_assert_int_eq(cf_open_plan(&opts, &ui, &o, &err), refused[_i].rc);
	ck_assert_msg(strstr(err.text, refused[_i].says) != NULL, "%s", err.text);
	ck_assert(!o.image.n_parts && !o.header && !a.n);
}
END_TEST

START_TEST(plan__of_an_image_without_a_header)
{
	struct asked a = {.n = 0};
	const struct cf_open_ui ui = {.ctx = &a, .note = hear, .warn = hear, .passphrase = answer};
	CF_CLEANUP(cf_opening_fini) struct cf_opening o = {0};
	struct cf_err err = {0};
	struct cf_open_opts opts = {.image = img.path};
	ck_assert_int_eq(cf_open_plan(&opts, &ui, &o, &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "say --type plain") != NULL, "%s", err.text);
	err.code = 0;
	poke(4086, "SWAPSPACE2", 10);
	poke(1024, "\1", 1);
	poke(1028, "\x63", 1);
	ck_assert_int_eq(cf_open_plan(&opts, &ui, &o, &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "but swap") != NULL, "%s", err.text);
	opts.cipher = "aes-xts-plain64";
	err.code = 0;
	ck_assert_int_eq(cf_open_plan(&opts, &ui, &o, &err), 0);
	ck_assert_str_eq(o.plan.type, "plain");
	ck_assert_int_eq(o.plan.keyslot, -1);
}
END_TEST

START_TEST(key__from_a_volume_key_file)
{
	CF_CLEANUP(cf_opening_fini) struct cf_opening o = {0}, wrong = {0};
	struct asked a = {.n = 0};
	struct cf_err err = {0};
	const struct cf_open_opts opts = {.image = img.path, .volume_key_file = img.other};
	format(img.path, kinds[_i].type);
	int fd = open(img.other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, key, KEY_BYTES), (ssize_t)KEY_BYTES);
	ck_assert_msg(open_header(&opts, &a, &o, &err) == 0, "%s", err.text);
	ck_assert_mem_eq(o.key, key, KEY_BYTES);
	ck_assert_int_eq(o.plan.keyslot, -1);
	ck_assert_int_eq(pwrite(fd, "x", 1, 63), 1);
	ck_assert_int_eq(open_header(&opts, &a, &wrong, &err), -EPERM);
	err.code = 0;
	ck_assert_int_eq(ftruncate(fd, 63), 0);
	close(fd);
	cf_opening_fini(&wrong);
	ck_assert_int_eq(open_header(&opts, &a, &wrong, &err), -EINVAL);
	ck_assert_uint_eq(a.n, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("header");
	TCase *t = tcase_create("header");
	tcase_add_checked_fixture(t, start, finish);
	tcase_add_loop_test(t, unlock__refuses_what_would_take_hours, 0, (int)CF_ARRAY_LEN(costs));
	tcase_add_loop_test(t, info__says_what_the_header_says, 0, (int)CF_ARRAY_LEN(kinds));
	tcase_add_loop_test(t, load__insists_on_a_kind, 0, (int)CF_ARRAY_LEN(kinds));
	tcase_add_test(t, load__counts_from_the_start_of_a_range);
	tcase_add_loop_test(t, load__of_no_header, 0, (int)CF_ARRAY_LEN(sizes));
	tcase_add_loop_test(t, load__of_a_mere_signature, 0, (int)CF_ARRAY_LEN(signatures));
	tcase_add_loop_test(t, load__does_without_what_cannot_be_read, 0, CF_ARRAY_LEN(losses));
	tcase_add_loop_test(t, load__of_a_damaged_header, 0, 4);
	tcase_add_loop_test(t, open__gives_plan_and_key, 0, (int)CF_ARRAY_LEN(kinds));
	tcase_add_loop_test(t, key__is_asked_for_again, 0, (int)CF_ARRAY_LEN(tries));
	tcase_add_loop_test(t, plan__refuses_before_a_prompt, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(t, plan__of_an_image_without_a_header);
	tcase_add_loop_test(t, key__from_a_volume_key_file, 0, (int)CF_ARRAY_LEN(kinds));
	suite_add_tcase(s, t);
	return test_run(s);
}
