#!/bin/bash
# needs: user
# The command that the status prints repeats the result: it shows the same volume again, whatever said how it was opened.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need cryptsetup sfdisk split python3 mkfs.ext4
cd "$S"
M=$S/m V=$S/m/volume
PASS="open sesame"

facts() { # of the open volume, but for what a run of it counts
	sha256sum <"$V"
	"$CRYPTFUSE" status "$M" | grep -E '^(image|type|uuid|keyslot|cipher|key_bits|sector_size|iv_|data_offset|bytes|read_only|cache|shared|direct):'
}

# repeats WHAT OPTIONS… IMAGE: opened with these, and again by the command; stdin is the passphrase, if one is asked for.
repeats() {
	local what=$1
	shift
	open_vol "$M" "$@" <<<"$PASS"
	facts >first
	open_again "$M" <<<"$PASS"
	facts >second
	assert_same "$what" first second
	[ -z "${OTHER_THAN:-}" ] || ! grep -qF -- "$(head -n 1 "$OTHER_THAN")" second || fail "$what: the same as $OTHER_THAN"
	LINE=$("$CRYPTFUSE" status "$M" | sed -n 's/^command: //p')
	close_vol "$M"
}

# ---- without a header ----
head -c 2M /dev/urandom >plain.img
head -c 64 /dev/urandom >key
repeats "defaults" --type plain plain.img
cp first defaults
OTHER_THAN=defaults
repeats "all that plain volumes have" -r --type plain -c aes-cbc-essiv:sha256 -h sha512 -s 256 -o 16 -p 8 -b 1600 \
	--sector-size 4096 --iv-large-sectors plain.img
repeats "old defaults" --type plain --compat 2.6 plain.img
repeats "a key file" --type plain -c aes-xts-plain64 -s 512 -d key --keyfile-offset 0 --device-size 1M plain.img
repeats "standard input to its end" --type plain -d - plain.img
table table 2048 aes-xts-plain64 "$(random_hex 64)" 8 16
repeats "a table" --table table plain.img
head -c 30 /dev/urandom | base64 >loop.key
repeats "loop-AES" --type loopaes -d loop.key -o 16 -p 32 -s 256 plain.img
assert_match "loop-AES" '--offset 16 --skip 32' "$LINE"
odd="it's \$HOME; \"odd\""
cp plain.img "$odd"
repeats "a name that a shell could stumble over" --type plain -h sha1 "$odd"
V=$M/other repeats "how the file is used" --type plain -h sha1 --name other --mode 0440 --cache writeback --shared --threads 3 plain.img

# ---- with a header ----
OTHER_THAN=
luks() { # NAME OPTIONS…
	truncate -s 18M "$1"
	cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "${@:2}" "$1" <<<"$PASS" || fail "luksFormat"
}
luks luks.img --type luks2
printf 'second' >second.key
cryptsetup luksAddKey -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 luks.img second.key <<<"$PASS" || fail "luksAddKey"
(umask 077 && cryptsetup luksDump -q --dump-volume-key --volume-key-file volume.key luks.img <<<"$PASS" >/dev/null) || fail "luksDump"
repeats "LUKS" luks.img
cp first luks
assert_match "the keyslot" '--key-slot 0 ' "$LINE"
repeats "the second keyslot" -d second.key luks.img
assert_match "the keyslot" '--key-slot 1 ' "$LINE"
assert_eq "the same volume" "$(head -n 1 luks)" "$(head -n 1 first)"
repeats "the volume key" --volume-key-file volume.key luks.img
assert_eq "the same volume" "$(head -n 1 luks)" "$(head -n 1 first)"
head -c 2M /dev/urandom >data.img
truncate -s 16M header
cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --header header data.img <<<"$PASS" || fail "luksFormat"
repeats "a header apart" --header header data.img
assert_match "the header" "--header $S/header " "$LINE"
luks luks1.img --type luks1
repeats "LUKS1, a shorter one" --size 512 luks1.img

# ---- in a partition, in several files, by crypttab ----
truncate -s 40M disk.img
printf 'start=2048, size=8192\nsize=40960, name="the data"\n' | sfdisk -q --label gpt disk.img || fail "sfdisk"
dd if=luks.img of=disk.img bs=1M seek=5 conv=notrunc status=none
repeats "a partition that was found" disk.img
assert_match "its number" '--partition 2 ' "$LINE"
repeats "a partition by name" --partition 'the data' disk.img
split -b 9999999 -a 3 --numeric-suffixes=1 disk.img disk.
repeats "a split image" disk.001
echo "data $S/luks.img $S/second.key luks,readonly,key-slot=1" >tab
repeats "a line of crypttab" --crypttab data --crypttab-file tab
assert_match "what the line said" "--key-slot 1 --key-file $S/second.key --readonly" "$LINE"

# ---- mount: DIRECTORY again, and not the place where the volume is open ----
command -v fuse2fs >/dev/null || exit 0
truncate -s 4M ext4
mkfs.ext4 -q ext4
"$CRYPTFUSE" encrypt -q --type plain -c aes-xts-plain64 -s 512 -d key ext4 ext4.img </dev/null || fail "encrypt: exit $?"
mkdir "$S/run" "$S/files"
chmod 0700 "$S/run"
export XDG_RUNTIME_DIR=$S/run
"$CRYPTFUSE" mount -q --type plain -c aes-xts-plain64 -s 512 -d key --fs ext4 --mount-options noatime ext4.img files </dev/null ||
	fail "mount: exit $?"
LINE=$("$CRYPTFUSE" status files | sed -n 's/^command: //p')
"$CRYPTFUSE" umount files || fail "umount: exit $?"
(cd / && sh -c "cryptfuse() { \"\$CRYPTFUSE\" \"\$@\"; }; $LINE" </dev/null) || fail "$LINE: exit $?"
mounted "$S/files" || fail "$LINE mounted nothing"
assert_eq "the command of the second" "$LINE" "$("$CRYPTFUSE" status files | sed -n 's/^command: //p')"
"$CRYPTFUSE" umount files || fail "umount: exit $?"
