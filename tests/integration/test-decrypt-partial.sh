#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# Where a file cannot be without a name, it is NAME.partial until it is finished: gone after a signal, left by kill -9,
# and never taken over by another run.
. "$(dirname "$0")/lib.sh"
need_user "$@"
env --default-signal=INT true 2>/dev/null || lacking "env --default-signal"

new_image "$S/img" $((1024 * 1024))
new_image "$S/large" $((1 << 41)) sparse
table "$S/table" 2048 aes-xts-plain64 "$(random_hex 64)" 0 0
table "$S/table-large" $((1 << 32)) cipher_null-ecb - 0 0
"$CRYPTFUSE" decrypt -q --table "$S/table" "$S/img" "$S/plain"
mkdir "$S/f"
NO=(env --default-signal=INT "LD_PRELOAD=$CRYPTFUSE_TOOLS/notmpfile.so" "$CRYPTFUSE")
decrypt() { "${NO[@]}" decrypt -q --table "$S/table" "$@" "$S/img" "$S/f/out" </dev/null; }

decrypt
assert_same "a new file" "$S/plain" "$S/f/out"
assert_eq "only the file" out "$(ls -A "$S/f")"
assert_exit 5 'exists; --force' "${NO[@]}" decrypt -q --table "$S/table" "$S/img" "$S/f/out"
echo old >"$S/f/out"
decrypt --force
assert_same "replaced" "$S/plain" "$S/f/out"
assert_eq "only the file" out "$(ls -A "$S/f")"
rm "$S/f/out"
"${NO[@]}" create -q --size 1M "$S/f/out"
assert_eq "only the file" out "$(ls -A "$S/f")"

under_way() { [ -e "$S/f/out.partial" ] && [ "$(awk '$1 == "Threads:" { print $2 }' "/proc/$PID/status")" -gt 1 ]; }
for signal in INT TERM KILL; do
	rm -f "$S"/f/*
	echo precious >"$S/f/out"
	"${NO[@]}" decrypt -q --sparse --force --table "$S/table-large" "$S/large" "$S/f/out" 2>/dev/null </dev/null &
	PID=$!
	wait_for "the copy to be under way" under_way
	kill -$signal $PID
	rc=0
	wait $PID || rc=$?
	assert_eq "exit status" $((128 + $(kill -l $signal))) $rc
	assert_eq "what was there" precious "$(cat "$S/f/out")"
	[ $signal = KILL ] || assert_eq "after SIG$signal" out "$(ls -A "$S/f")"
done
[ -e "$S/f/out.partial" ] || fail "this test tests nothing"

# what kill -9 left is not touched, not even with --force: it may be another run's
assert_exit 5 'partial exists: another run' "${NO[@]}" decrypt -q --force --table "$S/table" "$S/img" "$S/f/out"
[ "$(stat -c %s "$S/f/out.partial")" = $((1 << 41)) ] || fail "somebody else's file was changed"
rm "$S/f/out.partial"

# a name that appears meanwhile is not overwritten
rm "$S/f/out"
mkfifo "$S/slow"
for preload in "" "$CRYPTFUSE_TOOLS/notmpfile.so"; do
	rm -f "$S"/f/*
	LD_PRELOAD=$preload "$CRYPTFUSE" encrypt -q --table "$S/table" - "$S/f/out" <"$S/slow" 2>"$S/encrypt.err" &
	PID=$!
	exec 7>"$S/slow"
	head -c 1000 /dev/zero >&7
	wait_for "its threads" grep -q 'Threads:.[2-9]' "/proc/$PID/status"
	echo precious >"$S/f/out"
	exec 7>&-
	rc=0
	wait $PID || rc=$?
	assert_eq "exit status" 5 $rc
	assert_match "what is said" 'appeared meanwhile' "$(cat "$S/encrypt.err")"
	assert_eq "what appeared" precious "$(cat "$S/f/out")"
	assert_eq "nothing else" out "$(ls -A "$S/f")"
done
