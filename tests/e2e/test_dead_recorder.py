# SPDX-License-Identifier: MIT
"""The recorder is killed in the middle of a checkpoint. Its program continues, every request gets
an answer, and neither a process nor a file is left behind.

tests/programs/lifecycle/paused_writer.c, preloaded into cairn, stops the writer of the checkpoint
after it has written a part, so that the middle lasts as long as a test needs.
"""
import ctypes
import os
import pathlib
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from waiting import DEADLINE_SECONDS, read_to_end, read_until, wait_until

PR_SET_CHILD_SUBREAPER = 36
PAIRS_BEFORE = 20_000
PAIRS_AFTER = 300_000  # much more than all lanes hold


def stat_of(pid):
    """(parent, state), or None if there is no such process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(fields[1]), fields[0]


def stopped_child_of(pid):
    children = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()
                and stat_of(entry) == (pid, "T")]
    return children[0] if children else None


class Paused:
    """A recording whose first checkpoint is whole, and whose second one never ends.

    Both are requested, so that no test waits for their time; `asking` still waits for the second.
    """

    def __init__(self, folder):
        self.path = folder / "out.cairn"
        self.switch = folder / "pause"
        worker = PROGRAMS / "worker"
        # The second worker begins when the recorder is dead.
        script = f"{worker} {PAIRS_BEFORE} {PAIRS_AFTER} && {worker} 10 {PAIRS_AFTER} && echo done"
        self.cairn = subprocess.Popen(
            [CAIRN, "record", "-q", "--checkpoint-interval", "0", "-o", self.path, "--", "/bin/sh",
             "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment({"LD_PRELOAD": str(PROGRAMS / "libpaused_writer.so"),
                             "PAUSED_WRITER": str(self.switch)}))
        self.worker = int(read_until(self.cairn.stdout.fileno(), b"\n").split()[1])
        self.program = stat_of(self.worker)[0]
        self.ask("checkpoint", status=0)
        self.switch.touch()
        self.asking = subprocess.Popen([CAIRN, "ctl", str(self.path), "checkpoint"], env=environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.writer = wait_until(lambda: stopped_child_of(self.cairn.pid), "the writer to stop")

    def ask(self, *words, who=None, status=2):
        """The output of `cairn ctl`."""
        run = subprocess.run([CAIRN, "ctl", str(who or self.path), *words], capture_output=True, text=True,
                             env=environment(), check=False, timeout=DEADLINE_SECONDS)
        assert run.returncode == status, (run.stdout, run.stderr)
        return run.stderr

    def kill_recorder(self):
        self.cairn.kill()
        assert self.cairn.wait(DEADLINE_SECONDS) == -signal.SIGKILL

    def litter(self):
        """All files in the recording's folder except the recording and the test's own."""
        return sorted(entry.name for entry in self.path.parent.iterdir()
                      if entry not in (self.path, self.switch))

    def await_no_writer(self):
        """Wait until its parent has ended; a zombie counts as ended, because it holds nothing."""
        wait_until(lambda: (stat_of(self.writer) or (0, "Z"))[1] == "Z", "the writer's end")

    def go_on(self):
        """Run both workers to their end; return cairn's output."""
        self.cairn.stdin.write(b"ab")
        self.cairn.stdin.flush()
        said = read_to_end(self.cairn.stdout.fileno())
        assert said.count(b"finished\n") == 2 and said.endswith(b"done\n"), said
        return read_to_end(self.cairn.stderr.fileno()).decode()

    def answer(self):
        """The answer to the request for the second checkpoint, and its exit status."""
        said, complained = self.asking.communicate(timeout=DEADLINE_SECONDS)
        return self.asking.returncode, said + complained

    def close(self):
        self.asking.kill()
        self.asking.communicate()
        for stream in (self.cairn.stdin, self.cairn.stdout, self.cairn.stderr):
            stream.close()
        for pid in (self.cairn.pid, self.writer, self.worker, self.program):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.cairn.wait()


@pytest.fixture(name="paused")
def fixture_paused(scratch):
    libc = ctypes.CDLL(None, use_errno=True)
    # The program becomes a child of the test when its parent dies, so that its exit status is
    # available.
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    recording = Paused(scratch)
    yield recording
    recording.close()
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def test_the_program_goes_on_and_the_last_whole_checkpoint_stays(paused):
    paused.kill_recorder()
    assert paused.go_on() == ""
    assert os.waitpid(paused.program, 0) == (paused.program, 0)
    paused.await_no_writer()
    report = Recording(paused.path, None, stacks_max=1).report
    assert report["run"]["state"] == "running", "the file says that the run had not ended"
    assert report["damage"] is None
    assert PAIRS_BEFORE <= report["totals"]["allocations"] < PAIRS_AFTER
    for command in ("report", "verify"):
        run = subprocess.run([CAIRN, command, paused.path], capture_output=True, check=False,
                             env=environment(), timeout=DEADLINE_SECONDS)
        assert run.returncode == 0, run.stderr
    assert paused.litter() == []


def test_who_asks_is_reported_in_one_sentence(paused):
    paused.kill_recorder()
    for who in (paused.path, paused.cairn.pid, paused.worker):
        for words in (["status"], ["checkpoint"], ["mark", "x"], ["stop"]):
            said = paused.ask(*words, who=who)
            assert said == (f"cairn: you have no running recording '{who}'; it may have ended\n")


def test_who_waits_for_a_checkpoint_is_reported_too(paused):
    paused.kill_recorder()
    assert paused.answer() == (2, f"cairn: the recorder of '{paused.path}' does not answer; it may have ended\n")


def sockets_of(pid):
    folder = pathlib.Path(f"/proc/{pid}/fd")
    return [entry.name for entry in folder.iterdir() if os.readlink(entry).startswith("socket:")]


def test_the_writer_holds_no_socket_and_no_named_file(paused):
    assert sockets_of(paused.writer) == []
    assert paused.litter() == []


def test_a_new_recording_takes_the_place(paused):
    """No writer of the dead recorder replaces it by an older state."""
    paused.kill_recorder()
    paused.await_no_writer()
    run = subprocess.run([CAIRN, "record", "-q", "-o", paused.path, "--", PROGRAMS / "peak"],
                         capture_output=True, check=False, env=environment(), timeout=DEADLINE_SECONDS)
    assert run.returncode == 0, run.stderr
    Recording(paused.path, run, stacks_max=1).assert_whole()
    assert paused.litter() == []


def test_a_writer_that_is_killed_is_reported_and_the_next_one_writes(paused):
    paused.switch.unlink()
    os.kill(paused.writer, signal.SIGKILL)
    status, said = paused.answer()
    assert status == 1 and "writer was killed" in said
    paused.ask("checkpoint", status=0)
    assert paused.litter() == []
    first, second = paused.go_on().splitlines()
    assert "writer was killed; the program continues" in first
    assert "can be written again" in second
    assert paused.cairn.wait(DEADLINE_SECONDS) == 0
    recording = Recording(paused.path, None, stacks_max=1)
    assert recording.report["run"]["state"] == "finished"
    assert recording.totals["allocations"] >= PAIRS_BEFORE + 2 * PAIRS_AFTER
