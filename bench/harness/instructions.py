# SPDX-License-Identifier: MIT
"""instructions: counts the instructions of an operation, by the object that executes them.

Instructions do not depend on other load. The target runs under callgrind inside the tool, with two
amounts of work. The difference, divided by the difference in operations, contains no start-up. The
tool's library is preloaded into the program that valgrind runs: by the tool itself if it follows an
exec, else by the dynamic loader. The recorder, if any, runs natively.
"""
import collections
import dataclasses
import json
import os
import pathlib
import re
import tempfile

from harness import measuring

SHORT = 20_000
LONG = 120_000
COST_LINE = re.compile(r"^(?:[+-]?\d+|\*)(?: (\d+))?$")
NAME = re.compile(r"^\((\d+)\)(?: (.*))?$")


def self_cost_by_object(text):
    """{object: instructions} from callgrind's output, without the inclusive costs of calls."""
    names = {}
    costs = collections.Counter()
    current = "?"
    skip = False
    for line in text.splitlines():
        if line.startswith("ob=") or line.startswith("cob="):
            number, name = NAME.match(line.split("=", 1)[1]).groups()
            if name is not None:
                names[number] = name
            if line.startswith("ob="):
                current = names[number]
        elif line.startswith("calls="):
            skip = True
        elif match := COST_LINE.match(line):
            if not skip and match.group(1):
                costs[current] += int(match.group(1))
            skip = False
    return costs


def short_name(path):
    """`libcairn_preload.so` for its path; callgrind's ??? is code without an object."""
    return pathlib.Path(path).name or "?"


def loader():
    """The dynamic loader, which can preload a library into one program."""
    return next(str(path) for pattern in ("lib64/ld-linux*.so.2", "lib/ld-linux*.so.1")
                for path in pathlib.Path("/").glob(pattern))


def callgrind_command(setup, tool, workload):
    """The command that runs the program under callgrind in the tool. Some parts of valgrind are
    dynamic, so a library preloaded by the environment may be loaded there first and disable
    itself."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=callgrind.out"]
    program = workload.command(setup.build)
    if tool.preload:
        return [*valgrind, loader(), "--preload", tool.preload, *program]
    return tool.command(setup.build, [*valgrind, *program])


def is_countable(workload):
    """Return whether the workload reports its operations, scales down, and has one thread."""
    return (workload.is_ours and workload.unit in ("pair", "block", "realloc")
            and not any(argument.startswith("threads=") for argument in workload.arguments))


def count(setup, tool, workload, work):
    """(Instructions by object, operations) of one run with this amount of work; raises on
    failure."""
    counted = dataclasses.replace(workload, work=work)
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as name:
        folder = pathlib.Path(name)
        process = measuring.start_measured(
            setup.measure, callgrind_command(setup, tool, counted), folder,
            env=workload.env | tool.preload_env | {"CAIRN_INSIDE_VALGRIND": "1"},
            memory_bytes=setup.memory_bytes)
        inside = {os.path.realpath("/usr/libexec/valgrind/callgrind-amd64-linux"),
                  os.path.realpath("/usr/libexec/valgrind/callgrind-arm64-linux")}
        outcome = measuring.collect(process, folder, inside)
        if outcome.failure:
            raise RuntimeError(f"{tool.name}: {outcome.failure}")
        costs = self_cost_by_object((folder / "callgrind.out").read_text(errors="replace"))
        operations = json.loads((folder / "result.json").read_text())["ops"]
    by_name = collections.Counter()
    for path, cost in costs.items():
        by_name[short_name(path)] += cost
    return by_name, operations


def per_operation(setup, tool, workload):
    """{object: instructions per operation}, without objects below a tenth of an instruction."""
    low, few = count(setup, tool, workload, SHORT)
    high, many = count(setup, tool, workload, LONG)
    return {name: (high[name] - low[name]) / (many - few)
            for name in high if high[name] - low[name] >= (many - few) / 10}


def measure_instructions(setup, machine, chosen, workload, say):
    """A sitting of one workload: {tool: {object: instructions}} or {tool: {"failure": reason}}."""
    tools = {}
    for tool in chosen:
        if tool.is_inside_target:
            continue
        say(f"  instructions {workload.name} {tool.name}")
        try:
            tools[tool.name] = per_operation(setup, tool, workload)
        except RuntimeError as error:
            say(f"  {error}")
            tools[tool.name] = {"failure": str(error)}
    return {"scale": 1, "machine": dataclasses.asdict(machine), "tools": tools}
