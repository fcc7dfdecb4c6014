# SPDX-License-Identifier: MIT
"""Programs that the preload library cannot record, started by cairn: static ones, those of musl, and
those with an allocator inside. They are recorded from their first instruction on, exactly."""
import os
import re
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment
from test_attach_allocators import EXTENDED, OWN_FUNCTIONS, PLAIN, RUST
from waiting import DEADLINE_SECONDS, read_until, wait_until

ROUNDS = 3


def traced():
    """The environment of a cairn that strace traces: LeakSanitizer, if it has that, cannot work then."""
    return environment({"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"})


# The truth of one round, from the programs.
WAYS = {
    "glibc_static": PLAIN, "glibc_static_pie": PLAIN, "jemalloc_static": EXTENDED,
    "musl_dynamic": PLAIN, "musl_static": PLAIN, "jemalloc_inside": EXTENDED,
    "jemalloc_no_pie": EXTENDED, "jemalloc_prefixed": EXTENDED, "jemalloc_apart": EXTENDED,
    "tcmalloc_inside": PLAIN, "mimalloc_prefixed": PLAIN, "rust_jemalloc": RUST,
}


def start(scratch, program, *arguments, options=(), **settings):
    """Record a program that obeys commands; return it with its recorder's process."""
    return subprocess.Popen(
        [CAIRN, "record", "-q", "-o", scratch / "fresh.cairn", *options, PROGRAMS / program, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), **settings)


def record_rounds(scratch, name, rounds, *options):
    recorder = start(scratch, f"attach/{name}", options=options)
    output, errors = recorder.communicate(b"r\n" * rounds + b"q\n", timeout=DEADLINE_SECONDS)
    assert (recorder.returncode, output, errors) == (0, b"done\n" * rounds, b"")
    return Recording(scratch / "fresh.cairn", recorder)


def sums(recording):
    return [recording.totals[name] for name in ("allocations", "allocated_bytes", "frees")]


@pytest.mark.parametrize("name", WAYS)
def test_each_round_is_counted_exactly(scratch, name):
    """What a start allocates is the same in each run, so it is the truth of no round at all."""
    at_start = sums(record_rounds(scratch, name, 0))
    recording = record_rounds(scratch, name, ROUNDS)
    recording.assert_whole()
    allocations, allocated_bytes = WAYS[name]
    rounds = [ROUNDS * allocations, ROUNDS * allocated_bytes, ROUNDS * allocations]
    assert [after - before for after, before in zip(sums(recording), at_start)] == rounds
    assert recording.totals["unknown_frees"] == 0
    if name.startswith(("musl", "jemalloc_prefixed")):
        assert at_start == [0, 0, 0]


@pytest.mark.parametrize("name", ["operators_static", "operators_jemalloc", "operators_tcmalloc"])
def test_the_pool_of_libstdcxx_is_seen(scratch, name):
    """It is allocated by a constructor of a library, before the program's first instruction."""
    recording = record_rounds(scratch, name, 2)
    sizes = [costs["allocated_bytes"] for costs, _ in recording.stacks()]
    assert 72704 in sizes or 73728 in sizes, sizes


def test_the_users_functions_are_recorded(scratch):
    recording = record_rounds(scratch, "own_pool", ROUNDS, "--allocator", OWN_FUNCTIONS)
    assert_totals(recording, {"allocations": ROUNDS * PLAIN[0], "allocated_bytes": ROUNDS * PLAIN[1]})


@pytest.mark.parametrize("name", ["glibc_static_pie", "jemalloc_inside", "rust_jemalloc"])
def test_stacks_lead_to_the_start_of_the_program(scratch, name):
    recording = record_rounds(scratch, name, 1)
    for _, frames in recording.stacks():
        assert frames[-1]["function"] in ("_start", "_dl_start_user"), frames
    assert recording.notes["unfinished_stacks"] == 0


@pytest.mark.parametrize("name", ["glibc_static", "musl_dynamic", "jemalloc_inside"])
def test_the_program_is_not_traced_while_it_runs(scratch, name):
    recorder = start(scratch, f"attach/{name}")
    try:
        recorder.stdin.write(b"r\n")
        recorder.stdin.flush()
        read_until(recorder.stdout.fileno(), b"done\n")
        (pid,) = children_of(recorder.pid)
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            assert "TracerPid:\t0\n" in status.read()
    finally:
        recorder.communicate(b"q\n", timeout=DEADLINE_SECONDS)
    assert recorder.returncode == 0


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        return [int(child) for child in children.read().split()]


ENDING = """#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    sigset_t blocked;
    void *volatile block = malloc(1000);
    const pid_t child = fork();
    if (child == 0) {
        block = malloc(500);
        free(block);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        if (sigismember(&blocked, number) || (number != 9 && number != 19 &&
            sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)) {
            return 99;
        }
    }
    if (argc > 1) {
        raise(atoi(argv[1]));
    }
    return block != NULL ? 42 : 1;
}
"""


@pytest.mark.parametrize("compiler", [["gcc", "-static"], ["musl-gcc"]])
def test_status_signals_and_children_are_the_programs_own(scratch, compiler):
    """The forked child frees what it allocates; it ends with its parent's block, and so does that."""
    (scratch / "ending.c").write_text(ENDING)
    subprocess.run([*compiler, "-O0", "-o", scratch / "ending", scratch / "ending.c"], check=True, timeout=60)
    for argument, status in ([], 42), ([str(int(signal.SIGTERM))], -signal.SIGTERM):
        run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", scratch / "ending", *argument],
                             capture_output=True, env=environment(), check=False, timeout=60)
        assert (run.returncode, run.stdout, run.stderr) == (status, b"", b"")
        recording = Recording(scratch / "x.cairn", run)
        own = [costs["allocations"] for costs, frames in recording.stacks() if frames[0]["function"] == "main"]
        assert sum(own) == 2
        assert len(recording.report["processes"]) == 2


CHAIN = """#include <stdlib.h>
#define STEP(name, next) \\
    __attribute__((noipa)) char *name(size_t size) { char *block = next(size + 1); *block = 1; return block; }
STEP(inner, malloc)
STEP(middle, inner)
STEP(outer, middle)
int main(void) { return *outer(4000) - 1; }
"""


@pytest.mark.parametrize("options", [["-static"], ["-static-pie", "-fPIE"]])
def test_stacks_need_no_frame_pointers(scratch, options):
    """A linker makes no index of the unwind tables of a static executable."""
    (scratch / "chain.c").write_text(CHAIN)
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-g", *options, "-o", scratch / "chain",
                    scratch / "chain.c"], check=True, timeout=60)
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", scratch / "chain"],
                         env=environment(), check=False, timeout=60)
    assert run.returncode == 0
    recording = Recording(scratch / "x.cairn", run)
    frames = [frame["function"] for frame in recording.stack_of_size(4003)]
    assert frames[:4] == ["inner", "middle", "outer", "main"] and frames[-1] == "_start", frames
    assert recording.notes["unfinished_stacks"] == recording.notes["frame_pointer_walks"] == 0


EXECUTING = """#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv)
{
    pid_t child;
    free(malloc(10));
    argv[0] = argv[argc - 1];
    execve("/nowhere", argv, environ);
    posix_spawn(&child, argv[0], NULL, NULL, argv, environ);
    waitpid(child, NULL, 0);
    return execve(argv[0], argv, environ);
}
"""


@pytest.mark.parametrize("compiler", [["gcc", "-static"], ["musl-gcc"]])
def test_what_it_executes_is_recorded(scratch, compiler):
    """A static program passes on what loads our library; one of musl must not have that, and is followed."""
    (scratch / "executing.c").write_text(EXECUTING)
    subprocess.run([*compiler, "-O0", "-o", scratch / "executing", scratch / "executing.c"], check=True, timeout=60)
    program = PROGRAMS / "malloc_family"
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", scratch / "executing", program],
                         capture_output=True, text=True, env=environment(), check=False, timeout=60)
    recording = Recording(scratch / "x.cairn", run)
    assert (run.returncode, recording.report["unrecorded"]["programs"]) == (0, [])
    assert [image["executable"] for image in recording.report["processes"]].count(str(program)) == 2


@pytest.mark.parametrize("name, words", [("glibc_static", "static executable"),
                                         ("musl_dynamic", "libc other than glibc"),
                                         ("jemalloc_inside", "its own malloc built in")])
def test_where_it_may_not_be_traced_it_is_refused(scratch, name, words):
    """Another tracer follows cairn's children, so cairn may not."""
    program = PROGRAMS / "attach" / name
    run = subprocess.run(["strace", "-f", "-q", "-o", "/dev/null", CAIRN, "record", "-o", scratch / "x.cairn", program],
                         capture_output=True, text=True, env=traced(), check=False, timeout=60)
    assert run.returncode == 126 and run.stdout == ""
    assert words in run.stderr and "does not let cairn trace" in run.stderr, run.stderr
    assert not (scratch / "x.cairn").exists()


def test_a_stripped_allocator_is_named(scratch):
    """Where it is the only one the program is refused; elsewhere it runs with a warning."""
    stripped = PROGRAMS / "attach" / "glibc_static_stripped"
    notes = subprocess.run(["readelf", "-n", stripped], capture_output=True, text=True, check=True).stdout
    (build_id,) = re.findall(r"Build ID: ([0-9a-f]+)", notes)
    run = subprocess.run([CAIRN, "record", "-o", scratch / "x.cairn", stripped], capture_output=True,
                         text=True, env=environment(), check=False, timeout=60)
    assert run.returncode == 126 and build_id in run.stderr, run.stderr
    program = scratch / "prefixed"
    subprocess.run(["strip", "-o", program, PROGRAMS / "attach" / "jemalloc_prefixed"], check=True, timeout=60)
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", program], input="r\nq\n",
                         capture_output=True, text=True, env=environment(), check=False, timeout=60)
    assert run.returncode == 0 and "contains jemalloc, but has no symbols" in run.stderr, run.stderr


def test_a_recording_that_ends_before_the_program_leaves_it_alone(scratch):
    recorder = start(scratch, "attach/glibc_static", options=["--duration", "200ms"])
    wait_until((scratch / "fresh.cairn").exists, "the recording")
    output, _ = recorder.communicate(b"r\nr\nq\n", timeout=DEADLINE_SECONDS)
    assert recorder.returncode == 0 and output == b"done\n" * 2


@pytest.mark.parametrize("name", ["glibc_static", "rust_jemalloc"])
def test_a_killed_recorder_does_no_harm(scratch, name):
    """The program has not begun, or it runs to its end. The recorder dies at any system call."""
    log = scratch / "calls"
    subprocess.run(["strace", "-q", "-o", log, "-e", "trace=ptrace", CAIRN, "record", "-q", "-o", scratch / "x.cairn",
                    PROGRAMS / "attach" / name], input=b"q\n", check=True, env=traced(), timeout=60)
    calls = log.read_text().count("ptrace(")
    assert calls > 20
    for number in range(1, calls + 1, max(1, calls // 12)):
        recorder = subprocess.Popen(
            ["strace", "-q", "-o", "/dev/null", "-e", f"inject=ptrace:signal=KILL:when={number}", CAIRN, "record",
             "-q", "-o", scratch / "x.cairn", PROGRAMS / "attach" / name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=traced())
        output, _ = recorder.communicate(b"r\nr\nq\n", timeout=DEADLINE_SECONDS)
        assert output in (b"", b"done\n" * 2), number


def test_the_loader_does_not_hide_what_it_runs(scratch):
    recorder = start(scratch, "/lib64/ld-linux-x86-64.so.2", PROGRAMS / "attach" / "jemalloc_inside")
    output, _ = recorder.communicate(b"r\nq\n", timeout=DEADLINE_SECONDS)
    assert recorder.returncode == 0 and output == b"done\n"
    assert Recording(scratch / "fresh.cairn", recorder).totals["allocations"] == EXTENDED[0]


def test_what_the_loader_ends_has_its_own_status(scratch):
    """It ran none of its code, so nothing was recorded."""
    (scratch / "empty.c").write_text("int nothing;\n")
    library = scratch / "libempty.so"
    subprocess.run(["musl-gcc", "-shared", "-fPIC", "-o", library, scratch / "empty.c"], check=True, timeout=60)
    (scratch / "main.c").write_text("extern int nothing; int main(void) { return nothing; }\n")
    subprocess.run(["musl-gcc", "-o", scratch / "lacking", scratch / "main.c", library, f"-Wl,-rpath,{scratch}"],
                   check=True, timeout=60)
    library.unlink()
    for command in [scratch / "lacking"], ["/lib64/ld-linux-x86-64.so.2", "--version"]:
        bare = subprocess.run(command, capture_output=True, check=False, timeout=60)
        run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", *command], capture_output=True,
                             env=environment(), check=False, timeout=60)
        assert (run.returncode, run.stdout, run.stderr) == (bare.returncode, bare.stdout, bare.stderr)
        assert Recording(scratch / "x.cairn", run).totals["allocations"] == 0


@pytest.mark.parametrize("name", ["musl_static", "jemalloc_inside"])
def test_each_failing_call_is_survived_or_refused(scratch, name):
    """The nth ptrace fails: the program is recorded all the same, or refused with a sentence."""
    for number in range(1, 60, 4):
        run = subprocess.run(
            ["strace", "-q", "-o", "/dev/null", "-e", f"inject=ptrace:error=EIO:when={number}", CAIRN, "record", "-q",
             "-o", scratch / "x.cairn", PROGRAMS / "attach" / name],
            input=b"r\nq\n", capture_output=True, env=traced(), check=False, timeout=DEADLINE_SECONDS)
        if run.returncode == 0:
            assert run.stdout == b"done\n", number
        else:
            assert run.returncode == 126 and run.stdout == b"" and run.stderr.startswith(b"cairn: "), (number, run)


def test_the_projects_functions_are_recorded(scratch):
    """[record] of cairn.toml is --allocator, which wins; a mistake there is a sentence."""
    settings = scratch / "cairn.toml"

    def run(*options):
        return subprocess.run(
            [CAIRN, "record", "-q", "-o", scratch / "fresh.cairn", *options, "--", PROGRAMS / "attach/own_pool"],
            cwd=scratch, input=b"r\nr\nq\n", capture_output=True, env=environment(), check=False,
            timeout=DEADLINE_SECONDS)

    settings.write_text(f'[report]\nwrappers = "^own_get$"\n[record]\nallocator = "{OWN_FUNCTIONS}"\n')
    finished = run()
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, b"done\n" * 2, b"")
    costs = [costs for costs, frames in Recording(scratch / "fresh.cairn", finished).stacks()
             if any(frame["function"] == "do_round" for frame in frames)]
    found = [sum(cost[name] for cost in costs) for name in ("allocations", "allocated_bytes")]
    assert found == [2 * PLAIN[0], 2 * PLAIN[1]]
    assert b"no function 'my_other'" in run("--allocator", "malloc=my_other").stderr
    for text, said in (("allocator = 3", b"cairn.toml:2: [record] has one setting"),
                       ("speed = 1", b"cairn.toml:2: [record] has one setting"),
                       ('allocator = "x"', b"[record] allocator of cairn.toml: ")):
        settings.write_text(f"[record]\n{text}\n")
        refused = run()
        assert refused.returncode == 2 and said in refused.stderr
    settings.write_text('[record]\nallocator = "malloc=my_alloc"\n[check]\nmax-leaked = "1TiB"\n')
    checked = subprocess.run([CAIRN, "check", "fresh.cairn"], cwd=scratch, capture_output=True, env=environment(),
                             check=False)
    assert checked.returncode == 0, checked.stderr
