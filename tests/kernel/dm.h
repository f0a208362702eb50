/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* dm.h - the real dm-crypt, driven by ioctl: one loop device over a file in memory, one mapped device over that, and a
 * new crypt table in the mapped device for every case. Starting programs would cost more than all the encryption. */
#ifndef CRYPTFUSE_TEST_DM_H
#define CRYPTFUSE_TEST_DM_H

#include "cryptfuse/base.h"

#define DM_WHY 1024u       /* bytes of what the kernel logged */
#define DM_DEVICE "DEVICE" /* stands for the loop device in a table */

struct dm {
	int control, kmsg, loop;
	int backing;     /* the file under the loop device: ciphertext, seen by both sides */
	int node;        /* the mapped device, O_DIRECT: offsets, lengths and memory in whole logical blocks */
	char device[16]; /* the loop device as "7:0" */
	char target[16]; /* the version of the crypt target, "1.24.0" */
	char name[32];   /* of the mapped device */
};

/** dm_open - make the devices, empty; @backing_bytes: a multiple of 4096. Returns 0 or -errno, said on stderr. */
int dm_open(struct dm *d, const char *name, uint64_t backing_bytes) CF_MUST_CHECK;

/** dm_load - put a crypt table into the mapped device
 * @params: "CIPHER KEY IV_OFFSET DEVICE OFFSET …", where the first word DM_DEVICE becomes the loop device
 * @why: out, what the kernel logged if it refused. Returns 0, or what the kernel said: -EINVAL … */
int dm_load(struct dm *d, uint64_t sectors, const char *params, char why[static DM_WHY]) CF_MUST_CHECK;

/** dm_pread, dm_pwrite - through dm-crypt; all of it, or the program ends. */
void dm_pread(const struct dm *d, void *buf, size_t len, uint64_t off);
void dm_pwrite(const struct dm *d, const void *buf, size_t len, uint64_t off);

void dm_close(struct dm *d);

/** aligned_new - memory for dm_pread and dm_pwrite; ends the program if there is none. Free with free(). */
void *aligned_new(size_t len);

/** whole_pread, whole_pwrite - of a file; all of it, or the program ends. */
void whole_pread(int fd, void *buf, size_t len, uint64_t off);
void whole_pwrite(int fd, const void *buf, size_t len, uint64_t off);

#endif
