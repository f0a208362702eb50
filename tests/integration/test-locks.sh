#!/bin/bash
# needs: user
# One writer, or any number of readers; --shared takes no lock and meets none.
. "$(dirname "$0")/lib.sh"
need_user "$@"

IMG=$S/img
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$(random_hex 64)" 0 0
mkdir "$S/b"
try() { assert_exit 5 "$IMG" "$CRYPTFUSE" open --table "$S/table" "$@" "$IMG" "$S/b"; assert_gone "$S/b"; }

open_vol "$S/a" --table "$S/table" "$IMG" </dev/null
try
try --readonly
open_vol "$S/b" --shared --table "$S/table" "$IMG" </dev/null
close_vol "$S/b"
try # closing the one without a lock has not dropped the other's
close_vol "$S/a"

open_vol "$S/a" --readonly --table "$S/table" "$IMG" </dev/null
open_vol "$S/b" --readonly --table "$S/table" "$IMG" </dev/null
assert_same "two readers" "$S/a/volume" "$S/b/volume"
close_vol "$S/b"
try
close_vol "$S/a"

# the daemon holds the lock, not the helper: once it is dead the image is free
open_vol "$S/a" --table "$S/table" "$IMG" </dev/null
kill -KILL "$(daemon_pid "$S/a/volume")"
wait_for "the helper to unmount" gone "$S/a"
open_vol "$S/b" --table "$S/table" "$IMG" </dev/null
close_vol "$S/b"
