#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate: plants faults in the sources, one at a time, and reports the faults that no test notices.

usage: tools/mutate.py [--count N] [--seed N] [--skip N] [--only FOLDER] [--own | --all] [--jobs N]
                       [--keep DIR]

Works on a copy of the committed tree with its own build. A fault is drawn at random, from each
module in proportion to its lines: a comparison that is off by one or negated, `and` for `or`, a
sign, a constant, a condition, a removed statement. A fault that does not compile without a warning,
or that leaves the object file as it was, is drawn again. The module's unit tests run first and with
--own alone, then the entries whose names share a word with the file's path and those of NEAREST,
and with --all everything else of `make test`; the first failure ends the run. Only what these
entries need is built, and a program that the fault did not change is not run. A test that fails is
repeated, with the fault and without, because it may fail for another reason. A test that runs for
its bound counts as failed.

Prints a line for each fault, and the share of noticed faults with the 95 % interval (Wilson); exit
status 1 if the share is below 85 of 100. Without --all the share is a lower bound. Some faults
change nothing observable: examine each survivor before you write a test.
"""
import argparse
import hashlib
import io
import itertools
import json
import math
import os
import pathlib
import random
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import NamedTuple

WANTED_SHARE = 0.85
ROOT = pathlib.Path(__file__).resolve().parents[1]
NO_PRODUCT = re.compile(r"_test\.c$|/fuzz_\w+\.c$|/test_|/arch/(?!x86_64/)")
BUILD_BOUND_S = 1800
# Of one entry. Unit tests take 15 s at most on an idle machine, the others a minute.
UNIT_BOUND_S = 100
BOUND_S = 300
ALL_BOUND_S = 3600
MARK = "CAIRN_MUTATE"  # set in all processes of the tests

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

# Bodies of functions and tables, by clang-format's layout: faults elsewhere, as in the values of an
# enum, rarely compile or change anything.
BODIES = re.compile(r"^\{\n.*?^\}|^\S[^\n]* = \{\n.*?^\};", re.M | re.S)

# Faults that no test can notice: the larger or the smaller of two equal values, one more or less than
# the 4,294,967,295 entries that fit, the guard of a call that does nothing with an empty array, the
# first value of a variable that the next line passes to be set, prefetching, and memory leaks, which
# the sanitizers of `make check` find. "a > b ? a - b : 0" is 0 for equal numbers either way.
EQUIVALENT = {
    "comparison": re.compile(r"([\w.>\[\]*-]+) [<>]=? ([\w.>\[\]*-]+)\s\?\s(?:\1 : \2|\2 : \1)\b"
                             r"| [<>]=? (?:UINT32_MAX|REC_NONE)\b"
                             r"| > [01]\) \{\n +(?:qsort(?:_r)?|memcpy)\("
                             r"|([\w.>()\[\]*-]+) > (?:\(\w+\))?([\w.>()\[\]*-]+)\s\? \3 - \4 : 0;"),
    "constant": re.compile(r"(?<= )(\w+) = 0;\n +TRY\([^\n]*&\1\b"),
    "statement": re.compile(r"^ *(?:\w+_)?(?:release|free|decref|unref|prefetch)\(", re.M),
}

# The entries after the module's own, quick ones first (expressions that match whole names). Before them
# come entries that share a word with the path: e2e.top for src/cli/top/top_run.c.
NEAREST = {
    "base": r"unit\.(host|session|producer|unwind|recording)\..* cli e2e\.counts",
    "host": r"unit\.(recording|profile|server|cli|symbols)\..* transcripts cli.* e2e\.(command_line|output) formats",
    "session": r"unit\.(producer|recorder|preload)\..* e2e\.(counts|nursery|lifecycle|control|unrecorded)",
    "target/producer": r"unit\.(recorder|preload)\..* e2e\.(counts|nursery|lifecycle|dead_recorder)",
    "target/unwind": r"unit\.preload\..* e2e\.(stacks|check_unwind|counts|jit)",
    "target/preload": r"unit\.preload\..* e2e\.(counts|stacks|lifecycle|control|program_api|api_.*|unrecorded|leaks|hardship)",
    "recording": r"transcripts recording\..* unit\.recorder\..* cli e2e\.output",
    "inject": r"unit\.(inject|attach)\..* inject\..* e2e\.attach.*",
    "attach": r"attach\..* e2e\.attach.* inject\..*",
    "target/agent": r"inject\..* attach\..* e2e\.attach.*",
    "aggregate": r"transcripts unit\.recorder\..* e2e\.(counts|blocks|leaks|growth|process_.*|events)",
    "recorder": r"transcripts fuzz\.(session|proc) e2e\.(counts|blocks|output|control|refusals|process_.*|resident|unrecorded)"
                r" e2e\.(command_line|lifecycle|hardship|events)",
    "symbols": r"symbols.* transcripts cli e2e\.(leaks|names|jit)",
    "profile": r"transcripts cli.* e2e\.growth formats\.series formats server.*",
    "views_json": r"transcripts cli.* server.* unit\.server\..*",
    "formats": r"transcripts formats.* fuzz\.import.* cli",
    "push": r"e2e\.push server.* e2e\.rotation",
    "store": r"store.*",
    "server": r"server.* e2e\.(command_line|listen)",
    "cli": r"transcripts cli.* recording\.commands e2e\.(top|refusals|output|command_line|control|growth|leaks) formats",
}


# Words of paths and of entries that say nothing about the subject.
COMMON_WORDS = {"src", "c", "h", "cli", "server", "formats", "import", "recording", "recorder", "symbols", "program",
                "programs", "process", "processes", "memory", "api", "stacks", "output", "command", "line", "text"}


def words_of(name):
    """The words of a name, in the singular."""
    return {word.removesuffix("s") for word in set(re.split(r"[/._]", name)) - COMMON_WORDS}


def shares_a_word(entry, path):
    """Whether the last part of the entry's name and the path have a word in common."""
    family, _, subject = entry.rpartition(".")
    return family not in ("viewer", "aarch64", "check") and not words_of(subject).isdisjoint(words_of(path))


def nearest_to(module):
    """The entries of NEAREST for the module, or for the folder that contains it."""
    folder = pathlib.PurePath(module)
    return next((NEAREST[str(path)] for path in (folder, *folder.parents) if str(path) in NEAREST), "cli e2e.counts")


class Fault(NamedTuple):
    """One change of one file."""
    path: str
    start: int
    end: int
    text: str
    kind: str


class Entry(NamedTuple):
    """One entry of ctest."""
    name: str
    command: list
    folder: str
    environment: dict


def code_only(source):
    """The source with comments, strings, characters and preprocessor lines replaced by spaces."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#(?:[^\n]*\\\n)*[^\n]*'
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    return re.sub(pattern, blank, source, flags=re.M | re.S)


def faults_of(path, source):
    code = code_only(source)
    bodies = [found.span() for found in BODIES.finditer(code)]
    equal = {kind: [found.span() for found in pattern.finditer(code)] for kind, pattern in EQUIVALENT.items()}
    within = lambda place, spans: any(start <= place < end for start, end in spans)
    for kind, pattern, text in FAULTS:
        for found in re.finditer(pattern, code, re.M):
            if not within(found.start(), bodies) or within(found.start(), equal.get(kind, [])):
                continue
            if kind == "condition":  # negate all of it: "if (a) {" becomes "if (!(a)) {"
                end = code.index("\n", found.end())
                inner = source[found.end():end].rstrip("{ ")
                yield Fault(path, found.start(), end, f"if (!({inner}) {{", kind)
            else:
                change = str(int(found[1]) + 1) if text is None else text
                yield Fault(path, found.start(), found.end(), change, kind)


def marked_environment():
    return {**os.environ, MARK: str(os.getpid())}


def run(command, cwd, log, bound_s):
    """Return whether the command succeeded in time; its output goes to the log."""
    with open(log, "w", encoding="utf-8") as out:
        try:
            done = subprocess.run(command, cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=bound_s, check=False,
                                  env=marked_environment())
            return done.returncode == 0
        except subprocess.TimeoutExpired:
            return False


def kill_marked():
    """End what tests left behind: the processes that have this run's mark in their environment."""
    mark = f"{MARK}={os.getpid()}".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # it has ended


class Copy:
    """A copy of the committed tree, its build and its tests."""

    def __init__(self, folder, jobs):
        self.source, self.build, self.jobs = folder / "source", folder / "build", jobs
        self.log = folder / "log"
        self.fill()
        configure = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-Wno-dev",
                     "-DBUILD_TESTING=ON", "-DCAIRN_WERROR=OFF"]
        if not (run(configure, folder, self.log, BUILD_BOUND_S) and self.builds("all")):
            sys.exit(f"mutate: the copy does not build: see {self.log}")
        self.compile_commands = json.loads((self.build / "compile_commands.json").read_text(encoding="utf-8"))
        self.entries = list(self.read_entries())
        self.digests = {entry.command[0]: self.digest(entry) for entry in self.entries}  # without a fault
        self.sound = set()  # names of entries that pass without a fault
        self.broken = set()  # and of others; these are not run again

    def fill(self):
        """Make the sources the committed ones; what a kept copy has already is not written again."""
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
            files = {self.source / item.name: item for item in tree if item.isfile()}
            for path in self.source.rglob("*"):
                if path.is_file() and path not in files:
                    path.unlink()
            for path, item in files.items():
                text = tree.extractfile(item).read()
                if not path.exists() or path.read_bytes() != text:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(text)
                    path.chmod(item.mode)

    def builds(self, *targets):
        return run(["ninja", "-C", self.build, *targets], self.source, self.log, BUILD_BOUND_S)

    def read_entries(self):
        """The tests of the first tier that need nothing set up by others."""
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], check=True, capture_output=True)
        for test in json.loads(listed.stdout)["tests"]:
            of = {item["name"]: item["value"] for item in test["properties"]}
            if "check" not in of.get("LABELS", []) and not {"FIXTURES_REQUIRED", "FIXTURES_SETUP"} & of.keys():
                environment = dict(word.split("=", 1) for word in of.get("ENVIRONMENT", []))
                yield Entry(test["name"], test["command"], of["WORKING_DIRECTORY"], environment)

    def module_of(self, path):
        """The folder with its own CMakeLists.txt, below src/."""
        folder = pathlib.PurePath(path).parent
        while not (self.source / folder / "CMakeLists.txt").exists():
            folder = folder.parent
        return str(folder)[len("src/"):]

    def object_of(self, path):
        """The object file of a source, built; None for a header or if `make test` does not compile it."""
        if not path.endswith(".c") or not self.builds(f"{self.source / path}^") or self.is_warned_of(path):
            return None
        said = subprocess.run(["ninja", "-C", self.build, "-t", "query", f"{self.source / path}"], check=True,
                              capture_output=True, text=True).stdout
        return next(self.build / word for word in said.split() if word.endswith(".c.o")).read_bytes()

    def is_warned_of(self, path):
        """Whether the compiler warns of the source: `make test` refuses that, the copy's build does not."""
        command = next(item["command"] for item in self.compile_commands if item["file"] == str(self.source / path))
        return not run([*shlex.split(command), "-Werror", "-o", self.log.with_name("warned.o")], self.build, self.log,
                       BUILD_BOUND_S)

    def start(self, entry):
        more = ["-x"] if "pytest" in entry.command else []
        return subprocess.Popen([*entry.command, *more], cwd=entry.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**marked_environment(), **entry.environment})

    def failing(self, entries):
        """Run the entries, several at a time; return the first that fails and how, or None."""
        waiting, running, failed = list(entries), [], None
        while failed is None and (waiting or running):
            while waiting and len(running) < self.jobs:
                entry = waiting.pop(0)
                bound_s = UNIT_BOUND_S if self.digests[entry.command[0]] else BOUND_S
                running.append((entry, self.start(entry), time.monotonic() + bound_s))
            for entry, process, deadline in running:
                if process.poll():
                    failed = (entry, "")
                elif process.returncode is None and time.monotonic() > deadline:
                    failed = (entry, " (hangs)")
            running = [item for item in running if item[1].returncode is None]
            time.sleep(0.02)
        kill_marked()
        for _, process, _ in running:
            process.wait()
        return failed

    def digest(self, entry):
        """Of the entry's program; None if the build did not make it."""
        program = pathlib.Path(entry.command[0])
        if not program.is_relative_to(self.build) or not program.exists():
            return None
        return hashlib.sha256(program.read_bytes()).digest()

    def is_changed(self, entry):
        """Whether the planted fault can reach the entry: its program differs, or may run others."""
        before = self.digests[entry.command[0]]
        return before is None or self.digest(entry) != before

    def who_notices(self, fault, reach):
        """The name of a test that notices the planted fault; None if none within reach does."""
        module = self.module_of(fault.path)
        noun = pathlib.PurePath(fault.path).stem
        entries = [entry for entry in self.entries if entry.name not in self.broken]
        own = [entry for entry in entries if entry.folder == str(self.build / "src" / module)]
        own.sort(key=lambda entry: entry.name.split(".")[-1] != noun)
        found = [entry for entry in entries if entry not in own and shares_a_word(entry.name, fault.path)]
        found += [entry for wanted in nearest_to(module).split() for entry in entries
                  if re.fullmatch(wanted, entry.name) and entry not in own and entry not in found]
        units = [entry for entry in found if pathlib.Path(entry.folder).is_relative_to(self.build / "src")]
        whole = [entry for entry in found if entry not in units]
        for entries in (own, units, whole)[:1 if reach == "own" else None]:
            if not self.builds(*self.targets_of(entries)):
                return ""
            entries = [entry for entry in entries if self.is_changed(entry)]
            failed = self.failing(entries)
            while failed and not failed[1] and not self.failing([failed[0]]):  # it failed by chance
                entries = entries[entries.index(failed[0]) + 1:]
                failed = self.failing(entries)
            if failed:
                return failed[0].name + failed[1]
        return self.rest() if reach == "all" else None

    def targets_of(self, entries):
        """What ninja has to build for them."""
        programs = [pathlib.Path(entry.command[0]) for entry in entries]
        if not all(program.is_relative_to(self.build) for program in programs):
            return ["src/cli/all", "src/target/preload/all", "src/target/agent/all", "tests/all"]
        return [program.relative_to(self.build) for program in programs] or ["src/cli/all"]

    def is_sound(self, found):
        """Whether the entry that was found passes without a fault. If not, it is not run again."""
        name = found.split()[0]
        entries = [entry for entry in self.entries if entry.name == name]
        if name not in self.sound | self.broken:
            passes = self.builds(*self.targets_of(entries)) and not self.failing(entries)
            (self.sound if passes else self.broken).add(name)
        return name in self.sound

    def rest(self):
        command = ["ctest", "--test-dir", self.build, "-j", str(self.jobs), "--stop-on-failure", "-LE", "^check$",
                   "-E", f"^({'|'.join(self.broken)})$"]
        if not self.builds("all") or run(command, self.source, self.log, ALL_BOUND_S):
            return None
        failed = re.search(r"Test +#\d+: (\S+) \.+\s*\**(?:Failed|Timeout|Exception|Subprocess)",
                           self.log.read_text(encoding="utf-8", errors="replace"))
        return failed[1] if failed else "a hang"


def draw(copy, only, random_source):
    """Generate faults, from each module in proportion to its lines."""
    lines, faults = {}, {}
    for path in sorted((copy.source / "src").rglob("*.[ch]")):
        name = str(path.relative_to(copy.source))
        if not NO_PRODUCT.search(name) and name.startswith(f"src/{only}"):
            module, source = copy.module_of(name), path.read_text(encoding="utf-8")
            lines[module] = lines.get(module, 0) + source.count("\n")
            faults.setdefault(module, []).extend(faults_of(name, source))
    for listed in faults.values():
        random_source.shuffle(listed)
    due = {module: lines[module] * random_source.random() for module in lines}
    while any(faults.values()):
        for module in due:
            due[module] += lines[module]
        module = max((name for name in due if faults[name]), key=due.get)
        due[module] -= sum(lines.values())
        yield faults[module].pop()


def describe(copy, fault):
    source = (copy.source / fault.path).read_text(encoding="utf-8")
    line = source.count("\n", 0, fault.start) + 1
    was = " ".join(source[fault.start:fault.end].split())
    return f"{fault.path}:{line}: {fault.kind}: {was[:50]!r} -> {fault.text.strip()[:50]!r}"


def plant(copy, fault, reach):
    """Return the test that noticed the fault, None without one, "" if the fault does not compile
    or changes no code."""
    path = copy.source / fault.path
    source = path.read_text(encoding="utf-8")
    before = copy.object_of(fault.path)
    path.write_text(source[:fault.start] + fault.text + source[fault.end:], encoding="utf-8")
    try:
        if before and copy.object_of(fault.path) in (None, before):
            return ""
        return copy.who_notices(fault, reach)
    finally:
        kill_marked()
        path.write_text(source, encoding="utf-8")


def interval(noticed, planted):
    """Wilson's 95 % interval of a share."""
    z, n, share = 1.96, max(planted, 1), noticed / max(planted, 1)
    middle = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return [(middle + sign * half) / (1 + z * z / n) for sign in (-1, 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")))
    parser.add_argument("--skip", type=int, default=0, help="how many of the drawn faults were tried before")
    parser.add_argument("--only", default="", metavar="FOLDER")
    reach = parser.add_mutually_exclusive_group()
    reach.add_argument("--own", dest="reach", action="store_const", const="own")
    reach.add_argument("--all", dest="reach", action="store_const", const="all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutate: stopped"))
    with tempfile.TemporaryDirectory(prefix="cairn-mutate.", dir="/var/tmp") as folder:
        copy = Copy(options.keep or pathlib.Path(folder), options.jobs)
        print(f"mutate: seed {options.seed}", flush=True)
        planted = noticed = 0
        for fault in itertools.islice(draw(copy, options.only, random.Random(options.seed)), options.skip, None):
            if planted == options.count:
                break
            words, begin = describe(copy, fault), time.monotonic()
            found = plant(copy, fault, options.reach)
            while found and not copy.is_sound(found):
                print(f"mutate: {found} fails without a fault, too", flush=True)
                found = plant(copy, fault, options.reach)
            if found == "":
                continue
            planted += 1
            noticed += found is not None
            print(f"{'noticed' if found else 'NOT NOTICED'}  {words}  {found or ''}  "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
    low, high = interval(noticed, planted)
    print(f"{noticed} of {planted} faults were noticed ({low:.0%} to {high:.0%} of all, with 95 % confidence)")
    return 0 if noticed >= WANTED_SHARE * planted else 1


if __name__ == "__main__":
    sys.exit(main())
