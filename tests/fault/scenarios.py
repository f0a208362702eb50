# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What is done while a call fails, and what must be so afterwards."""
import collections
import errno
import json
import os
import secrets
import shutil
import signal
import subprocess
import time

import failcall

KIB, MIB = 1 << 10, 1 << 20
LIMIT_S = 60
BYTES = 256 * KIB
WRITTEN, NEWS = (1000, 65536, BYTES - 777), secrets.token_bytes(777)  # parts of data units
PASSPHRASE = b"open sesame"
PLAIN = ["--type", "plain", "-c", "aes-xts-plain64", "-s", "512"]
PBKDF = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"]

Result = collections.namedtuple("Result", "rc fired out err")


class Wrong(Exception):
    """What must hold does not."""

    def __init__(self, text, result):
        super().__init__(text)
        self.result = result


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def write_file(path, data):
    with open(path, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
        f.write(data)


class Bench:
    """A folder with images, a program to run, and who obeys which order."""

    def __init__(self, folder, program, library):
        self.folder, self.program, self.library = folder, program, library
        for name in ("", "in", "out", "mnt", "run", "work"):
            os.mkdir(self.path(name), 0o700)
        self.control = failcall.Control(library, self.path("control"))
        self.daemon_control = failcall.Control(library, self.path("daemon-control"))
        self.plain = secrets.token_bytes(BYTES)
        write_file(self.path("in/key"), secrets.token_bytes(64))
        write_file(self.path("in/plaintext"), self.plain)
        write_file(self.path("in/passphrase"), PASSPHRASE)
        self.make("plain", PLAIN + ["-d", self.path("in/key")], "in/plaintext")
        self.make("luks2", ["--type", "luks2", "-d", self.path("in/passphrase")] + PBKDF, "in/plaintext")
        self.make_ext4()
        self.inputs = {name: read_file(self.path("in", name)) for name in os.listdir(self.path("in"))}

    def path(self, *names):
        return os.path.join(self.folder, *names).rstrip("/")

    def make(self, name, options, plain):
        done = self.command("encrypt", "-q", *options, self.path(plain), self.path("in", name))
        if done.rc:
            raise SystemExit(f"the image {name} cannot be made: {done.err}")

    def make_ext4(self):
        path = self.path("in/files")
        with open(path, "wb") as f:
            f.truncate(2 * MIB)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", path], check=True, stdin=subprocess.DEVNULL,
                       env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        self.make("ext4", PLAIN + ["-d", self.path("in/key")], "in/files")

    def command(self, *argv, control=None, stdin=b""):
        """Run it; what fails is what the control says."""
        control = control or self.control
        env = dict(os.environ, XDG_RUNTIME_DIR=self.path("run"), **control.env())
        try:
            done = subprocess.run([self.program, *argv], input=stdin, capture_output=True, timeout=LIMIT_S, env=env,
                                  check=False, cwd=self.folder)
        except subprocess.TimeoutExpired as e:
            result = Result(None, 1, b"", (e.stderr or b"").decode(errors="replace"))
            raise Wrong(f"does not end; it said: {result.err}", result) from e
        return Result(done.returncode, 0, done.stdout, done.stderr.decode(errors="replace"))

    def crash(self):
        return self.control.crash() or self.daemon_control.crash()

    def died_of_itself(self):
        """Did a library end the process, or fall over its own failure? Then only what is left behind counts."""
        for control in (self.control, self.daemon_control):
            for origin in control.origins_of_crash():
                if origin in ("libc.so", "libjson-c"):
                    continue
                if origin not in FRAGILE:
                    return False
                break
        return True

    def expand(self, word):
        return word.replace("IN/", self.path("in") + "/").replace("OUT/", self.path("out") + "/")

    def decrypted(self, image, options):
        """The plaintext of an image; or what is wrong, as a string."""
        path = self.path("work/plain")
        done = self.command("decrypt", "-q", "--force", *options, image, path)
        return read_file(path) if done.rc == 0 else f"decrypt: exit {done.rc}: {done.err}"

    def use_volume(self):
        """Read and write the volume that is open, as a program would; what is wrong, or None."""
        try:
            with open(self.path("mnt/volume"), "r+b", buffering=0) as f:
                if f.read(BYTES) != self.plain:
                    return "the volume holds something else"
                for at in WRITTEN:
                    f.seek(at)
                    f.write(NEWS)
                os.fsync(f.fileno())
        except OSError as e:
            return f"the volume cannot be used: {e}"
        return None

    def after_use(self):
        now = bytearray(self.plain)
        for at in WRITTEN:
            now[at:at + len(NEWS)] = NEWS
        return bytes(now)

    def close_and_compare(self, options):
        """Close what may be open, without a fault; the image then holds all that was written."""
        if self.mounts():
            done = self.command("close", self.path("mnt"))
            if done.rc:
                return f"close: exit {done.rc}: {done.err}"
        wrong = self.wait_gone()
        if wrong:
            return wrong
        plain = self.decrypted(self.path("work/image"), options)
        if isinstance(plain, str):
            return plain
        return None if plain == self.after_use() else "what was written is not in the image"

    def processes(self):
        """Pids with this folder on their command line."""
        found, mark = [], (self.folder + "/").encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if mark in read_file(f"/proc/{pid}/cmdline"):
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def mounts(self):
        return [line.split()[4] for line in read_file("/proc/self/mountinfo").decode().splitlines()
                if line.split()[4].startswith(self.folder + "/")]

    def wait_gone(self):
        """What is still there when its time is up."""
        end = time.monotonic() + 20
        while self.processes() or self.mounts():
            if time.monotonic() > end:
                return f"left running {self.processes()}, left mounted {self.mounts()}"
            time.sleep(0.005)
        return None

    def leftovers(self):
        names = [n for d in ("out", "mnt", "run") for n in os.listdir(self.path(d)) if (d, n) != ("run", "cryptfuse")]
        return f"left over: {names}" if names else None

    def changed_input(self):
        for name, data in self.inputs.items():
            if read_file(self.path("in", name)) != data:
                return f"in/{name} has changed"
        return None

    def clear(self):
        """After a failure: as at the beginning."""
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        for mount in self.mounts():
            subprocess.run(["fusermount3", "-u", "-z", mount], stderr=subprocess.DEVNULL, check=False)
        self.wait_gone()
        for d in ("out", "run"):
            shutil.rmtree(self.path(d))
            os.mkdir(self.path(d), 0o700)
        for name, data in self.inputs.items():
            write_file(self.path("in", name), data)


def plain_options(bench):
    return PLAIN + ["-d", bench.path("in/key")]


class Scenario:
    """One command. A subclass says argv, and what is good after success."""
    name = ""
    stdin = b""

    def argv(self, bench):
        raise NotImplementedError

    def prepare(self, bench):
        """Before the fault."""

    def good(self, bench, fault, result):
        """What is wrong after exit 0; None."""

    def failed(self, bench):
        """What is wrong after another exit; None."""

    def undo(self, bench):
        """After success and good: as before."""

    def excluded(self, depth, origin, call, code):
        return (origin, call) in EXCLUDED or (depth, origin, call, code) in IMPOSSIBLE

    def persistent(self, call):
        return call in PERSISTENT

    depths = range(failcall.DEPTHS)
    by_daemon = False

    def count(self, bench):
        """How often each call is used, without a fault."""
        self.run(bench, None)
        return {who: n for who, n in self.uses.items() if who[0] in self.depths}

    def run(self, bench, fault):
        self.prepare(bench)
        control = bench.daemon_control if self.by_daemon else bench.control
        control.reset()
        if fault:
            control.arm(fault)
        result = bench.command(*self.argv(bench), stdin=self.stdin)
        control.disarm()
        if not fault:
            self.uses = control.uses()
        result = result._replace(fired=control.state.fired)
        self.judge(bench, fault, result)
        return result

    def judge(self, bench, fault, result):
        wrong = self.judge_exit(bench, fault, result)
        if not wrong:
            wrong = self.good(bench, fault, result) if result.rc == 0 else self.failed(bench)
        if not wrong and result.rc == 0:
            self.undo(bench)
        wrong = wrong or bench.wait_gone() or bench.leftovers() or bench.changed_input()
        if wrong:
            raise Wrong(f"{wrong}\n\texit {result.rc}, said: {result.err.strip()}", result)

    def judge_exit(self, bench, fault, result):
        lines = result.err.splitlines()
        origin = bench.library.origins[fault.origin] if fault else None
        if bench.crash():
            return None if bench.died_of_itself() else bench.crash()
        if result.rc not in range(6):
            return f"exit {result.rc}"
        foreign = [line for line in lines if not line.startswith("cryptfuse: ")]
        if foreign:
            return f"says without its name: {foreign[0]}"
        if result.rc and len(lines) != 1:
            return f"{len(lines)} messages"
        if result.rc and not fault:
            return "fails without a fault"
        if fault and result.rc not in (0, 3) and fault.code == errno.ENOMEM and fault.depth < 2 and origin in ("cryptfuse", "libc.so"):
            return "out of memory, but the exit code is another"
        return None


class Reading(Scenario):
    """A command that only reads what is in in/, and prints."""

    def __init__(self, name, *words):
        self.name, self.words, self.expected = name, words, {}

    def argv(self, bench):
        return [bench.expand(word) for word in self.words]

class Printing(Reading):
    """The same, and what it prints is the same every time; if may_know_less, less of it where a library fails: it says
    then that a header is damaged, or leaves out a name."""

    def __init__(self, name, *words, may_know_less=False):
        super().__init__(name, *words)
        self.may_know_less = may_know_less

    def good(self, bench, fault, result):
        if result.out == self.expected[bench]:
            return None
        if self.may_know_less and bench.library.origins[fault.origin] != "cryptfuse":
            return None if self.words[1] != "--json" or json.loads(result.out) else "prints nothing"
        return f"prints something else: {result.out[-300:]}"

    def prepare(self, bench):
        if bench not in self.expected:
            self.expected[bench] = bench.command(*self.argv(bench)).out


class Open(Scenario):
    """open, the volume is used, and closed again."""

    def __init__(self, name, image, *options, depths=(0, 1, 2)):
        self.name, self.image, self.options, self.depths = name, image, options, depths

    def argv(self, bench):
        options = plain_options(bench) if self.image == "plain" else ["-d", bench.path("in/passphrase")]
        return ["open", "-q", *options, *self.options, bench.path("work/image"), bench.path("mnt")]

    def prepare(self, bench):
        shutil.copyfile(bench.path("in", self.image), bench.path("work/image"))

    def good(self, bench, fault, result):
        return bench.use_volume() or bench.close_and_compare(plain_options(bench) if self.image == "plain" else
                                                             ["-d", bench.path("in/passphrase")])

    def failed(self, bench):
        same = read_file(bench.path("work/image")) == bench.inputs[self.image]
        return None if same else "the image has changed"


class Opened(Scenario):
    """A command about a volume that is open. Its own calls fail; or, by_daemon, those of the daemon meanwhile."""

    def __init__(self, name, *words, by_daemon=False):
        self.name, self.words, self.by_daemon = name, words, by_daemon

    def prepare(self, bench):
        shutil.copyfile(bench.path("in/plain"), bench.path("work/image"))
        done = bench.command("open", "-q", *plain_options(bench), bench.path("work/image"), bench.path("mnt"),
                             control=bench.daemon_control)
        wrong = done.rc and done.err or bench.use_volume()
        if wrong:
            raise SystemExit(f"{self.name}: cannot be prepared: {wrong}")
        bench.daemon_control.reset()

    def argv(self, bench):
        return [*self.words, bench.path("mnt")]

    def good(self, bench, fault, result):
        return bench.close_and_compare(plain_options(bench))

    def failed(self, bench):
        return bench.close_and_compare(plain_options(bench))


class Making(Scenario):
    """A command that makes out/new, which then holds the plaintext; or nothing is left of it."""

    def __init__(self, name, *words, options=None, content=True, stdin=b""):
        self.name, self.words, self.options, self.content, self.stdin = name, words, options, content, stdin

    def argv(self, bench):
        return [bench.expand(word) for word in self.words]

    def failed(self, bench):
        """Whole, if only its name may not have reached the disk; or not there."""
        wrong = os.path.exists(bench.path("out/new")) and self.look(bench, bench.path("out/new"))
        if not wrong and os.path.exists(bench.path("out/new")):
            self.undo(bench)
        return wrong

    def good(self, bench, fault, result):
        path = bench.path("out/new")
        if not os.path.exists(path):
            return "out/new is not there"
        return self.look(bench, path)

    def look(self, bench, path):
        if self.options is None:
            same = read_file(path) == bench.plain
            return None if same else "out/new holds something else"
        plain = bench.decrypted(path, [bench.expand(word) for word in self.options])
        if isinstance(plain, str):
            return plain
        return None if not self.content or plain == bench.plain else "out/new holds something else"

    def undo(self, bench):
        os.unlink(bench.path("out/new"))


PLAIN_KEY = [*PLAIN, "-d", "IN/key"]
LUKS_KEY = ["--type", "luks2", "-d", "IN/passphrase"]

ALL = [
    Printing("completion", "completion", "bash"),
    Printing("info-plain", "info", "IN/plain"),
    Printing("info-luks2", "info", "--json", "IN/luks2", may_know_less=True),
    Reading("status-none", "status", "--json"),
    Open("open", "plain"),
    Open("open-luks2", "luks2", depths=(0,)),
    Opened("status", "status"),
    Opened("status-json", "status", "--json"),
    Opened("close", "close"),
    Opened("close-daemon", "close", by_daemon=True),
    Making("decrypt", "decrypt", "-q", *PLAIN_KEY, "IN/plain", "OUT/new"),
    Making("decrypt-luks2", "decrypt", "-q", "-d", "IN/passphrase", "IN/luks2", "OUT/new"),
    Making("encrypt", "encrypt", "-q", *PLAIN_KEY, "IN/plaintext", "OUT/new", options=PLAIN_KEY),
    Making("encrypt-luks2", "encrypt", "-q", *LUKS_KEY, *PBKDF, "IN/plaintext", "OUT/new", options=["-d", "IN/passphrase"]),
    Making("create", "create", "-q", *PLAIN_KEY, "--size", "1M", "OUT/new", options=PLAIN_KEY, content=False),
    Making("create-luks2", "create", "-q", *LUKS_KEY, *PBKDF, "--size", "17M", "OUT/new", options=["-d", "IN/passphrase"],
           content=False),
]

# Once it fails it fails for good, as when memory or descriptors have run out.
PERSISTENT = {"malloc", "calloc", "open64", "socketpair", "fork", "pthread_create", "mmap64", "mlock", "pread64"}

# Libraries that end the process, or run into NULL, when their own memory runs out. What they leave behind is judged all
# the same; they are only called before a volume is mounted.
FRAGILE = {
    "libgcrypt": "xmalloc() in its start-up aborts",
    "libseccomp": "its tables assert, or are used half made",
    "libcryptsetup": "LUKS2 metadata are made with json-c objects that may be NULL",
}

# What the kernel never answers: (depth, origin, call, code).
IMPOSSIBLE = {(1, "cryptfuse", "read", errno.EIO), (1, "cryptfuse", "read", failcall.SHORT)}  # of /dev/fuse

# What is not tested. (origin, call): reason
EXCLUDED = {
    ("libjson-c", "realloc"): "json-c drops a piece of the text in silence",
}
