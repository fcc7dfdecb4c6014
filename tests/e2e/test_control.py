# SPDX-License-Identifier: MIT
"""Control: recording a part of a run, by the clock and by `cairn ctl`."""
import errno
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment
from conversation import Conversation, ctl
from waiting import DEADLINE_SECONDS, wait_until


def marks_of(recording):
    return [(mark["kind"], mark["text"]) for mark in recording.report["marks"]]


def test_a_run_that_is_not_controlled_has_no_marks(record):
    recording = record(PROGRAMS / "peak")
    assert recording.report["marks"] == []
    assert recording.notes["unrecorded_frees"] == 0


def test_what_was_allocated_before_the_start_is_not_in_the_profile(scratch):
    with Conversation(scratch / "c.cairn", ["--start-paused"]) as c:
        assert c.status()["state"] == "not started"
        c.do("a 10 100", "t 5 10")
        assert c.status()["allocations"] == 0
        c.ctl("start")
        assert c.status()["state"] == "recording"
        c.do("f 10", "a 7 1000", "f 3", "t 2 10")
        recording = c.end()
    recording.assert_whole()
    assert_totals(recording, {"allocations": 9, "allocated_bytes": 7020, "frees": 5,
                              "live_blocks": 4, "live_bytes": 4000, "temporary": 2,
                              "peak_bytes": 7000, "unknown_frees": 0})
    assert recording.notes["unrecorded_frees"] == 10
    assert marks_of(recording) == [("stop", ""), ("start", "")]


def test_blocks_that_are_freed_while_recording_is_stopped_do_not_leak(scratch):
    with Conversation(scratch / "c.cairn") as c:
        c.do("a 10 100")
        c.ctl("stop")
        assert c.status()["state"] == "stopped"
        c.do("f 4", "a 5 64", "r 2 500")
        c.ctl("start")
        c.do("f 4", "a 1 32")
        recording = c.end()
    # 10 recorded: 4 freed while stopped, 2 of the others reallocated then, 2 more freed after: 2
    # and the last one remain. The frees of the two reallocated blocks are unknown frees.
    assert_totals(recording, {"allocations": 11, "allocated_bytes": 1032, "frees": 8,
                              "live_blocks": 3, "live_bytes": 232, "peak_bytes": 1000})
    assert recording.notes["unrecorded_frees"] == 2
    assert marks_of(recording) == [("stop", ""), ("start", "")]


@pytest.mark.parametrize("between", [["t 1 100", "f 1"], ["a 1 100", "f 1"], ["t 1 100"], ["a 1 100"]],
                         ids=" ".join)
def test_an_allocation_before_a_stop_is_not_temporary_for_a_free_after_it(scratch, between):
    """An allocation of the thread while recording is stopped counts as an event between the two."""
    with Conversation(scratch / "c.cairn") as c:
        c.do("a 1 100")
        c.ctl("stop")
        c.do(*between)
        c.ctl("start")
        if "f 1" not in between:
            c.do("f 1")
        recording = c.end()
    assert_totals(recording, {"allocations": 1, "frees": 1, "temporary": 0})


def test_marks_are_in_the_report_its_json_and_the_file(scratch):
    with Conversation(scratch / "c.cairn") as c:
        assert c.ctl("mark", "before <b> \x1b[31m").startswith("marked at ")
        c.do("a 1 1")
        c.ctl("mark", "after")
        recording = c.end()
    assert marks_of(recording) == [("mark", "before <b> \x1b[31m"), ("mark", "after")]
    times = [mark["time_ms"] for mark in recording.report["marks"]]
    assert times == sorted(times) and times[-1] <= recording.totals["runtime_ms"]
    text = subprocess.run([CAIRN, "report", "--all", recording.path], capture_output=True, text=True,
                          env=environment(), check=True).stdout
    assert "MARKS" in text and "after" in text and "\x1b" not in text
    assert "recording was stopped" not in text
    subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=True,
                   capture_output=True)


def test_a_checkpoint_on_request_holds_all_there_is(scratch):
    with Conversation(scratch / "c.cairn", ["--checkpoint-interval", "0"]) as c:
        c.do("a 10 100")
        assert str(c.path) in c.ctl("checkpoint")
        early = Recording(c.path, None)
        assert early.report["run"]["state"] == "running"
        assert early.totals["allocations"] == 10
        c.do("a 5 100")
        c.ctl("checkpoint")
        assert Recording(c.path, None).totals["allocations"] == 15
        c.end()


def test_a_recording_is_found_by_its_file_and_by_every_process_of_it(scratch):
    with Conversation(scratch / "c.cairn") as c:
        status = c.status()
        for name in (c.path, os.path.relpath(c.path), c.process.pid, status["program_pid"]):
            assert json.loads(ctl(name, "status", "--json"))["recorder_pid"] == c.process.pid
        assert status["file"] == str(c.path)
        c.end()
        assert "you have no running recording" in c.ctl("status", status=2)


def test_what_makes_no_sense_is_refused_in_words(scratch):
    with Conversation(scratch / "c.cairn") as c:
        assert "already started" in c.ctl("start", status=1)
        c.ctl("stop")
        assert "already stopped" in c.ctl("stop", status=1)
        assert "a mark needs a text" in c.ctl("mark", "", status=1)
        assert "a mark needs a text" in c.ctl("mark", "x" * 2000, status=1)
        assert "unknown action 'begin'" in c.ctl("begin", status=2)
        c.ctl("mark", status=2)
        c.end()


@pytest.mark.parametrize("options", [["--delay", "1", "--start-paused"], ["--duration", "x"]])
def test_options_that_contradict_are_refused(options):
    run = subprocess.run([CAIRN, "record", *options, "--", "true"], capture_output=True, text=True,
                         env=environment(), check=False)
    assert run.returncode == 2 and run.stderr.startswith("cairn: ")


def test_after_the_duration_the_file_is_complete_and_the_program_goes_on(scratch):
    with Conversation(scratch / "c.cairn", ["--start-paused", "--duration", "100ms"]) as c:
        c.ctl("start")
        c.do("a 10 100")
        # a checkpoint may come before
        wait_until(lambda: c.path.exists() and
                   Recording(c.path, None).report["run"]["state"] == "stopped", "the recording")
        c.do("a 100 100", "f 10")
        recording = Recording(c.path, None)
        assert recording.totals["allocations"] in range(0, 11)
        c.process.send_signal(signal.SIGTERM)  # it is passed on, and kills both
        assert c.process.wait(60) == -signal.SIGTERM


def test_recording_begins_by_itself_after_the_delay(scratch):
    with Conversation(scratch / "c.cairn", ["--delay", "300ms"]) as c:
        c.wait_for("state", "recording")
        c.do("a 3 10")
        recording = c.end()
    assert_totals(recording, {"allocations": 3})
    (stop, start) = recording.report["marks"]
    assert stop["time_ms"] == 0 and start["time_ms"] >= 300


def test_children_are_controlled_with_their_parent(scratch):
    """A shell starts the program: its blocks and the child's are not recorded before the start."""
    shell = ["/bin/sh", "-c", f"{PROGRAMS / 'obedient'}; exit 0"]
    with Conversation(scratch / "c.cairn", ["--start-paused"], shell) as c:
        c.do("a 10 100")
        c.ctl("start")
        c.do("a 2 100")
        recording = c.end()
    child = [p for p in recording.report["processes"] if p["executable"].endswith("/obedient")]
    assert [p["costs"]["allocations"] for p in child] == [2]


def test_the_thread_that_was_first_recorded_after_an_exec_is_one_thread(scratch):
    """The shell's image has no thread in the recording; the program that it executes has one."""
    shell = ["/bin/sh", "-c", f"exec {PROGRAMS / 'obedient'}"]
    with Conversation(scratch / "c.cairn", ["--start-paused"], shell) as c:
        c.do("a 10 100")
        c.ctl("start")
        c.do("a 2 100")
        recording = c.end()
    assert len(recording.report["threads"]) == 1
    said = subprocess.run([CAIRN, "report", "--all", recording.path], capture_output=True, text=True, check=True).stdout
    assert re.search(r"^ +1 process, 1 thread, ", said, re.MULTILINE), said


def sockets_of(recorder):
    """The names of a recorder's socket and of the clients that wait there."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as sockets:
        return re.findall(rf"@(cairn-control-{recorder}-\S+)", sockets.read())


def test_a_recorder_that_does_not_answer_keeps_nobody_from_another(scratch):
    """Also when the queue of its socket is full."""
    with Conversation(scratch / "stopped.cairn") as stopped, Conversation(scratch / "c.cairn") as c:
        os.kill(stopped.process.pid, signal.SIGSTOP)
        try:
            name = min(sockets_of(stopped.process.pid), key=len)  # the other one has the recording's hash, too
            waiting = []
            for _ in range(100):
                waiting.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                waiting[-1].setblocking(False)
                if waiting[-1].connect_ex("\0" + name) != 0:
                    break
            assert waiting[-1].connect_ex("\0" + name) == errno.EAGAIN
            assert c.status()["state"] == "recording"
            program, *_ = pathlib.Path(f"/proc/{c.process.pid}/task/{c.process.pid}/children").read_text().split()
            assert re.search(r"^state +recording$", ctl(program, "status"), re.MULTILINE)  # this question is for all recorders
            for end in waiting:
                end.close()
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)


def test_a_request_may_come_before_the_recorder_is_ready(scratch):
    path = scratch / "c.cairn"
    with subprocess.Popen([CAIRN, "record", "-q", "--start-paused", "-o", path, "--", PROGRAMS / "obedient"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as cairn:
        assert ctl(path, "start") == "recording\n"
        assert cairn.communicate(b"a 3 10\nq\n", timeout=DEADLINE_SECONDS)[0].count(b"done") == 1
    assert Recording(path, None).totals["allocations"] == 3


def waiting_for(recorder):
    """How many clients wait at a recorder's socket. Another test's `cairn ctl` can be one of them."""
    names = sockets_of(recorder)
    return names.count(min(names, key=len)) - 1


def test_all_recorders_are_asked_at_once(scratch):
    """Each of two that do not answer has a client at the same time: a pid may be of any."""
    with Conversation(scratch / "a.cairn") as a, Conversation(scratch / "b.cairn") as b:
        recorders = (a.process.pid, b.process.pid)
        for recorder in recorders:
            os.kill(recorder, signal.SIGSTOP)
        try:
            with subprocess.Popen([CAIRN, "ctl", str(os.getpid()), "status"], stderr=subprocess.DEVNULL,
                                  env=environment()) as asking:
                wait_until(lambda: min(map(waiting_for, recorders)) >= 1, "both to be asked")
                asking.kill()
        finally:
            for recorder in recorders:
                os.kill(recorder, signal.SIGCONT)


def test_many_clients_at_once_are_all_answered(scratch):
    """More than the recorder has places for."""
    with Conversation(scratch / "c.cairn") as c:
        clients = [subprocess.Popen([CAIRN, "ctl", str(c.path), "status"], env=environment(), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE) for _ in range(40)]
        answers = [client.communicate(timeout=60) for client in clients]
        assert [answer for client, answer in zip(clients, answers) if client.returncode != 0] == []
        c.end()
