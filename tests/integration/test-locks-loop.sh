#!/bin/bash
# needs: root
# A loop device takes no lock: an image that one has open is refused for writing, by name of the device; reading is
# allowed. The exposed volume under a loop device is busy, and close says which device holds it.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup
[ -e /dev/loop-control ] || lacking "/dev/loop-control"

M=$S/m V=$S/m/volume IMG=$S/img
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$(random_hex 64)" 0 0
mkdir "$M"

LOOP=$(losetup --find --show "$IMG") || fail "losetup"
assert_exit 5 "$LOOP" "$CRYPTFUSE" open --table "$S/table" "$IMG" "$M"
assert_gone "$M"
open_vol "$M" --readonly --table "$S/table" "$IMG" </dev/null
close_vol "$M"

# the block device itself as IMAGE: exclusive for a writer
open_vol "$M" --table "$S/table" "$LOOP" </dev/null
assert_eq "write to a block device" 3 "$(printf abc | fileop pwrite 1021 "$V")"
assert_eq "read it back" abc "$(fileop pread 1021 3 "$V")"
mkdir "$S/b"
assert_exit 5 "$LOOP" "$CRYPTFUSE" open --table "$S/table" "$LOOP" "$S/b"
close_vol "$M"
losetup -d "$LOOP"

open_vol "$M" --table "$S/table" "$IMG" </dev/null
assert_eq "what went through the block device is in the file" abc "$(fileop pread 1021 3 "$V")"
LOOP=$(losetup --find --show "$V") || fail "losetup on the volume"
assert_exit 5 "$LOOP" "$CRYPTFUSE" close "$M"
mounted "$M" || fail "a busy close unmounted"
losetup -d "$LOOP"
close_vol "$M"
