#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# suspend and resume again and again under a load that verifies what it reads: in each cache mode and with a journal, also in the image itself; and
# no page that the kernel had cached of the file is left after suspend, whoever reads meanwhile.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fio python3 getconf

M=$S/m V=$S/m/volume IMG=$S/img BYTES=$((16 << 20)) KEY=$(random_hex 64)
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 0 sector_size:4096

waits() { "$CRYPTFUSE" status "$M" | grep -qE '^suspended.waiting_(reads|writes): [1-9]'; }
waits_or_ended() { waits || ! kill -0 "$writer"; }

for mode in default writeback direct journal; do
	new_image "$IMG" $BYTES
	options=(--cache "$mode")
	[ $mode != journal ] || options=(--journal "$S/journal")
	open_vol "$M" -q "${options[@]}" --table "$S/table" "$IMG" </dev/null
	timeout -k 5 300 fio --name=w --filename="$V" --rw=randwrite --bsrange=512-64k --bs_unaligned=1 --size=$((BYTES / 2)) --io_size=$((4 * BYTES)) \
		--verify=crc32c --verify_fatal=1 --do_verify=1 --ioengine=psync --fsync=32 --randseed=1 --minimal >"$S/w.out" 2>"$S/w.err" &
	writer=$!
	timeout -k 5 300 fio --name=r --filename="$V" --offset=$((BYTES / 2)) --size=$((BYTES / 2)) --rw=randread --bs=4k --numjobs=4 --thread \
		--ioengine=psync --io_size=$((BYTES * 4)) --invalidate=0 --minimal >"$S/r.out" 2>"$S/r.err" &
	reader=$!
	n=0
	while [ $n -lt 5 ] || { kill -0 $writer && [ $n -lt 40 ]; } 2>/dev/null; do
		timeout 100 "$CRYPTFUSE" suspend "$M" || fail "$mode: suspend: exit $?"
		wait_for "$mode: the load to wait or end" waits_or_ended
		timeout 100 "$CRYPTFUSE" resume "$M" </dev/null || fail "$mode: resume: exit $?"
		n=$((n + 1))
	done
	wait $writer || fail "$mode: fio that writes and verifies: exit $?: $(cat "$S/w.err")"
	wait $reader || fail "$mode: fio that reads: exit $?: $(cat "$S/r.err")"
	cat "$V" >"$S/seen"
	close_vol "$M"
	cryptref -c xts -k "$KEY" -s 4096 "$IMG" 0 0 $BYTES >"$S/plain"
	assert_same "$mode: the volume and its image" "$S/seen" "$S/plain"
	echo "$mode: $n times"
done

# ---- pages: before, all of them, then none ----
cached() {
	python3 - "$V" <<-'PYTHON'
		import ctypes, mmap, os, sys
		libc = ctypes.CDLL(None, use_errno=True)
		libc.mmap.restype = ctypes.c_void_p
		libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
		fd = os.open(sys.argv[1], os.O_RDONLY)
		n = os.fstat(fd).st_size
		at = libc.mmap(None, ctypes.c_size_t(n), mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
		pages = ctypes.create_string_buffer(n // mmap.PAGESIZE)
		assert libc.mincore(at, n, pages) == 0
		print(sum(p & 1 for p in pages.raw))
	PYTHON
}
open_vol "$M" -q --table "$S/table" "$IMG" </dev/null
cat "$V" >/dev/null
[ "$(cached)" = $((BYTES / $(getconf PAGESIZE))) ] || fail "not all of a file that was read is cached: this test would prove nothing"
timeout -k 5 300 fio --name=r --filename="$V" --rw=randread --bs=4k --numjobs=4 --thread --ioengine=psync --io_size=$((1 << 30)) \
	--time_based --runtime=250 --invalidate=0 --minimal >"$S/r.out" 2>"$S/r.err" &
reader=$!
timeout 100 "$CRYPTFUSE" suspend "$M" || fail "suspend: exit $?"
wait_for "the load to wait" waits
assert_eq "pages cached after suspend" 0 "$(cached)"
timeout 100 "$CRYPTFUSE" resume "$M" </dev/null || fail "resume: exit $?"
kill -TERM $reader
wait $reader || :
close_vol "$M"
