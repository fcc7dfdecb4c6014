#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_entries: each entry of the suite runs on the emulated AArch64 machine, or is left out for a reason.

usage: tools/aarch64/check_entries.py BUILD

BUILD is a build for x86-64 with tests. tests/machines/aarch64 has the lists, regular expressions for ctest. Each of
BUILD's entries is in `entries`, `entries_long` or, with a reason above its group, in `entries_left_out`; and each of the
latter leaves out an entry, but for those of the viewer, which a build without npm has not (tests/viewer/CMakeLists.txt).
Prints what is wrong; the status is 0 if nothing is.
"""
import pathlib
import re
import sys

NEEDS_NPM = re.compile(r"viewer|grafana")
LISTS = pathlib.Path(__file__).resolve().parents[2] / "tests/machines/aarch64"


def names_of(build):
    """The entries that CMake has written: ctest itself, even if it only lists them, would begin its log anew."""
    text = (build / "CTestTestfile.cmake").read_text()
    names = re.findall(r'^add_test\((?:\[=*\[|")?([\w.]+)', text, re.M)
    for folder in re.findall(r'^subdirs\("(.*)"\)', text, re.M):
        names += names_of(build / folder)
    return names


def patterns_of(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def without_reason(text):
    """The groups of patterns, between blank lines, that begin with no sentence."""
    groups = re.split(r"\n\n+", text.strip())
    return [group for group in groups if patterns_of(group) and not group.startswith("# ")]


def wrong_entries(names, listed, left_out):
    """What is wrong, in sentences."""
    def has(patterns, name):
        return any(re.search(pattern, name) for pattern in patterns)

    wrong = [f"{name} is in no list of tests/machines/aarch64" for name in names if not has(listed + left_out, name)]
    return wrong + [f"entries_left_out: {pattern} is no entry" for pattern in left_out
                    if not NEEDS_NPM.search(pattern) and not any(has([pattern], name) for name in names)]


def main():
    left_out = (LISTS / "entries_left_out").read_text()
    listed = [pattern for name in ("entries", "entries_long") for pattern in patterns_of((LISTS / name).read_text())]
    wrong = [f"entries_left_out: no reason above {group.splitlines()[0]}" for group in without_reason(left_out)]
    wrong += wrong_entries(names_of(pathlib.Path(sys.argv[1])), listed, patterns_of(left_out))
    for line in wrong:
        print(f"check_entries: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
