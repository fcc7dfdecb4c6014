#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_sizes: finds source files over 500 lines, tests over 800, and functions over 70.

usage: tools/check_sizes.py ROOT

The size of a function is the number of lines between its braces. This relies on clang-format: it
puts the braces of a function into column 0, and no other closing brace before them. LARGE has the
files that are larger than that, with the lines that they may have: lower them as the files become
smaller. An entry that is not needed is a finding. Exit status 1 and one line per finding.
"""
import pathlib
import re
import sys

FILE_LINES_MAX = 500
TEST_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
FOLDERS = ["src", "include", "tests", "tools", "demo", "bench", "rust"]
SUFFIXES = {".c", ".h", ".cpp", ".py", ".sh", ".rs"}

TEST = re.compile(r"(_test\.c$|(^|/)(test|fuzz)_|^tests/)")

LARGE = {
    "src/inject/code/arch/x86_64/changed_registers.c": 528,
    "src/inject/process/threads/arch/x86_64/lent_call.c": 540,
    "src/recorder/recorder_attach.c": 640,
    "src/store/clickhouse_engine.c": 580,
    "src/store/sqlite_engine.c": 580,
    "src/target/producer/book/book.c": 560,
    "src/target/unwind/walk/walk.c": 560,
}

FUNCTION_NAME = re.compile(r"(\w+)\s*\(")


def c_functions(lines):
    """Yield (name, first line number, body lines) of each function of a C or C++ file."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start is not None:
            head = start - 1
            while head > 1 and lines[head - 1][:1] in (" ", "\t"):
                head -= 1
            match = FUNCTION_NAME.search(lines[head - 1])
            yield (match.group(1) if match else "?", head, number - start - 1)
            start = None


def python_functions(lines):
    """Yield (name, first line number, lines) of each function at any depth of a Python file."""
    open_functions = []
    for number, line in enumerate([*lines, "end"], 1):
        if not line.strip() or line.lstrip().startswith((")", "#")):
            continue
        indent = len(line) - len(line.lstrip())
        while open_functions and indent <= open_functions[-1][2]:
            name, first, _, last = open_functions.pop()
            yield (name, first, last - first)
        for function in open_functions:
            function[3] = number
        match = re.match(r"\s*def (\w+)", line)
        if match:
            open_functions.append([match.group(1), number, indent, number])


def file_findings(root, path):
    where = str(path.relative_to(root))
    lines = path.read_text(errors="replace").splitlines()
    usual = TEST_LINES_MAX if TEST.search(where) else FILE_LINES_MAX
    most = LARGE.get(where, usual)
    if len(lines) > most:
        yield f"{where}: {len(lines)} lines, more than {most}"
    if where in LARGE and len(lines) <= usual:
        yield f"{where}: LARGE has it, but it is not large"
    functions = {".py": python_functions, ".sh": lambda _: ()}.get(path.suffix, c_functions)
    for name, number, count in functions(lines):
        if count > FUNCTION_LINES_MAX:
            yield f"{where}:{number}: {name} has {count} lines, more than {FUNCTION_LINES_MAX}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "node_modules" not in path.parts:
                findings += file_findings(root, path)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
