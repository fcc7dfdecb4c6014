# SPDX-License-Identifier: MIT
"""Attaching to processes that end, or execute another program, at that moment, and detaching from them. They go on
as without cairn, and a refusal says what has happened."""
import random
import re
import subprocess
import time

from cairn_run import CAIRN, IS_NIGHTLY, environment
from waiting import DEADLINE_SECONDS

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
ATTEMPTS = 12 if IS_NIGHTLY else 6
GONE = re.compile(r"cairn: (process \d+ has (ended, or is a thread of the kernel|executed another program; attach "
                  r"to it again)|there is no process \d+)\n")
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
        assert run.stderr == ""
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
        for _ in range(5):
            assert attach(scratch, process.pid)
        (scratch / "stop").touch()
        assert (process.communicate(timeout=DEADLINE_SECONDS)[0], process.returncode) == (b"whole\n", 0)
