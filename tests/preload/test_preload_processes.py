# SPDX-License-Identifier: MIT
"""Processes that fork, execute and end in every way: who allocated what is known, nothing is lost."""
import os
import struct
import subprocess
import time

import pytest

from consumer import (CLOCK, DEADLINE_SECONDS, FOLLOW, FORKED, LIBRARY, MAIN_PID, NAMESPACE,
                      OF_ALL, OWN_ALLOCATOR, PROCESS_OFFSET, PROGRAMS, Session)

PROGRAM = os.path.join(PROGRAMS, "processes")
WAITING, DONE = 2, 3  # enum exit_wait
TELLING = {111, 222, 333, 444, 555}


def tell(process):
    """The telling sizes that a process allocated, in order, and frees of blocks not its own."""
    sizes = [event.size for event in process.events if event.kind == "alloc" and event.size in TELLING]
    return sizes, process.unknown_frees


# mode, exit status, then for each process: flags besides OF_ALL, telling sizes,
# frees of inherited blocks
CASES = [
    ("fork", 0, [(0, [111, 333], 0), (FORKED, [222], 1)]),
    ("_Fork", 0, [(0, [111, 333], 0), (FORKED, [222], 1)]),
    ("clone", 0, [(0, [111, 333], 0), (FORKED, [222], 1)]),
    ("grandchildren", 0, [(0, [111], 0), (FORKED, [222], 0)]),
    ("vfork", 0, [(0, [111, 222, 333], 0), (0, [555], 0)]),
    ("spawn", 0, [(0, [111, 333], 0), (0, [555], 0)]),
    ("exec", 0, [(0, [111], 0), (0, [555], 0)]),
    ("exit", 0, [(0, [555], 0)]),
    ("other", 5, [(0, [111], 0)]),
    ("_exit", 3, [(0, [111], 0)]),
    ("vfork_exit", -9, [(0, [111], 0)]),
    ("quick_exit", 4, [(0, [111], 0)]),
    ("abort", -6, [(0, [111], 0)]),
    ("kill", -9, [(0, [111], 0)]),
    ("segv", -11, [(0, [111], 0)]),
    ("nothing", 0, [(0, [], 0)]),
]


@pytest.mark.parametrize("mode, is_noted", [
    ("exit", True), ("_exit", True), ("quick_exit", True), ("other", True), ("kill", False), ("segv", False),
    ("vfork_exit", False)])
def test_a_process_that_exits_says_when(mode, is_noted):
    """And a child of vfork, which exits in its parent's memory, says nothing for its parent."""
    with Session() as session:
        session.run(PROGRAM, mode)
        assert (session.exit_ms_of(0) > 0) == is_noted


@pytest.mark.parametrize("mode,status,truth", CASES, ids=[case[0] for case in CASES])
def test_every_process_of_the_tree_is_recorded_to_its_end(mode, status, truth):
    with Session() as session:
        result = session.run(PROGRAM, mode)
        assert result.returncode == status
        assert (result.stdout, result.stderr) == ("", "")
        assert [(p.flags ^ OF_ALL, *tell(p)) for p in session.processes] == truth
        assert session.lost() == {}
        first = session.processes[0]
        assert first.parent == os.getpid()
        for process in session.processes[1:]:
            if mode == "exec":
                assert process.pid == first.pid
            else:
                assert process.parent == first.pid, "the nearest recorded ancestor"
    assert all(p.books_are_right() for p in session.processes if p.events)


def test_nothing_is_left_in_a_slot_of_the_process_before_it():
    """Each field but the state has to be written."""
    fields = struct.Struct("<IIII QQQ II")  # struct process_slot
    with Session() as session:
        for index in range(16):
            fields.pack_into(session.bytes, PROCESS_OFFSET + 64 * index, 0, *range(71, 79))
        assert session.run(PROGRAM, "kill").returncode == -9  # it says nothing of its end
        (process,) = session.processes
        state, pid, parent, flags, start_ms, exit_ms, join_number, exit_wait, namespace = \
            fields.unpack_from(session.bytes, PROCESS_OFFSET)
        assert (state, pid, parent, flags) == (2, process.pid, os.getpid(), OF_ALL)
        assert start_ms <= session.u64[CLOCK]
        assert (exit_ms, join_number, exit_wait) == (0, 0, 0)
        assert namespace == os.stat("/proc/self/ns/pid").st_ino


@pytest.mark.parametrize("is_main", [True, False])
def test_the_program_itself_waits_at_its_exit_unasked(is_main):
    """Also if the recorder sees it only then. Here it is the second image of its process that exits."""
    with Session() as session:
        session.u32[NAMESPACE] = os.stat("/proc/self/ns/pid").st_ino

        def be_main():
            session.u32[MAIN_PID] = os.getpid() if is_main else os.getppid()

        with subprocess.Popen([PROGRAM, "exec"], env=session.environment(), preexec_fn=be_main) as program:
            at = (PROCESS_OFFSET + 64 + 40) // 4  # exit_wait of the second slot
            deadline = time.monotonic() + DEADLINE_SECONDS
            while session.u32[at] != WAITING and program.poll() is None and time.monotonic() < deadline:
                time.sleep(0.001)
            assert (session.u32[at] == WAITING) == is_main
            session.u32[at] = DONE
        assert program.returncode == 0


def test_an_image_says_what_it_is():
    with Session() as session:
        session.run(PROGRAM, "nothing", "x" * 6000, cwd="/usr")
        (process,) = session.processes
        assert process.texts["executable"].decode() == PROGRAM
        assert process.texts["command_line"] == b"\0".join(
            [PROGRAM.encode(), b"nothing", b"x" * 6000, b""])
        assert process.texts["working_directory"] == b"/usr"
        assert process.texts["allocator"].endswith(b"/libc.so.6")
        assert process.texts["libc"] == os.confstr("CS_GNU_LIBC_VERSION").split()[1].encode()


def test_of_a_huge_command_line_the_first_64_kib_are_kept():
    with Session() as session:
        arguments = ["y" * 50000 for _ in range(10)]
        session.run(PROGRAM, "nothing", *arguments)
        (process,) = session.processes
        whole = b"\0".join([PROGRAM.encode(), b"nothing", *(a.encode() for a in arguments)])
        assert process.texts["command_line"] == whole[:65536]


def test_a_daemon_that_closes_every_descriptor_is_recorded_on(tmp_path):
    with Session() as session:
        pid_file = tmp_path / "pid"
        session.run(PROGRAM, "daemon", str(pid_file))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (pid_file.exists() and pid_file.read_text()):
            time.sleep(0.01)
        session.wait_until_drained()
        assert pid_file.read_text() == "fd 0\n", "none of our descriptors was open"
        daemon = session.processes[-1]
        assert tell(daemon)[0] == [444]
        assert sum(e.kind == "free" for e in daemon.events) >= 20000
        assert session.lost() == {}


@pytest.mark.parametrize("mode", ["fork", "vfork", "spawn", "exec"])
def test_children_that_are_not_followed_pass_through(mode):
    with Session(flags=0) as session:
        result = session.run(PROGRAM, mode)
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert tell(process)[0][0] == 111
        assert session.lost() == {}


@pytest.mark.parametrize("flags,preload,left", [
    (0, "{library}", None),
    (0, "{library}:{other}", "{other}"),
    (0, "{other} {library}", "{other}"),
    (0, "{other}:{library}:{other}", "{other}:{other}"),
    (FOLLOW, "{library}:{other}", "{library}:{other}"),
])
def test_the_environment_loses_only_what_is_ours(flags, preload, left):
    other = os.path.join(PROGRAMS, "early.so")
    with Session(flags=flags) as session:
        env = session.environment(LD_PRELOAD=preload.format(library=LIBRARY, other=other), A="1")
        result = session.run(PROGRAM, "environment", env=env)
        seen = dict(line.split("=", 1) for line in result.stdout.splitlines())
        wanted = dict(env)
        if flags == 0:
            del wanted["CAIRN_SESSION"]
        del wanted["LD_PRELOAD"]
        if left is not None:
            wanted["LD_PRELOAD"] = left.format(library=LIBRARY, other=other)
        assert seen == wanted
        assert len(session.processes) == 1


def test_an_executable_with_its_own_malloc_is_named_as_such():
    with Session() as session:
        result = session.run(os.path.join(PROGRAMS, "own_malloc"))
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert process.flags == OWN_ALLOCATOR | OF_ALL
        assert process.events == []


@pytest.mark.parametrize("preload, flags", [
    ("{library}", 0),
    ("{library}:{other}", 0),
    ("{other}:{library}", OWN_ALLOCATOR),
])
def test_an_executable_that_lends_malloc_an_address_defines_none(preload, flags):
    """What counts is who comes first of those that do define malloc."""
    other = os.path.join(PROGRAMS, "safe_allocator.so")
    with Session() as session:
        env = session.environment(LD_PRELOAD=preload.format(library=LIBRARY, other=other))
        result = session.run(os.path.join(PROGRAMS, "lent_address"), env=env)
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert process.flags == flags | OF_ALL
        assert (process.events == []) == (flags == OWN_ALLOCATOR)


@pytest.mark.parametrize("place", ["", "nonsense", "/dev/null", "/proc/1/fd/1:none"])
def test_without_a_session_the_program_runs_as_ever(place):
    with Session() as session:
        result = session.run(PROGRAM, "fork", env=session.environment(CAIRN_SESSION=place))
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        assert session.processes == []


def test_a_session_of_another_version_is_left_alone():
    with Session(version=999) as session:
        result = session.run(PROGRAM, "fork")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        assert session.processes == []


def test_a_process_that_may_not_open_the_path_joins_by_the_socket():
    with Session(by_path=False) as session:
        assert session.run(PROGRAM, "fork").returncode == 0
        assert [(p.flags ^ OF_ALL, *tell(p)) for p in session.processes] == [
            (0, [111, 333], 0), (FORKED, [222], 1)]
        assert session.served == 1 + 2 * 2, "a forked child inherits the mapping; each maps its own words, in two parts"


def test_more_processes_than_slots_are_counted_as_lost():
    with Session() as session:
        for index in range(1, 1024):
            session.u32[(4096 + 64 * index) // 4] = 1
        assert session.run(PROGRAM, "fork").returncode == 0
        assert [tell(p)[0] for p in session.processes] == [[111, 333]]
        assert session.lost() == {"no_process_slot": 2}, "one alloc, one free"
