#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# suspend and resume: who uses the volume waits and goes on, another key is refused, status answers meanwhile, and every end
# of a suspended volume is clean.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

M=$S/m V=$S/m/volume IMG=$S/img BYTES=$((4 << 20)) PASS='the right one'
KEY=$(printf %s "$PASS" | sha512sum | cut -d' ' -f1)
new_image "$IMG" $BYTES
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $BYTES >"$S/plain"
OPTS=(--cipher aes-xts-plain64 --key-size 512 --hash sha512)
open_it() { open_vol "$M" -q "${OPTS[@]}" "$@" "$IMG" <<<"$PASS"; }
suspend() { timeout -k 5 100 "$CRYPTFUSE" suspend "$M" || fail "suspend: exit $?"; }
resume() { timeout -k 5 100 "$CRYPTFUSE" resume "$M" <<<"$PASS" || fail "resume: exit $?"; }
# of the status of a suspended volume
waiting() { "$CRYPTFUSE" status "$M" | sed -n "s/^suspended.waiting_$1: //p"; }
waits() { [ "$(waiting "$1")" -ge 1 ]; }
waits_no() { [ "$(waiting "$1")" = 0 ]; }
piece() { head -c $(($1 + $2)) "$S/plain" | tail -c "$2"; }

# ---- a reader and a writer wait, what needs no key does not, and all goes on ----
open_it
suspend
assert_match "status" '^suspended.waiting_reads: 0$' "$("$CRYPTFUSE" status "$M")"
timeout 100 head -c 100000 "$V" >"$S/read" &
reader=$!
wait_for "the reader to wait" waits reads
printf 'written while suspended' | timeout 100 "$CRYPTFUSE_TOOLS/fileop" pwrite 2000000 "$V" >"$S/write.out" &
writer=$!
wait_for "the writer to wait" waits writes
timeout 20 ls -l "$M" >/dev/null || fail "ls of a suspended volume: $?"
assert_eq "its size" $BYTES "$(timeout 20 stat -c %s "$V")"
timeout 20 stat -f "$V" >/dev/null || fail "stat -f of a suspended volume: $?"
assert_match "the xattr" waiting_reads "$(timeout 20 "$CRYPTFUSE_TOOLS/fileop" getxattr user.cryptfuse.status "$V")"
assert_match "the list" "^$M: $IMG" "$("$CRYPTFUSE" status)"
resume
wait $reader || fail "the reader that waited: $?"
wait $writer || fail "the writer that waited: $?"
assert_eq "what the writer is told" 23 "$(cat "$S/write.out")"
head -c 100000 "$S/plain" >"$S/want"
assert_same "what the reader got" "$S/want" "$S/read"
assert_eq "what the writer wrote" 'written while suspended' "$(fileop pread 2000000 23 "$V")"
assert_match "status" '^suspended: none$' "$("$CRYPTFUSE" status "$M")"

# ---- twice, and another key ----
assert_exit 1 'is not suspended' "$CRYPTFUSE" resume "$M"
suspend
assert_exit 1 'suspended already' "$CRYPTFUSE" suspend "$M"
rc=0
timeout 60 "$CRYPTFUSE" resume "$M" 2>"$S/wrong.err" <<<'a wrong one' || rc=$?
assert_eq "exit of a wrong passphrase" 2 $rc
assert_match "a wrong passphrase" 'not the key that the volume was opened with' "$(cat "$S/wrong.err")"
assert_match "still suspended" '^suspended.waiting_reads: 0$' "$("$CRYPTFUSE" status "$M")"
resume
piece 0 4096 >"$S/want" && head -c 4096 "$V" >"$S/read"
assert_same "after a wrong key and the right one" "$S/want" "$S/read"

# ---- who waits can be killed: a write is taken back ----
suspend
head -c 4096 /dev/zero | "$CRYPTFUSE_TOOLS/fileop" pwrite 900000 "$V" >"$S/write.out" 2>"$S/write.err" &
writer=$!
wait_for "the writer to wait" waits writes
kill -TERM $writer
wait $writer && fail "the writer was not killed"
wait_for "its write to be answered" waits_no writes
resume
piece 900000 4096 >"$S/want" && fileop pread 900000 4096 "$V" >"$S/read"
assert_same "where the killed writer would have written" "$S/want" "$S/read"
close_vol "$M"

# ---- close while suspended: nothing is lost when nobody waits ----
open_it
printf 'before suspend' | fileop pwrite 100 "$V" >/dev/null
suspend
close_vol "$M"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 512 >"$S/piece"
assert_eq "written before suspend" 'before suspend' "$(fileop pread 100 14 "$S/piece")"

# ---- who waits gets an error, and close says so ----
open_it
suspend
rm -f "$S/write.out"
printf 'too late' | timeout 100 "$CRYPTFUSE_TOOLS/fileop" pwrite 5000 "$V" >"$S/write.out" 2>"$S/write.err" &
writer=$!
wait_for "the writer to wait" waits writes
assert_exit 1 '1 writes that waited for the key are lost' "$CRYPTFUSE" close "$M"
wait $writer || :
assert_eq "what the writer is told" EIO "$(cat "$S/write.out")"
assert_gone "$M"

# ---- one who keeps the file open: busy, and it can still be resumed ----
open_it
exec 9<"$V"
suspend
assert_exit 5 busy "$CRYPTFUSE" close "$M"
resume
piece 8192 512 >"$S/want" && fileop pread 8192 512 "$V" >"$S/read"
assert_same "after a close that was busy" "$S/want" "$S/read"
exec 9<&-
close_vol "$M"

# ---- SIGTERM while suspended, with somebody who waits ----
open_it --stop-timeout 1
pid=$(daemon_pid "$V")
suspend
timeout 100 dd if="$V" of="$S/read" bs=4k count=1 skip=9 status=none 2>"$S/dd.err" &
reader=$!
wait_for "the reader to wait" waits reads
kill -TERM "$pid"
wait_for "the daemon to end" gone "$M"
if wait $reader; then fail "a read without a key succeeded"; fi

# ---- the daemon is killed while suspended: its helper takes mount and socket away ----
open_it
socket=$(ls /tmp/cryptfuse-"$(id -u)"/"$(mountpoint -d "$M")".sock)
pid=$(daemon_pid "$V")
suspend
timeout 100 head -c 10 "$V" >"$S/read" 2>"$S/head.err" &
reader=$!
wait_for "the reader to wait" waits reads
kill -KILL "$pid"
wait_for "the helper to unmount" gone "$M"
if wait $reader; then fail "a read without a daemon succeeded"; fi
wait_for "the socket to go" test ! -e "$socket"

# ---- its helper too: close cleans up ----
open_it
pid=$(daemon_pid "$V")
suspend
for p in $(daemons_of "$M"); do
	[ "$p" = "$pid" ] || kill -KILL "$p"
done
kill -KILL "$pid"
wait_for "the processes to die" unserved "$M"
close_vol "$M"
