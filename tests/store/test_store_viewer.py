# SPDX-License-Identifier: MIT
"""`cairn analyze --store`: the answers of a store over HTTP, and recordings that it opens.

Oracles: `cairn store --json`, which test_store.py compares with Python's own answers, and the
answers of `cairn analyze FILE`. tests/viewer/store.spec.mjs looks at the page.
"""
import concurrent.futures
import json
import os
import sqlite3
import subprocess

import pytest

from drawn import draw_to
from fleet import Fleet, Store
from serving import CAIRN, Server, report

HOSTILE = ["a'); DROP TABLE rows;--", "{COST}?9x", "\\N", "x%s%n", "<script>alert(1)</script>"]


@pytest.fixture(name="serve")
def fixture_serve():
    """serve(word) starts a server that is stopped, well, at the end of the test."""
    running = []

    def start(word):
        running.append(Server(word))
        return running[-1]
    yield start
    for server in running:
        assert server.stop()[0] == 0


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    fleet = Fleet(folder)
    fleet.store = Store(folder / "store.db")
    fleet.add(fleet.store)
    return fleet


@pytest.fixture(name="server", scope="module")
def fixture_server(fleet):
    server = Server(f"--store={fleet.store.place}")
    yield server
    assert server.stop() == (0, said_at_start(server))


def said_at_start(server):
    """What is told at the start, and nothing after it."""
    host = os.uname().nodename
    return ("cairn: stop with Ctrl-C\ncairn: from another machine: "
            f"'ssh -L {server.port}:127.0.0.1:{server.port} {host}' there, then open the same address there\n")


def open_recording(server, recording_id):
    return server.ask(f"/api/v1/store/recording?recording_id={recording_id}", method="PUT")


@pytest.mark.parametrize("route,params,words", [
    ("list", {}, ("list",)), ("top", {"service": "web"}, ("top", "--service", "web")),
    ("top", {"sort": "allocations"}, ("top", "--cost", "allocations")),
    ("growth", {"old": "1.0", "new": "2.0"}, ("query", "growth", "1.0", "2.0")),
    ("diff", {"old": "1.0", "new": "1.1", "host": "node2"}, ("diff", "1.0", "1.1", "--host", "node2")),
    ("hosts", {}, ("query", "hosts")), ("oom", {}, ("query", "oom")),
    ("history", {"function": "work1", "sort": "live_bytes"}, ("query", "history", "work1", "--cost", "leaked"))])
def test_the_answers_are_those_of_the_command(fleet, server, route, params, words):
    answer = server.get(f"store/{route}", **params)
    expected = json.loads(fleet.store.run(*words, "--json", "-n", "1000"))
    assert (answer["columns"], answer["rows"]) == (expected["columns"], expected["rows"])
    assert answer["version"] == 3
    if expected["rows"]:
        one = server.get(f"store/{route}", limit=1, **params)
        assert (len(one["rows"]), one["more"]) == (1, len(expected["rows"]) - 1)


def test_versions_are_listed(fleet, server):
    counts = {row["version"]: row["recordings"] for row in server.get("store/versions")["rows"]}
    assert counts == {version: sum(r["version"] == version for r in fleet.recordings)
                      for version in {r["version"] for r in fleet.recordings}}


@pytest.mark.parametrize("target,status", [
    ("store/growth?old=1.0&new=nobody", 404), ("store/growth?old=1.0", 400), ("store/history", 400),
    ("store/list?limit=0", 400), ("store/list?limit=10001", 400), ("store/list?sort=rows", 400),
    ("store/list?function=x", 400), ("store/list?service=a&service=b", 400), ("store/list?host=%00", 400),
    ("store/nothing", 404), ("store/", 404), ("store/list/", 404), ("meta", 404), ("summary", 404), ("events", 404)])
def test_other_questions_are_refused(server, target, status):
    answer = server.ask(f"/api/v1/{target}")
    assert (answer.status, answer.json["status"]) == (status, status)


@pytest.mark.parametrize("method,target", [
    ("GET", "store/recording?recording_id=0000000000000001"), ("PUT", "store/list"), ("DELETE", "store/recording"),
    ("PUT", "baseline"), ("POST", "store/recording")])
def test_other_methods_are_refused(server, method, target):
    answer = server.ask(f"/api/v1/{target}", method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == ("PUT" if target.startswith("store/recording") else "GET, HEAD")


def test_nothing_is_told_or_opened_without_the_token(fleet, server):
    path = "/api/v1/store/recording?recording_id=" + fleet.store.rows("list", "-n", "1")[0]["recording_id"]
    assert server.ask("/api/v1/store/list", with_token=False).status == 401
    assert server.ask(path, method="PUT", with_token=False).status == 401
    assert server.ask(path, method="PUT", headers={"Origin": "http://evil.example"}).status == 403
    assert server.ask(path, method="PUT", host="evil.example").status == 421
    assert server.ask(path, method="PUT", body=b"x").status == 413
    assert server.ask("/", with_token=False).status == 200  # the page has no data


def test_a_recording_is_opened_in_a_viewer_of_its_own(fleet, server):
    rows = fleet.store.rows("list", "-n", "2")
    addresses = [open_recording(server, row["recording_id"]).json["address"] for row in rows]
    assert addresses[0] == open_recording(server, rows[0]["recording_id"]).json["address"]
    assert addresses[0] != addresses[1]
    for row, address in zip(rows, addresses):
        other = object.__new__(Server)
        other.port, other.token = int(address.split(":")[2].split("/")[0]), address.split("token=")[1]
        assert other.token != server.token
        assert other.get("meta")["file"]["path"] == row["path"]
        assert other.get("summary")["totals"]["peak_bytes"] == report(row["path"])["totals"]["peak_bytes"]
        assert other.ask("/api/v1/store/list").status == 404


def test_the_oldest_of_many_opened_recordings_ends(fleet, server):
    ids = [row["recording_id"] for row in fleet.store.rows("list", "-n", "10")]
    addresses = [open_recording(server, recording_id).json["address"] for recording_id in ids]
    first = object.__new__(Server)
    first.port, first.token = int(addresses[0].split(":")[2].split("/")[0]), addresses[0].split("token=")[1]
    with pytest.raises(OSError):
        first.ask("/api/v1/meta")
    assert open_recording(server, ids[0]).status == 200


@pytest.mark.parametrize("number", ["", "1", "0000000000000000", "zzzzzzzzzzzzzzzz", "00000000000000012", "-000000000000001"])
def test_what_is_no_recording_id(server, number):
    assert open_recording(server, number).status == 400


def test_only_the_file_that_was_added_is_opened(tmp_path, serve):
    store = Store(tmp_path / "s.db")
    drawing = "main;call 1 64 0 0 0 0 1 64 64\n"
    paths = [draw_to(tmp_path / f"{i}.cairn", drawing.replace("64", str(64 + i))) for i in range(4)]
    store.run("add", *paths)
    server = serve(f"--store={store.place}")
    ids = {row["path"]: row["recording_id"] for row in store.rows("list")}
    paths[0].unlink()
    paths[1].write_bytes(paths[2].read_bytes())
    answers = [open_recording(server, ids[str(path)]) for path in paths]
    assert [answer.status for answer in answers] == [404, 404, 200, 200]
    assert "is not on this machine" in answers[0].json["error"]["message"]
    assert "no longer the file that was added" in answers[1].json["error"]["message"]
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with sqlite3.connect(store.place) as database:
        for path, place in ((paths[2], "/etc/passwd"), (paths[3], fifo)):
            database.execute("UPDATE recordings SET path=? WHERE path=?", (str(place), str(path)))
    assert [open_recording(server, ids[str(path)]).status for path in paths[2:]] == [404, 404]


def test_names_are_values(tmp_path, serve):
    store = Store(tmp_path / "s.db")
    for i, name in enumerate(HOSTILE):
        path = draw_to(tmp_path / f"{i}.cairn", f"main;call {i + 1} 64 0 0 0 0 1 64 64\n")
        store.run("add", path, "--service", name, "--version", name)
    server = serve(f"--store={store.place}")
    for i, name in enumerate(HOSTILE):
        (row,) = server.get("store/list", service=name)["rows"]
        assert (row["service"], row["version"], row["allocations"]) == (name, name, i + 1)
        assert server.get("store/history", function=name)["rows"] == []
    assert len(server.get("store/list")["rows"]) == len(HOSTILE)


def test_many_clients_at_once(fleet, server):
    expected = fleet.store.rows("query", "hosts", "-n", "1000")
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for answer in pool.map(lambda _: server.get("store/hosts"), range(64)):
            assert answer["rows"] == expected


def test_command_lines(tmp_path):
    store = Store(tmp_path / "s.db")
    for words, said in ((["--store=x", "file"], "neither a FILE"), (["--store", "file"], "--store=URL"),
                        (["--store=x", "--diff", "y"], "nor --diff"), ([f"--store={store.place}"], "cannot open the store")):
        process = subprocess.run([CAIRN, "analyze", "--no-browser", *words], capture_output=True, text=True,
                                 check=False, timeout=60)
        assert process.returncode == 2 and said in process.stderr, (words, process.stderr)
