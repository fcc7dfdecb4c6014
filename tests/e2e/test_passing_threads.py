# SPDX-License-Identifier: MIT
"""Threads that come and go faster than the recorder reads cost the program a bounded amount of memory,
and no event is lost."""
import pathlib
import re

import pytest

from cairn_run import PROGRAMS, truth_of
from test_attach import Attachable
from waiting import DEADLINE_SECONDS

# 64 lanes of ended threads, those that the eight threads leave meanwhile, and the library.
PEAK_RSS_BYTES_MAX = 120 << 20


def test_the_memory_of_ended_threads_is_bounded(record):
    recording = record(PROGRAMS / "passing_threads")
    assert recording.lost == dict.fromkeys(recording.lost, 0)
    truth = truth_of("passing_threads")
    costs = recording.costs_within("work")
    assert (costs["allocations"], costs["allocated_bytes"]) == (truth["allocations"], truth["allocated_bytes"])
    assert recording.totals["peak_rss_bytes"] < PEAK_RSS_BYTES_MAX


class Waiting(Attachable):
    """The program, which waits before and after its threads."""

    def command(self, _options, program):
        return [PROGRAMS / "passing_threads", "wait"]

    def __enter__(self):
        assert self.process.stdout.read(1) == b"\n"
        return self

    def go_on(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()


@pytest.mark.nightly
def test_attached_it_is_bounded_and_exact_too(scratch):
    truth = truth_of("passing_threads")
    with Waiting(scratch) as program:
        program.attach()
        program.go_on()
        assert program.process.stdout.read(1) == b"\n"  # all threads have ended
        status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text(encoding="ascii")
        recording = program.detach()
        program.go_on()
        assert program.process.wait(DEADLINE_SECONDS) == 0
    assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10 < PEAK_RSS_BYTES_MAX
    assert recording.lost == dict.fromkeys(recording.lost, 0)
    costs = recording.costs_within("work")
    assert (costs["allocations"], costs["allocated_bytes"]) == (truth["allocations"], truth["allocated_bytes"])
