# SPDX-License-Identifier: MIT
"""Sudden death of the program, of the recorder, or of both, at random moments.

The program counts its own operations in memory that outlives it
(tests/programs/lifecycle/counting.c). So the recording is compared with the operations up to the
last instruction. Moments are random numbers of operations; the name of a failed test has the seed.

CAIRN_KILLS is the number of kills (default 34, at night 68, over all kinds); the long mode is CAIRN_KILLS=6000.
"""
import ctypes
import mmap
import os
import random
import signal
import struct
import subprocess

import pytest

from cairn_run import CAIRN, IS_NIGHTLY, PROGRAMS, Recording, counters, environment
from waiting import read_to_end, read_until, wait_until

KILLS = int(os.environ.get("CAIRN_KILLS", "68" if IS_NIGHTLY else "34"))
PR_SET_CHILD_SUBREAPER = 36
HELD = 64  # as in counting.c
MAX_THREADS = 8
MOST_OPERATIONS = 100_000


class Counting:
    """The program under cairn, and its counters."""

    def __init__(self, folder, threads):
        self.path = folder / "out.cairn"
        self.threads = threads
        shared = folder / "shared"
        shared.write_bytes(bytes(4096))
        with open(shared, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)
        self.cairn = subprocess.Popen(
            [CAIRN, "record", "-q", "--checkpoint-interval", "20ms", "-o", self.path, "--",
             PROGRAMS / "counting", shared, str(threads)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.pid = int(read_until(self.cairn.stdout.fileno(), b"\n").split()[1])

    def counts(self):
        """[(begun, done)] of each thread."""
        return [struct.unpack_from("<QQ", self.memory, 64 * thread) for thread in range(self.threads)]

    def done(self):
        return sum(done for _, done in self.counts())

    def stop(self):
        struct.pack_into("<I", self.memory, 64 * MAX_THREADS, 1)

    def close(self):
        self.cairn.stdout.close()
        self.cairn.stderr.close()
        self.memory.close()


@pytest.fixture(scope="module", autouse=True)
def adopt_orphans():
    """Make programs with a dead parent children of the test, so that their exit status is
    available."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


@pytest.fixture(name="counting")
def fixture_counting(scratch, seed):
    chance = random.Random(seed)
    program = Counting(scratch, 1 + seed % 3)
    moment = int(2 ** chance.uniform(0, MOST_OPERATIONS.bit_length()))
    wait_until(lambda: program.done() >= moment, f"{moment} operations")
    yield program
    for pid in (program.cairn.pid, program.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    program.cairn.wait()
    program.close()


def verify(path):
    run = subprocess.run([CAIRN, "verify", path], capture_output=True, check=False,
                         env=environment(), timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def read_if_there(path):
    """The data of a file whose writer was killed; None if it was killed before the first state."""
    if not path.exists():
        return None
    verify(path)
    return Recording(path, None).report


def costs_of_loop(report):
    wanted = ("allocations", "allocated_bytes", "frees", "live_blocks", "live_bytes")
    total = dict.fromkeys(wanted, 0)
    for site in report["top"]["allocations"]:
        for stack in site["stacks"]:
            if any(frame["function"] in ("make", "make_elsewhere") for frame in stack["frames"]):
                for cost in wanted:
                    total[cost] += stack["costs"][cost]
    return total


def size_of(operation):
    return 16 + operation % 500


def bytes_until(operations):
    whole, rest = divmod(operations, 500)
    return whole * sum(map(size_of, range(500))) + sum(map(size_of, range(rest)))


def assert_is_the_truth(report, counts):
    """Assert that the loop's figures are between the finished and the begun operations."""
    costs = costs_of_loop(report)
    done, begun = [number for _, number in counts], [number for number, _ in counts]
    assert all(late - early in (0, 1) for early, late in zip(done, begun))
    assert sum(done) <= costs["allocations"] <= sum(begun)
    assert sum(map(bytes_until, done)) <= costs["allocated_bytes"] <= sum(map(bytes_until, begun))
    freed = [[max(0, number - HELD) for number in numbers] for numbers in (done, begun)]
    assert sum(freed[0]) <= costs["frees"] <= sum(freed[1])
    assert costs["live_blocks"] == costs["allocations"] - costs["frees"]
    assert {name for name, count in counters(report, "loss").items() if count != 0} == set()


@pytest.mark.parametrize("seed", range(KILLS // 3))
def test_the_program_dies(counting):
    os.kill(counting.pid, signal.SIGKILL)
    status = counting.cairn.wait(timeout=60)
    assert status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert read_to_end(counting.cairn.stderr.fileno()) == b""
    verify(counting.path)
    report = Recording(counting.path, None).report
    assert report["run"]["state"] == "finished"
    assert_is_the_truth(report, counting.counts())
    (process,) = report["processes"]
    assert process["killed"]
    assert process["killed_threads"] <= counting.threads + 1


@pytest.mark.parametrize("seed", range(KILLS // 3))
def test_the_recorder_dies(counting):
    counting.cairn.kill()
    counting.cairn.wait()
    before = counting.done()
    # More than all lanes hold: the program does not wait for the dead recorder.
    wait_until(lambda: counting.done() >= before + 200_000, "the program to go on")
    counting.stop()
    assert read_to_end(counting.cairn.stdout.fileno()) == b""
    assert os.waitpid(counting.pid, 0) == (counting.pid, 0)
    report = read_if_there(counting.path)
    if report is not None:
        assert report["run"]["state"] == "running"
        assert costs_of_loop(report)["allocations"] <= sum(begun for begun, _ in counting.counts())


@pytest.mark.parametrize("seed", range(KILLS // 3))
def test_both_die(counting, seed):
    both = [counting.cairn.pid, counting.pid]
    random.Random(-seed).shuffle(both)
    for pid in both:
        os.kill(pid, signal.SIGKILL)
    counting.cairn.wait()
    try:
        _, status = os.waitpid(counting.pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    except ChildProcessError:  # it died first, and cairn saw its end
        assert both[0] == counting.pid
    report = read_if_there(counting.path)
    if report is not None:
        assert costs_of_loop(report)["allocations"] <= sum(begun for begun, _ in counting.counts())
