# SPDX-License-Identifier: MIT
"""Rows of the table in docs/user/attach.md whose parts need a program of their own: tests/programs/attach/
parts_apart.c states what is in them. It runs once by each way, as every_part does for test_ways.py."""
import functools
import glob
import os
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from test_ways import WAYS, table
from waiting import DEADLINE_SECONDS, wait_until

LIBRARY = PROGRAMS / "attach" / "liblate_je.so"


class Run:
    """A program by one way. `words` follow its name; with "wait" it reads a line before its work."""

    def __init__(self, path, name, start, record=()):
        self.name = name
        self.column, _, options = WAYS[name]
        self.path = path
        recorder = [CAIRN, "record", "-q", *record, "-o", path]
        is_late = options is None
        self.process = subprocess.Popen([*start, "wait"] if is_late else [*recorder, *options, "--", *start],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment())
        processes = [self.process]
        if is_late:
            processes.append(subprocess.Popen([*recorder, "-p", str(self.process.pid)], env=environment(),
                                              stderr=subprocess.DEVNULL))
            wait_until(self.is_answered, "the recorder's answer")
        output, self.errors = (said.decode() for said in self.process.communicate(b"\n", timeout=DEADLINE_SECONDS))
        self.statuses = [process.wait(DEADLINE_SECONDS) for process in processes]
        self.told = {word: int(number) for word, number in (line.split() for line in output.splitlines())}
        for path in glob.glob(f"/tmp/perf-{self.told.get('pid')}.map*"):
            os.unlink(path)

    def is_answered(self):
        return subprocess.run([CAIRN, "ctl", self.path, "status"], env=environment(), check=False,
                              capture_output=True).returncode == 0

    @functools.cached_property
    def recording(self):
        assert set(self.statuses) == {0}, self.errors
        recording = Recording(self.path, self.process)
        recording.assert_whole()
        return recording

    def costs_within(self, name):
        """[allocations, bytes, blocks at the end] of the stacks through a function."""
        sums = [0, 0, 0]
        for costs, frames in self.recording.stacks():
            if any(frame["function"].endswith(name) for frame in frames):
                for i, cost in enumerate(("allocations", "allocated_bytes", "live_blocks")):
                    sums[i] += costs[cost]
        return sums


@pytest.fixture(name="runs", scope="module")
def fixture_runs(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("apart")
    return {name: Run(scratch / f"{name}.cairn", name, [PROGRAMS / "attach" / f"parts_apart_{program}", LIBRARY])
            for name, (_, program, _) in WAYS.items()}


def has_functions_by_dlsym(run):
    return run.told["api"] == 1


def has_own_names(run):
    found = run.costs_within("own_work")
    assert found in ([0, 0, 0], [10, 3000, 10])
    (hooked,) = {hook["function"] for hook in run.recording.report["hooks"] if hook["function"] == "je_malloc"} or {""}
    assert bool(hooked) == bool(found[0])
    return found[0] > 0


def has_names_of_jit_code(run):
    assert run.costs_within("jit_work") == [5, 5 * 7601, 0]
    functions = run.recording.report_json("--functions")["functions"]["functions"]
    found = {entry["function"]: entry["inclusive"]["allocations"] for entry in functions if entry["module"] == "[jit]"}
    assert found in ({}, {"hot": 5})
    for costs, frames in run.recording.stacks():
        names = [frame["function"] for frame in frames]
        if "jit_work" in names and found:
            assert names[names.index("jit_work"):][:4] == ["jit_work", "hot", "run_generated", "main"], (costs, names)
    return bool(found)


CHECKS = {
    "`cairn_api_v1` by `dlsym`, without `cairn.h`": has_functions_by_dlsym,
    "an allocator's functions with names of their own": has_own_names,
    "names of JIT code": has_names_of_jit_code,
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("row", CHECKS)
def test_a_way_gives_what_the_guide_says(runs, row, name):
    run = runs[name]
    cell = table()[row][run.column]
    assert cell in ("yes", "no")
    assert CHECKS[row](run) == (cell == "yes")


# How go links the program: the C compiler, and the arguments of `go build`.
STATIC = ("-ldflags", '-linkmode external -extldflags "-static"')
GO = {
    "preloaded": ("gcc", ()),
    "injected": ("gcc", ()),
    "attached": ("gcc", ()),
    "static": ("gcc", STATIC),
    "musl": ("musl-gcc", ("-ldflags", "-linkmode external")),
    "static musl": ("musl-gcc", STATIC),
    "jemalloc": ("gcc", ()),
}


@pytest.fixture(name="built", scope="module")
def fixture_built(tmp_path_factory):
    """Build the program of a way; those of one compiler share what go has compiled."""
    folder = tmp_path_factory.mktemp("go")
    archive = subprocess.run(["gcc", "-print-file-name=libjemalloc_pic.a"], check=True, capture_output=True,
                             text=True).stdout.strip()

    @functools.cache
    def build(compiler, arguments, libraries):
        program = folder / f"c_part_{build.cache_info().misses}"
        subprocess.run(["go", "build", *arguments, "-o", program, ROOT / "tests/programs/attach/c_part.go"],
                       check=True, timeout=600, env={**os.environ, "GO111MODULE": "off", "CC": compiler,
                                                     "GOCACHE": str(folder / "cache"), "CGO_LDFLAGS": libraries})
        return program
    return lambda name: build(*GO[name], f"{archive} -lstdc++ -lm" if name == "jemalloc" else "")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly)
                                  if name in ("injected", "musl", "static", "static musl", "jemalloc") else name for name in GO])
def test_the_part_of_a_go_program_in_c(scratch, built, name):
    run = Run(scratch / "go.cairn", name, [built(name)])
    cell = table()["Go"][run.column]
    if cell == "no" or (name == "static musl" and cell == "C part, dynamic only"):
        assert run.statuses == [126] and "is a static Go program" in run.errors
        return
    assert cell.startswith("C part")
    assert run.costs_within("c_work") == [10, 7000, 10]
    assert run.recording.report["totals"]["allocations"] < 100  # none of Go's 1000
    (process,) = run.recording.report["processes"]
    assert process["runtime"] == "go"


@pytest.mark.parametrize("name", ["preloaded", "injected", "attached"])
def test_functions_of_python(scratch, name):
    """No system has a static python, or one with an allocator inside."""
    script = scratch / "rows.py"
    script.write_text("import sys\nif len(sys.argv) > 1:\n    sys.stdin.readline()\n"
                      "def row(i):\n    return bytearray(200000 + i)\n"
                      "def table():\n    return [row(i) for i in range(7)]\nrows = table()\n")
    run = Run(scratch / "python.cairn", name, ["/usr/bin/python3.11", script], record=["--python"])
    assert table()["functions of Python (`--python`)"][run.column] == "yes"
    found = [frames for costs, frames in run.recording.stacks() if any(frame["function"] == "row" for frame in frames)]
    assert run.costs_within("row")[:2] == [7, 7 * 200001 + 21]
    for frames in found:
        names = [(frame["function"], frame["line"]) for frame in frames if frame["module"].startswith("[python] ")]
        assert names == [("row", 5), ("table.<locals>.<listcomp>", 7), ("table", 7), ("<module>", 8)]
