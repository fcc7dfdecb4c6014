# SPDX-License-Identifier: MIT
"""The views of cairn report, compared with sums over the blocks of a naive model."""
import collections
import dataclasses
import json
import re

import pytest

from drawn import cairn, json_of, on_terminal, text_of
from heap_model import Heap, bucket_of, random_heap
from test_filters import COSTS

VIEWS = (["--group-by", "function"], ["--group-by", "size"], ["--functions"],
         ["--callers", "load"], ["--tree", "top-down"], ["--tree", "bottom-up"], ["--histogram"])


@pytest.fixture(scope="module", params=(11, 12))
def run(request, draw_once):
    heap = random_heap(request.param)
    return heap, draw_once(heap.draw())


def name_of(frame):
    return frame.partition("!")[2].partition("(")[0]


def path_of(block):
    return tuple(map(name_of, block.stack))


def same(costs, wanted):
    return all(costs[cost] == wanted[cost] for cost in COSTS)


# Groups

@pytest.mark.parametrize("by, key", [
    ("function", lambda b: name_of(b.site)), ("module", lambda b: "/opt/app"),
    ("file", lambda b: f"/src/{name_of(b.site)}.c"), ("thread", lambda b: b.thread),
    ("process", lambda b: "app"),
])
def test_groups(run, by, key):
    heap, path = run
    groups = json_of("--group-by", by, path)["groups"]
    assert groups["by"] == by
    wanted = heap.by(key)
    assert {group["name"] for group in groups["groups"]} == set(wanted)
    for group in groups["groups"]:
        assert same(group["costs"], wanted[group["name"]]), group["name"]
    peaks = [group["costs"]["peak_bytes"] for group in groups["groups"]]
    assert peaks == sorted(peaks, reverse=True)


def test_groups_by_size_are_octaves(run):
    heap, path = run
    wanted = heap.by(lambda b: b.size.bit_length())
    groups = json_of("--group-by", "size", path)["groups"]["groups"]
    assert [g["name"] for g in groups] == [
        f"{1 << (bits - 1)}..{(1 << bits) - 1}" for bits in sorted(wanted)]
    for group, bits in zip(groups, sorted(wanted)):
        for cost in ("allocations", "allocated_bytes"):
            assert group["costs"][cost] == wanted[bits][cost]
        known = {cost for cost, value in group["costs"].items() if value is not None}
        assert known == {"allocations", "allocated_bytes"}
    assert "peak" not in text_of("--group-by", "size", path).partition("BY SIZE")[2]


# Functions, callers and callees

def test_functions(run):
    heap, path = run
    functions = {f["function"]: f for f in json_of("--functions", "-n", "0", path)["functions"]["functions"]}
    assert set(functions) == {name for b in heap.blocks for name in path_of(b)}
    for name, found in functions.items():
        assert same(found["inclusive"], heap.costs([b for b in heap.blocks if name in path_of(b)]))
        assert same(found["self"], heap.costs([b for b in heap.blocks if path_of(b)[-1] == name]))
    ranks = [f["inclusive"]["live_bytes"]
             for f in json_of("--functions", "--sort", "leaked", path)["functions"]["functions"]]
    assert ranks == sorted(ranks, reverse=True)


def calls(block):
    path = path_of(block)
    return set(zip(path, path[1:]))


def test_callers_and_callees(run):
    heap, path = run
    (found,) = json_of("--callers", "^load$", path)["callers"]
    assert found["function"] == "load"
    callers = collections.defaultdict(list)
    callees = collections.defaultdict(list)
    for block in heap.blocks:
        for caller, callee in calls(block):
            if callee == "load":
                callers[caller].append(block)
            if caller == "load":
                callees[callee].append(block)
        if path_of(block)[-1] == "load":
            callees[None].append(block)
    for table, wanted in ((found["callers"], callers), (found["callees"], callees)):
        assert {entry["function"] for entry in table} == set(wanted)
        for entry in table:
            assert same(entry["inclusive"], heap.costs(wanted[entry["function"]])), entry["function"]
    assert len(json_of("--callers", "^(load|emit)$", path)["callers"]) == 2
    short = text_of("--callers", "^load$", "-n", "1", path)
    for table in (callers, callees):
        assert f"\n      and {len(table) - 1} more\n" in short
    nobody = cairn("report", "--json", "--callers", "nobody", path)
    assert json.loads(nobody.stdout)["callers"] == []
    assert (nobody.returncode, nobody.stderr) == (0, b'cairn: --callers: no function matches "nobody"\n')


# Trees

@pytest.mark.parametrize("direction", ["top-down", "bottom-up"])
def test_trees(run, direction):
    heap, path = run
    tree = json_of("--tree", direction, "-n", "0", "--max-depth", "0", path)["tree"]
    assert (tree["direction"], tree["sort"]) == (direction.replace("-", "_"), "peak_bytes")
    wanted = collections.defaultdict(list)
    for block in heap.blocks:
        stack = path_of(block) if direction == "top-down" else path_of(block)[::-1]
        for depth in range(len(stack)):
            wanted[stack[:depth + 1]].append(block)
    wanted = {stack: heap.costs(blocks) for stack, blocks in wanted.items()}
    wanted = {stack: costs for stack, costs in wanted.items() if costs["peak_bytes"]}
    here, found = [], {}
    assert tree["nodes"][0]["depth"] == 0 and same(tree["nodes"][0]["total"], heap.costs())
    for node in tree["nodes"][1:]:
        del here[node["depth"] - 1:]
        here.append(node["function"])
        found[tuple(here)] = node["total"]
    assert set(found) == set(wanted)
    for stack, costs in found.items():
        assert same(costs, wanted[stack]), stack


def test_a_cut_tree_says_so(run):
    _, path = run
    tree = json_of("--tree", "top-down", "-n", "3", path)["tree"]
    assert not tree["complete"] and len(tree["nodes"]) == 1 + 3
    whole = json_of("--tree", "top-down", "-n", "0", path)["tree"]
    assert f"  and {len(whole['nodes']) - 4:,} smaller; -n 0 --max-depth 0 shows all\n" in text_of(
        "--tree", "top-down", "-n", "3", path)
    shallow = json_of("--tree", "top-down", "-n", "0", "--max-depth", "1", path)["tree"]
    assert {node["depth"] for node in shallow["nodes"]} == {0, 1}


def test_a_deep_tree_stays_within_the_line(draw):
    frames = ";".join(f"app!f{n}(a.c:{n})" for n in range(1, 101))
    path = draw(f"process app\nthread main\n{frames} 1 10 0 0 0 0 1 10 10\n")
    text = text_of("--tree", "top-down", "--max-depth", "0", "-n", "0", path)
    assert "(100) f100" in text and max(map(len, text.splitlines())) <= 80


# Histograms

@pytest.mark.parametrize("key, of", [
    ("sizes", lambda b: b.size),
    ("lifetimes", lambda b: None if b.freed_ms is None else b.freed_ms - b.born_ms)])
def test_histograms(run, key, of):
    heap, path = run
    wanted = collections.defaultdict(lambda: [0, 0])
    for block in heap.blocks:
        if of(block) is not None:
            wanted[bucket_of(of(block))][0] += 1
            wanted[bucket_of(of(block))][1] += block.size
    found = [bar for bar in json_of("--histogram", path)[key]["buckets"] if bar["blocks"]]
    assert [[b["blocks"], b["bytes"]] for b in found] == [wanted[b] for b in sorted(wanted)]
    for bar, bucket in zip(found, sorted(wanted)):
        assert bucket_of(bar["low"]) == bucket_of(bar["high"]) == bucket


def test_bars_grow_with_their_counts(run):
    _, path = run
    text = text_of("--histogram", path)
    bars = [(int(count.replace(",", "")), len(bar)) for count, bar in re.findall(
        r" to .{9} +([\d,]+) +\S+%  .* (#+)$", text.partition("LIFETIMES")[0], re.M)]
    assert len(bars) > 3 and bars == sorted(bars) or all(
        (a[0] <= b[0]) == (a[1] <= b[1]) or a[1] == b[1] for a in bars for b in bars)


def test_a_size_filter_cuts_the_sizes(run):
    heap, path = run
    (bar,) = json_of("--histogram", "--size", "4096", path)["sizes"]["buckets"]
    assert bar["blocks"] == len([b for b in heap.blocks if b.size == 4096])


# Two recordings

def test_views_show_the_change(run, draw):
    heap, path = run
    grown = Heap([dataclasses.replace(b, size=b.size * 2) for b in heap.blocks
                  if name_of(b.site) != "emit"])
    new = draw(grown.draw(), "new.cairn")
    for function in json_of("--functions", "-n", "0", "--diff", path, new)["functions"]["functions"]:
        name = function["function"]
        assert same(function["old_inclusive"],
                    heap.costs([b for b in heap.blocks if name in path_of(b)]))
        assert same(function["inclusive"],
                    grown.costs([b for b in grown.blocks if name in path_of(b)]))
    root = json_of("--tree", "top-down", "--diff", path, new)["tree"]["nodes"][0]
    assert same(root["old_total"], heap.costs()) and same(root["total"], grown.costs())
    text = text_of("--tree", "top-down", "--diff", path, new)
    assert re.search(r"\n +[+-]\S+ \wiB +\S+ \wiB  main  \[app\]\n", text)


def test_a_diff_without_views_is_that_of_cairn_diff(run, draw):
    heap, path = run
    new = draw(Heap(heap.blocks[::2]).draw(), "new.cairn")
    assert text_of("--diff", path, new) == cairn("diff", path, new).stdout.decode()
    assert json_of("--diff", path, new) == json.loads(cairn("diff", "--json", path, new).stdout)


# Forms

NOTHING = b'cairn: no thread of the recording has the id or name "nobody"\n'


@pytest.mark.parametrize("view", VIEWS)
def test_views_fit_80_columns_and_filter(run, view):
    _, path = run
    text = text_of(*view, path)
    assert max(map(len, text.splitlines())) <= 80
    assert "PEAK MEMORY" not in text and "\x1b" not in text
    assert text_of(*view, "--thread", "main", path) != text
    assert "nothing" in text_of(*view, "--thread", "nobody", path, said=NOTHING, status=1) or "BY " in text or \
        "FUNCTIONS" in text
    assert b"\x1b[" in on_terminal("report", "--all", *view, path)
    assert b"\x1b" not in on_terminal("report", "--all", *view, path, more={"NO_COLOR": "1"})


def test_hostile_names_in_views(draw):
    name = b"\x1b[31mred\x07" + b"x" * 90
    path = draw(b"process " + name + b"\nthread " + name + b"\n/x/" + name + b"!" + name + b"(" +
                name + b":3) 5 50 0 0 5 50 5 50 50\nsize 10 5 50\n")
    for view in (*VIEWS, ["--group-by", "file"], ["--group-by", "thread"],
                 ["--group-by", "process"], ["--group-by", "module"], ["--callers", "red"]):
        said = b'cairn: --callers: no function matches "load"\n' if "load" in view else b""
        text = text_of(*view, path, said=said)
        assert "\x1b" not in text and "\x07" not in text
        assert max(map(len, text.splitlines())) <= 80, view
        json_of(*view, path)
        if "size" not in view and "--histogram" not in view and "load" not in view:
            assert "x" * 90 in text_of("--full-names", *view, path), view


@pytest.mark.parametrize("arguments, words", [
    (["--tree", "sideways"], ["--tree", "top-down", "bottom-up"]),
    (["--group-by", "colour"], ["--group-by", "function", "size"]),
    (["--callers", "("], ["--callers"]),
    (["--diff", "x", "--histogram"], ["--diff can only be combined with"]),
    (["--blocks", "--functions"], ["--blocks cannot be combined"]),
    (["--diff", "/nowhere"], ["No such file"]),
])
def test_mistakes(run, arguments, words):
    _, path = run
    done = cairn("report", "--all", *arguments, path)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, said.count("\n")) == (2, b"", 1), said
    for word in words:
        assert word in said
