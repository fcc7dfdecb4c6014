# SPDX-License-Identifier: MIT
"""A program that outruns its recorder waits for it, and nothing is lost."""
import os
import pathlib
import platform
import signal

from cairn_run import assert_totals
from conversation import Conversation
from waiting import read_until, wait_until


FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]


def waits_for_another(pid):
    """Whether the process sleeps in futex(2), as one that reads its input does not."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == FUTEX


def test_a_program_waits_for_a_recorder_that_stands_still(scratch):
    with Conversation(scratch / "w.cairn") as c:
        program = c.status()["program_pid"]
        os.kill(c.process.pid, signal.SIGSTOP)
        try:
            c.process.stdin.write(b"a 100000 10\n")  # 1.6 MB of records; a lane has 0.5 MB at most
            c.process.stdin.flush()
            wait_until(lambda: waits_for_another(program), "the program to wait")
        finally:
            os.kill(c.process.pid, signal.SIGCONT)
        read_until(c.process.stdout.fileno(), b"done\n")
        c.do("f 60000")
        recording = c.end()
    recording.assert_whole()
    assert_totals(recording, {"allocations": 100000, "allocated_bytes": 1000000, "frees": 60000,
                              "leaked_allocations": 40000, "peak_bytes": 1000000})
    assert recording.report["notes"]["producer_waits"] > 0
