/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* open.h - from options to a volume, in three steps.
 *
 * cf_open_plan and cf_open_key run in the parent (they may prompt through the callbacks); cf_open_volume runs in the
 * daemon, which got plan, key and descriptor over a socketpair. Core prints nothing: what is to be said goes through
 * struct cf_open_ui. */
#ifndef CRYPTFUSE_OPEN_H
#define CRYPTFUSE_OPEN_H

#include <limits.h>
#include <stdbool.h>

#include "cryptfuse/backing.h"
#include "cryptfuse/cipher.h"
#include "cryptfuse/image.h"
#include "cryptfuse/key.h"
#include "cryptfuse/segment.h"

struct cf_header;
struct cf_volume;

/** Whose defaults fill the gaps of a plain volume. */
enum cf_compat { CF_COMPAT_2_7, CF_COMPAT_2_6 };

/** What kind of volume is asked for. */
enum cf_type {
	CF_TYPE_AUTO, /* what the header says; plain if there is none and the cipher was given */
	CF_TYPE_PLAIN,
	CF_TYPE_LUKS, /* LUKS1 or LUKS2 */
	CF_TYPE_LUKS1,
	CF_TYPE_LUKS2,
	CF_TYPE_BITLK,
	CF_TYPE_FVAULT2,
	CF_TYPE_LOOPAES, /* no header either: what the key file says */
};

/** What the command line said; strings are borrowed. Zero or NULL is "not given" throughout. */
struct cf_open_opts {
	const char *image;
	const char *partition;             /* --partition: number, name or PARTUUID; offsets and sizes are within it */
	const struct cf_image *open_image; /* it is open already, and @image only its name; NULL: open it */
	enum cf_type type;
	const char *header_file; /* --header: where the header of a LUKS volume is kept apart from its data */
	const char *table_file;  /* --table; then the plain options below must not be given */
	const char *cipher, *hash;
	uint64_t key_bits;
	enum cf_compat compat;
	uint64_t offset_sectors, skip_sectors;
	uint64_t size_sectors;      /* --size */
	uint64_t device_size_bytes; /* --device-size */
	uint64_t sector_size_bytes;
	bool iv_large_sectors;
	enum cf_access access;
	enum cf_lock lock;
	enum cf_image_cache image_cache;
	enum cf_discards discards;
	enum cf_bad_sectors bad_sectors;
	const char *key_file; /* "-": standard input, to its end */
	uint64_t keyfile_size_bytes, keyfile_offset_bytes;
	const char *key_slot;           /* --key-slot, a number as text: only this one is tried */
	const char *volume_key_file;    /* the volume key itself; "-": standard input */
	const char *volume_key_keyring; /* the same, in the kernel's keyring: "%user:NAME", "NAME" or a serial number */
	uint64_t tries;                 /* how often a wrong passphrase may be replaced by another; 0: once */
	const char *journal;            /* --journal: a file; NULL none */
	uint64_t journal_bytes;
	const char *engine;
	uint64_t threads; /* that may wait for the backing at once: 1 to CF_WORKERS_MAX */
};

/** A passphrase came from somebody who can give another one if it is wrong. */
#define CF_MAY_ASK_AGAIN 1

#define CF_UUID_TEXT 64u
#define CF_COMMAND_MAX (4u * 4096u + 1024u) /* bytes: some paths, and the rest */

/** How core speaks to a person. */
struct cf_open_ui {
	void *ctx;
	/** One line of information or warning for stderr. */
	void (*note)(void *ctx, const char *text);
	/** The same, for what is said even to who wants no notes: a wrong guess here would look like wrong data. */
	void (*warn)(void *ctx, const char *text);
	/** Get a passphrase: from the terminal, or a line of standard input when it is not one.
	 * @attempt: 1, then one more each time a passphrase was wrong; 0: a wrong one cannot be told. Returns 0;
	 * CF_MAY_ASK_AGAIN; -errno. */
	int (*passphrase)(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
					  struct cf_err *err);
};

/** What is to be opened, all numbers resolved: plain data, sent to the daemon as it is. */
struct cf_open_plan {
	struct cf_cipher_spec cipher;
	uint64_t data_off; /* bytes */
	uint64_t bytes;
	enum cf_access access;
	enum cf_lock lock; /* CF_LOCK: nobody else changes the image while it is open */
	enum cf_image_cache image_cache;
	enum cf_discards discards;
	enum cf_bad_sectors bad_sectors;
	char engine[CF_NAME_MAX]; /* "" auto */
	unsigned n_workers;       /* threads that may wait */
	unsigned n_permits;       /* of them, how many may compute at once: one a CPU (HAZARDS 17) */
	unsigned n_segments; /* 0: one piece of @bytes at @data_off; else they count, and @data_off is that of the first */
	struct cf_segment segment[CF_SEGMENTS_MAX];
	char type[CF_NAME_MAX];  /* for the status: "plain", "luks2", "bitlk" … */
	char uuid[CF_UUID_TEXT]; /* of the header; "" none */
	int keyslot;             /* that was used; -1 none */
	char journal[PATH_MAX];  /* absolute; "" none, else the image has it */
	unsigned partition;      /* of a disk image, that was found without --partition; 0 none */
	/* Options that open it in the same way again: a NUL behind each word, an empty word at the end. */
	char command[CF_COMMAND_MAX];
};

/** A volume on its way to be opened: what is known so far, and what is held for it. Lives in the parent. */
struct cf_opening {
	struct cf_open_plan plan;
	struct cf_image image;    /* open and locked */
	uint8_t *key;             /* from cf_secret_alloc, plan.cipher.key_bytes long; NULL not yet, or none needed */
	struct cf_header *header; /* owned; NULL: a plain volume, or the key is there */
	bool new_journal;         /* plan.journal was made just now; set to false once it is in use */
};

/** cf_opening_fini - close the image, wipe the key, free the header, remove a journal that came to nothing; CF_CLEANUP
 * helper, idempotent. */
void cf_opening_fini(struct cf_opening *o);

/** cf_open_plan - judge the options, open and lock the image, work out the geometry
 * @o: out; with a --table its key is there already. Everything that can be refused without a key is refused here,
 * before a prompt. Says through @ui which defaults were used, what trailing bytes are not part of the volume, which
 * given options have no effect. Returns 0; -EINVAL, -ENODEV, -EACCES, -EBUSY … with cryptsetup's meaning
 * (cf_err_exit_code), and nothing is held then. */
int cf_open_plan(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				 struct cf_err *err) CF_MUST_CHECK;

/** cf_open_key - read or ask for the key of a planned volume, unless its table had it. Returns 0; -EINVAL; -EPERM no
 * passphrase; -EIO. */
int cf_open_key(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				struct cf_err *err) CF_MUST_CHECK;

/** cf_open_command - fill in plan->command; it stays empty where the words do not fit. Once the key is there, so that
 * it can name the keyslot. */
void cf_open_command(const struct cf_open_opts *opts, struct cf_open_plan *plan);

/** cf_open_command_add - after cf_open_command: one more option of the caller's own
 * @option: "--fs"   @value: NULL it takes none. What does not fit leaves the command empty. */
void cf_open_command_add(struct cf_open_plan *plan, const char *option, const char *value);

/** cf_open_volume_opts - the part of a plan that a volume is made of; @plan is borrowed for as long as it. */
struct cf_volume_opts cf_open_volume_opts(const struct cf_open_plan *plan);

/** cf_open_volume - make the volume: backing, cipher (with its self-test), volume
 * @key, @image: borrowed; the lock goes on with the volume's own copies of the descriptors. */
int cf_open_volume(const struct cf_open_plan *plan, const uint8_t *key, const struct cf_image *image,
				   struct cf_volume **out, struct cf_err *err) CF_MUST_CHECK;

#endif
