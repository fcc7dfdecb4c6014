# SPDX-License-Identifier: MIT
"""results: the measurements, as stored in JSON, and figures derived from them.

    {"workloads": {NAME: ENTRY}, "instructions": {NAME: ENTRY},
     "curves": {NAME: {"title": ..., "points": {X: ENTRY}}}}
    ENTRY: {"title": ..., "unit": ..., "sittings": [SITTING, ...]}, the newest last
    SITTING: {"machine": {...}, "scale": 1, "tools": {TOOL: {"divisor": 1, "outcomes": [{...}, ...]}}}

The tools of a sitting were interleaved. So a tool is only compared with the bare program of its own
sitting. A newer sitting replaces the results of the tools that it ran. Other results stay, each
with the bare runs of its sitting. (A tool of "instructions" has counts in place of outcomes.)
"""
import dataclasses
import json
import pathlib
import statistics

from harness import spread, tools

BARE = "bare"


def entries(data):
    """Every entry of the results."""
    yield from data["workloads"].values()
    for curve in data["curves"].values():
        yield from curve["points"].values()
    yield from data["instructions"].values()


def load(path):
    """The stored results, or empty ones."""
    path = pathlib.Path(path)
    stored = json.loads(path.read_text()) if path.exists() else {}
    data = {"workloads": {}, "curves": {}, "instructions": {}} | stored
    for entry in entries(data):
        if "tools" in entry:  # written when an entry was a single sitting
            entry["sittings"] = [{"machine": entry.pop("machine"), "scale": entry.pop("scale", 1),
                                  "tools": entry.pop("tools")}]
    return data


def save(path, data):
    pathlib.Path(path).write_text(json.dumps(data, indent=1, sort_keys=True) + "\n")


def sitting_of(machine, scale, outcomes, divisors):
    """Make a sitting from the result of run_rounds."""
    return {
        "scale": scale,
        "machine": dataclasses.asdict(machine),
        "tools": {
            name: {"divisor": divisors[name],
                   "outcomes": [dataclasses.asdict(outcome) for outcome in rounds]}
            for name, rounds in outcomes.items()
        },
    }


def _replaced_by(names):
    """The tools whose older results are replaced: the tools themselves, and their fallbacks."""
    return set(names) | {tools.find_tool(name).fallback for name in names}


def _without(sittings, names):
    """The results of other tools in the sittings; bare runs alone are dropped."""
    for sitting in sittings:
        kept = {name: found for name, found in sitting["tools"].items()
                if name == BARE or name not in names}
        if set(kept) - {BARE}:
            yield sitting | {"tools": kept}


def add_sitting(kept, name, heading, sitting):
    """Add the sitting as the newest of entry `name` in the dictionary `kept`."""
    older = kept[name]["sittings"] if name in kept else []
    replaced = _replaced_by(sitting["tools"])
    kept[name] = {**heading, "sittings": [*_without(older, replaced), sitting]}


def _fill_entries(kept, others):
    for name, other in others.items():
        mine = kept.setdefault(name, {**other, "sittings": []})
        known = _replaced_by({tool for sitting in mine["sittings"] for tool in sitting["tools"]})
        mine["sittings"] = [*_without(other["sittings"], known), *mine["sittings"]]
        if not mine["sittings"]:
            del kept[name]


def fill_in(data, others):
    """Add results from `others` that are missing: tools of workloads, points of curves."""
    _fill_entries(data["workloads"], others["workloads"])
    _fill_entries(data["instructions"], others["instructions"])
    for name, curve in others["curves"].items():
        mine = data["curves"].setdefault(name, {**curve, "points": {}})
        _fill_entries(mine["points"], curve["points"])


def tools_of(entry):
    """Names of the tools that ran."""
    return {tool for sitting in entry["sittings"] for tool in sitting["tools"]}


def sitting_with(entry, tool):
    """The newest sitting with the tool, or None; for bare, the sitting that cairn is judged
    against."""
    if tool == BARE and "cairn" in tools_of(entry):
        tool = "cairn"
    return next((s for s in reversed(entry["sittings"]) if tool in s["tools"]), None)


def measured(entry, tool):
    """The tool's newest figures, or None."""
    sitting = sitting_with(entry, tool) if entry else None
    return sitting["tools"].get(tool) if sitting else None


def _figures(found, field):
    return [None if o["failure"] else o.get(field) for o in found["outcomes"]] if found else []


def column(entry, tool, field):
    """The field of every round, None where a round failed."""
    return _figures(measured(entry, tool), field)


def base_column(entry, tool, field, base=BARE):
    """The field of every round of `base` in the tool's sitting."""
    sitting = sitting_with(entry, tool) if entry else None
    return _figures(sitting["tools"].get(base), field) if sitting else []


def _median(figures):
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else None


def median(entry, tool, field):
    return _median(column(entry, tool, field))


def failure(entry, tool):
    """The reason why a tool has no figures, or None."""
    found = measured(entry, tool)
    reasons = [o["failure"] for o in found["outcomes"] if o["failure"]] if found else []
    return reasons[0] if reasons else None


def did_less(entry, tool):
    """Return whether the tool had less work than the bare program."""
    found = measured(entry, tool)
    return bool(found) and found["divisor"] != 1


def ratio(entry, tool, base=BARE):
    """Slowdown against `base`: of the whole run, or of the timed loop if the tool had less work."""
    field = "ns_per_op" if entry and did_less(entry, tool) else "wall"
    return spread.paired_ratios(column(entry, tool, field), base_column(entry, tool, field, base))


def processor_ratio(entry, tool):
    """Processor time of target and recorder against that of the bare program."""
    def sums(fields):
        return [sum(both) if None not in both else None for both in zip(*fields)]
    fields = ("target_cpu", "recorder_cpu")
    if did_less(entry, tool):
        return None
    return spread.paired_ratios(sums([column(entry, tool, field) for field in fields]),
                                sums([base_column(entry, tool, field) for field in fields]))


def throughput_ratio(entry, tool):
    return spread.paired_ratios(column(entry, tool, "throughput"),
                                base_column(entry, tool, "throughput"))


def in_bare_runs(entry, tool, field):
    """Seconds in units of the bare run, so that figures of two sittings can be compared."""
    seconds = median(entry, tool, field)
    bare = _median(base_column(entry, tool, "wall"))
    return seconds / bare if seconds is not None and bare else None


def extra_target_kib(entry, tool):
    """Peak resident memory of the target minus that of the bare program with the same work."""
    with_tool = median(entry, tool, "target_rss")
    bare = _median(base_column(entry, tool, "target_rss"))
    if with_tool is None or bare is None or did_less(entry, tool):
        return None
    return with_tool - bare
