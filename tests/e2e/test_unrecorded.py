# SPDX-License-Identifier: MIT
"""What cannot be recorded, or not whole: it runs as if cairn were not there, and the report says so."""
import subprocess

import pytest

from cairn_run import PROGRAMS, truth_of

SMALL = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile block; /* reachable: no leak to LeakSanitizer */
int main(int argc, char **argv)
{
    block = malloc(4242);
    printf("%s %d %s\\n", argc > 1 ? argv[1] : "", block != NULL,
           getenv("LD_PRELOAD") != NULL ? "preloaded" : "alone");
    return 7;
}
"""

COMPILERS = {"libc": ["musl-gcc"], "sanitizer": ["gcc", "-fsanitize=address"],
             "static": ["gcc", "-static"], "none": ["gcc"]}

WAYS = ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat",
        "vfork", "spawn", "spawnp", "cleared", "null"]


@pytest.fixture(scope="module", name="small")
def made_by_compilers(tmp_path_factory):
    """The small program as several compilers make it: {what stands in the way: its path}."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.c").write_text(SMALL)
    for name, command in COMPILERS.items():
        subprocess.run([*command, "-o", folder / name, folder / "small.c"], check=True, timeout=60)
    return {name: folder / name for name in COMPILERS}


@pytest.mark.parametrize("kind, how", [*(("libc", how) for how in WAYS), ("sanitizer", "execve"),
                                       ("sanitizer", "cleared")])
def test_what_our_library_would_break_runs_without_it(record, small, kind, how):
    """Started in any way, by a program that is recorded: same output, same status."""
    recording = record(PROGRAMS / "executing", how, small[kind], "hello")
    assert recording.finished.returncode == 7


@pytest.mark.parametrize("how", WAYS)
def test_what_can_be_recorded_is_however_it_is_started(record, small, how):
    """A cleared environment, too: what brings our library in is put back."""
    recording = record(PROGRAMS / "executing", how, small["none"], "hello", is_compared=False)
    assert recording.finished.returncode == 7
    assert recording.finished.stdout == b"hello 1 preloaded\n"
    (frames,) = [frames for costs, frames in recording.stacks() if costs["allocated_bytes"] == 4242]
    assert frames[0]["module"] == str(small["none"])


@pytest.mark.parametrize("how", ["prctl", "seccomp", "strict"])
def test_under_a_filter_no_hook_makes_a_system_call(record, how):
    """One would kill it; and all is recorded, its stacks to their end."""
    recording = record(PROGRAMS / "filtered", how)
    assert recording.finished.stdout == b"done\n"
    truth = truth_of("filtered")
    assert {cost: recording.totals[cost] for cost in truth} == truth
    for costs, frames in recording.stacks():
        if any(frame["function"] == "hold" for frame in frames):
            assert "main" in [frame["function"] for frame in frames]


@pytest.mark.parametrize("who", ["fork", "thread"])
def test_who_begins_under_a_filter_is_counted_as_lost(record, who):
    recording = record(PROGRAMS / "filtered", who, is_whole=False)
    assert recording.finished.stdout == b"done\n"
    lost = {name: count for name, count in recording.report["lost"].items() if count != 0}
    truth = truth_of("filtered")
    # A thread's library frees its block for thread-local storage under the filter, too; main allocates it.
    spare = 1 if who == "thread" else 0
    assert list(lost) == ["seccomp"] and 2000 <= lost["seccomp"] <= 2000 + spare
    assert recording.totals["allocations"] == truth["allocations"] + spare
