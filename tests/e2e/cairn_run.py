# SPDX-License-Identifier: MIT
"""cairn_run: recordings, the truth that programs state, and the oracles for both.

CAIRN_BUILD names the build directory, by default build/ of this tree.
"""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
CAIRN = BUILD / "bin" / "cairn"
PRELOAD = BUILD / "lib" / "cairn" / "libcairn_preload.so"
PROGRAMS = BUILD / "programs"

IS_NIGHTLY = bool(os.environ.get("CAIRN_NIGHTLY"))

SMALL_BYTES = 100_000  # of a recording whose report is small

# Variables of this harness or of the shell around it, which would make runs differ.
UNWANTED_ENVIRONMENT = ("LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES", "CAIRN_", "PYTHON", "DEBUGINFOD_URLS")


def environment(more=None):
    """The environment of a test's programs: this process's without variable parts, and with
    `more`."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(UNWANTED_ENVIRONMENT)}
    return {**kept, "LC_ALL": "C.UTF-8", **(more or {})}


def some_of(items, step):
    """All items in `make nightly`, else one of each `step`, with the first one."""
    return list(items)[::1 if IS_NIGHTLY else step]


def shell_status(finished):
    """The exit status as a shell shows it: 128 + signal for a death by signal."""
    code = finished.returncode
    return code if code >= 0 else 128 - code


def run_bare(command, **settings):
    return subprocess.run(command, **settings)


def counters(report, kind):
    """{name: value} of the counters of a report with this kind, "loss" or "note"."""
    return {entry["name"]: entry["value"] for entry in report["counters"] if entry["kind"] == kind}


class Recording:
    """A recorded run: its file, its output, and the report as JSON."""

    def __init__(self, path, finished, stacks_max=0):
        """Of each call site the report has `stacks_max` stacks, or all: those of node take 150 MB."""
        self.path = path
        self.finished = finished
        self.stacks_max = stacks_max
        self._report = self._figures = None

    def report_of(self, *options):
        """The report as JSON. Programs state their leaks, so nothing is suppressed."""
        run = subprocess.run([CAIRN, "report", "--json", "--no-builtin-suppressions", *options,
                              self.path],
                             capture_output=True, env=environment(), check=False, timeout=120)
        assert run.returncode in (0, 1), run.stderr.decode()  # 1: nothing matches the filter
        return json.loads(run.stdout)

    def report_json(self, *options):
        """The report as JSON with all entries."""
        return self.report_of("-n", "0", "-s", str(self.stacks_max), *options)

    @property
    def report(self):
        if self._report is None:
            self._report = self.report_json()
        return self._report

    @property
    def figures(self):
        """The report for what is in none of its call sites: of a large recording it has few of them. A compiler's
        take 900 MB."""
        if self._report is not None or os.path.getsize(self.path) < SMALL_BYTES:
            return self.report
        self._figures = self._figures or self.report_of("-n", "1", "-s", "1")
        return self._figures

    @property
    def lost(self):
        return counters(self.figures, "loss")

    @property
    def notes(self):
        return counters(self.figures, "note")

    @property
    def totals(self):
        return self.figures["totals"]

    def assert_whole(self):
        """Assert that nothing was lost or damaged, and that the recording has the end of the
        run."""
        lost = {name: count for name, count in self.lost.items() if count != 0}
        assert lost == {}
        assert self.lost, "the report lists no loss counters"
        assert self.figures["damage"] is None
        assert self.figures["run"]["state"] == "finished"

    def stacks(self):
        """Every stack that allocated: (costs, frames innermost first)."""
        for site in self.report["top"]["allocations"]:
            for stack in site["stacks"]:
                yield stack["costs"], stack["frames"]

    def stack_of_size(self, size):
        """The frames of the only stack that allocated exactly one block of `size` bytes."""
        found = [frames for costs, frames in self.stacks()
                 if costs["allocated_bytes"] == size and costs["allocations"] == 1]
        assert len(found) == 1, f"{len(found)} stacks with one block of {size} bytes"
        return found[0]

    def costs_within(self, function):
        """Sum of the costs of the stacks whose innermost frame outside the allocator is `function`
        of the program itself."""
        total = {}
        for costs, frames in self.stacks():
            if frames and frames[0]["function"] == function:
                for name, value in costs.items():
                    total[name] = total.get(name, 0) + value
        return total


TRUTH = re.compile(r"TRUTH(?:\((\w+)\))?: *(.*)")


def truth_of(name, variant=None):
    """The truth that a test program states in its first comment: {cost: number}."""
    pages = "large_pages" if os.sysconf("SC_PAGESIZE") > 4096 else None
    source = next((ROOT / "tests" / "programs").glob(f"*/{name}.*"))
    truth = {}
    for line in source.read_text().splitlines():
        match = TRUTH.search(line)
        if match and match.group(1) in (None, variant, pages):
            truth.update((key, int(value)) for key, value in
                         (word.split("=") for word in match.group(2).split()))
    assert truth, f"{source} states no truth"
    return truth


def linked_libraries(path):
    """The shared libraries that the dynamic linker loads for a program."""
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)


def thread_block_bytes(program):
    """Size of the block that glibc allocates for each new thread: its table of TLS modules.

    16 bytes for each loaded module with thread-local storage, 14 spare entries, and 2 for its head.
    Under cairn, cairn's library is one more module.
    """
    count = 0
    for path in {program, *linked_libraries(program), PRELOAD}:
        headers = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True,
                                 check=True).stdout
        count += bool(re.search(r"^\s+TLS\s", headers, re.M))
    return (count + 14 + 2) * 16


# Blocks that a language's run-time allocates before main and keeps. libstdc++ 12: the emergency
# pool for exceptions. Rust's blocks depend on its version, so the tests measure them.
RUN_TIME = {
    ".c": {},
    ".cpp": {"allocations": 1, "allocated_bytes": 72704, "peak_bytes": 72704,
             "live_bytes": 72704, "live_blocks": 1},
}


def expected_totals(name, variant=None):
    """The truth of a C or C++ program, plus the blocks of its run-time and of its threads'
    tables."""
    truth = truth_of(name, variant)
    source = next((ROOT / "tests" / "programs").glob(f"*/{name}.*"))
    threads = truth.pop("thread_blocks", 0)
    table_bytes = threads * thread_block_bytes(PROGRAMS / name) if threads else 0
    extra = dict(RUN_TIME[source.suffix])
    for cost, value in (("allocations", threads), ("live_blocks", threads),
                        ("allocated_bytes", table_bytes), ("live_bytes", table_bytes),
                        ("peak_bytes", table_bytes)):
        extra[cost] = extra.get(cost, 0) + value
    return {cost: value + extra.get(cost, 0) for cost, value in truth.items()}


def assert_totals(recording, expected):
    """Assert that every total is as expected, and the peak within the bound that the report
    states."""
    found = {cost: recording.totals[cost] for cost in expected}
    bound = recording.totals["peak_error_bytes"]
    if recording.totals["threads"] == 1 and recording.totals["processes"] == 1:
        assert bound == 0, "one thread's peak is exact"
    if abs(found.get("peak_bytes", 0) - expected.get("peak_bytes", 0)) <= bound:
        found.pop("peak_bytes", None)
        expected = {cost: value for cost, value in expected.items() if cost != "peak_bytes"}
    assert found == expected


class Dhat:
    """Totals of a program by valgrind's DHAT, an independent oracle for counts.

    DHAT counts a realloc as a block of the new size, as cairn does. It counts a request for zero
    bytes as one byte, as cairn does not. So `points` has the blocks of each stack.
    """

    def __init__(self, command, scratch, **settings):
        out = scratch / "dhat.json"
        valgrind = ["valgrind", "--tool=dhat", f"--dhat-out-file={out}", "--num-callers=40",
                    "--run-libc-freeres=no", "--run-cxx-freeres=no", "-q"]
        self.finished = subprocess.run([*valgrind, *map(str, command)], capture_output=True,
                                       check=False, **settings)
        # DHAT writes strings as bytes; a path need not be UTF-8.
        data = json.loads(out.read_text(errors="replace"))
        self.frames = data["ftbl"]
        self.points = data["pps"]
        self.blocks = sum(point["tbk"] for point in self.points)
        self.bytes = sum(point["tb"] for point in self.points)

    def blocks_under(self, pattern):
        """(blocks, bytes) of the stacks in which some frame matches."""
        wanted = {index for index, text in enumerate(self.frames) if re.search(pattern, text)}
        points = [point for point in self.points if wanted & set(point["fs"])]
        return sum(point["tbk"] for point in points), sum(point["tb"] for point in points)
