# SPDX-License-Identifier: MIT
"""Programs that execute another one by a system call of their own, which no hook of a function sees. It is not followed,
but counted, with its name; the process has not been killed, and ended when it executed the other one."""
import json
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment
from test_unrecorded import unrecorded
from waiting import DEADLINE_SECONDS, read_until, wait_until

EXECUTOR = """#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char **command;
static const char *how;
static void *volatile kept[300];
static long call(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return number;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8) : "memory");
    return x0;
#endif
}
static void *execute(void *unused)
{
    if (strcmp(how, "execveat") == 0) {
        const int file = open(command[0], O_PATH | O_CLOEXEC);
        call(SYS_execveat, file, (long)"", (long)command, (long)environ, AT_EMPTY_PATH);
    }
    call(SYS_execve, (long)command[0], (long)command, (long)environ, 0, 0);
    _exit(99);
}
static void fill(void)
{
    for (int i = 0; i < 300; i++) {
        kept[i] = malloc(1000 + i);
    }
}
int main(int argc, char **argv)
{
    char byte;
    pthread_t thread;
    how = argv[1];
    command = argv + 2;
    if (argc < 3 || write(1, "0", 1) != 1 || read(0, &byte, 1) != 1) {
        return 98;
    }
    fill();
    if (write(1, "1", 1) != 1 || read(0, &byte, 1) != 1) {
        return 97;
    }
    if (strcmp(how, "thread") == 0) {
        pthread_create(&thread, NULL, execute, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(how, "child") == 0) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            fill();
            execute(NULL);
        }
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    execute(NULL);
}
"""

EXECUTED = """#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(void)
{
    char byte;
    kept = malloc(4242);
    if (write(1, "2", 1) != 1 || read(0, &byte, 1) != 1) {
        return 96;
    }
    return 7;
}
"""

GCC = ["gcc", "-O0", "-g", "-pthread"]
WAYS = {"preloaded": ("dynamic", []), "injected": ("dynamic", ["--all-allocators"]), "static": ("static", []),
        "attached": ("dynamic", None)}
HOW = ["execve", "execveat", "thread", "child"]


@pytest.fixture(name="programs", scope="module")
def fixture_programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline")
    for name, source, flags in (("dynamic", EXECUTOR, []), ("static", EXECUTOR, ["-static"]),
                                ("executed", EXECUTED, ["-static"])):
        (folder / f"{name}.c").write_text(source)
        subprocess.run([*GCC, *flags, "-o", folder / name, folder / f"{name}.c"], check=True, timeout=60)
    return folder


def control(path, action):
    return subprocess.run([CAIRN, "ctl", "--json", path, action], env=environment(), check=False, capture_output=True)


def processes_of(path):
    answer = control(path, "status")
    return json.loads(answer.stdout)["processes"] if answer.returncode == 0 else None


def samples_of(path):
    assert control(path, "checkpoint").returncode == 0
    report = subprocess.run([CAIRN, "report", "--json", path], env=environment(), check=True, capture_output=True)
    return len(json.loads(report.stdout)["rss"]["samples"])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_program_executes_by_itself_is_counted(programs, scratch, way, how):
    name, options = WAYS[way]
    path = scratch / "inline.cairn"
    record = [CAIRN, "record", "-q", "-o", path]
    program = [programs / name, how, programs / "executed"]
    first = program if options is None else [*record, *options, "--", *program]
    processes = [subprocess.Popen(first, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())]
    try:
        output = processes[0].stdout.fileno()
        read_until(output, b"0")
        if options is None:
            processes.append(subprocess.Popen([*record, "-p", str(processes[0].pid)], stderr=subprocess.PIPE,
                                              env=environment()))
        wait_until(lambda: processes_of(path) is not None, "the recorder's answer")
        processes[0].stdin.write(b"1")
        processes[0].stdin.flush()
        read_until(output, b"1")
        wait_until(lambda: processes_of(path) == 1, "a process that has joined")
        sampled = samples_of(path)
        wait_until(lambda: samples_of(path) > sampled + 1, "samples of it since then")
        processes[0].stdin.write(b"2")
        processes[0].stdin.flush()
        read_until(output, b"2")
        # A sample shows it. The recording may be over then.
        wait_until(lambda: processes_of(path) in (1 if how == "child" else 0, None), "the recorder's notice")
        processes[0].communicate(b"3", timeout=DEADLINE_SECONDS)
        assert processes[0].returncode == 7
        assert processes[-1].wait(DEADLINE_SECONDS) == (7 if options is not None else 0)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    recording = Recording(path, processes[0])
    recording.assert_whole()
    assert unrecorded(recording) == {(str(programs / "executed"), "inline"): 1}
    images = recording.report["processes"]
    assert [image["killed"] for image in images] == [False] * (2 if how == "child" else 1)
    assert sum(costs["allocations"] for costs, frames in recording.stacks()
               if "fill" in [frame["function"] for frame in frames]) == (600 if how == "child" else 300)
    assert not any(costs["allocated_bytes"] == 4242 for costs, _ in recording.stacks())
