# SPDX-License-Identifier: MIT
"""pprof both ways, held against Go's own tool, which reads what we write and says what is in the
profiles that we read: those of a Go program, of gperftools as that tool converts them, and our own."""
import collections
import gzip
import os
import random
import re
import subprocess

import pytest
from foreign_files import (FOREIGN_PROGRAM, ROOT, assert_flipped_bits_are_shown_or_refused, cairn, limit_to,
                           only_match, refused, run_tool)
from test_formats import (FILTERS, Pprof, draw, export, fixture_real, fixture_server, report,  # noqa: F401
                          totals)

GO = "/usr/bin/go"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
COSTS = ("allocations", "allocated_bytes", "live_blocks", "live_bytes")


def go(folder, *words):
    """Go's tools, as they are, without a network."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GOCACHE": str(folder / "go-cache"), "GOPROXY": "off",
                   "GO111MODULE": "off", "GOFLAGS": "", "PPROF_TMPDIR": str(folder), "CGO_ENABLED": "0"}
    return run_tool(GO, *words, folder=folder, env=environment)


def pprof(folder, *words):
    return go(folder, "tool", "pprof", "-symbolize=none", *words)


class Raw:
    """What `go tool pprof -raw` says: the types of the values, the samples with their stacks by
    name, innermost first, and the sums."""

    def __init__(self, folder, path):
        text = pprof(folder, "-raw", path).decode()
        head, rest = text.split("Samples:\n")
        samples, rest = rest.split("Locations\n")
        self.period = int(re.search(r"^Period: (\d+)", head, re.M)[1])
        names, at = {}, None
        for line in rest.split("Mappings\n")[0].splitlines():
            place = re.match(r" *(\d+): 0x[0-9a-f]+ (?:M=\d+ )?(.*)$", line)
            at = place[1] if place else at
            named = re.match(r"(.*) \S*:\d+(?::\d+)? s=\d+", place[2] if place else line.strip())
            names.setdefault(at, []).extend([named[1]] if named else [])
        types, *lines = samples.splitlines()
        self.types = [word.split("/")[0] for word in re.sub(r"\[dflt\]", "", types).split()]
        self.stacks = collections.defaultdict(lambda: [0] * len(self.types))
        for line in lines:
            sample = re.match(r"((?: +\d+)+):((?: \d+)*) *$", line)
            if sample:  # else a line of labels
                stack = tuple(name for place in sample[2].split() for name in names[place])
                values = [int(value) for value in sample[1].split()]
                self.stacks[stack] = [sum(pair) for pair in zip(self.stacks[stack], values)]
        self.sums = dict(zip(self.types, map(sum, zip(*self.stacks.values()))))


# --- what we write ------------------------------------------------------------------------------


@pytest.fixture(name="recording", params=["server", "real"])
def fixture_recording(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("moment, blocks, size", [
    ("peak", "peak_blocks", "peak_bytes"), ("end", "live_blocks", "live_bytes")])
def test_go_reads_the_totals(recording, moment, blocks, size, tmp_path):
    path = tmp_path / "profile.pb.gz"
    for filters in FILTERS[:2]:
        path.write_bytes(export(recording, "pprof", "--at", moment, *filters))
        expected = totals(recording, *filters)
        wanted = [expected[key] for key in ("allocations", "allocated_bytes", blocks, size)]
        if expected["allocations"] > 0:
            assert Raw(tmp_path, path).sums == dict(zip(TYPES, wanted))


@pytest.mark.parametrize("index, cost", [("alloc_space", "allocated"), ("alloc_objects", "allocations"),
                                         ("inuse_space", "peak")])
def test_go_finds_the_same_top_functions(recording, index, cost, tmp_path):
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(export(recording, "pprof"))
    text = pprof(tmp_path, "-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={index}",
                 f"-unit={'B' if 'space' in index else 'count'}", path).decode()
    found = {re.sub(r" \(inline\)$", "", name): (int(flat), int(cumulated)) for flat, cumulated, name in
             re.findall(r"^ *(\d+)B? +[\d.e-]+% +[\d.e-]+% +(\d+)B? +[\d.e-]+% +(.*)$", text, re.M)}
    selves, inclusive = collections.Counter(), collections.Counter()
    for line in export(recording, "folded", "--cost", cost, "--show-wrappers").decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        names = stack.split(";")
        selves[names[-1]] += int(value)
        for name in set(names):
            inclusive[name] += int(value)
    expected = {name: (selves[name], inclusive[name]) for name in inclusive if "+0x" not in name}
    assert found.items() >= expected.items() and len(expected) > 2


@pytest.mark.parametrize("options", [["--focus=load"], ["--ignore=load"], ["--show-from=load"], ["--focus=app[.]c"],
                                     ["--focus=main", "--ignore=grow", "--show-from=load|push"]])
def test_focus_ignore_and_show_from_are_those_of_pprof(server, tmp_path, options):
    """pprof applies the same words to the whole profile."""
    def top(name, profile, *words):
        (tmp_path / name).write_bytes(profile)
        text = pprof(tmp_path, "-top", "-nodecount=0", "-nodefraction=0", "-sample_index=alloc_objects", *words,
                     tmp_path / name).decode()
        return set(re.findall(r"^ *(\d+) +[\d.e-]+% +[\d.e-]+% +(\d+) +[\d.e-]+% +(.*)$", text, re.M))
    words = [option[1:].replace("show-from", "show_from") for option in options]
    wanted = top("whole", export(server, "pprof"), *words)
    assert wanted and top("filtered", export(server, "pprof", *options)) == wanted


def test_stacks_and_inlined_functions_arrive(server, tmp_path):
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(export(server, "pprof"))
    assert Raw(tmp_path, path).stacks["operator new(unsigned long)", "push", "load", "main"] == [5, 500, 0, 0]


MOMENTS = """\
!command_line moments
!runtime_ms 400
process moments
thread one
/bin/moments!main(m.c:1);/bin/moments!early(m.c:5) 10 1000 8 800 0 0 9 900 900
@0 10 1000 1 100 0
@2 0 0 7 700 0
cohort 0 2 7 700
cohort 0 - 2 200
/bin/moments!main(m.c:1);/bin/moments!late(m.c:9) 4 40 0 0 0 0 4 40 40
@3 4 40 0 0 0
cohort 3 - 4 40
"""


@pytest.mark.parametrize("moment, objects, sizes", [
    ("50ms", (10, 9), (1000, 900)), ("100ms", (10, 9), (1000, 900)), ("250ms", (10, 2), (1000, 200)),
    ("300ms", (10, 2), (1000, 200)), ("301ms", (14, 6), (1040, 240)), ("1h", (14, 6), (1040, 240))])
def test_at_a_time(moment, objects, sizes, tmp_path):
    """What was allocated until then, and what was live at the end of its time slice."""
    recording = draw(tmp_path / "moments.cairn", MOMENTS)
    sums = Pprof(export(recording, "pprof", "--at", moment)).sums()
    assert (sums["alloc_objects"], sums["inuse_objects"]) == objects
    assert (sums["alloc_space"], sums["inuse_space"]) == sizes


@pytest.mark.parametrize("words, sentence", [
    (["--at", "noon"], "not peak, end or a time"),
    (["--at", "1s", "--time", "..2s"], "cannot be combined with --time")])
def test_no_moment(server, words, sentence):
    done = cairn("export", "--to", "pprof", *words, server)
    assert (done.returncode, done.stdout) == (2, b"") and sentence in done.stderr.decode()


# --- what we read -------------------------------------------------------------------------------


NAMES = ["go", "sampled", "gperftools", "half-named", "plain", "own"]


@pytest.fixture(scope="module", name="files")
def fixture_files(tmp_path_factory):
    """name -> a profile made by real tools"""
    folder = tmp_path_factory.mktemp("pprof")
    go(folder, "build", "-o", folder / "heap", ROOT / "tests" / "programs" / "import" / "heap.go")
    run_tool(folder / "heap", folder / "go", 1, folder=folder)
    run_tool(folder / "heap", folder / "sampled", 512 << 10, folder=folder)
    run_tool(FOREIGN_PROGRAM, folder=folder, env={
        **os.environ, "LD_PRELOAD": f"{LIBRARIES}/libtcmalloc.so.4", "HEAPPROFILE": f"{folder}/gperftools"})
    text = only_match(folder, "gperftools*.heap")
    pprof(folder, "-proto", f"-output={folder / 'gperftools'}", FOREIGN_PROGRAM, text)
    # Go's tool reads the lines of C++ but not its functions, and nothing of stripped libraries.
    go(folder, "tool", "pprof", "-symbolize=local", "-proto", f"-output={folder / 'half-named'}", FOREIGN_PROGRAM, text)
    (folder / "plain").write_bytes(gzip.decompress((folder / "go").read_bytes()))
    done = cairn("record", "-o", folder / "own.cairn", FOREIGN_PROGRAM)
    assert done.returncode == 0, done.stderr
    (folder / "own").write_bytes(export(folder / "own.cairn", "pprof", "--at", "end"))
    return {name: folder / name for name in NAMES}


def stacks_of(path, cost):
    """{names, innermost first: cost}, of stacks that have any"""
    found = collections.Counter()
    for line in export(path, "folded", "--cost", cost, "--show-wrappers").decode().splitlines():
        stack, value = line.rsplit(" ", 1)
        found[tuple(reversed(stack.split(";")))] += int(value)
    return found


def named(stack):
    """Its frames with a name of their own: Go's tool knows no others."""
    return tuple(frame for frame in stack if "+0x" not in frame)


@pytest.mark.parametrize("name", NAMES)
def test_totals_are_what_go_says(files, name, tmp_path):
    raw = Raw(tmp_path, files[name])
    found = report(files[name], "--no-builtin-suppressions", "--no-embedded-suppressions")
    assert {key: found["totals"][cost] for key, cost in zip(TYPES, COSTS)} == raw.sums
    assert {"peak_bytes", "temporary", "own_peak_bytes"} <= set(found["run"]["unknown"])
    assert found["run"]["source_format"] == "pprof"
    said = cairn("report", "--all", files[name]).stdout.decode().replace("\n    ", " ")
    assert ("estimates from samples" in said) == (raw.period > 1)


@pytest.mark.parametrize("name", ["go", "sampled", "plain", "own"])
@pytest.mark.parametrize("place, cost", [(1, "allocated"), (3, "leaked")])
def test_stacks_are_what_go_says(files, name, place, cost, tmp_path):
    raw = Raw(tmp_path, files[name])
    expected, found = collections.Counter(), collections.Counter()
    for stack, values in raw.stacks.items():
        if values[place] > 0:
            expected[named(stack)] += values[place]
    for stack, value in stacks_of(files[name], cost).items():
        found[named(stack)] += value
    assert {";".join(stack): value for stack, value in found.items()} == \
        {";".join(stack).replace(";;", ";"): value for stack, value in expected.items()}


def test_go_reads_what_we_make_of_jemalloc_s_text(tmp_path):
    """Which Go's tool does not read itself: 'unrecognized profile format'."""
    options = f"prof:true,prof_final:true,prof_accum:true,lg_prof_sample:0,prof_prefix:{tmp_path}/jemalloc"
    run_tool(FOREIGN_PROGRAM, folder=tmp_path, env={
        **os.environ, "LD_PRELOAD": f"{LIBRARIES}/libjemalloc.so.2", "MALLOC_CONF": options})
    text = only_match(tmp_path, "jemalloc*.heap")
    sums = re.search(r"t\*: (\d+): (\d+) \[(\d+): (\d+)\]", text.read_text())
    path = tmp_path / "profile.pb.gz"
    path.write_bytes(export(text, "pprof"))
    raw = Raw(tmp_path, path)
    assert [raw.sums[name] for name in TYPES] == [int(sums[place]) for place in (3, 4, 1, 2)]
    assert any("keep_forever(unsigned long)" in stack for stack in raw.stacks)


def test_a_go_program_s_functions(files):
    expected = {"main.keep", "main.deep", "main.main", "runtime.main"}
    assert expected <= {name for stack in stacks_of(files["go"], "leaked") for name in stack}
    assert any("main.churn" in stack for stack in stacks_of(files["go"], "allocated"))


@pytest.mark.parametrize("name", ["gperftools", "half-named"])
def test_names_are_looked_up_where_the_profile_has_none(files, name):
    names = {frame for stack in stacks_of(files[name], "allocated") for frame in stack}
    assert {"main", "churn(int)", "keep_forever(unsigned long)"} <= names


def test_our_own_come_back(files):
    own, back = files["own"].with_suffix(".cairn"), files["own"]
    words = ("--no-builtin-suppressions", "--no-embedded-suppressions")
    before, after = totals(own, *words), totals(back, *words)
    assert {cost: after[cost] for cost in COSTS} == {cost: before[cost] for cost in COSTS}
    assert after["threads"] == before["threads"] and after["runtime_ms"] == before["runtime_ms"]
    for cost in ("allocated", "leaked"):
        assert stacks_of(back, cost) == stacks_of(own, cost)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_imported_is_sound(files, name):
    done = cairn("verify", files[name])
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"sound: a file of")


# --- damage -------------------------------------------------------------------------------------


def test_cut_files_are_refused(files, tmp_path):
    """One that is not packed and happens to be cut between two texts that nothing needs is whole."""
    whole, packed = files["plain"].read_bytes(), files["go"].read_bytes()
    path = tmp_path / "cut"
    for place in random.Random(3).sample(range(1, len(whole)), 25):
        path.write_bytes(packed[:place % len(packed)])
        assert refused(path) is not None
        path.write_bytes(whole[:place])
        assert refused(path) is not None or report(path)["totals"] == report(files["plain"])["totals"]


def test_flipped_bits_are_shown_or_refused_with_their_place(files, tmp_path):
    assert_flipped_bits_are_shown_or_refused(files["plain"].read_bytes(), tmp_path / "flipped", seed=4, rounds=60)


def field(number, content):
    """A field of a message: bytes, or a number below 128."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    head, size = bytes([number << 3 | 2]), len(content)
    while size >= 0x80:
        head, size = head + bytes([size & 0x7f | 0x80]), size >> 7
    return head + bytes([size]) + content


def profile(*types, samples=()):
    """A small profile by the format's description."""
    texts = ["", *types, "count"]
    content = b"".join(field(1, field(1, 1 + place) + field(2, len(texts) - 1)) for place in range(len(types)))
    return content + b"".join(samples) + b"".join(field(6, text.encode()) for text in texts)


@pytest.mark.parametrize("content, words", [
    (profile("cpu", "samples"), "a profile of cpu, not of the heap"),
    (profile("space", samples=[field(2, field(2, b"\xff" * 9 + b"\x01"))]), "below 0"),
    (profile("space", samples=[field(2, field(2, b"\1\2"))]), "different number of values"),
    (profile("space", samples=[field(2, field(1, b"\7") + field(2, b"\1"))]), "location that is not in the file"),
    (profile("space", samples=[field(4, field(1, 1) + field(4, field(1, 9)))]), "function that is not in the file"),
    (profile("space", samples=[field(5, field(1, 1) + field(2, 99))]), "text that is not in the file"),
    (profile("alloc_objects", "inuse_space", samples=[field(2, field(2, b"\1\2"))] * 3)[:-3], "truncated"),
])
def test_what_makes_no_sense_is_refused(content, words, tmp_path):
    path = tmp_path / "wrong"
    path.write_bytes(content)
    assert words in (refused(path) or "")


def test_what_a_profile_does_not_say_is_unknown(tmp_path):
    """Only bytes in use, as some writers have it."""
    path = tmp_path / "space"
    path.write_bytes(profile("space", samples=[field(2, field(2, b"\7"))]))
    found = report(path)
    assert found["totals"]["live_bytes"] == 7
    assert {"allocations", "allocated_bytes", "live_blocks", "peak_bytes"} <= set(found["run"]["unknown"])


@pytest.mark.parametrize("part", [
    field(2, field(1, b"\1" * 100) + field(2, b"\1")), field(6, b""), field(5, b""), field(4, b""), field(3, b"")])
def test_a_bomb_does_not_get_the_memory(part, tmp_path):
    """A file of less than a megabyte that unpacks to 200."""
    path = tmp_path / "bomb"
    content = profile("space") + field(4, field(1, 1)) + part * ((200 << 20) // len(part))
    path.write_bytes(subprocess.run(["gzip", "-1"], input=content, capture_output=True, check=True,
                                    timeout=60).stdout)
    done = cairn("report", "--all", path, preexec_fn=limit_to(2 << 30))
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"not enough memory" not in done.stderr
