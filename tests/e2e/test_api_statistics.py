# SPDX-License-Identifier: MIT
"""include/cairn.h: the statistics that a program gets, compared with its real operations."""
import os
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, assert_totals, environment
from test_program_api import EXAMPLES, truth_of

FIELDS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "live_blocks",
          "live_bytes")

# The operations of statistics.c in each of its scopes.
EXPECTED = {
    "nothing": [(0, 0, 0, 0, 0, 0, 0)],
    "pairs": [(100000, 2400000, 100000, 2400000, 100000, 0, 0)],
    "mixed": [(4, 457, 2, 150, 0, 2, 307)],
    "whole": [(100004, 2400457, 100002, 2400150, 100000, 2, 307)],
    "negative": [(0, 0, 1, 300, 0, -1, -300)],
    "child": [(2, 42, 1, 40, 1, 1, 2)],
    "own": [(1000, 1000 * size, 0, 0, 0, 1000, 1000 * size) for size in (10, 11, 12)],
    "allocated": [(3000, 33000, 0, 0, 0, 3000, 33000)],
    "freed": [(3000, 33000, 3000, 33000, 0, 0, 0)],
    "main": [(0, 0, 0, 0, 0, 0, 0)],
}


def said(output):
    """{label: sorted tuples}, and whether each was recorded."""
    found, recorded = {}, set()
    for line in output.decode().splitlines():
        label, is_recorded, *values = line.split()
        found.setdefault(label, []).append(tuple(map(int, values)))
        recorded.add(int(is_recorded))
    return {label: sorted(values) for label, values in found.items()}, recorded


def test_scopes_count_what_the_program_does(record):
    recording = record(PROGRAMS / "api_statistics", is_compared=False)
    found, recorded = said(recording.finished.stdout)
    assert recorded == {1}
    assert found == EXPECTED


def test_a_question_within_a_realloc(record):
    """Its answer waits for no other event."""
    env = {"LD_PRELOAD": str(PROGRAMS / "libhandover_allocator.so")}
    recording = record(PROGRAMS / "asks_within", env=env, is_compared=False)
    assert recording.finished.stdout == b"1 1\n"


def test_nobody_counts_without_a_recorder(scratch):
    done = subprocess.run([PROGRAMS / "api_statistics"], check=True, capture_output=True, cwd=scratch,
                          env=environment(), timeout=60)
    found, recorded = said(done.stdout)
    assert recorded == {0}
    assert {value for values in found.values() for value in values} == {(0,) * len(FIELDS)}


def test_counts_are_not_known_of_a_sampled_run(record):
    """Most blocks are only counted, and not by thread: an exact count would be a guess."""
    recording = record(PROGRAMS / "api_statistics", is_compared=False, options=["--sample"])
    found, recorded = said(recording.finished.stdout)
    assert recorded == {0}
    assert {value for values in found.values() for value in values} == {(0,) * len(FIELDS)}
    recording = record(PROGRAMS / "api_peaks", is_compared=False, options=["--sample"])
    found, unanswered = peaks_said(recording.finished.stdout)
    assert found == {} and {value for _, value in unanswered} == {0}
    assert record(PROGRAMS / "api_rust", is_compared=False, options=["--sample"]).finished.returncode == 0


# The operations of peaks.c in each of its scopes.
PEAKS = {"nothing": [0], "pairs": [48], "mixed": [3000], "lower": [0], "resized": [1100], "inner": [500],
         "outer": [600], "early": [150], "late": [50], "begun": [8], "own": [10000, 11000, 12000, 13000],
         "child": [40], "parent": [60]}


def peaks_said(output):
    """{label: sorted bytes} of the answered scopes, and the labels of the others."""
    found, unanswered = {}, []
    for line in output.decode().splitlines():
        label, is_answered, value = line.split()
        if is_answered == "1":
            found.setdefault(label, []).append(int(value))
        else:
            unanswered.append((label, int(value)))
    return {label: sorted(values) for label, values in found.items()}, unanswered


@pytest.mark.parametrize("options", [[], ["--blocks"]])
def test_peaks_within_pieces_of_work(record, options):
    recording = record(PROGRAMS / "api_peaks", is_compared=False, options=options)
    found, unanswered = peaks_said(recording.finished.stdout)
    # Never too low; frees of other threads may count some milliseconds late.
    elsewhere, = found.pop("freed_elsewhere")
    assert 1000000 <= elsewhere < 1610000
    assert found == PEAKS
    assert unanswered == [("ended", 0), ("left", 0), ("inherited", 0)]


def test_nobody_tells_a_peak_without_a_recorder(scratch):
    done = subprocess.run([PROGRAMS / "api_peaks"], check=True, capture_output=True, cwd=scratch,
                          env=environment(), timeout=60)
    found, unanswered = peaks_said(done.stdout)
    assert found == {} and {value for _, value in unanswered} == {0}


def test_asserts_hold_and_the_recording_agrees(record):
    assert_totals(record(PROGRAMS / "api_budget"), truth_of(EXAMPLES / "budget.c"))


@pytest.mark.parametrize("word, said", [
    ("over", b": 1 allocations; at most 0 allowed\n"),
    ("high", b": 24 bytes at once; at most 23 allowed\n")])
def test_an_assert_that_fails_says_how_much_it_was(record, word, said):
    recording = record(PROGRAMS / "api_budget", word, is_compared=False)
    assert recording.finished.returncode == -signal.SIGABRT
    assert b"budget.c:" in recording.finished.stderr
    assert said in recording.finished.stderr


@pytest.mark.parametrize("word", ["over", "high"])
def test_an_assert_does_not_fail_without_a_recorder(scratch, word):
    done = subprocess.run([PROGRAMS / "api_budget", word], check=False, capture_output=True,
                          cwd=scratch, env=environment(), timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


STRICT = {"c": ["-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wundef"],
          "c++": ["-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast", "-Wundef"]}


@pytest.mark.parametrize("compiler, language, standard", [
    ("gcc", "c", "c99"), ("clang", "c", "c11"), ("g++", "c++", "c++11"), ("clang++", "c++", "c++20")])
@pytest.mark.parametrize("is_strict", [False, True])
def test_the_asserts_compile_without_a_warning(scratch, compiler, language, standard, is_strict):
    """The usual warnings for the header itself, and strict warnings for a program that includes it:
    the header must not cause any of them."""
    options = STRICT[language] if is_strict else ["-DCAIRN_SHOW_WARNINGS"]
    source = scratch / "probe.c"
    source.write_text("#define CAIRN_ASSERTS\n#include <cairn.h>\n#include <stdlib.h>\n"
                      "void probe(void *block);\nvoid probe(void *block)\n{\n"
                      "    cairn_pool_alloc(\"a\", block, 1);\n    cairn_event(\"b\", 2);\n"
                      "    CAIRN_ASSERT_AT_MOST(live_bytes, 0, free(block));\n"
                      "    CAIRN_ASSERT_PEAK_AT_MOST(1 << 20, free(malloc(1)));\n}\n")
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                           "-pedantic", *options, f"-I{ROOT / 'include'}", "-c", "-o",
                           scratch / "probe.o", source], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_link_time_optimization_keeps_the_note(record, scratch):
    """Two files, so that there are two notes and one pointer; the library is loaded late."""
    for name in ("late.c", "api_part.c"):
        subprocess.run(["gcc", "-O2", "-flto", "-c", f"-I{ROOT / 'include'}", "-o", scratch / f"{name}.o",
                        ROOT / "tests" / "programs" / "api" / name], check=True)
    program = scratch / "late"
    subprocess.run(["gcc", "-O2", "-flto", "-Wl,--gc-sections", "-o", program, scratch / "late.c.o",
                    scratch / "api_part.c.o", "-ldl"], check=True)
    assert record(program, is_compared=False).finished.returncode == 7


def test_a_question_within_a_question(record):
    """A handler asks while its thread waits for an answer: both get an answer."""
    recording = record(PROGRAMS / "api_interrupted", is_compared=False)
    assert recording.finished.returncode == 0


def test_a_killed_recorder_answers_nobody(scratch):
    """The program kills its recorder and asks: the answer says so, and the program continues."""
    source = scratch / "asks.c"
    source.write_text(r'''
#include <cairn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    struct cairn_stats stats;
    const pid_t recorder = getppid();
    free(malloc(1));
    const int was_answered = cairn_stats(CAIRN_PROCESS, &stats);
    kill(recorder, SIGKILL);
    while (getppid() == recorder) { // it is dead when we have another parent
    }
    const int is_answered = cairn_stats(CAIRN_PROCESS, &stats);
    free(malloc(1));
    const int file = open(arguments[count - 1], O_WRONLY);
    return write(file, was_answered && !is_answered ? "right" : "wrong", 5) != 5;
}
''')
    program, reported = scratch / "asks", scratch / "told"
    subprocess.run(["gcc", f"-I{ROOT / 'include'}", "-o", program, source, "-ldl"], check=True)
    os.mkfifo(reported)
    recorder = subprocess.Popen([CAIRN, "record", "-q", "-o", scratch / "r.cairn", "--", program, reported],
                                env=environment(), cwd=scratch)
    assert reported.read_text() == "right"
    assert recorder.wait(60) == -signal.SIGKILL
