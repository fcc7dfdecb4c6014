# SPDX-License-Identifier: MIT
"""include/cairn.h: allocations of programs' own allocators, and the marks that they set.

The examples, and the other ways to contain the header: in an executable at a fixed address, in a
linked, a static and a loaded library. Bare, each has the same behaviour and output.
"""
import re
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, assert_totals, environment

TRUTH = re.compile(r"TRUTH: *(.*)")
EXAMPLES = ROOT / "examples"
API = ROOT / "tests" / "programs" / "api"


def truth_of(source):
    return {key: int(value) for line in source.read_text().splitlines() if (match := TRUTH.search(line))
            for key, value in (word.split("=") for word in match[1].split())}


def sum_within(recording, functions):
    """The costs of all stacks whose innermost frame, except the header's and a pool's, matches."""
    total = {}
    for costs, frames in recording.stacks():
        names = [frame["function"] for frame in frames 
                 if not frame["function"].startswith(("cairn_report_", "cairn_pool_", "[pool "))]
        if names and re.search(functions, names[0]):
            for name, value in costs.items():
                total[name] = total.get(name, 0) + value
    return total


@pytest.mark.parametrize("program, source", [
    ("api_pool", EXAMPLES / "pool.c"), ("api_fixed", EXAMPLES / "pool.c"),
    ("api_heaptrack", API / "heaptrack_names.c")])
def test_totals(record, program, source):
    assert_totals(record(PROGRAMS / program), truth_of(source))


@pytest.mark.parametrize("program, source, functions", [
    ("api_arena", EXAMPLES / "arena.cpp", r"Arena::do_allocate"),
    ("api_rust", EXAMPLES / "pool.rs", r"::take$")])
def test_stacks(record, program, source, functions):
    """Only the blocks of the arena: languages' run-times allocate as well."""
    expected = truth_of(source)
    expected.pop("peak_bytes", None)
    found = sum_within(record(PROGRAMS / program), functions)
    assert {cost: found[cost] for cost in expected} == expected


@pytest.mark.parametrize("program, arguments", [
    ("api_uses_shared", []), ("api_uses_static", []), ("api_loader", [PROGRAMS / "libapi_shared.so"])])
def test_libraries(record, scratch, program, arguments):
    recording = record(PROGRAMS / program, *arguments, is_compared=False)
    assert recording.finished.returncode == 7
    expected = truth_of(API / "part_user.c")
    found = sum_within(recording, r"^part_work$")
    assert {cost: found[cost] for cost in expected} == expected
    bare = subprocess.run([PROGRAMS / program, *arguments], check=False, cwd=scratch,
                          env=environment(), capture_output=True)
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, b"", b"")


def test_marks(record):
    marks = record(PROGRAMS / "api_pool").report["marks"]
    assert [(mark["kind"], mark["text"]) for mark in marks] == [("phase", "filling"), ("mark", "filled")]
    assert marks[0]["time_ms"] <= marks[1]["time_ms"]
    text = subprocess.run([CAIRN, "report", "--all", record(PROGRAMS / "api_pool").path], capture_output=True,
                          check=True, env=environment()).stdout.decode()
    assert re.search(r"MARKS\n +\S+ \S+ +filling\n +\S+ \S+ +filled\n", text), text


def test_the_mark_is_at_its_moment(record):
    """The mark is between the two blocks of the arena's peak and the first free."""
    recording = record(PROGRAMS / "api_arena")
    (mark,) = recording.report["marks"]
    assert (mark["kind"], mark["text"]) == ("mark", "two blocks")
    assert mark["time_ms"] <= recording.totals["runtime_ms"]


def test_blocks_of_a_pool_do_not_meet_the_block_that_holds_them(record):
    """The first block of the pool has the address of the memory that malloc returned for the
    pool."""
    recording = record(PROGRAMS / "api_pool")
    assert recording.totals["unknown_frees"] == 0
    assert recording.totals["live_bytes"] == 96


def test_single_blocks_have_their_own_addresses(record):
    recording = record(PROGRAMS / "api_pool", options=["--blocks"])
    blocks = recording.report_json("--blocks")["blocks"]
    assert sorted(block["size_bytes"] for block in blocks["end"]) == [32, 64]
    holder = next(block for block in blocks["peak"] if block["size_bytes"] == 32 * 128)
    assert min(block["address"] for block in blocks["end"]) == holder["address"]


@pytest.mark.parametrize("compiler, language, standard", [
    ("gcc", "c", "gnu99"), ("clang", "c", "c99"), ("gcc", "c", "c11"), ("gcc", "c", "c17"),
    ("g++", "c++", "c++11"), ("clang++", "c++", "c++11"), ("g++", "c++", "c++20")])
def test_the_header_compiles_without_a_warning(scratch, compiler, language, standard):
    source = scratch / "probe.c"
    source.write_text("#include <cairn.h>\nint probe(void);\nint probe(void)\n{\n"
                      "    cairn_report_alloc(\"\", 1);\n    return cairn_is_recording();\n}\n")
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror",
                           "-pedantic", f"-I{ROOT / 'include'}", "-fsyntax-only", source],
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
