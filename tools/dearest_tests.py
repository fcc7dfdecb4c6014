#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dearest_tests: prints which entries of a ctest run took the most processor time, and the sum of all.

usage: tools/dearest_tests.py TIMES

Each line of TIMES has the name of an entry and its seconds in programs and in the kernel (tests/test_entry.c). What a
child that nothing waited for has used is not in it.
"""
import pathlib
import sys

MOST = 10


def main():
    path = pathlib.Path(sys.argv[1])
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    entries = [(float(user) + float(system), float(system), name) for name, user, system in lines]
    print(f"processor time: {sum(row[0] for row in entries):.0f} s, of it in the kernel "
          f"{sum(row[1] for row in entries):.0f} s; {len(entries)} entries, the dearest:")
    for total, system, name in sorted(entries, reverse=True)[:MOST]:
        print(f"{total:8.1f} s  {system:6.1f} s in the kernel  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
