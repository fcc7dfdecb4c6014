# SPDX-License-Identifier: MIT
"""The recorder is stopped until the program takes it for dead, and then continues. The recording
states the exact number of lost events. Counted and recorded events together are the events of an
undisturbed run. What the program does afterwards is recorded again.
"""
import os
import signal
import subprocess

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from conversation import Conversation
from waiting import DEADLINE_SECONDS, all_are, read_until, wait_until

PAIRS_BEFORE = 5_000
PAIRS_AFTER = 300_000  # much more than all lanes hold


class Run:
    """tests/programs/lifecycle/worker.c, recorded, after its first part."""

    def __init__(self, path):
        self.path = path
        self.cairn = subprocess.Popen(
            [CAIRN, "record", "-o", path, "--", PROGRAMS / "worker", str(PAIRS_BEFORE),
             str(PAIRS_AFTER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        read_until(self.cairn.stdout.fileno(), b"started")

    def go_on(self):
        self.cairn.stdin.write(b"a")
        self.cairn.stdin.flush()

    def end(self):
        """The output of cairn."""
        _, said = self.cairn.communicate(timeout=DEADLINE_SECONDS)
        assert self.cairn.returncode == 0
        return said.decode()


def test_what_a_stopped_recorder_misses_is_counted(scratch):
    whole = Run(scratch / "whole.cairn")
    whole.go_on()
    whole.end()
    truth = Recording(whole.path, None, stacks_max=1)
    truth.assert_whole()
    stopped = Run(scratch / "stopped.cairn")
    os.kill(stopped.cairn.pid, signal.SIGSTOP)
    stopped.go_on()
    read_until(stopped.cairn.stdout.fileno(), b"finished")
    os.kill(stopped.cairn.pid, signal.SIGCONT)
    said = stopped.end()
    assert "the recorder did not respond for too long" in said
    assert "allocations after the recorder stopped responding" in said
    recording = Recording(stopped.path, None, stacks_max=1)
    # The program may end before the recorder has noticed that it can go on.
    assert recording.report["run"]["state"] in ("finished", "stopped")
    assert recording.lost["missed_allocations"] > PAIRS_AFTER / 2
    for what in ("allocations", "frees"):
        missed = recording.lost["missed_" + what]
        assert recording.totals[what] + missed == truth.totals[what], what
    verified = subprocess.run([CAIRN, "verify", stopped.path], capture_output=True, check=False, env=environment(),
                              timeout=DEADLINE_SECONDS)
    assert verified.returncode == 0, verified.stderr


MANY = 60_000  # blocks: more than a lane holds
KEPT, LOST, LATER = 1000, 48, 3000  # bytes of blocks from before, meanwhile and afterwards


def test_recording_goes_on_when_the_recorder_does(scratch):
    """Twice. Blocks from before the gap that are freed afterwards pair, blocks of the gap are noted when they are
    freed, and later ones are as exact as ever."""
    with Conversation(scratch / "gap.cairn") as c:
        c.do("s 1024")  # stacks, of which a thread counts those of 512 at a time, and sends the others
        for _ in range(2):
            c.do(f"a 10 {KEPT}")
            with c.stopped_recorder():
                c.do(f"a {MANY} {LOST}")
                question = subprocess.Popen([CAIRN, "ctl", c.path, "status"], env=environment(),
                                            stdout=subprocess.DEVNULL)
                wait_until(lambda: all_are(question.pid, "S"), "the question to the recorder")
            assert question.wait(DEADLINE_SECONDS) == 0  # what follows an answer is recorded
            c.do("f 10", f"f {MANY}", f"t 5 {LATER}", f"a 3 {LATER}", "f 3", f"a 2 {LATER}", "f 2")
        c.do(f"a 7 {LATER}")
        recording = c.end()
    blocks = 2 * (10 + MANY + 5 + 3 + 2)
    lost = recording.lost
    assert recording.report["run"]["state"] == "finished"
    assert lost["missed_allocations"] > MANY / 4 and lost["missed_frees"] == 0
    assert recording.totals["allocations"] + lost["missed_allocations"] == blocks + 7
    assert recording.totals["frees"] + recording.notes["unrecorded_frees"] == blocks
    assert recording.notes["unrecorded_frees"] == lost["missed_allocations"]
    assert (recording.totals["live_blocks"], recording.totals["live_bytes"]) == (7, 7 * LATER)
    assert [mark["kind"] for mark in recording.report["marks"]] == ["stop", "start"] * 2


def test_what_threads_keep_in_books_is_not_lost(scratch):
    """However long the recorder stands still: rows are sums, and words pair the blocks."""
    with Conversation(scratch / "books.cairn") as c:
        for _ in range(2):
            c.do(f"a 10 {KEPT}")
            with c.stopped_recorder():
                c.do(f"a {MANY} {LOST}")
            c.do("f 10", f"f {MANY}", f"a 3 {LATER}", "f 3")
        c.do(f"a 7 {LATER}")
        recording = c.end()
    recording.assert_whole()
    assert recording.totals["allocations"] == 2 * (10 + MANY + 3) + 7
    assert recording.totals["frees"] == 2 * (10 + MANY + 3)
    assert (recording.totals["live_blocks"], recording.totals["live_bytes"]) == (7, 7 * LATER)
