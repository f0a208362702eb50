#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 45 s
# 256 MiB through dm-crypt and through cryptfuse, with batches and without: the same ciphertext.
exec "$BUILD/tests/kernel/bulk"
