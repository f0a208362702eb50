#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 60 s
# The suite of all engines with the kernel's own crypto API, which is to be had here. What the other engines do alone was tested
# outside.
. "$SRC/tests/kernel/unit.sh"
unit check_engine CHECK_ENGINE=afalg
