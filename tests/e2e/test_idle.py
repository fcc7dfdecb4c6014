# SPDX-License-Identifier: MIT
"""A program that sleeps costs its recorder next to nothing: two wakes a second and 0.2 % of a processor, over
all processes of the recorder, whatever the options. What the program does afterwards is recorded as ever."""
import contextlib
import ctypes
import fcntl
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment, truth_of
from collector import Collector
from conversation import ctl
from test_oom_guard import Group
from waiting import DEADLINE_SECONDS, is_served, read_until, wait_until

WAKES_PER_SECOND = 2
PART_OF_A_PROCESSOR = 0.002


def children_of(pid):
    children = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread has just ended
            children += map(int, (task / "children").read_text().split())
    return children


def cost_of(*pids):
    """Wakes, and seconds of a processor, of processes so far."""
    wakes = seconds = 0
    for pid in pids:
        try:
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                status = (task / "status").read_text()
                wakes += int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
                seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended: the writer of a checkpoint
    return wakes, seconds


class Viewer:
    """A `cairn top`, as Window sees it."""

    def __init__(self, process):
        self.process = process

    def cost(self):
        return cost_of(self.process.pid)


class Sleeping:
    """A recorded program that sleeps, for use in a with statement; `threads` besides the first."""

    def __init__(self, scratch, threads=0, options=(), attaches=False, variables=None):
        self.path = scratch / "idle.cairn"
        program = [PROGRAMS / "sleeper", str(threads)]
        record = [CAIRN, "record", "-q", "-o", self.path, *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment(variables)}
        self.program = subprocess.Popen(program if attaches else [*record, "--", *program], **pipes)
        read_until(self.program.stdout.fileno(), b"done\n")
        self.recorder = self.program
        if attaches:
            self.recorder = subprocess.Popen([*record, "-p", str(self.program.pid)], stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, env=environment(variables))
        wait_until(self.is_answered, "the recorder's answer")
        self.target = self.program.pid if attaches else next(
            child for child in children_of(self.recorder.pid) if self.name_of(child) == "sleeper")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.program, self.recorder):
            process.kill()
            process.wait()
        for stream in (self.program.stdin, self.program.stdout):
            stream.close()

    @staticmethod
    def name_of(pid):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()

    def is_answered(self):
        assert self.recorder.poll() is None
        return subprocess.run([CAIRN, "ctl", self.path, "status"], capture_output=True, check=False,
                              env=environment()).returncode == 0

    def do(self, command):
        self.program.stdin.write(command.encode())
        self.program.stdin.flush()
        if command != "q":
            read_until(self.program.stdout.fileno(), b"done\n")

    def end(self):
        self.do("q")
        assert self.program.wait(DEADLINE_SECONDS) == 0
        assert self.recorder.wait(DEADLINE_SECONDS) == 0
        return Recording(self.path, None)

    def cost(self):
        """Of all processes of the recorder so far."""
        return cost_of(self.recorder.pid, *(child for child in children_of(self.recorder.pid) if child != self.target))

    def assert_idle(self, seconds):
        await_idle([Window(self, seconds)])


class Window:
    """The readings of the last so many seconds of a recorder."""

    def __init__(self, sleeping, seconds):
        self.sleeping, self.seconds = sleeping, seconds
        self.readings = [(time.monotonic(), *sleeping.cost())]

    def is_cheap(self):
        """Take a reading."""
        self.readings.append((time.monotonic(), *self.sleeping.cost()))
        while self.readings[-1][0] - self.readings[1][0] >= self.seconds:
            self.readings.pop(0)
        passed, wakes, processor = self.cost()
        return (passed >= self.seconds and wakes <= WAKES_PER_SECOND * passed and
                processor <= PART_OF_A_PROCESSOR * passed)

    def cost(self):
        return [late - early for early, late in zip(self.readings[0], self.readings[-1])]

    def __str__(self):
        passed, wakes, processor = self.cost()
        return f"{wakes / passed:.2f} wakes a second, {100 * processor / passed:.3f} % of a processor"


def await_idle(windows):
    """Some window of each is as cheap as promised; the first ones have the recording's beginning, and the writers of
    early checkpoints. Without a network namespace of our own, others wake our recorders for as long as they run."""
    end = time.monotonic() + 10 * DEADLINE_SECONDS
    while windows:
        time.sleep(0.5)  # what is measured is time
        cheap = [window for window in windows if window.is_cheap()]
        print(*cheap, sep="\n")
        windows = [window for window in windows if window not in cheap]
        assert not windows or time.monotonic() < end, [str(window) for window in windows]


SAMPLE = ["--sample"]
CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


@pytest.fixture(autouse=True, scope="module")
def no_other_test_asks_our_recorders():
    """`cairn ctl PID` asks all recorders for a process, four wakes each. Their sockets belong to a network namespace;
    without permission to have one of our own, a window without a question is waited for."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0:
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def begin_each_way(stack, scratch, collector):
    """Programs that sleep, by name, and how many blocks they have allocated while they were recorded."""
    def begin(name, before, *arguments, command=None, **named):
        folder = scratch / name.replace(" ", "_")
        folder.mkdir()
        begun[name] = before, stack.enter_context(Sleeping(folder, *arguments, **named))
        if command is not None:
            begun[name][1].do(command)

    begun = {}
    listen = scratch / "socket"
    push = ["--push", collector.url, "--push-interval", "10s"]
    begin("one thread", 1)
    begin("sampled threads", 0, 4, SAMPLE)
    begin("attached, with all that serves it", 0, 4, ["--oom-guard", "--listen", str(listen)], attaches=True)
    begin("its own filter", 1, command="c")  # which forbids to wake the recorder
    begin("attached, its own filter", 0, attaches=True, command="c")
    names = {"XDG_CACHE_HOME": str(scratch / "cache")}  # names are read once, not for each profile
    begin("pushed", 1, 0, push, variables=names)
    wait_until(lambda: is_served(listen), "the server")
    collector.wait_for("accepted", 1)
    return begun


def test_idle_programs_cost_next_to_nothing(scratch):
    """Over a time that has a share of all that comes again and again; memory is looked at closely twice a minute.
    What the programs do afterwards is recorded, also if it needs more room than a recorder that sleeps has left.
    All at the same time: the recorders do not know each other."""
    with Collector() as collector, contextlib.ExitStack() as stack:
        begun = begin_each_way(stack, scratch, collector)
        await_idle([Window(sleeping, 30) for _, sleeping in begun.values()])
        for name, (before, sleeping) in begun.items():
            sleeping.do("a")
            sleeping.do("s")
            recording = sleeping.end()
            recording.assert_whole()
            allocations = recording.totals["allocations"]
            assert allocations == before + 1 + truth_of("sleeper")["stacks"] or name == "sampled threads", name
            assert allocations >= 1, name


def test_a_program_with_little_memory_left(scratch):
    """Less than it could touch within a second: the file has its heap, so a look a second is enough."""
    group = Group(scratch / "cgroup")
    group.use(900000)
    with Sleeping(scratch, 4, ["--oom-guard", "--checkpoint-interval", "0"],
                  variables={"CAIRN_CGROUP_ROOT": str(scratch / "cgroup")}) as sleeping:
        wait_until(sleeping.path.exists, "a checkpoint")
        sleeping.assert_idle(3)
        assert Recording(sleeping.path, None).totals["allocations"] >= 5
        group.use(990000)  # and it is still seen
        wait_until(lambda: "memory limit near" in json.dumps(Recording(sleeping.path, None).report["marks"]), "the mark")


@pytest.mark.nightly
def test_half_a_minute_in_each_way(scratch):
    """All at the same time: the recorders do not know each other."""
    with contextlib.ExitStack() as stack:
        windows = []
        ways = itertools.product([0, 4], [[], SAMPLE, ["--listen", "SOCKET"], ["--oom-guard"], ["--python"]], [False, True])
        for number, (threads, options, attaches) in enumerate(ways):
            folder = scratch / str(number)
            folder.mkdir()
            options = [str(folder / "socket") if word == "SOCKET" else word for word in options]
            sleeping = stack.enter_context(Sleeping(folder, threads, options, attaches=attaches))
            windows.append(Window(sleeping, 30))
        await_idle(windows)


def test_questions_about_other_recordings_wake_no_recorder(scratch):
    folders = [scratch / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with Sleeping(folders[0]) as idle, Sleeping(folders[1]) as other:
        window = Window(idle, 3)
        end = time.monotonic() + DEADLINE_SECONDS
        while not window.is_cheap():
            assert time.monotonic() < end, str(window)
            for _ in range(5):
                ctl(other.path, "status")
            time.sleep(0.3)  # what is measured is time


def test_an_idle_program_costs_no_more_while_it_is_looked_at(scratch):
    """`cairn top` goes on with its updates, but its recorder writes nothing for them until something happens."""
    def checkpoints():
        return int(json.loads(ctl(sleeping.path, "status", "--json"))["checkpoints"])

    top = [CAIRN, "top", "--plain", "-d", "1s"]
    with Sleeping(scratch, options=["--checkpoint-interval", "0"]) as sleeping:
        with subprocess.Popen([*top, sleeping.path], stdout=subprocess.DEVNULL, env=environment()) as watching:
            await_idle([Window(sleeping, 3), Window(Viewer(watching), 3)])
            watching.terminate()
        before = checkpoints()
        text = subprocess.run([*top, "--count", "8", sleeping.path], capture_output=True, text=True, check=True,
                              env=environment()).stdout
        assert checkpoints() - before <= 4  # the first ones, and one in 20 seconds, on a busy machine
        rates = re.findall(r"^allocations: [\d,]+, ([\d.]+) per second", text, re.MULTILINE)
        assert len(rates) == 8 and set(rates[1:]) == {"0.0"}
        assert len(set(re.findall(r"running, (.*)", text))) == 8
        sleeping.end()


def test_an_event_that_ends_a_rest_has_its_own_time(scratch):
    with Sleeping(scratch, 1) as sleeping:
        sleeping.assert_idle(3)
        ctl(sleeping.path, "mark", "before")  # the recorder sleeps on
        sleeping.assert_idle(3)
        ctl(sleeping.path, "mark", "between")
        sleeping.do("a")
        ctl(sleeping.path, "mark", "after")
        recording = sleeping.end()
    times = {mark["text"]: mark["time_ms"] for mark in recording.report["marks"]}
    assert times["between"] - times["before"] >= 3000
    assert times["between"] <= recording.totals["peak_time_ms"] <= times["after"]


def test_a_request_and_the_end_are_heard_at_once(scratch):
    with Sleeping(scratch, 1) as sleeping:
        sleeping.assert_idle(3)
        ctl(sleeping.path, "checkpoint")
        sleeping.assert_idle(3)
        began = time.monotonic()
        os.kill(sleeping.target, signal.SIGKILL)
        sleeping.recorder.wait(DEADLINE_SECONDS)
        print(f"the end was heard after {time.monotonic() - began:.3f} s")
    assert Recording(sleeping.path, None).report["run"]["state"] == "finished"


def test_memory_that_is_touched_without_an_allocation_is_seen(scratch):
    def is_seen():
        ctl(sleeping.path, "checkpoint")
        return max(sample["rss_bytes"] for sample in Recording(sleeping.path, None).report["rss"]["samples"]) > 64 << 20

    with Sleeping(scratch, 1) as sleeping:
        sleeping.assert_idle(3)
        assert not is_seen()
        sleeping.do("t")
        wait_until(is_seen, "a sample of the touched memory")
