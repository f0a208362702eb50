# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What is done while a call fails, and what must be so afterwards."""
import collections
import ctypes
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
SBIN = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
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
        self.session = self.fd = self.model = self.pid = None  # of what is open
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
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E", f"root_owner={os.getuid()}:{os.getgid()}",
                        path], check=True, stdin=subprocess.DEVNULL, env=SBIN)
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

    def check_files(self, news):
        """The file system in work/image is clean, and has the file news."""
        wrong = self.wait_gone()
        plain = wrong or self.decrypted(self.path("work/image"), PLAIN + ["-d", self.path("in/key")])
        if isinstance(plain, str):
            return plain
        path = self.path("work/plain")
        check = subprocess.run(["e2fsck", "-fn", path], capture_output=True, check=False, env=SBIN)
        if check.returncode:
            return f"e2fsck: {check.stdout.decode()}"
        found = subprocess.run(["debugfs", "-R", "cat /news", path], capture_output=True, check=False, env=SBIN).stdout
        return None if found == news else "the file is not in the image"

    def crash(self):
        return self.control.crash() or self.daemon_control.crash()

    def died_of_itself(self):
        """Did a library end the process, or fall over its own failure? Then only what is left behind counts."""
        for control in (self.control, self.daemon_control):
            origins = control.origins_of_crash()
            inner = [o for o in origins if o not in ("libc.so", "other", "libjson-c")]
            if origins and inner[:1] and inner[0] not in FRAGILE and origins.count("libjson-c") < 3:
                return False
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
        names = [n for d in ("out", "mnt", "run") for n in os.listdir(self.path(d)) if n != "cryptfuse"]
        names += [n for _, folders, files in os.walk(self.path("run")) for n in folders + files if n.startswith("mount-")]
        return f"left over: {names}" if names else None

    def changed_input(self):
        for name, data in self.inputs.items():
            if read_file(self.path("in", name)) != data:
                return f"in/{name} has changed"
        return None

    def let_go(self):
        self.session = None
        try:
            os.close(self.fd)
        except OSError:
            pass  # of the last sync: close says it too

    def clear(self):
        """After a failure: as at the beginning."""
        if self.session:
            self.let_go()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        while self.mounts():
            mount = self.mounts()[-1]
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
        result = self.act(bench)
        control.disarm()
        if not fault:
            self.uses = control.uses()
        result = result._replace(fired=control.state.fired)
        self.judge(bench, fault, result)
        return result

    def act(self, bench):
        return bench.command(*self.argv(bench), stdin=self.stdin)

    def finish(self, bench):
        """After the last one; what is wrong, or None."""

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
            return None if origin in FRAGILE or bench.died_of_itself() else bench.crash()
        if result.rc not in range(6):
            return f"exit {result.rc}"
        if result.rc and not fault:
            return "fails without a fault"
        foreign = [line for line in lines if not line.startswith("cryptfuse: ")]
        if foreign:
            return f"says without its name: {foreign[0]}"
        if result.rc and not 1 <= len(lines) <= (3 if fault.all_after else 1):
            return f"{len(lines)} messages"
        if "is no JSON" in result.err:  # json-c's parser does not tell this from no memory
            return None
        if (fault and result.rc not in (0, 3) and fault.code == errno.ENOMEM and fault.depth < 2 and fault.call != "send" and
                origin in ("cryptfuse", "libc.so")):
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
        if self.may_know_less and bench.library.origins[fault.origin] not in ("cryptfuse", "libjson-c"):
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
    options = ()

    def __init__(self, name, *words, by_daemon=False):
        self.name, self.words, self.by_daemon = name, words, by_daemon

    def prepare(self, bench):
        shutil.copyfile(bench.path("in/plain"), bench.path("work/image"))
        done = bench.command("open", "-q", *plain_options(bench), *self.options, bench.path("work/image"),
                             bench.path("mnt"), control=bench.daemon_control)
        wrong = done.rc and done.err or bench.use_volume()
        if wrong:
            raise SystemExit(f"{self.name}: cannot be prepared: {wrong}")
        bench.daemon_control.reset()

    def argv(self, bench):
        return [*self.words, bench.path("mnt")]

    def good(self, bench, fault, result):
        if "cannot be seen" in result.err and not (fault and fault.call == "syscall"):  # a kernel without pidfd_open
            return "close has not waited for the daemon"
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


class Ended(Opened):
    """The daemon is told to end."""

    def __init__(self, name):
        super().__init__(name, by_daemon=True)

    options = ("--stop-timeout", "1")

    def prepare(self, bench):
        super().prepare(bench)
        bench.pid = json.loads(os.getxattr(bench.path("mnt"), "user.cryptfuse.status"))["pid"]
        bench.daemon_control.reset()

    def act(self, bench):
        os.kill(bench.pid, signal.SIGTERM)
        wrong = bench.wait_gone()
        return Result(1 if wrong else 0, 0, b"", f"cryptfuse: {wrong}" if wrong else "")


class Mounted(Scenario):
    """mount or umount of the file system in a volume; the other one is without a fault."""

    def __init__(self, name, undo):
        self.name, self.undoes = name, undo

    def argv(self, bench):
        return ["umount", bench.path("mnt")] if self.undoes else self.mount(bench)

    def mount(self, bench):
        return ["mount", "-q", *plain_options(bench), bench.path("work/image"), bench.path("mnt")]

    def prepare(self, bench):
        shutil.copyfile(bench.path("in/ext4"), bench.path("work/image"))
        if not self.undoes:
            return
        done = bench.command(*self.mount(bench), control=bench.daemon_control)
        if done.rc:
            raise SystemExit(f"umount cannot be prepared: {done.err}")
        write_file(bench.path("mnt/news"), NEWS)

    def good(self, bench, fault, result):
        if self.undoes:
            return bench.check_files(NEWS)
        lost = fault and fault.call == "fdatasync"  # then all writes fail, and umount says so
        if not lost:
            write_file(bench.path("mnt/news"), NEWS)
        done = bench.command("umount", bench.path("mnt"))
        if done.rc and not (lost and ("did not reach" in done.err or "ended badly" in done.err)):
            return f"umount: exit {done.rc}: {done.err}"
        return None if lost else bench.check_files(NEWS)

    def failed(self, bench):
        if bench.mounts() and not self.undoes:
            return f"left mounted {bench.mounts()}"
        done = bench.command("umount", bench.path("mnt")) if bench.mounts() else None
        return f"umount: exit {done.rc}: {done.err}" if done and done.rc else None


class Used(Scenario):
    """A program reads and writes the volume that is open, and a call of the daemon fails meanwhile. The plaintext as it
    should be is the model; of a write that failed each data unit may be old or new, and nothing else may have changed."""
    by_daemon = True
    depths = (1,)
    OPEN = ["--cache", "direct", "--allow-discards"]

    def __init__(self, name, *options, du=512):
        self.name, self.options, self.du = name, [*options, "--sector-size", str(du)], du

    def start(self, bench):
        shutil.copyfile(bench.path("in/plain"), bench.path("work/image"))
        done = bench.command("open", "-q", *plain_options(bench), *self.OPEN, *self.options, bench.path("work/image"),
                             bench.path("mnt"), control=bench.daemon_control)
        if done.rc:
            raise SystemExit(f"{self.name} cannot be prepared: {done.err}")
        bench.fd = os.open(bench.path("mnt/volume"), os.O_RDWR)
        bench.model = bytearray(os.pread(bench.fd, BYTES, 0))
        bench.session = self

    def finish(self, bench):
        """Close it; what is wrong, or None."""
        if bench.session is not self:
            return None
        bench.let_go()
        done = bench.command("close", bench.path("mnt"))
        return bench.wait_gone() or (done.err if done.rc else None)

    # What is asked for: each takes the bench and returns the range that it was to change, and with what.
    @staticmethod
    def write(off, length):
        def call(bench):
            data = secrets.token_bytes(length)
            return off, data, lambda: os.pwrite(bench.fd, data, off)
        return call

    @staticmethod
    def fallocate(mode, off, length):
        def call(bench):
            new = bytes(length) if mode else bytes(bench.model[off:off + length])
            return off, new, lambda: fallocate(bench.fd, mode, off, length)
        return call

    @staticmethod
    def read(off, length):
        def call(bench):
            def read_right():
                if os.pread(bench.fd, length, off) != bench.model[off:off + length]:
                    raise Wrong(f"{length} bytes at {off} are read as something else", None)
            return 0, b"", read_right
        return call

    @staticmethod
    def other(function):
        return lambda bench: (0, b"", lambda: function(bench))

    def judge_range(self, bench, off, new):
        """After a failure, without a fault: what the volume holds now is what the model will be."""
        now = os.pread(bench.fd, BYTES, 0)
        end = off + len(new)
        if now[:off] != bench.model[:off] or now[end:] != bench.model[end:]:
            return "bytes outside of what was written have changed"
        for at in range(off, end):
            unit = slice(max(off, at - at % self.du), min(end, at - at % self.du + self.du))
            if at != unit.start:
                continue
            if now[unit] not in (bench.model[unit], new[unit.start - off:unit.stop - off]):
                return f"{unit.stop - unit.start} bytes at {unit.start} are neither old nor new"
        bench.model[:] = now
        return None

    def one(self, bench, fault, call):
        """0 or the errno of it; what is wrong, or None."""
        off, new, function = call(bench)
        try:
            done = function()
        except OSError as e:
            if not fault or e.errno not in (fault.code, errno.EIO, errno.EINTR if fault.call == "writev" else 0):
                return e.errno, f"fails with {errno.errorcode[e.errno]}"
            return e.errno, None
        if done is not None and done < len(new):
            return errno.EIO, None if fault else f"a short write: {done}"
        bench.model[off:off + len(new)] = new
        return 0, None

    def run(self, bench, fault):
        if bench.session is not self:
            self.start(bench)
        control = bench.daemon_control
        control.reset()
        if fault:
            control.arm(fault)
        failed, wrong = [], None
        for call in OPERATIONS:
            off, new, _ = replay = call(bench)
            code, wrong = self.one(bench, fault, lambda bench, replay=replay: replay)
            if wrong:
                break
            if code:
                failed.append(call)
                control.disarm()
                wrong = self.judge_range(bench, off, new)
                break
        control.disarm()
        result = Result(errno.EIO if failed else 0, control.state.fired, b"", "")
        if not fault:
            self.uses = control.uses()
        for call in [] if wrong else OPERATIONS:
            code, wrong = self.one(bench, None, call)
            if wrong and fault and fault.call == "fdatasync" and code == errno.EIO:
                wrong = self.stays_failed(bench)
                break
            if wrong:
                wrong = f"afterwards, without a fault: {wrong}"
                break
        wrong = wrong or bench.crash() or self.compare(bench)
        if wrong:
            raise Wrong(wrong, result)
        return result

    def compare(self, bench):
        if bench.session is not self:
            return None
        now = os.pread(bench.fd, BYTES, 0)
        return None if now == bench.model else "the volume holds something else"

    def stays_failed(self, bench):
        """After a failed sync all others fail until it is opened anew, and close says so too."""
        try:
            os.fsync(bench.fd)
            return "a later fsync succeeds"
        except OSError:
            pass
        said = self.finish(bench)
        return None if said and "did not reach" in said else f"close after a failed sync says: {said}"


def fallocate(fd, mode, off, length):
    if LIBC.fallocate(fd, mode, ctypes.c_long(off), ctypes.c_long(length)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
OPERATIONS = [
    Used.read(0, 128 * KIB),
    Used.read(1000, 777),
    Used.write(8192, 4096),
    Used.write(1000, 777),
    Used.write(100000, 70000),
    Used.fallocate(ZERO_RANGE | KEEP_SIZE, 30000, 5000),
    Used.fallocate(PUNCH_HOLE | KEEP_SIZE, 200000, 40000),
    Used.fallocate(0, 0, 65536),
    Used.other(lambda bench: os.fsync(bench.fd)),
    Used.other(lambda bench: os.lseek(bench.fd, 0, os.SEEK_HOLE) and None),
    Used.other(lambda bench: json.loads(os.getxattr(bench.path("mnt"), "user.cryptfuse.status")) and None),
    Used.other(lambda bench: os.listdir(bench.path("mnt")) and None),
    Used.other(lambda bench: os.statvfs(bench.path("mnt")) and None),
]

PLAIN_KEY = [*PLAIN, "-d", "IN/key"]
LUKS_KEY = ["--type", "luks2", "-d", "IN/passphrase"]

ALL = [
    Printing("completion", "completion", "bash"),
    Printing("info-plain", "info", "IN/plain"),
    Printing("info-json", "info", "--json", "IN/plain"),
    Printing("info-luks2", "info", "--json", "IN/luks2", may_know_less=True),
    Reading("status-none", "status", "--json"),
    Open("open", "plain"),
    Open("open-luks2", "luks2", depths=(0,)),
    Opened("status", "status"),
    Opened("status-json", "status", "--json"),
    Opened("close", "close"),
    Opened("close-daemon", "close", by_daemon=True),
    Ended("end"),
    Used("use"),
    Used("use-4096", du=4096),
    Mounted("mount", undo=False),
    Mounted("umount", undo=True),
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
    "libjson-c": "its parser does not look whether a name could be copied: three calls deep, ours are one deep",
    "libcryptsetup": "LUKS2 metadata are made with json-c objects that may be NULL",
}

# What the kernel never answers: (depth, origin, call, code).
IMPOSSIBLE = {(depth, "cryptfuse", "read", code) for depth in (1, 2) for code in (errno.EIO, failcall.SHORT)}  # of /dev/fuse

# What is not tested. (origin, call): reason
EXCLUDED = {
    ("libjson-c", "realloc"): "json-c drops a piece of the text in silence",
}
