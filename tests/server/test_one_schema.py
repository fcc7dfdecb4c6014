# SPDX-License-Identifier: MIT
"""Views are the same everywhere: what `cairn report --json` says in rows, the HTTP API says in columns, and `cairn
export --to json`, `cairn check --json` and the HTML report with it. Of a drawn recording, and of a real one of several processes."""
import base64
import collections
import gzip
import json
import math
import re
import subprocess

import pytest

from drawings import SERVER
from reading import as_rows, module_of, name_of
from serving import BUILD, CAIRN, DEADLINE_SECONDS, ROOT, draw, report

VIEWS = ("--functions", "--tree", "bottom-up", "--histogram", "--callers", ".", "--sort", "leaked", "-n", 0, "-s", 0,
         "--max-depth", 0)
SUMMARY = ("damage", "run", "totals", "health", "counters", "unrecorded", "hooks", "unseen", "marks", "findings")
FILTERS = [({}, []), ({"function_regex": "load|work"}, ["--filter-function", "load|work"])]

# Three processes: the shell, one that it forks, and one that it executes itself into.
TREE = 'cat /dev/null; "$0" & wait; exec "$0"'


def recorded(folder):
    path = folder / "tree.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", "/bin/sh", "-c", TREE, BUILD / "programs" / "objects"],
                   check=True, timeout=DEADLINE_SECONDS, stdout=subprocess.DEVNULL)
    return path


def sampled(folder):
    path = folder / "sampled.cairn"
    subprocess.run([CAIRN, "record", "-q", "--sample=1KiB", "-o", path, "--", "/bin/sh", "-c",
                    '"$0" & wait; exec "$0"', BUILD / "programs" / "sampled"],
                   check=True, timeout=DEADLINE_SECONDS, stdout=subprocess.DEVNULL)
    return path


@pytest.fixture(name="path", params=["drawn", "recorded", "sampled"], scope="module")
def fixture_path(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "drawn":
        return draw(folder / "drawn.cairn", SERVER)
    return recorded(folder) if request.param == "recorded" else sampled(folder)


def without(value, key):
    """A value without the members of that name, wherever they are."""
    if isinstance(value, dict):
        return {name: without(inner, key) for name, inner in value.items() if name != key}
    return [without(item, key) for item in value] if isinstance(value, list) else value


def asked(server, route, **params):
    answer = server.get(route, **params)
    return as_rows({key: value for key, value in answer.items() if key not in ("code", "frames", "stacks")}, answer)


@pytest.mark.parametrize("params, options", FILTERS)
def test_the_api_says_what_the_report_says(serve, path, params, options):
    server = serve(path)
    reported = without(report(path, *VIEWS, *options), "offset")
    summary = asked(server, "summary", **params)
    for key in SUMMARY:
        assert summary[key] == reported[key], key
    assert summary["selection"] == reported["selection"] and summary["version"] == reported["version"]
    assert len(reported["processes"]) > 1 or options
    for key in ("processes", "threads", "modules"):
        assert asked(server, key, costs="all", **params)[key] == reported[key]
    by_leaks = {"costs": "all", "sort": "live_bytes", "limit": 0, **params}
    sites = asked(server, "call_sites", stacks=1000, **by_leaks)
    assert sites["sites"] == reported["top"]["live_bytes"] and sites["total_count"] == len(sites["sites"])
    assert options or any(site["stacks"] for site in sites["sites"])
    for key, answer in (("functions", asked(server, "functions", hide_wrappers=1, **by_leaks)),
                        ("sizes", asked(server, "sizes", **params)),
                        ("lifetimes", asked(server, "lifetimes", **params))):
        assert {name: answer[name] for name in reported[key]} == reported[key], key
    tree = asked(server, "tree", direction="bottom_up", hide_wrappers=1, **by_leaks)
    check_tree(tree, reported["tree"])
    functions = server.get("functions", **by_leaks)
    ids = collections.defaultdict(list)
    for place, number in enumerate(functions["code"]["functions"]["id"]):
        ids[name_of(functions, place), module_of(functions, place)].append(number)
    for function in reported["callers"]:
        candidates = ids[function["function"], function["module"]]
        found = [asked(server, "function", id=number, hide_wrappers=1, costs="all", sort="live_bytes", **params) for number in candidates]
        assert function in [{name: one[name] for name in function} for one in found]


def test_source_lines_of_a_sample_have_errors(serve, tmp_path):
    """Two runs allocate 3,000 blocks of 264 bytes each in one line, and 20,000 of 1,000 in another."""
    server = serve(sampled(tmp_path))
    file, = [group["name"] for group in asked(server, "files", costs="all")["groups"] if group["name"].endswith("/sampled.c")]
    lines = {line["line"]: line for line in asked(server, "source", file_path=file, costs="all")["lines"]}
    text = [""] + (ROOT / "tests/programs/counts/sampled.c").read_text().splitlines()
    for code, count, size in (("malloc(LEAKED_BYTES)", 6000, 264), ("malloc(BRIEF_BYTES)", 40000, 1000)):
        line = lines[next(number for number, words in enumerate(text) if code in words)]
        for costs, errors in ((line["self"], line["self_errors"]), (line["inclusive"], line["inclusive_errors"])):
            wanted = 2 * math.sqrt(9 / 8 * 1024 * costs["allocations"] / (size + 1))
            assert wanted - 1 <= errors["allocations"] <= wanted * 1.13 + 1  # buckets are an eighth wide
            assert errors["allocated_bytes"] == math.ceil(2 * math.sqrt(9 / 8 * 1024 * costs["allocated_bytes"]))
            assert abs(costs["allocations"] - count) <= 3 * errors["allocations"]


def test_a_function_of_a_sample_has_the_errors_of_the_list(serve, tmp_path):
    """Alone it is an object, in the list a row; so are its callers."""
    server = serve(sampled(tmp_path))
    table = server.get("functions", costs="all", limit=0)
    compared = 0
    for place, function in enumerate(table["functions"]["function"]):
        if function is not None:
            one = server.get("function", id=table["code"]["functions"]["id"][function], costs="all")
            for key in ("self_errors", "inclusive_errors"):
                assert one[key] == {cost: column[place] for cost, column in table["functions"][key].items()}, key
                compared += sum(one[key].values())
            assert len(one["callers"]["inclusive_errors"]["allocations"]) == one["callers"]["count"]
    assert compared > 0


def check_tree(whole, reported):
    """The report leaves out nodes without any of the cost."""
    assert reported["complete"] in (True, False) and reported["sort"] == whole["sort"]
    kept = [node for node in whole["nodes"] if node["depth"] == 0 or node["total"]["live_bytes"] > 0]
    assert without(reported["nodes"], "parent") == without(kept, "parent")


def test_what_has_no_filter_is_the_same(serve, path):
    server = serve(path)
    reported = without(report(path, "--sort", "leaked", "-n", 0), "offset")
    adhoc = asked(server, "adhoc", limit=0)
    assert {key: adhoc[key] for key in reported["adhoc"]} == reported["adhoc"]
    leaks = asked(server, "leaks", costs="all", limit=0)
    assert leaks["suppressions"] == reported["suppressions"]
    assert reported["leaks"] is None or leaks["leaks"] == reported["leaks"]["leaks"]
    for wanted in reported["rss"]["breakdowns"]:
        moment = {"moment_ms": wanted["time_ms"]} if wanted["mappings"] else {}
        answer = asked_rss(server, **moment)
        assert without(without(answer, "breakdowns"), "allocators") == \
            without(without(reported["rss"], "breakdowns"), "allocators")
        if moment:
            assert answer["allocators"] == [allocator for allocator in reported["rss"]["allocators"]
                                            if allocator["time_ms"] == wanted["time_ms"]]
        found, = [entry for entry in answer["breakdowns"] if entry["time_ms"] == wanted["time_ms"]]
        assert found == wanted if moment else without(found, "mappings") == without(wanted, "mappings")


def asked_rss(server, **params):
    answer = asked(server, "rss", **params)
    return {key: value for key, value in answer.items()
            if key not in ("version", "generation", "moment_ms", "mappings")}


def test_the_export_says_what_the_report_says(path):
    run = subprocess.run([CAIRN, "export", "--to", "json", path], check=True,
                         capture_output=True, timeout=DEADLINE_SECONDS)
    document = json.loads(run.stdout)
    reported = report(path, "--no-builtin-suppressions")
    for key in (*SUMMARY, "selection", "suppressions", "processes", "threads", "modules"):
        assert as_rows(document[key], document) == reported[key], key
    assert as_rows({key: document["adhoc"][key] for key in ("total_count", "entries")},
                   document["adhoc"]) == without(reported["adhoc"], "offset")


@pytest.mark.parametrize("options", [[], ["--filter-function", "load|main"]])
def test_a_comparison_says_what_the_reports_say(path, options):
    run = subprocess.run([CAIRN, "diff", "--json", *options, path, path], check=False, capture_output=True,
                         timeout=DEADLINE_SECONDS)
    assert run.returncode == 0, run.stderr
    compared, reported = json.loads(run.stdout), report(path, *options)
    for side in ("old", "new"):
        for key in compared[side].keys() - {"units"}:
            assert compared[side][key] == reported[key], key


def test_a_check_says_what_the_report_says(path):
    run = subprocess.run([CAIRN, "check", "--no-config", "--json", "--max-peak", "1", "--max-allocations", "1", path],
                         check=False, capture_output=True, timeout=DEADLINE_SECONDS)
    assert run.returncode == 1, run.stderr
    checked, reported = json.loads(run.stdout), report(path)
    assert (checked["version"], checked["title"]) == (reported["version"], reported["run"]["command_line"])
    assert checked["runtime_ms"] == reported["totals"]["runtime_ms"]
    # Of a sampled run the number of allocations is exact, and that of the call sites an estimate.
    totals = {**reported["totals"], **({"allocations": reported["run"]["sampling"]["allocations"]} if reported["run"]["sampling"] else {})}
    assert [result["value"] for result in checked["results"]] == [totals[cost] for cost in ("peak_bytes", "allocations")]


def test_a_page_says_what_the_report_says(path, tmp_path):
    subprocess.run([CAIRN, "export", "--html", path, "-o", tmp_path / "page.html"], check=True, capture_output=True,
                   timeout=DEADLINE_SECONDS)
    data = re.search(r'data-answer="report\?">([^<]*)<', (tmp_path / "page.html").read_text()).group(1)
    page, reported = json.loads(gzip.decompress(base64.b64decode(data, validate=True))), report(path)
    assert page["version"] == reported["version"] and page["omitted"] == 0
    pids = [process["pid"] for process in reported["processes"] if process["costs"]["allocations"]]
    assert set(page["processes"]) == (set(pids) if len(pids) > 1 else set())
