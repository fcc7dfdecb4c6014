# SPDX-License-Identifier: MIT
"""`cairn export --to prometheus`: the format, by a strict parser, and the figures, by the report."""
import re
import subprocess

import pytest
from exposition import parse, value
from test_formats import (BUILD, CAIRN, ROOT, draw, export, fixture_hostile, fixture_real,  # noqa: F401
                          fixture_server, report)

PROGRAMS = ROOT / "tests" / "programs" / "counts"

HEAP = {"cairn_heap_live_bytes": "live_bytes", "cairn_heap_live_blocks": "live_blocks",
        "cairn_heap_peak_bytes": "peak_bytes", "cairn_heap_allocations_total": "allocations",
        "cairn_heap_allocated_bytes_total": "allocated_bytes", "cairn_heap_frees_total": "frees",
        "cairn_heap_freed_bytes_total": "freed_bytes", "cairn_heap_temporary_total": "temporary"}


@pytest.mark.parametrize("name", ["server", "real"])
@pytest.mark.parametrize("filters", [(), ("--thread", "main")])
def test_the_figures_are_those_of_the_report(name, filters, request):
    recording = request.getfixturevalue(name)
    families = parse(export(recording, "prometheus", *filters))
    totals = report(recording, *filters)["totals"]
    assert {key: value(families, key) for key in HEAP} == {key: totals[name] for key, name in HEAP.items()}
    assert ("cairn_recording_info" in families) == (not filters)
    # Filters have no exact totals of a sampled recording, so they have none at all.
    exact = {f"cairn_heap_exact_{name}_total": totals[name] for name in ("allocations", "allocated_bytes") if not filters}
    assert {key: value(families, key) for key in families if "_exact_" in key} == exact


def test_counters_are_those_of_the_report(real):
    families = parse(export(real, "prometheus"))
    reasons = {dict(labels)["reason"]: number for family in ("cairn_lost_events_total", "cairn_notes_total")
               for labels, number in families[family].items()}
    assert reasons == {counter["name"]: counter["value"] for counter in report(real)["counters"]}


def test_call_sites_are_those_of_the_report(server):
    families = parse(export(server, "prometheus"))
    for family, cost in [("cairn_call_site_live_bytes", "live_bytes"),
                         ("cairn_call_site_allocated_bytes_total", "allocated_bytes")]:
        found = {dict(labels)["function"]: number for labels, number in families[family].items()}
        # By the drawing: allocated less freed bytes; strdup counts for its caller load.
        expected = {"live_bytes": {"load": 60000000, "main": 9, "spin": 32},
                    "allocated_bytes": {"load": 100000030, "push": 500, "main": 9, "spin": 64}}[cost]
        assert found == expected


def test_hostile_names_stay_labels(hostile):
    families = parse(export(hostile, "prometheus"))
    (labels, number), = families["cairn_call_site_live_bytes"].items()
    assert number == 600 and dict(labels)["module"] == '/bin/a"b' and "\n" not in str(dict(labels).values())


def test_series_are_bounded_and_equal_labels_are_one(tmp_path):
    lines = [f"/bin/many!main(m.c:1);/bin/many!f{i}(m.c:{i}) 1 {1000 + i} 0 0 0 0 1 {1000 + i} {1000 + i}"
             for i in range(1, 200)]
    path = draw(tmp_path / "many.cairn", "!runtime_ms 1\nprocess many\nthread one\n" + "\n".join(lines) + "\n")
    families = parse(export(path, "prometheus"))
    live = families["cairn_call_site_live_bytes"]
    assert sorted(live.values(), reverse=True) == list(range(1199, 1179, -1))


def test_blocks_of_ended_processes_are_not_live(tmp_path):
    path = tmp_path / "left.cairn"
    program = BUILD / "programs" / "temporary"  # its source states what it leaks
    stated = int(re.search(r"TRUTH: live_bytes=(\d+)", (PROGRAMS / "temporary.c").read_text())[1])
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", "sh", "-c", '"$0"; "$0"; exit 0', program],
                   check=True, timeout=60, stdout=subprocess.DEVNULL)
    document = report(path, "--all")
    gone = [process["costs"]["live_bytes"] for process in document["processes"]
            if process["executable"] == str(program)]
    live = value(parse(export(path, "prometheus")), "cairn_heap_live_bytes")
    assert gone == [stated, stated] and live == document["totals"]["live_bytes"] - sum(gone)
