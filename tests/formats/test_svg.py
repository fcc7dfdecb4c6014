# SPDX-License-Identifier: MIT
"""The flame graph of `cairn export --to svg`, read by an XML parser.

Every frame's figures must be those that a plain count over the folded export gives, its rectangle
must lie within its caller's, and hostile names must stay text. tests/viewer clicks on one.
"""
import collections
import re
import xml.etree.ElementTree as ET

import pytest
from test_formats import (FILTERS, draw, export, fixture_hostile, fixture_real,  # noqa: F401
                          fixture_recording, fixture_server, totals)

SPACE = {"svg": "http://www.w3.org/2000/svg"}
WIDTH = 1200

Frame = collections.namedtuple("Frame", "name title x y width text fill")


def frames_of(data):
    root = ET.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    frames = []
    for group in root.iterfind(".//svg:g[@class='frame']", SPACE):
        rect = group.find("svg:rect", SPACE)
        title = group.findtext("svg:title", namespaces=SPACE)
        frames.append(Frame(title.split("\n")[0], title, float(rect.get("x")), int(rect.get("y")),
                            float(rect.get("width")), group.findtext("svg:text", namespaces=SPACE),
                            rect.get("fill")))
    return frames


def expected_widths(recording, *words):
    """Path of functions -> weight, from the lines of the folded export."""
    weights = collections.Counter()
    for line in export(recording, "folded", *words).decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        path = ("all", *([] if stack == "(no stack)" else stack.split(";")))
        for depth in range(1, len(path) + 1):
            weights[path[:depth]] += int(value)
    return weights


def path_of(frame, frames):
    """The names from the root to the frame, by what lies under it."""
    below = sorted((other for other in frames if other.y > frame.y and other.x <= frame.x + 1e-3
                    and other.x + other.width >= frame.x + frame.width - 1e-3), key=lambda f: -f.y)
    levels = {other.y: other.name for other in below}
    return (*levels.values(), frame.name)


@pytest.mark.parametrize("cost", ["peak", "allocations", "leaked"])
def test_widths_are_costs(recording, cost):
    for filters in (*FILTERS, ["--show-wrappers"]):
        words = ["--cost", cost, *filters]
        expected = expected_widths(recording, *words)
        frames = frames_of(export(recording, "svg", *words))
        if not expected:
            assert frames == []
            continue
        whole = expected[("all",)]
        # Names keep their semicolons here; the folded export cannot.
        drawn = {tuple(name.replace(";", ":") for name in path_of(frame, frames)): frame.width
                 for frame in frames}
        assert len(drawn) == len(frames)
        wide = {path: weight / whole * WIDTH for path, weight in expected.items()
                if weight / whole * WIDTH >= 0.25}
        assert drawn == pytest.approx(wide, abs=1e-3)


def test_children_do_not_overlap(recording):
    rows = collections.defaultdict(list)
    for frame in frames_of(export(recording, "svg", "--cost", "allocations")):
        assert 0 <= frame.x and frame.x + frame.width <= WIDTH + 1e-3
        rows[frame.y].append(frame)
    for row in rows.values():
        row.sort(key=lambda frame: frame.x)
        for left, right in zip(row, row[1:]):
            assert left.x + left.width <= right.x + 1e-3


def test_titles(server):
    frames = frames_of(export(server, "svg", "--cost", "allocations", "--show-wrappers"))
    root = frames[0]
    said = totals(server)["allocations"]
    assert root.title == f"all\n{said:,}, 100%" and root.width == WIDTH
    strdup = next(frame for frame in frames if frame.name == "strdup")
    assert strdup.title == "strdup\n10,000, 99.8%\nself 10,000\n/lib/libc.so.6"
    assert strdup.text == "strdup"


def test_texts_are_cut_to_the_room_of_the_frame(tmp_path):
    letter, padding, shortest = 6.6, 3, 3  # pixels: 11 px of DejaVu Sans Mono; letters
    names = [f"caf\u00e9{'x' * length}" for length in range(40)]
    lines = [f"all{name};{name} {100 + 40 * i} 1 0 0 0 0 1 1\n" for i, name in enumerate(names)]
    path = draw(tmp_path / "widths.cairn", f"process server\nthread main\n{''.join(lines)}")
    kinds = collections.Counter()
    for frame in frames_of(export(path, "svg", "--cost", "allocations")):
        room = int((frame.width - 2 * padding) / letter)
        is_cut = len(frame.name) > room
        wanted = "" if room < shortest else frame.name[:room - 2] + ".." if is_cut else frame.name
        assert (frame.text or "") == wanted, (frame, room)
        kinds[(wanted != "", is_cut)] += 1
    assert len(kinds) == 3, kinds


def test_what_is_left_out_is_said(server):
    text = export(server, "svg", "--cost", "peak").decode()
    # All but the large block are below a four-thousandth of the peak.
    assert re.search(r"bytes live at the peak: [\d.]+ MiB; 2 frames too narrow to draw", text), text[:1500]
    assert "too narrow" not in export(server, "svg", "--cost", "allocations", "--thread",
                                      "worker-1").decode()


def test_nothing_to_draw(server):
    data = export(server, "svg", "--filter-function", "no such function")
    assert frames_of(data) == [] and b"<script>" not in data


def test_a_single_allocation_is_drawn(tmp_path):
    path = draw(tmp_path / "one.cairn", "main;f 1 8 0 0 0 0 1 8 8\n")
    assert [frame.name for frame in frames_of(export(path, "svg", "--cost", "allocations"))][1:] == ["main", "f"]


def test_hostile_names_are_text(hostile):
    data = export(hostile, "svg")
    names = [frame.name for frame in frames_of(data)]
    assert 'lam"bda#1 {{{} fn=(1) cfn=evil  [31m; 9 main 5' in names
    root = ET.fromstring(data)
    assert len(root.findall(".//svg:script", SPACE)) == 1


def test_markup_in_names_is_text(tmp_path):
    names = ["</title><script>alert(1)</script>", "]]><script>alert(2)</script>", "&lt;&amp;", "a<b>::c",
             "\ufffe\uffff", "\u202eright to left"]
    stack = ";".join(f"/bin/<i>a</i>!{name}(x.c:1)".replace(";", "\x02") for name in names)
    path = draw(tmp_path / "markup.cairn", f"process server\nthread main\n{stack} 7 700 1 100 0 0 6 600 700\n"
                "@0 7 700 1 100 0\n")
    found = frames_of(export(path, "svg"))
    shown = str.maketrans({"\ufffe": "\ufffd", "\uffff": "\ufffd", "\u202e": "\\u{202e}"})
    assert [frame.name for frame in found[1:]] == [name.translate(shown) for name in names]
    assert found[1].title.endswith("/bin/<i>a</i>")
