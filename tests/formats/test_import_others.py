# SPDX-License-Identifier: MIT
"""Files of massif, DHAT, gperftools and jemalloc, made here by these tools, against what they say
themselves: their own sums, read by the few lines below."""
import contextlib
import csv
import gzip
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess

import pytest

from foreign_files import (FOREIGN_PROGRAM, assert_flipped_bits_are_shown_or_refused, cairn, limit_to,
                           only_match, refused, run_tool)
from test_formats import Pprof, export

KEYS = ("peak_bytes", "peak_blocks", "allocations", "allocated_bytes", "frees", "freed_bytes", "temporary",
        "temporary_bytes", "live_bytes", "live_blocks", "own_peak_bytes")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
CORPUS = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus"


@pytest.fixture(scope="module", autouse=True)
def fixture_cache(tmp_path_factory):
    """What code is called is looked up once for all tests of this file: otherwise that takes half of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", name="files")
def fixture_files(tmp_path_factory):
    """name -> path"""
    folder = tmp_path_factory.mktemp("others")
    valgrind = ["valgrind", "-q"]
    run_tool(*valgrind, "--tool=massif", f"--massif-out-file={folder}/massif", FOREIGN_PROGRAM,
             folder=folder)
    run_tool(*valgrind, "--tool=massif", f"--massif-out-file={folder}/massif-ms", "--time-unit=ms",
             "--threshold=0.1", FOREIGN_PROGRAM, folder=folder)
    run_tool(*valgrind, "--tool=dhat", f"--dhat-out-file={folder}/dhat", FOREIGN_PROGRAM, folder=folder)
    environment = {**os.environ, "LD_PRELOAD": f"{LIBRARIES}/libtcmalloc.so.4",
                   "HEAPPROFILE": f"{folder}/gperftools"}
    run_tool(FOREIGN_PROGRAM, folder=folder, env=environment)
    for name, period in (("jemalloc", 0), ("sampled", 11)):
        options = f"prof:true,prof_final:true,prof_accum:true,lg_prof_sample:{period}"
        environment = {**os.environ, "LD_PRELOAD": f"{LIBRARIES}/libjemalloc.so.2",
                       "MALLOC_CONF": f"{options},prof_prefix:{folder}/{name}"}
        run_tool(FOREIGN_PROGRAM, folder=folder, env=environment)
    return {"massif": folder / "massif", "massif-ms": folder / "massif-ms", "dhat": folder / "dhat",
            "gperftools": only_match(folder, "gperftools*.heap"),
            "jemalloc": only_match(folder, "jemalloc*.heap"), "sampled": only_match(folder, "sampled*.heap")}


def report(path):
    done = cairn("report", "--json", "--limit=0", "--no-builtin-suppressions", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def functions_of(found, cost):
    return {frame["function"] for site in found["top"][cost] for stack in site["stacks"]
            for frame in stack["frames"]}


def test_dhat_says_the_same(files):
    points = json.loads(files["dhat"].read_text())["pps"]
    found = report(files["dhat"])
    keys = {"allocations": "tbk", "allocated_bytes": "tb", "peak_bytes": "gb", "peak_blocks": "gbk",
            "live_bytes": "eb", "live_blocks": "ebk"}
    assert {cost: found["totals"][cost] for cost in keys} == {
        cost: sum(point[key] for point in points) for cost, key in keys.items()}
    assert found["totals"]["stacks"] == len({tuple(point["fs"]) for point in points})
    assert found["run"]["unknown"] == ["temporary", "temporary_bytes"]
    assert {"main", "churn(int)", "keep_forever(unsigned long)"} <= functions_of(found, "allocations")


@pytest.mark.parametrize("name", ["massif/milliseconds", "massif/instructions", "heap_text/gperftools",
                                  "heap_text/jemalloc", "heaptrack/interpreted", "heaptrack/raw"])
def test_half_a_line_is_no_line(tmp_path, name):
    """A file that is cut within a line is read as one that is cut before it: half a number is another one."""
    whole = (CORPUS / f"import_{name}").read_bytes()
    begins = [at + 1 for at, byte in enumerate(whole[:-2]) if byte == ord("\n") and whole[at + 2] != ord("\n")]
    path, compared = tmp_path / "cut", 0
    for begin in begins[::max(1, len(begins) // 10)]:
        shown = []
        for end in (begin, begin + 1, (begin + whole.index(b"\n", begin) + 1) // 2):
            path.write_bytes(whole[:end])
            done = cairn("report", "--json", "--no-builtin-suppressions", path)
            shown.append((done.returncode, done.stdout, done.stderr))
        if shown[0][0] != 0:
            continue  # too little to tell whose file it is
        assert shown[1] == shown[2], begin
        before, cut = (json.loads(printed) for _, printed, _ in shown[:2])
        assert "ends after line" in cut.pop("damage")
        before.pop("damage")  # not every format says where it ends
        assert before == cut
        compared += 1
    assert compared > 4


@pytest.mark.parametrize("name", ["massif", "massif-ms"])
def test_massif_says_the_same(files, name):
    text = files[name].read_text()
    peak = re.search(r"mem_heap_B=(\d+)\nmem_heap_extra_B=\d+\nmem_stacks_B=\d+\nheap_tree=peak\nn\d+: (\d+)", text)
    found = report(files[name])
    assert found["totals"]["peak_bytes"] == int(peak[1]) == int(peak[2])
    assert found["totals"]["live_bytes"] == int(re.findall(r"mem_heap_B=(\d+)", text)[-1])
    assert {"allocations", "temporary", "peak_blocks", "live_blocks"} <= set(found["run"]["unknown"])
    assert "main" in functions_of(found, "peak_bytes")
    times = re.findall(r"^time=(\d+)", text, re.M)
    assert found["totals"]["runtime_ms"] == (int(times[-1]) if name == "massif-ms" else None)
    shown = cairn("report", "--all", files[name]).stdout.decode()
    assert re.search(r"allocations +unknown\n", shown) and " 0 blocks" not in shown


def test_massif_s_snapshots_are_the_time_line(files):
    """Each snapshot's bytes are what was live, until the next one."""
    text = files["massif-ms"].read_text()
    snapshots = [(int(time), int(size)) for time, size in re.findall(r"time=(\d+)\nmem_heap_B=(\d+)", text)]
    document = json.loads(export(files["massif-ms"], "json"))
    width, points = document["slice_ms"], document["points"]
    assert points["count"] == snapshots[-1][0] // width + 1 and len(snapshots) > 10
    last = dict((time // width, size) for time, size in snapshots)  # of each slice
    live = 0
    for place, reported in enumerate(points["live_bytes"]):
        live = last.get(place, live)
        assert reported == live
    assert set(points["allocations"] + points["frees"]) == {None}
    assert json.loads(export(files["massif"], "json"))["points"]["count"] == 0  # instructions are no time
    done = cairn("report", "--all", "--time", "..50ms", files["massif-ms"])
    assert done.returncode == 2 and b"no allocation times" in done.stderr


def test_massif_s_stacks_are_the_tree_s(files):
    """Every leaf of the peak's tree, with its whole way to the root."""
    tree = files["massif-ms"].read_text().split("heap_tree=peak\n")[1].split("#")[0]
    way, leaves = [], {}
    for depth, callers, size, text in re.findall(r"^( *)n(\d+): (\d+) (.*)$", tree, re.M):
        way = way[:len(depth)] + [text]
        if callers == "0" and depth:
            leaves[tuple(way[1:])] = int(size)
    done = cairn("export", "--to", "csv", files["massif-ms"])
    assert done.returncode == 0
    assert sum(leaves.values()) == report(files["massif-ms"])["totals"]["peak_bytes"]
    assert len(leaves) == report(files["massif-ms"])["totals"]["stacks"] - 1  # what is left at the end


@pytest.mark.parametrize("name", ["gperftools", "jemalloc"])
def test_heap_profiles_say_the_same(files, name):
    sums = re.search(r"(\d+): +(\d+) \[ *(\d+): +(\d+)\]", files[name].read_text())
    found = report(files[name])
    keys = ["live_blocks", "live_bytes", "allocations", "allocated_bytes"]
    assert [found["totals"][key] for key in keys] == [int(value) for value in sums.groups()]
    assert {"peak_bytes", "temporary", "own_peak_bytes"} <= set(found["run"]["unknown"])
    assert {"main", "churn(int)"} <= functions_of(found, "allocations")
    assert found["totals"]["threads"] == (2 if name == "jemalloc" else 1)
    assert found["run"]["program"] == str(FOREIGN_PROGRAM)


def test_addresses_outside_of_all_mappings_are_of_no_module(tmp_path):
    """Below the first, between two, above the last, and where none is listed."""
    inside = {0x400801: "one", 0x400fff: "one", 0x401000: "one", 0x500001: "two", 0x500100: "two"}
    outside = [0x1000, 0x3fffff, 0x400000, 0x400001 - 1, 0x401001, 0x4fffff, 0x500000, 0x501001, 0x7fff00000000]
    head = "heap profile: {0}: {0} [{0}: {0}] @ heapprofile\n"
    mappings = ("MAPPED_LIBRARIES:\n"
                "00500000-00501000 r-xp 00000000 00:00 2    /opt/two\n"
                "00400000-00401000 r-xp 00000000 00:00 1    /opt/one\n")
    addresses = [*inside, *dict.fromkeys(outside)]
    lines = "".join(f"1: {size} [1: {size}] @ {address:#x}\n" for size, address in enumerate(addresses, 1))
    for name, tail, known in (("some", mappings, inside), ("none", "MAPPED_LIBRARIES:\n", {})):
        path = tmp_path / name
        path.write_text(head.format(len(addresses)) + lines + "\n" + tail)
        found = report(path)
        modules = {site["costs"]["allocated_bytes"]: stack["frames"][0]["module"]
                   for site in found["top"]["allocations"] for stack in site["stacks"]}
        print(modules)
        assert {size: (module or "").rsplit("/")[-1] for size, module in modules.items()} == {
            size: known.get(address, "") for size, address in enumerate(addresses, 1)}


def test_samples_are_scaled_and_called_estimates(files):
    exact, found = report(files["jemalloc"])["totals"], report(files["sampled"])["totals"]
    assert 0.5 < found["allocated_bytes"] / exact["allocated_bytes"] < 2
    assert 0.5 < found["allocations"] / exact["allocations"] < 2
    assert "estimates from samples" in cairn("report", "--all", files["sampled"]).stdout.decode().replace("\n    ", " ")
    assert "estimates from samples" not in cairn("report", "--all", files["jemalloc"]).stdout.decode()


@pytest.mark.parametrize("form", ["massif", "dhat"])
def test_our_own_exports_come_back(files, form, tmp_path):
    path = tmp_path / "back"
    assert cairn("export", "--to", form, "-o", path, files["dhat"]).returncode == 0
    before, after = report(files["dhat"])["totals"], report(path)["totals"]
    costs = ["peak_bytes", "live_bytes"] + ["allocations", "allocated_bytes", "peak_blocks"] * (form == "dhat")
    assert {cost: after[cost] for cost in costs} == {cost: before[cost] for cost in costs}


# What a file does not say is no 0 anywhere.

@pytest.mark.parametrize("name", ["massif", "massif-ms", "dhat", "gperftools", "jemalloc"])
def test_exports_leave_out_what_is_unknown(files, name, tmp_path):
    unknown = set(report(files[name])["run"]["unknown"])
    rows = list(csv.DictReader(export(files[name], "csv").decode().splitlines()))
    assert rows and {key for key in KEYS if rows[0][key] == ""} == unknown
    document = json.loads(export(files[name], "json"))
    assert set(document["rows"]["costs"]) == set(KEYS) - unknown
    path = tmp_path / "sqlite"
    path.write_bytes(export(files[name], "sqlite"))
    with contextlib.closing(sqlite3.connect(path)) as database:
        sums = ", ".join(f"sum({key})" for key in KEYS)
        found = dict(zip(KEYS, database.execute(f"SELECT {sums} FROM stack_costs").fetchone()))
    assert {key for key, value in found.items() if value is None} == unknown
    events = re.search(r"^events:(.*)$", export(files[name], "callgrind").decode(), re.M)[1].split()
    assert ("Allocations" in events, "PeakBytes" in events) == ("allocations" not in unknown, "peak_bytes" not in unknown)
    types = [kind for kind, _ in Pprof(export(files[name], "pprof")).types]
    assert types == [kind for kind, key in
                     zip(("alloc_objects", "alloc_space"), ("allocations", "allocated_bytes")) if key not in unknown] + [
        kind for kind, keys in (("inuse_objects", {"peak_blocks", "live_blocks"}), ("inuse_space", {"peak_bytes"}))
        if keys & unknown == set() or (name in ("gperftools", "jemalloc"))]
    profiles = json.loads(export(files[name], "speedscope"))["profiles"]
    assert len(profiles) == len({"peak_bytes", "allocated_bytes", "allocations", "temporary", "live_bytes"} - unknown)


@pytest.mark.parametrize("name", ["massif", "dhat", "gperftools", "jemalloc"])
def test_reports_have_null_for_what_is_unknown(files, name):
    found = report(files[name])
    unknown = set(found["run"]["unknown"])
    assert set(found["selection"]["unavailable"]) == unknown
    objects = [found["selection"]["totals"], *(row["costs"] for kind in ("processes", "threads", "modules")
                                               for row in found[kind])]
    assert len(objects) > 1
    for costs in objects:
        assert {key for key, value in costs.items() if value is None} == unknown
    assert (found["processes"][0]["process_peak_bytes"] is None) == ("peak_bytes" in unknown)
    assert (found["totals"]["peak_time_ms"] is None) == (name != "massif-ms")
    rows = list(csv.DictReader(cairn("report", "--csv", "--group-by", "function", files[name]).stdout.decode().splitlines()))
    assert rows and all({key for key in KEYS if row[key] == ""} == unknown for row in rows)


@pytest.mark.parametrize("name, form, words", [
    ("massif", "dhat", "allocation calls"), ("massif", "heaptrack", "blocks live at the peak"),
    ("massif", "perfetto", "no time line"), ("gperftools", "massif", "bytes live at the peak"),
    ("gperftools", "heaptrack", "bytes live at the peak")])
def test_a_format_that_would_say_nothing_is_refused(files, name, form, words, tmp_path):
    done = cairn("export", "--to", form, "-o", tmp_path / "out.gz", files[name])
    assert (done.returncode, done.stdout) == (2, b"") and words in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1 and not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [["--to", "folded", "--cost", "allocations"], ["--to", "svg", "--cost", "temporary"],
                                   ["--to", "speedscope", "--cost", "frees"]])
def test_a_cost_that_is_unknown_is_refused(files, words):
    done = cairn("export", *words, files["massif"])
    assert (done.returncode, done.stdout) == (2, b"") and b"has no data on" in done.stderr
    for form in ([], ["--json"], ["--csv"]):
        done = cairn("report", "--sort", words[-1], *form, files["massif"])
        assert (done.returncode, done.stdout) == (2, b"") and b": the recording has no data on" in done.stderr


def test_a_heap_profile_has_no_peak(files):
    done = cairn("export", "--to", "pprof", "--at", "peak", files["gperftools"])
    assert done.returncode == 2 and b"--at peak: the recording has no data on" in done.stderr
    leaked = sum(int(line.rsplit(b" ", 1)[1]) for line in export(files["gperftools"], "folded").splitlines())
    assert leaked == report(files["gperftools"])["totals"]["live_bytes"]  # what it has instead


def test_a_comparison_says_what_it_cannot_compare(files):
    done = cairn("diff", files["massif"], files["dhat"])
    text = done.stdout.decode()
    assert text.splitlines()[0].endswith(", for unknown time")
    assert re.search(r"^  allocations +unknown +[\d,]+ +unknown  not compared$", text, re.M), text
    assert "not in both recordings: allocations, temporary" in text.replace("\n", " ").replace("  ", " ")
    found = json.loads(cairn("diff", "--json", files["massif"], files["dhat"]).stdout)
    assert found["totals"]["allocations"] == {
        "old": None, "new": report(files["dhat"])["totals"]["allocations"], "change": None, "class": "unknown"}
    assert found["changes"]["allocations"] == [] and {entry["cost"] for entry in found["findings"]} <= {
        "peak_bytes", "live_bytes"}
    for words, sentence in ((["--sort", "allocations"], "one of the recordings has no"),
                            (["--per", "second"], "recording has no run time")):
        done = cairn("diff", *words, files["massif"], files["dhat"])
        assert (done.returncode, done.stdout) == (2, b"") and sentence in done.stderr.decode()


def test_a_check_says_what_it_cannot_check(files):
    for budget in ("--max-allocations=1", "--max-allocated=1", "--max-temporary-share=1%", "--max-rss=1"):
        done = cairn("check", "--no-config", budget, files["massif"])
        assert (done.returncode, done.stdout) == (2, b"")
        assert re.fullmatch(r"cairn: max-\S+ cannot be checked: the recording has no data on .+\n", done.stderr.decode())
    done = cairn("check", "--no-config", "--json", "--baseline", files["massif"], "--max-growth=1%", files["dhat"])
    growth = {entry["measure"]: entry["known"] for entry in json.loads(done.stdout)["results"]}
    assert growth == {"peak": True, "allocations": False, "allocated": False, "leaked": True}
    done = cairn("check", "--no-config", "--max-peak=1", "--lifetime", "..1s", files["sampled"])
    assert done.returncode == 2 and done.stdout == b""


NAMES = ["massif", "dhat", "gperftools", "jemalloc"]


@pytest.mark.parametrize("name", [*NAMES, "massif-ms", "sampled"])
def test_what_is_imported_is_sound_also_packed(files, name, tmp_path):
    path = tmp_path / "heaptrack.packed.zst"
    path.write_bytes(gzip.compress(files[name].read_bytes()))
    for given in (files[name], path):
        done = cairn("verify", given)
        assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"sound: a file of")
    assert report(path)["totals"] == report(files[name])["totals"]


@pytest.mark.parametrize("name", NAMES)
def test_cut_files_are_shown_or_refused_with_their_place(files, name, tmp_path):
    whole = files[name].read_bytes()
    path = tmp_path / "cut"
    results = set()
    for place in random.Random(5).sample(range(1, len(whole) - 2), 25):
        path.write_bytes(whole[:place])
        results.add(refused(path) is None)
        if name != "dhat" and whole[place - 1:place] != b"\n" and refused(path) is None:
            assert "ends after line" in report(path)["damage"]
    assert results == {False} if name == "dhat" else True in results


@pytest.mark.parametrize("name", NAMES)
def test_flipped_bits_are_shown_or_refused_with_their_place(files, name, tmp_path):
    assert_flipped_bits_are_shown_or_refused(files[name].read_bytes(), tmp_path / "flipped", seed=9, rounds=40)


@pytest.mark.parametrize("name, pattern, by, words", [
    ("massif", r"n(\d+): \d+ \(heap", r"n\1: 5 (heap", "more bytes than it has"),
    ("massif", r"mem_heap_B=\d+", "mem_heap_B=9999999999999999999999", "no number"),
    ("massif", r"\n  n", "\n         n", "deeper"),
    ("dhat", r'"dhatFileVersion":2', '"dhatFileVersion":3', "version"),
    ("dhat", r'"fs":\[\d+', '"fs":[99999999', "pps entry 0"),
    ("dhat", r'"eb":\d+', '"eb":9223372036854775807', "pps entry 0"),
    ("dhat", r'"tb":\d+', '"tb":99999999999999999999999', "line"),
    ("gperftools", r"\n +\d+:", "\n 99999999999999999999:", "line 2"),
    ("gperftools", "@ heapprofile", "@ growthz", "line 1"),
    ("jemalloc", r"\n@ 0x[0-9a-f]+", "\n@ 0xfffffffffffffffff", "address"),
])
def test_what_makes_no_sense_is_refused(files, name, pattern, by, words, tmp_path):
    text = files[name].read_text()
    wrong = re.sub(pattern, by, text, count=1)
    assert wrong != text
    path = tmp_path / "wrong"
    path.write_text(wrong)
    assert words in refused(path)


@pytest.mark.parametrize("key", ["tb", "tbk", "gb", "gbk"])
def test_sums_that_no_heap_can_have_are_refused(files, key, tmp_path):
    path = tmp_path / "large"
    path.write_text(re.sub(rf'"{key}":\d+', f'"{key}":{2**63 - 1}', files["dhat"].read_text()))
    assert "pps entry 2" in refused(path)


def test_sums_of_stacks_that_no_heap_can_have_are_refused(tmp_path):
    path = tmp_path / "large"
    counts = f"1: {10**18 - 1} [1: {10**18 - 1}]"
    path.write_text(f"heap profile: {counts} @ heapprofile\n" +
                    "".join(f"{counts} @ 0x{stack}\n" for stack in range(1, 20)) + "\nMAPPED_LIBRARIES:\n")
    assert "more than possible" in refused(path)


def jemalloc_stack(depth):
    return "heap_v2/1\n  t*: 1: 1 [1: 1]\n@" + " 0x1" * depth + "\n  t1: 1: 1 [1: 1]\n"


def test_a_stack_has_a_limit(tmp_path):
    path = tmp_path / "deep"
    path.write_text(jemalloc_stack(4096))
    assert report(path)["totals"]["live_bytes"] == 1
    path.write_text(jemalloc_stack(4097))
    assert "too deep" in refused(path)


@pytest.mark.parametrize("head, body", [
    ('{"dhatFileVersion":2,"mode":"heap","bklt":true,"ftbl":["[root]"],"pps":[', "1,"),
    ("desc: x\ncmd: y\nsnapshot=0\ntime=0\nmem_heap_B=9\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak\n"
     "n1: 9 x\n", " n0: 0 0x1: f (g.c:1)\n"),
    ("heap_v2/1\n  t*: 1: 1 [1: 1]\n@ 0x1\n", "  t1: 1: 1 [1: 1]\n"),
])
def test_a_bomb_does_not_get_the_memory(head, body, tmp_path):
    """Half a megabyte or less that unpacks to 200."""
    path = tmp_path / "bomb"
    packer = ["gzip", "-1"]
    packed = subprocess.run(packer, input=head.encode() + body.encode() * ((200 << 20) // len(body)),
                            capture_output=True, check=True, timeout=60).stdout
    path.write_bytes(packed)
    bound = 2 << 30
    done = cairn("report", "--all", path, preexec_fn=limit_to(bound))
    assert done.returncode in (0, 2) and b"not enough memory" not in done.stderr
    assert done.returncode == 0 or done.stderr.count(b"\n") == 1
