# SPDX-License-Identifier: MIT
"""Lifecycle: for each kind of start, fork and end, nothing is lost. Exit status, output and signals
are the program's own. The fixture compares each run with a bare one."""
import os
import pty
import re
import shutil
import subprocess

import pytest

from cairn_run import (CAIRN, PROGRAMS, Recording, assert_totals, environment, expected_totals,
                       some_of, truth_of)
from waiting import read_until

ENDINGS = {"return": 0, "exit": 3, "_exit": 4, "quick_exit": 5, "abort": 134, "segv": 139,
           "kill": 137}


@pytest.mark.parametrize("way, status", ENDINGS.items())
def test_every_way_to_end_loses_nothing(record, way, status):
    recording = record(PROGRAMS / "ending", way)
    code = recording.finished.returncode
    assert (code if code >= 0 else 128 - code) == status
    assert_totals(recording, expected_totals("ending"))


@pytest.mark.parametrize("way, status", [("interrupt", 130), ("caught", 6)])
def test_control_c_reaches_the_program_and_the_recorder_finishes(scratch, way, status):
    """The whole foreground group of a terminal gets SIGINT, including cairn."""
    path = scratch / "out.cairn"
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(CAIRN, [str(CAIRN), "record", "-q", "-o", str(path), "--",
                          str(PROGRAMS / "ending"), way], environment())
    read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    _, wait_status = os.waitpid(pid, 0)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(wait_status)
    assert (code if code >= 0 else 128 - code) == status
    recording = Recording(path, None)
    recording.assert_whole()
    assert_totals(recording, expected_totals("ending"))


# It waits for the blocked signal: a handler might run just before a pause, which then never ended.
ECHO = """
import os, signal, subprocess
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getppid(), signal.SIGHUP)
subprocess.run(["kill", "-TERM", str(os.getppid())])
signal.sigwait({signal.SIGTERM})
"""


def test_a_signal_of_the_program_does_not_come_back(record):
    """One that another process sends to cairn later reaches the program."""
    recording = record("/usr/bin/python3", "-c", ECHO, is_compared=False)
    assert recording.finished.returncode == 0


@pytest.mark.parametrize("name", ["empty", "fork_both", "blocked_signals", "signal_stack",
                                  "short_threads", "confined"])
def test_programs_that_do_unusual_things(record, name):
    recording = record(PROGRAMS / name)
    assert recording.finished.returncode == 0
    assert_totals(recording, expected_totals(name))


@pytest.mark.parametrize("when, lost", [("before", 0), ("after", 200)])
def test_a_strictly_confined_thread_beside_another_is_not_killed(record, when, lost):
    """No thread can begin to record behind the filter."""
    recording = record(PROGRAMS / "confined_beside", when, is_whole=False)
    assert (recording.finished.returncode, recording.finished.stdout) == (0, b"confined\n")
    expected = expected_totals("confined_beside", when)
    assert recording.lost["seccomp"] == lost
    assert recording.totals["allocations"] + recording.totals["frees"] + lost == (
        expected["allocations"] + expected["frees"])


@pytest.mark.parametrize("how", ["exec", "vfork", "spawn"])
def test_new_images_go_on_in_the_same_recording(record, how):
    recording = record(PROGRAMS / "exec_chain", how, "1")
    assert recording.finished.returncode == 7
    assert_totals(recording, expected_totals("exec_chain", how))
    images = recording.report["processes"]
    assert len([image for image in images if image["costs"]["allocations"] == 10]) == 3
    assert len({image["pid"] for image in images}) == (1 if how == "exec" else 3)


@pytest.mark.parametrize("name, variant, want", [
    ("fork_both", None, {"allocations": 17, "frees": 0, "live_blocks": 17}),
    ("exec_chain", "spawn", {"allocations": 10, "frees": 5, "live_blocks": 5}),
    ("exec_chain", "vfork", {"allocations": 10, "frees": 5, "live_blocks": 5}),
])
def test_no_children_records_the_program_alone(record, name, variant, want):
    arguments = [variant, "1"] if variant else []
    recording = record(PROGRAMS / name, *arguments, options=["--no-children"])
    assert_totals(recording, {**want, "processes": 1})


def test_a_daemon_that_closed_everything_is_recorded_to_its_end(record, scratch):
    done = scratch / "done"
    # A bare run would not wait for the daemon, so it cannot be compared.
    recording = record(PROGRAMS / "daemon", done, is_compared=False)
    assert (recording.finished.returncode, recording.finished.stdout) == (0, b"")
    # On a busy machine the daemon may take so long that cairn says what it waits for.
    assert recording.finished.stderr == b"" or b"recording continues until they end" in recording.finished.stderr
    assert done.read_text() == "done\n"
    assert_totals(recording, expected_totals("daemon"))


def test_pending_cancellation_is_not_acted_upon_inside_malloc(record):
    recording = record(PROGRAMS / "cancelled_pending")
    truth = truth_of("cancelled_pending")
    costs = recording.costs_within("work")
    assert {cost: costs[cost] for cost in truth} == truth
    assert recording.totals["threads"] == 2


def test_a_thread_cancelled_inside_malloc_harms_nobody(record):
    recording = record(PROGRAMS / "cancelled_inside")
    truth = truth_of("cancelled_inside")
    costs = recording.costs_within("main")
    assert {cost: costs[cost] for cost in truth} == truth
    dying = recording.costs_within("work")
    # At most one block is between its allocation and its free.
    assert dying["allocations"] - dying["frees"] in (0, 1)


def test_the_program_keeps_its_own_preload(record):
    own = {"LD_PRELOAD": str(PROGRAMS / "libown_preload.so")}
    recording = record(PROGRAMS / "preloaded", env=own)
    assert recording.finished.returncode == 0
    assert_totals(recording, expected_totals("preloaded"))


def says_unseen(recording):
    """The report's executables with their own malloc and an unseen heap: as JSON and as text."""
    run = subprocess.run([CAIRN, "report", "--all", recording.path], env=environment(), capture_output=True,
                         check=True, timeout=60)
    said = b"has its own malloc built in: its heap was not seen" in run.stdout + run.stderr
    return [process["own_allocator"] for process in recording.report["processes"]], said


def test_an_address_lent_to_malloc_is_no_malloc(record):
    program = PROGRAMS / "lent_address"
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", program], capture_output=True,
                             text=True, check=True).stdout
    (value,) = re.findall(r" ([0-9a-f]{16}) .* UND malloc\b", symbols)
    assert int(value, 16) != 0, "the program is not what this is about"
    recording = record(program)
    assert_totals(recording, expected_totals("lent_address"))
    assert says_unseen(recording) == ([False], False)


def test_a_malloc_of_the_executable_s_own_is_named(record):
    recording = record(PROGRAMS / "own_malloc", options=["--force"], is_compared=False)
    assert recording.finished.stdout == b"own malloc\n"
    assert recording.totals["allocations"] == 0
    assert says_unseen(recording) == ([True], True)


@pytest.mark.parametrize("early", some_of(["text", "mapping", "modules", "locale", "zone", "user", "thread",
                                           "conversion", "library", "error", "stream", "as ever"], 3))
def test_the_first_event_waits_for_nobody_and_says_nothing(record, early):
    """The first event may come under any lock of libc's. The program must not see the failures of
    cairn's lookups."""
    recording = record(PROGRAMS / "early", "talk", env={"EARLY": early})
    assert recording.finished.stderr.startswith(b"at first: -\nlooked up: ")
    assert recording.finished.stderr.endswith(b"done\n")
    assert says_unseen(recording) == ([False], False)


def test_no_hook_takes_the_loaders_lock(record):
    recording = record(PROGRAMS / "early", "open", PROGRAMS / "libwaiting_plugin.so")
    assert recording.finished.returncode == 0
    # The constructor of a plugin with RTLD_DEEPBIND is not recorded:
    # src/target/preload/exports/deep_bind.h.
    assert recording.costs_within("work")["allocations"] == 3 * 2 * 99


EARLY_LIBRARY = """void *make(void);
void *kept;
__attribute__((constructor)) static void begin(void) { kept = make(); }
"""
EARLY_PROGRAM = """#include <stdlib.h>
void *make(void) { return malloc(4321); }
int main(void) { return make() == NULL; }
"""


def test_a_program_that_a_library_calls_first_has_its_name(record, scratch):
    """The library's constructor runs before cairn's, and calls the program, as libraries do where a program
    has an operator new of its own."""
    (scratch / "library.c").write_text(EARLY_LIBRARY)
    (scratch / "program.c").write_text(EARLY_PROGRAM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libearly.so", "library.c"], cwd=scratch, check=True, timeout=60)
    subprocess.run(["gcc", "-g", "-rdynamic", "-Wl,--no-as-needed", "-o", "program", "program.c", "./libearly.so"],
                   cwd=scratch, check=True, timeout=60)
    recording = record("sh", "-c", f"{scratch}/program && {scratch}/program")
    assert recording.costs_within("make")["allocations"] == 4
    named = [module["path"] for module in recording.report["modules"]
             if module["path"] in ("", str(scratch / "program"))]
    assert named == [str(scratch / "program")]


def test_a_mapping_before_the_first_block_hides_no_heap(record):
    recording = record(PROGRAMS / "early", env={"EARLY": "mapping"})
    assert_totals(recording, expected_totals("early"))
    assert says_unseen(recording) == ([False], False)


def test_the_distribution_s_python_is_seen(record):
    """Debian's python has a fixed address and takes malloc's."""
    recording = record("/usr/bin/python3", "-c", "pass")
    assert recording.totals["allocations"] > 0
    assert says_unseen(recording) == ([False], False)


def test_a_plugin_bound_to_itself_first_harms_no_other_thread_s(record):
    """The loader still writes to a library that another thread opens."""
    recording = record(PROGRAMS / "two_loaders", PROGRAMS / "libdeep_plugin.so",
                       PROGRAMS / "libslow_plugin.so")
    assert recording.finished.returncode == 0


@pytest.mark.parametrize("plugin", [PROGRAMS / "libdeep_plugin.so", PROGRAMS / "libdeep_chain.so",
                                    "libdeep_plugin.so", PROGRAMS / "libdeep_now.so"],
                         ids=["path", "chain", "name", "now"])
def test_a_plugin_bound_to_itself_first_is_recorded_too(record, plugin):
    """By its path, or by a name that the loader finds through the environment."""
    recording = record(PROGRAMS / "deep_bind", plugin, env={"LD_LIBRARY_PATH": str(PROGRAMS)})
    assert recording.finished.returncode == 0
    truth = truth_of("deep_bind")
    ours, theirs = recording.costs_within("main"), recording.costs_within("deep_plugin_make")
    assert {cost: ours.get(cost, 0) + theirs.get(cost, 0) for cost in truth} == truth


def test_a_plugin_that_lacks_a_function_is_opened_as_ever(record):
    """Bound lazily it opens, because the program never calls what the function is for."""
    recording = record(PROGRAMS / "early", "lazily", PROGRAMS / "libincomplete_plugin.so")
    assert recording.finished.returncode == 0


def test_a_program_finds_plugins_on_its_own_path(record):
    """dlopen uses the RUNPATH of its caller, which must still be the program."""
    recording = record(PROGRAMS / "own_path")
    assert recording.finished.returncode == 0
    assert recording.finished.stdout == b"plain\ndeep\n"


def test_a_long_command_line_is_kept_whole(record):
    words = [f"argument-number-{number}" for number in range(260)]
    words.append("x" * 1500)
    assert len(" ".join(words)) > 6 * 1024
    recording = record(PROGRAMS / "ending", "exit", *words)
    assert_totals(recording, expected_totals("ending"))
    line = recording.report["run"]["command_line"]
    assert line.endswith(" ".join(words))


@pytest.mark.parametrize("folder", some_of(["with space/and 'quote'", "with\nnewline", "mit-ümlaut-ß", "d" * 200], 2))
def test_unusual_paths(record, scratch, folder):
    program = scratch / folder / "my program"
    program.parent.mkdir(parents=True)
    shutil.copy(PROGRAMS / "ending", program)
    recording = record(program, "exit")
    assert_totals(recording, expected_totals("ending"))
    assert recording.report["run"]["program"] == str(program)
    assert any(module["path"] == str(program) for module in recording.report["modules"])


def test_output_beside_a_program_with_an_unusual_name(scratch):
    """The default file name contains the program's name."""
    program = scratch / "new\nline"
    shutil.copy(PROGRAMS / "ending", program)
    run = subprocess.run([CAIRN, "-q", program, "exit"], cwd=scratch, env=environment(),
                         capture_output=True, check=False, timeout=60)
    assert run.returncode == 3
    files = [path for path in scratch.iterdir() if path.suffix == ".cairn"]
    assert len(files) == 1
    recording = Recording(files[0], run)
    recording.assert_whole()
    assert_totals(recording, expected_totals("ending"))
    assert files[0].name.endswith(f".{recording.report['run']['pid']}.cairn")


def test_standard_streams_are_the_program_s(record):
    """A megabyte through cat, with bytes of every value."""
    recording = record("/bin/cat", stdin=bytes(range(256)) * 4096)
    assert recording.finished.stdout == bytes(range(256)) * 4096


def test_descriptors_of_the_program_are_its_own(record):
    """The program sees only the descriptors of a bare run."""
    recording = record("/bin/ls", "/proc/self/fd")
    assert recording.finished.stdout.split() == [b"0", b"1", b"2", b"3"]


KEYS = """#include <pthread.h>
#include <stdlib.h>
__attribute__((constructor)) static void begin(void)
{
    pthread_key_t key;
    for (int i = atoi(getenv("KEYS")); i > 0; i--) {
        if (pthread_key_create(&key, NULL) != 0) {
            abort();
        }
    }
}
"""


@pytest.mark.parametrize("keys", [0, 1, 31])
def test_our_key_of_a_thread_needs_no_memory(record, scratch, keys):
    """A thread may get it within the first steps of an allocator, which holds its locks. glibc allocates for the 33rd
    key and later ones."""
    (scratch / "keys.c").write_text(KEYS)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", scratch / "keys.so", scratch / "keys.c"], check=True, timeout=60)
    recording = record(PROGRAMS / "threads", env={"LD_PRELOAD": str(scratch / "keys.so"), "KEYS": str(keys)})
    assert recording.totals["threads"] > 1
    assert not [frames for _, frames in recording.stacks()
                if any((frame["function"] or "").endswith("pthread_setspecific") for frame in frames)]
