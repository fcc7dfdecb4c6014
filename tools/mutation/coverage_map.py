# SPDX-License-Identifier: MIT
"""Which tests of `make test` execute which lines of src, and how long they take.

build_traced() builds the sources once more, so that each basic block notes that it ran (trace_pc.c).
trace() runs each entry of ctest there, with a folder for what its processes note; entries of pytest
have a folder for each case and for each fixture that cases share (trace_cases.py). A block's lines are
those of the line table between its begin and the next one's, so code that the compiler moved may count
for a line too many. The map is a JSON file. It remains usable when sources change: lines move with
the text that is equal in both, and named entries are traced again.
"""
import bisect
import collections
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ENTRY_BOUND_S = 1500
VARIABLE = "CAIRN_TRACE_DIR"
CALLBACK = "__sanitizer_cov_trace_pc"
CALL_BYTES = 5
# Of a run of pytest without cases: modules that it imports.
PYTEST_S = 1.0


class Test(NamedTuple):
    """A case of an entry, or an entry without cases."""
    entry: str
    case: str  # pytest's name of it; empty for an entry without cases
    seconds: float
    shared: dict  # seconds of fixtures that other cases use as well, by name


class Selection(NamedTuple):
    """The tests of one entry that execute a line."""
    entry: str
    cases: list
    seconds: float


def traced_build(source):
    """The folder of the traced build."""
    return source / "traced"


def build_library(folder):
    """Compile what each traced program links."""
    stray, library = folder / "stray", folder / "libtrace_pc.a"
    stray.mkdir(exist_ok=True)
    stray.chmod(0o777)
    subprocess.run(["gcc", f'-DTRACE_STRAY="{stray}"', "-O2", "-ffreestanding", "-fPIC", "-fno-stack-protector",
                    "-mgeneral-regs-only", "-fvisibility=hidden", "-c", HERE / "trace_pc.c",
                    "-o", folder / "trace_pc.o"], check=True)
    subprocess.run(["ar", "rcs", library, folder / "trace_pc.o"], check=True)
    return library


def build_traced(source, folder):
    """Configure and build source/traced; return whether it has a cairn."""
    library, build = build_library(folder), traced_build(source)
    environment = {**os.environ, "CAIRN_TRACED_LAUNCHER": os.environ.get("CMAKE_C_COMPILER_LAUNCHER", "")}
    configure = ["cmake", "-S", source, "-B", build, "-G", "Ninja", "-Wno-dev", "-DBUILD_TESTING=ON",
                 f"-DCMAKE_C_COMPILER_LAUNCHER={HERE / 'traced_compiler.sh'}",
                 f"-DCMAKE_C_STANDARD_LIBRARIES={library}", f"-DCMAKE_CXX_STANDARD_LIBRARIES={library}"]
    with open(folder / "traced.log", "w", encoding="utf-8") as log:
        for command in (configure, ["ninja", "-C", build, "-k", "0"]):
            subprocess.run(command, stdout=log, stderr=log, check=False, env=environment)
    return (build / "bin/cairn").exists()


def paths_by_name(source):
    """The sources of the product by their last name, which is what line tables are searched for."""
    paths = collections.defaultdict(list)
    for path in sorted((source / "src").rglob("*.[ch]")):
        if not re.search(r"/arch/(?!x86_64/)", str(path)):
            paths[path.name].append(str(path.relative_to(source)))
    return paths


class Binary:
    """A traced executable or library: its blocks and their lines."""

    def __init__(self, path, paths):
        self.blocks = []  # offsets of the bytes that the blocks set
        self.lines = []  # of each block: the set of (path, line)
        self.known = set()  # all (path, line) with code
        symbols = {}
        for line in subprocess.run(["nm", path], capture_output=True, text=True, check=False).stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[2] in (CALLBACK, "__ehdr_start", "etext"):
                symbols[words[2]] = int(words[0], 16)
        self.code_bytes = 0
        if len(symbols) == 3:
            self.code_bytes = symbols["etext"] - symbols["__ehdr_start"]
            self.read(path, symbols, paths)

    def read(self, path, symbols, paths):
        begins = sorted(self.calls_of(path, symbols[CALLBACK]))
        rows = []
        listed = subprocess.run(["objdump", "--dwarf=decodedline", path], capture_output=True, text=True, check=False)
        for found in re.finditer(r"^(\S+)\s+(\d+)\s+0x([0-9a-f]+)", listed.stdout, re.M):
            for name in paths.get(found[1], ()):
                rows.append((int(found[3], 16), (name, int(found[2]))))
        rows.sort()
        self.known = {line for _, line in rows}
        at = [addr for addr, _ in rows]
        for begin, end in zip(begins, [*begins[1:], symbols["etext"]]):
            first, last = bisect.bisect_left(at, begin), bisect.bisect_left(at, end)
            if first and (first == len(at) or at[first] > begin):
                first -= 1  # the row that the block begins in
            self.blocks.append(begin + CALL_BYTES - symbols["__ehdr_start"])
            self.lines.append({line for _, line in rows[first:last]})

    @staticmethod
    def calls_of(path, callback):
        """The addresses of the calls of the callback in .text, found by their bytes."""
        listed = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=False).stdout
        found = re.search(r" \.text +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", listed)
        addr, offset, size = (int(word, 16) for word in found.groups())
        code = path.read_bytes()[offset:offset + size]
        place = code.find(b"\xe8")
        while place >= 0:
            target = addr + place + CALL_BYTES + int.from_bytes(code[place + 1:place + 5], "little", signed=True)
            if target == callback:
                yield addr + place
            place = code.find(b"\xe8", place + 1)

    def executed(self, data):
        found = set()
        for block, lines in zip(self.blocks, self.lines):
            if block < len(data) and data[block]:
                found |= lines
        return found


class Tracer:
    """Runs entries in the traced build and collects the lines that they execute."""

    def __init__(self, source, folder):
        self.folder, self.build, self.paths = folder, traced_build(source), paths_by_name(source)
        self.by_name = {path.name: path for path in self.build.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
        self.libraries = {}
        for path in (self.build / "lib/cairn").glob("*.so"):
            binary = Binary(path, self.paths)
            self.libraries[binary.code_bytes] = binary
        self.programs = {}
        self.known = set().union(*(binary.known for binary in self.libraries.values()))

    def binary_of(self, noted):
        """The binary that wrote a file of traced blocks, by the size of its code and its name."""
        size, _, name = noted.partition(".")
        if int(size, 16) in self.libraries:
            return self.libraries[int(size, 16)]
        name = name.removesuffix(" (deleted)")
        if name not in self.programs:
            path = self.by_name.get(name)
            self.programs[name] = path and Binary(path, self.paths)
            if path:
                self.known |= self.programs[name].known
        return self.programs[name]

    def lines_of(self, folder):
        lines = set()
        for path in folder.glob("*.*"):
            binary = path.is_file() and re.match(r"[0-9a-f]{8}\.", path.name) and self.binary_of(path.name)
            if binary:
                lines |= binary.executed(path.read_bytes())
        return lines

    def start(self, entry):
        folder = self.folder / "traces" / entry.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folder.chmod(0o777)
        command, environment = list(entry.command), {**os.environ, **entry.environment, VARIABLE: str(folder)}
        if "pytest" in command:
            command += ["-p", "trace_cases"]
            environment["PYTHONPATH"] = str(HERE)
        return subprocess.Popen(command, cwd=entry.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, env=environment)

    def collect(self, entry, seconds, stray):
        """Yield (test, lines) for an entry that ended."""
        folder = self.folder / "traces" / entry.name
        common = self.lines_of(folder) | stray
        cases = folder / "cases.json"
        if not cases.exists():
            yield Test(entry.name, "", seconds, {}), common
        else:
            noted = json.loads(cases.read_text(encoding="utf-8"))
            fixtures = {name: (self.lines_of(folder / each["folder"]), each["seconds"])
                        for name, each in noted["fixtures"].items()}
            for name, case in noted["cases"].items():
                used = [each for each in case["fixtures"] if each in fixtures]
                lines = self.lines_of(folder / case["folder"]).union(common, *(fixtures[each][0] for each in used))
                yield (Test(entry.name, name, case["seconds"], {each: fixtures[each][1] for each in used}), lines)
        shutil.rmtree(folder, ignore_errors=True)

    def stray_lines(self):
        """The lines of processes whose environment does not name a folder, since the last time."""
        lines = self.lines_of(self.folder / "stray")
        for path in (self.folder / "stray").iterdir():
            path.unlink()
        return lines

    def trace(self, entries, jobs):
        """Run the entries; yield (test, lines). Stray lines count for all that ran meanwhile."""
        waiting, running, strays = list(entries), [], {}
        while waiting or running:
            while waiting and len(running) < jobs:
                entry = waiting.pop(0)
                running.append((entry, self.start(entry), time.monotonic()))
            for item in list(running):
                entry, process, begin = item
                seconds = time.monotonic() - begin
                if process.poll() is None and seconds > ENTRY_BOUND_S:
                    process.kill()
                    process.wait()
                if process.returncode is not None:
                    stray = self.stray_lines()
                    for other, _, _ in running:
                        strays.setdefault(other.name, set()).update(stray)
                    running.remove(item)
                    yield from self.collect(entry, seconds, strays.pop(entry.name))
            time.sleep(0.05)


class CoverageMap:
    """Tests, and the tests of each line with code as a number whose bits are their places."""

    def __init__(self, commit):
        self.commit, self.tests, self.lines = commit, [], {}

    def add(self, test, lines):
        bit = 1 << len(self.tests)
        self.tests.append(test)
        for path, line in lines:
            at = self.lines.setdefault(path, {})
            at[line] = at.get(line, 0) | bit

    def add_known(self, known):
        """Note which lines have code at all."""
        for path, line in known:
            self.lines.setdefault(path, {}).setdefault(line, 0)

    def save(self, path):
        tests = [list(test) for test in self.tests]
        lines = {name: {line: f"{bits:x}" for line, bits in at.items()} for name, at in self.lines.items()}
        path.write_text(json.dumps({"commit": self.commit, "tests": tests, "lines": lines}), encoding="utf-8")

    @classmethod
    def load(cls, path):
        kept = json.loads(path.read_text(encoding="utf-8"))
        loaded = cls(kept["commit"])
        loaded.tests = [Test(*test) for test in kept["tests"]]
        loaded.lines = {name: {int(line): int(bits, 16) for line, bits in at.items()}
                        for name, at in kept["lines"].items()}
        return loaded

    def rename(self, before, exists):
        """Give the lines of renamed files to their new paths; drop those of files that are gone."""
        for path, was in before.items():
            self.lines[path] = self.lines.pop(was, {})
        self.lines = {path: at for path, at in self.lines.items() if exists(path)}

    def move(self, path, before, after):
        """Let the lines of a file follow its text."""
        old, self.lines[path] = self.lines.get(path, {}), {}
        for first, second, count in difflib.SequenceMatcher(None, before, after, False).get_matching_blocks():
            for step in range(1, count + 1):
                if first + step in old:
                    self.lines[path][second + step] = old[first + step]

    def count_of(self, entry):
        """How many tests the entry has."""
        return sum(test.entry == entry for test in self.tests)

    def forget(self, entry_names):
        """Drop the tests of these entries from all lines; their places remain."""
        gone = sum(1 << place for place, test in enumerate(self.tests) if test.entry in entry_names)
        for at in self.lines.values():
            for line in at:
                at[line] &= ~gone

    def tests_of(self, path, first, last, body):
        """The bits of the tests that execute lines first to last; if these have no code, the lines of
        the body (its first and last line); else any line of the file; else all tests."""
        at = self.lines.get(path)
        if not at:
            return (1 << len(self.tests)) - 1
        for low, high in ((first, last), body):
            with_code = [bits for line, bits in at.items() if low <= line <= high]
            if with_code:
                return self.joined(with_code)
        return self.joined(at.values())

    @staticmethod
    def joined(all_bits):
        joined = 0
        for bits in all_bits:
            joined |= bits
        return joined

    def selections(self, bits):
        """The tests as what to run, the shortest first."""
        by_entry = collections.defaultdict(list)
        for place, test in enumerate(self.tests):
            if bits >> place & 1:
                by_entry[test.entry].append(test)
        found = []
        for entry, tests in by_entry.items():
            cases = [test.case for test in tests if test.case]
            shared = {}
            for test in tests:
                shared.update(test.shared)
            seconds = sum(test.seconds for test in tests) + sum(shared.values()) + (PYTEST_S if cases else 0)
            found.append(Selection(entry, cases, seconds))
        return sorted(found, key=lambda each: each.seconds)
