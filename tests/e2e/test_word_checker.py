# SPDX-License-Identifier: MIT
"""Words of live blocks (docs/design/words.md) below cairn's hooks: word_checker.so keeps them for random programs,
compares each pairing with a table of its own, and this test what they say of each kind of block with the recorder's
pairing. With a rule left out, the same run fails.

CAIRN_ORDER_RUNS is the number of random runs for each allocator (2), CAIRN_ORDER_SEED the first seed.
"""
import mmap
import os
import signal
import struct
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from test_order import KINDS, SEED, TRACER_FORMAT, Traced, assert_counts
from waiting import wait_until

RUNS = int(os.environ.get("CAIRN_ORDER_RUNS", "2"))
ALLOCATORS = ["", "libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"]
HOW = ["crlb", "crsfb", "crf", "crsl"]
SUMS_BYTES = struct.calcsize(TRACER_FORMAT)
FILE_BYTES = 4096
WORDS_MAGIC = b"words\0\0\0"
WORDS_FILE_BYTES = 1 << 41  # and more than session/books/block_words.h needs: all of it is a hole


class Checker:
    """The files of a run with the checker, and how to start it."""

    def __init__(self, folder, allocator="", without=""):
        self.sums = folder / "sums"
        self.sums.write_bytes(bytes(FILE_BYTES))
        # In memory, as the recorder's. A list skips holes, and what a file system on a disk calls a hole changes while
        # it writes pages back.
        self.file = os.fdopen(os.memfd_create("words"), "wb")
        self.file.write(WORDS_MAGIC)
        self.file.truncate(WORDS_FILE_BYTES)
        self.words = f"/proc/{os.getpid()}/fd/{self.file.fileno()}"
        self.env = {"LD_PRELOAD": f"{PROGRAMS / 'libword_checker.so'} {allocator}".strip(),
                    "HEAP_TRACER": str(self.sums), "HEAP_TRACER_OF": "random_heap", "WORD_CHECKER": self.words,
                    "WORD_CHECKER_WITHOUT": without}

    def errors(self):
        return struct.unpack_from("<Q", self.sums.read_bytes(), SUMS_BYTES - 8)[0]

    def truth(self):
        """What the words say, and no pairing was wrong."""
        truth = Traced(self.sums)
        names = ("sum", "peak", "threads", "batch", "block")
        truth.shared = dict(zip(names, struct.unpack_from("<5Q", self.sums.read_bytes(), SUMS_BYTES)))
        return truth

    def listed(self):
        """({kind: (live blocks, bytes)}, [process], stale words), as the recorder lists the words."""
        run = subprocess.run([PROGRAMS / "words_of", self.words], capture_output=True, text=True, check=True)
        lines = [line.split() for line in run.stdout.splitlines()]
        kinds = {int(line[1]): (int(line[2]), int(line[3])) for line in lines if line[0] == "kind"}
        return kinds, [int(line[1]) for line in lines if line[0] == "process"], int(lines[-1][1])


def assert_listed(checker, truth):
    """The list of the words has what was put and not taken, and the shared sum's peak is within its bound."""
    kinds, _, stale = checker.listed()
    assert stale == 0
    assert kinds == {kind: (sums["allocations"] - sums["frees"], sums["allocated_bytes"] - sums["freed_bytes"])
                     for kind, sums in enumerate(truth.kinds)}
    shared = truth.shared
    bound = shared["threads"] * (shared["batch"] + shared["block"])
    assert abs(shared["peak"] - truth.peak_bytes) <= bound


@pytest.mark.parametrize("run", range(RUNS))
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_words_pair_as_the_recorder_does(record, tmp_path, allocator, run):
    number = SEED + run * len(ALLOCATORS) + ALLOCATORS.index(allocator)
    how = HOW[number % len(HOW)]
    threads = [4, 2, 16, 8, 3][number % 5]
    checker = Checker(tmp_path, allocator)
    recording = record(PROGRAMS / "random_heap", number, threads, 16000 // threads, how, env=checker.env,
                       is_compared=False)
    truth = checker.truth()
    assert_counts(recording, truth)
    assert_listed(checker, truth)
    assert truth.shared["sum"] == 0


@pytest.mark.parametrize("threads", [0, 3])
def test_handlers_in_the_middle_of_hooks(record, tmp_path, threads):
    """A handler's blocks have words of their own: no event is deferred or lost. cairn's hooks defer such events, and
    count those for which they have no room."""
    checker = Checker(tmp_path)
    recording = record(PROGRAMS / "random_heap", SEED, threads, 40000 // max(threads, 1), "crh", env=checker.env,
                       is_compared=False, is_whole=False)
    truth = checker.truth()
    assert_listed(checker, truth)
    lost = recording.lost["reentrant"]
    for cost in ("allocations", "frees"):
        assert abs(recording.totals[cost] - truth.total(cost)) <= lost
    assert int(recording.finished.stdout) > 20  # handlers that allocated


@pytest.mark.parametrize("rule, allocator, how", [
    ("put back", "", "cr"), ("take first", "", "cr"), ("wipe", "", "crf"), ("tiny", "libjemalloc.so.2", "cr"),
    ("tiny", "libmimalloc.so.2", "cr"), ("tiny", "libtcmalloc_minimal.so.4", "cr")])
def test_a_rule_left_out_is_noticed(tmp_path, rule, allocator, how):
    checker = Checker(tmp_path, allocator, rule)
    for seed in range(SEED, SEED + 10):
        subprocess.run([PROGRAMS / "random_heap", str(seed), "8", "5000", how], env=environment(checker.env), check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        if checker.errors() > 0:
            return
    pytest.fail(f"10 runs without {rule} have no error")


@pytest.mark.parametrize("seed", range(3))
def test_words_outlive_a_killed_program(tmp_path, seed):
    """For each thread at most one event is in the words and not in the recording, or a realloc's two."""
    threads = [1, 3, 8][seed]
    checker = Checker(tmp_path)
    path = tmp_path / "killed.cairn"
    cairn = subprocess.Popen([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "random_heap", str(seed + 1),
                              str(threads), "100000000", "cr"], env=environment(checker.env),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with open(checker.sums, "r+b") as file, mmap.mmap(file.fileno(), FILE_BYTES) as memory:
            wait_until(lambda: struct.unpack_from("<Q", memory, 8 * 5)[0] > 500 * (seed + 1), "events")
        os.kill(checker.listed()[1][0], signal.SIGKILL)
        finished = cairn.communicate(timeout=60)
    finally:
        cairn.kill()
    recording = Recording(path, subprocess.CompletedProcess([], cairn.returncode, *finished))
    kinds, _, stale = checker.listed()
    assert stale == 0
    live = sum(blocks for blocks, _ in kinds.values())
    assert live > 50
    assert abs(recording.totals["live_blocks"] - live) <= 2 * threads
    for kind in range(1, KINDS):
        leaked = recording.costs_within(f"make_{kind}").get("live_blocks", 0)
        assert abs(leaked - kinds[kind][0]) <= 2 * threads
