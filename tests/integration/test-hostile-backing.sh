#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# An image that changes its length or vanishes while it is open. What is cut off gives EIO, never zeros or noise; what remains is as
# it was; the volume keeps its length; close comes to an end.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fio

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((8 * 1024 * 1024)) HALF=$((4 * 1024 * 1024))
head -c 64 /dev/urandom >"$S/key"
head -c $BYTES /dev/urandom >"$S/plain"
PLAIN=(--type plain -c aes-xts-plain64 -s 512 -d "$S/key" --cache direct)

fresh() {
	new_image "$IMG" $BYTES sparse
	open_vol "$M" "${PLAIN[@]}" "$IMG"
	dd if="$S/plain" of="$V" bs=1M conv=notrunc,fsync status=none
}

# expect_error WORDS COMMAND…: it fails, and says so
expect_error() {
	local words=$1
	shift
	if "$@" 2>"$S/io.err"; then fail "$* succeeded"; fi
	grep -q "$words" "$S/io.err" || fail "$*: $(cat "$S/io.err")"
}

# ---- shrinks ----
fresh
truncate -s $HALF "$IMG"
assert_eq "length of the volume" $BYTES "$(stat -c %s "$V")"
cmp -n $HALF "$S/plain" "$V" || fail "what remains has changed"
for at in $HALF $((BYTES - 512)); do
	expect_error 'Input/output error' dd if="$V" of="$S/out" bs=512 skip=$((at / 512)) count=1 status=none
done
expect_error 'Input/output error' dd if="$V" of="$S/out" bs=1M skip=3 count=2 iflag=fullblock status=none
# part of a data unit: nothing is written on top of what cannot be read
expect_error 'Input/output error' dd if="$S/plain" of="$V" bs=100 seek=60000 count=1 conv=notrunc status=none
assert_eq "length of the image" $HALF "$(stat -c %s "$IMG")"
# whole ones come back
dd if="$S/plain" of="$V" bs=1M seek=4 skip=4 count=4 conv=notrunc,fsync status=none
assert_same "written again" "$S/plain" "$V"
close_vol "$M"
open_vol "$M" "${PLAIN[@]}" --readonly "$IMG"
assert_same "opened again" "$S/plain" "$V"
truncate -s 0 "$IMG"
expect_error 'Input/output error' dd if="$V" of="$S/out" bs=512 count=1 status=none
close_vol "$M"

# ---- shrinks in the middle of a load ----
fresh
fio --name=load --filename="$V" --rw=randrw --bs=3000 --ioengine=psync --size=$BYTES --time_based --runtime=2 --continue_on_error=io \
	--output="$S/fio.out" &
fio_pid=$!
for i in 1 2 3 4 5 6 7 8 9 10; do
	truncate -s $((BYTES * (i % 3) / 3)) "$IMG"
	head -c 512 "$V" >/dev/null 2>&1 || :
done
wait $fio_pid || :
truncate -s $BYTES "$IMG"
head -c $BYTES "$V" | wc -c | grep -qx $BYTES || fail "the volume does not read"
timeout -k 5 60 "$CRYPTFUSE" close "$M" 2>"$S/close.err" || [ $? = 1 ] || fail "close: $(cat "$S/close.err")"
assert_gone "$M"

# ---- grows ----
fresh
truncate -s $((2 * BYTES)) "$IMG"
assert_eq "length of the volume" $BYTES "$(stat -c %s "$V")"
assert_same "unchanged" "$S/plain" "$V"
expect_error 'No space left' dd if="$S/plain" of="$V" bs=1M seek=8 count=1 conv=notrunc status=none
tail -c $BYTES "$IMG" | cmp - <(head -c $BYTES /dev/zero) || fail "something was written behind the end"
close_vol "$M"

# ---- vanishes ----
fresh
rm "$IMG"
assert_same "unchanged" "$S/plain" "$V"
dd if="$S/plain" of="$V" bs=1M skip=1 count=1 conv=notrunc,fsync status=none
cmp -n $((1024 * 1024)) "$V" <(tail -c +$((1024 * 1024 + 1)) "$S/plain") || fail "what was written is not there"
close_vol "$M"
