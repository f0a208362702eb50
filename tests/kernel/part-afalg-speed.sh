#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 30 s
# What batches are worth with AF_ALG. Without the constant-time AES of the kernel, which it prefers when it is loaded and
# whose slowness would hide the cost of a request.
[ -x "$BUILD/tests/kernel/afalg_speed" ] || { echo "built without the engine afalg" && exit 77; }
rmmod aes_ti 2>/dev/null
exec "$BUILD/tests/kernel/afalg_speed"
