# SPDX-License-Identifier: MIT
"""Two allocators in one process: what each holds, as tests/programs/attach/two_allocators.c states and as glibc's
mallinfo2 says, by each way in. What cannot be known is not said of either."""
import ctypes.util
import pathlib
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from conversation import ctl
from waiting import DEADLINE_SECONDS, read_until, wait_until

KIB = 1 << 10
MIB = 1 << 20
OTHER_HALF = 1024 * 10000
LIBC_HALF = 3072 * 4000
NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}

# The program, its library, and the name of the other allocator.
PROGRAM = {
    "jemalloc": ("two_prefixed", None),
    "mimalloc": ("two_loaded", "mimalloc"),
    "tcmalloc": ("two_loaded", "tcmalloc_minimal"),
}


class Run:
    """The program by one way. `options` None: it is attached to when half of its work is done."""

    def __init__(self, scratch, allocator, options):
        name, library = PROGRAM[allocator]
        self.path = scratch / "two.cairn"
        program = [PROGRAMS / "attach" / name]
        if library is not None:
            program.append(ctypes.util.find_library(library))
        record = [CAIRN, "record", "-q", "-o", self.path]
        start = [*record, *options, "--", *program] if options is not None else program
        self.process = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment(NO_CACHES))
        try:
            self.play([*record, "-p", str(self.process.pid)] if options is None else None)
        finally:
            self.process.kill()
            self.process.communicate()

    def play(self, attach):
        read_until(self.process.stdout.fileno(), b"half\n")
        recorder = self.process
        if attach is not None:
            recorder = subprocess.Popen(attach, env=environment())
            wait_until(self.is_answered, "the recorder's answer")
        self.go_on()
        said = read_until(self.process.stdout.fileno(), b"whole\n").decode()
        self.told = {line.split()[0]: int(line.split()[1]) for line in said.splitlines()[:2]}
        # A process that was attached to, joins and ends within milliseconds is not asked to wait at its exit: then
        # this is the last breakdown.
        ctl(self.path, "snapshot")
        self.go_on()
        assert self.process.wait(DEADLINE_SECONDS) == 0
        assert recorder.wait(DEADLINE_SECONDS) == 0
        recording = Recording(self.path, recorder)
        recording.assert_whole()
        rss = recording.report["rss"]
        self.last, = [entry for entry in rss["breakdowns"] if entry["is_last"]]
        assert self.last["at_exit"] or attach is not None
        self.allocators = {entry["name"]: entry for entry in rss["allocators"]
                           if entry["time_ms"] == self.last["time_ms"]}
        for kind in ("live", "rounding", "kept"):
            assert sum(entry[f"{kind}_bytes"] for entry in self.allocators.values()) == self.last[f"{kind}_bytes"]
        self.text = subprocess.run([CAIRN, "report", "-r", self.path], env=environment(), check=True,
                                   capture_output=True, text=True).stdout

    def go_on(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def is_answered(self):
        return subprocess.run([CAIRN, "ctl", self.path, "status"], env=environment(), check=False,
                              capture_output=True).returncode == 0


# tcmalloc moves the break in the middle of glibc's heap, which ends what glibc can use again there.
@pytest.mark.parametrize("allocator", PROGRAM)
def test_each_has_what_it_holds(scratch, allocator):
    run = Run(scratch, allocator, [] if allocator == "jemalloc" else ["--all-allocators"])
    assert set(run.allocators) == {"libc", allocator}
    libc, other = run.allocators["libc"], run.allocators[allocator]
    assert 0 <= other["live_bytes"] - 2 * OTHER_HALF <= 4 * KIB  # and what its library's constructors took
    assert 0 <= libc["live_bytes"] - 2 * LIBC_HALF <= 64 * KIB  # stdio's buffers, and pin()
    if allocator != "tcmalloc":
        assert abs(libc["live_bytes"] + libc["rounding_bytes"] - run.told["libc_used"]) <= 64 * KIB
    assert abs(libc["kept_bytes"] - run.told["libc_free"]) <= 256 * KIB  # the newest page of the top, and headers
    assert 12 * MIB <= other["kept_bytes"] + other["rounding_bytes"] <= 18 * MIB
    assert libc["rest_bytes"] == other["rest_bytes"] == 0
    lines = [line.split() for line in run.text.split("allocators at the end\n")[1].splitlines()[1:3]]
    assert {line[6] for line in lines} == {"libc", allocator}


def test_one_in_a_library_is_the_programs_for_a_preloaded_one(scratch):
    """A preloaded library sees only the program's malloc."""
    run = Run(scratch, "mimalloc", [])
    (libc,) = run.allocators.values()
    assert pathlib.PurePath(libc["module"]).name == "libc.so.6"
    assert abs(libc["kept_bytes"] - run.told["libc_free"]) <= 256 * KIB
    mapped = [mapping for mapping in run.last["mappings"] if mapping["kind"] == "mapped"]
    assert {pathlib.PurePath(mapping["module"]).name for mapping in mapped} == {"libmimalloc.so.2"}
    assert sum(mapping["rss_bytes"] for mapping in mapped) >= 2 * OTHER_HALF + 12 * MIB
    assert "allocators at" not in run.text


def contained(run):
    """What the names of memory from before say that the process contains."""
    return {mapping["path"].rpartition("contains ")[2].strip("]") for mapping in run.last["mappings"]
            if mapping["path"].startswith("[mapped before recording")}


@pytest.mark.parametrize("allocator", ["jemalloc", "mimalloc"])
def test_attached_each_has_what_it_got_since(scratch, allocator):
    """glibc's headers say what it had before; the rest is of the only other allocator."""
    run = Run(scratch, allocator, None)
    libc, other = run.allocators["libc"], run.allocators[allocator]
    assert abs(other["live_bytes"] - OTHER_HALF) <= 64 * KIB
    assert 0 <= libc["live_bytes"] - LIBC_HALF <= 64 * KIB
    assert abs(libc["kept_bytes"] - run.told["libc_free"]) <= 256 * KIB
    assert abs(libc["live_bytes"] + libc["rounding_bytes"] + libc["rest_bytes"] - run.told["libc_used"]) <= 256 * KIB
    assert contained(run) == {allocator}


def test_attached_a_heap_that_two_may_share_is_of_neither(scratch):
    """tcmalloc moves the break: [heap] may be glibc's or its own."""
    run = Run(scratch, "tcmalloc", None)
    unknown = run.allocators[""]
    assert (unknown["module"], contained(run)) == ("", {"tcmalloc"})
    assert "libc" not in run.allocators, run.allocators
    assert sum(entry["live_bytes"] for entry in run.allocators.values()) >= OTHER_HALF + LIBC_HALF, (run.allocators, run.last)
    assert "unknown" in run.text.split("allocators at the end\n")[1]


HELPER = """
#include <stdlib.h>
void *reallocf(void *block, size_t size) { return realloc(block, size); }
void *reallocarray(void *block, size_t count, size_t size) { return realloc(block, count * size); }
"""


def test_a_library_that_only_resizes_contains_no_allocator(scratch):
    """As libbsd does. Its process has most of its memory from before."""
    source, library = scratch / "helper.c", scratch / "helper.so"
    source.write_text(HELPER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    script = "import mmap, sys; m = mmap.mmap(-1, 1 << 24); m.write(bytes(1 << 24)); print('half', flush=True); input()"
    with subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment({"LD_PRELOAD": str(library)})) as process:
        read_until(process.stdout.fileno(), b"half\n")
        path = scratch / "helper.cairn"
        with subprocess.Popen([CAIRN, "record", "-q", "-o", path, "-p", str(process.pid)], env=environment()) as recorder:
            wait_until(lambda: subprocess.run([CAIRN, "ctl", path, "status"], env=environment(), check=False,
                                              capture_output=True).returncode == 0, "the recorder's answer")
            ctl(path, "snapshot")
            process.communicate(b"\n")
            assert recorder.wait(DEADLINE_SECONDS) == 0
    breakdowns = Recording(path, None).report["rss"]["breakdowns"]
    names = {mapping["path"] for entry in breakdowns for mapping in entry["mappings"]
             if mapping["path"].startswith("[mapped before recording")}
    assert names == {"[mapped before recording]"}
