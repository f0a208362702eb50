#!/bin/bash
# needs: root
# mount --udisks, of an ordinary user: the kernel mounts where udisks likes, which is said; umount undoes it all by either name; what
# fails half way is undone; who refuses is named. udisks is udisks.py here, with loop devices and mounts that are real.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup mkfs.ext4 e2fsck python3 pgrep
[ -e /dev/loop-control ] || lacking "/dev/loop-control"
AS=("${AS_USER[@]}")
. "$(dirname "$0")/mounting.sh"
U=$S/udisks
AT=$U/media/label

mode() {
	echo "$1" >"$U/mode"
}

assert_undone() {
	assert_nothing
	assert_eq "loop devices left" "" "$(losetup -nO BACK-FILE | grep -F "$S/" || :)"
	[ ! -e "$AT" ] || fail "$AT is left"
}

by_udisks() { # OPTIONS…
	cf mount --udisks "${OPTS[@]}" "$@" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/mount.err" || fail "mount $*: exit $?"
	mounted "$AT" || fail "mount $* returned, but nothing is mounted"
}

not_by_udisks() { # CODE PATTERN OPTIONS…
	refused "$1" "$2" --udisks "${OPTS[@]}" "${@:3}" "$S/ext4.enc"
	assert_undone
}

undo() { # DIRECTORY
	cf umount "$1" 2>"$S/umount.err" || fail "umount $1: exit $?"
	assert_undone
}

mkdir "$U"
mount -t tmpfs programs /usr/local/bin
uid=$(id -u "$USER_NAME")
truncate -s 16M "$S/ext4"
mkfs.ext4 -q -E "root_owner=$uid:0" -L label "$S/ext4"
chown "$USER_NAME" "$S/ext4"
encrypted "$S/ext4"
head -c 3000000 /dev/urandom >"$S/data"

# ---- no udisksctl: told before the passphrase; nobody is pointed to it ----
if ! command -v udisksctl >/dev/null; then
	cf_exit 4 'needs udisksctl \(Debian: apt install udisks2\)' mount --udisks "${OPTS[@]}" "$S/ext4.enc" "$D" </dev/null
fi
printf '#!/bin/sh\nexec python3 "%s" ctl "%s" "$@"\n' "$(realpath "$(dirname "$0")/udisks.py")" "$U" >/usr/local/bin/udisksctl
chmod 755 /usr/local/bin/udisksctl
not_by_udisks 1 'udisks does not answer; does udisksd run\?.*Could not connect'
cf_exit 1 'allow-other does not go with --udisks' mount --udisks --allow-other "${OPTS[@]}" "$S/ext4.enc" "$D" </dev/null

python3 "$(dirname "$0")/udisks.py" serve "$U" 2>"$S/udisks.err" &
wait_for "udisks" test -S "$U/socket"

# ---- without root's leave: as far as the kernel's loop driver lets him see the size of the file ----
mode ready
allow_other no
rc=0
cf mount --udisks "${OPTS[@]}" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/mount.err" || rc=$?
if [ $rc = 0 ]; then
	undo "$D"
else
	assert_match "without user_allow_other" "with this kernel --udisks works only where /etc/fuse.conf" "$(cat "$S/mount.err")"
	assert_eq "exit" 2 $rc
	assert_undone
fi
allow_other yes

# ---- there and back ----
by_udisks
assert_match "where" "is mounted at $AT: .*ext4, label label" "$(cat "$S/mount.err")"
assert_match "how to undo it" "not at $D, .*'cryptfuse umount $D' undoes it" "$(cat "$S/mount.err")"
assert_match "status" "mounted at $AT" "$(cf status)"
as_user cp "$S/data" "$AT/data"
cf_exit 5 "$D: something is mounted here already" mount --udisks "${OPTS[@]}" "$S/ext4.enc" "$D" </dev/null
exec 7<"$AT/data"
cf_exit 5 "$AT is busy" umount "$D"
exec 7<&-
undo "$D"
checked "$S/ext4.enc"

sha256sum "$S/ext4.enc" >"$S/before"
by_udisks --readonly
assert_same "data" "$S/data" "$AT/data"
assert_match "read-only" "^ro," "$(awk -v d="$AT" '$5 == d { print $6 }' /proc/self/mountinfo)"
undo "$AT"
sha256sum -c --quiet "$S/before" || fail "a read-only mount changed the image"
cat >"$S/expected" <<'LOG'
loop-setup --file PLACE/volume/volume --read-only --no-user-interaction
LOG
assert_eq "loop-setup" "$(cat "$S/expected")" "$(grep -e --read-only "$U/log")"

by_udisks --fs ext3 --mount-options noatime
assert_match "what udisks was told" 'mount --block-device /dev/loop[0-9]+ --filesystem-type ext3 --options noatime ' "$(grep -e --options "$U/log")"
undo "$D"

# ---- somebody else was faster: a desktop with the mount, another program with the unmount ----
mode desktop
by_udisks
undo "$D"
mode ready
by_udisks
umount "$AT"
rmdir "$AT"
undo "$D"

# ---- failures ----
mode deny
not_by_udisks 2 'udisks does not let you do that \(polkit.*NotAuthorizedCanObtain'
mode timeout
not_by_udisks 1 'Timed out waiting for object'
mode fail-mount
not_by_udisks 1 'OptionNotPermitted'

# ---- what cannot be undone is said, and can be later ----
mode ready
by_udisks
mode fail-delete
cf_exit 1 "/dev/loop[0-9]+ stays \('losetup -d /dev/loop[0-9]+' as root takes it away\)" umount "$D"
mode ready
undo "$D"

# ---- whom it helps is pointed to it ----
mount --bind /dev/null "$(command -v fuse2fs || echo /usr/bin/fuse2fs)" 2>/dev/null || skip "no fuse2fs to hide"
refused 4 'ext4: needs fuse2fs .*, or root, or --udisks' "${OPTS[@]}" "$S/ext4.enc"
