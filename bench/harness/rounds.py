# SPDX-License-Identifier: MIT
"""rounds: one workload under several tools, interleaved: A B C, A B C, ...

A disturbance of the machine affects all tools alike, and ratios are computed inside a round. Every
run has a folder of its own, removed afterwards.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from harness import measuring, server_load, tools


@dataclasses.dataclass(frozen=True)
class Setup:
    """The paths, and the memory limit of a run."""

    build: pathlib.Path
    runs: int
    memory_bytes: int
    scale: int = 1      # --quick divides all work by this

    @property
    def measure(self):
        return self.build / "bench" / "measure"


def time_report(setup, tool, file, folder):
    """Seconds to open the recording and print its report: the best of three, with a warm cache."""
    best = None
    for _ in range(3):
        with open(folder / "report", "wb") as out:
            begin = time.monotonic()
            done = subprocess.run(tool.report_command(setup.build, file), stdout=out,
                                  stderr=subprocess.DEVNULL, cwd=folder, check=False)
            took = time.monotonic() - begin
        if done.returncode != 0:
            return None
        best = took if best is None else min(best, took)
    return best


def add_recording(outcome, setup, tool, folder):
    """Add the size of the recording, and the time to open it."""
    files = sorted(folder.glob(tool.recordings)) if tool.recordings else []
    if not files:
        return
    outcome.file_bytes = sum(file.stat().st_size for file in files)
    if tool.report:
        outcome.report = time_report(setup, tool, files[0], folder)


def target_programs(setup, tool, workload):
    if tool.is_inside_target:
        return {os.path.realpath(tool.path(setup.build))}
    return workload.programs(setup.build)


def given_less(tool, workload):
    """The divisor of a slow tool's work, if the workload is divisible."""
    return tool.divisor if workload.is_divisible else 1


def run_once(setup, tool, workload):
    """One run in a folder of its own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-bench-"))
    try:
        if workload.is_server:
            outcome = server_load.run(setup, tool, workload, folder)
        else:
            argv = [*workload.processors(), *tool.command(setup.build, workload.command(
                setup.build, setup.scale * given_less(tool, workload)))]
            if tool.is_tracer:
                outcome = measuring.run_untraced(argv, folder, workload.env)
            else:
                process = measuring.start_measured(setup.measure, argv, folder, env=workload.env,
                                                   memory_bytes=setup.memory_bytes)
                outcome = measuring.collect(process, folder, target_programs(setup, tool, workload))
        if not outcome.failure:
            add_recording(outcome, setup, tool, folder)
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_typical(setup, tool, workload):
    """The run with the median time of as many as the workload wants: short ones vary much."""
    outcomes = []
    for _ in range(workload.repeats):
        outcomes.append(run_once(setup, tool, workload))
        if outcomes[-1].failure:
            return outcomes[-1]
    return sorted(outcomes, key=lambda outcome: outcome.wall)[len(outcomes) // 2]


def run_rounds(setup, workload, chosen, say):
    """{tool name: [Outcome of each round]}. After a failure the tool's fallback replaces it, from
    the same round on."""
    results = {}
    active = [tool for tool in chosen if tool.name not in workload.skip_tools
              and (not tool.only or workload.name in tool.only)]

    def run(tool, number):
        outcome = run_typical(setup, tool, workload)
        say(f"  {workload.name} {number + 1}/{setup.runs} {tool.name}: "
            + (outcome.failure or f"{outcome.wall:.3f} s"))
        missed = [measuring.Outcome()] * (number - len(results.get(tool.name, [])))
        results.setdefault(tool.name, []).extend([*missed, outcome])
        return outcome

    for number in range(setup.runs):
        for position, tool in enumerate(active):
            if tool is None or number >= tool.rounds or not run(tool, number).failure:
                continue
            active[position] = tools.find_tool(tool.fallback) if tool.fallback else None
            if active[position] and run(active[position], number).failure:
                active[position] = None
    return results
