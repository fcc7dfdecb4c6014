# SPDX-License-Identifier: MIT
"""Programs that cannot be recorded, or only partly: they run as without cairn, and the report says
so."""
import glob
import os
import pathlib
import shutil
import signal
import struct
import subprocess

import pytest

from cairn_run import BUILD, CAIRN, PRELOAD, PROGRAMS, Recording, environment, linked_libraries, some_of, truth_of
from conversation import Conversation
from waiting import read_until, wait_until

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

# A static program without symbols has no allocator that cairn could find.
COMPILERS = {"libc": ["musl-gcc"], "sanitizer": ["gcc", "-fsanitize=address"],
             "static": ["gcc", "-static", "-s"], "none": ["gcc"]}

APART = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv)
{
    for (int i = 0; i < 2 * argc; i++) { /* 4 namespaces with 5 blocks each */
        void *library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
        void *(*entry)(size_t) = library != NULL ? (void *(*)(size_t))dlsym(library, "plugin_entry") : NULL;
        for (int k = 0; k < 5; k++) {
            if (entry == NULL || entry(100) == NULL) {
                return 1;
            }
        }
    }
    return 0;
}
"""

WAYS = ["execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat",
        "vfork", "spawn", "spawnp", "cleared", "null"]


@pytest.fixture(scope="module", name="small")
def made_by_compilers(tmp_path_factory):
    """The small program from several compilers: {what prevents recording: its path}."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "small.c").write_text(SMALL)
    for name, command in COMPILERS.items():
        subprocess.run([*command, "-o", folder / name, folder / "small.c"], check=True, timeout=60)
    return {name: folder / name for name in COMPILERS}


def unrecorded(recording):
    """{(program, reason): count} of the executed programs that are not recorded."""
    table = recording.report["unrecorded"]
    assert table["execs"] == sum(entry["execs"] for entry in table["programs"])
    return {(entry["program"], entry["reason"]): entry["execs"] for entry in table["programs"]}


@pytest.mark.parametrize("how", WAYS)
def test_what_our_library_would_break_runs_without_it(record, small, how):
    """A recorded program starts it in any way: same output, same status."""
    recording = record(PROGRAMS / "executing", how, small["sanitizer"], "hello")
    assert recording.finished.returncode == 7
    assert unrecorded(recording) == {(str(small["sanitizer"]), "sanitizer"): 1}


@pytest.fixture(name="placed", params=["a place", "a:place", "$LIB"])
def in_a_folder_that_ld_preload_cannot_name(request, scratch):
    """A cairn whose library is in such a folder."""
    folder = scratch / request.param
    shutil.copytree(BUILD / "lib" / "cairn", folder / "lib" / "cairn")
    (folder / "bin").mkdir()
    return shutil.copy(CAIRN, folder / "bin" / "cairn")


def test_the_folder_of_the_library_changes_nothing(scratch, small, placed):
    """What it would break runs without it, and a cleared environment is completed."""
    path = scratch / "x.cairn"
    script = f"{small['sanitizer']} broken; env -i {small['none']} cleared"
    run = subprocess.run([placed, "record", "-q", "-o", path, "sh", "-c", script],
                         env=environment(), capture_output=True, check=False, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (7, b"broken 1 alone\ncleared 1 preloaded\n", b"")
    recording = Recording(path, run)
    recording.assert_whole()
    assert unrecorded(recording) == {(str(small["sanitizer"]), "sanitizer"): 1}


def test_what_is_executed_after_the_recorder_lacks_no_library(scratch, small, placed):
    """The folder's substitute ends with the recorder; the loader would say so in each program."""
    os.mkfifo(scratch / "go")
    script = f"(read go < {scratch}/go; {small['none']} late > {scratch}/out 2>&1; echo end > {scratch}/end) &"
    with subprocess.Popen([placed, "record", "-o", scratch / "x.cairn", "sh", "-c", script], env=environment(),
                          stderr=subprocess.PIPE) as recorder:
        read_until(recorder.stderr.fileno(), b"still running")
        recorder.send_signal(signal.SIGINT)
        recorder.wait(60)
    (scratch / "go").write_text("go\n")
    wait_until((scratch / "end").exists, "the end of the script")
    assert (scratch / "out").read_text() == "late 1 alone\n"


@pytest.mark.parametrize("how", some_of(WAYS, 3))
def test_what_can_be_recorded_is_however_it_is_started(record, small, how):
    """Also with a cleared environment: the variables that load our library are restored."""
    recording = record(PROGRAMS / "executing", how, small["none"], "hello", is_compared=False)
    assert recording.finished.returncode == 7
    assert recording.finished.stdout == b"hello 1 preloaded\n"
    assert unrecorded(recording) == {}
    (frames,) = [frames for costs, frames in recording.stacks() if costs["allocated_bytes"] == 4242]
    assert frames[0]["module"] == str(small["none"])


def test_every_exec_is_counted_and_named(record, small):
    recording = record("sh", "-c", f"{small['sanitizer']}; {small['static']} >/dev/null; env -u LD_PRELOAD "
                       f"{small['none']}; {small['sanitizer']}; {small['none']} >/dev/null; true")
    assert unrecorded(recording) == {(str(small["sanitizer"]), "sanitizer"): 2,
                                     (str(small["static"]), "static"): 1,
                                     (str(small["none"]), "environment"): 1}
    for option in ([], ["--json"]):
        run = subprocess.run([CAIRN, "report", "--all", *option, recording.path], capture_output=True,
                             text=True, check=True, timeout=60)
        said = run.stderr if option else run.stdout
        assert f"not recorded: {small['sanitizer']}, 2 times: built with a sanitizer" in said
        assert f"not recorded: {small['static']}: static executable" in said
        assert f"not recorded: {small['none']}: started without LD_PRELOAD" in said


def test_a_library_that_may_not_be_opened_is_as_if_missing(record, small):
    """The loader would say so in the program's output. access(2) knows nothing of Landlock."""
    folders = [folder for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc", small["none"].parent)
               if not PRELOAD.is_relative_to(folder)]
    recording = record(PROGRAMS / "landlocked", *folders, "--", small["none"], "hello")
    if recording.finished.returncode == 77:
        pytest.skip("this kernel has no Landlock")
    assert (recording.finished.returncode, recording.finished.stdout) == (7, b"hello 1 alone\n")
    assert unrecorded(recording) == {(str(small["none"]), "library"): 1}


@pytest.mark.parametrize("way", ["filter", "landlock", "chroot"])
def test_a_shell_of_a_confined_program_runs_as_without_us(record, scratch, way):
    """libc executes it by a call that no hook sees: our library could be killed in it, or not be opened."""
    folders = []
    if way == "landlock":
        folders = [folder for folder in ("/usr", "/lib", "/lib64", "/bin") if not PRELOAD.is_relative_to(folder)]
    if way == "chroot":
        folders = [scratch / "root"]
        for path in ["/bin/sh", *linked_libraries("/bin/sh")]:
            copy = pathlib.Path(f"{folders[0]}{path}")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    recording = record(PROGRAMS / "shell_after", way, *folders)
    if recording.finished.returncode == 77:
        pytest.skip("this kernel or user cannot")
    assert (recording.finished.returncode, recording.finished.stdout) == (7, b"one \n768\ntwo\n0\n")


@pytest.mark.nightly
def test_valgrind_says_what_it_says_without_us(record):
    """memcheck would find errors in our library, and name the hooks in the stacks of leaks."""
    recording = record("valgrind", "-q", "--error-exitcode=9", "ls", "/")
    assert recording.finished.returncode == 0
    ((program, reason),) = unrecorded(recording)
    assert program.endswith("memcheck-amd64-linux") and reason == "static"


def test_the_summary_names_them(scratch, small):
    run = subprocess.run([CAIRN, "record", "-o", "x.cairn", "--", "env", small["static"]],
                         cwd=scratch, env=environment(), capture_output=True, text=True,
                         check=False, timeout=60)
    assert run.returncode == 7
    assert f"cairn: not recorded: {small['static']}: static executable\n" in run.stderr


def test_an_exec_that_fails_is_taken_back(record, small, scratch):
    """A file of a foreign machine: the kernel refuses it, unless an emulator is registered."""
    foreign = bytearray(small["none"].read_bytes())
    foreign[18:20] = struct.pack("<H", 0x7FFF)  # e_machine: unassigned
    (scratch / "foreign").write_bytes(foreign)
    (scratch / "foreign").chmod(0o755)
    for how in ("execve", "vfork", "spawn"):
        recording = record(PROGRAMS / "executing", how, scratch / "foreign", "hello")
        assert recording.finished.returncode == 127
        assert unrecorded(recording) == {}


@pytest.mark.nightly
def test_many_programs_are_named_up_to_a_limit(record, small, scratch):
    """The table is bounded, the count is not."""
    for number in range(260):
        os.symlink(small["static"], scratch / f"s{number}")
    script = f"for i in $(seq 0 259); do {scratch}/s$i x; done >/dev/null; true"
    table = record("sh", "-c", script).report["unrecorded"]
    assert table["execs"] == 260
    names = [entry["program"] for entry in table["programs"]]
    assert len(names) == 257 and names.count("") == 1


FAMILY = """#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    int ends[2];
    char line[16];
    if (pipe(ends) != 0) {
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        if (fork() == 0) {
            close(ends[1]);
            _exit((int)read(ends[0], line, 1));
        }
    }
    while (fgets(line, sizeof(line), stdin) != NULL && line[0] != 'q') {
        puts("done");
        fflush(stdout);
    }
    close(ends[1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
"""


def test_what_descends_from_them_is_counted_as_far_as_it_is_seen(scratch):
    """The children live until they are seen, however late the recorder looks."""
    (scratch / "parent.c").write_text(FAMILY)
    subprocess.run(["gcc", "-static", "-s", "-o", scratch / "parent", scratch / "parent.c"], check=True,
                   timeout=60)
    children = 3 if os.path.exists(f"/proc/self/task/{os.getpid()}/children") else 0

    def seen():
        c.ctl("checkpoint")
        return sum(entry["descendants_at_least"] for entry in Recording(c.path, None).report["unrecorded"]["programs"])

    with Conversation(scratch / "x.cairn", program=["env", scratch / "parent"]) as c:
        wait_until(lambda: seen() >= children, "the children to be seen")
        (entry,) = c.end().report["unrecorded"]["programs"]
    assert (entry["execs"], entry["descendants_at_least"]) == (1, children)


HOLDER = """#include <stdlib.h>
#include <unistd.h>
static void *volatile block;
int main(int argc, char **argv)
{
    block = malloc(4000000);
    return argc > 1 && execv(argv[1], argv + 1) != 0;
}
"""

ANSWERING = """#include <stdio.h>
int main(void)
{
    char line[16];
    while (fgets(line, sizeof(line), stdin) != NULL && line[0] != 'q') {
        puts("done");
        fflush(stdout);
    }
    return 5;
}
"""


@pytest.mark.parametrize("command, status", [("exec {}", 5), ("{}; exit 3", 3)])
def test_a_heap_leaves_when_its_process_executes_what_is_not_recorded(scratch, command, status):
    """At the exec, and not when the new program ends: the recorder is queried meanwhile."""
    for name, text, options in (("holder", HOLDER, []), ("answering", ANSWERING, ["-static", "-s"])):
        (scratch / f"{name}.c").write_text(text)
        subprocess.run(["gcc", *options, "-o", scratch / name, scratch / f"{name}.c"], check=True,
                       timeout=60)
    program = command.format(f"{scratch}/holder {scratch}/answering")
    with Conversation(scratch / "x.cairn", program=["sh", "-c", program]) as c:
        wait_until(lambda: c.status()["live_bytes"] < 4_000_000, "the block to leave the heap")
        _, errors = c.process.communicate(b"q\n", timeout=60)
    assert c.process.returncode == status, errors
    recording = Recording(c.path, c.process)
    assert recording.report["totals"]["peak_bytes"] >= 4_000_000
    assert unrecorded(recording) == {(str(scratch / "answering"), "static"): 1}
    (process,) = [process for process in recording.report["processes"]
                  if process["executable"] == str(scratch / "holder")]
    assert process["execed"]
    (main,) = [process for process in recording.report["processes"] if process["wait_status"] is not None]
    assert os.waitstatus_to_exitcode(main["wait_status"]) == status


ALLOCATOR = """#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
char *carve(size_t bytes)
{
    char *arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return arena != MAP_FAILED ? memset(arena, 1, bytes) : NULL;
}
int main(int argc, char **argv)
{
    size_t bytes = argc > 2 ? 24 << 20 : 1000;
    char *volatile heap = memset(malloc(bytes), 1, bytes);
    return carve((size_t)atoi(argv[1]) << 20) == NULL || heap == NULL;
}
"""


def unseen(recording):
    return [(entry["reason"], entry["mapped_by"] and entry["mapped_by"]["function"])
            for entry in recording.report["unseen"]]


def test_an_allocator_that_nobody_sees_is_reported_by_what_it_maps(record, scratch):
    (scratch / "allocator.c").write_text(ALLOCATOR)
    subprocess.run(["gcc", "-g", "-O0", "-o", scratch / "allocator", scratch / "allocator.c"],
                   check=True, timeout=60)
    assert unseen(record(scratch / "allocator", 20)) == [("mapped", "carve")]
    assert unseen(record(scratch / "allocator", 20, "heap")) == []
    assert unseen(record(scratch / "allocator", 2)) == []


GO = """package main

// #include <stdlib.h>
import "C"

func main() {
	C.free(C.malloc(777))
}
"""


def test_a_go_program_that_uses_c_is_reported(record, scratch):
    (scratch / "main.go").write_text(GO)
    subprocess.run(["go", "build", "-o", scratch / "gopher", "main.go"], cwd=scratch, check=True,
                   timeout=120, env={**os.environ, "CGO_ENABLED": "1", "GO111MODULE": "off"})
    for command in ([scratch / "gopher"], ["sh", "-c", f"{scratch}/gopher; true"]):
        recording = record(*command)
        (entry,) = recording.report["unseen"]
        assert (entry["reason"], entry["executable"]) == ("go", str(scratch / "gopher"))
        assert [costs for costs, frames in recording.stacks() if costs["allocated_bytes"] == 777]


EXECUTOR = """#include <unistd.h>
int main(int argc, char **argv)
{
    return argc > 1 ? execv(argv[1], argv + 1) : 1;
}
"""


def test_below_a_static_program_which_has_no_hooks(record, small, scratch):
    """Programs that can be recorded are; a program of musl gets our library, which does nothing
    there."""
    (scratch / "executor.c").write_text(EXECUTOR)
    subprocess.run(["gcc", "-static", "-s", "-o", scratch / "executor", scratch / "executor.c"], check=True,
                   timeout=60)
    recording = record("env", scratch / "executor", small["none"], is_compared=False)
    assert [costs for costs, frames in recording.stacks() if costs["allocated_bytes"] == 4242]
    assert unrecorded(recording) == {}  # the image that continues in its process is recorded
    recording = record("env", scratch / "executor", small["libc"], is_compared=False)
    assert (recording.finished.returncode, recording.finished.stderr) == (7, b"")
    assert recording.finished.stdout == b" 1 preloaded\n"
    assert unrecorded(recording) == {(str(scratch / "executor"), "static"): 1}


NAMESPACES = {
    "network": ["unshare", "--map-root-user", "--net"],
    "all": ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"],
    # Most sandboxes hide the folder of the recorder's socket.
    "closed": ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--proc", "/proc",
               "--dev", "/dev", "--ro-bind", "{small}", "/tmp/none",
               "--ro-bind", str(BUILD), str(BUILD)],  # which may be below /tmp
}


@pytest.mark.parametrize("way", some_of(NAMESPACES, 2))
def test_programs_of_other_network_namespaces(record, small, way):
    """Recorded where the recorder can be reached, and else named; the output is the same."""
    folder = small["none"].parent
    command = [word.format(small=small["none"]) for word in NAMESPACES[way]]
    program = "/tmp/none" if way == "closed" else str(folder / "none")
    if subprocess.run([*command, "true"], capture_output=True, check=False, timeout=60).returncode != 0:
        recording = record("env", program, is_compared=False)  # not allowed here: use our namespace
        assert unrecorded(recording) == {}
        return
    # The parent of the shell is the recorder.
    recording = record("sh", "-c", f'echo $PPID >{folder}/recorder; exec "$@"', "sh", *command, program,
                       is_compared=False)
    assert recording.finished.returncode == 7
    found = [costs for costs, frames in recording.stacks() if costs["allocated_bytes"] == 4242]
    if way == "closed":
        assert recording.finished.stdout == b" 1 alone\n"
        assert unrecorded(recording) == {(program, "unreachable"): 1} and not found
    else:
        assert unrecorded(recording) == {} and len(found) == 1
    assert glob.glob(f"/tmp/cairn-{(folder / 'recorder').read_text().strip()}-*.socket") == []


LIMITED = """#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct rlimit limit = {200 << 20, 200 << 20}, found;
    const char *way = argc == 2 ? argv[1] : "";
    if ((strcmp(way, "own") == 0 && setrlimit(RLIMIT_AS, &limit) != 0) ||
        (strcmp(way, "prlimit") == 0 && prlimit(0, RLIMIT_AS, &limit, NULL) != 0) ||
        (strcmp(way, "by pid") == 0 && prlimit(getpid(), RLIMIT_AS, &limit, NULL) != 0)) {
        return 1;
    }
    int count = 0;
    for (void **last = NULL, **next; (next = malloc(100000)) != NULL; last = next) {
        *next = last;
        count++;
    }
    getrlimit(RLIMIT_AS, &found);
    fprintf(stderr, "%d\\n", count);
    return found.rlim_cur != limit.rlim_cur;
}
"""


@pytest.mark.parametrize("way", some_of(["own", "prlimit", "by pid", "inherited"], 2))
def test_a_limit_of_its_address_space_leaves_it_what_it_has_bare(record, scratch, way):
    """Except for a few MiB: the header of the session, its thread's lane, our library. If it limits itself while it
    runs, it has a directory of words besides: 8 bytes for each 64 MiB of all addresses."""
    (scratch / "limited.c").write_text(LIMITED)
    subprocess.run(["gcc", "-o", scratch / "limited", scratch / "limited.c"], check=True, timeout=60)
    command = [scratch / "limited", way]
    if way == "inherited":
        command = ["sh", "-c", f"ulimit -v 204800; exec {scratch}/limited x"]
    bare = subprocess.run(command, env=environment(), capture_output=True, check=False, timeout=60)
    recording = record(*command, is_compared=False)
    assert recording.finished.returncode == bare.returncode == 0
    blocks = int(recording.finished.stderr), int(bare.stderr)
    directory = {"x86_64": 1 << 47, "aarch64": 1 << 48}[os.uname().machine] // (64 << 20) * 8
    lacking = 60 if way == "inherited" else 60 + directory // 100000
    assert blocks[1] - lacking < blocks[0] <= blocks[1], blocks
    recording.assert_whole()
    assert recording.totals["allocations"] >= blocks[0]


@pytest.mark.parametrize("how", ["prctl", "seccomp", "strict"])
def test_under_a_filter_no_hook_makes_a_system_call(record, how):
    """A system call would kill the program; everything is recorded, with complete stacks."""
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
    lost = {name: count for name, count in recording.lost.items() if count != 0}
    truth = truth_of("filtered")
    # The library of a thread frees its block for thread-local storage under the filter too; main
    # allocates it.
    spare = 1 if who == "thread" else 0
    assert list(lost) == ["seccomp"] and 2000 <= lost["seccomp"] <= 2000 + spare
    assert recording.totals["allocations"] == truth["allocations"] + spare


CONFINED_EXEC = """#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = 1, .filter = &code};
    int status = 1;
    if (fork() == 0) {
        free(malloc(100));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) {
            free(malloc(200));
            execv(argv[1], argv + 1);
        }
        _exit(9);
    }
    (void)argc;
    wait(&status);
    return WEXITSTATUS(status);
}
"""


def test_an_exec_under_a_filter_is_no_kill(record, scratch, small):
    (scratch / "confined_exec.c").write_text(CONFINED_EXEC)
    subprocess.run(["gcc", "-o", scratch / "confined_exec", scratch / "confined_exec.c"], check=True, timeout=60)
    recording = record(scratch / "confined_exec", small["none"], "there")
    assert recording.finished.returncode == 7 and recording.finished.stdout == b"there 1 alone\n"
    assert unrecorded(recording) == {(str(small["none"]), "seccomp"): 1}
    assert b"killed" not in recording.finished.stderr
    assert [process["killed"] for process in recording.report["processes"]] == [False, False]


def test_a_number_of_namespaces_is_not_taken_for_one_of_events(record, scratch):
    """Each has a malloc of its own, so what its libraries allocate has no number. Our own call of dlmopen would not
    find the library on the search path of the program."""
    (scratch / "apart.c").write_text(APART)
    subprocess.run(["gcc", "-o", scratch / "apart", scratch / "apart.c", f"-Wl,-rpath,{PROGRAMS}"], check=True,
                   timeout=60)
    recording = record(scratch / "apart", "libplugin_first.so", is_whole=False)
    assert {name: value for name, value in recording.lost.items() if value != 0} == {"namespaces": 4}
    said = subprocess.run([CAIRN, "report", recording.path], capture_output=True, check=True, env=environment())
    assert b"linker namespaces (dlmopen), whose events --all-allocators records (4)" in said.stderr + said.stdout
