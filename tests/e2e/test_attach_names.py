# SPDX-License-Identifier: MIT
"""Stacks through code without unwind tables (generated, or of a library) have the same names however the
program is recorded: from the start, with all allocators, or attached."""
import os

import pytest

from cairn_run import PROGRAMS
from conversation import Conversation
from test_attach import Attachable
from test_attach_programs import NODE
from test_jit import Serving
from waiting import read_until, wait_until

AROUND = PROGRAMS / "around"
GENERATED = "(generated)"
EXPECTED = {
    "generated": [("around_inner", "PART"), (GENERATED, ""), ("around_outer", "PART"), ("main", "around")],
    "plain": [("around_inner", "PART"), ("around_plain", "libaround_plain.so"), ("around_outer", "PART"),
              ("main", "around")],
}


def named_stack(recording):
    """(function, module) of the frames of the only block, up to main."""
    frames = [(frame["function"] if frame["module"] else GENERATED, os.path.basename(frame["module"]))
              for frame in recording.stack_of_size(7501)]
    return frames[:[function for function, _ in frames].index("main") + 1]


def started(scratch, program, *options):
    with Conversation(scratch / "started.cairn", options, program) as conversation:
        conversation.do("r")
        return conversation.end()


def attached(scratch, program):
    with Attachable(scratch, program) as attachable:
        attachable.attach()
        attachable.do("r")
        return attachable.detach()


@pytest.mark.parametrize("late", [[], ["late"]], ids=["early", "late"])
@pytest.mark.parametrize("part", ["libaround_part.so", "libaround_bare.so"])
@pytest.mark.parametrize("middle", EXPECTED)
def test_a_stack_has_the_same_names_in_all_ways(scratch, middle, part, late):
    program = [AROUND, middle, PROGRAMS / part, *late]
    expected = [(function, part if module == "PART" else module) for function, module in EXPECTED[middle]]
    assert named_stack(started(scratch, program)) == expected
    assert named_stack(started(scratch, program, "--all-allocators")) == expected
    assert named_stack(attached(scratch, program)) == expected


@pytest.mark.parametrize("how", ["preloaded", "at the start", "attached"])
def test_a_program_has_its_name_if_its_loader_was_executed(scratch, how):
    loader = next(path for _, _, path in mapped_files(os.getpid()) if "/ld-" in path)
    program = [loader, AROUND, "generated", PROGRAMS / "libaround_part.so"]
    options = ["--all-allocators"] if how == "at the start" else []
    recording = attached(scratch, program) if how == "attached" else started(scratch, program, *options)
    assert named_stack(recording)[-1] == ("main", "around")


def mapped_files(pid):
    """(start, end, path) of the libraries in the memory of a process. The executable is not among them: V8 maps a
    second copy of a part of it beside generated code."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        rows = [line.split(maxsplit=5) for line in maps]
    return [(*(int(address, 16) for address in row[0].split("-")), row[5].strip())
            for row in rows if len(row) > 5 and ".so" in row[5]]


def test_no_address_in_a_library_of_node_lacks_its_name(scratch):
    """Frames of JavaScript have neither tables nor, without a map, a name."""
    (scratch / "script.js").write_text(NODE)
    with Serving(scratch, ["/usr/bin/node", scratch / "script.js"]) as node:
        read_until(node.process.stdout.fileno(), b"ready\n")
        node.attach()
        wait_until(lambda: node.status()["allocations"] > 5000, "the program's blocks")
        files = mapped_files(node.process.pid)
        recording = node.detach()
        node.process.stdin.close()
        assert node.process.wait(60) == 0
    functions = [entry["function"] for entry in recording.report_json("--functions")["functions"]["functions"]
                 if entry["module"] == "" and entry["function"].startswith("0x")]
    named = [(function, path) for function in functions for start, end, path in files
             if start <= int(function, 16) - 1 < end]
    assert functions and named == []
