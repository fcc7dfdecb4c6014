# SPDX-License-Identifier: MIT
"""terminal: runs a command on a terminal and returns its output.

A pipe is not enough where colours, widths or progress depend on a terminal. The end of the command
appears as the error that Linux returns once the other end of a pseudo-terminal is closed. Linux looks for
data before it looks whether that end is closed. So a reader that gets no processor between the two sees
the error before the last data: only a second error in a row is the end.
"""
import fcntl
import os
import pty
import struct
import termios


def read(terminal):
    """Wait for more of the output, and return it; nothing at its end."""
    for _ in range(2):
        try:
            return os.read(terminal, 65536)
        except OSError:
            pass
    return b""


def run(command, environment, columns=80, rows=24, see=None):
    """Run `command` on a terminal of that size; return its exit status and its whole output. `see`
    is called with the output so far, each time that there is more."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvpe(command[0], [str(word) for word in command], environment)
    written = b""
    while part := read(terminal):
        written += part
        if see is not None:
            see(written)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written
