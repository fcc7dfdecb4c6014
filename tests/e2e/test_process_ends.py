# SPDX-License-Identifier: MIT
"""A process's blocks leave the heap at its end, in every figure over time, and count as unfreed in
the costs for that. A part of a run is never greater than the whole.

tests/programs/lifecycle/process_tree.c: children that hold a burst of blocks one after the other.
"""
import itertools
import json
import pathlib
import re
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, environment

BASE = 100 * 10_000
BURST = 400 * 10_000
ROUNDS = 8
WORDS = ["exit", "kill", "exec", "vfork", "spawn"]


def export(path, form, *options):
    return subprocess.run([CAIRN, "export", "--to", form, "-o", "-", *options, path], check=True,
                          capture_output=True, env=environment(), timeout=120).stdout


@pytest.fixture(name="tree", scope="module")
def fixture_tree(tmp_path_factory):
    path = tmp_path_factory.mktemp("tree") / "tree.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "process_tree", str(ROUNDS),
                    *WORDS], check=True, env=environment(), timeout=120)
    return path


def totals(path, *options):
    run = subprocess.run([CAIRN, "report", "--json", "--no-builtin-suppressions", *options, path],
                         check=False, capture_output=True, env=environment(), timeout=120)
    assert run.returncode in (0, 1), run.stderr  # 1: on a busy machine nothing happens in some parts
    return json.loads(run.stdout)["totals"]


def test_no_part_of_the_run_is_higher_than_the_run(tree):
    whole = totals(tree)
    moments = [whole["runtime_ms"] * i // 6 for i in range(7)]
    for begin, end in itertools.combinations(moments, 2):
        part = totals(tree, "--time", f"{begin}ms..{end}ms")
        assert part["peak_bytes"] <= whole["peak_bytes"], (begin, end)
        assert part["allocations"] <= whole["allocations"]
    # The unfreed bytes are the sum over all children, although the heap was never that large.
    children = ROUNDS * len(WORDS)
    images = ROUNDS * (len(WORDS) + 1)  # one of them executes another program while it holds its burst
    assert whole["processes"] == 1 + children
    assert whole["live_bytes"] >= images * BURST
    assert whole["peak_bytes"] <= BASE + 2 * BURST


def test_slices_and_snapshots_stay_below_the_peak(tree):
    peak = totals(tree)["peak_bytes"]
    points = json.loads(export(tree, "json"))["points"]
    assert points["count"] > 0
    for live, highest in zip(points["live_bytes"], points["live_max_bytes"]):
        assert live <= highest <= peak
    sizes = [int(size) for size in re.findall(rb"mem_heap_B=(\d+)", export(tree, "massif"))]
    assert max(sizes) == peak
    # At the end only the first program's blocks are live, and no child's burst. The last child may
    # have ended in the same millisecond.
    assert sizes[-1] < BURST


def test_processes_are_counted_once(tree):
    """A process that executes another program counts once, in the totals and in the list."""
    whole = totals(tree)
    text = subprocess.run([CAIRN, "report", "--all", tree], check=True, capture_output=True, text=True,
                          env=environment(), timeout=60).stdout
    processes, threads = map(int, re.search(r"(\d+) processes, (\d+) threads", text).groups())
    assert re.search(r"leaked .* blocks,\n +left by processes one after the other\n", text)
    listed = len(re.findall(r"at its peak, +[\d,]+ allocations", text))
    more = int(re.search(r"and (\d+) more processes", text)[1])
    assert (processes, threads) == (whole["processes"], whole["threads"])
    assert listed + more == processes == threads == 1 + ROUNDS * len(WORDS)


def test_processes_that_were_killed_are_named(tree):
    """By their pids in the report: each is a forked child with one thread."""
    run = subprocess.run([CAIRN, "report", "--json", tree], check=True, capture_output=True,
                         env=environment(), timeout=60)
    processes = json.loads(run.stdout)["processes"]
    killed = [process for process in processes if process["killed"]]
    assert len(killed) == ROUNDS
    assert all(process["forked"] and not process["execed"] and process["killed_threads"] == 1
               for process in killed)
    assert all(process["killed_threads"] == 0 for process in processes if not process["killed"])
    text = subprocess.run([CAIRN, "report", "-n", "1", tree], check=True, capture_output=True, text=True,
                          env=environment(), timeout=60).stdout
    (pids,) = re.findall(rf"{ROUNDS} processes were killed or ended without exit \((.*), \.\.\.\): one call .* "
                         rf"{ROUNDS} threads", text)
    assert pids == ", ".join(f"{process['pid']} process_tree" for process in killed[:3])


def test_one_process_that_was_killed_has_one_thread(tmp_path):
    path = tmp_path / "one.cairn"
    run = subprocess.run([CAIRN, "record", "-o", path, "--", PROGRAMS / "process_tree", "1", "kill"], check=True,
                         capture_output=True, text=True, env=environment(), timeout=60)
    assert re.search(r"1 process was killed or ended without exit \(\d+ process_tree\): one call .* missing of its "
                     r"thread\n", run.stderr)


@pytest.mark.parametrize("command", ["ldd /bin/true", "LD_TRACE_LOADED_OBJECTS=1 /bin/true", "$LOADER --list /bin/true"])
def test_a_loader_that_only_lists_libraries_was_not_killed(tmp_path, command):
    loader = next(str(path) for folder in ("/lib64", "/lib") for path in pathlib.Path(folder).glob("ld-linux-*"))
    run = subprocess.run([CAIRN, "record", "-o", tmp_path / "list.cairn", "--", "bash", "-c", f"({command}); :"],
                         capture_output=True, text=True, env=environment({"LOADER": loader}), timeout=60, check=True)
    assert "libc.so.6" in run.stdout
    assert "killed" not in run.stderr


def test_rates_are_those_of_the_part(tree):
    whole = totals(tree)
    part = totals(tree, "--time", "16ms..48ms")  # of a run of any length
    for costs in (whole, part):
        rate = costs["allocations"] * 1000 / costs["counted_ms"]
        assert costs["allocations_per_second"] == int(rate + 0.5)
    assert 0 < part["counted_ms"] < whole["counted_ms"] <= whole["runtime_ms"]
    assert whole["allocations_per_second"] > 0


def test_children_are_called_as_their_parent_is(tree):
    """Independent of the order in which they are read: forked children send no name of their
    own."""
    for name in ("processes", "modules"):
        lines = subprocess.run([CAIRN, "dump", "-t", name, tree], check=True, capture_output=True,
                               text=True, env=environment(), timeout=60).stdout.splitlines()
        for line in lines[1:]:
            entry = dict(zip(lines[0].split("\t"), line.split("\t")))
            assert entry["path" if name == "modules" else "executable"] != "", entry
            assert name == "modules" or entry["command_line"].startswith((str(PROGRAMS), "/proc")), entry


def test_the_tables_say_when_each_process_left(tree):
    lines = subprocess.run([CAIRN, "dump", "-t", "processes", tree], check=True, capture_output=True,
                           text=True, env=environment(), timeout=60).stdout.splitlines()
    table = [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]
    (last,) = [entry for entry in table if entry["left_ms"] == "0"]
    assert last["pid"] == table[0]["pid"]
    assert all(int(entry["left_ms"]) >= int(entry["start_ms"]) for entry in table if entry != last)
