# SPDX-License-Identifier: MIT
"""screen: a program on a terminal of the test's own: what is on the screen, and keys.

pyte is the terminal: it obeys the escape sequences of the program and keeps the screen as text.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pyte
import terminal

from waiting import DEADLINE_SECONDS

# What the terminal sends, as terminfo(5) has it for TERM=linux, which pyte is.
TERM = "linux"
KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[1~", "end": "\x1b[4~",
        "page up": "\x1b[5~", "page down": "\x1b[6~", "escape": "\x1b", "enter": "\r", "backspace": "\x7f",
        "ctrl-c": "\x03", "f1": "\x1b[[A", "f3": "\x1b[[C", "f4": "\x1b[[D", "f5": "\x1b[[E", "f6": "\x1b[17~", "f7": "\x1b[18~",
        "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~"}


class Terminal:
    """`command` on a terminal of `columns` and `lines`, for use in a with statement."""

    def __init__(self, command, environment, columns=80, lines=24, folder=None, name=TERM):
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.received = 0
        self.status = None
        self.process, self.end = pty.fork()
        if self.process == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, which may have started us, ignores it
            os.chdir(folder or ".")
            os.execvpe(command[0], [str(word) for word in command], {**environment, "TERM": name})
        self.set_size(columns, lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.end)
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)

    def set_size(self, columns, lines):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, *keys):
        """Type each key: a name from KEYS, or a text."""
        for key in keys:
            os.write(self.end, KEYS.get(key, key).encode())

    def read(self, seconds):
        """Show what the program has written. Return False at its end."""
        ready, _, _ = select.select([self.end], [], [], max(0, seconds))
        if not ready:
            return True
        data = terminal.read(self.end)
        self.received += len(data)
        self.stream.feed(data)
        return data != b""

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def wait(self, condition, what):
        """Read until `condition`, a text or a function of the lines, holds; return the lines."""
        holds = (lambda lines: condition in "\n".join(lines)) if isinstance(condition, str) else condition
        end = time.monotonic() + DEADLINE_SECONDS
        while not holds(self.lines()):
            assert time.monotonic() < end, f"deadline passed while waiting for {what} in:\n{self.text()}"
            assert self.read(end - time.monotonic()), f"the program ended before {what}:\n{self.text()}"
        return self.lines()

    def wait_for(self, text):
        return self.wait(text, repr(text))

    def wait_for_all(self, *patterns):
        """Read until each regular expression is found; return the lines. A screen arrives in pieces."""
        return self.wait(lambda lines: all(re.search(pattern, "\n".join(lines), re.M) for pattern in patterns),
                         repr(patterns))

    def end_status(self):
        """Read to the end of the program; return its exit status."""
        end = time.monotonic() + DEADLINE_SECONDS
        while self.read(end - time.monotonic()):
            assert time.monotonic() < end, f"deadline passed while waiting for the end:\n{self.text()}"
        _, status = os.waitpid(self.process, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status
