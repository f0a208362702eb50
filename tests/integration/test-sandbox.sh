#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# The daemon that serves is in its box, every thread of it, with no descriptor but its own, and says so in the status;
# --no-sandbox leaves it out, and the status says that too (HAZARDS 1, 6).
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume
new_image "$S/img" $((1024 * 1024))
PLAIN=(--cipher aes-xts-plain64 --key-size 512 --hash sha512)

# A field of every thread of a process: each value once.
threads_say() { # PID FIELD
	sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/task/"*/status | sort -u
}

status_says() { # KEY VALUE
	grep -qx "$1: $2" "$S/status" || fail "no '$1: $2' in the status: $(grep ^sandbox "$S/status")"
}

open_vol "$M" "${PLAIN[@]}" "$S/img" <<<secret
head -c 100000 "$V" >/dev/null
"$CRYPTFUSE" status "$M" >"$S/status"
pid=$(daemon_pid "$V")
assert_eq "no_new_privs" 1 "$(threads_say "$pid" NoNewPrivs)"
for set in CapInh CapPrm CapEff CapAmb; do
	assert_eq "$set" 0000000000000000 "$(threads_say "$pid" $set)"
done
assert_eq "the longest core dump" "0 0" "$(awk '/^Max core file size/ { print $5, $6 }' "/proc/$pid/limits")"
status_says sandbox.on true
if grep -qx "sandbox.seccomp: true" "$S/status"; then
	assert_eq "seccomp" 2 "$(threads_say "$pid" Seccomp)"
elif grep -qw seccomp "$S/open.err"; then
	lacking "seccomp in this kernel or build"
else
	fail "without seccomp, and open said nothing: $(cat "$S/open.err")"
fi
close_vol "$M"

open_vol "$M" "${PLAIN[@]}" --no-sandbox "$S/img" <<<secret
"$CRYPTFUSE" status "$M" >"$S/status"
pid=$(daemon_pid "$V")
status_says sandbox.on false
status_says sandbox.seccomp false
status_says sandbox.landlock none
assert_eq "--no-sandbox: seccomp" "$(sed -n 's/^Seccomp:\t//p' /proc/self/status)" "$(threads_say "$pid" Seccomp)"
assert_eq "--no-sandbox: no_new_privs all the same" 1 "$(threads_say "$pid" NoNewPrivs)"
close_vol "$M"
