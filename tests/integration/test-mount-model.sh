#!/bin/bash
# needs: user
# Random parallel writes, zeroing, syncs and reads against a model in memory, then the backing against the model; and
# processes that share data units byte by byte. CRYPTFUSE_TEST_SECONDS: for each combination (default 0.4).
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
BYTES=$((3 * 1024 * 1024)) SECTORS=$((3 * 2048))
T=${CRYPTFUSE_TEST_SECONDS:-0.4}

for chain in xts cbc; do
	key=$(random_hex 64)
	[ $chain = xts ] || key=${key:0:64}
	for du in 512 4096 65536; do
		new_image "$IMG" $BYTES
		table "$S/table" $SECTORS aes-$chain-plain64 "$key" 0 0 sector_size:$du
		for direct in "" -d; do
			open_vol "$M" --table "$S/table" "$IMG" </dev/null
			model ${direct:+"$direct"} -t "$T" -u $du -o "$S/dump" "$V" || fail "model, $chain, DU $du $direct"
			model -D -d -t 0.2 -u $du "$V" || fail "processes on one data unit, $chain, DU $du"
			[ "$(status_field "$V" write_errors)" = 0 ] || fail "write errors in the status"
			fileop pread 0 $BYTES "$V" >"$S/plain"
			close_vol "$M"
			cryptref -c $chain -k "$key" -s $du "$IMG" 0 0 $BYTES | assert_same "$chain, DU $du, the backing" - "$S/plain"
		done
	done
done

# the same where holes may be punched: a punched range reads as zeros
new_image "$IMG" $BYTES
table "$S/table" $SECTORS aes-cbc-plain64 "$key" 0 0 sector_size:4096
open_vol "$M" --allow-discards --table "$S/table" "$IMG" </dev/null
model -d -p -t "$T" -u 4096 -o "$S/dump" "$V" || fail "model with holes"
close_vol "$M"
open_vol "$M" --allow-discards --table "$S/table" "$IMG" </dev/null
assert_same "holes, after a fresh open" "$S/dump" "$V"
close_vol "$M"
