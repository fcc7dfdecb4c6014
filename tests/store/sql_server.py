# SPDX-License-Identifier: MIT
"""ClickHouse's HTTP interface over Python's sqlite3: what `cairn store` sends a server, and how it
reads the answers, without a ClickHouse.

Literals are decoded by ClickHouse's rules and bound as values, so a wrong escape changes a value or
leaves a statement that SQLite refuses. Tables, joins and answers are translated by words. A database
exists once something asks for it. tests/store/test_clickhouse.py has the same tests with a server of
Debian's.
"""
import base64
import contextlib
import http.server
import re
import sqlite3
import threading
import urllib.parse

LITERAL = re.compile(r"'((?:\\.|[^'\\])*)'", re.S)
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "0": "\0"}
LOGIN = "Basic " + base64.b64encode(b"me:pass").decode()
WORDS = [(r"\bGLOBAL ANY LEFT JOIN\b", "LEFT JOIN"), (r"\bGLOBAL IN\b", "IN"), (r"\bcount\(\)", "count(*)"),
         (r"\bposition\(", "instr("), (r"\bString\b", "TEXT"), (r"\bNullable\(Int64\)", "NULLABLE_INTEGER"), (r"\bInt64\b", "INTEGER"),
         (r"^ALTER TABLE (\w+) DELETE\b", r"DELETE FROM \1"), (r"^ALTER TABLE (\w+) UPDATE\b", r"UPDATE \1 SET"),
         (r"\breplaceAll\(", "replace("),
         (r"\bFROM \w+\.recordings\b", "FROM recordings"),
         (r"\bsystem\.tables WHERE database=\?", "(SELECT name, 'MergeTree' AS engine FROM sqlite_master) WHERE ?<>''"),
         (r"\bsystem\.columns WHERE database=\? AND table=\?", "(SELECT tables.name AS owner, columns.name,"
          " CASE columns.type WHEN 'INTEGER' THEN 'Int64' ELSE columns.type END AS type FROM"
          " sqlite_master AS tables, pragma_table_xinfo(tables.name) AS columns) WHERE ?<>'' AND owner=?"),
         # The rows of equal keys are merged.
         (r"\) ENGINE=ReplacingMergeTree\(\)(?: PARTITION BY \S+)? ORDER BY ?\(?([\w,]+)\)?$", r",UNIQUE(\1))"),
         (r"^INSERT INTO (\w+) VALUES", r"INSERT OR REPLACE INTO \1 VALUES")]


class Refused(Exception):
    """A statement that the server does not run."""


def unescape(text):
    return re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text, flags=re.S)


def escape(value):
    if value is None:
        return "\\N"
    if not isinstance(value, str):
        return repr(value)
    for character, letter in (("\\", "\\"), ("'", "'"), *((text, letter) for letter, text in ESCAPES.items())):
        value = value.replace(character, "\\" + letter)
    return value


def type_of(values):
    """ClickHouse's type of a column with these values."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and max(value for value in values if value is not None) >= 1 << 63:
        return "UInt64"
    name = "Int64" if kinds == {int} else "Float64" if kinds and kinds <= {int, float} else "String"
    return f"Nullable({name})" if None in values else name


class Database:
    """One database: its tables in memory."""

    def __init__(self):
        self.sqlite = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.sqlite.create_function("toYYYYMM", 1, int)
        self.sqlite.create_function("toUInt64", 1, "\0{}".format)

    def run(self, statement, data, is_readonly):
        found = re.fullmatch(r"INSERT INTO (\w+) FORMAT TabSeparated", statement)
        if found:
            return self.insert(found[1], data)
        statement = statement.removesuffix("\nFORMAT TabSeparatedWithNamesAndTypes")
        if is_readonly and not statement.lower().startswith("select"):
            raise Refused("Code: 164. DB::Exception: Cannot execute query in readonly mode")
        values = [unescape(text) for text in LITERAL.findall(statement)]
        sql = LITERAL.sub("?", statement)
        for words, other in WORDS:
            sql = re.sub(words, other, sql)
        found = re.fullmatch(r"ALTER TABLE (\w+) (MODIFY COLUMN \w+ NULLABLE_INTEGER,?)+", sql)
        if found:
            return self.modify(found[1], re.findall(r"COLUMN (\w+)", sql))
        found = re.fullmatch(r"ALTER TABLE (\w+) (ADD COLUMN \w+ NULLABLE_INTEGER ALIAS \w+,?)+", sql)
        if found:
            return self.add_aliases(found[1], re.findall(r"COLUMN (\w+) NULLABLE_INTEGER ALIAS (\w+)", sql))
        if "DEFAULT recording_id" in sql:
            return self.add_runs()
        cursor = self.sqlite.execute(sql, values)
        return table(cursor) if cursor.description else ""

    def modify(self, name, columns):
        """Make columns nullable."""
        (sql,) = self.sqlite.execute("SELECT sql FROM sqlite_master WHERE name=?", (name,)).fetchone()
        for column in columns:
            sql = re.sub(rf"\b{column} INTEGER", f"{column} NULLABLE_INTEGER", sql)
        self.sqlite.execute("PRAGMA writable_schema=1")
        self.sqlite.execute("UPDATE sqlite_master SET sql=? WHERE name=?", (sql, name))
        self.sqlite.execute("PRAGMA writable_schema=RESET")
        return ""

    def add_runs(self):
        """SQLite has no default that is another column."""
        for words in ("ALTER TABLE recordings ADD COLUMN run_id INTEGER", "UPDATE recordings SET run_id=recording_id",
                      "ALTER TABLE recordings ADD COLUMN run_order INTEGER DEFAULT 0"):
            self.sqlite.execute(words)
        return ""

    def add_aliases(self, table, aliases):
        """Add columns that have other names for what is there."""
        for name, other in aliases:
            self.sqlite.execute(f"ALTER TABLE {table} ADD COLUMN {name} NULLABLE_INTEGER GENERATED ALWAYS AS ({other})")
        return ""

    def insert(self, name, data):
        lines = data.split("\n")
        assert lines.pop() == ""
        rows = [[None if field == "\\N" else unescape(field) for field in line.split("\t")] for line in lines]
        places = ",".join("?" * len(rows[0]))
        self.sqlite.executemany(f"INSERT OR REPLACE INTO {name} VALUES({places})", rows)
        return ""


def unsigned(value):
    """The number that toUInt64 made: SQLite has none above 2^63 - 1."""
    return int(value[1:]) if isinstance(value, str) and re.fullmatch(r"\0[0-9]+", value) else value


def table(cursor):
    """TabSeparatedWithNamesAndTypes"""
    rows = [tuple(unsigned(value) for value in row) for row in cursor.fetchall()]
    names = [column[0] for column in cursor.description]
    types = [type_of([row[i] for row in rows]) for i in range(len(names))]
    return "".join("\t".join(map(escape, line)) + "\n" for line in (names, types, *rows))


class Handler(http.server.BaseHTTPRequestHandler):
    """Runs the statement of a request in the database that it names."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for the headers' acknowledgement

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.path, body))
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, strict_parsing=True))
        statement, data = (parameters["query"], body) if "query" in parameters else (body, None)
        try:
            if self.headers["Authorization"] != LOGIN or parameters["wait_end_of_query"] != "1":
                raise Refused("Code: 516. DB::Exception: me: Authentication failed")
            database = self.server.databases.setdefault(parameters["database"], Database())
            status, answer = 200, database.run(statement, data, parameters.get("readonly") == "1")
        except (Refused, sqlite3.Error) as problem:
            status, answer = 500, str(problem)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer.encode())))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serve():
    """A server; `.databases` has its databases, and `.asked` the target and the body of each request."""
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.databases, server.asked = {}, []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
