#!/bin/bash
# needs: user
# A file system made, checked, filled and read through the exposed file by tools that need no kernel driver; the same
# bytes after a fresh open, and in what an independent program deciphers from the backing.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need mkfs.ext4 e2fsck debugfs

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((32 * 1024 * 1024))

for du in 512 4096; do
	key=$(random_hex 64)
	new_image "$IMG" $BYTES
	table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$key" 0 0 sector_size:$du iv_large_sectors
	head -c 3000001 /dev/urandom >"$S/file"

	open_vol "$M" --table "$S/table" "$IMG" </dev/null
	mkfs.ext4 -q -F -L inner "$V" >"$S/mkfs.err" 2>&1 || fail "mkfs.ext4: $(cat "$S/mkfs.err")"
	e2fsck -fn "$V" >"$S/e2fsck.err" 2>&1 || fail "e2fsck after mkfs: $(cat "$S/e2fsck.err")"
	debugfs -w -R "write $S/file hello" "$V" >"$S/debugfs.err" 2>&1
	debugfs -R "cat hello" "$V" 2>/dev/null | assert_same "debugfs" - "$S/file"
	cp "$V" "$S/plain"
	close_vol "$M"

	open_vol "$M" --table "$S/table" "$IMG" </dev/null
	assert_match "what is inside" 'ext4.*inner' "$(cat "$S/open.err")"
	assert_same "after a fresh open" "$S/plain" "$V"
	e2fsck -fn "$V" >"$S/e2fsck.err" 2>&1 || fail "e2fsck after a fresh open: $(cat "$S/e2fsck.err")"
	debugfs -R "cat hello" "$V" 2>/dev/null | assert_same "debugfs after a fresh open" - "$S/file"
	close_vol "$M"
	cryptref -c xts -k "$key" -s $du -L "$IMG" 0 0 $BYTES | assert_same "the backing" - "$S/plain"
done
