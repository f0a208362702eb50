/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* probe.h - what is inside a volume, as libblkid sees it. Runs in the parent, never in the daemon that serves the file
 * (HAZARDS 4). */
#ifndef CRYPTFUSE_PROBE_H
#define CRYPTFUSE_PROBE_H

#include "cryptfuse/base.h"

struct cf_err;

/** cf_probe_fd - describe the content of an open file or device
 * @text: out, one line without newline: "ext4, label inner", "gpt partition table"; "" when nothing known was found.
 * Names are made printable. Returns 1 found; 0 nothing known; -errno. */
int cf_probe_fd(int fd, char *text, size_t text_size, struct cf_err *err) CF_MUST_CHECK;

#endif
