# SPDX-License-Identifier: MIT
"""The harness's own arithmetic, and that measure and the workloads do what their comments claim.

Programs are looked for in $CAIRN_BUILD/bench (ctest sets it).
"""
import json
import os
import pathlib
import subprocess

import pytest

from harness import instructions, measuring, promises, results, rounds, spread, tables, tools

BENCH = pathlib.Path(os.environ.get("CAIRN_BUILD", "build")).resolve() / "bench"
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "performance.md"


def entry(**walls):
    """A workload's entry whose tools have these wall times; None is a failed round."""
    return {"title": "t", "unit": "pair", "machine": {}, "tools": {
        tool: {"divisor": 1, "outcomes": [
            {"wall": wall, "failure": None if wall else "status 1"} for wall in rounds_]}
        for tool, rounds_ in walls.items()}}


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
    data = entry(bare=[10], heaptrack=[5])
    for tool, ns in (("bare", 20), ("heaptrack", 400)):
        data["tools"][tool]["outcomes"][0]["ns_per_op"] = ns
    data["tools"]["heaptrack"]["divisor"] = 6
    assert results.ratio(data, "heaptrack").median == 20


@pytest.mark.parametrize("figure, verdict", [
    (None, "not measured"), (3.0, "kept"), (3.01, "**missed**")])
def test_a_promise_is_judged_by_its_limit(figure, verdict):
    assert promises.Promise("churn-30-1", "x", 3.0, None).judge(figure) == verdict


def test_only_the_named_section_of_a_document_is_replaced():
    document = "a\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nb\n<!-- bench:y -->\n<!-- /bench:y -->\n"
    assert tables.replace_section(document, "x", "new") == (
        "a\n<!-- bench:x -->\n\nnew\n\n<!-- /bench:x -->\nb\n<!-- bench:y -->\n<!-- /bench:y -->\n")
    with pytest.raises(ValueError):
        tables.replace_section(document, "z", "new")


def test_the_document_has_every_section():
    document = DOCUMENT.read_text()
    for name in tables.SECTIONS:
        tables.replace_section(document, name, "")


def test_callgrind_costs_are_self_costs_of_their_object():
    text = "\n".join(["ob=(1) /lib/a.so", "fn=(1) f", "10 5", "+1 7", "cob=(2) /lib/b.so",
                      "cfn=(2) g", "calls=3 20", "* 1000", "12 1", "ob=(2)", "fn=(2)", "* 40"])
    assert instructions.self_cost_by_object(text) == {"/lib/a.so": 13, "/lib/b.so": 40}


def run_measured(tmp_path, *argv):
    report = tmp_path / "report.json"
    subprocess.run([BENCH / "measure", report, *argv], check=True, timeout=60)
    return json.loads(report.read_text())


SPIN = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.4: pass"


def test_each_process_has_its_own_cpu_time_and_memory(tmp_path):
    child = f"import subprocess\nsubprocess.run(['/usr/bin/python3', '-c', {SPIN!r}])\n" \
            "x = bytearray(64 << 20)"
    report = run_measured(tmp_path, "/usr/bin/python3", "-c", child)
    parent, spinner = report["processes"]
    assert spinner["parent"] == parent["pid"]
    assert 0.4e9 <= spinner["cpu_ns"] < 1.0e9, report
    assert parent["cpu_ns"] < 0.35e9, report
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
    ("live", ["blocks=1000"], 1000), ("stacks", ["stacks=1000", "rounds=3"], 3000),
    ("threads", ["threads=20"], 20), ("growth", ["reallocs=5000"], 5000)])
def test_every_workload_states_its_operations(tmp_path, program, arguments, operations):
    result = tmp_path / "result.json"
    subprocess.run([BENCH / program, *arguments, f"result={result}"], check=True, timeout=60)
    stated = json.loads(result.read_text())
    assert stated["ops"] == operations
    assert stated["loop_ns"] > 0


def test_a_failing_tool_is_replaced_by_its_fallback(monkeypatch):
    spare = tools.find_tool("heaptrack-raw")

    def run_once(_setup, tool, _workload):
        if tool.name == "heaptrack":
            return measuring.Outcome(failure="status 1")
        return measuring.Outcome(wall=1.0)
    monkeypatch.setattr(rounds, "run_once", run_once)
    setup = rounds.Setup(build=BENCH, runs=3, memory_bytes=0)
    workload = type("Workload", (), {"name": "w", "skip_tools": ()})
    found = rounds.run_rounds(setup, workload, [tools.find_tool("bare"),
                                                tools.find_tool("heaptrack")], lambda text: None)
    assert [len(found[name]) for name in ("bare", "heaptrack", spare.name)] == [3, 1, 3]
