#!/bin/bash
# needs: user
# --crypttab of open, mount, decrypt, encrypt and info: the line says image, key and options; what the command line says
# wins; what is ignored is named.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need cryptsetup mkfs.ext4
cd "$S"
head -c 64 /dev/urandom >key
head -c 1M /dev/urandom >disk.img
truncate -s 1M text.img
mkdir mnt want
cat >tab <<END
# what a machine had
data $S/disk.img $S/key plain,cipher=aes-xts-plain64,size=512,offset=8,readonly,noauto,x-systemd.device-timeout=5
asked $S/text.img none plain,cipher=aes-xts-plain64,size=256,hash=sha256
swap /dev/sdz1 /dev/urandom swap
END

open_vol "$S/want" -r --type plain -c aes-xts-plain64 -s 512 -o 8 -d key disk.img
cp want/volume plaintext
close_vol "$S/want"

open_vol "$S/mnt" -v --crypttab data --crypttab-file tab
assert_match "what is ignored" 'without effect here: noauto, x-systemd.device-timeout' "$(cat open.err)"
assert_same "the volume of the line" plaintext mnt/volume
[ ! -w mnt/volume ] || fail "readonly of the line was lost"
close_vol "$S/mnt"

open_vol "$S/mnt" --crypttab asked --crypttab-file tab <<<"the passphrase"
close_vol "$S/mnt"

# an option beside it wins
open_vol "$S/mnt" --crypttab data --crypttab-file tab --offset 16
assert_eq "bytes from sector 16" $((1048576 - 16 * 512)) "$(stat -c %s mnt/volume)"
close_vol "$S/mnt"

# decrypt and encrypt: the same volume, and the line's IMAGE is in its place among the arguments
"$CRYPTFUSE" decrypt -q --crypttab data --crypttab-file tab out </dev/null || fail "decrypt: exit $?"
assert_same "decrypt" plaintext out
head -c 5000 /dev/urandom >piece
cat plaintext >want.img
dd if=piece of=want.img conv=notrunc status=none
sed -i 's/,readonly//' tab
"$CRYPTFUSE" encrypt -q --force --crypttab data --crypttab-file tab piece </dev/null || fail "encrypt: exit $?"
open_vol "$S/want" -r --type plain -c aes-xts-plain64 -s 512 -o 8 -d key disk.img
assert_same "encrypt into an image that exists" want.img want/volume
close_vol "$S/want"
echo "new $S/new.img $S/key plain,cipher=aes-xts-plain64,size=512" >>tab
"$CRYPTFUSE" encrypt -q --crypttab new --crypttab-file tab plaintext </dev/null || fail "encrypt: exit $?"
"$CRYPTFUSE" decrypt -q --type plain -c aes-xts-plain64 -s 512 -d key new.img again </dev/null || fail "decrypt: exit $?"
cmp -n "$(stat -c %s plaintext)" plaintext again || fail "encrypt into a new image"

# info, of a header that the line says lies apart
truncate -s 18M luks.img
printf secret >pass
cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --label apart luks.img pass || fail "luksFormat"
head -c 16M luks.img >header
tail -c +16777217 luks.img >data.img
echo "apart $S/data.img $S/pass luks,header=$S/header" >>tab
assert_match "info" '^LUKS2, label apart, ' "$("$CRYPTFUSE" info --crypttab apart --crypttab-file tab)"

# mount
if command -v fuse2fs >/dev/null; then
	truncate -s 4M ext4
	mkfs.ext4 -q ext4
	"$CRYPTFUSE" encrypt -q --type plain -c aes-xts-plain64 -s 512 -d key ext4 ext4.img </dev/null || fail "encrypt: exit $?"
	echo "files $S/ext4.img $S/key plain,cipher=aes-xts-plain64,size=512" >>tab
	"$CRYPTFUSE" mount -q --crypttab files --crypttab-file tab mnt </dev/null || fail "mount: exit $?"
	[ -d mnt/lost+found ] || fail "no file system at mnt"
	"$CRYPTFUSE" umount mnt || fail "umount: exit $?"
fi

assert_exit 1 "new random key" "$CRYPTFUSE" open --crypttab swap --crypttab-file tab mnt
for command in "open mnt" "mount mnt" "decrypt o" "encrypt i" info; do
	# shellcheck disable=SC2086
	assert_exit 4 "no line 'other'" "$CRYPTFUSE" $command --crypttab other --crypttab-file tab
	# shellcheck disable=SC2086
	assert_exit 1 "IMAGE is what --crypttab names" "$CRYPTFUSE" $command disk.img --crypttab data
	# shellcheck disable=SC2086
	assert_exit 1 "needs --crypttab" "$CRYPTFUSE" $command disk.img --crypttab-file tab
done
assert_exit 1 "cannot be given together" "$CRYPTFUSE" open --crypttab data --table tab mnt
assert_exit 1 "takes IMAGE MOUNTPOINT, but" "$CRYPTFUSE" open disk.img
echo "ro $S/disk.img $S/key plain,cipher=aes-xts-plain64,size=512,readonly" >>tab
assert_exit 1 "'readonly' in the line of crypttab" "$CRYPTFUSE" encrypt --force --crypttab ro --crypttab-file tab piece
