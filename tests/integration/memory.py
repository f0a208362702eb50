#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Looks for secrets in the memory of processes, as root.

  memory.py SECRETS search PID...       what is in these processes now
  memory.py SECRETS run COMMAND...      what is in each process that COMMAND starts, in its last moments
  memory.py SECRETS plant               be a process that has a copy of everything (for who doubts this search)
  memory.py SECRETS names               WHAT may be found

SECRETS: --key FILE (a volume key: each of its 16-byte windows, in hex, its halves' AES schedules of both directions, the
ESSIV key and its schedules), --passphrase FILE, --text TEXT (which is no secret, and tells whether anything is seen).
Prints a line for each thing found: PID NAME: WHAT in WHERE. WHERE is "arena" for memory that is locked and stays out of
core dumps, else the mapping; with it whatever may not be dumped but is not locked is no arena.
"""
import argparse
import ctypes
import hashlib
import os
import re
import signal
import sys

# ---- AES key schedules (FIPS 197, 5.2 and 5.3.5), from the definition ----


def times(a, b):
    r = 0
    while b:
        r ^= a if b & 1 else 0
        a = a << 1 ^ (0x11b if a & 0x80 else 0)
        b >>= 1
    return r


def sbox():
    out = []
    for x in range(256):
        y = next((i for i in range(256) if times(x, i) == 1), 0)
        r = 0x63
        for n in range(5):
            r ^= (y << n | y >> (8 - n)) & 0xff
        out.append(r)
    return out


SBOX = sbox()


def encryption(key):
    nk, words, rcon = len(key) // 4, [key[i:i + 4] for i in range(0, len(key), 4)], 1
    for i in range(nk, 4 * (nk + 7)):
        t = words[i - 1]
        if i % nk == 0:
            t = bytes(SBOX[b] for b in t[1:] + t[:1])
            t, rcon = bytes([t[0] ^ rcon]) + t[1:], times(rcon, 2)
        elif nk > 6 and i % nk == 4:
            t = bytes(SBOX[b] for b in t)
        words.append(bytes(a ^ b for a, b in zip(words[i - nk], t)))
    return [b"".join(words[i:i + 4]) for i in range(0, len(words), 4)]


def decryption(rounds):
    def unmix(w):
        return bytes(times(w[i], 14) ^ times(w[(i + 1) % 4], 11) ^ times(w[(i + 2) % 4], 13) ^ times(w[(i + 3) % 4], 9)
                     for i in range(4))
    return [b"".join(unmix(r[i:i + 4]) for i in range(0, 16, 4)) for r in rounds[1:-1]]


def swapped(block):
    return b"".join(block[i:i + 4][::-1] for i in range(0, 16, 4))


def schedules(name, key):
    rounds = encryption(key)
    for direction, keys in (("encryption", rounds), ("decryption", decryption(rounds))):
        for i, k in enumerate(keys):
            yield f"{name}: round key {i} of {direction}", k
            yield f"{name}: round key {i} of {direction}, by words", swapped(k)


# ---- what is looked for ----


def wanted(args):
    out = []
    if args.key:
        key = open(args.key, "rb").read()
        essiv = hashlib.sha256(key).digest()
        for name, k in (("the key", key), ("the ESSIV key", essiv)):
            out += [(f"{name} from byte {i}", k[i:i + 16]) for i in range(len(k) - 15)]
            for text in (k.hex(), k.hex().upper()):
                out += [(f"{name} in hex from byte {i}", text[2 * i:2 * i + 16].encode()) for i in range(0, len(k) - 7, 8)]
        aes = [("first half", key[:len(key) // 2]), ("second half", key[len(key) // 2:]), ("whole key", key), ("essiv", essiv)]
        for name, k in aes:
            if len(k) in (16, 24, 32):
                out += schedules(name, k)
    if args.passphrase:
        p = open(args.passphrase, "rb").read().rstrip(b"\n")
        out += [("the passphrase", p), ("the passphrase in hex", p.hex().encode())]
        out += [(f"the passphrase from byte {i}", p[i:i + 12]) for i in range(1, len(p) - 11)]
    if args.text:
        out.append(("the text", args.text.encode()))
    return out


# ---- where it is looked for ----


def mappings(pid):
    """(start, end, name, flags) of what can be read and may have been written to"""
    now = None
    for line in open(f"/proc/{pid}/smaps"):
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)", line)
        if m:
            now = {"from": int(m[1], 16), "to": int(m[2], 16), "access": m[3], "file": m[4] != "0", "name": m[5]}
        elif line.startswith(("Private_Dirty:", "Swap:")):
            now["own"] = now.get("own", 0) + int(line.split()[1])
        elif line.startswith("VmFlags:") and "r" in now["access"] and not now["name"].startswith("[v"):
            if now["own"] or not now["file"]:
                yield now["from"], now["to"], now["name"] or "memory", line.split()[1:]


PAGE = os.sysconf("SC_PAGE_SIZE")


def runs(pagemap, start, end):
    """(start, end) of the pages that there are, in memory or in swap: most of a thread's stack was never touched"""
    entries = os.pread(pagemap, (end - start) // PAGE * 8, start // PAGE * 8)
    there = [e >> 6 != 0 for e in entries[7::8]]
    i = 0
    while i < len(there):
        n = i
        while n < len(there) and there[n] == there[i]:
            n += 1
        if there[i]:
            yield start + i * PAGE, start + n * PAGE
        i = n


def look(pid, secrets):
    try:
        name, places = open(f"/proc/{pid}/comm").read().strip(), list(mappings(pid))
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended
    with open(f"/proc/{pid}/mem", "rb", 0) as mem, open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap:
        for start, end, where, flags in places:
            data = b""
            for first, last in runs(pagemap.fileno(), start, end):
                data += os.pread(mem.fileno(), last - first, first)
            if "dd" in flags and "lo" in flags:
                where = "arena"
            for what, text in secrets:
                if text in data:
                    print(f"{pid} {name}: {what} in {where}", flush=True)


# ---- processes in their last moments ----

SEIZE, CONT, EVENTMSG = 0x4206, 7, 0x4201
FORKS, EXIT = 0x2 | 0x4 | 0x8, 0x40  # PTRACE_O_TRACEFORK, VFORK, CLONE; EXIT
EVENT_EXIT, EVENT_STOP = 6, 128


def ptrace(request, pid, data=0):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, pid, 0, data) < 0 and request == SEIZE:
        raise OSError(ctypes.get_errno(), "ptrace")


def is_process(tid):
    return re.search(r"^Tgid:\s*(\d+)", open(f"/proc/{tid}/status").read(), re.M)[1] == str(tid)


def run(command, secrets):
    """The exit status of the command; ends when the last process has."""
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execvp(command[0], command)
    os.waitpid(child, os.WUNTRACED)
    ptrace(SEIZE, child, FORKS | EXIT)
    print(f"{child} starts", flush=True)
    os.kill(child, signal.SIGCONT)
    result = 1
    while True:
        try:
            pid, status = os.waitpid(-1, 0x40000000)  # __WALL
        except ChildProcessError:
            return result
        if not os.WIFSTOPPED(status):
            if pid == child:
                result = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128
            continue
        sig, event = os.WSTOPSIG(status), status >> 16
        if event == EVENT_EXIT and is_process(pid):
            look(pid, secrets)
            print(f"{pid} {open(f'/proc/{pid}/comm').read().strip()} ends", flush=True)
        ptrace(CONT, pid, 0 if event else sig)


# ---- the doubter's process ----


def plant(args):
    """Holds keys and texts, and the schedules as libcrypto makes them."""
    key, passphrase = open(args.key, "rb").read(), open(args.passphrase, "rb").read().rstrip(b"\n")
    crypto, essiv = ctypes.CDLL("libcrypto.so.3"), hashlib.sha256(key).digest()
    kept = [key.hex(), key.hex().upper(), essiv.hex(), essiv.hex().upper(), passphrase.hex(), args.text]
    for half in (key[:len(key) // 2], key[len(key) // 2:], key, essiv):
        for make in (crypto.AES_set_encrypt_key, crypto.AES_set_decrypt_key):
            kept.append(ctypes.create_string_buffer(256))
            make(half, 8 * len(half), kept[-1])
    print(os.getpid(), flush=True)
    sys.stdin.read()
    return len(kept) == 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--key", "--passphrase", "--text"):
        p.add_argument(option)
    p.add_argument("what", choices=["search", "run", "plant", "names"])
    p.add_argument("rest", nargs=argparse.REMAINDER)
    args = p.parse_args()
    if args.what == "plant":
        return plant(args)
    if args.what == "run":
        return run(args.rest, wanted(args))
    if args.what == "names":
        print("\n".join(name for name, _ in wanted(args)))
    for pid in args.rest:
        look(pid, wanted(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
