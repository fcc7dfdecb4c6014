# SPDX-License-Identifier: MIT
"""A longer run costs what a shorter one costs: the same work once, 4 and 16 times.

A recording has 512 to 1024 time slices, whose width doubles with the run's length, so its size goes up
and down by as much, and below a second it is as small as the run is short. Hence the shortest run
is one that has outgrown the finest slices and nearly fills those it has.
"""
import subprocess
import sys

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment

SLICES_MAX = 1024
FIRST_ROUNDS = 500_000


# A process's peak begins with that of its parent, from which it was forked; so a small one in between.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Run:
    """`steady` for so many rounds: what the recorder took, and the file."""

    def __init__(self, folder, rounds):
        self.rounds = rounds
        self.path = folder / f"{rounds}.cairn"
        words = [CAIRN, "record", "-q", "-o", self.path, "--", PROGRAMS / "steady", rounds]
        measured = subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, words)],
                                  env=environment(), capture_output=True, check=True, timeout=600)
        # Of cairn or of the program, whichever was larger: the program has 10 MiB.
        self.recorder_kib = int(measured.stdout)
        self.file_bytes = self.path.stat().st_size
        self.recording = Recording(self.path, None)

    @property
    def runtime_ms(self):
        return self.recording.totals["runtime_ms"]

    @property
    def slices(self):
        width_ms = 1
        while self.runtime_ms > width_ms * SLICES_MAX:
            width_ms *= 2
        return self.runtime_ms / width_ms


@pytest.fixture(scope="module", name="runs")
def fixture_runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounded")
    first = Run(folder, FIRST_ROUNDS)
    for _ in range(20):
        if first.runtime_ms < SLICES_MAX:
            first = Run(folder, 2 * first.rounds)
        elif first.slices < 0.8 * SLICES_MAX:
            first = Run(folder, int(first.rounds * 0.95 * SLICES_MAX / first.slices))
        else:
            break
    assert first.runtime_ms > SLICES_MAX and first.slices >= 0.8 * SLICES_MAX
    return [first, Run(folder, 4 * first.rounds), Run(folder, 16 * first.rounds)]


def test_every_run_is_whole_and_counts_right(runs):
    for run in runs:
        run.recording.assert_whole()
        stacks = 16
        assert run.recording.totals["allocations"] == stacks + run.rounds + -(-run.rounds // 64)
        assert run.recording.totals["leaked_allocations"] == 4096
        assert run.recording.totals["peak_error_bytes"] == 0


def test_the_file_does_not_grow_with_the_run(runs):
    first, *longer = runs
    for run in longer:
        assert run.file_bytes < 1.3 * first.file_bytes, [run.file_bytes for run in runs]


def test_the_recorder_does_not_grow_with_the_run(runs):
    first, *longer = runs
    for run in longer:
        assert run.recorder_kib < 1.1 * first.recorder_kib, [run.recorder_kib for run in runs]


def test_opening_costs_the_same(runs):
    """Instructions, which no other load changes, of opening and reporting."""
    counts = []
    for run in runs:
        counted = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", CAIRN, "report",
             run.path], capture_output=True, env=environment(), check=True, timeout=300)
        counts.append(int(counted.stderr.split(b"Collected : ")[1].split()[0]))
    assert max(counts) < 1.5 * min(counts), counts
