# SPDX-License-Identifier: MIT
"""tools/mutate.py plants faults in code alone, spreads them over the modules, and counts right."""
import collections
import pathlib
import random
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
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
    return a > b ? a : b;
}
'''

# Oracle: by hand, from the source above.
WANTED = {
    '{"all", false},',
    "", # note() removed
    "if (a >= b) {", "if (!(a > b)) {",
    "total -= a;",
}


def line_with(source, fault):
    changed = source[:fault.start] + fault.text + source[fault.end:]
    start = changed.rfind("\n", 0, fault.start) + 1
    return changed[start:changed.index("\n", start)].strip()


def test_faults_are_in_bodies_and_tables():
    assert {line_with(SOURCE, fault) for fault in mutate.faults_of("a.c", SOURCE)} == WANTED


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
