# SPDX-License-Identifier: MIT
"""The specification, the reader written from it, and the C reader say the same of every file."""
import json
import os
import pathlib
import re
import subprocess

import mini_reader
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = pathlib.Path(os.environ["CAIRN_BUILD"]) / "tests/recording/recording_example"
SPEC = ROOT / "docs/format/recording.md"

# What the C reader mends is not what was written: these tables of the file of wild numbers are left.
UNMENDED = ["strings", "modules", "symbols", "counters", "totals", "slices"]


def write(kind, path):
    subprocess.run([EXAMPLE, "write", kind, path], check=True)
    return path


def read_in_c(path):
    return json.loads(subprocess.run([EXAMPLE, "read", path], check=True,
                                     stdout=subprocess.PIPE).stdout)


def assert_same(got, want, tables):
    for table in tables:
        assert len(got[table]) == len(want[table]), table
        for i, entry in enumerate(want[table]):
            assert got[table][i] == entry, f"{table}[{i}]"


@pytest.mark.parametrize("kind", ["tiny", "small", "plain", "groups", "two", "large"])
def test_both_readers_agree_on_every_field(kind, tmp_path):
    path = write(kind, tmp_path / kind)
    want = read_in_c(path)
    got = mini_reader.read(path.read_bytes())
    assert got["generation"] == want["generation"] == (2 if kind == "two" else 1)
    assert got["complete"] and want["complete"]
    assert got.keys() == want.keys()
    assert_same(got, want, [key for key in want if isinstance(want[key], list)])


def test_both_readers_agree_on_numbers_of_any_size(tmp_path):
    path = write("wild", tmp_path / "wild")
    assert_same(mini_reader.read(path.read_bytes()), read_in_c(path), UNMENDED)


def test_both_readers_get_as_far_in_a_cut_file(tmp_path):
    path = write("cut", tmp_path / "cut")
    want = read_in_c(path)
    got = mini_reader.read(path.read_bytes())
    assert not got["complete"] and not want["complete"]
    assert len(want["nodes"]) > 1
    assert_same(got, want, ["meta", "totals", "strings", "processes", "threads", "nodes", "rows"])


def test_the_sums_are_what_was_drawn(tmp_path):
    got = mini_reader.read(write("small", tmp_path / "small").read_bytes())
    assert [row["allocated_bytes"] for row in got["rows"]] == [640, 30, 8]
    assert got["totals"][0]["allocations"] == 14
    functions = [got["strings"][symbol["function"]] for symbol in got["symbols"]]
    assert functions == ["main", "grow", "load", "work"]


def test_the_example_of_the_specification_is_a_file_that_the_writer_makes(tmp_path):
    lines = re.findall(r"^([0-9a-f]{8})  ((?:[0-9a-f]{2} ?)+) ", SPEC.read_text(), re.M)
    assert [int(offset, 16) for offset, _ in lines] == list(range(0, 16 * len(lines), 16))
    example = b"".join(bytes.fromhex(text) for _, text in lines)
    assert example == write("tiny", tmp_path / "tiny").read_bytes()


@pytest.mark.parametrize("kind", mini_reader.TABLES)
def test_the_specification_names_the_fields_that_the_readers_know(kind):
    sections = re.split(r"\n### ", SPEC.read_text())
    section, = [text for text in sections if f"`{kind}`" in text.splitlines()[0]]
    described = re.findall(r"^\| *(\d+) \| (\w+) \|", section, re.M)
    assert described == [(str(ident), name) for ident, name, _, _ in mini_reader.TABLES[kind][1]]


@pytest.mark.parametrize("place", range(0, 2000, 37))
def test_the_mini_reader_notices_a_changed_byte(place, tmp_path):
    data = bytearray(write("tiny", tmp_path / "tiny").read_bytes())
    place %= len(data)
    data[place] ^= 0x10
    with pytest.raises((mini_reader.FormatError, KeyError, TypeError, ValueError)):
        got = mini_reader.read(bytes(data))
        # A footer that is not one is a file that was cut: read, but not complete.
        mini_reader.require(got["complete"], "cut")


def test_xxh64_gives_the_published_values():
    # From the reference implementation: seed 0, and inputs that take each of its paths.
    assert mini_reader.xxh64(b"") == 0xEF46DB3751D8E999
    assert mini_reader.xxh64(b"a") == 0xD24EC4F1A98C6E5B
    assert mini_reader.xxh64(b"abc") == 0x44BC2CF5AD770999
