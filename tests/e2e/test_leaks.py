# SPDX-License-Identifier: MIT
"""The blocks of a language's run-time are not leaks of the program. They are reported as
suppressed, and hide none."""
import json
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, environment

SHORT = "the first line of a file\n"


def report(path, *options):
    run = subprocess.run([CAIRN, "report", "--json", "-n", "0", *options, path], check=True,
                         capture_output=True, env=environment(), timeout=120)
    return json.loads(run.stdout)


def held_to(path, limit):
    run = subprocess.run([CAIRN, "check", "--max-leaked", str(limit), path], check=False,
                         capture_output=True, env=environment(), timeout=120)
    return run.returncode


@pytest.fixture(name="leaks_of")
def make_leaks_of(record, scratch):
    (scratch / "short.txt").write_text(SHORT, encoding="ascii")

    def leaks_of(program, *words):
        recording = record(PROGRAMS / program, *words, is_compared=False)
        assert recording.finished.returncode == 0, recording.finished.stderr
        reported = report(recording.path)
        everything = report(recording.path, "--no-builtin-suppressions")
        for cost in ("live_bytes", "live_blocks"):
            assert reported["totals"][cost] + reported["selection"]["suppressed"][cost] == everything["totals"][cost]
        return recording.path, reported
    return leaks_of


@pytest.mark.parametrize("program", ["greeting", "greeting_cpp", "greeting_rust", "empty",
                                     "empty_cpp", "empty_rust", "static_program"])
def test_a_program_that_prints_leaks_nothing(leaks_of, program):
    path, reported = leaks_of(program)
    left = [[frame["function"] for frame in stack["frames"]]
            for site in reported["top"]["live_bytes"] for stack in site["stacks"]]
    assert (reported["totals"]["live_bytes"], left) == (0, [])
    assert held_to(path, 0) == 0
    if program not in ("empty", "empty_rust"):
        assert reported["selection"]["suppressed"]["live_bytes"] > 0


@pytest.mark.parametrize("program, words, function, size", [
    ("greeting", ["module", str(PROGRAMS / "libkeeper.so")], "keep", 12345),
    ("greeting_cpp", ["block"], "main", 777),
    ("greeting_rust", ["block"], "greeting_rust::main", 777),
])
def test_what_the_program_leaks_is_reported(leaks_of, program, words, function, size):
    path, reported = leaks_of(program, *words)
    assert (reported["totals"]["live_bytes"], reported["totals"]["live_blocks"]) == (size, 1)
    names = [frame["function"] for frame in reported["top"]["live_bytes"][0]["stacks"][0]["frames"]]
    assert function in names
    assert (held_to(path, size - 1), held_to(path, size)) == (1, 0)


def test_a_file_that_is_leaked_is_reported_by_its_own_block(leaks_of, scratch):
    path, reported = leaks_of("greeting", "file", str(scratch / "short.txt"))
    assert reported["totals"]["live_blocks"] == 1
    names = [frame["function"] for frame in reported["top"]["live_bytes"][0]["stacks"][0]["frames"]]
    assert "leak_a_file" in names
    assert held_to(path, 0) == 1
