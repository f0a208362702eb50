#!/bin/bash
# needs: user
# A sync that does not end stops nobody else: the backing keeps every fdatasync until a file appears, and meanwhile an
# fsync and the close of twenty written handles wait, more than there are threads, while reads and writes go on.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fio

M=$S/m IMG=$S/img GATE=$S/gate WRITERS=20

new_image "$IMG" $((8 << 20))
table "$S/table" 16384 aes-xts-plain64 "$(random_hex 64)" 0 0
export SLOWIO_SYNC_GATE=$GATE
LD_PRELOAD=$CRYPTFUSE_TOOLS/slowio.so open_vol "$M" --no-sandbox --table "$S/table" "$IMG"
unset SLOWIO_SYNC_GATE

waiting=()
for i in $(seq $WRITERS); do # each writes one byte and waits in close(2)
	(printf x | dd of="$M/volume" bs=1 seek=$((i * 65536)) conv=notrunc status=none) &
	waiting+=($!)
done
wait_for "the first sync" test -e "$GATE.waits"
wait_for "all writes" eval "[ \"\$(status_field '$M/volume' writes)\" = $WRITERS ]"

# As many reads at once as there are threads, and more; writes too. They end, or the script does not.
timeout -k 5 60 fio --name=r --filename="$M/volume" --rw=randread --bs=4k --direct=1 --ioengine=psync --thread --numjobs=16 \
	--number_ios=20 --size=8m --minimal --group_reporting >"$S/fio.out" 2>"$S/fio.err" || fail "reads during a sync: exit $?"
exec 7<>"$M/volume" # kept open: its close would wait too
printf y | dd of=/dev/fd/7 bs=1 seek=100 conv=notrunc status=none &
wait_for "a write during a sync" eval "[ \"\$(status_field '$M/volume' writes)\" = $((WRITERS + 1)) ]"
waiting+=($!)
for pid in "${waiting[@]}"; do
	kill -0 "$pid" 2>/dev/null || fail "a close returned before its sync"
done
assert_eq "syncs that ended" 0 "$(status_field "$M/volume" syncs)"

touch "$GATE"
for pid in "${waiting[@]}"; do
	wait "$pid" || fail "a close failed"
done
exec 7>&-
# One thread at a time synced, for many at once.
syncs=$(status_field "$M/volume" syncs)
if [ "$syncs" -lt 2 ] || [ "$syncs" -ge $WRITERS ]; then
	fail "$syncs syncs for $WRITERS writers"
fi
close_vol "$M"
