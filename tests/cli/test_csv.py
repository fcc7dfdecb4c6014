# SPDX-License-Identifier: MIT
"""`--csv` of report and diff, read by Python's csv module and compared with `--json`."""
import csv
import io

import pytest

from drawn import cairn, json_of
from heap_model import random_heap

ALL = ("-n", "0")
COSTS = ("costs", "self", "inclusive", "total")


@pytest.fixture(scope="module", name="run")
def fixture_run(draw_once):
    return draw_once(random_heap(21).draw()), draw_once(random_heap(22).draw())


def csv_of(command, *arguments):
    run = cairn(command, "--csv", *arguments)
    assert run.returncode in (0, 1) and run.stderr == b"", run.stderr
    lines = run.stdout.decode().split("\r\n")
    assert lines.pop() == "" and not any("\n" in line for line in lines)
    header, *rows = csv.reader(lines, strict=True)
    assert all(len(row) == len(header) for row in rows)
    return [dict(zip(header, row)) for row in rows]


def cell(value):
    """A JSON value as a cell."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ";".join(frame["function"].replace(";", ":") for frame in value)
    text = "" if value is None else str(value)
    return "'" + text if isinstance(value, str) and text[:1] in ("=", "+", "-", "@") else text


def flat(entry, **tags):
    """A row of a JSON table as a row of the CSV."""
    row = dict(tags)
    for key, value in entry.items():
        stem = key.removeprefix("old_")
        if stem in COSTS:
            prefix = (key.removesuffix("costs") + "_").replace("__", "_").lstrip("_")
            row.update({prefix + cost: cell(number) for cost, number in value.items()})
        elif key not in ("stacks", "stacks_shown", "mappings"):
            row[key] = cell(value)
    return row


def test_sections_are_the_lists_of_call_sites(run):
    for option, cost in (("-p", "peak_bytes"), ("-a", "allocations"), ("-T", "temporary")):
        wanted = [flat(site) for site in json_of(*ALL, run[0])["top"][cost]]
        assert len(wanted) > 3
        assert csv_of("report", option, run[0]) == wanted
    assert csv_of("report", run[0]) == csv_of("report", "-p", run[0])
    assert csv_of("report", "--sort", "frees", run[0]) == [
        flat(site) for site in json_of(*ALL, "--sort", "frees", run[0])["top"]["frees"]]


def test_leaks_have_their_growth(run):
    wanted = json_of(*ALL, "--sort", "leaked", run[0])["leaks"]["leaks"]
    assert wanted and csv_of("report", "-l", run[0]) == [flat(leak) for leak in wanted]


def test_what_is_unknown_is_an_empty_cell(run):
    for options, unknown in ((["--group-by", "size"], {"peak_bytes", "frees", "live_bytes", "temporary"}),
                             (["--lifetime", "0.."], {"peak_bytes", "temporary", "own_peak_bytes"})):
        rows = csv_of("report", *options, run[0])
        assert len(rows) > 3
        for row in rows:
            assert {row[cost] for cost in unknown} == {""}, options
            assert int(row["allocations"]) > 0


def test_the_limit_is_that_of_json_if_given(run):
    wanted = json_of("-n", "2", run[0])["top"]["peak_bytes"]
    assert csv_of("report", "-n", "2", run[0]) == [flat(site) for site in wanted]


@pytest.mark.parametrize("view, table", [
    (["--group-by", "function"], lambda report: map(flat, report["groups"]["groups"])),
    (["--group-by", "size"], lambda report: map(flat, report["groups"]["groups"])),
    (["--functions"], lambda report: map(flat, report["functions"]["functions"])),
    (["--tree", "top-down"], lambda report: map(flat, report["tree"]["nodes"])),
    (["--tree", "bottom-up"], lambda report: map(flat, report["tree"]["nodes"])),
    (["--callers", "load"], lambda report: [
        flat(row, of=entry["function"], table=table) for entry in report["callers"]
        for table in ("callers", "callees") for row in entry[table]]),
    (["--histogram"], lambda report: [
        flat(row, histogram=key) for key in ("sizes", "lifetimes") for row in report[key]["buckets"]]),
    (["-r"], lambda report: map(flat, report["rss"]["breakdowns"])),
], ids=lambda value: "".join(value) if isinstance(value, list) else "")
def test_views(run, view, table):
    wanted = list(table(json_of(*ALL, *view, run[0])))
    assert csv_of("report", *view, run[0]) == wanted


@pytest.mark.parametrize("view, table", [("--functions", "functions"), ("--tree=top-down", "nodes")])
def test_views_of_a_comparison_have_the_old_costs(run, view, table):
    new, old = run
    report = json_of(*ALL, view, "--diff", old, new)
    wanted = [flat(row) for row in report[{"nodes": "tree"}.get(table, table)][table]]
    assert any(key.startswith("old_") for key in wanted[0])
    assert csv_of("report", view, "--diff", old, new) == wanted


def test_changes(run):
    new, old = run
    report = json_of(*ALL, "--diff", old, new)
    wanted = [flat(row, cost=cost) for cost, rows in report["changes"].items() for row in rows]
    assert len(wanted) > 3 and any(row["change"].startswith("-") for row in wanted)
    assert csv_of("diff", old, new) == csv_of("report", "--diff", old, new) == wanted


def test_names_are_quoted_and_no_formulas(draw):
    names = ['f(int,"x")', "=sum", "a:b", "-x"]
    path = draw("process app\nthread main\n" +
                "".join(f"main;{name} {n + 1} 8 0 0 0 0 1 8 8\n" for n, name in enumerate(names)))
    assert [row["function"] for row in csv_of("report", "-a", path)] == ["'-x", "a:b", "'=sum", names[0]]


def test_an_empty_recording_has_a_header(draw):
    run = cairn("report", "--csv", draw(""))
    assert (run.returncode, run.stdout[:19], run.stdout.count(b"\r\n")) == (0, b"function,file,line,", 1)


@pytest.mark.parametrize("options", [["-p", "-a"], ["--all"], ["--functions", "--histogram"],
                                     ["--json"], ["--sort", "frees", "-p"]])
def test_one_table_at_a_time(run, options):
    done = cairn("report", "--csv", *options, run[0])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"cairn: --csv ") and done.stderr.count(b"\n") == 1
