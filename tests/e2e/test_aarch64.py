# SPDX-License-Identifier: MIT
"""Programs for AArch64 under qemu-user, recorded by this machine's cairn. Their counts are the
stated ones. Their stacks, named from AArch64's files, equal those of the same programs here.

cairn records a shell. The shell executes the emulator, which is linked statically and so passes
LD_PRELOAD to the program inside. That program joins the session like any executed image.
"""
import os
import pathlib

import pytest

from cairn_run import PROGRAMS, BUILD, expected_totals

FOREIGN = BUILD / "aarch64"
LIBRARY = FOREIGN / "lib" / "cairn" / "libcairn_preload.so"
SYSROOT = "/usr/aarch64-linux-gnu"
BECOME = 'LD_PRELOAD=$0 exec qemu-aarch64-static -L "$@"'
COUNTED = ["empty", "malloc_family", "aligned_forms", "pvalloc_form", "realloc_forms", "zero_sizes",
           "failing", "string_functions", "temporary", "peak", "constructors", "threads",
           "cross_thread", "empty_cpp", "operators", "coroutines", "leaps"]
THREADED = ("threads", "cross_thread")  # their peak is known within a bound only


@pytest.fixture
def record_foreign(record):
    """record_foreign(name, *arguments) -> the recording, and the entry of the foreign image."""
    def run(name, *arguments, env=None):
        program = FOREIGN / "programs" / name
        recording = record("/bin/sh", "-c", BECOME, LIBRARY, SYSROOT, program, *arguments,
                           env={"LD_LIBRARY_PATH": f"{SYSROOT}/lib", **(env or {})})
        (image,) = [process for process in recording.report["processes"]
                    if process["executable"] == str(program)]
        return recording, image
    return run


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_what_the_program_states(record_foreign, name):
    recording, image = record_foreign(name, env={"CAIRN_CHECK_UNWIND": "1"})
    expected = expected_totals(name)
    peak = expected.pop("peak_bytes", image["process_peak_bytes"])
    assert {cost: image["costs"][cost] for cost in expected} == expected
    assert image["process_peak_bytes"] == peak or name in THREADED
    assert recording.notes["unwind_differences"] == 0


def chains(recording, modules):
    """{size: (function, file, line) of each frame in the program's own code} of the chosen
    points."""
    found = {}
    for costs, frames in recording.stacks():
        if costs["allocations"] == 1 and 7000 <= costs["allocated_bytes"] < 8000:
            own = [(frame["function"], os.path.basename(frame["file"] or ""), frame["line"])
                   for frame in frames if pathlib.Path(frame["module"]).name in modules]
            found[costs["allocated_bytes"]] = own
    return found


@pytest.mark.parametrize("name, count", [("calls", 4), ("objects", 6), ("calls_apart_pie", 4)])
def test_stacks_are_those_of_the_same_program_here(record, record_foreign, name, count):
    foreign, _ = record_foreign(name)
    here = chains(record(PROGRAMS / name), {name})
    assert len(here) == count
    assert chains(foreign, {name}) == here


def test_a_deep_recursion_is_walked_to_its_end(record_foreign):
    recording, _ = record_foreign("deep", 400)
    names = [frame["function"] for frame in recording.stack_of_size(7501)]
    assert names[0] == "at_the_bottom" and names[1:402] == ["descend"] * 401
    assert "main" in names[402:]
    assert recording.notes["unfinished_stacks"] == 0
