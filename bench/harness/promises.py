# SPDX-License-Identifier: MIT
"""promises: the limits that the project sets itself, and whether the results keep them.

A limit is an upper bound on one figure, which is computed from the results of a workload. `figure`
returns None while a value that it needs has not been measured.
"""
import dataclasses
import typing

from harness import results


@dataclasses.dataclass(frozen=True)
class Promise:
    """`figure(entry)` of the workload's entry must be at most `limit`."""

    workload: str
    text: str
    limit: float
    figure: typing.Callable
    form: str = "{:.2f}"
    peer: str = ""  # the tool that `figure` compares cairn with, if not bare

    def judge(self, figure, entry=None):
        """The cell of the table."""
        if figure is None:
            has_failed = entry and self.peer and results.failure(entry, self.peer)
            return f"{self.peer} failed" if has_failed else "not measured"
        return "kept" if figure <= self.limit else "**missed**"


def slowdown(entry):
    found = results.ratio(entry, "cairn")
    return found.median if found else None


def sampled_against(base):
    """The time of `cairn --sample` against that of another tool."""
    def figure(entry):
        found = results.ratio(entry, "cairn-sample", base)
        return found.median if found else None
    return figure


def throughput_lost(entry):
    found = results.throughput_ratio(entry, "cairn")
    return 100 * (1 - found.median) if found else None


def extra_memory_mib(entry):
    found = results.extra_target_kib(entry, "cairn")
    return found / 1024 if found is not None else None


def file_kib(entry):
    found = results.median(entry, "cairn", "file_bytes")
    return found / 1024 if found is not None else None


def report_s(entry):
    return results.median(entry, "cairn", "report")


def report_vs_heaptrack(entry):
    peer = results.in_bare_runs(entry, "heaptrack", "report")
    own = results.in_bare_runs(entry, "cairn", "report")
    return own / peer if own is not None and peer else None


def malloc_p9999_ms(entry):
    found = results.median(entry, "cairn", "malloc_p9999_ns")
    return found / 1e6 if found is not None else None


def attached_ns(entry):
    """Nanoseconds a pair that the agent takes more than the preload library."""
    attached, preloaded = (results.median(entry, tool, "ns_per_op") for tool in ("attached", "cairn"))
    return attached - preloaded if attached is not None and preloaded is not None else None


WALL = "wall time against bare"
SHARED = 1.5    # target and profiler on one processor
PROMISES = (
    Promise("churn-30-1", WALL, 2.5, slowdown),
    Promise("churn-restless", WALL, 3.0, slowdown),
    Promise("churn-30-2", WALL, 4.0, slowdown),
    Promise("churn-100-1", WALL, 5.0, slowdown),
    Promise("list-1", WALL, 1.9, slowdown),
    Promise("list-2", WALL, 2.0, slowdown),
    Promise("stacks", WALL, 4.0, slowdown),
    Promise("perl", WALL, 1.15, slowdown),
    Promise("lua", WALL, 1.20, slowdown),
    Promise("node", WALL, 1.08, slowdown),
    Promise("clang", WALL, 1.20, slowdown),
    Promise("cc1plus", WALL, 1.10, slowdown),
    Promise("cc1plus-O0", WALL, 1.15, slowdown),
    Promise("sqlite3", WALL, 1.12, slowdown),
    Promise("python3", WALL, 1.20, slowdown),
    Promise("git", WALL, 1.30, slowdown),
    Promise("perl-short", WALL, 5.0, slowdown),
    Promise("python3-short", WALL, 2.5, slowdown),
    Promise("children", WALL, 1.5, slowdown),
    *(Promise(f"{name}-shared", WALL, SHARED, slowdown)
      for name in ("perl", "cc1plus-O0", "python3", "clang")),
    *(Promise(workload, "--sample: wall time against hooks that do nothing", 1.10,
              sampled_against("null")) for workload in ("list-1", "python3")),
    *(Promise(workload, "--sample: wall time against bare", limit, sampled_against("bare"))
      for workload, limit in (("churn-30-1", 1.15), ("cc1plus", 1.02), ("sqlite3", 1.02),
                              ("perl", 1.02), ("redis", 1.02))),
    Promise("redis", "throughput lost, %", 12, throughput_lost, "{:.1f}"),
    Promise("latency-8", "99.99th percentile of malloc, ms", 0.2, malloc_p9999_ms, "{:.3f}"),
    *(Promise(workload, "attached: ns a pair above the preload library's", 6, attached_ns, "{:.1f}")
      for workload in ("churn-30-1", "list-1")),
    *(Promise(f"length-{threads}-{pairs}m", "extra memory of the target, MiB", 8 + threads,
              extra_memory_mib, "{:.1f}") for threads in (1, 4) for pairs in (5, 50)),
    Promise("length-1-5m", "recording, KiB", 384, file_kib, "{:.0f}"),
    Promise("cc1plus", "recording, KiB", 2048, file_kib, "{:.0f}"),
    Promise("length-1-5m", "open and report, s", 0.3, report_s, "{:.3f}"),
    Promise("cc1plus", "open and report, s", 0.3, report_s, "{:.3f}"),
    *(Promise(workload, "open and report, against heaptrack_print", 1.0, report_vs_heaptrack,
              peer="heaptrack") for workload in ("cc1plus", "cc1plus-O0", "python3")),
)
