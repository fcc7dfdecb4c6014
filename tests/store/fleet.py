# SPDX-License-Identifier: MIT
"""A fleet of drawn recordings, cairn's answers about it, and the same answers by Python.

What a recording costs is in the drawings, so Python computes from these alone. Every number is a
sum or a mean of small whole numbers; a mean is compared to one byte, since halves round either way.
"""
import collections
import json
import random
import subprocess

from drawn import CAIRN, draw_to, environment

FUNCTIONS = [f"work{i}" for i in range(9)]
VERSIONS = ["1.0", "1.1", "2.0"]
HOSTS = [f"node{i}" for i in range(4)]
DAY = 86400
OLD_NAMES = {"live_bytes": "leaked_bytes", "live_blocks": "leaked_allocations"}  # in version 1 of the store
START = 1790000000


class Fleet:
    """`count` recordings of a service, each with the bytes at the peak and at the end of a few functions."""

    def __init__(self, folder, count=24, seed=1):
        chance = random.Random(seed)
        self.recordings = []
        for i in range(count):
            costs = {name: (chance.randrange(1, 5000), chance.randrange(1, 5000))
                     for name in chance.sample(FUNCTIONS, 5)}
            self.recordings.append({
                "path": folder / f"{i}.cairn", "version": VERSIONS[i % 3], "host": HOSTS[chance.randrange(4)],
                "time": START + i * DAY, "costs": costs, "is_oom": i % 4 == 0})
            draw_to(self.recordings[-1]["path"], self.drawing(self.recordings[-1]))

    @staticmethod
    def drawing(recording, more=()):
        more = dict(more)
        stacks = "".join(f"/opt/web!main(/m.c:1);/opt/web!{name}(/w.c:{len(name)}) 1 9000 0 0 0 0 1 {peak} {peak}\n"
                         f"/opt/web!main(/m.c:1);/opt/web!{name}(/w.c:{len(name)});/opt/web!sub{name}(/s.c:2)"
                         f" 2 {end} 0 0 0 0 0 0 {end}\n" for name, (peak, end) in recording["costs"].items())
        head = {"program": "/opt/web", "host": recording["host"], "start_unix_ms": recording["time"] * 1000,
                "wait_status": 9 if recording["is_oom"] else 0, "runtime_ms": 60000, **more}
        return "".join(f"!{key} {value}\n" for key, value in head.items()) + stacks

    def add(self, store):
        for version in VERSIONS:
            paths = [r["path"] for r in self.recordings if r["version"] == version]
            assert store.run("add", *paths, "--version", version) == f"{len(paths)} added\n"

    def add_earlier(self, store, count=2):
        """Add earlier states of each run, as --rotate keeps them. They have other figures, and count nowhere."""
        for version in VERSIONS:
            paths = []
            for recording in (r for r in self.recordings if r["version"] == version):
                for state in range(count):
                    early = {**recording, "costs": {name: (peak * 3 + state, end * 5) for name, (peak, end) in
                                                    recording["costs"].items()}}
                    paths.append(recording["path"].with_suffix(f".{state}.cairn"))
                    draw_to(paths[-1], self.drawing(early, {"runtime_ms": 1000 * (state + 1)}))
            assert store.run("add", *paths, "--version", version) == f"{len(paths)} added\n"

    def means(self, recordings):
        """{function: bytes at the peak per recording}"""
        sums = collections.Counter()
        for recording in recordings:
            for name, (peak, _) in recording["costs"].items():
                sums[name] += peak
        return {name: sums[name] / len(recordings) for name in FUNCTIONS}

    def growth(self, old, new):
        sides = [self.means([r for r in self.recordings if r["version"] == version]) for version in (old, new)]
        return {name: sides[1][name] - sides[0][name] for name in FUNCTIONS}

    def hosts(self):
        """{(host, function): difference from the other hosts}, of functions that the host has."""
        found = {}
        for host in HOSTS:
            own = [r for r in self.recordings if r["host"] == host]
            rest = [r for r in self.recordings if r["host"] != host]
            if own:
                seen = {name for r in own for name in r["costs"]}
                own, rest = self.means(own), self.means(rest)
                found.update({(host, name): own[name] - rest[name] for name in seen})
        return found

    def history(self, name):
        return [(r["time"], r["version"], r["host"], r["costs"][name][0]) for r in self.recordings
                if name in r["costs"]]

    def ooms(self):
        """{function: number of recordings that ended by SIGKILL in which it held 1% or more}"""
        found = collections.Counter()
        for recording in (r for r in self.recordings if r["is_oom"]):
            # What is live at the end: 9000 of each function, and the bytes of its callee.
            ends = {}
            for name, (_, end) in recording["costs"].items():
                ends[name], ends[f"sub{name}"] = 9000, end
            found.update(name for name, size in ends.items() if size * 100 >= sum(ends.values()))
        return found


class Store:
    """cairn's store at a place: a path or an URL."""

    def __init__(self, place):
        self.place = place

    def start(self, *words, **settings):
        more = {"CAIRN_STORE": str(self.place), "CAIRN_STORE_LOGIN": "me:pass"}
        return subprocess.Popen([CAIRN, "store", *map(str, words)], env=environment(more), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)

    def run(self, *words, status=0, **settings):
        """Standard output, or the message of a command that fails."""
        process = self.start(*words, **settings)
        out, errors = process.communicate(timeout=120)
        assert process.returncode == status, (words, process.returncode, out, errors)
        assert (errors == "") == (status == 0), errors
        return out if status == 0 else errors

    def rows(self, *words):
        """The answer in JSON, as a list of dicts."""
        return json.loads(self.run(*words, "--json"))["rows"]


def check_answers(fleet, store):
    """Compare every query with Python's answer."""
    for old, new in (("1.0", "1.1"), ("1.1", "2.0")):
        expected = fleet.growth(old, new)
        changed = store.rows("diff", old, new, "-n", "0")
        assert {row["function"]: row["change_peak_bytes"] for row in changed} == {
            name: near(change, changed, name, "change_peak_bytes") for name, change in expected.items() if change != 0}
        grown = store.rows("query", "growth", old, new, "-n", "0")
        assert [row["function"] for row in grown] == sorted((n for n in expected if expected[n] > 0),
                                                            key=lambda n: -expected[n])
    expected = fleet.hosts()
    rows = store.rows("query", "hosts", "-n", "0")
    assert {(row["host"], row["function"]) for row in rows} >= {key for key in expected if expected[key] != 0}
    for row in rows:
        if not row["function"].startswith("sub"):
            assert abs(row["change_peak_bytes"] - expected[row["host"], row["function"]]) <= 0.5
    for name in FUNCTIONS[:3]:
        assert [(row["time"], row["version"], row["host"], row["cost_peak_bytes"])
                for row in store.rows("query", "history", name, "-n", "0")] == fleet.history(name)
    rows = store.rows("query", "oom", "-n", "0")
    assert {row["function"]: row["ooms"] for row in rows} == dict(fleet.ooms())
    assert {row["of_ooms"] for row in rows} == {sum(r["is_oom"] for r in fleet.recordings)}


def near(number, rows, name, column):
    """The value of a row if it is `number` when rounded either way, else `number`."""
    found = next((row[column] for row in rows if row["function"] == name), None)
    return found if found is not None and abs(found - number) <= 0.5 else number


def check_same_output(store, other):
    """Both have the same fleet, and print the same."""
    for words in (("list",), ("top", "-n", "0"), ("diff", "1.0", "2.0"), ("query", "growth", "1.0", "2.0"),
                  ("query", "hosts"), ("query", "history", "work1"), ("query", "oom"), ("list", "--host", "node2")):
        for form in ((), ("--json",), ("--csv",)):
            assert store.run(*words, *form) == other.run(*words, *form), words
    select = "SELECT sum(peak_bytes) AS s, max(host) AS h FROM rows"
    assert store.rows("query", select) == other.rows("query", select)


def check_names(store, draw):
    """Hostile names arrive as they are, and a user's statement changes nothing."""
    names = ["a'); DROP TABLE rows;--", "back\\slash", "\\'", "\\N", "{JOIN}?9x", "'", "tab\\tx", "=1+1"]
    for i, name in enumerate(names):
        path = draw(f"!host {name}\nmain;call {i + 1} 64 0 0 0 0 1 64 64\n", f"{i}.cairn")
        store.run("add", path, "--service", name, "--version", name)
        (row,) = store.rows("list", "--service", name)
        assert (row["service"], row["version"], row["allocations"]) == (name, name, i + 1)
        assert store.rows("top", "--version", name, "--cost", "allocations")[0]["allocations"] == i + 1
    assert len(store.rows("list")) == len(names)
    for sql in ("DROP TABLE rows", "INSERT INTO cairn_store VALUES(9)", "ALTER TABLE rows DELETE WHERE 1"):
        assert "refused" in store.run("query", sql, status=2)
    assert len(store.rows("list")) == len(names)


# What a heap profile of gperftools knows, and what it does not know.
HEAP_PROFILE = """heap profile: 3: 3000 [ 5: 5000] @ heapprofile
 2: 2000 [ 4: 4000] @ 0x1000 0x2000
 1: 1000 [ 1: 1000] @ 0x3000 0x2000

MAPPED_LIBRARIES:
"""
UNKNOWN = ("peak_bytes", "peak_blocks", "temporary", "temporary_bytes", "own_peak_bytes")


def add_unknown(store, folder, drawing):
    """Add a recording that lacks costs, and one that has them. Return what check_unknown compares."""
    profile = folder / "profile.heap"
    profile.write_text(HEAP_PROFILE)
    assert store.run("add", profile, "--version", "lacking") == "1 added\n"
    assert store.run("add", drawing, "--version", "whole") == "1 added\n"
    return costs_of(store)


def costs_of(store):
    columns = ",".join((*UNKNOWN, "allocations", "live_bytes"))
    return {table: [[str(value) for value in row.values()] for row in store.rows(
        "query", f"SELECT version,{columns} FROM {table} ORDER BY version,allocations")] for table in ("recordings", "rows")}


def check_unknown(costs):
    """Unknown costs are NULL, in totals and rows, and the others are not."""
    unknown = ["None"] * len(UNKNOWN)
    assert costs["recordings"][0] == ["lacking", *unknown, "5", "3000"]
    assert costs["rows"][:2] == [["lacking", *unknown, "1", "1000"], ["lacking", *unknown, "4", "2000"]]
    assert all(row[0] == "whole" and "None" not in row for row in costs["recordings"][1:] + costs["rows"][2:])
