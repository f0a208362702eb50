#!/bin/bash
# needs: user
# A store that hangs: as many reads as there are threads wait in it at once, also when it never made anybody wait before.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fio

M=$S/m IMG=$S/img GATE=$S/gate

hang() { # THREADS OPTION…
	local n=$1 all pid
	shift
	new_image "$IMG" $((4 << 20))
	SLOWIO_READ_GATE=$GATE LD_PRELOAD=$CRYPTFUSE_TOOLS/slowio.so open_vol "$M" "$@" --no-sandbox --table "$S/table" "$IMG"
	assert_eq workers "$n" "$(status_field "$M/volume" workers)"
	fio --name=r --filename="$M/volume" --rw=randread --bs=4k --direct=1 --ioengine=psync --number_ios=1000 --minimal \
		>"$S/fio.out" 2>"$S/fio.err" || fail "reads before: exit $?" # the store is fast, as far as can be seen
	touch "$GATE"
	all=()
	for i in $(seq 20); do
		timeout 60 dd if="$M/volume" of="$S/read.$i" bs=4k skip=$((i * 40)) count=1 iflag=direct status=none &
		all+=($!)
	done
	wait_for "$n reads at once" test -e "$GATE.$n"
	[ ! -e "$GATE.$((n + 1))" ] || fail "more reads at once than --threads $n"
	rm "$GATE"
	for pid in "${all[@]}"; do
		wait "$pid" || fail "a read failed"
	done
	rm -f "$GATE".*
	close_vol "$M"
}

table "$S/table" 8192 aes-xts-plain64 "$(random_hex 64)" 0 0
hang 16
hang 3 --threads 3
hang 1 --threads 1
