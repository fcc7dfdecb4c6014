# SPDX-License-Identifier: MIT
"""One word for one thing: the data quality and the parts of RSS in the JSON, its documentation, the report, the
metrics and the glossary."""
import json
import re
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, environment

JSON_PAGE = (ROOT / "docs" / "format" / "json.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
RARE = {"over_memory_limit", "lost_profiles", "reduced_profiles", "blocks_left_out", "unread_parts",
        "unpatched_functions", "hidden_allocators", "unjoined_processes", "slow_processes", "omitted_processes",
        "uncounted_blocks", "undecided_blocks", "block_birth_error_ms"}


def cairn(*words):
    return subprocess.run([CAIRN, *words], check=True, capture_output=True, text=True, env=environment(),
                          timeout=60).stdout


def rows(heading, *cells):
    """The rows of the table in json.md that begins with these cells, below a heading."""
    text = JSON_PAGE[JSON_PAGE.index(f"# {heading}\n"):]
    lines = iter(text[text.index("| " + " | ".join(cells) + " |"):].splitlines()[2:])
    found = []
    while (line := next(lines, "")).startswith("|"):
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def phrases():
    """{kind: phrase} of the parts of RSS, as documented."""
    return {kind.strip("`"): phrase for kind, phrase, _ in rows("`rss`", "kind", "phrase", "resident bytes")}


@pytest.fixture(name="path", scope="module")
def fixture_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "x.cairn"
    cairn("record", "-q", "--blocks", "-o", path, "--", PROGRAMS / "survivors")
    return path


def test_the_counters_are_those_of_the_documentation(path):
    documented = {name.strip("`"): (kind.strip("`"), text)
                  for name, kind, text in rows("`counters`", "`name`", "`kind`", "`text`")}
    counters = {counter["name"]: (counter["kind"], counter["text"])
                for counter in json.loads(cairn("report", "--json", path))["counters"]}
    assert {name: documented.get(name) for name in counters} == counters
    assert set(documented) - set(counters) <= RARE


def test_the_metrics_name_losses_and_notes_as_the_json(path):
    metrics = cairn("export", "--to", "prometheus", path, "-o", "-")
    for metric, kind in (("cairn_lost_events_total", "loss"), ("cairn_notes_total", "note")):
        wanted = [counter["name"] for counter in json.loads(cairn("report", "--json", path))["counters"]
                  if counter["kind"] == kind]
        assert re.findall(metric + r'{reason="(\w+)"}', metrics) == wanted
    assert re.findall(r'cairn_resident_part_bytes{kind="(\w+)"}', metrics) == list(phrases())


def test_the_parts_of_rss_have_one_phrase(path):
    said = phrases()
    report = cairn("report", "-r", path)
    for kind in json.loads(cairn("report", "--json", path))["rss"]["kinds"]:
        assert said.pop(kind["key"]) == kind["phrase"]
        assert re.search(rf"^\| RSS breakdown \|.*\b{re.escape(kind['phrase'])}[ ,]", GLOSSARY, re.M), kind
        guide = (ROOT / "docs" / "user" / "explain-rss.md").read_text()
        assert f"\n| {kind['phrase']} | " in guide, kind
        if kind["key"] in ("live", "kept", "file"):
            assert re.search(rf"^  \S {re.escape(kind['phrase'])} ", report, re.M), (kind, report)
    assert said == {}
