# SPDX-License-Identifier: MIT
"""`cairn dump` and `cairn verify`: what they print of whole, cut, changed and foreign files."""
import json
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["CAIRN_BUILD"])
EXAMPLE = BUILD / "tests/recording/recording_example"


def cairn(*words):
    return subprocess.run([BUILD / "bin/cairn", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False)


@pytest.fixture
def made(tmp_path):
    def make(kind):
        path = tmp_path / kind
        subprocess.run([EXAMPLE, "write", kind, path], check=True)
        return path
    return make


def chunk_types(text):
    return re.findall(r"^ +\d+  ([A-Z]{4})  ", text, re.M)


def test_dump_lists_the_chunks_in_the_order_of_the_file(made):
    run = cairn("dump", made("small"))
    assert run.returncode == 0 and run.stderr == ""
    assert chunk_types(run.stdout) == ("SBEG META TOTL STRS PROC THRD MODS SLIC FRAM NODE ROWS SYMB "
                                       "COHO CELL SIZB LIFB SEND").split()
    assert re.search(r"ROWS +1 +10 +\d+ +\d+  rows 0\.\.2$", run.stdout, re.M)
    assert "finished" in run.stdout.splitlines()[-1]


def test_dump_shows_every_snapshot_and_what_it_does_not_know(made):
    types = chunk_types(cairn("dump", made("two")).stdout)
    assert types.count("SBEG") == types.count("SEND") == 2
    assert types.count("TEST") == 1


def test_dump_marks_what_is_damaged(made):
    path = made("plain")
    data = bytearray(path.read_bytes())
    announced = data.index(b"ROWS")
    data[data.index(b"ROWS", announced + 4) + 60] ^= 1
    path.write_bytes(data)
    run = cairn("dump", path)
    marked, = [line for line in run.stdout.splitlines() if "!!" in line]
    assert "ROWS" in marked and "wrong checksum" in marked


@pytest.mark.parametrize("table", ["meta", "totals", "strings", "processes", "threads", "modules",
                                   "slices", "frames", "nodes", "rows", "symbols", "cells",
                                   "size_buckets", "lifetime_buckets", "cohorts", "counters",
                                   "rss_samples", "mappings", "memory_snapshots", "parts", "survivors", "marks",
                                   "unrecorded", "hooks", "blocks", "adhoc"])
def test_dump_prints_each_table_with_a_line_for_each_entry(table, made):
    path = made("small")
    want = json.loads(subprocess.run([EXAMPLE, "read", path], stdout=subprocess.PIPE,
                                     check=True).stdout)[table]
    run = cairn("dump", "--table", table, path)
    assert run.returncode == 0
    lines = run.stdout.splitlines()
    assert len(lines) == 1 + len(want)
    if table == "strings":
        assert lines[1:] == want
        return
    for line, entry in zip(lines[1:], want):
        fields = dict(zip(lines[0].split("\t"), line.split("\t")))
        assert list(fields) == list(entry)
        assert all(fields[name] in (str(value), "-") or not fields[name].isdigit()
                   for name, value in entry.items())


def test_dump_of_rows_can_be_added_up_by_a_script(made):
    lines = cairn("dump", "-t", "rows", made("small")).stdout.splitlines()
    column = lines[0].split("\t").index("allocated_bytes")
    assert sum(int(line.split("\t")[column]) for line in lines[1:]) == 640 + 30 + 8


@pytest.mark.parametrize("kind", ["tiny", "plain", "small", "groups", "large"])
def test_verify_finds_sound_recordings_sound(kind, made):
    run = cairn("verify", made(kind))
    assert run.returncode == 0, run.stdout
    assert run.stdout.startswith("sound: ")
    assert "still growing" not in run.stdout


def test_verify_names_what_a_cut_file_lacks(made):
    run = cairn("verify", made("cut"))
    assert run.returncode == 1
    # In words, and not in names of tables.
    assert re.search(r"(missing: |incomplete: )[a-z ]*(time|blocks|stacks|RSS|names)", run.stdout), run.stdout
    assert "ends too early" in run.stdout and "_buckets" not in run.stdout


def test_verify_finds_what_opening_does_not_look_at(made):
    path = made("two")
    data = bytearray(path.read_bytes())
    data[80] ^= 1  # in the first snapshot, which the second one replaces
    path.write_bytes(data)
    run = cairn("verify", path)
    assert run.returncode == 1
    assert "wrong checksum" in run.stdout


def test_verify_finds_that_figures_do_not_add_up(made):
    run = cairn("verify", made("wild"))
    assert run.returncode == 1
    assert re.search(r"allocations of all rows is \d+, but the total is \d+", run.stdout)


@pytest.mark.parametrize("command", ["dump", "verify"])
@pytest.mark.parametrize("content, words", [(b"", "is empty"), (b"hello\n" * 9, "is not a recording"),
                                            (b"\x1f\x8bhello", "is damaged")])
def test_what_is_no_recording_is_refused_with_a_sentence(command, content, words, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    run = cairn(command, path)
    assert run.returncode == 2
    assert words in run.stderr and run.stderr.startswith("cairn: ") and run.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["dump"], ["verify"], ["dump", "a", "b"], ["verify", "a", "b"],
                                   ["dump", "--table", "nonsense", "a"]])
def test_wrong_words_are_refused(words):
    run = cairn(*words)
    assert run.returncode == 2 and run.stderr != ""
