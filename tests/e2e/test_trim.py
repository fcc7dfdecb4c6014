# SPDX-License-Identifier: MIT
"""`cairn trim`: a thread that waits for work lets the allocator give memory back, and nothing else of the process
changes.

Oracles: /proc/PID/statm, the program's own checks of its registers, errno and blocks (trimmed.c), and what services
answer."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess

import pytest

import loaded_programs
from cairn_run import CAIRN, IS_NIGHTLY, PROGRAMS, environment, some_of
from waiting import wait_until

FREE_BYTES = 39_999 * 1000  # of trimmed.c
TIMES = 200 if IS_NIGHTLY else 2
LOADED = 500 if IS_NIGHTLY else 2  # of each program under load
# Another allocator: how much of that it must return at the first call. mimalloc's is that of one thread.
ALLOCATORS = {"libjemalloc.so.2": "jemalloc", "libtcmalloc.so.4": "tcmalloc", "libmimalloc.so.2": "mimalloc"}


@contextlib.contextmanager
def trimmed(mode, **variables):
    process = subprocess.Popen([PROGRAMS / "trimmed", mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment(variables))
    try:
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def answer(process):
    """Whether all is as it was, and the number of rounds of its threads."""
    process.stdin.write(b"?")
    process.stdin.flush()
    word, rounds = process.stdout.readline().split()
    return word, int(rounds)


def rss(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def trim(*words, status=0):
    """On a busy machine the threads of a process may not stop in time: then it goes on unchanged, and is tried again."""
    for _ in range(20):
        done = subprocess.run([CAIRN, *map(str, words)], capture_output=True, text=True, env=environment(), timeout=120,
                              check=False)
        if status != 0 or "could not be stopped within" not in done.stderr:
            break
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 and "--json" in words else done.stdout + done.stderr


def test_memory_goes_back_as_promised_and_nothing_else_changes():
    with trimmed("read") as process:
        before = rss(process.pid)
        first = trim("trim", "--json", "-p", process.pid)
        # The kernel counts the pages of each thread apart at first.
        assert abs(first["rss_before_bytes"] - before) < 1 << 20 > abs(first["rss_after_bytes"] - rss(process.pid))
        gone = before - first["rss_after_bytes"]
        assert abs(gone - FREE_BYTES) < 0.05 * FREE_BYTES and abs(first["promised_bytes"] - gone) < 0.05 * gone
        (call,) = first["calls"]
        assert (call["allocator"], call["function"], call["thread_id"]) == ("glibc", "malloc_trim", process.pid)
        assert 0 < call["stopped_ns"] and call["stopped_ns"] <= call["held_ns"]
        assert answer(process) == (b"ok", 0)
        mapped = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        for _ in range(TIMES):
            again = trim("trim", "--json", "-p", process.pid)
            assert abs(again["rss_after_bytes"] - again["rss_before_bytes"]) < 1 << 20 and again["promised_bytes"] < 1 << 20
            assert answer(process) == (b"ok", 0)
        assert pathlib.Path(f"/proc/{process.pid}/maps").read_text() == mapped  # each call leaves nothing behind
        text = trim("trim", "-p", process.pid)
        assert "went back" in text and "malloc_trim of glibc: thread" in text
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("library", [None, *some_of(ALLOCATORS, len(ALLOCATORS))])
def test_threads_under_load_go_on(library):
    # jemalloc gives memory back by itself after ten seconds.
    variables = {"LD_PRELOAD": library, "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"} if library else {}
    with trimmed("threads", **variables) as process:
        rounds = -1
        for number in range(TIMES):
            found = trim("trim", "--json", "--wait", "60s", "-p", process.pid)
            called = [call["allocator"] for call in found["calls"]]
            assert set(called) == {"glibc", *([ALLOCATORS[library]] if library else [])}
            if number == 0 and library != "libmimalloc.so.2":
                assert found["rss_before_bytes"] - found["rss_after_bytes"] > FREE_BYTES / 2
            word, now = answer(process)
            assert word == b"ok" and now >= rounds
            rounds = now
        wait_until(lambda: answer(process) > (b"ok", rounds), "another round")


@pytest.mark.parametrize("mode", ["handler", "busy"])
def test_a_thread_that_may_be_in_the_allocator_is_left_alone(mode):
    """A handler may have interrupted it, and a thread that works may be anywhere."""
    with trimmed(mode) as process:
        before = rss(process.pid)
        said = trim("trim", "--wait", "300ms", "-p", process.pid, status=2)
        assert f"no thread of process {process.pid} waits for work" in said and said.count("\n") == 1
        assert rss(process.pid) >= before
        assert mode == "busy" or answer(process) == (b"ok", 0)


def test_a_process_that_cannot_give_memory_back_is_refused(scratch):
    bare = 'void _start(void) { for (;;) __asm__ volatile("syscall" :: "a"(34L) : "rcx", "r11", "memory"); }'
    static = "#include <unistd.h>\nint main(void) { char c; return (int)read(0, &c, 1); }\n"
    for text, options, said in ((bare, ["-nostdlib"], "no function with which an allocator gives memory back"),
                                (static, [], "has room for the 768 bytes of code")):
        (scratch / "x.c").write_text(text)
        subprocess.run(["cc", "-static", *options, "-o", scratch / "x", scratch / "x.c"], check=True)
        with subprocess.Popen([scratch / "x"], stdin=subprocess.PIPE) as process:
            assert said in trim("trim", "-p", process.pid, status=2)
            process.kill()
    assert "there is no process" in trim("trim", "-p", process.pid, status=2)
    assert "no process is given: -p PID" in trim("trim", status=2)
    assert "a process is given by -p" in trim("trim", "4711", status=2)


def test_a_recorded_program_is_trimmed(scratch):
    path = scratch / "x.cairn"
    with subprocess.Popen([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "trimmed", "read"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=environment()) as recorder:
        assert recorder.stdout.readline() == b"ready\n"
        found = trim("ctl", "--json", path, "trim")
        assert abs(found["rss_before_bytes"] - found["rss_after_bytes"] - FREE_BYTES) < 0.1 * FREE_BYTES
        assert answer(recorder) == (b"ok", 0)
        recorder.stdin.close()
        assert recorder.wait(timeout=60) == 0


def killed_in_between(process):
    """Kill `cairn trim` at a random moment; the process needs nothing of it."""
    tool = subprocess.Popen([CAIRN, "trim", "-p", str(process.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env=environment())
    with contextlib.suppress(subprocess.TimeoutExpired):
        tool.wait(timeout=(os.urandom(1)[0] % 60) / 1000)
    tool.kill()
    tool.wait()


def test_cairn_may_be_killed_at_any_time():
    with trimmed("threads") as process:
        for _ in range(5 * TIMES):
            killed_in_between(process)
            assert answer(process)[0] == b"ok"
        trim("trim", "--wait", "60s", "-p", process.pid)
        assert answer(process)[0] == b"ok"


def ask(connection, *words):
    connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
    return connection.recv(1 << 16)


def trim_at_last(pid):
    """On a busy machine the threads of a process may not stop in time: then it goes on unchanged, and is tried again."""
    for attempt in range(100):
        run = subprocess.run([CAIRN, "trim", "--json", "--wait", "60s", "-p", str(pid)], capture_output=True, text=True,
                             env=environment(), timeout=120, check=False)
        if run.returncode == 0:
            return json.loads(run.stdout)["calls"], attempt
        assert "in time" in run.stderr or "could not be stopped within" in run.stderr, run.stderr
    raise AssertionError(run.stderr)


def trims(pids, check=lambda number: None):
    """Trim the processes, in turn, LOADED times in all."""
    refused = 0
    for number in range(LOADED):
        calls, attempts = trim_at_last(pids[number % len(pids)])
        refused += attempts
        assert calls
        check(number)
    print(f"{LOADED} trims, {refused} more were refused in time")


def test_redis_answers_as_before(scratch):
    with loaded_programs.redis(scratch) as (pid, place), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(place))

        def check(number):
            assert ask(connection, b"SET", b"kept%d" % (number % 200), bytes(1000 + number)) == b"+OK\r\n"
            assert ask(connection, b"STRLEN", b"kept%d" % (number % 200)) == b":%d\r\n" % (1000 + number)

        trims([pid], check)


def has_begun_in_handler(pid):
    """postgres 15 starts these in its handler of SIGCHLD, which they never leave: they are refused."""
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    return b"walwriter" in words or b"replication launcher" in words


@pytest.mark.nightly
def test_postgres_answers_as_before():
    with loaded_programs.postgres() as pids:
        trims([pid for pid in pids if not has_begun_in_handler(pid)])


@pytest.mark.parametrize("library", [None, *some_of(["libjemalloc.so.2"], 1)])
def test_node_computes_as_before(scratch, library):
    (scratch / "script.js").write_text(loaded_programs.NODE)
    with loaded_programs.runtime(["node", scratch / "script.js"], **({"LD_PRELOAD": library} if library else {})) as pid:
        trims([pid])


@pytest.mark.parametrize("library", some_of([None, *ALLOCATORS], 1))
def test_a_program_with_32_threads_computes_as_before(scratch, library):
    (scratch / "x.cpp").write_text(loaded_programs.CPP)
    subprocess.run(["g++", "-std=c++17", "-O1", "-pthread", "-o", scratch / "x", scratch / "x.cpp"], check=True)
    with loaded_programs.runtime([scratch / "x"], **({"LD_PRELOAD": library} if library else {})) as pid:
        trims([pid])
