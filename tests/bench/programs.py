# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What is measured: programs that show an image as a file through FUSE, and the images.

A Program is started afresh in every round, so that what one start happened to get (memory, CPU) does not decide the run.
It names the file that the jobs use and the processes whose CPU time and memory count. stop() works in every state.
"""
import json
import os
import re
import secrets
import shutil
import subprocess
import time

MIB = 1 << 20
SECTOR = 512
READY_WITHIN_S = 20
KEY_BYTES = {"xts": 64, "cbc": 32, "ecb": 0}


class Missing(Exception):
    """This program cannot be measured here; the text says why."""


def run(*command):
    """Run to the end; what it says is shown only if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout.decode(errors='replace')}")
    return done.stdout.decode()


def private(path, content):
    with open(path, "w", encoding="ascii", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
        f.write(content)


def raise_session(pid, nice):
    """Where the scheduler shares the CPUs out among sessions first, a nice value counts inside a session only."""
    with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as f:
        f.write(str(nice))


class Images:
    """One LUKS1 image, of which every program gets its own copy. Without cryptsetup: an image without a header."""

    def __init__(self, folder, mib):
        self.folder = folder
        self.bytes = mib * MIB
        self.offset = 0
        self.key = secrets.token_hex(KEY_BYTES["xts"])
        self.passphrase = os.path.join(folder, "passphrase")
        self.luks = shutil.which("cryptsetup", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        self.master = os.path.join(folder, "master")
        private(self.passphrase, secrets.token_hex(16))
        private(self.master, "")
        if self.luks:
            self.format_luks()
        with open(self.master, "r+b") as f:  # every page is written, so that no page of the backing is new
            f.seek(self.offset)
            piece = secrets.token_bytes(MIB)
            for _ in range(mib):
                f.write(piece)

    def format_luks(self):
        """LUKS1 by cryptsetup, which needs neither root nor device-mapper for it; few iterations: no KDF is measured."""
        os.truncate(self.master, self.bytes + 16 * MIB)
        key_file = self.master + ".key"
        run(self.luks, "luksFormat", "--batch-mode", "--type", "luks1", "--pbkdf-force-iterations", "1000", "--cipher",
            "aes-xts-plain64", "--key-size", "512", "--hash", "sha256", self.master, self.passphrase)
        dump = run(self.luks, "luksDump", "--batch-mode", "--dump-volume-key", "--key-file", self.passphrase,
                   "--volume-key-file", key_file, self.master)
        with open(key_file, "rb") as f:
            self.key = f.read().hex()
        os.unlink(key_file)
        self.offset = int(re.search(r"Payload offset:\s+(\d+)", dump)[1]) * SECTOR
        os.truncate(self.master, self.offset + self.bytes)

    def copy_for(self, name):
        return shutil.copyfile(self.master, os.path.join(self.folder, name + ".img"))

    def open_options(self, name):
        """How cryptfuse opens its copy of the image."""
        return ["--table", self.table(name, "aes-xts-plain64", SECTOR, self.key, self.offset)]

    def table(self, name, cipher, du, key, offset=0):
        path = os.path.join(self.folder, name + ".table")
        private(path, f"0 {self.bytes // SECTOR} crypt {cipher} {key or '-'} 0 7:0 {offset // SECTOR} 1 sector_size:{du}\n")
        return path


class Program:
    """start() mounts self.image, takes self.ready_ms until the first 4 KiB could be read, and fills self.pids.

    Every server has a session of its own, as cryptfuse's daemon gives itself one: the scheduler may share the CPUs out
    among sessions first (autogroup), and then a server in fio's session would gain on a busy machine."""

    needs = ()  # commands, and their Debian packages

    def __init__(self, name, images):
        lacking = [f"{tool} (Debian: {package})" for tool, package in self.needs if not shutil.which(tool)]
        if lacking:
            raise Missing("there is no " + ", no ".join(lacking))
        self.name = name
        self.images = images
        self.image = images.copy_for(name)
        self.mount = os.path.join(images.folder, name)
        self.make_mount_point()
        self.children = []
        self.pids = []
        self.ready_ms = None

    def make_mount_point(self):
        os.mkdir(self.mount)
        self.file = os.path.join(self.mount, "volume")

    def start(self):
        began = time.monotonic()
        self.launch()
        self.wait_readable()
        self.ready_ms = (time.monotonic() - began) * 1000
        self.pids = self.find_pids()

    def launch(self):
        raise NotImplementedError

    def find_pids(self):
        return [child.pid for child in self.children]

    def spawn(self, *command):
        with open(os.path.join(self.images.folder, self.name + ".log"), "ab") as log:
            self.children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))

    def log(self):
        try:
            with open(os.path.join(self.images.folder, self.name + ".log"), encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait_readable(self):
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.readable():
            if any(child.poll() is not None for child in self.children) or time.monotonic() > deadline:
                raise Missing(f"does not start here: {self.log().strip() or 'no word why'}")
            time.sleep(0.001)

    def readable(self):
        try:
            with open(self.file, "rb", buffering=0) as f:
                return len(f.read(4096)) == 4096
        except OSError:
            return False

    def cpu_seconds(self):
        """Of all threads, also those that ended: the CPU clock of the process, to the nanosecond."""
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self.pids)

    def peak_rss_mb(self):
        total = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                total += int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) * 1024
        return total / 1e6

    def pin(self, cpus):
        for pid in self.pids:
            for tid in os.listdir(f"/proc/{pid}/task"):
                try:
                    os.sched_setaffinity(int(tid), cpus)
                except ProcessLookupError:  # a thread that has just ended
                    pass

    def stop(self):
        self.pids = []
        if is_mounted(self.mount):
            self.unmount()
        for child in self.children:
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(READY_WITHIN_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        self.children = []

    def unmount(self):
        subprocess.run(["fusermount3", "-u", self.mount], check=False)


def is_mounted(path):
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return any(line.split()[4] == path for line in f)


class Copy(Program):
    """The limit: the same work without cryptography."""

    def __init__(self, name, images, program, threads):
        super().__init__(name, images)
        self.command = [program, "-t", str(threads)]

    def launch(self):
        self.spawn(*self.command, self.image, self.mount)


def is_program(word):
    return "/" in word and not word.startswith("-")


class Cryptfuse(Program):
    """words: options of `open`; du=BYTES and cipher=SPEC, which say what is in the image; a path: another program."""

    def __init__(self, name, images, program, words):
        super().__init__(name, images)
        settings = dict(w.split("=", 1) for w in words if re.match(r"(du|cipher)=", w))
        programs = [w for w in words if is_program(w)]
        self.words = [w for w in words if w not in programs and w.split("=", 1)[0] not in settings]
        self.program = programs[0] if programs else program
        self.du = int(settings.get("du", SECTOR))
        self.cipher = settings.get("cipher", "aes-xts-plain64")
        self.status = {}
        if settings:
            key = secrets.token_hex(KEY_BYTES[self.cipher.split("-")[1]])
            self.how = ["--table", images.table(name, self.cipher, self.du, key)]
        else:
            self.how = images.open_options(name)

    def launch(self):
        done = subprocess.run([self.program, "open", *self.how, *self.words, self.image, self.mount], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise Missing("does not open: " + done.stderr.decode(errors="replace").strip())

    def find_pids(self):
        self.status = json.loads(os.getxattr(self.file, "user.cryptfuse.status"))
        return [self.status["pid"]]

    def unmount(self):
        if subprocess.run([self.program, "close", self.mount], check=False).returncode:
            super().unmount()


class Qemu(Program):
    """qemu-storage-daemon: its own LUKS, its own FUSE export, on a file as mount point."""

    needs = (("qemu-storage-daemon", "qemu-system-common"),)

    def make_mount_point(self):
        self.file = self.mount
        private(self.mount, "")

    def launch(self):
        self.spawn("qemu-storage-daemon", "--object", f"secret,id=passphrase,file={self.images.passphrase}", "--blockdev",
                   f"driver=file,node-name=image,filename={self.image}", "--blockdev",
                   "driver=luks,node-name=volume,file=image,key-secret=passphrase", "--export",
                   f"type=fuse,id=volume,node-name=volume,mountpoint={self.mount},writable=on")


class Nbdkit(Program):
    """nbdkit with its luks filter, and nbdfuse in front of it: two processes, both counted."""

    needs = (("nbdkit", "nbdkit"), ("nbdfuse", "libnbd-bin"))

    def launch(self):
        socket = self.mount + ".sock"
        self.spawn("nbdkit", "--foreground", "--exit-with-parent", "--unix", socket, "--filter=luks", "file", self.image,
                   f"passphrase=+{self.images.passphrase}")
        deadline = time.monotonic() + READY_WITHIN_S
        while not os.path.exists(socket) and self.children[0].poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        self.spawn("nbdfuse", self.file, f"nbd+unix:///?socket={socket}")

    def stop(self):
        super().stop()
        if os.path.exists(self.mount + ".sock"):
            os.unlink(self.mount + ".sock")
