# SPDX-License-Identifier: MIT
"""`cairn store` with a server that speaks as ClickHouse does, with other servers, and with places that
are no stores."""
import http.server
import threading

import pytest

from fleet import (OLD_NAMES, UNKNOWN, Fleet, Store, add_unknown, check_answers, check_names, check_same_output, check_unknown,
                   costs_of)
from sql_server import serve


@pytest.fixture(name="server")
def fixture_server():
    with serve() as server:
        yield server


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    return Fleet(tmp_path_factory.mktemp("fleet"), 12)


def store_of(server, database="one"):
    return Store(f"http://127.0.0.1:{server.server_port}/{database}")


def test_a_server_answers_as_python_computes(server, fleet, tmp_path):
    store = store_of(server)
    assert "not a store of cairn, or it is empty" in store.run("list", status=2)
    fleet.add(store)
    check_answers(fleet, store)
    paths = [recording["path"] for recording in fleet.recordings]
    assert store.run("add", *paths) == f"0 added, {len(paths)} already in the store\n"
    sqlite = Store(tmp_path / "store.db")
    fleet.add(sqlite)
    check_same_output(store, sqlite)
    fleet.add_earlier(store)
    fleet.add_earlier(sqlite)
    check_answers(fleet, store)
    check_same_output(store, sqlite)
    assert store.run("prune", "--version", "1.1") == "12 removed\n"
    left = "SELECT count(*) FROM {}"
    for table, rows in (("rows", 240), ("recordings", 24)):
        assert server.databases["one"].sqlite.execute(left.format(table)).fetchall() == [(rows,)]


def test_names_are_values_and_queries_only_read(server, draw):
    check_names(store_of(server, "names_2"), draw)


@pytest.mark.parametrize("select, wanted", [
    ("'a\\tb' AS x, '\\b\\f\\n\\r\\\\n' AS y", [{"x": "a\tb", "y": "\b\f\n\r\\n"}]),
    ("1 AS x, -9223372036854775807-1 AS y", [{"x": 1, "y": -2**63}]),
    ("9223372036854775807 AS x, NULL AS y", [{"x": 2**63 - 1, "y": None}]),
    ("toUInt64('9223372036854775808') AS x, toUInt64('18446744073709551615') AS y", [{"x": 2**63, "y": 2**64 - 1}]),
    ("0.1 AS x, -2.5e300 AS y", [{"x": 0.1, "y": -2.5e300}]),
    ("'' AS x, '\\\\N' AS y ; \n", [{"x": "", "y": "\\N"}]),
    ("1 AS x, 1.5 AS y UNION ALL SELECT NULL, NULL", [{"x": None, "y": None}, {"x": 1, "y": 1.5}]),
    ("1 AS x, '?1' AS y WHERE 1=0", [])])
def test_each_type_of_value_arrives(server, draw, select, wanted):
    store = store_of(server)
    store.run("add", draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn"))
    assert sorted(store.rows("query", f"SELECT {select}"), key=str, reverse=True) == sorted(wanted, key=str, reverse=True)


def test_a_store_of_another_version(server, draw):
    store = store_of(server)
    store.run("add", draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn"))
    server.databases["one"].sqlite.execute("UPDATE cairn_store SET version=6")
    assert "the store has version 6, and this cairn reads version 5" in store.run("list", status=2)


RENAMES = tuple(f"ALTER TABLE {table} RENAME COLUMN {name} TO {old}" for table in ("recordings", "rows")
                for name, old in OLD_NAMES.items())
RUNS = tuple(f"ALTER TABLE recordings DROP COLUMN {column}" for column in ("run_id", "run_order"))
DROP, MARK = "ALTER TABLE recordings DROP COLUMN interval_bytes", "UPDATE cairn_store SET version=1"


@pytest.mark.parametrize("missing", [(*RUNS, *RENAMES, DROP, MARK), (DROP,), (MARK,), RENAMES, RUNS],
                         ids=["version 1", "the column", "the mark", "the names", "the runs"])
def test_a_store_of_the_first_version_gets_what_it_lacks(server, draw, missing):
    store = store_of(server)
    store.run("add", draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn"))
    before = store.run("list")
    sql = server.databases["one"].sqlite.execute
    for statement in missing:
        sql(statement)
    for _ in range(2):
        assert store.run("list") == before and "error" not in before
    assert sql("SELECT (SELECT max(version) FROM cairn_store), sum(interval_bytes) FROM recordings").fetchall() == [(5, 0)]
    store.run("add", draw("main;g 1 8 0 0 0 0 1 8 8\n", "b.cairn"))


def test_unknown_costs_are_null_also_in_a_store_of_the_first_version(server, draw, tmp_path):
    store = store_of(server)
    costs = add_unknown(store, tmp_path, draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn"))
    check_unknown(costs)
    sql = server.databases["one"].sqlite.execute
    for table in ("recordings", "rows"):
        sql(f"UPDATE {table} SET {','.join(f'{cost}=coalesce({cost},0)' for cost in UNKNOWN)}")
    for statement in (*RUNS, *RENAMES, DROP, MARK):
        sql(statement)
    sql("PRAGMA writable_schema=1")
    sql("UPDATE sqlite_master SET sql=replace(sql,'NULLABLE_INTEGER','INTEGER')")
    sql("PRAGMA writable_schema=RESET")
    assert costs_of(store) == costs
    assert [words for _, words in server.asked if "MODIFY" in words and "own_peak_bytes Nullable" in words]


class Garbage(http.server.BaseHTTPRequestHandler):
    """Answers every request with the server's `reply`: status, headers and body."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, body = self.server.reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


NO_CLICKHOUSE = "the store's server does not answer as ClickHouse does"
TOO_LONG = "the answer is too long: use LIMIT"
REFUSED = "the store's server refused with HTTP status"
NO_STORE = "the database 'x' is not a store of cairn, or it is empty"


def wide(names, types, fields):
    """An answer with so many names, types and fields."""
    return "".join("\t".join(word for _ in range(count)) + "\n"
                   for word, count in (("n", names), ("Int64", types), ("0", fields))).encode()


@pytest.mark.parametrize("reply, message", [
    ((200, {}, b""), NO_STORE), ((200, {}, b"a\tb\n"), NO_CLICKHOUSE), ((200, {}, b"a\nInt64\nx\n"), NO_CLICKHOUSE),
    ((200, {}, b"a\tb\nInt64\n1\t2\n"), NO_CLICKHOUSE), ((200, {}, b"a\nInt64\n1\t2\n"), NO_CLICKHOUSE),
    ((200, {}, b"a\nInt64\tInt64\n1\n"), NO_CLICKHOUSE), ((200, {}, b"a\tb\nInt64\tInt64\n0\n"), NO_CLICKHOUSE),
    ((200, {}, b"a\nInt64\n-\n"), NO_CLICKHOUSE), ((200, {}, b"a\nInt64\n1x\n"), NO_CLICKHOUSE),
    ((200, {}, b"a\nInt64\n\n"), NO_CLICKHOUSE), ((200, {}, b"a\nFloat64\n\n"), NO_CLICKHOUSE),
    ((200, {}, b"a\nFloat64\n1.5x\n"), NO_CLICKHOUSE), ((200, {}, b"a\tb\nInt64\tFloat32\n0\t1.5\n"), NO_STORE),
    ((200, {}, b"a\nInt64\n0"), NO_STORE), ((200, {}, b"a\nNullable(UInt8)\n0\n"), NO_STORE),
    ((200, {}, wide(200, 200, 200)), NO_STORE), ((200, {}, wide(201, 201, 201)), TOO_LONG),
    ((200, {}, b"\t" * 1000 + b"\n"), TOO_LONG), ((200, {}, b"count()\nInt64\n" + b"9" * 50 + b"\n"),
     "the store has version -1, and this cairn reads version 5"),
    ((500, {}, b"Code: 1 \x1b[31m" + b"x" * 10000), f"{REFUSED} 500: Code: 1 \\x1b[31m" + "x" * 287),
    ((404, {}, b"one\n\ntwo\n"), f"{REFUSED} 404: one two"), ((404, {}, b"\n"), f"{REFUSED} 404: "),
    ((401, {}, b""), f"{REFUSED} 401: "), ((201, {}, b"a"), f"{REFUSED} 201: a"),
    ((302, {"Location": "http://127.0.0.1:1/"}, b""), f"{REFUSED} 302: "),
    ((200, {"Content-Length": "100"}, b"a\n"), "the store's server: transfer closed with 98 bytes remaining to read")])
def test_a_server_that_answers_garbage_gets_a_sentence(reply, message, draw):
    path = draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Garbage) as server:
        server.reply = reply
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        store = Store(f"http://127.0.0.1:{server.server_port}/x")
        said = {words[0]: store.run(*words, status=2) for words in (("list",), ("add", path))}
        server.shutdown()
        thread.join()
    assert "secret" not in said["add"] and said["add"].count("\n") == 1
    assert said["list"] == f"cairn: {message}\n"


def test_wrong_places(tmp_path):
    # Nothing listens at port 1.
    for place in ("http://127.0.0.1:1/x", "http://me:secret@127.0.0.1/x", "http://example.com/x", "http://127.0.0.1/a-b", "http://127.0.0.1/x?y=z",
                  "http:///x", "https://:0"):
        message = Store(place).run("list", status=2)
        assert message.count("\n") == 1 and "secret" not in message
    assert not list(tmp_path.iterdir())
