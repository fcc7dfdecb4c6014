# SPDX-License-Identifier: MIT
"""Attaching on the emulated machine: programs that check themselves are attached to many times, allocators in
guarded pages are counted exactly, and programs with stated counts are recorded by the agent from their start."""
import os
import pathlib
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
pytest.register_assert_rewrite("cairn_run", "waiting")

from cairn_run import BUILD, CAIRN, PROGRAMS, Recording, environment, expected_totals
from waiting import DEADLINE_SECONDS, read_until, wait_until

MACHINE = BUILD / "programs" / "machine"
CYCLES = int(os.environ.get("CAIRN_MACHINE_CYCLES", "2"))
ROUNDS = 500
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
LIBRARIES = "/usr/lib/aarch64-linux-gnu"
ALLOCATORS = ["libjemalloc.so.2", "libmimalloc.so.2.0", "libtcmalloc_minimal.so.4"]
ROOM_BYTES = 512  # that cairn needs behind a program's code
TRIES = 20
TOO_BUSY = b"it goes on unchanged, try again when the machine is less busy\n"
HOOKS_STAY = b"does not answer in time: it keeps cairn's hooks, which do nothing\n"
COUNTED = ["empty", "malloc_family", "aligned_forms", "realloc_forms", "zero_sizes", "failing", "string_functions",
           "temporary", "constructors", "operators"]


class Victim:
    """A program with commands on its input, for use in a with statement."""

    def __init__(self, name, first, *words, allocator=None):
        preload = {"LD_PRELOAD": f"{LIBRARIES}/{allocator}"} if allocator else {}
        self.process = subprocess.Popen([MACHINE / name, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment(preload))
        self.read(first)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def read(self, end):
        return read_until(self.process.stdout.fileno(), end).decode()

    def do(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.read(b"\n")

    def end(self):
        output, _ = self.process.communicate(timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0
        return output.decode()


def room_behind_code(path):
    """The bytes of a static program's last page of code that nothing uses."""
    image = path.read_bytes()
    (headers,), (count,) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<H", image, 56)
    for at in range(headers, headers + count * 56, 56):
        kind, flags = struct.unpack_from("<II", image, at)
        if kind == 1 and flags & 1:
            addr, _, _, size = struct.unpack_from("<QQQQ", image, at + 16)
    return -(addr + size + 15 & ~15) % PAGE_BYTES


def attach(path, pid):
    """Until it succeeds: on a busy machine cairn may refuse, and leave the process as it is."""
    for _ in range(TRIES):
        recorder = subprocess.Popen([CAIRN, "record", "-q", "--no-symbols", "-o", path, "-p", str(pid)],
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
        wait_until(lambda begun=recorder: begun.poll() is not None or subprocess.run(
            [CAIRN, "ctl", path, "status"], capture_output=True, env=environment(), check=False).returncode == 0,
                   "the recorder's answer")
        if recorder.poll() is None:
            return recorder
        _, errors = recorder.communicate()
        assert recorder.returncode == 126 and errors.endswith(TOO_BUSY), errors
        path.unlink(missing_ok=True)
    raise AssertionError(f"refused {TRIES} times: {errors}")


def detach(path, recorder):
    subprocess.run([CAIRN, "ctl", path, "detach"], check=True, capture_output=True, env=environment())
    _, errors = recorder.communicate(timeout=DEADLINE_SECONDS)
    assert recorder.returncode == 0 and (errors == b"" or errors.endswith(HOOKS_STAY)), errors
    return Recording(path, recorder)


@pytest.mark.parametrize("name, allocator", [
    *((name, None) for name in ("endure_dynamic", "endure_static", "endure_static_padded", "endure_signing", "endure_musl")),
    *(("endure_dynamic", allocator) for allocator in ALLOCATORS)])
def test_a_program_that_checks_itself_is_not_harmed(tmp_path, name, allocator):
    with Victim(name, b"ready\n", allocator=allocator) as victim:
        if "static" in name and room_behind_code(MACHINE / name) < ROOM_BYTES:
            run = subprocess.run([CAIRN, "record", "-o", tmp_path / "no.cairn", "-p", str(victim.process.pid)],
                                 capture_output=True, text=True, env=environment(), check=False)
            assert run.returncode == 126 and "less than 512 unused bytes behind the code" in run.stderr
            assert victim.end().endswith(", 0 wrong\n")
            return
        for cycle in range(CYCLES):
            path = tmp_path / f"{cycle}.cairn"
            recorder = attach(path, victim.process.pid)
            assert detach(path, recorder).totals["allocations"] > 0
            path.unlink()
        assert victim.end().endswith(", 0 wrong\n")


@pytest.mark.parametrize("name, words", [
    ("guarded_pool", ["guarded"]), ("guarded_pool", []), ("plain_pool", []), ("plain_pool", ["tagged"]),
    ("plain_pool", ["checked"])])
def test_an_allocator_behind_landing_pads_or_with_tags_is_counted(tmp_path, name, words):
    path = tmp_path / "pool.cairn"
    with Victim(name, b"0 0\n", *words) as victim:
        assert victim.do("10") == "30 20\n"
        for cycle in range(1, 4):
            recorder = attach(path, victim.process.pid)
            said = victim.do(str(ROUNDS))
            totals = detach(path, recorder).totals
            assert said == f"{30 + cycle * 3 * ROUNDS} {20 + cycle * 2 * ROUNDS}\n"
            assert (totals["allocations"], totals["frees"]) == (3 * ROUNDS, 2 * ROUNDS)
            assert totals["allocated_bytes"] == 180 * ROUNDS
            path.unlink()
        victim.do("10")
        victim.end()


def costs_with(path, allocator, way, name):
    run = subprocess.run([CAIRN, "record", "-q", "-o", path, *way, "--", PROGRAMS / name], capture_output=True,
                         env=environment({"LD_PRELOAD": f"{LIBRARIES}/{allocator}"}), check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    recording = Recording(path, run)
    recording.assert_whole()
    (process,) = recording.report["processes"]
    return process["costs"]


@pytest.mark.parametrize("way", [[], ["--all-allocators"]])
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_counts_of_each_allocator_are_the_program_s(tmp_path, allocator, way):
    """Two of the allocators bring the library of C++, which allocates once as it starts: so does the empty program."""
    own = costs_with(tmp_path / "empty.cairn", allocator, way, "empty")
    found = costs_with(tmp_path / "found.cairn", allocator, way, "malloc_family")
    expected = expected_totals("malloc_family")
    for cost in ("allocations", "allocated_bytes", "frees"):
        assert found[cost] - own[cost] == expected[cost]


@pytest.mark.parametrize("name", COUNTED)
def test_the_agent_counts_from_the_start(tmp_path, name):
    path = tmp_path / "start.cairn"
    bare = subprocess.run([PROGRAMS / name], capture_output=True, env=environment(), check=False)
    run = subprocess.run([CAIRN, "record", "-q", "--all-allocators", "-o", path, "--", PROGRAMS / name],
                         capture_output=True, env=environment(), check=False)
    assert (run.returncode, run.stdout, run.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    recording = Recording(path, run)
    recording.assert_whole()
    expected = expected_totals(name)
    expected.pop("peak_bytes", None)
    if name == "failing":  # with the agent a failed call ends the thread's latest event, on every machine
        del expected["temporary"]
    (process,) = recording.report["processes"]
    assert {cost: process["costs"][cost] for cost in expected} == expected
