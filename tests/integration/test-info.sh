#!/bin/bash
# needs: user
# cryptfuse info: text and JSON over images without anything known, with a file system, with MBR and GPT, cut off, and
# split; nothing changes, no lock is needed; --partition opens what info suggests.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need sfdisk mkfs.ext4 python3 split cryptsetup

cd "$S"
info() {
	"$CRYPTFUSE" info "$@" 2>info.err || fail "info $*: exit $?: $(cat info.err)"
}
json() { # EXPRESSION ARGUMENTS…: a value of the JSON, by Python
	local expression=$1
	shift
	info --json "$@" | python3 -c 'import json, sys; i = json.load(sys.stdin); print('"$expression"')' ||
		fail "$expression of info $*"
}
keys() { echo "sorted(${1}.keys()) == sorted('$2'.split())"; }

HEAD='image bytes tail_bytes parts content header partition_table commands mount_commands'
CONTENT='type usage version label uuid'
PARTITION='number offset bytes missing_bytes extended type type_name name uuid content header'

# ---- nothing known ----
new_image noise 1000100
assert_match "noise" 'noise: 976.[67] KiB \(1000100 bytes\)' "$(info noise)"
assert_match "its end" 'last 164 bytes are no whole sector' "$(info noise)"
assert_match "a suggestion" 'if it is a plain dm-crypt volume' "$(info noise)"
assert_match "a suggestion" '^    cryptfuse open --type plain noise DIRECTORY$' "$(info noise)"
assert_eq "keys" True "$(json "$(keys i "$HEAD")" noise)"
assert_eq "values" "noise 1000100 164 1 None None None" "$(json \
	'i["image"], i["bytes"], i["tail_bytes"], i["parts"], i["content"], i["header"], i["partition_table"], sep=" "' noise)"
assert_eq "command" "['cryptfuse open --type plain noise DIRECTORY']" "$(json 'i["commands"]' noise)"
: >empty
assert_eq "an empty file" "0 []" "$(json 'i["bytes"], i["commands"], sep=" "' empty)"
assert_exit 4 'cannot open' "$CRYPTFUSE" info missing
assert_exit 4 'is a directory' "$CRYPTFUSE" info "$S"
assert_exit 1 'no partition table' "$CRYPTFUSE" info --partition 1 noise
assert_exit 1 'takes IMAGE' "$CRYPTFUSE" info

# ---- a file system ----
truncate -s 8M fs
mkfs.ext4 -q -L 'a label' fs
assert_match "ext4" '^ext4, version 1.0, label a label, UUID [0-9a-f-]{36}$' "$(info fs)"
assert_eq "ext4" "ext4 filesystem a label []" "$(json \
	'i["content"]["type"], i["content"]["usage"], i["content"]["label"], i["commands"]' fs | tr -d "'(),")"
assert_eq "keys" True "$(json "$(keys 'i["content"]' "$CONTENT")" fs)"

# ---- names a shell or a terminal could stumble over ----
cp noise "it's one"
assert_match "quoted" "plain 'it'.''s one' DIRECTORY" "$(info "it's one")"
cp noise -- -x
assert_match "no option" "plain ./'?-x'? DIRECTORY" "$(info -- -x)"
cp noise $'\e[31m'
! info $'\e[31m' | grep -q $'\e' || fail "a control character was printed"

# ---- GPT ----
truncate -s 64M disk.img
sfdisk -q disk.img <<-X || fail "sfdisk"
	label: gpt
	label-id: 8E7E8AF3-6AE2-4B48-A408-F5C2EC801A04
	start=2048, size=8192, type=U, name="esp", uuid=577ACC9E-B2EB-484E-B16B-5AFCA292783D
	size=40960, type=CA7D7CCB-63ED-4C53-861C-1742536059CC, name="the data"
	name="rest"
X
dd if=fs of=disk.img bs=1M seek=1 count=1 conv=notrunc status=none # cut: the superblock alone
text=$(info disk.img)
assert_match "table" '^gpt partition table, UUID 8e7e8af3-6ae2-4b48-a408-f5c2ec801a04$' "$text"
assert_match "partition 1" \
	'^partition 1: 4 MiB from sector 2048, EFI System, name esp, PARTUUID 577acc9e-b2eb-484e-b16b-5afca292783d$' "$text"
assert_match "partition 2" '^partition 2: 20 MiB from sector 10240, Linux LUKS, name the data, PARTUUID ' "$text"
assert_match "in partition 1" '^    ext4, ' "$text"
assert_match "in partition 2" '^    nothing known' "$text"
assert_match "suggested" '^    cryptfuse open --type plain --partition 2 disk.img DIRECTORY' "$text"
assert_eq "keys" True "$(json "$(keys 'i["partition_table"]["partitions"][0]' "$PARTITION")" disk.img)"
assert_eq "keys" True "$(json "$(keys 'i["partition_table"]' 'type uuid partitions')" disk.img)"
assert_eq "numbers" "[(1, 1048576, 4194304), (2, 5242880, 20971520), (3, 26214400, 39845888)]" "$(json \
	'[(p["number"], p["offset"], p["bytes"]) for p in i["partition_table"]["partitions"]]' disk.img)"
assert_eq "one of them" "[2]" \
	"$(json '[p["number"] for p in i["partition_table"]["partitions"]]' --partition 'the data' disk.img)"
assert_exit 1 'there are 1 \(EFI System, esp\), 2 ' "$CRYPTFUSE" info --partition 7 disk.img

# ---- MBR with logical partitions, whole, split and cut off ----
truncate -s 64M mbr.img
sfdisk -q mbr.img <<-X || fail "sfdisk"
	label: dos
	label-id: 0x6ad7f10f
	start=2048, size=20480, type=83
	size=80000, type=5
	size=20000, type=e8
	start=24576, size=10240, type=83
	start=40960, size=30000, type=7
X
NUMBERS='[(p["number"], p["type"], p["extended"], p["missing_bytes"]) for p in i["partition_table"]["partitions"]]'
want="[(1, '0x83', False, 0), (2, '0x05', True, 0), (3, '0xe8', False, 0), (5, '0x83', False, 0), (6, '0x07', False, 0)]"
assert_eq "MBR" "$want" "$(json "$NUMBERS" mbr.img)"
assert_match "type" 'partition 3: .*Linux LUKS, PARTUUID 6ad7f10f-03' "$(info mbr.img)"
split -b 7000001 -a 3 --numeric-suffixes=1 mbr.img mbr.
assert_eq "split" "$want" "$(json "$NUMBERS" mbr.001)"
assert_match "split" 'in 10 parts' "$(info mbr.001)"
assert_eq "split" "67108864 10" "$(json 'i["bytes"], i["parts"], sep=" "' mbr.001)"
truncate -s 55M mbr.img
assert_match "cut off" 'its last [0-9]+ bytes are missing' "$(info mbr.img)"
rm mbr.004
assert_exit 4 'mbr.004 is missing: mbr.005 is there' "$CRYPTFUSE" info mbr.001

# ---- nothing changes, nothing is locked ----
sum=$(sha256sum <disk.img)
touch -d '2001-02-03' -a disk.img
chmod 0400 disk.img
before=$(stat -c '%X %Y %Z' disk.img)
info disk.img >text
info --json disk.img >text
assert_eq "time stamps" "$before" "$(stat -c '%X %Y %Z' disk.img)"
assert_eq "content" "$sum" "$(sha256sum <disk.img)"
chmod 0600 disk.img

# ---- a partition, opened ----
M=$S/m V=$S/m/volume
KEY=$(random_hex 64)
head -c $((10240 * 512)) disk.img >front
tail -c +$((51200 * 512 + 1)) disk.img >behind
table table 40960 aes-xts-plain64 "$KEY" 0 0 sector_size:4096
for image in disk.img disk.001; do
	split -b 9999999 -a 3 --numeric-suffixes=1 disk.img disk.
	open_vol "$M" --partition 'the data' --table table $image </dev/null
	assert_match "info of an open image" 'the data' "$(info $image)"
	assert_eq "size" $((40960 * 512)) "$(stat -c %s "$V")"
	fileop pattern $((40960 * 512)) >"$V"
	close_vol "$M"
	[ $image = disk.img ] || cat disk.0* >disk.img
	cryptref -c xts -k "$KEY" -s 4096 disk.img $((10240 * 512)) 0 $((40960 * 512)) >plain
	fileop pattern $((40960 * 512)) | cmp - plain || fail "$image: partition 2 holds something else"
	cmp -n $((10240 * 512)) disk.img front || fail "$image: what is before partition 2 has changed"
	cmp -i $((51200 * 512)):0 disk.img behind || fail "$image: what is behind partition 2 has changed"
	rm disk.0*
done
for why in "--partition 2 --size 40961" "--partition 2 --offset 20M"; do
	# shellcheck disable=SC2086
	assert_exit 1 'beyond the partition' "$CRYPTFUSE" open --type plain $why -d table disk.img "$M"
done
assert_exit 1 'no such partition' "$CRYPTFUSE" open --type plain --partition 4 -d table disk.img "$M"
assert_exit 4 'no header found in partition 1 of disk.img' "$CRYPTFUSE" open --partition 1 -d table disk.img "$M"
assert_gone "$M"

# ---- LUKS in a partition, by one command ----
new_luks() { # NAME OPTIONS…
	local name=$1
	shift
	rm -f "$name"
	truncate -s 18M "$name"
	cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$@" "$name" pass || fail "luksFormat"
}
printf secret >pass
HEADER='type uuid label cipher key_bits sector_size data_offset keyslots problem'
new_luks luks2 --type luks2 --label 'the label' --uuid 6ee1f4b2-4ba2-4ed1-8e3c-5c1aab47c3d1
new_luks luks1 --type luks1
text=$(info luks2)
assert_match "LUKS2" '^LUKS2, label the label, UUID 6ee1f4b2-4ba2-4ed1-8e3c-5c1aab47c3d1$' "$text"
assert_match "LUKS2" '^aes-xts-plain64, key of 512 bits, data units of (512|4096) bytes, data from byte 16777216$' "$text"
assert_match "LUKS2" '^keyslot 0: luks2, pbkdf2-sha256, aes-xts-plain64$' "$text"
assert_match "LUKS2" '^open with: cryptfuse open luks2 DIRECTORY$' "$text"
assert_match "LUKS1" '^LUKS1, ' "$(info luks1)"
assert_eq "keys" True "$(json "$(keys 'i["header"]' "$HEADER")" luks2)"
assert_eq "keys" True "$(json "$(keys 'i["header"]["keyslots"][0]' 'number type kdf cipher')" luks2)"
head -c 16M luks2 >header
assert_match "a header apart" '^LUKS2, label the label, ' "$(info --header header noise)"
new_image data 32M
assert_match "a header apart" 'open --header header data DIRECTORY$' "$(info --header header data)"

# ---- nothing is suggested that would be refused ----
unopened() { # WHY IMAGE: it says why, and suggests no command
	assert_match "$2" "^cannot be opened here: .*$1" "$(info "$2")"
	! info "$2" | grep -E 'open with|for the files' || fail "$2: a command is suggested"
	assert_eq "$2" "True [] []" "$(json 'bool(i["header"]["problem"]), i["commands"], i["mount_commands"], sep=" "' "$2")"
	assert_exit "${3:-1}" '' "$CRYPTFUSE" open -q -r -d pass "$2" "$S/none"
}
mkdir none
cp header cut.img
unopened 'the image is cut off, or it is a header that was kept apart' cut.img
cp luks1 strange.img
printf 'nonesuch\0' | dd of=strange.img bs=1 seek=8 conv=notrunc status=none # the name of its cipher
unopened 'nonesuch' strange.img 4
assert_match "a header apart, short data" 'cannot be opened here: the offset of' "$(info --header header noise)"
cp luks2 erased2
cp luks1 erased
for i in erased2 erased; do cryptsetup luksErase -q $i || fail "luksErase"; done
unopened 'its keyslots are erased: nothing but a backup of its header' erased2
assert_match "no keyslot" 'no keyslot is left: .* only the volume key itself' "$(info erased)"
assert_match "no keyslot" 'open with: cryptfuse open --volume-key-file KEYFILE erased DIRECTORY$' "$(info erased)"
chmod 0400 luks1
assert_match "may not be written" 'open with: cryptfuse open --readonly luks1 DIRECTORY$' "$(info luks1)"
assert_match "a file system alone" '^not encrypted: cryptfuse has nothing to open here$' "$(info fs)"
! info noise | grep 'not encrypted' || fail "noise is called not encrypted"

# ---- what is suggested does it ----
assert_match "mount" '^or, for the files in it: cryptfuse mount luks2 DIRECTORY$' "$(info luks2)"
assert_eq "mount" "['cryptfuse mount luks2 DIRECTORY']" "$(json 'i["mount_commands"]' luks2)"
run() { # COMMAND DIRECTORY
	(umask 077 && mkdir -p "$2" run)
	XDG_RUNTIME_DIR=$S/run sh -c "cryptfuse() { c=\$1; shift; '$CRYPTFUSE' \$c -q -d pass \"\$@\"; }; ${1% DIRECTORY} $2" || fail "$1"
}
run "$(json 'i["commands"][0]' luks1)" "$M"
mkfs.ext4 -q -F luks2.fs 1M
close_vol "$M"
if command -v fuse2fs >/dev/null; then
	run "$(json 'i["commands"][0]' luks2)" "$M"
	dd if=luks2.fs of="$V" conv=notrunc status=none
	close_vol "$M"
	run "$(json 'i["mount_commands"][0]' luks2)" "$S/files"
	[ -d files/lost+found ] || fail "no files"
	XDG_RUNTIME_DIR=$S/run "$CRYPTFUSE" umount files || fail "umount: exit $?"
fi

cp luks2 damaged
printf x | dd of=damaged bs=1 seek=5000 conv=notrunc status=none
printf x | dd of=damaged bs=1 seek=$((16384 + 5000)) conv=notrunc status=none
sum=$(sha256sum <damaged)
assert_match "both headers damaged" '^cannot be opened here: .+' "$(info damaged)"
assert_eq "both headers damaged" "True []" "$(json 'bool(i["header"]["problem"]), i["commands"], sep=" "' damaged)"
assert_eq "nothing else is known" "None None" "$(json 'i["header"]["key_bits"], i["header"]["cipher"], sep=" "' damaged)"
assert_eq "not repaired" "$sum" "$(sha256sum <damaged)"

dd if=luks2 of=disk.img bs=1M seek=5 conv=notrunc status=none
split -b 9999999 -a 3 --numeric-suffixes=1 disk.img disk.
for image in disk.img disk.001; do
	assert_match "in partition 2 of $image" '^    LUKS2, label the label, UUID 6ee1f4b2' "$(info $image)"
	assert_eq "suggested" "['cryptfuse open --partition 2 $image DIRECTORY']" "$(json 'i["commands"]' $image)"
	open_vol "$M" -d pass $image </dev/null
	assert_match "said" 'what is encrypted is its partition 2, the data' "$(cat open.err)"
	assert_eq "size" $((4 * 1024 * 1024)) "$(stat -c %s "$V")"
	assert_eq "where" $((5 * 1024 * 1024 + 16777216)) "$(status_field "$V" data_offset)"
	fileop pattern 100000 | fileop pwrite 0 "$V" >/dev/null
	close_vol "$M"
	[ $image = disk.img ] || cat disk.0* >disk.img
	dd if=disk.img of=alone bs=1M skip=5 count=20 status=none
	open_vol "$M" -d pass alone </dev/null
	fileop pattern 100000 | cmp -n 100000 - "$V" || fail "$image: something else is in the volume"
	close_vol "$M"
done
dd if=luks1 of=disk.img bs=1M seek=25 conv=notrunc status=none
assert_exit 1 'several encrypted partitions: 2 \(Linux LUKS, the data, crypto_LUKS\), 3 ' \
	"$CRYPTFUSE" open -d pass disk.img "$M"
assert_eq "both" 2 "$(json 'len(i["commands"])' disk.img)"
truncate -s 22M cut-off.img
printf 'start=2048, size=40960\n' | sfdisk -q --label dos cut-off.img || fail "sfdisk"
dd if=luks2 of=cut-off.img bs=1M seek=1 conv=notrunc status=none
truncate -s 20M cut-off.img
assert_match "a partition that is cut off" 'open with: cryptfuse open --partition 1 --readonly cut-off.img DIRECTORY$' "$(info cut-off.img)"
run "$(json 'i["commands"][0]' cut-off.img)" "$M"
close_vol "$M"
open_vol "$M" -d pass --partition rest disk.img </dev/null
close_vol "$M"
assert_gone "$M"
