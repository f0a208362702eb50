#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# kernel-kills.sh [--jobs N] [--seed N] [KILLS] - kill a whole kernel while a volume is being written to, and look at the disk.
#
# Debian's user-mode-linux is booted as a process, opens the volume on its disk, and threads write to it and sync (load.c). kill -9 of
# that process, at a random moment, is a power failure: whatever the kernel inside had in its memory, its page cache too, is gone. What
# was acknowledged before is written to a file outside, and must be on the disk, which is judged from outside (judge.c). One boot a
# kill (50), as many at a time as there are processors. Then the same with a program whose syncs do nothing, which must be found out.
# Runs in the build folder. CI=true: what is missing is a failure, not a skip.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/sbin:/sbin
jobs=$(nproc) seed=$((RANDOM * 32768 + RANDOM)) threads=3
# shellcheck disable=SC2034 # for uml.sh
init=$here/kernel-kills-init memory=96M limit_s=120
# mode, key bytes, data unit, data units; one after the other
volumes=("xts 64 4096 64" "cbc 32 512 256" "xts 64 65536 12" "cbc 32 4096 64")
workers=() kernel=

lacking() {
	printf '%s: tests/crash/kernel-kills (%s)\n' "$([ "${CI:-}" = true ] && echo FAIL || echo SKIP)" "$*"
	if [ "${CI:-}" = true ]; then exit 1; fi
	exit 0
}

need() { # PROGRAM PACKAGE
	command -v -- "$1" >/dev/null || lacking "$1 is missing: apt install $2"
}

usage() {
	printf 'usage: kernel-kills.sh [--jobs N] [--seed N] [KILLS]\n' >&2
	exit 2
}

finish() {
	[ ${#workers[@]} -eq 0 ] || kill "${workers[@]}" 2>/dev/null
	[ -z "$kernel" ] || kernel_kill "$kernel"
	wait
	rm -rf --one-file-system -- "$out"
}

random_hex() { # BYTES
	head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# new_disk FOLDER MODE KEY_BYTES DU N_DU
new_disk() {
	key=$(random_hex "$3") mode=$2 du=$4
	head -c $(($4 * $5)) /dev/urandom >"$1/disk"
	(umask 077 && echo "0 $(($4 * $5 / 512)) crypt aes-$2-plain64 $key 0 7:0 0 1 sector_size:$4" >"$1/table")
}

# wait_for_log FOLDER - until something has been acknowledged; 1: the kernel has ended
wait_for_log() {
	until [ -s "$1/log" ]; do
		kill -0 "$kernel" 2>/dev/null || return 1
		sleep 0.01
	done
}

# kill_once FOLDER SEED [NAME=VALUE] - verdict: what the judge says
kill_once() {
	local dir=$1 out=$1
	cp "$dir/disk" "$dir/before"
	: >"$dir/log"
	kernel_boot "ubdb=$dir/disk" "BUILD=$PWD" "LOAD_SEED=$2" "THREADS=$threads" "DU=$du" ${3:+"$3"} >"$dir/console" 2>&1 &
	kernel=$!
	disown "$kernel" # nobody wants to be told that it was killed
	if ! wait_for_log "$dir"; then
		verdict="the kernel ended by itself: $(tail -n 5 "$dir/console")"
		return 1
	fi
	sleep "0.$((RANDOM % 5))$((RANDOM % 10))"
	kernel_kill "$kernel"
	kernel=
	verdict=$(tests/crash/judge -s "$2" -t "$threads" -u "$du" -c "$mode" -k "$key" "$dir/before" "$dir/disk" "$dir/log" \
		2>&1)
}

# work N - every kill that is this worker's, a line for each in its file of results
work() {
	local dir=$out/$1 i kernel=
	mkdir "$dir"
	trap '[ -z "$kernel" ] || kernel_kill "$kernel"; exit 1' TERM
	for ((i = $1; i < kills; i += jobs)); do
		# shellcheck disable=SC2086
		new_disk "$dir" ${volumes[i % ${#volumes[@]}]}
		if kill_once "$dir" $((seed + i)); then
			echo "$verdict" >>"$out/results-$1"
		else
			echo "aes-$mode-plain64, data unit $du, kill $i: $verdict (acknowledged, pending, lost)" >"$out/failed-$1"
			exit 1
		fi
	done
}

# lies - a program whose syncs do nothing must be found out; verdict: what it was not
lies() {
	local i dir=$out/lies
	mkdir "$dir"
	# shellcheck disable=SC2086
	new_disk "$dir" ${volumes[0]}
	for ((i = 1; i <= 5; i++)); do
		kill_once "$dir" $((seed + i)) "PRELOAD=$PWD/tests/tools/nosync.so" && continue
		[[ $verdict == *"neither what was synced"* ]] || return 1
		echo "# a program that does not sync was found out after $i kills"
		return 0
	done
	verdict="a program that does not sync was not found out: $verdict"
	return 1
}

while [ $# -gt 0 ]; do
	case $1 in
	--jobs) jobs=${2:-} && shift ;;
	--seed) seed=${2:-} && shift ;;
	-*) usage ;;
	*) break ;;
	esac
	shift || usage
done
kills=${1:-50}
case $jobs$seed$kills in *[!0-9]*) usage ;; esac
[ "$jobs" -le "$kills" ] || jobs=$kills

# shellcheck source=../kernel/uml.sh
. "$here/../kernel/uml.sh"
kernel_check
need fusermount3 fuse3
out=
out=$(mktemp -d "$(memory_folder)/kernel-kills-XXXXXX") || exit 1
trap finish EXIT
trap 'exit 130' INT TERM
start=$SECONDS
for n in $(seq 0 $((jobs - 1))); do
	work "$n" &
	workers+=($!)
done
wait "${workers[@]}"
workers=()
failed=$(cat "$out"/failed-* 2>/dev/null)
[ -n "$failed" ] || lies || failed=$verdict
if [ -n "$failed" ]; then
	printf '%s\nFAIL: tests/crash/kernel-kills (seed %s)\n' "$failed" "$seed"
	exit 1
fi
awk -v seed="$seed" -v seconds=$((SECONDS - start)) '
	{ acknowledged += $1; pending += $2 }
	END {
		printf "# seed %s: %d kernels killed, %d operations acknowledged and there, %d were being written, 0 bytes changed elsewhere\n",
			seed, NR, acknowledged, pending
		printf "PASS: tests/crash/kernel-kills (%d s)\n", seconds
	}' "$out"/results-*
