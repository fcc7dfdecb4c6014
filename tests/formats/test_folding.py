# SPDX-License-Identifier: MIT
"""Formats that are drawn as they are fold wrapper frames as the report does: their stacks are those of `cairn report --tree`,
with --show-wrappers and without.
"""
import json
import re

import pytest
from test_formats import (CALLGRIND_EVENTS, callgrind_annotate, export, fixture_real, fixture_server,  # noqa: F401
                          report)


def stacks_of_the_report(path, cost, *words):
    """{names from the outermost: own cost} of `cairn report --tree`."""
    nodes = report(path, "--tree", "top-down", "--max-depth", "0", "--sort", cost, *words)["tree"]["nodes"]
    here, stacks = [], {}
    for node in nodes:
        here[max(node["depth"] - 1, 0):] = [node["function"]] if node["depth"] > 0 else []
        if node["self"][cost] > 0:
            name = ";".join(here) or "(no stack)"
            stacks[name] = stacks.get(name, 0) + node["self"][cost]
    return stacks


def added_up(stacks):
    found = {}
    for stack, value in stacks:
        found[stack] = found.get(stack, 0) + value
    return found


@pytest.mark.parametrize("words", [[], ["--show-wrappers"]], ids=["folded", "whole"])
def test_drawn_formats_have_the_stacks_of_the_reports_tree(server, real, tmp_path, words):
    """Innermost frames alone where a format has no whole stacks."""
    for path in (server, real):
        wanted = stacks_of_the_report(path, "allocations", *words)
        lines = export(path, "folded", "--cost", "allocations", *words).decode().splitlines()
        assert added_up((stack, int(value)) for stack, value in (line.rsplit(" ", 1) for line in lines)) == wanted
        document = json.loads(export(path, "speedscope", "--cost", "allocations", *words))
        names = [frame["name"] for frame in document["shared"]["frames"]]
        profile, = document["profiles"]
        drawn = ((";".join(names[place] for place in sample), weight)
                 for sample, weight in zip(profile["samples"], profile["weights"]))
        assert added_up(drawn) == wanted
        _, rows = callgrind_annotate(tmp_path, export(path, "callgrind", *words))
        place = list(CALLGRIND_EVENTS).index("Allocations")
        own = added_up((re.sub(r" \[.*", "", name).split(":", 1)[1], row[place]) for name, row in rows.items() if row[place] > 0)
        assert own == added_up((stack.split(";")[-1], value) for stack, value in wanted.items())


def test_massif_begins_at_call_sites(server):
    for words, sites in (([], {"load"}), (["--show-wrappers"], {"strdup"})):
        peak = export(server, "massif", "--filter-function", "main", *words).decode().split("heap_tree=peak\n")[1]
        assert set(re.findall(r"^ n\d+: \d+ 0x[0-9A-F]+: (\w+) ", peak.split("#-----------")[0], re.MULTILINE)) == sites
