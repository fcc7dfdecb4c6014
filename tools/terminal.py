# SPDX-License-Identifier: MIT
"""terminal: what a command writes to a terminal.

A pipe will not do where colours, widths or progress depend on a terminal. The end of the command is
seen as the error that Linux answers once the other end of a pseudo-terminal is closed.
"""
import fcntl
import os
import pty
import struct
import termios


def run(command, environment, columns=80, rows=24, see=None):
    """Runs `command` on a terminal of that size; returns its exit status and all that it wrote. `see` is
    called with what it wrote so far, each time that there is more."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvpe(command[0], [str(word) for word in command], environment)
    written = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        written += part
        if see is not None:
            see(written)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written
