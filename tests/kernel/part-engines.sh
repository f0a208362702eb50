#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# The kernel's own crypto API, which is to be had here: the suite of all engines, and every recorded vector through afalg (the
# other engines have them outside). Each program's output is a log of its own, in which run-tests counts the checks.
export srcdir=$SRC CK_VERBOSITY=normal CK_DEFAULT_TIMEOUT=120 CK_TIMEOUT_MULTIPLIER=$SLOW
check() {
	local name=$1
	shift
	if timeout $((300 * SLOW)) env "$@" "$BUILD/tests/unit/$name" >"$OUT/$name.log" 2>&1 </dev/null; then
		echo "PASS: $name"
	else
		echo "FAIL: $name (exit $?)"
	fi
	cat "$OUT/$name.log"
}
check check_engine
check check_vectors CHECK_ENGINE=afalg
