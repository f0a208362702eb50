#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# FUSE not usable: missing or forbidden, each with its own line, before any secret is asked for. And root closes what a
# user has open, although root may not look inside.
. "$(dirname "$0")/lib.sh"
need_root "$@"

M=$S/m IMG=$S/img
as_user mkdir "$M"
new_image "$IMG" $((64 * 1024))
head -c 64 /dev/urandom >"$S/key"
chmod 0644 "$S/key"
chmod 0666 "$IMG"
OPEN=("${AS_USER[@]}" "$CRYPTFUSE" open -q -c aes-xts-plain64 -s 512 -d "$S/key" "$IMG" "$M")

"${OPEN[@]}" || fail "open: exit $?"
STRANGER=(setpriv --reuid=64123 --regid=64123 --clear-groups --) # root is let in by the control socket, he is not
assert_exit 2 'another user' "${STRANGER[@]}" "$CRYPTFUSE" status "$M"
assert_match "a stranger's list" "$IMG \(belongs to another user\)" "$("${STRANGER[@]}" "$CRYPTFUSE" status)"
assert_match "root's status" "image: $IMG" "$("$CRYPTFUSE" status "$M")"
assert_match "root's list" "$IMG" "$("$CRYPTFUSE" status)"
"$CRYPTFUSE" close "$M" || fail "root closes a user's mount: exit $?"
assert_gone "$M"

mknod -m 0600 "$S/forbidden" c 10 229 || lacking "mknod"
mount --bind "$S/forbidden" /dev/fuse
assert_exit 2 'FUSE is not usable: no permission' "${OPEN[@]}"
assert_gone "$M"
umount /dev/fuse

mkdir "$S/dev"
mount -t tmpfs none "$S/dev"
for node in null zero full urandom tty; do
	: >"$S/dev/$node"
	mount --bind /dev/$node "$S/dev/$node"
done
mount --rbind "$S/dev" /dev
assert_exit 4 'FUSE is not usable.*modprobe' "${OPEN[@]}"
assert_gone "$M"
umount -l /dev
umount -R "$S/dev"
