# SPDX-License-Identifier: MIT
"""Processes that hinder each that attaches to them, beside one that is recorded: it waits for none of them, and the
recording ends when it shall."""
import contextlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import time

import pytest

from cairn_run import CAIRN, IS_NIGHTLY, PROGRAMS, Recording, environment
from test_follow import Follower, reads_memory_of, wanted
from test_idle import Sleeping, children_of
from waiting import DEADLINE_SECONDS, read_until, wait_until

# A pause counts without the time in which the program waits for a processor, or a thread of the recorder does, its
# tracer among them: mostly it is below 1 ms then, on the busiest machine, recorded or not. What a program that is not
# recorded has beside it is no pause that cairn makes.
PAUSE_MS = 20
PAUSE_MS_OF_AN_ORDINARY_RECORDER = 100
ATTACHED_SECONDS = 5  # at least, until a process that cannot be read is left out
ATTACHED_SECONDS_BY_DAY = 2
END_SECONDS = 20  # a process may hold a step up for a minute; on a busy machine the rest takes long
LATE_SECONDS = 8  # five are waited for beyond the duration, ten without one


@contextlib.contextmanager
def running(*command):
    """A process that ends when its standard input does."""
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def copy_of(scratch, source, folder):
    """A copy of a program under the name that is followed."""
    path = scratch / folder / wanted(scratch).name
    path.parent.mkdir(exist_ok=True)
    path.parent.chmod(0o755)
    shutil.copy(PROGRAMS / source, path)
    return path


def give_endless_symbols(path):
    """Move the symbol table of an ELF file into a hole of 64 GiB."""
    image = bytearray(path.read_bytes())
    size = (64 << 30) // 24 * 24
    sections, = struct.unpack_from("<Q", image, 40)
    count, = struct.unpack_from("<H", image, 60)
    end = (len(image) + 4095) // 4096 * 4096
    for at in range(sections, sections + 64 * count, 64):
        if struct.unpack_from("<I", image, at + 4) == (2,):
            struct.pack_into("<QQ", image, at + 24, end, size)
    path.write_bytes(image)
    os.truncate(path, end + size)


def with_late_symbols(path):
    """A copy of the program whose symbol table is behind a hole of 70 MiB."""
    image = bytearray((PROGRAMS / "hindering").read_bytes())
    sections, = struct.unpack_from("<Q", image, 40)
    count, = struct.unpack_from("<H", image, 60)
    for at in range(sections, sections + 64 * count, 64):
        if struct.unpack_from("<I", image, at + 4) == (2,):
            begin, size = struct.unpack_from("<QQ", image, at + 24)
            table = image[begin:begin + size]
            struct.pack_into("<Q", image, at + 24, 70 << 20)
    path.write_bytes(image)
    with path.open("r+b") as file:
        file.seek(70 << 20)
        file.write(table)
    return path


FREEZERS = {  # version: the places where its groups may be, and what freezes, thaws and tells
    1: (["/sys/fs/cgroup/freezer"], "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"),
    2: (["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"),
}


def new_group(roots, state):
    """A control group of our own that can be frozen; None where there may be none."""
    for root in roots:
        group = pathlib.Path(root, f"cairn{os.getpid()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / state).exists():
                return group
            group.rmdir()
    return None


@contextlib.contextmanager
def freezing(process, version):
    """Freeze a process with its control group; skip where there is no freezer of that version."""
    roots, state, frozen, thawed, answer, all_frozen = FREEZERS[version]
    group = new_group(roots, state)
    if group is None:
        pytest.skip("no control group may be frozen here")
    try:
        (group / "cgroup.procs").write_text(str(process.pid))
        (group / state).write_text(frozen)
        wait_until(lambda: all_frozen in (group / answer).read_text(), "a frozen group")
        yield
    finally:
        (group / state).write_text(thawed)  # also after a failure: what is frozen does not end
        process.kill()
        process.wait()
        wait_until(lambda: (group / "cgroup.procs").read_text() == "", "an empty group")
        group.rmdir()


def tell_recorder(program, recorder):
    """Tell a longest_pause whose waits for a processor are none of its pauses."""
    program.stdin.write(b"%d\n" % recorder.pid)
    program.stdin.flush()


def longest_pause(program):
    """End it; the longest time in milliseconds in which it could not go on although it had a processor."""
    longest_us, held_us, waited_us = map(int, program.communicate(timeout=DEADLINE_SECONDS)[0].split())
    print(f"the longest pause was {longest_us} us, or {held_us} us with a processor; it waited for one for {waited_us} us")
    return held_us / 1000


def assert_not_held_up(program, control):
    usual_ms = longest_pause(control)
    assert longest_pause(program) < usual_ms + (PAUSE_MS if may_be_urgent() else PAUSE_MS_OF_AN_ORDINARY_RECORDER)


def waited_seconds(pid):
    """How long a thread has waited for a processor so far."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def wait_recorded(process):
    """Wait until a process is recorded."""
    end = time.monotonic() + DEADLINE_SECONDS
    while subprocess.run([CAIRN, "ctl", str(process.pid), "status"], capture_output=True, check=False,
                         env=environment()).returncode != 0:
        assert time.monotonic() < end


THREADS = 25_000 if IS_NIGHTLY else 3_000  # the kernel's usual limit of all threads is 32,768
THREADS_MAX = 8192  # of a process that is attached to


UNTIMELY = re.compile(r"attaching to process \d+ was not over in time")  # the end came first, on a busy machine


def omitted(follower):
    """Why the only recording of a follower left processes out."""
    recording, = follower.kept()
    counter, = [one for one in recording.report["counters"] if one["name"] == "omitted_processes"]
    reasons = re.split(r"; (?=process \d|attaching)",
                       counter["text"].removeprefix("processes that cairn did not attach to: "))
    assert counter["value"] == len(reasons)
    return [reason for reason in reasons if not UNTIMELY.fullmatch(reason)]


def await_attempt(follower, ways, last_pid):
    """Let cairn meet all of them, and try; return what it says."""
    said = ""
    if "symbols" in ways:
        said += follower.hear(b"cannot read '")
    if "room" in ways or ("threads" in ways and THREADS > THREADS_MAX):
        said += follower.hear(b"process %d " % last_pid) + follower.hear(b"\n")
    if "fuse" in ways:
        wait_until(lambda: children_of(follower.process.pid), "the process that touches the pages")
    is_long = IS_NIGHTLY or "fuse" in ways
    time.sleep(ATTACHED_SECONDS if is_long else ATTACHED_SECONDS_BY_DAY)  # what is measured is time
    return said


@pytest.mark.parametrize("ways", [["symbols", "unmap"], ["fuse"], pytest.param(["half"], marks=pytest.mark.nightly),
                                  ["maps", "stop", "cut", "room"], pytest.param(["threads"], marks=pytest.mark.nightly)],
                         ids=["symbols and unmap", "fuse", "half", "maps, stop, cut and room", "threads"])
def test_no_process_holds_up_another_one(scratch, ways):
    with contextlib.ExitStack() as stack:
        follower = stack.enter_context(Follower(scratch, "--verbose"))
        victim = stack.enter_context(running(copy_of(scratch, "longest_pause", "victim")))
        tell_recorder(victim, follower.process)
        wait_recorded(victim)
        control = stack.enter_context(running(PROGRAMS / "longest_pause"))
        for way in ways:
            program = copy_of(scratch, "longest_pause" if way == "symbols" else "hindering", way)
            if way == "symbols":
                give_endless_symbols(program)
            argument = with_late_symbols(scratch / "late.so") if way == "cut" else THREADS
            process = stack.enter_context(running(program, way, argument))
            if way != "symbols" and not read_until(process.stdout.fileno(), b"\n").endswith(b"yes\n"):
                pytest.skip("no file system in user space may be mounted here")
        said = await_attempt(follower, ways, process.pid)
        begin, waited = time.monotonic(), waited_seconds(control.pid)
        said += follower.end()
        assert time.monotonic() - begin < END_SECONDS + waited_seconds(control.pid) - waited
        if "symbols" in ways:
            assert f"cannot read '{scratch}/symbols/" in said
        if "fuse" in ways or "half" in ways:
            assert f"process {process.pid} does not let cairn read it in time; it is omitted" in said
            assert omitted(follower) == [f"process {process.pid} does not let cairn read it in time"]
        if "room" in ways:
            reason, = omitted(follower)
            assert re.fullmatch(rf"process {process.pid} cannot map memory for cairn's agent within its limit of \d+ KiB of "
                                r"addresses \(ulimit -v\): Cannot allocate memory", reason)
        if "threads" in ways and THREADS > THREADS_MAX:
            assert omitted(follower) == [f"process {process.pid} has {THREADS + 1} threads; cairn stops at most "
                                           f"{THREADS_MAX} at once"]
        assert re.search(r"the lanes were left unread for at most [0-9.]+ ms \([0-9.]+ ms of work\)", said)
        assert_not_held_up(victim, control)


@pytest.mark.parametrize("is_recorded, version", [
    pytest.param(is_recorded, version, id=f"{'recorded' if is_recorded else 'before'}-{version}",
                 marks=[] if is_recorded == (version == 2) else pytest.mark.nightly)
    for is_recorded in (False, True) for version in FREEZERS])
def test_a_frozen_process_holds_up_no_other_one(scratch, is_recorded, version):
    """It is frozen when it is attached to, or while it is recorded, and then it is let go."""
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(running(PROGRAMS / "longest_pause"))
        control = stack.enter_context(running(PROGRAMS / "longest_pause"))
        frozen = stack.enter_context(running(PROGRAMS / "hindering", "maps"))
        read_until(frozen.stdout.fileno(), b"yes\n")
        if not is_recorded:
            stack.enter_context(freezing(frozen, version))
        command = [CAIRN, "record", "-o", scratch / "two.cairn", "-p", str(victim.pid), "-p", str(frozen.pid)]
        recorder = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                                        env=environment()))
        tell_recorder(victim, recorder)
        if is_recorded:
            wait_recorded(victim)
            wait_recorded(frozen)
            stack.enter_context(freezing(frozen, version))
        else:
            wait_until(lambda: reads_memory_of(recorder.pid, frozen.pid), "the recorder's look")
        recorder.terminate()
        recorder.communicate(timeout=DEADLINE_SECONDS)
        assert_not_held_up(victim, control)
    if is_recorded:
        assert Recording(scratch / "two.cairn", None).totals["processes"] == 2


def may_be_urgent():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def test_the_recorder_comes_before_many_threads(scratch):
    """Behind them it would have the processor too rarely to read the lanes of others."""
    if not may_be_urgent():
        pytest.skip("no real-time priority is permitted here")
    with Sleeping(scratch, 300) as sleeping:
        wait_until(lambda: os.sched_getscheduler(sleeping.recorder.pid) & os.SCHED_FIFO, "a real-time priority")
        assert os.sched_getscheduler(sleeping.target) == os.SCHED_OTHER
        sleeping.end().assert_whole()


def test_a_recorder_that_is_late_comes_before_others(scratch):
    """Of many that use one processor: its loop, and its clock, which dates events."""
    if not may_be_urgent():
        pytest.skip("no real-time priority is permitted here")
    cpu = min(os.sched_getaffinity(0))

    def urgent_threads():
        tasks = os.listdir(f"/proc/{recorder.pid}/task")
        return {tid for tid in map(int, tasks) if os.sched_getscheduler(tid) & os.SCHED_FIFO}

    with running(CAIRN, "record", "-q", "-o", scratch / "late.cairn", PROGRAMS / "longest_pause") as recorder:
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                busy = stack.enter_context(running("sh", "-c", "while :; do :; done"))
                os.sched_setaffinity(busy.pid, {cpu})
            for tid in os.listdir(f"/proc/{recorder.pid}/task"):
                os.sched_setaffinity(int(tid), {cpu})
            wait_until(lambda: recorder.pid in urgent_threads() and len(urgent_threads()) == 2, "both")
            assert os.sched_getscheduler(children_of(recorder.pid)[0]) == os.SCHED_OTHER
        recorder.communicate(timeout=DEADLINE_SECONDS)
    Recording(scratch / "late.cairn", None).assert_whole()


@pytest.mark.parametrize("seconds", [2, pytest.param(12, marks=pytest.mark.nightly)])
def test_a_folder_without_answer_does_not_keep_a_recording(scratch, seconds):
    """Of a process that generates code, which /tmp may name. The program itself is elsewhere."""
    with contextlib.ExitStack() as stack:
        elsewhere = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        program = shutil.copy(PROGRAMS / "generated", elsewhere)
        victim = stack.enter_context(running(PROGRAMS / "longest_pause"))
        control = stack.enter_context(running(PROGRAMS / "longest_pause"))
        hindering = stack.enter_context(
            running(PROGRAMS / "hindering", "tmp", program, "none", "5", "unnamed"))
        wait_until(lambda: hindering.poll() is not None or
                   pathlib.Path(f"/proc/{hindering.pid}/comm").read_text() == "generated\n", "the program")
        if hindering.poll() is not None:
            pytest.skip("no file system in user space may be mounted here")
        recorder = stack.enter_context(subprocess.Popen(
            [CAIRN, "record", "-o", scratch / "two.cairn", "--duration", f"{seconds}s", "-p", str(victim.pid),
             "-p", str(hindering.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment()))
        tell_recorder(victim, recorder)
        read_until(recorder.stderr.fileno(), b"the recording is complete")
        usual_ms, pause_ms = longest_pause(control), longest_pause(victim)
        hindering.kill()  # the kernel ends no thread that waits for it
        assert recorder.wait(DEADLINE_SECONDS) == 0
    assert pause_ms < usual_ms + (PAUSE_MS if may_be_urgent() else PAUSE_MS_OF_AN_ORDINARY_RECORDER)
    recording = Recording(scratch / "two.cairn", None)
    assert recording.totals["processes"] == 2
    assert recording.notes.get("slow_processes") == (1 if seconds > 10 else None)


def test_a_process_with_too_many_threads_is_left_out(scratch):
    with running(PROGRAMS / "hindering", "threads", THREADS_MAX) as crowded:
        if read_until(crowded.stdout.fileno(), b"\n") != b"%d yes\n" % THREADS_MAX:
            pytest.skip("so many threads are not permitted here")
        run = subprocess.run([CAIRN, "record", "-o", scratch / "crowd.cairn", "-p", str(crowded.pid)],
                             capture_output=True, check=False, text=True, env=environment(), timeout=DEADLINE_SECONDS)
    assert run.returncode == 126
    assert f"has {THREADS_MAX + 1} threads; cairn stops at most {THREADS_MAX} at once" in run.stderr


def test_the_duration_counts_before_a_process_is_open(scratch):
    with running(PROGRAMS / "hindering", "fuse") as hindering:
        if read_until(hindering.stdout.fileno(), b"\n") != b"yes\n":
            pytest.skip("no file system in user space may be mounted here")
        begin = time.monotonic()
        run = subprocess.run([CAIRN, "record", "-o", scratch / "no.cairn", "--duration", "100ms", "-p",
                              str(hindering.pid)], capture_output=True, check=False, text=True, env=environment(),
                             timeout=DEADLINE_SECONDS)
    assert run.returncode == 126
    assert run.stderr == f"cairn: process {hindering.pid} does not let cairn read it in time\n"
    assert time.monotonic() - begin < LATE_SECONDS
