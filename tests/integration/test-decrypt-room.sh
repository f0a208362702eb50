#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# Too little room is said before a passphrase is asked for; where it shows only later nothing stays behind; block devices
# need --force and room.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup

new_image "$S/img" $((8 * 1024 * 1024))
KEY=$(random_hex 64)
table "$S/table" 16384 aes-xts-plain64 "$KEY" 0 0 sector_size:4096
chown "$USER_NAME" "$S/img" "$S/table"
cryptref -c xts -k "$KEY" -s 4096 "$S/img" 0 0 $((8 * 1024 * 1024)) >"$S/plain"
DECRYPT=("${AS_USER[@]}" "$CRYPTFUSE" decrypt -q --table "$S/table")

# ---- room ----
mkdir "$S/small"
mount -t tmpfs -o "size=4M,mode=777" small "$S/small"
assert_exit 1 'needs 8 MiB .* room for 4 MiB' "${DECRYPT[@]}" "$S/img" "$S/small/out"
assert_eq "nothing stays" "" "$(ls -A "$S/small")"
# no passphrase is asked for: standard input ends at once, which would be another message
assert_exit 1 'room for' "${AS_USER[@]}" "$CRYPTFUSE" decrypt -q --type plain "$S/img" "$S/small/out"
assert_exit 1 'No space left on device' "${DECRYPT[@]}" --sparse "$S/img" "$S/small/out"
assert_eq "nothing stays" "" "$(ls -A "$S/small")"
assert_exit 1 'room for' "${AS_USER[@]}" "$CRYPTFUSE" create -q --size 8M "$S/small/new"
assert_exit 1 'room for' "${AS_USER[@]}" "$CRYPTFUSE" encrypt -q --table "$S/table" "$S/plain" "$S/small/new"
assert_eq "nothing stays" "" "$(ls -A "$S/small")"
mount -o remount,size=20M "$S/small"
"${DECRYPT[@]}" "$S/img" "$S/small/out"
assert_same "with room" "$S/plain" "$S/small/out"

# ---- a block device ----
truncate -s 8M "$S/disk"
loop=$(losetup -f --show "$S/disk") || lacking "a loop device"
truncate -s 4M "$S/disk4"
loop4=$(losetup -f --show "$S/disk4")
as_root() { "$CRYPTFUSE" decrypt -q --table "$S/table" "$@"; }
assert_exit 5 'exists; --force' "$CRYPTFUSE" decrypt -q --table "$S/table" "$S/img" "$loop"
assert_exit 1 'holes' "$CRYPTFUSE" decrypt -q --force --sparse --table "$S/table" "$S/img" "$loop"
assert_exit 1 'room for 4 MiB' "$CRYPTFUSE" decrypt -q --force --table "$S/table" "$S/img" "$loop4"
as_root --force "$S/img" "$loop"
assert_same "a block device" "$S/plain" "$loop"
losetup -d "$loop" "$loop4"
