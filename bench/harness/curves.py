# SPDX-License-Identifier: MIT
"""curves: how the cost grows with one parameter, all others fixed."""
import dataclasses

from harness import programs, results, rounds

BYTES_PER_LIVE_BLOCK = 200  # of target and profiler together, generously


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

    def workload(self, x):
        arguments = tuple(argument.replace("{x}", str(x)) for argument in self.arguments)
        return programs.Workload(f"{self.name}-{x}", f"{self.axis} {x}", self.program, arguments,
                                 self.operations(x), self.unit, is_divisible=False)


def constant(count):
    return lambda x: count


CURVES = (
    Curve("depth", "Stack depth (churn, root changes every 64 pairs)", "frames", "churn",
          ("pairs={work}", "depth={x}"), (10, 20, 30, 60, 100, 150, 250), constant(2_000_000)),
    Curve("live", "Live blocks", "blocks", "live", ("blocks={work}",),
          (10**3, 10**4, 10**5, 10**6, 10**7, 10**8), lambda x: x, "block"),
    Curve("threads", "Threads (churn, 30 deep)", "threads", "churn",
          ("pairs={work}", "threads={x}"), (1, 2, 4, 8, 16), lambda x: 8_000_000 // x),
    Curve("stacks", "Distinct stacks", "stacks", "stacks", ("stacks={x}", "rounds={work}"),
          (10, 100, 1000, 10**4, 10**5, 10**6), lambda x: max(2_000_000 // x, 1)),
)


def measure_curve(stored, curve, setup, machine, chosen, say):
    """Adds a sitting to each point that fits into memory of `stored`, the curves measured so far."""
    kept = stored.setdefault(curve.name, {"points": {}})
    kept |= {"title": curve.title, "axis": curve.axis, "unit": curve.unit}
    for x in curve.points:
        if curve.name == "live" and x * BYTES_PER_LIVE_BLOCK > setup.memory_bytes:
            say(f"  live {x}: left out, not enough memory")
            continue
        if curve.name == "live" and x > 10**7 and setup.scale > 1:
            continue
        workload = curve.workload(x)
        outcomes = rounds.run_rounds(setup, workload, chosen, say)
        divisors = {name: 1 for name in outcomes}
        results.add_sitting(kept["points"], str(x), workload.heading(),
                            results.sitting_of(machine, setup.scale, outcomes, divisors))
