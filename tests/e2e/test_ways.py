# SPDX-License-Identifier: MIT
"""What each way into a program gives: tests/programs/attach/every_part.c states what is in each part of its
report, and the table in docs/user/attach.md which of it each way has. The program runs once by each way, and
every part is compared with both.

A row of the table has one check, which returns whether the part is there. Where it is, it must be the truth.
"""
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from waiting import DEADLINE_SECONDS, wait_until

MIB = 1 << 20

# The way's column in the table; the program; options, None for an attach.
WAYS = {
    "preloaded": ("preloaded", "glibc", []),
    "injected": ("at start", "glibc", ["--all-allocators"]),
    "attached": ("attached", "glibc", None),
    "static": ("static", "static", []),
    "musl": ("musl", "musl", []),
    "static musl": ("musl", "musl_static", []),
    "jemalloc": ("allocator inside", "jemalloc", []),
    "tcmalloc": ("allocator inside", "tcmalloc", []),
    "mimalloc": ("allocator inside", "mimalloc", []),
}

# Of each function: allocations, their bytes, frees, temporary ones, and leaked blocks.
FUNCTIONS = {
    "keep_rows": (100, 100 * 1000, 0, 0, 100),
    "churn": (50, 50 * 200, 50, 50, 0),
    "hold_most": (1, 3000000, 1, 1, 0),
    "grow": (2, 1000 + 5000, 1, 1, 1),
    "work": (20, 20 * 400, 0, 0, 20),
    "[pool nodes]": (3, 3 * 64, 1, 0, 2),
    "in_child": (10, 10 * 700, 0, 0, 10),
}
LEAKED_BYTES = {"keep_rows": 100000, "grow": 5000, "work": 8000, "[pool nodes]": 128, "in_child": 7000}
COSTS = ("allocations", "allocated_bytes", "frees", "temporary", "live_blocks")
PEAK_BYTES = 100 * 1000 + 3000000
EXACT_ATTEMPTS = 3


class Run:
    """The program by one way: what it prints, and its report."""

    def __init__(self, scratch, name):
        self.name = name
        self.column, program, options = WAYS[name]
        self.program = PROGRAMS / "attach" / f"every_part_{program}"
        self.path = scratch / f"{name}.cairn"
        record = [CAIRN, "record", "-q", "--blocks", "-o", self.path]
        start = [*record, *options, "--", self.program] if options is not None else [self.program, "wait"]
        self.processes = [subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())]
        if options is None:
            self.processes.append(subprocess.Popen([*record, "-p", str(self.processes[0].pid)], env=environment()))
            wait_until(self.is_answered, "the recorder's answer")

    def is_answered(self):
        return subprocess.run([CAIRN, "ctl", self.path, "status"], env=environment(), check=False,
                              capture_output=True).returncode == 0

    def finish(self):
        output = self.processes[0].communicate(b"\n", timeout=DEADLINE_SECONDS)[0].decode()
        assert [process.wait(DEADLINE_SECONDS) for process in self.processes] == [0] * len(self.processes)
        self.told = {word: int(number) for word, number in (line.split() for line in output.splitlines())}
        self.recording = Recording(self.path, self.processes[0])
        self.recording.assert_whole()
        self.report = self.recording.report_json()
        self.functions = self.recording.report_json("--functions")["functions"]["functions"]
        self.histogram = self.recording.report_json("--histogram")
        self.leaks = self.recording.report_json("--sort", "leaked")["leaks"]["leaks"]
        self.blocks = self.recording.report_json("--blocks")["blocks"]["end"]

    def sites(self):
        """The frames and costs of each stack that allocated."""
        return list(self.recording.stacks())


@pytest.fixture(name="runs", scope="module")
def fixture_runs(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("ways")
    runs = {}
    try:
        for name in WAYS:
            runs[name] = Run(scratch, name)
        for run in runs.values():
            run.finish()
        yield runs
    finally:
        for run in runs.values():
            for process in run.processes:
                process.kill()
                process.communicate()


def table():
    """{row: {column: cell}} of the table in the guide."""
    text = (ROOT / "docs/user/attach.md").read_text(encoding="utf-8")
    section = text.split("## What each way gives\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines()
            if line.startswith("|")]
    columns = rows[0][1:]
    return {row[0]: dict(zip(columns, row[1:], strict=True)) for row in rows[2:]}


def costs_by_function(run):
    """The costs of each function of the program, or pool, and those of the others."""
    found, others = {}, []
    for costs, frames in run.recording.stacks():
        names = [frame["function"] or frame["module"] for frame in frames]
        mine = next((name for name in names if name in FUNCTIONS), None)
        if mine is None:
            others.append((costs, names))
            continue
        assert names[-1] not in FUNCTIONS or names[-1] == "work", names  # stacks go on to main, or the thread's entry
        sums = found.setdefault(mine, dict.fromkeys([*COSTS, "live_bytes", "peak_bytes"], 0))
        for name in sums:
            sums[name] += costs[name]
    return found, others


def has_allocations(run):
    found, others = costs_by_function(run)
    assert {name: tuple(costs[cost] for cost in COSTS) for name, costs in found.items()} == FUNCTIONS
    assert {name: costs["live_bytes"] for name, costs in found.items() if costs["live_bytes"]} == LEAKED_BYTES
    # Those of libc and the C++ runtime at the start, and libc's for a thread.
    assert sum(costs["allocations"] for costs, _ in others) <= 10, others
    totals = run.report["totals"]
    for cost in COSTS:
        assert totals[cost] == sum(costs[cost] for costs in [*found.values(), *(costs for costs, _ in others)]), cost
    others_bytes = sum(costs["peak_bytes"] for costs, _ in others)
    assert totals["peak_bytes"] == PEAK_BYTES + others_bytes
    assert sum(costs["peak_bytes"] for costs in found.values()) == PEAK_BYTES
    assert totals["unknown_frees"] == 0
    return True


def has_stacks(run):
    """Whole ones: from the function to main."""
    for costs, frames in run.recording.stacks():
        names = [frame["function"] for frame in frames]
        for name in set(names) & (set(FUNCTIONS) - {"work"}):
            assert "main" in names[names.index(name):], names
            assert all(frame["line"] for frame in frames[:names.index("main") + 1]
                       if frame["function"] in {"main", *FUNCTIONS} - {"[pool nodes]"}), frames
    return True


def has_threads(run):
    threads = {(thread["pid"], thread["name"]): thread for thread in run.report["threads"]}
    program = run.program.name[:15]
    assert set(threads) == {(run.told["pid"], program), (run.told["pid"], "worker"), (run.told["child"], program)}
    worker = threads[run.told["pid"], "worker"]
    assert worker["costs"]["allocations"] == FUNCTIONS["work"][0]
    assert worker["costs"]["allocated_bytes"] == FUNCTIONS["work"][1]
    return True


def processes_of(run):
    return {process["pid"]: process for process in run.report["processes"]}


def has_children(run):
    processes = processes_of(run)
    assert set(processes) == {run.told["pid"], run.told["child"]}
    child = processes[run.told["child"]]
    assert child["forked"] and child["parent_pid"] == run.told["pid"]
    assert (child["costs"]["allocations"], child["costs"]["live_bytes"]) == (10, 7000)
    assert processes[run.told["pid"]]["attached"] == (run.name == "attached")
    return True


def has_exact_ends(run):
    """On a busy machine the recorder's clock may have stood still as one of them ended, and says so: then once more."""
    for number in range(1, EXACT_ATTEMPTS + 1):
        processes = processes_of(run).values()
        assert not any(process["killed"] for process in processes)
        assert all(process["ended"] for process in processes)
        if number == EXACT_ATTEMPTS or all(process["end_error_ms"] == 0 for process in processes):
            break
        scratch = run.path.parent / f"{run.name}, again {number}"  # the ways share the folder
        scratch.mkdir()
        run = Run(scratch, run.name)
        run.finish()
    return all(process["end_error_ms"] == 0 for process in processes)


def last_breakdown(run):
    breakdown = run.report["rss"]["breakdowns"][-1]
    assert breakdown["is_last"]
    kinds = [kind["key"] for kind in run.report["rss"]["kinds"]]
    assert sum(breakdown[f"{kind}_bytes"] for kind in kinds) == breakdown["rss_bytes"]
    return breakdown


def mappings_of(run, kind):
    """The functions that mapped memory of that kind, and how much is resident of it."""
    found = {}
    for mapping in last_breakdown(run)["mappings"]:
        if mapping["kind"] == kind:
            names = tuple(frame["function"] for frame in mapping["frames"])
            found[names] = found.get(names, 0) + mapping["rss_bytes"]
    return found


def has_own_mappings(run):
    mapped = mappings_of(run, "mapped")
    mine = {names: resident for names, resident in mapped.items() if "map_cache" in names}
    assert mine in ({}, {names: 8 * MIB for names in mine}), mapped
    assert not any("map_scratch" in names for names in mapped), mapped
    if mine:
        (names,) = mine
        assert names[:2] == ("map", "map_cache") and "main" in names
    breakdown = last_breakdown(run)
    assert breakdown["kept_bytes"] < 6 * MIB and breakdown["rest_bytes"] < MIB // 8, breakdown
    return bool(mine)


def has_stacks_of_threads_apart(run):
    mapped = mappings_of(run, "mapped")
    assert last_breakdown(run)["stack_bytes"] > 0
    return not any(name and "pthread_create" in name for names in mapped for name in names)


def has_last_breakdown(run):
    breakdown = last_breakdown(run)
    assert breakdown["requested_bytes"] <= sum(LEAKED_BYTES.values()) + 80000
    return breakdown["at_exit"]


def has_room(run):
    return run.told["room"] == 1


def has_reports(run):
    marks = [(mark["kind"], mark["text"]) for mark in run.report["marks"]]
    events = [(entry["name"], entry["events"], entry["weight"])
              for entry in run.report["adhoc"]["entries"]]
    leaves = {frames[0]["function"] for _, frames in run.recording.stacks()}
    pools = [leaf for leaf in leaves if leaf.startswith("[pool")]
    if not marks + events + pools:
        return False
    assert marks == [("phase", "fill"), ("mark", "filled"), ("phase", "end")]
    assert events == [("[event sent]", 1, 512)] * 2
    assert pools == ["[pool nodes]"]
    return True


def has_statistics(run):
    """They are of the process alone."""
    if run.told["stats"] == 0:
        return False
    assert run.told["stats"] == processes_of(run)[run.told["pid"]]["costs"]["allocations"]
    return True


CHECKS = {
    "allocations and frees, exactly": has_allocations,
    "call stacks": has_stacks,
    "threads with their names": has_threads,
    "forked children": has_children,
    "exact ends of processes (`exit`, `_exit`, `quick_exit`)": has_exact_ends,
    "the program's own mappings, with their stacks": has_own_mappings,
    "stacks of threads apart from these": has_stacks_of_threads_apart,
    "the last breakdown of memory, in exit": has_last_breakdown,
    "room for a limit that the program sets (`RLIMIT_AS`)": has_room,
    "pools, events, marks and phases of `cairn.h`": has_reports,
    "statistics of `cairn.h`": has_statistics,
}

# Rows that need programs of their own: test_ways_apart.py.
APART = {"`cairn_api_v1` by `dlsym`, without `cairn.h`", "functions of Python (`--python`)",
         "an allocator's functions with names of their own", "names of JIT code", "Go"}


def expected(cell, name):
    """What the table says of a way: a cell is yes, no, or which of the column's ways has it."""
    if cell in ("yes", "no"):
        return cell == "yes"
    assert cell == "dynamic only", cell
    return not name.startswith("static")


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("row", CHECKS)
def test_a_way_gives_what_the_guide_says(runs, row, name):
    run = runs[name]
    assert CHECKS[row](run) == expected(table()[row][run.column], name)


def test_the_guide_has_each_row_and_way():
    rows = table()
    assert set(rows) == {*CHECKS, *APART}
    assert all(set(cells) == {column for column, *_ in WAYS.values()} for cells in rows.values())


@pytest.mark.parametrize("name", WAYS)
def test_the_other_sections_agree(runs, name):
    """What is derived from the same events: sizes, lifetimes, blocks, functions, modules, findings."""
    run = runs[name]
    found, others = costs_by_function(run)
    totals = run.report["totals"]
    sizes = run.histogram["sizes"]["buckets"]
    assert sum(bucket["blocks"] for bucket in sizes) == totals["allocations"]
    assert sum(bucket["bytes"] for bucket in sizes) == totals["allocated_bytes"]
    lifetimes = run.histogram["lifetimes"]["buckets"]
    assert sum(bucket["blocks"] for bucket in lifetimes) == totals["frees"]
    assert sum(block["size_bytes"] for block in run.blocks) == totals["live_bytes"]
    assert len(run.blocks) == totals["live_blocks"]
    assert sum(leak["costs"]["live_bytes"] for leak in run.leaks) == totals["live_bytes"]
    functions = {function["function"]: function for function in run.functions}
    assert set(FUNCTIONS) <= set(functions)
    assert functions["main"]["inclusive"]["allocations"] >= sum(
        costs["allocations"] for function, costs in found.items() if function != "work")
    (program,) = [module for module in run.report["modules"] if module["is_executable"]]
    assert program["path"] == str(run.program)
    assert program["frames_with_function"] == program["frames"]
    assert run.report["run"]["program"] == str(run.program)
    assert (totals["processes"], totals["threads"]) == (2, 3)
    assert run.report["unrecorded"]["execs"] == 0
    assert {item["kind"] for item in run.report["findings"]["items"]} >= {"peak"}
    hooked = {hook["function"] for hook in run.report["hooks"] if not hook["reason"]}
    assert bool(hooked) == (name != "preloaded")
    assert name == "preloaded" or {"munmap", "setrlimit"} <= hooked


def test_a_program_that_was_left_is_on_its_own(scratch):
    """After a detach the calls of cairn.h do nothing, and the recording has none of them."""
    run = Run(scratch, "attached")
    subprocess.run([CAIRN, "ctl", run.path, "detach"], env=environment(), check=True, capture_output=True,
                   timeout=DEADLINE_SECONDS)
    assert run.processes[1].wait(DEADLINE_SECONDS) == 0
    output = run.processes[0].communicate(b"\n", timeout=DEADLINE_SECONDS)[0].decode().split()
    assert run.processes[0].returncode == 0
    assert output[output.index("stats") + 1] == "0"
    report = Recording(run.path, run.processes[1]).report
    assert (report["marks"], report["totals"]["allocations"]) == ([], 0)
