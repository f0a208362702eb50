#!/bin/bash
# needs: user
# A power cut: the image lies on a disk that forgets what was not synced. What fsync, a flush of a written handle, or
# close answered for is there afterwards; what was only written is not, which shows that the disk forgets.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume DISK=$S/disk IMG=$S/disk/image
KEY=$(random_hex 64) BYTES=$((1024 * 1024))
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0 sector_size:4096
mkdir "$DISK"

power_on() {
	new_image "$S/platter" $BYTES
	"$CRYPTFUSE_TOOLS/crashfs" "$S/platter" "$DISK" &
	POWER=$!
	wait_for "the disk" test -e "$IMG"
	open_vol "$M" --table "$S/table" "$IMG" </dev/null
}

power_cut() {
	kill -KILL $POWER
	wait $POWER 2>/dev/null || :
	[ -z "${1:-}" ] || kill -KILL "$1"
	fusermount3 -uz "$DISK"
	timeout 20 "$CRYPTFUSE" close "$M" 2>/dev/null || :
	wait_for "the volume to go" gone "$M"
}

on_platter() { # OFF LEN: what dm-crypt would read there now
	cryptref -c xts -k "$KEY" -s 4096 "$S/platter" 0 0 $BYTES >"$S/platter.plain"
	fileop pread "$1" "$2" "$S/platter.plain"
}

# fsync and fdatasync
power_on
pid=$(daemon_pid "$V")
exec 9<>"$V" # open all the time, so that closing the writer below is not what syncs
printf 'synced bytes' | dd of="$V" bs=1 seek=5000 conv=notrunc,fsync status=none
printf 'fdatasynced bytes' | dd of="$V" bs=17 seek=700 conv=notrunc,fdatasync status=none
power_cut "$pid"
exec 9>&-
assert_eq "after fsync" 'synced bytes' "$(on_platter 5000 12)"
assert_eq "after fdatasync" 'fdatasynced bytes' "$(on_platter 11900 17)"

# a write that nobody synced: this disk does forget
power_on
pid=$(daemon_pid "$V")
start_hold "$V" 'never synced'
power_cut "$pid"
stop_hold
[ "$(on_platter 1000 12 | tr -d '\0')" != 'never synced' ] || fail "the disk does not forget: this test proves nothing"

# flush of a written handle
power_on
pid=$(daemon_pid "$V")
printf 'flushed bytes' | fileop pwrite 70000 "$V" >/dev/null
power_cut "$pid"
assert_eq "after close(2) of a written handle" 'flushed bytes' "$(on_platter 70000 13)"

# cryptfuse close
power_on
printf 'closed bytes' | fileop pwrite 80000 "$V" >/dev/null
close_vol "$M"
kill -KILL $POWER
wait $POWER 2>/dev/null || :
fusermount3 -uz "$DISK"
assert_eq "after cryptfuse close" 'closed bytes' "$(on_platter 80000 12)"

# SIGTERM
power_on
printf 'stopped bytes' | fileop pwrite 90000 "$V" >/dev/null
kill -TERM "$(daemon_pid "$V")"
wait_for "the daemon to end" gone "$M"
kill -KILL $POWER
wait $POWER 2>/dev/null || :
fusermount3 -uz "$DISK"
assert_eq "after SIGTERM" 'stopped bytes' "$(on_platter 90000 13)"
