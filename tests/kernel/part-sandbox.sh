#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 10 s
# The engine afalg inside the daemon's sandbox: its sockets were made before, requests on them go on, also those that need
# another operation socket. What it wrote another engine reads, and the reverse.
set -euo pipefail
mnt=$TMPDIR/mnt img=$TMPDIR/img
options=(-q --cipher aes-xts-plain64 --key-size 512 --key-file "$TMPDIR/key")

fail() {
	echo "FAIL: sandbox/$1"
	exit 1
}

# go_on ENGINE OTHER: what the first serves and writes is what the second decrypts
go_on() {
	"$CRYPTFUSE" open "${options[@]}" --engine "$1" --threads 16 "$img" "$mnt" || fail "open by $1"
	"$CRYPTFUSE" status "$mnt" >"$TMPDIR/status"
	grep -E '^(engine|driver|sandbox)' "$TMPDIR/status" || fail "status"
	grep -qx 'sandbox.on: true' "$TMPDIR/status" || fail "no sandbox"
	"$CRYPTFUSE" decrypt "${options[@]}" --engine "$2" --readonly --shared "$img" - >"$TMPDIR/plain"
	cmp "$mnt/volume" "$TMPDIR/plain" || fail "read by $1"
	for i in 1 2 3 4 5 6 7 8; do
		head -c 300001 /dev/urandom >"$TMPDIR/new.$i"
		dd if="$TMPDIR/new.$i" of="$mnt/volume" bs=300001 seek="$i" conv=notrunc,fsync status=none &
		dd if="$TMPDIR/new.$i" of="$TMPDIR/plain" bs=300001 seek="$i" conv=notrunc status=none
	done
	wait
	"$CRYPTFUSE" close "$mnt" || fail "close by $1"
	"$CRYPTFUSE" decrypt "${options[@]}" --engine "$2" --readonly "$img" - | cmp - "$TMPDIR/plain" || fail "write by $1"
	echo "PASS: sandbox/$1 (read and written)"
}

mkdir "$mnt"
head -c 64 /dev/urandom >"$TMPDIR/key"
head -c 4M /dev/urandom >"$img"
go_on afalg openssl
go_on openssl afalg
