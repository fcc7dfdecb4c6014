# SPDX-License-Identifier: MIT
"""Memory: the overhead in the program does not grow with its run or its stacks. Live blocks, which
have a word each in the program, and distinct stacks bound the memory of cairn."""
import os
import pathlib
import pty
import select
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, counters, environment
from waiting import read_until

MIB = 1 << 20
TOLERANCE_KIB = 1024  # a lane whose ring was full has a larger one, up to 1 MiB
WORD_BYTES = 20  # 8 for each 32 bytes of heap; a block of 64 takes 80 of it


def resident_kib(command):
    run = subprocess.run([*map(str, command)], env=environment(), capture_output=True, check=True,
                         timeout=120)
    return int(run.stdout)


def extra_kib(scratch, *arguments):
    """The resident memory that recording adds to the program. It depends on whether a ring was
    full; the memory of the bare program is constant."""
    program = [PROGRAMS / "resident", *arguments]
    recorded = [CAIRN, "record", "-q", "-o", scratch / "x.cairn", "--", *program]
    return min(resident_kib(recorded) for _ in range(2)) - resident_kib(program)


@pytest.mark.parametrize("what, short, long", [
    ("run time", (200_000, 64, 0), (1_000_000, 64, 0)),
    ("stacks", (150_000, 10_000, 0), (150_000, 100_000, 0)),
    ("live blocks", (200_000, 64, 100_000), (200_000, 64, 1_000_000)),
])
def test_the_program_s_extra_memory_does_not_grow(scratch, what, short, long):
    first, second = extra_kib(scratch, *short), extra_kib(scratch, *long)
    words_kib = WORD_BYTES * long[2] // 1024
    assert second - first <= TOLERANCE_KIB + words_kib, f"with {what}: {first} KiB, then {second} KiB"
    assert second <= 4096 + words_kib, f"with {what}: {second} KiB"


def recorder_bytes(path, *command, options=()):
    """The highest resident memory of cairn (the program's, which counts too, is much lower)."""
    words = [CAIRN, "record", *options, "-o", path, "--", *command]
    quiet = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)]
    pid = os.posix_spawn(CAIRN, [str(word) for word in words], environment(), file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_maxrss * 1024


def bound_bytes(blocks, nodes):
    """64 MiB, 24 bytes for each live block, and 150 bytes for each distinct node of a stack."""
    return 64 * MIB + 24 * blocks + 150 * nodes


def assert_within(took, bound):
    assert took <= bound, f"{took // MIB} MiB of {bound // MIB} MiB"


def test_the_recorder_stays_within_its_bound_with_many_blocks(scratch):
    blocks, stacks = 1_000_000, 100_000
    path = scratch / "x.cairn"
    took = recorder_bytes(path, PROGRAMS / "resident", 200_000, stacks, blocks)
    report = Recording(path, None).report_of("-n", "1", "-s", "1")  # whole: gigabytes
    assert set(counters(report, "loss").values()) == {0}
    assert report["totals"]["live_blocks"] == blocks
    assert report["totals"]["stacks"] >= stacks
    # Nodes: the paths of 24 levels share their outer parts; two frames per level, and a leaf.
    nodes = stacks * 2 + sum(min(stacks, 2 ** level) for level in range(24)) * 2
    assert_within(took, bound_bytes(blocks, nodes))


STACKS = 1_000_000
ROUNDS = 4
NODES = STACKS + sum(4 ** level for level in range(1, 10))  # leaves, and their callers


@pytest.fixture(scope="module", name="million")
def fixture_million(tmp_path_factory):
    """A recording with a million stacks of four allocations each, and the recorder's memory."""
    path = tmp_path_factory.mktemp("million") / "x.cairn"
    return path, recorder_bytes(path, PROGRAMS / "distinct_stacks", STACKS, ROUNDS)


def test_the_recorder_stays_within_its_bound_with_a_million_stacks(million, scratch):
    quiet_path = scratch / "quiet.cairn"
    quiet = quiet_path, recorder_bytes(quiet_path, PROGRAMS / "distinct_stacks", STACKS, ROUNDS, options=["-q"])
    for path, took in (million, quiet):
        report = subprocess.run([CAIRN, "report", "--all", "-n", "1", path], capture_output=True, check=True,
                                timeout=120).stdout.decode()
        assert "4,000,000" in report and "1,000,000 call stacks" in report
        assert_within(took, bound_bytes(0, NODES))


def rows_of(path, table):
    """The entries of a table, as dump prints them."""
    printed = subprocess.run([CAIRN, "dump", "-t", table, path], check=True, capture_output=True, timeout=120)
    names, *lines = [line.split("\t") for line in printed.stdout.decode().splitlines()]
    return [dict(zip(names, line)) for line in lines]


def test_a_stack_that_was_forgotten_has_its_figures_again(scratch):
    """Threads of two processes know more stacks than their dictionaries have room for, so they take numbers of rows
    that others have had. Sizes name the stacks."""
    threads, stacks, rounds = 3, 20_000, 6
    path = scratch / "x.cairn"
    recorder_bytes(path, PROGRAMS / "round_stacks", threads, stacks, rounds)
    done = {}
    for row in rows_of(path, "rows"):
        figures = [int(row[name]) for name in ("allocations", "frees", "allocated_bytes", "freed_bytes")]
        done.setdefault(row["thread"], []).append(figures)
    workers = [figures for figures in done.values() if len(figures) >= stacks]
    assert len(workers) == 2 * threads  # the forked process has as many
    expected = sorted([rounds, rounds, rounds * (16 + stack), rounds * (16 + stack)] for stack in range(stacks))
    for figures in workers:
        assert sorted(figures) == expected
    report = Recording(path, None).report_of("-n", "1", "-s", "1")
    assert set(counters(report, "loss").values()) == {0}


def session_bytes(pid):
    """What the kernel counts of the memory that the recorder shares with programs."""
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if "cairn-session" in os.readlink(descriptor):
                return descriptor.stat().st_blocks * 512
        except OSError:  # closed meanwhile
            continue
    return 0


def capped(path, cap_mib, *command):
    """Record with --max-memory. Return the most resident memory of cairn alone, the most memory that it
    shares with programs, and its output. The command may begin with options of cairn."""
    words = [CAIRN, "record", "--max-memory", f"{cap_mib}MiB", "-o", path, *map(str, command)]
    highest = shared = 0
    with open(path.with_suffix(".said"), "w+", encoding="utf-8") as said:
        with subprocess.Popen(words, env=environment(), stdout=subprocess.DEVNULL, stderr=said) as cairn:
            status = f"/proc/{cairn.pid}/status"
            while cairn.poll() is None:
                with open(status, encoding="utf-8") as lines:
                    found = [line for line in lines if line.startswith("VmHWM")]
                highest = max(highest, int(found[0].split()[1]) if found else 0)
                shared = max(shared, session_bytes(cairn.pid))
                select.select([], [], [], 0.01)
        assert cairn.returncode == 0
        said.seek(0)
        return highest * 1024, shared, said.read()


def verify(path):
    run = subprocess.run([CAIRN, "verify", path], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr


# Pages of the session and of files count as resident too, but are shared.
SHARED_BYTES = 16 * MIB


def test_a_cap_merges_the_rarest_stacks(scratch):
    path = scratch / "x.cairn"
    took, _, said = capped(path, 64, PROGRAMS / "rare_stacks", STACKS)
    assert said.count("the rarest are merged") == 1 and "--max-memory" in said
    assert took <= 64 * MIB + SHARED_BYTES, f"{took // MIB} MiB"
    report = Recording(path, None).report_of("-n", "9", "-s", "2")
    often, later = STACKS // 20, STACKS // 40
    assert report["totals"]["allocations"] == STACKS + often + later
    assert report["totals"]["live_bytes"] == 100 * often + 200 * later
    assert report["run"]["sampling"] is None
    assert set(counters(report, "loss").values()) == {0}
    assert counters(report, "note")["merged_stacks"] > STACKS / 2
    sites = {site["function"]: site for site in report["top"]["allocations"]}
    # The later the recorder, the fewer keep their innermost frame; what the others did is at [merged].
    of_site = {name: site["costs"]["allocations"] for name, site in sites.items()}
    assert of_site["go_on"] <= STACKS and sum(of_site.values()) == STACKS + often + later, of_site
    assert set(of_site) - {"[merged]"} == {"go_on", "often", "later"}
    merged = report["run"]["merged_stacks"]
    assert STACKS / 2 < merged["allocations"] <= STACKS + often // 20
    assert merged["most_missing_allocations"] <= merged["allocations"]
    for name, count, size in (("often", often, 100), ("later", later, 200)):
        stack = sites[name]["stacks"][0]
        assert [frame["function"] for frame in stack["frames"][:2]] == [name, "main"]
        assert count * 0.99 <= stack["costs"]["allocations"] <= count
        assert stack["costs"]["live_bytes"] == size * stack["costs"]["allocations"]
        assert count - stack["costs"]["allocations"] <= merged["most_missing_allocations"]
    verify(path)
    text = subprocess.run([CAIRN, "report", path], capture_output=True, text=True, check=True, timeout=120)
    assert "the rarest were merged" in text.stdout and "[merged]" in text.stdout


def test_a_cap_with_lists_merges_new_stacks(scratch):
    """The lists name stacks by number, so the recorder cannot merge them later."""
    path = scratch / "x.cairn"
    took, _, said = capped(path, 64, "--blocks", PROGRAMS / "rare_stacks", STACKS)
    assert said.count("new ones are merged") == 1
    assert took <= 64 * MIB + SHARED_BYTES, f"{took // MIB} MiB"
    report = Recording(path, None).report_of("-n", "1", "-s", "1")
    assert report["totals"]["allocations"] == STACKS + STACKS // 20 + STACKS // 40
    verify(path)


def test_a_cap_samples_blocks(scratch):
    path = scratch / "x.cairn"
    blocks, pairs = 5_000_000, 1000
    # In bursts: without pauses the words grow by a MiB in 2 ms, and the recorder, which looks every 8 ms, may be
    # late where others use the processors.
    took, shared, said = capped(path, 64, PROGRAMS / "resident", pairs, 64, blocks, 10_000)
    assert said.count("new ones are sampled") == 1 and "all figures are estimates" in said
    assert took <= 64 * MIB + SHARED_BYTES, f"{took // MIB} MiB"
    # 9 32nds of the limit for words, and the program's lane. All blocks would take 100 MiB.
    assert 14 * MIB <= shared <= 40 * MIB, f"{shared // MIB} MiB of words"
    report = Recording(path, None).report_of("-n", "1", "-s", "1")
    totals, sampling = report["totals"], report["run"]["sampling"]
    assert sampling["allocations"] == blocks + pairs
    assert counters(report, "note")["unkept_blocks"] > blocks / 3
    for bytes_ in (64 * totals["live_blocks"], totals["peak_bytes"]):
        assert abs(bytes_ - 64 * blocks) <= 5 * sampling["peak_standard_error_bytes"]
    verify(path)


def test_a_million_stacks_make_no_report_of_gigabytes(million):
    report = Recording(million[0], None).report_of("-n", "1")
    site = report["top"]["allocations"][0]
    assert site["stack_count"] == STACKS
    assert (site["stacks_shown"], site["stack_count"]) == (len(site["stacks"]), STACKS)
    assert len(site["stacks"]) == 100


def test_what_takes_long_is_told_on_a_terminal(million):
    """All stacks of a million as JSON are gigabytes: merging and writing them takes many
    seconds."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execve(CAIRN, ["cairn", "report", "--json", "-s", "0", million[0]], environment())
    shown = read_until(terminal, b"\r\x1b[Kwriting the report, call stacks: ")
    while not (count := shown.rpartition(b"stacks: ")[2])[:1].isdigit():
        shown += os.read(terminal, 64)
    assert int(count.split(b"\r")[0].replace(b",", b"")) >= 0
    os.kill(pid, signal.SIGKILL)  # the progress was seen
    os.waitpid(pid, 0)
    os.close(terminal)
