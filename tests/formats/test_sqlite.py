# SPDX-License-Identifier: MIT
"""The database of `cairn export --to sqlite`, read by SQLite itself.

Its sums must be those of `cairn report --json` on the same file with the same filter, its views
those that Python computes from its tables, and every query of the documentation must run and find
something where there is something to find.
"""
import collections
import re
import sqlite3
import subprocess

import mini_reader
import pytest
from test_formats import (BUILD, CAIRN, FILTERS, ROOT, export, fixture_hostile, fixture_real,  # noqa: F401
                          fixture_recording, fixture_server, report, run, totals)

COSTS = ("peak_bytes", "peak_blocks", "allocations", "allocated_bytes", "frees", "freed_bytes",
         "temporary", "temporary_bytes", "live_bytes", "live_blocks")


@pytest.fixture(name="load")
def fixture_load(tmp_path):
    opened = []

    def load(recording, *filters):
        path = tmp_path / f"{len(opened)}.sqlite"
        path.write_bytes(export(recording, "sqlite", *filters))
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        opened.append(database)
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        return database

    yield load
    for database in opened:
        database.close()


@pytest.fixture(name="copied", scope="module")
def fixture_copied(tmp_path_factory, real):
    """Databases of a random recording, a real one and one of a run that is long enough for samples
    of RSS, each with what is in its file."""
    folder = tmp_path_factory.mktemp("copied")
    drawn = folder / "drawn.cairn"
    subprocess.run([BUILD / "tests" / "recording" / "recording_example", "write", "small", drawn], check=True)
    long = folder / "long.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", long, "sleep", "0.5"], check=True)
    pairs = []
    for recording in (drawn, real, long):
        (folder / f"{len(pairs)}.sqlite").write_bytes(export(recording, "sqlite"))
        database = sqlite3.connect(f"file:{folder}/{len(pairs)}.sqlite?mode=ro", uri=True)
        pairs.append((database, mini_reader.read(recording.read_bytes())))
    yield pairs
    for database, _ in pairs:
        database.close()


def texts_of(database):
    """Each stack's text, put together from the tables."""
    stacks = {key: rest for key, *rest in database.execute(
        "SELECT stacks.id, parent_id, name FROM stacks LEFT JOIN frames ON frames.id = frame_id"
        " LEFT JOIN functions ON functions.id = function_id")}

    def text(stack):
        names = []
        while stack != 0:
            stack, name = stacks[stack]
            names.append(name)
        return ";".join(reversed(names))

    return {stack: text(stack) for stack, in database.execute("SELECT DISTINCT stack_id FROM rows")}


def test_sums(recording, load):
    for filters in FILTERS:
        database = load(recording, *filters)
        expected = totals(recording, *filters)
        sums = ", ".join(f"coalesce(sum({cost}), 0)" for cost in COSTS)
        for table in ("rows", "stack_costs", "function_costs", "thread_costs"):
            found = database.execute(f"SELECT {sums} FROM {table}").fetchone()
            assert dict(zip(COSTS, found)) == {cost: expected[cost] for cost in COSTS}, table
        for table, cost in (("series", "allocations"), ("series", "freed_bytes"),
                            ("slices", "allocations"), ("slices", "freed_bytes")):
            found, = database.execute(f"SELECT coalesce(sum({cost}), 0) FROM {table}").fetchone()
            assert found == expected[cost], (table, cost)


def test_the_run(server, load):
    run = dict(load(server).execute("SELECT key, value FROM run"))
    said = report(server)
    assert run["command_line"] == "server --threads 2" and run["program"] == "/usr/bin/server"
    assert run["peak_time_ms"] == said["totals"]["peak_time_ms"] == 150
    assert run["runtime_ms"] == said["totals"]["runtime_ms"]
    assert run["start_unix_ns"] == 1790000000000000000


def test_views_are_their_tables(recording, load):
    database = load(recording)
    texts = texts_of(database)
    assert dict(database.execute("SELECT stack_id, text FROM stack_texts")) == texts
    frames = collections.defaultdict(list)
    for stack, name in database.execute(
            "SELECT stack_id, function FROM stack_frames ORDER BY stack_id, level DESC"):
        frames[stack].append(name)
    assert {stack: ";".join(names) for stack, names in frames.items()} == \
        {stack: text for stack, text in texts.items() if stack != 0}
    inclusive = collections.Counter()
    for stack, allocations in database.execute("SELECT stack_id, allocations FROM rows"):
        for name in set(frames[stack]):
            inclusive[name] += allocations
    found = collections.Counter()
    for name, allocations in database.execute(
            "SELECT function, allocations FROM function_inclusive_costs"):
        found[name] += allocations
    assert found == inclusive


def test_histograms(real, load):
    database = load(real)
    expected = totals(real)
    assert database.execute("SELECT sum(blocks), sum(bytes) FROM sizes").fetchone() == \
        (expected["allocations"], expected["allocated_bytes"])
    assert database.execute("SELECT sum(blocks) FROM lifetimes").fetchone() == (expected["frees"],)
    assert database.execute("SELECT count(*) FROM sizes WHERE from_bytes * blocks > bytes"
                            " OR below_bytes * blocks <= bytes").fetchone() == (0,)


def test_hostile_names_are_values(hostile, load):
    database = load(hostile)
    names = {name for name, in database.execute("SELECT name FROM functions")}
    assert "n9: 12 0x0: x, y %s %d" in names and "caf\u00e9\ufffd" in names
    assert database.execute("SELECT count(*) FROM rows").fetchone() == (1,)


def documented_queries():
    text = (ROOT / "docs" / "user" / "export.md").read_text()
    block, = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    return [query.strip() for query in block.split("\n\n")]


@pytest.mark.parametrize("query", documented_queries(), ids=lambda query: query.splitlines()[0])
def test_the_documented_queries(server, load, query):
    database = load(server)
    found = database.execute(query).fetchall()
    # The drawing has neither histograms nor blocks that are followed over slices, nor single ones, nor
    # events of the program's own.
    assert bool(found) == all(f" {table}" not in query.split("SELECT", 1)[1]
                              for table in ("sizes", "lifetimes", "cohorts", "blocks JOIN", "adhoc"))


@pytest.mark.parametrize("query", documented_queries(), ids=lambda query: query.splitlines()[0])
def test_the_documented_queries_on_a_real_run(real, load, query):
    database = load(real)
    database.execute(query).fetchall()


def test_as_many_questions_as_the_title_says():
    assert len(documented_queries()) == 12


def test_single_blocks(tmp_path, load):
    """Those that `cairn report --blocks` lists, and a documented query finds them."""
    path = tmp_path / "blocks.cairn"
    done = run("record", "--blocks", "-o", path, BUILD / "programs" / "foreign")
    assert done.returncode == 0, done.stderr
    words = ("--no-builtin-suppressions", "--no-embedded-suppressions")
    listed = report(path, "--blocks", *words)["blocks"]
    database = load(path)
    for flag, blocks in (("is_at_end", listed["end"]), ("is_at_peak", listed["peak"])):
        found = database.execute("SELECT address, size_bytes, born_ms, freed_ms, tid FROM blocks"
                                 " JOIN rows ON rows.id = row_id JOIN threads ON threads.id = thread_id"
                                 f" WHERE {flag} ORDER BY size_bytes DESC, address").fetchall()
        assert found == [tuple(block[key] for key in ("address", "size_bytes", "born_ms", "freed_ms", "thread_id"))
                         for block in blocks] and found
    assert database.execute("SELECT sum(size_bytes) FROM blocks WHERE is_at_end").fetchone() == \
        database.execute("SELECT sum(live_bytes) FROM rows").fetchone()
    query, = [query for query in documented_queries() if "FROM blocks" in query]
    assert "keep_forever(unsigned long)" in str(database.execute(query).fetchall())
    small = load(path, "--size", "..100").execute("SELECT max(size_bytes) FROM blocks").fetchone()
    assert 0 < small[0] <= 111  # the bucket that holds 100 goes on to there


def test_documented_tables_and_columns(server, load):
    """The tables of the documentation name every table, column and view there is."""
    text = (ROOT / "docs" / "user" / "export.md").read_text().split("## The database")[1]
    tables, views = text.split("### Twelve questions")[0].split("| view |")
    database = load(server)
    kinds = {kind: {name for name, in database.execute(
        "SELECT name FROM sqlite_schema WHERE type = ?", (kind,))} for kind in ("table", "view")}
    assert set(re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)) == kinds["table"]
    assert set(re.findall(r"^\| `(\w+)` \|", views, re.MULTILINE)) == kinds["view"]
    for line in re.findall(r"^\| `\w+` \|.*", tables, re.MULTILINE):
        name = re.match(r"\| `(\w+)`", line)[1]
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        if name == "rows":
            assert columns[3:] == [*COSTS, "own_peak_bytes"]
            columns = columns[:3]
        said = re.findall(r"`(\w+)`", line.split("|")[3])
        assert said[:len(columns)] == columns, name


# Tables that hold what the file holds: {table: (the file's, {column: the file's}, texts)}.
SPAN = {"start_ms": "start_ms", "end_ms": "end_ms"}
FLOW = {word: word for word in ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary")}
SAMPLE = ("time_ms", "rss_bytes", "anonymous_bytes", "file_bytes", "shmem_bytes", "swap_bytes",
          "minor_faults", "major_faults")
BUCKET = {"row_id": "row", "blocks": "count", "bytes": "bytes"}
COPIES = {
    "processes": ("processes", {**SPAN, **{word: word for word in (
        "pid", "parent_pid", "epoch", "executable", "command_line", "peak_bytes", "peak_rss_bytes")}}),
    "threads": ("threads", {**SPAN, "process_id": "process", "tid": "thread_id", "name": "name",
                            "merged_count": "merged_count"}),
    "modules": ("modules", {word: word for word in ("path", "build_id", "is_executable")}),
    "series": ("cells", {**FLOW, "row_id": "row", "slice_id": "slice"}),
    "sizes": ("size_buckets", BUCKET),
    "lifetimes": ("lifetime_buckets", BUCKET),
    "cohorts": ("cohorts", {"row_id": "row", "born_slice_id": "born_slice", "freed_slice_id": "freed_slice",
                            "blocks": "blocks", "bytes": "bytes"}),
    "memory": ("rss_samples", {"process_id": "process", **{word: word for word in SAMPLE}}),
}
TEXTS = ("executable", "command_line", "name", "path", "build_id")


@pytest.mark.parametrize("table", COPIES)
def test_copied_columns(copied, table):
    """Oracle: the reader that was written from the description of the file."""
    source, columns = COPIES[table]

    def value(tables, column, entry):
        found = entry[columns[column]]
        if column in TEXTS:
            return tables["strings"][found].encode("latin-1").decode()
        return None if found == mini_reader.NONE else found

    count = 0
    for database, tables in copied:
        wanted = [tuple(value(tables, column, entry) for column in columns) for entry in tables[source]]
        found = database.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        assert collections.Counter(found) == collections.Counter(wanted)
        count += len(found)
    assert count > 0
