# SPDX-License-Identifier: MIT
"""docs/design/memory-order.md names each file that has an order stronger than relaxed, and no other."""
import pathlib
import re

TOP = pathlib.Path(__file__).parents[2]
ORDER = re.compile(r"memory_order_(acquire|release|acq_rel|seq_cst)|__ATOMIC_(ACQUIRE|RELEASE)|stlxp")


def has_order(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(ORDER.search(line) and "signal_fence" not in line for line in lines)


def test_the_page_names_each_file():
    files = {str(path.relative_to(TOP / "src")) for path in (TOP / "src").rglob("*.[ch]")
             if not path.name.startswith("test_") and not path.stem.endswith("_test") and has_order(path)}
    page = (TOP / "docs/design/memory-order.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.[ch])`", page))
    assert files == named
