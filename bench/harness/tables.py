# SPDX-License-Identifier: MIT
"""tables: results as Markdown, put between markers of a document.

A section NAME of the document is what lies between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`;
it is replaced as a whole and everything else is left alone.
"""
import re

from harness import machine, programs, promises, results, tools

EMPTY = "not measured"


def table(head, rows):
    """A Markdown table; the first column is text, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value, form="{:.2f}"):
    return form.format(value) if value is not None else ""


def mib(kib):
    return number(kib / 1024 if kib is not None else None, "{:.1f}")


def file_size(size_bytes):
    if size_bytes is None:
        return ""
    return f"{size_bytes / 2**20:.2f} MiB" if size_bytes >= 2**20 else f"{size_bytes / 1024:.0f} KiB"


def present_tools(data):
    """Names of the tools with any figure, in the order of their table."""
    seen = {name for entry in data["workloads"].values() for name in entry["tools"]}
    return [tool for tool in tools.TOOLS if tool.name in seen]


def machines(data):
    """A line for each machine and day that contributed."""
    entries = list(data["workloads"].values()) + list(data["instructions"].values())
    for curve in data["curves"].values():
        entries += curve["points"].values()
    loads = {}
    for entry in entries:
        m = entry["machine"]
        key = (f"{m['cpu']}, {m['cores']} cores{' (virtual machine)' if m['virtual'] else ''}, "
               f"{m['memory_gib']} GiB, {m['system']}, kernel {m['kernel']}, {m['libc']}; "
               f"commit {m['commit']}, {m['date']}"
               + (f"; only 1/{entry['scale']} of the work" if entry.get("scale", 1) != 1 else ""))
        loads.setdefault(key, []).append(m["load"])
    if not loads:
        return EMPTY
    lines = [f"- {key}; load average before the runs {min(found):.2f} to {max(found):.2f}"
             for key, found in loads.items()]
    if max(max(found) for found in loads.values()) >= machine.QUIET_LOAD:
        lines += ["", "**Other work was going on: the figures of those runs are too high and too "
                  "scattered, and judge no promise.**"]
    return "\n".join(lines)


def slowdown_cell(entry, tool):
    found = results.ratio(entry, tool.name)
    if found:
        return found.text() + (" †" if results.did_less(entry, tool.name) else "")
    return "failed" if results.failure(entry, tool.name) else ""


def slowdown_table(data):
    shown = [tool for tool in present_tools(data) if tool.name != "bare"]
    rows = []
    for workload in programs.WORKLOADS:
        entry = data["workloads"].get(workload.name)
        if not entry:
            rows.append([workload.title, EMPTY, "", *("" for _ in shown)])
            continue
        per_op = results.median(entry, "bare", "ns_per_op")
        rows.append([workload.title, number(results.median(entry, "bare", "wall"), "{:.2f} s"),
                     number(per_op, "{:.1f} ns") + (f" a {entry['unit']}" if per_op else ""),
                     *(slowdown_cell(entry, tool) for tool in shown)])
    text = table(["workload", "bare", "bare, its own clock", *(tool.title for tool in shown)], rows)
    return text + failure_notes(data)


def failure_notes(data):
    """What went wrong in which run; nothing is left out silently."""
    notes = []
    for name, entry in data["workloads"].items():
        for tool in tools.TOOLS:
            reason = results.failure(entry, tool.name)
            if reason:
                notes.append(f"- {entry['title']}, {tool.title}: {reason}")
    return "\n\nFailed runs:\n\n" + "\n".join(notes) if notes else ""


def promise_table(data):
    rows = []
    for promise in promises.PROMISES:
        entry = data["workloads"].get(promise.workload)
        figure = promise.figure(entry) if entry else None
        title = programs.find_workload(promise.workload).title
        rows.append([f"{title}: {promise.text}", promise.form.format(promise.limit),
                     number(figure, promise.form), promise.judge(figure)])
    return table(["promise", "at most", "measured", ""], rows)


def cost_rows(entry, shown):
    for tool in shown:
        if tool.name not in entry["tools"] or results.median(entry, tool.name, "wall") is None:
            continue

        def median(field, name=tool.name):
            return results.median(entry, name, field)
        work = " †" if results.did_less(entry, tool.name) else ""
        yield [f"{entry['title']}: {tool.title}{work}", number(median("wall")),
               number(median("target_cpu")), number(median("recorder_cpu")),
               mib(results.extra_target_kib(entry, tool.name)) if tool.name != "bare" else "",
               mib(median("recorder_rss")) if tool.name != "bare" else "",
               file_size(median("file_bytes")), number(median("report"), "{:.3f}")]


def cost_table(data):
    names = [workload.name for workload in programs.WORKLOADS + programs.LENGTHS]
    rows = [row for name in names if name in data["workloads"]
            for row in cost_rows(data["workloads"][name], present_tools(data))]
    if not rows:
        return EMPTY
    return table(["workload: tool", "wall s", "CPU s, target", "CPU s, recorder",
                  "extra MiB, target", "MiB, recorder", "recording", "report s"], rows)


def latency_table(data):
    entry = data["workloads"].get("redis")
    if not entry:
        return EMPTY
    rows = []
    for tool in present_tools(data):
        rate = results.median(entry, tool.name, "throughput")
        lost = results.throughput_ratio(entry, tool.name)
        if rate is not None:
            rows.append([tool.title, f"{rate:,.0f}", number(100 * (1 - lost.median), "{:.1f} %"),
                         number(results.median(entry, tool.name, "p99_ms"), "{:.3f} ms")])
    return table(["tool", "requests a second", "lost", "p99"], rows)


def curve_rows(curve, shown):
    for x, entry in sorted(curve["points"].items(), key=lambda point: int(point[0])):
        row = [f"{int(x):,}"]
        for name in shown:
            per_op = results.median(entry, name, "ns_per_op")
            row.append(number(per_op, "{:.1f}") or ("failed" if results.failure(entry, name) else ""))
        for name in shown[1:]:
            row += [mib(results.extra_target_kib(entry, name)),
                    mib(results.median(entry, name, "recorder_rss")),
                    file_size(results.median(entry, name, "file_bytes"))]
        yield row


def curve_tables(data):
    parts = []
    for curve in data["curves"].values():
        seen = {name for entry in curve["points"].values() for name in entry["tools"]}
        shown = [tool.name for tool in tools.TOOLS if tool.name in seen]
        head = [curve["axis"], *(f"{name}, ns a {curve['unit']}" for name in shown)]
        for name in shown[1:]:
            head += [f"{name}: extra MiB, target", "MiB, recorder", "recording"]
        parts.append(f"{curve['title']}\n\n" + table(head, curve_rows(curve, shown)))
    return "\n\n".join(parts) or EMPTY


def instruction_tables(data):
    parts = []
    for entry in data["instructions"].values():
        objects = sorted({name for cost in entry["tools"].values() for name in cost
                          if name != "failure"})
        rows = []
        for tool, cost in entry["tools"].items():
            if "failure" in cost:
                rows.append([tool, "failed", *("" for _ in objects)])
                continue
            rows.append([tool, f"{sum(cost.values()):.0f}",
                         *(number(cost.get(name), "{:.1f}") for name in objects)])
        parts.append(f"{entry['title']}: instructions a {entry['unit']}\n\n"
                     + table(["tool", "all", *objects], rows))
    return "\n\n".join(parts) or EMPTY


SECTIONS = {
    "machine": machines,
    "promises": promise_table,
    "slowdown": slowdown_table,
    "redis": latency_table,
    "cost": cost_table,
    "curves": curve_tables,
    "instructions": instruction_tables,
}


def replace_section(document, name, body):
    """The document with the section's body exchanged; raises when the markers are missing."""
    pattern = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench:{name} -->)", re.DOTALL)
    if not pattern.search(document):
        raise ValueError(f"the document has no section {name}")
    return pattern.sub(lambda match: f"{match.group(1)}\n{body}\n\n{match.group(2)}", document)


def update_document(path, data):
    document = path.read_text()
    for name, render in SECTIONS.items():
        document = replace_section(document, name, render(data))
    path.write_text(document)


def summary(data, names):
    """For the terminal: the slowdown of each tool on the given workloads."""
    lines = []
    for name in names:
        entry = data["workloads"].get(name)
        cells = [f"{tool.name} {slowdown_cell(entry, tool)}" for tool in present_tools(data)
                 if tool.name != "bare" and slowdown_cell(entry, tool)]
        lines.append(f"{entry['title']}: " + ", ".join(cells))
    return "\n".join(lines)
