# SPDX-License-Identifier: MIT
"""include/cairn.h: named pools, weighted events, and a late load of cairn's library."""
import json
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, assert_totals, environment
from test_program_api import API, sum_within, truth_of

LONG_NAME = "a name that is longer than the forty-seven bytes kept"


def pools_of(recording):
    """{pool: (allocations, bytes)} by the innermost frame; each such stack continues with the
    caller."""
    pools = {}
    for costs, frames in recording.stacks():
        name = frames[0]["function"]
        if name.startswith("[pool "):
            assert frames[0]["module"] == name and frames[-1]["function"] == "_start"
            had = pools.get(name, (0, 0))
            pools[name] = (had[0] + costs["allocations"], had[1] + costs["allocated_bytes"])
    return pools


def callers_of(event):
    """The functions that reported an event, innermost first, without the header's own."""
    return [frame["function"] for frame in event["frames"] if not frame["inlined"]]


@pytest.mark.parametrize("overflow", ["wait", "sample"])
def test_pools_have_their_blocks(record, overflow):
    recording = record(PROGRAMS / "api_named", options=[f"--overflow={overflow}"])
    assert_totals(recording, truth_of(API / "named.c"))
    pools = pools_of(recording)
    assert pools.pop("[pool nodes]") == (2, 30), "names are compared as texts"
    assert pools.pop("[pool edges]") == (3, 50)
    assert pools.pop(f"[pool {LONG_NAME[:47]}]") == (1, 5)
    assert pools.pop("[pool ]") == (1, 8)
    # 254 entries; pools above use four of them, and pools without an entry share one.
    shared = pools.pop("[pool ...]")
    assert len(pools) == 250 and set(pools.values()) == {(1, 1)}
    assert shared == (300 - 250, 300 - 250)


def test_pools_can_be_asked_for_like_functions_and_modules(record):
    recording = record(PROGRAMS / "api_named")
    edges = recording.report_json("--filter-function", r"^\[pool edges\]$")["totals"]
    assert (edges["allocations"], edges["allocated_bytes"]) == (3, 50)
    groups = recording.report_json("--group-by", "module")["groups"]
    (nodes,) = [group for group in groups["groups"] if group["name"] == "[pool nodes]"]
    assert nodes["costs"]["allocated_bytes"] == 30


def test_folded_stacks_end_with_the_pool(record):
    path = record(PROGRAMS / "api_named").path
    folded = subprocess.run([CAIRN, "export", path, "--to", "folded", "--show-wrappers", "-o", "-"], check=True,
                            env=environment(), capture_output=True, text=True).stdout
    assert any(line.startswith("_start;") and ";use_pool;cairn_pool_alloc;[pool nodes] " in line
               for line in folded.splitlines()), folded[:2000]


@pytest.mark.parametrize("overflow", ["wait", "sample"])
def test_events_are_summed_by_name_and_stack(record, overflow):
    """Events are separate from the heap: the totals above are the pools' alone."""
    recording = record(PROGRAMS / "api_named", options=[f"--overflow={overflow}"])
    events = [(event["name"], callers_of(event)[0], event["events"], event["weight"])
              for event in recording.report["adhoc"]["entries"]]
    # Pools fill the table of names, so that all events share the last entry.
    assert events == [("[event ...]", "send_bytes", 1000, 999 * 1000 // 2),
                      ("[event ...]", "main", 1, 5), ("[event ...]", "main", 1, 0)]


def test_events_keep_their_names_where_there_is_room(record):
    recording = record(PROGRAMS / "api_budget")
    events = recording.report["adhoc"]["entries"]
    assert [(event["name"], event["events"], event["weight"]) for event in events] == \
        [("[event bytes joined]", 1, weight) for weight in (11, 11, 7)]
    for event in events:
        assert callers_of(event)[:2] == ["join", "main"]
    text = subprocess.run([CAIRN, "report", "--all", recording.path], capture_output=True, check=True,
                          env=environment(), text=True).stdout
    line = next(line for line in text.splitlines() if "[event bytes joined]" in line)
    assert line.split()[:2] == ["11", "1"] and "join" in line and "budget.c:" in line


def test_each_process_has_events_of_its_own(record):
    report = record("/bin/sh", "-c", f"{PROGRAMS}/api_budget; {PROGRAMS}/api_budget").report
    weights = {}
    for event in report["adhoc"]["entries"]:
        weights[event["pid"]] = weights.get(event["pid"], 0) + event["weight"]
    assert list(weights.values()) == [29, 29]


def test_a_recording_with_events_is_sound_and_read_by_others(record, scratch):
    path = record(PROGRAMS / "api_budget").path
    subprocess.run([CAIRN, "verify", path], check=True, env=environment(), capture_output=True)
    read = subprocess.run(["/usr/bin/python3", ROOT / "tools" / "mini_reader.py", path], check=True,
                          capture_output=True, text=True).stdout
    rows = json.loads(read)["adhoc"]
    assert sorted((row["events"], row["weight"]) for row in rows) == [(1, 7), (1, 11), (1, 11)]


def test_cairn_comes_late(record):
    """A running program loads the library, which finds the pointers of the executable and of its
    library."""
    recording = record(PROGRAMS / "api_late", is_compared=False)
    assert recording.finished.returncode == 7
    assert recording.report["unseen"] == []
    assert sum_within(recording, r"^part_work$")["allocated_bytes"] == 77 + 33
    assert sum_within(recording, r"^main$")["allocated_bytes"] == 55
