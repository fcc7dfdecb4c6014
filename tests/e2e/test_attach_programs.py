# SPDX-License-Identifier: MIT
"""Attaching to servers and runtimes under load, and detaching, again and again: redis, postgres, node,
python. They notice nothing: no failed request, no wrong data, no hang. CAIRN_ATTACH_CYCLES is the number
of cycles of each (2; the long form has 1000)."""
import os
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment
from loaded_programs import NODE, PYTHON, postgres, redis, runtime
from waiting import wait_until

CYCLES = int(os.environ.get("CAIRN_ATTACH_CYCLES", "2"))


def attach(scratch, pids):
    """Attach to the processes for a moment."""
    path = scratch / "cycle.cairn"
    path.unlink(missing_ok=True)
    run = subprocess.run([CAIRN, "record", "-q", "-o", path, "--no-symbols", "--duration", "100ms", "-p",
                          ",".join(map(str, pids))], capture_output=True, env=environment(), check=False,
                         timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    return Recording(path, run)


def is_seen_to_work(scratch, pids):
    """Attach once more. The recording must have lost nothing."""
    recording = attach(scratch, pids)
    assert not any(recording.lost.values()), recording.lost
    assert {process["pid"] for process in recording.report["processes"]} >= set(pids)
    return recording.totals["allocations"] > 0


def cycle(scratch, pids):
    """Attach to the processes and detach. In the moment of the last time they work: on a busy machine they
    may have no processor in it, then there is another time."""
    for _ in range(CYCLES - 1):
        attach(scratch, pids)
    wait_until(lambda: is_seen_to_work(scratch, pids), "work of the processes")


@pytest.mark.parametrize("command, script", [("/usr/bin/node", NODE), ("/usr/bin/python3", PYTHON)], ids=["node", "python"])
def test_a_runtime_with_threads(scratch, command, script):
    (scratch / "script.js").write_text(script)
    with runtime([command, scratch / "script.js"], PYTHONMALLOC="malloc") as pid:
        cycle(scratch, [pid])


def test_redis_under_load(scratch):
    with redis(scratch) as (pid, _):
        cycle(scratch, [pid])


@pytest.mark.nightly
def test_postgres_under_load(scratch):
    """The server and its workers in one recording."""
    with postgres() as pids:
        cycle(scratch, pids)
