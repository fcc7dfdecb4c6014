#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count_tests: counts the single cases in the entries of a ctest run.

usage: tools/count_tests.py [--failed | --said] RESULTS.xml...

Reads ctest's JUnit files and searches each entry's output for the closing lines of cmocka and
pytest, or of this script in a nested run. An entry without such a line is one case. Prints "N
passed, N failed". Entries of RESULTS.again.xml, a second try, count instead of those of
RESULTS.xml.

--failed: print the names of the entries that failed. --said: print the end of what they said.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

NESTED = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED)  \] .*?(\d+) test\(s\)", re.M)
PYTEST_LINE = re.compile(r"^(?:=+ )?((?:\d+ \w+,? ?)+) in [\d.]+s", re.M)
PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
SAID_LINES = 60


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


def entries_of(path):
    """{name: (passed, output)} of a JUnit file."""
    found = {}
    for entry in xml.etree.ElementTree.parse(path).iter("testcase"):
        found[entry.get("name")] = (entry.get("status") == "run", entry.findtext("system-out") or "")
    return found


def print_failed(paths, with_output):
    for path in paths:
        for name, (entry_passed, output) in entries_of(path).items():
            if not entry_passed:
                print(name)
                print(*(f"  {line}\n" for line in output.splitlines()[-SAID_LINES:] if with_output), sep="", end="")


def print_counts(paths):
    passed = failed = 0
    for path in paths:
        entries = entries_of(path)
        again = pathlib.Path(path).with_suffix(".again.xml")
        entries.update(entries_of(again) if again.exists() else {})
        for entry_passed, output in entries.values():
            plus, minus = cases_of(output, entry_passed)
            passed, failed = passed + plus, failed + minus
    print(f"{passed} passed, {failed} failed")


def main():
    if sys.argv[1] in ("--failed", "--said"):
        print_failed(sys.argv[2:], sys.argv[1] == "--said")
    else:
        print_counts(sys.argv[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
