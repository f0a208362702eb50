/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* base.h - the few words every module speaks: scope cleanup, must-check, directions, access.
 *
 * Holds no state and no code beyond these one-liners; a module's own vocabulary belongs in its own header. */
#ifndef CRYPTFUSE_BASE_H
#define CRYPTFUSE_BASE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** A function whose failure must be looked at: >= 0, or -errno. */
#define CF_MUST_CHECK __attribute__((warn_unused_result))
#define CF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/** CF_CLEANUP(f) T *p = NULL; calls f(&p) when the scope is left. f takes NULL-holding variables. */
#define CF_CLEANUP(f) __attribute__((cleanup(f)))

#define CF_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/** What a crypt call does. Encrypt and decrypt are always one function with a direction. */
enum cf_dir { CF_ENCRYPT, CF_DECRYPT };

/** How a volume or its backing may be used. */
enum cf_access { CF_READ_ONLY, CF_READ_WRITE };

/** What a range of the image that cannot be read is: an error, or zeros and a line on a list (--bad-sectors). */
enum cf_bad_sectors { CF_BAD_EIO, CF_BAD_ZERO };

/** Whether a discarded range is given back to the backing (--allow-discards). */
enum cf_discards { CF_DISCARDS_REFUSED, CF_DISCARDS_ALLOWED };

/** cf_take - move ownership out of a CF_CLEANUP variable: yields the pointer, leaves NULL. */
#define cf_take(ptr)                   \
	__extension__({                    \
		__auto_type cf_taken_ = (ptr); \
		(ptr) = NULL;                  \
		cf_taken_;                     \
	})

/** cf_freep - CF_CLEANUP helper for a variable that points to memory of malloc; NULL is "none". @var: its address. */
void cf_freep(void *var);

/** cf_close_fd - CF_CLEANUP helper for a descriptor; -1 is "none". */
void cf_close_fd(int *fd);

/** cf_close_dir - the same for a folder that is read; NULL is "none". */
void cf_close_dir(DIR **dir);

/** cf_close_stream - the same for a file of stdio that is read; NULL is "none". */
void cf_close_stream(FILE **f);

/** cf_seal_memory - what is in a memfd stays as it is: no more writes, no other size. Waits up to a second while the
 * kernel itself has a page in hand. 0 or -errno. */
int cf_seal_memory(int fd) CF_MUST_CHECK;

#endif
