# SPDX-License-Identifier: MIT
"""Recorders that die, limits that bite: the program continues to its normal end."""
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from consumer import ABANDONED, ENDED, PROGRAMS, STATE_WORD, CHECK_UNWIND, FOLLOW, Session

ENDLESS = os.path.join(PROGRAMS, "endless")


def test_a_recorder_that_stands_still_does_not_hold_the_program():
    with Session() as session:
        session.paused = True
        began = time.monotonic()
        result = subprocess.run([ENDLESS, "1000000"], env=session.environment(),
                                capture_output=True, text=True, timeout=60)
        assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
        assert 2.5 < time.monotonic() - began
        assert session.u32[STATE_WORD] == ABANDONED
        assert session.counters()["lane_timeout"] == 1


RECORDER = """
import sys, time
sys.path.insert(0, {folder!r})
from consumer import Session
with Session() as session:
    print(session.place, flush=True)
    while True:
        time.sleep(1)
"""


def test_a_recorder_that_is_killed_does_not_hold_the_program():
    folder = os.path.dirname(os.path.abspath(__file__))
    recorder = subprocess.Popen([sys.executable, "-c", RECORDER.format(folder=folder)],
                                stdout=subprocess.PIPE, text=True)
    place = recorder.stdout.readline().strip()
    with Session() as spare:
        env = dict(spare.environment(), CAIRN_SESSION=place)
    target = subprocess.Popen([ENDLESS, "6000000"], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    maps = ""
    while time.monotonic() < deadline and "memfd:session" not in maps:
        maps = open(f"/proc/{target.pid}/maps").read()
    assert "memfd:session" in maps
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    out, err = target.communicate(timeout=60)
    assert (target.returncode, out, err) == (0, "done\n", "")


def test_a_session_that_has_ended_is_left():
    with Session() as session:
        session.u32[STATE_WORD] = ENDED
        assert session.run(ENDLESS, "10000").stdout == "done\n"
        assert session.processes == []


@pytest.mark.parametrize("limit_mib", [512, 100, 20])
def test_a_limited_address_space_gets_what_fits(limit_mib):
    def limit():
        bytes_ = limit_mib << 20
        resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))
    with Session() as session:
        result = session.run(ENDLESS, "1000", preexec_fn=limit)
        assert (result.returncode, result.stdout) == (0, "done\n")
        assert sum(e.kind == "alloc" for e in session.processes[0].events) == 1000


def test_a_busy_lane_grows_and_a_quiet_one_stays_small():
    with Session() as session:
        session.run(ENDLESS, "200000")
        assert 16 << 10 < max(session.rings) <= 512 << 10
        assert session.lost() == {}
    with Session() as session:
        session.run(os.path.join(PROGRAMS, "processes"), "exit")
        touched = os.stat(f"/proc/self/fd/{session.fd}").st_blocks * 512
        assert touched <= 192 << 10, "header, one page of slots, one small lane, words of a few blocks, and a book"


def test_the_walk_agrees_with_itself():
    with Session(flags=FOLLOW | CHECK_UNWIND) as session:
        env = session.environment(PYTHONMALLOC="malloc", PYTHONDONTWRITEBYTECODE="1")
        result = session.run("/usr/bin/python3", "-c", "import json; print(json.loads('[1]'))",
                             env=env)
        assert (result.returncode, result.stdout) == (0, "[1]\n")
        assert session.counters()["unwind_differences"] == 0
        assert session.lost() == {}
