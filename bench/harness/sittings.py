# SPDX-License-Identifier: MIT
"""sittings: the machine, date and load of the measurements in a document.

Each line is one start of run.py, with the tools whose figures it still provides.
"""
import dataclasses

from harness import machine, tools

MANY = 6


@dataclasses.dataclass
class Sitting:
    """The contribution of one start of run.py."""

    tools: set = dataclasses.field(default_factory=set)
    subjects: dict = dataclasses.field(default_factory=dict)    # kind: names, in order
    is_timed: bool = False  # else only counts, which load does not change


def _contributions(data):
    """(kind, name, sitting, whether it has times) of all stored results."""
    for name, entry in sorted(data["workloads"].items()):
        yield from (("workloads", name, sitting, True) for sitting in entry["sittings"])
    for name, curve in sorted(data["curves"].items()):
        for entry in curve["points"].values():
            yield from (("curves", name, sitting, True) for sitting in entry["sittings"])
    for name, entry in sorted(data["instructions"].items()):
        yield from (("instructions", name, sitting, False) for sitting in entry["sittings"])


def _computer(m):
    return (f"{m['cpu']}, {m['cores']} cores{' (virtual machine)' if m['virtual'] else ''}, "
            f"{m['memory_gib']} GiB, {m['system']}, kernel {m['kernel']}, {m['libc']}")


def collect(data):
    """{computer: {(date, commit, load, scale): Sitting}}, the dates in order."""
    found = {}
    for kind, name, stored, is_timed in _contributions(data):
        m = stored["machine"]
        key = (m["date"], m["commit"], m["load"], stored["scale"])
        sitting = found.setdefault(_computer(m), {}).setdefault(key, Sitting())
        sitting.tools |= set(stored["tools"])
        sitting.subjects.setdefault(kind, {})[name] = None
        sitting.is_timed |= is_timed
    return {computer: dict(sorted(of.items())) for computer, of in found.items()}


def _subjects_text(subjects):
    parts = []
    for kind, names in subjects.items():
        shown = f"{len(names)} {kind}" if len(names) > MANY else ", ".join(names)
        parts.append(shown if kind == "workloads" or len(names) > MANY else f"{kind} of {shown}")
    return "; ".join(parts)


def _line(key, sitting):
    date, commit, load, scale = key
    titles = [tool.title for tool in tools.TOOLS if tool.name in sitting.tools]
    said = [date, f"commit {commit}"]
    if scale != 1:
        said.append(f"only 1/{scale} of the work")
    if sitting.is_timed:
        said.append(f"load average before {load:.2f}" + (" **(not quiet)**" if is_loud(key, sitting)
                                                         else ""))
    return f"- {', '.join(said)}: {', '.join(titles)} on {_subjects_text(sitting.subjects)}"


def is_loud(key, sitting):
    """Return whether other work may have disturbed its times."""
    return sitting.is_timed and key[2] >= machine.QUIET_LOAD


def sittings_text(data):
    """The text for the document: each computer, with its measurements and dates."""
    blocks = []
    loud = False
    for computer, of in collect(data).items():
        blocks.append(f"{computer}:")
        blocks.append("\n".join(_line(key, sitting) for key, sitting in of.items()))
        loud |= any(is_loud(key, sitting) for key, sitting in of.items())
    if loud:
        blocks.append("**Where a sitting was not quiet, other work was going on: its figures are too "
                      "high and too scattered, and judge no promise.**")
    return "\n\n".join(blocks) or "not measured"
