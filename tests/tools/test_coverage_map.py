# SPDX-License-Identifier: MIT
"""tools/mutation: which test cases execute which lines, in a build of two functions."""
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/mutation"))
import coverage_map  # noqa: E402  pylint: disable=wrong-import-position
from coverage_map import CoverageMap, Selection, Tracer  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = """#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "odd.h"
static void last(void) {}
int main(int count, char **words)
{
    puts(words[0]);
    atexit(last);
    if (is_odd(count)) {
        puts("odd");
    } else {
        puts("even");
        fflush(stdout);
        raise(SIGKILL);
    }
    return 0;
}
"""
HEADER = """static inline int is_odd(int count)
{
    puts("asked");
    return count % 2;
}
"""
ODD, EVEN, LAST = 11, 13, 5
# A shared fixture and two cases that start the program: with its name alone (odd), and with a word.
CASES = """
import subprocess
import pytest

PROGRAM = {program!r}

@pytest.fixture(scope="module")
def shared():
    return subprocess.run([PROGRAM], check=True)

def test_even():
    subprocess.run([PROGRAM, "word"], env={{}}, check=False)

def test_by_fixture(shared):
    assert shared.returncode == 0

def test_nothing():
    pass
"""


@pytest.fixture(scope="module", name="tracer")
def build(tmp_path_factory):
    """A tracer of a build that has one program, compiled as the traced build is."""
    folder = tmp_path_factory.mktemp("map")
    source = folder / "source"
    program = coverage_map.traced_build(source) / "parity"
    (source / "src").mkdir(parents=True)
    program.parent.mkdir()
    (source / "src/parity.c").write_text(SOURCE)
    (source / "src/odd.h").write_text(HEADER)
    library = coverage_map.build_library(folder)
    compiler = ROOT / "tools/mutation/traced_compiler.sh"
    subprocess.run([compiler, "gcc", "-O2", "-g", "-c", "-o", folder / "parity.o", source / "src/parity.c"], check=True)
    subprocess.run(["gcc", "-o", program, folder / "parity.o", library], check=True)
    return Tracer(source, folder)


class Entry:
    """What the tracer needs of an entry of ctest."""

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder, self.environment = name, command, folder, {}


def traced(tracer, *entries):
    return {(test.entry, test.case): {line for path, line in lines if path == "src/parity.c"}
            for test, lines in tracer.trace(entries, 2)}


def test_lines_of_entries(tracer, tmp_path):
    program = tracer.by_name["parity"]
    lines = traced(tracer, Entry("odd", [program], tmp_path), Entry("even", [program, "word"], tmp_path))
    assert lines["odd", ""] & {ODD, EVEN} == {ODD}
    assert LAST in lines["odd", ""], "a function whose only block ends it, called by libc"
    assert lines["even", ""] & {ODD, EVEN} == {EVEN}, "a killed process leaves its blocks, too"
    assert ("src/odd.h", 3) in tracer.known


def test_lines_of_cases_and_fixtures(tracer, tmp_path):
    """Also of a process that gets an environment of its own."""
    file = tmp_path / "test_parity.py"
    file.write_text(CASES.format(program=str(tracer.by_name["parity"])))
    lines = traced(tracer, Entry("cases", [sys.executable, "-m", "pytest", "--rootdir", tmp_path, file], tmp_path))
    found = {case.split("::")[1]: each & {ODD, EVEN} for (_, case), each in lines.items()}
    assert found == {"test_even": {EVEN}, "test_by_fixture": {ODD}, "test_nothing": set()}


def test_lines_of_processes_without_environment(tracer, tmp_path):
    command = ["/usr/bin/env", "-i", tracer.by_name["parity"]]
    assert traced(tracer, Entry("stray", command, tmp_path))["stray", ""] & {ODD, EVEN} == {ODD}
    assert not traced(tracer, Entry("none", ["/bin/true"], tmp_path))["none", ""], "they count once"


def example():
    tests = CoverageMap("commit")
    tests.add(coverage_map.Test("a", "case 1", 3, {"fixture": 2}), [("x.c", 5)])
    tests.add(coverage_map.Test("a", "case 2", 1, {"fixture": 2}), [("x.c", 5), ("x.c", 6)])
    tests.add(coverage_map.Test("b", "", 4, {}), [("x.c", 6), ("x.c", 20)])
    tests.add_known([("x.c", 7), ("x.c", 5)])
    return tests


def entries_of(tests, *where):
    return [(each.entry, each.cases) for each in tests.selections(tests.tests_of(*where))]


BOTH = [("b", []), ("a", ["case 1", "case 2"])]


@pytest.mark.parametrize("first, last, want", [
    (5, 5, [("a", ["case 1", "case 2"])]),
    (6, 6, [("a", ["case 2"]), ("b", [])]),
    (7, 7, []),  # has code, which no test executes
    (5, 7, BOTH),
    (8, 8, BOTH),  # no code: that of the body, lines 4 to 9
])
def test_tests_of_lines(first, last, want):
    assert entries_of(example(), "x.c", first, last, (4, 9)) == want


def test_lines_without_a_body_count_for_the_file():
    assert entries_of(example(), "x.c", 30, 30, (29, 31)) == BOTH
    assert entries_of(example(), "y.c", 30, 30, (29, 31)) == BOTH, "a file without code may be in all"


def test_fixtures_count_once_in_time():
    tests = example()
    assert tests.selections(0b11) == [Selection("a", ["case 1", "case 2"], 3 + 1 + 2 + coverage_map.PYTEST_S)]


def test_lines_follow_the_text():
    tests = example()
    before = [f"line {number}" for number in range(1, 30)]
    after = ["new", *before[:5], "other 6", *before[6:]]
    tests.move("x.c", before, after)
    assert tests.lines["x.c"].keys() == {6, 8, 21}


def test_lines_of_renamed_files():
    tests = CoverageMap("0")
    tests.lines = {"old.c": {1: 1}, "same.c": {2: 2}, "gone.c": {3: 4}}
    tests.rename({"new.c": "old.c"}, lambda path: path != "gone.c")
    assert tests.lines == {"new.c": {1: 1}, "same.c": {2: 2}}


def test_forgotten_entries_have_no_lines(tmp_path):
    tests = example()
    tests.forget({"a"})
    tests.save(tmp_path / "map")
    again = CoverageMap.load(tmp_path / "map")
    assert entries_of(again, "x.c", 5, 5, (4, 9)) == []
    assert entries_of(again, "x.c", 6, 6, (4, 9)) == [("b", [])]
    assert again.count_of("a") == 2 and again.commit == "commit"
