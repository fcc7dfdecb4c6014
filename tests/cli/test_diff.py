# SPDX-License-Identifier: MIT
"""cairn diff, compared with differences of naive models."""
import dataclasses
import json
import re

import pytest

from drawn import ROOT, cairn, json_of, on_terminal
from heap_model import Block, Heap, frame, random_heap

KEYS = {"peak": "peak_bytes", "allocations": "allocations", "temporary": "temporary",
        "leaked": "live_bytes", "allocated": "allocated_bytes", "frees": "frees",
        "freed": "freed_bytes", "peak-blocks": "peak_blocks", "leaked-blocks": "live_blocks",
        "temporary-bytes": "temporary_bytes"}


def diff(*arguments):
    run = cairn("diff", "--json", *arguments)
    assert run.returncode in (0, 1), run.stderr
    report = json.loads(run.stdout)
    assert run.returncode == int(report["grew"])
    return report


def diff_text(*arguments):
    run = cairn("diff", *arguments)
    assert run.returncode in (0, 1) and run.stderr == b"", run.stderr
    return run.stdout.decode()


def verdict_of(text):
    """The last sentence, which may take several lines."""
    return " ".join(text[text.index("VERDICT"):].split())


def site_name(block):
    return block.site.partition("!")[2].partition("(")[0]


def changed(heap, change):
    """The model with each block changed by a function, or dropped."""
    return Heap([new for new in map(change, heap.blocks) if new], heap.runtime_ms)


def rebuilt(heap):
    """The same run of another build: other lines, folders, and one inlined function."""
    def move(block):
        stack = tuple(f.replace(":", ":9").replace("/src/", "/home/ci/src/")
                      .replace("/opt/", "/usr/lib/x/") for f in block.stack)
        if len(stack) > 1 and "!walk(" in stack[-1]:
            inner = stack[-1].partition("!")[2]
            stack = stack[:-2] + (stack[-2] + "=>" + inner,)
        return dataclasses.replace(block, stack=stack)
    return changed(heap, move)


@pytest.fixture(params=(4, 5))
def old(request):
    return random_heap(request.param, count=500)


def test_a_rebuild_is_no_change(old, draw):
    report = diff("-n", "0", draw(old.draw(), "old.cairn"), draw(rebuilt(old).draw(), "new.cairn"))
    assert not report["grew"] and report["findings"] == []
    assert all(section == [] for section in report["changes"].values())
    assert all(total["class"] == "same" for total in report["totals"].values())


@pytest.mark.parametrize("sort", KEYS)
def test_changes_are_those_of_the_model(old, draw, sort):
    def change(block):
        name = site_name(block)
        if name == "cache":
            return None  # dropped
        if name == "load":
            return dataclasses.replace(block, size=block.size * 2)  # grown
        if name == "emit":
            return dataclasses.replace(block, stack=block.stack[:-1] + (frame("main", 3),))
        return block
    new = changed(rebuilt(old), change)
    paths = draw(old.draw(), "old.cairn"), draw(new.draw(), "new.cairn")
    report = diff("-n", "0", "--sort", sort, *paths)
    key = KEYS[sort]
    was = old.by(site_name)
    new_names = new.by(lambda b: re.split("!|=>", b.site)[-1].partition("(")[0])
    wanted = {}
    for name in set(was) | set(new_names):
        before = was.get(name, {}).get(key, 0)
        after = new_names.get(name, {}).get(key, 0)
        if before != after:
            wanted[name] = (before, after, after - before)
    found = {e["function"]: (e["old"], e["new"], e["change"]) for e in report["changes"][key]}
    assert found == wanted
    sizes = [abs(e["change"]) for e in report["changes"][key]]
    assert sizes == sorted(sizes, reverse=True)
    classes = {e["function"]: e["class"] for e in report["changes"][key]}
    assert classes.get("cache", "gone") == "gone"
    for entry in report["changes"][key]:
        assert sum(stack["change"] for stack in entry["stacks"]) == entry["change"]
        assert entry["stack_count"] == len(entry["stacks"])
    totals = report["totals"][key]
    assert (totals["old"], totals["new"]) == (json_of(paths[0])["totals"][key],
                                              json_of(paths[1])["totals"][key])


def two_runs(draw, old_blocks, new_blocks, old_ms=1000, new_ms=1000, more=""):
    return (draw(Heap(old_blocks, old_ms).draw(), "old.cairn"),
            draw(Heap(new_blocks, new_ms).draw() + more, "new.cairn"))


def blocks(name, count, size, freed_after=None, first=0):
    return [Block("main", (frame("main"), frame(name)), size, first + i,
                  None if freed_after is None else first + i + freed_after) for i in range(count)]


def test_amounts_are_per_unit_and_peaks_are_not(draw):
    paths = two_runs(draw, blocks("load", 10, 100), blocks("load", 30, 100), 1000, 3000)
    report = diff("--per", "second", *paths)
    assert not any(report["totals"][key]["change"] for key in ("allocations", "live_bytes"))
    assert report["totals"]["allocations"]["new"] == 10
    assert report["totals"]["peak_bytes"]["change"] == 2000
    assert [f["cost"] for f in report["findings"]] == ["peak_bytes", "peak_bytes"]
    report = diff("--per", "5:10", *paths)
    totals = report["totals"]["allocations"]
    assert (totals["old"], totals["new"], totals["change"]) == (2, 3, 1)
    assert (report["old"]["units"], report["new"]["units"]) == (5, 10)
    report = diff("--per", "100", *paths)
    assert report["totals"]["allocations"]["new"] == 0.3
    text = diff_text("--per", "100", *paths)
    assert re.search(r"allocations +0\.1 +0\.3 +\+0\.2  \+200\.0%", text)
    assert "All costs except peaks are divided by 100." in text


@pytest.mark.parametrize("threshold, status", [("0%", 1), ("9.9%", 1), ("10%", 0), ("50", 0)])
def test_the_threshold_decides_the_status(draw, threshold, status):
    paths = two_runs(draw, blocks("load", 10, 100), blocks("load", 11, 100))
    run = cairn("diff", "--threshold", threshold, *paths)
    assert run.returncode == status
    verdict = verdict_of(run.stdout.decode())
    if status:
        assert verdict.startswith(f"VERDICT: grew beyond {threshold}: peak +100 B (+10.0%), ")
    else:
        assert verdict == f"VERDICT: nothing grew beyond {threshold.rstrip('%')}%"


def test_one_function_may_grow_while_the_whole_does_not(draw):
    paths = two_runs(draw, blocks("load", 10, 100) + blocks("parse", 10, 100, first=50),
                     blocks("load", 5, 100) + blocks("parse", 15, 100, first=50))
    report = diff(*paths)
    assert report["totals"]["peak_bytes"]["class"] == "same"
    assert {(f["function"], f["whole"]) for f in report["findings"]} == {("parse", False)}
    text = diff_text(*paths)
    assert verdict_of(text).startswith("VERDICT: no total grew beyond 1%; in one function: peak of parse +500 B (+50.0%), ")
    assert not report["grew"] and cairn("diff", *paths).returncode == 0  # code moved
    assert re.search(r"1\. +-500 B  shrunk +1000 B -> +500 B  load  \[app\]", text)


def test_a_leak_out_of_nothing_is_beyond_any_threshold(draw):
    paths = two_runs(draw, blocks("load", 10, 100, 5), blocks("load", 10, 100, 5) +
                     blocks("emit", 1, 8, first=100))
    run = cairn("diff", "--threshold", "1000%", "--sort", "leaked", *paths)
    assert run.returncode == 1
    assert verdict_of(run.stdout.decode()).endswith(": leaked +8 B (from 0)")


def test_what_is_not_known_of_the_peak_is_no_growth(draw):
    paths = two_runs(draw, blocks("load", 10, 100, 50), blocks("load", 11, 100, 50),
                     more="!peak_error_bytes 200\n")
    report = diff("--sort", "peak", *paths)
    total = report["totals"]["peak_bytes"]
    assert (total["change"], total["change_error"], total["class"], report["grew"]) == (100, 200, "grown", False)
    assert "     +100 B  +10.0% ±200 B\n" in diff_text("--sort", "peak", *paths)


def test_blocks_in_flight_hide_no_growth(draw):
    """Few large blocks, each of which may exist a moment longer in the allocator than in the program."""
    paths = two_runs(draw, blocks("load", 10, 100, 50), blocks("load", 11, 100, 50),
                     more="!peak_error_bytes 2000\n!peak_flight_bytes 2000\n")
    report = diff("--sort", "peak", *paths)
    total = report["totals"]["peak_bytes"]
    assert (total["change"], "change_error" in total, report["grew"]) == (100, False, True)
    words = " ".join(diff_text("--sort", "peak", *paths).split())
    assert "peak heap 1000 B 1.07 KiB +100 B +10.0% allocations" in words
    assert "In the allocator the peaks may be up to 0 B (old) and 1.95 KiB (new) higher" in words
    assert "VERDICT: grew beyond 1%: peak +100 B (+10.0%)" in words


@pytest.mark.parametrize("side", [0, 1])
def test_what_either_side_does_not_know_of_its_peak_counts(draw, side):
    """A change within the error of either recording does not count."""
    sizes = [blocks("load", 10, 100, 50), blocks("load", 11, 100, 50)]
    for change, has_grown in ((150, False), (80, True)):
        paths = [draw(Heap(sizes[i], 1000).draw() + (f"!peak_error_bytes {change}\n" if i == side else ""),
                      f"{i}.cairn") for i in range(2)]
        report = diff("--sort", "peak", *paths)
        total = report["totals"]["peak_bytes"]
        assert (total["change_error"], total["change"], report["grew"]) == (change, 100, has_grown)


def test_copies_that_a_compiler_made_are_one_function(draw):
    def named(name):
        return f"process app\nthread main\n/opt/app!main;/opt/app!{name}(a.c:1) 5 50\n"
    for old_name, new_name in (("work.part.0", "work"), ("work.constprop.0.isra.1", "work.cold"),
                               ("work() [clone .part.0]", "work() [clone .cold] [clone .isra.3]")):
        report = diff("-n", "0", draw(named(old_name), "old.cairn"),
                      draw(named(new_name), "new.cairn"))
        assert all(section == [] for section in report["changes"].values())
    report = diff(draw(named("work.v1"), "old.cairn"), draw(named("work.v2").replace(" 5 50", " 6 50"), "new.cairn"))
    assert {e["class"] for e in report["changes"]["allocations"]} == {"new", "gone"}


def test_a_renamed_function_is_no_change(draw):
    """It has the same figures below the same caller. What it leaks now is its own growth."""
    def named(name, freed="0 0"):
        return draw(f"process app\nthread main\n/opt/app!main;/opt/app!{name}(a.c:1) 5 50 {freed} 0 0 5 50 50\n"
                    "/opt/app!main;/opt/app!other(a.c:2) 1 8 0 0 0 0 1 8 8\n", f"{name}.cairn")
    old, new = named("parse_row", "4 40"), named("parse_line", "4 40")
    run = cairn("diff", old, new)
    text = run.stdout.decode()
    assert run.returncode == 0
    assert "RENAMED: the same figures below the same callers\n     parse_row -> parse_line  [app]\n" in text
    assert verdict_of(text) == "VERDICT: nothing grew beyond 1%; renamed: parse_row to parse_line"
    assert " gone " not in text and " new  " not in text.partition("CHANGED")[2]
    report = diff(old, new)
    assert report["renamed"] == [{"function": "parse_line", "module": "/opt/app", "old_function": "parse_row",
                                  "old_module": "/opt/app"}]
    leaking = diff(old, named("parse_text"))
    assert [(e["function"], e["old"], e["new"]) for e in leaking["changes"]["live_bytes"]] == [("parse_text", 10, 50)]


WITH_MODULES = ("/bin/app!main(a.c:1);/bin/app!load(a.c:2)", "/bin/app!main(a.c:1);/lib/a.so!init(i.c:1)",
                "/bin/app!main(a.c:1);/lib/b.so!init(i.c:1)")
WITHOUT = ("!main(a.c:1);!load(a.c:2)", "!main(a.c:1);!init(i.c:1)")


@pytest.mark.parametrize("old, new, changes", [
    ([WITHOUT[0]], [WITH_MODULES[0]], []),
    ([WITH_MODULES[0]], [WITHOUT[0]], []),
    ([WITHOUT[1]], [WITH_MODULES[1]], []),
    (WITH_MODULES[1:], [WITHOUT[1]], [("init", "shrunk")]),
    ([WITHOUT[1]], WITH_MODULES[1:], [("init", "gone"), ("init", "new"), ("init", "new")]),
    ([WITH_MODULES[1]], WITH_MODULES[1:], [("init", "new")]),
    (["/lib/c.so.6!spin"], ["/usr/lib/c.so.6.0.30!spin"], []),  # by soname, and by link target
])
def test_a_function_is_found_where_one_side_knows_no_modules(draw, old, new, changes):
    """Massif's files have no modules. A function of that name in two modules matches neither,
    because it may be either."""
    def drawing(stacks):
        return "process app\nthread main\n" + "".join(f"/bin/app!_start;{stack} 1 10 0 0 0 0 1 10\n" for stack in stacks)
    report = diff("--sort", "peak", draw(drawing(old), "old.cairn"), draw(drawing(new), "new.cairn"))
    assert sorted((entry["function"], entry["class"]) for entry in report["changes"]["peak_bytes"]) == changes


def test_filters_apply_to_both(old, draw):
    new = changed(old, lambda b: dataclasses.replace(b, size=b.size * 3))
    paths = draw(old.draw(), "old.cairn"), draw(new.draw(), "new.cairn")
    for options in (["--thread", "worker-1"], ["--filter-function", "parse"], ["--time", "0..1s"]):
        report = diff(*options, *paths)
        for side, path in zip(("old", "new"), paths):
            wanted = json_of(*options, path)
            assert report[side]["totals"] == wanted["totals"], options
            assert report[side]["selection"]["filter"] == wanted["selection"]["filter"]
    assert "Only data that matches the filter is compared:\n    thread main\n" in diff_text(
        "--thread", "main", *paths)


def test_the_text_is_readable(old, draw):
    new = changed(old, lambda b: dataclasses.replace(b, size=b.size * 3))
    paths = draw(old.draw(), "old.cairn"), draw(new.draw(), "new.cairn")
    text = diff_text(*paths)
    assert max(map(len, text.splitlines())) <= 80
    assert text.splitlines()[0] == "old app --run, for 2.00 s"
    assert "\x1b" not in text
    assert on_terminal("diff", paths[0], paths[0]).count(b"\x1b[") > 4
    assert b"\x1b" not in on_terminal("diff", paths[0], paths[0], more={"NO_COLOR": "1"})
    assert diff_text("-n", "1", *paths).count("\n  1. ") == 2  # calls did not change
    assert diff_text("--sort", "leaked", *paths).count("CHANGED: ") == 1


def test_each_finding_has_a_verdict(draw):
    """The leak is gone and the peak is as before: both are said before all other changes."""
    def run(leaked):
        leaks = [Block("main", (frame("main"), frame("emit")), 65536, i * 100) for i in range(100)] if leaked else []
        return Heap(blocks("load", 4, 8 << 20, 50) + leaks, 10000).draw()
    paths = draw(run(True), "old.cairn"), draw(run(False), "new.cairn")
    text = diff_text(*paths)
    said = " ".join(text[:text.index("peak heap")].split())
    assert "FINDINGS, the largest change first gone -6.25 MiB 6.25 MiB -> 0 B growth Was: emit" in said
    found = {(f["kind"], f["class"], f["function"], f["old"], f["new"]) for f in diff(*paths)["finding_changes"]}
    assert ("growth", "gone", "emit", 100 * 65536, 0) in found and ("peak", "same", "load", 32 << 20, 32 << 20) in found
    back = diff(*reversed(paths))["finding_changes"][0]
    assert (back["kind"], back["class"], back["change"], back["sentence"][:4]) == ("growth", "new", 100 * 65536, "emit")


def test_wrapper_frames_in_a_row_are_one_line(draw):
    """As in the report; the frames outside main are left out."""
    def run(size):
        return (f"process app\nthread main\n/opt/app!_start;/opt/app!main(a.c:1);/opt/app!load(a.c:2);"
                f"/opt/app!std::vector<int>::push_back(v.h:1);/opt/app!std::vector<int>::grow(v.h:2);"
                f"/opt/app!operator new(n.cc:3) 1 {size} 0 0 0 0 1 {size} {size}\n")
    paths = draw(run(1000), "old.cairn"), draw(run(3000), "new.cairn")
    frames = [["std::vector<int>::push_back (+ 2 frames)", "load", "main"],
              ["operator new", "std::vector<int>::grow", "std::vector<int>::push_back", "load", "main"]]
    for options, wanted in zip(([], ["--show-wrappers"]), frames):
        text = diff_text("--sort", "peak", *options, *paths)
        assert re.findall(r"^        (\S.*?)  \[app\]$", text, re.M) == wanted, text


MARKED = "!mark 500 warm\n!mark 1000 step\n!mark 1500 step\n"


@pytest.mark.parametrize("first, second, ends", [
    ("warm", "step#2", ((0, 500), (0, 1500))), ("0.5", "1s", ((0, 500), (0, 1000))),
    ("warm..step#1", "step#1..step#2", ((500, 1000), (1000, 1500))), ("..warm", "1s..", ((0, 500), (1000, 2000))),
])
def test_two_moments_of_one_recording(draw, first, second, ends):
    """What is live then and what was made in the range, as a model says it."""
    heap = Heap(blocks("load", 20, 1000) + [Block("main", (frame("main"), frame("emit")), 100, 20 + i * 100)
                                            for i in range(19)], 2000)
    path = draw(heap.draw() + MARKED, "run.cairn")
    report = diff(path, "--between", first, second)
    for side, (low, high) in zip(("old", "new"), ends):
        alive = [b for b in heap.blocks if low <= b.born_ms < high]
        assert report[side]["totals"]["live_bytes"] == sum(b.size for b in alive), side
    assert report["finding_changes"] == []
    moments = ".." not in first
    assert list(report["changes"]) == (["live_bytes"] if moments else
                                       ["peak_bytes", "allocations", "temporary", "live_bytes"])
    text = diff_text(path, "--between", first, second)
    assert "CHANGED: live bytes\n" in text and "\n  live  " in text and "\n  Old:\n" in text


@pytest.mark.parametrize("arguments, words", [
    (["--between", "warm", "cold"], "'cold' is neither a mark of the recording nor a time"),
    (["--between", "step", "warm"], "the recording has 2 marks 'step'; write step#1 for the first of them"),
    (["--between", "step#3", "warm"], "the recording has 2 marks 'step'"),
    (["--between", "1s..warm", "warm"], "'1s..warm' ends before it starts"),
    (["--between", "warm"], "FILE --between FROM TO"),
    (["--between", "warm", "step#1", "--time", "0..1s"], "--between and --time cannot be combined"),
])
def test_mistakes_between(draw, arguments, words):
    path = draw(Heap(blocks("load", 20, 1000), 2000).draw() + MARKED, "run.cairn")
    run = cairn("diff", path, *arguments)
    assert (run.returncode, run.stdout) == (2, b"") and words in run.stderr.decode(), run.stderr


@pytest.mark.parametrize("arguments, words", [
    (["a"], ["OLD and NEW"]), (["a", "b", "c"], ["OLD and NEW"]),
    (["--per", "0", "a", "b"], ["--per", "900:1000"]), (["--per", "1:", "a", "b"], ["--per"]),
    (["--threshold", "-1%", "a", "b"], ["--threshold", "percentage"]),
    (["--sort", "beauty", "a", "b"], ["--sort"]),
    (["/nowhere", "b"], ["No such file"]),
])
def test_mistakes(arguments, words):
    run = cairn("diff", *arguments)
    said = run.stderr.decode()
    assert (run.returncode, run.stdout, said.count("\n")) == (2, b"", 1), said
    for word in words:
        assert word in said


def test_json_is_as_documented(draw):
    paths = two_runs(draw, blocks("load", 10, 100), blocks("load", 11, 100))
    report = diff(*two_runs(draw, blocks("load", 10, 1 << 20), blocks("load", 11, 1 << 20)))
    page = (ROOT / "docs" / "format" / "json.md").read_text()
    entry = report["changes"]["peak_bytes"][0]
    for group in (report, report["old"], report["totals"]["peak_bytes"], report["findings"][0],
                  report["finding_changes"][0], entry, entry["stacks"][0], entry["stacks"][0]["frames"][0]):
        for field in group:
            assert f"`{field}`" in page, field
    assert report["version"] == 3


def run_of(*programs):
    """A run in which each program allocates 1000 bytes."""
    return "".join(f"process {name}\nthread main\n{name}!main;{name}!{name[:3]}_work 1 1000 0 0 0 0 1 1000 1000\n"
                   for name in programs)


@pytest.mark.parametrize("before, after, is_same", [
    (["app-1"], ["app-2"], True),
    (["app-1", "helper"], ["app-2", "helper"], True),
    (["app-1", "sub-1"], ["app-2", "sub-2"], True),
    (["app", "sub-1"], ["app", "sub-2"], True),
    (["app-1", "sub-1"], ["app-2", "sub-2", "xyz"], False),  # which of the two is it?
    (["app", "sub-1", "xyz-1"], ["app", "sub-2", "xyz-2"], False),
])
def test_renamed_executables_are_reported_by_their_role(draw, before, after, is_same):
    """The main program, and one other if it is the only one."""
    text = diff_text(draw(run_of(*before), "old.cairn"), draw(run_of(*after), "new.cairn"))
    shown = text[text.index("CHANGED"):text.index("VERDICT")]
    assert ("_work" not in shown) == is_same, text
