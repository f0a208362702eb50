# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# host.sh - what the entry scripts ask of a machine: packages, a temporary ordinary user, a usable /dev/fuse. Sourced.
#
# Sets host_top (the source tree). host_dir is a scratch folder that the ordinary user owns; host_end removes it, the
# user, and whatever still runs or is mounted there, and is meant for a trap on EXIT.

host_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
host_dir=
host_user=
PATH=$PATH:/usr/sbin:/sbin

host_say() { printf '== %s\n' "$*"; }
host_die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
host_is_root() { [ "$(id -u)" -eq 0 ]; }

# host_missing GROUP… - packages of these groups that are not installed
host_missing() {
	local group package
	while read -r group package; do
		case " $* " in *" $group "*) ;; *) continue ;; esac
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s\n' "$package"
	done <"$host_top/build-packages"
}

# host_install GROUP… - install what is missing: as root at once, as a user through sudo and only if there is a need
host_install() {
	local -a missing as_root=()
	if ! command -v dpkg-query >/dev/null; then
		host_say "not a Debian system: what $host_top/build-packages lists must be there already"
		return
	fi
	mapfile -t missing < <(host_missing "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	host_say "packages to install: ${missing[*]}"
	if ! host_is_root; then
		command -v sudo >/dev/null || host_die "ask an administrator to run: apt-get install ${missing[*]}"
		as_root=(sudo)
	fi
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
		host_say "apt-get update failed: trying with the package lists that are here"
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" ||
		host_die "these packages could not be installed: ${missing[*]}"
}

# host_begin NAME - make host_dir and, as root, an ordinary user who owns it and whose home it is
host_begin() {
	host_dir=$(mktemp -d "${TMPDIR:-/tmp}/$1.XXXXXX")
	host_is_root || return 0
	setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$(dirname "$host_dir")" || {
		rmdir "$host_dir"
		host_dir=$(mktemp -d "/tmp/$1.XXXXXX")
	}
	chmod 755 "$host_dir"
	useradd --no-create-home --home-dir "$host_dir" --shell /bin/sh --comment "cryptfuse $1, temporary" "$1-$$"
	host_user=$1-$$
	chown "$host_user:" "$host_dir"
}

# host_as_user COMMAND… - run as the ordinary user, in a clean environment; who is no root already is one
host_as_user() {
	local -a as_user=()
	[ -z "$host_user" ] || as_user=(setpriv --reuid="$host_user" --regid="$host_user" --init-groups)
	(cd "$host_dir" && exec "${as_user[@]}" env -i PATH="$PATH" HOME="$host_dir" TMPDIR="$host_dir" LC_ALL=C.UTF-8 CI="${CI:-}" \
		CRYPTFUSE_PEER_IMAGES="${CRYPTFUSE_PEER_IMAGES:-}" "$@")
}

host_fuse_usable() { [ -r /dev/fuse ] && [ -w /dev/fuse ]; }

# host_fuse - see that an ordinary user can mount
host_fuse() {
	if [ ! -c /dev/fuse ] && host_is_root; then modprobe fuse 2>/dev/null || true; fi
	[ -c /dev/fuse ] || host_die "there is no /dev/fuse: this kernel, or container, offers no FUSE"
	if host_is_root && [ "$(stat -c %a /dev/fuse)" != 666 ]; then
		host_say "chmod 666 /dev/fuse, as udev does on a desktop"
		chmod 666 /dev/fuse
	fi
	host_fuse_usable || host_die "this user may not use /dev/fuse (as root: chmod 666 /dev/fuse)"
}

# host_mounts_under DIR - mount points in DIR, the innermost first
host_mounts_under() {
	awk -v dir="$1/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r
}

# host_pids_of USER
host_pids_of() {
	local uid proc
	uid=$(id -u "$1") || return 0
	for proc in /proc/[0-9]*; do
		[ "$(stat -c %u "$proc" 2>/dev/null)" != "$uid" ] || printf '%s\n' "${proc#/proc/}"
	done
}

# host_end - undo host_begin. Never fails.
host_end() {
	local mount pid
	[ -n "$host_dir" ] || return 0
	cd / || true
	for mount in $(host_mounts_under "$host_dir"); do
		if host_is_root; then umount -l "$mount"; else fusermount3 -u -z "$mount"; fi || true
	done
	if [ -n "$host_user" ]; then
		for pid in $(host_pids_of "$host_user"); do kill -KILL "$pid" 2>/dev/null || true; done
		userdel --force "$host_user" 2>/dev/null || printf 'could not remove the user %s\n' "$host_user" >&2
	fi
	rm -rf --one-file-system "$host_dir"
	host_dir=
	host_user=
}
