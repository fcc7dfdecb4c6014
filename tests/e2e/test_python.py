# SPDX-License-Identifier: MIT
"""cairn record --python: the frames of CPython in native stacks, against Python's own traceback at
the allocation (tests/programs/stacks/python_frames.py)."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, counters, environment
from waiting import DEADLINE_SECONDS, wait_until

PROGRAM = pathlib.Path(__file__).parent.parent / "programs/stacks/python_frames.py"
PYTHON = "/usr/bin/python3.11"
# Further ones: CAIRN_PYTHONS=/opt/python3.12/bin/python3:/opt/python3.13/bin/python3
PYTHONS = [PYTHON, *filter(None, os.environ.get("CAIRN_PYTHONS", "").split(":"))]
INTERPRETER = "_PyEval_EvalFrameDefault"


@pytest.fixture(autouse=True)
def has_python():
    assert shutil.which(PYTHON), f"no {PYTHON}"


def is_python(frame):
    return frame["module"].startswith("[python] ")


def python_frames(frames):
    return [[frame["function"], frame["file"], frame["line"]] for frame in frames if is_python(frame)]


def truth_of(finished):
    return {int(size): frames for line in finished.stdout.splitlines()
            for size, frames in json.loads(line).items()}


def sites_of(recording):
    """The call sites of stacks through allocate() and its like; this report has far less text than a whole one."""
    report = recording.report_json("-a", "--filter-function=^allocate")
    assert all(count == 0 for count in counters(report, "loss").values())
    return report["top"]["allocations"]


def stacks_of(recording):
    return [(stack["costs"], stack["frames"]) for site in sites_of(recording) for stack in site["stacks"]]


def stacks_by_size(recording):
    return {costs["allocated_bytes"]: frames for costs, frames in stacks_of(recording) if costs["allocations"] == 1}


def record_aloud(path, *command):
    return subprocess.run([CAIRN, "record", "--python", "-o", path, *command], env=environment(),
                          capture_output=True, check=False, timeout=120)


@pytest.mark.parametrize("python", PYTHONS)
def test_frames_are_those_of_pythons_own_traceback(record, python):
    recording = record(python, PROGRAM, options=["--python"], is_compared=False, is_whole=False)
    assert recording.finished.stderr == b""
    truth, sites = truth_of(recording.finished), sites_of(recording)
    stacks = {stack["costs"]["allocated_bytes"]: stack["frames"] for site in sites for stack in site["stacks"]
              if stack["costs"]["allocations"] == 1}
    assert len(truth) > 160
    assert {size: python_frames(stacks[size]) for size in truth} == truth
    for size, frames in truth.items():
        assert all(frame["function"] != INTERPRETER for frame in stacks[size])
        names = [frame["function"].rpartition(".")[2] for frame in stacks[size]]  # 3.10 has no qualified ones
        if "__lt__" in names:  # sorted() is between the two
            between = stacks[size][names.index("__lt__") + 1:names.index("main")]
            assert between and not any(is_python(frame) for frame in between)
    assert_call_sites_are_innermost(sites, truth)


def assert_call_sites_are_innermost(sites, truth):
    """They are the innermost frames of Python."""
    found = {stack["costs"]["allocated_bytes"]: [site["function"], site["file"], site["line"]]
             for site in sites for stack in site["stacks"] if stack["costs"]["allocations"] == 1}
    # allocate() has several callers and many sizes, so it is a wrapper.
    innermost = {size: next(frame for frame in frames if frame[0] != "allocate") for size, frames in truth.items()}
    assert {size: found[size] for size in innermost} == innermost


@pytest.mark.parametrize("way", [pytest.param("injected", marks=pytest.mark.nightly), "attached"])
def test_frames_are_the_same_by_each_way_in(record, scratch, way):
    """The program waits for the attach in a frame of its own."""
    if way == "injected":
        recording = record(PYTHON, PROGRAM, options=["--python", "--all-allocators"], is_compared=False,
                           is_whole=False)
        truth = truth_of(recording.finished)
    else:
        code = f"input(); exec(compile(open({str(PROGRAM)!r}).read(), {str(PROGRAM)!r}, 'exec'))"
        with subprocess.Popen([PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=environment()) as program:
            path = scratch / "attached.cairn"
            recorder = subprocess.Popen([CAIRN, "record", "-q", "--python", "-o", path, "-p", str(program.pid)],
                                        stderr=subprocess.PIPE, env=environment())
            wait_until(lambda: subprocess.run([CAIRN, "ctl", path, "status"], capture_output=True, check=False,
                                              env=environment()).returncode == 0, "the recorder's answer")
            output, _ = program.communicate(b"\n", timeout=DEADLINE_SECONDS)
            assert recorder.communicate(timeout=DEADLINE_SECONDS)[1] == b""
            recording = Recording(path, subprocess.CompletedProcess([], 0, output))
            truth = truth_of(recording.finished)
    stacks = stacks_by_size(recording)
    assert len(truth) > 80
    assert {size: python_frames(stacks[size]) for size in truth} == truth
    assert all(frame["function"] != INTERPRETER for size in truth for frame in stacks[size])


def test_lines_hold_what_tracemalloc_says(record, scratch):
    program = pathlib.Path(__file__).parent.parent / "programs/stacks/python_objects.py"
    settings = {"PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}
    traced = subprocess.run([PYTHON, "-X", "tracemalloc=1", program], env=environment(settings), check=True,
                            capture_output=True, timeout=120)
    truth = {line: [bytes_, blocks] for line, bytes_, blocks in json.loads(traced.stdout)}
    assert len(truth) == 4 and all(bytes_ > 50_000 for bytes_, _ in truth.values())
    recording = record(PYTHON, program, options=["--python"], env=settings, is_compared=False, is_whole=False)
    report = recording.report_of("-n", "0", "-s", "1", "-l")
    found = {site["line"]: [site["costs"]["live_bytes"], site["costs"]["live_blocks"]]
             for site in report["top"]["live_bytes"] if site["file"] == str(program)}
    for line, (bytes_, blocks) in truth.items():  # an object that is taken from a free list is new to tracemalloc only
        reused = blocks - found[line][1]
        assert 0 <= reused <= 2 and 0 <= bytes_ - found[line][0] <= 64 * reused, (line, truth, found)


@pytest.mark.nightly
def test_a_sampled_recording_has_the_same_frames(record):
    recording = record(PYTHON, PROGRAM, options=["--python", "--sample=16"], is_compared=False, is_whole=False)
    truth, stacks = truth_of(recording.finished), stacks_by_size(recording)
    assert {size: python_frames(stacks[size]) for size in truth} == truth


def test_stacks_are_native_unless_asked(record):
    recording = record(PYTHON, PROGRAM, is_compared=False, is_whole=False)
    functions = recording.report_of("-n", "0", "-s", "1", "--functions")["functions"]["functions"]
    assert truth_of(recording.finished) and not any(is_python(function) for function in functions)
    assert any(function["function"] == INTERPRETER for function in functions)


@pytest.mark.parametrize("program, sentence", [
    ("other_python", b"--python reads Python 3.10 to 3.14 (no free-threaded builds), and this one is 3.99;"),
    ("older_python", b"--python reads Python 3.10 to 3.14 (no free-threaded builds), and this one is 3.9;")])
def test_other_versions_are_refused_by_name(scratch, program, sentence):
    finished = record_aloud(scratch / "a.cairn", PROGRAMS / program)
    assert finished.returncode == 0
    assert sentence in finished.stderr, finished.stderr


def test_a_program_without_python_is_recorded_natively(scratch):
    finished = record_aloud(scratch / "a.cairn", "/bin/true")
    assert finished.returncode == 0
    assert b"--python: no interpreter of Python was found; all frames are native" in finished.stderr
