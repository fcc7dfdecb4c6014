# SPDX-License-Identifier: MIT
"""The filter options, each compared with sums over the blocks of a naive model."""
import csv
import io
import json
import re

import pytest

from drawn import cairn, json_of, text_of
from heap_model import SLICE_MS, random_heap, within

COSTS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "temporary_bytes",
         "peak_blocks", "peak_bytes", "live_blocks", "live_bytes")
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module", params=SEEDS)
def run(request, draw_once):
    """A model and its recording."""
    heap = random_heap(request.param)
    path = draw_once(heap.draw())
    verified = cairn("verify", path)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    return heap, path


def passes(options, block):
    """Return whether a block passes the options, by the words of the man page."""
    tests = {
        "--thread": lambda v: block.thread == v,
        "--filter-function": lambda v: any(f"!{v}(" in frame for frame in block.stack),
        "--file": lambda v: any(f"/src/{v}.c" in frame for frame in block.stack),
        "--module": lambda v: v == "app",
        "--size": lambda v: within(block.size, *ends(v, int)),
        "--lifetime": lambda v: block.freed_ms is not None and
        within(block.freed_ms - block.born_ms, *ends(v, milliseconds)),
    }
    return all(tests[name](value) for name, value in zip(options[::2], options[1::2]))


def ends(text, parse):
    low, dots, high = text.partition("..")
    if not dots:
        return parse(low), parse(low)
    return (parse(low) if low else 0), (parse(high) if high else None)


def milliseconds(text):
    return int(text.removesuffix("ms"))


def check(heap, report, options, costs):
    wanted = heap.costs([b for b in heap.blocks if passes(options, b)])
    for cost in costs:
        assert report["totals"][cost] == wanted[cost], (cost, options)
        assert report["selection"]["estimated"][cost] == 0, (cost, options)
    assert wanted["allocations"] > 0, "the case says nothing"


@pytest.mark.parametrize("options", [
    [], ["--thread", "worker-1"], ["--filter-function", "parse"], ["--file", "cache"],
    ["--module", "app"], ["--thread", "main", "--filter-function", "parse"],
])
def test_stacks_are_counted_whole(run, options):
    heap, path = run
    report = json_of(*options, path)
    check(heap, report, options, COSTS)
    assert report["selection"]["unavailable"] == []


@pytest.mark.parametrize("value", ["64", "16..24", "4096..", "..100", "17..4000", "..", "90..110"])
def test_sizes_are_exact_where_they_can_be(run, value):
    heap, path = run
    if value == "..":
        assert cairn("report", "--all", "--size", value, path).returncode == 2
        return
    options = ["--size", value]
    report = json_of(*options, path)
    check(heap, report, options, ("allocations", "allocated_bytes"))
    wanted = heap.costs([b for b in heap.blocks if passes(options, b)])
    for cost in COSTS:
        sure = report["totals"][cost] - report["selection"]["estimated"][cost]
        assert sure <= wanted[cost], cost
        if report["selection"]["estimated"][cost] == 0:
            assert report["totals"][cost] == wanted[cost], cost
    totals = report["totals"]
    assert totals["live_bytes"] == totals["allocated_bytes"] - totals["freed_bytes"]


def test_a_stack_of_one_size_is_never_an_estimate(run):
    """The stacks with blocks of 64 bytes have no other size (heap_model.random_heap)."""
    heap, path = run
    options = ["--size", "64"]
    check(heap, json_of(*options, path), options, COSTS)


@pytest.mark.parametrize("value", ["..1ms", "1ms..40ms", "300ms..", "5ms"])
def test_lifetimes_are_of_freed_blocks(run, value):
    heap, path = run
    options = ["--lifetime", value]
    report = json_of(*options, path)
    check(heap, report, options, ("allocations", "allocated_bytes", "frees", "freed_bytes",
                                  "live_bytes", "live_blocks"))
    assert set(report["selection"]["unavailable"]) == {"peak_bytes", "peak_blocks", "own_peak_bytes",
                                          "temporary", "temporary_bytes"}
    unknown = report["selection"]["unavailable"]
    objects = [report["selection"]["totals"], report["selection"]["estimated"],
               *(site["costs"] for site in report["top"]["allocations"]),
               *(row["costs"] for kind in ("processes", "threads", "modules") for row in report[kind])]
    for costs in objects:
        assert {cost for cost, value in costs.items() if value is None} == set(unknown)
    totals = report["totals"]
    assert {key for key, value in totals.items() if value is None} == {
        *unknown, "peak_error_bytes", "peak_order_error_bytes", "peak_at_least_bytes", "peak_at_most_bytes", "peak_time_ms"} - {"own_peak_bytes"}
    assert None not in report["selection"]["recording_totals"].values()


def test_an_unknown_cost_cannot_be_sorted_by(run):
    """Not even where a figure of another order would look like an answer."""
    _, path = run
    cases = (("temporary", ["--lifetime", "1ms.."], "the filtered part has no data on temporary allocations"),
             ("own-peak", ["--time", "0..40ms", "--tree", "top-down"], "the filtered part has no data on bytes at each stack's own peak"),
             ("leaked", ["--group-by", "size"], "groups by size have no data on bytes never freed"))
    for cost, options, said in cases:
        for form in ([], ["--json"], ["--csv"]):
            done = cairn("report", "--sort", cost, *options, *form, path)
            assert (done.returncode, done.stdout, done.stderr.decode()) == (
                2, b"", f"cairn: --sort {cost}: {said}\n"), (options, form)


def blocks_of_time(heap, from_ms, to_ms, classes):
    """The blocks of a part of the run, by the slices of their allocation and free."""
    for block in heap.blocks:
        born = block.born_ms // SLICE_MS * SLICE_MS
        freed = heap.runtime_ms * 2 if block.freed_ms is None else \
            block.freed_ms // SLICE_MS * SLICE_MS
        if born >= to_ms or freed < from_ms or (born < from_ms and freed < from_ms):
            continue
        name = ("in" if born >= from_ms else "out") + ("_in" if freed < to_ms else "_out")
        if name in classes:
            yield block, name.endswith("_in")


@pytest.mark.parametrize("time, classes", [
    ("0..500ms", None), ("1s..", None), ("300ms..1200ms", "in_out"), ("1s..1500ms", "out_in"),
    ("500ms..700ms", "in_in,in_out,out_in,out_out"),
])
def test_a_part_of_the_run(run, time, classes):
    heap, path = run
    from_ms, to_ms = {"0..500ms": (0, 500), "1s..": (1000, 2000), "300ms..1200ms": (300, 1200),
                      "1s..1500ms": (1000, 1500), "500ms..700ms": (500, 700)}[time]
    more = ["--classes", classes] if classes else []
    report = json_of("--time", time, *more, path)
    found = list(blocks_of_time(heap, from_ms, to_ms, (classes or "in_in,in_out").split(",")))
    freed = [b.size for b, is_freed in found if is_freed]
    sizes = [b.size for b, _ in found]
    totals = report["totals"]
    assert (totals["allocations"], totals["allocated_bytes"]) == (len(sizes), sum(sizes))
    assert (totals["frees"], totals["freed_bytes"]) == (len(freed), sum(freed))
    assert totals["live_bytes"] == sum(sizes) - sum(freed)
    assert report["selection"]["filter"]["time"] == {"from_ms": from_ms, "to_ms": to_ms,
                                        "classes": (classes or "in_in,in_out").split(",")}


def test_what_passes_is_said(run):
    _, path = run
    text = text_of("--size", "17..4000", "--lifetime", "1s..", "--thread", "main", path)
    for line in ("  Only data that matches the filter is counted:", "    thread main",
                 "    blocks of 16 B to 4.00 KiB", "    blocks freed after 896 ms or more"):
        assert line in text.splitlines(), line
    assert "    not known: peak, peak-blocks, " in text and re.search(r"^  peak heap +unknown$", text, re.M)
    assert max(map(len, text.splitlines())) <= 80
    text = text_of("--time", "300ms..1s", path)
    assert "    blocks by the time from 300 ms to 1.00 s: in_in, in_out" in text.splitlines()


@pytest.mark.parametrize("options", [
    ["--thread", "worker-2"], ["--file", "parse"], ["--size", "4096.."], ["--time", "0..700ms"],
    ["--lifetime", "..5ms"], ["--size", "..100", "--thread", "main"],
])
def test_an_export_counts_the_same(run, options):
    _, path = run
    out = cairn("export", "--to", "csv", *options, path)
    assert out.returncode == 0, out.stderr
    rows = list(csv.DictReader(io.StringIO(out.stdout.decode())))
    said = json_of(*options, path)
    for cost in ("allocations", "allocated_bytes", "live_bytes", "peak_bytes"):
        if cost in said["selection"]["unavailable"]:
            assert {row[cost] for row in rows} == {""}, cost
        else:
            assert sum(int(row[cost]) for row in rows) == said["totals"][cost], cost


@pytest.mark.parametrize("text", ["load", "LOAD", "cache.c", "app", "aR", "nothing of this"])
def test_a_text_means_the_same_in_every_command(run, text):
    """Its oracle are the call sites of the report without a filter."""
    _, path = run
    sites = json_of("-n", "0", path)["top"]["allocations"]
    wanted = [site for site in sites if any(text.lower() in (site[part] or "").lower() for part in ("function", "file", "module"))]
    assert len(wanted) < len(sites) or text == "app"
    found = json_of("-n", "0", "--filter", text, path, status=None)
    assert sorted(map(str, found["top"]["allocations"])) == sorted(map(str, wanted))
    assert found["selection"]["filter"]["call_site"] == text
    assert found["selection"]["filter"]["unmatched"] == ([] if wanted else ["call_site"])
    assert found["totals"]["allocations"] == sum(site["costs"]["allocations"] for site in wanted)
    rows = csv.DictReader(io.StringIO(cairn("export", "--to", "csv", "--filter", text, path).stdout.decode()))
    assert sum(int(row["allocations"]) for row in rows) == found["totals"]["allocations"]
    if wanted:
        most = found["totals"]["allocations"]
        for limit, status in ((most, 0), (most - 1, 1)):
            assert cairn("check", "--filter", text, "--max-allocations", str(limit), path).returncode == status
        compared = json.loads(cairn("diff", "--json", "--filter", text, path, path).stdout)
        assert compared["totals"]["allocations"]["new"] == most


@pytest.mark.parametrize("command", [["report"], ["export", "--to", "csv"]])
@pytest.mark.parametrize("options, words", [
    (["--size", "big"], ["--size", "range of sizes"]),
    (["--size", "5..4"], ["--size"]),
    (["--size", ".."], ["--size"]),
    (["--lifetime", "1..2 parsecs"], ["--lifetime", "range of durations"]),
    (["--time", "5s"], ["--time", "FROM..TO"]),
    (["--classes", "in_in"], ["--classes", "--time"]),
    (["--time", "1..2", "--classes", "in_in,,"], ["--classes", "in_out"]),
    (["--file", "("], ["--file", "regular expression"]),
])
def test_mistakes_in_filters(run, command, options, words):
    _, path = run
    run_of = cairn(*command, *options, path)
    said = run_of.stderr.decode()
    assert (run_of.returncode, run_of.stdout, said.count("\n")) == (2, b"", 1)
    for word in words:
        assert word in said


@pytest.mark.parametrize("options, name, said", [
    (["--filter-function", "^nosuch$"], "function", 'no function of the recording matches "^nosuch$"'),
    (["--file", "nosuch.c"], "file", 'no source file of the recording matches "nosuch.c"'),
    (["--module", "libnone"], "module", 'no executable or library of the recording matches "libnone"'),
    (["--thread", "nosuch*"], "thread", 'no thread of the recording has the id or name "nosuch*"'),
    (["--process", "4194304"], "process", "no process of the recording has the pid 4194304"),
    (["--filter-function", "^load$", "--size", "1TiB.."], None, "nothing matches the filter: every number is 0"),
])
def test_a_filter_that_finds_nothing_says_so(run, options, name, said):
    _, path = run
    for command in (("report",), ("report", "--json"), ("export", "--to", "folded"), ("diff", path)):
        done = cairn(*command, *options, path)
        status = 1 if command[0] == "report" else 0
        assert (done.returncode, done.stderr.decode()) == (status, f"cairn: {said}\n"), command
    unmatched = json_of(*options, path, status=1)["selection"]["filter"]["unmatched"]
    assert unmatched == ([name] if name else [])
    for more in (["--csv"], ["-l"], ["--tree", "top-down"], ["--group-by", "size", "--csv"], ["--diff", path]):
        assert cairn("report", *more, *options, path).returncode == 1, more


def test_a_time_after_the_end_has_no_blocks(run):
    """It is not the last slice."""
    heap, path = run
    done = cairn("report", "--time", "3h..4h", path)
    assert (done.returncode, done.stderr) == (1, b"cairn: nothing matches the filter: every number is 0\n")
    assert "    no blocks: the recording ends after " in done.stdout.decode()
    assert json_of("--time", "3h..4h", path, status=1)["totals"]["allocations"] == 0
    assert json_of("--time", f"{heap.runtime_ms - 1}ms..4h", path, status=None)["selection"]["filter"]["time"]["classes"]


@pytest.mark.parametrize("pattern, allocations", [
    ("^process$", 7), ("^process<int>\\(Index&, int\\)$", 7), ("^void process<int>\\(", 7), ("^process<int>$", 7),
    ("Index", 7), ("^operator<$", 2), ("^a::run$", 1), ("^proces$", 0)])
def test_a_function_matches_as_it_is_shown(draw, pattern, allocations):
    """A pattern matches with or without the return type, parameters and template arguments."""
    path = draw("app!main;app!void process<int>(Index&, int) 7 70\n"
                "app!main;app!bool operator< <int>(A const&, A const&) 2 20\n"
                "app!main;app!a::run() const 1 10\n")
    report = json_of("--filter-function", pattern, path, status=0 if allocations > 0 else 1)
    assert report["totals"]["allocations"] == allocations


def test_a_thread_may_be_called_like_a_number(draw):
    path = draw("process app\nthread 123\nmain 5 50\nthread other\nmain 6 60\n")
    assert json_of("--thread", "123", path)["totals"]["allocations"] == 5


def test_what_was_not_recorded_is_no_zero(draw):
    path = draw("process app\nthread main\nmain(a.c:1) 3 30 1 10\n")
    for option, word in (("--size=1..", "sizes"), ("--lifetime=1..", "lifetimes"),
                         ("--time=0..1", "no allocation times")):
        run_of = cairn("report", "--all", option, path)
        assert (run_of.returncode, run_of.stdout) == (2, b"")
        assert word in run_of.stderr.decode() and run_of.stderr.count(b"\n") == 1


@pytest.mark.parametrize("form", ["massif", "perfetto"])
def test_a_series_over_time_has_no_lifetimes(run, form):
    _, path = run
    run_of = cairn("export", "--to", form, "--lifetime", "1s..", path)
    said = run_of.stderr.decode()
    assert (run_of.returncode, run_of.stdout, said.count("\n")) == (2, b"", 1)
    assert f"--lifetime: {form} is a series over time" in said
