#!/bin/bash
# needs: root
# A loop device writes through volume.p1: dd on the volume is refused meanwhile, and reads what was written afterwards;
# the reverse too.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup sfdisk mkfs.ext4
[ -e /dev/loop-control ] || lacking "/dev/loop-control"

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((32 * 1024 * 1024))
AS=("${AS_USER[@]}")
allow_other yes
new_image "$IMG" $BYTES sparse
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$(random_hex 64)" 0 0
chown "$USER_NAME" "$IMG" "$S/table"
open_vol "$M" --allow-root --table "$S/table" "$IMG" </dev/null
echo 'start=2048, size=40960, type=83' | sfdisk -q --label dos --no-reread --no-tell-kernel "$V" || fail "sfdisk"
close_vol "$M"
open_vol "$M" --allow-root --table "$S/table" "$IMG" </dev/null

detached() { [ -z "$(losetup -nO BACK-FILE "$LOOP" 2>/dev/null)" ]; }

LOOP=$(losetup --find --show "$V.p1") || fail "losetup on p1"
mkfs.ext4 -q -L loop "$LOOP" || fail "mkfs.ext4"
assert_eq "the volume under a loop device's partition" EBUSY "$(as_user "$CRYPTFUSE_TOOLS/fileop" open rw "$V")"
as_user dd if=/dev/zero of="$V" bs=4096 count=1 conv=notrunc status=none 2>"$S/dd.err" && fail "dd wrote"
assert_match "dd" 'busy' "$(cat "$S/dd.err")"
assert_exit 5 "$LOOP" "${AS[@]}" "$CRYPTFUSE" close "$M"
losetup -d "$LOOP"
wait_for "$LOOP to let go" detached
cmp -n $((40960 * 512)) -i $((2048 * 512)):0 "$V" "$V.p1" || fail "the volume does not show what the loop device wrote"
assert_match "the file system" 'LABEL="loop"' "$(blkid -p "$V.p1")"

LOOP=$(losetup --find --show "$V") || fail "losetup on the volume"
assert_eq "p1 under a loop device's volume" EBUSY "$(as_user "$CRYPTFUSE_TOOLS/fileop" open rw "$V.p1")"
losetup -d "$LOOP"
wait_for "$LOOP to let go" detached
printf overwritten | as_user dd of="$V" bs=1 seek=$((2048 * 512 + 1080)) conv=notrunc status=none || fail "dd"
assert_eq "p1 shows what dd wrote" overwritten "$(as_user "$CRYPTFUSE_TOOLS/fileop" pread 1080 11 "$V.p1")"
close_vol "$M"
