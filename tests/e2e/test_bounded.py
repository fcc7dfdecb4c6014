# SPDX-License-Identifier: MIT
"""A longer run costs no more than a shorter one: the same work once and 8 times.
CAIRN_BOUNDED_TIMES sets other factors (`make soak`: 4, 16 and 64).

A recording has 512 to 1024 time slices. Their width doubles with the run's length, so the data per
slice varies by as much. The number of cohorts varies at its own pace, and a shared processor leaves
slices empty. Samples of resident memory come every 100 ms up to their maximal number, memory
snapshots every second. The ages of blocks depend on the machine too. Each of these tables is
compared with its cap, which bounds it, and the rest of the file with the shortest run's. That run
has outgrown the finest slices and nearly fills its slices.
"""
import os
import re
import subprocess
import sys

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment

SLICES_MAX = 1024
COHORTS_MAX = 64 << 10  # docs/design/recorder.md
SAMPLES_MAX = 4096  # proc_sampler.h
LOOKS_MAX = 2048 + 10  # memory_snapshots.h: the series, and the snapshots that are kept whole
BUCKETS_MAX = 252  # per row: tables.h
ADAPTIVE = ("slices", "cells", "cohorts", "lifetime_buckets", "rss_samples", "memory_snapshots")
# The tables with much memory: their number of entries, and the bytes of each (cell_table.h,
# cohort_table.h).
IN_MEMORY = {"cells": (48 << 10, 48), "cohorts": (COHORTS_MAX, 32)}
FIRST_ROUNDS = 500_000
TIMES = [int(times) for times in os.environ.get("CAIRN_BOUNDED_TIMES", "8").split(",")]


# A process's peak begins with the peak of its parent at the fork; so a small process is in between.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Run:
    """`steady` for this number of rounds: the recorder's memory, and the file."""

    def __init__(self, folder, rounds):
        self.rounds = rounds
        self.path = folder / f"{rounds}.cairn"
        words = [CAIRN, "record", "-q", "-o", self.path, "--", PROGRAMS / "steady", rounds]
        measured = subprocess.run([sys.executable, "-S", "-c", MEASURE, *map(str, words)],
                                  env=environment(), capture_output=True, check=True, timeout=600)
        # Of cairn or of the program, whichever is larger: the program has 10 MiB.
        self.recorder_kib = int(measured.stdout)
        self.entries, self.steady_bytes = self.read_chunks()
        self.recording = Recording(self.path, None)

    def read_chunks(self):
        """The number of entries of each table, and the bytes of all but the adaptive tables."""
        chunks = subprocess.run([CAIRN, "dump", self.path], env=environment(), capture_output=True,
                                check=True, timeout=120).stdout.decode()
        entries, adaptive_bytes = {}, 0
        for stored, table, last in re.findall(r"(\d+) +\d+  (\w+) 0\.\.(\d+)$", chunks, re.M):
            entries[table] = int(last) + 1
            adaptive_bytes += int(stored) if table in ADAPTIVE else 0
        return entries, self.path.stat().st_size - adaptive_bytes

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
    return [first, *(Run(folder, times * first.rounds) for times in TIMES)]


def test_every_run_is_whole_and_counts_right(runs):
    for run in runs:
        run.recording.assert_whole()
        stacks = 16
        assert run.recording.totals["allocations"] == stacks + run.rounds + -(-run.rounds // 64)
        assert run.recording.totals["live_blocks"] == 4096
        assert run.recording.totals["peak_error_bytes"] == 0


def test_the_file_does_not_grow_with_the_run(runs):
    first, *longer = runs
    for run in longer:
        assert run.steady_bytes < 1.3 * first.steady_bytes, [run.steady_bytes for run in runs]


def test_what_is_kept_over_time_stays_below_its_cap(runs):
    for run in runs:
        assert SLICES_MAX / 2 <= run.entries["slices"] <= SLICES_MAX
        assert 0 < run.entries["cells"] <= run.entries["rows"] * run.entries["slices"]
        assert 0 < run.entries["cohorts"] <= COHORTS_MAX + run.entries["rows"] / 8
        assert 0 < run.entries["rss_samples"] <= SAMPLES_MAX
        assert 0 < run.entries["memory_snapshots"] <= LOOKS_MAX
        assert 0 < run.entries["lifetime_buckets"] <= BUCKETS_MAX * run.entries["rows"]
    assert len({run.entries["rows"] for run in runs}) == 1


def test_the_recorder_does_not_grow_with_the_run(runs):
    """Except for the growth of varying tables from the first run up to their caps."""
    first, *longer = runs
    left_kib = sum((cap - first.entries[table]) * bytes_each / 1024
                   for table, (cap, bytes_each) in IN_MEMORY.items())
    for run in longer:
        for table, (cap, _) in IN_MEMORY.items():
            assert run.entries[table] <= cap
        assert run.recorder_kib < 1.1 * first.recorder_kib + left_kib, \
            [(run.recorder_kib, run.entries) for run in runs]


def report_instructions(path):
    """Processor time depends on the load of the machine, their number does not."""
    counted = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", CAIRN, "report", path],
        capture_output=True, env=environment(), check=True, timeout=300)
    return int(counted.stderr.split(b"Collected : ")[1].split()[0])


@pytest.mark.parametrize("command", [
    ["/usr/bin/perl", "-MPOSIX", "-e", "1"], ["/usr/bin/python3", "-c", "import asyncio, json, unittest"],
    ["/usr/bin/git", "--help"]], ids=lambda command: os.path.basename(command[0]))
def test_the_report_of_a_usual_program_is_cheap(tmp_path, command):
    """At most 200 million instructions, a tenth of a second."""
    path = tmp_path / "x.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", *command], env=environment(),
                   check=True, capture_output=True, timeout=60)
    assert report_instructions(path) <= 200_000_000


def test_opening_costs_what_the_tables_hold(runs):
    """Instructions, which do not depend on other load, of opening and reporting. The cost per entry
    of the capped tables over time is the same after a long run as after a short one."""
    shares = []
    for run in runs:
        shares.append(report_instructions(run.path) / sum(run.entries[table] for table in ADAPTIVE))
    assert max(shares[1:]) < 2 * shares[0], shares
