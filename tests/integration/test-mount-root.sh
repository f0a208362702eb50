#!/bin/bash
# needs: root
# For root a volume's file system is the kernel's own, on a loop device that goes with it; what mount(8) is given by
# /etc/fstab arrives; a program that is missing, or would need root's leave, is named; NTFS for an ordinary user.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup mkfs.ext4 e2fsck debugfs dumpe2fs mkntfs ntfs-3g fuse2fs pgrep
[ -e /dev/loop-control ] || lacking "/dev/loop-control"
. "$(dirname "$0")/mounting.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)

no_loop() {
	assert_eq "loop devices left" "" "$(losetup -nO BACK-FILE | grep -F "$S/" || :)"
}

fs_type() {
	awk -v d="$D" '$5 == d { print $(NF - 2) }' /proc/self/mountinfo
}

# ---- the kernel's ext4 ----
truncate -s 32M "$S/ext4"
mkfs.ext4 -q "$S/ext4"
encrypted "$S/ext4"
head -c 5000000 /dev/urandom >"$S/data"
mount_vol "${OPTS[@]}" "$S/ext4.enc"
assert_eq "the kernel's own" ext4 "$(fs_type)"
assert_match "mount options" 'nosuid,nodev' "$(awk -v d="$D" '$5 == d' /proc/self/mountinfo)"
assert_eq "where it is open" 1 "$(find /run/cryptfuse -name target -lname "$D" | wc -l)"
cp "$S/data" "$D/data"
exec 7<"$D/data"
cf_exit 5 'busy: process .*\(bash\)' umount "$D"
exec 7<&-
umount_vol
no_loop
checked "$S/ext4.enc"
mount_vol --readonly "${OPTS[@]}" "$S/ext4.enc"
assert_same "data" "$S/data" "$D/data"
umount_vol

# ---- umount(8) undoes it all, too ----
mount_vol --readonly "${OPTS[@]}" "$S/ext4.enc"
umount "$D"
wait_for "the volume to be closed" no_place
assert_nothing
no_loop

# ---- a journal that wants a replay: not for reading ----
truncate -s 32M "$S/dirty"
mkfs.ext4 -q "$S/dirty"
printf 'jo\njw -b 3000 /dev/zero\njc\n' >"$S/commands"
debugfs -w -f "$S/commands" "$S/dirty" >/dev/null 2>&1
dumpe2fs -h "$S/dirty" 2>/dev/null | grep -q needs_recovery || fail "the journal is clean"
encrypted "$S/dirty"
sha256sum "$S/dirty.enc" >"$S/before"
mount_vol --readonly "${OPTS[@]}" "$S/dirty.enc"
[ -d "$D/lost+found" ] || fail "nothing to be seen"
umount_vol
sha256sum -c --quiet "$S/before" || fail "a read-only mount changed the image"

# ---- vfat, if this kernel has it, else by the program ----
if command -v mkfs.vfat >/dev/null; then
	truncate -s 32M "$S/vfat"
	mkfs.vfat "$S/vfat" >/dev/null
	encrypted "$S/vfat"
	mount_vol "${OPTS[@]}" "$S/vfat.enc"
	cp "$S/data" "$D/data"
	umount_vol
	mount_vol "${OPTS[@]}" "$S/vfat.enc"
	assert_same "vfat: data" "$S/data" "$D/data"
	umount_vol
fi
no_loop

# ---- what only the kernel has, where this one has it: written, read again, and read-only without a change ----
kernel_has() {
	grep -qw "$1" /proc/filesystems || modprobe -q "$1" 2>/dev/null
}

only_kernel() { # TYPE SIZE MKFS…
	local type=$1
	command -v "$3" >/dev/null || lacking "$3"
	truncate -s "$2" "$S/$type"
	"${@:3}" "$S/$type" >/dev/null || fail "$3"
	encrypted "$S/$type"
	rm "$S/$type"
	if ! kernel_has "$type"; then
		refused 4 "$type: the kernel has no $type, and no program is known here" "${OPTS[@]}" "$S/$type.enc"
		rm "$S/$type.enc"
		return
	fi
	mount_vol "${OPTS[@]}" "$S/$type.enc"
	assert_eq "the kernel's own" "$type" "$(fs_type)"
	cp "$S/data" "$D/data"
	umount_vol
	sha256sum "$S/$type.enc" >"$S/before"
	mount_vol --readonly "${OPTS[@]}" "$S/$type.enc"
	assert_same "$type: data" "$S/data" "$D/data"
	! touch "$D/new" 2>/dev/null || fail "$type: a read-only mount can be written"
	umount_vol
	sha256sum -c --quiet "$S/before" || fail "$type: a read-only mount changed the image"
	AS=("${AS_USER[@]}")
	chown "$USER_NAME" "$S/$type.enc" "$D" "$RUN"
	refused 4 "$type: only the kernel can mount it, and so only root; 'cryptfuse open' shows" "${OPTS[@]}" "$S/$type.enc"
	AS=()
	chown root "$D" "$RUN"
	rm "$S/$type.enc"
}
only_kernel xfs 320M mkfs.xfs -q
only_kernel btrfs 128M mkfs.btrfs -q
no_loop

# ---- as mount(8) does it: the script in /sbin, which is a copy in this namespace ----
mkdir "$S/sbin"
mount -t tmpfs sbin "$S/sbin"
cp -a /usr/sbin/. "$S/sbin"
cp "$TOP/tools/mount.cryptfuse" "$S/sbin/mount.cryptfuse"
ln -s mount.cryptfuse "$S/sbin/mount.fuse.cryptfuse"
ln -s "$CRYPTFUSE" "$S/sbin/cryptfuse"
mount --bind "$S/sbin" /usr/sbin
printf %s "$PASS" >"$S/key"
BY_MOUNT="type=plain,cipher=aes-xts-plain64,key-size=512,hash=sha512"
for type in cryptfuse fuse.cryptfuse; do
	mount -t $type -o "$BY_MOUNT,noauto,nofail,user,_netdev,x-systemd.automount,noexec" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/mount.err" ||
		fail "mount -t $type: exit $?"
	assert_same "mount -t $type" "$S/data" "$D/data"
	assert_match "mount options" 'nosuid,nodev,noexec' "$(awk -v d="$D" '$5 == d' /proc/self/mountinfo)"
	umount_vol
done
mount -t cryptfuse -o "ro,$BY_MOUNT" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/mount.err"
if touch "$D/new" 2>/dev/null; then fail "ro: it can be written"; fi
umount_vol
assert_exit 1 'mount has no option --nonsense' mount -t cryptfuse -o "nonsense=1" "$S/ext4.enc" "$D"
head -c 64 /dev/urandom >"$S/key"
printf %s "$PASS" | cf create -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --size 32M --mkfs ext4 "$S/luks.enc"
printf %s "$PASS" >"$S/key"
echo "$S/luks.enc $D fuse.cryptfuse key-file=$S/key,noauto 0 0" >"$S/fstab"
mount -T "$S/fstab" "$D" 2>"$S/mount.err" || fail "mount by fstab: exit $?"
assert_eq "by fstab" ext4 "$(fs_type)"
umount_vol

# ---- for an ordinary user: what is missing is named ----
AS=("${AS_USER[@]}")
RUN=$S/run-user
as_user mkdir -m 0700 "$RUN"
chown "$USER_NAME" "$D"
rm -f "$S"/*.enc
chown "$USER_NAME" "$S/ext4" "$S/vfat"
encrypted "$S/ext4"
mount --bind /dev/null /usr/bin/fuse2fs
refused 4 'ext4: needs fuse2fs \(Debian: apt install fuse2fs\), or root' "${OPTS[@]}" "$S/ext4.enc"
umount /usr/bin/fuse2fs

# ---- a program that hangs: a signal undoes it all ----
cat >"$S/hangs" <<'END'
#!/bin/sh
echo "$$" >"${1%/volume/volume}/started"
exec sleep 1000
END
chmod 755 "$S/hangs"
mount --bind "$S/hangs" /usr/bin/fuse2fs
started() { ls "$RUN"/cryptfuse/mount-*/started; }
"${AS[@]}" env "XDG_RUNTIME_DIR=$RUN" "$CRYPTFUSE" mount "${OPTS[@]}" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/hang.err" &
pid=$!
wait_for "the program" started
rm -f "$RUN"/cryptfuse/mount-*/started
pkill -TERM -o -f "^$CRYPTFUSE mount .*$S/ext4.enc"
rc=0
wait $pid || rc=$?
[ $rc != 0 ] || fail "SIGTERM while a program hangs: exit 0"
assert_nothing
! pgrep -f 'sleep 1000' -u "$USER_NAME" >/dev/null || fail "the program still runs"
umount /usr/bin/fuse2fs

# ---- NTFS by a setuid program: only with root's leave ----
truncate -s 32M "$S/ntfs"
mkntfs -q -Q -F "$S/ntfs" >/dev/null 2>&1
chown "$USER_NAME" "$S/ntfs"
encrypted "$S/ntfs"
if [ -u "$(command -v ntfs-3g)" ]; then
	allow_other no
	refused 2 'ntfs-3g works only where /etc/fuse.conf' "${OPTS[@]}" "$S/ntfs.enc"
fi
allow_other yes
mount_vol "${OPTS[@]}" "$S/ntfs.enc"
as_user cp "$S/data" "$D/data"
umount_vol
mount_vol --readonly "${OPTS[@]}" "$S/ntfs.enc"
as_user cat "$D/data" | assert_same "ntfs" - "$S/data"
umount_vol

# ---- exFAT is for root ----
if command -v mkfs.exfat >/dev/null; then
	truncate -s 32M "$S/exfat"
	mkfs.exfat "$S/exfat" >/dev/null
	chown "$USER_NAME" "$S/exfat"
	encrypted "$S/exfat"
	refused 2 'exfat: .* for root only' "${OPTS[@]}" "$S/exfat.enc"
fi
