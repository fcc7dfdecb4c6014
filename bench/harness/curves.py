# SPDX-License-Identifier: MIT
"""curves: how the cost grows with one parameter, all others fixed."""
import dataclasses
import os

from harness import programs, results, rounds

# Memory of target and profiler for a live block, a generous bound.
BYTES_PER_LIVE_BLOCK = {"bare": 60, "cairn": 100, "heaptrack": 200}


@dataclasses.dataclass(frozen=True)
class Curve:
    """`arguments` contain {x}; `operations(x)` is the amount of work at that point."""

    name: str
    title: str
    axis: str
    program: str
    arguments: tuple
    points: tuple
    operations: object
    unit: str = "pair"
    has_own_processors: bool = False    # x of them, for target and profiler together

    def workload(self, x):
        arguments = tuple(argument.replace("{x}", str(x)) for argument in self.arguments)
        return programs.Workload(f"{self.name}-{x}", f"{self.axis} {x}", self.program, arguments,
                                 self.operations(x), self.unit, is_divisible=False,
                                 on_processors=x if self.has_own_processors else 0)


def constant(count):
    return lambda x: count


CURVES = (
    Curve("depth", "Stack depth (churn, root changes every 64 pairs)", "frames", "churn",
          ("pairs={work}", "depth={x}"), (10, 20, 30, 60, 100, 150, 250), constant(2_000_000)),
    Curve("recursion", "Depth of a recursion (deep, up to four frames change at each pair)", "frames",
          "deep", ("pairs={work}", "depth={x}"), (100, 1000, 2000, 5000, 20_000, 100_000),
          constant(1_000_000)),
    Curve("live", "Live blocks", "blocks", "live", ("blocks={work}",),
          (10**3, 10**4, 10**5, 10**6, 10**7, 10**8), lambda x: x, "block"),
    Curve("threads", "Threads (churn, 30 deep)", "threads", "churn",
          ("pairs={work}", "threads={x}"), (1, 2, 4, 8, 16), lambda x: 8_000_000 // x),
    Curve("stacks", "Distinct stacks", "stacks", "stacks", ("stacks={x}", "rounds={work}"),
          (10, 100, 1000, 10**4, 10**5, 10**6), lambda x: max(2_000_000 // x, 1)),
)


# Measured by --scaling, because few machines have the processors.
SCALING = Curve("scaling", "Threads on as many processors (churn, 30 deep)", "threads", "churn",
                ("pairs={work}", "threads={x}"), (1, 2, 4, 8, 16), constant(4_000_000),
                has_own_processors=True)


def fitting(curve, x, setup, chosen, say):
    """The tools for which there are enough memory and processors at this point."""
    if curve.has_own_processors and x > len(os.sched_getaffinity(0)):
        say(f"  {x} threads are left out: they need {x} processors, and this machine has "
            f"{len(os.sched_getaffinity(0))}")
        return []
    if curve.name != "live":
        return chosen
    blocks = x // setup.scale
    fit = [tool for tool in chosen if blocks * BYTES_PER_LIVE_BLOCK[tool.name] <= setup.memory_bytes]
    for tool in chosen:
        if tool not in fit:
            say(f"  live {x}: {tool.name} is left out, not enough memory")
    return fit


def measure_curve(stored, curve, setup, machine, chosen, say):
    """Adds a sitting to each point of `stored`, the curves measured so far."""
    kept = stored.setdefault(curve.name, {"points": {}})
    kept |= {"title": curve.title, "axis": curve.axis, "unit": curve.unit}
    for x in curve.points:
        workload = curve.workload(x)
        fit = fitting(curve, x, setup, chosen, say)
        if not fit:
            continue
        outcomes = rounds.run_rounds(setup, workload, fit, say)
        divisors = {name: 1 for name in outcomes}
        results.add_sitting(kept["points"], str(x), workload.heading(),
                            results.sitting_of(machine, setup.scale, outcomes, divisors))
