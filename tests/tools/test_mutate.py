# SPDX-License-Identifier: MIT
"""tools/mutate.py plants faults in code alone, spreads them over the modules, and counts right."""
import collections
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/mutation")]
import coverage_map  # noqa: E402  pylint: disable=wrong-import-position
import faults  # noqa: E402  pylint: disable=wrong-import-position
import mutate  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = '''// if (a == b) {
#define TWICE(x) \\
    ((x) + 1)
enum {
    PLACES = 16,
};

struct pair {
    uint32_t (*first)(int a, int b);
};

static const struct option options[] = {
    {"all", true},
};

static int larger(int a, int b)
{
    note("a > b");
    if (a > b) {
        total += a;
    }
    free(note);
    if (a != b) {
        return a < b ? -1 : 1;
    }
    return a > b ? a : b;
}
'''

# Oracle: by hand, from the source above.
WANTED = {
    '{"all", false},',
    "", # note() removed
    "if (a >= b) {", "if (!(a > b)) {",
    "total -= a;",
    "if (a == b) {", "if (!(a != b)) {",
}


def line_with(source, fault):
    changed = source[:fault.start] + fault.text + source[fault.end:]
    start = changed.rfind("\n", 0, fault.start) + 1
    return changed[start:changed.index("\n", start)].strip()


def test_faults_are_in_bodies_and_tables():
    assert {line_with(SOURCE, fault) for fault in faults.faults_of("a.c", SOURCE)} == WANTED


def module_of(path):
    parts = path.split("/")
    return "/".join(parts[1:3] if parts[1] == "target" else parts[1:2])


def test_modules_get_faults_by_their_lines():
    class Tree:
        """What draw() needs of a copy: this tree."""
        source = ROOT
        module_of = staticmethod(module_of)

    lines = collections.Counter()
    for path in (ROOT / "src").rglob("*.[ch]"):
        name = str(path.relative_to(ROOT))
        if not mutate.NO_PRODUCT.search(name):
            lines[module_of(name)] += len(path.read_text().splitlines())
    drawn = collections.Counter()
    for fault, _ in zip(mutate.draw(Tree, "", random.Random(7)), range(300)):
        drawn[module_of(fault.path)] += 1
    for module, count in lines.items():
        assert drawn[module] == pytest.approx(300 * count / lines.total(), abs=2), module


@pytest.mark.parametrize("noticed, planted, low, high", [
    # Wilson's intervals as R's prop.test(correct=FALSE) gives them
    (85, 100, 0.7672, 0.9069), (10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775),
])
def test_interval(noticed, planted, low, high):
    assert mutate.interval(noticed, planted) == [pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4)]


def selection(entry, seconds, *cases):
    return mutate.Selection(entry, list(cases), seconds)


def test_groups_grow_and_end_at_the_bound():
    """The first one has 5 s, the next one 20 s; a longer test has a group of its own."""
    times = [1, 3, 2, 17, 30, 1, 60]
    groups = mutate.groups_of([selection("", seconds) for seconds in times], 60)
    assert [[each.seconds for each in group] for group in groups] == [[1, 3], [2, 17], [30, 1]]
    assert not list(mutate.groups_of([], 60))


def test_the_failed_case_is_the_longest_that_fits(tmp_path):
    log = tmp_path / "log"
    log.write_text("..F\nFAILED ../a/test_a.py::test_x[1 - 2] - assert 1\nFAILED ../a/test_a.py::test_y\n")
    cases = ["a/test_a.py::test_x", "a/test_a.py::test_x[1 - 2]", "a/test_a.py::test_y"]
    assert mutate.failed_case(selection("a", 1, *cases), log) == cases[1]
    log.write_text("Error: FAILED a/test_a.py::test_y\n")
    assert mutate.failed_case(selection("a", 1, *cases), log) == ""


class Kept(mutate.Copy):
    """A copy with two entries and the map of a tree of two files, that builds nothing."""

    def __init__(self, folder):  # pylint: disable=super-init-not-called
        self.source, self.build, self.broken, self.stale = folder, folder / "build", set(), set()
        self.log, self.jobs = folder / "log", 2
        (folder / "src/part").mkdir(parents=True)
        (folder / "src/part/CMakeLists.txt").write_text("")
        (folder / "src/part/a.c").write_text(SOURCE)
        (folder / "src/part/b.c").write_text("static void idle(void)\n{\n    rest();\n}\n\n" + SOURCE)
        python = ["python3", "-m", "pytest", "--rootdir", "/t", "/t/cli/test_cli.py", "more"]
        self.entries = {name: mutate.Entry(name, command, str(self.build / where), {}) for name, command, where in [
            ("cli", python, "tests/cli"), ("unit.part.a", ["a"], "src/part"), ("unit.far", ["far"], "src/far")]}
        self.map = mutate.CoverageMap("commit")
        whole = [(f"src/part/{name}", line) for name in ("a.c", "b.c") for line in (18, 19, 20, 23, 24, 25)]
        for test in [("unit.far", "", 1, {}), ("cli", "cli/test_cli.py::test_1", 2, {}),
                     ("cli", "cli/test_cli.py::test_2", 2, {}), ("unit.part.a", "", 30, {})]:
            self.map.add(coverage_map.Test(*test), whole[:1] if test[1].endswith("2") else whole)
        self.map.add_known([("src/part/a.c", 20), ("src/part/b.c", 3)])


def fault_at(text):
    start = SOURCE.index(text)
    return faults.Fault("src/part/a.c", start, start + len(text), "", "statement")


@pytest.mark.parametrize("text, want", [
    ('note("a > b");', [("unit.part.a", 0), ("unit.far", 0), ("cli", 2)]),
    ("total += a;", [("unit.part.a", 0), ("unit.far", 0), ("cli", 1)]),
])
def test_own_tests_come_first(tmp_path, text, want):
    found = Kept(tmp_path).selections_of(fault_at(text), SOURCE)
    assert [(each.entry, len(each.cases)) for each in found] == want


def test_broken_tests_do_not_run(tmp_path):
    kept = Kept(tmp_path)
    kept.broken = {"unit.far", "cli/test_cli.py::test_1"}
    assert [each.entry for each in kept.selections_of(fault_at("total += a;"), SOURCE)] == ["unit.part.a"]


def test_only_the_cases_of_the_line_run(tmp_path):
    kept = Kept(tmp_path)
    case = "cli/test_cli.py::test_2"
    assert kept.command_of(selection("cli", 1, case))[5:] == [f"/t/{case}", "more", "-x"]
    both = kept.command_of(selection("cli", 1, "cli/test_cli.py::test_1", case))
    assert both[5:] == ["/t/cli/test_cli.py", "more", "-x"], "the file itself, where all of it runs"
    assert kept.command_of(selection("unit.far", 1)) == ["far"]


@pytest.mark.parametrize("status, fails, stale", [(0, False, set()), (1, True, set()), (4, False, {"unit.far"})])
def test_a_case_that_is_gone_is_no_failure(tmp_path, status, fails, stale):
    kept = Kept(tmp_path)
    kept.entries = {"unit.far": mutate.Entry("unit.far", ["sh", "-c", f"exit {status}"], tmp_path, {})}
    failure = kept.failing([selection("unit.far", 1)])
    assert (failure is not None, kept.stale) == (fails, stale)


def test_functions_that_no_test_executes(tmp_path):
    assert list(mutate.unexecuted(Kept(tmp_path))) == ["src/part/b.c:2: idle"]
