# SPDX-License-Identifier: MIT
"""The RSS breakdown, compared with the test's own reading of /proc and with the allocator's own
statistics."""
import json
import os
import pathlib
import re
import signal
import subprocess
from collections import Counter

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment, some_of
from conversation import Conversation, ctl
from test_attach import Attachable
from waiting import is_served, read_until, wait_until

MIB = 1 << 20
PAGE = 4096
KINDS = ["live", "rounding", "kept", "mapped", "stack", "file", "shared", "own", "rest"]
# mallinfo2 counts blocks in the caches of threads as in use.
NO_CACHES = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
OWN = re.compile(r"/memfd:cairn-session|libcairn_preload")


def smaps(pid):
    """[(name, resident bytes)] of each line of a memory map, in its order."""
    areas = []
    for line in open(f"/proc/{pid}/smaps").read().splitlines():
        head = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)", line)
        if head:
            areas.append([head.group(1), 0])
        elif line.startswith("Rss:"):
            areas[-1][1] = int(line.split()[1]) * 1024
    return areas


def breakdown(report, which):
    """The RSS breakdown of the peak (is_peak) or the last one (is_last)."""
    found, = [entry for entry in report["rss"]["breakdowns"] if entry[which]]
    return found


def sum_of_kinds(report, entry):
    return sum(entry[kind["key"] + "_bytes"] for kind in report["rss"]["kinds"])


def test_memory_is_seen_when_the_first_thread_has_ended(scratch):
    """The kernel shows no memory under the number of such a process. A snapshot and a sample follow its end."""
    with Conversation(scratch / "x.cairn", program=[PROGRAMS / "leaderless"]) as program:
        stat = pathlib.Path(f"/proc/{program.status()['program_pid']}/stat")
        wait_until(lambda: ") Z " in stat.read_text(), "the end of the first thread")
        before = program.status()["runtime_ms"]
        program.ctl("snapshot")
        report = program.end().report
    assert any(entry["time_ms"] >= before for entry in report["rss"]["breakdowns"])
    assert report["rss"]["samples"][-1]["time_ms"] >= before


class Waiting:
    """A program under cairn that prints its allocator's statistics and waits for a line."""

    def __init__(self, scratch, *arguments, options=()):
        self.path = scratch / "x.cairn"
        self.process = subprocess.Popen(
            [CAIRN, "record", "-q", "-o", self.path, *options, "--", PROGRAMS / "memory_kinds",
             *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(NO_CACHES))
        line = read_until(self.process.stdout.fileno(), b"ready").decode()
        self.arena, self.in_use, self.free, self.mapped = map(int, line.split()[:4])
        children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read()
        self.pid = int(children.split()[0])
        for _ in range(2):  # two rounds of the recorder, in which it sees the program
            ctl(self.path, "status")
        self.areas = smaps(self.pid)

    def finish(self, is_whole=True):
        """End the program. Return the RSS breakdown at its end."""
        self.process.communicate(b"\n", timeout=60)
        assert self.process.returncode == 0
        self.recording = Recording(self.path, self.process)
        if is_whole:
            self.recording.assert_whole()
        verified = subprocess.run([CAIRN, "verify", self.path], capture_output=True, text=True,
                                  check=False)
        assert not re.search("snapshot|part|mapping", verified.stdout), verified.stdout
        self.split = breakdown(self.recording.report, "is_last")
        return self.split

    def rss_of(self, pattern):
        return sum(rss for name, rss in self.areas if re.search(pattern, name))

    def parts(self, kind):
        return [part for part in self.split["mappings"] if part["kind"] == kind]


def assert_sound(run):
    """Assert what holds for every breakdown: it adds up, little is unattributed, and it agrees with
    the kernel."""
    split = run.split
    assert split["at_exit"], "the last snapshot was taken when the program had begun to exit"
    assert sum(split[f"{kind}_bytes"] for kind in KINDS) == split["rss_bytes"]
    by_kind = Counter()
    for part in split["mappings"]:
        by_kind[part["kind"]] += part["rss_bytes"]
    assert {kind: by_kind[kind] for kind in KINDS} == {kind: split[f"{kind}_bytes"] for kind in KINDS}
    assert split["rest_bytes"] < 0.05 * split["rss_bytes"]
    # exit itself touches a few more pages
    total = sum(rss for _, rss in run.areas)
    assert abs(split["rss_bytes"] - total) <= 64 * PAGE
    # The .bss of cairn's library, 82 pages, has no name in the map.
    assert -32 * PAGE <= split["own_bytes"] - run.rss_of(OWN) <= (82 + 32) * PAGE
    files = Counter()
    for part in run.parts("file"):
        files[part["path"]] += part["rss_bytes"]
    for path in {name for name, _ in run.areas if name.startswith("/usr")} - {""}:
        if not OWN.search(path):
            # The memory after a library's mappings, its .bss, has no name in the map.
            assert -8 * PAGE <= files[path] - run.rss_of(re.escape(path) + "$") <= 64 * PAGE, path


def near(value, truth, slack):
    assert abs(value - truth) <= slack, f"{value}, but {truth} +- {slack}"


def test_a_cache(scratch):
    run = Waiting(scratch, "cache")
    split = run.finish()
    assert_sound(run)
    # One block has its own mapping with 3 MiB touched; the rest is in the arena.
    block, = [part for part in run.parts("live") if part["path"] == ""]
    near(block["rss_bytes"], 3 * MIB, 2 * PAGE)
    heap = split["live_bytes"] + split["rounding_bytes"] - block["rss_bytes"]
    # malloc adds a remainder that is too small for a block, 16 bytes, to the block before it.
    assert -4 * PAGE <= run.in_use - heap <= 20_000 * 16
    near(split["kept_bytes"], run.free + run.in_use - heap, 64 * PAGE)
    mapping, = run.parts("mapped")
    assert (mapping["rss_bytes"], mapping["virtual_bytes"]) == (6 * MIB, 12 * MIB)
    assert [frame["function"] for frame in mapping["frames"][:3]] == ["map", "map_half", "cache"]


def test_a_fragmented_heap(scratch):
    run = Waiting(scratch, "fragmented")
    split = run.finish()
    assert_sound(run)
    near(split["live_bytes"] + split["rounding_bytes"], run.in_use, 16 * PAGE)
    near(split["kept_bytes"], run.free, 64 * PAGE)
    assert split["kept_bytes"] > split["live_bytes"]
    requested = run.recording.totals["live_bytes"]
    assert split["requested_bytes"] == requested
    near(split["live_bytes"], requested, 4 * PAGE)  # all of it was touched
    assert not split["live_is_estimate"]


def test_a_reader_of_mapped_files(scratch):
    path = scratch / "data"
    path.write_bytes(b"x" * 16 * MIB)
    run = Waiting(scratch, "file", path)
    split = run.finish()
    assert_sound(run)
    assert run.rss_of("data$") >= 16 * MIB
    mapped = [part for part in run.parts("file") if part["path"] == str(path)]
    assert sum(part["rss_bytes"] for part in mapped) == run.rss_of("data$")
    assert {part["frames"][0]["function"] for part in mapped} == {"file", "map"}
    assert split["shared_bytes"] == 2 * MIB
    shared, = run.parts("shared")
    assert shared["virtual_bytes"] == 4 * MIB


def test_many_threads(scratch):
    run = Waiting(scratch, "threads")
    split = run.finish()
    assert_sound(run)
    assert 60 * 200 * 1024 < split["stack_bytes"] < 60 * 260 * 1024
    # 100 blocks of 500 bytes per thread.
    near(split["live_bytes"], 60 * 100 * 500, 60 * 2 * PAGE)
    near(split["live_bytes"] + split["rounding_bytes"], run.in_use, 60 * 2 * PAGE)
    # Besides free memory, each arena has its head in its first page.
    assert 0 < split["kept_bytes"] < run.free + 60 * PAGE


def test_a_pool_beside_malloc(scratch):
    run = Waiting(scratch, "pool")
    split = run.finish()
    assert_sound(run)
    near(split["live_bytes"], 3 * MIB, 4 * PAGE)
    by_top = Counter()
    for part in run.parts("mapped"):
        by_top[part["frames"][0]["function"]] += part["rss_bytes"]
    # 9 MiB, less one that was unmapped and one that was mapped again and never touched; 1,000,000
    # bytes of sbrk.
    near(by_top["pool"], 7 * MIB + 1_000_000, 3 * PAGE)


def test_the_split_at_the_peak_is_the_peak(scratch):
    run = Waiting(scratch, "cache")
    run.finish()
    peak = breakdown(run.recording.report, "is_peak")
    assert peak["rss_bytes"] >= breakdown(run.recording.report, "is_last")["rss_bytes"]
    assert sum_of_kinds(run.recording.report, peak) == peak["rss_bytes"]


def test_a_killed_program_has_a_last_snapshot_and_its_age(scratch):
    run = Waiting(scratch, "fragmented")
    all_bytes = sum(rss for _, rss in run.areas)

    def last_snapshot_bytes():
        dump = subprocess.run([CAIRN, "dump", "-t", "memory_snapshots", run.path], capture_output=True,
                              text=True, check=False).stdout.splitlines()
        snapshots = [dict(zip(dump[0].split("\t"), line.split("\t"))) for line in dump[1:]]
        return int(snapshots[-1]["rss_bytes"]) if snapshots else 0

    # A checkpoint with a memory snapshot of the waiting program.
    wait_until(lambda: run.path.exists() and abs(last_snapshot_bytes() - all_bytes) <= 16 * PAGE, "a snapshot")
    os.kill(run.pid, signal.SIGKILL)
    run.process.communicate(timeout=60)
    report = json.loads(subprocess.run([CAIRN, "report", "--json", run.path], capture_output=True,
                                       check=True).stdout)
    end = breakdown(report, "is_last")
    assert not end["at_exit"]
    near(end["rss_bytes"], sum(rss for _, rss in run.areas), 16 * PAGE)
    assert end["time_ms"] + end["age_ms"] == report["totals"]["runtime_ms"]
    text = subprocess.run([CAIRN, "report", "--all", run.path], capture_output=True, text=True,
                          check=True).stdout
    assert "before the end" in text[text.index("RESIDENT MEMORY"):]


@pytest.mark.parametrize("how", some_of(["cache", "fragmented", "threads"], 3))
def test_text_and_json_say_the_same(scratch, how):
    run = Waiting(scratch, how)
    split = run.finish()
    text = subprocess.run([CAIRN, "report", "--all", run.path], capture_output=True, text=True,
                          check=True).stdout
    section = text[text.index("RESIDENT MEMORY"):]
    said = re.search(r"live heap blocks +~? *[\d.]+ .iB +[\d.]+% +~? *([\d.]+) (.)iB", section)
    unit = {"K": 1024, "M": MIB}[said.group(2)]
    near(float(said.group(1)) * unit, split["live_bytes"], 0.06 * unit)
    named = re.findall(r"^ +[\d.]+ \w+ of [\d.]+ \w+ +(.*)$", section, re.M)
    assert named and all(named)
    bar, = re.findall(r"^  end +(\S+)$", section, re.M)
    near(bar.count("#") / len(bar), split["live_bytes"] / split["rss_bytes"], 1.5 / len(bar))


def test_a_snapshot_on_request_is_kept(scratch):
    run = Waiting(scratch, "fragmented")
    said = ctl(run.path, "snapshot")
    kib = int(re.search(r"snapshot of 1 process at [\d.]+ s: (\d+) KiB", said).group(1))
    near(kib * 1024, sum(rss for _, rss in run.areas), 16 * PAGE)
    ctl(run.path, "snapshot")
    run.finish()
    snapshots = subprocess.run([CAIRN, "dump", "-t", "memory_snapshots", run.path], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    at = snapshots[0].split("\t").index("flags")
    assert sum(int(line.split("\t")[at]) & 4 != 0 for line in snapshots[1:]) == 2


def test_a_heap_that_was_recorded_in_part_is_not_called_free(scratch):
    run = Waiting(scratch, "fragmented", options=["--start-paused"])
    ctl(run.path, "start")
    split = run.finish(is_whole=False)
    assert split["kept_bytes"] == 0
    assert split["rest_bytes"] > 0.5 * run.arena
    assert "[unrecorded heap]" in {part["path"] for part in run.parts("rest")}


def test_heap_from_before_an_attach_is_divided(scratch):
    """By glibc's own lists: what the program has not freed, and what is free."""
    with Attachable(scratch) as program:
        program.do("a 100000 60", "f 50000")
        program.attach()
        program.do("a 10 1000")  # it joins
        wait_until(lambda: program.status()["allocations"] == 10, "the program's first blocks")
        program.ctl("snapshot")
        resident = sum(rss for name, rss in smaps(program.process.pid) if name == "[heap]")
        split = breakdown(program.detach().report, "is_last")
    part, = [part for part in split["mappings"] if part["path"] == "[heap of glibc, allocated before recording]"]
    assert part["kind"] == "rest" and part["is_estimate"]
    assert 50000 * 60 <= part["rss_bytes"] <= 50000 * 80 + 64 * PAGE
    assert 50000 * 60 <= split["kept_bytes"] <= resident - part["rss_bytes"]


def stacks_in_use(pid):
    """Resident bytes of the areas that hold the stack pointer of a thread."""
    pointers = [int(thread.joinpath("syscall").read_text().split()[-2], 16)
                for thread in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    total, counts = 0, False
    for line in open(f"/proc/{pid}/smaps").read().splitlines():
        area = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if area:
            start, end = (int(bound, 16) for bound in area.groups())
            counts = any(start <= pointer < end for pointer in pointers)
        elif counts and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def test_an_attached_process_that_sleeps_has_memory_and_threads(scratch):
    """It allocates nothing: cairn knows it from the moment of attaching. What is behind an inaccessible area is
    not a stack: large blocks are behind the unused tails of arenas."""
    with Attachable(scratch, program=[PROGRAMS / "retained", "4", "8"]) as program:
        program.attach()
        program.ctl("snapshot")
        resident = sum(rss for _, rss in smaps(program.process.pid))
        stacks = stacks_in_use(program.process.pid)
        recording = program.detach()
        free, in_use, large = map(int, program.ask("s").split())
        returned = int(program.ask("t"))
    report = recording.report
    last = breakdown(report, "is_last")
    assert report["totals"]["allocations"] == 0
    assert report["totals"]["threads"] == 5
    near(last["rss_bytes"], resident, 64 * PAGE)
    near(report["totals"]["peak_rss_bytes"], resident, 64 * PAGE)
    near(last["stack_bytes"], stacks, 8 * PAGE)
    screen, parts = (subprocess.run([CAIRN, "report", *option, recording.path], check=True, capture_output=True,
                                    text=True, env=environment()).stdout for option in ([], ["-r"]))
    # What glibc says of its heap: from before the attach, and what malloc_trim(0) has returned since then.
    parts_of = {part["path"]: part["rss_bytes"] for part in last["mappings"] if part["kind"] == "rest"}
    near(last["kept_bytes"], free, 0.02 * free + 64 * PAGE)
    near(parts_of["[heap of glibc, allocated before recording]"], in_use, 0.05 * in_use + 64 * PAGE)
    near(parts_of["[large blocks of glibc, allocated before recording]"], large, 16 * PAGE)
    near(last["empty_page_bytes"], returned, 0.02 * returned + 64 * PAGE)
    released, = {row["released_bytes"] for row in report["rss"]["allocators"] if row["time_ms"] == last["time_ms"]}
    near(released, returned, 0.02 * returned)
    assert last["rest_bytes"] - sum(parts_of.values()) == 0 and parts_of.get("", 0) < 64 * PAGE
    assert "[mapped before recording]" in parts_of
    assert f"malloc_trim(0) would return about {released / MIB:.1f} MiB of it" in \
        report["findings"]["items"][0]["sentence"]
    assert "5 threads" in screen and "peak RSS" in screen and "most of RSS" in screen
    assert "RESIDENT MEMORY" in parts and "thread stacks" in parts


def test_a_report_without_a_breakdown_says_why(scratch):
    """Never nothing."""
    with Attachable(scratch) as program:
        program.attach()
        program.do("a 1 100")
        recording = program.detach()
    for option, reason in [("--sort=peak", "no parts to sort"), ("--size=100", "does not apply")]:
        run = subprocess.run([CAIRN, "report", "-r", option, recording.path], check=True, capture_output=True,
                             text=True, env=environment())
        assert "RESIDENT MEMORY" in run.stdout and reason in run.stdout, run.stdout


def test_redis_with_its_own_allocator(scratch):
    """jemalloc's areas are the program's own mappings, but count as heap."""
    path, socket = scratch / "redis.cairn", scratch / "redis.sock"
    command = ["/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
               "--dir", scratch, "--enable-debug-command", "yes"]
    ask = ["redis-cli", "-s", socket]
    with subprocess.Popen([CAIRN, "record", "-q", "-o", path, "--", *command],
                          env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.STDOUT) as redis:
        wait_until(lambda: is_served(socket), "the server's socket")
        subprocess.run([*ask, "DEBUG", "POPULATE", "20000", "key", "700"], check=True,
                       capture_output=True)
        said = subprocess.run([*ask, "INFO", "memory"], capture_output=True, text=True, check=True)
        used = int(re.search(r"^used_memory:(\d+)", said.stdout, re.M).group(1))
        assert used > 20000 * 700, "the server has its keys"
        subprocess.run([*ask, "SHUTDOWN", "NOSAVE"], capture_output=True, check=False)
        redis.communicate(timeout=60)
    report = Recording(path, redis).report
    peak = breakdown(report, "is_peak")
    assert sum_of_kinds(report, peak) == peak["rss_bytes"]
    assert peak["rest_bytes"] < 0.05 * peak["rss_bytes"]
    # used_memory is the memory that jemalloc returned, by its size classes.
    live = peak["live_bytes"]
    assert 0.75 * used < live < 1.02 * used
    anonymous = [part for part in peak["mappings"] if part["kind"] == "mapped"]
    assert sum(part["rss_bytes"] for part in anonymous) < 0.1 * peak["rss_bytes"]


@pytest.mark.parametrize("allocator", some_of(["", "libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"], 3))
def test_survivors_of_a_fragmented_heap_are_found(record, allocator):
    """The program counts the pages of its survivors itself; a few pages of libc's blocks may add to them."""
    recording = record(PROGRAMS / "survivors", is_compared=False, env={"LD_PRELOAD": allocator} if allocator else {})
    pages = int(recording.finished.stdout)
    report = recording.report
    last = breakdown(report, "is_last")
    assert pages * PAGE <= last["sparse_page_bytes"] <= (pages + 8) * PAGE
    assert 2000 * 1000 <= last["sparse_block_bytes"] <= 2000 * 1020
    assert 0 < last["empty_page_bytes"] <= last["kept_bytes"]
    rows = [row for row in report["rss"]["survivors"] if row["time_ms"] == last["time_ms"]]
    kept = {row["function"]: row for row in rows}
    held = sum(row["held_bytes"] for row in rows)
    assert last["sparse_page_bytes"] - last["sparse_block_bytes"] - held in range(0, 6000)
    for function in ("keep_session", "keep_message"):
        assert (kept[function]["blocks"], kept[function]["block_bytes"]) == (1000, 1000 * 1000)
    assert not allocator or "work" not in kept
    (finding,) = [item for item in report["findings"]["items"] if item["kind"] == "sparse"]
    assert finding["function"] in ("keep_session", "keep_message")
    text = subprocess.run([CAIRN, "report", "-r", recording.path], check=True, capture_output=True, text=True,
                          env=environment(), timeout=60).stdout
    assert "fragmentation at the end" in text and "keep_session" in text


def judge_huge_pages(report, which, huge, untouched):
    """The figures of one breakdown against the kernel's and the program's own. A kernel without huge pages has
    given none."""
    parts = breakdown(report, which)["mappings"]
    near(sum(part["huge_bytes"] for part in parts), huge, 64 * PAGE)
    near(sum(part["blank_bytes"] for part in parts), untouched if huge else 0, 0.05 * huge)
    found = [item["sentence"] for item in report["findings"]["items"] if item["kind"] == "huge"]
    assert len(found) == (huge > 0 and untouched > 0), found
    return found[0] if found else ""


def written_bytes(huge, written):
    """Of 32 areas, those in huge pages, and the others: the kernel may have had fewer huge pages than areas."""
    in_huge = huge // (2 * MIB)
    return in_huge * written * PAGE, (32 - in_huge) * written * PAGE


@pytest.mark.parametrize("where, written", some_of([("mapped", 8), ("mapped", 512), ("block", 8)], 2))
def test_huge_pages_that_are_mostly_untouched(scratch, where, written):
    """The heap's block is of malloc: the kernel cuts its mapping where madvise says so."""
    with Conversation(scratch / "x.cairn", program=[PROGRAMS / "huge_pages", where, str(written)]) as program:
        huge = int(program.ask("h"))
        program.ctl("snapshot")
        report = program.end().report
    asked, = [entry for entry in report["rss"]["breakdowns"] if entry["was_asked"]]
    kind = "mapped" if where == "mapped" else "live"
    in_huge, others = written_bytes(huge, written)
    near(asked[f"{kind}_bytes"], huge + others, 64 * PAGE)
    sentence = judge_huge_pages(report, "is_peak", huge, huge - in_huge)
    assert not sentence or ("map_index" in sentence if where == "mapped" else "Most of it is heap" in sentence)


def test_huge_pages_of_an_attached_process(scratch):
    with Attachable(scratch, program=[PROGRAMS / "huge_pages", "mapped", "8"]) as program:
        huge = int(program.ask("h"))
        program.attach()
        program.ctl("snapshot")
        report = program.detach().report
    judge_huge_pages(report, "is_last", huge, huge - written_bytes(huge, 8)[0])


def pss_of_tree(pid):
    """The sum of Pss of a process and its children: each page divided among those that have it."""
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    texts = [open(f"/proc/{process}/smaps_rollup").read() for process in [pid, *children]]
    return sum(int(re.search(r"^Pss: +(\d+)", text, re.M).group(1)) * 1024 for text in texts)


def test_pages_that_processes_share_count_once(scratch):
    """Seven processes have the same 64 MiB: RSS, its parts and the budget count them once."""
    path = scratch / "x.cairn"
    with subprocess.Popen([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "shared_tree"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, env=environment()) as process:
        read_until(process.stdout.fileno(), b"ready")
        pid = int(open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()[0])
        pss = pss_of_tree(pid)
        ctl(path, "snapshot")
        process.communicate(b"\n", timeout=60)
    report = Recording(path, process).report
    asked, = [entry for entry in report["rss"]["breakdowns"] if entry["was_asked"]]
    assert asked["processes"] == 7
    # Pss of a page that the kernel moves just then is divided among fewer processes.
    assert 64 * MIB <= asked["shared_bytes"] < 64 * MIB + 256 * PAGE
    assert asked["repeated_bytes"] > 6 * 64 * MIB
    assert sum_of_kinds(report, asked) == asked["rss_bytes"]
    # Other processes have pages of the libraries, too, which Pss counts in part.
    assert -MIB < asked["rss_bytes"] - pss < 16 * MIB
    # However the processes and the recorder took turns: what may be shared counts once. Each process for itself
    # would be 448 MiB.
    totals = report["totals"]
    assert 64 * MIB <= totals["peak_rss_bytes"] < 64 * MIB + 32 * MIB
    assert totals["peak_rss_at_most_bytes"] >= totals["peak_rss_bytes"]
    check = subprocess.run([CAIRN, "check", "--max-rss", "96MiB", "--", PROGRAMS / "shared_tree"], input=b"\n",
                           capture_output=True, env=environment(), check=False)
    assert check.returncode == 0, check.stdout


@pytest.mark.parametrize("options", [[], ["--all-allocators"]], ids=["preloaded", "injected"])
def test_a_short_life_has_its_peak(record, options):
    """Processes that touch 64 MiB and end before a sample sees it: the peak is the kernel's own."""
    recording = record(PROGRAMS / "brief_peaks", "64", "8", is_compared=False, options=options)
    kernels = int(recording.finished.stdout)
    assert kernels >= 64 * MIB
    # The kernel adds up the parts of RSS that its processors have counted, some pages each.
    near(recording.totals["peak_rss_bytes"], kernels, 256 * PAGE)
    children = [process["peak_rss_bytes"] for process in recording.report["processes"]
                if process["pid"] != recording.report["processes"][0]["pid"]]
    assert min(children, default=0) > 64 * MIB, children
