#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_tidy: runs clang-tidy over the C sources, in parallel, each file once.

usage: tools/check_tidy.py ROOT BUILD [FILE...]

BUILD holds compile_commands.json. The default is every C file of src/ that the build compiles; a
file that the build compiles twice (T code) is checked once. Flags that only gcc knows are dropped.
Tests are checked without the static analyzer, which takes most of the time: they run under
the sanitizers. They are checked some at a time. Other files are checked one at a time: the static
analyzer of clang 14 compares va_start with the names of the first file of its process, and reports
every va_list of the next ones.
Clean files are cached in BUILD/tidy by the content of their dependencies: the file, its flags, the
configuration, and the project's headers that the preprocessor reads for it. So a second run checks
only changed files, and those that were checked together with a finding. Exit status 1 and
clang-tidy's output per finding.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

TESTS_AT_ONCE = 10
GCC_ONLY = {"-fno-plt", "-Wno-clobbered", "-Wlogical-op"}


def commands(root, build, wanted):
    """file -> compiler arguments without compiler, output and source."""
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.suffix != ".c" or not path.is_relative_to(root / "src"):
            continue
        if wanted and path not in wanted:
            continue
        words = entry["command"].split()
        flags = [word for word in words[1:]
                 if word.startswith(("-I", "-D", "-std", "-W", "-isystem", "-f", "-O"))]
        chosen.setdefault(path, [flag.replace('\\"', '"') for flag in flags
                                 if flag not in GCC_ONLY and not flag.startswith("-fsanitize")])
    return chosen


def dependencies(root, paths, flags):
    """Each file with the project's headers that it includes. {} if a header is missing: clang-tidy
    rejects such a file."""
    run = subprocess.run(["cc", "-MM", *flags, *map(str, paths)], cwd=root, capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        return {}
    rules = [rule.split(":", 1)[1].split() for rule in run.stdout.replace("\\\n", " ").splitlines()]
    return {root / words[0]: sorted({root / word for word in words}) for words in rules}


def fingerprints(root, paths, flags):
    """What decides whether clang-tidy finds anything, of each file."""
    found = {}
    for path, sources in dependencies(root, paths, flags).items():
        digest = hashlib.sha256(json.dumps(flags).encode())
        for part in (root / ".clang-tidy", *sources):
            digest.update(part.read_bytes())
        found[path] = digest.hexdigest()
    return found


def is_test(path):
    return path.name.endswith("_test.c")


def check(root, build, flags, paths):
    """Return clang-tidy's findings about tests, or about other files, with the same flags; "" without
    findings."""
    memory = {path: build / "tidy" / digest for path, digest in fingerprints(root, paths, flags).items()}
    left = [path for path in paths if path not in memory or not memory[path].exists()]
    if not left:
        return ""
    options = ["--quiet", "--checks=-clang-analyzer-*"] if is_test(left[0]) else ["--quiet"]
    run = subprocess.run(["clang-tidy", *options, *map(str, left), "--", *flags], cwd=root,
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return run.stdout + run.stderr
    (build / "tidy").mkdir(parents=True, exist_ok=True)
    for mark in memory.values():
        mark.touch()
    return ""


def batches(files):
    """What one clang-tidy checks, which takes a quarter of a second to start: a file that is no test, or
    some tests with the same flags."""
    groups = {}
    for path, flags in files.items():
        groups.setdefault(tuple(flags) if is_test(path) else path, (flags, []))[1].append(path)
    return [(flags, paths[i:i + TESTS_AT_ONCE]) for flags, paths in groups.values()
            for i in range(0, len(paths), TESTS_AT_ONCE)]


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    wanted = {pathlib.Path(word).resolve() for word in sys.argv[3:]}
    files = commands(root, build, wanted)
    if not files:
        print("check_tidy: the build compiles no such file")
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(lambda batch: check(root, build, *batch), batches(files)) if text]
    for text in said:
        print(text)
    print(f"clang-tidy: {len(files)} files, {'' if said else 'no '}findings")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
