#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_style: checks the rules of STYLE.md that a text search can check.

usage: tools/check_style.py [--format-recent] ROOT

Every file begins with its licence and a module comment; a .c file may instead begin with its own
header, which has one. clang-format accepts the layout; it takes three quarters of the time, so with
--format-recent it reads what the analyzer of check_tidy.py would. Some functions and words are banned, each
with a reason. System calls that the oldest supported headers lack are in cmake/older_system.h. A
mistake that a new rule would find gets a rule here. Exit status 1 and one line per finding.
"""
import pathlib
import re
import subprocess
import sys

from check_tidy import RECENT_MOST, recent_changes

FOLDERS = ["src", "include", "tests", "tools", "demo", "bench", "cmake", "rust"]
C_SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
COMMENTED = {".c": "//", ".h": "//", ".cpp": "//", ".hpp": "//", ".rs": "//", ".py": "#",
             ".sh": "#", ".cmake": "#", "Makefile": "#", "run": "#"}
SPDX = "SPDX-License-Identifier: MIT"

# Only in src/: name -> what to do instead.
BANNED_FUNCTIONS = {
    "strcpy": "strbuf or memcpy with a checked length",
    "strcat": "strbuf",
    "strncpy": "strbuf or memcpy with a checked length",
    "strncat": "strbuf",
    "sprintf": "snprintf or strbuf_printf",
    "vsprintf": "vsnprintf",
    "gets": "getline",
    "strtok": "a cursor",
    "atoi": "a parser that can say no",
    "atol": "a parser that can say no",
    "atoll": "a parser that can say no",
    "atof": "a parser that can say no",
    "strtol": "number_parse, number_take",
    "strtoul": "number_parse, number_take",
    "strtoll": "number_parse, number_take",
    "strtoull": "number_parse, number_take",
    "alloca": "a bounded array",
    "rand": "a generator with its own state",
    "system": "posix_spawn",
    "popen": "posix_spawn",
    "usleep": "waiting for an event",
    "signal": "sigaction",
    "localtime": "localtime_r",
}
BANNED_CALL = re.compile(r"(?<![\w.>\"])(" + "|".join(BANNED_FUNCTIONS) + r")\s*\(")
# How the files of another process are reached. Only TARGET_FILE may; check_symbols.py finds all that open a path.
TARGET_PATH = re.compile(r'"[^"]*/proc/[^"]*/(root|map_files|cwd)\b')
TARGET_FILE = "src/host/os/target_file.c"
# What a hook writes to its lane goes through LANE_ENTRY, which begins the thread's tick first.
LANE_ENTRY = "src/target/producer/entry/lane_entry.h"
LANE_FOLDERS = ("src/target/producer/", "src/target/preload/stacks/")
LANE_WRITE = re.compile(r"(?<![\w.>])(lane_turn|"
                        r"book_(allocate|free|count_freed|pass)|lane_producer_(advance|begin_stack|make_room|publish|"
                        r"reserve|send_\w+|tick))\s*\(")
# What creates a file creates it alone: past a link, a pipe or a file that was put there.
CREATES = re.compile(r"\bO_CREAT\b(?!.*\bO_EXCL\b)")
# Constants that have one place: base/clock.h, base/page.h.
CONSTANT = re.compile(r"#\s*define\s+(NS_PER_\w+|MS_PER_S|US_PER_MS|PAGE(_BYTES|_SIZE)?)\b|"
                      r"\b(NS_PER_\w+|MS_PER_S|US_PER_MS|PAGE(_BYTES|_SIZE)?)\s*=\s*\d")
CONSTANT_HOMES = ("src/base/clock.h", "src/base/page.h")
GOTO = re.compile(r"^\s*goto\s+\w+;", re.M)
OPENING = re.compile(r"// (?:arch/\w+/)?(\w+)(?:,| \(.*\))?:? ")
OWN_HEADER = re.compile(r'#include "(?:\w+/)*(\w+)\.h"')
COLUMNS = 100  # clang-format does not wrap comments, which keeps drawings intact
OPEN_POINT = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?! ?\(?#\d+)")
VAGUE_NAME = re.compile(r"(^|_)(util|utils|misc|common|helper|helpers|manager)(_|$)")
# In identifiers of src/: private word -> term of docs/glossary.md.
PRIVATE_WORDS = {
    "young": "recent",
    "pressed": "under pressure",
    "left_out": "unsampled or omitted",
    "stand_in": "represented",
    "question": "query",
    "summit": "high-water mark",
    "told": "reported",
}
PRIVATE_WORD = re.compile(r"(?<![a-z])(" + "|".join(PRIVATE_WORDS) + r")s?(?![a-z])", re.I)
# In comments of src/: words of no plain English sentence about code.
ODD_WORDS = re.compile(r"//.*\b(for ever|of which|nobody|whoever)\b", re.I)
OLDEST_CALLS = 435  # the last system call of Linux 5.4
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMMENT = re.compile(r"//.*|/\*.*?\*/")


def source_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not {"node_modules", "__pycache__", "corpus"} & set(path.parts):
                yield path
    yield from (path for path in (root / "Makefile", root / ".ci" / "run") if path.exists())


def head_findings(root, path, lines):
    mark = COMMENTED.get(path.suffix) or COMMENTED.get(path.name)
    if not mark:
        return
    where = path.relative_to(root)
    body = lines[1:] if lines and lines[0].startswith("#!") else lines
    if not body or body[0] != f"{mark} {SPDX}":
        yield f"{where}:1: does not open with '{mark} {SPDX}'"
    elif path.suffix in (".c", ".h") and where.parts[0] == "src":
        is_told = len(body) > 1 and path.stem in {match.group(1) for match in (
            OPENING.match(body[1]), OWN_HEADER.fullmatch(body[1])) if match}
        if not path.stem.endswith("_test") and not is_told:
            yield f"{where}:2: no module comment that begins with '// {path.stem}: '"
        if path.suffix == ".h" and "#pragma once" not in body:
            yield f"{where}:1: no #pragma once"


def reaches_target(where, line, bare):
    """Whether a line opens or maps a file that a profiled process may have chosen."""
    name = where.as_posix()
    if name == TARGET_FILE or where.stem.endswith("_test") or "/test_" in name or "/fuzz_" in name:
        return False
    return bool(TARGET_PATH.search(line) or "ELF_C_READ_MMAP" in bare)


def goes_around_entry(where, bare):
    """Whether a line of a hook writes to a lane that it may not have entered."""
    name = where.as_posix()
    return (name.startswith("src/target/") and not name.startswith(LANE_FOLDERS) and
            not where.stem.endswith("_test") and bool(LANE_WRITE.search(bare)))


def bare_line(line):
    """A line without its comments, and with empty strings."""
    line = STRING.sub('""', line) if '"' in line else line
    return COMMENT.sub("", line) if "/" in line else line


def is_suspect(text, bare_text):
    """Whether any line of a source file of src/ may have a finding: few files have one, and all rules for each line of
    all files take seconds."""
    return bool("ELF_C_READ_MMAP" in bare_text or TARGET_PATH.search(text) or ODD_WORDS.search(text) or
                any(rule.search(bare_text) for rule in (BANNED_CALL, PRIVATE_WORD, LANE_WRITE, CREATES, CONSTANT, GOTO)))


def code_findings(root, path, lines):
    where = path.relative_to(root)
    text = "\n".join(lines)
    if path.name not in ("check_style.py", "test_checks.py") and OPEN_POINT.search(text):
        for number in (number for number, line in enumerate(lines, 1) if OPEN_POINT.search(line)):
            yield f"{where}:{number}: an open point without the number of its issue"
    if path.suffix in C_SUFFIXES:
        for number in (number for number, line in enumerate(lines, 1) if len(line) > COLUMNS):
            yield f"{where}:{number}: longer than {COLUMNS} columns"
    if path.suffix not in (".c", ".h") or where.parts[0] != "src":
        return
    bare = [bare_line(line) for line in lines]
    if is_suspect(text, "\n".join(bare)):
        for number, line in enumerate(lines, 1):
            for finding in line_findings(where, line, bare[number - 1]):
                yield f"{where}:{number}: {finding}"


def line_findings(where, line, bare):
    """What is wrong with a line of a source file of src/."""
    is_test = where.stem.endswith("_test")
    match = BANNED_CALL.search(bare)
    if match and not is_test:
        yield f"{match.group(1)} is banned: {BANNED_FUNCTIONS[match.group(1)]}"
    word = PRIVATE_WORD.search(bare)
    if word and not is_test:
        yield f"'{word.group(1)}' is a private word: {PRIVATE_WORDS[word.group(1).lower()]}"
    odd = ODD_WORDS.search(STRING.sub('""', line))
    if odd:
        yield f"'{odd.group(1)}' in a comment: name the subject"
    if reaches_target(where, line, bare):
        yield "host/os/target_file.h opens what a process names"
    if goes_around_entry(where, bare):
        yield f"hooks write to a lane by {LANE_ENTRY}"
    if CREATES.search(bare) and not is_test and "/test_" not in where.as_posix():
        yield "O_CREAT without O_EXCL: file_create, file_create_missing"
    is_product = not is_test and not where.stem.startswith("fuzz_") and "/test_" not in where.as_posix()
    if CONSTANT.search(bare) and is_product and where.as_posix() not in CONSTANT_HOMES:
        yield "base/clock.h and base/page.h have this constant"
    if GOTO.search(bare):
        yield "goto is banned: CLEANUP, or a function of its own"


def name_findings(root, paths):
    seen = {}
    for path in paths:
        where = path.relative_to(root)
        if where.parts[0] != "src":
            continue
        if VAGUE_NAME.search(path.stem):
            yield f"{where}: the name says nothing: {path.stem}"
        if path.suffix in (".c", ".h") and not {"arch", "way"} & set(where.parts):
            if path.name in seen:
                yield f"{where}: the same file name as {seen[path.name]}"
            seen[path.name] = where


def older_findings(root, paths):
    """System calls in src/ whose names the archive is built without."""
    run = subprocess.run(["cc", "-E", "-dM", "-x", "c", "-include", "sys/syscall.h", "/dev/null"],
                         capture_output=True, text=True, check=True)
    newer = {name for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", run.stdout, re.M)
             if int(number) > OLDEST_CALLS}
    header = root / "cmake" / "older_system.h"
    defined = set(re.findall(r"define SYS_(\w+) ", header.read_text())) if header.exists() else set()
    for path in paths:
        if path.suffix not in (".c", ".h") or path.relative_to(root).parts[0] != "src":
            continue
        for name in sorted(set(re.findall(r"\bSYS_(\w+)", path.read_text(errors="replace"))) & newer - defined):
            yield f"{path.relative_to(root)}: SYS_{name} is not in cmake/older_system.h"


def format_findings(root, paths):
    files = [str(path) for path in paths if path.suffix in C_SUFFIXES]
    if not files:
        return
    run = subprocess.run(["clang-format", "--style=file", "--dry-run", *files], cwd=root,
                         capture_output=True, text=True, check=False)
    unhappy = sorted(set(re.findall(r"^(/[^:\n]+):\d+:\d+: warning", run.stderr, re.M)))
    for name in unhappy:
        yield f"{pathlib.Path(name).relative_to(root)}: clang-format would change it (make fmt)"
    if run.returncode != 0 and not unhappy:
        yield f"clang-format failed: {run.stderr.strip()}"


def main():
    root = pathlib.Path(sys.argv[-1]).resolve()
    paths = list(source_files(root))
    recent = set(recent_changes(root)[:RECENT_MOST]) if "--format-recent" in sys.argv else set(paths)
    formatted = [path for path in paths if path in recent]
    findings = [*name_findings(root, paths), *older_findings(root, paths), *format_findings(root, formatted)]
    for path in paths:
        lines = path.read_text(errors="replace").splitlines()
        findings += [*head_findings(root, path, lines), *code_findings(root, path, lines)]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
