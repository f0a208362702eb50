#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# Makes ./configure from configure.ac in a fresh checkout.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install "$@"
