# SPDX-License-Identifier: MIT
"""Names that come from a cache, or later than the recording: what debug information says of a program
that was stripped, moved or removed since."""
import os
import re
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, environment

SOURCE = """
#include <stdlib.h>
static inline void *innermost(size_t size) { return malloc(size); }
__attribute__((noinline)) static void *middle(size_t size) { void *p = innermost(size); __asm__ volatile("" ::: "memory"); return p; }
int main(void) { void *p = middle(4321); __asm__ volatile("" :: "r"(p)); return 0; }
"""
NAMED = [("innermost", 3), ("middle", 4), ("main", 5)]


def run(*command, **settings):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True,
                          timeout=120, **settings).stdout


def build_id_of(program):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", program))[1]


def debug_name(build_id):
    return f".build-id/{build_id[:2]}/{build_id[2:]}.debug"


class Split:
    """A stripped program, and its debug information elsewhere."""

    def __init__(self, folder, *flags):
        (folder / "app").mkdir(parents=True)
        source = folder / "app.c"
        source.write_text(SOURCE)
        self.program = folder / "app" / "app"
        self.debug = folder / "app.debug"
        run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", *flags, source, "-o", self.program)
        run("objcopy", "--only-keep-debug", self.program, self.debug)
        run("strip", self.program)

    def offer(self, debug_dir):
        """Puts the debug file where build-ids lead."""
        target = debug_dir / debug_name(build_id_of(self.program))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.debug, target)
        return target


@pytest.fixture
def split(scratch):
    return Split(scratch / "split")


@pytest.fixture
def cache(scratch):
    """An environment with a cache of its own."""
    (scratch / "xdg").mkdir()
    return {"XDG_CACHE_HOME": str(scratch / "xdg")}


def names_of(recording, *options):
    """Functions and lines of the one stack that asked for 4321 bytes, within the program."""
    stacks = [frames for costs, frames in stacks_of(recording, *options)
              if costs["allocated_bytes"] == 4321]
    assert len(stacks) == 1
    return [(frame["function"], frame["line"]) for frame in stacks[0]
            if frame["module"].endswith("app")][:3]


def stacks_of(recording, *options):
    for site in recording.report_json(*options)["top"]["allocations"]:
        for stack in site["stacks"]:
            yield stack["costs"], stack["frames"]


def test_what_was_read_once_is_known_when_the_debug_file_is_gone(record, split, cache):
    linked = split.program.parent / "app.debug"
    shutil.copy(split.debug, linked)
    run("objcopy", f"--add-gnu-debuglink={linked}", split.program)
    assert names_of(record(split.program, env=cache)) == NAMED
    os.remove(linked)
    again = record(split.program, env=cache)
    assert names_of(again) == NAMED
    (module,) = [module for module in again.report["modules"] if module["path"] == str(split.program)]
    assert (module["symbol_source"], module["symbol_advice"]) == (str(linked), "")
    assert names_of(record(split.program)) != NAMED


def test_a_program_without_a_build_id_that_was_built_again_is_read_again(record, scratch, cache):
    other = SOURCE.replace("middle", "central")
    source = scratch / "app.c"
    for text in (SOURCE, other, other):
        source.write_text(text)
        run("gcc", "-O2", "-g", "-Wl,--build-id=none", source, "-o", scratch / "app")
        want = [(name.replace("middle", "central") if text is other else name, line)
                for name, line in NAMED]
        assert names_of(record(scratch / "app", env=cache)) == want


@pytest.mark.parametrize("damage", [b"", b"cairnnam", b"\xff" * 5000])
def test_a_damaged_cache_is_made_again(record, split, cache, scratch, damage):
    linked = split.program.parent / "app.debug"
    shutil.copy(split.debug, linked)
    run("objcopy", f"--add-gnu-debuglink={linked}", split.program)
    names_of(record(split.program, env=cache))
    (kept,) = (scratch / "xdg/cairn").glob(build_id_of(split.program) + "*")
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert names_of(record(split.program, env=cache)) == NAMED
    assert kept.read_bytes() == whole
