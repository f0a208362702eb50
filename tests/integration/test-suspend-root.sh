#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# suspend with a loop device and a file system on top; root may suspend and close the volume of a user, and not resume it;
# another user may do neither.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need mkfs.ext4 losetup setpriv

M=$S/m V=$S/m/volume IMG=$S/img PASS='the right one'
OPTS=(-q --cipher aes-xts-plain64 --key-size 512 --hash sha512)
allow_other yes
new_image "$IMG" $((32 << 20))
waits() { "$CRYPTFUSE" status "$M" | grep -qE '^suspended.waiting_(reads|writes): [1-9]'; }

# ---- a file system on a loop device ----
open_vol "$M" "${OPTS[@]}" "$IMG" <<<"$PASS"
mkfs.ext4 -q "$V"
mkdir "$S/fs"
loop=$(losetup -f --show "$V")
mount "$loop" "$S/fs"
head -c 5000000 /dev/urandom >"$S/data"
cp "$S/data" "$S/fs/before"
sync "$S/fs/before"
"$CRYPTFUSE" suspend "$M" || fail "suspend: exit $?"
(cp "$S/data" "$S/fs/meanwhile" && sync "$S/fs/meanwhile") &
copy=$!
wait_for "the file system to wait" waits
assert_exit 5 busy "$CRYPTFUSE" close "$M"
"$CRYPTFUSE" resume "$M" <<<"$PASS" || fail "resume: exit $?"
wait $copy || fail "a copy that waited: exit $?"
umount "$S/fs"
mount "$loop" "$S/fs"
assert_same "before" "$S/data" "$S/fs/before"
assert_same "meanwhile" "$S/data" "$S/fs/meanwhile"
umount "$S/fs"
losetup -d "$loop"
wait_for "the loop device to let go" "$CRYPTFUSE" close "$M"
assert_gone "$M"

# ---- whose volume it is ----
chown "$USER_NAME" "$IMG"
M=$S/users
AS=("${AS_USER[@]}")
open_vol "$M" "${OPTS[@]}" "$IMG" <<<"$PASS"
AS=()
other=(setpriv --reuid=12345 --regid=12345 --clear-groups env -u XDG_RUNTIME_DIR HOME=/)
assert_exit 2 'another user' "${other[@]}" "$CRYPTFUSE" suspend "$M"
"$CRYPTFUSE" suspend "$M" || fail "root suspends a user's volume: exit $?"
assert_match "what root sees" '^suspended.waiting_reads: 0' "$("$CRYPTFUSE" status "$M")"
assert_exit 2 'another user' "${other[@]}" "$CRYPTFUSE" resume "$M"
assert_exit 2 'another user, who alone can resume it' "$CRYPTFUSE" resume "$M"
as_user "$CRYPTFUSE" resume "$M" <<<"$PASS" || fail "the user resumes: exit $?"
"$CRYPTFUSE" suspend "$M" || fail "root suspends again: exit $?"
"$CRYPTFUSE" close "$M" || fail "root closes a user's suspended volume: exit $?"
assert_gone "$M"
