#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# An image that is itself the file of a cryptfuse mount, and mount points that would hide the image. The outer volume stays as long
# as the inner one is open; when its daemon dies the inner one fails, and hangs nowhere.
. "$(dirname "$0")/lib.sh"
need_user "$@"

OUT=$S/outer IN=$S/inner IMG=$S/img
mkdir "$S/third"
BYTES=$((4 * 1024 * 1024))
new_image "$IMG" $BYTES sparse
head -c 64 /dev/urandom >"$S/key1"
head -c 64 /dev/urandom >"$S/key2"
head -c $BYTES /dev/urandom >"$S/plain"
PLAIN=(--type plain -c aes-xts-plain64 -s 512)

dead() { ! head -c 1 "$OUT/volume"; }

nested() {
	open_vol "$OUT" "${PLAIN[@]}" -d "$S/key1" "$IMG"
	open_vol "$IN" "${PLAIN[@]}" -d "$S/key2" "$OUT/volume"
}

nested
dd if="$S/plain" of="$IN/volume" bs=1M conv=notrunc status=none
assert_exit 5 'busy' "$CRYPTFUSE" close "$OUT"
mounted "$OUT" || fail "the outer volume is gone"
close_vol "$IN"
close_vol "$OUT"
nested
assert_same "through both" "$S/plain" "$IN/volume"
# the other way round: the mount point would hide the image, or the mount
assert_exit 5 'already open here' "$CRYPTFUSE" open "${PLAIN[@]}" -d "$S/key2" "$IN/volume" "$IN"
assert_exit 5 'in use' "$CRYPTFUSE" open "${PLAIN[@]}" -d "$S/key2" "$IMG" "$S/third"
assert_exit 5 'in use' "$CRYPTFUSE" open "${PLAIN[@]}" -d "$S/key2" "$OUT/volume" "$S/third"

# the outer daemon dies
dd if="$S/plain" of="$IN/volume" bs=1M count=1 conv=notrunc status=none
kill -KILL "$(daemon_pid "$OUT/volume")"
wait_for "the outer daemon to die" dead
if timeout 30 dd if="$IN/volume" of="$S/out" bs=4096 skip=700 count=1 iflag=direct status=none 2>"$S/io.err"; then
	fail "a volume without an image was read"
fi
timeout -k 5 60 "$CRYPTFUSE" close "$IN" 2>"$S/close.err" && fail "closed without a word, though the last write is lost"
assert_gone "$IN"
wait_for "what is left of the outer one to go away" gone "$OUT"

# nothing is wrong with the image
nested
cmp -n $((3 * 1024 * 1024)) -i $((1024 * 1024)) "$S/plain" "$IN/volume" || fail "what was synced is lost"
close_vol "$IN"
close_vol "$OUT"

# an image that lies under its mount point: by name, by another name, on the same mount
mkdir -p "$S/folder/below" "$S/link"
ln "$IMG" "$S/folder/below/img"
ln -s "$S/folder" "$S/link/to"
for place in "$S/folder" "$S/folder/below" "$S/link/to" "$S/folder/../folder/below/."; do
	assert_exit 1 'lies under the mount point|not empty' "$CRYPTFUSE" open "${PLAIN[@]}" -d "$S/key1" "$S/folder/below/img" "$place"
done
assert_exit 1 'both image and mount point' "$CRYPTFUSE" open "${PLAIN[@]}" -d "$S/key1" "$S/folder/below/img" "$S/link/to/below/img"
