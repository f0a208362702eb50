# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# unit.sh - unit tests inside tests/kernel/run. Sourced by parts.

# unit NAME [VARIABLE=VALUE…] - run one; its output is a log of its own, in which run-tests counts the checks
unit() {
	local name=$1
	shift
	if timeout $((300 * SLOW)) env srcdir="$SRC" CK_VERBOSITY=normal CK_DEFAULT_TIMEOUT=120 CK_TIMEOUT_MULTIPLIER="$SLOW" "$@" \
		"$BUILD/tests/unit/$name" >"$OUT/$name.log" 2>&1 </dev/null; then
		echo "PASS: $name"
	else
		echo "FAIL: $name (exit $?)"
	fi
	cat "$OUT/$name.log"
}
