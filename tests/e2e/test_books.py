# SPDX-License-Identifier: MIT
"""What threads count in their books is compared with the program's own counts, for every way to end."""
import pytest

from cairn_run import PROGRAMS, thread_block_bytes

COUNTS = ["allocations", "frees", "allocated_bytes", "temporary", "live_blocks",
          "live_bytes", "peak_bytes"]
ENDINGS = ["return", "exit", "kill"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_s_own_count_is_ours_however_it_ends(record, ending):
    recording = record(PROGRAMS / "young_blocks", 300000, 1, ending)
    counted = dict(zip(COUNTS, map(int, recording.finished.stdout.split())))
    assert {cost: recording.totals[cost] for cost in COUNTS} == counted
    assert recording.totals["peak_error_bytes"] == 0


@pytest.mark.parametrize("ending", ENDINGS)
def test_threads_that_wait_have_told_everything(record, ending):
    program = PROGRAMS / "young_blocks"
    threads = 4
    recording = record(program, 50000, threads, ending)
    counted = dict(zip(COUNTS, map(int, recording.finished.stdout.split())))
    tables = (threads - 1) * thread_block_bytes(program)
    for cost in ("allocations", "live_blocks"):
        counted[cost] += threads - 1
    for cost in ("allocated_bytes", "live_bytes"):
        counted[cost] += tables
    sum_of_peaks = counted.pop("peak_bytes") + tables
    assert {cost: recording.totals[cost] for cost in counted} == counted
    assert recording.totals["unknown_frees"] == 0
    # The true peak is between the live bytes at the end and the sum of all threads' peaks.
    bound = recording.totals["peak_error_bytes"]
    assert counted["live_bytes"] - bound <= recording.totals["peak_bytes"] <= sum_of_peaks + bound
