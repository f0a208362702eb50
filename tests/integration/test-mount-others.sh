#!/bin/bash
# needs: root
# Who may use a mount: its owner; with --allow-root root too; with --allow-other nobody more, unless --mode opens the
# file. And root, who may look, finds no key in the environment of daemon and helper.
. "$(dirname "$0")/lib.sh"
need_root "$@"
OTHER=daemon
[ "$USER_NAME" != $OTHER ] || OTHER=nobody
id -u $OTHER >/dev/null 2>&1 || skip "no second user '$OTHER'"

M=$S/m V=$S/m/volume IMG=$S/img
KEY=$(random_hex 64)
AS=("${AS_USER[@]}")
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$KEY" 0 0
chown "$USER_NAME" "$IMG" "$S/table"
allow_other yes

other() { # fileop as the second user
	setpriv "--reuid=$(id -u $OTHER)" "--regid=$(id -g $OTHER)" --clear-groups "$CRYPTFUSE_TOOLS/fileop" "$@"
}
owner() { as_user "$CRYPTFUSE_TOOLS/fileop" "$@"; }
open_it() { open_vol "$M" "$@" --table "$S/table" "$IMG" </dev/null; }

open_it
assert_eq "owner" ok "$(owner open rw "$V")"
assert_eq "another user" EACCES "$(other open r "$V")"
assert_eq "root without --allow-root" EACCES "$(fileop open r "$V")"
for p in $(daemons_of "$M"); do
	tr '\0' '\n' <"/proc/$p/environ" >"$S/environ"
	if grep -qiF -e "${KEY:0:16}" -e "${KEY:112:16}" "$S/environ"; then fail "a key in the environment of $p"; fi
done
close_vol "$M"

open_it --allow-root
assert_eq "owner" ok "$(owner open rw "$V")"
assert_eq "root with --allow-root" ok "$(fileop open rw "$V")"
assert_eq "another user with --allow-root" EACCES "$(other open r "$V")"
assert_eq "owner of the file" "$(id -u "$USER_NAME") 600" "$(stat -c '%u %a' "$V")"
close_vol "$M"

open_it --allow-other
assert_eq "owner" ok "$(owner open rw "$V")"
assert_eq "another user, mode 0600" EACCES "$(other open r "$V")"
assert_eq "another user, the status" EACCES "$(other getxattr user.cryptfuse.status "$V")"
close_vol "$M"

open_it --allow-other --mode 0644
assert_eq "another user reads, mode 0644" ok "$(other open r "$V")"
assert_eq "another user writes, mode 0644" EACCES "$(other open w "$V")"
assert_exit 2 "$M" setpriv "--reuid=$(id -u $OTHER)" "--regid=$(id -g $OTHER)" --clear-groups "$CRYPTFUSE" close "$M"
mounted "$M" || fail "another user closed the mount"
close_vol "$M"

open_it --allow-other --mode 0666 --readonly
assert_match "write to a read-only volume, mode 0666" '^(EROFS|EACCES)$' "$(other open w "$V")"
assert_match "root writes to a read-only volume" '^(EROFS|EACCES)$' "$(fileop open w "$V")"
close_vol "$M"
