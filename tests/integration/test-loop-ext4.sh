#!/bin/bash
# needs: root
# An ordinary user opens with --allow-root; root puts a loop device on the exposed file and the kernel's ext4 on that.
# The files are there after a fresh open; with --allow-discards fstrim gives space back and what was zeroed reads as
# zeros; without it nothing in the file system rests on a hole.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup mkfs.ext4 fstrim e2fsck
[ -e /dev/loop-control ] || lacking "/dev/loop-control"

M=$S/m V=$S/m/volume IMG=$S/img FS=$S/fs
BYTES=$((64 * 1024 * 1024))
KEY=$(random_hex 64)
mkdir "$FS"
AS=("${AS_USER[@]}")

# ---- without user_allow_other: said before anything is mounted ----
allow_other no
new_image "$IMG" $BYTES sparse
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0 sector_size:4096
chown "$USER_NAME" "$IMG" "$S/table"
as_user mkdir "$M"
for option in --allow-root --allow-other; do
	assert_exit 2 'user_allow_other' "${AS[@]}" "$CRYPTFUSE" open $option --table "$S/table" "$IMG" "$M"
	assert_gone "$M"
done
allow_other yes

attach() {
	LOOP=$(losetup --find --show "$V") || fail "losetup"
	mount -t ext4 -o "$1" "$LOOP" "$FS" || fail "mount"
}

detached() {
	[ -z "$(losetup -nO BACK-FILE "$LOOP" 2>/dev/null)" ]
}

detach() {
	umount "$FS" || fail "umount"
	losetup -d "$LOOP" || fail "losetup -d"
	wait_for "$LOOP to let go" detached
}

fill() {
	mkdir "$FS/d"
	for i in 1 2 3 4 5 6; do head -c $((i * 1234567)) /dev/urandom >"$FS/d/$i"; done
	truncate -s 5M "$FS/d/sparse"
	printf x | dd of="$FS/d/sparse" bs=1 seek=3000000 conv=notrunc status=none
	fallocate -l 3M "$FS/d/preallocated"
	fallocate -z -o 4096 -l 1M "$FS/d/4"
	(cd "$FS/d" && sha256sum -- *) >"$S/sums"
}

check_files() {
	(cd "$FS/d" && sha256sum --quiet -c "$S/sums") || fail "$1: content differs"
}

disk_use() {
	du -B1 "$IMG" | cut -f1
}

for discards in "" --allow-discards; do
	new_image "$IMG" $BYTES # noise: whatever is not written does not read as zeros
	chown "$USER_NAME" "$IMG"
	open_vol "$M" $discards --allow-root --table "$S/table" "$IMG" </dev/null
	LOOP=$(losetup --find --show "$V") || fail "losetup"
	mkfs.ext4 -q -F -L inner "$LOOP" || fail "mkfs.ext4"
	losetup -d "$LOOP"
	attach "rw${discards:+,discard}"
	fill
	check_files "at once"
	detach
	close_vol "$M"

	open_vol "$M" $discards --allow-root --table "$S/table" "$IMG" </dev/null
	assert_match "what is inside" 'ext4.*inner' "$(cat "$S/open.err")"
	as_user e2fsck -fn "$V" >"$S/e2fsck.err" 2>&1 || fail "e2fsck: $(cat "$S/e2fsck.err")"
	attach "rw${discards:+,discard}"
	check_files "after a fresh open"
	before=$(disk_use)
	rm "$FS/d/6" "$FS/d/5" && sed -i '/ [56]$/d' "$S/sums"
	sync -f "$FS"
	if [ -n "$discards" ]; then
		fstrim "$FS" || fail "fstrim"
		sync -f "$FS"
		[ "$(disk_use)" -lt $((before - 10000000)) ] || fail "the backing did not shrink: $before to $(disk_use)"
	elif fstrim "$FS" 2>/dev/null; then
		[ "$(disk_use)" -ge "$before" ] || fail "fstrim made holes without --allow-discards"
	fi
	check_files "after discards"
	detach
	if [ -z "$discards" ]; then
		assert_eq "punch" EOPNOTSUPP "$(as_user "$CRYPTFUSE_TOOLS/fileop" fallocate punch 0 4096 "$V")"
	fi
	close_vol "$M"

	open_vol "$M" $discards --allow-root --table "$S/table" "$IMG" </dev/null
	as_user e2fsck -fn "$V" >"$S/e2fsck.err" 2>&1 || fail "e2fsck at last: $(cat "$S/e2fsck.err")"
	attach ro
	check_files "at last"
	detach
	close_vol "$M"
done

# ---- zeroing through the loop device reads as zeros: by holes, or by zeros that somebody wrote ----
for discards in "" --allow-discards; do
	open_vol "$M" $discards --allow-root --table "$S/table" "$IMG" </dev/null
	LOOP=$(losetup --find --show "$V") || fail "losetup"
	for how in -z "-p"; do
		head -c 65536 /dev/urandom | dd of="$LOOP" bs=64k seek=1 conv=fsync status=none
		fallocate $how -o 69632 -l 8192 "$LOOP" 2>/dev/null || { [ "$how" = -p ] && [ -z "$discards" ]; } ||
			fail "fallocate $how on the loop device $discards"
		if [ "$how" = -z ] || [ -n "$discards" ]; then
			cmp -n 8192 -i 69632:0 "$LOOP" /dev/zero || fail "fallocate $how $discards: not zeros"
			cmp -s -n 4096 -i 65536:0 "$LOOP" /dev/zero && fail "fallocate $how $discards: too many zeros"
			cmp -s -n 4096 -i 77824:0 "$LOOP" /dev/zero && fail "fallocate $how $discards: too many zeros"
		fi
	done
	losetup -d "$LOOP"
	close_vol "$M"
done
