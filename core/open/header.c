/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header.c - headers through libcryptsetup, which sees sealed copies only.
 *
 * The library names what it reads in two steps: a copy of the header loads, and then says where the keyslots lie; the
 * copy with those is what stays. What of it cannot be read is zeros in the copy: there are second headers, checksums
 * and other keyslots, and nothing is written back. What the library prints is caught: its last line is part of our
 * message. One thread, in the parent of the daemon. */
#include "config.h"

#include "header.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/text.h"
#include "plan.h"

static const struct cf_header_format *const formats[] = {&cf_header_luks, &cf_header_bitlk, &cf_header_fvault2};

const char *cf_header_kind_name(enum cf_header_kind kind)
{
	static const char *const names[CF_HEADER_KINDS] = {
		[CF_HEADER_NONE] = "",           [CF_HEADER_LUKS1] = "LUKS1",        [CF_HEADER_LUKS2] = "LUKS2",
		[CF_HEADER_BITLK] = "BitLocker", [CF_HEADER_FVAULT2] = "FileVault2",
	};
	return names[kind];
}

enum cf_header_kind cf_header_kind(const struct cf_header *h)
{
	return h->kind;
}

int cf_header_read(const struct cf_header_store *s, uint64_t at, void *buf, size_t len)
{
	if (at > s->range.bytes || len > s->range.bytes - at)
		return -EINVAL;
	return cf_backing_read_full(s->backing, buf, len, s->range.off + at);
}

/* ---- the library's voice ---- */

static void keep_last(char last[static CF_ERR_TEXT], const char *msg)
{
	size_t len = strcspn(msg, "\n");
	while (len && (msg[len - 1] == '.' || msg[len - 1] == ' '))
		len--;
	if (len)
		snprintf(last, CF_ERR_TEXT, "%.*s", (int)len, msg);
}

static void hear(int level, const char *msg, void *ctx)
{
	struct cf_header *h = ctx;
	if (level == CRYPT_LOG_ERROR)
		keep_last(h->said, msg);
}

static void hear_nothing(int level, const char *msg, void *ctx)
{
	(void)level;
	(void)msg;
	(void)ctx;
}

struct dump {
	char *text;
	size_t size;
};

static void collect(int level, const char *msg, void *ctx)
{
	struct dump *d = ctx;
	size_t len = strlen(d->text);
	if (level == CRYPT_LOG_NORMAL)
		snprintf(d->text + len, d->size - len, "%s", msg);
}

void cf_header_dump(struct cf_header *h, char *text, size_t size)
{
	struct dump d = {.text = text, .size = size};
	text[0] = '\0';
	crypt_set_log_callback(h->cd, collect, &d);
	if (crypt_dump(h->cd) < 0)
		text[0] = '\0';
	crypt_set_log_callback(h->cd, hear, h);
}

/* ---- load ---- */

void cf_header_free(struct cf_header **header)
{
	struct cf_header *h = *header;
	if (!h)
		return;
	crypt_free(h->cd);
	cf_close_fd(&h->copy);
	free(h);
	*header = NULL;
}

int cf_header_load_fd(struct cf_header *h, int fd, const char *type, struct crypt_device **out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	crypt_set_log_callback(NULL, hear_nothing, NULL);
	crypt_token_external_disable();
	int rc = crypt_init(out, path);
	if (rc)
		return rc;
	crypt_set_log_callback(*out, hear, h);
	crypt_metadata_locking(*out, 0); /* nobody else has this copy */
	return crypt_load(*out, type, NULL);
}

/* Let the library load what is in these areas. */
static int load_copy(struct cf_header *h, const struct cf_header_store *s, const struct cf_areas *areas,
					 struct cf_err *err)
{
	crypt_free(h->cd);
	h->cd = NULL;
	cf_close_fd(&h->copy);
	h->lost = 0;
	int rc = cf_window_range_fd(s->backing, &s->range, areas->at, areas->n, &h->lost, &h->copy, err);
	return rc ? rc : cf_header_load_fd(h, h->copy, h->format->type, &h->cd);
}

/* Returns the library's answer; @why is set where the image itself could not be read. */
static int load_format(struct cf_header *h, const struct cf_header_format *f, const struct cf_header_store *s,
					   const uint8_t first[static CF_SIGNATURE_BYTES], struct cf_err *why)
{
	struct cf_areas areas = {0};
	h->format = f;
	h->said[0] = '\0';
	int rc = f->areas(s, first, &areas);
	if (rc && rc != -EINVAL)
		return cf_fail(why, rc, "%s", strerror(-rc));
	if (!rc)
		rc = load_copy(h, s, &areas, why);
	if (rc || !f->key_areas)
		return rc;
	f->key_areas(h->cd, &areas);
	return load_copy(h, s, &areas, why);
}

void cf_header_lost(const struct cf_header *h, char text[static CF_LOST_TEXT])
{
	text[0] = '\0';
	if (h->lost)
		snprintf(text, CF_LOST_TEXT, "; %llu bytes of the header cannot be read", (unsigned long long)h->lost);
}

static int damaged(const struct cf_header *h, struct cf_err *err)
{
	char lost[CF_LOST_TEXT];
	cf_header_lost(h, lost);
	return cf_fail(err, -EINVAL, "the %s header is damaged, or of a kind that is not known%s%s%s", h->format->name,
				   lost, *h->said ? "; libcryptsetup says: " : "", h->said);
}

/* What cannot be loaded is no header, unless the first bytes leave no doubt. */
static int load_any(struct cf_header *h, const struct cf_header_store *s, struct cf_err *err)
{
	uint8_t first[CF_SIGNATURE_BYTES];
	int rc = cf_header_read(s, 0, first, sizeof(first));
	if (rc)
		return rc == -EINVAL ? -ENOENT : cf_fail(err, -EIO, "the header cannot be read: %s", strerror(-rc));
	for (size_t i = 0; i < CF_ARRAY_LEN(formats); i++) {
		enum cf_suspicion suspicion = formats[i]->suspect(first);
		struct cf_err why = {0};
		if (suspicion == CF_SUSPECT_NO)
			continue;
		rc = load_format(h, formats[i], s, first, &why);
		if (!rc)
			return 0;
		if (why.code || rc == -ENOMEM)
			return cf_fail(err, rc == -ENOMEM ? rc : -EIO, "the header cannot be read: %s",
						   why.code ? why.text : strerror(-rc));
		if (suspicion == CF_SUSPECT_YES)
			return damaged(h, err);
	}
	return -ENOENT;
}

int cf_header_load(struct cf_header **out, enum cf_header_kind kind, struct cf_backing *data, uint64_t off,
				   uint64_t bytes, struct cf_backing *detached, struct cf_err *err)
{
	const struct cf_header_store s = {
		.backing = detached ? detached : data,
		.range = {.off = detached ? 0 : off, .bytes = detached ? detached->bytes : bytes},
	};
	CF_CLEANUP(cf_header_free) struct cf_header *h = calloc(1, sizeof(*h));
	if (!h)
		return cf_fail(err, -ENOMEM, "out of memory");
	h->copy = -1;
	h->off = off;
	h->bytes = bytes;
	h->place = detached ? CF_HEADER_DETACHED : CF_HEADER_IN_FRONT;
	int rc = load_any(h, &s, err);
	if (rc)
		return rc;
	h->kind = h->format->kind(h->cd);
	if (kind != CF_HEADER_NONE && h->kind != kind)
		return -ENOENT;
	*out = cf_take(h);
	return 0;
}

const char *cf_header_suspect(struct cf_backing *b, uint64_t off, uint64_t bytes)
{
	const struct cf_header_store s = {.backing = b, .range = {.off = off, .bytes = bytes}};
	uint8_t first[CF_SIGNATURE_BYTES];
	if (cf_header_read(&s, 0, first, sizeof(first)))
		return NULL;
	for (size_t i = 0; i < CF_ARRAY_LEN(formats); i++)
		if (formats[i]->suspect(first) == CF_SUSPECT_YES)
			return formats[i]->name;
	return NULL;
}

/* ---- what it says ---- */

static void put_text(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text ? text : "");
}

/* Labels and names come from whoever made the header. */
static void make_info_printable(struct cf_header_info *info)
{
	cf_text_make_printable(info->uuid);
	cf_text_make_printable(info->label);
	cf_text_make_printable(info->cipher);
	cf_text_make_printable(info->problem);
	for (unsigned i = 0; i < info->n_keyslots; i++) {
		cf_text_make_printable(info->keyslot[i].kind);
		cf_text_make_printable(info->keyslot[i].kdf);
		cf_text_make_printable(info->keyslot[i].cipher);
	}
}

void cf_header_info(struct cf_header *h, struct cf_header_info *out)
{
	struct cf_layout layout;
	struct cf_err err = {0};
	*out = (struct cf_header_info){.kind = h->kind, .key_bits = (uint32_t)cf_header_key_bytes(h) * 8};
	put_text(out->uuid, sizeof(out->uuid), crypt_get_uuid(h->cd));
	h->format->describe(h, out);
	if (h->format->layout(h, h->bytes, &layout, &err) == 0) {
		cf_spec_format_cipher(&layout.cipher, out->cipher, sizeof(out->cipher));
		out->du_bytes = layout.cipher.du_bytes;
		out->data_off = h->off + layout.data_off;
	} else if (!*out->problem) {
		put_text(out->problem, sizeof(out->problem), err.text);
	}
	make_info_printable(out);
}

/* ---- where the volume lies ---- */

static int place_in_segments(const struct cf_header *h, struct cf_layout *l, uint64_t sectors,
							 struct cf_open_plan *plan, struct cf_err *err)
{
	struct cf_segment *last = &l->segment[l->n_segments - 1];
	if (sectors && sectors != (last->off + last->bytes) / CF_SECTOR_BYTES)
		return cf_fail(err, -EINVAL, "--size and --device-size cannot be given: the volume is in several pieces");
	if (plan->discards == CF_DISCARDS_ALLOWED)
		return cf_fail(err, -EINVAL, "--allow-discards cannot be given: the volume is in several pieces");
	for (unsigned i = 0; i < l->n_segments; i++) {
		plan->segment[i] = l->segment[i];
		if (plan->segment[i].kind == CF_SEGMENT_CRYPT)
			plan->segment[i].data_off += h->off;
	}
	plan->n_segments = l->n_segments;
	plan->data_off = plan->segment[0].data_off;
	plan->bytes = last->off + last->bytes;
	return 0;
}

static int place_in_one(const struct cf_header *h, const struct cf_layout *l, uint64_t sectors,
						struct cf_open_plan *plan, struct cf_err *err)
{
	const struct cf_place place = {
		.image_bytes = h->bytes,
		.data_sector = l->data_off / CF_SECTOR_BYTES,
		.sectors = sectors ? sectors : l->bytes / CF_SECTOR_BYTES,
		.du_bytes = l->cipher.du_bytes,
	};
	int rc = cf_place_resolve(&place, &plan->data_off, &plan->bytes, err);
	if (rc)
		return rc;
	plan->cipher.iv_offset = l->iv_offset;
	plan->data_off += h->off;
	return 0;
}

void cf_header_check(struct cf_header *h, char problem[static CF_ERR_TEXT])
{
	CF_CLEANUP(cf_freep) struct cf_open_plan *plan = calloc(1, sizeof(*plan));
	struct cf_layout layout;
	struct cf_err err = {0};
	if (*problem || !plan)
		return;
	if (h->format->layout(h, h->bytes, &layout, &err) == 0 && h->place == CF_HEADER_IN_FRONT &&
		layout.data_off >= h->bytes)
		put_text(problem, CF_ERR_TEXT,
				 "its data is not here: the image is cut off, or it is a header that was kept apart, for --header");
	else if (cf_header_plan(h, 0, plan, &err) != 0 || cf_cipher_check(&plan->cipher, NULL, &err) != 0)
		put_text(problem, CF_ERR_TEXT, err.text);
}

int cf_header_plan(struct cf_header *h, uint64_t sectors, struct cf_open_plan *plan, struct cf_err *err)
{
	struct cf_header_info info;
	struct cf_layout layout = {0};
	cf_header_info(h, &info);
	if (*info.problem)
		return cf_fail(err, -ENOTSUP, "the %s volume cannot be opened: %s", cf_header_kind_name(h->kind), info.problem);
	int rc = h->format->layout(h, h->bytes, &layout, err);
	if (rc)
		return rc;
	plan->cipher = layout.cipher;
	snprintf(plan->uuid, sizeof(plan->uuid), "%s", info.uuid);
	return layout.n_segments ? place_in_segments(h, &layout, sectors, plan, err)
							 : place_in_one(h, &layout, sectors, plan, err);
}
