# SPDX-License-Identifier: MIT
"""Programs that do not load the preload library, executed inside a recorded tree: static ones, those of
musl, and whatever an attached process executes. They are recorded from their first instruction on."""
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from test_attach_allocators import EXTENDED, PLAIN
from test_attach_short import BUSY, attempts
from test_unrecorded import WAYS, unrecorded
from waiting import DEADLINE_SECONDS, read_to_end, read_until, wait_until

INNER = PROGRAMS / "attach"
COMMANDS = b"r\nr\nq\n"  # two rounds
OUTPUT = b"done\ndone\n"
TRUTH = {"glibc_static": PLAIN, "musl_static": PLAIN, "musl_dynamic": PLAIN, "jemalloc_static": EXTENDED}


def images_of(recording, program):
    return [image for image in recording.report["processes"] if image["executable"] == str(program)]


def costs_of(recording, program):
    """(allocations, bytes) by the round function in each image of a program."""
    sites = [costs for costs, frames in recording.stacks()
             if any(frame["function"] == "do_round" for frame in frames)
             and any(frame["module"] == str(program) for frame in frames)]
    return sum(costs["allocations"] for costs in sites), sum(costs["allocated_bytes"] for costs in sites)


def assert_exact(recording, name, images, rounds):
    """Each round is counted, in images of their own, and nothing else is missing."""
    recording.assert_whole()
    assert unrecorded(recording) == {}
    assert len(images_of(recording, INNER / name)) == images
    allocations, allocated_bytes = TRUTH[name]
    assert costs_of(recording, INNER / name) == (rounds * allocations, rounds * allocated_bytes)


@pytest.mark.parametrize("how", WAYS)
def test_each_way_to_execute_is_followed(record, how):
    recording = record(PROGRAMS / "executing", how, INNER / "musl_static", stdin=COMMANDS)
    assert recording.finished.stdout == OUTPUT
    assert_exact(recording, "musl_static", 1, 2)


@pytest.mark.parametrize("name", TRUTH)
def test_deep_in_a_tree(record, scratch, name):
    """make starts a shell, which starts a shell, which starts the program twice, at once."""
    one = f"printf 'r\\nr\\nq\\n' | {INNER / name}"
    (scratch / "inner.sh").write_text(f"({one}) & ({one}); wait\n")
    (scratch / "Makefile").write_text("all: one two\none two:\n\t@sh inner.sh\n")
    recording = record("make", "-s", "-j2", cwd=scratch)
    assert (recording.finished.returncode, recording.finished.stdout) == (0, 4 * OUTPUT)
    assert_exact(recording, name, 4, 8)


LIBC = """#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char command[4096], line[64];
    snprintf(command, sizeof(command), "printf 'r\\nr\\nq\\n' | %s", argv[argc - 1]);
    if (system(command) != 0) {
        return 1;
    }
    FILE *output = popen(command, "r");
    while (fgets(line, sizeof(line), output) != NULL) {
        fputs(line, stdout);
    }
    fflush(stdout);
    return pclose(output) != 0 || execl(argv[argc - 1], argv[argc - 1], (char *)NULL);
}
"""


def test_system_popen_and_the_main_program_itself(record, scratch):
    """The main program becomes a static one; its status is the recorder's."""
    (scratch / "libc.c").write_text(LIBC)
    subprocess.run(["gcc", "-o", scratch / "libc", scratch / "libc.c"], check=True, timeout=60)
    recording = record(scratch / "libc", INNER / "glibc_static", stdin=COMMANDS)
    assert (recording.finished.returncode, recording.finished.stdout) == (0, 3 * OUTPUT)
    assert_exact(recording, "glibc_static", 3, 6)
    (image,) = [image for image in images_of(recording, INNER / "glibc_static") if image["wait_status"] is not None]
    assert image["wait_status"] == 0


FAILING = """#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    char *many[200000];
    pid_t child;
    for (int i = 0; i < 199999; i++) {
        many[i] = "an argument that is long enough for the list to be too long in the end";
    }
    many[199999] = NULL;
    int failures = execve(argv[1], many, environ) == -1 && errno == E2BIG;
    failures += posix_spawn(&child, argv[1], NULL, NULL, many, environ) == E2BIG;
    if (posix_spawn(&child, argv[1], NULL, NULL, argv + 1, environ) == 0) {
        waitpid(child, NULL, 0);
    }
    printf("%d\\n", failures);
    return argc;
}
"""


def test_execs_that_fail_late(record, scratch):
    """The recorder traces them, and the program goes on after the failure."""
    (scratch / "failing.c").write_text(FAILING)
    subprocess.run(["gcc", "-o", scratch / "failing", scratch / "failing.c"], check=True, timeout=60)
    recording = record(scratch / "failing", INNER / "musl_static", stdin=COMMANDS)
    assert recording.finished.stdout == OUTPUT + b"2\n"
    assert_exact(recording, "musl_static", 1, 2)


SCRIPT = """set -e
printf 'r\\nr\\nq\\n' | {inner}/glibc_static
printf 'r\\nr\\nq\\n' | {inner}/musl_dynamic
{programs}/malloc_family
sh -c "printf 'r\\nr\\nq\\n' | {inner}/musl_static"
/nowhere 2>/dev/null || true
exec {inner}/jemalloc_static < {commands}
"""


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_what_an_attached_shell_executes(scratch, shell):
    """Static programs and dynamic ones, also below those, and what replaces the shell."""
    process = subprocess.Popen([shell], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment())
    begin_shell(process)
    path = scratch / "shell.cairn"
    (scratch / "commands").write_bytes(COMMANDS)
    recorder = subprocess.Popen([CAIRN, "record", "-q", "-o", path, "-p", str(process.pid)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    try:
        wait_until(lambda: is_recording(recorder, path), "the recorder's answer")
        script = SCRIPT.format(inner=INNER, programs=PROGRAMS, commands=scratch / "commands")
        output, errors = process.communicate(script.encode(), timeout=DEADLINE_SECONDS)
        assert (process.returncode, output, errors) == (0, 4 * OUTPUT, b"")
        output, errors = recorder.communicate(timeout=DEADLINE_SECONDS)
        assert (recorder.returncode, output, errors) == (0, b"", b"")
    finally:
        process.kill()
        recorder.kill()
        process.communicate()
        recorder.communicate()
    recording = Recording(path, recorder)
    for name in TRUTH:
        assert_exact(recording, name, 1, 2)
    assert len(images_of(recording, PROGRAMS / "malloc_family")) == 1


@pytest.mark.parametrize("duration", ["5ms", *(pytest.param(text, marks=pytest.mark.nightly) for text in ("1ms", "20ms"))])
def test_short_attachments_do_no_harm_to_what_is_started(scratch, duration):
    """Whichever moment of an exec an attachment ends at. A shell prints how each program has ended."""
    shell = subprocess.Popen(["sh", "-c", "while [ ! -e stop ]; do /bin/true; echo $?; done"], cwd=scratch,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    read_until(shell.stdout.fileno(), b"0\n")
    for counts in attempts():
        run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "shell.cairn", "--no-symbols", "-p", str(shell.pid),
                              "--duration", duration], check=False, env=environment(), timeout=DEADLINE_SECONDS,
                             capture_output=True, text=True)
        assert run.returncode == 0 or (run.returncode == 126 and BUSY.fullmatch(run.stderr)), run
        counts["recorded"] += run.returncode == 0
    (scratch / "stop").touch()
    output, errors = shell.communicate(timeout=DEADLINE_SECONDS)
    assert (shell.returncode, set(output.split()), errors) == (0, {b"0"}, b"")


def begin_shell(process):
    """Wait until a shell obeys: before, it may not have loaded its libraries."""
    process.stdin.write(b"echo here\n")
    process.stdin.flush()
    read_until(process.stdout.fileno(), b"here\n")


def is_recording(recorder, path):
    assert recorder.poll() is None, recorder.communicate()
    run = subprocess.run([CAIRN, "ctl", path, "status", "--json"], capture_output=True, env=environment(), check=False)
    return run.returncode == 0


@pytest.mark.parametrize("shell, moments", [("launched", (1, 3, 5, 6)), ("attached", (1, 4))])
def test_a_killed_recorder_does_no_harm(scratch, shell, moments):
    """It dies while one program after another is followed: all of them run to their ends. One whose libraries
    were being loaded waits before it begins, for some seconds of a processor that it may have to share."""
    one = f"printf 'r\\nr\\nq\\n' | {PROGRAMS}/executing"
    script = "".join(f"{one} {how} {INNER}/{name}\n" for how in ("spawn", "execve", "vfork")
                     for name in ("musl_static", "musl_dynamic"))
    for killed_after in moments:
        path = scratch / f"{killed_after}.cairn"
        recording = [CAIRN, "record", "-q", "--checkpoint-interval", "0", "-o", path]
        command = [*recording, "--", "sh"] if shell == "launched" else ["sh"]
        program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=environment())
        recorder = program
        if shell == "attached":
            begin_shell(program)
            recorder = subprocess.Popen([*recording, "-p", str(program.pid)], stderr=subprocess.PIPE,
                                        env=environment())
            wait_until(lambda: is_recording(recorder, path), "the recorder's answer")
        program.stdin.write(script.encode())
        program.stdin.close()
        output = read_until(program.stdout.fileno(), b"done\n" * killed_after)
        recorder.kill()
        output += read_to_end(program.stdout.fileno(), seconds=5 * DEADLINE_SECONDS)
        assert output == 6 * OUTPUT, (killed_after, output)
        program.stdout.close()
        program.wait(timeout=DEADLINE_SECONDS)
        recorder.wait(timeout=DEADLINE_SECONDS)
