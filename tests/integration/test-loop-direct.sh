#!/bin/bash
# needs: root
# --direct on a block device with blocks of 4096 bytes: data units of 512 at sector 63 share blocks with their
# neighbours, and with what lies before and behind the volume; nothing of those ever changes.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need losetup fio
[ -e /dev/loop-control ] || lacking "/dev/loop-control"

M=$S/m V=$S/m/volume DISK=$S/disk
DISK_BYTES=$((24 * 1024 * 1024)) SKIP=$((63 * 512)) BYTES=$((16 * 1024 * 1024))
KEY=$(random_hex 64)
new_image "$DISK" $DISK_BYTES
cp "$DISK" "$S/before"
LOOP=$(losetup --find --show --sector-size 4096 "$DISK") || skip "no loop device of 4096-byte blocks"
[ "$(blockdev --getss "$LOOP")" = 4096 ] || skip "no loop device of 4096-byte blocks"

for du in 512 4096; do
	table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 63 sector_size:$du
	for direct in "" --direct; do
		open_vol "$M" $direct --table "$S/table" "$LOOP" </dev/null
		cp "$V" "$S/plain"
		echo "0 1
513 700
4095 1000002
$((BYTES - 1)) 1" | fileop poke 5 "$V" "$S/plain" >"$S/out"
		assert_eq "writes, DU $du $direct" ok "$(cat "$S/out")"
		assert_same "read back, DU $du $direct" "$S/plain" "$V"
		model -d -t 0.5 -u $du "$V" || fail "model, DU $du $direct"
		model -D -d -t 0.3 -u $du "$V" || fail "processes on one data unit, DU $du $direct"
		fio --name=x --filename="$V" --numjobs=3 --rw=randwrite --verify=crc32c --verify_fatal=1 --bsrange=512-70k --bs_unaligned=1 \
			--size=4m --offset_increment=5200385 --direct=1 --thread --minimal >"$S/fio.out" 2>"$S/fio.err" ||
			fail "fio, DU $du $direct: $(head -5 "$S/fio.err")"
		cp "$V" "$S/plain"
		close_vol "$M"
		cryptref -c xts -k "$KEY" -s $du "$LOOP" $SKIP 0 $BYTES | assert_same "the device, DU $du $direct" - "$S/plain"
	done
done
cmp -n $SKIP "$S/before" "$LOOP" || fail "changed before the volume"
cmp -i $((SKIP + BYTES)) "$S/before" "$LOOP" || fail "changed behind the volume"
losetup -d "$LOOP"
