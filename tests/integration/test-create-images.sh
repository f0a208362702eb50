#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# create: images of the size that was asked for, which look random or are holes, which open by the same options or by the
# real cryptsetup, and have a sound file system in them if asked for.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3 mkfs.ext4 e2fsck

M=$S/m
mkdir "$M"
printf 'a passphrase' >"$S/pass"
head -c 64 /dev/urandom >"$S/key"
FAST=(--pbkdf pbkdf2 --pbkdf-force-iterations 1000)
create() { timeout -k 5 120 "$CRYPTFUSE" create -q "$@" 2>"$S/create.err" </dev/null || fail "create $*: $(cat "$S/create.err")"; }

# ---- size, and what it looks like ----
looks_random() { # FILE: all byte values are about equally frequent, and no two blocks are equal
	python3 - "$1" <<'END'
import collections, sys
data = open(sys.argv[1], "rb").read()
n = collections.Counter(data)
assert len(n) == 256 and max(n.values()) < 1.2 * min(n.values()), (len(n), n.most_common(3))
blocks = [data[i:i + 16] for i in range(0, len(data), 16)]
assert len(set(blocks)) == len(blocks), "equal blocks"
END
}
for size in 1M 512K 3S 1024KB 2MiB; do
	create --size $size "$S/a"
	rm "$S/a"
done
create --size 1025S "$S/a"
assert_eq "size" $((1025 * 512)) "$(stat -c %s "$S/a")"
assert_eq "mode" 600 "$(stat -c %a "$S/a")"
create --size 1M "$S/b"
looks_random "$S/b"
create --size 1M "$S/c"
! cmp -s "$S/b" "$S/c" || fail "two images are the same"
create --size 64M --no-fill "$S/d"
[ "$(stat -c %b "$S/d")" = 0 ] || fail "no hole: $(stat -c %b "$S/d") blocks"
assert_eq "size" 67108864 "$(stat -c %s "$S/d")"

# ---- what exists ----
cp "$S/b" "$S/before"
assert_exit 5 'exists; --force' "$CRYPTFUSE" create --size 1M "$S/b"
assert_same "not overwritten" "$S/before" "$S/b"
create --force --size 2M "$S/b"
assert_eq "overwritten" 2097152 "$(stat -c %s "$S/b")"
open_vol "$M" --type plain -q -c aes-xts-plain64 -d "$S/key" -s 512 "$S/b" </dev/null
assert_exit 5 'in use' "$CRYPTFUSE" create --force --size 1M "$S/b"
close_vol "$M"

# ---- refused before anything is asked for or made ----
refuse() { # CODE PATTERN ARGUMENT…
	assert_exit "$1" "$2" "$CRYPTFUSE" create "${@:3}" "$S/new"
	if [ -e "$S/new" ] || [ -e "$S/new.partial" ]; then fail "something was made"; fi
}
refuse 1 'needs --size'
refuse 1 'its unit' --size 1000000
refuse 1 'not a size' --size M
refuse 1 'too small' --size 0K
refuse 1 'not a multiple of 512' --size 1001KB --sector-size 512
refuse 1 'not a multiple of 4096' --size 1001S --sector-size 4096 --mkfs ext4
refuse 1 'too small' --size 16M --type luks2
refuse 1 '--label is for --type luks2' --size 1M --label x
refuse 1 '--iv-large-sectors is for plain' --size 32M --type luks2 --iv-large-sectors
refuse 1 '--pbkdf scrypt' --size 32M --type luks2 --pbkdf scrypt
refuse 1 'sector-size 8192' --size 32M --type luks2 --sector-size 8192
refuse 1 'no such file system here; there are ext4' --size 1M --mkfs reiserfs
refuse 1 'no meaning' --size 32M --type luks2 --key-slot 3
refuse 1 'unknown|not a' --size 32M --type luks2 --cipher aes-xts-nonsense
refuse 1 'nothing to read' --size 32M --type luks2 "${FAST[@]}" --key-file /dev/null
assert_exit 1 'no file' "$CRYPTFUSE" create --force --size 1M /dev/null

# ---- LUKS2 ----
opens() { # IMAGE: with the right passphrase and no other
	open_vol "$M" -q --key-file "$S/pass" "$1" </dev/null
	close_vol "$M"
	assert_exit 2 'no key' "$CRYPTFUSE" open -q --key-file "$S/key" "$1" "$M"
	if command -v cryptsetup >/dev/null; then
		cryptsetup open --test-passphrase --key-file "$S/pass" "$1" || fail "cryptsetup does not open $1"
		cryptsetup luksDump "$1" >"$S/dump"
	fi
}
create --type luks2 --size 20M "${FAST[@]}" --key-file "$S/pass" --label 'two words' --uuid 01234567-89ab-cdef-0123-456789abcdef "$S/l1"
opens "$S/l1"
! command -v cryptsetup >/dev/null || assert_match "label" 'Label:[[:space:]]*two words' "$(cat "$S/dump")"
! command -v cryptsetup >/dev/null || assert_match "UUID" '01234567-89ab' "$(cat "$S/dump")"
create --type luks2 --size 20M --pbkdf-memory 32 --pbkdf-force-iterations 4 --pbkdf-parallel 1 --key-file "$S/pass" "$S/l2"
opens "$S/l2"
! command -v cryptsetup >/dev/null || assert_match "argon2id" 'argon2id' "$(cat "$S/dump")"
create --type luks2 --size 20M "${FAST[@]}" --cipher aes-cbc-essiv:sha256 --key-size 256 --sector-size 512 --hash sha512 --key-file "$S/pass" "$S/l3"
opens "$S/l3"
[ "$(stat -c %b "$S/l3")" -lt 40000 ] || fail "luks2: no hole for the data"
create --fill --type luks2 --size 20M "${FAST[@]}" --key-file "$S/pass" "$S/l4"
tail -c 1M "$S/l4" >"$S/tail"
looks_random "$S/tail"
# a passphrase on standard input, up to the newline
printf 'a passphrase\nand more' | "$CRYPTFUSE" create -q --type luks2 --size 20M "${FAST[@]}" "$S/l5"
opens "$S/l5"

# ---- file systems ----
check_fs() { # NAME FILE
	case $1 in
	ext*) e2fsck -fn "$2" >"$S/fsck" 2>&1 ;;
	vfat) fsck.vfat -n "$2" >"$S/fsck" 2>&1 ;;
	exfat) fsck.exfat -n "$2" >"$S/fsck" 2>&1 ;;
	ntfs) ntfsfix -n "$2" >"$S/fsck" 2>&1 ;;
	*) : ;;
	esac || fail "$1: $(cat "$S/fsck")"
	assert_match "$1" "$1" "$(blkid -p -o value -s TYPE "$2")"
}
for fs in ext4:mkfs.ext4 ext2:mkfs.ext2 vfat:mkfs.vfat exfat:mkfs.exfat ntfs:mkntfs; do
	program=${fs#*:} fs=${fs%:*}
	if ! command -v "$program" >/dev/null; then
		assert_exit 4 "needs the program $program .Debian: apt install" "$CRYPTFUSE" create --size 8M --mkfs "$fs" "$S/x"
		continue
	fi
	for type in "--type plain" "--type plain --no-fill" "--type luks2 ${FAST[*]}" "--type luks2 --fill ${FAST[*]}"; do
		read -ra options <<<"$type"
		kind=(--type luks2 --key-file "$S/pass")
		[ "${options[1]}" = luks2 ] || kind=(--type plain -c aes-xts-plain64 -s 512 --key-file "$S/key")
		create --force "${options[@]}" "${kind[@]}" --size 32M --mkfs "$fs" "$S/x"
		"$CRYPTFUSE" decrypt -q --force "${kind[@]}" "$S/x" "$S/x.plain" </dev/null
		check_fs "$fs" "$S/x.plain"
	done
done

# ---- from nothing: make, open, write files, close, and again ----
create --size 24M --mkfs ext4 --type luks2 "${FAST[@]}" --key-file "$S/pass" "$S/whole"
open_vol "$M" --key-file "$S/pass" "$S/whole" </dev/null
assert_match "what is found" 'found ext4' "$(cat "$S/open.err")"
head -c 3000000 /dev/urandom >"$S/file"
debugfs -w -R "write $S/file file" "$M/volume" >/dev/null 2>&1
e2fsck -fn "$M/volume" >/dev/null 2>&1 || fail "not sound after writing"
assert_eq "who owns it" "$(id -u)" "$(debugfs -R 'stat <2>' "$M/volume" 2>/dev/null | sed -n 's/.*User: *\([0-9]*\).*/\1/p')"
close_vol "$M"
open_vol "$M" -r --key-file "$S/pass" "$S/whole" </dev/null
debugfs -R "dump file $S/again" "$M/volume" >/dev/null 2>&1
assert_same "the file" "$S/file" "$S/again"
close_vol "$M"
