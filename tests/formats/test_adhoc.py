# SPDX-License-Identifier: MIT
"""What programs report by cairn_event, in every format that has a place for it, and DHAT's ad-hoc files.

The drawing says what is to be found; the same stack in two processes, and a place that two addresses
share, are there to be added up or not. DHAT's file is made by DHAT, of a program that asks for it.
"""
import csv
import json
import sqlite3

import pytest

from foreign_files import cairn, refused, run_tool
from test_formats import ROOT, draw, export, report, run
from test_sqlite import documented_queries

DRAWING = """\
!command_line server -x
!runtime_ms 300
process server
thread main
app!main(app.c:1);app!load(app.c:10) 3 300
event app!main(app.c:1);app!send(net.c:7)=>cairn_event(cairn.h:186);[event sent, all]![event sent, all] 3 512
event app!main(app.c:1);app!send(net.c:7)=>cairn_event(cairn.h:186);[event sent, all]![event sent, all] 1 88
event app!main(app.c:1);app!poll(net.c:9)=>cairn_event(cairn.h:186);[event polls]![event polls] 1000 1000
process helper
thread main
event app!main(app.c:1);app!send(net.c:7)=>cairn_event(cairn.h:186);[event sent, all]![event sent, all] 2 5000
event [event =1+1]![event =1+1] 1 0
"""
SEND = ["main", "send", "cairn_event", "[event sent, all]"]
POLL = ["main", "poll", "cairn_event", "[event polls]"]
# (pid, events, weight, functions outermost first)
EVENTS = [(1001, 2, 5000, SEND), (1000, 1000, 1000, POLL), (1000, 4, 600, SEND), (1001, 1, 0, ["[event =1+1]"])]
# The same over all processes.
STACKS = [(6, 5600, SEND), (1000, 1000, POLL), (1, 0, ["[event =1+1]"])]


@pytest.fixture(scope="module", name="drawn")
def fixture_drawn(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("adhoc") / "adhoc.cairn", DRAWING)


def test_the_report_has_each_process_and_stack(drawn):
    found = [(event["pid"], event["events"], event["weight"],
              [frame["function"] for frame in reversed(event["frames"])] + [event["name"]])
             for event in report(drawn)["adhoc"]["entries"]]
    assert found == EVENTS
    assert report(drawn)["totals"]["allocations"] == 3, "no heap"


def test_json(drawn):
    document = json.loads(export(drawn, "json"))
    found = []
    events = document["adhoc"]
    code, entries = events["code"], events["entries"]
    for place in range(entries["count"]):
        first, count = entries["frame_first"][place], entries["frame_count"][place]
        names = [code["functions"]["name"][code["locations"]["function"][location]]
                 for location in reversed(events["frames"]["location"][first:first + count])]
        found.append((entries["pid"][place], entries["events"][place], entries["weight"][place],
                      [*names, entries["name"][place]]))
    assert found == EVENTS


def test_csv_has_lines_of_their_own(drawn):
    rows = list(csv.DictReader(export(drawn, "csv").decode().split("\r\n"), strict=True))
    heap = [row for row in rows if row["events"] == ""]
    assert [(row["stack"], row["allocations"], row["weight"]) for row in heap] == [("main;load", "3", "")]
    events = [row for row in rows if row["events"] != ""]
    assert {row[cost] for row in events for cost in ("peak_bytes", "allocations", "live_bytes")} == {""}
    assert [(int(row["events"]), int(row["weight"]), row["stack"].split(";")) for row in events] == STACKS
    assert [row["function"] for row in events] == [stack[-1] for _, _, stack in STACKS]


def test_sqlite(drawn, tmp_path):
    path = tmp_path / "adhoc.sqlite"
    path.write_bytes(export(drawn, "sqlite"))
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    found = database.execute(
        "SELECT pid, events, weight, text, name FROM adhoc JOIN adhoc_texts ON adhoc_id = adhoc.id"
        " JOIN processes ON processes.id = process_id ORDER BY adhoc.id").fetchall()
    assert [(*row[:3], row[3].split(";")) for row in found] == EVENTS
    assert [row[4] for row in found] == [stack[-1] for _, _, _, stack in EVENTS]
    frames = database.execute(
        "SELECT level, functions.name, file, line, is_inlined FROM adhoc_frames"
        " JOIN frames ON frames.id = frame_id JOIN functions ON functions.id = function_id"
        " WHERE adhoc_id = 0 ORDER BY level").fetchall()
    assert frames == [(0, "[event sent, all]", "", 0, 0), (1, "cairn_event", "cairn.h", 186, 1),
                      (2, "send", "net.c", 7, 0), (3, "main", "app.c", 1, 0)]
    query, = [query for query in documented_queries() if "FROM adhoc" in query]
    assert database.execute(query).fetchall() == [("[event sent, all]", 6, 5600), ("[event polls]", 1000, 1000),
                                                  ("[event =1+1]", 1, 0)]
    database.close()


def dhat_events(data):
    """What dh_view.js demands of a file of this mode; (events, units, functions outermost first) of each."""
    document = json.loads(data)
    assert (document["dhatFileVersion"], document["mode"], document["verb"]) == (2, "ad-hoc", "Occurred")
    assert (document["bklt"], document["bkacc"]) == (False, False)
    assert (document["bu"], document["bsu"], document["bksu"]) == ("unit", "units", "events")
    assert isinstance(document["cmd"], str) and isinstance(document["pid"], int) and document["te"] >= 0
    assert {"tu", "Mtu"} <= set(document) and document["ftbl"][0] == "[root]"
    assert all(set(point) == {"tb", "tbk", "fs"} for point in document["pps"])
    return [(point["tbk"], point["tb"],
             [document["ftbl"][frame].split(": ", 1)[-1].split(" (")[0] for frame in reversed(point["fs"])])
            for point in document["pps"]]


def test_dhat(drawn, tmp_path):
    data = export(drawn, "dhat-adhoc")
    assert dhat_events(data) == STACKS
    assert json.loads(data)["te"] == 300_000
    path = tmp_path / "again.json"
    path.write_bytes(data)
    again = [(event["events"], event["weight"],
              [frame["function"] for frame in reversed(event["frames"])] + [event["name"]])
             for event in report(path)["adhoc"]["entries"]]
    assert again == STACKS
    assert dhat_events(export(path, "dhat-adhoc")) == STACKS


def test_dhat_is_of_events_or_refused(drawn, tmp_path):
    for words, said in [((drawn, "--module", "app"), b"filters do not apply"),
                        ((draw(tmp_path / "none.cairn", "main 1 1\n"),), b"no events")]:
        done = run("export", "--to", "dhat-adhoc", *words)
        assert (done.returncode, done.stdout) == (2, b"") and said in done.stderr, done.stderr


PROGRAM = """\
#include <valgrind/dhat.h>
__attribute__((noinline)) static void send(int bytes)
{
    DHAT_AD_HOC_EVENT(bytes);
    __asm__ volatile("");
}
int main(void)
{
    for (int i = 0; i < 3; i++) {
        send(10);
    }
    DHAT_AD_HOC_EVENT(7);
    return 0;
}
"""


@pytest.fixture(scope="module", name="foreign")
def fixture_foreign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dhat")
    (folder / "asks.c").write_text(PROGRAM)
    run_tool("gcc", "-g", "-o", folder / "asks", folder / "asks.c", folder=folder)
    run_tool("valgrind", "-q", "--tool=dhat", "--mode=ad-hoc", f"--dhat-out-file={folder}/dhat", folder / "asks",
             folder=folder)
    return folder / "dhat"


def test_a_file_of_dhat_says_nothing_of_the_heap(foreign):
    """Its "bytes" are units of the program's own."""
    found = report(foreign)
    assert [(event["name"], event["events"], event["weight"], [frame["function"] for frame in event["frames"]])
            for event in found["adhoc"]["entries"]] == [("[event units]", 3, 30, ["send", "main"]),
                                             ("[event units]", 1, 7, ["main"])]
    assert set(found["run"]["unknown"]) >= {"allocations", "allocated_bytes", "peak_bytes", "live_bytes"}
    assert found["totals"]["allocated_bytes"] is None
    text = cairn("report", "--all", foreign).stdout.decode()
    assert "EVENTS: what the program reported" in text and "37 B" not in text
    assert cairn("check", "--no-config", "--max-allocated", "1", foreign).returncode == 2, "it cannot tell"


@pytest.mark.parametrize("damage", [("\"tb\":30", "\"tb\":-1"), ("\"fs\":[1,2]", "\"fs\":[1,99]"),
                                    ("\"tbk\":3", "\"tbk\":\"3\"")])
def test_damaged_files_are_refused(foreign, tmp_path, damage):
    text = foreign.read_text()
    path = tmp_path / "damaged"
    path.write_text(text.replace(*damage))
    assert path.read_text() != text and "pps entry 0" in refused(path)


def test_the_rust_crates_name_of_the_mode(foreign, tmp_path):
    path = tmp_path / "rust"
    path.write_text(foreign.read_text().replace('"ad-hoc"', '"rust-ad-hoc"'))
    assert len(report(path)["adhoc"]["entries"]) == 2


def test_the_formats_are_documented():
    text = (ROOT / "docs" / "user" / "export.md").read_text()
    assert "| `dhat-adhoc` |" in text and "**csv.**" in text
