# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# shellcheck disable=SC2034,SC2154 # variables of run
# qemu.sh - a real kernel, with a machine around it, under tests/kernel/run: Debian's linux-image-cloud-amd64 or another one
# with virtio, its processor emulated. Sourced by it; as root, for virtiofsd shows the files of this machine inside.
#
# KERNEL_IMAGE: .../boot/vmlinuz-VERSION, with .../lib/modules/VERSION beside it (default: the newest in /boot).

jobs_default=1
slow=6 # every instruction is emulated, and files come over a socket

kernel_check() {
	image=${KERNEL_IMAGE:-$(find /boot -name 'vmlinuz-*' | sort -V | tail -n 1)}
	virtiofsd=$(command -v virtiofsd /usr/lib/qemu/virtiofsd /usr/libexec/virtiofsd | head -n 1)
	[ "$(id -u)" -eq 0 ] || lacking "--kernel qemu is for root"
	[ -f "$image" ] || lacking "there is no kernel in /boot, and no KERNEL_IMAGE: apt install linux-image-cloud-amd64"
	[ -n "$virtiofsd" ] || lacking "virtiofsd is missing: apt install qemu-system-common"
	need qemu-system-x86_64 qemu-system-x86
	need busybox busybox-static
	version=${image##*/vmlinuz-}
	modules=$(cd "$(dirname "$image")/.." && pwd)/lib/modules
	[ -d "$modules/$version" ] || lacking "there is no $modules/$version"
}

# first_root - what the kernel starts with: enough to reach the files of this machine, and to go on there
first_root() {
	local dir=$out/first n=10 module
	mkdir -p "$dir"/{bin,modules,proc,root}
	cp "$(command -v busybox)" "$dir/bin/"
	for module in $(for m in virtiofs virtio_pci; do
		modprobe -d "${modules%/lib/modules}/" -S "$version" --show-depends $m
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'); do
		cp "$module" "$dir/modules/$((n++))-${module##*/}"
	done
	cat >"$dir/init" <<-'END'
		#!/bin/busybox sh
		busybox mount -t proc proc /proc
		for module in /modules/*; do busybox insmod "$module"; done
		busybox mount -t virtiofs -o ro root /root || busybox poweroff -f
		exec busybox switch_root /root "$INIT"
	END
	chmod +x "$dir/init"
	(cd "$dir" && find . | busybox cpio -o -H newc | gzip -1) >"$out/first.cpio.gz"
}

# show_folder TAG FOLDER - a folder of this machine for the one inside
show_folder() {
	"$virtiofsd" "--socket-path=$out/$1.sock" -o "source=$2" -o cache=auto -o sandbox=chroot -f \
		>"$out/virtiofsd-$1.log" 2>&1 </dev/null &
	helpers+=($!)
	for _ in $(seq 100); do [ -S "$out/$1.sock" ] || sleep 0.1; done
}

kernel_prepare() {
	first_root
	show_folder root /
	show_folder out "$out"
}

kernel_boot() {
	exec timeout -k 10 "$limit_s" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m "$memory" -nographic -nodefaults \
		-no-reboot -serial stdio -object "memory-backend-memfd,id=memory,size=$memory,share=on" -numa node,memdev=memory \
		-chardev "socket,id=root,path=$out/root.sock" -device vhost-user-fs-pci,chardev=root,tag=root \
		-chardev "socket,id=out,path=$out/out.sock" -device vhost-user-fs-pci,chardev=out,tag=out \
		-kernel "$image" -initrd "$out/first.cpio.gz" \
		-append "console=ttyS0 quiet panic=-1 INIT=$here/init RUN=$out $*" </dev/null
}
