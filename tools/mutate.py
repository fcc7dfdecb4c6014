#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate: plants faults in the sources, one at a time, and reports the faults that no test notices.

usage: tools/mutate.py [--count N] [--seed N] [--only FOLDER] [--near] [--keep DIR]

Works on a copy of the committed tree with its own build. A fault is drawn at random: a comparison
that is off by one or negated, `and` for `or`, a sign, a constant, a condition, a removed statement.
A fault that does not compile is drawn again. The unit test of the same name runs first, then the
tests nearest to the file, then all of `make test`; the first failure ends the run. --near omits the
last step. Prints a line for each fault and the share of noticed faults; exit status 1 if the share
is below 85 of 100. Some faults change nothing observable: examine each survivor before you write a
test.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

WANTED_SHARE = 0.85
ROOT = pathlib.Path(__file__).resolve().parents[1]
NO_PRODUCT = re.compile(r"_test\.c$|/fuzz_\w+\.c$|/test_")
TEST_TIMEOUT_S = 1800

# Patterns and their replacements. The spaces are clang-format's, so that templates, pointers and
# unary operators do not match.
FAULTS = [
    ("comparison", r" < ", " <= "), ("comparison", r" <= ", " < "), ("comparison", r" > ", " >= "),
    ("comparison", r" >= ", " > "), ("negation", r" == ", " != "), ("negation", r" != ", " == "),
    ("logic", r" && ", " || "), ("logic", r" \|\| ", " && "), ("sign", r" \+ ", " - "),
    ("sign", r" - ", " + "), ("sign", r" \+= ", " -= "), ("sign", r" -= ", " += "),
    ("off by one", r" \+ 1\b", ""), ("off by one", r" - 1\b", ""), ("bits", r" \|= ", " = "),
    ("bits", r" &= ", " = "), ("bits", r" >> ", " << "), ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"), ("constant", r"(?<= )(\d+)(?=[;,)\s])", None),
    ("condition", r"\bif \((?=[^\n]*\) \{$)", "if (!"),
    ("statement", r"^ {4,}(?!return|break|case|goto|default|static|const|struct|enum|uint|int|size_t|bool|char|TRY|CLEANUP|\})"
     r"[\w>\[\]*][\w>.\[\]*-]*(?: [|&+-]?= [^;{]*|\([^;{]*\));$", ""),
]

# Faults that no test can notice: the larger or the smaller of two equal values, and memory leaks,
# which the sanitizers of `make check` find.
EQUIVALENT = {
    "comparison": re.compile(r"([\w.>\[\]*-]+) [<>]=? ([\w.>\[\]*-]+)\s\?\s(?:\1 : \2|\2 : \1)\b"),
    "statement": re.compile(r"\s*(?:\w+_)?(?:release|free)\("),
}

# Regular expressions of ctest entries, nearest first, by module (tools/check_layers.py).
NEAREST = {
    "base": ["unit.base", "unit"], "host": ["unit.host", "unit", "cli"],
    "session": ["unit.session|unit.producer", "unit.recorder", "unit.preload", "e2e.counts|e2e.nursery|e2e.lifecycle"],
    "target/producer": ["unit.producer", "unit.recorder", "unit.preload", "e2e.counts|e2e.nursery|e2e.lifecycle"],
    "target/unwind": ["unit.unwind", "unit.preload", "e2e.stacks|e2e.check_unwind"],
    "target/preload": ["unit.preload", "e2e.counts|e2e.lifecycle|e2e.control", "e2e"],
    "recording": ["unit.recording|recording", "unit.recorder|cli"],
    "aggregate": ["unit.aggregate|unit.recorder", "e2e.counts|e2e.blocks|e2e.events", "e2e"],
    "recorder": ["unit.recorder", "fuzz.session|fuzz.proc", "e2e.counts|e2e.blocks|e2e.events", "e2e"],
    "symbols": ["unit.symbols|symbols", "e2e.names|cli"],
    "views_json": ["unit.server|server", "cli|formats"],
    "profile": ["unit.profile", "cli", "formats|server"],
    "formats": ["formats|fuzz.import", "cli"], "server": ["unit.server|server", "viewer"],
    "cli": ["unit.cli|cli", "e2e.command_line|e2e.refusals|e2e.output|formats", "e2e"],
}


class Fault(NamedTuple):
    """One change of one file."""
    path: str
    start: int
    end: int
    text: str
    kind: str


def code_only(source):
    """The source with comments, strings, characters and preprocessor lines replaced by spaces."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#(?:[^\n]*\\\n)*[^\n]*'
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    return re.sub(pattern, blank, source, flags=re.M | re.S)


def faults_of(path, source):
    code = code_only(source)
    equal = {kind: [found.span() for found in pattern.finditer(code)] for kind, pattern in EQUIVALENT.items()}
    for kind, pattern, text in FAULTS:
        for found in re.finditer(pattern, code, re.M):
            if any(start <= found.start() < end for start, end in equal.get(kind, [])):
                continue
            if kind == "condition":  # negate all of it: "if (a) {" becomes "if (!(a)) {"
                end = code.index("\n", found.end())
                inner = source[found.end():end].rstrip("{ ")
                yield Fault(path, found.start(), end, f"if (!({inner}) {{", kind)
            else:
                change = str(int(found[1]) + 1) if text is None else text
                yield Fault(path, found.start(), found.end(), change, kind)


def run(command, cwd, log):
    """Return whether the command succeeded; its output goes to the log."""
    with open(log, "w", encoding="utf-8") as out:
        try:
            done = subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=TEST_TIMEOUT_S, check=False)
            return done.returncode == 0
        except subprocess.TimeoutExpired:
            return False


class Copy:
    """A copy of the committed tree, and its build."""

    def __init__(self, folder):
        self.source, self.build = folder / "source", folder / "build"
        self.log = folder / "log"
        self.source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", self.source], input=archive.stdout, check=True)
        configure = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-Wno-dev",
                     "-DBUILD_TESTING=ON", "-DCAIRN_WERROR=OFF"]
        if not (run(configure, folder, self.log) and self.compiles()):
            sys.exit(f"mutate: the copy does not build: see {self.log}")

    def compiles(self):
        return run(["cmake", "--build", self.build], self.source, self.log)

    def failing_test(self, *options):
        """The first entry that fails, None if all pass."""
        command = ["ctest", "--test-dir", self.build, "-j", "2", "--stop-on-failure", "-LE", "^check$", *options]
        if run(command, self.source, self.log):
            return None
        failed = re.search(r"Test +#\d+: (\S+) \.+\s*\**(?:Failed|Timeout|Exception|Subprocess)",
                           self.log.read_text(encoding="utf-8", errors="replace"))
        return failed[1] if failed else "a hang"

    def who_notices(self, fault, near_only):
        module = next((name for name in NEAREST if fault.path.startswith(f"src/{name}/")), None)
        noun = pathlib.PurePath(fault.path).stem
        for entries in [rf"unit\.\w+\.{noun}$", *NEAREST.get(module, ["unit"])]:
            found = self.failing_test("-R", f"^({entries})")
            if found:
                return found
        return None if near_only else self.failing_test()


def draw(copy, only, random_source):
    """Generate faults without end; the probability of a file is proportional to its length."""
    faults = []
    for path in sorted((copy.source / "src").rglob("*.[ch]")):
        name = str(path.relative_to(copy.source))
        if not NO_PRODUCT.search(name) and name.startswith(f"src/{only}"):
            faults += faults_of(name, path.read_text(encoding="utf-8"))
    random_source.shuffle(faults)
    return faults


def describe(copy, fault):
    source = (copy.source / fault.path).read_text(encoding="utf-8")
    line = source.count("\n", 0, fault.start) + 1
    was = " ".join(source[fault.start:fault.end].split())
    return f"{fault.path}:{line}: {fault.kind}: {was[:50]!r} -> {fault.text.strip()[:50]!r}"


def plant(copy, fault, near_only):
    """Return the test that noticed the fault, None without one, "" if the fault does not
    compile."""
    path = copy.source / fault.path
    source = path.read_text(encoding="utf-8")
    path.write_text(source[:fault.start] + fault.text + source[fault.end:], encoding="utf-8")
    try:
        return copy.who_notices(fault, near_only) if copy.compiles() else ""
    finally:
        path.write_text(source, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")))
    parser.add_argument("--only", default="", metavar="FOLDER")
    parser.add_argument("--near", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cairn-mutate.") as folder:
        copy = Copy(options.keep or pathlib.Path(folder))
        print(f"mutate: seed {options.seed}", flush=True)
        planted = noticed = 0
        for fault in draw(copy, options.only, random.Random(options.seed)):
            if planted == options.count:
                break
            words = describe(copy, fault)
            found = plant(copy, fault, options.near)
            if found == "":
                continue
            planted += 1
            noticed += found is not None
            print(f"{'noticed' if found else 'NOT NOTICED'}  {words}  {found or ''}", flush=True)
    print(f"{noticed} of {planted} faults were noticed")
    return 0 if noticed >= WANTED_SHARE * planted else 1


if __name__ == "__main__":
    sys.exit(main())
