#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""complete.py SHELL SCRIPT TEXT - type TEXT and TAB into an interactive bash or zsh that has the completion SCRIPT, and print the
command line that it becomes."""
import os
import pty
import select
import sys
import time

SETUP = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "bind 'set bell-style none'; source {script}"),
    "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit; compinit -u -D; unsetopt beep prompt_sp; source {script}"),
}


def read_until(fd, mark, seconds=30):
    """All that comes up to and with the mark."""
    got, end = b"", time.monotonic() + seconds
    while mark not in got:
        ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
        if not ready:
            sys.exit(f"no {mark!r} in {got!r}")
        got += os.read(fd, 4096)
    return got


def main():
    shell, script, text = sys.argv[1:]
    argv, setup = SETUP[shell]
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", COLUMNS="500", LINES="24")
        os.execvp(argv[0], argv)
    # A mark is typed in two pieces, so that the echo of what is typed is not taken for its output.
    os.write(fd, (setup.format(script=script) + "; PS1=; stty cols 500; echo REA''DY\n").encode())
    read_until(fd, b"READY")
    os.write(fd, text.encode() + b"\t")
    os.write(fd, b"\x01printf '<%s>' \x05; echo DO''NE\n")
    out = read_until(fd, b"DONE").decode(errors="replace")
    line = out[out.rindex("<cryptfuse>") : out.rindex("DONE")]
    print(line.strip().replace("><", " ").strip("<>"))
    os.write(fd, b"exit\n")
    os.close(fd)
    os.waitpid(pid, 0)


main()
