# SPDX-License-Identifier: MIT
"""Threads: each its own lane, each lane given back, whatever way the thread ends."""
import os
import subprocess
from collections import Counter

from consumer import PROGRAMS, Session

PROGRAM = os.path.join(PROGRAMS, "threads")
BATCH = 100  # threads between two pauses of the program


def balance(events):
    """Allocations minus frees by address must be 0 or 1 at any moment for one thread's blocks."""
    sizes, live = Counter(), Counter()
    for event in events:
        if event.kind == "alloc":
            sizes[event.size] += 1
            live[event.address] += 1
        elif event.kind == "free":
            live[event.address] -= 1
    return sizes, live


def test_two_thousand_short_threads_share_a_few_lanes():
    with Session() as session:
        with subprocess.Popen([PROGRAM, "churn"], env=session.environment(), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as program:
            for _ in range(2000 // BATCH):
                assert program.stdout.read(1) == b"."
                session.wait_for_lanes(1)  # the main thread's
                program.stdin.write(b".")
                program.stdin.flush()
        assert program.returncode == 0
        session.wait_until_drained()
        (process,) = session.processes
        sizes, live = balance(process.events)
        assert {size: n for size, n in sizes.items() if 10000 <= size < 12000} == {
            10000 + i: 10 for i in range(2000)}
        assert {size: n for size, n in sizes.items() if 1000 < size < 1005} == {
            1001: 2000, 1002: 2000, 1003: 2000}
        assert len(process.threads) == 2001
        # One more each: what glibc frees after a thread's lane was closed.
        assert session.most_lanes <= 1 + 2 * BATCH
        assert session.lost() == {}


def test_a_thread_that_allocates_after_its_lane_was_closed_gets_another():
    with Session() as session:
        assert session.run(PROGRAM, "late").returncode == 0
        (process,) = session.processes
        sizes, _ = balance(process.events)
        assert [sizes[1000 + i] for i in range(1, 5)] == [50] * 4
        assert session.lost() == {}


def test_a_thread_tells_its_name_when_it_begins_and_when_it_has_changed():
    with Session() as session:
        assert session.run(PROGRAM, "names").returncode == 0
        (process,) = session.processes
        assert sorted(process.thread_names.values()) == ["early", "late"]


def test_threads_that_are_cancelled_inside_malloc_do_no_harm():
    with Session() as session:
        result = session.run(PROGRAM, "cancel")
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        sizes, _ = balance(process.events)
        assert {size: n for size, n in sizes.items() if size >= 4000 and size < 4200} == {
            4000 + i: 1 for i in range(200)}
        assert session.most_lanes < 200, "their lanes are closed, not just left: some serve twice"
        assert session.lost() == {}


def test_blocks_that_wander_between_threads_balance():
    with Session() as session:
        assert session.run(PROGRAM, "cross").returncode == 0
        (process,) = session.processes
        sizes, live = balance(process.events)
        assert [sizes[32 + i] for i in range(8)] == [5000] * 8
        assert len(process.threads) == 9
        assert session.lost() == {}
        # Between lanes only ticks order: by address, allocations and frees still balance.
        wandering = {e.address for e in process.events if e.kind == "alloc" and 32 <= e.size < 40}
        assert {address: live[address] for address in wandering if live[address]} == {}


def test_more_threads_than_lanes_are_counted_as_lost():
    with Session() as session:
        session.u64[slice_of_bitmap(session)] = every_lane_taken()
        assert session.run(os.path.join(PROGRAMS, "endless"), "100").stdout == "done\n"
        (process,) = session.processes
        assert process.events == []
        assert session.lost()["no_lane"] >= 200


def slice_of_bitmap(session):
    import consumer
    return slice(consumer.BITMAP, consumer.BITMAP + 64)


def every_lane_taken():
    return memoryview(b"\xff" * 512).cast("Q")
