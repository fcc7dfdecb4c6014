# SPDX-License-Identifier: MIT
"""waiting: waits for events, with a deadline, and never for time alone."""
import os
import select
import socket
import time

DEADLINE_SECONDS = int(os.environ.get("CAIRN_DEADLINE_SECONDS", "60"))  # more on an emulated machine


def read_until(descriptor, wanted, seconds=DEADLINE_SECONDS):
    """Read until `wanted` has come; return all data. Fail at the deadline or at the end of the
    data."""
    seen = b""
    end = time.monotonic() + seconds
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0, end - time.monotonic()))
        assert ready, f"deadline passed while waiting for {wanted!r}; so far: {seen!r}"
        part = os.read(descriptor, 65536)
        assert part, f"end of file while waiting for {wanted!r}; so far: {seen!r}"
        seen += part
    return seen


def read_to_end(descriptor, seconds=DEADLINE_SECONDS):
    """Read until every writer has closed."""
    seen = b""
    end = time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0, end - time.monotonic()))
        assert ready, f"deadline passed while waiting for the end; so far: {seen!r}"
        part = os.read(descriptor, 65536)
        if not part:
            return seen
        seen += part


def wait_until(condition, what, seconds=DEADLINE_SECONDS):
    """Poll for a condition that no event announces (a file that grows)."""
    end = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"deadline passed while waiting for {what}"
        select.select([], [], [], 0.01)


def is_served(path):
    """Whether a server accepts connections at a Unix socket, whose file exists a little earlier."""
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(path)) == 0


def all_are(pid, state):
    """Whether all threads of a process are in that state, by the letters of proc(5)."""
    def state_of(thread):
        with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    return all(state_of(thread) == state for thread in os.listdir(f"/proc/{pid}/task"))
