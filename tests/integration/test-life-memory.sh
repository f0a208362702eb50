#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# What a running daemon has in its memory, as root can read it: the passphrase nowhere, the key and every 16 bytes of it in the
# secret arena only (locked, left out of core dumps) (HAZARDS 27, 37). For plain and LUKS2 volumes.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need cryptsetup openssl python3

M=$S/m V=$S/m/volume
PASS="a passphrase $(random_hex 8)"
printf %s "$PASS" | openssl dgst -sha512 -binary >"$S/key"
new_image "$S/plain" $((1024 * 1024))
truncate -s 20M "$S/luks2"
printf %s "$PASS" | cryptsetup luksFormat -q --type luks2 --pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 4096 \
	--volume-key-file "$S/key" "$S/luks2" -

# search PID PLANT: prints where secrets are that must not be; PLANT is sought too, and must be found
search() {
	python3 - "$1" "$S/key" "$PASS" "$2" <<-'PYTHON'
		import re, sys
		pid, key, passphrase = sys.argv[1], open(sys.argv[2], "rb").read(), sys.argv[3].encode()
		wanted = {"the passphrase": passphrase, "a planted text": sys.argv[4].encode(), "the key in hex": key.hex().encode()}
		wanted.update({f"the key from byte {i}": key[i:i + 16] for i in range(0, len(key) - 15)})
		maps, now = [], None
		for line in open(f"/proc/{pid}/smaps"):
		    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
		    if m:
		        now = [int(m[1], 16), int(m[2], 16), m[3], m[4], ""]
		        maps.append(now)
		    elif line.startswith("VmFlags:"):
		        now[4] = line
		mem = open(f"/proc/{pid}/mem", "rb", 0)
		for start, end, access, name, flags in maps:
		    if "r" not in access or name in ("[vvar]", "[vsyscall]"):
		        continue
		    try:
		        mem.seek(start)
		        data = mem.read(end - start)
		    except OSError:
		        continue
		    arena = " dd" in flags
		    for what, text in wanted.items():
		        if text in data and not (arena and "key from" in what):
		            print(f"{what} is in {name or 'memory'} ({flags.strip()})")
		        elif text in data and what == "the key from byte 0":
		            print("the key is in the arena")
	PYTHON
}

for kind in plain luks2; do
	options=()
	[ $kind = luks2 ] || options=(--cipher aes-xts-plain64 --key-size 512 --hash sha512)
	open_vol "$M" "${options[@]}" "$S/$kind" <<<"$PASS"
	head -c 100000 "$V" >/dev/null
	found=$(search "$(daemon_pid "$V")" "$S/$kind")
	# the name of the image is in the daemon's memory: a search that does not find it proves nothing
	assert_match "$kind: what is found" 'a planted text is in' "$found"
	assert_match "$kind: what is found" 'the key is in the arena' "$found"
	assert_eq "$kind: what should not be found" '' "$(grep -vE 'planted|the key is in the arena' <<<"$found" || :)"
	close_vol "$M"
done
