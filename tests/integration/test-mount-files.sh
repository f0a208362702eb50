#!/bin/bash
# needs: user
# An ordinary user mounts the file system in a volume with one command and gets back what was written with one other:
# ext4, vfat, squashfs and ISO 9660, in plain and LUKS volumes, whole and in a partition. After every umount, and every
# failure, nothing is left.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need pgrep mkswap mkfs.ext4 e2fsck fuse2fs mkfs.vfat fusefat mksquashfs squashfuse genisoimage fuseiso sfdisk cryptsetup
. "$(dirname "$0")/mounting.sh"
OWNER=root_owner=$(id -u):$(id -g)

# written: some files, and what they are.
written() {
	head -c 5000000 /dev/urandom >"$D/data"
	mkdir "$D/folder"
	echo text >"$D/folder/file"
	sha256sum "$D/data" "$D/folder/file" >"$S/sums"
}

same_files() {
	sha256sum -c --quiet "$S/sums" >&2 || fail "$1: the files have changed"
}

# ---- ext4: write, umount, mount again ----
truncate -s 32M "$S/ext4"
mkfs.ext4 -q -L inner -E "$OWNER" "$S/ext4"
encrypted "$S/ext4"
mount_vol "${OPTS[@]}" "$S/ext4.enc"
assert_match "what is said" 'ext4\.enc is mounted at .*files: plain, 32 MiB, aes-xts-plain64, ext4, label inner' "$(cat "$S/mount.err")"
assert_match "status" "volume: $S/ext4.enc, mounted at $D" "$(cf status)"
assert_match "status of the directory" 'cipher: aes-xts-plain64' "$(cf status "$D")"
assert_match "status --json" "\"directory\": *\"$D\"" "$(cf status --json)"
written
cf_exit 1 'cryptfuse umount' close "$D"
cf_exit 5 'cryptfuse umount' mount "${OPTS[@]}" "$S/ext4.enc" "$D"
same_files "ext4"
umount_vol
mount_vol "${OPTS[@]}" "$S/ext4.enc"
same_files "ext4"
umount_vol
checked "$S/ext4.enc"

# ---- read-only: not a byte of the image changes ----
sha256sum "$S/ext4.enc" >"$S/before"
mount_vol --readonly "${OPTS[@]}" "$S/ext4.enc"
same_files "read-only"
if touch "$D/new" 2>/dev/null; then fail "a read-only mount can be written"; fi
umount_vol
sha256sum -c --quiet "$S/before" || fail "a read-only mount changed the image"

# ---- LUKS2, and a wrong passphrase ----
printf %s "$PASS" | cf create -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --size 32M --mkfs ext4 "$S/luks.enc"
mount_vol "$S/luks.enc"
written
umount_vol
mount_vol --readonly "$S/luks.enc"
same_files "LUKS2"
umount_vol
PASS=wrong refused 2 'passphrase|key' "$S/luks.enc"

# ---- the examples of the manual ----
mkdir "$S/bin" "$S/man"
ln -s "$CRYPTFUSE" "$S/bin/cryptfuse"
cp "$S/luks.enc" "$S/man/luks.img"
echo notes >"$S/man/notes"
sed -n '/^\.Sh EXAMPLES/,$s/^\$ //p' "$(dirname "$0")/../../man/cryptfuse-mount.1" >"$S/lines"
[ "$(wc -l <"$S/lines")" -ge 5 ] || fail "hardly an example in cryptfuse-mount(1)"
while read -r line; do
	(cd "$S/man" && PATH=$S/bin:$PATH XDG_RUNTIME_DIR=$RUN sh -c "$line" <<<"$PASS") || fail "exit $?: $line"
done <"$S/lines"
mount_vol --readonly "$S/man/luks.img"
assert_same "the example's file" "$S/man/notes" "$D/notes"
umount_vol

# ---- the other programs of an ordinary user ----
truncate -s 32M "$S/vfat"
mkfs.vfat -n INNER "$S/vfat" >/dev/null
encrypted "$S/vfat"
mount_vol "${OPTS[@]}" "$S/vfat.enc"
head -c 5000000 /dev/urandom >"$D/data"
sha256sum "$D/data" >"$S/sums"
umount_vol
for access in "" --readonly; do # fusefat that may only read ends with an exit status
	mount_vol ${access:+"$access"} "${OPTS[@]}" "$S/vfat.enc"
	same_files "vfat $access"
	umount_vol
done

mkdir "$S/source"
head -c 300000 /dev/urandom >"$S/source/data"
(cd "$S/source" && sha256sum data) | sed "s|  |  $D/|" >"$S/sums"
mksquashfs "$S/source" "$S/squashfs" -quiet -no-progress >/dev/null
genisoimage -quiet -R -o "$S/iso9660" "$S/source"
for fs in squashfs iso9660; do
	encrypted "$S/$fs"
	mount_vol "${OPTS[@]}" "$S/$fs.enc"
	same_files "$fs"
	umount_vol
done

# ---- in a partition: the only file system is taken, several are named ----
truncate -s 80M "$S/disk"
printf 'start=2048, size=65536\nstart=67584, size=65536\n' | sfdisk -q --label gpt "$S/disk"
dd if="$S/ext4" of="$S/disk" bs=1M seek=33 conv=notrunc status=none
encrypted "$S/disk"
mount_vol "${OPTS[@]}" "$S/disk.enc"
assert_match "the file" 'volume\.p2' "$(awk -v d="$D" '$5 == d' /proc/self/mountinfo)"
[ -d "$D/lost+found" ] || fail "this is not the file system in partition 2"
assert_match "what is said" 'ext4, label inner in partition 2$' "$(cat "$S/mount.err")"
umount_vol
refused 1 'partition 1' --inner-partition 1 "${OPTS[@]}" "$S/disk.enc"
refused 1 'there are 1, 2 \(ext4\)' --inner-partition 3 "${OPTS[@]}" "$S/disk.enc"
dd if="$S/vfat" of="$S/disk" bs=1M seek=1 conv=notrunc status=none
encrypted "$S/disk"
refused 1 '--inner-partition.*1 \(vfat\), 2 \(ext4\)' "${OPTS[@]}" "$S/disk.enc"
mount_vol --inner-partition 1 "${OPTS[@]}" "$S/disk.enc"
assert_match "the file" 'fusefat' "$(awk -v d="$D" '$5 == d' /proc/self/mountinfo)"
umount_vol

# ---- what cannot be mounted says why ----
refused 1 'ext4\.enc is not mounted: nothing known was found inside' --type plain -c aes-cbc-plain -s 256 -h sha256 "$S/ext4.enc"
refused 1 'no partition table' --inner-partition 1 "${OPTS[@]}" "$S/ext4.enc"
refused 4 'no-such' "${OPTS[@]}" "$S/no-such"
refused 1 'no program is known' --fs nonsense "${OPTS[@]}" "$S/ext4.enc"
refused 4 'xfs: only the kernel' --fs xfs "${OPTS[@]}" "$S/ext4.enc"
refused 1 'squashfuse failed' --fs squashfs "${OPTS[@]}" "$S/ext4.enc"
truncate -s 1M "$S/swap"
mkswap "$S/swap" >/dev/null 2>&1
encrypted "$S/swap"
refused 1 'swap space' "${OPTS[@]}" "$S/swap.enc"
encrypted "$S/luks.enc"
mv "$S/luks.enc.enc" "$S/nested.enc"
refused 1 'another LUKS volume' "${OPTS[@]}" "$S/nested.enc"
cf_exit 4 'nothing that you mounted' umount "$D"
cf_exit 4 "No such file" umount "$S/no-such/directory"
touch "$D/file"
refused 1 'not empty; an empty directory' "${OPTS[@]}" "$S/ext4.enc"
