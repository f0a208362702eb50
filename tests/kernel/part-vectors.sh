#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 100 s
# Every recorded vector through afalg; the other engines have them outside.
. "$SRC/tests/kernel/unit.sh"
unit check_vectors CHECK_ENGINE=afalg
