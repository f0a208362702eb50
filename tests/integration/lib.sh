# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# lib.sh - what every integration script stands on: a scratch folder, opening and closing, waiting, comparing, and a
# clean end whatever happens. Source it first. The script's second line says `# needs: user` or `# needs: root`.
#
#   CRYPTFUSE        the program (default: ./cryptfuse)    CRYPTFUSE_TOOLS  built test tools (default: beside it)
#   CRYPTFUSE_TEST_USER  for root scripts: the ordinary user to become (default: nobody)
#   CI=true          a missing tool is a failure, not a skip
# Exit: 0 passed, 77 skipped with a reason, else failed. Everything a script starts has its scratch folder on its
# command line: that is how leftovers are found, and the only thing that is ever killed.

set -euo pipefail
export LC_ALL=C
CRYPTFUSE=$(realpath -m -- "${CRYPTFUSE:-./cryptfuse}")
CRYPTFUSE_TOOLS=$(realpath -m -- "${CRYPTFUSE_TOOLS:-$(dirname -- "$CRYPTFUSE")/tests/tools}")
PATH=$PATH:/usr/sbin:/sbin
export CRYPTFUSE CRYPTFUSE_TOOLS PATH

# ---- ends ----

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

skip() {
	echo "SKIP: $*"
	exit 77
}

# A machine that lacks something: fine for a user, not for CI.
lacking() {
	[ "${CI:-}" != true ] || fail "CI lacks $*"
	skip "$* is missing"
}

need() {
	local tool
	for tool; do
		command -v -- "$tool" >/dev/null || lacking "$tool"
	done
}

trap 'echo "FAIL: line $LINENO: $BASH_COMMAND gave $?" >&2' ERR
trap 'exit 130' INT TERM

S=$(mktemp -d "${TMPDIR:-/tmp}/cryptfuse-test.XXXXXXXX")
export S

# Processes with our scratch folder on their command line (the pattern goes by a file: it must not find grep itself).
ours() {
	grep -lF -f <(echo "$S") /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 || :
}

# The same, of one mount point's daemon and helper only.
daemons_of() {
	local pid
	for pid in $(ours); do
		if grep -zqxF -f <(echo "$1") "/proc/$pid/cmdline" 2>/dev/null &&
			grep -q '^cryptfuse' "/proc/$pid/comm" 2>/dev/null; then
			echo "$pid"
		fi
	done
}

mounted() {
	awk -v m="$1" '$5 == m { found = 1 } END { exit !found }' /proc/self/mountinfo
}

cleanup() {
	local rc=$? mnt loop pid
	trap - ERR EXIT
	set +e
	if [ $rc -ne 0 ] && [ $rc -ne 77 ]; then
		for f in "$S"/*.err; do
			[ -s "$f" ] && { echo "--- $f" && tail -n 20 "$f"; } >&2
		done
	fi
	cd /
	if [ "$(id -u)" = 0 ]; then
		for mnt in $(awk -v s="$S/" 'index($5, s) == 1 && $0 !~ /fuse/ { print $5 }' /proc/self/mountinfo | tac); do
			umount -l "$mnt"
		done
		for loop in $(losetup -nO NAME,BACK-FILE 2>/dev/null | awk -v s="$S/" 'index($2, s) == 1 { print $1 }'); do
			losetup -d "$loop"
		done
	fi
	for pid in $(ours); do
		kill -KILL "$pid" 2>/dev/null
	done
	for mnt in $(awk -v s="$S/" 'index($5, s) == 1 { print $5 }' /proc/self/mountinfo | tac); do
		fusermount3 -uz "$mnt" 2>/dev/null || umount -l "$mnt" 2>/dev/null
	done
	rm -rf --one-file-system -- "$S"
	exit $rc
}
trap cleanup EXIT

# ---- who and where ----

# Root runs every script in a mount namespace of its own, where /dev/fuse can be opened by all and /etc/fuse.conf can be
# another, without a change to the machine. It starts the script again, so the need_ functions come first.
private_namespace() {
	[ "${CRYPTFUSE_TEST_NS:-}" != private ] || return 0
	need unshare setpriv
	unshare -m --propagation private true 2>/dev/null || lacking "a mount namespace"
	rm -rf -- "$S"
	CRYPTFUSE_TEST_NS=private exec unshare -m --propagation private -- bash "$0" "$@"
}

# The ordinary user that root becomes: AS_USER is the command for it.
choose_user() {
	USER_NAME=${CRYPTFUSE_TEST_USER:-nobody}
	AS_USER=(setpriv "--reuid=$(id -u "$USER_NAME")" "--regid=$(id -g "$USER_NAME")" --clear-groups
		env -u XDG_RUNTIME_DIR HOME=/)
	chmod 0755 "$S"
	chown "$USER_NAME" "$S"
	if ! as_user test -w /dev/fuse; then
		mknod -m 0666 "$S/fuse" c 10 229 || lacking "/dev/fuse"
		mount --bind "$S/fuse" /dev/fuse || lacking "/dev/fuse"
	fi
	as_user test -x "$CRYPTFUSE" || fail "$USER_NAME may not run $CRYPTFUSE"
}

# `need_user "$@"`: the script runs as an ordinary user. Started by root it becomes one.
need_user() {
	if [ "$(id -u)" = 0 ]; then
		private_namespace "$@"
		choose_user
		local rc=0
		as_user bash "$0" "$@" || rc=$?
		exit $rc
	fi
	need_fuse
}

# `need_root "$@"`: the script runs as root, and can do things as an ordinary user.
need_root() {
	[ "$(id -u)" = 0 ] || skip "for root"
	private_namespace "$@"
	choose_user
	need_fuse
}

as_user() {
	"${AS_USER[@]}" "$@"
}

# allow_other yes|no: what /etc/fuse.conf says, until the next call. (Unmounted first: one bind mount on another would
# keep the file below from being removed.)
FUSE_CONF_BOUND=no
allow_other() {
	[ $FUSE_CONF_BOUND = no ] || umount /etc/fuse.conf
	FUSE_CONF_BOUND=yes
	{ grep -v '^ *user_allow_other' /etc/fuse.conf || :; } >"$S/fuse.conf.$1"
	[ "$1" = no ] || echo user_allow_other >>"$S/fuse.conf.$1"
	chmod 0644 "$S/fuse.conf.$1"
	mount --bind "$S/fuse.conf.$1" /etc/fuse.conf || lacking "/etc/fuse.conf"
}

need_fuse() {
	[ -x "$CRYPTFUSE" ] || fail "no program at $CRYPTFUSE: build it, or set CRYPTFUSE"
	[ -x "$CRYPTFUSE_TOOLS/fileop" ] || fail "no test tools in $CRYPTFUSE_TOOLS: make test-tools"
	need fusermount3
	if [ ! -r /dev/fuse ] || [ ! -w /dev/fuse ]; then
		lacking "a /dev/fuse that $(id -un) may open"
	fi
}

fileop() { "$CRYPTFUSE_TOOLS/fileop" "$@"; }
cryptref() { "$CRYPTFUSE_TOOLS/cryptref" "$@"; }
model() { "$CRYPTFUSE_TOOLS/model" "$@"; }

# ---- waiting and comparing ----

# wait_for WHAT COMMAND…: until the command succeeds, up to a minute: machines can be busy. The command is run again and
# again, its arguments are not expanded again.
wait_for() {
	local end=$((SECONDS + 60)) what=$1
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "waited in vain for $what"
		sleep 0.02
	done
}

assert_eq() { # WHAT EXPECTED GOT
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

assert_same() { # WHAT FILE FILE
	cmp -- "$2" "$3" >&2 || fail "$1: $2 and $3 differ"
}

assert_match() { # WHAT PATTERN TEXT
	grep -qiE -- "$2" <<<"$3" || fail "$1: no /$2/ in: $3"
}

# assert_exit CODE PATTERN COMMAND…: that exit code, and the pattern in what it says on stderr.
assert_exit() {
	local want=$1 pattern=$2 rc=0
	shift 2
	timeout -k 5 60 "$@" >"$S/exit.out" 2>"$S/exit.err" </dev/null || rc=$?
	[ $rc = "$want" ] || fail "$*: exit $rc, not $want: $(cat "$S/exit.err")"
	grep -qiE -- "$pattern" "$S/exit.err" || fail "$*: no /$pattern/ in: $(cat "$S/exit.err")"
}

# ---- images, tables, volumes ----

new_image() { # PATH BYTES [sparse]
	rm -f -- "$1"
	if [ "${3:-}" = sparse ]; then
		truncate -s "$2" "$1" || skip "no sparse file of $2 bytes here"
	else
		head -c "$2" /dev/urandom >"$1"
	fi
}

random_hex() { # BYTES
	head -c "$1" /dev/urandom | od -An -v -tx1 | tr -d ' \n'
}

# table FILE SECTORS CIPHER KEY IV_OFFSET DATA_SECTOR [OPTION…]
table() {
	local file=$1 sectors=$2 cipher=$3 key=$4 iv_offset=$5 data=$6
	shift 6
	(umask 077 && echo "0 $sectors crypt $cipher $key $iv_offset 7:0 $data${*:+ $# $*}" >"$file")
}

# open_vol MNT OPTIONS… IMAGE: stdin is the caller's, stderr goes to $S/open.err. AS is the command that makes a root
# script's caller an ordinary user: AS=("${AS_USER[@]}").
AS=()
open_vol() {
	local mnt=$1
	shift
	"${AS[@]}" mkdir -p -- "$mnt"
	timeout -k 5 60 "${AS[@]}" "$CRYPTFUSE" open "$@" "$mnt" >"$S/open.out" 2>"$S/open.err" ||
		fail "open $*: exit $?: $(cat "$S/open.err")"
	mounted "$mnt" || fail "open $* returned, but nothing is mounted on $mnt"
	served "$mnt" || fail "the daemon of $mnt cannot be seen"
}

# Close, and hold the program to its word: nothing mounted, nothing running.
close_vol() { # MNT
	timeout -k 5 60 "${AS[@]}" "$CRYPTFUSE" close "$1" 2>"$S/close.err" || fail "close $1: exit $?: $(cat "$S/close.err")"
	assert_gone "$1"
}

# open_again MNT: close it, and open it by the command that its status prints, to the letter and from another folder; the
# caller's stdin is the command's. Both forms of the status give it, and what is open then gives the same one.
open_again() {
	local line
	line=$("$CRYPTFUSE" status "$1" | sed -n 's/^command: //p')
	"$CRYPTFUSE" status --json "$1" | python3 -c 'import json, shlex, sys
want, got = json.load(sys.stdin)["command"], shlex.split(sys.argv[1])
assert want == got, (want, got)' "$line" || fail "the status and its JSON differ"
	close_vol "$1"
	(cd / && timeout -k 5 60 sh -c "cryptfuse() { \"\$CRYPTFUSE\" \"\$@\"; }; $line" 2>"$S/again.err") ||
		fail "$line: exit $?: $(cat "$S/again.err")"
	assert_eq "the command of the second" "$line" "$("$CRYPTFUSE" status "$1" | sed -n 's/^command: //p')"
}

served() { # MNT
	[ -n "$(daemons_of "$1")" ]
}

unserved() { # MNT
	! served "$1"
}

gone() { # MNT
	! mounted "$1" && unserved "$1"
}

assert_gone() { # MNT
	! mounted "$1" || fail "$1 is still mounted"
	wait_for "the daemon of $1 to end" gone "$1"
}

# One field of the status, as text.
status_field() { # FILE KEY
	fileop getxattr user.cryptfuse.status "$1" | tr -d '\n' |
		sed -nE "s/.*\"$2\" *: *(\"([^\"]*)\"|([^,} ]*)).*/\2\3/p"
}

daemon_pid() { # FILE
	local pid
	pid=$(status_field "$1" pid)
	case $pid in '' | *[!0-9]*) fail "no pid in the status" ;; esac
	echo "$pid"
}

# start_hold FILE TEXT: a process (HOLDER) that wrote TEXT at 1000 and mapped it in at 300000, synced nothing, and keeps
# the file open until stop_hold.
start_hold() {
	rm -f "$S/hold.fifo"
	mkfifo "$S/hold.fifo"
	"$CRYPTFUSE_TOOLS/fileop" hold "$1" 1000 300000 "$2" <"$S/hold.fifo" >"$S/hold.out" &
	HOLDER=$!
	exec 8>"$S/hold.fifo"
	wait_for "the holder" grep -q ready "$S/hold.out"
}

stop_hold() {
	exec 8>&-
	wait "$HOLDER" || :
}
