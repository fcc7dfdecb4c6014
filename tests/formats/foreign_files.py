# SPDX-License-Identifier: MIT
"""foreign_files: recordings of other tools for the import tests, made by these tools here and now.

Nothing is written by hand: a program of tests/programs or a real one runs under heaptrack; older
versions of the format, and damaged files, are derived from what came out, mechanically.
"""
import gzip
import os
import pathlib
import random
import re
import resource
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
CAIRN = pathlib.Path(os.environ.get("CAIRN_BIN", BUILD / "bin" / "cairn")).resolve()
SANITIZED = b"__asan_report_load" in CAIRN.read_bytes()
FOREIGN_PROGRAM = BUILD / "programs" / "foreign"
INTERPRETER = "/usr/lib/heaptrack/libexec/heaptrack_interpret"


def limit_to(bound_bytes):
    """For preexec_fn: no more memory than that. A sanitizer's shadow is larger than any bound; what it looks
    for there is another thing."""
    bound = resource.RLIM_INFINITY if SANITIZED else bound_bytes
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def run_tool(*words, folder, **settings):
    """Runs a tool that must succeed; returns its standard output."""
    settings = settings if "input" in settings else {**settings, "stdin": subprocess.DEVNULL}
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, check=False,
                          timeout=600, **settings)
    assert done.returncode == 0, (words, done.stderr[-2000:])
    return done.stdout


def cairn(*words, **settings):
    return subprocess.run([CAIRN, *map(str, words)], capture_output=True, check=False, timeout=120,
                          stdin=subprocess.DEVNULL, **settings)


def unpack(path):
    """The content of a packed file, by the tools that packed it."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True,
                              timeout=60).stdout
    return data


def pack_zstd(data):
    return subprocess.run(["zstd", "-cq"], input=data, capture_output=True, check=True,
                          timeout=60).stdout


def only_match(folder, pattern):
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, (pattern, found)
    return found[0]


def heaptrack(folder, name, *program, raw=False, check=True):
    """Runs a program under heaptrack; returns the file that it left."""
    words = ["heaptrack", *(["-r"] if raw else []), "-o", folder / name, *program]
    environment = {**os.environ, "PYTHONMALLOC": "malloc"}
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, check=False,
                          timeout=180, stdin=subprocess.DEVNULL, env=environment)
    assert not check or done.returncode == 0, done.stderr[-2000:]
    return only_match(folder, f"{name}.*")


def interpret(raw):
    """What heaptrack_interpret makes of the content of a raw file."""
    return subprocess.run([INTERPRETER], input=raw, capture_output=True, check=True,
                          timeout=180).stdout


def as_version(content, version):
    """An interpreted file of version 3 as heaptrack wrote it before: strings without their lengths,
    and in version 1 without inlined functions."""
    lines = []
    for line in content.split(b"\n"):
        if line.startswith(b"v "):
            line = b"v " + line.split()[1] + b" %d" % version
        elif line.startswith((b"s ", b"S ")):
            line = line[:2] + line.split(b" ", 2)[2]
        elif line.startswith(b"i ") and version == 1:
            line = b" ".join(line.split()[:6])
        lines.append(line)
    return b"\n".join(lines)


def refused(path):
    """The sentence with which the file was refused, None if it was opened."""
    done = cairn("report", "--json", "--limit=1", path)
    if done.returncode == 0:
        return None
    sentence = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b""), sentence
    assert sentence.startswith("cairn: '") and sentence.count("\n") == 1
    assert re.search(r"line \d+|offset \d+|entry \d+|not a recording|empty|file format|version|ftbl|truncated before",
                     sentence), sentence
    return sentence


def assert_flipped_bits_are_shown_or_refused(whole, path, seed, rounds):
    """Some damage is noticed and refused with its place, some is not and opens; nothing else happens."""
    chance = random.Random(seed)
    results = set()
    for _ in range(rounds):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        results.add(refused(path) is None)
    assert results == {True, False}


UNITS = {"B": 1, "K": 1e3, "M": 1e6, "G": 1e9}


def printed(path):
    """The totals that heaptrack_print says with nothing suppressed, as [lowest, highest] that rounding allows."""
    text = run_tool("heaptrack_print", "--disable-builtin-suppressions",
                    "--disable-embedded-suppressions", path, folder=path.parent).decode()

    def figure(label):
        value, unit = re.search(rf"^{label}: (-?[\d.]+)([BKMG]?)", text, re.M).groups()
        scale = UNITS.get(unit, 1)
        slack = scale * 0.005001 if "." in value else 0
        return float(value) * scale - slack, float(value) * scale + slack

    return {"allocations": figure("calls to allocation functions"),
            "temporary": figure("temporary memory allocations"),
            "peak_bytes": figure("peak heap memory consumption"),
            "peak_rss_bytes": figure(r"peak RSS \(including heaptrack overhead\)"),
            "live_bytes": figure("total memory leaked")}


def replay(content):
    """Reads an interpreted file by its grammar, as slowly as it likes. Returns the totals, what each
    stack did, and what happened in each millisecond that the clock showed."""
    strings, instructions, traces, kinds = [""], [None], [None], []
    live, total, at_peak = {}, {"allocations": 0, "temporary": 0, "peak_bytes": 0, "live": 0}, {}
    stacks, times, now, last, miscounted, is_rising = {}, {}, 0, None, 0, False

    def chain(trace):
        while trace:
            instruction, trace = traces[trace]
            yield instruction

    def counts(kind):
        return stacks.setdefault(kinds[kind][1], [0, 0, 0])

    for line in content.split(b"\n"):
        word, *rest = line.split(b" ")
        if word == b"s":
            strings.append(line.split(b" ", 2)[2].decode())
        elif word == b"i":
            numbers = [int(part, 16) for part in rest]
            instructions.append([strings[at] for at in numbers[2::3]])
        elif word == b"t":
            traces.append((int(rest[0], 16), int(rest[1], 16)))
        elif word == b"a":
            kinds.append((int(rest[0], 16), int(rest[1], 16)))
        elif word == b"c":
            now = int(rest[0], 16)
        elif word == b"+":
            last = int(rest[0], 16)
            size = kinds[last][0]
            live[last] = live.get(last, 0) + 1
            total["allocations"] += 1
            total["live"] += size
            counts(last)[0] += 1
            counts(last)[1] += size
            times.setdefault(now, [0, 0])[0] += 1
            if total["live"] > total["peak_bytes"]:
                total["peak_bytes"] = total["live"]
                is_rising = True
        elif word == b"-":
            kind = int(rest[0], 16)
            if is_rising:
                at_peak, is_rising = dict(live), False
            live[kind] = live.get(kind, 0) - 1  # or one of another number with its size and stack
            total["live"] -= kinds[kind][0]
            total["temporary"] += kind == last
            counts(kind)[2] += kind == last
            miscounted += kind == (last or 0)  # heaptrack_print: number 0 is also "none"
            last = None
            times.setdefault(now, [0, 0])[1] += 1
    at_peak = dict(live) if is_rising else at_peak
    by_names, kinds_of = {}, {}
    for number, (_, trace) in enumerate(kinds):
        kinds_of.setdefault(trace, []).append(number)
    for trace, figures in stacks.items():
        names = tuple(name for at in chain(trace) for name in instructions[at] or [""])
        mine = by_names.setdefault(names, {"allocations": 0, "allocated_bytes": 0, "temporary": 0,
                                           "peak_bytes": 0, "live_bytes": 0})
        for key, value in zip(("allocations", "allocated_bytes", "temporary"), figures):
            mine[key] += value
        for number in kinds_of[trace]:
            mine["peak_bytes"] += at_peak.get(number, 0) * kinds[number][0]
            mine["live_bytes"] += live.get(number, 0) * kinds[number][0]
    total["live_bytes"] = total.pop("live")
    return total, by_names, times, miscounted
