# SPDX-License-Identifier: MIT
"""A program that overwrites the memory that it shares with its recorder
(tests/programs/lifecycle/scribbler.c). The recorder ends soon after the program and leaves a valid
file.

CAIRN_SCRIBBLE_SEEDS is the number of seeds, CAIRN_SCRIBBLE_FIRST the first of them, so that a
failed seed can be run again. `make soak` runs 2,000. A seed alone does not determine a run: the
progress of the recorder varies.
"""
import os
import pathlib
import subprocess
import time

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, counters, environment
from waiting import DEADLINE_SECONDS

FIRST = int(os.environ.get("CAIRN_SCRIBBLE_FIRST", "1"))
COUNT = int(os.environ.get("CAIRN_SCRIBBLE_SEEDS", "12"))
WAYS = [["--overflow=sample"], [], ["--blocks"]]
COUNTERS_MAX = 1 << 40  # upper bound for the events that a program can count in its lifetime


def program_has_ended(recorder):
    """Return whether the only child of the recorder that is not its copy has ended or is a
    zombie."""
    children = pathlib.Path(f"/proc/{recorder}/task/{recorder}/children")
    try:
        pids = children.read_text(encoding="utf-8").split()
        states = [pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8") for pid in pids]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return all(state.rpartition(")")[2].split()[0] == "Z" for state in states if "(scribbler)" in state)


def run(path, seed):
    """Record; return the time from the program's end to cairn's, and cairn's output."""
    words = [CAIRN, "record", "--checkpoint-interval", "100ms", *WAYS[seed % len(WAYS)], "-o", path, "--",
             PROGRAMS / "scribbler", str(seed)]
    with open(path.with_suffix(".said"), "w+b") as said:
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=said,
                              env=environment()) as cairn:
            alive = began = time.monotonic()
            while cairn.poll() is None:
                now = time.monotonic()
                alive = alive if program_has_ended(cairn.pid) else now
                if now - alive > DEADLINE_SECONDS or now - began > 2 * DEADLINE_SECONDS:
                    cairn.kill()
                    pytest.fail(f"seed {seed}: cairn does not end")
                time.sleep(0.02)  # no event announces the end of another process's child
            late = time.monotonic() - alive
        said.seek(0)
        return late, said.read().decode(errors="replace")


def check(path, seed, said):
    assert "Sanitizer" not in said and "runtime error" not in said, f"seed {seed}:\n{said}"
    assert path.exists(), f"seed {seed}: no file; {said}"
    verified = subprocess.run([CAIRN, "verify", path], capture_output=True, text=True, env=environment(),
                              check=False, timeout=DEADLINE_SECONDS)
    assert verified.returncode == 0, f"seed {seed}: {verified.stdout}{verified.stderr}"
    report = Recording(path, None).report_of("-n", "1", "-s", "1")
    assert report["run"]["state"] in ("finished", "stopped"), f"seed {seed}"
    unbelievable = {name: count for name, count in counters(report, "loss").items() if count > COUNTERS_MAX}
    assert not unbelievable, f"seed {seed}"


def test_the_recorder_survives_whatever_is_written_over_its_memory(scratch):
    latest = 0
    for seed in range(FIRST, FIRST + COUNT):
        path = scratch / f"{seed}.cairn"
        late, said = run(path, seed)
        check(path, seed, said)
        latest = max(latest, late)
        for left in scratch.iterdir():
            left.unlink()
    print(f"{COUNT} seeds from {FIRST}; the latest end came {latest:.1f} s after the program's")
