#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_tidy: runs clang-tidy over the C sources, in parallel, each file once.

usage: tools/check_tidy.py [--analyze | --analyze-recent] ROOT BUILD [FILE...]

BUILD holds compile_commands.json. The default is every C file of src/ that the build compiles; a
file that the build compiles twice (T code) is checked once. Flags that only gcc knows are dropped.
clang's static analyzer takes four fifths of the time, so it sees the named files, all with --analyze,
and with --analyze-recent those that are not committed or changed in the day before the newest commit,
the newest first and 60 at most: three minutes of two processors, however much a day has brought. It
never sees tests, which run under the sanitizers. It sees one file at a time: clang-tidy 14's keeps
the names of va_start from the first file of its process, and so reports each va_list of the next ones.
Other files are checked some at a time. Attributes that only gcc knows are no findings: gcc compiles all
files and warns of what it does not know.
Clean files are cached in BUILD/tidy by the content of their dependencies: the file, its flags, the
configuration, and the project's headers that the preprocessor reads for it. So a second run checks
only changed files, and those that were checked together with a finding. Exit status 1 and
clang-tidy's output per finding.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

AT_ONCE = 10
DAY_S = 86400
RECENT_MOST = 60
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
                                 if flag not in GCC_ONLY and not flag.startswith("-fsanitize")]
                          + ["-Wno-unknown-attributes"])
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


def recent_changes(root):
    """The files that are not committed, and those that changed in the day before the newest commit, the
    newest first; none without git."""
    def git(*words):
        return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False).stdout
    seconds = git("log", "-1", "--format=%ct").strip()
    if not seconds:
        return []
    names = git("diff", "--name-only", "HEAD") + git("log", f"--since={int(seconds) - DAY_S}", "--name-only", "--format=")
    return [root / name for name in dict.fromkeys(names.splitlines())]


def check(root, build, flags, paths, is_analyzed):
    """Return clang-tidy's findings about files with the same flags; "" without findings."""
    kind = "analyzed" if is_analyzed else "plain"
    memory = {path: build / "tidy" / f"{digest}.{kind}"
              for path, digest in fingerprints(root, paths, flags).items()}
    left = [path for path in paths if path not in memory or not memory[path].exists()]
    if not left:
        return ""
    options = ["--quiet"] if is_analyzed else ["--quiet", "--checks=-clang-analyzer-*"]
    run = subprocess.run(["clang-tidy", *options, *map(str, left), "--", *flags], cwd=root,
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        return run.stdout + run.stderr
    (build / "tidy").mkdir(parents=True, exist_ok=True)
    for mark in memory.values():
        mark.touch()
    return ""


def batches(files, analyzed):
    """What one clang-tidy checks, which takes a quarter of a second to start: a file for the analyzer, or
    some others with the same flags."""
    groups = {}
    for path, flags in files.items():
        key = path if path in analyzed else tuple(flags)
        groups.setdefault(key, (flags, [], path in analyzed))[1].append(path)
    return [(flags, paths[i:i + AT_ONCE], is_analyzed) for flags, paths, is_analyzed in groups.values()
            for i in range(0, len(paths), AT_ONCE)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("root", type=lambda word: pathlib.Path(word).resolve())
    parser.add_argument("build", type=lambda word: pathlib.Path(word).resolve())
    parser.add_argument("files", nargs="*", type=lambda word: pathlib.Path(word).resolve())
    parser.add_argument("--analyze", action="store_true")
    parser.add_argument("--analyze-recent", action="store_true")
    options = parser.parse_args()
    root, build = options.root, options.build
    files = commands(root, build, set(options.files))
    if not files:
        print("check_tidy: the build compiles no such file")
        return 1
    analyzed = {path for path in files if not is_test(path)}
    if options.analyze_recent:
        analyzed = set([path for path in recent_changes(root) if path in analyzed][:RECENT_MOST])
    elif not options.analyze and not options.files:
        analyzed = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = pool.map(lambda batch: check(root, build, *batch), batches(files, analyzed))
        said = [text for text in work if text]
    for text in said:
        print(text)
    print(f"clang-tidy: {len(files)} files, {len(analyzed)} with the analyzer, {'' if said else 'no '}findings")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
