# SPDX-License-Identifier: MIT
"""A program that is recorded for a week, with all that keeps, sends and serves: `--rotate --keep --max-disk --push --listen`,
and a store that takes each kept state and is thinned out each day. The files, the memory, the spool and the store stay in
their bounds, and every figure at the end is the program's.

The clock of cairn's processes is moved (tests/programs/lifecycle/moved_clock.c), so that a week takes minutes. Each step
waits until the recorder has written what happened in it. By day six hours, at night a week, in which the collector refuses
all for a day."""
import contextlib
import dataclasses
import math
import mmap
import os
import re
import sqlite3
import struct
import subprocess

import pytest

from cairn_memory import proportional_bytes
from cairn_run import CAIRN, PROGRAMS, environment
from collector import OK, Collector, answer
from conversation import Conversation
from waiting import wait_until

MIB = 1 << 20
STEP_MINUTES = 10
BLOCK_BYTES = 1000
STACKS = 500  # at the start
SHORT = 2000  # blocks in each step that live for a moment
KEEP_HOURS = 24
MAX_DISK = 4 * MIB
MAX_MEMORY = 64 * MIB
SPOOL_BYTES = 100_000  # less than what waits after a day
STORE_POLICY = "2d,7d/1d"
STORE_RECORDINGS = 48 + 24 + 8  # those of two days, those since the last pruning, and one of each day
KEPT = re.compile(r"week\.\d{8}T\d{6}Z(?:_\d\d)?\.cairn")


class Clock:
    """The clock of cairn's processes."""

    def __init__(self, path):
        path.write_bytes(bytes(8))
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 8)
        self.ahead_seconds = 0
        self.variables = {"LD_PRELOAD": str(PROGRAMS / "libmoved_clock.so"), "MOVED_CLOCK": str(path)}

    def move(self, seconds):
        self.ahead_seconds += seconds
        self.page[:] = struct.pack("=q", self.ahead_seconds * 10**9)


@dataclasses.dataclass
class Truth:
    """What the program has done."""
    allocations: int = 0
    live: int = 0


class Look:
    """What all parts take at one moment."""

    def __init__(self, folder, pid):
        files = [path for path in folder.iterdir() if KEPT.fullmatch(path.name) or path.name == "week.cairn"]
        self.states = len(files) - 1
        self.disk = sizes_of(files, blocks=True)
        self.spool = sizes_of((folder / "spool").iterdir())
        self.store = sizes_of(folder.glob("store.db*"))
        with contextlib.closing(sqlite3.connect(folder / "store.db")) as database:
            self.recordings = database.execute("SELECT count(*) FROM recordings").fetchone()[0]
        self.memory = proportional_bytes(pid, "obedient")
        self.descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        metrics = subprocess.run(["curl", "-sS", "--unix-socket", folder / "s", "http://localhost/metrics"], check=True,
                                 capture_output=True, timeout=60).stdout
        self.series = sum(not line.startswith(b"#") for line in metrics.splitlines())

    def __str__(self):
        return (f"{self.states} states, {self.disk >> 10} KiB of files, {self.spool >> 10} KiB of spool, {self.recordings} recordings "
                f"with {self.store >> 10} KiB in the store, {self.memory >> 10} KiB of memory, {self.descriptors} descriptors, {self.series} series")


def sizes_of(paths, blocks=False):
    """The bytes of files, each once; of those that are removed meanwhile nothing."""
    found = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = path.stat()
            found[status.st_ino] = status.st_blocks * 512 if blocks else status.st_size
    return sum(found.values())


def state_of(path):
    """What differs from each written state of a file to the next."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


class Week:
    """A recording that goes on in steps."""

    def __init__(self, folder, clock, collector):
        self.folder, self.clock, self.path = folder, clock, folder / "week.cairn"
        self.truth, self.minutes, self.added = Truth(), 0, set()
        self.run = Conversation(self.path, [
            "--rotate", "1h", "--keep", f"{KEEP_HOURS}h", "--max-disk", str(MAX_DISK), "--max-memory", str(MAX_MEMORY),
            "--checkpoint-interval", "1m", "--listen", folder / "s", "--push", collector.url, "--push-interval", "5m",
            "--push-timeout", "1h", "--push-spool", folder / "spool", "--push-spool-size", str(SPOOL_BYTES),
        ], env=clock.variables)

    def cairn(self, *words):
        run = subprocess.run([CAIRN, *map(str, words)], env=environment(self.clock.variables), capture_output=True,
                             text=True, check=False, timeout=120)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def kept(self):
        return sorted(path for path in self.folder.iterdir() if KEPT.fullmatch(path.name))

    def work(self):
        """What the program does in a step: a heap that goes with the time of the day, a slow leak, short lives, and new call
        stacks each hour."""
        hours = self.minutes / 60
        wanted = 300 + int(200 * math.sin(math.tau * hours / 24)) + int(hours)
        more = wanted - self.truth.live
        self.run.do(f"s {STACKS + 8 * int(hours)}", f"a {more} {BLOCK_BYTES}" if more > 0 else f"f {-more}", f"t {SHORT} 64")
        self.truth.allocations += max(more, 0) + SHORT
        self.truth.live = wanted

    def step(self):
        before = state_of(self.path)
        kept = len(self.added | {path.name for path in self.kept()})
        self.work()
        self.minutes += STEP_MINUTES
        self.clock.move(STEP_MINUTES * 60)
        wait_until(lambda: state_of(self.path) not in (None, before), "a checkpoint")
        if self.minutes % 60 == 0:
            wait_until(lambda: len(self.added | {path.name for path in self.kept()}) > kept, "a kept state")
            self.store()

    def store(self):
        """Add the new states; once a day, thin out the store."""
        new = [path for path in self.kept() if path.name not in self.added]
        self.cairn("store", "--store", self.folder / "store.db", "add", "--service", "week", *new)
        self.added |= {path.name for path in new}
        if self.minutes % 1440 == 0:
            self.cairn("store", "--store", self.folder / "store.db", "prune", "--policy", STORE_POLICY)


@pytest.mark.parametrize("hours", [6, pytest.param(7 * 24, marks=pytest.mark.nightly)], ids=["hours", "week"])
def test_all_parts_stay_in_their_bounds(hours, scratch):
    clock, looks = Clock(scratch / "clock"), []
    with Collector() as collector:
        week = Week(scratch, clock, collector)
        with week.run as run:
            while week.minutes < hours * 60:
                day = week.minutes // 1440
                collector.then = answer(503) if day == 3 else OK
                week.step()
                if week.minutes % 180 == 0:
                    looks.append(Look(scratch, run.process.pid))
                    print(f"{week.minutes // 1440} d {week.minutes % 1440 // 60:2} h: {looks[-1]}")
            recording = run.end()
    assert max(look.disk for look in looks) <= MAX_DISK
    assert max(look.states for look in looks) <= KEEP_HOURS + 2
    assert max(look.memory for look in looks) <= MAX_MEMORY
    assert max(look.spool for look in looks) <= SPOOL_BYTES
    assert max(look.recordings for look in looks) <= STORE_RECORDINGS
    assert max(look.series for look in looks) <= 400
    assert max(look.descriptors for look in looks) <= looks[0].descriptors + 8
    recording.assert_whole()
    assert recording.totals["allocations"] == week.truth.allocations
    assert recording.totals["live_blocks"] == week.truth.live
    assert recording.totals["live_bytes"] == week.truth.live * BLOCK_BYTES
    assert abs(recording.totals["runtime_ms"] - hours * 3_600_000) < 3_600_000
    assert recording.totals["stacks"] >= STACKS
    lost = recording.notes.get("lost_profiles", 0)
    assert len(collector.accepted) > 1 and (lost > 0) == (hours > 96)  # the spool holds no day
    print(f"{len(collector.accepted)} profiles taken, {lost} lost by the bound of the spool")
