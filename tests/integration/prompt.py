# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""prompt.py - types at cryptfuse's prompt, on a terminal of its own.

A session leader inside the pseudo-terminal plays the shell: it starts the program as the foreground job, sees it stop,
and continues it. The driver is the person: reads the screen, types, and looks at the terminal's echo."""
import json
import os
import pty
import select
import signal
import sys
import termios
import time

WAIT_S = 20


def echo(fd):
    return bool(termios.tcgetattr(fd)[3] & termios.ECHO)


def play_shell(argv, report, go):
    """In the terminal's session: run argv in the foreground; tell what becomes of it, one JSON line each."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(argv[0], argv)
    os.write(report, b'{"pid": %d}\n' % pid)
    while True:
        _, status = os.waitpid(pid, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpid())
        if not os.WIFSTOPPED(status):
            break
        os.write(report, b'{"stopped": true, "echo": %s}\n' % (b"true" if echo(0) else b"false"))
        os.read(go, 1)
        os.tcsetpgrp(0, pid)
        os.kill(-pid, signal.SIGCONT)
    rc = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    os.write(report, b'{"exit": %d, "echo": %s}\n' % (rc, b"true" if echo(0) else b"false"))
    os.read(go, 1)  # keep the terminal until the driver has read the screen
    os._exit(0)


class Terminal:
    """One run of the program."""

    def __init__(self, *argv):
        from_shell, report = os.pipe()
        go, self.go = os.pipe()
        self.shell, self.fd = pty.fork()
        if self.shell == 0:
            play_shell(argv, report, go)
        os.close(report)
        os.close(go)
        self.reports = os.fdopen(from_shell, "rb", buffering=0)
        self.screen = b""
        self.pid = self.report()["pid"]

    def report(self):
        line = b""
        end = time.monotonic() + WAIT_S
        while not line.endswith(b"\n"):
            self.look(0.05, also=self.reports)
            assert time.monotonic() < end, f"nothing happened; screen: {self.screen!r}"
            if select.select([self.reports], [], [], 0)[0]:
                char = self.reports.read(1)
                assert char, f"the shell died; screen: {self.screen!r}"
                line += char
        return json.loads(line)

    def look(self, seconds, also=None):
        """Read what is on the screen for so long, or until there is something."""
        ready = select.select([self.fd] + ([also] if also else []), [], [], seconds)[0]
        if self.fd in ready:
            try:
                self.screen += os.read(self.fd, 65536)
            except OSError:
                pass

    def expect(self, text, times=1):
        """Until the text was shown so many times, and the echo is off: only then the prompt listens."""
        end = time.monotonic() + WAIT_S
        while self.screen.count(text.encode()) < times or echo(self.fd):
            assert time.monotonic() < end, f"no {text!r} {times} times; screen: {self.screen!r}"
            self.look(0.02)

    def type(self, text):
        os.write(self.fd, text.encode())

    def resume(self):
        os.write(self.go, b".")

    def end(self, rc, *shown):
        got = self.report()
        os.write(self.go, b".")
        os.waitpid(self.shell, 0)
        self.look(0.2)
        os.close(self.fd)
        assert got.get("exit") == rc, f"exit {got}, not {rc}; screen: {self.screen!r}"
        assert got["echo"], "the terminal's echo was not put back"
        for text in shown:
            assert text.encode() in self.screen, f"no {text!r}; screen: {self.screen!r}"
        assert b"hidden" not in self.screen, f"a passphrase was shown: {self.screen!r}"


PROGRAM, IMAGE, MNT = sys.argv[2:5]
ASK = f"Passphrase for {IMAGE}: "
VERIFY = "Verify passphrase: "


def run(*options):
    return Terminal(PROGRAM, "open", "--type", "plain", *options, IMAGE, MNT)


def right():
    t = run()
    t.expect(ASK)
    t.type("hidden horse\n")
    t.end(0, "is open at")


def empty():
    t = run()
    t.expect(ASK)
    t.type("\n")
    t.end(0, "is open at")


def long():
    t = run()
    t.expect(ASK)
    t.type("hidden " + "x" * 593 + "\n")
    t.end(0, "is open at")


def dash_is_the_terminal():
    t = run("-d", "-")
    t.expect(ASK)
    t.type("hidden horse\n")
    t.end(0, "is open at")


def second_try():
    t = run("-y")
    t.expect(ASK)
    t.type("hidden horse\n")
    t.expect(VERIFY)
    t.type("hidden house\n")
    t.expect(ASK, 2)
    t.type("hidden horse\n")
    t.expect(VERIFY, 2)
    t.type("hidden horse\n")
    t.end(0, "do not match", "is open at")


def tries_run_out():
    t = run("-y", "--tries", "2")
    for n in (1, 2):
        t.expect(ASK, n)
        t.type("hidden a\n")
        t.expect(VERIFY, n)
        t.type("hidden b\n")
    t.end(2, "do not match")
    assert t.screen.count(ASK.encode()) == 2


def luks(*options):
    """IMAGE has a header, so that a wrong passphrase is told."""
    return Terminal(PROGRAM, "open", *options, IMAGE, MNT)


def asked(n, of):
    return f"Passphrase for {IMAGE} ({n} of {of}): "


def luks_third_try():
    t = luks()
    for n, text in enumerate(("wrong one", "", "horse"), 1):
        t.expect(asked(n, 3))
        t.type(f"hidden {text}\n" if text else "\n")
    t.end(0, "no key available with this passphrase", "is open at")


def luks_all_wrong():
    t = luks("--tries", "2")
    for n in (1, 2):
        t.expect(asked(n, 2))
        t.type("hidden house\n")
    t.end(2, "no key available with this passphrase")


def luks_one_try():
    t = luks("--tries", "1")
    t.expect(ASK)
    t.type("hidden house\n")
    t.end(2, "no key available with this passphrase")


def timeout():
    start = time.monotonic()
    t = run("--timeout", "1")
    t.expect(ASK)
    t.type("hidden, no newline")
    t.end(1, "within 1 s")
    assert 0.9 < time.monotonic() - start < 10, "timeout"


def interrupt():
    t = run()
    t.expect(ASK)
    t.type("hidden\x03")
    t.end(1, "interrupted")


def terminated():
    t = run()
    t.expect(ASK)
    os.kill(t.pid, signal.SIGTERM)
    t.end(1, "interrupted")


def end_of_input():
    t = run()
    t.expect(ASK)
    t.type("\x04")
    t.end(2, "no passphrase")


def stopped():
    t = run()
    t.expect(ASK)
    t.type("lost\x1a")
    got = t.report()
    assert got.get("stopped") and got["echo"], f"^Z: {got}; screen: {t.screen!r}"
    t.resume()
    t.expect(ASK, 2)
    t.type("hidden horse\n")
    t.end(0, "is open at")


def offset():
    t = run("--keyfile-offset", "1")
    t.end(1, "keyfile-offset")


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except AssertionError as e:
        sys.exit(f"FAIL: {sys.argv[1]}: {e}")
