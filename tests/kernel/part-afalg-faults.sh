#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 60 s
# Calls of the AF_ALG engine to the kernel fail one by one: never a wrong byte. First with the kernel's synchronous ciphers,
# then with its asynchronous software driver, cryptd, and several requests outstanding. What the kernel prefers to both, because
# it uses the processor's instructions, is taken away meanwhile.
[ -x "$BUILD/tests/kernel/afalg_fault" ] || { echo "built without the engine afalg" && exit 77; }
rmmod aesni_intel 2>/dev/null && aesni=yes
for how in sync async; do
	if LD_PRELOAD=$BUILD/tests/tools/failsock.so timeout $((200 * SLOW)) "$BUILD/tests/kernel/afalg_fault" $how; then
		echo "PASS: afalg-faults/$how"
	else
		echo "FAIL: afalg-faults/$how (exit $?)"
	fi
done
if [ "${aesni:-}" = yes ]; then
	modprobe -d /mnt/modules aesni_intel
else
	rmmod cryptd # the kernel would go on preferring it
fi
