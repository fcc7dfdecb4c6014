# SPDX-License-Identifier: MIT
"""Exports that are series over time, of the part of a run that the filters leave: each against what
was live at each moment of a drawn recording, counted by hand."""
import json

import pytest

from test_formats import counters, draw, export, massif_snapshots, ms_print, totals

# Blocks of 10 bytes, half of them called small. Two are born in slice 0: one dies in slice 2. Three
# in slice 1: one dies at once. One in slice 3. So 20, 40, 30 and 40 bytes are live.
LIVELY = """\
!runtime_ms 400
!peak_time_ms 150
process app
thread main
main;hold 6 60 2 20 0 0 4 40 40
@0 2 20 0 0 0
@1 3 30 1 10 0
@2 0 0 1 10 0
@3 1 10 0 0 0
cohort 0 2 1 10
cohort 0 - 1 10
cohort 1 - 2 20
cohort 3 - 1 10
size 5 3 15
size 15 3 45
"""


# What was live before the range, and at the ends of its slices; peak and end; the allocations.
@pytest.mark.parametrize("filters, first, live, peak, end, allocations", [
    ([], 0, [0, 20, 40, 30, 40], (150, 40), (400, 40), 6),
    (["--time", "0..400ms"], 0, [0, 20, 40, 30, 40], (200, 40), (400, 40), 6),
    (["--time", "100ms..300ms"], 1, [0, 20, 20], (200, 20), (300, 20), 3),
    (["--time", "100ms..300ms", "--classes", "in_in"], 1, [0, 0, 0], (200, 0), (300, 0), 1),
    (["--time", "100ms..300ms", "--classes", "out_in,out_out"], 1, [20, 20, 10], (200, 20),
     (300, 10), 0),
    (["--time", "200ms.."], 2, [0, 0, 10], (400, 10), (400, 10), 1),
    (["--size", "..5"], 0, [0, 5, 10, 8, 10], (150, 10), (400, 10), 3),
    (["--size", "..5", "--time", "100ms..300ms"], 1, [0, 5, 5], (200, 5), (300, 5), 2),
])
def test_series_are_of_the_part_that_was_asked_for(tmp_path, filters, first, live, peak, end,
                                                   allocations):
    path = draw(tmp_path / "lively.cairn", LIVELY)
    expected = totals(path, *filters)
    assert (expected["peak_time_ms"], expected["peak_bytes"]) == peak
    if "--classes" not in filters:
        assert (expected["live_bytes"], expected["allocations"]) == (end[1], allocations)

    times = [(first + i) * 100 for i in range(len(live))]
    snapshots = massif_snapshots(ms_print(tmp_path, export(path, "massif", *filters)))
    plain = [(time, size) for time, size in zip(times, live) if time < end[0]]
    assert [snapshot[1:] for snapshot in snapshots] == \
        sorted([*plain, peak], key=lambda point: point[0]) + [end]

    points = json.loads(export(path, "json", *filters))["points"]
    end_of_range = first + len(live) - 1
    assert points["live_bytes"][first:end_of_range] == live[1:]
    assert sum(points["allocations"]) == pytest.approx(allocations, abs=1)
    assert not any(points["live_bytes"][:first] + points["live_bytes"][end_of_range:])

    document = json.loads(export(path, "perfetto", *filters))
    (heap,) = counters(document, "heap").values() or [[]]
    held = dict(zip([time * 1000 for time in times], live))
    assert all(held[time] == size for time, size in heap)
    drawn, at = [], 0  # a counter keeps its value until the next
    for time in held:
        at = dict(heap).get(time, at)
        drawn.append(at)
    assert drawn == live


def test_slices_of_one_lifetime_are_not_known(tmp_path):
    path = draw(tmp_path / "lively.cairn", LIVELY + "life 2 2 20\n")
    document = json.loads(export(path, "json", "--lifetime", "0..10s"))
    figures = {key: column for key, column in document["points"].items()
               if key not in ("count", "start_ms", "end_ms")}
    assert {value for column in figures.values() for value in column} == {None}
