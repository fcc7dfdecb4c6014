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

HISTORY = ["cells", "size_buckets", "lifetime_buckets", "cohorts"]

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


@pytest.mark.parametrize("kind", ["tiny", "small", "plain", "groups", "history", "two", "large"])
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


@pytest.fixture(name="history")
def history_of_rows(tmp_path):
    return write("history", tmp_path / "history").read_bytes()


def chunks_of_history(data):
    kinds = ("ROWS", "COHO", "CELL", "SIZB", "LIFB")
    return [chunk for chunk in mini_reader.walk(data)[0] if chunk.kind in kinds]


@pytest.mark.nightly  # some hundred cuts, each read twice
def test_of_a_cut_history_both_readers_take_what_is_certain(history, tmp_path):
    cuts = [chunk.offset for chunk in chunks_of_history(history)]
    cuts.append(mini_reader.walk(history)[0][-1].offset)
    assert len(cuts) > 25
    whole = mini_reader.read(history)
    before = 0
    for cut in cuts:
        path = tmp_path / "cut"
        path.write_bytes(history[:cut])
        want, got = read_in_c(path), mini_reader.read(history[:cut])
        assert_same(got, want, HISTORY)
        for table in HISTORY:  # nothing but what is in the whole
            assert got[table] == whole[table][:len(got[table])]
        known = sum(len(got[table]) for table in HISTORY)
        assert known >= before
        before = known
    assert before > 25


def test_a_damaged_chunk_makes_nothing_else_untrue(history, tmp_path):
    path = tmp_path / "damaged"
    whole = mini_reader.read(history)
    chunks = chunks_of_history(history)
    assert len(chunks) > 25
    for chunk in chunks:
        at = chunk.offset + 48
        path.write_bytes(history[:at] + bytes([history[at] ^ 1]) + history[at + 1:])
        got = read_in_c(path)
        assert not got["complete"]
        assert sum(len(got[table]) < len(whole[table]) for table in HISTORY) >= 1
        for table in HISTORY:
            assert got[table] == whole[table][:len(got[table])]


def test_a_history_is_what_was_drawn(tmp_path):
    got = read_in_c(write("history", tmp_path / "history"))
    assert [tuple(cell.values()) for cell in got["cells"]] == [
        (0, 1, 10, 100, 10, 100, 10), (1, 0, 5, 292, 1, 8, 0), (1, 2, 1, 8, 3, 252, 0),
        (2, 2, 3, 48, 0, 0, 0), (3, 1, 3, 30, 1, 10, 0), (3, 2, 1, 10, 0, 0, 0),
        (3, 3, 0, 0, 2, 20, 0), (4, 0, 2, 80, 1, 16, 0), (5, 0, 1, 10, 1, 10, 0),
        (5, 3, 1, 20, 1, 20, 0)]
    assert [tuple(bucket.values()) for bucket in got["size_buckets"]] == [
        (0, 9, 10, 100), (1, 8, 4, 32), (1, 23, 2, 268), (2, 12, 3, 48), (3, 9, 4, 40),
        (4, 12, 1, 16), (4, 16, 1, 64), (5, 9, 1, 10), (5, 13, 1, 20)]
    assert [tuple(bucket.values()) for bucket in got["lifetime_buckets"]] == [
        (0, 0, 10, 100), (1, 1, 1, 8), (1, 3, 3, 252), (3, 2, 3, 30), (4, 0, 1, 16), (5, 0, 1, 10),
        (5, 4, 1, 20)]
    none = mini_reader.NONE
    assert [tuple(cohort.values()) for cohort in got["cohorts"]] == [
        (1, 0, 2, 3, 252), (1, 0, none, 1, 32), (1, 2, none, 1, 8), (2, 2, none, 3, 48),
        (3, 1, 3, 2, 20), (3, 2, none, 1, 10), (4, 0, none, 1, 64)]


def test_what_version_1_wrote_is_read_as_before(tmp_path):
    old = pathlib.Path(__file__).parent / "version1.cairn"
    assert old.read_bytes()[8:10] == b"\1\0"
    want = read_in_c(write("small", tmp_path / "small"))
    for got in (read_in_c(old), mini_reader.read(old.read_bytes())):
        assert_same(got, want, [key for key in want if isinstance(want[key], list)])


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


@pytest.mark.parametrize("place", range(0, 2000, 37 if os.environ.get("CAIRN_NIGHTLY") else 185))
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
