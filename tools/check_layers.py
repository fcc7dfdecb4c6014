#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_layers: holds every project #include in src/ against the table of layers below.

usage: tools/check_layers.py ROOT

A folder of src/ may include its own headers and those of the folders listed for it, nothing else.
T folders run inside the recorded program and therefore may use only T folders; the table itself is
checked for that, for unknown names and for cycles. Headers of an architecture (*_arch.h) are found
by their name alone, since CMake chooses the folder; programs that only tests run live in test_*
folders and are not looked at. Exit status 1 and one line per finding.
"""
import pathlib
import re
import sys

# folder: (side, folders it may use). T = inside the target, H = our own processes. Lowest first:
# an entry may name only folders above it, so there is no cycle.
LAYERS = {
    "base": ("T", []),
    "host": ("H", ["base"]),
    "session": ("T", ["base"]),
    "unwind": ("T", ["base", "session"]),
    "preload": ("T", ["base", "session", "unwind"]),
    "recording": ("H", ["base", "host"]),
    "recorder": ("H", ["base", "host", "session", "recording"]),
    "symbols": ("H", ["base", "host", "recording"]),
    "profile": ("H", ["base", "host", "recording", "symbols"]),
    "formats": ("H", ["base", "host", "recording", "profile"]),
    "server": ("H", ["base", "host", "recording", "profile", "formats"]),
    "cli": ("H", ["base", "host", "session", "recording", "recorder", "symbols", "profile",
                  "formats", "server"]),
}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def table_findings(layers):
    """What is wrong with the table itself."""
    seen = []
    for folder, (side, uses) in layers.items():
        for used in uses:
            if used not in seen:
                yield f"table: {folder} may use {used}, which is not below it"
            elif side == "T" and layers[used][0] != "T":
                yield f"table: {folder} runs in the target and may not use {used}"
        seen.append(folder)


def file_findings(root, path, layers):
    """What is wrong with the includes of one file."""
    where = path.relative_to(root)
    folder = path.relative_to(root / "src").parts[0]
    if folder not in layers:
        yield f"{where}: folder {folder} is not in the table of layers"
        return
    allowed = [folder, *layers[folder][1]]
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        used = name.split("/")[0]
        if name.endswith("_arch.h") and "/" not in name:
            continue
        if "/" not in name:
            yield f"{where}:{number}: include by its path from src/: {name}"
        elif name.endswith(".c"):
            yield f"{where}:{number}: includes a source file: {name}"
        elif used not in allowed:
            yield f"{where}:{number}: {folder} may not use {used}: {name}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = list(table_findings(LAYERS))
    for path in sorted((root / "src").rglob("*.[ch]")):
        if path.parent != root / "src" and not path.parent.name.startswith("test_"):
            findings += file_findings(root, path, LAYERS)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
