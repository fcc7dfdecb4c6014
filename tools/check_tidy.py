#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_tidy: runs clang-tidy over the C sources, in parallel, each file once.

usage: tools/check_tidy.py ROOT BUILD [FILE...]

BUILD holds compile_commands.json. The default is every C file of src/ that the build compiles; a
file that the build compiles twice (T code) is checked once. Flags that only gcc knows are dropped.
A clean file is cached in BUILD/tidy by the content of its dependencies: the file, its flags, the
configuration, and the project's headers that the preprocessor reads for it. So a second run checks
only changed files. Exit status 1 and clang-tidy's output per finding.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

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


def dependencies(root, path, flags):
    """The file and the project's headers that it includes. If one is missing, only the file:
    clang-tidy rejects such a file, and only clean files are cached."""
    run = subprocess.run(["cc", "-MM", *flags, str(path)], cwd=root, capture_output=True, text=True,
                         check=False)
    if run.returncode != 0:
        return [path]
    words = run.stdout.split(":", 1)[1].replace("\\\n", " ").split()
    return sorted({root / word for word in words})


def fingerprint(root, path, flags):
    digest = hashlib.sha256(json.dumps(flags).encode())
    for part in (root / ".clang-tidy", *dependencies(root, path, flags)):
        digest.update(part.read_bytes())
    return digest.hexdigest()


def check(root, build, path, flags):
    """Return clang-tidy's findings about one file, "" without findings."""
    memory = build / "tidy" / fingerprint(root, path, flags)
    if memory.exists():
        return ""
    run = subprocess.run(["clang-tidy", "--quiet", str(path), "--", *flags], cwd=root,
                         capture_output=True, text=True, check=False)
    if run.returncode == 0:
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.touch()
        return ""
    return run.stdout + run.stderr


def main():
    root, build = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    wanted = {pathlib.Path(word).resolve() for word in sys.argv[3:]}
    files = commands(root, build, wanted)
    if not files:
        print("check_tidy: the build compiles no such file")
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda item: check(root, build, *item), files.items()))
    for text in said:
        if text:
            print(text)
    print(f"clang-tidy: {len(files)} files, {sum(1 for text in said if text)} with findings")
    return 1 if any(said) else 0


if __name__ == "__main__":
    sys.exit(main())
