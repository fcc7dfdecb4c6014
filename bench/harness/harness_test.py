# SPDX-License-Identifier: MIT
"""Tests of the harness's arithmetic, and of the claims that measure and the workloads make.

Programs are searched in $CAIRN_BUILD/bench (ctest sets it).
"""
import dataclasses
import json
import os
import pathlib
import subprocess

import pytest

from harness import (curves, instructions, measuring, programs, promises, results, rounds, sittings,
                     spread, tables, tools)

BENCH = pathlib.Path(os.environ.get("CAIRN_BUILD", "build")).resolve() / "bench"
ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "performance.md"
README = ROOT / "README.md"


MACHINE = {"cpu": "c", "cores": 2, "memory_gib": 4.0, "kernel": "k", "libc": "l", "system": "s",
           "virtual": True, "date": "2026-01-02", "commit": "abc", "load": 0.1}


def sitting(load=0.1, divisor=1, **walls):
    """A sitting whose tools have these wall times; None is a failed round."""
    return {"machine": MACHINE | {"load": load}, "scale": 1, "tools": {
        tool: {"divisor": divisor if tool != "bare" else 1, "outcomes": [
            dataclasses.asdict(measuring.Outcome(wall=wall, ns_per_op=wall and wall * 10,
                                                 failure=None if wall else "status 1"))
            for wall in rounds_]}
        for tool, rounds_ in walls.items()}}


HEADING = {"title": "t", "unit": "pair"}


def entry(**walls):
    """A workload's entry after one sitting."""
    return {**HEADING, "sittings": [sitting(**walls)]}


def results_of(name, *of):
    """Results with the sittings of one workload, the oldest first."""
    data = {"workloads": {}, "curves": {}, "instructions": {}}
    for one in of:
        results.add_sitting(data["workloads"], name, HEADING, one)
    return data


def test_a_ratio_is_formed_inside_each_round():
    found = results.ratio(entry(bare=[1, 10, 2], cairn=[2, 20, 6]), "cairn")
    assert (found.median, found.low, found.high) == (2, 2, 3)


def test_a_failed_round_has_no_ratio_but_the_others_count():
    found = results.ratio(entry(bare=[1, 1], cairn=[None, 3]), "cairn")
    assert (found.median, found.count) == (3, 1)


def test_nothing_measured_gives_no_figure():
    assert spread.spread([None, None]) is None
    assert results.ratio(entry(bare=[1]), "cairn") is None


def test_less_work_is_compared_by_the_workload_clock():
    data = {**HEADING, "sittings": [sitting(divisor=6, bare=[10], heaptrack=[5])]}
    data["sittings"][0]["tools"]["heaptrack"]["outcomes"][0]["ns_per_op"] = 2000
    assert results.ratio(data, "heaptrack").median == 20


def test_a_newer_sitting_replaces_only_the_tools_it_ran():
    kept = results_of("w", sitting(bare=[1, 1], cairn=[2, 2], dhat=[50, 70]),
                      sitting(bare=[10], cairn=[30]))["workloads"]["w"]
    assert results.ratio(kept, "cairn").median == 3
    assert results.ratio(kept, "dhat").median == 60, "judged by the bare runs of its own sitting"
    assert results.median(kept, "bare", "wall") == 10, "those beside cairn"
    assert [sorted(one["tools"]) for one in kept["sittings"]] == [["bare", "dhat"], ["bare", "cairn"]]


def test_the_bare_runs_shown_are_those_that_cairn_is_judged_by():
    kept = results_of("w", sitting(bare=[10], cairn=[30]), sitting(bare=[1], dhat=[9]))
    assert results.median(kept["workloads"]["w"], "bare", "wall") == 10


def test_a_sitting_with_no_tool_left_goes():
    kept = results_of("w", sitting(bare=[1], cairn=[2]), sitting(bare=[10], cairn=[30]))
    assert len(kept["workloads"]["w"]["sittings"]) == 1


def test_what_stood_in_for_a_failed_tool_goes_with_it():
    failed = sitting(**{"bare": [1], "heaptrack": [None], "heaptrack-raw": [4]})
    kept = results_of("w", failed, sitting(bare=[1], heaptrack=[5]))["workloads"]["w"]
    assert results.tools_of(kept) == {"bare", "heaptrack"}


def test_figures_of_two_sittings_are_compared_in_bare_runs():
    slow, fast = sitting(bare=[4], heaptrack=[5]), sitting(bare=[2], cairn=[3])
    slow["tools"]["heaptrack"]["outcomes"][0]["report"] = 8
    fast["tools"]["cairn"]["outcomes"][0]["report"] = 1
    kept = results_of("w", slow, fast)["workloads"]["w"]
    assert promises.report_vs_heaptrack(kept) == 0.25


def test_other_results_fill_in_only_what_is_missing():
    mine = results_of("w", sitting(bare=[10], cairn=[30]))
    results.fill_in(mine, results_of("w", sitting(bare=[1], cairn=[9], dhat=[70])))
    results.fill_in(mine, results_of("v", sitting(bare=[1], cairn=[5])))
    assert results.ratio(mine["workloads"]["w"], "cairn").median == 3
    assert results.ratio(mine["workloads"]["w"], "dhat").median == 70
    assert results.ratio(mine["workloads"]["v"], "cairn").median == 5


def test_results_of_one_sitting_an_entry_are_still_read(tmp_path):
    path = tmp_path / "old.json"
    old = HEADING | sitting(bare=[2], cairn=[3])
    path.write_text(json.dumps({"workloads": {"w": old}, "instructions": {}, "curves": {
        "depth": {"title": "d", "axis": "frames", "unit": "pair", "points": {"10": old}}}}))
    data = results.load(path)
    assert results.ratio(data["workloads"]["w"], "cairn").median == 1.5
    assert results.ratio(data["curves"]["depth"]["points"]["10"], "cairn").median == 1.5
    results.save(path, data)
    assert results.load(path) == data


def test_each_sitting_is_listed_and_a_loud_one_named():
    data = results_of("w", sitting(bare=[1], dhat=[9]), sitting(load=2.0, bare=[1], cairn=[2]))
    text = sittings.sittings_text(data)
    assert "commit abc, load average before 0.10: bare, DHAT on w" in text
    assert "load average before 2.00 **(not quiet)**: bare, cairn on w" in text
    assert "judge no promise" in text
    quiet = results_of("w", sitting(bare=[1], cairn=[2]))
    results.add_sitting(quiet["instructions"], "w", HEADING, sitting(load=9.0, bare=[1]))
    assert "not quiet" not in sittings.sittings_text(quiet), "counts do not depend on the load"


def test_the_tables_show_the_tools_of_all_sittings():
    data = results_of("cc1plus", sitting(**{"bare": [1], "heaptrack": [None], "heaptrack-raw": [4]}),
                      sitting(bare=[2], cairn=[3]))
    row = next(line for line in tables.slowdown_table(data).splitlines() if "| cc1plus" in line)
    assert row.split(" | ")[1:] == ["2.00 s; 20.0 ns a pair", "1.50",
                                    "failed; heaptrack -r: 4.00 |"]
    costs = [line.split(" | ")[:3] for line in tables.cost_table(data).splitlines()[2:]]
    title = programs.find_workload("cc1plus").title
    assert costs == [[f"| **{title}**", "bare", "2.00"], ["| ", "cairn", "3.00"],
                     ["| ", "heaptrack -r", "4.00"]]


@pytest.mark.parametrize("figure, verdict", [
    (None, "not measured"), (3.0, "kept"), (3.01, "**missed**")])
def test_a_promise_is_judged_by_its_limit(figure, verdict):
    assert promises.Promise("churn-30-1", "x", 3.0, None).judge(figure) == verdict


def test_a_promise_says_when_its_peer_failed():
    promise = promises.Promise("cc1plus", "x", 1.0, None, peer="heaptrack")
    assert promise.judge(None, entry(bare=[1], heaptrack=[None])) == "heaptrack failed"
    assert promise.judge(None, entry(bare=[1], heaptrack=[2])) == "not measured"
    assert promise.judge(None) == "not measured"


def test_only_the_named_section_of_a_document_is_replaced():
    document = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n<!-- bench:y -->\n<!-- /bench:y -->\n"
    assert tables.replace_section(document, "x", "new") == (
        "a\n<!-- bench:x -->\n\nnew\n\n<!-- /bench:x -->\nb\n<!-- bench:y -->\n<!-- /bench:y -->\n")
    with pytest.raises(ValueError):
        tables.replace_section(document, "z", "new")


def test_each_section_is_in_one_document():
    found = [name for document in (DOCUMENT, README)
             for name in tables.sections_of(document.read_text()) if name in tables.SECTIONS]
    assert sorted(found) == sorted(tables.SECTIONS)


def test_a_document_gets_the_sections_it_has(tmp_path):
    document = tmp_path / "x.md"
    document.write_text("a\n<!-- bench:redis -->\nold\n<!-- /bench:redis -->\n"
                        "<!-- bench:web -->\nweb's\n<!-- /bench:web -->\n")
    tables.update_document(document, results_of("unused"))
    assert document.read_text() == ("a\n<!-- bench:redis -->\n\nnot measured\n\n"
                                    "<!-- /bench:redis -->\n<!-- bench:web -->\nweb's\n"
                                    "<!-- /bench:web -->\n")


def test_the_comparison_names_the_host_and_what_failed():
    data = results_of("cc1plus", sitting(**{"bare": [1], "heaptrack": [None], "heaptrack-raw": [4]}),
                      sitting(bare=[2], cairn=[3]))
    assert tables.comparison_table(data).splitlines()[2:] == [
        "| GCC compiling a large C++ file | 1.50 |  | 4.0 † |  |", "",
        "Processor time is that of all processes, the recorder included. †: recording alone; reading it failed.",
        "c, 2 processors."]


def test_processor_time_is_that_of_target_and_recorder():
    one = sitting(bare=[1, 2], cairn=[1, 2])
    for tool, target, recorder in (("bare", 2.0, 0.0), ("cairn", 3.0, 1.0)):
        for outcome in one["tools"][tool]["outcomes"]:
            outcome |= {"target_cpu": target, "recorder_cpu": recorder}
    found = results.processor_ratio({**HEADING, "sittings": [one]}, "cairn")
    assert (found.median, found.count) == (2, 2)
    assert results.processor_ratio(entry(bare=[1], cairn=[2]), "cairn") is None


def test_single_calls_are_shown_by_threads():
    one = sitting(bare=[1], cairn=[2])
    one["tools"]["cairn"]["outcomes"][0] |= {"malloc_p9999_ns": 1500, "malloc_max_ns": 2_000_000,
                                             "free_p9999_ns": 500, "free_max_ns": 700}
    data = results_of("latency-8", one)
    assert tables.calls_table(data).splitlines()[2:] == [
        "| 8 threads | bare |  |  |  |  |", "|  | cairn | 1.5 | 2,000.0 | 0.5 | 0.7 |"]
    assert promises.malloc_p9999_ms(data["workloads"]["latency-8"]) == 0.0015


def test_sampling_profilers_are_compared_with_the_same_allocator():
    data = results_of("list-1", sitting(**{
        "bare": [10], "null": [20], "cairn-sample": [22], "tcmalloc": [5], "tcmalloc-sample": [6]}))
    row = tables.sampling_table(data).splitlines()[-1]
    assert row == "| list push/pop, 1 thread | 2.00 | 2.20 | 1.10 | 0.50 | 1.20 |  |  |"
    assert promises.sampled_against("null")(data["workloads"]["list-1"]) == pytest.approx(1.1)
    assert "--sample" not in tables.slowdown_table(data).splitlines()[0]


def test_floors_are_shown_beside_what_is_wanted():
    data = results_of("lua", sitting(bare=[10], null=[10.1], walk=[11], cairn=[13]))
    assert tables.floor_table(data).splitlines()[2:] == [
        "| lua, tables and strings | 1.20 | 1.01 | 1.10 | 1.30 |"]
    assert "walk" not in tables.slowdown_table(data) + tables.cost_table(data)
    one = sitting(bare=[1], walk=[1], cairn=[1])
    for tool, rate in (("bare", 100), ("walk", 93), ("cairn", 60)):
        one["tools"][tool]["outcomes"][0]["throughput"] = rate
    assert tables.floor_table(results_of("redis", one)).splitlines()[2:] == [
        "| redis SET/LPUSH, 16 pipelined | 12 % lost |  | 7 % | 40 % |"]
    assert tables.floor_table(results_of("lua", sitting(bare=[1], cairn=[2]))) == tables.EMPTY


def test_every_floor_has_a_promise_of_time():
    judged = {promise.workload for promise in promises.PROMISES
              if promise.figure in (promises.slowdown, promises.throughput_lost)}
    assert set(tools.FLOORS) <= judged


def test_threads_without_processors_are_left_out(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3, 5})
    said = []
    chosen = [tools.find_tool("bare")]
    assert curves.fitting(curves.SCALING, 2, None, chosen, said.append) == chosen
    assert curves.SCALING.workload(2).processors() == ["taskset", "-c", "3,5"]
    assert curves.fitting(curves.SCALING, 4, None, chosen, said.append) == []
    assert said == ["  4 threads are left out: they need 4 processors, and this machine has 2"]


def test_of_several_short_runs_the_median_counts(monkeypatch):
    walls = iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(rounds, "run_once", lambda *_: measuring.Outcome(wall=next(walls)))
    workload = type("Workload", (), {"repeats": 3})
    assert rounds.run_typical(None, None, workload).wall == 2.0


def test_callgrind_costs_are_self_costs_of_their_object():
    text = "\n".join(["ob=(1) /lib/a.so", "fn=(1) f", "10 5", "+1 7", "cob=(2) /lib/b.so",
                      "cfn=(2) g", "calls=3 20", "* 1000", "12 1", "ob=(2)", "fn=(2)", "* 40"])
    assert instructions.self_cost_by_object(text) == {"/lib/a.so": 13, "/lib/b.so": 40}


def test_only_operations_of_one_thread_are_counted():
    countable = {w.name for w in programs.WORKLOADS if instructions.is_countable(w)}
    assert countable == {"churn-30-1", "churn-100-1", "churn-restless", "deep", "list-1", "handover",
                         "live", "stacks", "growth"}


def test_instructions_are_summed_by_whose_they_are():
    data = results_of("unused")
    cost = {"libc.so.6": 150.0, "list": 24.0, "libheaptrack_preload.so": 700.0,
            "libunwind.so.8.0.1": 1000.0}
    results.add_sitting(data["instructions"], "list-1", HEADING, {
        "machine": MACHINE, "scale": 1,
        "tools": {"bare": {"libc.so.6": 100.0}, "heaptrack": cost, "cairn": {"failure": "status 1"}}})
    rows = [line.split(" | ")[1:] for line in tables.instruction_table(data).splitlines()[2:]]
    assert rows == [["bare", "100", "100", "", " |"], ["cairn", "failed", "", "", " |"],
                    ["heaptrack", "1,874", "174", "700", "1,000 |"]]


def test_a_curve_shows_what_stood_in_for_a_failed_tool():
    point = {**HEADING, "sittings": [sitting(**{
        "bare": [1.0], "cairn": [2.0], "heaptrack": [None], "heaptrack-raw": [4.0]})]}
    data = results_of("unused")
    data["curves"]["depth"] = {"title": "d", "axis": "frames", "unit": "pair",
                               "points": {"100": point, "20": point}}
    rows = [line.split(" | ")[:4] for line in tables.curve_tables(data).splitlines()[4:]]
    assert rows == [["| 20", "10.0", "20.0", "40.0 (-r)"], ["| 100", "10.0", "20.0", "40.0 (-r)"]]


def test_a_curve_leaves_out_what_does_not_fit_into_memory():
    live = next(curve for curve in curves.CURVES if curve.name == "live")
    chosen = [tools.find_tool(name) for name in ("bare", "cairn", "heaptrack")]
    setup = rounds.Setup(build=BENCH, runs=1, memory_bytes=14 << 30)
    for x, names in ((10**7, ["bare", "cairn", "heaptrack"]), (10**8, ["bare", "cairn"])):
        fit = curves.fitting(live, x, setup, chosen, lambda text: None)
        assert [tool.name for tool in fit] == names


def run_measured(tmp_path, *argv):
    report = tmp_path / "report.json"
    subprocess.run([BENCH / "measure", report, *argv], check=True, timeout=60)
    return json.loads(report.read_text())


SPIN = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.4: pass"


def test_each_process_has_its_own_cpu_time_and_memory(tmp_path):
    own = tmp_path / "own"
    child = f"import subprocess, time\nsubprocess.run(['/usr/bin/python3', '-c', {SPIN!r}])\n" \
            f"x = bytearray(64 << 20)\nopen({str(own)!r}, 'w').write(str(time.process_time_ns()))"
    report = run_measured(tmp_path, "/usr/bin/python3", "-c", child)
    parent, spinner = report["processes"]
    assert spinner["parent"] == parent["pid"]
    assert 0.4e9 <= spinner["cpu_ns"] < 1.0e9, report
    assert int(own.read_text()) <= parent["cpu_ns"] < int(own.read_text()) + spinner["cpu_ns"] / 2, report
    assert parent["peak_rss_kib"] >= 64 << 10 > spinner["peak_rss_kib"], report
    assert spinner["cpu_ns"] <= report["wall_ns"]


@pytest.mark.parametrize("script, status", [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_status_of_the_command_is_reported(tmp_path, script, status):
    assert run_measured(tmp_path, "/bin/sh", "-c", script)["status"] == status


def test_a_command_that_is_not_there_is_an_error(tmp_path):
    done = subprocess.run([BENCH / "measure", tmp_path / "r", "/nonexistent/program"], check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 127
    assert "/nonexistent/program" in done.stderr


def churn(tmp_path, *arguments):
    result = tmp_path / "result.json"
    subprocess.run([BENCH / "churn", *arguments, f"result={result}"], check=True, timeout=60)
    return json.loads(result.read_text())


def test_churn_is_as_deep_and_as_varied_as_it_claims(tmp_path):
    shallow = churn(tmp_path, "check=1", "pairs=50000", "depth=10")
    for depth in (30, 100, 250):
        deep = churn(tmp_path, "check=1", "pairs=50000", f"depth={depth}")
        assert deep["frames_min"] == deep["frames_max"], deep
        assert deep["frames_min"] - shallow["frames_min"] == depth - 10, (deep, shallow)
        assert deep["stacks"] == 4**3 * 4, deep


def test_an_argument_out_of_range_is_refused():
    done = subprocess.run([BENCH / "churn", "depth=3"], check=False, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 2
    assert "depth" in done.stderr


@pytest.mark.parametrize("program, arguments, operations", [
    ("list", ["pairs=1000", "threads=2"], 1000), ("handover", ["pairs=5000"], 5000),
    ("list", ["pairs=1000", "threads=0"], 1000), ("pool", ["pairs=5000"], 5000),
    ("live", ["blocks=1000"], 1000), ("stacks", ["stacks=1000", "rounds=3"], 3000),
    ("threads", ["threads=20"], 20), ("growth", ["reallocs=5000"], 5000),
    ("latency", ["pairs=2000", "threads=2"], 2000)])
def test_every_workload_states_its_operations(tmp_path, program, arguments, operations):
    result = tmp_path / "result.json"
    subprocess.run([BENCH / program, *arguments, f"result={result}"], check=True, timeout=60)
    stated = json.loads(result.read_text())
    assert stated["ops"] == operations
    assert stated["loop_ns"] > 0


def test_the_times_of_single_calls_are_in_order(tmp_path):
    result = tmp_path / "result.json"
    subprocess.run([BENCH / "latency", "pairs=20000", "threads=3", f"result={result}"], check=True,
                   timeout=60)
    found = json.loads(result.read_text())
    for call in ("malloc", "free"):
        most = found[f"{call}_max_ns"] * 9 / 8  # a bucket's end may be above its calls
        assert 0 < found[f"{call}_p50_ns"] <= found[f"{call}_p9999_ns"] <= most + 16, found
    assert found["waited_max_ns"] <= max(found["malloc_max_ns"], found["free_max_ns"])


def test_a_failing_tool_is_replaced_by_its_fallback(monkeypatch):
    spare = tools.find_tool("heaptrack-raw")

    def run_once(_setup, tool, _workload):
        if tool.name == "heaptrack":
            return measuring.Outcome(failure="status 1")
        return measuring.Outcome(wall=1.0)
    monkeypatch.setattr(rounds, "run_once", run_once)
    setup = rounds.Setup(build=BENCH, runs=3, memory_bytes=0)
    workload = type("Workload", (), {"name": "w", "skip_tools": (), "repeats": 1})
    found = rounds.run_rounds(setup, workload, [tools.find_tool("bare"),
                                                tools.find_tool("heaptrack")], lambda text: None)
    assert [len(found[name]) for name in ("bare", "heaptrack", spare.name)] == [3, 1, 3]
