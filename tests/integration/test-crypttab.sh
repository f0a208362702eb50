#!/bin/bash
# needs: user
# open --crypttab: the line says image, key and options; what the command line says wins; what is ignored is named.
. "$(dirname "$0")/lib.sh"
need_user "$@"
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

assert_exit 1 "new random key" "$CRYPTFUSE" open --crypttab swap --crypttab-file tab mnt
assert_exit 4 "no line 'other'" "$CRYPTFUSE" open --crypttab other --crypttab-file tab mnt
assert_exit 1 "takes MOUNTPOINT only" "$CRYPTFUSE" open --crypttab data --crypttab-file tab disk.img mnt
assert_exit 1 "needs --crypttab" "$CRYPTFUSE" open --crypttab-file tab disk.img mnt
assert_exit 1 "cannot be given together" "$CRYPTFUSE" open --crypttab data --table tab mnt
assert_exit 1 "takes IMAGE MOUNTPOINT" "$CRYPTFUSE" open disk.img
