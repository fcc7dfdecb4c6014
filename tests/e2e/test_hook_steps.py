# SPDX-License-Identifier: MIT
"""Signal handlers that allocate and free after any instruction of a hook, once and twice in the same call: each event
is counted, at its function. hook_steps.c finds the instructions.

By day a part of the instructions, at night all of them.
"""
import pytest

from cairn_run import IS_NIGHTLY, PROGRAMS, some_of

MALLOC, CALLOC, REALLOC, FREE_NEW, FREE_OLD = range(5)
ALL = 100000
NEAR = (1, 240, 1 if IS_NIGHTLY else 23)  # a second handler within so many instructions of the first, and at which steps


def assert_all_counted(recording):
    recording.assert_whole()
    allocated, freed, handler_allocated, handler_freed = map(int, recording.finished.stdout.split())
    assert handler_allocated > 100
    made = [recording.costs_within(name) for name in ("call_malloc", "call_calloc", "call_realloc")]
    assert sum(costs["allocations"] for costs in made) == allocated
    assert sum(costs["frees"] for costs in made) == freed
    handled = recording.costs_within("handle_malloc")
    assert (handled["allocations"], handled["frees"]) == (handler_allocated, handler_freed)
    assert recording.totals["unknown_frees"] == 0


def run(record, *arguments, options=()):
    return record(PROGRAMS / "hook_steps", *arguments, options=options, is_compared=False)


@pytest.mark.parametrize("hook", [MALLOC, CALLOC, REALLOC, FREE_NEW, FREE_OLD])
def test_a_handler_after_each_instruction(record, hook):
    last = ALL if IS_NIGHTLY else 60
    assert_all_counted(run(record, hook, 0, last, 0, 0, 1))


BEGINNING = (0, ALL if IS_NIGHTLY else 25, *NEAR)
RELEASE = (200, 200, 1, 1500, 1)  # meets the instruction after which the guard is free, and its events are not sent yet


@pytest.mark.parametrize("hook, steps, order", some_of([
    (FREE_OLD, BEGINNING, ["t"]), (MALLOC, RELEASE, []), (REALLOC, BEGINNING, []), (MALLOC, BEGINNING, []),
    (FREE_OLD, BEGINNING, []), (REALLOC, BEGINNING, ["t"])], 6))
def test_a_second_handler_in_the_same_hook(record, order, hook, steps):
    assert_all_counted(run(record, hook, *steps, *order))


@pytest.mark.parametrize("hook", [MALLOC, FREE_OLD])
def test_a_block_of_a_handler_that_another_thread_frees_before_it_is_sent(record, hook):
    assert_all_counted(run(record, hook, 0, 60, 0, 0, 1, "g"))


@pytest.mark.parametrize("gap", [5, 20, 40, 60])
def test_a_handler_that_ends_the_process_in_a_hook(record, gap):
    """What it did in the middle of that hook is counted, though the hook never ends."""
    recording = run(record, FREE_OLD, 3, 3, gap, gap, 1, "x")
    _, _, allocated, freed = map(int, recording.finished.stdout.split())
    handled = recording.costs_within("handle_malloc")
    assert (handled["allocations"], handled["frees"]) == (allocated, freed) == (4, 3)


def test_handlers_in_hooks_of_an_entered_program(record):
    """A handler that interrupts the allocator itself, or the few instructions around its call, counts as a part of it."""
    recording = run(record, FREE_OLD, 60, 80 if IS_NIGHTLY else 65, 1, 60, 1, options=["--all-allocators"])
    _, _, allocated, freed = map(int, recording.finished.stdout.split())
    handled = recording.costs_within("handle_malloc")
    assert allocated * 98 // 100 < handled["allocations"] <= allocated
    assert freed * 98 // 100 < handled["frees"] <= freed
