# SPDX-License-Identifier: MIT
"""Stacks equal the truth: whole stacks at chosen points agree with gdb's, frame by frame: function,
file, line, module and inlined functions."""
import json
import os
import re
import subprocess

import pytest

from cairn_run import PROGRAMS, some_of, environment, ROOT

SHARED = PROGRAMS / "libshared_part.so"


def gdb_stacks(scratch, command, functions=("chosen_point",)):
    """{size: frames} at every call of the functions, as gdb sees them."""
    out = scratch / "gdb.json"
    run = subprocess.run(
        ["gdb", "-batch", "-nx", "-x", ROOT / "tests" / "e2e" / "gdb_stacks.py", "--args", *command],
        env=environment({"GDB_STACKS_OUT": str(out), "GDB_STACKS_AT": ":".join(functions)}),
        capture_output=True, timeout=120, check=False)
    assert out.exists(), run.stdout + run.stderr
    return {int(size): frames for size, frames in json.loads(out.read_text()).items()}


GROUPS = re.compile(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]")


def plain_name(name):
    """A function's name without the parts that two demanglers write differently: parameters,
    template arguments, return types, numbers of lambdas, clone suffixes, names of trait
    implementations."""
    name = name.replace("->", "")
    while GROUPS.search(name):
        name = GROUPS.sub("", name)
    words = [word for word in name.split() if word != "const"]
    return re.sub(r"\.(constprop|isra|part|cold|lto_priv)\.?\d*|@+[\w.]+", "",
                  words[-1] if words else "")


def own_part(frames, modules):
    """Frames in the test's own code, where all facts are known; only modules for the others."""
    facts = []
    for frame in frames:
        module = os.path.basename(frame["module"])
        if module in modules and frame["file"]:
            facts.append((plain_name(frame["function"]).split("::")[-1], os.path.basename(frame["file"]),
                          frame["line"], module, frame["inlined"]))
        else:
            facts.append((module,))
    return facts


def assert_same_stacks(recording, expected, modules, chosen="chosen_point"):
    """Assert that every stack of gdb is in the recording, from the chosen function's caller
    outwards."""
    assert expected
    for size, frames in expected.items():
        found = recording.stack_of_size(size)
        names = [plain_name(frame["function"]).split("::")[-1] for frame in found]
        assert chosen in names, (size, names)
        found = found[names.index(chosen) + 1:]
        assert own_part(found, modules) == own_part(frames, modules), size


@pytest.mark.parametrize("name, sizes, extra", [
    ("calls", range(7001, 7005), ()),
    ("calls_apart_pie", range(7001, 7005), ()),
    pytest.param("calls_apart_fixed", range(7001, 7005), (), marks=pytest.mark.nightly),
    pytest.param("calls_writable", range(7001, 7005), (), marks=pytest.mark.nightly),
    ("objects", range(7101, 7107), ()),
    ("traits", range(7201, 7205), ()),
    ("shared_user", range(7301, 7303), ("libshared_part.so",)),
])
def test_stacks_agree_with_gdb(record, scratch, name, sizes, extra):
    recording = record(PROGRAMS / name)
    expected = gdb_stacks(scratch, [PROGRAMS / name])
    assert sorted(expected) == list(sizes)
    assert_same_stacks(recording, expected, {name, *extra})
    for size, frames in expected.items():
        outermost = [frame["function"] for frame in recording.stack_of_size(size)]
        if any(frame["function"] == "main" for frame in frames):
            assert any(plain_name(function).endswith("main") for function in outermost), size


def test_inlined_frames_are_shown_as_such(record):
    frames = record(PROGRAMS / "objects").stack_of_size(7103)
    chain = [(plain_name(frame["function"]), frame["inlined"]) for frame in frames]
    start = [name for name, _ in chain].index("chosen_point")
    assert chain[start + 1:start + 5] == [
        ("shop::inlined_twice", True), ("shop::inlined_once", True),
        ("shop::with_inlined", False), ("main", False)]


def test_a_plugin_at_the_address_of_another_keeps_its_names(record, scratch):
    plugins = [PROGRAMS / "libplugin_first.so", PROGRAMS / "libplugin_other.so"]
    recording = record(PROGRAMS / "plugins", *plugins)
    assert recording.finished.returncode == 0, "the plugins did not share an address"
    for size, chosen, functions in ((7401, "made_by_first", plugins[0]),
                                    (7402, "made_by_other", plugins[1]),
                                    (7403, "made_by_first", plugins[0])):
        stacks = [frames for costs, frames in recording.stacks()
                  if any(frame["function"] == chosen for frame in frames)]
        assert stacks, (size, chosen)
        for frames in stacks:
            assert [frame["function"] for frame in frames][:3] == [chosen, "plugin_entry", "use"]
            assert frames[0]["module"] == frames[1]["module"] == str(functions)
    made = recording.costs_within("made_by_first")
    assert (made["allocations"], made["allocated_bytes"]) == (2, 7401 + 7403)
    made = recording.costs_within("made_by_other")
    assert (made["allocations"], made["allocated_bytes"]) == (1, 7402)
    expected = gdb_stacks(scratch, [PROGRAMS / "plugins", *plugins],
                          ("made_by_first", "made_by_other"))
    assert sorted(expected) == [7401, 7402, 7403]
    frames = recording.stack_of_size(7402)
    names = {"plugins", *(plugin.name for plugin in plugins)}
    assert own_part(frames[1:], names) == own_part(expected[7402], names)


def test_guessed_frames_in_a_library_that_is_being_closed_do_no_harm(record):
    recording = record(PROGRAMS / "guesses", PROGRAMS / "libplugin_first.so", "plugin_entry",
                       is_compared=False)
    assert recording.finished.returncode == 0
    blocks = int(recording.finished.stdout)
    costs = recording.costs_within("call_without_table")
    assert blocks > 0
    assert (costs["allocations"], costs["allocated_bytes"]) == (blocks, 512 * blocks)


@pytest.mark.parametrize("seed", some_of(range(1, 5), 4))
def test_no_event_is_lost_to_data_that_looks_like_frames(record, seed):
    recording = record(PROGRAMS / "junk_frames", seed)
    costs = recording.costs_within("call_without_table")
    assert (costs["allocations"], costs["allocated_bytes"]) == (20_000, 512 * 20_000)
    assert [name for name in recording.notes if name.startswith("lost")] == []


@pytest.mark.parametrize("depth, max_frames", [(200, None), (10_000, None), (100_000, None), (10_000, 256),
                                               (10_000, 1536), (1000, 16)])
def test_deep_recursion_keeps_both_ends(record, depth, max_frames):
    options = ["--max-frames", max_frames] if max_frames else []
    recording = record(PROGRAMS / "deep", depth, options=[str(word) for word in options])
    frames = [frame["function"] for frame in recording.stack_of_size(7501)]
    assert frames[:2] == ["at_the_bottom", "descend"]
    assert "main" in frames
    above_main = frames.index("main")
    assert frames[above_main - 1] == "descend"
    limit = max_frames or recording.report["run"]["max_frames"]
    other = [name for name in frames[1:above_main] if name != "descend"]
    if depth + 5 < limit:
        assert (frames.count("descend"), other) == (depth + 1, [])
    else:
        assert len(other) == 1, "one mark where frames were omitted"
        # The truncation moves in steps of up to 64 frames, so that a recursion keeps its nodes.
        assert limit - min(64, limit // 8) <= len(frames) <= limit
        assert recording.notes["cut_stacks"] >= 1


def symbol_starts(program):
    """{name without clone suffix: address}"""
    listing = subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True, check=True)
    return {plain_name(line.split()[2]): int(line.split()[0], 16) for line in listing.stdout.splitlines()
            if line.split()[1] in "tT" and ".cold" not in line}


@pytest.mark.parametrize("options", [[], ["--no-symbols"]], ids=["named", "deferred"])
def test_functions_without_a_name_are_distinguished(record, scratch, options):
    """The address where a function begins names it; code that allocates from several places is one
    function."""
    program = scratch / "calls"
    # Also without a build-id, which could give names of the same program from other sources.
    subprocess.run(["strip", "--remove-section=.note.gnu.build-id", "-o", program, PROGRAMS / "calls"], check=True)
    starts = symbol_starts(PROGRAMS / "calls")
    recording = record(program, options=options)
    named = record(PROGRAMS / "calls")
    for size in range(7001, 7005):
        expected = [f"calls+{starts[frame['function']]:#x}" for frame in named.stack_of_size(size)
                    if frame["module"] == str(PROGRAMS / "calls") and not frame["inlined"]]
        found = [frame["function"] for frame in recording.stack_of_size(size) if frame["module"] == str(program)]
        assert found == expected and len(set(found)) > 2, size


def executables(recording):
    return [process["executable"] for process in recording.report["processes"]]


@pytest.mark.parametrize("way", some_of(["path", "relative", "search", "loader"], 3))
def test_a_program_is_called_by_the_name_it_was_executed_by(record, scratch, monkeypatch, way):
    """Like redis-server, a symbolic link to redis-check-rdb."""
    link = scratch / "served"
    link.symlink_to(PROGRAMS / "calls")
    monkeypatch.chdir(scratch)
    command = {"path": [link], "relative": ["./served"],
               "search": ["/usr/bin/env", f"PATH={scratch}", "served"],
               "loader": ["/lib64/ld-linux-x86-64.so.2", link]}[way]
    recording = record(*command)
    assert executables(recording)[-1] == str(link)
    modules = {frame["module"] for _, frames in recording.stacks() for frame in frames
               if frame["function"] == "chosen_point"}
    assert modules == {str(link)}


def test_what_runs_a_script_is_not_called_like_the_script(record, scratch):
    script = scratch / "script"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    (name,) = executables(record(script))
    assert os.path.samefile(name, "/bin/sh")
