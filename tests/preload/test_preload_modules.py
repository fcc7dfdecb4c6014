# SPDX-License-Identifier: MIT
"""Code that is loaded and unloaded, runtimes of plugins, allocators of others."""
import functools
import os
import subprocess

import pytest

from consumer import LIBRARY, PROGRAMS, Session
from journal import recorded, expected

JEMALLOC = "/usr/lib/{}-linux-gnu/libjemalloc.so.2".format(os.uname().machine)


def program(name):
    return os.path.join(PROGRAMS, name)


@functools.cache
def functions_of(path):
    rows = subprocess.run(["nm", "--defined-only", "-S", path], capture_output=True, text=True,
                          check=True).stdout.splitlines()
    parts = [row.split() for row in rows]
    return [(int(p[0], 16), int(p[0], 16) + int(p[1], 16), p[3]) for p in parts if len(p) == 4]


@functools.cache
def function_at(path, offset):
    """The symbol that holds a return address of a file, by nm."""
    for start, end, name in functions_of(path):
        if start < offset <= end:
            return name
    return None


def test_plugins_at_the_same_place_keep_their_own_names():
    plugins = [program("plugin_a.so"), program("plugin_b.so")]
    with Session() as session:
        result = session.run(program("plugins"), "plain", *plugins)
        places = result.stdout.split()
        assert result.returncode == 0 and len(places) == 6
        assert len(set(places)) == 1, "the second is loaded where the first was"
        (process,) = session.processes
        seen = [[(os.path.basename(path), function_at(path, offset))
                 for path, offset in event.frames[:2]]
                for event in process.events if event.kind == "alloc" and event.size in (100, 101)
                and event.frames[0][0] in plugins]
        first = [("plugin_a.so", "first_function"), ("plugin_a.so", "plugin_entry")]
        second = [("plugin_b.so", "second_function"), ("plugin_b.so", "plugin_entry")]
        assert seen == [first, second] * 3


def test_deepbound_libraries_pass_by_without_harm():
    with Session() as session:
        result = session.run(program("plugins"), "deep", program("plugin_a.so"))
        assert (result.returncode, result.stderr) == (0, "")
        assert session.lost() == {}


def test_libraries_in_namespaces_of_their_own_are_recorded():
    with Session() as session:
        result = session.run(program("plugins"), "apart", program("plugin_a.so"))
        assert (result.returncode, result.stderr) == (0, "")
        assert session.lost() == {"late_namespaces": 3}
        (process,) = session.processes
        seen = [[(os.path.basename(path), function_at(path, offset)) for path, offset in event.frames[:2]]
                for event in process.events if event.kind == "alloc" and event.size == 100]
        assert seen == [[("plugin_a.so", "first_function"), ("plugin_a.so", "plugin_entry")]] * 3


def test_a_plugin_with_its_own_cpp_runtime_throws_and_is_recorded():
    with Session() as session:
        result = session.run(program("plugins"), "plain", program("cpp_plugin.so"))
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        sizes = [e.size for e in process.events
                 if e.kind == "alloc" and e.frames[0][0] == program("cpp_plugin.so")]
        assert sizes == [50, 200, 100, 1] * 3


def test_operators_of_an_allocator_that_brings_its_own_are_recorded_once():
    with Session() as session:
        env = session.environment(LD_PRELOAD=f"{LIBRARY}:{JEMALLOC}")
        result = session.run(program("operators"), env=env)
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert process.texts["allocator"].decode() == JEMALLOC
        assert recorded(process.events) == expected(result.stdout)
        assert {e.frames[0][0] for e in process.events if e.kind == "alloc" and e.size == 11} == {
            "<main>"}


@pytest.mark.parametrize("name, how", [("safe_allocator", "(GNU_HASH)"),
                                       ("old_tables_allocator", "(HASH)"),
                                       ("chosen_allocator", " IFUNC ")])
def test_the_next_allocator_is_found_by_whatever_tables_it_has(name, how):
    allocator = program(f"{name}.so")
    listing = subprocess.run(["readelf", "-W", "--dynamic", "--dyn-syms", allocator],
                             capture_output=True, text=True, check=True).stdout
    assert how in listing, "the library is not what this is about"
    with Session() as session:
        result = session.run(program("lent_address"),
                             env=session.environment(LD_PRELOAD=f"{LIBRARY}:{allocator}"))
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert process.texts["allocator"].decode() == allocator
        assert [e.size for e in process.events if e.kind == "alloc"] == [100, 200, 300]


@pytest.mark.parametrize("first", [True, False])
def test_constructors_and_destructors_of_others_are_recorded(first):
    early = program("early.so")
    with Session() as session:
        order = [early, LIBRARY] if first else [LIBRARY, early]
        env = session.environment(LD_PRELOAD=":".join(order))
        result = session.run(program("processes"), "other", env=env)
        assert result.returncode == 5
        (process,) = session.processes
        sizes = [e.size for e in process.events if e.kind == "alloc"]
        assert [size for size in sizes if size in (3131, 111, 3232)] == [3131, 111, 3232]
        assert process.texts["executable"].decode() == program("processes")


def test_no_frame_of_ours_is_in_any_stack():
    with Session() as session:
        for name in ("functions", "operators"):
            session.run(program(name))
        for process in session.processes:
            paths = {path for event in process.events for path, _ in event.frames}
            assert not any(path and "cairn" in os.path.basename(path) for path in paths), paths


@pytest.mark.parametrize("depth,max_frames", [(10, 512), (200, 512), (10000, 512), (10000, 16),
                                              (3000, 4096)])
def test_deep_stacks_keep_both_ends(depth, max_frames):
    with Session(max_frames=max_frames) as session:
        assert session.run(program("deep_stack"), str(depth)).returncode == 0
        (process,) = session.processes
        (event,) = [e for e in process.events if e.kind == "alloc" and e.size == 700]
        path = program("deep_stack")
        names = [function_at(path, offset) if module == "<main>" else module
                 for module, offset in event.frames]
        assert names[0] == "recurse" and "main" in names and names[-1] == "_start"
        limit = min(max_frames, 2048)
        if depth < limit:
            assert names.count("recurse") == depth + 1 and "..." not in names
        else:
            assert limit // 2 < len(names) <= limit and names.count("...") == 1
            assert session.counters()["cut_stacks"] >= 1
        assert session.lost() == {}
