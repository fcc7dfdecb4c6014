# SPDX-License-Identifier: MIT
"""Threads that allocate write to no cache line that another thread writes, too. One thread of a
program works, then the other, while the recorder is stopped; the test compares the program's memory
before and after each and intersects the cache lines that have changed."""
import os

import pytest

from cairn_run import PROGRAMS
from conversation import Conversation
from waiting import all_are, read_until, wait_until

LINE = 64
PAGE = 4096
ROUNDS = 4  # of 30 pairs: the events stay below half of the smallest ring, so no thread wakes the recorder
WARM_UP = 2000


def writable_areas(pid):
    """[(start, end, name)] of what the process may write, but for stacks and its own data."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        lines = [line.split(maxsplit=5) for line in maps]
    areas = [(*(int(word, 16) for word in words[0].split("-")), words[5].strip() if len(words) > 5 else "")
             for words in lines if words[1][1] == "w"]
    return [area for area in areas if "[stack]" not in area[2] and "taking_turns" not in area[2]]


def present_pages(pid):
    """{address: bytes} of the writable pages that the process has touched."""
    pages = {}
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, _ in writable_areas(pid):
            pagemap.seek(start // PAGE * 8)
            entries = pagemap.read((end - start) // PAGE * 8)
            for number in range(0, len(entries), 8):
                if entries[number + 7] & 0x80:
                    address = start + number // 8 * PAGE
                    memory.seek(address)
                    pages[address] = memory.read(PAGE)
    return pages


def quiet_pages(pid):
    """The same once all threads wait for what they read: they write to their stacks until then."""
    wait_until(lambda: all_are(pid, "S"), "the threads to sleep")
    return present_pages(pid)


def changed_lines(before, after):
    """The addresses of the cache lines that differ."""
    zero = bytes(PAGE)
    found = set()
    for address, new in after.items():
        old = before.get(address, zero)
        if new != old:
            found |= {address + at for at in range(0, PAGE, LINE) if new[at:at + LINE] != old[at:at + LINE]}
    return found


def module_starts(pid):
    """[(address, file)] of all mapped files."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        words = [line.split(maxsplit=5) for line in maps]
    starts = {}
    for line in words:
        starts.setdefault(line[5].strip() if len(line) > 5 else "", int(line[0].split("-")[0], 16))
    return sorted((start, name) for name, start in starts.items() if name)


def place(modules, address):
    """FILE+OFFSET, as `nm` counts; data behind a file's own is its zeroed data."""
    start, name = [module for module in modules if module[0] <= address][-1]
    return f"{name}+{address - start:#x}"


class Turns(Conversation):
    """The program reads from two pipes instead of its standard input."""

    def __init__(self, path):
        self.pipes = [path.with_suffix(f".{name}") for name in "12"]
        for pipe in self.pipes:
            os.mkfifo(pipe)
        super().__init__(path, program=[PROGRAMS / "taking_turns", *self.pipes])
        self.ends = [os.open(pipe, os.O_WRONLY) for pipe in self.pipes]  # opens when the thread does

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for end in self.ends:
            os.close(end)
        super().__exit__()

    def work(self, thread, command):
        os.write(self.ends[thread], f"{command}\n".encode())
        read_until(self.process.stdout.fileno(), b"done\n")


def lines_of_both(turns, command):
    """The cache lines that both threads have written by a command each."""
    for thread in (0, 1, 0, 1):
        turns.work(thread, WARM_UP)
    pid = turns.status()["program_pid"]
    with turns.stopped_recorder():
        for thread in range(2):
            turns.work(thread, 1)  # wakes the recorder if it rests, once
        states = [quiet_pages(pid)]
        for thread in range(2):
            turns.work(thread, command)
            states.append(quiet_pages(pid))
    first, second = (changed_lines(*states[i:i + 2]) for i in range(2))
    assert first and second
    modules = module_starts(pid)
    return [place(modules, address) for address in sorted(first & second)]


def test_threads_write_to_no_common_line(scratch):
    with Turns(scratch / "t.cairn") as turns:
        assert not lines_of_both(turns, ROUNDS)


def test_a_common_line_is_found(scratch):
    """What threads keep is in the sum of all, which each of them changes."""
    with Turns(scratch / "t.cairn") as turns:
        found = lines_of_both(turns, f"{ROUNDS}+")
    assert any("cairn-session" in line for line in found), found
