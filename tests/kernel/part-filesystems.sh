#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 20 s
# `mount` as root, with the kernel's own file systems: files written by one mount are right in the next, which only reads and changes
# nothing of the image, and the file system's own checker is content. What this kernel lacks is said, and leaves nothing.
set -euo pipefail
S=$TMPDIR/filesystems
D=$S/files
options=(-q --engine openssl --type plain -c aes-xts-plain64 -s 512 -h sha512)

fail() {
	echo "FAIL: filesystems/$name ($*)"
	exit 1
}

# by_file - the volume as a file, for the command that is given
by_file() {
	"$CRYPTFUSE" open "${options[@]}" "$S/img" "$S/open" <<<pass || fail "open"
	"$@" "$S/open/volume" >"$S/said" 2>&1 || fail "$1: $(tail -n 3 "$S/said")"
	"$CRYPTFUSE" close "$S/open" || fail "close"
}

# made SIZE MKFS… - a new volume with a file system in it
made() {
	rm -f "$S/img"
	truncate -s "$1" "$S/img"
	by_file "${@:2}"
}

# packed PROGRAM… - the same of a program that makes a new file, out of the folder of data
packed() {
	rm -f "$S/img" "$S/plain"
	"$@" "$S/plain" >"$S/said" 2>&1 || fail "$1: $(tail -n 3 "$S/said")"
	"$CRYPTFUSE" encrypt "${options[@]}" "$S/plain" "$S/img" <<<pass || fail "encrypt"
}

mount_it() {
	"$CRYPTFUSE" mount "${options[@]}" "$@" "$S/img" "$D" <<<pass || fail "mount $*: exit $?"
}

umount_it() {
	"$CRYPTFUSE" umount "$D" || fail "umount: exit $?"
	nothing_left
}

nothing_left() {
	[ -z "$(losetup -nO NAME)" ] || fail "a loop device is left: $(losetup -nO NAME,BACK-FILE)"
	! grep -qF -e " $D " -e /run/cryptfuse /proc/self/mountinfo || fail "something is still mounted"
	[ -z "$(find /run/cryptfuse -mindepth 1 2>/dev/null)" ] || fail "a place is left"
}

fs_type() {
	awk -v d="$D" '$5 == d { print $(NF - 2) }' /proc/self/mountinfo
}

right() {
	(cd "$D" && sha256sum --quiet -c "$S/sums") || fail "other files"
}

# kernel_does TYPE CHECKER… - written, read, read-only
kernel_does() {
	mount_it
	[ "$(fs_type)" = "$1" ] || fail "mounted is $(fs_type)"
	cp "$S"/data/* "$D"
	umount_it
	sha256sum "$S/img" >"$S/before"
	mount_it --readonly
	[ "$(fs_type)" = "$1" ] || fail "mounted to be read is $(fs_type)"
	right
	! touch "$D/new" 2>/dev/null || fail "it can be written with --readonly"
	umount_it
	sha256sum --quiet -c "$S/before" || fail "--readonly changed the image"
	by_file "${@:2}"
	echo "PASS: filesystems/$name ($(wc -l <"$S/sums") files right, the image unchanged by --readonly, $2 content)"
}

# kernel_lacks PATTERN - refused, and nothing is left
kernel_lacks() {
	local rc=0 said
	said=$("$CRYPTFUSE" mount "${options[@]}" "$S/img" "$D" <<<pass 2>&1) || rc=$?
	[ $rc = 4 ] || fail "exit $rc: $said"
	[[ $said =~ $1 ]] || fail "it says: $said"
	nothing_left
	echo "PASS: filesystems/$name (refused: ${said#cryptfuse: })"
}

# only_readable TYPE - what can only be read
only_readable() {
	mount_it
	[ "$(fs_type)" = "$1" ] || fail "mounted is $(fs_type)"
	right
	umount_it
	echo "PASS: filesystems/$name ($(wc -l <"$S/sums") files right)"
}

squash() {
	mksquashfs "$S/data" "$1" -noappend -processors 1
}

iso() {
	genisoimage -quiet -R -o "$1" "$S/data"
}


has() {
	command -v "$1" >/dev/null && return
	[ "${CI:-}" != true ] || fail "$1 is missing"
	echo "SKIP: filesystems/$name ($1 is missing)"
	return 1
}

modprobe -d /mnt/modules -a vfat nls_cp437 nls_iso8859-1 nls_ascii nls_utf8 squashfs isofs
mkdir -p "$S/data" "$S/open" "$D"
for n in 0 1 4095 4096 4097 100000 3000000; do head -c $n /dev/urandom >"$S/data/f$n"; done
(cd "$S/data" && sha256sum ./*) >"$S/sums"

name=vfat
if has mkfs.vfat; then made 24M mkfs.vfat && kernel_does vfat fsck.vfat -n; fi
name=xfs
if has mkfs.xfs; then made 32M mkfs.xfs -q --unsupported && kernel_does xfs xfs_repair -n -f; fi
name=btrfs
if has mkfs.btrfs; then made 32M mkfs.btrfs -q --mixed && kernel_does btrfs btrfs check; fi
name=squashfs
if has mksquashfs; then packed squash && only_readable squashfs; fi
name=iso9660
if has genisoimage; then packed iso && only_readable iso9660; fi

# The programs that could do it instead are hidden.
for program in mount.exfat-fuse ntfs-3g; do
	if path=$(command -v $program); then mount --bind /dev/null "$(realpath "$path")"; fi
done
name=exfat-lacking
if has mkfs.exfat; then
	made 16M mkfs.exfat
	kernel_lacks 'exfat: the kernel has no exfat, and mount.exfat-fuse is missing \(Debian: apt install exfat-fuse\)'
fi
name=ntfs-lacking
if has mkntfs; then
	made 16M mkntfs -q -Q -F
	kernel_lacks 'ntfs: the kernel has no ntfs3, and ntfs-3g is missing \(Debian: apt install ntfs-3g\)'
fi
name=minix-lacking # a module here, which is not loaded
if has mkfs.minix; then
	made 16M mkfs.minix
	kernel_lacks 'minix: the kernel has no minix, and no program is known here'
fi
