# SPDX-License-Identifier: MIT
"""`cairn store` in ClickHouse: Debian's server as a process of the test, on the loopback alone.

The same fleet as in SQLite must give the answers that Python computes. Two servers hold the parts
of one fleet, and Distributed tables over both answer for all of it. Stores of version 1 are brought up
to date.
"""
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

from fleet import (OLD_NAMES, UNKNOWN, Fleet, Store, add_unknown, check_answers, check_names, check_same_output, check_unknown,
                   costs_of)
from waiting import wait_until

SERVER = shutil.which("clickhouse-server")
CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><format_schema_path>{folder}/</format_schema_path>
<mark_cache_size>5000000</mark_cache_size><uncompressed_cache_size>1000000</uncompressed_cache_size>
<users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><remote_servers><both>{shards}</both></remote_servers></yandex>
"""
SHARD = """<shard><replica><host>127.0.0.1</host><port>{tcp}</port><user>me</user><password>pass</password></replica>
</shard>"""
USERS = """<yandex><profiles><default><max_memory_usage>1000000000</max_memory_usage></default></profiles>
<users><me><password>pass</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></me></users><quotas><default/></quotas></yandex>
"""
TABLES = ("recordings", "functions", "stacks", "rows", "cairn_store")


def free_ports(count):
    """Ports that are free now: all are bound at a time, so they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Server:
    """A server in a folder of its own."""

    def __init__(self, folder, http_port, tcp, shards):
        self.folder, self.http = folder, http_port
        for name in ("data", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "users.xml").write_text(USERS)
        (folder / "config.xml").write_text(CONFIG.format(folder=folder, http=http_port, tcp=tcp, shards=shards))
        with open(folder / "out", "wb") as out:
            self.process = subprocess.Popen([SERVER, f"--config-file={folder}/config.xml"], cwd=folder, stdout=out,
                                            stderr=out, stdin=subprocess.DEVNULL)

    def url(self, database):
        return f"http://127.0.0.1:{self.http}/{database}"

    def sql(self, statement):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}/", statement.encode(),
                                         {"X-ClickHouse-User": "me", "X-ClickHouse-Key": "pass"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def is_ready(self):
        assert self.process.poll() is None, (self.folder / "out").read_text()
        try:
            return self.sql("SELECT 1") == "1\n"
        except OSError:
            return False


def start(folder, count):
    """Start servers. A port that another process takes meanwhile ends one; then others are tried."""
    ports = free_ports(2 * count)
    shards = "".join(SHARD.format(tcp=tcp) for tcp in ports[count:])
    servers = [Server(folder / str(i), ports[i], ports[count + i], shards) for i in range(count)]
    try:
        for server in servers:
            wait_until(server.is_ready, "the server")
    except AssertionError:
        stop(servers)
        raise
    return servers


def stop(servers):
    for server in servers:
        server.process.kill()
        server.process.wait(timeout=60)


@pytest.fixture(name="servers", scope="module")
def fixture_servers(tmp_path_factory):
    for attempt in range(3):
        try:
            servers = start(tmp_path_factory.mktemp("clickhouse"), 2)
            break
        except AssertionError:
            if attempt == 2:
                raise
    yield servers
    stop(servers)


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    return Fleet(tmp_path_factory.mktemp("fleet"), 12)


def test_one_server_answers_as_python_computes(servers, fleet):
    server = servers[0]
    server.sql("CREATE DATABASE one")
    store = Store(server.url("one"))
    assert "not a store of cairn, or it is empty" in store.run("list", status=2)
    fleet.add(store)
    check_answers(fleet, store)
    paths = [recording["path"] for recording in fleet.recordings]
    assert store.run("add", *paths) == f"0 added, {len(paths)} already in the store\n"
    assert int(server.sql("SELECT count() FROM one.rows")) == 10 * len(paths)


def test_it_prints_what_sqlite_prints(servers, fleet, tmp_path, draw):
    """Also with earlier states of each run, which count nowhere, and with labels."""
    server = servers[0]
    server.sql("CREATE DATABASE same")
    stores = [Store(server.url("same")), Store(tmp_path / "store.db")]
    for store in stores:
        fleet.add(store)
    check_same_output(*stores)
    labelled = draw("!runtime_ms 60000\nmain;f 1 8 0 0 0 0 1 8 8\n", "a.cairn")
    for store in stores:
        fleet.add_earlier(store)
        check_answers(fleet, store)
        store.run("add", labelled, "--label", 'a=x"\\,é', "--label", "b=y", "--version", "labelled")
        for words, count in ((('a=x"\\,é',), 1), (("b=y",), 1), (("b=y", 'a=x"\\,é'), 1), (("a=y",), 0), (("b=x",), 0)):
            assert len(store.rows("list", *[f"--label={word}" for word in words])) == count
    check_same_output(*stores)
    for words in (("list", "--states"), ("query", "growth", "1.0", "2.0", "--states", "--per", "second"),
                  ("query", "hosts", "--per", "second"), ("query", "history", "work1", "--per", "second")):
        said = [store.start(*words).communicate(timeout=120) for store in stores]
        assert said[0] == said[1] and said[0][0] != ""


DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "contrib/grafana/store-clickhouse.json"


def test_the_queries_of_the_dashboard_have_the_answers_of_the_store(servers, fleet):
    """As Grafana's ClickHouse data source sends them, with its macros and the dashboard's variables replaced. They need
    nothing of cairn's; earlier states of runs count nowhere. A GET may only read."""
    server = servers[0]
    server.sql("CREATE DATABASE board")
    store = Store(server.url("board"))
    fleet.add(store)
    fleet.add_earlier(store)
    board = json.loads(DASHBOARD.read_text())
    words = {"$__fromTime": "toDateTime(1000000000)", "$__toTime": "toDateTime(2000000000)", "$service": "web", "$old": "1.0",
             "$new": "2.0"}

    def ask(sql):
        for word, text in words.items():
            sql = sql.replace(word, text)
        assert "$" not in sql
        query = urllib.parse.urlencode({"database": "board", "query": f"{sql} FORMAT JSON"})
        request = urllib.request.Request(f"http://127.0.0.1:{server.http}/?{query}",
                                         headers={"X-ClickHouse-User": "me", "X-ClickHouse-Key": "pass"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{sql}: {error.read().decode()}") from error
    for variable in board["templating"]["list"][1:]:
        assert len(ask(variable["query"])) == (1 if variable["name"] == "service" else 3)
    answers = {panel["title"]: ask(panel["targets"][0]["rawSql"]) for panel in board["panels"]}
    assert len(answers["Peak"]) == len(answers["Live at the end"]) == 3 * len(fleet.recordings)  # states are points
    for title, words_of in (("Call sites by peak", ("top",)), ("Call sites by live bytes", ("top", "--cost", "leaked"))):
        cost = title.split(" by ")[1].split()[0] + "_bytes"
        totals = {}
        for row in store.rows(*words_of, "-n", "0"):
            totals[row["function"]] = totals.get(row["function"], 0) + row[cost]
        assert {row["name"]: int(row[cost]) for row in answers[title] if int(row[cost])} == totals
    grown = {row["function"]: row["change_peak_bytes"] for row in store.rows("query", "growth", "1.0", "2.0", "-n", "0")}
    assert {row["name"] for row in answers["What grew"]} == set(grown)
    assert all(abs(row["growth_bytes"] - grown[row["name"]]) <= 1 for row in answers["What grew"])
    assert len(answers["Out of memory"]) == sum(r["is_oom"] for r in fleet.recordings)


def add_halves(servers, fleet, database):
    """Add every second recording to the one server and the others to the other."""
    halves = []
    for i, server in enumerate(servers):
        server.sql(f"CREATE DATABASE {database}")
        halves.append(Store(server.url(database)))
        for version in ("1.0", "1.1", "2.0"):
            paths = [r["path"] for at, r in enumerate(fleet.recordings) if r["version"] == version and at % 2 == i]
            assert halves[i].run("add", *paths, "--version", version) == f"{len(paths)} added\n"
    return halves


def distribute(server, part, database):
    """Make the Distributed tables over both servers."""
    server.sql(f"CREATE DATABASE {database}")
    for table in TABLES:
        key = "0" if table == "cairn_store" else "cityHash64(service)" if table in ("rows", "recordings") else "rand()"
        server.sql(f"CREATE TABLE {database}.{table} AS {part}.{table}"
                   f" ENGINE = Distributed(both, {part}, {table}, {key})")
    return Store(server.url(database))


KEYS = {"recordings": "service,version,host,time,recording_id", "rows": "service,version,host,time,recording_id,stack_id"}


def replace(server, database, table, key, columns):
    for statement in (f"CREATE TABLE {database}.old ENGINE=ReplacingMergeTree() ORDER BY({key})"
                      f" AS SELECT {','.join(columns)} FROM {database}.{table}",
                      f"DROP TABLE {database}.{table}", f"RENAME TABLE {database}.old TO {database}.{table}"):
        server.sql(statement)


def mark(server, database, version):
    server.sql(f"TRUNCATE TABLE {database}.cairn_store")
    server.sql(f"INSERT INTO {database}.cairn_store VALUES({version})")


def columns_of(server, database, table):
    """Names and types of what tables had before version 5."""
    lines = [line.split("\t") for line in server.sql(f"DESCRIBE TABLE {database}.{table}").splitlines()]
    if table == "recordings":
        assert [lines.pop()[0], lines.pop()[0]] == ["run_order", "run_id"]
    return [line[:2] for line in lines]


def make_version_1(server, database):
    """Give a store the tables of version 1: they lack one column, two have other names, costs that are not known are 0,
    and the mark says 1."""
    for table, key in KEYS.items():
        lines = columns_of(server, database, table)
        assert {line[0] for line in lines if line[1] == "Nullable(Int64)"} > set(UNKNOWN)
        assert table != "recordings" or (lines.pop()[0] == "interval_bytes" and len(lines) == 30)
        replace(server, database, table, key,
                [f"toInt64(ifNull({line[0]},0)) AS {OLD_NAMES.get(line[0], line[0])}" if line[1] == "Nullable(Int64)"
                 else line[0] for line in lines])
    mark(server, database, 1)


def test_unknown_costs_are_null_also_in_a_store_of_version_1(servers, draw, tmp_path):
    server = servers[0]
    server.sql("CREATE DATABASE lacking")
    store = Store(server.url("lacking"))
    costs = add_unknown(store, tmp_path, draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn"))
    check_unknown(costs)
    make_version_1(server, "lacking")
    wait_until(lambda: costs_of(store) == costs, "the server's changes")  # made in its own time
    assert server.sql("SELECT max(version) FROM lacking.cairn_store") == "5\n"


def test_a_store_of_version_1_gets_the_new_names(servers, fleet):
    server = servers[0]
    (store,) = add_halves([server], fleet, "named")
    queries = [("list", "--cost", "leaked"), ("top", "--cost", "leaked-blocks"), ("diff", "1.0", "2.0", "--cost", "leaked"),
               ("query", "SELECT sum(live_bytes),sum(live_blocks) FROM rows")]
    before = {words: store.run(*words) for words in queries}
    make_version_1(server, "named")
    assert {words: store.run(*words) for words in queries} == before
    more = [recording["path"] for recording in fleet.recordings if recording["version"] == "1.0"]
    assert store.run("add", *more, "--version", "1.0") == "2 added, 2 already in the store\n"
    assert store.rows("query", "SELECT count() AS n FROM recordings WHERE live_bytes=leaked_bytes") \
        == store.rows("query", "SELECT count() AS n FROM recordings")


def test_two_servers_answer_together(servers, fleet):
    halves = add_halves(servers, fleet, "part")
    everything = distribute(servers[0], "part", "all")
    fleet.add_earlier(halves[0])  # states of one run on two servers
    assert len(everything.rows("list", "-n", "0")) == len(fleet.recordings)
    check_answers(fleet, everything)


def test_the_printed_statements_make_a_cluster_whose_joins_are_right(servers, fleet, tmp_path):
    """Added through both servers. Each function and each stack is on one of them; a join of the user's own has the
    sums that the rows have, and the recordings of one service are divided."""
    printed = Store(tmp_path / "none.db").run("schema", "--cluster", "both")
    for server in servers:
        for statement in printed.split(";\n")[:-1]:
            server.sql(statement)
    through = [Store(server.url("cairn")) for server in servers]
    for at, version in enumerate(("1.0", "1.1", "2.0")):
        paths = [r["path"] for r in fleet.recordings if r["version"] == version]
        through[at % 2].run("add", *paths, "--version", version)
    wait_until(lambda: all(len(store.rows("list", "-n", "0")) == len(fleet.recordings) for store in through)
               and sum(int(server.sql("SELECT uniqExact(function_id) FROM cairn_part.functions")) for server in servers)
               == int(servers[0].sql("SELECT uniqExact(function_id) FROM cairn.functions")), "what was added")
    for store in through:
        check_answers(fleet, store)
    for table, key in (("functions", "function_id"), ("stacks", "stack_id"), ("recordings", "recording_id")):
        ids = [set(server.sql(f"SELECT {key} FROM cairn_part.{table}").split()) for server in servers]
        assert not ids[0] & ids[1] and (table != "recordings" or all(ids)), (table, ids)
    (plain,) = through[0].rows("query", "SELECT sum(peak_bytes) AS sum FROM rows")
    (joined,) = through[0].rows("query", "SELECT sum(peak_bytes) AS sum FROM rows GLOBAL ALL INNER JOIN"
                                " (SELECT function_id,name FROM functions FINAL) USING function_id")
    assert joined == plain


def test_a_store_of_version_1_is_brought_up_to_date(servers, fleet):
    server = servers[0]
    (store,) = add_halves([server], fleet, "aged")
    make_version_1(server, "aged")
    assert len(store.rows("list", "-n", "0")) == len(fleet.recordings) // 2
    for version in ("1.0", "1.1", "2.0"):
        paths = [r["path"] for r in fleet.recordings if r["version"] == version]
        assert store.run("add", *paths, "--version", version) == "2 added, 2 already in the store\n"
    check_answers(fleet, store)
    assert store.run("prune", "--version", "1.1") == "4 removed\n"
    wait_until(lambda: len(store.rows("list", "-n", "0")) == 8, "the recordings")


def test_distributed_tables_of_version_1_follow_those_of_their_servers(servers, fleet):
    halves = add_halves(servers, fleet, "aged_part")
    for server in servers:
        make_version_1(server, "aged_part")
    everything = distribute(servers[0], "aged_part", "aged_all")
    assert "first open the database of each server with this cairn" in everything.run("list", status=2)
    # An upgrade that was cut short, or made by hand.
    servers[1].sql("ALTER TABLE aged_part.recordings ADD COLUMN interval_bytes Int64 DEFAULT 0")
    for store in halves:
        assert len(store.rows("list", "-n", "0")) == len(fleet.recordings) // 2
    check_answers(fleet, everything)
    more = [recording["path"] for recording in fleet.recordings if recording["version"] == "1.0"]
    assert everything.run("add", *more, "--version", "1.0") == "0 added, 4 already in the store\n"
    assert halves[1].run("prune", "--version", "1.1") == "2 removed\n"
    wait_until(lambda: len(everything.rows("list", "-n", "0")) == len(fleet.recordings) - 2, "the recordings")


def test_names_are_values_and_queries_only_read(servers, draw):
    server = servers[1]
    server.sql("CREATE DATABASE names")
    check_names(Store(server.url("names")), draw)


def test_prune_removes_recordings(servers, fleet):
    server = servers[1]
    server.sql("CREATE DATABASE pruned")
    store = Store(server.url("pruned"))
    fleet.add(store)
    assert store.run("prune", "--version", "1.1") == "4 removed\n"
    # The server removes them in its own time.
    wait_until(lambda: int(server.sql("SELECT count() FROM pruned.rows")) == 80, "the rows")
    wait_until(lambda: len(store.rows("list", "-n", "0")) == 8, "the recordings")
