# SPDX-License-Identifier: MIT
"""Libraries with an allocator inside that a program loads while it is recorded: their functions are
hooked before the first of them runs, also in forked children, and when a library comes again. Processes whose first
event comes late."""
import re
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, IS_NIGHTLY, PROGRAMS, Recording, environment, truth_of
from test_attach import Attachable
from test_attach_allocators import PLAIN
from waiting import DEADLINE_SECONDS, read_until, wait_until

INSIDE = PROGRAMS / "attach"
JE, MI = INSIDE / "liblate_je.so", INSIDE / "liblate_mi.so"


def late_loader(scratch, *libraries):
    return Attachable(scratch, [INSIDE / "late_loader", *libraries])


def assert_rounds(recording, library, rounds):
    """The rounds of a library, each of which frees what it allocates. The loader allocates, too."""
    assert set(recording.lost.values()) == {0}
    costs = [costs for costs, frames in recording.stacks()
             if any(frame["module"] == str(library) for frame in frames)]
    found = [sum(cost[name] for cost in costs) for name in ("allocations", "allocated_bytes", "live_bytes")]
    assert found == [rounds * PLAIN[0], rounds * PLAIN[1], 0]


def test_a_library_that_comes_late_is_counted_from_its_constructor_on(scratch):
    with late_loader(scratch, JE) as program:
        program.attach()
        program.do("l0", "r0", "r0")
        recording = program.detach()
        program.do("r0")
        program.end()
    assert recording.notes["late_hooks"] == 0
    assert_rounds(recording, JE, 3)


def test_a_program_that_is_started_may_be_searched_too(record):
    """Without the option the preloaded library sees only what goes through malloc."""
    commands = b"l0\nr0\nr0\nq\n"
    program = INSIDE / "late_loader", JE
    assert_rounds(record(*program, options=["--all-allocators"], stdin=commands), JE, 3)
    # Both ways at once would record each block of malloc twice.
    said = record("/usr/bin/env", options=["--all-allocators"], is_compared=False).finished.stdout
    assert b"PATH=" in said and b"LD_PRELOAD" not in said
    recording = record(*program, stdin=commands)
    assert not any(frame["module"] == str(JE) for _, frames in recording.stacks() for frame in frames)


def costs_apart(recording):
    names = ("allocations", "frees", "allocated_bytes", "live_blocks")
    return {function: [recording.costs_within(function).get(name, 0) for name in names]
            for function in ("apart_begin", "apart_make")}


def test_libraries_in_namespaces_of_their_own_are_counted(record):
    """Each has a libc of its own. The first three are loaded at the same addresses as the next ones."""
    count = 300 if IS_NIGHTLY else 20
    recording = record(PROGRAMS / "apart", PROGRAMS / "libapart_part.so", count, options=["--all-allocators"],
                       is_compared=False)
    assert recording.finished.returncode == 0
    assert recording.notes["late_hooks"] == 0
    assert costs_apart(recording) == {"apart_begin": [count, count, 77 * count, 0],
                                      "apart_make": [6 * count, 3 * count, 450 * count, 3 * count]}


def test_preloaded_hooks_count_them_from_the_end_of_dlmopen(record):
    """The block of each constructor is missing, and its free has no block."""
    count = 300 if IS_NIGHTLY else 20
    recording = record(PROGRAMS / "apart", PROGRAMS / "libapart_part.so", count, is_whole=False)
    assert recording.finished.returncode == 0
    assert {name: value for name, value in recording.lost.items() if value != 0} == {"late_namespaces": count}
    assert recording.notes["unknown_frees"] == count
    assert costs_apart(recording) == {"apart_begin": [0, 0, 0, 0],
                                      "apart_make": [6 * count, 3 * count, 450 * count, 3 * count]}


def test_several_libraries_before_and_after_the_attach(scratch):
    with late_loader(scratch, JE, MI) as program:
        program.do("l0", "r0")
        program.attach()
        program.do("r0", "l1", "r1", "r0")
        recording = program.detach()
        assert_rounds(recording, JE, 2)
        assert_rounds(recording, MI, 2)
        program.do("r0", "r1")
        program.attach()
        program.do("r0", "r1")
        recording = program.detach()
        assert_rounds(recording, JE, 1)
        assert_rounds(recording, MI, 1)
        program.end()


def test_a_library_that_comes_and_goes_fills_no_table(scratch):
    """The agent has room for 64 modules and 320 functions in all."""
    times = 70
    with late_loader(scratch, JE, MI) as program:
        program.do("l1")
        program.attach()
        for _ in range(times):
            program.do("l0", "r0", "u0")
        program.do("u1", "l1")
        recording = program.detach()
        program.do("l0", "r0", "r1")
        program.end()
    assert recording.notes["late_hooks"] == 0
    assert_rounds(recording, JE, 2 * times)
    assert_rounds(recording, MI, 1)


def test_a_forked_child_loads_a_library(scratch):
    with late_loader(scratch, JE) as program:
        program.attach()
        program.do("f0", "f0", "l0", "f0")
        recording = program.detach()
        program.do("f0", "r0")
        program.end()
    assert recording.totals["processes"] == 4
    assert_rounds(recording, JE, 2 + 2 + 1 + 1)


def test_an_allocator_without_names_is_said(scratch):
    library = INSIDE / "liblate_unnamed.so"
    with late_loader(scratch, library) as program:
        program.attach()
        program.do("l0", "u0", "l0")
        program.ctl("detach")
        _, errors = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        program.end()
    said = f"warning: '{library}' contains jemalloc, but has no symbols that name its functions"
    assert errors.decode().count(said) == 1
    assert_rounds(Recording(program.path, program.recorder), library, 0)


def test_the_length_of_each_stop_is_printed(scratch):
    with late_loader(scratch, JE) as program:
        program.attach("--verbose")
        program.do("l0", "r0")
        program.ctl("detach")
        _, errors = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        program.end()
    begun, late, ended = (int(count) for count in re.findall(r" was stopped for .* (\d+) functions;", errors.decode()))
    assert begun > 0 and late > 0 and ended == begun + late


MOVED = """#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
    void *library = dlopen(arguments[count - 1], RTLD_NOW);
    void *(*make)(unsigned long) = library != NULL ? (void *(*)(unsigned long))dlsym(library, "make") : NULL;
    for (int i = 0; make != NULL && i < 100; i++) {
        free(make(2000));
    }
    return make == NULL;
}
"""
MAKER = """#include <stdlib.h>
void *make(unsigned long size) { char *block = malloc(size); block[0] = 1; return block; }
"""


@pytest.mark.parametrize("options", [[], ["--all-allocators"]], ids=["preloaded", "agent"])
def test_modules_that_do_not_begin_where_they_were_moved_to(record, scratch, options):
    """Their headers are not at the address in the loader's list, where nothing is mapped."""
    for name, source, flags in (("moved", MOVED, ["-pie"]), ("maker.so", MAKER, ["-shared"])):
        subprocess.run(["gcc", "-xc", "-", "-fPIC", "-O1", *flags, "-Wl,-Ttext-segment=0x10000000", "-o",
                        scratch / name], input=source.encode(), check=True)
    recording = record(scratch / "moved", scratch / "maker.so", options=options)
    assert recording.finished.returncode == 0
    costs = [costs for costs, frames in recording.stacks() if frames[0]["function"] == "make"]
    assert [sum(cost[name] for cost in costs) for name in ("allocations", "allocated_bytes")] == [100, 200_000]


def test_what_cannot_be_read_is_said(scratch):
    """The file of a library is gone, and cairn lacks the privilege to read what is mapped."""
    library = scratch / "libgone.so"
    shutil.copy(JE, library)
    without = ("setpriv", "--bounding-set", "-sys_admin,-checkpoint_restore")
    with Attachable(scratch, [INSIDE / "late_loader", library], before=without) as program:
        program.do("l0", "r0")
        library.unlink()
        program.attach()
        program.do("r0")
        program.ctl("detach")
        output, errors = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        program.do("r0")
        program.end()
    assert (program.recorder.returncode, output) == (0, b"")
    assert errors.decode().splitlines() == [
        f"cairn: warning: cannot read '{library}': stacks may end there, and an allocator in it is not recorded"]
    recording = Recording(program.path, program.recorder)
    (note,) = [counter for counter in recording.report["counters"] if counter["name"] == "unread_parts"]
    assert (note["kind"], note["value"]) == ("note", 1) and f"'{library}'" in note["text"]
    assert set(recording.lost.values()) == {0}
    shown = subprocess.run([CAIRN, "report", "--all", program.path], capture_output=True, text=True,
                           env=environment(), check=True).stdout
    assert "could not be read" in " ".join(shown.partition("DATA QUALITY")[2].split())


@pytest.mark.parametrize("who", ["child", "memory", "number"])
@pytest.mark.parametrize("options", [[], ["--all-allocators"], None], ids=["preloaded", "injected", "attached"])
def test_a_process_whose_first_event_comes_late_is_recorded(scratch, who, options):
    """It was forked by one that has ended, or executed from a file without a path."""
    def is_answered():
        return subprocess.run([CAIRN, "ctl", path, "status"], capture_output=True, check=False, env=environment(),
                              timeout=DEADLINE_SECONDS).returncode == 0

    path = scratch / "late.cairn"
    record = [CAIRN, "record", "-q", "-o", path]
    program = [PROGRAMS / "late_first", who]
    command = program if options is None else [*record, *options, "--", *program]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())]
    try:
        read_until(processes[0].stdout.fileno(), b"ready\n")
        if options is None:
            processes.append(subprocess.Popen([*record, "-p", str(processes[0].pid)], env=environment()))
            wait_until(is_answered, "the recorder's answer")
        processes[0].communicate(b"\n", timeout=DEADLINE_SECONDS)
        assert [process.wait(DEADLINE_SECONDS) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    truth = truth_of("late_first")
    size = truth["block_bytes"]
    recording = Recording(path, None)
    recording.assert_whole()
    assert recording.report_of("--size", f"{size}..{size}")["totals"]["allocations"] == truth["blocks"]
