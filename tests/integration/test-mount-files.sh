#!/bin/bash
# needs: user
# An ordinary user mounts the file system in a volume with one command and gets back what was written with one other:
# ext4, vfat, squashfs and ISO 9660, whole and in a partition. After every umount, and every failure, nothing is left.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need mkfs.ext4 e2fsck debugfs fuse2fs sfdisk

export XDG_RUNTIME_DIR=$S/run
mkdir -m 0700 "$XDG_RUNTIME_DIR"
mkdir "$S/files"
D=$S/files
OPTS=(--type plain -c aes-xts-plain64 -s 512 -h sha512)

mount_vol() {
	timeout -k 5 60 "$CRYPTFUSE" mount "$@" "$D" <<<"open sesame" >"$S/mount.out" 2>"$S/mount.err" ||
		fail "mount $*: exit $?: $(cat "$S/mount.err")"
	mounted "$D" || fail "mount $* returned, but nothing is mounted"
}

umount_vol() {
	timeout -k 5 60 "$CRYPTFUSE" umount "$D" 2>"$S/umount.err" || fail "umount: exit $?: $(cat "$S/umount.err")"
	assert_nothing
}

# Nothing mounted, nothing running, no directory.
assert_nothing() {
	local left
	left=$(awk -v s="$S/" 'index($5, s) == 1 { print $5 }' /proc/self/mountinfo)
	assert_eq "mounts left" "" "$left"
	assert_eq "places left" "" "$(ls -A "$XDG_RUNTIME_DIR/cryptfuse" 2>/dev/null || :)"
	wait_for 5 "the processes to end" nobody_runs
}

nobody_runs() {
	! pgrep -f "$S/.*(files|mount-)" >/dev/null
}

# encrypted PLAIN: the same as a volume.
encrypted() {
	rm -f "$1.enc"
	printf 'open sesame' | "$CRYPTFUSE" encrypt -q "${OPTS[@]}" "$1" "$1.enc" || fail "encrypt $1"
}

decrypted() { # IMAGE
	rm -f "$S/plain"
	printf 'open sesame' | "$CRYPTFUSE" decrypt -q "${OPTS[@]}" "$1" "$S/plain" || fail "decrypt $1"
}

# ---- ext4: write, umount, mount again ----
truncate -s 32M "$S/ext4"
mkfs.ext4 -q -L inner -E "root_owner=$(id -u):$(id -g)" "$S/ext4"
encrypted "$S/ext4"
mount_vol "${OPTS[@]}" "$S/ext4.enc"
assert_match "what is said" 'ext4\.enc is mounted at .*files: plain, 32 MiB, aes-xts-plain64, ext4, label inner' "$(cat "$S/mount.err")"
assert_match "status" "volume: .*ext4.enc" "$("$CRYPTFUSE" status)"
head -c 5000000 /dev/urandom >"$D/data"
mkdir "$D/folder"
echo text >"$D/folder/file"
SUM=$(sha256sum <"$D/data")
umount_vol
mount_vol "${OPTS[@]}" "$S/ext4.enc"
assert_eq "data" "$SUM" "$(sha256sum <"$D/data")"
assert_eq "a file in a folder" text "$(cat "$D/folder/file")"
umount_vol
decrypted "$S/ext4.enc"
e2fsck -fn "$S/plain" >"$S/fsck.err" 2>&1 || fail "e2fsck: exit $?"

# ---- read-only: not a byte of the image changes ----
sha256sum "$S/ext4.enc" >"$S/before"
mount_vol --readonly "${OPTS[@]}" "$S/ext4.enc"
assert_eq "data" "$SUM" "$(sha256sum <"$D/data")"
if touch "$D/new" 2>/dev/null; then fail "a read-only mount can be written"; fi
umount_vol
sha256sum -c --quiet "$S/before" || fail "a read-only mount changed the image"

# ---- failures leave nothing ----
assert_exit 1 'nothing known was found inside' "$CRYPTFUSE" mount --type plain -c aes-cbc-plain -s 256 -h sha256 -d "$S/before" "$S/ext4.enc" "$D"
assert_nothing
assert_exit 4 'no-such' "$CRYPTFUSE" mount "${OPTS[@]}" "$S/no-such" "$D"
assert_nothing
assert_exit 4 'nothing that you mounted' "$CRYPTFUSE" umount "$D"
assert_exit 1 'no program is known' "$CRYPTFUSE" mount --fs nonsense -c null -d "$S/before" -h plain "$S/ext4.enc" "$D"
assert_nothing
