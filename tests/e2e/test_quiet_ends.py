# SPDX-License-Identifier: MIT
"""A process that is idle before it ends, ends when it ends: in the list of processes, the time line, the ages of
its blocks and the verdicts about growth, whether it notes its exit or the recorder finds it dead.

tests/programs/lifecycle/quiet_ends.c states when it did what. All ways into a program run side by side.
"""
import json
import os
import re
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment, truth_of
from waiting import DEADLINE_SECONDS, all_are, read_until, wait_until

WAYS_IN = {
    "preloaded": ("quiet_ends", []),
    "injected": ("quiet_ends", ["--all-allocators"]),
    "static": ("attach/quiet_ends_static", []),
    "musl": ("attach/quiet_ends_musl", []),
    "jemalloc": ("attach/quiet_ends_jemalloc", []),
    "attached": ("quiet_ends", None),
    "detached": ("quiet_ends", None),
}
ENDING = [name for name in WAYS_IN if name != "detached"]
STOPPED = ["preloaded", "static", "attached"]
TRUTH = truth_of("quiet_ends")
HELD = TRUTH["blocks"] * TRUTH["block_bytes"]

AFTER_MS = 200  # by which the program outlives its children

# Of the clocks: ticks of the recorder are late on a busy machine until it notices that. It took 40 ms at a load of 50.
SLACK_MS = 200


class Run:
    """A program under one of the ways in."""

    def __init__(self, scratch, name, arguments=()):
        program, options = WAYS_IN[name]
        self.path = scratch / f"{name}.cairn"
        self.pid = None
        record = [CAIRN, "record", "-q", "--blocks", "-o", self.path]
        command = [PROGRAMS / program, *arguments]
        begin = command if options is None else [*record, *options, "--", *command]
        self.processes = [subprocess.Popen(begin, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())]
        self.program = self.processes[0]
        if options is None:
            self.processes.append(subprocess.Popen([*record, "-p", str(self.program.pid)], env=environment()))
            wait_until(lambda: self.ctl("status", check=False).returncode == 0, "the recorder's answer")

    def ctl(self, *words, check=True):
        return subprocess.run([CAIRN, "ctl", self.path, *words], env=environment(), check=check,
                              capture_output=True, timeout=DEADLINE_SECONDS)

    def go(self):
        self.program.stdin.write(b"\n")
        self.program.stdin.flush()

    def report(self):
        recording = Recording(self.path, None)
        return {**recording.report_json("--blocks"), "leaks": recording.report_json("--sort", "leaked")["leaks"]}

    def words(self):
        """What cairn says of the recording, in words."""
        commands = {"report": ["report"], "leaks": ["report", "-l"], "check": ["check", "--max-leaked", "0"],
                    "callgrind": ["export", "--to", "callgrind", "-o", "-"]}
        return {name: subprocess.run([CAIRN, *command, self.path], env=environment(), check=False, capture_output=True,
                                     text=True, timeout=DEADLINE_SECONDS).stdout for name, command in commands.items()}

    def end_beside_a_stopped_recorder(self):
        """All children but the last one, which needs the recorder to execute itself. What they say. The recorder is
        awake: what is noted while its clock rests has the system's time."""
        recorder = self.processes[-1].pid
        os.kill(recorder, signal.SIGSTOP)
        wait_until(lambda: all_are(recorder, "T"), "the recorder to stop")
        self.go()
        said = read_until(self.program.stdout.fileno(), b"\ncall ")
        os.kill(recorder, signal.SIGCONT)
        return said.decode()

    def finish(self, said=""):
        """What each child says of itself, and the report."""
        lines = (said + self.program.communicate(timeout=DEADLINE_SECONDS)[0].decode()).splitlines()
        assert [process.wait(DEADLINE_SECONDS) for process in self.processes] == [0] * len(self.processes)
        told = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in lines}
        assert len(told) == 6, lines
        run = subprocess.run([CAIRN, "export", "--to", "json", "-o", "-", self.path], check=True, capture_output=True,
                             env=environment(), timeout=DEADLINE_SECONDS)
        return told, {**self.report(), "points": json.loads(run.stdout)["points"]}


@pytest.fixture(name="runs", scope="module")
def fixture_runs(tmp_path_factory):
    """The reports while the children are idle, and those after the end with what the children say."""
    scratch = tmp_path_factory.mktemp("quiet")
    runs = {name: Run(scratch, name) for name in WAYS_IN}
    try:
        for run in runs.values():
            run.go()
        running, words = {}, {}
        for name, run in runs.items():
            read_until(run.program.stdout.fileno(), b"quiet\n")
            run.ctl("detach" if name == "detached" else "checkpoint")
            if name == "detached":
                assert run.processes[1].wait(DEADLINE_SECONDS) == 0
            running[name], words[name] = run.report(), run.words()
        for run in runs.values():
            run.go()
        yield running, {name: run.finish() for name, run in runs.items()}, words
    finally:
        for run in runs.values():
            for process in run.processes:
                process.kill()
                process.communicate()


@pytest.fixture(name="stopped_runs", scope="module")
def fixture_stopped_runs(tmp_path_factory):
    """As fixture_runs, but the recorder is stopped while the children end, and has seen none of it."""
    scratch = tmp_path_factory.mktemp("stopped")
    runs = {name: Run(scratch, name, ["slowly"]) for name in STOPPED}
    try:
        for run in runs.values():
            run.go()
        for run in runs.values():
            read_until(run.program.stdout.fileno(), b"quiet\n")
            run.ctl("checkpoint")
        said = {name: run.end_beside_a_stopped_recorder() for name, run in runs.items()}
        yield {name: run.finish(said[name]) for name, run in runs.items()}
    finally:
        for run in runs.values():
            for process in run.processes:
                process.kill()
                process.communicate()


def images_of(report):
    """The first image of each process by its pid: those that hold blocks."""
    return {process["pid"]: process for process in report["processes"] if process["epoch"] == 0}


def blocks_of(report, pid):
    found = [block for block in report["blocks"]["end"]
             if block["pid"] == pid and block["size_bytes"] == TRUTH["block_bytes"]]
    assert len(found) == TRUTH["blocks"]
    return found


def assert_ends_are_true(told, report):
    """Within their errors, which are returned."""
    images = images_of(report)
    errors = {}
    for way, (pid, grown_ms, ending_ms, ended_ms) in told.items():
        process = images[pid]
        blocks = blocks_of(report, pid)
        idle_ms = process["end_ms"] - max(block["born_ms"] for block in blocks)
        errors[way] = process["end_error_ms"]
        assert ending_ms - grown_ms <= idle_ms + errors[way] + SLACK_MS, (way, process)
        assert idle_ms <= ended_ms - grown_ms + SLACK_MS, (way, process)
        assert all(block["age_ms"] == process["end_ms"] - block["born_ms"] for block in blocks)
        threads = [thread for thread in report["threads"] if thread["process"] == process["process"]]
        assert [thread["end_ms"] for thread in threads] == [process["end_ms"]]
    return errors


@pytest.mark.parametrize("name", ENDING)
def test_a_process_ends_when_it_ends(runs, name):
    errors = assert_ends_are_true(*runs[1][name])
    for way, error_ms in errors.items():
        # Of the others it is 0 if they were seen alive in the millisecond in which they were found dead.
        assert error_ms <= SLACK_MS if way == "exec" or "exit" in way else error_ms is not None, (way, error_ms)


@pytest.mark.parametrize("name", STOPPED)
def test_a_process_ends_within_its_error_while_the_recorder_is_stopped(stopped_runs, name):
    """The first ends of a stop are the earliest, so their errors are the largest."""
    errors = assert_ends_are_true(*stopped_runs[name])
    assert min(errors[way] for way in ("exit", "raw_exit", "kill")) > 2 * SLACK_MS, errors


@pytest.mark.parametrize("name", ENDING)
def test_a_parent_without_events_outlives_its_children(runs, name):
    told, report = runs[1][name]
    images = images_of(report)
    children = [images[pid] for pid, *_ in told.values()]
    (parent,) = [process for process in images.values() if process not in children]
    assert parent["start_ms"] <= min(child["start_ms"] for child in children)
    assert parent["end_ms"] >= max(child["end_ms"] for child in children)
    # By the program's clock. Its exit waits for the recorder, so the run may be longer.
    pid, grown_ms, _, ended_ms = max(told.values(), key=lambda times: times[3])
    born_ms = max(block["born_ms"] for block in blocks_of(report, pid))
    assert parent["end_ms"] + parent["end_error_ms"] - born_ms >= ended_ms - grown_ms + AFTER_MS - SLACK_MS


@pytest.mark.parametrize("name", ENDING)
def test_the_time_line_has_all_blocks_until_the_end(runs, name):
    told, report = runs[1][name]
    images = images_of(report)
    children = [images[pid] for pid, *_ in told.values()]
    points = report["points"]
    peak = report["totals"]["peak_bytes"]
    born_ms = max(block["born_ms"] for child in children for block in blocks_of(report, child["pid"]))
    first_end_ms = min(child["end_ms"] for child in children)
    last_end_ms = max(child["end_ms"] for child in children)
    while_idle = [live for start, end, live in zip(points["start_ms"], points["end_ms"], points["live_bytes"])
                  if start > born_ms and end <= first_end_ms]
    assert while_idle and min(while_idle) >= len(children) * HELD
    assert max(points["live_max_bytes"]) == peak == max(while_idle)
    after = [live for start, live in zip(points["start_ms"], points["live_bytes"]) if start > last_end_ms]
    assert after and max(after) < HELD


def assert_nothing_grows(report):
    sites = [site for site in report["leaks"]["leaks"] if (site["function"] or "").startswith("keep_")]
    assert len(sites) == 6
    assert {site["growth"] for site in sites} <= {"stopped", "start_up"}, sites
    assert [item for item in report["findings"]["items"] if item["kind"] == "growth"] == []


@pytest.mark.parametrize("name", ENDING)
def test_what_a_process_kept_while_it_idled_does_not_grow(runs, name):
    assert_nothing_grows(runs[1][name][1])


@pytest.mark.parametrize("name", WAYS_IN)
def test_a_process_that_runs_has_the_end_of_the_recording(runs, name):
    report = runs[0][name]
    assert_nothing_grows(report)
    images = images_of(report)
    assert len(images) == 7
    assert {process["end_ms"] for process in images.values()} == {report["totals"]["runtime_ms"]}
    assert {process["end_error_ms"] for process in images.values()} == {0}


@pytest.mark.parametrize("name", WAYS_IN)
def test_what_is_live_is_not_leaked_while_its_process_runs(runs, name):
    report, words = runs[0][name], runs[2][name]
    assert report["run"]["ended"] is False
    assert {process["ended"] for process in images_of(report).values()} == {False}
    assert re.search(r"\n  live +[\d.]+ MiB", words["report"]) and "most live (-l)" in words["report"]
    assert "LIVE: not freed so far" in words["leaks"]
    for text in words["report"], words["leaks"]:
        assert not re.search(r"leaked|until the end|never freed|live at the end", text, re.IGNORECASE), text
    assert re.search(r"max-leaked .*, live: the program runs on and may still free it", words["check"])
    assert "LiveBytes" in words["callgrind"] and "Leaked" not in words["callgrind"]


@pytest.mark.parametrize("name", ENDING)
def test_what_was_live_at_the_end_is_leaked(runs, name):
    report = runs[1][name][1]
    assert report["run"]["ended"] is True
    assert {process["ended"] for process in report["processes"]} == {True}
