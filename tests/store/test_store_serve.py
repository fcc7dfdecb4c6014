# SPDX-License-Identifier: MIT
"""`cairn store serve`: agents that add recordings, dashboards that read series, and who may do what.

Oracles: Python's sqlite3 compares with `cairn store add`, promtool is a client of the Prometheus API, and
Python computes each series from the drawings."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import time
import urllib.parse

import pytest

from drawn import CAIRN, environment
from fleet import DAY, FUNCTIONS, HOSTS, START, Fleet, Store
from sql_server import serve
from waiting import DEADLINE_SECONDS, read_until

PROMTOOL = "/usr/bin/promtool"
ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD, GUIDE = ROOT / "contrib/grafana/store.json", ROOT / "docs/user/store.md"
ROLES = ("read", "add", "admin")


class Served:
    """A served store, with a token for each role."""

    def __init__(self, folder, place, *options):
        files = {role: folder / f"{role}.token" for role in ROLES}
        words = [word for role, file in files.items() for word in (f"--{role}-token", file)]
        self.process = subprocess.Popen(
            [CAIRN, "store", "serve", "--listen", "127.0.0.1:0", *map(str, words), *options], stdin=subprocess.DEVNULL,
            env=environment({"CAIRN_STORE": str(place), "CAIRN_STORE_LOGIN": "me:pass"}), stderr=subprocess.PIPE)
        said = read_until(self.process.stderr.fileno(), b"\n").decode()
        self.port = int(re.fullmatch(r"cairn: serving the store at 127.0.0.1:(\d+)\n", said)[1])
        self.tokens = {role: file.read_text().strip() for role, file in files.items()}

    def ask(self, method, target, role="admin", body=None):
        """(status, JSON of the answer)"""
        headers = {"Authorization": f"Bearer {self.tokens[role]}"} if role in self.tokens else {}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)) as line:
            line.request(method, target, body, headers)
            answer = line.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    def put(self, path, role="add", **parameters):
        labels = [("label", label) for label in parameters.pop("labels", ())]
        query = urllib.parse.urlencode([*parameters.items(), *labels])
        return self.ask("PUT", f"/api/v1/recordings?{query}", role, path.read_bytes())

    def query(self, kind, **parameters):
        status, answer = self.ask("GET", f"/api/v1/{kind}?{urllib.parse.urlencode(parameters)}", "read")
        assert (status, answer["status"]) == (200, "success"), answer
        return answer["data"]

    def stop(self):
        if self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(DEADLINE_SECONDS) == 0
        self.process.stderr.close()


@pytest.fixture(name="start")
def fixture_start(tmp_path):
    started = []

    def begin(place, *options):
        started.append(Served(tmp_path, place, *options))
        return started[-1]
    yield begin
    for served in started:
        served.stop()


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    return Fleet(tmp_path_factory.mktemp("fleet"), 12)


def rows_of(place):
    """All of a store but the paths of its files."""
    with contextlib.closing(sqlite3.connect(place)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(recordings)") if row[1] != "path"]
        return {table: sorted(database.execute(f"SELECT {what} FROM {table}").fetchall(), key=str) for table, what in
                (("recordings", ",".join(columns)), ("functions", "*"), ("stacks", "*"), ("row_costs", "*"))}


def test_what_agents_send_is_what_add_would_add(fleet, start, tmp_path):
    served = start(tmp_path / "served.db")
    added = Store(tmp_path / "added.db")
    fleet.add(added)
    for recording in fleet.recordings:
        status, answer = served.put(recording["path"], version=recording["version"])
        assert status == 200 and answer["is_new"] is True, answer
        assert served.put(recording["path"])[1]["is_new"] is False
    assert rows_of(tmp_path / "served.db") == rows_of(tmp_path / "added.db")
    ids = {row["recording_id"] for row in added.rows("list", "-n", "0")}
    assert answer["recording_id"] in ids


def test_labels_service_host_and_name_are_those_of_the_request(fleet, start, tmp_path):
    served = start(tmp_path / "s.db")
    status, _ = served.put(fleet.recordings[0]["path"], service="w&b", host="h 1", name="/data/x.cairn", oom="1",
                           labels=("tier=a=b", 'zone="'))
    assert status == 200
    (row,) = Store(tmp_path / "s.db").rows("list", "--label", "tier=a=b", "--label", 'zone="')
    assert (row["service"], row["host"], row["path"], row["is_oom"]) == ("w&b", "h 1", "/data/x.cairn", 1)


@pytest.mark.parametrize("method, target, roles", [
    ("GET", "/api/v1/query?query=1%2B1", ("read", "admin")), ("GET", "/api/v1/store/list", ("read", "admin")),
    ("PUT", "/api/v1/recordings", ("add", "admin")), ("DELETE", "/api/v1/recordings?host=none", ("admin",)),
    ("GET", "/ready", (*ROLES, None))])
def test_a_role_may_do_its_own_and_nothing_else(fleet, start, tmp_path, method, target, roles):
    served = start(tmp_path / "s.db")
    body = fleet.recordings[0]["path"].read_bytes() if method == "PUT" else None
    for role in (*ROLES, None):
        status, answer = served.ask(method, target, role, body)
        expected = 200 if role in roles else 401 if role is None or target == "/ready" else 403
        assert status == expected, (role, answer)
    served.tokens["wrong"] = "0" * 32
    assert served.ask(method, target, "wrong", body)[0] == (200 if target == "/ready" else 401)


def test_small_additions_are_collected_into_one_insert(fleet, start, tmp_path):
    """The server of ClickHouse counts the statements."""
    with serve() as database:
        served = start(f"http://127.0.0.1:{database.server_port}/one")
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda recording: served.put(recording["path"]), fleet.recordings))
        served.stop()  # it keeps its connection, for which the server would wait
    assert all(status == 200 and answer["is_new"] for status, answer in answers)
    inserts = [target for target, _ in database.asked if "INSERT%20INTO%20recordings" in target]
    assert 1 <= len(inserts) <= 6, len(inserts)  # a batch each 200 ms, and 12 recordings
    assert database.databases["one"].sqlite.execute("SELECT count(*) FROM recordings").fetchone() == (12,)


def test_a_store_that_fails_is_said_to_the_agent_and_tried_again(fleet, start, tmp_path):
    served = start(tmp_path / "s.db")
    (tmp_path / "s.db").rename(tmp_path / "kept.db")
    (tmp_path / "s.db").mkdir()
    status, answer = served.put(fleet.recordings[0]["path"])
    assert status >= 400 and "is not a regular file" in answer["error"]["message"], answer
    (tmp_path / "s.db").rmdir()
    assert served.put(fleet.recordings[0]["path"])[0] == 200


@pytest.mark.parametrize("body", [b"", b"no recording", b"\0" * 100000, b"cairn"], ids=["nothing", "a text", "zeros", "a start"])
def test_what_is_no_recording_is_refused(start, tmp_path, body):
    served = start(tmp_path / "s.db")
    assert served.ask("PUT", "/api/v1/recordings", "add", body)[0] == 400  # an agent need not send it again
    for parameters in ("label=x", "label=%3Dx", "nothing=1", "&".join(["label=a=b"] * 17), "service=%00x"):
        assert served.ask("PUT", f"/api/v1/recordings?{parameters}", "add", b"x")[0] == 400, parameters
    for parameters in ("", "?until=x", "?nothing=1"):
        assert served.ask("DELETE", f"/api/v1/recordings{parameters}")[0] == 400
    assert Store(tmp_path / "s.db").rows("list") == []


def test_the_administrator_removes(fleet, start, tmp_path):
    served = start(tmp_path / "s.db")
    fleet.add(Store(tmp_path / "s.db"))
    own = [recording for recording in fleet.recordings if recording["version"] == "1.1"]
    assert served.ask("DELETE", "/api/v1/recordings?version=1.1")[1]["removed"] == len(own)
    until = fleet.recordings[6]["time"]
    assert served.ask("DELETE", f"/api/v1/recordings?until={until}")[1]["removed"] == 4
    assert len(Store(tmp_path / "s.db").rows("list")) == 4


def test_a_policy_is_applied_at_the_start(fleet, start, tmp_path):
    fleet.add(Store(tmp_path / "s.db"))  # of past years or of years to come: what has ended lately stays
    kept = [r for r in fleet.recordings if time.time() - r["time"] - 60 < DAY]
    served = start(tmp_path / "s.db", "--policy", "1d")
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(Store(tmp_path / "s.db").rows("list")) != len(kept) and time.monotonic() < deadline:
        served.query("labels")
    assert len(Store(tmp_path / "s.db").rows("list")) == len(kept)


# --- series ---------------------------------------------------------------------------------------

def value_at(fleet, host, version, moment, cost):
    """Python's value of a series: that of its last recording in the day before."""
    points = [(r["time"] + 60, cost(r)) for r in fleet.recordings if (r["host"], r["version"]) == (host, version)]
    points = [point for point in points if moment - DAY < point[0] <= moment]
    return max(points)[1] if points else None


def peak_of(recording):
    return sum(peak for peak, _ in recording["costs"].values())


def test_series_are_what_python_computes(fleet, start, tmp_path):
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")
    begin, end, step = START - DAY, START + 13 * DAY, 7000
    data = served.query("query_range", query="cairn_store_peak_bytes", start=begin, end=end, step=step)
    assert data["resultType"] == "matrix"
    found = {(s["metric"]["host"], s["metric"]["version"]): dict(s["values"]) for s in data["result"]}
    for host in HOSTS:
        for version in ("1.0", "1.1", "2.0"):
            moments = range(begin, end + 1, step)
            values = {m: value_at(fleet, host, version, m, peak_of) for m in moments}
            assert found.get((host, version), {}) == {m: str(v) for m, v in values.items() if v is not None}
    moment = fleet.recordings[7]["time"] + 100
    data = served.query("query", query='{__name__="cairn_store_peak_bytes",service=~"w.*"}', time=moment)
    assert {(s["metric"]["host"], s["metric"]["version"]): s["value"] for s in data["result"]} == {
        (host, version): [moment, str(value_at(fleet, host, version, moment, peak_of))] for host in HOSTS
        for version in ("1.0", "1.1", "2.0") if value_at(fleet, host, version, moment, peak_of) is not None}


def test_functions_are_series(fleet, start, tmp_path):
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")
    moment = fleet.recordings[5]["time"] + 100
    last = fleet.recordings[5]
    data = served.query("query", query=f'cairn_store_function_peak_bytes{{host="{last["host"]}",version="{last["version"]}"}}',
                        time=moment)
    found = {s["metric"]["function"]: int(s["value"][1]) for s in data["result"] if not s["metric"]["function"].startswith("sub")}
    assert found == {name: peak for name, (peak, _) in last["costs"].items()}
    name = next(iter(last["costs"]))
    data = served.query("query", query=f'cairn_store_function_peak_bytes{{function="{name}"}}', time=moment)
    assert {s["metric"]["function"] for s in data["result"]} == {name}


def test_what_is_left_out_is_said(start, draw, tmp_path):
    names = [f"fun_{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(250)]  # each more often than the one before
    drawing = "!host node\n" + "".join(f"app!main;app!{name} {i + 1} {64 * i + 64}\n" for i, name in enumerate(names))
    Store(tmp_path / "s.db").run("add", draw(drawing, "many.cairn"))
    served = start(tmp_path / "s.db")
    target = "/api/v1/series?" + urllib.parse.urlencode({"match[]": "cairn_store_function_allocations"})
    status, answer = served.ask("GET", target, "read")
    assert status == 200 and {entry["function"] for entry in answer["data"]} == set(names[50:])
    assert answer["warnings"] == ["200 of 250 series, those with the highest last values: select a service, version, "
                                  "host or function"]


def test_matchers_select_as_those_of_prometheus(fleet, start, tmp_path):
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")

    def hosts(matchers):
        data = served.query("series", **{"match[]": f"cairn_store_peak_bytes{{{matchers}}}"})
        return {entry["host"] for entry in data}
    have = {r["host"] for r in fleet.recordings}
    assert hosts("") == have and hosts('host="node1"') == have & {"node1"}
    assert hosts('host!="node1"') == have - {"node1"}
    assert hosts('host=~"node[12]",host!~".*1"') == have & {"node2"}
    assert hosts('host=~"node"') == set()  # whole values match
    assert hosts('pod=""') == have and hosts('pod!=""') == set() and hosts("host=`node1` , ") == have & {"node1"}
    assert served.query("query", query="1+1")["result"][1] == "2"
    assert "function" in served.query("labels") and served.query("label/host/values") == sorted(have)
    assert "cairn_store_function_live_bytes" in served.query("label/__name__/values")
    assert set(served.query("label/function/values")) <= {*FUNCTIONS, *(f"sub{name}" for name in FUNCTIONS)}
    assert served.query("label/pod/values") == []
    for query, words in (("sum(cairn_store_peak_bytes)", "only a selector"), ("", "only a selector"), ("x[5m]", "only a selector"),
                         ('x{a="b}', "a matcher such as"), ("x{a=b}", "a matcher such as"), ('x{a="b" c="d"}', "',' or '}'"),
                         ('x{a=~"("}', "query"), ("x" * 5000, "more than 4096 bytes"),
                         ("x{" + 'a="b",' * 20 + "}", "more than 16 matchers")):
        status, answer = served.ask("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": query}), "read")
        assert status == 400 and answer["errorType"] == "bad_data" and words in answer["error"], (query, answer)
    for range_ in ("start=0&end=1", "start=x&end=1&step=1", "start=2&end=1&step=1", "start=0&end=99999&step=1",
                   "start=0&end=1&step=0", "start=nan&end=1&step=1", "start=0&end=inf&step=1", "start=0&end=1&step=1y"):
        assert served.ask("GET", f"/api/v1/query_range?query=x&{range_}", "read")[0] == 400, range_
    assert served.ask("POST", "/api/v1/query", "read", b"query=x")[0] in (405, 413)


def test_no_query_does_harm(fleet, start, tmp_path):
    """Pieces of queries in any order: an answer or a refusal, in JSON, and the server goes on."""
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")
    chance = random.Random(7)
    pieces = ["cairn_store_peak_bytes", "cairn_store_function_allocations", "{", "}", "host", "__name__", "=", "=~", "!~", "!=", '"',
              "'", "`", "\\", "\\x", "(a+)+$", "[", ",", " ", "\0", "\n", "\xff", "é", "1+1", "node1", ".*", "x" * 300, "%", "0"]
    for _ in range(300):
        values = {name: "".join(chance.choice(pieces) for _ in range(chance.randrange(12))) for name in ("query", "match[]")}
        values.update({name: chance.choice(["0", "1e9", "-1", "nan", "1h", "x", "1790000000", "2026-09-21T14:13:20Z"])
                       for name in ("start", "end", "step", "time")})
        kind = chance.choice(["query", "query_range", "series", "labels", "label/host/values", "label/%/values", "label/"])
        status, answer = served.ask("GET", f"/api/v1/{kind}?{urllib.parse.urlencode(values, encoding='latin-1', errors='replace')}",
                                    "read")
        assert status in (200, 400, 404) and (status == 200) == (answer.get("status") == "success"), (kind, values, answer)
    assert served.query("labels")


def test_promtool_reads_the_store(fleet, start, tmp_path):
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")
    address = f"http://grafana:{served.tokens['read']}@127.0.0.1:{served.port}"

    def ask(*words):
        return subprocess.run([PROMTOOL, "query", *words], capture_output=True, text=True, check=True, timeout=60).stdout
    last = fleet.recordings[5]
    moment = last["time"] + 100
    query = f'cairn_store_peak_bytes{{host="{last["host"]}",version="{last["version"]}"}}'
    assert f"=> {peak_of(last)} @[" in ask("instant", f"--time={moment}", address, query)
    assert str(peak_of(last)) in ask("range", f"--start={moment - 10}", f"--end={moment}", "--step=10s", address, query)
    assert last["host"] in ask("series", "--match=cairn_store_peak_bytes", address)
    assert {"node0", "node1"} & set(ask("labels", address, "host").split())


def test_each_panel_of_the_dashboard_has_an_answer(fleet, start, tmp_path):
    """As Grafana asks, with its variables replaced."""
    fleet.add(Store(tmp_path / "s.db"))
    served = start(tmp_path / "s.db")
    board = json.loads(DASHBOARD.read_text())
    for variable in board["templating"]["list"][1:]:
        name = re.fullmatch(r"label_values\((\w+)\)", variable["query"]["query"])[1]
        assert served.query(f"label/{name}/values"), name
    assert len(board["panels"]) == 6
    for panel in board["panels"]:
        (target,) = panel["targets"]
        query = re.sub(r"\$\w+", ".*", target["expr"])
        data = served.query("query_range", query=query, start=START, end=START + 12 * DAY, step=3600)
        assert data["result"], query
        labels = set.intersection(*(set(series["metric"]) for series in data["result"]))
        # A program without a build-id has no version unless it was given, as here.
        assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= labels


def curl(command, served, folder):
    """Run a line of the guide against the server."""
    for role, token in served.tokens.items():
        (folder / f"{role}.token").write_text(token)
    line = command.replace("127.0.0.1:9470", f"127.0.0.1:{served.port}")
    return subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_commands_of_the_guide_for_clients_work(start, tmp_path, draw):
    draw(f"!start_unix_ms {int(time.time() - 600) * 1000}\nmain;f 1 8 0 0 0 0 1 8 8\n", "run.cairn")
    served = start(tmp_path / "s.db")
    lines = [line.strip() for line in GUIDE.read_text().splitlines() if line.startswith(("    curl", "    promtool"))]
    assert len(lines) == 3
    assert '"is_new":true' in curl(lines[0], served, tmp_path)
    assert "=> 8 @[" in curl(lines[2], served, tmp_path)
    (row,) = Store(tmp_path / "s.db").rows("list")
    assert (row["service"], row["version"]) == ("web", "1.4.2")
    assert '"removed":0' in curl(lines[1], served, tmp_path)
