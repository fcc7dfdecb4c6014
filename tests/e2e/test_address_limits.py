# SPDX-License-Identifier: MIT
"""Programs that limit their own addresses so far that what cairn reserves would be most of it: they have what they
need, by every way in, and nothing is lost, in children that are forked behind the limit neither."""
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment, some_of
from waiting import DEADLINE_SECONDS, wait_until

PROGRAM = """#if __has_include(<linux/filter.h>)
#include <linux/filter.h>
#include <linux/seccomp.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
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
static int confine(void)
{
#ifdef SECCOMP_RET_ALLOW
    struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {1, &all};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
#else
    return 0;
#endif
}
/* Blocks of 1 MiB, until there is no more room. */
static void take_all(void)
{
    int count = 0;
    for (void **last = NULL, **next; (next = malloc(1 << 20)) != NULL; last = next, count++) {
        *next = last;
    }
    printf("%d\\n", count);
    exit(0);
}
int main(int argc, char **argv)
{
    const rlim_t bytes = (rlim_t)atoi(argv[1]) << 20;
    const struct rlimit limit = {bytes, bytes};
    int status = -1;
    if (argc > 2 && argv[argc - 1][0] == 'w') {
        (void)getchar();
    }
    if (prctl(PR_SET_SECCOMP, 2, 0) == 0) { /* only asks whether there are filters */
        return 5;
    }
    before();
    if (argc > 2 && argv[2][0] == 'c') {
        if (!confine() || setrlimit(RLIMIT_AS, &limit) != 0) {
            return 4;
        }
        take_all();
    }
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
    program = subprocess.Popen([*command, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    recorder = subprocess.Popen([CAIRN, "record", "-q", "-o", path, "-p", str(program.pid)], env=environment())
    try:
        wait_until(lambda: subprocess.run([CAIRN, "ctl", path, "status"], env=environment(), check=False,
                                          capture_output=True).returncode == 0, "the recorder's answer")
        output = program.communicate(b"\n", timeout=DEADLINE_SECONDS)[0]
        assert recorder.wait(DEADLINE_SECONDS) == 0
        return subprocess.CompletedProcess(command, program.returncode, output)
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


@pytest.mark.parametrize("way", ["preloaded", "injected", "attached", "static", "static, attached"])
def test_a_limit_behind_a_filter_leaves_most(programs, scratch, way):
    """There cairn can give nothing back, so it does so before. Room for blocks without words stays."""
    compiler, options, _ = WAYS[way]
    command = [programs / compiler, "600", "confine"]
    bare = subprocess.run(command, check=True, capture_output=True, timeout=60)
    path = scratch / "confined.cairn"
    if options is None:
        run = attach_and_run(command, path)
    else:
        run = subprocess.run([CAIRN, "record", "-q", "-o", path, *options, "--", *command], env=environment(),
                             check=False, capture_output=True, timeout=DEADLINE_SECONDS)
    assert run.returncode == 0
    assert int(bare.stdout) - 280 < int(run.stdout) <= int(bare.stdout)
    recording = Recording(path, run)
    recording.assert_whole()
    blocks = [costs for costs, frames in recording.stacks() if "take_all" in [frame["function"] for frame in frames]]
    assert sum(costs["allocations"] for costs in blocks) >= int(run.stdout)
