# SPDX-License-Identifier: MIT
"""Following: `cairn record --name NAME --follow` records a program whenever it starts."""
import os
import re
import shutil
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment
from test_attach import Attachable
from test_listen import certificate, curl
from waiting import DEADLINE_SECONDS, read_to_end, read_until, wait_until

KEPT = re.compile(r"w\.\d{8}T\d{6}Z(?:_\d\d)?\.cairn")


def wanted(scratch, source="obedient"):
    """A copy of the program, with a name that no other process has."""
    path = scratch / f"wanted{os.getpid()}"
    if not path.exists():
        shutil.copy(PROGRAMS / source, path)
    return path


def is_recorded(program):
    run = subprocess.run([CAIRN, "ctl", str(program.process.pid), "status"], capture_output=True, check=False,
                         env=environment(), timeout=DEADLINE_SECONDS)
    return run.returncode == 0


class Follower:
    """`cairn record --follow` for the program of `wanted`."""

    def __init__(self, scratch, *options, source="obedient"):
        self.folder = scratch / "out"
        self.scratch = scratch
        self.program = wanted(scratch, source)
        self.unread = b""
        self.process = subprocess.Popen(
            [CAIRN, "record", "--name", self.program.name, "--follow", "-o", self.folder / "w.cairn", *options],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())

    def __enter__(self):
        self.await_idle()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.stderr.close()
        self.process.wait()

    def hear(self, words):
        """Wait for words on stderr; return what was said until then, since the last call."""
        while words not in self.unread:
            self.unread += read_until(self.process.stderr.fileno(), words[-1:])  # at least one part
        said, _, self.unread = self.unread.partition(words)
        return (said + words).decode()

    def await_idle(self):
        """Wait until no recorder runs; return what was said before."""
        return self.hear(b"Ctrl-C ends\n")

    def start(self):
        """Start the program, and wait until it is recorded."""
        program = Attachable(self.scratch, [self.program])
        wait_until(lambda: is_recorded(program), "the recorder's answer")
        return program

    def ctl(self, action, status=0):
        """What `cairn ctl` says about the recording that runs."""
        run = subprocess.run([CAIRN, "ctl", self.folder / "w.cairn", action], capture_output=True, text=True, check=False,
                             env=environment(), timeout=DEADLINE_SECONDS)
        assert run.returncode == status, run.stderr
        return run.stdout + run.stderr

    def end(self, number=signal.SIGINT):
        """End with a signal; return what is said meanwhile."""
        self.process.send_signal(number)
        return self.await_end()

    def await_end(self):
        said = self.unread + read_to_end(self.process.stderr.fileno())
        assert self.process.wait(DEADLINE_SECONDS) == 0
        return said.decode()

    def kept(self):
        """The recordings, the oldest first."""
        paths = sorted(path for path in self.folder.iterdir() if KEPT.fullmatch(path.name))
        return [Recording(path, None) for path in paths]


def test_each_run_of_the_program_has_a_recording(scratch):
    with Follower(scratch) as follower:
        for count in (3, 5):
            with follower.start() as program:
                program.do(f"a {count} 100", "f 1")
                program.end()
            assert "most allocations" in follower.await_idle()
        assert follower.end() == ""
        first, second = follower.kept()
        assert_totals(first, {"allocations": 3, "allocated_bytes": 300, "frees": 1, "live_bytes": 200})
        assert_totals(second, {"allocations": 5, "allocated_bytes": 500, "frees": 1, "live_bytes": 400})
        assert second.path.samefile(follower.folder / "w.cairn")


def test_what_starts_meanwhile_joins_the_recording(scratch):
    with Follower(scratch) as follower:
        with follower.start() as first, follower.start() as second:
            first.do("a 3 100")
            second.do("a 5 10")
            first.end()
            second.do("a 1 10")
            with follower.start() as third:  # the process that the recording began with has ended
                second.end()
                third.do("a 2 1")
                third.end()
        follower.await_idle()
        (recording,) = follower.kept()
        assert_totals(recording, {"processes": 3, "allocations": 11, "allocated_bytes": 300 + 60 + 2})
        assert recording.report["run"]["state"] == "finished"


def test_children_of_a_recorded_process_are_not_attached_to_again(scratch):
    """They have its name; one has allocated and joined, the other one has only the changed code."""
    with Follower(scratch, source="spreading") as follower:
        with follower.start() as first:
            first.do("k 5 100", "k 0 0")
            with follower.start() as second:  # found by a look that finds the children, too
                second.do("c")
                second.end()
            first.do("c")
            first.end()
        assert "warning" not in follower.await_idle()
        (recording,) = follower.kept()
        assert_totals(recording, {"allocations": 5 + 2, "frees": 2, "live_bytes": 500, "unknown_frees": 0})
        assert len([one for one in recording.report["processes"] if one["attached"]]) == 2


def test_a_signal_ends_the_recording_and_the_program_runs_on(scratch):
    with Follower(scratch) as follower:
        with follower.start() as program:
            program.do("a 4 100")
            follower.end(signal.SIGTERM)
            program.do("a 9 100")
            program.end()
        (recording,) = follower.kept()
        assert_totals(recording, {"allocations": 4})
        assert recording.report["run"]["state"] == "stopped"


class Served:
    """What the recorder of a follower serves now."""

    def __init__(self, follower):
        self.port = int(re.search(r"https://[^/]*:(\d+)/metrics", follower.hear(b"/metrics\n"))[1])


def test_a_reload_reaches_the_recording_and_the_next_one_needs_none(scratch):
    pem, token = scratch / "server.pem", scratch / "token"
    certificate(pem, "first")
    token.write_text("0" * 32)
    with Follower(scratch, "--listen", "localhost:0", "--tls", pem, "--token-file", token) as follower:
        assert "no running recording" in follower.ctl("reload", 2)  # the first one reads the files itself
        with follower.start() as program:
            served = Served(follower)
            program.do("a 3 100")
            follower.ctl("checkpoint")
            assert curl(served, "0" * 32) == (0, "200", ["first"])
            certificate(pem, "second")
            token.write_text("1" * 32)
            assert curl(served, "0" * 32)[2] == ["first"]  # not before the reload
            assert follower.ctl("reload") == "reloaded\n"
            assert curl(served, "1" * 32) == (0, "200", ["second"]) and curl(served, "0" * 32)[1] == "401"
            with follower.start() as other:  # which joins the recording
                assert follower.ctl("reload") == "reloaded\n"
                other.end()
            program.end()
        follower.await_idle()
        certificate(pem, "third")
        with follower.start() as program:
            served = Served(follower)
            program.do("a 5 100")
            follower.ctl("checkpoint")
            assert curl(served, "1" * 32) == (0, "200", ["third"])
            program.end()
        follower.await_idle()
        first, second = follower.kept()
        assert_totals(first, {"allocations": 3})
        assert_totals(second, {"allocations": 5})


def test_a_process_of_another_recorder_is_left_to_it(scratch):
    with Attachable(scratch, [wanted(scratch)]) as taken:
        taken.attach()
        with Follower(scratch) as follower:
            assert f"process {taken.process.pid} is already recorded" in follower.hear(b"end that first")
            follower.await_idle()
            with follower.start() as program:
                program.do("a 2 100")
                program.end()
            follower.await_idle()
            assert_totals(follower.kept()[-1], {"processes": 1, "allocations": 2})
            follower.end()
        taken.do("a 3 100")
        assert_totals(taken.detach(), {"allocations": 3})
        taken.end()


def test_the_duration_is_that_of_all(scratch):
    with Follower(scratch, "--duration", "500ms") as follower:
        assert follower.await_end() == ""


def test_the_disk_is_bounded_over_recordings(scratch):
    with Follower(scratch, "--max-disk", "1") as follower:
        for _ in range(2):
            with follower.start() as program:
                program.do("a 3 100")
                program.end()
            follower.await_idle()
            assert [path.name for path in follower.folder.iterdir()] == ["w.cairn"]


def reads_memory_of(recorder, pid):
    """Whether a process has the memory of another one open."""
    folder = f"/proc/{recorder}/fd"
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except FileNotFoundError:
            pass  # closed meanwhile
    return any(re.fullmatch(rf"/proc/{pid}/.*mem", link) for link in links)


def test_attaching_waits_until_the_libraries_are_loaded(scratch):
    """The loader opens a FIFO as a library, before libc, and waits there until someone writes."""
    fifo = scratch / "library"
    os.mkfifo(fifo)
    program = Attachable(scratch, ["env", f"LD_PRELOAD={fifo}", PROGRAMS / "obedient"])
    try:
        wait_until(lambda: os.readlink(f"/proc/{program.process.pid}/exe").endswith("obedient"), "the exec")
        program.recorder = subprocess.Popen([CAIRN, "record", "-q", "-o", program.path, "-p", str(program.process.pid)],
                                            stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        wait_until(lambda: reads_memory_of(program.recorder.pid, program.process.pid), "the recorder's look")
        with open(fifo, "wb"):
            pass
        wait_until(program.is_answered, "the recorder's answer")
        program.do("a 7 100")
        program.end()
        assert_totals(program.finish(), {"allocations": 7})
    finally:
        program.__exit__()


@pytest.mark.parametrize("options, words", [
    (["--follow", "--", "true"], "needs --name"), (["--follow", "--name", "x", "-p", "1"], "--pid"),
    (["--follow", "--name", ""], "empty"),
    (["--follow", "--name", "x", "--", "true"], "contradict"),
    (["--follow", "--name", "x", "-o", "/proc/no/x.cairn"], "/proc/no"),
    (["--follow", "--name", "x", "--keep", "1d", "-o", "x.%p.cairn"], "%p"),
])
def test_what_makes_no_sense_is_refused_in_words(options, words, scratch):
    run = subprocess.run([CAIRN, "record", *options], capture_output=True, text=True, check=False,
                         timeout=DEADLINE_SECONDS, cwd=scratch, env=environment())
    assert run.returncode == 2 and words in run.stderr and run.stderr.count("\n") == 1
