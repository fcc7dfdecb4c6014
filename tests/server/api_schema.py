# SPDX-License-Identifier: MIT
"""api_schema: what docs/format/json.md promises of each answer, written down a second time.

A schema is a type, a list [schema] for arrays, a dict for objects, or one of the classes below. All
fields that are named must be there, and no others.
"""

COSTS = ("peak_bytes", "peak_blocks", "allocations", "allocated_bytes", "frees", "freed_bytes",
         "temporary", "temporary_bytes", "live_bytes", "live_blocks", "own_peak_bytes")
DEFAULT_COSTS = ("peak_bytes", "live_bytes", "allocations", "temporary", "allocated_bytes")
LEAK_COSTS = ("live_bytes", "live_blocks", "allocations", "allocated_bytes")


class Nullable:
    def __init__(self, schema):
        self.schema = schema


class OneOf:
    def __init__(self, *values):
        self.values = values


class Table:
    """A table with these columns; a column that is a dict is a costs table."""
    def __init__(self, /, **columns):
        self.columns = columns


def costs_of(keys=DEFAULT_COSTS):
    return {key: int for key in keys}


FUNCTION = ("code", "functions")
LOCATION = ("code", "locations")

SAMPLING = Nullable({"allocations": int, "allocated_bytes": int, "recorded_allocations": int,
                     "rate": float, "max_weight": int,
                     "sample_bytes": int, "interval_bytes": int, "peak_standard_error_bytes": int, "sentence": str})
RUN = {"program": str, "command_line": str, "pid": int, "host": str, "kernel": str, "libc": str,
       "memory_bytes": int, "cpu_count": int, "start_unix_ms": int,
       "state": OneOf("running", "finished", "stopped"), "ended": bool, "wait_status": Nullable(int),
       "oom_limit_bytes": int, "checkpoint_interval_ms": int, "max_frames": int, "recorded_by": str, "source_format": str, "unknown": [str],
       "sampling": SAMPLING,
       "merged_stacks": Nullable({"allocations": int, "allocated_bytes": int,
                                  "most_missing_allocations": int, "most_missing_bytes": int})}
TOTALS = {**{key: int for key in COSTS if key != "own_peak_bytes"}, "peak_error_bytes": int, "peak_order_error_bytes": int,
          "peak_at_least_bytes": int, "peak_at_most_bytes": int,
          "peak_time_ms": int, "peak_rss_bytes": int, "peak_rss_at_most_bytes": int, "runtime_ms": int, "counted_ms": int, "processes": int,
          "threads": int, "stacks": int, "unknown_frees": int, "events": int, "allocations_per_second": int}
FILE = {"name": str, "path": str, "bytes": int}
CODE = {"functions": Table(id=int, name=str, short=Nullable(str), module=Nullable(int),
                           wrapper=bool),
        "locations": Table(function=int, file=Nullable(int), line=int, offset=str, wrapper=bool),
        "modules": Table(path=str, name=str), "files": Table(path=str)}
SELECTION = {
    "filter": {
        **{key: Nullable(str) for key in (
            "function", "function_regex", "file", "file_regex", "module", "module_regex", "focus", "ignore",
            "show_from", "call_site", "thread")},
        "process": Nullable(int),
        "time": Nullable({"from_ms": int, "to_ms": int,
                          "classes": [OneOf("in_in", "in_out", "out_in", "out_out")]}),
        "size_bytes": Nullable({"min": int, "max": int}),
        "lifetime_ms": Nullable({"min": int, "max": int}),
        "unmatched": [OneOf("function", "file", "module", "thread", "process", "focus", "ignore", "show_from", "call_site")]},
    "totals": costs_of(COSTS), "recording_totals": costs_of(COSTS), "estimated": costs_of(COSTS),
    "unavailable": [OneOf(*COSTS)],
    "suppressed": {"stack_count": int, "live_bytes": int, "live_blocks": int},
    "baseline_totals": Nullable(costs_of(COSTS))}
COUNTERS = Table(name=str, text=str, kind=OneOf("loss", "note"), value=int)
MARKS = Table(time_ms=int, kind=OneOf("mark", "phase", "start", "stop"), text=str)
SUPPRESSIONS = Table(pattern=str, source=OneOf("file", "embedded", "built-in"), stack_count=int,
                     live_bytes=int, live_blocks=int)


def top_of(cost):
    return Table(location=Nullable(int), inlined=bool, costs={cost: int}, stack_count=int)


FRAMES = Table(location=Nullable(int), inlined=bool)
RSS_KINDS = ("live", "rounding", "kept", "mapped", "stack", "file", "shared", "own", "rest")
AMOUNTS = {"blocks": [int], "bytes": [int]}

META = {
    "tool_version": str, "file": FILE, "state": OneOf("running", "finished", "stopped"),
    "damage": Nullable(str), "run": RUN, "runtime_ms": int, "slice_ms": int, "slice_count": int,
    "marks": MARKS, "processes": int, "threads": int,
    "baseline": Nullable({"file": FILE, "run": RUN, "runtime_ms": int, "damage": Nullable(str)}),
    "capabilities": {key: bool for key in ("time_range", "slices", "sizes", "lifetimes", "rss",
                                           "mappings", "growth", "source", "adhoc", "blocks")},
    "costs": Table(key=str, unit=OneOf("bytes", "calls"), phrase=str), "editor": Nullable(str)}

# Route -> the answer's fields beyond the envelope. `selection` is there unless in NO_SELECTION.
ROUTES = {
    "meta": META,
    "health": {
        "damage": Nullable(str), "sampling": SAMPLING,
        "counters": COUNTERS,
        "modules": Table(path=str, name=str, build_id=str, is_executable=bool, frames=int,
                         frames_with_function=int, frames_with_line=int, symbol_source=str,
                         symbol_advice=str)},
    "summary": {
        "damage": Nullable(str), "run": RUN, "totals": TOTALS, "baseline_totals": Nullable(TOTALS),
        "counters": COUNTERS, "marks": MARKS,
        "hooks": Table(module=str, function=str, allocator=str, reason=str, processes=int),
        "unrecorded": {"execs": int, "descendants_at_least": int, "programs": Table(
            program=str, reason=str, text=str, pid=int, execs=int, descendants_at_least=int)},
        "findings": {
            "items": Table(kind=OneOf("peak", "growth", "unfreed", "churn", "rss", "sparse", "huge", "uneven", "unseen", "oom"),
                           sentence=str, confidence=OneOf("low", "medium", "high"), location=Nullable(int), bytes=int,
                           whole_bytes=int, blocks=int, bytes_per_s=(int, float), look=str, pid=int, thread_id=int),
            "changes": Nullable(Table(
                kind=str, **{"class": OneOf("new", "gone", "grown", "shrunk", "same", "unknown")}, sentence=str,
                confidence=OneOf("low", "medium", "high"), location=Nullable(int), old=Nullable((int, float)),
                new=Nullable((int, float)), change=Nullable((int, float)), change_error=Nullable((int, float)), look=str,
                pid=int, thread_id=int)),
            "peak_rise": Nullable({"trough_ms": int, "trough_bytes": int, "peak_ms": int, "peak_bytes": int,
                                   "mark": Nullable(str), "freed_bytes": int, "total_count": int,
                                   "sites": Table(location=Nullable(int), gained_bytes=int, without_bytes=int,
                                                  thread=Nullable(int), thread_name=Nullable(str))})},
        "unseen": Table(pid=int, executable=str, reason=str, why=str,
                        anonymous_bytes=int, mapped_bytes=int, heap_bytes=int,
                        mapped_by=Nullable({"function": str, "module": str})),
        "top": {key: top_of(key) for key in DEFAULT_COSTS}, "top_counts": costs_of(),
        "health": {"lost_events": int, "frames": int, "frames_with_function": int,
                   "frames_with_line": int},
        "code": CODE},
    "verdict": {"verdict": Nullable({"grew": bool, "sentence": str})},
    "call_sites": {
        "total_count": int,
        "sites": Table(location=Nullable(int), inlined=bool, stack_count=int, costs=costs_of()),
        "code": CODE},
    "tree": {
        "direction": OneOf("top_down", "bottom_up"), "sort": OneOf(*COSTS), "total_nodes": int, "complete": bool,
        "nodes": Table(id=int, parent=Nullable(int), depth=int, inlined=bool, pruned=bool,
                       child_count=int, function=Nullable(int), location=Nullable(int), self=costs_of(),
                       total=costs_of()),
        "search": Nullable({"matched_nodes": int, "totals": costs_of(COSTS)}), "code": CODE},
    "stacks": {
        "total_count": int,
        "stacks": Table(costs=costs_of(), frame_first=int, frame_count=int), "frames": FRAMES,
        "code": CODE},
    "functions": {
        "total_count": int,
        "functions": Table(function=Nullable(int), self=costs_of(), inclusive=costs_of()),
        "code": CODE},
    "function": {
        "function": int, "self": costs_of(), "inclusive": costs_of(),
        "callers": Table(function=Nullable(int), inclusive=costs_of()),
        "callees": Table(function=Nullable(int), inclusive=costs_of()),
        "locations": Table(location=int, self=costs_of(), inclusive=costs_of()), "code": CODE},
    "call_graph": {
        "total_edges": int, "total_locations": int, "total_lines": int,
        "edges": Table(caller=Nullable(int), callee=int, inclusive=costs_of()),
        "locations": Table(location=int, self=costs_of(), inclusive=costs_of()),
        "lines": Table(location=int, self=costs_of(), inclusive=costs_of()), "code": CODE},
    "source": {
        "path": str, "is_readable": bool, "reason": Nullable(str), "text": Nullable(str),
        "is_newer": bool, "lines": Table(line=int, self=costs_of(), inclusive=costs_of())},
    "series": {
        "slice_ms": int,
        "points": Table(start_ms=int, end_ms=int, allocations=int, allocated_bytes=int, frees=int,
                        freed_bytes=int, temporary=int, live_bytes=int, live_max_bytes=int),
        "value": OneOf("live_bytes", "allocations", "allocated_bytes", "temporary"),
        "top": [{"location": Nullable(int), "frames": [int], "score": int, "values": [int]}],
        "rest": [int], "rss": Table(time_ms=int, rss_bytes=int),
        "peak": {"time_ms": int, "bytes": int}, "code": CODE},
    "sizes": {
        "unit": OneOf("bytes"), "buckets": Table(bucket=int, low=int, high=int, blocks=int, bytes=int),
        "top": [{"location": Nullable(int), "inlined": bool, **AMOUNTS}], "rest": AMOUNTS,
        "code": CODE},
    "size_lifetime": {
        "sizes": Table(low=int, high=int), "lifetimes": Table(low=int, high=int),
        "cells": Table(size=int, lifetime=int, blocks=int, estimated_blocks=int),
        "certain_blocks": int, "total_blocks": int},
    "leaks": {
        "total_count": int,
        "leaks": Table(location=Nullable(int), inlined=bool, stack_count=int, frame_first=int,
                       frame_count=int, costs=costs_of(LEAK_COSTS),
                       growth=OneOf("growing", "stopped", "start_up", "bounded", "sawtooth",
                                    "bursts", "late", "once", "unknown"),
                       growth_confidence=OneOf("none", "low", "medium", "high"),
                       slope_bytes_per_s=Nullable((int, float)), slope_ms=Nullable(int), grew_until_ms=Nullable(int), first_ms=Nullable(int),
                       last_ms=Nullable(int), latest_kept_ms=Nullable(int)),
        "history_parts": int, "history": [int], "frames": FRAMES, "suppressions": SUPPRESSIONS,
        "code": CODE},
    "rss": {
        "peak_rss_bytes": int, "peak_rss_at_most_bytes": int, "peak_rss_ms": int,
        "samples": Table(time_ms=int, rss_bytes=int,
                         **{name: Nullable(int) for name in (
                             "anonymous_bytes", "file_bytes", "shmem_bytes", "swap_bytes",
                             "minor_faults", "major_faults", "break_bytes", "data_bytes",
                             "mapped_bytes")},
                         live_bytes=Nullable(int), other_anonymous_bytes=Nullable(int)),
        "kinds": Table(key=str, phrase=str),
        "survivors": Table(time_ms=int, blocks=int, block_bytes=int, held_bytes=int, oldest_ms=int,
                           newest_ms=int, location=Nullable(int)),
        "breakdowns": Table(time_ms=int, age_ms=int, rss_bytes=int, swap_bytes=int, repeated_bytes=int,
                            requested_bytes=int, processes=int, has_mappings=bool, is_peak=bool,
                            is_last=bool, was_asked=bool, at_exit=bool, is_of_peak=bool,
                            live_is_estimate=bool, mapping_first=int, mapping_count=int,
                            empty_page_bytes=int, sparse_page_bytes=int, sparse_block_bytes=int,
                            **{f"{kind}_bytes": int for kind in RSS_KINDS}),
        "allocators": Table(time_ms=int, name=str, module=str, live_bytes=int, rounding_bytes=int, kept_bytes=int,
                            rest_bytes=int, released_bytes=Nullable(int)),
        "moment_ms": Nullable(int),
        "mappings": Table(pid=int, path=str, kind=OneOf(*RSS_KINDS), areas=int, allocator=str,
                          is_estimate=bool, rss_bytes=int, virtual_bytes=int, swap_bytes=int, huge_bytes=int, blank_bytes=int,
                          location=Nullable(int), frame_first=int, frame_count=int),
        "frames": FRAMES, "code": CODE},
    "adhoc": {
        "total_count": int,
        "entries": Table(name=str, pid=int, events=int, weight=int, frame_first=int,
                         frame_count=int),
        "frames": FRAMES, "code": CODE},
    "processes": {"processes": Table(
        process=int, pid=int, parent_pid=int, epoch=int, executable=str, command_line=str, allocator=str,
        forked=bool, execed=bool, own_allocator=bool, attached=bool, killed=bool, ended=bool,
        killed_threads=int, runtime=str, runtime_objects=bool,
        start_ms=int, end_ms=int, end_error_ms=Nullable(int),
        wait_status=Nullable(int), process_peak_bytes=int, peak_rss_bytes=int, costs=costs_of())},
    "threads": {"threads": Table(thread=int, process=int, thread_id=int, pid=int, name=str, merged_count=int,
                                 start_ms=int, end_ms=int, costs=costs_of())},
    "files": {"by": OneOf("file"), "unavailable": [OneOf(*COSTS)], "groups": Table(name=str, detail=str, costs=costs_of())},
    "modules": {"modules": Table(path=str, name=str, build_id=str, is_executable=bool, symbol_source=str,
                                 symbol_advice=str, frames=int, frames_with_function=int,
                                 frames_with_line=int, costs=costs_of())},
}
WORK = {"version": OneOf(3), "begun": int, "finished": int, "abandoned": int}
ROUTES["lifetimes"] = {**ROUTES["sizes"], "unit": OneOf("milliseconds")}
NO_SELECTION = ("meta", "health", "rss", "adhoc")

ERROR = {"version": OneOf(3), "status": int,
         "error": {"code": str, "parameter": Nullable(str), "message": str}}


def check(value, schema, where="answer"):
    """Asserts that `value` is what `schema` says."""
    if isinstance(schema, Nullable):
        if value is not None:
            check(value, schema.schema, where)
    elif isinstance(schema, OneOf):
        assert value in schema.values, f"{where}: {value!r}"
    elif isinstance(schema, Table):
        check_table(value, schema, where)
    elif isinstance(schema, dict):
        assert isinstance(value, dict), f"{where}: {value!r}"
        assert set(value) == set(schema), f"{where}: {set(value) ^ set(schema)}"
        for key, inner in schema.items():
            check(value[key], inner, f"{where}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list), f"{where}: {value!r}"
        for place, item in enumerate(value):
            check(item, schema[0], f"{where}[{place}]")
    else:
        # A bool is an int to Python, but not to us.
        is_right = isinstance(value, schema) and (schema is bool or not isinstance(value, bool))
        assert is_right, f"{where}: {value!r} is no {schema}"
        assert not isinstance(value, int) or value >= 0, f"{where}: {value!r}"


def check_table(value, schema, where):
    assert isinstance(value, dict), f"{where}: {value!r}"
    assert set(value) == {"count", *schema.columns}, \
        f"{where}: {set(value) ^ {'count', *schema.columns}}"
    for name, inner in schema.columns.items():
        columns = value[name].items() if isinstance(inner, dict) else [(name, value[name])]
        if isinstance(inner, dict):
            assert set(value[name]) == set(inner), f"{where}.{name}: {set(value[name])}"
        for key, column in columns:
            kind = inner[key] if isinstance(inner, dict) else inner
            assert len(column) == value["count"], f"{where}.{name}.{key}: {len(column)}"
            for place, item in enumerate(column):
                check(item, kind, f"{where}.{name}.{key}[{place}]")


def check_references(answer):
    """Every position must be in its table."""
    code = answer.get("code")
    if code is None:
        return
    limits = {"function": code["functions"]["count"], "location": code["locations"]["count"],
              "module": code["modules"]["count"], "file": code["files"]["count"]}

    def walk(value, key):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name not in ("selection", "filter"):
                    walk(inner, name)
        elif isinstance(value, list):
            for item in value:
                walk(item, key)
        elif isinstance(value, int) and key in limits:
            assert 0 <= value < limits[key], (key, value)
    walk(answer, "")


def check_answer(route, answer):
    schema = {"version": OneOf(3), "generation": int, **ROUTES[route]}
    if route not in NO_SELECTION:
        schema["selection"] = SELECTION
    check(answer, schema, route)
    check_references(answer)
