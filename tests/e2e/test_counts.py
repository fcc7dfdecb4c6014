# SPDX-License-Identifier: MIT
"""Counts equal the truth: allocations, frees, bytes, temporary, peak and leaks of programs that
state their own, to the last byte. Blocks and bytes are also compared with valgrind's DHAT."""
import pytest

from cairn_run import (PROGRAMS, Dhat, assert_totals, environment, expected_totals, some_of, truth_of)

PLAIN = ["empty", "malloc_family", "aligned_forms", "pvalloc_form", "realloc_forms", "zero_sizes",
         "failing", "string_functions", "temporary", "peak", "constructors", "threads",
         "cross_thread", "empty_cpp", "operators", "own_operators"]

# name -> the reason why valgrind cannot run it
WITHOUT_DHAT = {
    "pvalloc_form": "valgrind ends a program that calls pvalloc",
    "operators": "valgrind cannot throw for an operator new that fails, and so skips two exceptions",
    "own_operators": "valgrind replaces the program's own operators, too",
}

# The number of blocks of zero bytes, which DHAT counts as one byte each.
ZERO_BLOCKS = {"zero_sizes": 6, "threads": 4}
DHAT_THREAD_BLOCK_BYTES = 272  # without cairn's library there is one TLS module, libc


@pytest.mark.parametrize("name", PLAIN)
def test_totals_are_what_the_program_states(record, name):
    recording = record(PROGRAMS / name)
    assert_totals(recording, expected_totals(name))


@pytest.mark.parametrize("name", some_of([name for name in PLAIN if name not in WITHOUT_DHAT], 12))
def test_the_stated_truth_is_what_dhat_counts(scratch, name):
    expected = expected_totals(name)
    threads = truth_of(name).get("thread_blocks", 0)
    dhat = Dhat([PROGRAMS / name], scratch, env=environment())
    assert dhat.blocks == expected["allocations"]
    stated = truth_of(name)["allocated_bytes"] + expected_totals("empty_cpp")["allocated_bytes"] * (
        name == "empty_cpp")
    assert dhat.bytes == stated + threads * DHAT_THREAD_BLOCK_BYTES + ZERO_BLOCKS.get(name, 0)


def test_rust_counts_are_the_program_s_beyond_its_run_time_s(record):
    empty = record(PROGRAMS / "empty_rust").totals
    full = record(PROGRAMS / "rust_blocks").totals
    truth = truth_of("rust_blocks")
    costs = ["allocations", "frees", "allocated_bytes", "temporary", "live_bytes",
             "live_blocks"]
    assert {cost: full[cost] - empty[cost] for cost in costs} == {
        cost: truth[cost] for cost in costs}
    # The memory of the run-time while main runs is unknown here; it is the same in both.
    assert truth["peak_bytes"] <= full["peak_bytes"] <= truth["peak_bytes"] + empty["peak_bytes"]


def test_rust_counts_are_what_dhat_counts(record, scratch):
    full = record(PROGRAMS / "rust_blocks").totals
    dhat = Dhat([PROGRAMS / "rust_blocks"], scratch, env=environment())
    assert (full["allocations"], full["allocated_bytes"]) == (dhat.blocks, dhat.bytes)


@pytest.mark.parametrize("option", [["--no-children"], ["--max-frames", "16"],
                                    ["--checkpoint-interval", "100ms"]])
def test_options_change_no_count(record, option):
    recording = record(PROGRAMS / "temporary", options=option)
    assert_totals(recording, expected_totals("temporary"))


def test_parts_add_up_to_the_totals(record):
    """Sums over call sites, stacks, processes and threads are the totals."""
    recording = record(PROGRAMS / "threads")
    report, totals = recording.report, recording.totals
    for cost in ("allocations", "allocated_bytes", "frees", "temporary", "live_bytes"):
        assert sum(site["costs"][cost] for site in report["top"]["allocations"]) == totals[cost]
        assert sum(costs[cost] for costs, _ in recording.stacks()) == totals[cost]
        for parts in ("processes", "threads"):
            assert sum(part["costs"][cost] for part in report[parts]) == totals[cost], parts
