#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 75 s
# LUKS volumes over both: cryptsetup and dm-crypt make and fill them, cryptfuse reads them; then cryptfuse writes, and dm-crypt
# reads that. Here, with AF_ALG, the ciphers are there that only the kernel has.
set -uo pipefail
S=$TMPDIR/luks
IMG=$S/img mnt=$S/mnt DATA_BYTES=$((2 * 1024 * 1024))
mkdir -p "$S" "$mnt"
head -c 3000 /dev/urandom >"$S/keyfile"
printf 'a passphrase' >"$S/pass"
printf 'another one' >"$S/other"
FAST=(-q --pbkdf pbkdf2 --pbkdf-force-iterations 1000)
ARGON=(-q --pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 4096 --pbkdf-parallel 1)

command -v cryptsetup >/dev/null || {
	echo "cryptsetup is missing"
	exit 77
}

# make_image FORMAT-OPTIONS: an image with the passphrase in slot 0; KEYS=3: another in slot 1, a key file in slot 2
KEYS=3
make_image() {
	rm -f "$IMG" "$S/head"
	truncate -s 20M "$IMG"
	cryptsetup luksFormat "$@" --key-file "$S/pass" "$IMG" || return 1
	[ $KEYS = 3 ] || return 0
	local header=$IMG
	[ ! -f "$S/head" ] || header=$S/head
	cryptsetup luksAddKey "${FAST[@]}" --key-file "$S/pass" "$header" "$S/other" &&
		cryptsetup luksAddKey "${FAST[@]}" --key-file "$S/pass" "$header" "$S/keyfile"
}

# kernel_open OPTION…: dm-crypt's device in DEV
kernel_open() {
	DEV=/dev/mapper/luks
	cryptsetup open "$@" --key-file "$S/pass" "$IMG" luks
}

kernel_close() { cryptsetup close luks; }

# both_ways WHICH OPEN-OPTIONS: what the kernel wrote is read, and the reverse, by each way to unlock it
both_ways() {
	local sum got how
	kernel_open "$@" || return 1
	head -c $DATA_BYTES /dev/urandom >"$S/plain"
	dd if="$S/plain" of="$DEV" bs=64K conv=fsync status=none || return 1
	sum=$(sha256sum <"$DEV")
	kernel_close || return 1
	local ways=(pass other keyfile)
	for how in "${ways[@]:0:KEYS}"; do
		"$CRYPTFUSE" open -q --readonly "$@" --key-file "$S/$how" "$IMG" "$mnt" || return 1
		got=$(sha256sum <"$mnt/volume")
		"$CRYPTFUSE" close "$mnt" || return 1
		[ "$sum" = "$got" ] || { echo "content by $how: $got, not $sum"; return 1; }
	done
	"$CRYPTFUSE" open -q "$@" --key-file "$S/pass" "$IMG" "$mnt" || return 1
	head -c 70000 /dev/urandom | dd of="$mnt/volume" bs=70000 oflag=seek_bytes seek=12345 conv=notrunc,fsync status=none
	sum=$(sha256sum <"$mnt/volume")
	"$CRYPTFUSE" close "$mnt" || return 1
	kernel_open "$@" || return 1
	got=$(sha256sum <"$DEV")
	kernel_close || return 1
	[ "$sum" = "$got" ] || { echo "dm-crypt finds $got, not $sum"; return 1; }
}

# row NAME OPEN-OPTIONS -- FORMAT-OPTIONS
row() {
	local name=$1 open=()
	shift
	while [ "$1" != -- ]; do open+=("$1"); shift; done
	shift
	if ! make_image "$@" >"$S/log" 2>&1; then
		sed 's/^/  /' "$S/log"
		echo "FAIL: luks/$name (cryptsetup luksFormat)"
	elif both_ways "${open[@]}" >"$S/log" 2>&1; then
		echo "PASS: luks/$name"
	else
		sed 's/^/  /' "$S/log"
		echo "FAIL: luks/$name"
		cryptsetup close luks 2>/dev/null
		"$CRYPTFUSE" close "$mnt" 2>/dev/null
	fi
}

# loopaes LINES CIPHER-OPTIONS: a volume without a header, by a key file of so many lines
loopaes() {
	local lines=$1
	shift
	for _ in $(seq "$lines"); do head -c 45 /dev/urandom | base64 -w0 && echo; done >"$S/lines"
	rm -f "$IMG"
	truncate -s 3M "$IMG"
	local sum got
	cryptsetup open --type loopaes "$@" --key-file "$S/lines" "$IMG" luks &&
		head -c $DATA_BYTES /dev/urandom | dd of=/dev/mapper/luks bs=64K conv=fsync status=none || return 1
	sum=$(sha256sum </dev/mapper/luks)
	kernel_close
	"$CRYPTFUSE" open -q --readonly --type loopaes "$@" --key-file - "$IMG" "$mnt" <"$S/lines" || return 1
	got=$(sha256sum <"$mnt/volume")
	"$CRYPTFUSE" close "$mnt" || return 1
	[ "$sum" = "$got" ] || { echo "content: $got, not $sum"; return 1; }
}

for args in '1' '65' '65 --key-size 128' '64 --hash sha256 --key-size 128 --offset 1000 --skip 77'; do
	# shellcheck disable=SC2086 # words
	if loopaes $args >"$S/log" 2>&1; then
		echo "PASS: luks/loopaes-${args// /}"
	else
		sed 's/^/  /' "$S/log"
		echo "FAIL: luks/loopaes-${args// /}"
		cryptsetup close luks 2>/dev/null
		"$CRYPTFUSE" close "$mnt" 2>/dev/null
	fi
done

row luks1 -- --type luks1 "${FAST[@]}"
KEYS=1
row luks1-cbc -- --type luks1 "${FAST[@]}" --cipher aes-cbc-essiv:sha256 --key-size 256
row luks1-serpent -- --type luks1 "${FAST[@]}" --cipher serpent-xts-plain64 --key-size 512 --hash whirlpool
KEYS=3
row luks2-512 -- --type luks2 "${FAST[@]}" --sector-size 512
KEYS=1
row luks2-4096 -- --type luks2 "${FAST[@]}" --sector-size 4096
row luks2-argon2id -- --type luks2 "${ARGON[@]}" --sector-size 4096
row luks2-detached --header "$S/head" -- --type luks2 "${FAST[@]}" --header "$S/head"
row luks2-twofish -- --type luks2 "${FAST[@]}" --cipher twofish-xts-plain64 --key-size 512
row luks2-adiantum -- --type luks2 "${FAST[@]}" --sector-size 4096 --cipher xchacha12,aes-adiantum-plain64 --key-size 256
