# SPDX-License-Identifier: MIT
"""`cairn store` in a SQLite file.

Oracles: Python's sqlite3 reads the file, `cairn report --json` has the figures of each recording,
and fleet.py computes each answer from the drawings.
"""
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import tempfile
import time

import pytest

from cairn_run import some_of
from drawn import json_of
from fleet import DAY, FUNCTIONS, OLD_NAMES, UNKNOWN, Fleet, Store, add_unknown, check_answers, check_unknown, costs_of
from waiting import wait_until

COSTS = ("peak_bytes", "peak_blocks", "allocations", "allocated_bytes", "frees", "freed_bytes", "temporary",
         "temporary_bytes", "live_bytes", "live_blocks", "own_peak_bytes")
OPTIONS = {"peak_bytes": "peak", "allocations": "allocations", "temporary": "temporary", "live_bytes": "leaked"}
HOSTILE = ["a'); DROP TABLE rows;--", 'quote " and \\ backslash', "tab\there", "\\N", "line\x03feed", "%s%n{COST}?9x",
           "x\u202ey", "back`tick", "=cmd()", "a,b", "$(id)", "'", "\\'", "?1x"]


@pytest.fixture(name="store")
def fixture_store(tmp_path):
    return Store(tmp_path / "data" / "store.db")


@pytest.fixture(name="server")
def fixture_server(draw):
    drawings = os.path.join(os.path.dirname(__file__), "..", "transcripts")
    with open(os.path.join(drawings, "server.drawing"), "rb") as stream:
        return draw(stream.read(), "server.cairn")


def tables(store):
    database = sqlite3.connect(f"file:{store.place}?mode=ro", uri=True)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return database


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    return Fleet(tmp_path_factory.mktemp("fleet"))


def test_the_queries_have_the_answers_that_python_computes(fleet, store):
    fleet.add(store)
    check_answers(fleet, store)
    assert len(store.rows("list")) == 20
    assert len(store.rows("list", "-n", "0", "--host", "node1")) == sum(
        r["host"] == "node1" for r in fleet.recordings)
    # One day is one recording: the first time is included, the last is not.
    start = fleet.recordings[0]["time"]
    assert len(store.rows("list", "--since", f"@{start}", "--until", f"@{start + 86400}")) == 1
    assert store.rows("list", "--service", "mail") == []


def test_a_short_answer_says_how_many_more_there_are(fleet, store):
    fleet.add(store)
    name = max(FUNCTIONS, key=lambda function: len(fleet.history(function)))
    everything = fleet.history(name)
    for limit in (1, 3, len(everything), len(everything) + 1, 0):
        answer = json.loads(store.run("query", "history", name, "-n", limit, "--json"))
        newest = everything[-limit:] if limit > 0 else everything
        assert [row["time"] for row in answer["rows"]] == [entry[0] for entry in newest]
        assert answer["more"] == len(everything) - len(newest)
    for words in (("list",), ("top",), ("diff", "1.0", "1.1"), ("query", "growth", "1.0", "1.1"), ("query", "hosts"),
                  ("query", "oom")):
        rows = len(store.rows(*words, "-n", "0"))
        assert rows > 2, words
        text = store.run(*words, "-n", "2")
        assert text.splitlines()[-1] == f"and {rows - 2} more; --limit 0 lists all", words
        assert json.loads(store.run(*words, "-n", "2", "--json"))["more"] == rows - 2
        assert "more" not in store.run(*words, "-n", rows)
        assert len(store.run(*words, "--csv").splitlines()) == 1 + rows  # scripts want all
    assert len(fleet.recordings) > 20 and store.run("list").splitlines()[-1].startswith(f"and {len(fleet.recordings) - 20} more")


def test_top_of_one_recording_equals_its_report(server, store):
    store.run("add", server)
    report = json_of(server, "-n", "0")
    (listed,) = store.rows("list")
    for cost, option in OPTIONS.items():
        columns = json.loads(store.run("list", "--cost", option, "--json"))["columns"]
        assert cost in columns and len(columns) == len(set(columns))
        sites = [(site["costs"][cost], site["function"], os.path.basename(site["module"]), site["file"], site["line"])
                 for site in report["top"][cost]]
        rows = store.rows("top", "--cost", option, "-n", "0", "--recording", listed["recording_id"])
        assert sorted(tuple(row.values()) for row in rows) == sorted(sites)
        assert [row[cost] for row in rows] == sorted((site[0] for site in sites), reverse=True)
    recording = tables(store).execute(f"SELECT {','.join(COSTS[:-1])} FROM recordings").fetchone()
    assert dict(zip(COSTS, recording)) == {cost: report["totals"][cost] for cost in COSTS[:-1]}


def test_rows_add_up_and_what_is_interned_is_shared(server, draw, store):
    again = draw("main;load 1 8 0 0 0 0 1 8 8\n", "other.cairn")
    assert store.run("add", server, again, "--service", "web") == "2 added\n"
    assert store.run("add", server, again) == "0 added, 2 already in the store\n"
    database = tables(store)
    for recording_id, path in database.execute("SELECT recording_id, path FROM recordings").fetchall():
        rows = database.execute(f"SELECT {','.join(f'sum({cost})' for cost in COSTS)} FROM rows WHERE recording_id=?",
                                (recording_id,)).fetchone()
        totals = json_of(path)["totals"]
        assert dict(zip(COSTS[:-1], rows)) == {cost: totals[cost] for cost in COSTS[:-1]}
    for key, table in (("function_id", "functions"), ("stack_id", "stacks")):
        count, distinct = database.execute(f"SELECT count(*), count(DISTINCT {key}) FROM {table}").fetchone()
        assert count == distinct > 0
    known = {row[0] for row in database.execute("SELECT function_id FROM functions")}
    for (frames,) in database.execute("SELECT frames FROM stacks"):
        assert {int(frame) for frame in frames.split(",")} <= known


def test_what_an_imported_file_does_not_say_is_null(store):
    path = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "import_massif" / "instructions"
    assert store.run("add", path) == "1 added\n"
    (row,) = store.rows("list")
    assert row["peak_bytes"] > 0 and row["live_bytes"] is not None and row["allocations"] is None
    assert row["peak_bytes"] == json_of(path)["totals"]["peak_bytes"]
    assert store.rows("list", "--cost", "allocations") == []


def test_what_has_no_stack_has_a_name(store, tmp_path):
    """Also if no function is known at all."""
    path = tmp_path / "bare.massif"
    path.write_text("desc: -\ncmd: app\ntime_unit: ms\n#\nsnapshot=0\n#\ntime=0\nmem_heap_B=16\nmem_heap_extra_B=0\n"
                    "mem_stacks_B=0\nheap_tree=empty\n")
    assert store.run("add", path) == "1 added\n"
    assert tables(store).execute("SELECT name, live_bytes FROM functions JOIN stacks USING (function_id)"
                                 " JOIN rows USING (stack_id)").fetchall() == [("(no stack)", 16)]


def test_hostile_names_are_values(draw, store):
    for i, name in enumerate(HOSTILE):
        frame = name.replace(";", "\x02").replace("(", "[").replace("\n", "\x03")
        path = draw(f"!program /opt/{frame.replace('/', '|')}\n!host {frame}\nmain;{frame} {i + 1} 64 0 0 0 0 1 64 64\n",
                    f"{i}.cairn")
        assert store.run("add", path, "--service", name, "--label", f"k={name}", "--version", name) == "1 added\n"
    database = tables(store)
    assert len(store.rows("list", "-n", "0")) == len(HOSTILE)
    for i, name in enumerate(HOSTILE):
        cleaned = name.replace("\t", " ").replace("\x03", " ").replace("\u202e", "\\u{202e}")
        assert [row["service"] for row in store.rows("list", "--service", cleaned)] == [cleaned], name
        rows = store.rows("top", "--cost", "allocations", "--version", cleaned)
        assert [row["allocations"] for row in rows] == [i + 1], name
        (labels,) = database.execute("SELECT labels FROM recordings WHERE service=?", (cleaned,)).fetchone()
        assert json.loads(labels) == {"k": name}
        assert len(store.rows("query", "growth", cleaned, cleaned)) == 0
    for row in csv.DictReader(io.StringIO(store.run("list", "--csv", "-n", "0"))):
        assert row["path"].endswith(".cairn")
    assert "\u202e" not in store.run("list", "-n", "0")
    # A name that is not UTF-8, and one that is long.
    path = draw(b"main;\xff\xfe 1 8 0 0 0 0 1 8 8\n", "bytes.cairn")
    assert store.run("add", path, "--service", "\u00e9" * 20000) == "1 added\n"
    assert tables(store).execute("SELECT max(length(service)) FROM recordings").fetchone() == (8192,)
    assert tables(store).execute("SELECT count(*) FROM functions WHERE name='\ufffd\ufffd'").fetchone() == (1,)


READING = ["SELECT count(*) AS n FROM rows", "WITH x AS (SELECT 1 AS n) SELECT n FROM x;",
           "SELECT value AS n FROM json_each('[1]')"]
REFUSED = [("DELETE FROM recordings", "a query may only read"), ("DROP TABLE stacks", "a query may only read"),
           ("ATTACH 'other.db' AS other", "a query may only read"), ("PRAGMA user_version=9", "a query may only read"),
           ("SELECT 1; DELETE FROM recordings", "a query must be one statement"), ("", "a query must be one statement"),
           ("SELECT load_extension('x')", "the query: "), ("SELECT fts3_tokenizer('simple')", "the query: "),
           ("SELECT hex(zeroblob(1000000000))", "the query"),
           ("SELECT " + ", ".join(["randomblob(60000000)"] * 12), "the query needs more than 512 MiB of memory"),
           ("SELEKT 1", "the query: "), ("VACUUM", "a query may only read"),
           ("CREATE TEMP TABLE x(y)", "a query may only read"), ("INSERT INTO stacks VALUES(1,2,3,4,5)", "a query may")]


def test_a_query_may_only_read(server, store):
    store.run("add", server)
    before = list(tables(store).iterdump())
    for sql in READING:
        assert len(store.rows("query", sql)) == 1, sql
    for sql, message in REFUSED:
        assert message in store.run("query", sql, status=2), sql
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
    assert store.run("query", endless, "--time-limit", "0.2", status=2) == (
        "cairn: the query takes longer than 200 ms (--time-limit)\n")
    assert list(tables(store).iterdump()) == before
    assert sorted(name for name in os.listdir(store.place.parent) if name.startswith("other")) == []


def test_a_file_that_is_no_store_is_refused_and_kept(server, store, tmp_path):
    store.place.parent.mkdir()
    foreign = sqlite3.connect(store.place)
    foreign.executescript("CREATE TABLE mine(x); INSERT INTO mine VALUES(1);")
    foreign.close()
    kept = store.place.read_bytes()
    assert store.run("add", server, status=2) == f"cairn: '{store.place}' is not a store of cairn\n"
    assert store.run("list", status=2) == f"cairn: '{store.place}' is not a store of cairn\n"
    assert store.place.read_bytes() == kept
    for data, message in ((b"no database" * 1000, "is not a store, or it is damaged"),
                          (b"SQLite format 3\0" + bytes(4000), "is not a store")):
        other = Store(tmp_path / "garbage.db")
        other.place.write_bytes(data)
        assert message in other.run("add", server, status=2)
        assert other.place.read_bytes() == data
    pipe = Store(tmp_path / "pipe")
    os.mkfifo(pipe.place)
    for words in (("add", server), ("list",)):
        assert "is not a regular file" in pipe.run(*words, status=2)
    missing = Store(tmp_path / "missing.db")
    assert "cannot open the store" in missing.run("list", status=2)
    assert not missing.place.exists()
    newer = Store(tmp_path / "newer.db")
    newer.run("add", server)
    database = sqlite3.connect(newer.place)
    database.execute("PRAGMA user_version=6")
    database.close()
    assert "has version 6, and this cairn reads version 5" in newer.run("list", status=2)
    assert "http://" in Store("ftp://host/x").run("list", status=2)


def make_version_1(database):
    """What 1.0.0 made: without runs and intervals, and with other names."""
    for column in ("run_id", "run_order", "interval_bytes"):
        database.execute(f"ALTER TABLE recordings DROP COLUMN {column}")
    for table in ("recordings", "row_costs"):
        for name, old in OLD_NAMES.items():
            database.execute(f"ALTER TABLE {table} RENAME COLUMN {name} TO {old}")
    for name, old in OLD_NAMES.items():
        database.execute(f"UPDATE recordings SET unknown=replace(unknown,',{name},',',{old},')")
    database.execute("PRAGMA user_version=1")


def test_a_store_of_the_first_version_is_kept_and_gets_the_new_columns(fleet, store):
    fleet.add(store)
    before = {words: store.run(*words) for words in (("list",), ("top",), ("diff", "1.0", "2.0"), ("query", "oom"))}
    with contextlib.closing(sqlite3.connect(store.place)) as database:
        make_version_1(database)
        database.execute("UPDATE recordings SET is_estimate=1 WHERE version='2.0'")
        database.commit()
    # Nothing is known of the errors of what was added before.
    for row in store.rows("diff", "1.0", "2.0"):
        assert row["error_peak_bytes"] is None
    assert store.run("diff", "1.0", "1.1") and "error" not in store.run("list", "--version", "1.0")
    database = tables(store)
    assert database.execute("PRAGMA user_version").fetchone() == (5,)
    database.close()
    with contextlib.closing(sqlite3.connect(store.place)) as database:
        database.execute("UPDATE recordings SET is_estimate=0")
        database.commit()
    assert {words: store.run(*words) for words in before} == before


def test_unknown_costs_are_null_also_in_a_store_of_the_first_version(store, server, tmp_path):
    costs = add_unknown(store, tmp_path, server)
    check_unknown(costs)
    with contextlib.closing(sqlite3.connect(store.place)) as database:
        for table in ("recordings", "row_costs"):
            database.execute(f"UPDATE {table} SET {','.join(f'{cost}=coalesce({cost},0)' for cost in UNKNOWN)}")
        make_version_1(database)
        database.commit()
    assert costs_of(store) == costs


@pytest.mark.parametrize("version", [2, 3, 4, 6])
def test_a_store_of_a_version_that_no_release_wrote_is_refused(fleet, store, version):
    fleet.add(store)
    with contextlib.closing(sqlite3.connect(store.place)) as database:
        database.execute(f"PRAGMA user_version={version}")
        database.commit()
    assert f"has version {version}, and this cairn reads version 5" in store.run("list", status=2)


def test_a_damaged_store_ends_with_a_sentence(fleet, store):
    fleet.add(store)
    whole = store.place.read_bytes()
    chance = random.Random(5)
    for at in range(1, len(whole) // 4096):
        broken = Store(store.place.parent / "broken.db")
        broken.place.write_bytes(whole[:at * 4096] + chance.randbytes(4096) + whole[(at + 1) * 4096:])
        for words in (("list",), ("top",), ("query", "hosts")):
            process = broken.start(*words)
            _, errors = process.communicate(timeout=60)
            assert process.returncode in (0, 2), (at, words, errors)
            assert (process.returncode == 0) == (errors == "") and errors.count("\n") <= 1


def counts(store):
    """{path: number of rows} of the recordings."""
    return dict(tables(store).execute("SELECT path, count(stack_id) FROM recordings LEFT JOIN row_costs"
                                      " USING (recording_id) GROUP BY recording_id").fetchall())


def test_two_add_at_a_time(fleet, store):
    paths = [recording["path"] for recording in fleet.recordings]
    processes = [store.start("add", *paths[:16]), store.start("add", *paths[8:])]
    added = 0
    for process in processes:
        out, errors = process.communicate(timeout=120)
        assert (process.returncode, errors) == (0, "")
        added += int(out.split()[0])
    assert added == len(paths)
    assert counts(store) == {str(path): 10 for path in paths}


def test_recordings_of_different_length_are_not_compared_without_a_word(store, tmp_path, draw):
    """As two states of one run, of 25 and of 30 minutes, as versions 1 and 2."""
    line = "process p\nthread t\nmain;f {0} 80 0 0 0 0 1 8 8\n"
    for version, ms in (("1", 1_500_000), ("2", 1_800_000), ("3", 1_530_000)):
        path = draw(f"!runtime_ms {ms}\n" + line.format(ms), f"{version}.cairn")
        store.run("add", path, "--version", version, "--service", "p", "--host", f"h{version}")
    words = "the compared recordings lasted from {} to {}: figures that grow with the time differ for that alone (--per second divides by it)\n"

    def said(*command):
        process = store.start(*command, "--cost", "allocations")
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0
        return errors
    assert said("query", "growth", "1", "2") == "cairn: " + words.format("25 min 00 s", "30 min 00 s")
    assert said("diff", "1", "2") == said("query", "hosts") == said("query", "growth", "1", "2")
    assert said("query", "growth", "1", "3") == said("top") == ""


def test_the_states_of_one_run_count_once(fleet, store):
    """Whether the last state is added first or last."""
    fleet.add(store)
    fleet.add_earlier(store)
    check_answers(fleet, store)
    rows = store.rows("list", "-n", "0")
    assert len(rows) == len(fleet.recordings) and {row["earlier_states"] for row in rows} == {2}
    assert len(store.rows("list", "-n", "0", "--states")) == 3 * len(fleet.recordings)
    early = Store(store.place.parent / "early.db")
    fleet.add_earlier(early)
    assert {row["earlier_states"] for row in early.rows("list", "-n", "0")} == {1}
    fleet.add(early)
    check_answers(fleet, early)
    assert tables(store).execute("SELECT count(DISTINCT run_id), count(DISTINCT run_id || ' ' || run_order)"
                                 " FROM recordings").fetchone() == (24, 72)


def test_two_states_of_one_run_as_two_versions_are_not_growth(store, draw):
    """As they were kept by --rotate after 25 and 30 minutes."""
    for version, ms in (("1", 1_500_000), ("2", 1_800_000)):
        path = draw(f"!start_unix_ms 1790000000000\n!runtime_ms {ms}\nmain;f {ms} 80 0 0 0 0 1 8 8\n", f"{version}.cairn")
        store.run("add", path, "--version", version)
    for words in (("query", "growth"), ("diff",)):
        message = store.run(*words, "1", "2", "--cost", "allocations", status=2)
        assert message == ("cairn: the recordings of the version '1' are earlier states of runs whose last states have "
                           "other versions; --states compares them\n")
    process = store.start("query", "growth", "1", "2", "--cost", "allocations", "--states", "--json")
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "lasted from 25 min 00 s to 30 min 00 s" in errors
    assert [row["change_allocations"] for row in json.loads(out)["rows"]] == [300_000]
    # By the second nothing grew: both have one allocation in each millisecond.
    assert store.rows("query", "growth", "1", "2", "--cost", "allocations", "--states", "--per", "second") == []
    (row,) = store.rows("query", "hosts", "--cost", "allocations", "--per", "second") or [{}]
    assert row == {} and len(store.rows("query", "history", "f", "--states")) == 2
    (row,) = store.rows("query", "history", "f", "--cost", "allocations", "--per", "second")
    assert row["cost_allocations"] == 1000


LABELS = [("tier", "gold"), ("tier", 'a "b" \\ c'), ("tier", ',"tier":"x'), ("a.b/c-d_e", "é,}"), ("tier", ""), ("zone", "gold"),
          ("zone", "{tier")]


def test_labels_select_in_all_commands(store, draw):
    """Each recording has two labels. The oracle is Python, on what was given."""
    kept = {}
    for i, first in enumerate(LABELS):
        for j, second in enumerate((("zone", "eu"), ("n", str(i)), ("tier2", "gold"))):
            if first[0] == second[0]:
                continue
            path = draw(f"main;f {i * 10 + j + 1} 80 0 0 0 0 1 8 8\n", f"{i}.{j}.cairn")
            pair = [first, second] if j % 2 else [second, first]
            store.run("add", path, "--version", str(j), *[f"--label={name}={value}" for name, value in pair])
            kept[str(path)] = dict(pair)
    wanted = [[label] for label in LABELS] + [[("n", "3")], [("zone", "eu")], [("zone", "eu"), ("tier", "gold")], [("tier", "none")],
                                              [("ier", "gold")], [("tier", "gol")], [("TIER", "gold")], [("tier", "%")]]
    for labels in wanted:
        words = [f"--label={name}={value}" for name, value in labels]
        rows = store.rows("list", "-n", "0", *words)
        expected = sorted(path for path, own in kept.items() if set(labels) <= set(own.items()))
        assert sorted(row["path"] for row in rows) == expected, labels
        assert len(store.rows("query", "history", "f", "-n", "0", *words)) == len(expected)
        assert len(store.rows("top", *words)) == (len(expected) > 0)
    assert "no recording has the version '2'" in store.run("diff", "1", "2", "--label", "n=1", status=2)
    assert store.run("prune", "--label", "zone=eu") == f"{sum(own.get('zone') == 'eu' for own in kept.values())} removed\n"
    for text in ("x", "=x", ":=x", "a b=x", ",=x"):
        assert "is not NAME=VALUE" in store.run("list", "--label", text, status=2)
    assert "at most 16 labels" in store.run("list", *["--label=a=b"] * 17, status=2)


def test_many_files_are_added_in_their_order_up_to_one_that_is_bad(store, draw, tmp_path):
    """More than a batch, on several threads: those before the bad one are in the store, those behind it are not."""
    paths = [draw(f"main;f{i}(/f.c:1) {i + 1} 80 0 0 0 0 1 8 8\n", f"{i}.cairn") for i in range(150)]
    bad = tmp_path / "bad.cairn"
    bad.write_bytes(b"no recording")
    message = store.run("add", *paths[:70], bad, *paths[70:], status=2)
    assert message.count("\n") == 1 and str(bad) in message
    assert set(counts(store)) == {str(path) for path in paths[:70]}
    assert "missing" in store.run("add", *paths[:75], tmp_path / "missing", *paths[75:], status=2)
    assert set(counts(store)) == {str(path) for path in paths[:75]}
    assert store.run("add", *paths, *paths) == "75 added, 225 already in the store\n"
    assert counts(store) == {str(path): 1 for path in paths}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_addition_leaves_whole_recordings(fleet, store, number):
    paths = [recording["path"] for recording in fleet.recordings]
    process = store.start("add", *paths)
    # The command may also be at its end by then.
    wait_until(lambda: process.poll() is not None or
               (store.place.exists() and store.place.stat().st_size > 0), "the store")
    process.send_signal(number)
    process.communicate(timeout=60)
    process.wait(timeout=60)
    store.run("add", *paths)
    assert counts(store) == {str(path): 10 for path in paths}


@pytest.mark.parametrize("limit", some_of([0, 1000, 4096, 16384], 2))
def test_a_limit_on_the_size_of_files_is_a_sentence(server, store, limit):
    """Of a store that begins, its log and its index; the signal that goes with the limit does not kill."""
    def confine():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    message = store.run("add", server, status=2, preexec_fn=confine)
    assert message.count("\n") == 1 and message.startswith("cairn: the "), message
    assert "File too large" in message or "a limit on the size of files (ulimit -f)" in message, message
    assert store.run("list", status=2) == f"cairn: '{store.place}' is empty: 'cairn store add' makes it a store\n"
    assert store.run("add", server) == "1 added\n"


def test_a_full_disk_leaves_the_store_as_it_was(fleet, store):
    paths = [recording["path"] for recording in fleet.recordings]
    store.run("add", paths[0])
    before = counts(store)
    limit = 4096  # of each file: the write-ahead log has no room

    def confine():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    message = store.run("add", *paths, status=2, preexec_fn=confine)
    assert message.count("\n") == 1 and message.startswith("cairn: the ")
    assert counts(store) == before
    assert store.run("add", *paths) == f"{len(paths) - 1} added, 1 already in the store\n"


def test_prune_removes_what_only_these_recordings_use(fleet, store, server):
    fleet.add(store)
    before = {table: tables(store).execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
              for table in ("functions", "stacks", "recordings")}
    store.run("add", server, "--service", "other")
    assert "prune needs an option" in store.run("prune", status=2)
    assert store.run("prune", "--service", "other") == "1 removed\n"
    for table, rows in before.items():
        assert tables(store).execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() == rows
    half = fleet.recordings[12]["time"]
    assert store.run("prune", "--until", f"@{half}") == "12 removed\n"
    assert store.run("prune", "--since", "2020-01-01") == "12 removed\n"
    assert tables(store).execute("SELECT (SELECT count(*) FROM functions)+(SELECT count(*) FROM stacks)+"
                                 "(SELECT count(*) FROM row_costs)").fetchone() == (0,)


def test_a_policy_thins_out_what_is_old(store, draw):
    """Three recordings a day of 40 days on two hosts; Python's count of what is left. The states of a run that goes on
    are as old as their ends."""
    now = int(time.time())
    kept = set()
    for day in range(40):
        for third in range(3):
            for host in ("a", "b"):
                end = now // DAY * DAY - day * DAY - third * 1000 - 1
                path = draw(f"!host {host}\n!start_unix_ms {(now - 90 * DAY) * 1000}\n!runtime_ms {(end - now + 90 * DAY) * 1000}\n"
                            "main;f 1 8 0 0 0 0 1 8 8\n", f"{host}{day}.{third}.cairn")
                if now - end < 7 * DAY or (now - end < 30 * DAY and third == 0):
                    kept.add(str(path))
    store.run("add", *store.place.parent.parent.glob("*.cairn"))
    policy = ("prune", "--policy", "7d,30d/1d")
    assert store.run(*policy, "--host", "c") == "0 removed\n"
    removed = int(store.run(*policy).split()[0])
    left = {path for path in counts(store)}
    # Where an age ends within a day, one of its other part stays, too.
    assert kept <= left and removed == 240 - len(left) and len(left) <= len(kept) + 4
    assert store.run(*policy) == "0 removed\n"
    for text in ("", ",", "7d,", "7d,7d", "30d,7d", "7d/", "/1d", "7d/1d/1d", "7d;8d", "-7d", "0.5s", ",".join(f"{i}d" for i in range(1, 10))):
        assert f"--policy: '{text}' is not a list of rising ages" in store.run("prune", "--policy", text, status=2)
    for text in ("99d", "1h/10m,99d/365d", ",".join(f"{i}d" for i in range(92, 100))):
        assert store.run("prune", "--policy", text, "--host", "c") == "0 removed\n"


def test_the_store_is_private_and_in_the_data_folder(server, tmp_path):
    store = Store("")
    for variables in ({"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": "/nonexistent"},
                      {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": ""}):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            store.run("add", server)
    for path in ("data/cairn/store.db", "home/.local/share/cairn/store.db"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o600


def test_a_store_that_may_only_be_read_is_queried(server, store):
    """Also in a folder in which no file can be made, and with a name that would mean more in a URI."""
    store.run("add", server)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = Store(folder / "st?re %41#.db")
        shutil.copy(store.place, kept.place)
        kept.place.chmod(0o444)
        folder.chmod(0o555)
        as_other = {"user": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for words in (("list",), ("list", "--cost", "leaked"), ("top", "--cost", "leaked-blocks"),
                      ("query", "SELECT live_bytes,live_blocks FROM rows ORDER BY stack_id")):
            assert kept.run(*words, **as_other) == store.run(*words), words
        assert "cannot" in kept.run("add", server, status=2, **as_other)
        folder.chmod(0o755)


@pytest.mark.parametrize("name", ["s.db", "s.db-wal", "s.db-shm"])
def test_another_users_link_in_a_public_folder_is_not_followed(server, tmp_path, name):
    """A test without root can only try that an own link is followed."""
    (tmp_path / "public").mkdir()
    (tmp_path / "public").chmod(0o1777)
    victim, link = tmp_path / "victim", tmp_path / "public" / name
    victim.write_bytes(b"")
    link.symlink_to(victim)
    if os.geteuid() == 0:
        os.chown(link, 65534, 65534, follow_symlinks=False)
        assert "another user" in Store(tmp_path / "public/s.db").run("add", server, status=2)
        assert victim.read_bytes() == b""
    elif name == "s.db":
        Store(tmp_path / "public/s.db").run("add", server)
        assert victim.read_bytes() != b""


def test_a_name_that_means_no_file_to_sqlite_is_a_file(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(":memory:")
    store.run("add", server)
    assert len(store.rows("list")) == 1


def test_ctrl_c_ends_a_query_without_end(server, store):
    store.run("add", server)
    query = store.start("query", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r) SELECT count(*) FROM r")
    wait_until(lambda: "store.db" in " ".join(os.readlink(link) for link in pathlib.Path(f"/proc/{query.pid}/fd").iterdir()
                                              if link.is_symlink()), "the query")
    query.send_signal(signal.SIGINT)
    query.communicate(timeout=60)
    assert query.returncode == -signal.SIGINT


def test_a_wrong_label_makes_no_store(server, tmp_path):
    assert "NAME=VALUE" in Store(tmp_path / "new.db").run("add", server, "--label", "novalue", status=2)
    assert not (tmp_path / "new.db").exists()


def test_a_wrong_recording_ends_the_addition(server, store, tmp_path):
    (tmp_path / "text").write_text("no recording\n")
    assert "text" in store.run("add", server, tmp_path / "text", status=2)
    assert len(store.rows("list")) == 1
    assert "no recording has the version '9'" in store.run("diff", "9", "8", status=2)
