# SPDX-License-Identifier: MIT
"""Signal handlers that interrupt the hooks: their events are neither lost nor out of order."""
import os
from collections import Counter

import pytest

from consumer import LIBRARY, PROGRAMS, Session

PROGRAM = os.path.join(PROGRAMS, "signals")
ALLOCATOR = os.path.join(PROGRAMS, "safe_allocator.so")


def run(session, *mode):
    env = session.environment(LD_PRELOAD=f"{LIBRARY}:{ALLOCATOR}")
    result = session.run(PROGRAM, *mode, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    (process,) = session.processes
    assert process.texts["allocator"].decode() == ALLOCATOR
    return result, process


@pytest.mark.parametrize("mode", ["same", "alternate", "above"])
def test_handlers_that_allocate_lose_nothing(mode):
    with Session() as session:
        result, process = run(session, mode)
        pairs, handlers = map(int, result.stdout.split())
        assert session.lost() == {}
        sizes = Counter(e.size for e in process.events if e.kind == "alloc")
        assert sum(sizes[1000 + i] for i in range(7)) == pairs
        # This allocator's realloc calls malloc.
        assert [sizes[2000 + i] for i in range(3)] == [handlers, handlers, 2 * handlers]
        # In the thread's own order no block is freed before it is there. Blocks of the program's
        # start may live for ever; those of the storm do not.
        live = {}
        for event in process.events:
            if event.kind == "free":
                assert live.pop(event.address) == event.size
            else:
                live[event.address] = event.size
        assert not set(live.values()) & set(range(1000, 1007)) | set(live.values()) & {2000, 2001,
                                                                                        2002}
        # The handler's stacks go through the interrupted frames to the program's entry.
        assert not any(e.unfinished for e in process.events)
    # In a handler that interrupts a hook, who allocates a block counts its free as well, and takes it for no temporary one.
    assert process.books_are_right(but="temporary")


def test_what_handlers_do_beyond_what_is_kept_is_counted_event_by_event():
    seen = {}
    for handlers in (0, 20000):
        with Session() as session:
            result, process = run(session, "flood", str(handlers))
            pairs, done = map(int, result.stdout.split())
            left_out = session.lost().pop("reentrant", 0)
            assert set(session.lost()) <= {"reentrant"}
            # Four in the handler: this allocator's realloc calls malloc. Who allocates a block in a handler counts
            # its free as well.
            sizes = Counter((e.kind, e.size) for e in process.events)
            seen[handlers] = sum(n for (kind, _), n in sizes.items() if kind == "alloc") + left_out - (pairs + 4 * done)
            assert [sizes["free", 2000 + i] for i in range(3)] == [sizes["alloc", 2000 + i] for i in range(3)]
    assert left_out > 0, "one of 2000 handlers interrupted a hook"
    assert seen[0] == seen[20000], "the rest of the program is the same in both"


def test_hooks_that_are_left_by_longjmp_do_not_end_the_recording():
    with Session() as session:
        result, process = run(session, "escape")
        sizes = Counter(e.size for e in process.events if e.kind == "alloc")
        assert [sizes[4000 + i] for i in range(100)] == [1] * 100
        # Each of the 500 escapes may leave one call half way, recorded or not. Every call that came
        # back was recorded, and none was taken for one that had interrupted another.
        assert int(result.stdout) <= sizes[3000] <= int(result.stdout) + 500
        assert session.lost() == {}
