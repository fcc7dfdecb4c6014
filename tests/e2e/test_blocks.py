# SPDX-License-Identifier: MIT
"""Single blocks at the end and at the peak, by address, with size, age and thread."""
import collections
import struct
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, counters, environment, some_of
from conversation import Conversation
from test_attach import Attachable
from test_order import TRACER_FORMAT, Traced


def sizes(blocks):
    return sorted(block["size_bytes"] for block in blocks)


def test_blocks_of_the_end_and_of_the_peak_are_listed_one_by_one(scratch):
    with Conversation(scratch / "b.cairn", ["--blocks"]) as c:
        c.do("a 3 100", "a 2 5000", "f 4", "a 4 7")  # the peak: 3 x 100 and 2 x 5000
        recording = c.end()
    recording.assert_whole()
    report = recording.report_json("--blocks")
    assert sizes(report["blocks"]["end"]) == [7, 7, 7, 7, 5000]
    assert sizes(report["blocks"]["peak"]) == [100, 100, 100, 5000, 5000]
    assert len({block["address"] for block in report["blocks"]["peak"]}) == 5
    kept, = [b for b in report["blocks"]["end"] if b["size_bytes"] == 5000]
    assert kept["freed_ms"] is None
    assert kept["address"] in {block["address"] for block in report["blocks"]["peak"]}
    freed = [b for b in report["blocks"]["peak"] if b["freed_ms"] is not None]
    assert sizes(freed) == [100, 100, 100, 5000]
    for block in report["blocks"]["end"]:
        assert block["function"] == "keep" and block["thread"] == "obedient"
        assert block["age_ms"] == report["processes"][0]["end_ms"] - block["born_ms"]
    assert counters(report, "note")["blocks_left_out"] == 0
    subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=True,
                   capture_output=True)


def test_blocks_of_a_stack_are_picked_by_function(scratch):
    with Conversation(scratch / "b.cairn", ["--blocks"]) as c:
        c.do("a 3 100", "r 1 9000")
        recording = c.end()
    for function, want in (("^keep$", [100, 100]), ("^resize$", [9000]), ("^churn$", [])):
        report = recording.report_json("--blocks", "--filter-function", function)
        assert sizes(report["blocks"]["end"]) == want
    text = subprocess.run([CAIRN, "report", "--all", "--blocks", "--filter-function", "resize",
                           recording.path], env=environment(), check=True, capture_output=True,
                          text=True).stdout
    address, = [b["address"] for b in recording.report_json("--blocks")["blocks"]["end"]
                if b["size_bytes"] == 9000]
    assert f"{address:#x}" in text and "8.79 KiB" in text and "resize" in text
    assert "BLOCKS AT THE END: 1 block, " in text


def test_every_row_lists_as_many_blocks_as_it_has(record):
    """Words and the sums of rows are computed separately, so each checks the other."""
    recording = record("/usr/bin/python3", "-c", "x = [[i] for i in range(20000)]; del x[::2]",
                       options=["--blocks"], env={"PYTHONMALLOC": "malloc"}, stacks_max=1)
    report = recording.report_json("--blocks")
    for key, count, total in (("end", "live_blocks", "live_bytes"),
                              ("peak", "peak_blocks", "peak_bytes")):
        assert len(report["blocks"][key]) == report["totals"][count]
        assert sum(sizes(report["blocks"][key])) == report["totals"][total]


def sums_of(blocks):
    """Number and bytes of the blocks of each call site."""
    sums = collections.defaultdict(lambda: [0, 0])
    for block in blocks:
        sum_ = sums[block["function"]]
        sum_[0] += 1
        sum_[1] += block["size_bytes"]
    return {name: tuple(sum_) for name, sum_ in sums.items()}


def assert_lists(recording):
    """The list has exactly the blocks that the rows have counted, each once. Both are computed separately: from
    records of single blocks and from words, and from sums of events."""
    subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=True, capture_output=True)
    report = recording.report_json("--blocks")
    notes = counters(report, "note")
    assert notes["blocks_left_out"] == 0
    assert "undecided_blocks" not in notes and "block_birth_error_ms" not in notes
    for key, cost in (("end", "live"), ("peak", "peak")):
        listed = report["blocks"][key]
        assert len(listed) == report["totals"][f"{cost}_blocks"]
        assert sum(sizes(listed)) == report["totals"][f"{cost}_bytes"]
        found = sums_of(listed)
        for name in (name for name in found if name.startswith("make_")):
            costs = recording.costs_within(name)
            assert found[name] == (costs[f"{cost}_blocks"], costs[f"{cost}_bytes"]), name
    return report


@pytest.mark.parametrize("threads, how, env, options", some_of([
    (4, "cl", {}, []), (4, "crl", {}, []), (3, "crflh", {}, []), (8, "crlsa", {}, []), (4, "crlb", {}, ["--all-allocators"]),
    (0, "crl", {}, []), (16, "crslh", {}, []), (3, "crfla", {}, ["--all-allocators"])], 2))
def test_blocks_of_threads_are_those_that_a_tracer_saw(record, scratch, threads, how, env, options):
    """Threads free each other's blocks; handlers, children, realloc chains and pools."""
    left, truth = scratch / "left", scratch / "truth"
    left.touch()
    truth.write_bytes(bytes(struct.calcsize(TRACER_FORMAT)))
    tracer = {"LD_PRELOAD": str(PROGRAMS / "libheap_tracer.so"), "HEAP_TRACER": str(truth),
              "HEAP_TRACER_LEFT": str(left), "HEAP_TRACER_OF": "random_heap"}
    recording = record(PROGRAMS / "random_heap", 7, threads, 12000 // max(threads, 1), how, options=["--blocks", *options],
                       env={**env, **tracer}, is_compared=False)
    report = assert_lists(recording)
    Traced(truth)
    seen = [tuple(map(int, line.split())) for line in left.read_text().splitlines()]
    wanted = sorted((pid, f"make_{kind}", address, size) for pid, kind, address, size in seen if kind != 0)
    assert wanted
    assert sorted((block["pid"], block["function"], block["address"], block["size_bytes"])
                  for block in report["blocks"]["end"] if block["function"].startswith("make_")) == wanted
    # A realloc counts when it returns, and may have given its old address to another thread before.
    at_once = [(block["pid"], block["address"]) for block in report["blocks"]["peak"]]
    assert "r" in how or len(set(at_once)) == len(at_once), "two blocks of one address were live at the peak"


@pytest.mark.parametrize("name, arguments", [("exec_chain", ["exec", "3"]), ("fork_both", [])])
def test_blocks_of_processes_that_follow_each_other_are_listed(record, name, arguments):
    assert_lists(record(PROGRAMS / name, *arguments, options=["--blocks"]))


@pytest.mark.parametrize("options", some_of([[], ["--all-allocators"]], 2))
def test_a_killed_thread_may_have_its_last_event_in_one_of_both(record, options):
    """A word and its count are two stores. A thread that is killed between them leaves one of them."""
    threads = 4
    recording = record(PROGRAMS / "random_heap", 3, threads, 10000, "ck", options=["--blocks", *options], is_compared=False)
    subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=True, capture_output=True)
    report = recording.report_json("--blocks")
    uncounted = counters(report, "note").get("uncounted_blocks", 0)
    assert uncounted <= 2 * threads  # at the end and at the peak
    for key, cost in (("end", "live"), ("peak", "peak")):
        missing = report["totals"][f"{cost}_blocks"] - len(report["blocks"][key])
        assert 0 <= missing <= threads, (key, missing)
        assert report["totals"][f"{cost}_blocks"] > 500


@pytest.mark.parametrize("end", ["detach", "kill"])
def test_blocks_of_an_attached_program_are_listed(scratch, end):
    with Attachable(scratch) as c:
        c.do("a 2 70")
        c.attach("--blocks")
        c.do("a 3 100", "a 2 5000", "f 6", "a 4 7")
        if end == "kill":
            c.process.kill()
        recording = c.detach() if end == "detach" else c.finish()
    report = assert_lists(recording)
    assert sizes(report["blocks"]["peak"]) == [100, 100, 100, 5000, 5000]
    assert sizes(report["blocks"]["end"]) == [7, 7, 7, 7, 5000]


def test_a_recording_without_a_list_says_so(record):
    recording = record(PROGRAMS / "peak")
    assert recording.report["blocks"] is None
    run = subprocess.run([CAIRN, "report", "--all", "--blocks", recording.path], env=environment(),
                         check=False, capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.startswith("cairn: the recording has no list of blocks")
