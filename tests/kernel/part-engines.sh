#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# The unit tests of the engines, where the kernel's own crypto API is to be had: of the vectors only those of the engine that
# needs it, since the others were tested outside. Each program's output is a log of its own, in which run-tests counts the checks.
export srcdir=$SRC CK_VERBOSITY=normal
if grep -q '^#define HAVE_AFALG 1' "$BUILD/config.h"; then export CHECK_ENGINE=afalg; fi
for name in check_engine check_vectors; do
	if timeout 300 "$BUILD/tests/unit/$name" >"$OUT/$name.log" 2>&1 </dev/null; then
		echo "PASS: $name"
	else
		echo "FAIL: $name (exit $?)"
	fi
	cat "$OUT/$name.log"
done
