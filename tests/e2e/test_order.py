# SPDX-License-Identifier: MIT
"""Threads that free each other's blocks, compared with a tracer that is preloaded below cairn and
sees the same run: every count of every stack is equal, and the true peak is within the stated
bound.

CAIRN_ORDER_RUNS is the number of random runs (10), CAIRN_ORDER_SEED the first seed.
"""
import os
import struct
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, environment, some_of

RUNS = int(os.environ.get("CAIRN_ORDER_RUNS", "10"))
SEED = int(os.environ.get("CAIRN_ORDER_SEED", "1"))
COSTS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary")
KINDS = 9  # heap_tracer.h; 0 means unmarked
TRACER_FORMAT = f"<{KINDS * len(COSTS) + 7}Q"
HOW = ["c", "cr", "crl", "crs", "crsl", "crf", "r", "crsfl"]


class Traced:
    """The tracer's results: costs by kind, and between what the peak is in any order of calls that overlap in time."""

    def __init__(self, path):
        words = struct.unpack_from(TRACER_FORMAT, path.read_bytes())
        count = len(COSTS)
        self.kinds = [dict(zip(COSTS, words[count * kind:count * (kind + 1)]))
                      for kind in range(KINDS)]
        self.peak_bytes = words[-6]
        self.peak_at_least, self.peak_at_most = words[-4], words[-2]
        assert words[-1] == 0, "the tracer itself failed"

    def total(self, cost):
        return sum(kind[cost] for kind in self.kinds)


def record_traced(record, tmp_path, command):
    truth_path = tmp_path / "truth"
    truth_path.write_bytes(bytes(struct.calcsize(TRACER_FORMAT)))
    tracer = {"LD_PRELOAD": str(PROGRAMS / "libheap_tracer.so"), "HEAP_TRACER": str(truth_path),
              "HEAP_TRACER_OF": "random_heap"}
    recording = record(*command, env=tracer, is_compared=False)
    return recording, Traced(truth_path)


def draw(number):
    """The command of run `number`."""
    seed = SEED + number
    threads = [2, 3, 4, 8, 16, 32][seed * 7 % 6]
    how = HOW[seed * 5 % len(HOW)]
    events = 60000 // threads // (4 if "f" in how or "s" in how else 1)
    return [PROGRAMS / "random_heap", seed, threads, events, how]


def assert_counts(recording, truth):
    recording.assert_whole()
    totals = recording.totals
    compared = [cost for cost in COSTS if cost in totals]
    assert {cost: totals[cost] for cost in compared} == {cost: truth.total(cost) for cost in compared}
    assert totals["live_blocks"] == truth.total("allocations") - truth.total("frees")
    assert totals["live_bytes"] == truth.total("allocated_bytes") - truth.total("freed_bytes")
    assert totals["unknown_frees"] == 0
    for kind in range(1, KINDS):
        found = recording.costs_within(f"make_{kind}")
        reported = truth.kinds[kind]
        assert (found.get("allocations", 0), found.get("frees", 0), found.get("temporary", 0),
                found.get("allocated_bytes", 0), found.get("live_bytes", 0)) == (
            reported["allocations"], reported["frees"], reported["temporary"], reported["allocated_bytes"],
            reported["allocated_bytes"] - reported["freed_bytes"]), f"make_{kind}: {found}, not {reported}"


def assert_peak(totals, truth, has_handles=False):
    """`has_handles`: the bound may be wider."""
    peak, error = totals["peak_bytes"], totals["peak_error_bytes"]
    assert has_handles or error <= max(peak // 50, 48 * 64) + 4096
    assert truth.peak_at_least - error <= peak <= truth.peak_at_most + error, \
        f"{peak} +- {error} is not in {truth.peak_at_least} to {truth.peak_at_most}"


def test_random_runs_are_as_the_tracer_saw_them(record, tmp_path):
    for number in range(RUNS):
        command = draw(number)
        print(*command[1:])
        recording, truth = record_traced(record, tmp_path, command)
        assert_counts(recording, truth)
        assert_peak(recording.totals, truth)
        verified = subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=False,
                                  capture_output=True, timeout=120)
        assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("threads, how", [(3, "crfa"), (1, "cra"), *some_of([
    (3, "crsla"), (0, "cra"), (0, "crfa")], 3)])
def test_calls_of_the_programs_interface_lose_nothing(record, tmp_path, threads, how):
    """At the pace at which the recorder empties the books of threads that sleep."""
    command = [PROGRAMS / "random_heap", SEED, threads, 8000 // max(threads, 1), how]
    recording, truth = record_traced(record, tmp_path, command)
    assert_counts(recording, truth)
    assert_peak(recording.totals, truth, has_handles=True)
    marks, weight = map(int, recording.finished.stdout.split())
    assert len([mark for mark in recording.report["marks"] if mark["text"] == "between"]) == marks > 100
    assert sum(event["weight"] for event in recording.report["adhoc"]["entries"]
               if event["name"] == "[event between]") == weight > 0


@pytest.mark.parametrize("way", ["first", "third", "alone"])
def test_an_address_given_away_by_a_realloc_is_of_another_block(record, way):
    """The free by a realloc precedes what other threads do with the address, also where the realloc
    is the first event of its thread, or began before other threads recorded."""
    env = {"LD_PRELOAD": str(PROGRAMS / "libhandover_allocator.so")}
    recording = record(PROGRAMS / "handover", way, env=env, is_compared=False)
    recording.assert_whole()
    found = {name: [recording.costs_within(name).get(cost, 0)
                    for cost in ("allocations", "frees", "temporary", "live_blocks")]
             for name in ("make_old", "make_new")}
    assert found == {"make_old": [1, 1, 0, 0], "make_new": [1, 1, 1, 0]}
