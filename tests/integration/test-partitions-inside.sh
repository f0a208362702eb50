#!/bin/bash
# needs: user
# A volume with a partition table inside: volume.p1 and so on are the partitions' bytes, end where they end, and only one
# file over the same bytes may be open for writing; what one wrote the other reads. A file as mount point shows none.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need sfdisk

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((16 * 1024 * 1024))
KEY=$(random_hex 64)
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0 sector_size:4096
open_it() { open_vol "$M" "$@" --table "$S/table" "$IMG" </dev/null; }
plain() { # OFF LEN: of what the image holds, decrypted by another program
	cryptref -c xts -k "$KEY" -s 4096 "$IMG" 0 0 $BYTES >"$S/all"
	dd if="$S/all" bs=1M iflag=skip_bytes,count_bytes skip="$1" count="$2" status=none
}

new_image "$IMG" $BYTES
open_it
assert_eq "files of a volume without a table" volume "$(ls "$M")"
# 1: 1 MiB to 4 MiB; 2: extended, with 5 (3 MiB) and 6; 3: the rest, which is no whole number of data units
sfdisk -q --no-reread --no-tell-kernel "$V" <<-X || fail "sfdisk"
	label: dos
	start=2048, size=6144, type=83
	start=8192, size=16384, type=5
	start=24576, size=8185, type=83
	start=10240, size=6144, type=83
	start=18432, size=2048, type=83
X
close_vol "$M"

# ---- names, sizes, content ----
open_it --name vol
assert_eq "files" "vol vol.p1 vol.p3 vol.p5 vol.p6" "$(find "$M" -mindepth 1 -printf "%f\n" | sort | paste -sd " ")"
assert_match "what is said" 'found dos partition table' "$(cat "$S/open.err")"
assert_match "what is said" 'vol\.p1, vol\.p3, vol\.p5, vol\.p6' "$(cat "$S/open.err")"
close_vol "$M"
open_it -q
assert_eq "a quiet open" "" "$(cat "$S/open.err")"
declare -A START=([1]=2048 [3]=24576 [5]=10240 [6]=18432) SIZE=([1]=6144 [3]=8185 [5]=6144 [6]=2048)
for n in 1 3 5 6; do
	assert_eq "size of p$n" $((SIZE[$n] * 512)) "$(stat -c %s "$V.p$n")"
	assert_eq "mode of p$n" 600 "$(stat -c %a "$V.p$n")"
	cmp -n $((SIZE[$n] * 512)) -i $((START[$n] * 512)):0 "$V" "$V.p$n" || fail "p$n is not the volume's bytes"
done
assert_eq "status of a partition" "$(status_field "$V" pid)" "$(status_field "$V.p1" pid)"
assert_match "status" '"partitions":\[{"number":1,"offset":1048576,"bytes":3145728}' \
	"$(fileop getxattr user.cryptfuse.status "$V")"

# ---- writes: where they belong, not past the end ----
END=$((8185 * 512))
assert_eq "write across a data unit" 5 "$(printf hello | fileop pwrite 4094 "$V.p3")"
assert_eq "seen in the volume" hello "$(fileop pread $((24576 * 512 + 4094)) 5 "$V")"
assert_eq "write at the end" 3 "$(printf abcdef | fileop pwrite $((END - 3)) "$V.p3")"
assert_eq "read at the end" abc "$(fileop pread $((END - 3)) 100 "$V.p3")"
assert_eq "write past the end" ENOSPC "$(printf x | fileop pwrite $END "$V.p3")"
assert_eq "read past the end" "" "$(fileop pread $END 5 "$V.p3")"
assert_eq "what follows p1 is what was there" "$(plain $((8192 * 512)) 64 | sha256sum)" \
	"$(fileop pread $((8192 * 512)) 64 "$V" | sha256sum)"
assert_eq "zero" ok "$(fileop fallocate zero 1000 2000 "$V.p3")"
cmp -n 2000 -i 1000:0 "$V.p3" /dev/zero || fail "not zeroed"
assert_eq "zero past the end" ENOSPC "$(fileop fallocate zero $((END - 10)) 11 "$V.p3")"
assert_eq "allocate past the end" ENOSPC "$(fileop fallocate alloc $END 1 "$V.p3")"
assert_eq "allocate inside" ok "$(fileop fallocate alloc 0 $END "$V.p3")"
assert_eq "punch" EOPNOTSUPP "$(fileop fallocate punch 0 4096 "$V.p3")"
assert_eq "seek data" 77 "$(fileop seek data 77 "$V.p3")"
assert_eq "seek hole" $END "$(fileop seek hole 77 "$V.p3")"
assert_eq "seek past the end" ENXIO "$(fileop seek data $END "$V.p3")"
assert_eq "truncate" EPERM "$(fileop ftruncate 5 "$V.p3")"
assert_eq "fsync" ok "$(fileop fsync "$V.p3")"
plain $((24576 * 512)) $END >"$S/plain"
assert_same "the image holds it" "$S/plain" "$V.p3"
printf abc | cmp -n 3 -i 0:$((END - 3)) - "$S/plain" || fail "the last bytes are not in the image"

# ---- one writer ----
exec 5<>"$V.p1"
assert_eq "the volume beside p1" EBUSY "$(fileop open rw "$V")"
assert_eq "O_TRUNC of the volume beside p1" EBUSY "$(fileop open trunc "$V")"
assert_eq "reading the volume beside p1" ok "$(fileop open r "$V")"
assert_eq "another partition beside p1" ok "$(fileop open rw "$V.p3")"
assert_eq "p1 twice" ok "$(fileop open rw "$V.p1")"
exec 5>&-
assert_eq "the volume afterwards, at once" ok "$(fileop open rw "$V")"
exec 5<>"$V"
assert_eq "p1 beside the volume" EBUSY "$(fileop open rw "$V.p1")"
exec 5>&-
exec 5<"$V" # a reader has pages of it
for i in 1 2 3; do
	head -c 3 "$V" >/dev/null
	fileop pread 1048576 5 "$V" >/dev/null
	assert_eq "write p1, $i" 5 "$(printf 'abc%02d' $i | fileop pwrite 0 "$V.p1")"
	assert_eq "the volume has it at its next open, $i" "$(printf 'abc%02d' $i)" "$(fileop pread 1048576 5 "$V")"
	assert_eq "write the volume, $i" 5 "$(printf 'xyz%02d' $i | fileop pwrite 1048576 "$V")"
	assert_eq "p1 has it at its next open, $i" "$(printf 'xyz%02d' $i)" "$(fileop pread 0 5 "$V.p1")"
done
exec 5<&-

# ---- dirty pages of a partition's mapping at SIGTERM ----
close_vol "$M"
open_it --stop-timeout 1
PID=$(daemon_pid "$V")
start_hold "$V.p1" 'this is kept'
kill -TERM "$PID"
wait_for "the daemon to end" gone "$M"
stop_hold
for at in 1000 300000; do
	assert_eq "at $at of p1" 'this is kept' "$(plain $((1048576 + at)) 12)"
done

# ---- discards ----
open_it --allow-discards
assert_eq "punch" ok "$(fileop fallocate punch 4096 65536 "$V.p5")"
cmp -n 65536 -i 4096:0 "$V.p5" /dev/zero || fail "punched, but no zeros"
assert_eq "the hole" 4096 "$(fileop seek hole 0 "$V.p5")"
assert_eq "data behind it" 69632 "$(fileop seek data 4096 "$V.p5")"
assert_eq "punch is cut at the end" ok "$(fileop fallocate punch $((2048 * 512 - 4096)) 1000000 "$V.p6")"
assert_eq "no hole behind p6" $((20480 * 512)) "$(fileop seek data $((20480 * 512 - 4096)) "$V")"
close_vol "$M"

# ---- read-only; a file as mount point ----
open_it --readonly
assert_eq "write" EROFS "$(fileop open rw "$V.p1")"
assert_eq "mode" 400 "$(stat -c %a "$V.p1")"
close_vol "$M"
: >"$S/f"
timeout 60 "$CRYPTFUSE" open --table "$S/table" "$IMG" "$S/f" 2>"$S/open.err" || fail "open: $(cat "$S/open.err")"
assert_eq "size of the file" $BYTES "$(stat -c %s "$S/f")"
close_vol "$S/f"
