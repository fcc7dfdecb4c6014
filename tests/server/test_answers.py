# SPDX-License-Identifier: MIT
"""The answers of the server on drawn recordings: every route by its description, by the numbers of
`cairn report --json`, and by what the drawing says."""
import re

import pytest

from api_schema import COSTS, DEFAULT_COSTS, ERROR, ROUTES, check, check_answer
from drawings import HEAD, OLD, SLICES
from reading import name_of, need_args, rows, spot_of
from serving import ROOT, draw, report


# The description

def test_every_route_answers_as_it_is_described(server):
    for route in ROUTES:
        check_answer(route, server.get(route, **need_args(route)))


def test_the_description_names_every_route_parameter_and_field(server):
    page = (ROOT / "docs/format/http-api.md").read_text()
    page = re.sub(r"^## The store\n.*?(?=^## )", "", page, flags=re.M | re.S)  # another server
    words = page + (ROOT / "docs/format/json.md").read_text()
    described = set(re.findall(r"/api/v1/(\w+)|(?<=, `)/(\w+)(?=`)", page))
    names = {first or second for first, second in described}
    assert set(ROUTES) - names == set()
    assert names - set(ROUTES) <= {"blocks", "events", "baseline", "work", "token"}

    def fields(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from fields(inner)
        elif isinstance(value, list) and value:
            yield from fields(value[0])
    for route in ROUTES:
        answer = server.get(route, **need_args(route))
        missing = {key for key in fields(answer) if not re.search(rf"`{key}`", words)}
        assert missing == set(), route


@pytest.mark.parametrize("drawing", ["process nothing\nthread main\n", "lonely 1 1\n",
                                     "!state 0\nlonely 1 1\n"])
def test_recordings_with_little_in_them_are_answered_too(serve, tmp_path, drawing):
    server = serve(draw(tmp_path / "small.cairn", drawing))
    capable = server.get("meta")["capabilities"]
    for route in ROUTES:
        answer = server.try_get(route, **need_args(route))
        if route in ("function", "source"):
            assert answer.status == 404
        elif route in ("sizes", "lifetimes", "size_lifetime"):
            assert answer.status == 409 and not capable["sizes"]
            check(answer.json, ERROR)
        else:
            check_answer(route, answer.json)
    answer = server.try_get("summary", from_ms=1)
    assert answer.status == 409 and answer.json["error"]["parameter"] == "from_ms"
    if "lonely" in drawing:
        answer = server.try_get("summary", size_max_bytes=1)
        assert answer.status == 409 and answer.json["error"]["parameter"] == "size_max_bytes"


# The numbers

FILTERS = [
    ({}, []),
    ({"function_regex": "^load$"}, ["--filter-function", "^load$"]),
    ({"function_regex": "strdup|spin"}, ["--filter-function", "strdup|spin"]),
    ({"module_regex": "libc"}, ["--module", "libc"]),
    ({"focus": "load", "ignore": "[.]so", "show_from": "app[.]c"}, ["--focus=load", "--ignore=[.]so", "--show-from=app[.]c"]),
    ({"show_from": "load|spin"}, ["--show-from", "load|spin"]),
    ({"thread": "worker-*"}, ["--thread", "worker-*"]),
    ({"function_regex": "nobody"}, ["--filter-function", "nobody"]),
    ({"thread": "main", "module_regex": "server$", "function_regex": "walk"},
     ["--thread", "main", "--module", "server$", "--filter-function", "walk"]),
    ({"size_min_bytes": 60, "size_max_bytes": 100}, ["--size", "60..100"]),
    ({"size_min_bytes": 100}, ["--size", "100.."]),
    ({"size_max_bytes": 64, "thread": "main"}, ["--size", "..64", "--thread", "main"]),
    ({"lifetime_max_ms": 4}, ["--lifetime", "..4ms"]),
    ({"lifetime_min_ms": 4, "size_min_bytes": 1}, ["--lifetime", "4ms..", "--size", "1.."]),
    ({"from_ms": 0, "to_ms": 500, "size_min_bytes": 64},
     ["--time", "0ms..500ms", "--size", "64.."]),
]


@pytest.mark.parametrize("params, options", FILTERS)
def test_numbers_are_those_of_the_report(server, file, params, options):
    wanted = report(file, "-n", 0, *options)
    summary = server.get("summary", limit=0, **params)
    assert summary["totals"] == wanted["totals"]
    for key, value in wanted["totals"].items():
        assert summary["selection"]["totals"].get(key, value) == value
    for cost in ("peak_bytes", "allocations", "temporary", "live_bytes"):
        assert [(spot_of(summary, location), cost_value)
                for location, cost_value in rows(summary["top"][cost], "location", f"costs.{cost}")] == \
            [((site["function"], site["file"], site["line"], site["module"]), site["costs"][cost])
             for site in wanted["top"][cost]]
        sites = server.get("call_sites", sort=cost, limit=0, costs="all", stacks=1000, **params)
        assert sites["total_count"] == len(wanted["top"][cost])
        check_sites(sites, wanted["top"][cost])
    for route in ("processes", "threads", "modules"):
        check_groups(server.get(route, costs="all", **params)[route], wanted[route])


def check_sites(answer, wanted):
    """Call sites with all their stacks, against the report's."""
    sites, stacks, frames = answer["sites"], answer["stacks"], answer["frames"]
    for place, site in enumerate(wanted):
        assert spot_of(answer, sites["location"][place]) == (
            site["function"], site["file"], site["line"], site["module"])
        assert sites["inlined"][place] == site["inlined"]
        assert {key: sites["costs"][key][place] for key in COSTS} == site["costs"]
        first = sites["stack_first"][place]
        assert sites["stacks_shown"][place] == site["stack_count"]
        for offset, stack in enumerate(site["stacks"]):
            number = first + offset
            assert {key: stacks["costs"][key][number] for key in COSTS} == stack["costs"]
            begin = stacks["frame_first"][number]
            end = begin + stacks["frame_count"][number]
            assert [(*spot_of(answer, frames["location"][at]), frames["inlined"][at])
                    for at in range(begin, end)] == \
                [(frame["function"], frame["file"], frame["line"], frame["module"],
                  frame["inlined"]) for frame in stack["frames"]]


def check_groups(table, wanted):
    assert table["count"] == len(wanted)
    for place, entry in enumerate(wanted):
        for key, value in entry.items():
            if key == "costs":
                assert {cost: table["costs"][cost][place] for cost in COSTS} == value
            else:
                assert table[key][place] == value, key


def children_of(nodes):
    children = [[] for _ in range(nodes["count"])]
    for place, parent in enumerate(nodes["parent"]):
        if parent is not None:
            children[parent].append(place)
    return children


@pytest.mark.parametrize("direction", ["top_down", "bottom_up"])
@pytest.mark.parametrize("by", ["function", "location"])
@pytest.mark.parametrize("collapse", [0, 1])
@pytest.mark.parametrize("hide_wrappers", [0, 1])
def test_trees_add_up(server, direction, by, collapse, hide_wrappers):
    answer = server.get("tree", direction=direction, by=by, collapse=collapse,
                        hide_wrappers=hide_wrappers, costs="all")
    nodes, totals = answer["nodes"], answer["selection"]["totals"]
    children = children_of(nodes)
    assert answer["complete"] and nodes["count"] == answer["total_nodes"]
    for cost in COSTS:
        total, own = nodes["total"][cost], nodes["self"][cost]
        assert total[0] == totals[cost] or cost == "own_peak_bytes"
        for place, below in enumerate(children):
            assert nodes["child_count"][place] == len(below)
            assert total[place] == own[place] + sum(total[child] for child in below)
    for place, below in enumerate(children):
        peaks = [nodes["total"]["peak_bytes"][child] for child in below]
        assert peaks == sorted(peaks, reverse=True)
        code = nodes[by]
        assert len({(code[child], nodes["inlined"][child]) for child in below}) == len(below)
        if collapse and by == "function":
            assert all(code[child] != code[place] for child in below)


@pytest.mark.parametrize("direction", ["top_down", "bottom_up"])
def test_each_folded_run_unfolds_and_folds_again(server, direction):
    shape = {"direction": direction, "hide_wrappers": 1, "collapse": 1, "costs": "all"}
    folded = server.get("tree", **shape)
    every = server.get("tree", **{**shape, "hide_wrappers": 0})
    paths = [path for hidden, path in rows(folded["nodes"], "hidden", "path") if hidden]
    assert len(paths) > 1 and not any(folded["nodes"]["unfolded_by"]) and "path" not in every["nodes"]
    for path in paths:
        nodes = server.get("tree", **shape, unfold=path)["nodes"]
        assert path in nodes["unfolded_by"] and set(nodes["unfolded_by"]) <= {0, path}
        assert {cost: column[0] for cost, column in nodes["total"].items()} == {
            cost: column[0] for cost, column in folded["nodes"]["total"].items()}
    both = server.get("tree", **shape, unfold=",".join(map(str, paths)))["nodes"]
    assert both["count"] > folded["nodes"]["count"]
    for place, below in enumerate(children_of(both)):
        assert both["total"]["allocations"][place] == both["self"]["allocations"][place] + sum(
            both["total"]["allocations"][child] for child in below)
    assert server.get("tree", **shape, unfold="1")["nodes"] == folded["nodes"]  # no such path
    for bad in ("x", "1;2", ",1", "-1", ",".join("1" * 1001)):
        answer = server.try_get("tree", **shape, unfold=bad)
        assert answer.status == 400 and answer.json["error"]["parameter"] == "unfold"


def test_parts_of_a_tree_fit_into_the_whole(server):
    whole = server.get("tree", direction="bottom_up")
    nodes = whole["nodes"]
    place_of = {node: place for place, node in enumerate(nodes["id"])}
    for node in nodes["id"]:
        part = server.get("tree", direction="bottom_up", root=node, depth=1, limit=0)["nodes"]
        assert part["id"][0] == node and part["parent"][0] is None
        assert part["count"] == 1 + nodes["child_count"][place_of[node]]
        for place, child in enumerate(part["id"]):
            for key in DEFAULT_COSTS:
                assert part["total"][key][place] == nodes["total"][key][place_of[child]]
    few = server.get("tree", direction="bottom_up", limit=4)
    assert few["nodes"]["count"] == 4 and not few["complete"]
    share = server.get("tree", direction="bottom_up", min_share="0.5")
    least = whole["selection"]["totals"]["peak_bytes"] / 2
    assert sorted(share["nodes"]["id"]) == sorted(
        node for node, total in rows(nodes, "id", "total.peak_bytes") if total >= least)
    assert server.try_get("tree", root=10**6).status == 404


def test_a_search_says_how_much_matches(server):
    for search in ({"search": "WALK"}, {"search_regex": "^walk"}):
        answer = server.get("tree", costs="all", **search)
        matched = [name_of(answer, function) for function, flag in
                   rows(answer["nodes"], "function", "matched") if flag]
        assert matched == ["walk<std::vector<int> >"] * 2
        assert answer["search"]["matched_nodes"] == 2
        alone = server.get("summary", function="walk")["selection"]["totals"]
        assert answer["search"]["totals"] == alone
    assert server.try_get("tree", search="a", search_regex="b").status == 400


def test_names_get_shorter(server):
    answer = server.get("tree")
    functions = dict(rows(answer["code"]["functions"], "name", "short"))
    assert functions["walk<std::vector<int> >"] == "walk"
    assert functions["load"] is None


def test_callers_and_callees_share_in_the_function(server):
    table = server.get("functions", costs="all", limit=0)
    totals = table["selection"]["totals"]
    for cost in COSTS:
        if cost != "own_peak_bytes":
            assert sum(table["functions"]["self"][cost]) == totals[cost]
    by_name = {name_of(table, function): place
               for place, function in enumerate(table["functions"]["function"])}
    ids = dict(rows(table["code"]["functions"], "name", "id"))
    for name, place in by_name.items():
        answer = server.get("function", id=ids[name], costs="all")
        assert name_of(answer, answer["function"]) == name
        for cost in COSTS:
            assert answer["self"][cost] == table["functions"]["self"][cost][place]
            assert answer["inclusive"][cost] == table["functions"]["inclusive"][cost][place]
    load = server.get("function", name="load", costs="allocations", sort="allocations")
    assert [(name_of(load, function), count) for function, count in
            rows(load["callees"], "function", "inclusive.allocations")] == \
        [("strdup", 1030), (None, 16), ("push", 5)]
    assert [(name_of(load, function), count) for function, count in
            rows(load["callers"], "function", "inclusive.allocations")] == \
        [("main", 1005), ("work", 30), ("walk<std::vector<int> >", 16)]
    assert sorted((spot_of(load, location)[2], own, inclusive) for location, own, inclusive in
                  rows(load["locations"], "location", "self.allocations",
                       "inclusive.allocations")) == [(10, 0, 1030), (12, 16, 21)]
    spin = server.get("function", name="spin", costs="allocations")
    assert spin["inclusive"] == {"allocations": 8}  # recursion counts once
    entry = rows(spin["callers"], "function", "inclusive.allocations")
    assert sorted(map(str, entry)) == sorted(map(str, [(None, 8), (spin["function"], 8)]))
    assert server.try_get("function", name="nobody").status == 404
    assert server.try_get("function", id=99999).status == 404
    assert server.try_get("function").status == 400
    assert server.try_get("function", name="load", in_module="/nowhere").status == 404


def test_with_folded_wrappers_functions_have_the_costs_of_their_call_sites(server):
    sites = server.get("call_sites", costs="all", sort="allocations", limit=0)
    wanted = {}
    for location, *costs in rows(sites["sites"], "location", *(f"costs.{name}" for name in COSTS)):
        name = spot_of(sites, location)[0]
        wanted[name] = [old + new for old, new in zip(wanted.get(name, [0] * len(costs)), costs)]
    table = server.get("functions", costs="all", limit=0, hide_wrappers=1)
    found = {name_of(table, function): costs for function, *costs
             in rows(table["functions"], "function", *(f"self.{name}" for name in COSTS))}
    assert {name: costs for name, costs in found.items() if any(costs)} == wanted
    # A function that is folded everywhere has the answer with all frames.
    every = server.get("functions", costs="all", limit=0)
    folded = {name_of(every, function) for function in every["functions"]["function"]} - set(found)
    assert folded
    for name in folded:
        assert server.get("function", name=name, costs="all", hide_wrappers=1) == \
            server.get("function", name=name, costs="all")


COSTED = ("inclusive.peak_bytes", "inclusive.allocations", "inclusive.temporary")


@pytest.mark.parametrize("params", [{}, {"process": 1000}, {"function": "load"}, {"hide_wrappers": 1}])
def test_the_call_graph_is_what_each_function_says(server, params):
    graph = server.get("call_graph", costs="all", **params)
    calls = [(name_of(graph, caller), name_of(graph, callee), *costs)
             for caller, callee, *costs in rows(graph["edges"], "caller", "callee", *COSTED)]
    places = [(spot_of(graph, location), *costs)
              for location, *costs in rows(graph["locations"], "location", *COSTED)]
    table = server.get("functions", limit=0, **params)
    assert len(calls) == graph["total_edges"] and len(set(call[:2] for call in calls)) == len(calls)
    for name in {name_of(table, function) for function in table["functions"]["function"]}:
        one = server.get("function", name=name, costs="all", **params)
        assert {call[:1] + call[2:] for call in calls if call[1] == name} == {
            (name_of(one, function), *costs)
            for function, *costs in rows(one["callers"], "function", *COSTED)}
        assert {call[1:] for call in calls if call[0] == name} == {
            (name_of(one, function), *costs) for function, *costs
            in rows(one["callees"], "function", *COSTED) if function is not None}
        assert {place for place in places if place[0][0] == name} == {
            (spot_of(one, location), *costs)
            for location, *costs in rows(one["locations"], "location", *COSTED)}
    for path in {place[0][1] for place in places if "hide_wrappers" not in params} - {""}:
        source = server.get("source", file_path=path, costs="all", **params)
        known = rows(source["lines"], "line", *COSTED)
        reported = [(spot_of(graph, location)[1:3], *costs)
                for location, *costs in rows(graph["lines"], "location", *COSTED)]
        assert {(place[1], *costs) for place, *costs in reported if place[0] == path} == {
            line for line in known if any(line[1:])}
    assert server.get("call_graph", limit=2, **params)["edges"]["count"] == min(2, len(calls))


def test_a_tree_can_be_cut_by_any_cost(server):
    """The largest share in any cost decides what is taken, whatever `sort` is."""
    whole = server.get("tree", costs="all", limit=0)
    root = {cost: column[0] for cost, column in whole["nodes"]["total"].items()}

    def share(place):
        return max(column[place] * 10 ** 9 // root[cost]
                   for cost, column in whole["nodes"]["total"].items() if root[cost])
    ranked = sorted(range(whole["nodes"]["count"]),
                    key=lambda place: (-share(place), whole["nodes"]["id"][place]))
    for limit in range(1, whole["nodes"]["count"] + 1):
        cut = server.get("tree", costs="all", limit=limit, any_cost=1, sort="frees")
        assert set(cut["nodes"]["id"]) == {whole["nodes"]["id"][place] for place in ranked[:limit]}


def test_stacks_behind_a_node_and_a_function(server):
    everything = server.get("stacks", sort="allocations")
    assert everything["total_count"] == 5
    assert sum(everything["stacks"]["costs"]["allocations"]) == 1059
    tree = server.get("tree", direction="bottom_up", sort="allocations")
    for node, total in rows(tree["nodes"], "id", "total.allocations"):
        behind = server.get("stacks", direction="bottom_up", node=node, sort="allocations")
        assert sum(behind["stacks"]["costs"]["allocations"]) == total
    ids = dict(rows(tree["code"]["functions"], "name", "id"))
    work = server.get("stacks", function_id=ids["work"], sort="allocations")
    assert work["stacks"]["costs"]["allocations"] == [30]
    second = server.get("stacks", sort="allocations", offset=1, limit=1)
    assert second["total_count"] == 5
    assert second["stacks"]["costs"]["allocations"] == \
        everything["stacks"]["costs"]["allocations"][1:2]
    assert server.try_get("stacks", node=10**6).status == 404


def test_a_node_and_a_function_together_have_the_stacks_of_both(server):
    def stacks(**params):
        answer = server.get("stacks", limit=0, costs="all", sort="allocations", **params)
        assert answer["total_count"] == answer["stacks"]["count"]
        return set(rows(answer["stacks"], "costs.allocations", "costs.allocated_bytes"))  # all differ

    tree = server.get("tree", sort="allocations", limit=0)
    functions = tree["code"]["functions"]["id"]
    assert len(stacks()) == 5
    parts = 0
    for node in tree["nodes"]["id"]:
        below = stacks(node=node)
        for function in functions:
            both = stacks(node=node, function_id=function)
            assert both == below & stacks(function_id=function)
            parts += 0 < len(both) < len(below)
    assert parts > 0
    for params in ({"node": max(tree["nodes"]["id"]) + 1}, {"function_id": max(functions) + 1}):
        assert server.try_get("stacks", **params).status == 404


def test_time_ranges_count_blocks_by_birth_and_death(server):
    def totals(**params):
        return server.get("summary", **params)["selection"]

    early = totals(from_ms=0, to_ms=400)
    assert early["filter"]["time"] == {"from_ms": 0, "to_ms": 400, "classes": ["in_in", "in_out"]}
    assert early["totals"]["allocations"] == 600 + 5 + 2
    assert early["totals"]["live_blocks"] == 600 + 2
    assert early["unavailable"] == ["temporary_bytes", "own_peak_bytes"]
    middle = {"from_ms": 500, "to_ms": 1000}
    assert totals(**middle, classes="in_in")["totals"]["allocations"] == 30 + 4
    assert totals(**middle, classes="in_out")["totals"]["allocations"] == 2
    assert totals(**middle, classes="out_out")["totals"]["allocations"] == 600 + 4
    assert totals(from_ms=700, to_ms=1000, classes="out_in")["totals"]["frees"] == 30
    assert totals(from_ms=510, to_ms=520)["filter"]["time"]["from_ms"] == 500
    # The heap as it stood: what is live at a moment is what the chart shows there.
    points = server.get("series")["points"]
    for end, live in rows(points, "end_ms", "live_bytes"):
        assert totals(to_ms=end)["totals"]["live_bytes"] == live
    both = totals(from_ms=500, to_ms=1000, function="load", classes="in_in")
    assert both["totals"]["allocations"] == 34
    assert server.try_get("summary", from_ms=5, to_ms=5).status == 400
    tree = server.get("tree", from_ms=500, to_ms=1000)
    assert tree["nodes"]["total"]["allocations"][0] == 36


def test_two_ranges_of_one_recording_are_compared(server):
    ranges = {"from_ms": 500, "to_ms": 1000, "old_from_ms": 0, "old_to_ms": 400}
    selection = server.get("summary", diff=1, **ranges)["selection"]
    assert selection["totals"]["allocations"] == 36
    assert selection["baseline_totals"]["allocations"] == 600 + 5 + 2
    nodes = server.get("tree", diff=1, limit=0, direction="bottom_up", **ranges)["nodes"]
    assert (nodes["total"]["allocations"][0], nodes["old_total"]["allocations"][0]) == (36, 607)
    top = [place for place, depth in enumerate(nodes["depth"]) if depth == 1]
    assert sum(nodes["total"]["allocations"][place] for place in top) == 36
    assert sum(nodes["old_total"]["allocations"][place] for place in top) == 607
    assert server.get("summary", **ranges)["selection"]["baseline_totals"] is None
    assert server.try_get("summary", diff=1, old_from_ms=5, old_to_ms=5).status == 400
    assert server.try_get("summary", diff=1).status == 409


def test_charts_hold_all_that_happened(server):
    for value in ("live_bytes", "allocations", "allocated_bytes", "temporary"):
        for by in ("stack", "call_site"):
            answer = server.get("series", value=value, by=by, top=2)
            assert answer["points"]["count"] == SLICES
            assert len(answer["top"]) <= 2
            for place in range(SLICES):
                parts = answer["rest"][place] + sum(e["values"][place] for e in answer["top"])
                assert parts == answer["points"][value][place]
            scores = [entry["score"] for entry in answer["top"]]
            assert scores == sorted(scores, reverse=True)
            assert all(bool(entry["frames"]) == (by == "stack") for entry in answer["top"])
    answer = server.get("series")
    totals = answer["selection"]["totals"]
    assert sum(answer["points"]["allocations"]) == totals["allocations"]
    assert answer["points"]["live_bytes"][-1] == totals["live_bytes"]
    assert rows(answer["rss"], "time_ms", "rss_bytes") == \
        [(100, 90000000), (300, 100000000), (900, 105000000)]
    assert answer["peak"] == {"time_ms": 450, "bytes": totals["peak_bytes"]}


@pytest.mark.parametrize("filters", [{}, {"function": "load"}, {"function": "strdup"}, {"thread": "main"}])
def test_the_highest_within_a_slice_is_no_lower_than_its_ends(server, filters):
    """Of a part of the heap it is the higher end, which in a slice that frees is the one it begins with."""
    points = server.get("series", **filters)["points"]
    live, highest = points["live_bytes"], points["live_max_bytes"]
    ends = [max(before, after) for before, after in zip([0, *live], live)]
    if filters:
        assert highest == ends
    else:
        assert all(top >= end for top, end in zip(highest, ends))


def test_a_part_that_falls_within_a_slice_was_higher_before(serve, tmp_path):
    path = draw(tmp_path / "fall.cairn", "process app\nthread main\nmain;load 2 30 1 20 0 0 2 30 30\n"
                "@0 2 30 0 0 0\n@1 0 0 1 20 0\nmain;other 1 5 0 0 0 0 1 5 5\n@1 1 5 0 0 0\n")
    points = serve(path).get("series", function="load")["points"]
    assert (points["live_bytes"], points["live_max_bytes"]) == ([30, 10], [30, 30])


def test_histograms_hold_every_block(server):
    totals = server.get("summary")["totals"]
    for route, wanted in (("sizes", totals["allocations"]), ("lifetimes", totals["frees"])):
        answer = server.get(route, top=1)
        assert sum(answer["buckets"]["blocks"]) == wanted
        for column in ("blocks", "bytes"):
            for place, total in enumerate(answer["buckets"][column]):
                assert total == answer["rest"][column][place] + \
                    sum(entry[column][place] for entry in answer["top"])
        lows, highs = answer["buckets"]["low"], answer["buckets"]["high"]
        assert all(high + 1 == low for high, low in zip(highs, lows[1:]))
    heat = server.get("size_lifetime")
    assert heat["total_blocks"] == totals["frees"]
    assert heat["certain_blocks"] == totals["frees"] - 4  # one stack has two sizes and lifetimes
    assert sum(heat["cells"]["blocks"]) == heat["certain_blocks"]


def test_leaks_are_classed_by_how_they_grew(server):
    answer = server.get("leaks", by="stack")
    found = {tuple(spot_of(answer, answer["frames"]["location"][at])[0]
                   for at in range(first, first + count)): (bytes_, growth)
             for first, count, bytes_, growth in rows(
                 answer["leaks"], "frame_first", "frame_count", "costs.live_bytes", "growth")}
    walk = "walk<std::vector<int> >"
    assert found == {("strdup", "load", "main"): (38400, "start_up"),
                     ("load", walk, walk, "main"): (1200, "growing")}
    growing = server.get("leaks", growth="growing")
    assert growing["total_count"] == 1
    assert growing["leaks"]["slope_bytes_per_s"][0] > 0
    assert growing["leaks"]["first_ms"] == [0] and growing["leaks"]["last_ms"] == [1500]


def test_rss_adds_processes_up(server):
    answer = server.get("rss")
    assert rows(answer["samples"], "time_ms", "rss_bytes") == \
        [(100, 90000000), (300, 100000000), (900, 105000000)]
    assert (answer["peak_rss_bytes"], answer["peak_rss_ms"]) == (105000000, 900)
    pid = server.get("processes")["processes"]["pid"][1]
    alone = server.get("rss", process=pid)
    assert alone["samples"]["rss_bytes"] == [10000000]
    assert alone["samples"]["live_bytes"] == [None]


EVENTS = """\
process server
thread main
app!main(app.c:1) 1 1
event app!main(app.c:1);app!send(net.c:7)=>cairn_event(cairn.h:186);[event sent]![event sent] 3 512
process helper
thread main
event app!main(app.c:1);app!send(net.c:7)=>cairn_event(cairn.h:186);[event sent]![event sent] 2 5000
event app!main(app.c:2);[event polls]![event polls] 1000 600
"""


def test_events_of_the_program(serve, tmp_path):
    file = draw(tmp_path / "events.cairn", EVENTS)
    server = serve(file)
    assert server.get("meta")["capabilities"]["adhoc"]
    answer = server.get("adhoc")
    check_answer("adhoc", answer)
    assert answer["total_count"] == 3
    assert rows(answer["entries"], "name", "pid", "events", "weight", "frame_count") == [
        ("[event sent]", 1001, 2, 5000, 3), ("[event polls]", 1001, 1000, 600, 1), ("[event sent]", 1000, 3, 512, 3)]
    first = answer["entries"]["frame_first"][0]
    assert [(*spot_of(answer, answer["frames"]["location"][first + i])[:3], answer["frames"]["inlined"][first + i])
            for i in range(3)] == [("cairn_event", "cairn.h", 186, True), ("send", "net.c", 7, False),
                                   ("main", "app.c", 1, False)]
    assert [(event["name"], event["pid"], event["events"], event["weight"]) for event in report(file)["adhoc"]["entries"]] == \
        rows(answer["entries"], "name", "pid", "events", "weight")
    cut = server.get("adhoc", limit=1)
    assert (cut["total_count"], cut["entries"]["weight"]) == (3, [5000])


def test_a_program_without_events_has_none(server):
    assert not server.get("meta")["capabilities"]["adhoc"]
    assert server.get("adhoc")["entries"]["count"] == 0


KINDS = ["live", "rounding", "kept", "mapped", "stack", "file", "shared", "own", "rest"]


def test_rss_is_broken_down_by_kind_over_time(server):
    answer = server.get("rss")
    assert answer["kinds"]["key"] == KINDS
    splits = answer["breakdowns"]
    assert rows(splits, "time_ms", "rss_bytes", "processes") == \
        [(100, 90000000, 1), (900, 105000000, 2), (1500, 95000000, 1)]
    for row in range(splits["count"]):
        assert sum(splits[f"{kind}_bytes"][row] for kind in KINDS) == splits["rss_bytes"][row]
    assert rows(splits, "is_peak", "is_last", "at_exit", "has_mappings") == \
        [(False, False, False, False), (True, False, False, True), (False, True, True, True)]


def test_the_mappings_are_those_of_one_moment(server):
    answer = server.get("rss")
    assert answer["moment_ms"] == 900  # the peak
    mappings = answer["mappings"]
    by_kind = dict.fromkeys(KINDS, 0)
    for kind, rss in rows(mappings, "kind", "rss_bytes"):
        by_kind[kind] += rss
    assert by_kind == {kind: answer["breakdowns"][f"{kind}_bytes"][1] for kind in KINDS}
    mapped = [row for row in range(mappings["count"]) if mappings["kind"][row] == "mapped"]
    assert [mappings["rss_bytes"][row] for row in mapped] == [34000000, 1000000]
    assert [mappings["frame_count"][row] for row in mapped] == [1, 2]
    first = answer["frames"]["location"][mappings["frame_first"][mapped[1]]]
    names = answer["code"]["functions"]["name"]
    assert names[answer["code"]["locations"]["function"][first]] == "load"
    assert "/dev/shm/<b>&" in mappings["path"]
    last = server.get("rss", moment_ms=1500)
    assert sum(last["mappings"]["rss_bytes"]) == 95000000
    refused = server.try_get("rss", moment_ms=100)
    assert (refused.status, refused.json["error"]["parameter"]) == (404, "moment_ms")
    child = server.get("rss", process=server.get("processes")["processes"]["pid"][1])
    assert rows(child["mappings"], "kind", "rss_bytes") == \
        [("live", 1000000), ("file", 9000000)]


def test_ranges_of_blocks_are_reported_as_they_were_rounded(server):
    def selection(**params):
        return server.get("summary", **params)["selection"]
    sizes = selection(size_min_bytes=85, size_max_bytes=85)
    assert sizes["filter"]["size_bytes"] == {"min": 80, "max": 95}
    assert sizes["filter"]["lifetime_ms"] is None
    assert sizes["totals"]["allocations"] == 1000
    lived = selection(lifetime_max_ms=1)
    assert lived["filter"]["lifetime_ms"] == {"min": 0, "max": 1}
    assert lived["filter"]["size_bytes"] is None
    assert lived["totals"]["frees"] == 8
    assert {"peak_bytes", "temporary"} <= set(lived["unavailable"])
    histogram = server.get("sizes", size_min_bytes=85, size_max_bytes=85)["buckets"]
    assert rows(histogram, "low", "blocks") == [(80, 1000)]
    refused = server.try_get("summary", size_min_bytes=2, size_max_bytes=1)
    assert (refused.status, refused.json["error"]["parameter"]) == (400, "size_max_bytes")
    assert server.try_get("series", size_min_bytes=1).status == 400  # not over time


def test_filters_by_text_find_what_they_should(server):
    def allocations(**params):
        return server.get("summary", **params)["totals"]["allocations"]
    assert allocations(function="LOAD") == 1051
    assert allocations(file="VEC.h") == 5
    assert allocations(file_regex="^/src/l\\.c$") == 8
    assert allocations(module="LIBC") == 1030
    assert allocations(function="load", module="libc", thread="worker-?") == 30
    pid = server.get("processes")["processes"]["pid"][1]
    assert allocations(process=pid) == 8
    echo = server.get("summary", function="LOAD", thread="main")["selection"]["filter"]
    assert {key: value for key, value in echo.items() if value} == \
        {"function": "LOAD", "thread": "main"}


# Names

def test_each_module_has_its_own_count_of_names(serve, tmp_path):
    """Frames, those with a function, and those with a line, by hand; each distinct frame counts once."""
    drawing = HEAD + ("one!main(x.c:1);two!f(y.c:2);two!g;two!h 10 100\n"
                      "one!main(x.c:1);two!g;three!k 1 1\n")
    answer = serve(draw(tmp_path / "modules.cairn", drawing)).get("modules")
    assert sorted(rows(answer["modules"], "name", "frames", "frames_with_function", "frames_with_line")) == \
        [("one", 1, 1, 1), ("three", 1, 1, 0), ("two", 3, 3, 1)]


# Source files

def test_source_files_are_shown_with_their_costs(serve, tmp_path):
    source = tmp_path / "app.c"
    source.write_bytes(b"int main(void)\n{\n    return \xff;\n}\n")
    (tmp_path / "binary.c").write_bytes(b"\x7fELF\0")
    (tmp_path / "secret.c").write_text("nobody named this file\n")
    drawing = HEAD.replace("!advice 1", "!advice 0") + (
        f"app!main({source}:1);app!load({source}:3) 10 100\n"
        f"app!main({source}:1);app!load({source}:3);app!load({source}:3) 5 50\n"
        f"app!main({tmp_path}/binary.c:1);app!x(/etc/passwd:1);app!y(/proc/self/environ:1);"
        f"app!z(relative.c:1);app!w({tmp_path}/gone.c:9) 1 1\n").replace("!rss 300 1", "!rss 300 0")
    server = serve(draw(tmp_path / "s.cairn", drawing))
    answer = server.get("source", file_path=str(source), costs="allocations")
    assert answer["is_readable"] and answer["is_newer"]
    assert answer["text"] == "int main(void)\n{\n    return \ufffd;\n}\n"
    assert rows(answer["lines"], "line", "self.allocations", "inclusive.allocations") == \
        [(1, 0, 15), (3, 15, 15)]
    for path, word in ((f"{tmp_path}/binary.c", "not text"), ("/proc/self/environ", "not that of a source file"),
                       ("relative.c", "relative"), (f"{tmp_path}/gone.c", "No such file")):
        answer = server.get("source", file_path=path)
        assert not answer["is_readable"] and answer["text"] is None
        assert word in answer["reason"]
        assert answer["lines"]["count"] == 1
    for path in (f"{tmp_path}/secret.c", "/etc/shadow", f"{tmp_path}/../{tmp_path.name}/app.c"):
        assert server.try_get("source", file_path=path).status == 404
    assert server.try_get("source").status == 400
    hidden = serve(tmp_path / "s.cairn", "--no-source")
    assert hidden.get("meta")["capabilities"]["source"] is False
    answer = hidden.get("source", file_path=str(source))
    assert not answer["is_readable"] and answer["lines"]["count"] == 2


def test_lines_of_two_recordings_are_compared(serve, tmp_path):
    def path(name, drawing):
        return draw(tmp_path / name, "".join(f"app!main(/src/a.c:1);app!{line}\n" for line in drawing))
    new = path("new.cairn", ["load(/src/a.c:30) 10 100", "only_new(/src/a.c:50) 1 1"])
    old = path("old.cairn", ["load(/src/a.c:30) 4 40", "only_old(/src/a.c:40) 2 2", "gone(/src/b.c:7) 3 3"])
    server = serve(new, "--diff", old)
    lines = server.get("source", file_path="/src/a.c", costs="allocations", diff=1)["lines"]
    found = {line: tuple(lines[key]["allocations"][row] for key in ("self", "inclusive", "old_self", "old_inclusive"))
             for row, line in enumerate(lines["line"])}
    assert found == {1: (0, 11, 0, 9), 30: (10, 10, 4, 4), 40: (0, 0, 2, 2), 50: (1, 1, 0, 0)}
    lines = server.get("source", file_path="/src/b.c", costs="allocations", diff=1)["lines"]
    assert (lines["self"], lines["old_self"]) == ({"allocations": [0]}, {"allocations": [3]})
    assert server.try_get("source", file_path="/src/b.c").status == 404
    assert "old_self" not in server.get("source", file_path="/src/a.c")["lines"]


def test_the_self_cost_of_a_line_is_that_of_its_call_sites(serve, tmp_path):
    """A line that calls operator new or a container has what these allocate, as in the list of files."""
    new = "libstdc++.so.6!operator new(unsigned long)"
    server = serve(draw(tmp_path / "s.cairn", HEAD.replace("!rss 300 1", "!rss 300 0") + (
        f"app!main(/src/a.c:1);app!load(/src/a.c:30);{new} 10 100\n"
        f"app!main(/src/a.c:1);app!fill(/src/a.c:40);app!std::vector<int>::push_back(/usr/include/v.h:5);{new} 7 70\n")))
    graph = server.get("call_graph", costs="all")
    for path, wanted in (("/src/a.c", [(1, 0, 17), (30, 10, 10), (40, 7, 7)]), ("/usr/include/v.h", [(5, 0, 7)])):
        lines = server.get("source", file_path=path, costs="allocations")["lines"]
        assert rows(lines, "line", "self.allocations", "inclusive.allocations") == wanted
        assert sorted((spot_of(graph, location)[2], *costs) for location, *costs in rows(
            graph["lines"], "location", "self.allocations", "inclusive.allocations")
            if spot_of(graph, location)[1] == path) == wanted
        files = server.get("files", costs="allocations", sort="allocations")["groups"]
        assert dict(rows(files, "name", "costs.allocations")).get(path, 0) == sum(line[1] for line in wanted)


def test_lines_of_a_source_are_in_their_order(serve, tmp_path):
    """Whatever order the stacks name them in; a line counts once in a stack."""
    called = [(40, 9), (7, 40), (100, 7), (9, 2), (7, 7), (40, 100)]
    drawing = HEAD.replace("!rss 300 1", "!rss 300 0") + "".join(
        f"app!f{outer}(/src/a.c:{outer});app!f{inner}(/src/a.c:{inner});app!g(/src/b.c:3) {10 ** i} 1\n"
        for i, (outer, inner) in enumerate(called))
    answer = serve(draw(tmp_path / "s.cairn", drawing)).get("source", file_path="/src/a.c", costs="allocations")
    assert rows(answer["lines"], "line", "self.allocations", "inclusive.allocations") == [
        (line, 0, sum(10 ** i for i, lines in enumerate(called) if line in lines))
        for line in (2, 7, 9, 40, 100)]


# Comparisons

def stacks_by_functions(answer, names, cost):
    """The sums of a cost by the functions of a stack, innermost first."""
    sums = {}
    for first, count, value in rows(answer["stacks"], "frame_first", "frame_count", cost):
        key = tuple(names[first:first + count])
        sums[key] = sums.get(key, 0) + value
    return {key: value for key, value in sums.items() if value}


def check_stack_pairs(server):
    """The two sides are the stacks of the two recordings, put together by their functions' names."""
    for cost in ("live_bytes", "allocations"):
        both = server.get("stacks", diff=1, sort=cost, limit=0)
        names = [name_of(both, function) for function in both["frames"]["function"]]
        for side, column in (("new", "costs"), ("old", "old_costs")):
            alone = server.get("stacks", recording=side, sort=cost, limit=0)
            own = [spot_of(alone, location)[0] for location in alone["frames"]["location"]]
            assert stacks_by_functions(both, names, f"{column}.{cost}") == \
                stacks_by_functions(alone, own, f"costs.{cost}")
        for first, site in rows(both["stacks"], "frame_first", "site_frame"):
            assert names[first + site] not in ("operator new(unsigned long)", "strdup")
        larger = [max(pair) for pair in rows(both["stacks"], f"costs.{cost}", f"old_costs.{cost}")]
        assert larger == sorted(larger, reverse=True) and min(larger) > 0
        second = server.get("stacks", diff=1, sort=cost, limit=1, offset=1)
        assert second["total_count"] == both["total_count"] == len(larger)
        assert rows(second["stacks"], f"costs.{cost}", f"old_costs.{cost}") == \
            rows(both["stacks"], f"costs.{cost}", f"old_costs.{cost}")[1:2]
    assert server.try_get("stacks", diff=1, node=1).status == 400
    assert server.get("stacks", diff=1, offset=1000)["stacks"]["count"] == 0


def check_diff(new, old, both, route):
    """The two sides of a diff are the two answers, put together by name."""
    def by_name(answer, column):
        table = answer["functions"]
        return {name_of(answer, function): {key: table[column][key][place] for key in COSTS}
                for place, function in enumerate(table["function"])}
    nothing = {key: 0 for key in COSTS}
    for column in ("self", "inclusive"):
        left, right = by_name(new, column), by_name(old, column)
        mixed, mixed_old = by_name(both, column), by_name(both, f"old_{column}")
        assert set(mixed) == set(left) | set(right), route
        for name, costs in mixed.items():
            assert costs == left.get(name, nothing)
            assert mixed_old[name] == right.get(name, nothing)


def test_two_recordings_are_compared_by_name(serve, file, tmp_path):
    old = draw(tmp_path / "old.cairn", OLD)
    server = serve(file, "--diff", old)
    meta = server.get("meta")
    check_answer("meta", meta)
    assert meta["baseline"]["file"]["path"] == str(old)
    everything = {"costs": "all", "limit": 0}
    new_side = server.get("functions", **everything)
    old_side = server.get("functions", recording="old", **everything)
    check_diff(new_side, old_side, server.get("functions", diff=1, **everything), "functions")
    assert report(old)["totals"] == server.get("summary", recording="old")["totals"]
    summary = server.get("summary", diff=1)
    assert summary["baseline_totals"] == report(old)["totals"]
    assert summary["totals"] == report(file)["totals"]
    assert summary["selection"]["baseline_totals"]["allocations"] == 17

    tree = server.get("tree", diff=1, costs="all")
    nodes = tree["nodes"]
    children = children_of(nodes)
    for cost in COSTS:
        for side in ("", "old_"):
            total, own = nodes[f"{side}total"][cost], nodes[f"{side}self"][cost]
            for place, below in enumerate(children):
                assert total[place] == own[place] + sum(total[child] for child in below)
    paths = {}
    for place, parent in enumerate(nodes["parent"]):
        name = name_of(tree, nodes["function"][place])
        paths[place] = () if parent is None else (*paths[parent], name)
    counts = {paths[place]: (nodes["total"]["allocations"][place],
                             nodes["old_total"]["allocations"][place])
              for place in range(nodes["count"])}
    assert counts[("main", "load")] == (1005, 10)  # modules differ by folder only
    assert counts[("main", "load", "strdup")] == (1000, 10)
    assert counts[("main", "forget")] == (0, 7)
    assert counts[("spin",)] == (8, 0)

    sites = server.get("call_sites", diff=1, sort="live_bytes", sort_by="change")
    assert [(spot_of(sites, location)[0], new, old) for location, new, old in rows(
        sites["sites"], "location", "costs.live_bytes", "old_costs.live_bytes")] == \
        [("load", 39600, 0), ("forget", 0, 700)]
    check_stack_pairs(server)
    load = server.get("function", diff=1, name="load", costs="allocations")
    assert (load["inclusive"], load["old_inclusive"]) == \
        ({"allocations": 1051}, {"allocations": 10})
    for route, params in (("tree", {"by": "location"}), ("call_sites", {"stacks": 1}),
                          ("summary", {"recording": "old"})):
        assert server.try_get(route, diff=1, **params).status == 400
    for route in ("leaks", "rss", "threads", "series"):
        schema_answer = server.get(route, recording="old")
        check_answer(route, schema_answer)
