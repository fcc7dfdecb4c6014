# SPDX-License-Identifier: MIT
"""What `cairn export` writes, as its readers see it.

Three recordings: a drawn one with everything in it, one whose names are attacks on every format's
syntax, and one of a real program. The totals of every export must be those of `cairn report --json`
on the same file with the same filter. Readers are the real ones where there are any (ms_print,
callgrind_annotate), elsewhere decoders written here from the formats' own descriptions.

CAIRN_BUILD names the build directory; CAIRN_BIN another executable than the one in it.
"""
import csv
import gzip
import json
import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
CAIRN = pathlib.Path(os.environ.get("CAIRN_BIN", BUILD / "bin" / "cairn")).resolve()
DRAW = BUILD / "tests" / "cli" / "draw_recording"
# Tables in CSV and SQLite name two costs otherwise than JSON does.

SERVER = """\
!program /usr/bin/server
!command_line server --threads 2
!peak_time_ms 150
!runtime_ms 400
!start_unix_ms 1790000000000
process server
thread main
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 10000 100000000 4000 40000000 2000 20000 6000 60000000 60000000
@0 6000 60000000 0 0 2000
@3 4000 40000000 4000 40000000 0
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:10)=>push(/src/vec.h:7)=>operator new(unsigned long)(new.h:1) 5 500 5 500 5 500 0 0 100
@1 5 500 5 500 5
/opt/bin/server!main(/src/app.c:1) 2 9 0 0 0 0 1 4 9
@0 2 9 0 0 0
thread worker-1
/opt/bin/server!start;/opt/bin/server!work(app.c:20);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 3 30 3 30 0 0 2 20 30
@1 3 30 3 30 0
process helper
thread main
/opt/bin/helper!spin(l.c:1);/opt/bin/helper!spin(l.c:1) 8 64 4 32 0 0 4 32 64
@2 8 64 4 32 0
"""

# Quotes, comment marks, other formats' keywords, control characters and bytes that are no UTF-8.
# The bytes 02 and 03 become a semicolon and a line feed.
HOSTILE = (b"!command_line server \"quoted\" # not a comment\n"
           b"process server\nthread main\n"
           b"/bin/a\"b!main(/src/x\\\"y.c:3);/bin/a\"b!lam\"bda#1 {{{} fn=(1) cfn=evil\x01\x1b[31m\x02 9\x03main 5(f.c\x03:2);"
           b"/bin/\xff\xfe!caf\xc3\xa9\xc3(\xc3x.c:9);"
           b"/bin/a\"b!n9: 12 0x0: x, y\t%s %d(a,b.c:5) "
           b"7 700 1 100 0 0 6 600 700\n@0 7 700 1 100 0\n")


def run(*arguments, **settings):
    return subprocess.run([CAIRN, *map(str, arguments)], capture_output=True, check=False,
                          timeout=60, stdin=subprocess.DEVNULL, **settings)


FINDS_NOTHING = re.compile(rb"(cairn: (no .* of the recording .*|nothing passes the filter.*)\n)*")


def export(path, form, *arguments):
    """What is exported; stderr holds at most that the filter finds nothing."""
    done = run("export", path, "--to", form, *arguments)
    assert done.returncode == 0 and FINDS_NOTHING.fullmatch(done.stderr), done.stderr
    return done.stdout


def report(path, *arguments):
    """Leaks and all, as an export has them."""
    done = run("report", "--json", "--limit=0", "--no-builtin-suppressions", *arguments, path)
    assert done.returncode in (0, 1), done.stderr  # 1: nothing matches the filter
    return json.loads(done.stdout)


def totals(path, *arguments):
    return report(path, *arguments)["totals"]


def draw(path, drawing):
    data = drawing if isinstance(drawing, bytes) else drawing.encode()
    subprocess.run([DRAW, path], input=data, check=True, timeout=60)
    return path


@pytest.fixture(scope="module", name="server")
def fixture_server(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("drawn") / "server.cairn", SERVER)


@pytest.fixture(scope="module", name="hostile")
def fixture_hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "hostile.cairn"
    return draw(path, HOSTILE)


@pytest.fixture(scope="module", name="real")
def fixture_real(tmp_path_factory):
    """A program of tests/programs, recorded, with a breakdown of its RSS: on a busy machine it may end without one."""
    folder = tmp_path_factory.mktemp("real")
    path = folder / "real.cairn"
    program = BUILD / "programs" / "operators"
    for _ in range(20):
        done = subprocess.run([CAIRN, "record", "-o", path, program], capture_output=True, check=False,
                              timeout=120, stdin=subprocess.DEVNULL, cwd=folder)
        assert done.returncode == 0, done.stderr
        dumped = subprocess.run([CAIRN, "dump", "-t", "parts", path], capture_output=True, check=True, timeout=120)
        if dumped.stdout.count(b"\n") > 1:
            break
    return path


@pytest.fixture(name="recording", params=["server", "hostile", "real"])
def fixture_recording(request):
    return request.getfixturevalue(request.param)


FILTERS = ([], ["--filter-function", "load"], ["--thread", "main"])


@pytest.mark.parametrize("cost, key", [
    (None, "peak_bytes"), ("peak", "peak_bytes"), ("allocations", "allocations"),
    ("allocated", "allocated_bytes"), ("leaked", "live_bytes"), ("temporary", "temporary"),
    ("frees", "frees"), ("leaked-blocks", "live_blocks")])
def test_folded_adds_up(recording, cost, key):
    for filters in FILTERS:
        words = [] if cost is None else ["--cost", cost]
        for frames in ([], ["--show-wrappers"]):
            lines = export(recording, "folded", *words, *filters, *frames).decode("utf-8").split("\n")
            assert lines.pop() == ""
            # As flamegraph.pl takes a line apart.
            parsed = [re.fullmatch(r"(.+)\s+?(\d+(?:\.\d*)?)", line) for line in lines]
            assert all(parsed), lines
            assert sum(int(match[2]) for match in parsed) == totals(recording, *filters)[key]


def test_folded_stacks(server):
    lines = export(server, "folded", "--cost", "allocations").decode().splitlines()
    assert sorted(lines) == ["main 2", "main;load 10000", "main;load;push 5", "spin;spin 8", "start;work;load 3"]
    lines = export(server, "folded", "--cost", "allocations", "--show-wrappers").decode().splitlines()
    assert sorted(lines) == [
        "main 2",
        "main;load;push;operator new(unsigned long) 5",
        "main;load;strdup 10000",
        "spin;spin 8",
        "start;work;load;strdup 3",
    ]


def test_folded_hostile(hostile):
    lines = export(hostile, "folded").decode("utf-8").splitlines()
    assert lines == ["main;lam\"bda#1 {{{} fn=(1) cfn=evil  [31m: 9 main 5;caf\u00e9\ufffd;"
                     "n9: 12 0x0: x, y %s %d 600"]


def formats():
    """The names that --list gives."""
    done = run("export", "--list")
    assert (done.returncode, done.stderr) == (0, b"")
    return [line.split()[0] for line in done.stdout.decode().splitlines()]


# --- the command -------------------------------------------------------------------------------


def test_every_format_is_documented():
    text = (ROOT / "docs" / "user" / "export.md").read_text().split("## Options")[0]
    assert formats() == re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)


def test_output_file_is_what_stdout_gets(tmp_path):
    """Of a recording that has something for each of them."""
    reported = draw(tmp_path / "reported.cairn", SERVER + "event main;[event sent]![event sent] 1 5\n")
    for form in formats():
        path = tmp_path / f"out.{form}.gz"  # heaptrack's must be called so
        path.write_bytes(b"what was there")
        done = run("export", reported, "--to", form, "-o", path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert path.read_bytes() == export(reported, form) == export(reported, form, "-o", "-")
    assert len(list(tmp_path.iterdir())) == len(formats()) + 1


@pytest.mark.parametrize("words, sentence", [
    ([], "no FILE given"),
    (["a", "b", "--to", "folded"], "only one FILE"),
    (["FILE"], "--to FORMAT is required"),
    (["FILE", "--to", "tea"], "unknown format 'tea'"),
    (["FILE", "--to", "folded", "--cost", "love"], "--cost"),
    (["FILE", "--to", "massif", "--cost", "peak"], "--cost"),
    (["FILE", "--to", "folded", "--at", "end"], "--at"),
    (["FILE", "--to", "pprof", "--show-wrappers"], "--show-wrappers: pprof always has every frame"),
    (["FILE", "--html", "--show-wrappers"], "--show-wrappers: html always has every frame"),
    (["FILE", "--to", "folded", "--filter-function", "("], "--filter-function"),
    (["FILE", "--to", "folded", "-o", "FILE"], "is the recording itself"),
    (["FILE", "--to", "folded", "-o", "/nowhere/at/all"], "/nowhere/at/all"),
    (["/nowhere.cairn", "--to", "folded"], "/nowhere.cairn"),
])
def test_wrong_words(server, words, sentence):
    before = server.read_bytes()
    done = run("export", *[server if word == "FILE" else word for word in words])
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"cairn: ") and sentence in done.stderr.decode()
    assert server.read_bytes() == before


def test_garbage_writes_nothing(tmp_path):
    garbage = tmp_path / "garbage.cairn"
    garbage.write_bytes(bytes(range(256)) * 64)
    for form in formats():
        done = run("export", garbage, "--to", form, "-o", tmp_path / "out.gz")
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.count(b"\n") == 1, done.stderr
    assert list(tmp_path.iterdir()) == [garbage]


def test_a_full_disk_is_a_sentence(server):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([CAIRN, "export", server, "--to", "folded"], stdout=full,
                              stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith(b"cairn: ")


@pytest.mark.parametrize("form", ["json", pytest.param("pprof", marks=pytest.mark.nightly), "sqlite",
                                  pytest.param("heaptrack", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("bytes_most, action", [(0, signal.SIG_DFL), (64, signal.SIG_DFL), (64, signal.SIG_IGN)])
def test_an_export_beyond_the_limit_of_files_leaves_what_was_there(server, tmp_path, form, bytes_most, action):
    """The write that would make a file longer fails, with a sentence that gives the reason."""
    path = tmp_path / "out.gz"
    path.write_bytes(b"as it was")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_most, bytes_most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, action)

    done = run("export", server, "--to", form, "-o", path, preexec_fn=limit)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1, done
    assert done.stderr.startswith(b"cairn: cannot write '") and done.stderr.endswith(b": File too large\n"), done.stderr
    assert [(left.name, left.read_bytes()) for left in tmp_path.iterdir()] == [("out.gz", b"as it was")]


def test_binary_goes_to_a_file_when_stdout_is_a_terminal(server, tmp_path):
    main, terminal = os.openpty()
    with os.fdopen(main, "rb"), os.fdopen(terminal, "wb") as stdout:
        done = subprocess.run([CAIRN, "export", server, "--to", "pprof"], stdout=stdout,
                              stderr=subprocess.PIPE, check=False, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "server.pb.gz").read_bytes() == export(server, "pprof")


# --- pprof -------------------------------------------------------------------------------------


def fields(data):
    """The fields of a protobuf message: (number, value), value an int or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        value = varint()
        assert tag & 7 in (0, 2), tag
        if tag & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def message(data, repeated=()):
    """A message as {number: value}; the fields in `repeated` as lists."""
    found = {number: [] for number in repeated}
    for number, value in fields(data):
        if number in repeated:
            found[number].append(value)
        else:
            assert number not in found, number
            found[number] = value
    return found


def packed(data):
    """The numbers of a packed field, by wrapping each varint as field 1."""
    numbers = []
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    assert shift == 0
    return numbers


class Pprof:
    """A profile.proto, its references checked."""

    def __init__(self, compressed):
        top = message(gzip.decompress(compressed), (1, 2, 3, 4, 5, 6))
        self.strings = [text.decode("utf-8") for text in top[6]]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.top = top
        self.types = [self.pair(entry) for entry in top[1]]
        self.mappings = self.by_id(top[3])
        self.functions = self.by_id(top[5])
        self.locations = self.by_id(top[4], (4,))
        self.samples = [message(sample, (3,)) for sample in top[2]]
        for sample in self.samples:
            assert len(packed(sample[2])) == len(self.types)
            assert all(place in self.locations for place in packed(sample.get(1, b"")))
        for location in self.locations.values():
            mapping = location.get(2, 0)
            assert mapping == 0 or (self.mappings[mapping].get(2, 0) <= location[3]
                                    < self.mappings[mapping][3])

    def pair(self, data):
        entry = message(data)
        return self.strings[entry[1]], self.strings[entry[2]]

    @staticmethod
    def by_id(entries, repeated=()):
        parsed = [message(entry, repeated) for entry in entries]
        table = {entry[1]: entry for entry in parsed}
        assert len(table) == len(parsed) and 0 not in table
        return table

    def sums(self):
        columns = zip(*(packed(sample[2]) for sample in self.samples))
        return dict(zip((name for name, _ in self.types), map(sum, columns)))

    def stack(self, sample):
        """[[(function, file, line), ...innermost inlined first], ...leaf first]"""
        stack = []
        for place in packed(sample.get(1, b"")):
            lines = [message(line) for line in self.locations[place][4]]
            stack.append([(self.strings[self.functions[line[1]].get(2, 0)],
                           self.strings[self.functions[line[1]].get(4, 0)], line.get(2, 0))
                          for line in lines])
        return stack

    def labels(self, sample):
        found = {}
        for label in map(message, sample[3]):
            found[self.strings[label[1]]] = self.strings[label[2]] if 2 in label else label.get(3, 0)
        return found


@pytest.mark.parametrize("moment, blocks, size", [
    ("peak", "peak_blocks", "peak_bytes"), ("end", "live_blocks", "live_bytes")])
def test_pprof_adds_up(recording, moment, blocks, size):
    for filters in FILTERS:
        profile = Pprof(export(recording, "pprof", "--at", moment, *filters))
        expected = totals(recording, *filters)
        assert profile.types == [("alloc_objects", "count"), ("alloc_space", "bytes"),
                                 ("inuse_objects", "count"), ("inuse_space", "bytes")]
        assert profile.sums() == ({} if not profile.samples else {
            "alloc_objects": expected["allocations"], "alloc_space": expected["allocated_bytes"],
            "inuse_objects": expected[blocks], "inuse_space": expected[size]})
        assert bool(profile.samples) == (expected["allocations"] > 0)


def test_pprof_fields(server):
    profile = Pprof(export(server, "pprof"))
    assert profile.pair(profile.top[11]) == ("space", "bytes")
    assert (profile.top[9], profile.top[10], profile.top[12]) == (1790000000000000000, 400000000, 1)
    assert profile.strings[profile.top[14]] == "inuse_space"
    assert profile.strings[profile.top[13]] == "server --threads 2"
    by_stack = {json.dumps(profile.stack(sample)): packed(sample[2]) for sample in profile.samples}
    inlined = [[["operator new(unsigned long)", "new.h", 1], ["push", "/src/vec.h", 7],
                ["load", "/src/app.c", 10]], [["main", "/src/app.c", 1]]]
    assert by_stack[json.dumps(inlined)] == [5, 500, 0, 0]
    assert {profile.labels(sample)["thread"] for sample in profile.samples} == {"main", "worker-1"}


def test_pprof_names_modules(real):
    profile = Pprof(export(real, "pprof"))
    modules = {module["path"]: module["build_id"] for module in report(real)["modules"]}
    written = {profile.strings[entry.get(5, 0)]: profile.strings[entry.get(6, 0)]
               for entry in profile.mappings.values()}
    assert written.items() <= {**modules, "": ""}.items() and any(written.values())
    first = message(profile.top[3][0])
    assert profile.strings[first[5]].endswith("/operators")


# --- speedscope --------------------------------------------------------------------------------


def check_speedscope(document):
    """The fields that speedscope's file-format-schema.json demands of sampled profiles."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    for frame in frames:
        assert isinstance(frame["name"], str) and frame["name"] != ""
        assert set(frame) <= {"name", "file", "line", "col"}
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples",
                                "weights"}
        assert profile["type"] == "sampled" and profile["unit"] in ("bytes", "none")
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        assert all(0 <= place < len(frames) for sample in profile["samples"] for place in sample)


def test_speedscope_adds_up(recording):
    keys = ["peak_bytes", "allocated_bytes", "allocations", "temporary", "live_bytes"]
    for filters in FILTERS:
        document = json.loads(export(recording, "speedscope", *filters))
        check_speedscope(document)
        expected = totals(recording, *filters)
        assert [profile["endValue"] for profile in document["profiles"]] == \
            [expected[key] for key in keys]
        single = json.loads(export(recording, "speedscope", "--cost", "frees", *filters))
        assert [profile["endValue"] for profile in single["profiles"]] == [expected["frees"]]


def test_speedscope_stacks(server):
    document = json.loads(export(server, "speedscope", "--cost", "temporary", "--show-wrappers"))
    frames = document["shared"]["frames"]
    profile, = document["profiles"]
    stacks = {";".join(frames[place]["name"] for place in sample): weight
              for sample, weight in zip(profile["samples"], profile["weights"])}
    assert stacks == {"main;load;strdup": 2000, "main;load;push;operator new(unsigned long)": 5}
    assert {"name": "push", "file": "/src/vec.h", "line": 7} in frames


# --- massif ------------------------------------------------------------------------------------


def ms_print(tmp_path, data):
    """What ms_print says of it."""
    path = tmp_path / "massif.out"
    path.write_bytes(data)
    done = subprocess.run(["/usr/bin/ms_print", "--threshold=0", path], capture_output=True,
                          check=False, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout.decode("utf-8")


def massif_snapshots(text):
    """[(number, time, total bytes)] of ms_print's tables."""
    rows = re.findall(r"^ *(\d+) +([\d,]+) +([\d,]+) +([\d,]+) +0 +0$", text, re.MULTILINE)
    return [tuple(int(cell.replace(",", "")) for cell in row[:3]) for row in rows]


def test_massif_adds_up(recording, tmp_path):
    for filters in FILTERS:
        text = ms_print(tmp_path, export(recording, "massif", *filters))
        expected = totals(recording, *filters)
        snapshots = massif_snapshots(text)
        assert [number for number, _, _ in snapshots] == list(range(len(snapshots)))
        assert [time for _, time, _ in snapshots] == sorted(time for _, time, _ in snapshots)
        peak = int(re.search(r"(\d+) \(peak\)", text)[1])
        assert snapshots[peak][1:] == (expected["peak_time_ms"], expected["peak_bytes"])
        assert snapshots[-1][2] == expected["live_bytes"]
        roots = re.findall(r"^\d+\.\d\d% \(([\d,]+)B\) \(heap allocation functions\)", text,
                           re.MULTILINE)
        assert [int(root.replace(",", "")) for root in roots] == \
            [expected["peak_bytes"], expected["live_bytes"]]


def test_massif_tree(server):
    text = export(server, "massif", "--show-wrappers").decode()
    assert "desc: recorded by cairn\ncmd: server --threads 2\ntime_unit: ms\n" in text
    peak = text.split("heap_tree=peak\n")[1].split("#-----------")[0]
    offset = r"0x[0-9A-F]+"
    assert re.match(
        r"n2: 60000056 \(heap allocation functions\)\n"
        rf" n1: 60000020 {offset}: strdup \(in /lib/libc.so.6\)\n"
        rf"  n2: 60000020 {offset}: load \(/src/app.c:10\)\n"
        rf"   n0: 60000000 {offset}: main \(/src/app.c:1\)\n"
        r"   n0: 20 in 1 place, below massif's threshold \(1.00%\)\n"
        r" n0: 36 in 2 places, all below massif's threshold \(1.00%\)\n$", peak), peak
    live = [int(value) for value in re.findall(r"mem_heap_B=(\d+)", text)]
    times = [int(value) for value in re.findall(r"^time=(\d+)", text, re.MULTILINE)]
    assert list(zip(times, live)) == [(0, 0), (100, 60000009), (150, 60000056), (200, 60000009),
                                      (300, 60000041), (400, 60000041)]


# --- dhat --------------------------------------------------------------------------------------


def check_dhat(document):
    """What dh_view.js demands of a file and of its program points."""
    assert (document["dhatFileVersion"], document["mode"], document["verb"]) == \
        (2, "heap", "Allocated")
    assert document["bklt"] is True and document["bkacc"] is False
    assert (document["tu"], document["Mtu"]) == ("\u00b5s", "s")
    assert 0 <= document["tg"] <= document["te"] and isinstance(document["pid"], int)
    assert isinstance(document["cmd"], str) and document["tuth"] > 0
    assert document["ftbl"][0] == "[root]" and len(set(document["ftbl"])) <= len(document["ftbl"])
    for point in document["pps"]:
        assert set(point) == {"tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk", "fs"}
        assert all(isinstance(point[key], int) for key in point if key != "fs")
        assert all(0 < frame < len(document["ftbl"]) for frame in point["fs"])


def test_dhat_adds_up(recording):
    for filters in FILTERS:
        document = json.loads(export(recording, "dhat", *filters))
        check_dhat(document)
        expected = totals(recording, *filters)
        sums = {key: sum(point[key] for point in document["pps"])
                for key in ("tb", "tbk", "gb", "gbk", "eb", "ebk")}
        assert sums == {"tb": expected["allocated_bytes"], "tbk": expected["allocations"],
                        "gb": expected["peak_bytes"], "gbk": expected["peak_blocks"],
                        "eb": expected["live_bytes"], "ebk": expected["live_blocks"]}
        assert document["tg"] == expected["peak_time_ms"] * 1000
        assert document["te"] >= expected["runtime_ms"] * 1000


def test_dhat_points(tmp_path):
    path = draw(tmp_path / "lives.cairn", """\
!command_line lives 1
!peak_time_ms 20
!runtime_ms 300
process lives
thread one
/bin/lives!main(m.c:1);/bin/lives!keep(m.c:5) 4 400 3 300 0 0 2 200 250
life 3 1 100
life 10 2 200
thread two
/bin/lives!main(m.c:1);/bin/lives!keep(m.c:5) 1 10 1 10 0 0 0 0 10
life 1 1 10
""")
    document = json.loads(export(path, "dhat"))
    check_dhat(document)
    point, = document["pps"]
    # Buckets 1 and 3 hold 1 ms and 3 ms; bucket 10 holds 12 and 13 ms.
    assert (point["mb"], point["mbk"]) == (260, 2)
    assert point["tl"] == (1 + 3 + 2 * 13) * 1000
    places = [document["ftbl"][frame] for frame in point["fs"]]
    assert [place.split(": ", 1)[1] for place in places] == ["keep (m.c:5)", "main (m.c:1)"]


# --- callgrind ---------------------------------------------------------------------------------

CALLGRIND_EVENTS = {"PeakBytes": "peak_bytes", "PeakBlocks": "peak_blocks",
                    "AllocatedBytes": "allocated_bytes", "Allocations": "allocations",
                    "Temporary": "temporary", "LeakedBytes": "live_bytes",
                    "LeakedBlocks": "live_blocks"}


def callgrind_annotate(tmp_path, data, *options):
    """{function line: [a number for each event]} and the totals, as callgrind_annotate tells them."""
    path = tmp_path / "callgrind.out"
    path.write_bytes(data)
    done = subprocess.run(["/usr/bin/callgrind_annotate", "--auto=no", "--threshold=100",
                           "--show-percs=no", *options, path], capture_output=True, check=False,
                          timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    rows = {}
    for line in done.stdout.decode("utf-8").splitlines():
        cells = re.match(r"^ *((?:(?:[\d,]+|\.) +){7})(.+)$", line)
        if cells:
            rows[cells[2].strip()] = [0 if cell == "." else int(cell.replace(",", ""))
                                      for cell in cells[1].split()]
    return rows.pop("PROGRAM TOTALS"), rows


def test_callgrind_adds_up(recording, tmp_path):
    for filters in FILTERS:
        data = export(recording, "callgrind", *filters)
        expected = totals(recording, *filters)
        wanted = [expected[key] for key in CALLGRIND_EVENTS.values()]
        if expected["allocations"] == 0:
            assert f"summary: {' '.join(map(str, wanted))}\n" in data.decode()
            continue
        summed, rows = callgrind_annotate(tmp_path, data)
        assert summed == wanted
        assert [sum(column) for column in zip(*rows.values())] == wanted


def test_callgrind_calls(server, tmp_path):
    data = export(server, "callgrind", "--show-wrappers")
    allocated = list(CALLGRIND_EVENTS).index("AllocatedBytes")

    def by_function(*options):
        _, rows = callgrind_annotate(tmp_path, data, *options)
        return {re.sub(r" \[.*", "", name).split(":", 1)[1]: row[allocated]
                for name, row in rows.items() if row[allocated] > 0}

    assert by_function() == {"strdup": 100000030, "main": 9, "spin": 64,
                             "operator new(unsigned long)": 500}
    inclusive = by_function("--inclusive=yes")
    assert inclusive["main"] == 100000000 + 500 + 9
    assert inclusive["load"] == 100000000 + 500 + 30
    assert (inclusive["push"], inclusive["work"], inclusive["spin"]) == (500, 30, 64)


def test_callgrind_hostile(hostile):
    """Every line is of a kind that the format knows, and nothing can be taken for another kind."""
    lines = export(hostile, "callgrind").decode("utf-8").split("\n")
    known = re.compile(r"(# callgrind format|(version|creator|pid|cmd|part|positions|event|events|"
                       r"summary|totals): ?.*|(c?ob|fl|fn|cfi|cfn)=\(\d+\)( .+)?|calls=\d+ 0|"
                       r"\d+( \d+){7}|)")
    assert [line for line in lines if not known.fullmatch(line)] == []
    names = {line.split(" ", 1)[1] for line in lines if re.match(r"c?fn=.* ", line)}
    assert names == {"main", "lam\"bda#1 {{{} fn=(1) cfn=evil  [31m; 9 main 5",
                     "caf\u00e9\ufffd", "n9: 12 0x0: x, y %s %d"}


# --- csv ---------------------------------------------------------------------------------------


def csv_rows(data):
    lines = data.decode("utf-8").split("\r\n")
    assert lines.pop() == "" and not any("\n" in line or "\r" in line for line in lines)
    return list(csv.DictReader(lines, strict=True))


def test_csv_adds_up(recording):
    for filters in FILTERS:
        rows = csv_rows(export(recording, "csv", *filters))
        expected = totals(recording, *filters)
        costs = ["peak_bytes", "peak_blocks", "allocations", "allocated_bytes", "frees",
                 "freed_bytes", "temporary", "temporary_bytes", "live_bytes",
                 "live_blocks"]
        assert {cost: sum(int(row[cost]) for row in rows) for cost in costs} == \
            {cost: expected[cost] for cost in costs}


def test_csv_cells(server, hostile, tmp_path):
    by_stack = {row["stack"]: row for row in csv_rows(export(server, "csv"))}
    row = by_stack["main;load;push;operator new(unsigned long)"]
    assert (row["function"], row["file"], row["line"], row["module"], row["own_peak_bytes"]) == \
        ("operator new(unsigned long)", "new.h", "1", "/opt/bin/server", "100")
    row, = csv_rows(export(hostile, "csv"))
    assert row["function"] == "n9: 12 0x0: x, y %s %d" and row["file"] == "a,b.c"
    assert row["module"] == "/bin/a\"b"
    formula = draw(tmp_path / "formula.cairn", "=cmd|' /C calc'!=1+1(-a.c:1) 1 1\n")
    row, = csv_rows(export(formula, "csv"))
    assert (row["function"][:2], row["file"], row["stack"][:2]) == ("'=", "'-a.c", "'=")


# --- json --------------------------------------------------------------------------------------


def json_stacks(document):
    """{(thread name, stack): costs}, and every reference is followed."""
    nodes, code, rows = document["nodes"], document["code"], document["rows"]
    threads = dict(zip(document["threads"]["thread"], document["threads"]["name"]))
    assert set(document["threads"]["process"]) <= set(document["processes"]["process"])
    assert len(nodes["parent"]) == len(nodes["location"]) == len(nodes["inlined"]) == nodes["count"]
    assert nodes["parent"][0] is None and nodes["location"][0] is None
    assert all(parent < place for place, parent in enumerate(nodes["parent"]) if place > 0)
    found = {}
    for place, at in enumerate(rows["node"]):
        stack = []
        while at != 0:
            location = nodes["location"][at]
            function, file = (code["locations"][key][location] for key in ("function", "file"))
            module = code["functions"]["module"][function]
            path = "" if module is None else code["modules"]["path"][module]
            source = "" if file is None else code["files"]["path"][file]
            stack.insert(0, f"{path}!{code['functions']['name'][function]}({source}:{code['locations']['line'][location]})")
            at = nodes["parent"][at]
        key = threads[rows["thread"][place]], ";".join(stack)
        found[key] = {cost: column[place] for cost, column in rows["costs"].items()}
    return found


def test_json_adds_up(recording):
    for filters in FILTERS:
        document = json.loads(export(recording, "json", *filters))
        expected = totals(recording, *filters)
        assert document["totals"] == expected
        summed = {cost: sum(column) for cost, column in document["rows"]["costs"].items()}
        summed.pop("own_peak_bytes", None)  # has no total
        assert summed == {cost: expected[cost] for cost in summed}
        assert bool(json_stacks(document)) == (expected["allocations"] > 0)
        for key in ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary"):
            assert sum(value or 0 for value in document["points"][key]) == expected[key], key
        if document["points"]["count"]:
            assert document["points"]["live_bytes"][-1] in (expected["live_bytes"], None)


def test_json_rows(server):
    document = json.loads(export(server, "json"))
    assert (document["format"], document["version"]) == ("cairn-profile", 3)
    stacks = json_stacks(document)
    assert len(stacks) == document["rows"]["count"] == 5
    worker = stacks["worker-1", "/opt/bin/server!start(:0);/opt/bin/server!work(app.c:20);"
                    "/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup(:0)"]
    assert (worker["allocations"], worker["freed_bytes"], worker["peak_blocks"]) == (3, 30, 2)
    assert sum(document["nodes"]["inlined"]) == 2
    assert document["processes"]["pid"] == \
        [process["pid"] for process in report(server)["processes"]]


# --- perfetto ----------------------------------------------------------------------------------


def counters(document, name):
    """{pid: [(microseconds, value)]} of a counter, each event as the trace event format has it."""
    found = {}
    for event in document["traceEvents"]:
        assert event["ph"] in ("M", "C", "i") and isinstance(event["pid"], int) and event["ts"] >= 0
        if event["ph"] == "C" and event["name"] == name:
            (value,) = event["args"].values()
            assert isinstance(value, (int, float)) and value >= 0
            found.setdefault(event["pid"], []).append((event["ts"], value))
    assert all(series == sorted(series, key=lambda point: point[0]) for series in found.values())
    return found


def test_perfetto_adds_up(recording):
    for filters in FILTERS:
        document = json.loads(export(recording, "perfetto", *filters))
        expected = totals(recording, *filters)
        width_us = json.loads(export(recording, "json", *filters))["slice_ms"] * 1000
        rates = counters(document, "allocations")
        assert sum(rate * width_us / 1e6 for series in rates.values() for _, rate in series) == \
            pytest.approx(expected["allocations"])
        heap = counters(document, "heap")
        assert expected["allocations"] == 0 or heap
        if report(recording)["totals"]["processes"] == 1:
            assert sum(series[-1][1] for series in heap.values()) == expected["live_bytes"]


def test_perfetto_series(server):
    document = json.loads(export(server, "perfetto"))
    names = {event["pid"]: event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"}
    assert set(names.values()) == {"server", "helper"}
    pids = {name: pid for pid, name in names.items()}
    heap = counters(document, "heap")
    assert heap[pids["server"]] == [(100000, 60000009), (200000, 60000009), (400000, 60000009)]
    assert heap[pids["helper"]] == [(300000, 32)]
    assert counters(document, "allocations")[pids["helper"]] == [(200000, 80), (300000, 0)]


def test_perfetto_ends_each_rate_once(tmp_path):
    path = draw(tmp_path / "rates.cairn", "!runtime_ms 400\nprocess one\nthread main\nmain 4 40\n"
                "@0 1 10 0 0 0\n@1 2 20 0 0 0\n@3 1 10 0 0 0\n")
    (rates,) = counters(json.loads(export(path, "perfetto")), "allocations").values()
    assert rates == [(0, 10), (100000, 20), (200000, 0), (300000, 10), (400000, 0)]


def test_perfetto_has_marks_and_resident_size(tmp_path):
    path = draw(tmp_path / "rss.cairn", "!runtime_ms 200\n!rss 50 0 8192\n!rss 150 0 4096\n" +
                "process one\nthread main\nmain 2 20 2 20\n@0 2 20 0 0 0\n@1 0 0 2 20 0\n")
    document = json.loads(export(path, "perfetto"))
    assert list(counters(document, "resident").values()) == [[(50000, 8192), (150000, 4096)]]
    assert list(counters(document, "heap").values()) == [[(100000, 20), (200000, 0)]]
    document = json.loads(export(path, "perfetto", "--time", "..100ms"))
    assert list(counters(document, "resident").values()) == [[(50000, 8192)]]
    assert list(counters(document, "heap").values()) == [[(100000, 20)]]
