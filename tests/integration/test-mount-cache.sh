#!/bin/bash
# needs: user
# --cache default, writeback and direct: the same bytes in the image; what each does past the end, with O_TRUNC, with
# mappings and at SIGTERM; and decrypted pages are kept from one open to the next only while the image is locked.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((2 * 1024 * 1024))
KEY=$(random_hex 64)
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0 sector_size:4096
open_it() { open_vol "$M" "$@" --table "$S/table" "$IMG" </dev/null; }
plain() { cryptref -c xts -k "$KEY" -s 4096 "$IMG" 0 0 $BYTES; }
reads() { status_field "$V" reads; }

# dirty_pages_survive MODE: a write and a mapping, O_TRUNC by somebody else, SIGTERM: every byte is in the image
dirty_pages_survive() {
	open_it --cache "$1" --stop-timeout 1
	local pid
	pid=$(daemon_pid "$V")
	start_hold "$V" 'this is kept'
	if [ "$1" = writeback ]; then
		assert_eq "O_TRUNC while open, $1" ok "$(fileop open trunc "$V")"
		assert_eq "the length after O_TRUNC, $1" $BYTES "$(stat -c %s "$V")"
	fi
	kill -TERM "$pid"
	wait_for "the daemon to end" gone "$M"
	stop_hold
	for at in 1000 300000; do
		assert_eq "written at $at, $1" 'this is kept' "$(plain | tail -c +$((at + 1)) | head -c 12)"
	done
}

for mode in default writeback direct; do
	new_image "$IMG" $BYTES
	plain >"$S/plain"
	open_it --cache $mode
	assert_eq "status" $mode "$(status_field "$V" cache)"
	assert_same "content, $mode" "$S/plain" "$V"
	echo "0 1
4095 2
10000 600001
$((BYTES - 1)) 1" | fileop poke 3 "$V" "$S/plain" >"$S/out"
	assert_eq "writes, $mode" ok "$(cat "$S/out")"
	assert_same "read back, $mode" "$S/plain" "$V"
	printf new | dd of="$V" status=none || fail "dd of=volume, $mode"
	printf new | dd of="$S/plain" conv=notrunc status=none
	assert_same "after O_TRUNC, $mode" "$S/plain" "$V"
	assert_eq "the length after O_TRUNC, $mode" $BYTES "$(stat -c %s "$V")"
	assert_eq "truncate, $mode" EPERM "$(fileop ftruncate 512 "$V")"
	assert_eq "across the end, $mode" "$([ $mode = writeback ] && echo 2 || echo 1)" \
		"$(printf xy | fileop pwrite $((BYTES - 1)) "$V")"
	printf x | fileop pwrite $((BYTES - 1)) "$S/plain" >/dev/null
	[ $mode = writeback ] || assert_eq "past the end, $mode" ENOSPC "$(printf x | fileop pwrite $BYTES "$V")"
	close_vol "$M" 2>/dev/null
	plain | assert_same "the image, $mode" - "$S/plain"
	[ "$mode" = direct ] || dirty_pages_survive $mode
done

# writeback: past the end is taken, and refused when it is written out
open_it --cache writeback
assert_eq "past the end, writeback" 1 "$(printf x | fileop pwrite $((BYTES + 5000)) "$V")"
assert_match "fsync past the end, writeback" 'ENOSPC|EIO' "$(printf x | dd of="$V" bs=1 seek=$((BYTES + 5000)) conv=notrunc,fsync 2>&1 |
	sed 's/.*No space left.*/ENOSPC/')"
assert_same "the volume after that" "$S/plain" <(head -c $BYTES "$V")
close_vol "$M"
touch "$S/file"
assert_exit 1 'writeback needs a directory' "$CRYPTFUSE" open --cache writeback --table "$S/table" "$IMG" "$S/file"
assert_exit 1 'cache' "$CRYPTFUSE" open --cache some --table "$S/table" "$IMG" "$M"

# locked: the second open finds the pages of the first, read and written ones alike
open_it
cat "$V" >/dev/null
before=$(reads)
assert_same "from the cache" "$S/plain" "$V"
assert_eq "reads of a file that is open for the second time" "$before" "$(reads)"
close_vol "$M"

# --shared: what another changes in the image is seen after the file is opened again, whatever the kernel had of it
for mode in default writeback; do
	open_it --shared --cache $mode
	cat "$V" >/dev/null
	head -c 4096 /dev/urandom | dd of="$IMG" bs=4096 seek=7 conv=notrunc status=none
	plain >"$S/plain"
	assert_same "changed outside, $mode" "$S/plain" "$V"
	assert_eq "status" true "$(status_field "$V" shared)"
	close_vol "$M"
done

# --readahead: lowered by anybody, raised by root only, and what could not be done is said
readahead_kib() { cat "/sys/class/bdi/$(mountpoint -d "$M")/read_ahead_kb"; }
open_it
own=$(readahead_kib)
assert_eq "status" "$own" "$(status_field "$V" readahead_kib)"
close_vol "$M"
open_it --readahead $((own / 4))
assert_eq "lowered" $((own / 4)) "$(readahead_kib)"
close_vol "$M"
open_it --readahead $((own * 8))
assert_eq "raised by an ordinary user" "$own" "$(readahead_kib)"
assert_eq "status" "$own" "$(status_field "$V" readahead_kib)"
assert_match "what is said" "only root .*$own KiB" "$(cat "$S/open.err")"
close_vol "$M"

# --io-uring: served by it, or refused with the reason
if "$CRYPTFUSE" open --io-uring --table "$S/table" "$IMG" "$M" 2>"$S/open.err" </dev/null; then
	assert_same "over io_uring" <(plain) "$V"
	close_vol "$M"
else
	assert_match "no io_uring" 'it needs 3.18|enable_uring' "$(cat "$S/open.err")"
	assert_gone "$M"
fi

# a write is one round trip: the kernel does not ask for security.capability before each (Linux 5.11 and later)
"$CRYPTFUSE" open --debug --table "$S/table" "$IMG" "$M" </dev/null 2>"$S/trace" &
wait_for "the mount" grep -q 'INIT' "$S/trace"
wait_for "the volume" test -e "$V"
dd if=/dev/zero of="$V" bs=4096 count=50 conv=notrunc oflag=direct status=none
close_vol "$M"
wait
[ "$(grep -c 'opcode: WRITE' "$S/trace")" -ge 50 ] || fail "the trace shows no writes"
asked=$(grep -c 'opcode: GETXATTR' "$S/trace" || :)
[ "$asked" -le 5 ] || fail "50 writes brought $asked questions for an attribute"
