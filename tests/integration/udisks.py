#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""udisks.py - stands in for udisks: the verbs of udisksctl that `cryptfuse mount --udisks` uses, with the messages of udisks 2.9.4.

serve FOLDER: the daemon, as root. It listens at FOLDER/socket, mounts below FOLDER/media, and obeys FOLDER/mode:
    deny      polkit refuses everything          timeout   a loop device is made, but udev does not tell in time
    desktop   a desktop mounts the new device at once      fail-mount, fail-delete   that verb fails
ctl FOLDER VERB OPTION…: udisksctl, as anybody. Like the real one it opens the file itself and hands the descriptor over.
"""
import errno
import fcntl
import os
import re
import socket
import subprocess
import sys

LOOP_SET_FD, LOOP_CLR_FD, LOOP_CTL_GET_FREE = 0x4C00, 0x4C01, 0x4C82
ERROR = "GDBus.Error:org.freedesktop.UDisks2.Error."


class Failure(Exception):
    pass


def attach(fd):
    while True:
        with open("/dev/loop-control", "rb", buffering=0) as control:
            device = "/dev/loop%d" % fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        with open(device, "rb", buffering=0) if is_read_only(fd) else open(device, "r+b", buffering=0) as loop:
            try:
                fcntl.ioctl(loop, LOOP_SET_FD, fd)
                return device
            except OSError as e:
                if e.errno != errno.EBUSY:  # somebody else was faster
                    raise


def is_read_only(fd):
    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def mount(folder, device, options):
    where = os.path.join(folder, "media", "label")
    os.makedirs(where)
    done = subprocess.run(["mount", "-o", options, device, where], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        os.rmdir(where)
        raise Failure(f"Error mounting {device}: {ERROR}Failed: {done.stderr.strip()}")
    return where


def mount_point(device):
    with open("/proc/self/mountinfo") as f:
        return next((line.split()[4] for line in f if f" {device} " in line), None)


def do_loop_setup(folder, mode, words, fd):
    device = attach(fd)
    if mode == "timeout":
        raise Failure(f"Error setting up loop device for {words['--file']}: {ERROR}Failed: Error waiting for loop object "
                      f"after creating '{device}': Timed out waiting for object")
    if mode == "desktop":
        mount(folder, device, "nosuid,nodev")
    return f"Mapped file {words['--file']} as {device}."


def do_mount(folder, mode, words, fd):
    device = words["--block-device"]
    if mode == "fail-mount":
        raise Failure(f"Error mounting {device}: {ERROR}OptionNotPermitted: Mount option `suid' is not allowed")
    if mount_point(device):
        raise Failure(f"Error mounting {device}: {ERROR}AlreadyMounted: Device {device} is already mounted at "
                      f"`{mount_point(device)}'.")
    return f"Mounted {device} at {mount(folder, device, words.get('--options', 'nosuid,nodev'))}"


def do_unmount(folder, mode, words, fd):
    device = words["--block-device"]
    where = mount_point(device)
    if not where:
        raise Failure(f"Error unmounting {device}: {ERROR}NotMounted: Device `{device}' is not mounted")
    if subprocess.run(["umount", where], stderr=subprocess.DEVNULL).returncode:
        raise Failure(f"Error unmounting {device}: {ERROR}DeviceBusy: Error unmounting {device}: target is busy")
    os.rmdir(where)
    return f"Unmounted {device}."


def do_loop_delete(folder, mode, words, fd):
    device = words["--block-device"]
    if mode == "fail-delete":
        raise Failure(f"Error looking up object for device {device}")
    with open(device, "rb", buffering=0) as loop:
        fcntl.ioctl(loop, LOOP_CLR_FD)
    return ""


VERBS = {"loop-setup": do_loop_setup, "mount": do_mount, "unmount": do_unmount, "loop-delete": do_loop_delete}


def parse(arguments):
    words, rest = {}, list(arguments)
    while rest:
        name = rest.pop(0)
        words[name] = True if name in ("--read-only", "--no-user-interaction") else rest.pop(0)
    return words


def answer(folder, request, fd):
    verb, *arguments = request.split("\0")
    words = parse(arguments)
    with open(os.path.join(folder, "mode")) as f:
        mode = f.read().strip()
    with open(os.path.join(folder, "log"), "a") as f:
        f.write(re.sub(r"/\S+/mount-\w+", "PLACE", " ".join([verb, *arguments])) + "\n")
    if "--no-user-interaction" not in words:
        return "1would ask"
    if mode == "deny":
        return f"1Error creating textual authentication agent\nError: {ERROR}NotAuthorizedCanObtain: Not authorized"
    try:
        return "0" + VERBS[verb](folder, mode, words, fd)
    except Failure as e:
        return "1" + str(e)


def serve(folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(os.path.join(folder, "socket"))
        os.chmod(os.path.join(folder, "socket"), 0o666)
        listener.listen()
        while True:
            with listener.accept()[0] as peer:
                data, fds, _, _ = socket.recv_fds(peer, 65536, 1)
                reply = answer(folder, data.decode(), fds[0] if fds else -1)
                for fd in fds:
                    os.close(fd)
                peer.send(reply.encode())


def ctl(folder, arguments):
    words = parse(arguments[1:])
    fds = []
    if "--file" in words:
        fds = [os.open(words["--file"], os.O_RDONLY if "--read-only" in words else os.O_RDWR)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        try:
            s.connect(os.path.join(folder, "socket"))
        except OSError as e:
            print(f"Error connecting to the udisks daemon: Could not connect: {e.strerror}", file=sys.stderr)
            return 1
        socket.send_fds(s, ["\0".join(arguments).encode()], fds)
        reply = s.recv(65536).decode()
    print(reply[1:], file=sys.stderr if reply[0] == "1" else sys.stdout)
    return int(reply[0])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    sys.exit(ctl(sys.argv[2], sys.argv[3:]))
