#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count_tests: counts the single cases in the entries of a ctest run.

usage: tools/count_tests.py RESULTS.xml...

Reads ctest's JUnit files and searches each entry's output for the closing lines of cmocka and
pytest, or of this script in a nested run. An entry without such a line is one case. Prints "N
passed, N failed".
"""
import re
import sys
import xml.etree.ElementTree

NESTED = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED)  \] .*?(\d+) test\(s\)", re.M)
PYTEST_LINE = re.compile(r"^(?:=+ )?((?:\d+ \w+,? ?)+) in [\d.]+s", re.M)
PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def cases_of(output, entry_passed):
    """(passed, failed) of one entry."""
    counts = {"passed": 0, "failed": 0}
    nested = NESTED.findall(output)
    if nested:
        counts["passed"], counts["failed"] = (int(word) for word in nested[-1])
    for word, count in [] if nested else CMOCKA.findall(output):
        counts[word.lower()] += int(count)
    for line in [] if nested else PYTEST_LINE.findall(output):
        for count, word in PYTEST_PART.findall(line):
            counts["passed" if word == "passed" else "failed"] += int(count)
    if not any(counts.values()):
        counts["passed" if entry_passed else "failed"] = 1
    elif not entry_passed and counts["failed"] == 0:
        counts["failed"] = 1
    return counts["passed"], counts["failed"]


def main():
    passed = failed = 0
    for path in sys.argv[1:]:
        for entry in xml.etree.ElementTree.parse(path).iter("testcase"):
            output = entry.findtext("system-out") or ""
            plus, minus = cases_of(output, entry.get("status") == "run")
            passed, failed = passed + plus, failed + minus
    print(f"{passed} passed, {failed} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
