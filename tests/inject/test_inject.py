# SPDX-License-Identifier: MIT
"""Attach to programs that check themselves, and detach, again and again.

Oracles: the programs' own checks (tests/inject/programs), their own counts, the kernel's view of
their memory and state. CAIRN_INJECT_CYCLES is the number of cycles of each program (6; the long
form has 1000), CAIRN_INJECT_KILLS the number of killed injectors and recorders (5; 500).
"""
import ctypes
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess

import pytest

from targets import CAIRN, PROGRAMS, PATIENT, Target, command, functions, mappings, text_of
from cairn_run import IS_NIGHTLY  # after targets, which knows where it is
from waiting import read_until, wait_until

CYCLES = int(os.environ.get("CAIRN_INJECT_CYCLES", "6" if IS_NIGHTLY else "2"))
KILLS = int(os.environ.get("CAIRN_INJECT_KILLS", "5" if IS_NIGHTLY else "3"))
NOBODY = 65534
PTRACE_SEIZE, PTRACE_DETACH, PTRACE_INTERRUPT = 0x4206, 17, 0x4207

OWN = r"/programs/[^/]*$"  # of a static program: the only module
LIBC = r"/libc\.so\.6$"
SELF_CHECKING = {
    "blocked calls": (["blocked"], LIBC, False),
    "registers": (["registers"], LIBC, False),
    "signals": (["signals"], LIBC, False),
    "threads": (["churn", "threads"], LIBC, True),
    "fork": (["churn", "fork"], LIBC, False),
    "vfork": (["churn", "vfork"], LIBC, False),
    "spawn": (["churn", "spawn"], LIBC, False),
    "all of these": (["churn", "threads", "fork", "vfork", "spawn"], LIBC, True),
    "heap": (["heap", "4"], LIBC, True),
    "static": (["heap_static", "2"], OWN, True),
    "static-pie": (["heap_static_pie", "2"], OWN, True),
    "not PIE": (["heap_no_pie", "2"], LIBC, True),
    "musl": (["heap_musl", "2"], r"musl.*\.so", True),
    "static musl": (["heap_musl_static", "2"], OWN, True),
}


def hold(arguments, **variables):
    """Start an injector that attaches, and return it when it has."""
    injector = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env={**os.environ, **PATIENT, **variables})
    read_until(injector.stdout.fileno(), b"attached\n")
    return injector


def next_step(process, until):
    """Give a process a line, and return its answer."""
    process.stdin.write(b"\n")
    process.stdin.flush()
    return read_until(process.stdout.fileno(), until)


@pytest.mark.parametrize("name", SELF_CHECKING)
def test_cycles_do_no_harm(name):
    """The program finds nothing wrong, and its code is the same byte for byte."""
    command, module, allocates = SELF_CHECKING[name]
    with Target(command, module) as target:
        before = text_of(target.pid, module)
        result = target.attach(CYCLES)
        assert result["cycles"] == CYCLES
        assert not allocates or result["counts"][0] > 0
        assert text_of(target.pid, module) == before
        target.end()


def test_memory_is_used_again():
    """Later attaches map nothing new."""
    with Target(["heap", "2"]) as target:
        target.attach(1)
        executable = [m[:2] for m in mappings(target.pid) if "x" in m[2]]
        target.attach(CYCLES)
        assert [m[:2] for m in mappings(target.pid) if "x" in m[2]] == executable
        target.end()


@pytest.mark.parametrize("is_protected", [False, True])
@pytest.mark.parametrize("program,module", [("heap", LIBC), ("heap_static", OWN)])
def test_counts_are_exact(program, module, is_protected):
    """Between attach and detach the agent counts each call that the program counts, also where the
    kernel keeps the protection of pages, so that code is written by ptrace."""
    with Target([program, "4", "counted"], module) as target:
        injector = hold(target.command(1, "hold"), PROTECTED=str(int(is_protected)))
        said = next_step(target.process, b"done\n").decode()
        out, _ = injector.communicate(b"\n", timeout=60)
        counts = dict(re.findall(r"(\w+) (\d+)", said))
        assert json.loads(out.splitlines()[-1])["counts"] == [
            int(counts[name]) for name in ("malloc", "free", "calloc", "realloc")]
        assert int(counts["malloc"]) > 1000
        target.end()


def test_code_is_written_across_words():
    """ptrace writes words; what is written begins and ends within them."""
    with Target(["heap", "4"], LIBC) as target:
        before = text_of(target.pid, LIBC)
        done = subprocess.run(target.command(1, "write"), env={**os.environ, **PATIENT, "PROTECTED": "1"},
                              capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert text_of(target.pid, LIBC) == before
        target.end()


def kill_one(arguments, seconds):
    """Start an injector and kill it after some time, which is random anyway."""
    injector = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, **PATIENT})
    select.select([], [], [], seconds)
    injector.kill()
    assert injector.wait() in (-signal.SIGKILL, 0)


def test_killed_injectors_do_no_harm():
    """The injector dies at random moments; the next one restores the code and goes on."""
    draw = random.Random(14)
    with Target(["heap", "4"]) as target:
        before = text_of(target.pid, LIBC)
        arguments = target.command(1000, "attach")
        for _ in range(KILLS):
            kill_one(arguments, draw.uniform(0, 0.03))
        target.attach(1)
        assert text_of(target.pid, LIBC) == before
        target.end()


def test_injectors_killed_at_their_first_attach_do_no_harm():
    """The first code runs in a module of the target, and is the most delicate.

    Not with blocked calls: a thread in epoll_wait whose tracer is killed between its stop and the
    correction of its registers gets EINTR, as with any debugger."""
    draw = random.Random(15)
    for _ in range(KILLS // 3):
        with Target(["registers"]) as target:
            arguments = target.command(1, "attach")
            for _ in range(3):
                kill_one(arguments, draw.uniform(0, 0.02))
            target.attach(1)
            target.end()


def test_killed_recorders_do_no_harm(tmp_path):
    """The recorder dies at random moments of its attach, of the recording, and of its detach."""
    draw = random.Random(16)
    with Target(["heap", "4"]) as target:
        before = text_of(target.pid, LIBC)
        arguments = [CAIRN, "record", "-q", "-p", str(target.pid), "-o", tmp_path / "killed.cairn", "--duration", "50ms"]
        for _ in range(KILLS):
            kill_one(arguments, draw.uniform(0, 0.25))
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert text_of(target.pid, LIBC) == before
        target.end()


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.nightly), 5])
def test_every_failing_call_is_survived(step):
    """The nth call to the kernel fails; then an attach succeeds, and the program is well."""
    with Target(["heap", "2"]) as target:
        before = text_of(target.pid, LIBC)
        result = target.attach(40 if CYCLES == 30 else 2000, "faults", STEP=str(step))
        assert result["cycles"] > 10
        assert text_of(target.pid, LIBC) == before
        target.end()


def test_a_stopped_program_stays_stopped():
    """Attach and detach work, and only SIGCONT lets the program go on."""
    with Target(["heap", "4"]) as target:
        target.attach(1)
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: target.state() == "T", "the stop")
        target.attach(3)
        wait_until(lambda: target.state() == "T", "the stop again")
        os.kill(target.pid, signal.SIGCONT)
        target.attach(1)
        target.end()


def test_first_attach_to_a_stopped_program():
    """The first system calls are made while the program is stopped."""
    with Target(["heap", "2"]) as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_until(lambda: target.state() == "T", "the stop")
        target.attach(1)
        wait_until(lambda: target.state() == "T", "the stop again")
        worked = target.processor_ticks()
        os.kill(target.pid, signal.SIGCONT)
        wait_until(lambda: target.processor_ticks() > worked + 10, "work after the stop")
        target.end()


def test_a_handler_within_the_first_bytes():
    """While a handler will return into the bytes to patch, the attach is given up; then it works."""
    with Target(["stuck"], until=b"\n") as target:
        assert target.seen == b"stuck\n"
        done = target.cycles(1, ATTEMPTS="3")
        assert json.loads(done.stdout)["given_up"] == 1, done.stderr
        assert "could not be stopped" in done.stderr
        next_step(target.process, b"returned\n")
        target.attach(CYCLES)
        target.end()


def times_waited(process):
    """How often a process has slept, or many times if it has ended."""
    if process.poll() is not None:
        return 1000
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", status).group(1))


def test_a_program_that_is_in_vfork_is_waited_for():
    """No thread can make the first system calls until the child has ended."""
    with Target(["vforked"], until=b"vforked\n") as target:
        injector = subprocess.Popen(target.command(1, "hold"), stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, env={**os.environ, **PATIENT})
        wait_until(lambda: times_waited(injector) >= 3, "the injector to wait")
        next_step(target.process, b"returned\n")
        read_until(injector.stdout.fileno(), b"attached\n")
        injector.communicate(b"\n", timeout=60)
        assert injector.returncode == 0
        target.end()


@pytest.mark.parametrize("way", ["memory", "everything"])
def test_seccomp(way):
    """Filters are suspended for the calls; without the permission for that, the attach is refused."""
    with Target(["jail", way], until=b"jailed\n") as target:
        result = target.attach(CYCLES)
        assert result["counts"][0] > 0
        target.end()
    with Target(["jail", way], until=b"jailed\n", user=NOBODY) as target:
        done = target.cycles(1, user=NOBODY)
        assert done.returncode == 1
        assert "seccomp filter" in done.stderr and "as root" in done.stderr
        target.end()


def refusal(pid, user=None):
    """The sentence with which a process is refused."""
    done = subprocess.run([PROGRAMS / "cycles", str(pid), "1", "stop"], capture_output=True,
                          text=True, timeout=60, check=False, user=user, group=user)
    assert done.returncode == 1
    return done.stderr


def test_refusals():
    """Each refusal is a sentence that says what to do."""
    assert "there is no process 999999999" in refusal(999999999)
    assert "belongs to user 0; run cairn as that user or as root" in refusal(1, user=NOBODY)
    assert "thread of the kernel" in refusal(2)
    with Target(["jail", "undumpable"], until=b"jailed\n", user=NOBODY) as target:
        said = refusal(target.pid, user=NOBODY)
        assert "PR_SET_DUMPABLE" in said and "run cairn as root" in said
        target.attach(2)
        target.end()
    with Target(["heap", "2"]) as target:
        tids = [int(tid) for tid in os.listdir(f"/proc/{target.pid}/task")]
        thread = next(tid for tid in tids if tid != target.pid)
        assert f"{thread} is a thread of process {target.pid}" in refusal(thread)
        target.end()


def test_root_without_the_capability_is_not_told_to_be_root():
    with Target(["jail", "undumpable"], until=b"jailed\n") as target:
        done = subprocess.run(["setpriv", "--bounding-set", "-sys_ptrace", PROGRAMS / "cycles", str(target.pid), "1",
                               "stop"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "give cairn CAP_SYS_PTRACE" in done.stderr and "as root" not in done.stderr, done.stderr
        target.end()


@pytest.mark.parametrize("scope, said", [
    (1, "lets only root attach"), (2, "lets only root attach"), (3, "forbids attaching to any process")])
def test_the_rule_of_yama_is_named(scope, said):
    """The kernel may have no Yama, so the refusal is another one: of a program that protects itself. In
    a mount namespace of its own the injector reads the setting from a file of the test."""
    script = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
              'echo "$1" > /proc/sys/kernel/yama/ptrace_scope && shift && exec "$@"')
    with Target(["jail", "undumpable"], until=b"jailed\n", user=NOBODY) as target:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", str(scope), "setpriv", "--reuid", str(NOBODY),
             "--regid", str(NOBODY), "--clear-groups", PROGRAMS / "cycles", str(target.pid), "1", "stop"],
            capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert said in done.stderr and f"ptrace_scope is {scope}" in done.stderr, done.stderr
        assert "start the program under cairn" in done.stderr
        target.end()


def test_a_traced_program_is_refused():
    """The tracer is named."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Target(["heap", "2"]) as target:
        assert libc.ptrace(PTRACE_SEIZE, target.pid, 0, 0) == 0
        said = refusal(target.pid)
        assert "already traced by" in said and f"(process {os.getpid()})" in said
        libc.ptrace(PTRACE_INTERRUPT, target.pid, 0, 0)
        os.waitpid(target.pid, 0x40000000)  # __WALL
        libc.ptrace(PTRACE_DETACH, target.pid, 0, 0)
        target.attach(2)
        target.end()


def test_an_ordinary_user_attaches_to_an_own_program():
    """No privileges: no real-time priority."""
    with Target(["heap", "4"], user=NOBODY) as target:
        result = target.attach(5, user=NOBODY)
        assert result["counts"][0] > 0 and not result["realtime"]
        target.end()


def test_a_second_recorder_is_refused():
    """As long as the first one lives."""
    with Target(["heap", "2"]) as target:
        first = hold(target.command(1, "hold"))
        done = target.cycles(1)
        assert done.returncode == 1
        assert f"already recorded by cairn (process {first.pid})" in done.stderr
        first.kill()
        first.wait()
        first.stdin.close()
        first.stdout.close()
        target.attach(1)
        target.end()


def test_a_program_whose_first_thread_has_ended():
    """Its own files in /proc are empty; those of another thread are used."""
    with Target(["heap", "2", "headless"]) as target:
        wait_until(lambda: target.state() == "Z", "the end of the first thread")
        addresses = functions(os.getpid(), LIBC)
        start = next(m[0] for m in mappings(os.getpid()) if re.search(LIBC, m[4]))
        tid = next(t for t in os.listdir(f"/proc/{target.pid}/task") if int(t) != target.pid)
        maps = open(f"/proc/{target.pid}/task/{tid}/maps", encoding="utf-8").read()
        there = int(re.search(r"^(\w+)-.* 00000000 .*/libc\.so\.6$", maps, re.M).group(1), 16)
        arguments = [PROGRAMS / "cycles", str(target.pid), "5", "attach", PROGRAMS / "agent.so",
                     *(f"{n}@{a - start + there:x}" for n, a in addresses.items())]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, **PATIENT})
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["counts"][0] > 0
        target.end()
