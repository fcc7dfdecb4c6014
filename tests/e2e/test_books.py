# SPDX-License-Identifier: MIT
"""Books change no figure: recordings with them and in order are compared with each other and with the program's
own counts, for every way to end."""
import pytest

from cairn_run import PROGRAMS, some_of, thread_block_bytes

COUNTS = ["allocations", "frees", "allocated_bytes", "temporary", "live_blocks",
          "live_bytes", "peak_bytes"]
BOOKS = {}
IN_ORDER = {"CAIRN_BOOKS": "0"}

ONE_THREAD = ["malloc_family", "aligned_forms", "realloc_forms", "zero_sizes", "string_functions",
              "temporary", "peak", "constructors", "operators", "rust_blocks"]
ENDINGS = ["return", "exit", "kill"]
HOW = pytest.mark.parametrize("how", [BOOKS, IN_ORDER], ids=str)


def sites(recording):
    """The figures of each call site, without own_peak_bytes, which has the resolution of a tick."""
    found = {}
    for site in recording.report["top"]["allocations"]:
        costs = {cost: value for cost, value in site["costs"].items() if cost != "own_peak_bytes"}
        found.setdefault((site["function"], site["line"], site["module"]), []).append(costs)
    return found


def totals(recording, left_out=()):
    timed = ("peak_time_ms", "peak_rss_bytes", "runtime_ms", "counted_ms", "allocations_per_second")
    return {cost: value for cost, value in recording.totals.items()
            if cost not in timed and cost not in left_out}


@pytest.mark.parametrize("name", some_of(ONE_THREAD, 2))
def test_one_thread_is_recorded_the_same_with_and_without(record, name):
    counted = record(PROGRAMS / name, env=BOOKS, is_compared=False)
    sent = record(PROGRAMS / name, env=IN_ORDER, is_compared=False)
    assert totals(counted) == totals(sent)
    assert sites(counted) == sites(sent)


@pytest.mark.parametrize("name", ["threads", "cross_thread", "fork_both"])
def test_threads_and_processes_too_but_for_the_peak(record, name):
    counted = record(PROGRAMS / name, env=BOOKS, is_compared=False)
    sent = record(PROGRAMS / name, env=IN_ORDER, is_compared=False)
    inexact = ("peak_bytes", "peak_blocks", "peak_error_bytes", "peak_order_error_bytes", "peak_at_least_bytes", "peak_at_most_bytes")
    assert totals(counted, inexact) == totals(sent, inexact)
    bound = counted.totals["peak_error_bytes"] + sent.totals["peak_error_bytes"]
    assert abs(counted.totals["peak_bytes"] - sent.totals["peak_bytes"]) <= bound


@HOW
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_s_own_count_is_ours_however_it_ends(record, ending, how):
    recording = record(PROGRAMS / "young_blocks", 300000, 1, ending, env=how)
    counted = dict(zip(COUNTS, map(int, recording.finished.stdout.split())))
    assert {cost: recording.totals[cost] for cost in COUNTS} == counted
    assert recording.totals["peak_error_bytes"] == 0


@HOW
@pytest.mark.parametrize("ending", ENDINGS)
def test_threads_that_wait_have_told_everything(record, ending, how):
    program = PROGRAMS / "young_blocks"
    threads = 4
    recording = record(program, 50000, threads, ending, env=how)
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


def test_stacks_at_the_peak_are_the_same(record):
    counted = record(PROGRAMS / "young_blocks", 300000, 1, "return", env=BOOKS, is_compared=False)
    sent = record(PROGRAMS / "young_blocks", 300000, 1, "return", env=IN_ORDER, is_compared=False)
    assert len(sites(counted)) >= 3
    assert sites(counted) == sites(sent)
