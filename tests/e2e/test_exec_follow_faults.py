# SPDX-License-Identifier: MIT
"""Each call to the kernel by which the recorder follows an exec fails once (failing_follow.c). The program
runs as without cairn, and it is recorded, or the recording names it or what is missing. CAIRN_FOLLOW_FAULTS is the number of
faults for each way to execute a program (15, spread over all; 0: each one)."""
import os
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from test_attach_allocators import PLAIN
from test_exec_follow import COMMANDS, INNER, OUTPUT, images_of
from test_unrecorded import unrecorded

FAULTS = int(os.environ.get("CAIRN_FOLLOW_FAULTS", "15"))


def follow(scratch, how, name, failing):
    """Record a program that executes another one while a call fails; return the recording and the number
    of calls that were made."""
    count = scratch / "count"
    count.write_bytes(bytes(8))
    path = scratch / "faults.cairn"
    run = subprocess.run(
        [CAIRN, "record", "-q", "-o", path, PROGRAMS / "executing", how, INNER / name], input=COMMANDS,
        capture_output=True, check=False, timeout=60, env=environment(
            {"LD_PRELOAD": str(PROGRAMS / "libfailing_follow.so"), "FAILING_CALL": str(failing),
             "FAILING_COUNT": str(count)}))
    assert (run.returncode, run.stdout) == (0, OUTPUT), (failing, run)
    return Recording(path, run), int.from_bytes(count.read_bytes(), "little")


@pytest.mark.parametrize("name", ["musl_static", "musl_dynamic", "glibc_static_pie"])
@pytest.mark.parametrize("how", ["execve", "vfork", "spawn"])
def test_each_failing_call_is_survived(scratch, how, name):
    recording, calls = follow(scratch, how, name, 0)
    assert unrecorded(recording) == {} and calls > 100
    step = max(1, calls // FAULTS) if FAULTS else 1
    outcomes = set()
    for failing in range(1, calls + 1, step):
        recording, _ = follow(scratch, how, name, failing)
        counted = [(image["costs"]["frees"], image["costs"]["freed_bytes"])
                   for image in images_of(recording, INNER / name)]
        recorded = counted == [(2 * PLAIN[0], 2 * PLAIN[1])]
        named = sum(unrecorded(recording).values()) == 1 or recording.lost.get("unpatched_functions", 0) == 1
        assert recorded or named, (failing, unrecorded(recording), counted)
        outcomes.add(recorded)
    assert False in outcomes
