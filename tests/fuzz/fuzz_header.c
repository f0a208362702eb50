/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_header.c - images with headers, through libcryptsetup: one judgement; what is shown prints; a volume that is
 * planned lies in its image, whatever the header says, and can be made and read at both ends. The mutator knows what
 * numbers look like: LUKS2's metadata is text. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/open/header.h"
#include "core/open/plan.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/text.h"
#include "cryptfuse/volume.h"
#include "image.h"

#define ITERATIONS_MAX 1000u /* of a key derivation that is tried: an input takes milliseconds */
#define MEMORY_MAX_KIB 64u

static void check_text(const char *text, size_t size)
{
	fuzz_must(memchr(text, '\0', size));
	for (size_t n; *text; text += n)
		fuzz_must((n = cf_text_char(text)) > 0);
}

static void check_info(struct cf_header *h, struct cf_header_info *info)
{
	static struct cf_header_info again;
	cf_header_info(h, info);
	cf_header_info(h, &again);
	fuzz_must(memcmp(info, &again, sizeof(again)) == 0);
	fuzz_must(info->kind > CF_HEADER_NONE && info->kind < CF_HEADER_KINDS && info->kind == cf_header_kind(h));
	check_text(info->uuid, sizeof(info->uuid));
	check_text(info->label, sizeof(info->label));
	check_text(info->cipher, sizeof(info->cipher));
	check_text(info->problem, sizeof(info->problem));
	fuzz_must(info->n_keyslots <= CF_KEYSLOTS_MAX);
	for (unsigned i = 0; i < info->n_keyslots; i++) {
		check_text(info->keyslot[i].kind, sizeof(info->keyslot[i].kind));
		check_text(info->keyslot[i].kdf, sizeof(info->keyslot[i].kdf));
		check_text(info->keyslot[i].cipher, sizeof(info->keyslot[i].cipher));
	}
}

/* ---- a volume of the null cipher, of the shape that was planned ---- */

static void read_ends(struct cf_volume *v)
{
	static uint8_t buf[CF_DU_MAX];
	const uint32_t du = cf_volume_du_bytes(v);
	struct cf_worker *w = cf_volume_enter(v);
	fuzz_must(cf_volume_read(v, w, buf, du, 0) == (ssize_t)du);
	fuzz_must(cf_volume_read(v, w, buf, du, cf_volume_bytes(v) - 1) == 1);
	fuzz_must(cf_volume_read(v, w, buf, du, cf_volume_bytes(v)) == 0);
	cf_volume_leave(v, w);
}

static void check_volume(const struct cf_open_plan *plan, struct cf_backing **b)
{
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	const struct cf_cipher_spec spec = {
		.cipher = "cipher_null", .mode = "ecb", .keycount = 1, .du_bytes = plan->cipher.du_bytes};
	const struct cf_cipher_opts cipher_opts = {.engine = "null", .n_workers = 1};
	const struct cf_volume_opts opts = {.data_off = plan->data_off,
										.bytes = plan->bytes,
										.n_workers = 1,
										.segment = plan->segment,
										.n_segments = plan->n_segments};
	struct cf_err err = {0};
	fuzz_must(cf_cipher_new(&c, &spec, NULL, &cipher_opts, NULL) == 0);
	int rc = cf_volume_new(&v, b, &c, &opts, &err);
	fuzz_judged(rc, &err);
	if (!rc)
		read_ends(v);
}

static void check_plan(const struct cf_open_plan *plan, uint64_t image_bytes)
{
	uint64_t end = 0;
	fuzz_must(cf_units_du_valid(plan->cipher.du_bytes) && plan->bytes && plan->bytes % plan->cipher.du_bytes == 0);
	check_text(plan->uuid, sizeof(plan->uuid));
	if (!plan->n_segments)
		fuzz_must(plan->data_off <= image_bytes && plan->bytes <= image_bytes - plan->data_off);
	for (unsigned i = 0; i < plan->n_segments; i++) {
		const struct cf_segment *s = &plan->segment[i];
		fuzz_must(s->off == end && s->bytes);
		if (s->kind == CF_SEGMENT_CRYPT)
			fuzz_must(s->data_off <= image_bytes && s->bytes <= image_bytes - s->data_off);
		end += s->bytes;
	}
	fuzz_must(!plan->n_segments || end == plan->bytes);
}

/* ---- keys ---- */

static bool is_cheap(struct cf_header *h)
{
	for (int i = 0; cf_header_is_luks(h) && i < crypt_keyslot_max(crypt_get_type(h->cd)); i++) {
		struct crypt_pbkdf_type kdf = {0};
		if (crypt_keyslot_status(h->cd, i) >= CRYPT_SLOT_ACTIVE && crypt_keyslot_get_pbkdf(h->cd, i, &kdf) == 0 &&
			(kdf.iterations > ITERATIONS_MAX || kdf.max_memory_kb > MEMORY_MAX_KIB))
			return false;
	}
	return cf_header_is_luks(h);
}

static void unlock(struct cf_header *h)
{
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf pass = {.data = cf_secret_alloc(5), .len = 5};
	struct cf_err err = {0};
	memcpy(pass.data, "first", 5);
	int rc = cf_header_unlock(h, CRYPT_ANY_SLOT, &pass, &key, &err);
	fuzz_judged(rc, &err);
	fuzz_must((rc >= 0) == (key != NULL));
}

static int load(struct cf_header **h, struct cf_backing *b, struct cf_err *err)
{
	int rc = cf_header_load(h, CF_HEADER_NONE, b, 0, b->bytes, NULL, err);
	if (rc != -ENOENT)
		fuzz_judged(rc, err);
	fuzz_must((rc == 0) == (*h != NULL));
	return rc;
}

/* ---- numbers in a text ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t len, size_t max_len) __attribute__((weak)); /* libFuzzer's own */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max_len, unsigned seed);

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

/* The first run of two digits or more at or after @from, and its end; false: none. */
static bool find_number(const uint8_t *data, size_t len, size_t from, size_t *start, size_t *end)
{
	for (*start = from; *start + 1 < len; ++*start)
		if (is_digit(data[*start]) && is_digit(data[*start + 1])) {
			for (*end = *start; *end < len; ++*end)
				if (!is_digit(data[*end]))
					break;
			return true;
		}
	return false;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max_len, unsigned seed)
{
	const uint8_t random[] = {(uint8_t)(seed >> 8), (uint8_t)(seed >> 16)};
	struct fuzz_in in = {random, sizeof(random)};
	char digits[24];
	size_t start, end;
	if (seed % 2 || !len || !find_number(data, len, seed / 2 % len, &start, &end))
		return LLVMFuzzerMutate(data, len, max_len);
	const size_t n = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)fuzz_odd_number(&in));
	if (len - (end - start) + n > max_len)
		return LLVMFuzzerMutate(data, len, max_len);
	memmove(data + start + n, data + end, len - end);
	memcpy(data + start, digits, n);
	return len - (end - start) + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	struct fuzz_image image;
	static struct cf_open_plan plan;
	static struct cf_header_info info;
	struct cf_err first = {0}, second = {0}, planned = {0};
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL, *again = NULL;
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	fuzz_image(&in, &image);
	int rc = cf_backing_from_fd(&b, image.fd, CF_READ_ONLY, &first);
	fuzz_judged(rc, &first);
	if (rc) {
		close(image.fd);
		return 0;
	}
	rc = load(&h, b, &first);
	fuzz_must(load(&again, b, &second) == rc && !strcmp(first.text, second.text));
	if (rc)
		return 0;
	check_info(h, &info);
	plan = (struct cf_open_plan){0};
	rc = cf_header_plan(h, 0, &plan, &planned);
	fuzz_judged(rc, &planned);
	fuzz_must(!*info.problem || rc == -ENOTSUP);
	if (!rc)
		check_plan(&plan, b->bytes);
	if (!rc && (image.flags & FUZZ_MORE) && is_cheap(h))
		unlock(h);
	if (!rc)
		check_volume(&plan, &b);
	return 0;
}
