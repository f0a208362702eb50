#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# A decrypt that is ended in the middle, by a signal or by kill -9, leaves nothing behind, and what was there before is
# as it was. A copy that waits for a pipe can be ended too.
. "$(dirname "$0")/lib.sh"
need_user "$@"
env --default-signal=INT true 2>/dev/null || lacking "env --default-signal"

# Terabytes of holes, which the null cipher leaves zeros: long, without using a disk. (A shell's background jobs ignore
# SIGINT, so it is put back. What a process that holds keys reads cannot be seen, but its threads can.)
new_image "$S/img" $((1 << 41)) sparse
table "$S/table" $((1 << 32)) cipher_null-ecb - 0 0
mkdir "$S/folder"
start() { # OUTPUT OPTION…
	local out=$1
	shift
	env --default-signal=INT "$CRYPTFUSE" decrypt -q --table "$S/table" "$@" "$S/img" "$out" 2>"$S/decrypt.err" </dev/null &
	PID=$!
	wait_for "the copy to be under way" copying
}
copying() {
	[ "$(awk '$1 == "Threads:" { print $2 }' "/proc/$PID/status")" -gt 1 ]
}
ended() { # STATUS
	local rc=0
	wait $PID || rc=$?
	assert_eq "exit status" "$1" $rc
}

for force in no yes; do
	for signal in INT TERM HUP KILL; do
		rm -f "$S"/folder/*
		options=(--sparse)
		if [ $force = yes ]; then
			echo precious >"$S/folder/out"
			options+=(--force)
		fi
		start "$S/folder/out" "${options[@]}"
		kill -$signal $PID
		ended $((128 + $(kill -l $signal)))
		if [ $force = yes ]; then
			assert_eq "after SIG$signal" precious "$(cat "$S/folder/out")"
			rm "$S/folder/out"
		fi
		# where a file cannot be without a name, kill -9 leaves one that says what it is
		[ $signal != KILL ] || rm -f "$S/folder/out.partial"
		assert_eq "after SIG$signal" "" "$(ls -A "$S/folder")"
		[ $signal = KILL ] || assert_match "what is said" 'interrupted after [0-9]+ bytes' "$(cat "$S/decrypt.err")"
	done
done

# a signal that the process was told to ignore is ignored (nohup)
(
	trap '' HUP
	exec "$CRYPTFUSE" decrypt -q --sparse --table "$S/table" "$S/img" "$S/folder/out" 2>/dev/null </dev/null
) &
PID=$!
wait_for "the copy to be under way" copying
kill -HUP $PID
kill -TERM $PID
ended 143

# nobody reads the pipe
mkfifo "$S/fifo"
"$CRYPTFUSE" decrypt -q --table "$S/table" "$S/img" - >"$S/fifo" 2>"$S/decrypt.err" </dev/null &
PID=$!
exec 7<"$S/fifo"
head -c 1000 <&7 >/dev/null
kill -TERM $PID
ended 143
exec 7<&-

# ---- how far it is: on a terminal, and nowhere else ----
need python3
python3 - "$CRYPTFUSE" decrypt -q --sparse --table "$S/table" "$S/img" "$S/folder/out" >"$S/screen" <<'END'
import os, pty, signal, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
screen, end = b"", time.monotonic() + 30
while screen.count(b"left") < 2 and time.monotonic() < end:
    screen += os.read(fd, 4096)
os.kill(pid, signal.SIGINT)
try:
    while data := os.read(fd, 4096):
        screen += data
except OSError:
    pass
os.write(1, screen)
assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGINT
END
tr '\r' '\n' <"$S/screen" >"$S/lines"
assert_match "the line of progress" '^ +[0-9]+ %  [0-9.]+ [KMGT]iB of 2 TiB, [0-9.]+ [KMGT]iB/s, [0-9:]+ left' "$(cat "$S/lines")"
assert_match "what is said in the end" 'interrupted after' "$(cat "$S/lines")"
assert_eq "nothing stays" "" "$(ls -A "$S/folder")"
