# SPDX-License-Identifier: MIT
"""Attaching: `cairn -p PID` records a process that runs, exactly, and leaves it as it was."""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment, some_of, truth_of
from conversation import Conversation
from screen import Terminal
from test_sample import SIGMAS, assert_near, errors_of
from waiting import DEADLINE_SECONDS, read_until, wait_until


LOADER = {"aarch64": "/ld-linux-aarch64.so.1", "x86_64": "/ld-linux-x86-64.so.2"}[os.uname().machine]
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207


class Attachable(Conversation):
    """A program that executes a test's commands one by one, and recorders that attach to it."""

    def __init__(self, scratch, program=None, before=()):
        super().__init__(scratch / "attached.cairn", program=program)
        self.recorder = None
        self.before = before  # words of the recorder's command line

    def command(self, _options, program):
        return program

    def __exit__(self, *_):
        if self.recorder is not None:
            self.recorder.kill()
            self.recorder.communicate()
        super().__exit__()

    def attach(self, *options):
        """Begin to record; return when the program's functions are patched."""
        self.begin(*options, "-p", str(self.process.pid))

    def begin(self, *options):
        """Start a recorder with options that name processes."""
        self.path.unlink(missing_ok=True)
        self.recorder = subprocess.Popen(
            [*self.before, CAIRN, "record", "-q", "-o", self.path, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        wait_until(self.is_answered, "the recorder's answer")

    def is_answered(self):
        assert self.recorder.poll() is None, self.recorder.communicate()
        run = subprocess.run([CAIRN, "ctl", self.path, "status", "--json"], capture_output=True,
                             env=environment(), check=False)
        return run.returncode == 0

    def finish(self):
        """Wait for the recorder, which has a reason to end; return the recording."""
        output, errors = self.recorder.communicate(timeout=DEADLINE_SECONDS)
        assert (self.recorder.returncode, output, errors) == (0, b"", b"")
        return Recording(self.path, self.recorder)

    def detach(self):
        self.ctl("detach")
        return self.finish()

    def end(self):
        """End the program; the recording ends with it."""
        self.process.stdin.write(b"q\n")
        self.process.stdin.close()
        assert self.process.wait(DEADLINE_SECONDS) == 0


def changed_code(pid, name):
    """Whether the code of a library differs from its file's, in the memory of a process. Bytes behind
    the code, up to the end of the page, are nobody's."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        (row,) = [line.split() for line in maps if line.rstrip().endswith(name) and " r-xp " in line]
    headers = subprocess.run(["readelf", "-lW", row[5]], capture_output=True, text=True, check=True).stdout
    (segment,) = [line.split() for line in headers.splitlines() if "LOAD" in line and " R E " in line]
    offset, size = int(segment[1], 16), int(segment[4], 16)
    assert offset == int(row[2], 16)
    with open(row[5], "rb") as file, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        file.seek(offset)
        memory.seek(int(row[0].split("-")[0], 16))
        return file.read(size) != memory.read(size)


@pytest.fixture
def attachable(scratch):
    with Attachable(scratch) as program:
        yield program


def test_counts_are_exact_between_attach_and_detach(attachable):
    attachable.do("a 10 100", "t 5 10")
    attachable.attach()
    attachable.do("a 7 1000", "f 3", "t 2 10", "a 4 50", "r 2 500")
    wait_until(lambda: attachable.status()["allocations"] == 15, "the counts of the running program")
    recording = attachable.detach()
    attachable.do("a 3 77", "f 5")
    assert_totals(recording, {"allocations": 15, "allocated_bytes": 7000 + 20 + 200 + 1000})
    # The blocks that it freed and reallocated were from before, except the temporary ones.
    assert recording.totals["frees"] == 2 and recording.totals["unknown_frees"] == 3 + 2
    attachable.end()


def test_an_attached_program_is_sampled(attachable):
    attachable.do("a 1000 100")
    attachable.attach("--sample=1KiB")
    attachable.do("a 20000 100", "f 5000")
    recording = attachable.detach()
    attachable.do("f 10000")
    attachable.end()
    sampling = recording.report["run"]["sampling"]
    assert (sampling["allocations"], sampling["allocated_bytes"]) == (20000, 2000000)
    assert_near(recording.totals["allocated_bytes"], 2000000, errors_of([(100, 20000)], 1024)[1])
    assert recording.totals["frees"] < 5000 + SIGMAS * errors_of([(100, 5000)], 1024)[0]


def test_blocks_that_were_chosen_before_a_detach_are_not_seen_again(attachable):
    """They are freed, and their addresses used again, while no recorder is attached and after it. What
    the next recording says is what happened in it."""
    mean = 1024
    for _ in range(3):
        attachable.attach(f"--sample={mean}")
        attachable.do("a 20000 100", "t 10000 100")
        first = attachable.detach()
        assert_near(first.totals["live_bytes"], 2000000, errors_of([(100, 20000)], mean)[1])
        assert_near(first.totals["frees"], 10000, errors_of([(100, 10000)], mean)[0])
        attachable.do("f 10000", "a 10000 100")
        attachable.attach(f"--sample={mean}")
        attachable.do("f 10000", "a 10000 100", "f 10000", "t 5000 100")  # the frees are of earlier blocks
        second = attachable.detach()
        sampling = second.report["run"]["sampling"]
        assert (sampling["allocations"], sampling["allocated_bytes"]) == (15000, 1500000)
        assert_near(second.totals["live_blocks"], 10000, errors_of([(100, 10000)], mean)[0])
        assert_near(second.totals["frees"], 5000, errors_of([(100, 5000)], mean)[0])
        assert second.totals["unknown_frees"] == 0
        attachable.do("f 10000")
    attachable.end()


def test_blocks_from_before_are_counted_apart(attachable):
    attachable.do("a 10 100")
    attachable.attach()
    attachable.do("f 10", "a 2 64", "f 1")
    recording = attachable.detach()
    assert_totals(recording, {"allocations": 2, "allocated_bytes": 128, "frees": 1,
                              "live_blocks": 1, "live_bytes": 64, "unknown_frees": 10})


def test_after_the_detach_the_code_is_what_it_was(attachable):
    pid = attachable.process.pid
    assert not changed_code(pid, "/libc.so.6")
    attachable.attach()
    assert changed_code(pid, "/libc.so.6") and changed_code(pid, LOADER)
    attachable.detach()
    assert not changed_code(pid, "/libc.so.6") and not changed_code(pid, LOADER)


def test_it_can_be_attached_to_again_and_again(attachable):
    for count in range(1, 6):
        attachable.attach()
        attachable.do(f"a {count} 32", "t 3 16")
        recording = attachable.detach()
        assert_totals(recording, {"allocations": count + 3, "allocated_bytes": 32 * count + 48, "frees": 3})
        attachable.do("t 10 10")


def address_space(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmSize:\s+(\d+) kB", text)[1]) << 10


def test_each_attach_gives_back_what_the_last_one_reserved(scratch):
    """30 attaches to a program whose address space has room for one; every third recorder is killed."""
    with Attachable(scratch, ["prlimit", f"--as={6_000_000_000}", PROGRAMS / "obedient"]) as program:
        sizes = []
        for count in range(30):
            program.attach()
            program.do("a 3 32")
            if count % 3 == 2:
                program.recorder.kill()
                program.recorder.communicate()
            else:
                assert_totals(program.detach(), {"allocations": 3, "allocated_bytes": 96})
            program.do("t 10 10")
            sizes.append(address_space(program.process.pid))
        assert max(after - before for before, after in zip(sizes, sizes[1:])) < 4 << 20, sizes
        program.end()


def session_memory(pid):
    """Return the addresses that the process may write in its sessions, and the memory there, in bytes."""
    addresses, resident, is_session = 0, 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        first = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line)
        if first:
            is_session = "memfd:cairn-session" in line and first[3].startswith("rw")
            addresses += (int(first[2], 16) - int(first[1], 16)) * is_session
        elif is_session and line.startswith("Rss:"):
            resident += int(line.split()[1]) << 10
    return addresses, resident


def test_words_of_blocks_are_given_back(scratch):
    """Threads of an attached process keep books: a region of words for their heap, of 18 MiB or more. After the detach
    their memory is gone, and a second recorder begins anew."""
    with Attachable(scratch) as program:
        for _ in range(2):
            program.attach()
            program.do("a 100 100", "a 5000 10")
            addresses, resident = session_memory(program.process.pid)
            program.detach()
            assert addresses >= 18 << 20
            assert session_memory(program.process.pid)[1] < resident


def test_a_thread_inside_the_agent_keeps_what_it_may_need(scratch):
    """It waits in an allocator that an earlier attach has hooked, and returns through the hook."""
    reserved = 1317 << 30  # of the words alone
    with Attachable(scratch, [PROGRAMS / "attach" / "waiting_allocator"]) as program:
        program.attach("--allocator", "malloc=own_malloc")
        program.do("w")
        program.detach()
        bare = address_space(program.process.pid) - reserved
        for attaches in (2, 3):
            program.attach("--allocator", "malloc=own_malloc")
            program.do("a")
            program.detach()
            assert address_space(program.process.pid) - bare > attaches * reserved
        program.do("g")
        for _ in range(3):  # the last one is given back, the others are forgotten
            program.attach("--allocator", "malloc=own_malloc")
            program.do("a", "a")
            program.detach()
            assert address_space(program.process.pid) - bare < 4 * reserved
        program.end()


def test_it_can_be_attached_to_after_the_recorder_was_killed(attachable):
    attachable.attach()
    attachable.do("a 5 100")
    attachable.recorder.kill()
    attachable.recorder.communicate()
    attachable.do("a 5 100", "t 1000 10")
    attachable.attach()
    attachable.do("a 3 100")
    assert_totals(attachable.detach(), {"allocations": 3, "allocated_bytes": 300})
    attachable.end()


def test_a_process_whose_first_thread_has_ended(scratch):
    """Its files in /proc are those of a thread that lives."""
    with Attachable(scratch, program=[PROGRAMS / "leaderless"]) as program:
        stat = pathlib.Path(f"/proc/{program.process.pid}/stat")
        wait_until(lambda: ") Z " in stat.read_text(), "the end of the first thread")
        program.attach()
        program.do("a 7 1000", "f 3")
        program.ctl("snapshot")
        recording = program.detach()
        program.end()
    assert_totals(recording, {"allocations": 7, "allocated_bytes": 7000, "frees": 3})
    (process,) = recording.report["processes"]
    assert os.path.basename(process["executable"]) == "leaderless" and process["command_line"] != ""
    assert recording.report["rss"]["breakdowns"]


class Filtering(Attachable):
    """A program that installs a seccomp filter, which kills for the calls of hooks."""

    def __init__(self, scratch, when):
        super().__init__(scratch, program=[PROGRAMS / "filtering", when])

    def __enter__(self):
        read_until(self.process.stdout.fileno(), b"done\n")
        return self

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        read_until(self.process.stdout.fileno(), b"done\n")


@pytest.mark.parametrize("way", ["end", "detach"])
def test_a_filter_that_comes_later_does_not_kill(scratch, way):
    """No hook makes a system call under it, and a detached program makes only its own."""
    with Filtering(scratch, "later") as program:
        program.attach()
        program.go_on()
        if way == "detach":
            program.detach()
        program.go_on()
        assert program.process.wait(DEADLINE_SECONDS) == 7
        if way == "end":
            recording = program.finish()
            assert_totals(recording, truth_of("filtering"))


@pytest.mark.parametrize("whose", ["before", "thread"])
def test_a_process_whose_filter_could_kill_is_refused(scratch, whose):
    """It is left as it was: it may not even continue its own call by restart_syscall."""
    with Filtering(scratch, whose) as program:
        run = subprocess.run([CAIRN, "record", "-p", str(program.process.pid), "-o", program.path],
                             capture_output=True, text=True, env=environment(), check=False, timeout=DEADLINE_SECONDS)
        assert run.returncode == 126 and "seccomp filter" in run.stderr, run.stderr
        program.go_on()
        program.go_on()
        assert program.process.wait(DEADLINE_SECONDS) == 7


def test_the_recording_ends_with_the_program(attachable):
    attachable.attach()
    attachable.do("a 3 10")
    attachable.end()
    recording = attachable.finish()
    recording.assert_whole()
    assert recording.totals["allocations"] >= 3
    (process,) = recording.report["processes"]
    assert os.path.basename(process["executable"]) == "obedient" and process["attached"]
    text = subprocess.run([CAIRN, "report", recording.path], capture_output=True, text=True,
                          env=environment(), check=True)
    said = f"process {process['pid']} ran before it was recorded"
    assert said in text.stdout + text.stderr


def test_a_process_that_does_not_allocate(attachable):
    attachable.attach()
    recording = attachable.detach()
    assert recording.totals["allocations"] == 0
    (process,) = recording.report["processes"]
    assert os.path.basename(process["allocator"]) == "libc.so.6"
    text = subprocess.run([CAIRN, "report", recording.path], capture_output=True, text=True,
                          env=environment(), check=True).stdout
    assert "No allocation was recorded: the program called no allocation function while it was recorded." in " ".join(text.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_recorder_detaches(attachable, number):
    attachable.attach()
    attachable.do("a 3 10")
    attachable.recorder.send_signal(number)
    assert_totals(attachable.finish(), {"allocations": 3})
    attachable.do("a 3 10")
    attachable.end()


def test_after_the_duration_it_is_detached(attachable):
    run = subprocess.run([CAIRN, "record", "-q", "-p", str(attachable.process.pid), "-o", attachable.path,
                          "--duration", "50ms"], capture_output=True, env=environment(), check=False,
                         timeout=DEADLINE_SECONDS)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    attachable.do("a 3 10")
    attachable.end()


def test_the_length_of_the_stops_is_printed(attachable):
    run = subprocess.run([CAIRN, "record", "-q", "--verbose", "-p", str(attachable.process.pid), "-o",
                          attachable.path, "--duration", "50ms"], capture_output=True, text=True,
                         env=environment(), check=False, timeout=DEADLINE_SECONDS)
    number = r"\d+\.\d\d ms"
    line = (rf"cairn: process {attachable.process.pid} was stopped for {number} \(threads: 1; {number} until all "
            rf"had stopped; {number} for \d+ functions; attempt \d+; (real-time|ordinary) priority\)\n")
    hooked = rf"(cairn: hooked in process {attachable.process.pid}: [\w, ]+ of '/.+'( \(libc\))?\n)+"
    lanes = rf"cairn: the lanes were left unread for at most {number} \({number} of work\)\n"
    assert run.returncode == 0 and re.fullmatch(hooked + line + lanes + line, run.stderr), run.stderr


def test_children_that_are_forked_while_attached_belong_to_the_recording(scratch):
    with Attachable(scratch, [PROGRAMS / "spreading"]) as program:
        program.attach()
        program.do("f 5 100", "f 3 1000")  # the first process has not called an allocator so far
        recording = program.detach()
        program.do("f 7 10")
        program.end()
    main, *children = recording.report["processes"]
    assert [child["parent_pid"] for child in children] == [main["pid"]] * 2
    assert all(child["forked"] and child["executable"] == main["executable"] for child in children)
    assert recording.totals["live_bytes"] == 4 * 100 + 2 * 1000
    assert (recording.totals["allocations"], recording.totals["frees"]) == (8, 2)


def test_children_from_before_the_attach_are_named(scratch):
    """A leak may be theirs: the report says with which option they are recorded."""
    with Attachable(scratch, [PROGRAMS / "spreading"]) as program:
        program.do("k 5 100", "k 0 0")
        task = f"/proc/{program.process.pid}/task/{program.process.pid}/children"
        children = pathlib.Path(task).read_text(encoding="ascii").split()
        program.attach()
        program.ctl("detach")
        output, warning = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        program.do("c")
        program.end()
    said = subprocess.run([CAIRN, "report", program.path], capture_output=True, text=True, env=environment(), check=True)
    pids = ",".join([str(program.process.pid), *children])
    sentence = f"2 children of process {program.process.pid}, which ran before; -p {pids} records them, too"
    assert (program.recorder.returncode, output) == (0, b"") and sentence in warning.decode()
    assert sentence in said.stdout + said.stderr
    assert len(Recording(program.path, program.recorder).report["processes"]) == 1


def test_children_that_live_at_the_detach_are_left_as_they_were(scratch):
    """One child has allocated and joined, the other one has only the changed code."""
    with Attachable(scratch, [PROGRAMS / "spreading"]) as program:
        program.attach()
        program.do("k 5 100", "k 0 0")
        task = f"/proc/{program.process.pid}/task/{program.process.pid}/children"
        children = [int(pid) for pid in pathlib.Path(task).read_text(encoding="ascii").split()]
        assert len(children) == 2 and all(changed_code(pid, "/libc.so.6") for pid in children)
        recording = program.detach()
        assert not any(changed_code(pid, "/libc.so.6") for pid in [*children, program.process.pid])
        program.do("c")
        program.end()
    assert recording.totals["live_bytes"] == 500


def test_threads_that_come_and_go_are_all_counted(scratch):
    with Attachable(scratch, [PROGRAMS / "spreading"]) as program:
        program.do("t 4 50")
        program.attach()
        program.do("t 20 333", "t 20 333")  # the second 20 have the stacks of the first
        recording = program.detach()
        program.do("t 4 50")
        program.end()
    assert sum(costs["allocations"] for costs, frames in recording.stacks()
               if frames[0]["function"] == "churn") == 40 * 100
    threads = recording.totals["threads"]
    assert threads == 1 + 40, "each has a lane of its own, and the first has begun them"


@pytest.fixture
def pair(scratch):
    """Two programs, each with a folder and a file of its own, but recorded by the first's recorder."""
    both = f"both{os.getpid()}"  # a name that no other process has
    for name in ("one", "two"):
        (scratch / name).mkdir()
        shutil.copy(PROGRAMS / "obedient", scratch / name / both)
    programs = [Attachable(scratch / name, [scratch / name / both]) for name in ("one", "two")]
    with programs[0] as first, programs[1] as second:
        yield first, second


def check_both(first, second):
    """Both are recorded exactly, in one file, and left as they were."""
    first.do("a 5 100")
    second.do("a 7 1000", "f 3")
    first.do("t 2 10", "f 5")
    recording = first.detach()
    costs = {process["pid"]: process["costs"] for process in recording.report["processes"]}
    assert all(process["attached"] for process in recording.report["processes"])
    assert set(costs) == {first.process.pid, second.process.pid}
    here, there = costs[first.process.pid], costs[second.process.pid]
    assert (here["allocations"], here["allocated_bytes"], here["frees"]) == (7, 520, 7)
    assert (there["allocations"], there["allocated_bytes"], there["frees"]) == (7, 7000, 3)
    assert recording.totals["live_bytes"] == 4000
    for program in (first, second):
        assert not changed_code(program.process.pid, "/libc.so.6")
        program.end()


@pytest.mark.parametrize("join", [lambda a, b: ["-p", f"{a},{b}"], lambda a, b: ["-p", str(b), "--pid", str(a)]],
                         ids=["list", "repeated"])
def test_several_processes_are_one_recording(pair, join):
    first, second = pair
    first.begin(*join(first.process.pid, second.process.pid))
    check_both(first, second)


def test_all_processes_of_a_name_are_recorded(pair):
    first, second = pair
    first.begin("--name", os.path.basename(first.process.args[0]))
    check_both(first, second)


def test_the_recording_of_several_ends_with_the_last(pair):
    first, second = pair
    first.begin("-p", f"{first.process.pid},{second.process.pid}")
    first.do("a 5 100")
    first.end()
    second.do("a 2 100")
    wait_until(lambda: first.status()["allocations"] >= 7, "the blocks of the second")
    second.end()
    recording = first.finish()
    recording.assert_whole()
    assert {process["pid"] for process in recording.report["processes"]} == {
        first.process.pid, second.process.pid}


def test_a_list_with_a_process_that_cannot_be_recorded_is_refused(attachable):
    run = subprocess.run([CAIRN, "record", "-o", attachable.path, "-p", f"{attachable.process.pid},4194304"],
                         capture_output=True, text=True, env=environment(), check=False)
    assert run.returncode == 126 and "there is no process 4194304" in run.stderr
    assert not changed_code(attachable.process.pid, "/libc.so.6")
    attachable.end()


def test_of_a_name_the_processes_that_cannot_be_recorded_are_omitted(pair):
    first, second = pair
    tracer = ctypes.CDLL(None, use_errno=True)
    pid = second.process.pid
    assert tracer.ptrace(PTRACE_SEIZE, pid, 0, 0) == 0
    first.begin("--name", os.path.basename(first.process.args[0]))
    first.do("a 3 100")
    first.ctl("detach")
    output, errors = first.recorder.communicate(timeout=DEADLINE_SECONDS)
    assert (first.recorder.returncode, output) == (0, b"")
    assert f"process {pid} is already traced" in errors.decode() and "it is omitted" in errors.decode()
    assert_totals(Recording(first.path, first.recorder), {"allocations": 3})
    tracer.ptrace(PTRACE_INTERRUPT, pid, 0, 0)
    os.waitpid(pid, 0x40000000)  # __WALL
    tracer.ptrace(PTRACE_DETACH, pid, 0, 0)


def stacks_of(recording):
    """{size: functions} of the blocks of an obedient program."""
    return {costs["allocated_bytes"]: [frame["function"] for frame in frames]
            for costs, frames in recording.stacks()}


def test_stacks_are_those_of_a_program_that_was_started_by_cairn(scratch, attachable):
    attachable.attach()
    attachable.do("a 1 1111", "t 1 2222")
    attached = stacks_of(attachable.detach())
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "started.cairn", "--", PROGRAMS / "obedient"],
                         input=b"a 1 1111\nt 1 2222\nq\n", capture_output=True, env=environment(), check=False,
                         timeout=DEADLINE_SECONDS)
    assert run.returncode == 0
    started = stacks_of(Recording(scratch / "started.cairn", run))
    for size in (1111, 2222):
        assert attached[size] == started[size]


def test_a_recorder_that_lacks_descriptors_says_so(scratch, attachable):
    """The process lives, can be read and has an allocator, so none of that is the reason."""
    ended = []
    for most in some_of(range(7, 28), 3):
        run = subprocess.run(["sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", CAIRN, "record", "-q", "-o",
                              scratch / "few.cairn", "--duration", "10ms", "-p", str(attachable.process.pid)],
                             text=True, capture_output=True, env=environment(), check=False, timeout=DEADLINE_SECONDS)
        assert run.returncode == 0 or run.stderr.endswith(": Too many open files\n"), (most, run.stderr)
        ended.append(run.returncode)
    assert ended[0] == 126 and ended[-1] == 0
    attachable.end()


@pytest.mark.parametrize("arguments, said", [
    (["-p", "1", "true"], "contradict"),
    (["-p", "0"], "whole number"),
    (["-p", "17,"], "like 17,18"),
    (["--name", ""], "the name is empty"),
    (["--name", "no-such-process-here"], "no process has the name 'no-such-process-here'"),
    (["-p", "4194304"], "4194304"),
])
def test_what_cannot_be_attached_to_is_refused_in_words(scratch, arguments, said):
    run = subprocess.run([CAIRN, "record", "-o", scratch / "none.cairn", *arguments], capture_output=True,
                         text=True, env=environment(), check=False, timeout=DEADLINE_SECONDS)
    assert run.returncode in (2, 126) and run.stderr.startswith("cairn: ") and said in run.stderr


def test_top_attaches_and_leaves_the_process_as_it_was(scratch):
    """`cairn top -p PID` of a process that nobody records: quitting detaches, and the process runs on."""
    with Attachable(scratch) as program:
        program.do("a 5 100")
        pid = program.process.pid
        with Terminal([CAIRN, "top", "-d", "100ms", "-p", str(pid)], environment(), folder=scratch) as screen:
            screen.wait_for(f"cairn top: obedient (process {pid})")
            program.do("a 10 100", "t 20 10")
            screen.wait(lambda lines: any(re.match(" *1000 B .* keep ", line) for line in lines), "the figures")
            screen.press("q")
            assert screen.end_status() == 0
            assert f"cairn: process {pid} runs on and is not recorded any more" in screen.text()
        recording, = scratch.glob("*.cairn")
        program.do("a 10 100")
        totals = Recording(recording, None).totals
        assert (totals["allocations"], totals["live_bytes"]) == (30, 1000)
        assert [entry.name for entry in scratch.iterdir()] == [recording.name]


def test_top_shows_what_is_recorded_already(scratch):
    with Attachable(scratch) as program:
        program.attach()
        program.do("a 10 100")
        text = subprocess.run([CAIRN, "top", "--plain", "--count", "1", "-p", str(program.process.pid)], check=True,
                              capture_output=True, text=True, env=environment()).stdout
        assert "live heap: 1000 B in 10 blocks" in text
        assert program.status()["state"] == "recording"
