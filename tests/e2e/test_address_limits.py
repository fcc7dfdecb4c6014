# SPDX-License-Identifier: MIT
"""Programs that limit their own addresses so far that what cairn reserves would be most of it: they have what they
need, by every way in, and nothing is lost, in children that are forked behind the limit neither."""
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment, some_of
from waiting import DEADLINE_SECONDS, wait_until

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[400];
static int failed;
static void allocate(int first, int count, int freed)
{
    for (int i = first; i < first + count; i++) {
        kept[i] = malloc(8 + i * 37 % 3000);
        failed += kept[i] == NULL;
    }
    for (int i = first; i < first + freed; i++) {
        free(kept[i]);
    }
}
static void before(void)
{
    allocate(0, 200, 3);
}
static void in_child(void)
{
    allocate(200, 19, 5);
    for (int i = 50; i < 60; i++) { /* its parent's */
        free(kept[i]);
    }
}
static void after(void)
{
    allocate(300, 50, 10);
}
int main(int argc, char **argv)
{
    const rlim_t bytes = (rlim_t)atoi(argv[1]) << 20;
    const struct rlimit limit = {bytes, bytes};
    int status = -1;
    if (argc > 2) {
        (void)getchar();
    }
    before();
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
        return 1;
    }
    const pid_t child = fork();
    if (child == 0) {
        in_child();
        return failed != 0;
    }
    (void)waitpid(child, &status, 0);
    after();
    return failed != 0 ? 2 : status != 0 ? 3 : 0;
}
"""

# Allocations and frees.
TRUTH = {"before": (200, 3), "in_child": (19, 5), "after": (50, 10)}

GCC = ["gcc", "-O0", "-g"]
COMPILERS = {"glibc": GCC, "static": [*GCC, "-static"], "musl": ["musl-gcc", "-O0", "-g"],
             "static musl": ["musl-gcc", "-O0", "-g", "-static"],
             "jemalloc": [*GCC, "-Wl,-u,mallocx", "-l:libjemalloc_pic.a", "-lstdc++", "-lm"]}

# The compiler, options, None for an attach; and the least limit, in MiB. jemalloc alone needs more addresses.
WAYS = {"preloaded": ("glibc", [], 32), "injected": ("glibc", ["--all-allocators"], 32), "attached": ("glibc", None, 32),
        "static": ("static", [], 32), "static, attached": ("static", None, 32), "musl": ("musl", [], 32),
        "static musl": ("static musl", [], 32), "jemalloc": ("jemalloc", [], 48),
        "jemalloc, attached": ("jemalloc", None, 48)}


@pytest.fixture(name="programs", scope="module")
def fixture_programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    (folder / "limited.c").write_text(PROGRAM)
    for name, (compiler, *flags) in COMPILERS.items():
        libraries = [flag for flag in flags if flag.startswith(("-l", "-Wl"))]
        others = [flag for flag in flags if flag not in libraries]
        subprocess.run([compiler, *others, "-o", folder / name, folder / "limited.c", *libraries], check=True,
                       timeout=60)
    return folder


def attach_and_run(command, path):
    """Let the waiting program begin when it is recorded."""
    program = subprocess.Popen([*command, "wait"], stdin=subprocess.PIPE, env=environment())
    recorder = subprocess.Popen([CAIRN, "record", "-q", "-o", path, "-p", str(program.pid)], env=environment())
    try:
        wait_until(lambda: subprocess.run([CAIRN, "ctl", path, "status"], env=environment(), check=False,
                                          capture_output=True).returncode == 0, "the recorder's answer")
        program.communicate(b"\n", timeout=DEADLINE_SECONDS)
        assert recorder.wait(DEADLINE_SECONDS) == 0
        return program
    finally:
        for process in (program, recorder):
            process.kill()
            process.wait()


@pytest.mark.parametrize("above_mib", some_of([0, 16, 32, 64], 3))
@pytest.mark.parametrize("way", WAYS)
def test_a_limit_of_a_few_mib_loses_nothing(programs, scratch, way, above_mib):
    compiler, options, least_mib = WAYS[way]
    command = [programs / compiler, str(least_mib + above_mib)]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    path = scratch / "limited.cairn"
    if options is None:
        run = attach_and_run(command, path)
    else:
        run = subprocess.run([CAIRN, "record", "-q", "-o", path, *options, "--", *command], env=environment(),
                             check=False, timeout=DEADLINE_SECONDS)
    assert run.returncode == 0
    recording = Recording(path, run)
    recording.assert_whole()
    found = {}
    for costs, frames in recording.stacks():
        for name in TRUTH.keys() & {frame["function"] for frame in frames}:
            allocations, frees = found.get(name, (0, 0))
            found[name] = allocations + costs["allocations"], frees + costs["frees"]
    assert found == TRUTH
