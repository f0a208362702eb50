#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 20 s
# The program itself, as an ordinary user: what dm-crypt wrote under random tables is read through the mounted file, random
# ranges are written through it, and dm-crypt reads those.
set -euo pipefail
count=6
dir=$TMPDIR/images mnt=$TMPDIR/mnt
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --)
RANDOM=$((SEED % 32768))

fail() {
	echo "FAIL: mounted/$1"
	exit 1
}

# write_ranges FILE PLAIN - the same random bytes at the same random places of both
write_ranges() {
	local size off len f
	size=$(stat -c %s "$2")
	for _ in 1 2 3 4 5 6; do
		off=$((RANDOM * 17 % size)) len=$((1 + RANDOM % 9000))
		[ $((off + len)) -le "$size" ] || len=$((size - off))
		"${user[@]}" head -c $len /dev/urandom >"$TMPDIR/bytes"
		for f in "$1" "$2"; do
			"${user[@]}" dd if="$TMPDIR/bytes" of="$f" bs=64k oflag=seek_bytes seek=$off conv=notrunc status=none
		done
	done
}

mkdir "$dir"
"$BUILD/tests/kernel/images" make "$dir" "$SEED" $count
chown -R 65534 "$dir"
"${user[@]}" mkdir "$mnt"
for ((i = 0; i < count; i++)); do
	cut -c1-200 "$dir/$i.table"
	"${user[@]}" "$CRYPTFUSE" open --table "$dir/$i.table" "$dir/$i.img" "$mnt" || fail "open (table $i)"
	"${user[@]}" cmp "$mnt/volume" "$dir/$i.plain" || fail "read (table $i)"
	write_ranges "$mnt/volume" "$dir/$i.plain"
	"${user[@]}" cmp "$mnt/volume" "$dir/$i.plain" || fail "write (table $i)"
	"${user[@]}" "$CRYPTFUSE" close "$mnt" || fail "close (table $i)"
done
echo "PASS: mounted/reads ($count images that dm-crypt wrote)"
"$BUILD/tests/kernel/images" check "$dir" "$SEED" $count || fail "dm-crypt-reads"
echo "PASS: mounted/dm-crypt-reads ($count images that cryptfuse wrote to)"
