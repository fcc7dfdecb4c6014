# SPDX-License-Identifier: MIT
"""cairn check: budgets compared with a naive model, and output forms read by other programs."""
import dataclasses
import json
import re
import signal
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from drawn import ROOT, cairn, json_of, on_terminal
from heap_model import Heap, random_heap

KEYS = {"max-peak": "peak_bytes", "max-allocations": "allocations",
        "max-allocated": "allocated_bytes", "max-leaked": "live_bytes"}


@pytest.fixture(scope="module")
def run(draw_once):
    heap = random_heap(7)
    return heap, draw_once(heap.draw() + "!rss 100 0 90000000\n")


def check(*arguments, cwd="/", status=(0, 1)):
    done = cairn("check", *arguments, cwd=cwd)
    assert done.returncode in status, done.stderr
    return done


def results(*arguments, **settings):
    done = check("--json", *arguments, **settings)
    report = json.loads(done.stdout)
    assert report["passed"] == (done.returncode == 0)
    return report["results"]


def broken(*arguments, **settings):
    return [r["name"] for r in results(*arguments, **settings) if r["broken"]]


def share(costs):
    return costs["temporary"] / costs["allocations"] * 100


@pytest.mark.parametrize("measure", KEYS)
def test_a_budget_breaks_one_above_its_limit(run, measure):
    heap, path = run
    truth = heap.costs()[KEYS[measure]]
    assert truth == json_of(path)["totals"][KEYS[measure]]
    assert broken(f"--{measure}", truth, path) == []
    assert broken(f"--{measure}", truth - 1, path) == [measure]
    (result,) = results(f"--{measure}", truth - 1, path)
    assert (result["value"], result["limit"]) == (truth, truth - 1)


def test_shares_and_resident_size(run):
    heap, path = run
    percent = int(share(heap.costs()) * 100) / 100
    assert 0 < percent < 50
    assert broken("--max-temporary-share", f"{percent + 0.01:.2f}%", path) == []
    assert broken("--max-temporary-share", f"{percent - 0.01:.2f}%", path) == [
        "max-temporary-share"]
    assert broken("--max-rss", "90000000", path) == []
    assert broken("--max-rss", "89999999", path) == ["max-rss"]


@pytest.mark.parametrize("measure", KEYS)
def test_budgets_of_functions(run, measure):
    heap, path = run
    through = [b for b in heap.blocks if any("!parse(" in f or "!walk(" in f for f in b.stack)]
    truth = heap.costs(through)[KEYS[measure]]
    words = ["--function", "^(parse|walk)$", f"--{measure}"]
    assert broken(*words, truth, path) == []
    assert broken(*words, truth - 1, path) == [f"{measure} of ^(parse|walk)$"]


def test_each_function_has_its_own_budgets(run):
    heap, path = run
    names = broken("--max-leaked", "1G", "--function", "^load$", "--max-allocations", "0",
                   "--max-peak", "1G", "--function", "^emit$", "--max-allocations", "0", path)
    assert names == ["max-allocations of ^load$", "max-allocations of ^emit$"]
    nobody = results("--function", "^nobody$", "--max-allocations", "0", "--allow-missing", path)
    assert [(r["value"], r["broken"]) for r in nobody] == [(0, False)]
    assert heap.blocks


def test_a_budget_of_a_function_that_is_not_there_is_no_check(run, tmp_path):
    """Its name may be misspelt, or the function was renamed."""
    _, path = run
    words = ["--function", "^prase$", "--max-allocations", "1", "--max-leaked", "0", path]
    done = check(*words, status=(2,))
    assert b"no function of the program matches '^prase$'" in done.stderr and b"--allow-missing" in done.stderr
    assert done.stdout == b""
    said = "; no stack has such a function"
    (tmp_path / "cairn.toml").write_text("[check]\nallow-missing = true\n")
    for more in ({"cwd": "/"}, {"cwd": tmp_path}):
        done = check(*(words if more["cwd"] == tmp_path else ["--allow-missing", *words]), **more)
        assert done.returncode == 0 and done.stdout.decode().count(said) == 2
    done = check("--function", "^parse$", "--max-allocations", "1000000", path)
    assert done.returncode == 0 and said not in done.stdout.decode()


@pytest.mark.parametrize("words, finds", [
    (("--filter-function", "^prase$"), b'function of the recording matches "^prase$"'),
    (("--module", "libnone"), b'executable or library of the recording matches "libnone"'),
    (("--file", "none.c"), b'source file of the recording matches "none.c"'),
    (("--thread", "nosuch"), b'thread of the recording has the id or name "nosuch"'),
    (("--process", "4194304"), b"process of the recording has the pid 4194304"),
])
def test_a_check_of_what_is_not_there_is_no_check(run, draw, words, finds):
    _, path = run
    for budget in (("--max-peak", "1GiB"), ("--baseline", path, "--max-growth", "5%")):
        done = check(*budget, *words, path, status=(2,))
        assert finds in done.stderr, done.stderr
        assert check(*budget, *words, "--allow-missing", path).returncode == 0


SOURCE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) int only_inlined(int n) { return n * 2; }
__attribute__((noinline)) int never_allocates(int n) { return only_inlined(n) + 1; }
int main(int argc, char **argv) { free(malloc(64)); return never_allocates(argc) == 0; }
"""


@pytest.mark.parametrize("flags, inlined", [(["-g"], 0), ([], 2), (["-s"], 2)])
def test_a_function_that_exists_and_never_allocates_counts_as_zero(tmp_path, flags, inlined):
    """Only debug information knows a function that was inlined everywhere. A stripped program does
    not show which functions it has."""
    (tmp_path / "app.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O1", *flags, "-o", tmp_path / "app", tmp_path / "app.c"], check=True)
    program = ["-o", tmp_path / "app.cairn", "--", tmp_path / "app"]
    for name, status in (("never_allocates", 2 if flags == ["-s"] else 0), ("only_inlined", inlined),
                         ("neverallocates", 2)):
        done = check("--function", f"^{name}$", "--max-allocations", "0", *program, cwd=tmp_path,
                     status=(0, 2))
        assert done.returncode == status, (name, done.stdout, done.stderr)
        assert (b"some names of app" in done.stderr) == (status == 2 and flags != ["-g"])


SCOPES = """
#define INLINED inline __attribute__((always_inline))
namespace app {
extern "C" INLINED int in_c(int n) { return n * 2; } // without a mangled name
struct pool { INLINED int grow(int n) { return n + 1; } };
}
int main(int argc, char **argv) { return app::pool().grow(app::in_c(argc)) == 0; }
"""


def test_functions_that_only_debug_information_names_have_their_scopes(tmp_path):
    (tmp_path / "app.cc").write_text(SCOPES)
    subprocess.run(["g++", "-O1", "-g", "-o", tmp_path / "app", tmp_path / "app.cc"], check=True)
    program = ["-o", tmp_path / "app.cairn", "--", tmp_path / "app"]
    for name, status in (("app::in_c", 0), ("app::pool::grow", 0), ("in_c", 2), ("pool::grow", 2), ("app::", 2)):
        done = check("--function", f"^{name}$", "--max-allocations", "0", *program, cwd=tmp_path, status=(0, 2))
        assert done.returncode == status, (name, done.stdout, done.stderr)


@pytest.mark.parametrize("leaf, place", [
    ("app!take(pool.c:9)=>cairn_pool_alloc(cairn.h:181);[pool nodes]![pool nodes]", ("pool.c", 9)),
    ("app!take(pool.c:9);lib!decode;lib!grow", ("pool.c", 9)), ("lib!decode", ("app.c", 1)),
    ("app!take(pool.c:9)", ("pool.c", 9))])
def test_the_place_is_in_a_source_file(draw, leaf, place):
    """The place is the call site's, or its caller's if the call site has none."""
    path = draw(f"app!main(app.c:1);{leaf} 3 300\n")
    (result,) = results("--max-allocations", "1", path)
    assert (result["file"], result["line"]) == place
    annotation = check("--github", "--max-allocations", "1", path).stdout.decode()
    assert f"::error file={place[0]},line={place[1]}," in annotation


def test_names_of_budgets_are_whole(run):
    _, path = run
    lines = check("--max-peak", "1GiB", "--function", "^(parse|walk)$", "--max-temporary-share", "100%",
                  path).stdout.decode().splitlines()
    name = "max-temporary-share of ^(parse|walk)$"
    assert f"  ok      {name}  " in lines[2] and lines[1].startswith(f"  ok      {'max-peak':{len(name)}}  ")
    assert max(map(len, lines)) <= 80


def test_those_responsible_are_named(run):
    heap, path = run
    sites = heap.by(lambda b: b.site)
    worst = max(sites, key=lambda site: sites[site]["peak_bytes"])
    name, _, place = worst.partition("!")[2].rstrip(")").partition("(")
    (result,) = results("--max-peak", "1", path)
    assert f"{result['file']}:{result['line']}" == place
    assert re.search(rf"\n  1\. .*  {name}\n", result["details"])
    text = check("--max-peak", "1", path).stdout.decode()
    assert result["details"].strip("\n") in text
    assert text.splitlines()[1].startswith("  BROKEN  max-peak ")
    assert text.splitlines()[-1] == "1 of 1 budget broken"
    assert max(map(len, text.splitlines())) <= 80


def test_filters_apply(run):
    heap, path = run
    truth = len([b for b in heap.blocks if b.thread == "worker-1"])
    assert broken("--thread", "worker-1", "--max-allocations", truth, path) == []
    assert broken("--thread", "worker-1", "--max-allocations", truth - 1, path)


@pytest.mark.parametrize("growth, names", [
    ("0%", ["growth of peak", "growth of allocated", "growth of leaked"]),
    ("99%", ["growth of peak", "growth of allocated", "growth of leaked"]),
    ("100%", []),
])
def test_growth_against_a_baseline(run, draw, growth, names):
    heap, path = run
    grown = Heap([dataclasses.replace(b, size=b.size * 2) for b in heap.blocks])
    new = draw(grown.draw(), "new.cairn")
    assert broken("--baseline", path, "--max-growth", growth, new) == names
    assert broken("--baseline", new, "--max-growth", growth, path) == []
    assert broken("--baseline", path, "--per", "1:2", "--max-growth", growth, new) == names[:1]
    found = results("--baseline", path, new)
    assert {r["measure"]: r["value"] for r in found} == {
        "peak": 1, "allocations": 0, "allocated": 1, "leaked": 1}


# The file

@pytest.mark.parametrize("milliseconds, status", [(9999, 0), (10000, 1)])
def test_the_time_of_a_short_run_breaks_no_budget(draw, milliseconds, status):
    """The same allocations in half of the time are twice as many a second."""
    stacks = "process app\nthread main\nmain(a.c:1) 100 1000\n"
    old, new = draw(f"!runtime_ms {2 * milliseconds}\n{stacks}", "old.cairn"), draw(f"!runtime_ms {milliseconds}\n{stacks}", "new.cairn")
    done = check("--baseline", old, "--per", "second", "--max-growth", "5%", new, status=(status,))
    line = next(line for line in done.stdout.decode().splitlines() if "growth of allocations" in line)
    assert line.startswith("  BROKEN" if status else "  ? ")
    assert ("; cannot tell: runs of 20 and 9.999 s are too short" in line) == (status == 0)
    assert check("--baseline", old, "--max-growth", "0", new, status=(0,)).stdout.count(b"\n  ok") == 4
    found = {r["measure"]: r["certain"] for r in results("--baseline", old, "--per", "second", new)}
    assert found == {"peak": True, "allocations": status == 1, "allocated": status == 1, "leaked": status == 1}


def test_blocks_in_flight_break_no_budget_and_keep_none(draw):
    path = draw("!peak_error_bytes 5000\n!peak_flight_bytes 4900\n!peak_at_least_bytes 8900\nprocess app\nthread main\nmain(a.c:1) 1 9000 0 0 0 0 1 9000\n")
    for limit, verdict in ((8899, "BROKEN"), (8900, "?"), (9099, "?"), (9100, "ok")):
        text = check("--max-peak", str(limit), path).stdout.decode()
        assert text.splitlines()[1].split()[0] == verdict, text
        assert ("8.79 KiB of 8." in text) == (verdict != "BROKEN") and "; up to 13.7 KiB in the allocator" in text
        assert text.splitlines()[1].endswith("in the allocator; at most 8.69 KiB allowed") == (verdict == "BROKEN"), text
    result, = results("--max-peak", "1", path)
    assert (result["at_least"], result["value"], result["at_most"]) == (8900, 9000, 9100)


@pytest.mark.parametrize("limit, shown", [("33.33%", "33.333%"), ("33.32%", "33.33%"), ("33.34%", "33.33%")])
def test_a_share_just_beyond_its_limit_can_be_told_from_it(draw, limit, shown):
    path = draw("process app\nthread main\nmain(a.c:1) 3 30 3 30 1 10 1 10\n")
    text = check("--max-temporary-share", limit, path).stdout.decode()
    assert (f"{shown} of {limit}" if limit == "33.34%" else f"{shown}; at most {limit} allowed") in text
    assert ("BROKEN" in text) == (limit != "33.34%")


def write(folder, text):
    (folder / "cairn.toml").write_text(text)


def test_budgets_of_a_file(run, tmp_path):
    heap, path = run
    costs = heap.costs()
    write(tmp_path, f"""\
# what the program may use
[check]
max-peak = "{costs['peak_bytes']}"
max-allocations = {costs['allocations'] - 1}
max-temporary-share = "50%"
baseline = "{path}"
max-growth = 0

[[function]]
match = "^load$"
max-leaked = 0

[[function]]
max-allocations = 1_000_000
match = '^emit$'
""")
    wanted = ["max-allocations", "max-leaked of ^load$"]
    assert broken(path, cwd=tmp_path) == wanted
    assert broken("--config", tmp_path / "cairn.toml", path) == wanted
    assert len(results(path, cwd=tmp_path)) == 3 + 2 + 4
    more = ["--max-allocations", costs["allocations"], "--function", "^load$",
            "--max-leaked", "1GiB"]
    assert broken(*more, path, cwd=tmp_path) == []
    assert len(results("--no-config", *more, path, cwd=tmp_path)) == 2


@pytest.mark.parametrize("text, words", [
    ("max-peak = 1\n", ["cairn.toml:1: max-peak: settings belong in [check]"]),
    ("[check]\nmax-beauty = 1\n", ["cairn.toml:2: max-beauty: unknown setting"]),
    ("[check]\n\nmax-peak = \"big\"\n", ["cairn.toml:3: max-peak: this is not a size"]),
    ("[check]\nmax-peak = -1\n", ["cairn.toml:2: max-peak: this is not a size"]),
    ("[check]\nmax-peak = true\n", ["cairn.toml:2"]),
    ("[check]\nbaseline = 1\n", ["cairn.toml:2: baseline: this is a text"]),
    ("[check]\nmax-growth = \"fast\"\n", ["cairn.toml:2: max-growth", "percentage"]),
    ("[chekc]\n", ["cairn.toml:1: unknown table [chekc]"]),
    ("[function]\n", ["cairn.toml:1: unknown table [function]"]),
    ("[[function]]\nmax-peak = 1\n", ["cairn.toml:1: a [[function]] needs a match"]),
    ("[[function]]\nmatch = \"(\"\nmax-peak = 1\n", ["cairn.toml:2: match"]),
    ("[[function]]\nmatch = \"a\"\nmax-rss = 1\n", ["cairn.toml:3: max-rss", "whole processes"]),
    ("[check]\nmax-peak = 1.5\n", ["cairn.toml:2: only whole decimal numbers"]),
    ("[check]\nmax-growth = 5\n", ["--baseline"]),
    ("", ["no budget given"]),
])
def test_mistakes_in_the_file(run, tmp_path, text, words):
    _, path = run
    write(tmp_path, text)
    done = check(path, cwd=tmp_path, status=(2,))
    said = done.stderr.decode()
    assert done.stdout == b"" and said.count("\n") == 1
    for word in words:
        assert word in said


@pytest.mark.parametrize("arguments, words", [
    ([], ["no FILE and no -- PROGRAM given"]), (["--max-peak", "1"], ["no FILE and no -- PROGRAM given"]),
    (["x"], ["no budget given"]), (["--max-peak", "big", "x"], ["--max-peak", "64MiB"]),
    (["--max-allocations", "1.5", "x"], ["--max-allocations", "whole number"]),
    (["--max-temporary-share", "x", "x"], ["percentage"]),
    (["--function", "(", "--max-peak", "1", "x"], ["--function"]),
    (["--function", "a", "--max-rss", "1", "x"], ["--max-rss", "whole processes"]),
    (["--function", "a", "--max-peak", "1", "--filter-function", "b", "x"], ["cannot be combined"]),
    (["--max-growth", "1%", "--max-peak", "1", "x"], ["--baseline"]),
    (["--baseline", "/nowhere", "--max-peak", "1", "/nowhere"], ["No such file"]),
    (["--json", "--github", "--max-peak", "1", "x"], ["standard output"]),
    (["--config", "/nowhere/c.toml", "x"], ["/nowhere/c.toml"]),
    (["--max-peak", "1", "a", "b"], ["no FILE and no -- PROGRAM given"]),
    (["--max-peak", "1", "--", "/nowhere/program"], ["/nowhere/program"]),
])
def test_mistakes(tmp_path, arguments, words):
    done = check(*arguments, cwd=tmp_path, status=(2,))
    said = done.stderr.decode()
    assert done.stdout == b"" and said.count("\n") == 1, said
    for word in words:
        assert word in said
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_known_is_no_zero(draw):
    path = draw("process app\nthread main\nmain(a.c:1) 1 10\n")
    done = check("--max-rss", "1", path, status=(2,))
    assert b"resident size" in done.stderr


# Programs

def test_a_program_is_run_and_held(tmp_path):
    keep = tmp_path / "kept.cairn"
    done = check("--max-peak", "1GiB", "-o", keep, "--", "/bin/echo", "hello", cwd=tmp_path)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "hello" and lines[1] == "/bin/echo hello"
    assert lines[2].split() == ["ok", "program", "exit", "status", "0"]
    peak = json_of(keep)["totals"]["peak_bytes"]
    assert peak > 0
    again = [f"--max-peak={peak - 1}", "--no-config", keep]
    assert broken(*again) == ["max-peak"]
    assert list(tmp_path.iterdir()) == [keep]


def test_a_program_is_recorded_as_record_would(tmp_path):
    keep = tmp_path / "kept.cairn"
    check("--max-peak", "1GiB", "--sample=64", "--max-frames", "9", "-o", keep, "--", "/bin/echo", "x", cwd=tmp_path)
    run = json_of(keep)["run"]
    assert (run["max_frames"], run["sampling"]["sample_bytes"]) == (9, 64)
    for words, said in ((["--sample=1"], "--sample: give 16B to 64MiB"),
                        (["--sample", "--overflow=sample"], "--sample and --overflow=sample cannot be combined"),
                        (["--allocator", "x"], "--allocator")):
        done = check(*words, "--max-peak", "1GiB", "--", "/bin/true", cwd=tmp_path, status=(2,))
        assert said in done.stderr.decode() and done.stdout == b""
    (tmp_path / "cairn.toml").write_text("[record]\nallocator = \"wrong\"\n")
    assert b"[record] allocator" in check("--max-peak", "1GiB", "--", "/bin/true", cwd=tmp_path, status=(2,)).stderr


def test_budgets_of_python_functions(tmp_path):
    script = tmp_path / "work.py"
    script.write_text("def leak_here():\n    return [bytes(5000) for i in range(50)]\nkept = leak_here()\n")
    budget = ("--function", "leak_here", "--max-allocations", "49")
    done = check("--python", *budget, "--", "/usr/bin/python3.11", script, cwd=tmp_path, status=(1,))
    text = done.stdout.decode()
    assert "BROKEN  max-allocations of leak_here" in text and re.search(r"leak_here +work.py:2", text), text
    assert "_PyEval" not in text


@pytest.mark.parametrize("script, said, status", [
    ("exit 3", "exit status 3", 3 << 8), ("kill -TERM $$", "killed by SIGTERM", signal.SIGTERM)])
def test_a_program_that_fails_is_another_matter(tmp_path, script, said, status):
    words = ["--max-peak", "1GiB", "--", "/bin/sh", "-c", script]
    done = check(*words, cwd=tmp_path, status=(1,))
    assert f"  FAILED  program                       {said}" in done.stdout.decode()
    assert done.stdout.decode().splitlines()[-1] == "0 of 1 budget broken; the program failed"
    report = json.loads(check("--json", *words, cwd=tmp_path, status=(1,)).stdout)
    assert report["wait_status"] == status
    assert [(r["kind"], r["broken"]) for r in report["results"]] == [("program", True),
                                                                     ("budget", False)]
    check("--allow-failure", *words, cwd=tmp_path, status=(0,))
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_go_away(tmp_path):
    done = cairn("check", "--max-peak", "1GiB", "--", "/bin/sh", "-c",
                 f"ls -d {tmp_path}/cairn-check.*", cwd="/",
                 more={"TMPDIR": str(tmp_path)})
    assert f"{tmp_path}/cairn-check." in done.stdout.decode()
    assert list(tmp_path.iterdir()) == []


# Forms for machines

HOSTILE = "[\"<&>'\x1b,:%]\uffff|]]>"


def test_junit_is_read_by_a_real_parser(run, tmp_path):
    _, path = run
    report = tmp_path / "report.xml"
    words = ["--max-peak", "1", "--max-leaked", "1GiB", "--function", HOSTILE, "--max-peak", "0", "--allow-missing",
             "--junit", report]
    check(*words, path, status=(1,))
    suite = ElementTree.parse(report).getroot().find("testsuite")
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "0")
    assert suite.get("name") == "app --run" and float(suite.get("time")) == 2.0
    assert [case.get("name") for case in cases[:2]] == ["max-peak", "max-leaked"]
    assert cases[2].get("name").startswith("max-peak of [\"<&>'\\x1b,:%]")
    failure = cases[0].find("failure")
    assert failure.get("type") == "max-peak" and failure.get("message").endswith("; at most 1 B allowed")
    assert "PEAK MEMORY" in failure.text
    assert [len(case) for case in cases] == [1, 0, 0]


def test_junit_tells_a_failed_program_from_a_broken_budget(tmp_path):
    report = tmp_path / "report.xml"
    check("--max-peak", "0", "--junit", report, "--", "/bin/sh", "-c", "exit 9", status=(1,))
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    assert suite.find("testcase/error").get("message") == "exit status 9"
    assert suite.find("testcase/failure").get("type") == "max-peak"


def test_a_report_that_cannot_be_written(run):
    _, path = run
    done = check("--max-peak", "1GiB", "--junit", "/nowhere/x/report.xml", path, status=(2,))
    assert b"/nowhere/x" in done.stderr


def test_annotations(run, tmp_path):
    _, path = run
    done = cairn("check", "--max-peak", "1", "--max-leaked", "1GiB", "--github", "--no-config",
                 path, more={"GITHUB_WORKSPACE": "/src"}, cwd=tmp_path)
    (line,) = [line for line in done.stdout.decode().splitlines() if line.startswith("::")]
    (found,) = results("--max-peak", "1", path)
    place, _, message = line.removeprefix("::error ").partition("::")
    name = found["file"].removeprefix("/src/")
    assert place == f"file={name},line={found['line']},title=cairn max-peak"
    text = message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
    assert text == found["message"] + "\n" + found["details"]


def test_colours_only_on_a_terminal(run):
    _, path = run
    assert b"\x1b" not in check("--max-peak", "1GiB", path).stdout
    assert b"\x1b[" in on_terminal("check", "--no-config", "--max-peak", "1GiB", path)
    assert b"\x1b" not in on_terminal("check", "--no-config", "--max-peak", "1GiB", path,
                                      more={"NO_COLOR": "1"})


def test_json_is_as_documented(run):
    _, path = run
    report = json.loads(check("--json", "--max-peak", "1", path).stdout)
    page = (ROOT / "docs" / "format" / "json.md").read_text().split("## `check`")[1].split("\n## ")[0]
    for group, rows in zip((report, report["results"][0]), page.split("| field of a result")):
        fields = {field for line in rows.splitlines() if line.startswith("| `")
                  for field in re.findall(r"`(\w+)`", line.split("|")[1])}
        assert set(group) - {"version"} == fields
