#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 20 s
# The kernel's ext4 over both: made on dm-crypt and mounted through cryptfuse and a loop device, and the reverse. Each side
# finds the other's files right, adds its own, and leaves a file system in which fsck finds nothing.
set -euo pipefail
S=$TMPDIR/ext4
bytes=$((48 * 1024 * 1024))
fs=$S/fs mnt=$S/mnt sums=$S/sums

fail() {
	echo "FAIL: ext4/$name ($*)"
	exit 1
}

# ---- a block device through either side: attach sets DEV ----

attach_dm-crypt() {
	LOOP=$(losetup --find --show "$S/img")
	sed "s|DEVICE|$LOOP|" "$S/table" | dmsetup create ext4 || fail "dmsetup"
	DEV=/dev/mapper/ext4
}

detach_dm-crypt() {
	dmsetup remove --retry ext4 || fail "dmsetup remove"
	losetup -d "$LOOP"
}

attach_cryptfuse() {
	"$CRYPTFUSE" open --table "$S/table" "$S/img" "$mnt" || fail "cryptfuse open"
	DEV=$(losetup --find --show "$mnt/volume") || fail "losetup"
}

# A loop device lets go when its last user has; close waits for nobody.
detach_cryptfuse() {
	losetup -d "$DEV"
	for _ in $(seq 100); do
		[ -n "$(losetup -nO BACK-FILE "$DEV" 2>/dev/null)" ] || break
		sleep 0.05
	done
	"$CRYPTFUSE" close "$mnt" || fail "cryptfuse close"
}

# ---- the file system ----

# add NAME - files of many sizes, one with holes, in a folder of that name; their sums
add() {
	mkdir "$fs/$1"
	for n in 0 1 4095 4096 4097 100000 3000000; do head -c $n /dev/urandom >"$fs/$1/$n"; done
	truncate -s 5M "$fs/$1/sparse"
	printf x | dd of="$fs/$1/sparse" bs=1 seek=3000000 conv=notrunc status=none
	(cd "$fs" && find "$1" -type f -exec sha256sum {} +) >>"$sums"
}

check() {
	(cd "$fs" && sha256sum --quiet -c "$sums") || fail "$1 finds other files"
}

fsck() {
	e2fsck -fn "$DEV" || fail "fsck by way of $1"
}

# both_ways FIRST SECOND OPTIONS - made through FIRST, changed through SECOND, looked at through FIRST
both_ways() {
	local first=$1 second=$2 options=$3
	name=made-on-$first
	truncate -s 0 "$S/img" "$sums"
	head -c $bytes /dev/urandom >"$S/img"
	echo "0 $((bytes / 512)) crypt aes-xts-plain64 $(head -c 64 /dev/urandom | od -An -v -tx1 | tr -d ' \n') 0 DEVICE 0 $options" \
		>"$S/table"
	"attach_$first"
	mkfs.ext4 -q -F -b 4096 -L made "$DEV" || fail "mkfs.ext4"
	mount -t ext4 "$DEV" "$fs" || fail "mount by way of $first"
	add "$first"
	umount "$fs"
	fsck "$first"
	"detach_$first"

	"attach_$second"
	fsck "$second"
	mount -t ext4 "$DEV" "$fs" || fail "mount by way of $second"
	check "$second"
	add "$second"
	rm "$fs/$first/100000" && sed -i "\\| $first/100000\$|d" "$sums"
	umount "$fs"
	fsck "$second"
	"detach_$second"

	"attach_$first"
	fsck "$first"
	mount -t ext4 -o ro "$DEV" "$fs" || fail "mount by way of $first again"
	check "$first"
	umount "$fs"
	"detach_$first"
	echo "PASS: ext4/$name (and changed through $second; $(wc -l <"$sums") files right, fsck clean 4 times)"
}

mkdir "$S" "$fs" "$mnt"
both_ways dm-crypt cryptfuse "0"
both_ways cryptfuse dm-crypt "2 sector_size:4096 iv_large_sectors"
