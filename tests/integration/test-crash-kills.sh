#!/bin/bash
# needs: user
# kill -9 at random moments of a volume that threads write to and sync, on a disk that then forgets what was not synced, or writes
# only some of it, or all: whatever was acknowledged is there, and nothing changed but what was being written. KILLS: how often (50).
# A program whose syncs do nothing must not pass.
. "$(dirname "$0")/lib.sh"
need_user "$@"

KILLS=${KILLS:-50} SEED=${SEED:-$((RANDOM * 32768 + RANDOM))} THREADS=3
M=$S/m V=$S/m/volume DISK=$S/disk CRASH=$CRYPTFUSE_TOOLS/../crash
crashed=0 acked=0 pending=0 empty=0
# mode, key bytes, data unit, data units
VOLUMES=("xts 64 4096 48" "xts 64 512 192" "cbc 32 512 192" "xts 64 65536 12" "cbc 32 4096 48" "cbc 32 65536 12")
mkdir "$M"

# power_on: a disk of random content, and the table of the volume on it
power_on() { # MODE KEY_BYTES DU N_DU
	MODE=$1 DU=$3 KEY=$(random_hex "$2")
	rm -rf "$DISK"
	mkdir "$DISK"
	new_image "$S/platter" $(($3 * $4))
	table "$S/table" $(($3 * $4 / 512)) "aes-$1-plain64" "$KEY" 0 0 "sector_size:$3"
	"$CRYPTFUSE_TOOLS/crashfs" "$S/platter" "$DISK" &
	POWER=$!
	wait_for "the disk" test -e "$DISK/image"
}

power_off() {
	fusermount3 -u "$DISK"
	wait $POWER
}

unmounted() {
	! mounted "$M"
}

# crash_once SEED drop|tear|keep [NAME=VALUE]: one volume's life; VERDICT: what the judge says
crash_once() {
	cp "$S/platter" "$S/before"
	rm -f "$S/log"
	echo on >"$DISK/power"
	env ${3:+"$3"} "$CRYPTFUSE" open -q --engine openssl --table "$S/table" "$DISK/image" "$M" 2>"$S/open.err" </dev/null ||
		fail "open: exit $?"
	"$CRASH/load" -k 12000 -p "$DISK/power" -c "$2" -s "$1" -t $THREADS -u "$DU" "$V" "$S/log" 2>"$S/load.err" ||
		fail "the load: exit $?"
	wait_for "the helper to unmount" unmounted
	VERDICT=$("$CRASH/judge" -s "$1" -t $THREADS -u "$DU" -c "$MODE" -k "$KEY" "$S/before" "$S/platter" "$S/log" \
		2>"$S/judge.err")
}

count() { # ACKNOWLEDGED PENDING LOST
	crashed=$((crashed + 1)) acked=$((acked + $1)) pending=$((pending + $2))
	[ "$1" -gt 0 ] || empty=$((empty + 1))
}

HOW=(drop tear tear keep)
for ((v = 0; v < ${#VOLUMES[@]}; v++)); do
	# shellcheck disable=SC2086
	power_on ${VOLUMES[v]}
	for ((i = v; i < KILLS; i += ${#VOLUMES[@]})); do
		crash_once $((SEED + i)) "${HOW[i / ${#VOLUMES[@]} % 4]}" ||
			fail "aes-$MODE-plain64, data unit $DU, ${HOW[i / ${#VOLUMES[@]} % 4]}: $VERDICT (acknowledged, pending, lost); SEED=$SEED, kill $i"
		# shellcheck disable=SC2086
		count $VERDICT
	done
	power_off
done
echo "seed $SEED: $crashed kills, $acked operations acknowledged and there, $pending were being written, 0 bytes changed elsewhere"
[ $((2 * empty)) -lt $crashed ] || fail "$empty of $crashed volumes died before anything was acknowledged: this proves little"

# syncs that do nothing
# shellcheck disable=SC2086
power_on ${VOLUMES[0]}
for ((i = 0; i < 20; i++)); do
	crash_once $((SEED + i)) drop "LD_PRELOAD=$CRYPTFUSE_TOOLS/nosync.so" || break
done
[ $i -lt 20 ] || fail "a program that does not sync lost nothing in $i kills: this test proves nothing"
power_off
echo "a program that does not sync was found out after $((i + 1)) kills"
