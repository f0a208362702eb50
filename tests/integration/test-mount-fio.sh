#!/bin/bash
# needs: user
# fio writes random sizes at random, unaligned offsets from several jobs, and verifies a checksum in every block:
# through the page cache and past it, while it writes and after a fresh open.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fio

M=$S/m IMG=$S/img
JOB_BYTES=$((8 * 1024 * 1024)) JOBS=3

# run_fio DIRECT write|read: each job has a region of its own, which begins inside a data unit
run_fio() {
	local only=()
	[ "$2" = write ] || only=(--verify_only)
	fio --name=verify --filename="$M/volume" --numjobs=$JOBS --rw=randwrite --verify=crc32c --verify_fatal=1 \
		--bsrange=67-200k --bs_unaligned=1 --size=$JOB_BYTES --offset=1021 --offset_increment=$((JOB_BYTES + 4099)) \
		--direct="$1" --ioengine=psync --randseed=4711 --allrandrepeat=1 --thread --group_reporting \
		--minimal "${only[@]}" >"$S/fio.out" 2>"$S/fio.err" || fail "fio direct=$1 $2: exit $?: $(head -5 "$S/fio.err" "$S/fio.out")"
	if grep -qi 'verify.*failed\|bad magic\|bad header' "$S/fio.out" "$S/fio.err"; then
		fail "fio direct=$1 $2: $(cat "$S/fio.err")"
	fi
}

for chain in xts cbc; do
	for du in 512 4096; do
		key=$(random_hex 64)
		[ $chain = xts ] || key=${key:0:64}
		new_image "$IMG" $((JOBS * (JOB_BYTES + 8192))) sparse
		table "$S/table" $((JOBS * (JOB_BYTES + 8192) / 512)) aes-$chain-plain64 "$key" 0 0 sector_size:$du
		for direct in 0 1; do
			open_vol "$M" --table "$S/table" "$IMG" </dev/null
			run_fio $direct write
			close_vol "$M"
			open_vol "$M" --table "$S/table" "$IMG" </dev/null
			run_fio $((1 - direct)) read
			close_vol "$M"
		done
	done
done

# and with what trades one thing for another: written under one, read under the default
for options in "--cache writeback" "--cache direct" "--direct" "--cache writeback --direct --shared"; do
	rm -f "$IMG"
	new_image "$IMG" $((JOBS * (JOB_BYTES + 8192))) sparse
	# shellcheck disable=SC2086
	open_vol "$M" $options --table "$S/table" "$IMG" </dev/null
	run_fio 0 write
	run_fio 1 read
	close_vol "$M"
	open_vol "$M" --table "$S/table" "$IMG" </dev/null
	run_fio 0 read
	close_vol "$M"
done
