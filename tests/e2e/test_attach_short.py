# SPDX-License-Identifier: MIT
"""Attaching to processes that end, or execute another program, at that moment, and detaching from them. They go on
as without cairn, and a refusal says what has happened."""
import os
import random
import re
import signal
import subprocess
import time

from cairn_run import CAIRN, IS_NIGHTLY, Recording, environment
from waiting import DEADLINE_SECONDS, all_are, read_until, wait_until

SHORT = """#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static long lasts_ms;
static void *work(void *argument)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        free(malloc(100));
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 1000000L * lasts_ms);
    return argument;
}
int main(int argc, char **argv)
{
    pthread_t threads[3];
    char left[16];
    lasts_ms = atol(getenv("LASTS_MS")) * (access("longer", F_OK) == 0 ? 500 : atoi(argv[1]) % 8 == 1 ? 20 : 1);
    for (int i = 0; i < 3; i++) {
        pthread_create(threads + i, NULL, work, NULL);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    int count = atoi(argv[1]);
    if (count > 0 && access("stop", F_OK) != 0) {
        snprintf(left, sizeof(left), "%d", count - 1);
        execl(argv[0], argv[0], left, NULL);
        return 1;
    }
    puts("whole");
    return argc != 2;
}
"""
SPAWNER = """#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *work(void *argument)
{
    char *arguments[] = {"/bin/true", NULL};
    while (access("stop", F_OK) != 0) {
        pid_t pid;
        free(malloc(100));
        if (posix_spawn(&pid, arguments[0], NULL, NULL, arguments, environ) != 0 || waitpid(pid, NULL, 0) != pid) {
            exit(1);
        }
    }
    return argument;
}
int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        pthread_create(threads + i, NULL, work, NULL);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    puts("whole");
    return 0;
}
"""
ATTEMPTS = 12 if IS_NIGHTLY else 1
GONE = re.compile(r"cairn: (process \d+ has (ended, or is a thread of the kernel|executed another program; attach "
                  r"to it again)|there is no process \d+)\n")
CHILDREN = re.compile(r"cairn: warning: cairn did not attach to (1 child|\d+ children) of process \d+, which ran before; .*\n")
BUSY = re.compile(r"cairn: (no thread of process \d+ made cairn's system calls in time|the threads of process \d+ could "
                  r"not be stopped within \d+ ms).*\n")


def build(scratch, source=SHORT):
    (scratch / "short.c").write_text(source)
    subprocess.run(["gcc", "-O1", "-o", scratch / "short", scratch / "short.c", "-pthread"], check=True, timeout=60)
    return scratch / "short"


def attach(scratch, pid):
    """Attach for a moment; return whether it was recorded."""
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "short.cairn", "--no-symbols", "-p", str(pid),
                          "--duration", "20ms"], capture_output=True, text=True, env=environment(), check=False,
                         timeout=DEADLINE_SECONDS)
    if run.returncode == 0:
        assert run.stderr == "" or CHILDREN.fullmatch(run.stderr), run.stderr
    else:
        assert run.returncode == 126 and (GONE.fullmatch(run.stderr) or BUSY.fullmatch(run.stderr)), run
    return run.returncode == 0


def attempts():
    """Some, and as many more as it takes until one of them was recorded: on a slow machine most come too late."""
    end, counts = time.monotonic() + 5 * DEADLINE_SECONDS, {"all": 0, "recorded": 0}
    while counts["all"] < ATTEMPTS or counts["recorded"] == 0:
        assert time.monotonic() < end, counts
        counts["all"] += 1
        yield counts


def test_programs_that_end_meanwhile(scratch):
    program, draw = build(scratch), random.Random(6)
    for counts in attempts():
        lasts_ms = str(500 if counts["all"] <= ATTEMPTS else 5000)
        with subprocess.Popen([program, "0"], stdout=subprocess.PIPE, cwd=scratch, env={"LASTS_MS": lasts_ms}) as process:
            try:
                process.wait(draw.uniform(0, 0.5))
            except subprocess.TimeoutExpired:
                counts["recorded"] += attach(scratch, process.pid)
            assert (process.communicate(timeout=DEADLINE_SECONDS)[0], process.returncode) == (b"whole\n", 0)


def test_a_process_that_executes_one_program_after_another(scratch):
    with subprocess.Popen([build(scratch), "100000"], stdout=subprocess.PIPE, cwd=scratch,
                          env={"LASTS_MS": "10"}) as process:
        for counts in attempts():
            if counts["all"] > ATTEMPTS:
                (scratch / "longer").touch()
            counts["recorded"] += attach(scratch, process.pid)
        (scratch / "stop").touch()
        assert (process.communicate(timeout=DEADLINE_SECONDS)[0], process.returncode) == (b"whole\n", 0)


def test_a_process_whose_threads_wait_in_vfork_at_the_end(scratch):
    """A child that waits to be followed keeps its parent from being stopped. The detach succeeds nevertheless."""
    with subprocess.Popen([build(scratch, SPAWNER)], stdout=subprocess.PIPE, cwd=scratch) as process:
        for _ in range(5 if IS_NIGHTLY else 1):
            assert attach(scratch, process.pid)
        (scratch / "stop").touch()
        assert (process.communicate(timeout=DEADLINE_SECONDS)[0], process.returncode) == (b"whole\n", 0)


ALLOCATES_AND_ENDS = """#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    char byte;
    long is_read = read(0, &byte, 1);
    free(malloc(100));
    return is_read == 1 && write(1, "ends", 4) == 4 ? 0 : 1;
}
"""


def test_a_program_that_ends_with_its_first_event_is_looked_at(scratch):
    """It joins and exits before the recorder, which is stopped meanwhile, can ask it to wait."""
    (scratch / "ends.c").write_text(ALLOCATES_AND_ENDS)
    subprocess.run(["gcc", "-O0", "-o", scratch / "ends", scratch / "ends.c"], check=True, timeout=60)
    path = scratch / "ends.cairn"
    ctl = [CAIRN, "ctl", path, "status"]
    with subprocess.Popen([scratch / "ends"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program, \
            subprocess.Popen([CAIRN, "record", "-q", "-o", path, "-p", str(program.pid)], env=environment()) as recorder:
        wait_until(lambda: subprocess.run(ctl, env=environment(), check=False, capture_output=True).returncode == 0,
                   "the recorder's answer")
        recorder.send_signal(signal.SIGSTOP)
        wait_until(lambda: all_are(recorder.pid, "T"), "the recorder's stop")
        os.write(program.stdin.fileno(), b"\n")
        read_until(program.stdout.fileno(), b"ends")
        wait_until(lambda: all_are(program.pid, "S") or all_are(program.pid, "Z"), "the program's end")
        recorder.send_signal(signal.SIGCONT)
        assert (program.wait(DEADLINE_SECONDS), recorder.wait(DEADLINE_SECONDS)) == (0, 0)
    recording = Recording(path, recorder)
    assert recording.totals["allocations"] == 1
    assert [breakdown["at_exit"] for breakdown in recording.report["rss"]["breakdowns"]][-1:] == [True]
