# SPDX-License-Identifier: MIT
"""The peak over many short processes: however the recorder came by, and however busy the machine is, the
true one lies within what is stated.

tests/programs/lifecycle/process_tree.c states its peak: parent and child hold the same burst of blocks
one after the other, or at one time; each child ends in another way.
"""
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, environment

BASE = 100 * 10_000
BURST = 400 * 10_000
ENDS = ["exit", "kill", "exec", "vfork", "spawn"]


def assert_peak(recording, truth, processes):
    totals = recording.totals
    assert abs(totals["peak_bytes"] - truth) <= totals["peak_error_bytes"], (
        totals["peak_bytes"], totals["peak_error_bytes"], truth)
    assert totals["processes"] == processes


@pytest.mark.parametrize("word", ENDS)
def test_one_after_the_other(record, word):
    rounds = 20
    recording = record(PROGRAMS / "process_tree", rounds, word)
    assert_peak(recording, BASE + BURST, 1 + rounds)
    # What is no question of order: each child's burst, in both images of one that executes another
    # program, and the parent's after it.
    bursts = 3 if word == "exec" else 2
    assert recording.totals["allocated_bytes"] == BASE + rounds * bursts * BURST
    if word != "kill":  # a killed process is known to be gone only when the recorder has looked
        assert recording.totals["peak_error_bytes"] < BASE


def test_all_kinds_of_ends_in_one_tree(record):
    recording = record(PROGRAMS / "process_tree", 8, *ENDS)
    assert_peak(recording, BASE + BURST, 1 + 8 * len(ENDS))


@pytest.mark.parametrize("attempt", range(4))
def test_at_one_time(record, attempt):
    """Once, so that nothing else could be taken for that moment."""
    recording = record(PROGRAMS / "process_tree", 1, "beside")
    assert_peak(recording, BASE + 2 * BURST, 2)


def test_stages_of_pipelines_do_not_add_up(record):
    """Each sort takes 8 MB for its pipe, and at most one of them is there at any moment."""
    recording = record("/bin/sh", "-c", "for i in 1 2 3 4 5 6; do seq 3000 | sort -r | tail -n 1; done")
    totals = recording.totals
    processes = subprocess.run([CAIRN, "dump", "--table", "processes", recording.path], check=True,
                               env=environment(), capture_output=True, text=True).stdout.splitlines()
    column = processes[0].split("\t").index("peak_bytes")
    highest = max(int(line.split("\t")[column]) for line in processes[1:])
    assert totals["processes"] >= 19
    assert highest > 4 << 20
    assert totals["peak_bytes"] < 1.5 * highest
    assert totals["peak_error_bytes"] < highest / 2
