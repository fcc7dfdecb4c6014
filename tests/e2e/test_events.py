# SPDX-License-Identifier: MIT
"""The event log: a naive replay of it gives the totals of the profile."""
import collections
import json
import random
import resource
import signal
import subprocess
import sys

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, counters, environment, expected_totals
from conversation import Conversation
from waiting import wait_until


def events_of(path):
    run = subprocess.run([CAIRN, "dump", "--events", "--json", path], env=environment(),
                         capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


class Replay:
    """Totals from events alone: a naive replay with dictionaries of addresses."""

    def __init__(self, events):
        self.live = collections.defaultdict(list)  # (process, address) -> [(size, row)], oldest first
        self.totals = collections.Counter()
        self.rows = collections.defaultdict(collections.Counter)
        self.heap = self.latest = 0
        for event in events:
            getattr(self, event["kind"])(event)
        held = [block for blocks in self.live.values() for block in blocks]
        self.totals["live_blocks"] = sum(count for count, _, _ in held) + self.totals.pop("dead_blocks", 0)
        self.totals["live_bytes"] = sum(size for _, size, _ in held) + self.totals.pop("dead_bytes", 0)

    def allocation(self, event):
        self.latest = event["process"], event["address"]
        count = event["weight"]
        size = count * event["size_bytes"]
        self.live[self.latest].append((count, size, event["row"]))
        self.totals["allocations"] += count
        self.totals["allocated_bytes"] += size
        self.rows[event["row"]]["allocations"] += count
        self.rows[event["row"]]["allocated_bytes"] += size
        self.heap += size
        self.totals["peak_bytes"] = max(self.totals["peak_bytes"], self.heap)

    def close(self, key, which):
        count, size, row = self.live[key].pop(which)
        self.totals["frees"] += count
        self.totals["freed_bytes"] += size
        self.rows[row]["frees"] += count
        self.rows[row]["freed_bytes"] += size
        self.heap -= size

    def free(self, event):
        self.close((event["process"], event["address"]), 0)

    def free_latest(self, event):
        assert (event["process"], event["address"]) == self.latest
        self.close(self.latest, -1)

    def temporary(self, event):
        self.totals["temporary"] += event["weight"]
        self.totals["temporary_bytes"] += event["weight"] * event["size_bytes"]

    def unknown(self, event):
        pass

    def process_end(self, event):
        for key in [key for key in self.live if key[0] == event["process"]]:
            for count, size, _ in self.live.pop(key):
                self.totals["dead_blocks"] += count
                self.totals["dead_bytes"] += size
                self.heap -= size


def assert_replays(recording):
    events = events_of(recording.path)
    replay = Replay(events)
    wanted = {key: recording.totals[key] for key in (
        "allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "temporary_bytes",
        "peak_bytes", "live_blocks", "live_bytes")}
    assert {key: replay.totals[key] for key in wanted} == wanted
    table = subprocess.run([CAIRN, "dump", "--table", "rows", recording.path], env=environment(),
                           capture_output=True, check=True, text=True).stdout.splitlines()
    names = table[0].split("\t")
    for number, line in enumerate(table[1:]):
        row = dict(zip(names, line.split("\t")))
        for key in ("allocations", "allocated_bytes", "frees", "freed_bytes"):
            assert int(row[key]) == replay.rows[number][key], (number, key)
    return events


@pytest.mark.parametrize("name, arguments", [
    ("malloc_family", []), ("realloc_forms", []), ("temporary", []), ("peak", []),
    ("cross_thread", []), ("threads", []), ("fork_both", []), ("exec_chain", ["exec", "1"])])
def test_a_replay_gives_the_totals_of_the_profile(record, name, arguments):
    recording = record(PROGRAMS / name, *arguments, options=["--events"])
    assert_replays(recording)
    subprocess.run([CAIRN, "verify", recording.path], env=environment(), check=True,
                   capture_output=True)
    assert not recording.path.with_name(recording.path.name + ".events").exists()


def table_of(recording, name):
    dump = subprocess.run([CAIRN, "dump", "--table", name, recording.path], check=True, text=True,
                          env=environment(), capture_output=True).stdout.splitlines()
    names = dump[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in dump[1:]]


def replay_slices(events, slice_ms, count):
    """The time slices of one process by a naive replay of its events."""
    slices = [collections.Counter() for _ in range(count)]
    blocks, live, at = {}, 0, 0
    for event in events:
        place = event["time_ms"] // slice_ms
        assert place >= at, "time runs backwards in the log"
        while at < place:
            slices[at]["live_bytes"] = live
            at += 1
            slices[at]["live_max_bytes"] = live
        into = slices[place]
        if event["kind"] == "allocation":
            live += event["size_bytes"]
            assert event["address"] not in blocks
            blocks[event["address"]] = event["size_bytes"]
            into["allocations"] += 1
            into["allocated_bytes"] += event["size_bytes"]
            into["live_max_bytes"] = max(into["live_max_bytes"], live)
        elif event["kind"] == "temporary":
            into["temporary"] += 1
        elif event["kind"] == "free":
            size = blocks.pop(event["address"])
            live -= size
            into["frees"] += 1
            into["freed_bytes"] += size
    for rest in slices[at:]:
        rest["live_bytes"] = live
        rest["live_max_bytes"] = max(rest["live_max_bytes"], live)
    return slices


def replay_range(events, begin_ms, end_ms):
    """The blocks that were allocated in a part of the run, and their frees in it."""
    born, reported = {}, collections.Counter()
    for event in events:
        if event["time_ms"] >= end_ms:
            break
        if event["kind"] == "allocation":
            born[event["address"]] = event["time_ms"], event["size_bytes"]
            if event["time_ms"] >= begin_ms:
                reported["allocations"] += 1
                reported["allocated_bytes"] += event["size_bytes"]
        elif event["kind"] == "free":
            since_ms, size = born.pop(event["address"])
            reported["frees"] += since_ms >= begin_ms
            reported["freed_bytes"] += size if since_ms >= begin_ms else 0
    return dict(reported)


@pytest.mark.parametrize("seed, threads, how", [
    (1, 2, "c"), (2, 3, "cr"), (3, 4, "crl"), (4, 8, "crsl"), (5, 16, "crs"), (6, 4, "r")])
def test_time_slices_of_threads_are_a_replay_of_their_events(record, seed, threads, how):
    """Threads free each other's blocks: compare each slice, and --time over some of the slices."""
    recording = record(PROGRAMS / "random_heap", seed, threads, 40000 // threads, how,
                       options=["--events"], is_compared=False)
    slice_ms = int(table_of(recording, "meta")[0]["slice_ms"])
    slices = [{name: int(value) for name, value in row.items()}
              for row in table_of(recording, "slices")]
    events = assert_replays(recording)
    replayed = replay_slices(events, slice_ms, len(slices))
    assert len(slices) > 4
    for number, (found, reported) in enumerate(zip(slices, replayed)):
        assert found == {name: reported[name] for name in found}, number
    draw = random.Random(seed)
    for _ in range(4):
        first, last = sorted(draw.sample(range(len(slices)), 2))
        begin_ms, end_ms = first * slice_ms, last * slice_ms
        totals = recording.report_of("--time", f"{begin_ms}ms..{end_ms}ms")["totals"]
        reported = replay_range(events, begin_ms, end_ms)
        assert {name: totals[name] for name in reported} == reported, (begin_ms, end_ms)


def test_a_replay_of_sampled_blocks_gives_the_totals_by_weight(record):
    """Blocks beyond the recorder's memory limit are unsampled; each sampled block has its
    weight."""
    recording = record(PROGRAMS / "resident", 1000, 64, 1_500_000, options=["--events", "--max-memory=64MiB"],
                       is_compared=False)
    shown = subprocess.run([CAIRN, "dump", "--events", "--json", recording.path], env=environment(),
                           capture_output=True, check=True, text=True)
    replay = Replay([json.loads(line) for line in shown.stdout.splitlines()])
    assert "all figures are estimates" in shown.stderr and "as many times as its weight" in shown.stderr
    assert counters(recording.report, "note")["unkept_blocks"] > 10_000
    wanted = {key: recording.totals[key] for key in (
        "allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "temporary_bytes",
        "live_blocks", "live_bytes")}
    assert {key: replay.totals[key] for key in wanted} == wanted
    error_bytes = recording.report["run"]["sampling"]["peak_standard_error_bytes"]
    assert abs(recording.totals["live_blocks"] - 1_500_000) * 64 <= 5 * error_bytes


def test_a_large_program_replays_too(record):
    recording = record("/usr/bin/python3", "-c",
                       "import json; json.loads(json.dumps([[i] for i in range(9999)]))",
                       options=["--events"], env={"PYTHONMALLOC": "malloc"})
    events = assert_replays(recording)
    assert len(events) > 65536, "more than one chunk"


def test_what_is_temporary_follows_from_the_events_of_one_thread(record):
    """By definition: the thread's next event is the free of its latest allocation."""
    recording = record(PROGRAMS / "temporary", options=["--events"])
    order = [(event["kind"], event["address"]) for event in events_of(recording.path)
             if event["kind"] in ("allocation", "free")]
    pairs = sum(first == ("allocation", second[1]) and second[0] == "free"
                for first, second in zip(order, order[1:]))
    assert pairs == recording.totals["temporary"] == expected_totals("temporary")["temporary"]


def test_the_independent_reader_finds_the_same_events(record):
    recording = record(PROGRAMS / "realloc_forms", options=["--events"])
    run = subprocess.run([sys.executable, ROOT / "tools" / "mini_reader.py", recording.path],
                         capture_output=True, check=True)
    mine = json.loads(run.stdout)["events"]
    events = events_of(recording.path)
    assert len(mine) == len(events) > 0
    for a, b in zip(mine, events):
        assert all(a[key] == b[key] for key in ("time_ms", "address", "size_bytes", "process"))


def test_the_log_of_a_run_that_was_killed_can_be_read(scratch):
    with Conversation(scratch / "e.cairn", ["--events"]) as c:
        c.do("a 1000 10")
        log = scratch / "e.cairn.events"
        command = [CAIRN, "dump", "--events", log]
        wait_until(lambda: subprocess.run(command, env=environment(), capture_output=True,
                                          check=False).stdout.count(b"\n") > 1000, "the events")
        c.process.send_signal(signal.SIGKILL)
        c.process.wait(60)
    events = events_of(log)
    assert sum(e["kind"] == "allocation" and e["size_bytes"] == 10 for e in events) == 1000
    for command in (["report"], ["verify"], ["analyze", "--no-browser"], ["diff", log],
                    ["export", "--to", "json"]):
        run = subprocess.run([CAIRN, *command, log], env=environment(), capture_output=True,
                             check=False, text=True, timeout=60)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1), run
        assert "is the event log" in run.stderr and "'cairn dump --events'" in run.stderr
    data = bytearray(log.read_bytes())
    data[-20] ^= 1  # within the last chunk
    log.write_bytes(data)
    run = subprocess.run([CAIRN, "dump", "--events", log], env=environment(), capture_output=True,
                         check=False, text=True)
    assert run.returncode == 2 and run.stderr.startswith("cairn: ")


@pytest.fixture(params=[48, 140])
def tiny_disk(scratch, request):
    """(folder, function to start a process there); files are limited to 48 or 140 KiB."""
    folder = scratch / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", folder],
                           capture_output=True, check=False)
    if mount.returncode == 0:
        yield folder, None
        subprocess.run(["umount", "-l", folder], check=True)
    else:
        limit = request.param << 10
        yield folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def test_on_a_full_disk_the_log_gives_way_to_the_recording(tiny_disk):
    """One disk is too small for the log, the other for the log and the snapshot after it."""
    folder, limit = tiny_disk
    path = folder / "f.cairn"
    chosen = random.Random(1)
    lines = "".join(f"a {chosen.randrange(1, 9)} {chosen.randrange(1, 5000)}\n"
                    f"f {chosen.randrange(1, 5)}\n" for _ in range(6000))
    run = subprocess.run([CAIRN, "record", "-q", "--events", "-o", path, "--",
                          PROGRAMS / "obedient"], input=lines.encode() + b"q\n",
                         capture_output=True, env=environment(), check=False, timeout=120,
                         preexec_fn=limit)
    assert run.returncode == 0
    assert b"the event log" in run.stderr
    recording = Recording(path, run)
    recording.assert_whole()
    assert recording.totals["allocations"] > 20000
    assert recording.notes["events_left_out"] > 0
    assert not (folder / "f.cairn.events").exists()
    assert subprocess.run([CAIRN, "verify", path], env=environment(), check=False,
                          capture_output=True).returncode == 0


def test_a_log_that_ends_in_a_full_group_is_reported(scratch):
    """The disk is full when a group of events is written, between two checks of the log."""
    folder = scratch / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder], capture_output=True, check=False)
    limit = None if mount.returncode == 0 else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10,) * 2)
    chosen = random.Random(2)
    lines = "".join(f"a {chosen.randrange(1, 9)} {chosen.randrange(1, 60000)}\nf {chosen.randrange(1, 5)}\n"
                    for _ in range(60000))
    try:
        run = subprocess.run([CAIRN, "record", "-q", "--events", "-o", folder / "f.cairn", "--", PROGRAMS / "obedient"],
                             input=lines.encode() + b"q\n", capture_output=True, env=environment(), check=False,
                             timeout=120, preexec_fn=limit)
        assert run.returncode == 0
        recording = Recording(folder / "f.cairn", run)
        assert recording.notes["events_left_out"] > 0
        assert b"the event log" in run.stderr
    finally:
        if mount.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)


def test_a_recording_without_a_log_says_so(record):
    recording = record(PROGRAMS / "peak")
    run = subprocess.run([CAIRN, "dump", "--events", recording.path], env=environment(),
                         capture_output=True, check=False, text=True)
    assert run.returncode == 2 and "has no event log" in run.stderr and run.stdout == ""
