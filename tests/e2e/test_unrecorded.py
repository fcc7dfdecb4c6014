# SPDX-License-Identifier: MIT
"""What cannot be recorded, or not whole: it runs as if cairn were not there, and the report says so."""
import pytest

from cairn_run import PROGRAMS, truth_of


@pytest.mark.parametrize("how", ["prctl", "seccomp", "strict"])
def test_under_a_filter_no_hook_makes_a_system_call(record, how):
    """One would kill it; and all is recorded, its stacks to their end."""
    recording = record(PROGRAMS / "filtered", how)
    assert recording.finished.stdout == b"done\n"
    truth = truth_of("filtered")
    assert {cost: recording.totals[cost] for cost in truth} == truth
    for costs, frames in recording.stacks():
        if any(frame["function"] == "hold" for frame in frames):
            assert "main" in [frame["function"] for frame in frames]


@pytest.mark.parametrize("who", ["fork", "thread"])
def test_who_begins_under_a_filter_is_counted_as_lost(record, who):
    recording = record(PROGRAMS / "filtered", who, is_whole=False)
    assert recording.finished.stdout == b"done\n"
    lost = {name: count for name, count in recording.report["lost"].items() if count != 0}
    truth = truth_of("filtered")
    # A thread's library frees its block for thread-local storage under the filter, too; main allocates it.
    spare = 1 if who == "thread" else 0
    assert list(lost) == ["seccomp"] and 2000 <= lost["seccomp"] <= 2000 + spare
    assert recording.totals["allocations"] == truth["allocations"] + spare
