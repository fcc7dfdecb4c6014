# SPDX-License-Identifier: MIT
"""docs/design/memory-order.md names each file that has an order stronger than relaxed, and no other: also
orders of the machine's own instructions, and of calls that name none."""
import pathlib
import re

TOP = pathlib.Path(__file__).parents[2]
ORDER = re.compile(r"memory_order_(acquire|release|acq_rel|seq_cst)|__ATOMIC_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)|"
                   r"\b(stlr|stlxr|stlxp|ldar|ldaxr|ldaxp|ldapr|dmb|dsb|isb)\b|__sync_|"
                   r"\batomic_(load|store|exchange|compare_exchange_\w+|fetch_\w+|flag_\w+)(?<!_explicit)\(")


def has_order(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return any(ORDER.search(line) and "signal_fence" not in line for line in lines)


def test_the_page_names_each_file():
    files = {str(path.relative_to(TOP / "src")) for path in (TOP / "src").rglob("*.[ch]")
             if not re.search(r"/(test|fuzz)_|_test\.c$", str(path.relative_to(TOP))) and has_order(path)}
    page = (TOP / "docs/design/memory-order.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.[ch])`", page))
    assert files == named
