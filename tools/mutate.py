#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate: plants faults in the sources, one at a time, and reports the faults that no test notices.

usage: tools/mutate.py [--count N] [--seed N] [--skip N] [--only FOLDER] [--jobs N] [--bound SECONDS]
                       [--keep DIR] [--trace REGEX] [--unexecuted]

Works on a copy of the committed tree with its own build. A fault is drawn at random, from each
module in proportion to its lines: a comparison that is off by one or negated, `and` for `or`, a
sign, a constant, a condition, a removed statement. A fault that does not compile without a warning,
or that leaves the object file as it was, is drawn again.

A coverage map (tools/mutation/coverage_map.py) says which test cases of `make test` execute the
faulty line. These run, the shortest first, until one fails; no other test can notice the fault. A
program that the fault did not change is not run. A test that fails is repeated, with the fault and
without, because it may fail for another reason. A test that runs for many times its usual time counts
as failed. --bound ends the tests of a fault after so many seconds by the map; the share is then a
lower bound.

--keep keeps the copy, its builds and the map in DIR for further draws. Of a kept map the lines follow the
sources; --trace traces the entries that match anew, and those that the map does not have. --unexecuted
lists the functions that no test executes, and plants nothing.

Prints a line for each fault, and the share of noticed faults with the 95 % interval (Wilson); exit
status 1 if the share is below 85 of 100. Some faults change nothing observable: examine each survivor
before you write a test.
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
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "mutation"))
from coverage_map import CoverageMap, Selection, Tracer, build_traced  # noqa: E402  pylint: disable=wrong-import-position
from faults import BODIES, code_only, faults_of  # noqa: E402  pylint: disable=wrong-import-position

WANTED_SHARE = 0.85
ROOT = pathlib.Path(__file__).resolve().parents[1]
NO_PRODUCT = re.compile(r"_test\.c$|/fuzz_\w+\.c$|/test_|/arch/(?!x86_64/)")
BUILD_BOUND_S = 1800
# How long tests may take that take no time by the map, and how many times their time by the map.
LEAST_BOUND_S = 60
BOUND_TIMES = 10
# What linking a unit test costs, in seconds of the map.
LINK_S = 0.5
# Tests are built and run in groups, each of which may take so many times as long as the one before.
FIRST_GROUP_S = 5
GROUP_TIMES = 4
SAVE_S = 120  # between two states of a map that is being made
BUILDS = ("build", "traced")  # folders in the copied tree
MARK = "CAIRN_MUTATE"  # set in all processes of the tests
NO_SUCH_CASE = 4  # pytest's exit status if a case of the map is not there any more


class Entry(NamedTuple):
    """One entry of ctest."""
    name: str
    command: list
    folder: str
    environment: dict


class Failure(NamedTuple):
    """A selection that failed, its first failed case, and whether it hung."""
    selection: Selection
    case: str
    hangs: bool

    def __str__(self):
        return f"{self.selection.entry}{' ' if self.case else ''}{self.case}{' (hangs)' if self.hangs else ''}"


def marked_environment():
    return {**os.environ, MARK: str(os.getpid())}


def git(*words):
    """What git says; nothing if it fails."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout


def names_before(commit):
    """The paths that files had in that commit, by their paths now, if these differ."""
    listed = git("diff", "-M", "--name-status", "--diff-filter=R", commit, "HEAD", "--", "src")
    return {words[2]: words[1] for words in (line.split("\t") for line in listed.splitlines())}


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
        self.folder, self.source, self.jobs = folder, folder / "source", jobs
        self.build = self.source / "build"
        self.log = folder / "log"
        self.fill()
        configure = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-Wno-dev",
                     "-DBUILD_TESTING=ON"]
        if not (run(configure, folder, self.log, BUILD_BOUND_S) and self.builds("all")):
            sys.exit(f"mutate: the copy does not build: see {self.log}")
        self.entries = {entry.name: entry for entry in self.read_entries(self.build)}
        self.digests = {name: self.digest(entry) for name, entry in self.entries.items()}  # without a fault
        self.map = None
        self.sound = set()  # names of entries and cases that pass without a fault
        self.broken = set()  # and of others; these are not run again
        self.stale = set()  # names of entries whose cases are others than the map's

    def read_map(self, again):
        """Read the kept map, or make it; trace the entries that match or that it does not have."""
        kept, head = self.folder / "map.json", git("rev-parse", "HEAD").strip()
        self.map = CoverageMap.load(kept) if kept.exists() else CoverageMap(head)
        if self.map.commit != head:
            before = names_before(self.map.commit)
            self.map.rename(before, lambda path: (self.source / path).exists())
            for path in sorted(self.source.glob("src/**/*.[ch]")):
                name = str(path.relative_to(self.source))
                self.map.move(name, git("show", f"{self.map.commit}:{before.get(name, name)}").splitlines(),
                              path.read_text(encoding="utf-8").splitlines())
        known = {test.entry for test in self.map.tests}
        wanted = [name for name in self.entries if name not in known or again and re.search(again, name)]
        if wanted:
            if not build_traced(self.source, self.folder):
                sys.exit(f"mutate: the traced build fails: see {self.folder}/traced.log")
            self.map.forget(set(wanted))
            tracer = Tracer(self.source, self.folder)
            entries = [entry for entry in self.read_entries(tracer.build) if entry.name in wanted]
            self.map.commit, saved = head, time.monotonic()
            for test, lines in tracer.trace(entries, self.jobs):
                self.map.add(test, lines)
                if time.monotonic() > saved + SAVE_S:  # a stopped run goes on from here
                    self.map.save(kept)
                    saved = time.monotonic()
            self.map.add_known(tracer.known)
        self.map.commit = head
        self.map.save(kept)

    def fill(self):
        """Make the sources the committed ones; what a kept copy has already is not written again."""
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
            files = {self.source / item.name: item for item in tree if item.isfile()}
            for path in self.source.rglob("*"):
                if path.is_file() and path not in files and path.relative_to(self.source).parts[0] not in BUILDS:
                    path.unlink()
            for path, item in files.items():
                text = tree.extractfile(item).read()
                if not path.exists() or path.read_bytes() != text:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(text)
                    path.chmod(item.mode)

    def builds(self, *targets):
        return run(["ninja", "-C", self.build, *targets], self.source, self.log, BUILD_BOUND_S)

    @staticmethod
    def read_entries(build):
        """The tests of the first tier that need nothing set up by others."""
        listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True)
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
        """The object file of a source, built; None for a header or if the compiler warns of it."""
        if not path.endswith(".c") or not self.builds(f"{self.source / path}^"):
            return None
        said = subprocess.run(["ninja", "-C", self.build, "-t", "query", f"{self.source / path}"], check=True,
                              capture_output=True, text=True).stdout
        return next(self.build / word for word in said.split() if word.endswith(".c.o")).read_bytes()

    def command_of(self, selection):
        """The entry's command, for the selected cases alone."""
        command = list(self.entries[selection.entry].command)
        if selection.cases and len(selection.cases) < self.map.count_of(selection.entry):
            root = command[command.index("--rootdir") + 1]
            file = next(place for place, word in enumerate(command) if word.endswith(".py"))
            command[file:file + 1] = [f"{root}/{case}" for case in selection.cases]
        return [*command, "-x"] if "pytest" in command else command

    def start(self, selection, log):
        entry = self.entries[selection.entry]
        with open(log, "w", encoding="utf-8") as out:
            # In a session of its own: a fault may kill the process group.
            return subprocess.Popen(self.command_of(selection), cwd=entry.folder, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=out, env={**marked_environment(), **entry.environment},
                                    start_new_session=True)

    def failing(self, selections):
        """Run the selections, several at a time; return the first Failure, or None."""
        waiting, running, failed = list(selections), [], None
        while failed is None and (waiting or running):
            while waiting and len(running) < self.jobs:
                selection = waiting.pop(0)
                log = self.log.with_name(f"log.{selection.entry}")
                deadline = time.monotonic() + LEAST_BOUND_S + BOUND_TIMES * selection.seconds
                running.append((selection, self.start(selection, log), deadline, log))
            for selection, process, deadline, log in running:
                if process.poll() == NO_SUCH_CASE:
                    self.stale.add(selection.entry)
                elif process.returncode:
                    failed = Failure(selection, failed_case(selection, log), False)
                elif process.returncode is None and time.monotonic() > deadline:
                    failed = Failure(selection, "", True)
            running = [item for item in running if item[1].returncode is None]
            time.sleep(0.02)
        kill_marked()
        for _, process, _, _ in running:
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
        before = self.digests[entry.name]
        return before is None or self.digest(entry) != before

    def selections_of(self, fault, source):
        """What to run, the module's own unit tests first and then by time; tests that fail without a
        fault are left out."""
        line_of = lambda place: source.count("\n", 0, place) + 1
        body = next(span for span in (found.span() for found in BODIES.finditer(code_only(source)))
                    if span[0] <= fault.start < span[1])
        bits = self.map.tests_of(fault.path, line_of(fault.start), line_of(fault.end), [line_of(each) for each in body])
        own = self.build / "src" / self.module_of(fault.path)
        found = []
        for entry, cases, seconds in self.map.selections(bits):
            left = [case for case in cases if case not in self.broken]
            if entry in self.entries and entry not in self.broken and (left or not cases):
                found.append(Selection(entry, left, seconds + (0 if cases else LINK_S)))
        found.sort(key=lambda each: (pathlib.Path(self.entries[each.entry].folder) != own, each.seconds))
        return found

    def who_notices(self, fault, source, bound_s):
        """The Failure of a test that notices the planted fault; None if none does within the bound, ""
        if the fault does not build."""
        for group in groups_of(self.selections_of(fault, source), bound_s):
            if not self.builds(*self.targets_of(group)):
                return ""
            left = [each for each in group if self.is_changed(self.entries[each.entry])]
            failed = self.failing(left)
            while failed and not self.failing([failed.selection]):  # it failed by chance
                left = left[left.index(failed.selection) + 1:]
                failed = self.failing(left)
            if failed:
                return failed
        return None

    def targets_of(self, selections):
        """What ninja has to build for them."""
        programs = [pathlib.Path(self.entries[each.entry].command[0]) for each in selections]
        built = [program.relative_to(self.build) for program in programs if program.is_relative_to(self.build)]
        if len(built) < len(programs):
            built += ["src/cli/all", "src/target/preload/all", "src/target/agent/all", "tests/all"]
        return built

    def is_sound(self, failure):
        """Whether the test that failed passes without a fault. If not, it is not run again."""
        name = failure.case or failure.selection.entry
        selection = failure.selection._replace(cases=[failure.case] if failure.case else failure.selection.cases)
        if name not in self.sound | self.broken:
            passes = self.builds(*self.targets_of([selection])) and not self.failing([selection])
            (self.sound if passes else self.broken).add(name)
        return name in self.sound


def failed_case(selection, log):
    """The first case that pytest says has failed."""
    said = "\n".join(re.findall(r"^(?:FAILED|ERROR) .*", log.read_text(encoding="utf-8", errors="replace"), re.M)[:1])
    return max((case for case in selection.cases if case in said), key=len, default="")


def groups_of(selections, bound_s):
    """Selections in groups of growing length, up to the bound, so that little is built in vain."""
    group, group_s, limit_s, all_s = [], 0, FIRST_GROUP_S, 0
    for selection in selections:
        if group and (group_s + selection.seconds > limit_s or all_s + selection.seconds > bound_s):
            yield group
            group, group_s, limit_s = [], 0, limit_s * GROUP_TIMES
        if all_s + selection.seconds > bound_s:
            return
        group.append(selection)
        group_s += selection.seconds
        all_s += selection.seconds
    if group:
        yield group


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


def plant(copy, fault, bound_s):
    """Return the Failure of the test that noticed the fault, None without one, "" if the fault does
    not compile or changes no code."""
    path = copy.source / fault.path
    source = path.read_text(encoding="utf-8")
    before = copy.object_of(fault.path)
    path.write_text(source[:fault.start] + fault.text + source[fault.end:], encoding="utf-8")
    try:
        if before and copy.object_of(fault.path) in (None, before):
            return ""
        return copy.who_notices(fault, source, bound_s)
    finally:
        kill_marked()
        path.write_text(source, encoding="utf-8")


def unexecuted(copy):
    """Yield "path:line: name" of the functions with code that no test executes."""
    for path, at in sorted(copy.map.lines.items()):
        source = (copy.source / path).read_text(encoding="utf-8")
        code = code_only(source)
        for found in BODIES.finditer(code):
            first, last = (source.count("\n", 0, place) + 1 for place in found.span())
            bits = [bits for line, bits in at.items() if first <= line <= last]
            name = re.findall(r"(\w+)\(", code[max(0, code.rfind("\n\n", 0, found.start())):found.start()])
            if found[0].startswith("{") and bits and not any(bits) and not NO_PRODUCT.search(path):
                yield f"{path}:{first}: {name[0] if name else ''}"


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
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--bound", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--trace", default="", metavar="REGEX")
    parser.add_argument("--unexecuted", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutate: stopped"))
    with tempfile.TemporaryDirectory(prefix="cairn-mutate.", dir="/var/tmp") as folder:
        copy = Copy(options.keep or pathlib.Path(folder), options.jobs)
        copy.read_map(options.trace)
        if options.unexecuted:
            print("\n".join(unexecuted(copy)))
            return 0
        print(f"mutate: seed {options.seed}", flush=True)
        planted = noticed = 0
        for fault in itertools.islice(draw(copy, options.only, random.Random(options.seed)), options.skip, None):
            if planted == options.count:
                break
            words, begin = describe(copy, fault), time.monotonic()
            found = plant(copy, fault, options.bound)
            while found and not copy.is_sound(found):
                print(f"mutate: {found} fails without a fault, too", flush=True)
                found = plant(copy, fault, options.bound)
            if found == "":
                continue
            planted += 1
            noticed += found is not None
            print(f"{'noticed' if found else 'NOT NOTICED'}  {words}  {found or ''}  "
                  f"{time.monotonic() - begin:.0f} s", flush=True)
    for name in sorted(copy.stale):
        print(f"mutate: {name} has other cases than the map; trace it again (--trace)")
    low, high = interval(noticed, planted)
    print(f"{noticed} of {planted} faults were noticed ({low:.0%} to {high:.0%} of all, with 95 % confidence)")
    return 0 if noticed >= WANTED_SHARE * planted else 1


if __name__ == "__main__":
    sys.exit(main())
