# SPDX-License-Identifier: MIT
"""What cairn makes of heaptrack's files: held against heaptrack_print, and against a replay of the
same lines in Python (foreign_files.replay) where heaptrack_print says too little or is wrong."""
import gzip
import json
import random
import re
import signal
import subprocess

import pytest

from foreign_files import (BUILD, FOREIGN_PROGRAM, as_version, cairn, heaptrack, interpret, limit_to, pack_zstd,
                           printed, refused, replay, run_tool, unpack)

COSTS = ("allocations", "allocated_bytes", "temporary", "peak_bytes", "live_bytes")


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heaptrack")


@pytest.fixture(scope="module", name="recorded")
def fixture_recorded(folder):
    return heaptrack(folder, "made", FOREIGN_PROGRAM)


@pytest.fixture(scope="module", name="raw")
def fixture_raw(folder):
    return heaptrack(folder, "unread", FOREIGN_PROGRAM, raw=True)


@pytest.fixture(scope="module", name="content")
def fixture_content(recorded):
    return unpack(recorded)


@pytest.fixture(scope="module", name="python")
def fixture_python(folder):
    """A real program with some thousand stacks."""
    words = "import json; a = [json.dumps(list(range(n))) for n in range(60)]; del a"
    return heaptrack(folder, "python", "/usr/bin/python3", "-c", words)


@pytest.fixture(scope="module", name="python_content")
def fixture_python_content(python):
    return unpack(python)


def report(path, *options):
    """With one row of each list, unless options ask for more: all rows of a real program are 46 MB of JSON."""
    done = cairn("report", "--json", "--limit=1", "--full-names", "--no-builtin-suppressions",
                 "--no-embedded-suppressions", *options, path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def table(path, name):
    """A table of what was imported: a list of dictionaries of numbers and texts."""
    done = cairn("dump", "--table", name, path)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.decode().rstrip("\n").split("\n")
    return [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]


def stacks_of(path):
    """Costs by the names of a stack, innermost first."""
    frames, symbols, nodes = table(path, "frames"), table(path, "symbols"), table(path, "nodes")

    def names(node):
        while node != "0":
            frame = frames[int(nodes[int(node)]["frame"])]
            first, count = int(frame["symbol_first"]), int(frame["symbol_count"])
            # What is exported without a name has that of a place.
            functions = [symbols[at]["function"] for at in range(first, first + count)]
            yield from ["" if "+0x" in name else name for name in functions] or [""]
            node = nodes[int(node)]["parent"]

    found = {}
    for row in table(path, "rows"):
        mine = found.setdefault(tuple(names(row["node"])), dict.fromkeys(COSTS, 0))
        for cost in COSTS[:4]:
            mine[cost] += int(row[cost])
        mine["live_bytes"] += int(row["allocated_bytes"]) - int(row["freed_bytes"])
    return {names: costs for names, costs in found.items() if costs["allocations"]}


def assert_within(value, bounds, what):
    assert bounds[0] <= value <= bounds[1], (what, value, bounds)


def assert_as_printed(path, content, also=()):
    """The totals are heaptrack_print's, but for the temporary allocations that it miscounts."""
    totals, _, _, miscounted = replay(content)
    mine = report(path)["totals"]
    for file in (path, *also):
        theirs = printed(file)
        for cost in ("allocations", "peak_bytes", "live_bytes", "peak_rss_bytes"):
            assert_within(mine[cost], theirs[cost], cost)
        assert_within(miscounted, theirs["temporary"], "temporary")
    for cost in ("allocations", "temporary", "peak_bytes", "live_bytes"):
        assert mine[cost] == totals[cost], cost


@pytest.mark.parametrize("packing", ["as written", "gz", "plain", "two members", "version 1",
                                     "version 2"])
def test_totals_are_those_of_heaptrack_print(recorded, content, packing, tmp_path):
    half = len(content) // 2
    made = {"as written": recorded.read_bytes, "gz": lambda: gzip.compress(content),
            "plain": lambda: content,
            "two members": lambda: gzip.compress(content[:half]) + gzip.compress(content[half:]),
            "version 1": lambda: pack_zstd(as_version(content, 1)),
            "version 2": lambda: gzip.compress(as_version(content, 2))}
    suffix = {"plain": "txt", "as written": "zst", "version 1": "zst"}.get(packing, "gz")
    path = tmp_path / f"heaptrack.app.1.{suffix}"
    path.write_bytes(made[packing]())
    assert_as_printed(path, content)


def test_a_real_program_agrees(python, python_content):
    assert len(replay(python_content)[1]) > 300  # stacks
    assert_as_printed(python, python_content)


@pytest.mark.parametrize("which", ["recorded", "python"])
def test_every_stack_is_as_the_file_says(which, request):
    path = request.getfixturevalue(which)
    expected = replay(unpack(path))[1]
    found = stacks_of(path)
    assert found.keys() == expected.keys()
    for names, costs in expected.items():
        assert found[names] == costs, names


def test_time_is_the_file_s(recorded, content):
    _, _, times, _ = replay(content)
    slice_ms = int(table(recorded, "meta")[0]["slice_ms"])
    expected = {}
    for now, (allocations, frees) in times.items():
        slot = expected.setdefault(now // slice_ms, [0, 0])
        slot[0] += allocations
        slot[1] += frees
    slices = table(recorded, "slices")
    assert {number: [int(at["allocations"]), int(at["frees"])] for number, at in enumerate(slices)
            if at["allocations"] != "0" or at["frees"] != "0"} == expected
    assert len(expected) >= 3
    assert max(int(at["live_max_bytes"]) for at in slices) == report(recorded)["totals"]["peak_bytes"]


def test_a_long_run_has_wider_slices(content, tmp_path):
    """The same events a thousand times as slow."""
    slow = re.sub(rb"(?m)^c ([0-9a-f]+)$", lambda found: b"c %x" % (int(found[1], 16) * 1000), content)
    path = tmp_path / "slow"
    path.write_bytes(slow)
    slices = table(path, "slices")
    assert 512 <= len(slices) <= 1024
    assert int(table(path, "meta")[0]["slice_ms"]) > 64
    assert_as_printed(path, slow)
    assert cairn("verify", path).returncode == 0


def test_resident_size_is_at_its_time_in_a_long_run(content, tmp_path):
    """Slices merge where a run is long, and what was resident in them merges with them: each sample lies in
    the slice of its time, and the highest of them stays."""
    samples = [(0, 100), (700, 300), (90_000, 200), (1_000_000, 900), (4_000_000, 400)]
    head = content[:content.index(b"\nc ") + 1]
    body = b"".join(b"c %x\nR %x\n" % sample for sample in samples)
    path = tmp_path / "resident"
    path.write_bytes(head + body)
    width = int(table(path, "meta")[0]["slice_ms"])
    page = int(re.search(rb"(?m)^I ([0-9a-f]+)", content)[1], 16)
    kept = [(int(at["time_ms"]), int(at["rss_bytes"]) // page) for at in table(path, "rss_samples")]
    assert width >= 4_000_000 // 1024
    wanted = {}
    for time_ms, pages in samples:
        slot = time_ms // width * width
        wanted[slot] = max(wanted.get(slot, 0), pages)
    assert kept == sorted(wanted.items())
    assert report(path)["totals"]["peak_rss_bytes"] == 900 * page


def test_the_peak_of_the_process_is_the_peak(recorded):
    reported = report(recorded, "--limit=0")
    assert [process["process_peak_bytes"] for process in reported["processes"]] == [reported["totals"]["peak_bytes"]]
    assert reported["totals"]["peak_bytes"] > 0


def test_suppressions_are_read_in_each_version(recorded, content, tmp_path):
    rules = "leak:keep_forever\\x0a# a comment\\x0aleak:no_such_function\\x0a"
    assert table(recorded, "meta")[0]["suppressions"] == rules
    path = tmp_path / "old"
    path.write_bytes(as_version(content, 2))
    assert table(path, "meta")[0]["suppressions"] == rules


def test_an_empty_string_is_empty_in_each_version(content, tmp_path):
    """Without lengths, too, its line has a space and no text. The name of the first function is emptied."""
    lines = content.split(b"\n")
    strings = [place for place, line in enumerate(lines) if line.startswith(b"s ")]
    function = next(int(line.split()[3], 16) for line in lines if line.startswith(b"i ") and len(line.split()) > 3)
    lines[strings[function - 1]] = b"s 0 "
    answers = []
    for version in (2, 3):
        path = tmp_path / f"version {version}"
        path.write_bytes(b"\n".join(lines) if version == 3 else as_version(b"\n".join(lines), 2))
        answers.append(table(path, "strings"))
    assert answers[0] == answers[1]


def test_a_line_feed_in_an_argument_is_the_argument_s(folder):
    """heaptrack writes arguments as they are, so that they can look like lines of the file."""
    path = heaptrack(folder, "lines", FOREIGN_PROGRAM, "0\nI am\n\nno line")
    command = table(path, "meta")[0]["command_line"]
    assert command == f"{FOREIGN_PROGRAM} 0\\x0aI am\\x0a\\x0ano line"
    head, _, body = unpack(path).partition(b"\nI 1000")
    assert report(path)["totals"]["allocations"] == replay(b"I 1000" + body)[0]["allocations"]
    assert b"\nI am\n" in head


def test_an_attached_run_says_so(content, tmp_path):
    path = tmp_path / "attached"
    lines = content.split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], b"A", *lines[3:]]))
    assert "attached to the running program" in cairn("report", "--all", path).stdout.decode()
    assert_as_printed(path, content)


def test_a_killed_run_is_shown(folder):
    path = heaptrack(folder, "killed", FOREIGN_PROGRAM, signal.SIGKILL.value, check=False)
    assert report(path)["totals"]["allocations"] > 0
    assert_as_printed(path, unpack(path))


def test_a_raw_file_is_what_heaptrack_interprets_it_as(raw, tmp_path):
    theirs = tmp_path / "interpreted"
    theirs.write_bytes(interpret(unpack(raw)))
    mine, interpreted = report(raw)["totals"], report(theirs)["totals"]
    assert {cost: mine[cost] for cost in COSTS} == {cost: interpreted[cost] for cost in COSTS}


def test_a_raw_file_gets_its_names(raw):
    sites = report(raw, "--limit=0")["top"]["allocations"]
    functions = {frame["function"] for site in sites for stack in site["stacks"]
                 for frame in stack["frames"]}
    assert {"main", "churn(int)", "inlined_block", "keep_forever(unsigned long)"} <= functions
    depths = [sum(frame["function"].startswith("deep(") for frame in stack["frames"])
              for site in sites for stack in site["stacks"]]
    assert max(depths) == 9


def test_a_raw_file_knows_lifetimes(raw):
    lived = {int(bucket["bucket"]) for bucket in table(raw, "lifetime_buckets")}
    assert 0 in lived and max(lived) > 12  # at once, and after more than 20 ms
    assert table(raw, "cohorts")
    assert not int(table(raw, "meta")[0]["unknown"]) & 1 << 7


@pytest.mark.parametrize("which", ["recorded", "raw", "python"])
def test_what_is_imported_is_sound(which, request):
    done = cairn("verify", request.getfixturevalue(which))
    assert (done.returncode, done.stderr) == (0, b"") and b"sound: a file of heaptrack" in done.stdout


@pytest.mark.parametrize("form", ["folded", "pprof", "speedscope", "massif", "dhat", "callgrind", "csv",
                                  "json"])
def test_it_can_be_exported(recorded, form, tmp_path):
    done = cairn("export", "--to", form, "-o", tmp_path / "out", recorded)
    assert (done.returncode, done.stderr) == (0, b"") and (tmp_path / "out").stat().st_size > 100


def test_dump_says_that_there_are_no_chunks(recorded):
    done = cairn("dump", recorded)
    assert done.returncode == 2 and b"--table" in done.stderr and not done.stdout


def test_the_name_does_not_matter(recorded, tmp_path):
    path = tmp_path / "massif.out.cairn"
    path.write_bytes(recorded.read_bytes())
    assert report(path)["totals"] == report(recorded)["totals"]


# Damage.

@pytest.mark.parametrize("kind", ["plain", "gz", "zst"])
def test_a_cut_file_is_shown_up_to_there(content, python_content, kind, tmp_path):
    content = content if kind == "plain" else python_content  # of several packed blocks
    whole = {"plain": content, "gz": gzip.compress(content), "zst": pack_zstd(content)}[kind]
    path = tmp_path / "cut"
    full = replay(content)[0]
    shown = 0
    for place in sorted(random.Random(7).sample(range(1, len(whole) - 1), 12)):
        path.write_bytes(whole[:place])
        if refused(path) is None:
            shown += 1
            found = report(path)
            assert "ends after line" in found["damage"] or found["totals"]["allocations"] == full["allocations"]
            assert found["totals"]["allocations"] <= full["allocations"]
            assert b"ends after line" in cairn("verify", path).stdout
    assert shown > 6


def test_a_cut_raw_file_is_shown_up_to_there(raw, tmp_path):
    whole = unpack(raw)
    path = tmp_path / "cut"
    for place in random.Random(3).sample(range(100, len(whole) - 1), 15):
        path.write_bytes(whole[:place])
        assert refused(path) is None
        lines = whole[:place].split(b"\n")[:-1]
        assert report(path)["totals"]["allocations"] == sum(line.startswith(b"+ ") for line in lines)


@pytest.mark.parametrize("which", ["recorded", "raw", "python"])
def test_flipped_bits_are_refused_with_their_place_or_shown(which, request, tmp_path):
    path = tmp_path / "flipped"
    chance = random.Random(11)
    given = request.getfixturevalue(which)
    whole = given.read_bytes() if which == "python" else unpack(given)
    sentences = set()
    for _ in range(20):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole) // 2)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        sentences.add(refused(path))
    assert len(sentences) > 3


@pytest.mark.parametrize("pattern, by, words", [
    (rb"(?m)^s [0-9a-f]+ ", b"s ffffffffffffffff ", "string is not as long"),
    (rb"(?m)^a [0-9a-f]+ ", b"a ffffffffffffffff ", "more bytes"),
    (rb"(?m)^t ([0-9a-f]+) [0-9a-f]+$", rb"t \1 ffffffff", "before its parent"),
    (rb"(?m)^t [0-9a-f]+ ", b"t fffffff ", "instruction that is not there"),
    (rb"(?m)^a ([0-9a-f]+) [0-9a-f]+$", rb"a \1 fffffff", "trace that is not there"),
    (rb"(?m)^\+ [0-9a-f]+$", b"+ fffffff", "allocation that is not there"),
    (rb"(?m)^\+ [0-9a-f]+$", b"- 0", "not live"),
    (rb"(?m)^c [0-9a-f]+$", b"c ffffffffffffffff", "time makes no sense"),
    (rb"(?m)^c [0-9a-f]+$", b"c 12345678901234567", "time makes no sense"),
    (rb"(?m)^I .*$", b"I ffffffff ffffffffffff", "memory makes no sense"),
    (rb"(?m)^I .*$", b"I am lost", "command line before this has no end"),
    (rb"(?m)^i [0-9a-f]+ [0-9a-f]+", b"i 1 fffffff", "address or module"),
    (rb"(?m)^X .*$", b"m 1 x 0 0 0", "mixes lines"),
    (rb"(?m)^R [0-9a-f]+$", b"Q 5", "not a line of a heaptrack file"),
])
def test_what_makes_no_sense_is_refused_with_its_line(content, pattern, by, words, tmp_path):
    path = tmp_path / "wrong"
    wrong = re.sub(pattern, by, content, count=1)
    assert wrong != content
    path.write_bytes(wrong)
    sentence = refused(path)
    line = 1 + next(number for number, pair in enumerate(zip(wrong.split(b"\n"), content.split(b"\n")))
                    if pair[0] != pair[1])
    assert words in sentence and int(re.search(r"line (\d+)", sentence)[1]) >= line, sentence


def test_a_later_version_is_refused(content, tmp_path):
    path = tmp_path / "later"
    for version in (b"0", b"4", b"ffff"):
        path.write_bytes(re.sub(rb"^v ([0-9a-f]+) 3", rb"v \1 " + version, content))
        assert "file format" in refused(path)


@pytest.mark.parametrize("line", [b"t 1 1\n", b"a 10 1\n", b"i 1 1 1 1 1\n", b"m 1 x 1000 0 10\n"])
def test_a_bomb_does_not_get_the_memory(content, line, tmp_path):
    """A file of some kilobytes that unpacks to 240 megabytes, all of it for our tables."""
    path = tmp_path / "bomb"
    head = content[:content.index(b"\na ") + 1] if not line.startswith(b"m") else b"v 10400 3\n"
    path.write_bytes(pack_zstd(head + line * ((240 << 20) // len(line))))
    bound = (256 << 20) + 64 * path.stat().st_size + (192 << 20)
    done = cairn("report", "--all", path, preexec_fn=limit_to(bound))
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert re.search(rb"line \d+: up to here the file asks for more than the \d+ MiB", done.stderr), done.stderr


def test_an_endless_line_is_refused(content, tmp_path):
    path = tmp_path / "endless"
    path.write_bytes(gzip.compress(content[:content.index(b"\ns ") + 1] + b"s " + b"x" * (64 << 20), 1))
    assert "longer than" in refused(path)


# Export.

@pytest.fixture(scope="module", name="own")
def fixture_own(folder):
    """The same program, recorded by cairn."""
    path = folder / "own.cairn"
    done = cairn("record", "-o", path, FOREIGN_PROGRAM, cwd=folder)
    assert done.returncode == 0, done.stderr
    return path


def without(ignored, stacks):
    return {stack: {cost: value for cost, value in costs.items() if cost not in ignored}
            for stack, costs in stacks.items()}


def temporary_at_the_peak(path):
    """Temporary blocks of other threads than the one that made the peak, live at that moment: the log of
    a single thread, which the export is, has no place for them (docs/user/export.md)."""
    costs = json.loads(cairn("export", "--to", "json", path).stdout)["rows"]["costs"]
    return sum(max(0, temporary + blocks - allocations) for temporary, blocks, allocations in
               zip(costs["temporary"], costs["peak_blocks"], costs["allocations"]))


@pytest.mark.parametrize("which", ["recorded", "python", "raw", "own"])
def test_what_is_exported_and_imported_is_the_same(which, request, tmp_path):
    given = request.getfixturevalue(which)
    path = tmp_path / "exported.gz"
    done = cairn("export", "--to", "heaptrack", "-o", path, given)
    assert (done.returncode, done.stderr) == (0, b"")
    before, after = report(given)["totals"], report(path)["totals"]
    for cost in (*COSTS, "peak_time_ms"):
        if cost != "temporary":
            assert after[cost] == before[cost], cost
    lost = before["temporary"] - after["temporary"]
    assert 0 <= lost <= temporary_at_the_peak(given)
    if which != "raw":  # whose names are looked up when it is opened, and are in no table
        ignored = ("temporary", "temporary_bytes") if lost > 0 else ()
        assert without(ignored, stacks_of(path)) == without(ignored, stacks_of(given))
    assert_as_printed(path, unpack(path))
    assert cairn("verify", path).returncode == 0


def numbers_begin_in_order(content):
    """Each number of an allocation is one that was there before, or the next: heaptrack_gui crashes on any
    other order."""
    count = 0
    for line in content.split(b"\n"):
        if line.startswith(b"+ "):
            number = int(line[2:], 16)
            if number > count:
                return False
            count = max(count, number + 1)
    return True


def test_the_export_counts_as_heaptrack_does(content, recorded, python, own, tmp_path):
    assert numbers_begin_in_order(content)
    for place, path in enumerate((recorded, python, own)):
        done = cairn("export", "--to", "heaptrack", "-o", tmp_path / f"{place}.gz", path)
        assert (done.returncode, done.stderr) == (0, b"")
        assert numbers_begin_in_order(unpack(tmp_path / f"{place}.gz"))


def test_a_name_that_heaptrack_does_not_open_is_refused(recorded, tmp_path):
    """heaptrack_print takes whatever does not end in .gz or .zst for text."""
    done = cairn("export", "--to", "heaptrack", "-o", tmp_path / "out.heaptrack", recorded)
    assert done.returncode == 2 and done.stderr.count(b"\n") == 1
    assert b"must end in .gz or .zst" in done.stderr and list(tmp_path.iterdir()) == []


def test_zstd_is_written_where_the_name_says_so(recorded, tmp_path):
    """Both packings hold the same, and heaptrack_print opens either."""
    said = []
    for name in ("out.heaptrack.gz", "out.heaptrack.zst"):
        done = cairn("export", "--to", "heaptrack", "-o", tmp_path / name, recorded)
        assert (done.returncode, done.stderr) == (0, b"")
        said.append(subprocess.run(["heaptrack_print", tmp_path / name], capture_output=True, check=True,
                                   timeout=120).stdout.splitlines()[1:])
    assert said[0] == said[1] and any(b"total runtime" in line for line in said[0])
    assert unpack(tmp_path / "out.heaptrack.gz") == unpack(tmp_path / "out.heaptrack.zst")
    assert (tmp_path / "out.heaptrack.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"


# stack, size and moments of each block of a single thread: a number is a block's, "+" or "-" before it
ONE_BLOCK = {1: ("main;one", 100)}
SMALL_RUNS = {
    "nothing": ({}, ""),
    "one that is temporary": (ONE_BLOCK, "+1 -1"),
    "one that leaks": (ONE_BLOCK, "+1"),
    "no temporary": ({1: ("main;a", 100), 2: ("main;b", 50)}, "+1 +2 -1 -2"),
    "one stack, no temporary": ({1: ("main", 8), 2: ("main", 8)}, "+1 +2 -1 -2"),
    "one stack, one temporary": ({1: ("main", 8), 2: ("main", 8)}, "+1 +2 -2 -1"),
    "no leak": ({1: ("main;a", 7), 2: ("main;b", 9), 3: ("main;a", 7)}, "+1 +2 -2 +3 -1 -3"),
    "only leaks": ({1: ("main;a", 7), 2: ("main;b", 9), 3: ("main;a", 20)}, "+1 +2 +3"),
    "of size 0": ({1: ("main;a", 0), 2: ("main;a", 0)}, "+1 +2 -1 -2"),
    "beyond 4 GiB": ({1: ("main;a", 5 << 30), 2: ("main;b", 5 << 30)}, "+1 +2 -1 -2"),
    "one at a time": ({1: ("main;a", 900), 2: ("main;a", 3), 3: ("main;b", 900), 4: ("main;b", 3)},
                      "+1 +2 -1 -2 +3 +4 -3 -4"),
}


def random_run(seed):
    """A run of some hundred blocks of a few stacks and sizes."""
    chance = random.Random(seed)
    blocks, events, live = {}, [], []
    for number in range(1, 200):
        blocks[number] = (f"main;{chance.choice('abcdef')}", chance.choice((1, 8, 8, 24, 100, 5000)))
        events.append(f"+{number}")
        live.append(number)
        while live and chance.random() < 0.45:
            which = live.pop(chance.choice((-1, -1, chance.randrange(len(live)))))
            events.append(f"-{which}")
    return blocks, " ".join(events)


def play(blocks, events):
    """The totals of such a run, and its rows as a drawing has them: (totals, {stack: costs})."""
    rows = {stack: dict.fromkeys(("allocations", "allocated", "frees", "freed", "temporary", "temporary_bytes",
                                  "peak_blocks", "peak_bytes", "own_peak"), 0) for stack, _ in blocks.values()}
    live, peak, at_peak, before = {}, 0, {}, None
    for event in events.split():
        number = int(event[1:])
        stack, size = blocks[number]
        row = rows[stack]
        if event[0] == "+":
            live[number] = size
            row["allocations"] += 1
            row["allocated"] += size
        else:
            del live[number]
            row["frees"] += 1
            row["freed"] += size
            if before == f"+{number}":
                row["temporary"] += 1
                row["temporary_bytes"] += size
        row["own_peak"] = max(row["own_peak"], sum(live[at] for at in live if blocks[at][0] == stack))
        if sum(live.values()) > peak:
            peak, at_peak = sum(live.values()), dict(live)
        before = event
    for number, size in at_peak.items():
        rows[blocks[number][0]]["peak_blocks"] += 1
        rows[blocks[number][0]]["peak_bytes"] += size
    totals = {"allocations": len(blocks), "temporary": sum(row["temporary"] for row in rows.values()),
              "peak_bytes": peak, "live_bytes": sum(live.values())}
    return totals, rows


@pytest.mark.parametrize("run", [*SMALL_RUNS, *range(12)])
def test_every_reader_finds_the_totals_of_the_run(run, tmp_path):
    """Whatever a run lacks, heaptrack_print counts in its export what the run did, and so do we; each number
    is one size and stack, and no more is freed of these than was allocated."""
    totals, rows = play(*(SMALL_RUNS[run] if run in SMALL_RUNS else random_run(run)))
    drawing = "".join(f"{stack} {' '.join(map(str, costs.values()))}\n" for stack, costs in rows.items())
    own, path = tmp_path / "own.cairn", tmp_path / "exported.gz"
    run_tool(BUILD / "tests" / "cli" / "draw_recording", own, folder=tmp_path, input=drawing.encode())
    done = cairn("export", "--to", "heaptrack", "-o", path, own)
    assert (done.returncode, done.stderr) == (0, b"")
    content = unpack(path)
    assert numbers_begin_in_order(content)
    found, _, _, miscounted = replay(content)
    assert {cost: found[cost] for cost in totals} == totals
    assert miscounted == totals["temporary"]
    theirs, mine = printed(path), report(path)["totals"]
    for cost, value in totals.items():
        assert_within(value, theirs[cost], cost)
        assert mine[cost] == value, cost


def test_a_filtered_export_holds_what_passes(recorded, tmp_path):
    path = tmp_path / "exported.gz"
    assert cairn("export", "--to", "heaptrack", "--filter-function", "^churn", "-o", path,
                 recorded).returncode == 0
    mine = report(recorded, "--filter-function", "^churn")["totals"]
    found = report(path)["totals"]
    assert found["allocations"] == mine["allocations"] > 0
    assert found["temporary"] == mine["temporary"] > 0


def test_an_instruction_may_have_no_module(tmp_path):
    path = tmp_path / "no_module"
    path.write_text("v 10400 3\nX ./app\nI 1000 100\ns 8 /bin/app\ns 1 f\ns 1 g\n"
                    "i 10 0 2\ni 20 1 3\nt 1 0\nt 2 1\na 8 2\n+ 0\n")
    found = report(path)
    assert [(frame["function"], frame["module"]) for frame in found["top"]["allocations"][0]["stacks"][0]["frames"]] == \
        [("g", "/bin/app"), ("f", "")]
    assert [module["path"] for module in found["modules"]] == ["/bin/app"]
