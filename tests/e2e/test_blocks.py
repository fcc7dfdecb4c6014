# SPDX-License-Identifier: MIT
"""Single blocks at the end and at the peak, by address, with size, age and thread."""
import subprocess

from cairn_run import CAIRN, PROGRAMS, counters, environment
from conversation import Conversation


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
    """The live map and the sums of rows are computed separately, so each checks the other."""
    recording = record("/usr/bin/python3", "-c", "x = [[i] for i in range(20000)]; del x[::2]",
                       options=["--blocks"], env={"PYTHONMALLOC": "malloc"}, stacks_max=1)
    report = recording.report_json("--blocks")
    for key, count, total in (("end", "live_blocks", "live_bytes"),
                              ("peak", "peak_blocks", "peak_bytes")):
        assert len(report["blocks"][key]) == report["totals"][count]
        assert sum(sizes(report["blocks"][key])) == report["totals"][total]


def test_a_recording_without_a_list_says_so(record):
    recording = record(PROGRAMS / "peak")
    assert recording.report["blocks"] is None
    run = subprocess.run([CAIRN, "report", "--all", "--blocks", recording.path], env=environment(),
                         check=False, capture_output=True, text=True)
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr.startswith("cairn: the recording has no list of blocks")
