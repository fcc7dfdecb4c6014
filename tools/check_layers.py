#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers: checks every project #include in src/ against the table of modules below.

usage: tools/check_layers.py ROOT

A file may include headers of its own folder, of the folders listed before its own in the same
module, and of the modules that its module may use. So every arrow points down, and there are no
cycles between folders. T modules run inside the recorded program and may use only T modules. The
table itself is checked for that and for unknown names. A folder has at most 25 files, so that its
name describes its content. Headers of an architecture (*_arch.h) are found by their name alone,
because CMake chooses the folder; folders called arch count as the folder above them. The same holds
for headers of a way into the target (*_way.h) and folders called way. Programs and
helpers of tests (test_* folders and files, *_test.c, fuzz_*.c) may use their whole module and every
module above it in the table. Only they may use folders called test_*.

Inside a folder, files may not include each other in a circle. For this a.h and a.c count as one
file; the parts of one thing, a, a_b and a_c, may use each other. Exit status 1 and one line per
finding.
"""
import pathlib
import re
import sys
from typing import NamedTuple


class Module(NamedTuple):
    """A module: its side, the modules that it may use, and its folders, lowest first.

    side: T = inside the recorded program (and perhaps in our processes), H = our processes.
    folders: below the module's own; "." is the module's own folder.
    """
    side: str
    uses: str
    folders: str = "."


# Lowest first: a module may use only modules above it in this table.
MODULES = {
    "base": Module("T", ""),
    "session": Module("T", "base", "books ."),
    "target/producer": Module("T", "base session", "waiting words . book entry"),
    "target/unwind": Module("T", "base session", "cfi environment . walk"),
    "target/preload": Module("T", "base session target/producer target/unwind",
                             "real python stacks process record exports"),
    "target/agent": Module("T", "base session target/producer target/unwind target/preload"),
    "host": Module("H", "base", "containers text os threads memory http"),
    "recording": Module("H", "base host", "format merge read write"),
    "aggregate": Module("H", "base session host recording", "tables rows totals peak . books"),
    "symbols": Module("H", "base session host recording", "names elf dwarf jit runtimes ."),
    "inject/process": Module("H", "base host", ". threads"),
    "inject/code": Module("H", "base session host"),
    "inject/allocators": Module("H", "base session host symbols"),
    "inject": Module("H", "base session host inject/process inject/code inject/allocators"),
    "attach": Module("H", "base session host inject inject/process inject/code inject/allocators symbols"),
    "recorder": Module("H", "base session host recording aggregate symbols inject/allocators inject/process attach",
                       "aside session processes runtimes launch sharing samples release memory outside output lanes ingest control ."),
    "profile": Module("H", "base host recording symbols",
                      "model accuracy select names calls time growth tables compare findings"),
    "views_json": Module("H", "base host recording profile", "layout views"),
    "formats": Module("H", "base host recording aggregate profile views_json", "codec import export"),
    "store": Module("H", "base host recording profile formats"),
    "push": Module("H", "base host recording profile formats"),
    "server": Module("H", "base host recording profile views_json formats store",
                     "http access state metrics store api pages ."),
    "cli": Module("H", "base session host recording aggregate symbols inject/allocators recorder profile "
                  "views_json formats store push server",
                  "text options warnings diff report names check top store record probe doctor commands ."),
}

FILES_MAX = 25
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
TEST = re.compile(r"(_test\.c$|(^|/)(fuzz_|test_)[^/]*)")


def table_findings(modules):
    """Findings in the table itself."""
    seen = []
    for name, module in modules.items():
        for used in module.uses.split():
            if used not in seen:
                yield f"table: {name} may use {used}, which is not above it"
            elif module.side == "T" and modules[used].side != "T":
                yield f"table: {name} runs in the target and may not use {used}"
        seen.append(name)


def place_of(name, modules):
    """(module, folder in it) of a path below src/; None if the table has neither."""
    parts = [part for part in pathlib.PurePath(name).parent.parts]
    for at, part in enumerate(parts):
        if part in ("arch", "way") or part.startswith("test_"):
            parts = parts[:at]
            break
    folder = "/".join(parts)
    for module in modules:
        if folder == module or folder.startswith(module + "/"):
            inner = folder[len(module) + 1:] or "."
            return (module, inner) if inner in modules[module].folders.split() else None
    return None


def may_use(user, used, is_test, modules):
    """Return whether a file at `user` may include a header at `used`, both from place_of."""
    if user[0] != used[0]:
        above = list(modules)[:list(modules).index(user[0])]
        return used[0] in (above if is_test else modules[user[0]].uses.split())
    order = modules[user[0]].folders.split()
    return is_test or order.index(used[1]) <= order.index(user[1])


def file_findings(root, path, modules):
    """Findings in the includes of one file."""
    where = path.relative_to(root)
    name = str(path.relative_to(root / "src"))
    user = place_of(name, modules)
    if user is None:
        yield f"{where}: its folder is not in the table of modules"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        if header.endswith(("_arch.h", "_way.h")) and "/" not in header:
            continue
        used = place_of(header, modules)
        if "/" not in header:
            yield f"{where}:{number}: include by its path from src/: {header}"
        elif header.endswith(".c"):
            yield f"{where}:{number}: includes a source file: {header}"
        elif "/test_" in header and TEST.search(name):
            continue
        elif used is None or "/test_" in header or not may_use(user, used, bool(TEST.search(name)), modules):
            yield f"{where}:{number}: {'/'.join(user).removesuffix('/.')} may not use {header}"


def reach(uses, start):
    """All that `start` uses, directly or by way of others."""
    reached, ahead = set(), [start]
    while ahead:
        new = uses.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return reached


def circle_findings(root):
    """Files of one folder that include each other in a circle."""
    uses = {}
    for path in (root / "src").rglob("*.[ch]"):
        name = path.relative_to(root / "src").with_suffix("")
        if not TEST.search(f"{name}{path.suffix}"):
            matches = map(INCLUDE.match, path.read_text(errors="replace").splitlines())
            used = {pathlib.PurePath(match.group(1)).with_suffix("") for match in matches if match}
            uses.setdefault(name, set()).update(other for other in used - {name} if other.parent == name.parent)
    for start in sorted(uses):
        circle = sorted(other for other in reach(uses, start) if start in reach(uses, other))
        whole = min((name.name for name in circle), key=len, default="")
        if circle and start == circle[0] and any(not f"{name.name}_".startswith(f"{whole}_") for name in circle):
            yield f"src/{start}: includes itself by way of {', '.join(name.name for name in circle[1:])}"


def folder_findings(root):
    """Folders of src/ with too many files for one name."""
    for folder in sorted(path for path in (root / "src").rglob("*") if path.is_dir()):
        count = sum(path.is_file() for path in folder.iterdir())
        if count > FILES_MAX:
            yield f"{folder.relative_to(root)}: {count} files, at most {FILES_MAX}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = [*table_findings(MODULES), *folder_findings(root), *circle_findings(root)]
    for path in sorted((root / "src").rglob("*.[ch]")):
        programs = any(part.startswith("test_") for part in path.parent.relative_to(root / "src").parts)
        if path.parent != root / "src" and not programs:
            findings += file_findings(root, path, MODULES)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
