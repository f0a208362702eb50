/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_status.c - the status as JSON: says what is open, in dm-crypt's words, and never shows the key. */
#include "config.h"

#include <json.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/ops.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/voice.h"
#include "run.h"

#define IMAGE_BYTES 65536u

static struct cf_ops ops;
static struct cf_open_plan plan;
static struct cf_serve_opts opts;
static struct cf_volume *volume;
static struct cf_voice voice;
static uint8_t *key;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	int fd = memfd_create("image", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, IMAGE_BYTES), 0);
	CF_CLEANUP(cf_image_close) struct cf_image image = {.access = CF_READ_WRITE, .n_parts = 1, .fd = {fd}};
	plan = (struct cf_open_plan){.data_off = 512,
								 .bytes = 8192,
								 .access = CF_READ_WRITE,
								 .discards = CF_DISCARDS_ALLOWED,
								 .lock = CF_LOCK_NONE,
								 .n_workers = 2,
								 .n_permits = 1};
	ck_assert_int_eq(cf_spec_parse_cipher("aes-xts-plain64", &plan.cipher, NULL), 0);
	plan.cipher.key_bytes = 64;
	plan.cipher.du_bytes = 4096;
	plan.cipher.iv_numbering = CF_IV_LARGE_SECTORS;
	plan.cipher.iv_offset = UINT64_MAX - 7;
	strcpy(plan.engine, "openssl");
	strcpy(plan.type, "luks2");
	strcpy(plan.uuid, "0fb3d2c5-2b3c-4d67-a91f-7d25e6a4e7c1");
	plan.keyslot = 3;
	key = cf_secret_alloc(64);
	ck_assert_ptr_nonnull(key);
	for (unsigned i = 0; i < 64; i++)
		key[i] = (uint8_t)(0xa0 + i);
	struct cf_err err = {0};
	ck_assert_msg(cf_open_volume(&plan, key, &image, &volume, &err) == 0, "%s", err.text);
	strcpy(opts.image, "/images/a \"quoted\" one");
	strcpy(opts.mountpoint, "/mnt/\n");
	opts.mode = 0600;
	opts.cache = CF_CACHE_WRITEBACK;
	cf_ops_init(&ops, volume, &opts, &plan);
	cf_voice_init(&voice, volume, NULL, NULL, NULL);
	ops.voice = &voice;
}

static void teardown(void)
{
	cf_ops_fini(&ops);
	cf_volume_free(&volume);
	cf_secret_free(key);
	key = NULL;
}

static struct json_object *status(void)
{
	char *text = cf_status_json(&ops);
	ck_assert_ptr_nonnull(text);
	struct json_object *o = json_tokener_parse(text);
	ck_assert_ptr_nonnull(o);
	free(text);
	return o;
}

static struct json_object *field(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;
	ck_assert_msg(json_object_object_get_ex(o, name, &value), "no field %s", name);
	return value;
}

static const char *text_of(struct json_object *o, const char *name)
{
	return json_object_get_string(field(o, name));
}

static uint64_t number_of(struct json_object *o, const char *name)
{
	return json_object_get_uint64(field(o, name));
}

START_TEST(status__says_what_is_open_and_how)
{
	struct json_object *o = status();
	ck_assert_str_eq(text_of(o, "image"), opts.image);
	ck_assert_str_eq(text_of(o, "mountpoint"), opts.mountpoint);
	ck_assert_str_eq(text_of(o, "cipher"), "aes-xts-plain64");
	ck_assert_str_eq(text_of(o, "type"), "luks2");
	ck_assert_str_eq(text_of(o, "uuid"), plan.uuid);
	ck_assert_uint_eq(number_of(o, "keyslot"), 3);
	ck_assert_str_eq(text_of(o, "engine"), "openssl");
	ck_assert_uint_eq(number_of(o, "pid"), (uint64_t)getpid());
	ck_assert_uint_eq(number_of(o, "key_bits"), 512);
	ck_assert_uint_eq(number_of(o, "sector_size"), 4096);
	ck_assert_uint_eq(number_of(o, "iv_offset"), UINT64_MAX - 7);
	ck_assert_uint_eq(number_of(o, "data_offset"), 512);
	ck_assert_uint_eq(number_of(o, "bytes"), 8192);
	ck_assert_uint_eq(number_of(o, "workers"), 2);
	ck_assert_uint_eq(number_of(o, "permits"), 1);
	ck_assert(json_object_get_boolean(field(o, "iv_large_sectors")));
	ck_assert(json_object_get_boolean(field(o, "allow_discards")));
	ck_assert(!json_object_get_boolean(field(o, "read_only")));
	ck_assert_str_eq(text_of(o, "cache"), "writeback");
	ck_assert_uint_eq(number_of(o, "request_bytes"), 131072);
	ck_assert(!json_object_get_boolean(field(o, "direct")));
	ck_assert(json_object_get_boolean(field(o, "shared")));
	field(field(field(o, "paths"), "encrypt"), "batch_from");
	field(field(field(o, "paths"), "decrypt"), "batch_from");
	json_object_put(o);
}
END_TEST

START_TEST(status__of_a_plain_volume_has_no_header)
{
	struct json_object *none;
	strcpy(plan.type, "plain");
	plan.uuid[0] = '\0';
	plan.keyslot = -1;
	struct json_object *o = status();
	ck_assert_str_eq(text_of(o, "type"), "plain");
	ck_assert(!json_object_object_get_ex(o, "uuid", &none) && !json_object_object_get_ex(o, "keyslot", &none));
	json_object_put(o);
}
END_TEST

START_TEST(status__counts)
{
	uint8_t buf[5000] = {0};
	struct cf_worker *w = cf_volume_enter(volume);
	ck_assert_int_eq(cf_volume_write(volume, w, buf, sizeof(buf), 100), (ssize_t)sizeof(buf));
	ck_assert_int_eq(cf_volume_read(volume, w, buf, 3, 0), 3);
	cf_volume_leave(volume, w);
	struct json_object *o = status(), *c = field(o, "counters");
	ck_assert_uint_eq(number_of(c, "writes"), 1);
	ck_assert_uint_eq(number_of(c, "write_bytes"), 5000);
	ck_assert_uint_eq(number_of(c, "rmw"), 2);
	ck_assert_uint_eq(number_of(c, "reads"), 1);
	ck_assert_uint_eq(number_of(c, "read_bytes"), 3);
	json_object_put(o);
}
END_TEST

START_TEST(status__says_what_holds_the_daemon)
{
	ops.sandbox = (struct cf_sandbox){.use = CF_SANDBOX_ON, .landlock = 6, .seccomp = true};
	struct json_object *o = status(), *box = field(o, "sandbox");
	ck_assert(json_object_get_boolean(field(box, "on")) && json_object_get_boolean(field(box, "seccomp")));
	ck_assert_uint_eq(number_of(box, "landlock"), 6);
	json_object_put(o);
	ops.sandbox = (struct cf_sandbox){.use = CF_SANDBOX_OFF};
	o = status();
	box = field(o, "sandbox");
	ck_assert(!json_object_get_boolean(field(box, "on")) && !json_object_get_boolean(field(box, "seccomp")));
	ck_assert_ptr_null(field(box, "landlock"));
	json_object_put(o);
}
END_TEST

/* However many there are, with the rest it fits in an xattr (64 KiB). */
START_TEST(status__has_the_last_messages)
{
	char longest[CF_VOICE_TEXT];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (unsigned i = 0; i < 2 * CF_VOICE_KEPT; i++)
		cf_voice_say(&voice, "%s", longest);
	struct json_object *o = status(), *list = field(o, "messages");
	ck_assert_uint_eq(json_object_array_length(list), CF_VOICE_KEPT);
	ck_assert_str_eq(text_of(json_object_array_get_idx(list, 0), "text"), longest);
	ck_assert_uint_lt(strlen(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN)), 16384);
	json_object_put(o);
}
END_TEST

/* Any 4 bytes of the key, as hex in either case or as they are. */
START_TEST(status__never_holds_a_piece_of_the_key)
{
	char *text = cf_status_json(&ops);
	ck_assert_ptr_nonnull(text);
	for (unsigned i = 0; i + 4 <= 64; i++) {
		char lower[9], upper[9];
		snprintf(lower, sizeof(lower), "%02x%02x%02x%02x", key[i], key[i + 1], key[i + 2], key[i + 3]);
		snprintf(upper, sizeof(upper), "%02X%02X%02X%02X", key[i], key[i + 1], key[i + 2], key[i + 3]);
		ck_assert_ptr_null(strstr(text, lower));
		ck_assert_ptr_null(strstr(text, upper));
		ck_assert_ptr_null(memmem(text, strlen(text), key + i, 4));
	}
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("status");
	TCase *t = tcase_create("status");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, status__says_what_is_open_and_how);
	tcase_add_test(t, status__of_a_plain_volume_has_no_header);
	tcase_add_test(t, status__counts);
	tcase_add_test(t, status__says_what_holds_the_daemon);
	tcase_add_test(t, status__has_the_last_messages);
	tcase_add_test(t, status__never_holds_a_piece_of_the_key);
	suite_add_tcase(s, t);
	return test_run(s);
}
