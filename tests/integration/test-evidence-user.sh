#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# Evidence: whatever is tried on an image that is not to be changed, no byte of it, no time stamp and no attribute changes.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3 mkfs.ext4 e2fsck fuse2fs
. "$(dirname "$0")/evidence.sh"

evidence_holds
