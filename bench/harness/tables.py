# SPDX-License-Identifier: MIT
"""tables: prints results as Markdown between the markers of a document.

A section NAME of the document is the text between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`.
It is replaced as a whole; the rest of the document is not changed.
"""
import re

from harness import programs, promises, results, sittings, tools

EMPTY = "not measured"


def table(head, rows, texts=1):
    """A Markdown table; the first columns are texts, the others are figures."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * texts + "--:|" * (len(head) - texts)]
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


def known_tools(entries):
    """The tools with any figure, in the order of their table."""
    seen = set().union(*(results.tools_of(entry) for entry in entries))
    return [tool for tool in tools.TOOLS if tool.name in seen]


def present_tools(data):
    return known_tools(data["workloads"].values())


def has_column(tool):
    """Return whether the tool is in the tables of all workloads, not in one of its own."""
    return not tool.is_sampling and not tool.is_floor


def column_tools(data):
    """The tools with a column of their own. The cells of a failed tool show its fallback."""
    stand_ins = {tool.fallback for tool in tools.TOOLS}
    return [tool for tool in present_tools(data)
            if tool.name not in stand_ins and has_column(tool)]


def slowdown_figure(entry, tool):
    found = results.ratio(entry, tool.name)
    if found:
        return found.text() + (" †" if results.did_less(entry, tool.name) else "")
    return "failed" if results.failure(entry, tool.name) else ""


def slowdown_cell(workload, entry, tool):
    """The figure of the tool and of its fallback, or the reason for a missing figure."""
    figures = [slowdown_figure(entry, tool)]
    stand_in = tools.find_tool(tool.fallback) if tool.fallback else None
    if stand_in and slowdown_figure(entry, stand_in):
        figures.append(f"{stand_in.title}: {slowdown_figure(entry, stand_in)}")
    if not any(figures) and tool.name in workload.skip_tools:
        return "left out"
    return "; ".join(figure for figure in figures if figure)


def bare_cell(entry):
    wall = number(results.median(entry, "bare", "wall"), "{:.2f} s")
    per_op = results.median(entry, "bare", "ns_per_op")
    if per_op is None:
        return wall
    return f"{wall}; {per_op:,.{1 if per_op < 1000 else 0}f} ns a {entry['unit']}"


def slowdown_table(data):
    shown = [tool for tool in column_tools(data) if tool.name != "bare"]
    rows = []
    for workload in programs.WORKLOADS:
        entry = data["workloads"].get(workload.name)
        rows.append([workload.title, bare_cell(entry) if entry else EMPTY,
                     *(slowdown_cell(workload, entry, tool) if entry else "" for tool in shown)])
    text = table(["workload", "bare", *(tool.title for tool in shown)], rows)
    return text + failure_notes(data)


def failure_notes(data):
    """The failure of each failed run; none is omitted."""
    notes = []
    for _name, entry in sorted(data["workloads"].items()):
        for tool in tools.TOOLS:
            reason = results.failure(entry, tool.name)
            if reason:
                notes.append(f"- {entry['title']}, {tool.title}: {reason}")
    return "\n\nFailed runs:\n\n" + "\n".join(notes) if notes else ""


def sampling_table(data):
    """Each tool against the program that it profiles: with the same allocator, without profiling.
    cairn also against hooks that do nothing."""
    shown = [(tool, tool.base) for tool in tools.TOOLS if tool.is_sampling]
    shown.insert(2, (tools.find_tool("cairn-sample"), "null"))
    rows = []
    for name in tools.SAMPLED:
        entry = data["workloads"].get(name)
        found = [results.ratio(entry, tool.name, base) for tool, base in shown] if entry else []
        if any(found):
            rows.append([programs.find_workload(name).title,
                         *(one.text() if one else "" for one in found)])
    if not rows:
        return EMPTY
    return table(["workload", *(f"{tool.title} / {tools.find_tool(base).title}"
                                for tool, base in shown)], rows)


def floor_row(promise, entry):
    """What is wanted of cairn, what the floors take, and what cairn takes."""
    shown = [tool.name for tool in tools.TOOLS if tool.is_floor] + ["cairn"]
    if promise.figure == promises.throughput_lost:
        lost = [results.throughput_ratio(entry, name) for name in shown]
        return [f"{promise.limit:.0f} % lost",
                *(f"{100 * (1 - one.median):.0f} %" if one else "" for one in lost)]
    found = [results.ratio(entry, name) for name in shown]
    return [number(promise.limit), *(one.text() if one else "" for one in found)]


def floor_table(data):
    """The promises of time that have been missed, beside hooks that do less than cairn's."""
    rows = []
    for promise in promises.PROMISES:
        entry = data["workloads"].get(promise.workload)
        if (promise.workload in tools.FLOORS and entry and results.measured(entry, "walk")
                and promise.figure in (promises.slowdown, promises.throughput_lost)):
            rows.append([programs.find_workload(promise.workload).title,
                         *floor_row(promise, entry)])
    if not rows:
        return EMPTY
    titles = [f"{tool.title} / bare" for tool in tools.TOOLS if tool.is_floor]
    return table(["workload", "wanted", *titles, "cairn / bare"], rows)


def promise_table(data):
    rows = []
    for promise in promises.PROMISES:
        entry = data["workloads"].get(promise.workload)
        figure = promise.figure(entry) if entry else None
        title = programs.find_workload(promise.workload).title
        rows.append([f"{title}: {promise.text}", promise.form.format(promise.limit),
                     number(figure, promise.form), promise.judge(figure, entry)])
    return table(["promise", "at most", "measured", ""], rows)


def cost_row(entry, tool):
    """The costs of one tool; None without a successful run."""
    def median(field):
        return results.median(entry, tool.name, field)
    if median("wall") is None:
        return None
    less = " †" if results.did_less(entry, tool.name) else ""
    is_bare = tool.name == "bare"
    return [tool.title + less, number(median("wall")), number(median("target_cpu")),
            "" if is_bare else number(median("recorder_cpu")),
            "" if is_bare else mib(results.extra_target_kib(entry, tool.name)),
            "" if is_bare or tool.is_inside_target else mib(median("recorder_rss")),
            file_size(median("file_bytes")), number(median("report"), "{:.3f}")]


def cost_table(data):
    """A block of rows for each workload; the first row names the workload."""
    rows = []
    for workload in programs.WORKLOADS + programs.LENGTHS:
        entry = data["workloads"].get(workload.name)
        block = [cost_row(entry, tool) for tool in known_tools([entry])
                 if has_column(tool)] if entry else []
        for position, row in enumerate(filter(None, block)):
            rows.append(["" if position else f"**{workload.title}**", *row])
    if not rows:
        return EMPTY
    return table(["workload", "tool", "wall s", "CPU s, target", "CPU s, recorder",
                  "extra MiB, target", "MiB, recorder", "recording", "report s"], rows, texts=2)


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


def calls_table(data):
    """Single calls of malloc and free, by threads."""
    fields = [(name, part) for name in ("malloc", "free") for part in ("p9999", "max")]
    rows = []
    for workload in programs.LATENCIES:
        entry = data["workloads"].get(workload.name)
        for position, tool in enumerate(known_tools([entry]) if entry else []):
            figures = [results.median(entry, tool.name, f"{name}_{part}_ns")
                       for name, part in fields]
            rows.append(["" if position else workload.title, tool.title,
                         *(number(figure and figure / 1000, "{:,.1f}") for figure in figures)])
    if not rows:
        return EMPTY
    heads = [f"{name} {'p99.99' if part == 'p9999' else 'maximum'}, us" for name, part in fields]
    return table(["", "tool", *heads], rows, texts=2)


# The rows of README.md: workloads, each with its words.
COMPARED = (
    ("churn-30-1", "malloc and free in a tight loop, 30 frames deep"),
    ("churn-30-2", "the same on two threads"),
    ("churn-30-4", "the same on four"),
    ("list-1", "`std::list` push and pop in a tight loop"),
    ("cc1plus", "GCC compiling a large C++ file"),
    ("clang", "Clang checking it"),
    ("sqlite3", "SQLite in memory, 300 000 rows and an index"),
    ("python3", "Python with every object from malloc"),
    ("perl", "Perl, hashes and sorts"),
    ("node", "Node.js, JSON"),
    ("children", "a shell with 2000 short children"),
    ("perl-short", "`perl -e 1`"),
)


def times(found):
    if not found:
        return ""
    return f"{found.median:.1f}" if found.median >= 2 else f"{found.median:.2f}"


def compared_cells(entry, name):
    """Wall time and processor time."""
    tool = tools.find_tool(name)
    found = results.ratio(entry, name)
    if found:
        return [times(found), times(results.processor_ratio(entry, name))]
    stand_in = results.ratio(entry, tool.fallback) if tool.fallback else None
    return [f"{stand_in.median:.1f} †" if stand_in else "",
            times(results.processor_ratio(entry, tool.fallback)) if stand_in else ""]


def comparison_table(data):
    """Times against bare, and the share of redis's throughput that is lost."""
    rows = []
    for name, words in COMPARED:
        entry = data["workloads"].get(name)
        if entry:
            rows.append([words, *compared_cells(entry, "cairn"), *compared_cells(entry, "heaptrack")])
    redis = data["workloads"].get("redis")
    if redis:
        lost = [results.throughput_ratio(redis, tool) for tool in ("cairn", "heaptrack")]
        rows.append(["redis, 16 commands pipelined: requests a second lost",
                     *(cell for one in lost
                       for cell in (f"{100 * (1 - one.median):.0f} %" if one else "", ""))])
    if not rows:
        return EMPTY
    hosts = {sitting["machine"]["cpu"] + f", {sitting['machine']['cores']} processors"
             for name, _words in COMPARED if name in data["workloads"]
             for sitting in data["workloads"][name]["sittings"] if "cairn" in sitting["tools"]}
    heads = ["against the program alone", "cairn: wall time", "processor time",
             "heaptrack 1.4: wall time", "processor time"]
    note = ("\n\nProcessor time is that of all processes, the recorder included. †: recording alone; reading it failed.\n"
            f"{'; '.join(sorted(hosts))}.")
    return table(heads, rows) + note


def scaling_table(data):
    """Threads on as many processors."""
    curve = data["curves"].get("scaling")
    if not curve:
        return EMPTY
    rows = []
    for x, entry in sorted(curve["points"].items(), key=lambda point: int(point[0])):
        per_op = [results.median(entry, tool, "ns_per_op") for tool in ("bare", "cairn")]
        found = results.ratio(entry, "cairn")
        rows.append([x, *(number(figure, "{:,.1f}") for figure in per_op),
                     found.text() if found else ""])
    return table(["threads and processors", "bare, ns a pair", "cairn, ns a pair",
                  "whole run against bare"], rows)


def who_ran(entry, tool):
    """The tool, or its fallback if it failed."""
    return tool.fallback if tool.fallback and results.failure(entry, tool.name) else tool.name


def curve_time(entry, tool):
    name = who_ran(entry, tool)
    per_op = results.median(entry, name, "ns_per_op")
    if per_op is None:
        return "failed" if results.failure(entry, tool.name) else ""
    return number(per_op, "{:,.1f}") + (" (-r)" if name != tool.name else "")


def curve_rows(curve, shown):
    for x, entry in sorted(curve["points"].items(), key=lambda point: int(point[0])):
        row = [f"{int(x):,}", *(curve_time(entry, tool) for tool in shown)]
        for tool in shown[1:]:
            name = who_ran(entry, tool)
            row += [mib(results.extra_target_kib(entry, name)),
                    mib(results.median(entry, name, "recorder_rss")),
                    file_size(results.median(entry, name, "file_bytes"))]
        yield row


def curve_tables(data):
    stand_ins = {tool.fallback for tool in tools.TOOLS}
    parts = []
    for name, curve in data["curves"].items():
        if name == "scaling":
            continue  # a table of its own
        shown = [tool for tool in known_tools(curve["points"].values())
                 if tool.name not in stand_ins]
        head = [curve["axis"], *(f"{tool.title}, ns a {curve['unit']}" for tool in shown)]
        for tool in shown[1:]:
            head += [f"{tool.title}: extra MiB, target", "MiB, recorder", "recording"]
        parts.append(f"{curve['title']}:\n\n" + table(head, curve_rows(curve, shown)))
    return "\n\n".join(parts) or EMPTY


# The owner of instructions: all objects except the profiler's count as the program's. libc counts
# as the program's even when the profiler calls it.
PROFILERS = ("libcairn_preload", "libheaptrack_preload")
UNWINDERS = ("libunwind",)


def instruction_row(entry, tool):
    cost = results.measured(entry, tool.name)
    if "failure" in cost:
        return [tool.title, "failed", "", "", ""]

    def of(prefixes):
        return sum(count for name, count in cost.items() if name.startswith(prefixes))
    parts = [sum(cost.values()) - of(PROFILERS + UNWINDERS), of(PROFILERS), of(UNWINDERS)]
    return [tool.title, *(number(count or None, "{:,.0f}") for count in [sum(cost.values()), *parts])]


def instruction_table(data):
    rows = []
    for workload in programs.WORKLOADS:
        entry = data["instructions"].get(workload.name)
        for position, tool in enumerate(known_tools([entry]) if entry else []):
            name = "" if position else f"**{workload.title}**, a {workload.unit}"
            rows.append([name, *instruction_row(entry, tool)])
    if not rows:
        return EMPTY
    return table(["workload", "tool", "all", "program and system libraries", "profiler's library",
                  "libunwind"], rows, texts=2)


SECTIONS = {
    "machine": sittings.sittings_text,
    "promises": promise_table,
    "slowdown": slowdown_table,
    "floors": floor_table,
    "sampling": sampling_table,
    "redis": latency_table,
    "latency": calls_table,
    "scaling": scaling_table,
    "cost": cost_table,
    "curves": curve_tables,
    "instructions": instruction_table,
    "comparison": comparison_table,
}


def replace_section(document, name, body):
    """The document with a new body of the section; raises if the markers are missing."""
    pattern = re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench:{name} -->)", re.DOTALL)
    if not pattern.search(document):
        raise ValueError(f"the document has no section {name}")
    return pattern.sub(lambda match: f"{match.group(1)}\n{body}\n\n{match.group(2)}", document)


def sections_of(document):
    """The names of a document's sections."""
    return re.findall(r"^<!-- bench:(\w+) -->$", document, re.MULTILINE)


def update_document(path, data):
    """Replace the sections that the document has, except those of other programs."""
    document = path.read_text()
    for name in sections_of(document):
        if name in SECTIONS:
            document = replace_section(document, name, SECTIONS[name](data))
    path.write_text(document)


def summary(data, names):
    """For the terminal: the slowdown of each tool on the given workloads."""
    lines = []
    for name in names:
        entry = data["workloads"][name]
        cells = [f"{tool.name} {slowdown_figure(entry, tool)}" for tool in known_tools([entry])
                 if tool.name != "bare" and slowdown_figure(entry, tool)]
        lines.append(f"{entry['title']}: " + ", ".join(cells))
    return "\n".join(lines)
