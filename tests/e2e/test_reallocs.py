# SPDX-License-Identifier: MIT
"""Reallocs that grow blocks are counted by stack however they reach the recorder, and blocks that grow by small
constant steps are a finding. The recording is read by tools/mini_reader.py, which shares no code with cairn."""
import sys

import pytest

from cairn_run import PROGRAMS, ROOT, truth_of

sys.path.insert(0, str(ROOT / "tools"))
import mini_reader  # noqa: E402

COUNTED = ("reallocs", "moved_bytes", "grown_bytes", "largest_bytes")
THREADS = pytest.mark.parametrize("threads", [[], ["threads"]], ids=["alone", "threads"])


@THREADS
@pytest.mark.parametrize("way", ["step", "double"])
def test_reallocs_are_counted_and_steps_are_found(record, way, threads):
    recording = record(PROGRAMS / "growing_blocks", way, *threads, is_compared=False)
    (counted,) = mini_reader.read(recording.path.read_bytes())["reallocs"]
    truth = truth_of("growing_blocks", way)
    assert {name: counted[name] for name in COUNTED} == truth
    found = [item for item in recording.report["findings"]["items"] if item["kind"] == "churn"]
    if way == "double":
        assert not found
        return
    (finding,) = found
    assert finding["bytes"] == truth["moved_bytes"] and finding["blocks"] == truth["reallocs"]
    assert finding["sentence"].startswith("append_by_step (growing_blocks.c:29) grows blocks step by step: "
                                          "400 reallocs by 1.00 KiB on average, up to 404 KiB, moved up to 79.5 MiB.")


def test_programs_that_double_or_grow_little_have_no_such_finding(record):
    """perl grows its strings by a quarter or more, and its arrays by doubling."""
    program = "$s .= 'x' x 100 for 1 .. 200000; push @a, $_ for 1 .. 300000; print length $s, scalar @a"
    recording = record("/usr/bin/perl", "-e", program, is_compared=False)
    assert not [item for item in recording.report["findings"]["items"] if "step by step" in item["sentence"]]
