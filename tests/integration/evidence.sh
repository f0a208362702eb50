# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# evidence.sh - everything that can be tried on an image without the wish to change it, and the proof that nothing did.
# Sourced behind lib.sh by the test of an ordinary user and that of root.

# fingerprint FILE: its content and all that stat and the extended attributes say, read without leaving a trace.
fingerprint() {
	python3 - "$1" <<'END'
import hashlib, os, sys
path = sys.argv[1]
for p in (path, os.path.dirname(path)):
    s = os.stat(p)
    print(s.st_ino, oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid, s.st_size, s.st_blocks, s.st_mtime_ns, s.st_ctime_ns)
s = os.stat(path)
print(s.st_atime_ns, [(n, os.getxattr(path, n)) for n in sorted(os.listxattr(path))])
fd = os.open(path, os.O_RDONLY | os.O_NOATIME)
h = hashlib.sha256()
while data := os.read(fd, 1 << 20):
    h.update(data)
print(h.hexdigest())
END
}

# make_evidence FOLDER: a plain and a LUKS2 image with a file system, read-only, in a read-only folder. Their access
# times lie before the others, so that any read that is not asked to leave them alone would set them.
make_evidence() {
	mkdir "$1"
	head -c 64 /dev/urandom >"$S/key"
	printf 'right' >"$S/pass"
	"$CRYPTFUSE" create -q --size 4M --mkfs ext4 --cipher aes-xts-plain64 --key-size 512 --sector-size 4096 --key-file "$S/key" "$1/plain.img"
	"$CRYPTFUSE" create -q --type luks2 --size 20M --mkfs ext4 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file "$S/pass" "$1/luks.img"
	for image in "$1"/*.img; do
		python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.case", b"17/2026")' "$image" 2>/dev/null || :
		touch -m -d '2001-02-03 04:05:06' "$image"
		touch -a -d '2000-01-01 00:00:00' "$image"
		chmod 0444 "$image"
	done
	chmod 0555 "$1"
}

# try_everything IMAGE OPTION…: opens, reads, tries to write, copies out, asks about, opens again by the command that
# the status gives. RIGHTS is "root" for somebody who could write to the image.
try_everything() {
	local image=$1 m=$S/m v=$S/m/volume how rc
	shift
	open_vol "$m" --readonly "$@" "$image" </dev/null
	cat "$v" >"$S/read"
	"$CRYPTFUSE" status >/dev/null
	"$CRYPTFUSE" status "$m" >/dev/null
	"$CRYPTFUSE" status --json "$m" >/dev/null
	for how in w rw trunc append; do
		assert_match "open for $how" '^(EROFS|EACCES)$' "$(fileop open $how "$v")"
	done
	assert_match "truncate" '^(EPERM|EROFS|EACCES)$' "$(fileop ftruncate 0 "$v")"
	! dd if=/dev/zero of="$v" bs=512 count=1 conv=notrunc 2>/dev/null || fail "a read-only volume was written"
	e2fsck -fn "$v" >/dev/null 2>&1 || fail "no sound file system in $image"
	open_again "$m" </dev/null
	assert_same "opened again" "$S/read" "$v"
	close_vol "$m"

	[ -d "$S/run" ] || mkdir -m 0700 "$S/run"
	XDG_RUNTIME_DIR=$S/run timeout 60 "$CRYPTFUSE" mount -q --readonly "$@" "$image" "$m" </dev/null || fail "mount: exit $?"
	find "$m" >"$S/found" || fail "find"
	grep -q lost+found "$S/found" || fail "no files"
	! touch "$m/new" 2>/dev/null || fail "a read-only file system was written"
	XDG_RUNTIME_DIR=$S/run timeout 60 "$CRYPTFUSE" umount "$m" || fail "umount: exit $?"

	"$CRYPTFUSE" decrypt -q --digest sha256,md5 "$@" "$image" "$S/out" >"$S/sums" </dev/null
	assert_same "decrypt" "$S/read" "$S/out"
	(cd / && sha256sum -c --quiet <(head -n 1 "$S/sums"))
	"$CRYPTFUSE" decrypt -q "$@" "$image" - </dev/null | cmp - "$S/read"
	"$CRYPTFUSE" decrypt -q --bad-sectors zero --force --sparse "$@" "$image" "$S/out" </dev/null
	assert_same "decrypt, sparse" "$S/read" "$S/out"
	if [ "${RIGHTS:-}" = root ]; then
		assert_exit 1 'itself' "$CRYPTFUSE" decrypt -q --force "$@" "$image" "$image"
	else
		assert_exit 2 'denied' "$CRYPTFUSE" decrypt -q --force "$@" "$image" "$image"
	fi
	assert_exit 5 'exists' "$CRYPTFUSE" decrypt -q "$@" "$S/key" "$image"
	assert_exit 5 'exists' "$CRYPTFUSE" encrypt -q "$@" "$S/out" "$image"
	assert_exit 1 'itself' "$CRYPTFUSE" encrypt -q --force "$@" "$image" "$image"
	assert_exit 5 'exists' "$CRYPTFUSE" create -q --size 1M "$image"
	assert_exit 1 '' "$CRYPTFUSE" open -q --readonly --offset 99999999 "$@" "$image" "$m"
	# (info answers 4 where it finds nothing that it knows)
	rc=0
	"$CRYPTFUSE" info "$image" >/dev/null 2>&1 || rc=$?
	[ $rc = 0 ] || [ $rc = 4 ] || [ $rc = 1 ] || fail "info: $rc"
	"$CRYPTFUSE" info --json "$image" >/dev/null 2>&1 || :
	rm -f "$S/out"
	if [ "${RIGHTS:-}" != root ]; then
		assert_exit 2 '' "$CRYPTFUSE" open -q "$@" "$image" "$m"
		assert_exit 2 '' "$CRYPTFUSE" encrypt -q --force "$@" "$S/key" "$image"
		assert_exit 2 '' "$CRYPTFUSE" decrypt -q "$@" "$S/key" "${image%/*}/new"
	fi
}

# evidence_holds: the whole of it, in $S/evidence.
evidence_holds() {
	trap 'rc=$?; chmod -f 0755 "$S/evidence" || :; (exit $rc); cleanup' EXIT # what is read-only could not be removed
	local image
	make_evidence "$S/evidence"
	mkdir "$S/m"
	for image in plain luks; do fingerprint "$S/evidence/$image.img" >"$S/$image.before"; done
	try_everything "$S/evidence/plain.img" --type plain -c aes-xts-plain64 -s 512 --sector-size 4096 -d "$S/key"
	try_everything "$S/evidence/luks.img" -d "$S/pass"
	printf 'wrong' | assert_exit 2 'no key' "$CRYPTFUSE" open -q --readonly -d "$S/key" "$S/evidence/luks.img" "$S/m"
	for image in plain luks; do
		fingerprint "$S/evidence/$image.img" >"$S/$image.after"
		assert_same "the evidence: $image.img" "$S/$image.before" "$S/$image.after"
	done
	chmod 0755 "$S/evidence"
}
