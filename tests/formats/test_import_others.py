# SPDX-License-Identifier: MIT
"""Files of massif, DHAT, gperftools and jemalloc, made here by these tools, against what they say
themselves: their own sums, read by the few lines below."""
import gzip
import json
import os
import random
import re
import subprocess

import pytest

from foreign_files import FOREIGN_PROGRAM, cairn, limit_to, only_match, run_tool

LIBRARIES = "/usr/lib/x86_64-linux-gnu"


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
            "leaked_bytes": "eb", "leaked_allocations": "ebk"}
    assert {cost: found["totals"][cost] for cost in keys} == {
        cost: sum(point[key] for point in points) for cost, key in keys.items()}
    assert found["totals"]["stacks"] == len({tuple(point["fs"]) for point in points})
    assert found["run"]["unknown"] == ["temporary", "temporary_bytes"]
    assert {"main", "churn(int)", "keep_forever(unsigned long)"} <= functions_of(found, "allocations")


@pytest.mark.parametrize("name", ["massif", "massif-ms"])
def test_massif_says_the_same(files, name):
    text = files[name].read_text()
    peak = re.search(r"mem_heap_B=(\d+)\nmem_heap_extra_B=\d+\nmem_stacks_B=\d+\nheap_tree=peak\nn\d+: (\d+)", text)
    found = report(files[name])
    assert found["totals"]["peak_bytes"] == int(peak[1]) == int(peak[2])
    assert found["totals"]["leaked_bytes"] == int(re.findall(r"mem_heap_B=(\d+)", text)[-1])
    assert {"allocations", "temporary", "peak_blocks", "leaked_allocations"} <= set(found["run"]["unknown"])
    assert "main" in functions_of(found, "peak")
    times = re.findall(r"^time=(\d+)", text, re.M)
    assert found["totals"]["runtime_ms"] == (int(times[-1]) if name == "massif-ms" else 0)
    shown = cairn("report", files[name]).stdout.decode()
    assert re.search(r"allocations +unknown\n", shown) and " 0 blocks" not in shown


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
    keys = ["leaked_allocations", "leaked_bytes", "allocations", "allocated_bytes"]
    assert [found["totals"][key] for key in keys] == [int(value) for value in sums.groups()]
    assert {"peak_bytes", "temporary", "own_peak_bytes"} <= set(found["run"]["unknown"])
    assert {"main", "churn(int)"} <= functions_of(found, "allocations")
    assert found["totals"]["threads"] == (2 if name == "jemalloc" else 1)


def test_samples_are_scaled_and_called_estimates(files):
    exact, found = report(files["jemalloc"])["totals"], report(files["sampled"])["totals"]
    assert 0.5 < found["allocated_bytes"] / exact["allocated_bytes"] < 2
    assert 0.5 < found["allocations"] / exact["allocations"] < 2
    assert "estimates from samples" in cairn("report", files["sampled"]).stdout.decode().replace("\n    ", " ")
    assert "estimates from samples" not in cairn("report", files["jemalloc"]).stdout.decode()


@pytest.mark.parametrize("form", ["massif", "dhat"])
def test_our_own_exports_come_back(files, form, tmp_path):
    path = tmp_path / "back"
    assert cairn("export", "--to", form, "-o", path, files["dhat"]).returncode == 0
    before, after = report(files["dhat"])["totals"], report(path)["totals"]
    costs = ["peak_bytes", "leaked_bytes"] + ["allocations", "allocated_bytes", "peak_blocks"] * (form == "dhat")
    assert {cost: after[cost] for cost in costs} == {cost: before[cost] for cost in costs}


NAMES = ["massif", "dhat", "gperftools", "jemalloc"]


@pytest.mark.parametrize("name", [*NAMES, "massif-ms", "sampled"])
def test_what_is_imported_is_sound_also_packed(files, name, tmp_path):
    path = tmp_path / "heaptrack.packed.zst"
    path.write_bytes(gzip.compress(files[name].read_bytes()))
    for given in (files[name], path):
        done = cairn("verify", given)
        assert (done.returncode, done.stderr) == (0, b"") and done.stdout.startswith(b"sound: a file of")
    assert report(path)["totals"] == report(files[name])["totals"]


def opened(path):
    done = cairn("report", "--json", path)
    if done.returncode == 0:
        return True
    sentence = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), sentence
    assert sentence.startswith("cairn: '") and sentence.count("\n") == 1
    assert re.search(r"line \d+|offset \d+|entry \d+|not a recording|version|ftbl|empty", sentence), sentence
    return False


@pytest.mark.parametrize("name", NAMES)
def test_cut_files_are_shown_or_refused_with_their_place(files, name, tmp_path):
    whole = files[name].read_bytes()
    path = tmp_path / "cut"
    results = set()
    for place in random.Random(5).sample(range(1, len(whole) - 2), 25):
        path.write_bytes(whole[:place])
        results.add(opened(path))
        if name != "dhat" and whole[place - 1:place] != b"\n" and opened(path):
            assert "ends after line" in report(path)["damage"]
    assert results == {False} if name == "dhat" else True in results


@pytest.mark.parametrize("name", NAMES)
def test_flipped_bits_are_shown_or_refused_with_their_place(files, name, tmp_path):
    whole = files[name].read_bytes()
    path = tmp_path / "flipped"
    chance = random.Random(9)
    results = set()
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        results.add(opened(path))
    assert results == {True, False}


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
    assert not opened(path)
    assert words in cairn("report", path).stderr.decode()


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
    done = cairn("report", path, preexec_fn=limit_to(bound))
    assert done.returncode in (0, 2) and b"not enough memory" not in done.stderr
    assert done.returncode == 0 or done.stderr.count(b"\n") == 1
