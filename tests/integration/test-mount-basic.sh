#!/bin/bash
# needs: user
# An ordinary user opens a plain volume by passphrase, key file and table, on a directory and on a file, and the file
# shown behaves as a block device would; the backing holds what dm-crypt would have written.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((4 * 1024 * 1024)) SECTORS=$((4 * 2048))
KEY=$(printf 'open sesame' | sha512sum | cut -d' ' -f1)

# ---- three ways to the same key ----
new_image "$IMG" $BYTES
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $BYTES >"$S/plain"
OPTS=(-c aes-xts-plain64 -s 512)

printf 'open sesame\nnot this line\n' | open_vol "$M" "${OPTS[@]}" -h sha512 "$IMG"
assert_same "passphrase" "$S/plain" "$V"
assert_match "what is inside" 'nothing known|no known' "$(cat "$S/open.err")"
close_vol "$M"

printf '%s' "$KEY" | sed 's/../\\x&/g' | xargs -0 printf '%b' >"$S/key"
open_vol "$M" "${OPTS[@]}" -d "$S/key" "$IMG" </dev/null
assert_same "key file" "$S/plain" "$V"
close_vol "$M"

table "$S/table" $SECTORS aes-xts-plain64 "$KEY" 0 0
open_vol "$M" --table "$S/table" "$IMG" </dev/null
assert_same "table" "$S/plain" "$V"

# ---- write, read back, and look at the backing ----
echo "3 5
511 1
512 512
4095 4098
1000000 700001
$((BYTES - 1)) 1" | fileop poke 1 "$V" "$S/plain" >"$S/out"
assert_eq "writes" ok "$(cat "$S/out")"
assert_same "read back" "$S/plain" "$V"
assert_eq "fsync" ok "$(fileop fsync "$V")"
close_vol "$M"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $BYTES | assert_same "the backing" - "$S/plain"
open_vol "$M" --table "$S/table" "$IMG" </dev/null
assert_same "after a fresh open" "$S/plain" "$V"

# ---- what the file is ----
assert_eq "mode and owner" "600 $(id -u) $(id -g) $BYTES" "$(stat -c '%a %u %g %s' "$V")"
assert_eq "the only entry" volume "$(ls -A "$M")"
[ "$(stat -c %o "$V")" -ge 4096 ] || fail "st_blksize $(stat -c %o "$V")"
assert_match "mount options" 'default_permissions' "$(awk -v m="$M" '$5 == m' /proc/self/mountinfo)"
assert_match "mount options" 'nosuid.*nodev' "$(awk -v m="$M" '$5 == m' /proc/self/mountinfo)"
assert_match "mount type" ' fuse.cryptfuse ' "$(awk -v m="$M" '$5 == m' /proc/self/mountinfo)"
assert_match "mount source" "$IMG" "$(awk -v m="$M" '$5 == m' /proc/self/mountinfo)"
assert_eq "xattr list" user.cryptfuse.status "$(fileop listxattr "$V")"
assert_eq "another xattr" ENODATA "$(fileop getxattr user.other "$V")"
assert_match "status on the file" '"aes-xts-plain64"' "$(fileop getxattr user.cryptfuse.status "$V")"
assert_match "status on the directory" '"aes-xts-plain64"' "$(fileop getxattr user.cryptfuse.status "$M")"
"$CRYPTFUSE" status "$M" >"$S/status" || fail "status: exit $?"
assert_match "status" 'aes' "$(cat "$S/status")"

# ---- what a block device would not do ----
assert_eq "truncate shorter" EPERM "$(fileop ftruncate 512 "$V")"
assert_eq "truncate longer" EPERM "$(fileop ftruncate $((BYTES + 512)) "$V")"
assert_eq "truncate to the same length" ok "$(fileop ftruncate $BYTES "$V")"
assert_eq "chmod" EPERM "$(fileop chmod 644 "$V")"
assert_eq "chown" EPERM "$(fileop chown 1 "$V")"
touch "$V" || fail "touch"
if touch "$M/other" 2>/dev/null || rm "$V" 2>/dev/null || mv "$V" "$M/x" 2>/dev/null || mkdir "$M/d" 2>/dev/null; then
	fail "the directory can be changed"
fi

# O_TRUNC changes nothing, but is EBUSY while another handle is open, whose dirty pages the kernel would drop.
assert_eq "O_TRUNC" ok "$(fileop open trunc "$V")"
assert_same "O_TRUNC" "$S/plain" "$V"
exec 9<>"$V"
assert_eq "O_TRUNC while open" EBUSY "$(fileop open trunc "$V")"
exec 9>&-
printf new | dd of="$V" status=none || fail "dd of=volume"
printf new | dd of="$S/plain" conv=notrunc status=none
assert_same "dd of=volume" "$S/plain" "$V"

# ---- the end ----
assert_eq "write past the end" ENOSPC "$(printf x | fileop pwrite $BYTES "$V")"
assert_eq "write across the end" 1 "$(printf xy | fileop pwrite $((BYTES - 1)) "$V")"
printf x | fileop pwrite $((BYTES - 1)) "$S/plain" >/dev/null
assert_eq "read past the end" "" "$(fileop pread $((BYTES + 1)) 10 "$V")"
assert_eq "read across the end" x "$(fileop pread $((BYTES - 1)) 4096 "$V")"
assert_same "around the end" "$S/plain" "$V"

# ---- fallocate and lseek ----
assert_eq "allocate inside" ok "$(fileop fallocate alloc 0 $BYTES "$V")"
assert_eq "allocate, keeping the size" ok "$(fileop fallocate keep 4096 4096 "$V")"
assert_eq "allocate past the end" ENOSPC "$(fileop fallocate alloc 4096 $BYTES "$V")"
assert_eq "zero past the end" ENOSPC "$(fileop fallocate zero 4096 $BYTES "$V")"
assert_eq "punch without --allow-discards" EOPNOTSUPP "$(fileop fallocate punch 4096 4096 "$V")"
assert_eq "collapse" EOPNOTSUPP "$(fileop fallocate collapse 4096 4096 "$V")"
assert_same "none of these changed a byte" "$S/plain" "$V"
assert_eq "zero" ok "$(fileop fallocate zero 4097 5000 "$V")"
dd if=/dev/zero of="$S/plain" bs=5000 count=1 seek=4097 oflag=seek_bytes conv=notrunc status=none
assert_same "zero" "$S/plain" "$V"
assert_eq "SEEK_DATA" 4100 "$(fileop seek data 4100 "$V")"
assert_eq "SEEK_HOLE" $BYTES "$(fileop seek hole 0 "$V")"
assert_eq "SEEK_DATA at the end" ENXIO "$(fileop seek data $BYTES "$V")"
assert_eq "SEEK_HOLE at the end" ENXIO "$(fileop seek hole $BYTES "$V")"
close_vol "$M"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $BYTES | assert_same "the backing, at last" - "$S/plain"

# ---- a regular file as mount point, another name, a big data unit ----
touch "$S/file"
timeout 60 "$CRYPTFUSE" open --table "$S/table" "$IMG" "$S/file" 2>"$S/open.err" || fail "open on a file"
assert_same "on a file" "$S/plain" "$S/file"
echo "100 9000" | fileop poke 2 "$S/file" "$S/plain" >/dev/null
assert_same "write on a file" "$S/plain" "$S/file"
close_vol "$S/file"
[ ! -s "$S/file" ] || fail "the mount point has content"

table "$S/big" $SECTORS aes-xts-plain64 "$KEY" 0 0 sector_size:65536 iv_large_sectors
open_vol "$M" --table "$S/big" --name other.img "$IMG" </dev/null
assert_eq "--name" other.img "$(ls -A "$M")"
[ "$(stat -c %o "$M/other.img")" -ge 65536 ] || fail "st_blksize is below the data unit"
cryptref -c xts -k "$KEY" -s 65536 -L "$IMG" 0 0 $BYTES | assert_same "data unit 65536" - "$M/other.img"
close_vol "$M"
