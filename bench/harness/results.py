# SPDX-License-Identifier: MIT
"""results: what was measured, as it is kept in JSON, and figures drawn from it.

    {"workloads": {NAME: {"title": ..., "machine": {...}, "scale": 1, "unit": ...,
                          "tools": {TOOL: {"divisor": 1, "outcomes": [{...}, ...]}}}},
     "curves": {NAME: ...}, "instructions": {NAME: ...}}

One workload's entry is always of one sitting: all its tools were interleaved with each other, so a
newer entry replaces the older one as a whole.
"""
import dataclasses
import json
import pathlib
import statistics

from harness import spread


def load(path):
    """The stored results, or empty ones."""
    path = pathlib.Path(path)
    stored = json.loads(path.read_text()) if path.exists() else {}
    return {"workloads": {}, "curves": {}, "instructions": {}} | stored


def save(path, data):
    pathlib.Path(path).write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def entry_of(workload, machine, scale, outcomes, divisors):
    """Makes a workload's entry out of run_rounds' answer."""
    return {
        "title": workload.title,
        "unit": workload.unit,
        "scale": scale,
        "machine": dataclasses.asdict(machine),
        "tools": {
            name: {"divisor": divisors[name],
                   "outcomes": [dataclasses.asdict(outcome) for outcome in rounds]}
            for name, rounds in outcomes.items()
        },
    }


def column(entry, tool, field):
    """The field of every round, None where a round failed."""
    found = entry["tools"].get(tool) if entry else None
    if not found:
        return []
    return [None if o["failure"] else o[field] for o in found["outcomes"]]


def median(entry, tool, field):
    known = [figure for figure in column(entry, tool, field) if figure is not None]
    return statistics.median(known) if known else None


def failure(entry, tool):
    """Why a tool has no figures, or None."""
    found = entry["tools"].get(tool)
    reasons = [o["failure"] for o in found["outcomes"] if o["failure"]] if found else []
    return reasons[0] if reasons else None


def did_less(entry, tool):
    """Whether the tool was given less work than the bare program."""
    found = entry["tools"].get(tool)
    return bool(found) and found["divisor"] != 1


def ratio(entry, tool):
    """Slowdown against bare: of the whole run, or, when the tool did less, of the timed loop."""
    field = "ns_per_op" if entry and did_less(entry, tool) else "wall"
    return spread.paired_ratios(column(entry, tool, field), column(entry, "bare", field))


def throughput_ratio(entry, tool):
    return spread.paired_ratios(column(entry, tool, "throughput"),
                                column(entry, "bare", "throughput"))


def extra_target_kib(entry, tool):
    """Peak resident memory of the target beyond that of the bare program doing the same work."""
    with_tool = median(entry, tool, "target_rss")
    bare = median(entry, "bare", "target_rss")
    if with_tool is None or bare is None or did_less(entry, tool):
        return None
    return with_tool - bare
