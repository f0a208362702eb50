/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_open_alloc.c - opening a volume while memory is short: the n-th allocation of our own code, or of the arena's
 * pages, fails, n = 1, 2, 3 … until none does. Nothing may be held afterwards: no descriptor, no byte of the arena,
 * and, where the sanitizers look, none of the heap. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mman.h>

#include "cryptfuse/volume.h"
#include "test_open.h"

static unsigned left; /* counts down to the allocation that fails; 0: none does */
static bool fired;

static bool fails(void)
{
	if (!left || --left)
		return false;
	errno = ENOMEM;
	return true;
}

void *__real_malloc(size_t len);
void *__wrap_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__real_realloc(void *p, size_t len);
void *__wrap_realloc(void *p, size_t len);
int __real_posix_memalign(void **p, size_t align, size_t len);
int __wrap_posix_memalign(void **p, size_t align, size_t len);
void *__real_aligned_alloc(size_t align, size_t len);
void *__wrap_aligned_alloc(size_t align, size_t len);
void *__real_cf_secret_alloc(size_t len);
void *__wrap_cf_secret_alloc(size_t len);

void *__wrap_malloc(size_t len)
{
	return fails() ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
	return fails() ? NULL : __real_calloc(n, len);
}

void *__wrap_realloc(void *p, size_t len)
{
	return fails() ? NULL : __real_realloc(p, len);
}

int __wrap_posix_memalign(void **p, size_t align, size_t len)
{
	return fails() ? ENOMEM : __real_posix_memalign(p, align, len);
}

void *__wrap_aligned_alloc(size_t align, size_t len)
{
	return fails() ? NULL : __real_aligned_alloc(align, len);
}

void *__wrap_cf_secret_alloc(size_t len)
{
	return fails() ? NULL : __real_cf_secret_alloc(len);
}

static unsigned count_fds(void)
{
	unsigned n = 0;
	CF_CLEANUP(cf_close_dir) DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	return n;
}

static size_t arena_bytes(void)
{
	struct cf_secret_stats s;
	cf_secret_stats(&s);
	return s.in_use_bytes;
}

/* All that `open` does in core, and a read, while the @n-th allocation fails; 0: none does. (Check's own come after.)
 */
static int open_and_read(const struct cf_open_opts *opts, unsigned n)
{
	const struct cf_open_opts plain = as_plain(opts);
	struct said said = {.n_asked = 0};
	const struct cf_open_ui ui = {.ctx = &said, .note = hear, .warn = hear, .passphrase = ask};
	CF_CLEANUP(cf_opening_fini) struct cf_opening opening = {0};
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	struct cf_err err = {0};
	uint8_t byte;
	left = n;
	int rc = cf_open_plan(&plain, &ui, &opening, &err);
	if (rc == 0)
		rc = cf_open_key(&plain, &ui, &opening, &err);
	if (rc == 0)
		rc = cf_open_volume(&opening.plan, opening.key, &opening.image, &v, &err);
	fired = n && left == 0;
	left = 0;
	ck_assert_msg(rc == err.code && (rc == 0) == !*err.text, "%d without a word, or a word without it", rc);
	ck_assert_msg(rc == 0 || (rc == -ENOMEM && fired), "allocation %u: %d, %s", n, rc, err.text);
	if (rc)
		return rc;
	struct cf_worker *w = cf_volume_enter(v);
	ck_assert_int_eq(cf_volume_read(v, w, &byte, 1, 777), 1);
	cf_volume_leave(v, w);
	return 0;
}

static const struct {
	const char *engine, *cipher;
} shapes[] = {
	{NULL, "aes-xts-plain64"},         {"openssl", "aes-xts-plain64"}, {"openssl", "aes-cbc-essiv:sha256"},
	{"gcrypt", "serpent-xts-plain64"}, {"openssl", "aes-lrw-benbi"},
};

START_TEST(open__without_memory_holds_nothing)
{
	uint8_t key[64];
	unsigned n = 0;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)i;
	put_file(file, key, sizeof(key));
	const struct cf_open_opts opts = {.image = image,
									  .access = CF_READ_WRITE,
									  .cipher = shapes[_i].cipher,
									  .key_bits = strstr(shapes[_i].cipher, "lrw")   ? 384
												  : strstr(shapes[_i].cipher, "xts") ? 512
																					 : 256,
									  .key_file = file,
									  .engine = shapes[_i].engine,
									  .threads = 4};
	ck_assert_int_eq(open_and_read(&opts, 0), 0); /* what is made once, and kept, is there now */
	const unsigned fds = count_fds();
	const size_t bytes = arena_bytes();
	do {
		(void)open_and_read(&opts, ++n);
		ck_assert_uint_eq(count_fds(), fds);
		ck_assert_uint_eq(arena_bytes(), bytes);
	} while (fired);
	printf("# %s %s: faults injected %u\n", shapes[_i].engine ? shapes[_i].engine : "auto", shapes[_i].cipher, n - 1);
	fflush(stdout);
	ck_assert_uint_gt(n, 10);
}
END_TEST

int main(void)
{
	TCase *t = tcase_create("open");
	tcase_add_loop_test(t, open__without_memory_holds_nothing, 0, (int)CF_ARRAY_LEN(shapes));
	return test_open_run(suite_create("open without memory"), t);
}
