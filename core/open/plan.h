/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* plan.h - what the parts of core/open share: defaults, inputs, geometry, notes. Inside core/open only. */
#ifndef CRYPTFUSE_OPEN_PLAN_H
#define CRYPTFUSE_OPEN_PLAN_H

#include "cryptfuse/open.h"

#define CF_PLAIN_KEY_BITS 256u /* every cryptsetup's default for plain volumes */

/** What a plain volume is when the options leave it open. */
struct cf_plain_defaults {
	const char *release; /* of cryptsetup */
	const char *cipher, *hash;
};

/** cf_plain_defaults - by whose defaults are asked for. */
const struct cf_plain_defaults *cf_plain_defaults(enum cf_compat compat);

/** Options that mean nothing, or contradict, where something else says it. */
enum cf_given_set {
	CF_GIVEN_PLAIN = 1,    /* only a plain volume has them */
	CF_GIVEN_IN_TABLE = 2, /* a --table says them */
	CF_GIVEN_HEADER = 4,   /* only a volume with a header has them */
};

/** cf_given - the first option of @set that was given, by name; NULL none. */
const char *cf_given(const struct cf_open_opts *opts, enum cf_given_set set);

/** Where the key of a plain volume comes from. */
enum cf_key_source {
	CF_KEY_FROM_PASSPHRASE, /* the terminal, or a line of standard input */
	CF_KEY_FROM_STDIN,      /* -d -: standard input to its end, hashed */
	CF_KEY_FROM_FILE,       /* -d FILE: the key itself */
};
enum cf_key_source cf_key_source(const struct cf_open_opts *opts);

/** cf_plain_key_bytes - how long a key the options ask for. */
static inline size_t cf_plain_key_bytes(const struct cf_open_opts *opts)
{
	return (size_t)(opts->key_bits ? opts->key_bits : CF_PLAIN_KEY_BITS) / 8;
}

/** cf_plain_hash - the --hash in force. */
static inline const char *cf_plain_hash(const struct cf_open_opts *opts)
{
	return opts->hash ? opts->hash : cf_plain_defaults(opts->compat)->hash;
}

/** cf_plan_engine - engine and threads into a plan whose cipher is set, and whether it would open
 * Returns 0; errors as cf_cipher_check. */
int cf_plan_engine(const struct cf_open_opts *opts, struct cf_open_plan *plan, struct cf_err *err) CF_MUST_CHECK;

/** cf_open_input - open a key file or table for reading
 * @path: "-" is standard input   @what: "key file", for messages
 * Returns 0 and *fd, owned; -EACCES; -EINVAL cannot be opened, or is a directory or a terminal. */
int cf_open_input(const char *path, const char *what, int *fd, struct cf_err *err) CF_MUST_CHECK;

/** cf_open_note - one line through @ui. */
void cf_open_note(const struct cf_open_ui *ui, const char *fmt, ...) CF_PRINTF(2, 3);

/** cf_type_check - do the options go with the type? What needs no image. Returns 0; -EINVAL. */
int cf_type_check(const struct cf_open_opts *opts, struct cf_err *err) CF_MUST_CHECK;

/** cf_type_is_plain - without a look at the image: a table, --type plain or loopaes. */
static inline bool cf_type_is_plain(const struct cf_open_opts *opts)
{
	return opts->table_file || opts->type == CF_TYPE_PLAIN || opts->type == CF_TYPE_LOOPAES;
}

struct cf_extent;

/** cf_plan_loopaes - cipher and key of a loop-AES volume, both from its key file
 * @spec: mode, keys and their length are set   @key: out, owned, from cf_secret_alloc. Returns 0; -EINVAL no such key
 * file; -ENODEV an unknown cipher. */
int cf_plan_loopaes(const struct cf_open_opts *opts, struct cf_cipher_spec *spec, uint8_t **key,
					struct cf_err *err) CF_MUST_CHECK;

/** cf_plan_header - look for a header in the open image and plan by it
 * Returns 0 planned, o->header set; CF_PLAN_PLAIN there is none and the options describe a plain volume; -ENODEV there
 * is none (of that type); -EINVAL, -ENOTSUP … it cannot be opened: says why. */
#define CF_PLAN_PLAIN 1
int cf_plan_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				   struct cf_err *err) CF_MUST_CHECK;

/** cf_note_ignored_header - --type plain on an image that has a header. */
void cf_note_ignored_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
							const struct cf_extent *where);

/** cf_header_key - the volume key of a planned volume with a header; frees the header. As cf_open_key. */
int cf_header_key(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				  struct cf_err *err) CF_MUST_CHECK;

/** Where a volume is asked to lie in its image. */
struct cf_place {
	uint64_t image_bytes;
	uint64_t data_sector;
	uint64_t sectors; /* 0: all that remains */
	uint32_t du_bytes;
	const char *store; /* what it lies in, for messages; NULL: "image" */
};

/** cf_place_resolve - the volume's bytes, or why there is none
 * An explicit length that is a whole number of DUs goes with any data_sector; all that remains must be a whole number
 * of DUs by itself. Returns 0; -EINVAL beyond the image, or no whole number of DUs. Pure. */
int cf_place_resolve(const struct cf_place *p, uint64_t *off, uint64_t *bytes, struct cf_err *err) CF_MUST_CHECK;

#endif
