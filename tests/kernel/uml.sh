# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# shellcheck disable=SC2034,SC2154 # variables of run
# uml.sh - Debian's user-mode-linux as the kernel under tests/kernel/run. Sourced by it.

slow=1

kernel_check() {
	need linux.uml user-mode-linux
	[ -d /usr/lib/uml/modules ] || lacking "/usr/lib/uml/modules is missing: apt install user-mode-linux"
	modules=/usr/lib/uml/modules
}

# memory_folder - where it may keep its memory: it takes a file there, and wants to execute it
memory_folder() {
	local dir
	for dir in "${TMPDIR:-/tmp}" /dev/shm; do
		if [ "$(stat -f -c %T "$dir" 2>/dev/null)" = tmpfs ] && [ -w "$dir" ] &&
			[ "$(df --output=avail -B1M "$dir" | tail -n 1)" -gt "${memory%M}" ]; then
			printf '%s\n' "$dir"
			return
		fi
	done
	printf '%s\n' "$out" # on disk: works, but slower
}

kernel_prepare() { :; }

# kernel_boot WORD… - in place of this process; init finds the words NAME=VALUE in its environment
kernel_boot() {
	exec env "TMPDIR=$(memory_folder)" timeout -k 10 "$limit_s" linux.uml "mem=$memory" rootfstype=hostfs rootflags=/ ro \
		"init=${init:-$here/init}" "RUN=$out" "$@" con=null con0=null,fd:1 quiet </dev/null
}

# kernel_kill PID - kill -9 of all that kernel_boot in process PID has started; nothing of it runs any more afterwards. The kernel is
# the only child, and has made itself a session.
kernel_kill() {
	local uml
	uml=$(tr -d ' ' <"/proc/$1/task/$1/children")
	while kill -KILL -- "-$uml" 2>/dev/null; do sleep 0.005; done
}
