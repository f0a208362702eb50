#!/bin/bash
# needs: root
# A loop device on the file, with each --cache and with --direct: what is written to the one is what the other holds,
# fio verifies, and it is in the image. Root may raise the read-ahead.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup fio
[ -e /dev/loop-control ] || lacking "/dev/loop-control"

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((24 * 1024 * 1024))
KEY=$(random_hex 64)
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0
new_image "$IMG" $BYTES sparse

detached() { [ -z "$(losetup -nO BACK-FILE "$LOOP" 2>/dev/null)" ]; }

# run_fio FILE write|read
run_fio() {
	local only=()
	[ "$2" = write ] || only=(--verify_only)
	fio --name=x --filename="$1" --numjobs=3 --rw=randwrite --verify=crc32c --verify_fatal=1 --bsrange=512-70k --bs_unaligned=0 \
		--size=4m --offset_increment=8m --direct=1 --thread --randseed=4711 --allrandrepeat=1 --minimal "${only[@]}" \
		>"$S/fio.out" 2>"$S/fio.err" || fail "fio on $1, $options, $2: $(head -5 "$S/fio.err")"
}

for options in "--cache default" "--cache writeback" "--cache direct" "--cache direct --direct" "--direct"; do
	# shellcheck disable=SC2086
	open_vol "$M" $options --readahead 1024 --table "$S/table" "$IMG" </dev/null
	assert_eq "read-ahead" 1024 "$(cat "/sys/class/bdi/$(mountpoint -d "$M")/read_ahead_kb")"
	LOOP=$(losetup --find --show "$V") || fail "losetup, $options"
	run_fio "$LOOP" write
	head -c 100000 /dev/urandom >"$S/piece"
	dd if="$S/piece" of="$LOOP" bs=1000 seek=22001 conv=notrunc,fsync status=none
	assert_same "read back, $options" "$S/piece" <(tail -c +22001001 "$LOOP" | head -c 100000)
	losetup -d "$LOOP"
	wait_for "$LOOP to let go" detached
	assert_same "in the file, $options" "$S/piece" <(tail -c +22001001 "$V" | head -c 100000)
	run_fio "$V" read
	close_vol "$M"
	cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $BYTES >"$S/plain"
	assert_same "in the image, $options" "$S/piece" <(tail -c +22001001 "$S/plain" | head -c 100000)
done
