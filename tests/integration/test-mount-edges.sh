#!/bin/bash
# needs: user
# Every edge of data unit and volume, in both numberings; counters that wrap at 2^32 and 2^64; 1 and 2 TiB of a sparse
# backing. The same bytes are written into the volume and into a plain file; what lies in the backing is deciphered by
# a program that shares no code with ours.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
KEY=$(random_hex 64)
echo "key $KEY"

# pokes DU BYTES: offsets and lengths around data units and the end, one "OFF LEN" a line
pokes() {
	local du=$1 bytes=$2 off len
	for off in 0 1 $((du - 1)) "$du" $((du + 1)) $((3 * du)) $((bytes - du - 1)) $((bytes - du)) $((bytes - 1)); do
		for len in 1 2 $((du - 1)) "$du" $((du + 1)) $((2 * du)); do
			[ $((off + len)) -gt "$bytes" ] || echo "$off $len"
		done
	done
}

# check_edges CHAIN IV DU IV_OFFSET DATA_SECTOR [iv_large_sectors]
check_edges() {
	local chain=$1 iv=$2 du=$3 iv_offset=$4 data=$5 large=${6:-} key=$KEY
	local bytes=$((16 * du)) what="aes-$chain-$iv DU $du iv_offset $iv_offset at $data $large"
	local ref=(-c "$chain" -v "$iv" -s "$du" -i "$iv_offset" ${large:+-L})
	[ "$chain" = xts ] || key=${KEY:0:64}
	new_image "$IMG" $((data * 512 + bytes + 512))
	cp "$IMG" "$S/before"
	cryptref "${ref[@]}" -k "$key" "$IMG" $((data * 512)) 0 $bytes >"$S/plain"
	table "$S/table" $((bytes / 512)) "aes-$chain-$iv" "$key" "$iv_offset" "$data" "sector_size:$du" ${large:+"$large"}
	open_vol "$M" --table "$S/table" "$IMG" </dev/null
	assert_same "$what, as opened" "$S/plain" "$V"
	assert_eq "$what, pokes" ok "$(pokes "$du" $bytes | fileop poke "$du" "$V" "$S/plain")"
	assert_same "$what, through the mount" "$S/plain" "$V"
	close_vol "$M"
	cryptref "${ref[@]}" -k "$key" "$IMG" $((data * 512)) 0 $bytes | assert_same "$what, backing" - "$S/plain"
	cmp -n $((data * 512)) "$IMG" "$S/before" || fail "$what: bytes before the volume changed"
	cmp -i $((data * 512 + bytes)) "$IMG" "$S/before" || fail "$what: bytes after the volume changed"
}

for du in 512 4096 65536; do
	check_edges xts plain64 $du 0 0
	check_edges cbc plain64 $du 0 63 iv_large_sectors
done
check_edges xts plain 512 4294967295 1
check_edges xts plain64 512 18446744073709551614 1
for du in 4096 65536; do
	for large in "" iv_large_sectors; do
		# the wrap lies in the middle: eight data units before it, eight after
		check_edges xts plain $du $((4294967296 - du / 64)) 0 $large
		check_edges xts plain64 $du $((4294967296 - du / 64)) 0 $large
		check_edges cbc plain64 $du "$(printf %u $((-du / 64)))" 0 $large
	done
done

# ---- far out on a sparse backing ----
TIB=$((1024 * 1024 * 1024 * 1024)) DU=4096
for iv in plain plain64; do
	new_image "$IMG" $((2 * TIB + 16 * DU)) sparse
	table "$S/table" $(((2 * TIB + 16 * DU) / 512)) aes-xts-$iv "$KEY" 0 0 sector_size:$DU
	open_vol "$M" --table "$S/table" "$IMG" </dev/null
	for at in $TIB $((2 * TIB)) $((4294967296)); do
		from=$((at - 2 * DU))
		fileop pread $from $((4 * DU)) "$V" >"$S/plain"
		# the shadow holds the volume's bytes from $from on
		cryptref -c xts -v $iv -k "$KEY" -s $DU "$IMG" $from $from $((4 * DU)) | assert_same "$iv, holes at $at" - "$S/plain"
		head -c $((2 * DU + 100)) /dev/urandom >"$S/new"
		dd if="$S/new" of="$S/plain" bs=1M seek=$((DU - 50)) oflag=seek_bytes conv=notrunc status=none
		assert_eq "$iv, write at $at" $((2 * DU + 100)) "$(fileop pwrite $((from + DU - 50)) "$V" <"$S/new")"
		fileop pread $from $((4 * DU)) "$V" | assert_same "$iv, read at $at" - "$S/plain"
		assert_eq "$iv, fsync" ok "$(fileop fsync "$V")"
		cryptref -c xts -v $iv -k "$KEY" -s $DU "$IMG" $from $from $((4 * DU)) | assert_same "$iv, backing at $at" - "$S/plain"
	done
	# the same plaintext at 0 and at 2 TiB: the same ciphertext where plain wraps, another where plain64 does not
	fileop pwrite 0 "$V" <"$S/new" >/dev/null
	fileop pwrite $((2 * TIB)) "$V" <"$S/new" >/dev/null
	close_vol "$M"
	same=no
	[ "$(fileop pread 0 $DU "$IMG" | sha256sum)" != "$(fileop pread $((2 * TIB)) $DU "$IMG" | sha256sum)" ] || same=yes
	case $iv in
	plain) assert_eq "plain wraps at 2 TiB" yes $same ;;
	plain64) assert_eq "plain64 does not wrap at 2 TiB" no $same ;;
	esac
done
